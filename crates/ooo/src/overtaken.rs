//! Computations whose result's cycle a younger, longer one can take.
//!
//! Where two computations of a unit cannot end in the same cycle, a scheduler starts what is ready and meets nothing that
//! is under way. So a product starts although an older sum, which would start two cycles later, would end with it; and the
//! sum waits on. Calendars are filled in program order, so the sum has its place by then: it gives it up, and takes
//! the next one.
//!
//! What waits for too long is not overtaken any more: when its result has met another one's in
//! [`Overtaken::patience`] cycles in a row, nothing younger starts on that port before it.
//!
//! Found on an EPYC Genoa (Zen 4), 2026-11-28: products and rotates that wait for one load in one scheduler, and the cycle in
//! which each of them starts, read off what waits for it. Ten of thirteen loops of products, rotates and additions take what
//! they take by it (the sheet's group "products beside others"); without, five.
//!
//! # What it does not do
//!
//! Whoever was renamed before something is overtaken and reads its result has been told when it is there, and keeps that time;
//! so does the place at which it retires. A register that something else writes in just the cycle that was said is taken for
//! its own. Of more than two latencies on a port only the longest counts as the other one's.

use crate::lanes::Lanes;
use crate::words::{Reader, Writer};

/// One that has its place, and has not started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Short {
    port: u8,
    latency: u8,
    /// Cycles in a row before its start in which its result would have met another one's.
    met: u8,
    /// Cycles before its start that are kept from younger ones, the last one in bit 0.
    kept: u32,
    start: u64,
    /// The first cycle in which nothing younger starts before it.
    last: u64,
    /// Its results: a range in [`crate::uop::Lists::results`].
    results: (u32, u8),
}

/// Those that can be overtaken, of all ports, the oldest first.
pub struct Overtaken {
    /// See above; 0: none is overtaken.
    patience: u8,
    /// By port the longest latency of a computation there.
    longest: [u8; 32],
    shorts: Vec<Short>,
    /// Cycles in which one of the longest ends.
    pub long: Lanes,
    /// The results of what takes its place next.
    pub results: (u32, u8),
    /// Those that were overtaken since this was emptied.
    pub moved: Vec<Moved>,
}

/// One that does not start in a cycle, as was said, but in another one.
#[derive(Clone, Copy)]
pub struct Moved {
    pub results: (u32, u8),
    pub from: u64,
    pub to: u64,
}

impl Overtaken {
    /// With so much patience; computations are their ports, as a set, and their latencies.
    pub fn new(patience: u8, computations: impl Iterator<Item = (u32, u16)>) -> Overtaken {
        let mut longest = [0; 32];
        for (ports, latency) in computations.filter(|_| patience > 0) {
            for port in (0..32).filter(|port| ports >> port & 1 != 0) {
                longest[port] = u8::try_from(latency).unwrap_or(u8::MAX).max(longest[port]);
            }
        }
        let long = Lanes::new(1 << 10);
        Overtaken { patience, longest, shorts: vec![], long, results: (0, 0), moved: vec![] }
    }

    /// Can any be on this port?
    #[inline(always)]
    pub fn on(&self, port: usize, latency: u64) -> bool {
        latency > 0 && latency < u64::from(self.longest[port & 31])
    }

    /// Nothing waits.
    pub fn clear(&mut self) {
        self.shorts.clear();
        self.long.clear_all();
    }

    /// The 64 cycles with this one are over, or forgotten.
    #[inline(always)]
    pub fn over(&mut self, cycle: u64) {
        if self.patience > 0 {
            self.long.clear(cycle);
        }
    }

    /// More cycles, of which `from` is the first that matters.
    pub fn grow(&mut self, cycles: usize, from: u64) {
        self.long = self.long.grown(cycles, from);
    }

    /// One that none is longer than ends.
    #[inline(always)]
    pub fn ends(&mut self, port: usize, end: u64) {
        if self.patience > 0 {
            self.long.set(port, end);
        }
    }

