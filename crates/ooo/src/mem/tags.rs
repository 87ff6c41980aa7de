//! A set-associative array of tags, with the cycle at which each line is there.
//!
//! It serves caches and translation buffers. Bytes are not here: values come
//! from the functional run.

use ciphermill_machine::victim::Victims;
use ciphermill_machine::{Cache, Replacement};

/// The tag of a way that has no line; a line's is its number and one.
const EMPTY: u32 = 0;

/// Tags that are compared together.
const TOGETHER: usize = 8;

/// Sets of more ways have places to look at first: [`Tags::hints`].
const MANY: usize = 2 * TOGETHER;
/// Such places.
const HINTS: usize = 64;

/// A line that had to give way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Victim {
    pub line: u64,
    pub dirty: bool,
}

/// What is kept of a line besides its tag.
#[derive(Clone, Copy, Default)]
struct Line {
    ready: u64,
    /// The number of the search that found it last.
    used: u64,
    dirty: bool,
}

/// The array. Lines stay where they came in: a search compares all tags of a set, and which one was used
/// last is written beside it.
pub struct Tags {
    /// By set, [`Tags::stride`] each; those behind the last way are empty.
    tags: Vec<u32>,
    lines: Vec<Line>,
    /// Where the last line of such a number was, modulo as many as there are; none where sets are small.
    hints: Vec<u32>,
    ways: usize,
    stride: usize,
    mask: u64,
    searches: u64,
    victims: Victims,
}

impl Tags {
    pub fn new(sets: u32, ways: u32, replacement: Replacement) -> Tags {
        let (sets, ways) = (sets.max(1) as usize, ways.max(1) as usize);
        let stride = ways.next_multiple_of(TOGETHER);
        Tags {
            tags: vec![EMPTY; sets * stride],
            lines: vec![Line::default(); sets * stride],
            hints: vec![0; if stride > MANY { HINTS } else { 0 }],
            ways,
            stride,
            mask: sets as u64 - 1,
            searches: 0,
            victims: Victims::new(sets, ways, replacement),
        }
    }

    /// The tags of a cache.
    pub fn of(model: &Cache) -> Tags {
        Tags::new(model.bytes / (model.ways * model.line_bytes), model.ways, model.replacement)
    }

    /// Where a line's set begins.
    #[inline(always)]
    fn set(&self, line: u64) -> usize {
        (line & self.mask) as usize * self.stride
    }

    /// Where a line is.
    #[inline(always)]
    fn place(&self, line: u64) -> Option<usize> {
        let tag = tag(line);
        let first = self.set(line);
        for (eight, tags) in self.tags[first..][..self.stride].chunks_exact(TOGETHER).enumerate() {
            let alike = tags.iter().enumerate().fold(0, |alike, (way, &t)| alike | u32::from(t == tag) << way);
            if alike != 0 {
                return Some(first + eight * TOGETHER + alike.trailing_zeros() as usize);
            }
        }
        None
    }

    #[inline(always)]
    fn hinted(&self, line: u64) -> Option<usize> {
        let place = *self.hints.get(line as usize % HINTS)? as usize;
        (self.tags[place] == tag(line)).then_some(place)
    }

    #[inline(always)]
    fn hint(&mut self, line: u64, place: usize) {
        if let Some(hint) = self.hints.get_mut(line as usize % HINTS) {
            *hint = place as u32;
        }
    }

    /// The cycle from which on a line is there; None when it is not coming.
    #[inline(always)]
    pub fn find(&mut self, line: u64, write: bool) -> Option<u64> {
        let place = self.hinted(line).or_else(|| self.place(line))?;
        self.hint(line, place);
        self.searches += 1;
        let found = &mut self.lines[place];
        found.used = self.searches;
        found.dirty |= write;
        Some(found.ready)
    }

    /// Is a line there, or on its way? Changes nothing.
    pub fn has(&self, line: u64) -> bool {
        self.place(line).is_some()
    }

    /// A line comes in at a cycle; what gives way for it.
    pub fn fill(&mut self, line: u64, ready: u64, dirty: bool) -> Option<Victim> {
        let first = self.set(line);
        let ways = first..first + self.ways;
        let free = self.tags[ways.clone()].iter().position(|&t| t == EMPTY);
        let place = match free {
            None if self.victims.by_use() => ways.min_by_key(|&way| self.lines[way].used).unwrap_or(first),
            Some(way) if self.victims.by_use() => first + way,
            _ => first + self.victims.choose((line & self.mask) as usize, free),
        };
        self.searches += 1;
        let old = std::mem::replace(&mut self.lines[place], Line { ready, used: self.searches, dirty });
        let before = std::mem::replace(&mut self.tags[place], tag(line));
        self.hint(line, place);
        (before != EMPTY).then(|| Victim { line: u64::from(before - 1), dirty: old.dirty })
    }
}

/// Lines are numbered by addresses of 32 bits without those within a line.
#[inline(always)]
fn tag(line: u64) -> u32 {
    line as u32 + 1
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

    #[test]
    fn more_ways_than_are_compared_together() {
        let mut t = Tags::new(1, 19, Replacement::Lru);
        (0..19).for_each(|line| assert_eq!(t.fill(line, 10 * line, false), None));
        assert_eq!([0, 18, 9].map(|line| t.find(line, false)), [Some(0), Some(180), Some(90)]);
        // The first one was used again: the second gives way, and its place is the next one's.
        assert_eq!(t.fill(65, 5, false).map(|v| v.line), Some(1));
        assert_eq!([1, 65, 1].map(|line| t.find(line, false)), [None, Some(5), None]);
    }
}
