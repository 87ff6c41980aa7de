//! The code of a function: blocks of bundles of instructions, with the operands of each.

use ciphermill_ir::{Space, TrapCode};
use ciphermill_machine::{InstrId, Machine, Reg};
use smallvec::SmallVec;

/// What one operand of an instruction is. Stands at the place the
/// instruction's own operand list gives it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operand {
    Reg(Reg),
    Imm(i64),
    /// A block of the same function: an index into [`Func::blocks`].
    Block(u32),
    /// A function: an index into [`crate::Program::funcs`].
    Func(u32),
}

/// Whom an instruction works for (lookup accounting).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Role {
    #[default]
    Other,
    /// Index extraction, scaling, address addition or the load of a table lookup.
    Lookup,
    /// Spills, reloads, saves, stack adjustment, moves the allocator made.
    Overhead,
}

#[derive(Clone, Debug)]
pub struct Inst {
    pub instr: InstrId,
    pub operands: SmallVec<[Operand; 4]>,
    /// Which memory a load or store means.
    pub space: Space,
    /// What a trap instruction, or a division's own trap, reports.
    pub trap: Option<TrapCode>,
    pub role: Role,
    /// A predicate register without which (it is 0) the instruction does nothing.
    pub predicate: Option<Reg>,
    /// Offset in the WebAssembly module; 0 for none.
    pub loc: u32,
}

impl Inst {
    /// The word that it takes from a literal pool.
    pub fn literal(&self, machine: &Machine) -> Option<u32> {
        let literal = machine.instrs[usize::from(self.instr.0)].literal?;
        match self.operands.get(literal.operand) {
            Some(Operand::Imm(v)) => Some(*v as u32),
            _ => None,
        }
    }

    /// Encoded size in bytes with these operands; of a jump, wherever its
    /// target is. Jumps to near targets may be shorter ([`crate::layout`]).
    pub fn bytes(&self, machine: &Machine) -> u32 {
        let instr = &machine.instrs[usize::from(self.instr.0)];
        let changed = instr.sizes.iter().filter(|s| match self.operands.get(s.operand) {
            Some(Operand::Reg(r)) => s.regs.contains(r),
            Some(Operand::Imm(v)) => s.values.contains(v),
            _ => false,
        });
        let (mut total, mut prefixed) = (i32::from(instr.bytes), false);
        for s in changed {
            total += if s.prefix && prefixed { 0 } else { i32::from(s.bytes) };
            prefixed |= s.prefix;
        }
        total.max(0) as u32
    }
}

/// Instructions that issue in the same cycle, in slot order. On a scalar
/// machine always one.
#[derive(Clone, Debug, Default)]
pub struct Bundle {
    pub insts: SmallVec<[Inst; 1]>,
}

/// A basic block. At most one branch, jump or return stands in it, followed
/// only by its delay slots; without one, or when a branch is not taken, control
/// falls through to the next block of the function. Calls (and their delay
/// slots) may stand anywhere. Only a block's first bundle is a branch target.
#[derive(Clone, Debug, Default)]
pub struct Block {
    pub bundles: Vec<Bundle>,
    /// Nesting depth of the loop it stands in, for printing.
    pub loop_depth: u8,
    /// Words of a literal pool behind it. Nothing falls through into them.
    pub literals: Vec<u32>,
}

#[derive(Clone, Debug)]
pub struct Func {
    pub name: String,
    /// Laid out in this order; the first is the entry.
    pub blocks: Vec<Block>,
    /// Stack bytes of one activation.
    pub frame_bytes: u32,
    /// Flattened parameter and result counts in machine words.
    pub params: usize,
    pub results: usize,
}