    /// Of the 64 cycles from `from` on those in which one that ends `latency` later takes the cycle of one's result.
    #[inline(always)]
    pub fn yields(&self, port: usize, from: u64, latency: u64) -> u64 {
        let mut set = 0;
        for s in self.shorts.iter().filter(|s| usize::from(s.port) == port && latency > u64::from(s.latency)) {
            let at = (s.start + u64::from(s.latency)).wrapping_sub(latency);
            if at.wrapping_sub(from) < 64 && at < s.last {
                set |= 1 << (at - from);
            }
        }
        set
    }

    /// One takes its place, for which it was ready in `from`.
    pub fn enters(&mut self, port: usize, latency: u64, from: u64, start: u64, taken: &mut Lanes) {
        let (last, results) = (u64::MAX, self.results);
        let mut s = Short { port: port as u8, latency: latency as u8, met: 0, kept: 0, start: from, last, results };
        self.waits(&mut s, start);
        keep(&mut s, taken);
        self.shorts.push(s);
    }

    /// It waits from its start so far to another one.
    fn waits(&self, s: &mut Short, start: u64) {
        for t in s.start..start {
            let meets = self.long.window(usize::from(s.port), t + u64::from(s.latency)) & 1 != 0;
            s.met = if meets { s.met.saturating_add(1) } else { 0 };
            s.last = if s.met < self.patience { u64::MAX } else { s.last.min(t + 1) };
        }
        s.start = start;
    }

    /// The one whose result would come in this cycle is overtaken by one that has taken it; nothing, if there is none. It
    /// takes the next cycle that is free or a younger one's, and that one the next again. From which cycle to which one of
    /// all of them had to go.
    pub fn overtake(&mut self, port: usize, end: u64, taken: &mut Lanes, ending: &mut Lanes) -> Option<(u64, u64)> {
        let here = |s: &Short| usize::from(s.port) == port;
        let mut k = self.shorts.iter().position(|s| here(s) && s.start + u64::from(s.latency) == end)?;
        let from = self.shorts[k].start;
        taken.unset(port, from);
        loop {
            let mut s = self.shorts[k];
            release(&mut s, taken);
            let ends = u64::from(s.latency);
            let younger =
                |at: u64| (k + 1..self.shorts.len()).find(|&j| here(&self.shorts[j]) && self.shorts[j].start == at);
            let mut to = s.start;
            let next = loop {
                if self.long.window(port, to + ends) & 1 == 0 {
                    let next = younger(to);
                    if next.is_some() || taken.window(port, to) & 1 == 0 {
                        break next;
                    }
                }
                to += 1;
            };
            self.moved.push(Moved { results: s.results, from: s.start, to });
            self.waits(&mut s, to);
            taken.set(port, to);
            ending.set(port, to + ends);
            keep(&mut s, taken);
            self.shorts[k] = s;
            match next {
                Some(j) => k = j,
                None => return Some((from, to)),
            }
        }
    }

    /// Those that start by then are over.
    #[inline(always)]
    pub fn forget(&mut self, by: u64) {
        self.shorts.retain(|s| s.start > by);
    }

    /// Write down those that may still have to go for what starts in `first` or later.
    pub fn save(&self, w: &mut Writer, first: u64, now: u64) {
        let open = || self.shorts.iter().filter(|s| s.start > first);
        w.number(open().count() as u64);
        for s in open() {
            w.number(u64::from(s.port) << 8 | u64::from(s.latency));
            w.number(u64::from(s.met.min(self.patience)) << 8 | u64::from(s.results.1));
            w.wide(s.results.0);
            w.wide(s.kept);
            w.after(s.start, now);
            w.after(if s.last == u64::MAX { now } else { s.last }, now);
        }
    }

