//! The kinds of modules: each number is a module of each.

use crate::cipherlike::{self, Size};
use crate::nests;
use crate::rng::Rng;
use crate::smith;

/// What a module is made by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    CipherLike,
    Smith,
    Nests,
}

/// Kinds of modules.
pub const KINDS: u64 = 3;

impl Kind {
    /// The kind whose turn it is with that number.
    pub fn of(number: u64) -> Kind {
        match number % KINDS {
            0 => Kind::CipherLike,
            1 => Kind::Smith,
            _ => Kind::Nests,
        }
    }

    /// By the name that `--kind` takes.
    pub fn named(name: &str) -> Option<Kind> {
        match name {
            "cipherlike" => Some(Kind::CipherLike),
            "smith" => Some(Kind::Smith),
            "nests" => Some(Kind::Nests),
            _ => None,
        }
    }

    /// The module of that number. Some numbers have none: random bytes that are
    /// not enough for `wasm-smith`.
    pub fn module(self, number: u64) -> Option<Vec<u8>> {
        let rng = Rng::new(number);
        match self {
            Kind::CipherLike => {
                // Most are small: in the time of a large one some thirty small ones are tried.
                let size = match rng.below(32) {
                    0 => Size { functions: 3, statements: 16, depth: 5 },
                    1..=3 => Size::NORMAL,
                    _ => Size { functions: 1, statements: 1 + rng.below(4), depth: 1 + rng.below(3) },
                };
                Some(cipherlike::module(&rng, size))
            }
            Kind::Smith => {
                let bytes = 200 + rng.below(3000) as usize;
                smith::module(&rng.bytes(bytes))
            }
            Kind::Nests => Some(nests::module(&rng)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_makes_one_module() {
        let module = |number| Kind::of(number).module(number);
        for number in 0..100 {
            assert_eq!(module(number), module(number));
        }
        let made = (0..100).filter(|&n| module(n).is_some()).count();
        assert!(made > 90, "only {made} of 100 numbers have a module");
    }
}
