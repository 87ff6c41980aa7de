//! Whose fault it is when there is no measurement.

use ciphermill_load::LoadError;
use serde::Serialize;
use std::fmt;

/// A place in the code of a module.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Place {
    pub function: String,
    /// Byte offset in the module.
    pub offset: u32,
}

/// What is wrong with a module, and where: the innermost place first, then the calls that
/// led to it.
#[derive(Clone, Debug, Serialize)]
pub struct Placed {
    pub what: String,
    pub places: Vec<Place>,
}

impl fmt::Display for Placed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((first, callers)) = self.places.split_first() else { return f.write_str(&self.what) };
        write!(f, "function \"{}\" at offset {:#x}: {}", first.function, first.offset, self.what)?;
        // Recursion without an end has thousands of them.
        for place in callers.iter().take(SHOWN) {
            write!(f, "\n  called from \"{}\" at offset {:#x}", place.function, place.offset)?;
        }
        match callers.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, "\n  and {more} calls more"),
        }
    }
}

/// Callers that a message names.
const SHOWN: usize = 12;

/// Why a request was not answered.
#[derive(thiserror::Error, Debug)]
pub enum MeasureError {
    /// The request, the module or a machine file is at fault. The message
    /// names the place and the mend.
    #[error("{0}")]
    Input(String),
    /// The module is at fault, in places of it that are known.
    #[error("{0}")]
    Module(Placed),
    /// An access was less aligned than the module states.
    #[error("{0}")]
    Misaligned(String),
    /// We are at fault: a stage contradicted another, or a check between
    /// stages failed.
    #[error("{0}")]
    Internal(String),
}

impl MeasureError {
    /// An error in what was given to us.
    pub fn input(message: impl fmt::Display) -> MeasureError {
        MeasureError::Input(message.to_string())
    }

    /// A module that the loader refuses.
    pub fn load(error: LoadError) -> MeasureError {
        match error {
            LoadError::Operator { function, offset, what, reason } => {
                let places = vec![Place { function, offset: offset as u32 }];
                MeasureError::Module(Placed { what: format!("{what} {reason}"), places })
            }
            other => MeasureError::input(other),
        }
    }

    /// An error in what we made.
    pub fn internal(message: impl fmt::Display) -> MeasureError {
        MeasureError::Internal(message.to_string())
    }
}
