//! What an audit says.

use serde::Serialize;

/// How a secret shows in time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A conditional branch or switch.
    Branch,
    /// The address of a load or store.
    Address,
    /// The target of a call through a pointer.
    IndirectCall,
    /// A division or remainder, whose time depends on its operands on most machines.
    Division,
    /// In machine code: the target of a jump, call or return through a register.
    IndirectJump,
    /// There: a load or store that is done or not, by its predicate.
    PerhapsAccess,
    /// There: an operand of an instruction whose time depends on it, as the machine file says.
    Timing,
}

/// One place where a secret decides.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    pub kind: Kind,
    pub function: String,
    /// Byte offset in the module.
    pub offset: u32,
    /// None when the module has no line table.
    pub file: Option<String>,
    pub line: Option<u32>,
    /// How often it happened in all runs.
    pub times: u64,
    /// Of machine code: the instruction's name in the machine file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instruction: Option<String>,
}

/// The answer of an audit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Report {
    /// No branch, address, indirect call or division depends on a secret in
    /// any run, and so with any other secrets of the same lengths.
    pub clean: bool,
    pub findings: Vec<Finding>,
    /// Runs made: key lengths, functions and message lengths.
    pub runs: u32,
    /// Loads, stores and divisions in the functions that ran, and how many of
    /// them were reached.
    pub sites: u32,
    pub reached: u32,
}
