//! The matrices of a machine's instructions, turned and undone.
//!
//! A program may have a matrix with rotations by bytes around it, which are cheaper than
//! anything else that could stand there: so each matrix is looked for with them
//! ([`Turned`]). And where a program looks up what a matrix makes of an S-box, the matrix has
//! to be undone to see the S-box ([`Inverse`]).

use super::sum::{Rows, Table, identity, times};
use super::units::Unit;
use ciphermill_ir::BinOp;
use std::collections::HashMap;

/// A matrix that a rotate before it and one behind it may turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Turned {
    /// None: the word itself.
    pub function: Option<u16>,
    /// Bits by which the source is rotated to the left, and the result.
    pub before: u32,
    pub behind: u32,
    /// Constants that are the function's other source; without, it has the same word twice.
    pub by: Option<u32>,
}

impl Turned {
    /// Any matrix at all.
    pub const ANY: Turned = Turned { function: Some(0), before: 0, behind: 0, by: None };

    /// Operations that it takes, with those of a rotate.
    pub fn cost(&self, rotate: usize) -> usize {
        let rotates = usize::from(self.before != 0) + usize::from(self.behind != 0);
        usize::from(self.function.is_some()) + rotate * rotates
    }
}

/// The matrices of `units`, and what byte rotations make of them.
pub fn matrices(units: &[Unit]) -> HashMap<Rows, Turned> {
    let mut out = HashMap::new();
    // Fewest rotates first: they win.
    for rotates in 0..=2 {
        for unit in units {
            let Some(rows) = unit.one_word() else { continue };
            let bits = rows.len();
            let places = || (0..bits).step_by(8);
            for (before, behind) in places().flat_map(|a| places().map(move |b| (a, b))) {
                if usize::from(before != 0) + usize::from(behind != 0) == rotates {
                    // Bit j of the rotated source is bit j - before of the source.
                    let row = |i: usize| rows[(i + bits - behind) % bits];
                    let turned = |i: usize| BinOp::RotR.eval(row(i), before as u64, bits as u32).unwrap_or(0);
                    let turned = (0..bits).map(turned);
                    let (function, before, behind) = (Some(unit.function), before as u32, behind as u32);
                    out.entry(turned.collect()).or_insert(Turned { function, before, behind, by: None });
                }
            }
        }
    }
    out
}

/// The inverse of a unit's matrix: what a word was before the unit.
pub struct Inverse {
    /// The unit's function.
    pub function: u16,
    /// For each of the unit's sources: the bits of it that the unit looks at.
    pub masks: Vec<u64>,
    /// What each byte of the result adds to the word.
    bytes: Vec<Table>,
}

impl Inverse {
    /// The word that the unit turns into `x`.
    pub fn apply(&self, x: u64) -> u64 {
        self.bytes.iter().enumerate().fold(0, |word, (n, table)| word ^ table[(x >> (8 * n)) as usize & 0xff])
    }

    /// Does each bit of the word come from one source only?
    pub fn splits(&self) -> bool {
        self.masks.len() == 2 && self.masks[0] & self.masks[1] == 0
    }
}

/// The inverses of the matrices that have one; those of two sources first,
/// because they take halves of words as they are.
pub fn inverses(units: &[Unit]) -> Vec<Inverse> {
    let inverse = |unit: &Unit| {
        let masks = unit.matrix.iter().map(|rows| rows.iter().fold(0, |m, r| m | r)).collect();
        let rows = inverted(unit.one_word()?)?;
        let byte = |n: usize| std::array::from_fn(|x| times(&rows, (x as u64) << (8 * n)));
        Some(Inverse { function: unit.function, masks, bytes: (0..rows.len() / 8).map(byte).collect() })
    };
    let mut all: Vec<Inverse> = units.iter().filter_map(inverse).collect();
    all.sort_by_key(|i| std::cmp::Reverse(i.masks.len()));
    all
}

/// By elimination; None for a singular matrix.
fn inverted(mut rows: Rows) -> Option<Rows> {
    let mut out = identity(rows.len() as u32);
    for column in 0..rows.len() {
        let pivot = (column..rows.len()).find(|&i| rows[i] >> column & 1 == 1)?;
        rows.swap(column, pivot);
        out.swap(column, pivot);
        for i in (0..rows.len()).filter(|&i| i != column) {
            if rows[i] >> column & 1 == 1 {
                (rows[i], out[i]) = (rows[i] ^ rows[column], out[i] ^ out[column]);
            }
        }
    }
    Some(out)
}
