//! A set of cycles on a circle of II cycles, as bits.

/// Which cycles are taken.
#[derive(Clone, Debug)]
pub struct Circle {
    ii: i64,
    words: Vec<u64>,
    /// A bit for each word that has any.
    any: Vec<u64>,
}

impl Circle {
    /// The empty set on a circle of `ii` cycles.
    pub fn new(ii: i64) -> Circle {
        let words = (ii as usize).div_ceil(64);
        Circle { ii, words: vec![0; words], any: vec![0; words.div_ceil(64)] }
    }

    /// The cycles that are taken, in their order.
    pub fn taken(&self) -> impl Iterator<Item = usize> {
        self.words.iter().enumerate().flat_map(|(w, &bits)| {
            let rest = std::iter::successors(Some(bits), |b| Some(b & b.wrapping_sub(1)));
            rest.take_while(|b| *b != 0).map(move |b| w * 64 + b.trailing_zeros() as usize)
        })
    }

    #[cfg(test)]
    fn has(&self, cycle: usize) -> bool {
        self.words[cycle / 64] >> (cycle % 64) & 1 == 1
    }

    /// The bits of `len` cycles from `start` on: `(word, mask)`.
    fn masks(ii: i64, start: i64, len: i64) -> impl Iterator<Item = (usize, u64)> {
        let start = start.rem_euclid(ii) as usize;
        let (ii, len) = (ii as usize, (len.clamp(0, ii)) as usize);
        let wrapped = (start + len).saturating_sub(ii);
        let line = |from: usize, to: usize| {
            (from / 64..to.div_ceil(64)).map(move |w| {
                let low = from.max(w * 64) - w * 64;
                let high = to.min(w * 64 + 64) - w * 64;
                (w, if high - low == 64 { u64::MAX } else { ((1u64 << (high - low)) - 1) << low })
            })
        };
        line(start, start + len - wrapped).chain(line(0, wrapped)).filter(|m| m.1 != 0)
    }

    /// The taken cycles by words of 64: `(word, bits)`, words without any left out.
    pub fn bits(&self) -> impl Iterator<Item = (usize, u64)> {
        self.words.iter().copied().enumerate().filter(|w| w.1 != 0)
    }

    /// Is none of some cycles taken, by words as [`Circle::bits`] has them?
    pub fn apart(&self, bits: &[(usize, u64)]) -> bool {
        bits.iter().all(|&(w, mask)| self.words[w] & mask == 0)
    }

    /// Take some cycles, by words as [`Circle::bits`] has them.
    pub fn add(&mut self, bits: &[(usize, u64)]) {
        bits.iter().for_each(|&(w, mask)| self.take(w, mask));
    }

    fn take(&mut self, w: usize, mask: u64) {
        self.words[w] |= mask;
        self.any[w / 64] |= u64::from(mask != 0) << (w % 64);
    }

    /// Is none of `len` cycles from `start` on taken?
    pub fn empty(&self, start: i64, len: i64) -> bool {
        Circle::masks(self.ii, start, len).all(|(w, mask)| self.words[w] & mask == 0)
    }

    /// Take `len` cycles from `start` on.
    pub fn fill(&mut self, start: i64, len: i64) {
        for (w, mask) in Circle::masks(self.ii, start, len) {
            self.take(w, mask);
        }
    }

    /// How many cycles back from `cycle` the nearest taken one lies; II when
    /// there is none.
    pub fn idle_before(&self, cycle: i64) -> i64 {
        let at = cycle.rem_euclid(self.ii) as usize;
        let below = |limit: usize| {
            let (w, part) = (limit / 64, limit % 64);
            let here = if part == 0 { None } else { last(self.words[w] & ((1 << part) - 1)) };
            here.map(|bit| w * 64 + bit).or_else(|| self.last_word(w).and_then(|w| Some(w * 64 + last(self.words[w])?)))
        };
        match below(at).or_else(|| below(self.ii as usize)) {
            Some(taken) if taken < at => (at - taken) as i64,
            Some(taken) => self.ii + at as i64 - taken as i64,
            None => self.ii,
        }
    }

    /// The last word before a word that has any cycle.
    fn last_word(&self, before: usize) -> Option<usize> {
        let (group, part) = (before / 64, before % 64);
        let here = if part == 0 { None } else { last(self.any[group] & ((1 << part) - 1)) };
        let earlier = || (0..group).rev().find_map(|g| Some(g * 64 + last(self.any[g])?));
        here.map(|bit| group * 64 + bit).or_else(earlier)
    }
}

/// The highest bit that is set.
fn last(bits: u64) -> Option<usize> {
    bits.checked_ilog2().map(|bit| bit as usize)
}

#[cfg(test)]
mod tests {
    use super::Circle;

    #[test]
    fn arcs_go_round() {
        let mut c = Circle::new(100);
        c.fill(90, 20);
        let taken: Vec<usize> = (0..100).filter(|&i| c.has(i)).collect();
        assert_eq!(taken, (0..10).chain(90..100).collect::<Vec<_>>());
        assert!(c.empty(10, 80) && !c.empty(9, 1) && !c.empty(10, 81) && !c.empty(-10, 1));
        assert!(c.empty(50, 0));
    }

    #[test]
    fn the_nearest_taken_cycle_behind() {
        let mut c = Circle::new(130);
        assert_eq!(c.idle_before(7), 130);
        c.fill(64, 2);
        assert_eq!(c.idle_before(70), 5);
        assert_eq!(c.idle_before(64), 129);
        assert_eq!(c.idle_before(3), 68);
    }

    #[test]
    fn the_nearest_taken_cycle_in_a_large_circle() {
        let taken = [3, 64, 70, 4_095, 4_096, 5_000, 8_191, 12_345];
        let mut c = Circle::new(20_000);
        taken.iter().for_each(|&t| c.fill(t, 1));
        for at in (0..20_000).step_by(7).chain(taken) {
            let back = (1..=20_000).find(|back| taken.contains(&(at - back).rem_euclid(20_000)));
            assert_eq!(c.idle_before(at), back.unwrap(), "{at}");
        }
    }
}
