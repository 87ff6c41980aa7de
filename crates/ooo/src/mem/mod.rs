//! The memory system: caches, translation, prefetch, and when data is there.
//!
//! Accesses come in program order, each with the cycle at which it starts.
//! What is in which cache follows the program order; *when* it is there
//! follows the cycles: a line on its way has a time, and whoever finds it
//! waits until then. So two misses to one line are one, and many misses are
//! under way together, as many as there are fill buffers. Wrong-path accesses
//! change nothing here.

pub mod prefetch;
pub mod stores;
pub mod tags;
pub mod tlb;

use ciphermill_machine::Machine;
use ciphermill_machine::core::{Core, L2};
use prefetch::{Pages, Streams, Strides};
use tags::{Tags, Victim};
use tlb::Tlb;

/// Where data was found.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    First,
    Second,
    Memory,
}

/// Counts of the memory system.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Counts {
    pub l1d_accesses: u64,
    pub l1d_misses: u64,
    pub l1d_lines: u64,
    pub l1d_writebacks: u64,
    pub l1i_misses: u64,
    pub l2_accesses: u64,
    pub l2_misses: u64,
    pub l2_lines: u64,
    pub l2_writebacks: u64,
    pub prefetches: u64,
}

/// Something that serves one request every so many cycles. Requests do not
/// come in the order of their times, so the last times in which it was idle are
/// kept: one that lies there is served there.
#[derive(Clone, Copy, Default)]
struct Lane {
    interval: u64,
    free: u64,
    /// From when to when it was idle, in a ring.
    idle: [(u64, u64); 8],
    next: usize,
}

impl Lane {
    fn grant(&mut self, at: u64) -> u64 {
        if at >= self.free {
            if at >= self.free + self.interval {
                self.idle[self.next] = (self.free, at);
                self.next = (self.next + 1) % self.idle.len();
            }
            self.free = at + self.interval;
            return at;
        }
        let fits = |&(from, to): &(u64, u64)| from.max(at) + self.interval <= to;
        // The earliest that has room. What is left of it before is lost.
        let found = self.idle.iter_mut().filter(|i| fits(i)).min_by_key(|i| i.0);
        match found {
            Some(idle) => {
                let start = idle.0.max(at);
                idle.0 = start + self.interval;
                start
            }
            None => {
                self.free += self.interval;
                self.free - self.interval
            }
        }
    }
}

/// The memory system of one core.
pub struct Memory {
    l1d: Option<Tags>,
    l1i: Option<Tags>,
    l2: Option<Tags>,
    l3: Option<Tags>,
    dtlb: Option<Tlb>,
    shift: u32,
    latency: u64,
    l2_latency: u64,
    l3_latency: u64,
    dram_latency: u64,
    l2_lane: Lane,
    l3_lane: Lane,
    bus: Lane,
    /// When each fill buffer is free again, in a ring.
    fills: Vec<u64>,
    fill: usize,
    write_through: bool,
    next_line: bool,
    code_lines: u64,
    adjacent: bool,
    pages: Pages,
    strides: Strides,
    streams: Streams,
    pub counts: Counts,
}

/// What an access came to.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// Cycle at which a load that finds it would have to start.
    pub start: u64,
    pub level: Level,
    /// Cycles spent on the translation of the address.
    pub translation: u64,
}

impl Memory {
    pub fn new(machine: &Machine, core: &Core) -> Memory {
        let line = machine.memory.dcache.as_ref().or(machine.memory.icache.as_ref()).map_or(64, |c| c.line_bytes);
        let l1 = core.load.latency;
        let behind = |cache: &Option<L2>| cache.as_ref().map_or(0, |l| u64::from(l.latency.saturating_sub(l1)));
        let interval = |cache: &Option<L2>| cache.as_ref().map_or(1, |l| u64::from(l.interval));
        let lane = |cache: &Option<L2>| Lane { interval: interval(cache), ..Lane::default() };
        let pages = Pages::new(core.prefetch.page_bytes, line.trailing_zeros());
        Memory {
            l1d: machine.memory.dcache.as_ref().map(Tags::of),
            l1i: machine.memory.icache.as_ref().map(Tags::of),
            l2: core.l2.as_ref().map(|l| Tags::of(&l.cache)),
            l3: core.l3.as_ref().map(|l| Tags::of(&l.cache)),
            dtlb: core.dtlb.as_ref().map(Tlb::new),
            shift: line.trailing_zeros(),
            latency: u64::from(l1),
            l2_latency: behind(&core.l2),
            l3_latency: behind(&core.l3),
            dram_latency: u64::from(core.dram.latency.saturating_sub(l1)),
            l2_lane: lane(&core.l2),
            l3_lane: lane(&core.l3),
            bus: Lane { interval: u64::from(core.dram.interval), ..Lane::default() },
            fills: vec![0; core.load.fill_buffers.max(1) as usize],
            fill: 0,
            write_through: machine
                .memory
                .dcache
                .as_ref()
                .is_some_and(|c| c.write == ciphermill_machine::WritePolicy::Through),
            next_line: core.prefetch.next_line,
            code_lines: core.prefetch.code_lines.into(),
            adjacent: core.prefetch.adjacent_line,
            pages,
            strides: Strides::new(core.prefetch.stride_entries),
            streams: Streams::new(core.prefetch.streams, core.prefetch.stream_lines, pages),
            counts: Counts::default(),
        }
    }

