//! Numbers for what a machine has.

/// A physical register of any register file: an index into [`crate::Machine::regs`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Reg(pub u16);

/// An instruction: an index into [`crate::Machine::instrs`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct InstrId(pub u16);

/// A register file: an index into [`crate::Machine::files`].
pub type FileId = usize;

/// A functional-unit class: an index into [`crate::Machine::units`].
pub type UnitId = usize;
