//! Cycles in which ports are taken, one bit for each, in rings: the first free one is found by counting zeros.

/// Ports there can be.
const PORTS: usize = 32;

/// For each port the cycles from some time on.
pub struct Lanes {
    /// By 64 cycles those of every port: what is looked at together lies together.
    bits: Vec<[u64; PORTS]>,
    /// Their number, a power of two, less one.
    mask: usize,
}

impl Lanes {
    /// For so many cycles, a power of two from 64 on.
    pub fn new(cycles: usize) -> Lanes {
        Lanes { bits: vec![[0; PORTS]; cycles / 64], mask: cycles / 64 - 1 }
    }

    #[inline(always)]
    fn at(&self, cycle: u64) -> usize {
        (cycle / 64) as usize & self.mask
    }

    /// The 64 cycles from `from` on, the first one in bit 0.
    #[inline(always)]
    pub fn window(&self, port: usize, from: u64) -> u64 {
        let shift = from % 64;
        let (first, second) = (self.bits[self.at(from)][port % PORTS], self.bits[self.at(from + 64)][port % PORTS]);
        first >> shift | second << 1 << (63 - shift)
    }

    /// It is taken in a cycle.
    #[inline(always)]
    pub fn set(&mut self, port: usize, cycle: u64) {
        let at = self.at(cycle);
        self.bits[at][port % PORTS] |= 1 << (cycle % 64);
    }

    /// It is free again in a cycle.
    #[inline(always)]
    pub fn unset(&mut self, port: usize, cycle: u64) {
        let at = self.at(cycle);
        self.bits[at][port % PORTS] &= !(1 << (cycle % 64));
    }

    /// The 64 cycles with this one are over, or forgotten.
    pub fn clear(&mut self, cycle: u64) {
        let at = self.at(cycle);
        self.bits[at] = [0; PORTS];
    }

    /// Nothing is taken.
    pub fn clear_all(&mut self) {
        self.bits.fill([0; PORTS]);
    }

    /// The same for more cycles, of which `from` is the first that matters.
    pub fn grown(&self, cycles: usize, from: u64) -> Lanes {
        let mut new = Lanes::new(cycles);
        for old in 0..=self.mask as u64 {
            let cycle = from + 64 * old;
            let at = new.at(cycle);
            new.bits[at] = self.bits[self.at(cycle)];
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
