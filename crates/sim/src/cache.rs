//! A blocking set-associative cache: tags only, since the bytes are in memory.
//!
//! An access either hits or stops the pipeline for a line fill. Which line a
//! fill replaces is the machine's: least recently used, first in first out, or
//! pseudo-random by a fixed generator, so that a run repeats. A write-through
//! cache passes every store on and allocates nothing for it (a write buffer
//! hides the store's time); a write-back cache allocates on a store and pays
//! for the dirty line that it evicts.

use ciphermill_machine::victim::Victims;
use ciphermill_machine::{Cache as Model, WritePolicy};

const EMPTY: u64 = u64::MAX;

/// What a cache did since the last reset.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, serde::Serialize)]
pub struct CacheStats {
    pub reads: u64,
    pub read_misses: u64,
    pub writes: u64,
    pub write_misses: u64,
    pub writebacks: u64,
    /// Cycles the pipeline stood still for this cache.
    pub stall_cycles: u64,
}

/// The state of one cache.
pub struct Cache {
    model: Model,
    line_shift: u32,
    set_mask: u64,
    ways: usize,
    /// Line numbers, `ways` of them for each set; with LRU the most recent first.
    lines: Vec<u64>,
    dirty: Vec<bool>,
    victims: Victims,
    pub stats: CacheStats,
}

impl Cache {
    /// An empty cache; an error when sizes are not powers of two that fit.
    pub fn new(model: &Model) -> Result<Cache, String> {
        let sets = model.bytes.checked_div(model.ways * model.line_bytes).unwrap_or(0);
        if !model.line_bytes.is_power_of_two() || !sets.is_power_of_two() {
            return Err(format!(
                "cache of {} bytes, {} ways and lines of {} bytes: lines and sets must be powers of two",
                model.bytes, model.ways, model.line_bytes
            ));
        }
        let ways = model.ways as usize;
        let entries = sets as usize * ways;
        Ok(Cache {
            line_shift: model.line_bytes.trailing_zeros(),
            set_mask: u64::from(sets) - 1,
            ways,
            lines: vec![EMPTY; entries],
            dirty: vec![false; entries],
            victims: Victims::new(sets as usize, ways, model.replacement),
            stats: CacheStats::default(),
            model: model.clone(),
        })
    }

    /// Number of the line that holds an address.
    #[inline(always)]
    pub fn line_of(&self, addr: u64) -> u64 {
        addr >> self.line_shift
    }

    /// Read one line.
    #[inline(always)]
    pub fn read_line(&mut self, line: u64) {
        self.stats.reads += 1;
        let first = (line & self.set_mask) as usize * self.ways;
        if self.lines[first] != line {
            self.read_slow(line, first);
        }
    }

    #[inline(never)]
    fn read_slow(&mut self, line: u64, first: usize) {
        if !self.find(line, first, false) {
            self.stats.read_misses += 1;
            self.fill(line, first, false);
        }
    }

    /// Write to one line.
    #[inline(always)]
    pub fn write_line(&mut self, line: u64) {
        self.stats.writes += 1;
        let first = (line & self.set_mask) as usize * self.ways;
        if self.model.write == WritePolicy::Through && self.lines[first] == line {
            return;
        }
        self.write_slow(line, first);
    }

    #[inline(never)]
    fn write_slow(&mut self, line: u64, first: usize) {
        let back = self.model.write == WritePolicy::Back;
        if !self.find(line, first, back) {
            self.stats.write_misses += 1;
            if back {
                self.fill(line, first, true);
            }
        }
    }

    /// A load of `bytes` bytes, which may touch two lines.
    #[inline(always)]
    pub fn load(&mut self, addr: u64, bytes: u64) {
        let (line, last) = (self.line_of(addr), self.line_of(addr + bytes - 1));
        self.read_line(line);
        if last != line {
            self.read_line(last);
        }
    }

    /// A store of `bytes` bytes, which may touch two lines.
    #[inline(always)]
    pub fn store(&mut self, addr: u64, bytes: u64) {
        let (line, last) = (self.line_of(addr), self.line_of(addr + bytes - 1));
        self.write_line(line);
        if last != line {
            self.write_line(last);
        }
    }

