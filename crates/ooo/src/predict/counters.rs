//! A table of saturating counters, which begin one below the half.

/// The table. Its index is taken modulo its size, a power of two.
pub struct Counters {
    values: Vec<u8>,
    top: u8,
}

impl Counters {
    pub fn new(entries: u32, bits: u32) -> Counters {
        let top = ((1u32 << bits.clamp(1, 8)) - 1) as u8;
        Counters { values: vec![top / 2; entries as usize], top }
    }

    fn at(&self, index: u32) -> usize {
        index as usize & (self.values.len() - 1)
    }

    /// Is the counter in its upper half?
    #[inline(always)]
    pub fn high(&self, index: u32) -> bool {
        self.values[self.at(index)] > self.top / 2
    }

    /// One up or down.
    #[inline(always)]
    pub fn train(&mut self, index: u32, up: bool) {
        let at = self.at(index);
        let value = self.values[at];
        self.values[at] = if up { value.saturating_add(1).min(self.top) } else { value.saturating_sub(1) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_saturate() {
        let mut c = Counters::new(4, 2);
        assert!(!c.high(1));
        c.train(1, true);
        assert!(c.high(1) && !c.high(2) && c.high(5));
        (0..9).for_each(|_| c.train(1, true));
        c.train(1, false);
        assert!(c.high(1));
        c.train(1, false);
        assert!(!c.high(1));
    }
}
