//! What an allocation of a function depends on.

use crate::fold::FoldTable;
use ciphermill_machine::Machine;
use ciphermill_vcode::{Facts, Registers, VFunc};

/// What an allocation of a function depends on.
#[derive(Clone, Copy)]
pub struct Question<'a> {
    pub func: &'a VFunc,
    pub machine: &'a Machine,
    pub facts: &'a Facts,
    pub folds: &'a FoldTable,
    pub registers: &'a Registers,
}
