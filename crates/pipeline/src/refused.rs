//! Loops that were not pipelined, and why not.

use ciphermill_vcode::VReg;
use std::collections::BTreeMap;

/// Why one loop is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    pub word: &'static str,
    pub why: String,
}

impl Reason {
    pub fn new(word: &'static str, why: impl Into<String>) -> Reason {
        Reason { word, why: why.into() }
    }
}

/// What was refused, by the loop's parameters, which are its own.
pub type Refused = BTreeMap<Vec<VReg>, Reason>;
