//! Code addresses: where each function, block and bundle stands.

use crate::code::{Block, Func, Inst, Operand};
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
    /// `literals[f][b]`: address of the literal pool behind that block.
    pub literals: Vec<Vec<u32>>,
}

/// Bytes of a literal, and what its address is a multiple of.
pub const LITERAL_BYTES: u32 = 4;
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
        let mut literals = Vec::with_capacity(sizes.len());
        let fetched = program.machine.issue.packet_bytes;
        for (func, code) in sizes.iter().zip(&program.funcs) {
            at = at.next_multiple_of(16);
            let mut starts = Vec::with_capacity(func.len());
            let mut pools = Vec::with_capacity(func.len());
            for (block, of) in func.iter().zip(&code.blocks) {
                let mut start = None;
                for &bytes in block {
                    at = begins(at, bytes, fetched);
                    start = start.or(Some(at));
                    at += bytes;
                }
                starts.push(start.unwrap_or(at));
                if !of.literals.is_empty() {
                    at = at.next_multiple_of(LITERAL_BYTES);
                }
                pools.push(at);
                at += LITERAL_BYTES * of.literals.len() as u32;
            }
            blocks.push(starts);
            literals.push(pools);
            ends.push(at);
        }
        Layout { blocks, ends, sizes, literals }
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

    /// The first jump or load of a literal that does not reach, in words; None when all do.
    pub fn unreached(program: &Program) -> Option<String> {
        let machine = &program.machine;
        if machine.instrs.iter().all(|i| i.reach.is_none() && i.literal.is_none()) {
            return None;
        }
        Layout::new(program).first_unreached(program)
    }

    fn first_unreached(&self, program: &Program) -> Option<String> {
        let machine = &program.machine;
        for (f, func) in program.funcs.iter().enumerate() {
            for (b, block) in func.blocks.iter().enumerate() {
                let mut end = i64::from(self.blocks[f][b]);
                for (bundle, bytes) in block.bundles.iter().zip(&self.sizes[f][b]) {
                    end += i64::from(*bytes);
                    for inst in &bundle.insts {
                        let instr = &machine.instrs[usize::from(inst.instr.0)];
                        let jump = inst.operands.iter().find_map(|o| match o {
                            Operand::Block(t) => self.blocks[f].get(*t as usize),
                            _ => None,
                        });
                        let reaches = |at: u32, (from, to): (i64, i64)| (from..=to).contains(&(i64::from(at) - end));
                        let loaded = inst.literal(machine).zip(instr.literal);
                        let good = match (jump.zip(instr.reach), loaded) {
                            (Some((&at, reach)), _) => reaches(at, reach),
                            (None, Some((value, literal))) => self
                                .literal(func, (f, b), value)
                                .is_some_and(|at| reaches(at, (0, literal.reach.into()))),
                            (None, None) => true,
                        };
                        if !good {
                            return Some(format!("`{}` in block {b} of `{}` does not reach", instr.name, func.name));
                        }
                    }
                }
            }
        }
        None
    }

    /// Address of the first literal of that value in or behind a block.
    fn literal(&self, func: &Func, (f, b): (usize, usize), value: u32) -> Option<u32> {
        let behind = func.blocks.iter().enumerate().skip(b);
        let find = |(b, block): (usize, &Block)| {
            let k = block.literals.iter().position(|&l| l == value)?;
            Some(self.literals[f][b] + LITERAL_BYTES * k as u32)
        };
        behind.into_iter().find_map(find)
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
    /// Bytes of all encoded instructions and of the literals among them.
    pub fn code_bytes(&self) -> u64 {
        let layout = Layout::new(self);
        let literals = self.funcs.iter().flat_map(|f| &f.blocks).map(|b| b.literals.len() as u64).sum::<u64>();
        let code = layout.sizes.iter().flatten().flatten().map(|&bytes| u64::from(bytes)).sum::<u64>();
        code + literals * u64::from(LITERAL_BYTES)
    }
}
