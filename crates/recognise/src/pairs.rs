//! Matrices of two words, found behind tables.
//!
//! A matrix that takes all of two words has no inverse, but what each single
//! byte of them adds to the result is a function that can be undone. So each
//! table of a sum is tried as what one byte adds: that gives the tables of which
//! the two words were made.

use super::bytes::Lookup;
use super::cover::{Step, cover};
use super::form::WORD;
use super::units::{Meaning, Unit};
use std::collections::HashMap;
use std::sync::Arc;

/// Bytes of a word.
const BYTES: usize = WORD / 8;

/// An instruction that multiplies two words by a matrix, and what makes one of
/// each byte of them.
pub struct Pair {
    pub function: u16,
    /// For each source and each of its bytes: the byte, by what it adds.
    bytes: [Vec<HashMap<u32, u8>>; 2],
}

/// The units that are such matrices.
pub fn pairs(units: &[Unit]) -> Vec<Pair> {
    let pair = |unit: &Unit| {
        let Meaning::Matrix(of) = &unit.meaning else { return None };
        let [a, b] = &of[..] else { return None };
        Some(Pair { function: unit.function, bytes: [undone(a)?, undone(b)?] })
    };
    units.iter().filter_map(pair).collect()
}

/// For each byte of a source, the byte by what it adds to the result; none
/// where two bytes add the same.
fn undone(rows: &[u32; WORD]) -> Option<Vec<HashMap<u32, u8>>> {
    let added = |x: u32| rows.iter().enumerate().fold(0, |w, (i, row)| w | ((row & x).count_ones() & 1) << i);
    let byte = |n: usize| {
        let all: HashMap<u32, u8> = (0..=u8::MAX).map(|x| (added(u32::from(x) << (8 * n)), x)).collect();
        (all.len() == 256).then_some(all)
    };
    (0..BYTES).map(byte).collect()
}

impl Pair {
    /// Two single instructions whose results the matrix turns into the sum of
    /// `lookups`.
    pub fn steps(&self, units: &[Unit], lookups: &[Lookup]) -> Option<[Step; 2]> {
        let mut words: [Vec<Lookup>; 2] = [Vec::new(), Vec::new()];
        for lookup in lookups {
            let (source, table) = (0..2).find_map(|source| {
                let tables = self.bytes[source].iter().enumerate();
                tables.into_iter().find_map(|(n, byte)| {
                    let entry = |x: &u32| byte.get(x).map(|&b| u32::from(b) << (8 * n));
                    let table: Vec<u32> = lookup.table.iter().map(entry).collect::<Option<_>>()?;
                    Some((source, <[u32; 256]>::try_from(table).ok()?))
                })
            })?;
            words[source].push(Lookup { table: Arc::new(table), ..lookup.clone() });
        }
        let step = |source: usize| match &cover(units, &words[source])?[..] {
            [step] => Some(step.clone()),
            _ => None,
        };
        Some([step(0)?, step(1)?])
    }
}