    /// Page walks so far.
    pub fn walks(&self) -> u64 {
        self.dtlb.as_ref().map_or(0, |t| t.walks)
    }

    /// A load or store of the instruction at `pc` (what the stride prefetcher
    /// goes by) that starts at a cycle.
    #[inline(always)]
    pub fn data(&mut self, pc: u32, addr: u32, start: u64, write: bool) -> Access {
        self.counts.l1d_accesses += 1;
        let translation = match &mut self.dtlb {
            Some(dtlb) => dtlb.access(u64::from(addr)),
            None => 0,
        };
        let line = u64::from(addr) >> self.shift;
        let Some(l1d) = &mut self.l1d else {
            return Access { start: start + translation, level: Level::First, translation };
        };
        let at = start + translation;
        let found = l1d.find(line, write && !self.write_through);
        let access = match found {
            Some(ready) => Access {
                start: at.max(ready),
                level: if ready > at { Level::Second } else { Level::First },
                translation,
            },
            None if write && self.write_through => {
                self.counts.l1d_misses += 1;
                Access { start: at, level: Level::First, translation }
            }
            None => self.miss(line, at, write, translation),
        };
        if !write {
            self.follow(pc, addr, at);
        }
        access
    }

    /// [`Memory::data`] where that takes no time: the line with all of its bytes has come, and its
    /// page is known. If not, nothing has been done that is not done again.
    #[inline(always)]
    pub fn quiet(&mut self, pc: u32, addr: u32, bytes: u32, at: u64, write: bool) -> bool {
        let Some(l1d) = &mut self.l1d else { return false };
        let line = addr >> self.shift;
        if addr.wrapping_add(bytes - 1) >> self.shift != line {
            return false;
        }
        // A line or page that is found twice is as one found once.
        if l1d.find(u64::from(line), write && !self.write_through).is_none_or(|ready| ready > at) {
            return false;
        }
        if self.dtlb.as_mut().is_some_and(|t| !t.knows(u64::from(addr))) {
            return false;
        }
        self.counts.l1d_accesses += 1;
        if !write {
            self.follow(pc, addr, at);
        }
        true
    }

    /// The stride prefetcher sees a load.
    #[inline(always)]
    fn follow(&mut self, pc: u32, addr: u32, at: u64) {
        let Some(next) = self.strides.next(pc, addr) else { return };
        let (next, line) = (u64::from(next) >> self.shift, u64::from(addr) >> self.shift);
        if next != line && self.pages.together(next, line) {
            self.prefetch(next, at);
        }
    }

    fn miss(&mut self, line: u64, at: u64, write: bool, translation: u64) -> Access {
        self.counts.l1d_misses += 1;
        let at = at.max(self.fills[self.fill]);
        let (ready, level) = self.second(line, at);
        self.fills[self.fill] = ready;
        self.fill = (self.fill + 1) % self.fills.len();
        self.fill_first(line, ready, write);
        if self.next_line && self.pages.together(line + 1, line) {
            self.prefetch(line + 1, at);
        }
        Access { start: ready, level, translation }
    }

