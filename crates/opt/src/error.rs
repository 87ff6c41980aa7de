//! What stops the optimiser.

use std::fmt;

/// What stopped the optimiser.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OptError {
    /// A division is to become a call but the module lacks the runtime function
    /// that does it.
    MissingRuntime { func: String, runtime: &'static str },
    /// `word_bits` is neither 32 nor 64.
    WordBits(u8),
    /// A machine of narrow words cannot do what a function does.
    Narrow { func: String, what: &'static str },
}

impl fmt::Display for OptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptError::MissingRuntime { func, runtime } => write!(
                f,
                "function {func:?} divides, but the module has no {runtime:?} for values of so many bits; link the \
                 runtime into it"
            ),
            OptError::Narrow { func, what } => {
                write!(f, "function {func:?} {what}, which is not for machines with words of less than 32 bits")
            }
            OptError::WordBits(bits) => {
                write!(f, "the optimiser works for words of 32 or 64 bits, not {bits}")
            }
        }
    }
}

impl std::error::Error for OptError {}
