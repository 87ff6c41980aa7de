//! A small fixed generator of test values (SplitMix64): checks must come out
//! the same on every run.

pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A value likely to find mistakes: often near zero, near the sign, or
    /// with few bits.
    pub fn word(&mut self) -> u64 {
        let x = self.bits();
        let near = (x >> 8) % 5;
        match x % 6 {
            0 => near.wrapping_sub(2),
            1 => 0x8000_0000u64.wrapping_add(near).wrapping_sub(2),
            2 => (1 << 63 | 1u64 << 31).wrapping_add(near).wrapping_sub(2),
            3 => 1 << ((x >> 8) % 64),
            _ => self.bits(),
        }
    }

    /// From `min` to `max`, both included; the ends more often than chance.
    pub fn between(&mut self, min: i64, max: i64) -> i64 {
        let span = (max as i128 - min as i128 + 1).max(1) as u128;
        match self.bits() % 8 {
            0 => min,
            1 => max,
            _ => (min as i128 + (u128::from(self.bits()) % span) as i128) as i64,
        }
    }
}
