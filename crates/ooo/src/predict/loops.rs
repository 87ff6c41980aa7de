//! A counter of iterations: foresees the way out of loops that iterate equally often.
//!
//! For a branch it keeps how often it went the same way before it last went the other,
//! and how many times in a row that was the same number. When it is sure, it
//! guesses the change.

/// What is kept of a branch.
#[derive(Clone, Copy, Default)]
struct Entry {
    tag: u32,
    /// The way it goes most times.
    way: bool,
    /// Times in a row until now, and the last whole number.
    seen: u32,
    trips: u32,
    same: u32,
}

/// The table, indexed by address.
pub struct Loops {
    entries: Vec<Entry>,
    most: u32,
    sure: u32,
}

impl Loops {
    /// `most` iterations can be counted, the last one included.
    pub fn new(entries: u32, most: u32, sure: u32) -> Loops {
        Loops { entries: vec![Entry::default(); entries as usize], most, sure }
    }

    fn at(&self, addr: u32) -> usize {
        addr as usize & (self.entries.len() - 1)
    }

    /// The guess, if it is sure.
    #[inline(always)]
    pub fn guess(&self, addr: u32) -> Option<bool> {
        let e = &self.entries[self.at(addr)];
        (e.tag == addr && e.same >= self.sure).then_some(if e.seen == e.trips { !e.way } else { e.way })
    }

    /// An outcome.
    #[inline(always)]
    pub fn train(&mut self, addr: u32, taken: bool) {
        let at = self.at(addr);
        let e = &mut self.entries[at];
        if e.tag != addr {
            *e = Entry { tag: addr, way: taken, ..Entry::default() };
        }
        if taken == e.way {
            // A loop that is too long is not known.
            e.seen += 1;
            if e.seen >= self.most || (e.same > 0 && e.seen > e.trips) {
                e.same = 0;
            }
            return;
        }
        if e.seen == 0 {
            // It went the other way twice: that is the way it goes.
            *e = Entry { tag: addr, way: taken, seen: 2, ..Entry::default() };
            return;
        }
        let counted = e.seen < self.most;
        e.same = match (counted, e.seen == e.trips) {
            (true, true) => e.same + 1,
            (true, false) => 1,
            _ => 0,
        };
        (e.trips, e.seen) = (e.seen, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sure_after_equal_turns_and_unsure_after_others() {
        let mut l = Loops::new(4, 64, 2);
        let turn = |l: &mut Loops, n: u32| {
            (0..n).for_each(|_| l.train(7, true));
            l.train(7, false);
        };
        turn(&mut l, 3);
        assert_eq!(l.guess(7), None);
        turn(&mut l, 3);
        assert_eq!(l.guess(7), Some(true));
        (0..3).for_each(|_| l.train(7, true));
        assert_eq!(l.guess(7), Some(false));
        l.train(7, false);
        turn(&mut l, 5);
        assert_eq!(l.guess(7), None);
    }
}
