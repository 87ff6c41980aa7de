//! Terms: what a register holds, as a tree over what was there before, with equal trees the
//! same number (hash-consing: Ershov 1958; Filliâtre and Conchon 2006).

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A number of a term: equal numbers, equal values.
pub type Term = u32;

/// Where an access begins: what it is counted from, and how far behind that it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub root: Term,
    pub at: u32,
}

/// What a term is made of, as the first word of its key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Kind {
    /// A number: low word, high word.
    Const,
    /// What was in a register before.
    Initial,
    /// What was in a word of the frame before.
    Word,
    /// An instruction: its meaning, what it reads, what it follows in memory.
    Applied,
    /// One of several results of an instruction.
    Part,
    /// An access: meaning and what it reads, wherever it stands.
    Address,
    /// An operator of a control instruction's semantics.
    Operator,
    /// `a = b`.
    Equal,
    /// The opposite.
    Differs,
    /// One of two values, by a predicate.
    Guarded,
    /// What nothing moves across, with all that it may read.
    Fence,
    /// What a register holds behind a fence.
    Behind,
    /// The instruction's own address.
    Here,
    /// What an address is counted from.
    Sum,
    /// So many iterations have passed before those that are run.
    Turn,
}

/// A multiplication and a rotation for each word: keys are short, and nobody chooses them
/// to collide. Two numbers of a key are one word, and what differs in its upper half alone differs in the upper half of
/// every product: tables go by the lower half, so the upper one is folded into it.
#[derive(Default)]
pub struct Words(u64);

impl Hasher for Words {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0u8; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }
    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }
    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
}

/// A table by numbers.
pub type Map<K, V> = HashMap<K, V, BuildHasherDefault<Words>>;

/// All terms of one check.
#[derive(Default)]
pub struct Terms {
    ids: HashMap<Box<[u32]>, Term, BuildHasherDefault<Words>>,
    constants: HashMap<Term, u64, BuildHasherDefault<Words>>,
    /// Of terms that say that two others differ, the one that says that they are equal.
    differ: HashMap<Term, Term, BuildHasherDefault<Words>>,
}

impl Terms {
    /// The term with a key, whose first word says of which kind it is.
    pub fn of(&mut self, key: &[u32]) -> Term {
        if let Some(&t) = self.ids.get(key) {
            return t;
        }
        let t = self.ids.len() as Term;
        self.ids.insert(key.into(), t);
        t
    }

    pub fn constant(&mut self, value: u64) -> Term {
        let t = self.of(&[Kind::Const as u32, value as u32, (value >> 32) as u32]);
        self.constants.insert(t, value);
        t
    }

    /// The number that a term is, if it is one.
    pub fn number(&self, t: Term) -> Option<u64> {
        self.constants.get(&t).copied()
    }

    /// That `a = b` is false, where `equal` says it is true.
    pub fn differs(&mut self, equal: Term) -> Term {
        let t = self.of(&[Kind::Differs as u32, equal]);
        self.differ.insert(t, equal);
        t
    }

    /// The comparison for equality that a condition is, and what it has to give.
    pub fn comparison(&self, condition: Term) -> (Term, bool) {
        self.differ.get(&condition).map_or((condition, true), |&equal| (equal, false))
    }

    pub fn initial(&mut self, register: u32) -> Term {
        self.of(&[Kind::Initial as u32, register])
    }
}

/// The words of a fingerprint, for keys.
pub fn words(print: u128) -> [u32; 4] {
    [print as u32, (print >> 32) as u32, (print >> 64) as u32, (print >> 96) as u32]
}
