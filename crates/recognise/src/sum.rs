//! The canonical form: a word as a sum over GF(2) of functions of bytes.
//!
//! Every function of a single byte (a lookup in a table) and every map that is linear over
//! GF(2) (a shift, a mask, a matrix) is an exclusive-or of functions of single bytes. Written
//! so that each of them gives 0 for 0, with what is then left over as a constant, a word is
//! such a sum in one way only: two sums are the same function exactly where they have the
//! same parts and the same constant. A linear function of a byte is held by what its eight
//! bits add, so that long ways through shifts and masks are followed fast; any other is held
//! as its 256 values.
//!
//! What a byte is taken from is the user's business: a register of an instruction, or a value
//! of a program. Words have up to 64 bits; narrower ones have zeros above. What operations
//! make of sums stands in [`super::operations`].

use std::collections::BTreeSet;
use std::sync::Arc;

/// Functions in one sum, at most: those of the bytes of 24 words of 32 bits.
const MOST_PARTS: usize = 96;

/// A function of a byte, as all its values.
pub type Table = [u64; 256];

/// A matrix over GF(2), with a row for each bit of a word: the bits of the source whose sum it is.
pub type Rows = Vec<u64>;

/// The matrix that leaves a word of so many bits as it is.
pub fn identity(bits: u32) -> Rows {
    (0..bits).map(|i| 1 << i).collect()
}

/// A matrix times a word.
pub fn times(rows: &[u64], x: u64) -> u64 {
    rows.iter().enumerate().fold(0, |w, (i, row)| w | u64::from((row & x).count_ones() & 1) << i)
}

/// A function of a byte that is 0 for 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Function {
    /// One that is linear over GF(2): what each bit adds.
    Linear([u64; 8]),
    /// Any other.
    Table(Arc<Table>),
}

impl Function {
    /// The function, but for its value for 0.
    pub fn of(table: &Table) -> Function {
        let at = |x: usize| table[x] ^ table[0];
        // A number is its lowest bit and the others.
        if (1..256).all(|x: usize| at(x) == at(x & (x - 1)) ^ at(x & x.wrapping_neg())) {
            return Function::Linear(std::array::from_fn(|bit| at(1 << bit)));
        }
        Function::Table(Arc::new(std::array::from_fn(at)))
    }

    pub fn at(&self, x: usize) -> u64 {
        match self {
            Function::Linear(bits) => (0..8).filter(|bit| x >> bit & 1 == 1).fold(0, |sum, bit| sum ^ bits[bit]),
            Function::Table(table) => table[x],
        }
    }

    pub fn through(&self, linear: impl Fn(u64) -> u64) -> Function {
        match self {
            Function::Linear(bits) => Function::Linear(bits.map(linear)),
            Function::Table(table) => Function::of(&table.map(linear)),
        }
    }

    fn xor(&self, other: &Function) -> Function {
        match (self, other) {
            (Function::Linear(a), Function::Linear(b)) => Function::Linear(std::array::from_fn(|i| a[i] ^ b[i])),
            _ => Function::of(&std::array::from_fn(|x| self.at(x) ^ other.at(x))),
        }
    }

    /// Is it the other one as far as the bits `mask` go?
    pub fn is_under(&self, mask: u64, other: &Function) -> bool {
        let same = |(a, b): (&u64, &u64)| (a ^ b) & mask == 0;
        match (self, other) {
            (Function::Linear(a), Function::Linear(b)) => a.iter().zip(b).all(same),
            (Function::Table(a), Function::Table(b)) => a.iter().zip(b.iter()).all(same),
            _ => (0..256).all(|x| (self.at(x) ^ other.at(x)) & mask == 0),
        }
    }

    /// Bits that it may set.
    pub fn possible(&self) -> u64 {
        let values: &[u64] = match self {
            Function::Linear(bits) => bits,
            Function::Table(table) => &table[..],
        };
        values.iter().fold(0, |all, value| all | value)
    }
}

/// What byte `byte` (0 is the lowest) of a source adds to a sum.
#[derive(Clone, Debug)]
pub struct Part<S> {
    pub source: S,
    pub byte: u8,
    pub function: Function,
    /// What it adds for 0. How a sum's constant is shared among its parts says nothing of the
    /// sum; but people know a table by all its values.
    pub base: u64,
}

