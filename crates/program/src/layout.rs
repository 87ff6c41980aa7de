//! Code addresses: where each function, block and bundle stands.

use crate::Program;

/// Address of the first function's first instruction.
pub const CODE_BASE: u32 = 0xE000_0000;
/// The stack grows down from here.
pub const STACK_TOP: u32 = 0xFF00_0000;
/// Bytes of stack; running past them is [`ciphermill_ir::TrapCode::StackOverflow`].
pub const STACK_BYTES: u32 = 1 << 20;

/// Addresses of a program's code, in the order of its functions.
#[derive(Clone, Debug)]
pub struct Layout {
    /// `blocks[f][b]`: address of block `b` of function `f`.
    pub blocks: Vec<Vec<u32>>,
}

impl Layout {
    /// Lay functions out one after the other, each aligned to 16 bytes.
    pub fn new(program: &Program) -> Layout {
        let mut at = CODE_BASE;
        let mut blocks = Vec::with_capacity(program.funcs.len());
        for func in &program.funcs {
            at = at.next_multiple_of(16);
            let mut starts = Vec::with_capacity(func.blocks.len());
            for block in &func.blocks {
                starts.push(at);
                for inst in block.bundles.iter().flat_map(|b| &b.insts) {
                    at += u32::from(program.machine.instrs[inst.instr.0 as usize].bytes);
                }
            }
            blocks.push(starts);
        }
        Layout { blocks }
    }

    /// Address of a function's entry.
    pub fn func(&self, f: u32) -> u32 {
        self.blocks[f as usize][0]
    }
}
