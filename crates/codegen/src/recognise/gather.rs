//! Matrices of bytes that no word holds.
//!
//! A program that looks four bytes up in tables of its own and then multiplies
//! them by a matrix may never have them in one word. Its value is a sum of
//! tables nevertheless, each of which is one of the program's own tables with a
//! part of the matrix behind it. The bytes looked up, put into a word, are what
//! the matrix is to be multiplied with.

use super::bytes::{ByteSums, Lookup, added};
use super::form::WORD;
use super::sums::Sums;
use super::units::Inverse;
use ciphermill_ir::{Func, Value};
use std::collections::BTreeSet;

/// Operations looked at behind a value, at most.
const MOST_OPERATIONS: usize = 256;

/// Bytes with their places in a word, 0 the lowest.
pub type Bytes = Vec<(Value, u32)>;

/// What a value is made of: the tables of its sum, each with the lookup in the
/// program that it comes from.
pub struct Origin<'a> {
    tables: Vec<(Lookup, Value, &'a Lookup)>,
    /// Operations between the lookups and the value.
    pub operations: usize,
}

impl<'a> Origin<'a> {
    /// None unless every table of the sum `lookups`, which is `v` or part of it,
    /// comes from one lookup of a byte.
    pub fn new(func: &Func, bytes: &'a ByteSums, v: Value, lookups: &[Lookup]) -> Option<Origin<'a>> {
        let (mut seen, mut loads, mut todo) = (BTreeSet::new(), Vec::new(), vec![func.resolve(v)]);
        while let Some(v) = todo.pop() {
            if !seen.insert(v) || seen.len() > MOST_OPERATIONS {
                continue;
            }
            match bytes.of(v) {
                Some([lookup]) if bytes.loads.contains(&v) => loads.push((v, lookup)),
                Some(_) => {
                    let data = &func.insts[func.def_inst(v)?];
                    todo.extend(data.args.iter().map(|&a| func.resolve(a)).filter(|a| func.as_const(*a).is_none()));
                }
                None => {}
            }
        }
        loads.sort_by_key(|l| l.0);
        let from = |t: &Lookup| {
            let same = |l: &&(Value, &Lookup)| (l.1.source, l.1.byte) == (t.source, t.byte);
            let is_byte = |l: &&(Value, &Lookup)| l.1.table.iter().all(|&x| x < 256);
            loads.iter().find(|l| same(l) && is_byte(l)).map(|&(v, own)| (t.clone(), v, own))
        };
        let tables = lookups.iter().map(from).collect::<Option<Vec<_>>>()?;
        let operations = seen.len().saturating_sub(loads.len());
        (tables.len() > 1).then_some(Origin { tables, operations })
    }

    /// The bytes of the word that an invertible matrix turns into the sum.
    pub fn bytes(&self, inverse: &Inverse) -> Option<Bytes> {
        let place = |(table, load, own): &(Lookup, Value, &Lookup)| {
            let word = |x: usize| inverse.apply(table.table[x]);
            let at = (0..WORD as u32 / 8).find(|at| (0..256).all(|x| word(x) == own.table[x] << (8 * at)))?;
            Some((*load, at))
        };
        let bytes: Bytes = self.tables.iter().map(place).collect::<Option<_>>()?;
        let places: BTreeSet<u32> = bytes.iter().map(|b| b.1).collect();
        (places.len() == bytes.len() && self.pays(bytes.len())).then_some(bytes)
    }

    /// The matrix that four bytes are multiplied by, in an order that depends
    /// on nothing but the matrix.
    pub fn matrix(&self) -> Option<[u32; WORD]> {
        let part = |(table, _, own): &(Lookup, Value, &Lookup)| -> Option<[u32; 8]> {
            let mut of = [None; 256];
            (0..256).for_each(|x| of[own.table[x] as usize & 255] = Some(table.table[x]));
            let columns: Vec<u32> = (0..8).map(|b| of[1 << b]).collect::<Option<_>>()?;
            let sum = |y: usize| (0..8).filter(|b| y >> b & 1 == 1).fold(0, |s, b| s ^ columns[b]);
            (0..256).all(|y| of[y] == Some(sum(y))).then(|| std::array::from_fn(|b| columns[b]))
        };
        let mut parts: Vec<[u32; 8]> = self.tables.iter().map(part).collect::<Option<_>>()?;
        parts.sort();
        if parts.len() != WORD / 8 || !self.pays(parts.len()) {
            return None;
        }
        let bit = |i: usize, j: usize| (parts[j / 8][j % 8] >> i & 1) << j;
        Some(std::array::from_fn(|i| (0..WORD).fold(0, |row, j| row | bit(i, j))))
    }

    /// Operations that are saved where `n` bytes are put together instead.
    pub fn saves(&self, n: usize) -> usize {
        self.operations.saturating_sub(2 * n)
    }

    fn pays(&self, n: usize) -> bool {
        self.saves(n) > 0
    }
}

/// The tables of a sum and those of its terms that are none.
pub fn tables(sums: &Sums, bytes: &ByteSums, v: Value) -> (Vec<Lookup>, Vec<Value>) {
    let terms = sums.flatten(v, &mut |_| false);
    let of = |t: &Value| bytes.of(*t).unwrap_or_default();
    let (tables, rest): (Vec<Value>, Vec<Value>) = terms.into_iter().partition(|t| !of(t).is_empty());
    (added(tables.iter().flat_map(of)), rest)
}