impl<S: Copy> Part<S> {
    pub fn table(&self) -> Table {
        std::array::from_fn(|x| self.function.at(x) ^ self.base)
    }

    /// Bits that it may set.
    pub fn possible(&self) -> u64 {
        self.function.possible() | self.base
    }

    pub fn is_linear(&self) -> bool {
        matches!(self.function, Function::Linear(_)) && self.base == 0
    }

    pub fn with(&self, table: &Table) -> Part<S> {
        Part { function: Function::of(table), base: table[0], ..*self }
    }

    pub fn through(&self, linear: impl Fn(u64) -> u64) -> Part<S> {
        Part { function: self.function.through(&linear), base: linear(self.base), ..*self }
    }

    /// What a linear part is where its source is a sum itself.
    pub fn of<T: Copy + Ord>(&self, source: &Sum<T>) -> Sum<T> {
        source.through(|x| self.function.at((x >> (8 * self.byte)) as usize & 0xff))
    }
}

/// The exclusive-or of the parts, each of a byte of its own, and of a constant.
#[derive(Clone, Debug)]
pub struct Sum<S> {
    /// In the order in which they came.
    pub parts: Vec<Part<S>>,
    /// What is no part's.
    pub rest: u64,
}

impl<S: Copy + Ord> PartialEq for Sum<S> {
    fn eq(&self, other: &Sum<S>) -> bool {
        let same = |a: &Part<S>, b: &Part<S>| (a.source, a.byte) == (b.source, b.byte) && a.function == b.function;
        self.at_zero() == other.at_zero()
            && self.parts.len() == other.parts.len()
            && self.parts.iter().all(|a| other.parts.iter().any(|b| same(a, b)))
    }
}

impl<S: Copy + Ord> Sum<S> {
    pub fn constant(rest: u64) -> Sum<S> {
        Sum { parts: Vec::new(), rest }
    }

    /// A source itself, of which only the bits `possible` can be set.
    pub fn source(source: S, possible: u64) -> Sum<S> {
        let part = |byte: u8| {
            let bits = std::array::from_fn(|bit| 1 << (8 * usize::from(byte) + bit) & possible);
            Part { source, byte, function: Function::Linear(bits), base: 0 }
        };
        Sum { parts: (0..8).map(part).filter(|p| p.function.possible() != 0).collect(), rest: 0 }
    }

    /// The value where all bytes are 0.
    pub fn at_zero(&self) -> u64 {
        self.parts.iter().fold(self.rest, |sum, part| sum ^ part.base)
    }

    /// Bits that change with the sources.
    fn varying(&self) -> u64 {
        self.parts.iter().fold(0, |all, part| all | part.function.possible())
    }

    /// Bits that may be set.
    pub fn possible(&self) -> u64 {
        self.varying() | self.at_zero()
    }

    /// Bits that are set whatever the sources are.
    pub fn certain(&self) -> u64 {
        self.at_zero() & !self.varying()
    }

    pub fn as_constant(&self) -> Option<u64> {
        self.parts.is_empty().then_some(self.rest)
    }

    /// Is it a sum of matrices times its sources, with nothing added?
    pub fn is_linear(&self) -> bool {
        self.at_zero() == 0 && self.parts.iter().all(|p| matches!(p.function, Function::Linear(_)))
    }

    /// The bits of a source that the sum has in their places, where it has nothing else of it.
    pub fn kept(&self, source: S) -> Option<u64> {
        self.parts.iter().filter(|p| p.source == source).try_fold(0, |kept, part| {
            let Function::Linear(columns) = &part.function else { return None };
            let place = |bit: usize| 1 << (8 * usize::from(part.byte) + bit);
            let straight = columns.iter().enumerate().all(|(bit, sums)| sums & !place(bit) == 0);
            straight.then(|| kept | part.function.possible())
        })
    }

    pub fn sources(&self) -> BTreeSet<S> {
        self.parts.iter().map(|p| p.source).collect()
    }

