//! A word of 64 bits as a sum of functions of bytes.
//!
//! Every function of one byte, and every map that is linear over GF(2), is an
//! exclusive-or of functions of single bytes. Written so that each of them gives 0
//! for 0, with what is then left over as a constant, a word is such a sum in one
//! way only: two sums are the same function exactly when they look the same.

use std::sync::Arc;

/// A function of one byte, as all its values; the first of them is 0.
pub type Table = Arc<[u64; 256]>;

/// Functions in one sum, at most: two words have 16 bytes.
const MOST_PARTS: usize = 24;

/// What byte `byte` (0 is the lowest) of a source adds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part<S> {
    pub source: S,
    pub byte: u8,
    pub table: Table,
}

/// The exclusive-or of the parts, each of a byte of its own, and of a constant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sum<S> {
    pub parts: Vec<Part<S>>,
    pub constant: u64,
}

impl<S: Copy + PartialEq> Sum<S> {
    pub fn constant(constant: u64) -> Sum<S> {
        Sum { parts: Vec::new(), constant }
    }

    /// A source itself, of which only the bits `possible` can be set.
    pub fn source(source: S, possible: u64) -> Sum<S> {
        let bytes = (0..8u8).filter(|byte| possible >> (8 * byte) & 0xff != 0);
        let part = |byte: u8| {
            let value = |x: usize| (x as u64) << (8 * byte) & possible;
            Part { source, byte, table: Arc::new(std::array::from_fn(value)) }
        };
        Sum { parts: bytes.map(part).collect(), constant: 0 }
    }

    /// A function of the byte that `self` depends on: `value` of what `self` is.
    /// None where it depends on more or on nothing, or `value` has none.
    pub fn lookup(&self, value: impl Fn(u64) -> Option<u64>) -> Option<Sum<S>> {
        let [part] = &self.parts[..] else { return None };
        let mut table = [0; 256];
        for (entry, index) in table.iter_mut().zip(part.table.iter()) {
            *entry = value(index ^ self.constant)?;
        }
        let constant = table[0];
        table.iter_mut().for_each(|entry| *entry ^= constant);
        Some(Sum { parts: vec![Part { table: Arc::new(table), ..part.clone() }], constant }.without_nothing())
    }

    /// The sum put through a map that is linear over GF(2).
    pub fn through(&self, linear: impl Fn(u64) -> u64) -> Sum<S> {
        let mapped = |p: &Part<S>| Part { table: Arc::new(p.table.map(&linear)), ..p.clone() };
        Sum { parts: self.parts.iter().map(mapped).collect(), constant: linear(self.constant) }.without_nothing()
    }

    /// None where too many functions come together.
    pub fn xor(&self, other: &Sum<S>) -> Option<Sum<S>> {
        let mut sum = Sum { constant: self.constant ^ other.constant, parts: self.parts.clone() };
        for new in &other.parts {
            match sum.parts.iter_mut().find(|p| p.source == new.source && p.byte == new.byte) {
                Some(old) => old.table = Arc::new(std::array::from_fn(|x| old.table[x] ^ new.table[x])),
                None => sum.parts.push(new.clone()),
            }
        }
        let sum = sum.without_nothing();
        (sum.parts.len() <= MOST_PARTS).then_some(sum)
    }

    /// Bits that may be set.
    pub fn possible(&self) -> u64 {
        self.parts.iter().flat_map(|p| p.table.iter()).fold(self.constant, |all, entry| all | entry)
    }

    pub(crate) fn as_constant(&self) -> Option<u64> {
        self.parts.is_empty().then_some(self.constant)
    }

    fn without_nothing(mut self) -> Sum<S> {
        self.parts.retain(|p| p.table.iter().any(|&entry| entry != 0));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_function_looks_the_same() {
        let x = Sum::source('x', u64::MAX);
        let sbox = |v: u64| Some((v * 7 + 99) & 0xff);
        let byte = |n: u32| x.through(|v| v >> (8 * n) & 0xff);
        let (a, b) = (byte(0).lookup(sbox).unwrap(), byte(3).lookup(sbox).unwrap());
        let there = a.xor(&b.through(|v| v << 8)).unwrap();
        let back = b.through(|v| v << 8).xor(&a).unwrap();
        assert_eq!(there.constant, 99 << 8 | 99);
        assert_eq!(there.possible() & !0xffff, 0);
        assert!(there.parts.iter().all(|p| back.parts.contains(p)) && there.constant == back.constant);
        assert_eq!(there.xor(&back).unwrap().as_constant(), Some(0));
        assert_eq!(x.lookup(sbox), None, "eight bytes");
    }

    #[test]
    fn bits_that_are_never_set_have_no_part() {
        let x = Sum::source(0, 0xff00);
        assert_eq!(x.parts.len(), 1);
        assert_eq!((x.parts[0].byte, x.parts[0].table[3]), (1, 0x300));
    }
}
