//! How wide words and addresses are.

use ciphermill_ir::{GlobalId, Value};
use smallvec::SmallVec;

/// What a machine with narrow words is like.
#[derive(Clone, Copy, Debug)]
pub struct Narrow {
    /// Bits of a word: 8 or 16.
    pub bits: u32,
    /// The largest displacement of its loads and stores.
    pub reach: u32,
    /// Does a chain of comparisons say whether all words are equal, or only the last ones?
    pub compares_all: bool,
}

/// What of a module machines know already.
#[derive(Clone, Copy)]
pub struct Known<'a> {
    /// For each recognised function ([`ciphermill_ir::Op::Apply`]): does it take whole values, or their lowest words?
    pub whole: &'a [bool],
    /// Globals that are registers of a word.
    pub registers: &'a [GlobalId],
}

impl Known<'_> {
    pub(super) fn is_whole(self, function: u16) -> bool {
        self.whole.get(usize::from(function)).copied().unwrap_or(false)
    }
}

/// Bits of an address.
pub(super) const ADDRESS_BITS: u32 = 16;

/// The limbs of a value, lowest first.
pub(super) type Limbs = SmallVec<[Value; 4]>;
