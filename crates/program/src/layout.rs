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
    /// The address behind each function's last instruction.
    pub ends: Vec<u32>,
}

/// Where a bundle begins whose code would go on at `at`.
pub fn begins(at: u32, bytes: u32, packet_bytes: u32) -> u32 {
    let crosses = packet_bytes > 0 && at % packet_bytes + bytes > packet_bytes;
    if crosses { at.next_multiple_of(packet_bytes) } else { at }
}

impl Layout {
    /// Lay functions out one after the other, each aligned to 16 bytes. A bundle
    /// that would cross from one fetch packet into the next begins at the next;
    /// the assembler fills up the bundles before it.
    pub fn new(program: &Program) -> Layout {
        let mut at = CODE_BASE;
        let (mut blocks, mut ends) = (Vec::with_capacity(program.funcs.len()), Vec::with_capacity(program.funcs.len()));
        let fetched = program.machine.issue.packet_bytes;
        for func in &program.funcs {
            at = at.next_multiple_of(16);
            let mut starts = Vec::with_capacity(func.blocks.len());
            for block in &func.blocks {
                let mut start = None;
                for bundle in &block.bundles {
                    let size = |i: &crate::Inst| u32::from(program.machine.instrs[i.instr.0 as usize].bytes);
                    let bytes: u32 = bundle.insts.iter().map(size).sum();
                    at = begins(at, bytes, fetched);
                    start = start.or(Some(at));
                    at += bytes;
                }
                starts.push(start.unwrap_or(at));
            }
            blocks.push(starts);
            ends.push(at);
        }
        Layout { blocks, ends }
    }

    /// Bytes of a function with what fills it up, alignment before it left out.
    pub fn bytes(&self, f: u32) -> u32 {
        self.ends[f as usize] - self.func(f)
    }

    /// Address of a function's entry.
    pub fn func(&self, f: u32) -> u32 {
        self.blocks[f as usize][0]
    }
}
