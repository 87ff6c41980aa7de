//! The emitter of a function, and what several of its files do to an instruction.

use crate::encodings::Encodings;
use crate::frame::Frame;
use ciphermill_machine::Machine;
use ciphermill_program::{Operand, Role};
use ciphermill_regalloc::fold::FoldTable;
use ciphermill_schedule::verified;
use ciphermill_vcode::runs::Runs;
use ciphermill_vcode::{Facts, PInst, VKind};

/// Turns the allocated code of one function into blocks of the program.
pub struct Emitter<'a> {
    pub machine: &'a Machine,
    pub facts: &'a Facts,
    /// For checking what is made.
    pub checker: verified::Checker<'a>,
    pub frame: &'a Frame<'a>,
    /// Pipelined loops, by number.
    pub kernels: &'a [ciphermill_pipeline::Kernel],
    /// Memory operands, on machines that have them.
    pub folds: Option<&'a FoldTable>,
    pub encodings: &'a Encodings,
    /// Loads and stores of several words.
    pub runs: &'a Runs,
    /// Reorder and fill; otherwise the code stays as it is.
    pub schedule: bool,
    /// See [`crate::Options::at_once`].
    pub at_once: usize,
}

/// The instruction as one that ends a block.
pub fn control(mut p: PInst) -> PInst {
    p.kind = VKind::Jump;
    p.inst.role = Role::Other;
    p
}

/// The branch with its label set.
pub fn aimed(mut p: PInst, to: u32) -> PInst {
    let n = p.inst.operands.len();
    match p.inst.operands.iter().position(|o| matches!(o, Operand::Block(_))) {
        Some(i) => p.inst.operands[i] = Operand::Block(to),
        None if n > 0 => p.inst.operands[n - 1] = Operand::Block(to),
        None => {}
    }
    p
}
