//! How hardware is to be made, and why there may be none.

use thiserror::Error;

/// Why there is no hardware for an instruction.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{0}")]
pub struct Refusal(pub String);

/// How tables become hardware.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Tables {
    /// A hand-written module where the table names one.
    #[default]
    Hand,
    /// A case statement, always.
    Case,
}
