//! Code as the checks are given it, before scheduling and after.

use crate::access::Access;
use ciphermill_ir::Space;
use ciphermill_machine::InstrId;
use smallvec::SmallVec;

/// A register: a physical one by its number in the machine, a virtual one by its own number
/// behind all of these.
pub type Storage = u32;

/// An operand, at the place that the instruction's own list of operands gives it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arg {
    /// Read, written or both, as the instruction says.
    Reg(Storage),
    /// Read under one name and written under another, as before allocation.
    Tied {
        read: Storage,
        write: Storage,
    },
    Imm(i64),
    Label(u32),
    Func(u32),
}

#[derive(Clone, PartialEq, Debug)]
pub struct Inst {
    pub instr: InstrId,
    pub args: SmallVec<[Arg; 4]>,
    /// A register without which (it is 0) the instruction does nothing.
    pub predicate: Option<Storage>,
    pub space: Space,
    /// What it touches. Said of code before scheduling only: of what is checked, an access is
    /// known by its address.
    pub access: Option<Access>,
    /// It may stop the program beside what its semantics say: a division.
    pub traps: bool,
}

/// Instructions that issue together.
pub type Bundle = Vec<Inst>;

/// Bundles up to the next label.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Block {
    pub bundles: Vec<Bundle>,
}

/// A loop before it was pipelined: one block, and what runs between one iteration and the next.
#[derive(Clone, Debug, Default)]
pub struct SourceLoop {
    /// The block, the branch excepted.
    pub body: Vec<Inst>,
    pub branch: Option<Inst>,
    /// Does another iteration follow where the branch is taken?
    pub again_when_taken: bool,
    /// Runs before another iteration.
    pub between: Vec<Inst>,
    /// Registers that each iteration begins with, and those whose values it hands on to the next.
    pub params: Vec<Storage>,
    pub handed: Vec<Storage>,
    /// What makes values that the loop finds, in its order: no accesses to memory. Each register has
    /// one definition.
    pub outside: Vec<Inst>,
    /// Of registers that the first iteration begins with, those of which they are copies.
    pub entered: Vec<(Storage, Storage)>,
}

/// What a check found wrong: which rule is broken, by which instruction, where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault(pub String);

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Fault {}