    /// Set them up again.
    pub fn restore(&mut self, r: &mut Reader<'_>, now: u64) {
        self.shorts.clear();
        for _ in 0..r.number() {
            let (place, met, first, kept) = (r.number(), r.number(), r.wide(), r.wide());
            let (met, results) = ((met >> 8) as u8, (first, met as u8));
            let (start, last) = (r.after(now), r.after(now));
            let last = if last == now { u64::MAX } else { last };
            self.shorts.push(Short { port: (place >> 8) as u8, latency: place as u8, met, kept, start, last, results });
        }
    }
}

/// Cycles that were kept are open again.
fn release(s: &mut Short, taken: &mut Lanes) {
    for k in (0..32).filter(|k| s.kept >> k & 1 != 0) {
        taken.unset(usize::from(s.port), s.start - 1 - k);
    }
    s.kept = 0;
}

/// Keep the cycles from its last one on from younger ones.
fn keep(s: &mut Short, taken: &mut Lanes) {
    s.kept = 0;
    for k in 0..u64::from(u32::BITS).min(s.start.saturating_sub(s.last)) {
        let at = s.start - 1 - k;
        if taken.window(usize::from(s.port), at) & 1 == 0 {
            taken.set(usize::from(s.port), at);
            s.kept |= 1 << k;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::Calendar;
    use crate::queues::Choice;

    /// One port, for products of three cycles and sums of one.
    fn port(patience: u8) -> Calendar {
        let mut c = Calendar::new(&[], Choice::First, &[1]);
        c.set_result_bus(true, Overtaken::new(patience, [(1, 3), (1, 1)].into_iter()));
        c
    }

    /// The cycles in which these start, as they are said, all of them ready in 10.
    fn starts(c: &mut Calendar, latencies: &[u16]) -> Vec<u64> {
        let place = |&latency| {
            let (at, port) = c.find(1, 1, latency, 10);
            c.take(port, 1, latency, at);
            at
        };
        latencies.iter().map(place).collect()
    }

    #[test]
    fn younger_products_come_first_three_times() {
        // The sum would start in 14. Products that start in 12, 13 and 14 overtake it; after these three 15 and 16 are kept
        // for it, in which it cannot start, and the fourth comes behind it.
        let mut c = port(3);
        assert_eq!(starts(&mut c, &[3, 3, 1, 3, 3, 3, 3]), [10, 11, 14, 12, 13, 14, 18]);
        assert_eq!(c.find(1, 1, 0, 15).0, 19);
        // It waits for as long: behind 14 it and the last product are left, behind 17 that one.
        let left = [15, 17, 18, 19].map(|t| {
            c.advance(t);
            c.waiting()
        });
        assert_eq!(left, [2, 2, 1, 0]);
        // With more patience that one does so, too.
        assert_eq!(starts(&mut port(4), &[3, 3, 1, 3, 3, 3, 3])[6], 15);
        // Without, products keep to the cycles in which they end alone.
        assert_eq!(starts(&mut port(0), &[3, 3, 1, 3, 3, 3]), [10, 11, 14, 13, 15, 16]);
    }

    #[test]
    fn one_that_is_overtaken_takes_the_place_of_the_next() {
        // Sums in 14 and 15. The product in 12 sends the first one to 15 and that one to 16; those in 13 and 14 to 17 and 18.
        let mut c = port(3);
        assert_eq!(starts(&mut c, &[3, 3, 1, 1, 3, 3, 3, 3]), [10, 11, 14, 15, 12, 13, 14, 19]);
        assert_eq!(c.find(1, 1, 0, 15).0, 20);
    }

    #[test]
    fn written_down_and_set_up_again_it_goes_on_the_same_way() {
        let mut c = port(3);
        starts(&mut c, &[3, 3, 1, 1, 3]);
        let mut w = Writer::default();
        c.save(&mut w, 0);
        c.restore(&mut Reader::new(&w.words), 10);
        let later: Vec<u64> = (0..3)
            .map(|_| {
                let (at, port) = c.find(1, 1, 3, 20);
                c.take(port, 1, 3, at);
                at
            })
            .collect();
        assert_eq!(later, [23, 24, 29]);
    }
}
