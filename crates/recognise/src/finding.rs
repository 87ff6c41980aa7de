//! What is told of a map that a program computes.

use serde::Serialize;

/// A map over GF(2), or a constant table, that a function computes.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    pub function: String,
    /// `matrix` or `table`.
    pub kind: &'static str,
    /// In words.
    pub what: String,
    /// Places in the function.
    pub places: usize,
    /// The machine's instruction that computes it.
    pub instruction: Option<String>,
    /// Why none does.
    pub missed: Option<String>,
}
