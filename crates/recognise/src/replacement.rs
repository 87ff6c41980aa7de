//! How values are computed anew.

use super::cover::Step;
use super::linear::Match;
use super::{modular, products};
use ciphermill_ir::Value;

/// How a value is computed anew.
pub enum Replacement {
    Linear(Match),
    /// A product of two words.
    Product(products::Match),
    /// A value modulo a number.
    Modular(modular::Match),
    /// A matrix of two sources times these, and the sum of `rest`.
    Words {
        matrix: u16,
        sources: [Value; 2],
        rest: Vec<Value>,
    },
    /// The sum of the steps' tables, rotated to the left by `turn`, put through a
    /// matrix if there is one, and of `rest`.
    Tables {
        steps: Vec<Step>,
        turn: u32,
        matrix: Option<u16>,
        rest: Vec<Value>,
    },
    /// A matrix of two sources times what the two steps give, the sum of
    /// `inside` added to each, and the sum of `rest`.
    Halves {
        steps: [Step; 2],
        inside: Vec<Value>,
        matrix: u16,
        rest: Vec<Value>,
    },
}
