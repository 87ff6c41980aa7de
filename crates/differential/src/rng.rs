//! Pseudo-random numbers from a seed, the same on every computer.

use std::cell::Cell;

/// SplitMix64 (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number
/// Generators", OOPSLA 2014): one multiply-xorshift step of a counter.
///
/// Drawing needs no exclusive access, so that a draw may stand inside a call.
#[derive(Clone, Debug)]
pub struct Rng(Cell<u64>);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(Cell::new(seed))
    }

    pub fn next(&self) -> u64 {
        self.0.set(self.0.get().wrapping_add(0x9E37_79B9_7F4A_7C15));
        let mut z = self.0.get();
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `n`, which is not zero.
    pub fn below(&self, n: u32) -> u32 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u32
    }

    /// True once in `n` times.
    pub fn one_in(&self, n: u32) -> bool {
        self.below(n) == 0
    }

    pub fn pick<T: Copy>(&self, from: &[T]) -> T {
        from[self.below(from.len() as u32) as usize]
    }

    pub fn bytes(&self, n: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..n.div_ceil(8)).flat_map(|_| self.next().to_le_bytes()).collect();
        bytes.truncate(n);
        bytes
    }

    /// An operand: small, near a power of two, or anything.
    pub fn operand(&self) -> u64 {
        match self.below(6) {
            0 => u64::from(self.below(8)),
            1 => 0u64.wrapping_sub(u64::from(self.below(8))),
            2 => (1u64 << self.below(64)).wrapping_sub(u64::from(self.below(2))),
            3 => u64::from(self.below(65536)),
            _ => self.next(),
        }
    }
}
