//! What register allocation is given and what comes of it.

use crate::code::{VBlock, VFunc};
use ciphermill_machine::{FileId, InstrId, Machine, Reg};

/// Which registers a function may use.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Registers {
    /// In order of preference.
    pub allocatable: Vec<Reg>,
    /// Those that a call clobbers.
    pub clobbered: Vec<Reg>,
    /// Those that must be saved when used.
    pub callee_saved: Vec<Reg>,
    /// A register move, with which of its operands is written, a jump, and an
    /// instruction that does nothing.
    pub mov: (InstrId, Vec<bool>),
    pub jump: InstrId,
    pub nop: InstrId,
}

impl Registers {
    /// The files that they are of, each once.
    pub fn files(&self, machine: &Machine) -> Vec<FileId> {
        let mut files: Vec<FileId> = self.allocatable.iter().map(|r| machine.regs[usize::from(r.0)].file).collect();
        files.sort_unstable();
        files.dedup();
        files
    }
}

/// An instruction's place for a value: a register or a spill slot.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Place {
    Reg(Reg),
    Slot(u32),
}

/// A block after allocation: its instructions by index, and the moves between them (copies, spills and
/// reloads).
#[derive(Clone, Debug)]
pub enum Step {
    /// Instruction `index` of the block with the places of its operands: one
    /// for each use and definition, in the order of the operands.
    Inst(usize, Vec<Place>),
    Move {
        from: Place,
        to: Place,
    },
}

#[derive(Clone)]
pub struct Allocated {
    /// For each block of the function.
    pub blocks: Vec<Vec<Step>>,
    pub slots: u32,
    /// Registers written anywhere, of those that must be saved.
    pub saved: Vec<Reg>,
}

impl Allocated {
    /// Cost of a copy between registers.
    pub const COPY: u64 = 2;
    /// Cost of a spill or a reload.
    pub const TRANSFER: u64 = 3;
    /// Cost of a memory operand in place of a register.
    pub const OPERAND: u64 = 1;

    /// What the allocation adds to the code: spills, reloads, copies (`mov` is the program's own) and
    /// memory operands, each times its block's frequency.
    pub fn cost(&self, func: &VFunc, mov: InstrId) -> u64 {
        let block = |(steps, b): (&Vec<Step>, &VBlock)| Allocated::added(steps, b, mov) * b.frequency();
        self.blocks.iter().zip(&func.blocks).map(block).sum()
    }

    /// The same for one execution of a block.
    pub fn added(steps: &[Step], block: &VBlock, mov: InstrId) -> u64 {
        let weigh = |step: &Step| match step {
            Step::Move { from: Place::Reg(_), to: Place::Reg(_) } => Allocated::COPY,
            Step::Move { .. } => Allocated::TRANSFER,
            Step::Inst(i, places) => match places[..] {
                [Place::Reg(a), Place::Reg(b)] if block.insts[*i].instr == mov => Allocated::COPY * u64::from(a != b),
                _ => Allocated::OPERAND * places.iter().filter(|p| matches!(p, Place::Slot(_))).count() as u64,
            },
        };
        steps.iter().map(weigh).sum()
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Place) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Place {
    fn cmp(&self, other: &Place) -> std::cmp::Ordering {
        let key = |p: &Place| match p {
            Place::Reg(r) => (0, u32::from(r.0)),
            Place::Slot(s) => (1, *s),
        };
        key(self).cmp(&key(other))
    }
}
