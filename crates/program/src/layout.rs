//! Code addresses: where each function, block and bundle stands.

use crate::code::{Block, Inst, Operand};
use crate::program::Program;
use ciphermill_machine::{Instr, Machine};

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
    /// `sizes[f][b][k]`: bytes of bundle `k` of that block.
    pub sizes: Vec<Vec<Vec<u32>>>,
}

/// Has a jump that takes so many bytes a target that is not near?
pub fn is_far(instr: &Instr, bytes: u32) -> bool {
    instr.short_bytes.is_some_and(|short| bytes > u32::from(short))
}

/// Where a bundle begins whose code would go on at `at`.
pub fn begins(at: u32, bytes: u32, packet_bytes: u32) -> u32 {
    let crosses = packet_bytes > 0 && at % packet_bytes + bytes > packet_bytes;
    if crosses { at.next_multiple_of(packet_bytes) } else { at }
}

/// The instruction's size if its target is near.
fn shortest(machine: &Machine, inst: &Inst) -> u32 {
    let to_block = inst.operands.iter().any(|o| matches!(o, Operand::Block(_)));
    let short = machine.instrs[usize::from(inst.instr.0)].short_bytes.filter(|_| to_block);
    short.map_or_else(|| inst.bytes(machine), u32::from)
}

impl Layout {
    /// Lay functions out one after the other, each aligned to 16 bytes. A bundle
    /// that would cross from one fetch packet into the next begins at the next;
    /// the assembler fills up the bundles before it.
    ///
    /// A jump that has a short form takes it where its target is near, as
    /// assemblers do: all are short at first, and those that do not reach grow
    /// until every one reaches.
    pub fn new(program: &Program) -> Layout {
        let machine = &program.machine;
        let mut sizes: Vec<Vec<Vec<u32>>> = Vec::with_capacity(program.funcs.len());
        for func in &program.funcs {
            let block =
                |b: &Block| b.bundles.iter().map(|b| b.insts.iter().map(|i| shortest(machine, i)).sum()).collect();
            sizes.push(func.blocks.iter().map(block).collect());
        }
        loop {
            let layout = Layout::placed(program, sizes);
            let Some(grown) = layout.grown(program) else { return layout };
            sizes = grown;
        }
    }

    fn placed(program: &Program, sizes: Vec<Vec<Vec<u32>>>) -> Layout {
        let mut at = CODE_BASE;
        let (mut blocks, mut ends) = (Vec::with_capacity(sizes.len()), Vec::with_capacity(sizes.len()));
        let fetched = program.machine.issue.packet_bytes;
        for func in &sizes {
            at = at.next_multiple_of(16);
            let mut starts = Vec::with_capacity(func.len());
            for block in func {
                let mut start = None;
                for &bytes in block {
                    at = begins(at, bytes, fetched);
                    start = start.or(Some(at));
                    at += bytes;
                }
                starts.push(start.unwrap_or(at));
            }
            blocks.push(starts);
            ends.push(at);
        }
        Layout { blocks, ends, sizes }
    }

    /// Sizes with the short jumps that do not reach made long; None when all do.
    fn grown(&self, program: &Program) -> Option<Vec<Vec<Vec<u32>>>> {
        let machine = &program.machine;
        if machine.instrs.iter().all(|i| i.short_bytes.is_none()) {
            return None;
        }
        let mut out = self.sizes.clone();
        let mut changed = false;
        for (f, func) in program.funcs.iter().enumerate() {
            for (b, block) in func.blocks.iter().enumerate() {
                let mut at = self.blocks[f][b];
                for (k, bundle) in block.bundles.iter().enumerate() {
                    at += self.sizes[f][b][k];
                    let [inst] = &bundle.insts[..] else { continue };
                    let target = inst.operands.iter().find_map(|o| match o {
                        Operand::Block(t) => self.blocks[f].get(*t as usize),
                        _ => None,
                    });
                    let long = inst.bytes(machine);
                    let (from, to) = machine.instrs[usize::from(inst.instr.0)].short_reach;
                    let reach = from..=to;
                    if let Some(&target) = target
                        && self.sizes[f][b][k] < long
                        && !reach.contains(&(i64::from(target) - i64::from(at)))
                    {
                        out[f][b][k] = long;
                        changed = true;
                    }
                }
            }
        }
        changed.then_some(out)
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

impl Program {
    /// Bytes of all encoded instructions.
    pub fn code_bytes(&self) -> u64 {
        let layout = Layout::new(self);
        layout.sizes.iter().flatten().flatten().map(|&bytes| u64::from(bytes)).sum()
    }
}
