//! A state as 16-bit words, with times relative to a cycle: equal words, equal
//! futures. [`crate::pipeline`]'s memo compares states this way and sets them
//! up again from it.

/// Zero of times that can lie before the cycle they are relative to.
const MIDDLE: u64 = 1 << 15;

/// Writes a state.
#[derive(Default, Debug)]
pub struct Writer {
    pub words: Vec<u16>,
    /// Something did not fit into a word: this is no state to compare.
    pub broken: bool,
}

impl Writer {
    /// Begin again.
    pub fn clear(&mut self) {
        self.words.clear();
        self.broken = false;
    }

    /// A number.
    #[inline(always)]
    pub fn number(&mut self, n: u64) {
        self.broken |= n > u64::from(u16::MAX);
        self.words.push(n as u16);
    }

    /// A number of 32 bits.
    #[inline(always)]
    pub fn wide(&mut self, n: u32) {
        self.words.extend([n as u16, (n >> 16) as u16]);
    }

    /// A time of which only what lies behind `base` matters.
    #[inline(always)]
    pub fn after(&mut self, time: u64, base: u64) {
        self.number(time.saturating_sub(base));
    }

    /// A time before or behind `base`.
    #[inline(always)]
    pub fn around(&mut self, time: u64, base: u64) {
        self.number((time + MIDDLE).wrapping_sub(base));
    }

    /// Times of a ring, the oldest first; those up to `base` do not matter. Leading ones of them are only counted.
    pub fn ring(&mut self, ring: &[u64], first: usize, base: u64) {
        let (young, old) = ring.split_at(first);
        let past = old.iter().chain(young).take_while(|&&t| t <= base).count();
        self.number(past as u64);
        for &t in old.iter().chain(young).skip(past) {
            self.after(t, base);
        }
    }
}

/// Reads what a [`Writer`] wrote, in the same order.
#[derive(Debug)]
pub struct Reader<'w> {
    words: std::slice::Iter<'w, u16>,
}

impl<'w> Reader<'w> {
    pub fn new(words: &'w [u16]) -> Reader<'w> {
        Reader { words: words.iter() }
    }

    #[inline(always)]
    pub fn number(&mut self) -> u64 {
        u64::from(self.words.next().copied().unwrap_or(0))
    }

    #[inline(always)]
    pub fn wide(&mut self) -> u32 {
        let low = self.number() as u32;
        low | (self.number() as u32) << 16
    }

    #[inline(always)]
    pub fn after(&mut self, base: u64) -> u64 {
        base + self.number()
    }

    #[inline(always)]
    pub fn around(&mut self, base: u64) -> u64 {
        (base + self.number()).wrapping_sub(MIDDLE)
    }

    /// A ring, the oldest at its start.
    pub fn ring(&mut self, ring: &mut [u64], base: u64) {
        let past = (self.number() as usize).min(ring.len());
        ring[..past].fill(base);
        for t in &mut ring[past..] {
            *t = self.after(base);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut w = Writer::default();
        w.wide(0x1234_5678);
        w.after(90, 100);
        w.around(90, 100);
        // The ring of four begins at place 2: 98 and 99 are past, 101 and 7 are not looked at alike.
        w.ring(&[101, 7, 98, 99], 2, 100);
        assert!(!w.broken);
        let mut r = Reader::new(&w.words);
        assert_eq!((r.wide(), r.after(1000), r.around(1000)), (0x1234_5678, 1000, 990));
        let mut ring = [0; 4];
        r.ring(&mut ring, 1000);
        assert_eq!(ring, [1000, 1000, 1001, 1000]);
        w.number(1 << 16);
        assert!(w.broken);
    }
}