    /// A line for the first cache from the second or from memory: the cycle at
    /// which a load that finds it would have to start.
    fn second(&mut self, line: u64, at: u64) -> (u64, Level) {
        self.counts.l2_accesses += 1;
        let at = self.l2_lane.grant(at);
        let Some(l2) = &mut self.l2 else { return (self.bus.grant(at) + self.dram_latency, Level::Memory) };
        let got = match l2.find(line, false) {
            Some(ready) if ready <= at => (at + self.l2_latency, Level::Second),
            Some(ready) => (ready.max(at + self.l2_latency), Level::Memory),
            None => {
                self.counts.l2_misses += 1;
                let ready = self.memory_gives(line, at);
                if self.adjacent && self.pages.together(line ^ 1, line) {
                    self.fetch_ahead(line ^ 1, at);
                }
                (ready, Level::Memory)
            }
        };
        if let Some(lines) = self.streams.hint(line) {
            lines.for_each(|l| self.fetch_ahead(l, at));
        }
        got
    }

    /// A line that the second cache has not: from the third or from memory, the cycle at which a load that finds it would
    /// have to start.
    fn memory_gives(&mut self, line: u64, at: u64) -> u64 {
        let ready = match self.l3.as_mut().and_then(|l3| l3.find(line, false)) {
            Some(there) => self.l3_lane.grant(at.max(there)) + self.l3_latency,
            None => self.bus.grant(at) + self.dram_latency,
        };
        self.counts.l2_lines += 1;
        if let Some(victim) = self.l2.as_mut().and_then(|l2| l2.fill(line, ready, false)) {
            self.counts.l2_writebacks += u64::from(victim.dirty);
            self.gives_up(victim, ready);
        }
        ready
    }

    /// The second cache gives up a line.
    fn gives_up(&mut self, victim: Victim, at: u64) {
        let dirty = match &mut self.l3 {
            None => victim.dirty,
            // It may have kept it since it came from there.
            Some(l3) => {
                l3.find(victim.line, victim.dirty).is_none()
                    && l3.fill(victim.line, at, victim.dirty).is_some_and(|last| last.dirty)
            }
        };
        if dirty {
            self.bus.grant(at);
        }
    }

    fn fetch_ahead(&mut self, line: u64, at: u64) {
        if self.l2.as_ref().is_some_and(|l2| !l2.has(line)) {
            self.counts.prefetches += 1;
            self.memory_gives(line, at);
        }
    }

    fn fill_first(&mut self, line: u64, ready: u64, write: bool) {
        self.counts.l1d_lines += 1;
        let Some(victim) = self.l1d.as_mut().and_then(|l1d| l1d.fill(line, ready, write && !self.write_through)) else {
            return;
        };
        if !victim.dirty {
            return;
        }
        self.counts.l1d_writebacks += 1;
        // It goes to the second cache, or on to memory where that has lost it.
        if self.l2.as_mut().is_none_or(|l2| l2.find(victim.line, true).is_none()) {
            self.bus.grant(ready);
        }
    }

    fn prefetch(&mut self, line: u64, at: u64) {
        if self.l1d.as_ref().is_none_or(|l1d| l1d.has(line)) {
            return;
        }
        self.counts.prefetches += 1;
        let (ready, _) = self.second(line, at);
        self.fill_first(line, ready, false);
    }

    /// A fetch of instructions at a cycle: the cycle at which they are there. The next lines are on their way then.
    #[inline(always)]
    pub fn fetch(&mut self, addr: u32, at: u64) -> u64 {
        let line = u64::from(addr) >> self.shift;
        let Some(l1i) = &mut self.l1i else { return at };
        let there = match l1i.find(line, false) {
            Some(ready) => at.max(ready),
            None => {
                self.counts.l1i_misses += 1;
                self.fetch_code(line, at)
            }
        };
        for next in 1..=self.code_lines {
            if self.l1i.as_ref().is_some_and(|l1i| !l1i.has(line + next)) && self.pages.together(line + next, line) {
                self.fetch_code(line + next, at);
            }
        }
        there
    }

    /// A line of instructions comes from the second cache.
    fn fetch_code(&mut self, line: u64, at: u64) -> u64 {
        let (ready, _) = self.second(line, at);
        // From the start of the fetch: the load's own first-level cycles are no part of it.
        let ready = ready.max(at) + self.latency.min(1);
        if let Some(l1i) = &mut self.l1i {
            l1i.fill(line, ready, false);
        }
        ready
    }

    /// Bits of an address within its line.
    pub fn shift(&self) -> u32 {
        self.shift
    }

    /// Line of an address.
    pub fn line(&self, addr: u32) -> u32 {
        addr >> self.shift
    }
}