    /// The matrix, for words of so many bits, that a source is multiplied by; what is not
    /// linear in it is left out.
    pub fn rows(&self, source: S, bits: u32) -> Rows {
        let mut rows = vec![0; bits as usize];
        for part in self.parts.iter().filter(|p| p.source == source) {
            let Function::Linear(columns) = &part.function else { continue };
            for (column, sums) in columns.iter().enumerate() {
                let mut left = sums & ciphermill_ir::ops::mask(bits);
                while left != 0 {
                    rows[left.trailing_zeros() as usize] |= 1 << (8 * usize::from(part.byte) + column);
                    left &= left - 1;
                }
            }
        }
        rows
    }

    /// The sum put through a map that is linear over GF(2).
    pub fn through(&self, linear: impl Fn(u64) -> u64) -> Sum<S> {
        Sum { parts: self.parts.iter().map(|p| p.through(&linear)).collect(), rest: linear(self.rest) }
            .without_nothing()
    }

    /// Its lowest bits.
    pub fn within(&self, bits: u32) -> Sum<S> {
        let mask = ciphermill_ir::ops::mask(bits);
        if self.possible() & !mask == 0 { self.clone() } else { self.through(|x| x & mask) }
    }

    /// None where too many functions come together.
    pub fn xor(&self, other: &Sum<S>) -> Option<Sum<S>> {
        let mut sum = self.clone();
        sum.rest ^= other.rest;
        for new in &other.parts {
            match sum.parts.iter_mut().find(|p| p.source == new.source && p.byte == new.byte) {
                Some(old) => (old.function, old.base) = (old.function.xor(&new.function), old.base ^ new.base),
                None => sum.parts.push(new.clone()),
            }
        }
        let sum = sum.without_nothing();
        (sum.parts.len() <= MOST_PARTS).then_some(sum)
    }

    /// A function of the one byte that the sum depends on: `value` of what the sum is. None
    /// where it depends on more or on nothing, or `value` has none.
    pub fn lookup(&self, value: impl Fn(u64) -> Option<u64>) -> Option<Sum<S>> {
        let [part] = &self.parts[..] else { return None };
        let mut table = part.table();
        for entry in &mut table {
            *entry = value(*entry ^ self.rest)?;
        }
        Some(Sum { parts: vec![part.with(&table)], rest: 0 }.without_nothing())
    }

    fn without_nothing(mut self) -> Sum<S> {
        let rest = &mut self.rest;
        self.parts.retain(|part| {
            let something = part.function.possible() != 0;
            *rest ^= if something { 0 } else { part.base };
            something
        });
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_function_looks_the_same() {
        let x = Sum::source('x', u64::MAX);
        let sbox = |v: u64| Some((v * v + 99) & 0xff);
        let byte = |n: u32| x.through(|v| v >> (8 * n) & 0xff);
        let (a, b) = (byte(0).lookup(sbox).unwrap(), byte(3).lookup(sbox).unwrap());
        let there = a.xor(&b.through(|v| v << 8)).unwrap();
        let back = b.through(|v| v << 8).xor(&a).unwrap();
        assert_eq!(there.at_zero(), 99 << 8 | 99);
        assert_eq!(there.possible() & !0xffff, 0);
        assert_eq!(there, back);
        assert_eq!(there.xor(&back).unwrap().as_constant(), Some(0));
        assert_eq!(x.lookup(sbox), None, "eight bytes");
    }

    #[test]
    fn bits_that_are_never_set_have_no_part() {
        let x = Sum::source(0, 0xff00);
        assert_eq!((x.parts.len(), x.parts[0].byte, x.parts[0].function.at(3)), (1, 1, 0x300));
    }

    #[test]
    fn a_linear_table_is_held_by_its_bits() {
        let byte = Sum::source('x', 0xff);
        let twisted = byte.lookup(|v| Some(v << 3 ^ v >> 1 ^ 5)).unwrap();
        assert_eq!(twisted, byte.through(|v| v << 3 ^ v >> 1).xor(&Sum::constant(5)).unwrap());
        assert!(!twisted.is_linear() && twisted.xor(&Sum::constant(5)).unwrap().is_linear());
        let rows = byte.through(|v| v << 3 & 0xff).rows('x', 32);
        assert_eq!((rows[2], rows[3], rows[7], rows[8]), (0, 1, 1 << 4, 0));
    }
}
