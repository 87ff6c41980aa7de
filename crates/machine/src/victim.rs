//! Which line of a full set gives way: the rules of [`Replacement`], for every
//! cache and buffer that is simulated.

use crate::Replacement;

/// Chooses victims. A set that is kept in the order of use, the most recent
/// first, has its least recently used line last.
#[derive(Clone, Debug)]
pub struct Victims {
    replacement: Replacement,
    ways: usize,
    /// First in, first out: the next way, for each set.
    next: Vec<u32>,
    random: u32,
}

impl Victims {
    /// For so many sets of so many ways, all of them empty.
    pub fn new(sets: usize, ways: usize, replacement: Replacement) -> Victims {
        Victims { replacement, ways, next: vec![0; sets], random: 0x2545_f491 }
    }

    /// Are sets kept in the order of use?
    #[inline(always)]
    pub fn by_use(&self) -> bool {
        self.replacement == Replacement::Lru
    }

    /// The way that a line comes into, where `free` is the first empty one.
    pub fn choose(&mut self, set: usize, free: Option<usize>) -> usize {
        match (self.replacement, free) {
            (Replacement::Lru, _) => self.ways - 1,
            (_, Some(way)) => way,
            (Replacement::Fifo, None) => {
                let way = self.next[set];
                self.next[set] = (way + 1) % self.ways as u32;
                way as usize
            }
            (Replacement::Random, None) => {
                // Marsaglia's xorshift with a fixed seed, so that a run repeats.
                self.random ^= self.random << 13;
                self.random ^= self.random >> 17;
                self.random ^= self.random << 5;
                self.random as usize % self.ways
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule() {
        let mut lru = Victims::new(1, 4, Replacement::Lru);
        assert_eq!((lru.choose(0, Some(1)), lru.choose(0, None)), (3, 3));
        let mut fifo = Victims::new(2, 2, Replacement::Fifo);
        assert_eq!(fifo.choose(0, Some(1)), 1);
        assert_eq!([0, 0, 1, 0].map(|set| fifo.choose(set, None)), [0, 1, 0, 0]);
        let mut random = Victims::new(1, 4, Replacement::Random);
        let some: Vec<usize> = (0..64).map(|_| random.choose(0, None)).collect();
        assert!((0..4).all(|way| some.contains(&way)) && random.choose(0, Some(2)) == 2);
    }
}
