//! A set-associative array of tags, with the cycle at which each line is there.
//!
//! It serves caches and translation buffers. Bytes are not here: values come
//! from the functional run.

use ciphermill_machine::victim::Victims;
use ciphermill_machine::{Cache, Replacement};

const EMPTY: u64 = u64::MAX;

/// A line that had to give way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Victim {
    pub line: u64,
    pub dirty: bool,
}

#[derive(Clone, Copy)]
struct Line {
    number: u64,
    ready: u64,
    dirty: bool,
}

/// The array. With least-recently-used replacement a set stands in the order
/// of use.
pub struct Tags {
    lines: Vec<Line>,
    ways: usize,
    mask: u64,
    victims: Victims,
}

impl Tags {
    pub fn new(sets: u32, ways: u32, replacement: Replacement) -> Tags {
        let (sets, ways) = (sets.max(1) as usize, ways.max(1) as usize);
        Tags {
            lines: vec![Line { number: EMPTY, ready: 0, dirty: false }; sets * ways],
            ways,
            mask: sets as u64 - 1,
            victims: Victims::new(sets, ways, replacement),
        }
    }

    /// The tags of a cache.
    pub fn of(model: &Cache) -> Tags {
        Tags::new(model.bytes / (model.ways * model.line_bytes), model.ways, model.replacement)
    }

    /// The cycle from which on a line is there; None when it is not coming.
    #[inline(always)]
    pub fn find(&mut self, line: u64, write: bool) -> Option<u64> {
        let first = (line & self.mask) as usize * self.ways;
        let front = &mut self.lines[first];
        if front.number == line {
            front.dirty |= write;
            return Some(front.ready);
        }
        self.find_slow(line, first, write)
    }

    fn find_slow(&mut self, line: u64, first: usize, write: bool) -> Option<u64> {
        let set = &mut self.lines[first..first + self.ways];
        let way = set.iter().position(|l| l.number == line)?;
        set[way].dirty |= write;
        let ready = set[way].ready;
        if self.victims.by_use() {
            to_front(set, way);
        }
        Some(ready)
    }

    /// Is a line there, or on its way? Changes nothing.
    pub fn has(&self, line: u64) -> bool {
        let first = (line & self.mask) as usize * self.ways;
        self.lines[first..first + self.ways].iter().any(|l| l.number == line)
    }

    /// A line comes in at a cycle; what gives way for it.
    pub fn fill(&mut self, line: u64, ready: u64, dirty: bool) -> Option<Victim> {
        let set = (line & self.mask) as usize;
        let first = set * self.ways;
        let ways = self.ways;
        let free = self.lines[first..first + ways].iter().position(|l| l.number == EMPTY);
        let way = self.victims.choose(set, free);
        let old = std::mem::replace(&mut self.lines[first + way], Line { number: line, ready, dirty });
        if self.victims.by_use() {
            to_front(&mut self.lines[first..first + ways], ways - 1);
        }
        (old.number != EMPTY).then_some(Victim { line: old.number, dirty: old.dirty })
    }
}

/// A way becomes the first of its set; a few moves, where a general rotation takes many.
#[inline(always)]
fn to_front(set: &mut [Line], way: usize) {
    let line = set[way];
    for i in (0..way).rev() {
        set[i + 1] = set[i];
    }
    set[0] = line;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recent_gives_way_and_says_whether_it_was_written() {
        let mut t = Tags::new(1, 2, Replacement::Lru);
        assert_eq!(t.find(1, false), None);
        assert_eq!(t.fill(1, 10, false), None);
        assert_eq!(t.fill(2, 20, true), None);
        assert_eq!(t.find(1, false), Some(10));
        assert_eq!(t.fill(3, 30, false), Some(Victim { line: 2, dirty: true }));
        assert!(t.has(1) && !t.has(2));
        assert_eq!(t.find(3, false), Some(30));
    }
}
