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

    /// Times of a ring, the oldest first and none before an older one. They are looked at one after the other, the one
    /// in place `k` in cycle `from(k)` or later, and matter only where they are no earlier than that. One that does not
    /// is written as the one before it.
    pub fn places(&mut self, ring: &[u64], first: usize, base: u64, from: impl Fn(usize) -> u64) {
        let (young, old) = ring.split_at(first);
        let past = |times: &[u64]| times.partition_point(|&t| t < base);
        let skipped = match past(old) {
            n if n == old.len() => n + past(young),
            n => n,
        };
        let at = self.words.len();
        self.number(0);
        let (mut past, mut last) = (skipped, base);
        for (k, &t) in old.iter().chain(young).enumerate().skip(skipped) {
            if t >= from(k) {
                last = t;
            } else if last == base && self.words.len() == at + 1 {
                past += 1;
                continue;
            }
            self.after(last + 1, base);
        }
        self.broken |= past > usize::from(u16::MAX);
        self.words[at] = past as u16;
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

    /// What [`Writer::places`] wrote, the oldest at its start.
    pub fn places(&mut self, ring: &mut [u64], base: u64) {
        let past = (self.number() as usize).min(ring.len());
        ring[..past].fill(base.saturating_sub(1));
        for t in &mut ring[past..] {
            *t = self.after(base).saturating_sub(1);
        }
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

    #[test]
    fn of_places_looked_at_one_after_the_other_what_matters() {
        // Two are looked at in a cycle, from 100 on: the places in 100, 100, 101, 101, 102, 102.
        let from = |k: usize| 100 + k as u64 / 2;
        let written = |ring: &[u64], first| {
            let mut w = Writer::default();
            w.places(ring, first, 100, from);
            w.words
        };
        // The oldest, 97, stands in place 2: 97, 99, 100, 104, 104, 108. The third is looked at later than it lies.
        assert_eq!(written(&[104, 108, 97, 99, 100, 104], 2), [3, 5, 5, 9]);
        // So do those from the third to the fifth here, which are written as the second.
        assert_eq!(written(&[99, 100, 100, 100, 101, 103], 0), [1, 1, 1, 1, 1, 4]);
        let words = [3, 5, 5, 9];
        let mut ring = [0; 6];
        Reader::new(&words).places(&mut ring, 1000);
        assert_eq!(ring, [999, 999, 999, 1004, 1004, 1008]);
    }
}
