//! What the second allocation of a function is made with.

use crate::spills::Memory;
use ciphermill_machine::Machine;
use ciphermill_vcode::{Facts, Registers, VFunc};

/// Allocates the long blocks of one function anew.
pub struct Second<'a> {
    pub func: &'a VFunc,
    pub machine: &'a Machine,
    pub facts: &'a Facts,
    pub memory: &'a Memory,
    pub registers: &'a Registers,
}
