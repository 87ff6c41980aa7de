//! Cycles in which ports are taken, one bit for each, in rings: the first free one is found by counting zeros.

/// Ports there can be.
const PORTS: usize = 32;

/// For each port the cycles from some time on.
pub struct Lanes {
    bits: Vec<u64>,
    /// Words of a port, a power of two, less one.
    mask: usize,
}

impl Lanes {
    /// For so many cycles, a power of two from 64 on.
    pub fn new(cycles: usize) -> Lanes {
        let words = cycles / 64;
        Lanes { bits: vec![0; PORTS * words], mask: words - 1 }
    }

    #[inline(always)]
    fn at(&self, port: usize, word: u64) -> usize {
        port * (self.mask + 1) + (word as usize & self.mask)
    }

    /// The 64 cycles from `from` on, the first one in bit 0.
    #[inline(always)]
    pub fn window(&self, port: usize, from: u64) -> u64 {
        let (word, shift) = (from / 64, from % 64);
        self.bits[self.at(port, word)] >> shift | self.bits[self.at(port, word + 1)] << 1 << (63 - shift)
    }

    /// It is taken in a cycle.
    #[inline(always)]
    pub fn set(&mut self, port: usize, cycle: u64) {
        let at = self.at(port, cycle / 64);
        self.bits[at] |= 1 << (cycle % 64);
    }

    /// The 64 cycles with this one are over, or forgotten.
    pub fn clear(&mut self, cycle: u64) {
        for port in 0..PORTS {
            let at = self.at(port, cycle / 64);
            self.bits[at] = 0;
        }
    }

    /// Nothing is taken.
    pub fn clear_all(&mut self) {
        self.bits.fill(0);
    }

    /// The same for more cycles, of which `from` is the first that matters.
    pub fn grown(&self, cycles: usize, from: u64) -> Lanes {
        let mut new = Lanes::new(cycles);
        for port in 0..PORTS {
            for word in from / 64..=from / 64 + self.mask as u64 {
                let at = new.at(port, word);
                new.bits[at] = self.bits[self.at(port, word)];
            }
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_go_over_words_and_round_the_ring() {
        let mut lanes = Lanes::new(256);
        [60, 70, 127].iter().for_each(|&t| lanes.set(3, t));
        lanes.set(4, 61);
        assert_eq!(lanes.window(3, 60), 1 | 1 << 10);
        assert_eq!(lanes.window(3, 64), 1 << 6 | 1 << 63);
        // The first word is that of 256 to 319, once it is clear.
        lanes.clear(63);
        lanes.set(3, 257);
        assert_eq!((lanes.window(3, 250), lanes.window(4, 0)), (1 << 7, 0));
        // In a longer ring the same cycles are taken.
        let grown = lanes.grown(1024, 66);
        assert_eq!((grown.window(3, 66), grown.window(3, 256)), (1 << 4 | 1 << 61, 1 << 1));
    }
}
