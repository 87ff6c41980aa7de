//! A set of cycles on a circle of II cycles, as bits.

/// Which cycles are taken.
#[derive(Clone, Debug)]
pub struct Circle {
    ii: i64,
    words: Vec<u64>,
}

impl Circle {
    /// The empty set on a circle of `ii` cycles.
    pub fn new(ii: i64) -> Circle {
        Circle { ii, words: vec![0; (ii as usize).div_ceil(64)] }
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
        bits.iter().for_each(|&(w, mask)| self.words[w] |= mask);
    }

    /// Is none of `len` cycles from `start` on taken?
    pub fn empty(&self, start: i64, len: i64) -> bool {
        Circle::masks(self.ii, start, len).all(|(w, mask)| self.words[w] & mask == 0)
    }

    /// Take `len` cycles from `start` on.
    pub fn fill(&mut self, start: i64, len: i64) {
        for (w, mask) in Circle::masks(self.ii, start, len) {
            self.words[w] |= mask;
        }
    }

    /// How many cycles back from `cycle` the nearest taken one lies; II when
    /// there is none.
    pub fn idle_before(&self, cycle: i64) -> i64 {
        let at = cycle.rem_euclid(self.ii) as usize;
        let below = |limit: usize| -> Option<usize> {
            let last = limit.checked_sub(1)?;
            (0..=last / 64).rev().find_map(|w| {
                let keep = limit - w * 64;
                let bits = if keep >= 64 { self.words[w] } else { self.words[w] & ((1 << keep) - 1) };
                (bits != 0).then(|| w * 64 + 63 - bits.leading_zeros() as usize)
            })
        };
        match below(at).or_else(|| below(self.ii as usize)) {
            Some(taken) if taken < at => (at - taken) as i64,
            Some(taken) => self.ii + at as i64 - taken as i64,
            None => self.ii,
        }
    }
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
}
