//! What local register allocation works on.

use crate::fold::FoldTable;
use ciphermill_machine::Machine;
use ciphermill_vcode::{Facts, Registers, VFunc};

/// Local register allocation of one function.
pub struct LocalAllocator<'a> {
    pub func: &'a VFunc,
    pub machine: &'a Machine,
    pub facts: &'a Facts,
    pub folds: &'a FoldTable,
    pub registers: &'a Registers,
}
