//! What is looked for and within which limits, and what a find is.

use ciphermill_ir::{Block, FuncId};
use serde::Serialize;
use std::collections::HashMap;

/// How often each block ran.
pub type Counts = HashMap<(FuncId, Block), u64>;

/// Limits of what is looked for.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Registers that an instruction may read.
    pub inputs: usize,
    /// Registers that it may write.
    pub outputs: usize,
    /// Candidates of each kind, at most.
    pub most: usize,
}

/// An instruction that could be added.
#[derive(Clone, Debug, Serialize)]
pub struct Candidate {
    /// `cone`, `matrix`, `tables`, `product` or `modular`.
    pub kind: &'static str,
    /// Names of its register operands, results first.
    pub registers: Vec<String>,
    /// How many of them are results.
    pub outputs: usize,
    /// Name and values of each immediate.
    pub immediates: Vec<(String, Vec<i64>)>,
    pub semantics: String,
    /// What the results are modulo a number, if that is known.
    pub meaning: Option<String>,
    /// Tables and matrices that the semantics name: as TOML.
    pub constants: String,
    /// Operations that one instruction does.
    pub operations: usize,
    /// Places in the code where it could stand.
    pub places: usize,
    /// Estimate of the cycles saved in the run that was counted.
    pub saves: u64,
}
