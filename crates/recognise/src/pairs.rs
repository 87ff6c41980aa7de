//! Matrices of two words, found behind tables.
//!
//! A matrix that takes all of two words has no inverse, but what each single
//! byte of them adds to the result is a function that can be undone. So each
//! table of a sum is tried as what one byte adds: that gives the tables of which
//! the two words were made.

use super::cover::{Step, cover};
use super::sum::{Rows, Sum, times};
use super::units::Unit;
use ciphermill_ir::Value;
use std::collections::HashMap;

/// An instruction that multiplies two words by a matrix, and what makes one of
/// each byte of them.
pub struct Pair {
    pub function: u16,
    /// For each source and each of its bytes: the byte, by what it adds.
    bytes: [Vec<HashMap<u64, u8>>; 2],
}

/// The units that are such matrices.
pub fn pairs(units: &[Unit]) -> Vec<Pair> {
    let pair = |unit: &Unit| {
        let [a, b] = &unit.matrix[..] else { return None };
        Some(Pair { function: unit.function, bytes: [undone(a)?, undone(b)?] })
    };
    units.iter().filter_map(pair).collect()
}

/// For each byte of a source, the byte by what it adds to the result; none
/// where two bytes add the same.
fn undone(rows: &Rows) -> Option<Vec<HashMap<u64, u8>>> {
    let byte = |n: usize| {
        let all: HashMap<u64, u8> = (0..=u8::MAX).map(|x| (times(rows, u64::from(x) << (8 * n)), x)).collect();
        (all.len() == 256).then_some(all)
    };
    (0..rows.len() / 8).map(byte).collect()
}

impl Pair {
    /// Two single instructions whose results the matrix turns into a sum.
    pub fn steps(&self, units: &[Unit], wanted: &Sum<Value>) -> Option<[Step; 2]> {
        let mut words = [Sum::constant(0), Sum::constant(0)];
        for part in wanted.parts.iter().filter(|_| wanted.rest == 0) {
            let (source, table) = (0..2).find_map(|source| {
                let tables = self.bytes[source].iter().enumerate();
                tables.into_iter().find_map(|(n, byte)| {
                    let entry = |x: &u64| byte.get(x).map(|&b| u64::from(b) << (8 * n));
                    let table: Vec<u64> = part.table().iter().map(entry).collect::<Option<_>>()?;
                    Some((source, <[u64; 256]>::try_from(table).ok()?))
                })
            })?;
            words[source].parts.push(part.with(&table));
        }
        let step = |source: usize| match &cover(units, &words[source])?[..] {
            [step] => Some(step.clone()),
            _ => None,
        };
        Some([step(0)?, step(1)?])
    }
}