    /// Look a line up and, with LRU, move it to the front.
    fn find(&mut self, line: u64, first: usize, mark: bool) -> bool {
        let set = &mut self.lines[first..first + self.ways];
        let Some(way) = set.iter().position(|&l| l == line) else { return false };
        let dirty = &mut self.dirty[first..first + self.ways];
        dirty[way] |= mark;
        if self.victims.by_use() {
            set[..=way].rotate_right(1);
            dirty[..=way].rotate_right(1);
        }
        true
    }

    fn fill(&mut self, line: u64, first: usize, mark: bool) {
        let set = (line & self.set_mask) as usize;
        let ways = self.ways;
        let free = self.lines[first..first + ways].iter().position(|&l| l == EMPTY);
        let victim = self.victims.choose(set, free);
        self.stats.stall_cycles += u64::from(self.model.miss_cycles);
        if self.dirty[first + victim] {
            self.stats.writebacks += 1;
            self.stats.stall_cycles += u64::from(self.model.writeback_cycles);
        }
        self.lines[first + victim] = line;
        self.dirty[first + victim] = mark;
        if self.victims.by_use() {
            self.lines[first..first + ways].rotate_right(1);
            self.dirty[first..first + ways].rotate_right(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ciphermill_machine::Replacement;

    fn model(ways: u32, replacement: Replacement, write: WritePolicy) -> Model {
        Model { bytes: 64 * ways, ways, line_bytes: 16, replacement, write, miss_cycles: 10, writeback_cycles: 7 }
    }

    #[test]
    fn lru_keeps_the_recent_line() {
        let mut c = Cache::new(&model(2, Replacement::Lru, WritePolicy::Through)).unwrap();
        // Lines 0, 4, 8 share set 0 of four. 0 4 0 8: 8 evicts 4, so 0 hits.
        for line in [0, 4, 0, 8, 0] {
            c.read_line(line);
        }
        assert_eq!((c.stats.reads, c.stats.read_misses, c.stats.stall_cycles), (5, 3, 30));
        c.read_line(4);
        assert_eq!(c.stats.read_misses, 4);
    }

    #[test]
    fn fifo_evicts_the_oldest_even_if_used() {
        let mut c = Cache::new(&model(2, Replacement::Fifo, WritePolicy::Through)).unwrap();
        for line in [0, 4, 0, 8, 0] {
            c.read_line(line);
        }
        assert_eq!(c.stats.read_misses, 4);
    }

    #[test]
    fn random_repeats() {
        let run = || {
            let mut c = Cache::new(&model(4, Replacement::Random, WritePolicy::Back)).unwrap();
            (0..1000u64).for_each(|i| c.read_line((i * 7 % 13) * 4));
            c.stats
        };
        assert_eq!(run(), run());
        assert!(run().read_misses > 5 && run().read_misses < 1000);
    }

    #[test]
    fn write_through_allocates_nothing() {
        let mut c = Cache::new(&model(1, Replacement::Lru, WritePolicy::Through)).unwrap();
        c.store(0, 4);
        c.load(0, 4);
        c.store(0, 4);
        assert_eq!((c.stats.write_misses, c.stats.read_misses, c.stats.stall_cycles), (1, 1, 10));
    }

    #[test]
    fn write_back_pays_for_dirty_lines() {
        let mut c = Cache::new(&model(1, Replacement::Lru, WritePolicy::Back)).unwrap();
        c.store(0, 4);
        c.load(64, 4);
        c.load(128, 4);
        assert_eq!((c.stats.write_misses, c.stats.read_misses, c.stats.writebacks), (1, 2, 1));
        assert_eq!(c.stats.stall_cycles, 37);
    }

    #[test]
    fn access_across_lines_touches_both() {
        let mut c = Cache::new(&model(1, Replacement::Lru, WritePolicy::Through)).unwrap();
        c.load(14, 4);
        assert_eq!((c.stats.reads, c.stats.read_misses), (2, 2));
    }
}
