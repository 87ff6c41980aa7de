//! What is asked of a module, call by call, and what can be observed of it: data that
//! both sides of a comparison share.

use ciphermill_ir::{Signature, TrapCode};

/// How a call that gave no results ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ending {
    Trap(TrapCode),
    /// Out of stack or fuel: says nothing about correctness.
    Exhausted,
    /// Something no correct compiler and simulator do.
    Broken(String),
}

pub type Outcome = Result<Vec<u64>, Ending>;

/// One call of a script.
#[derive(Clone, Debug)]
pub struct Call {
    pub export: String,
    pub sig: Signature,
    /// One for each parameter.
    pub args: Vec<u64>,
}

/// What can be observed of a script's run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Transcript {
    /// How instantiation ended, when it did not succeed.
    pub instantiation: Option<Ending>,
    pub outcomes: Vec<Outcome>,
    /// Empty where the module does not export it.
    pub memory: Vec<u8>,
    /// Empty where the subject cannot show them.
    pub globals: Vec<(String, u64)>,
}

impl Transcript {
    /// That of a run which says nothing.
    pub fn exhausted() -> Transcript {
        Transcript { instantiation: Some(Ending::Exhausted), ..Transcript::default() }
    }
}
