//! Entering the window: renaming, and what it waits for.

use super::state::Pipeline;
use crate::events::Cause;
use crate::ports::Calendar;
use crate::uop::{FIRST, Kind, Lists, Uop};

impl Pipeline {
    /// Rename micro-operations that take one place: the cycle, and why it was
    /// not earlier. Not at or after `until`.
    #[inline(always)]
    pub(super) fn rename(&mut self, lists: &Lists, uops: &[Uop], decoded: u64, why: Cause, until: u64) -> (u64, Cause) {
        let uop = &uops[0];
        let mut late = why;
        let mut at = decoded;
        if at < self.recover {
            (at, late) = (self.recover, Cause::Mispredict);
        }
        at = at.max(self.calendar.now());
        let mut floor = self.rob[self.rob_at] + 1;
        if uop.kind == Kind::Load {
            floor = floor.max(self.load_queue[self.load_at] + 1);
        }
        if uop.kind == Kind::StoreAddress {
            floor = floor.max(self.stores.free() + 1);
        }
        if floor > at {
            (at, late) = (floor, Cause::Window);
        }
        if self.stalls {
            let sources = uops.iter().flat_map(|u| lists.sources(u));
            let whole = sources.map(|&r| self.values[usize::from(r)].whole).max().unwrap_or(0);
            if whole > at {
                (at, late) = (whole, Cause::Dependences);
            }
        }
        if at == self.calendar.now() && self.renamed_now >= self.core.rename.width {
            at += 1;
        }
        if at >= until {
            return (at, late);
        }
        if at > self.calendar.now() {
            self.calendar.advance(at);
            self.renamed_now = 0;
            self.read_now.clear();
        }
        let needs = u32::from(uop.stations);
        let full = |c: &Calendar| {
            c.waiting + needs > self.core.reservation_stations || uops.iter().any(|u| !c.has_room(u.ports))
        };
        while self.calendar.waiting > 0 && full(&self.calendar) {
            self.calendar.step();
            (self.renamed_now, late) = (0, Cause::Window);
            self.read_now.clear();
            if self.calendar.now() >= until {
                return (until, late);
            }
        }
        if self.core.rename.written_reads > 0 && !self.reads_fit(lists, uops) {
            self.calendar.step();
            (self.renamed_now, late) = (0, Cause::ReadPorts);
            self.read_now.clear();
            self.reads_fit(lists, uops);
        }
        self.renamed_now += 1;
        self.tally.renamed += 1;
        let now = self.calendar.now();
        self.front.renamed(now);
        (now, late)
    }

    /// Do the written registers it reads fit into this cycle? Then they are
    /// read. The first micro-operation of a cycle always fits.
    pub(super) fn reads_fit(&mut self, lists: &Lists, uops: &[Uop]) -> bool {
        let now = self.calendar.now();
        let before = self.read_now.len();
        for uop in uops {
            for &r in lists.sources(uop) {
                if self.values[usize::from(r)].at <= now && !self.read_now.contains(&r) {
                    self.read_now.push(r);
                }
            }
        }
        let fits = self.read_now.len() <= self.core.rename.written_reads as usize || self.renamed_now == 0;
        if !fits {
            self.read_now.truncate(before);
        }
        fits
    }

    /// When the operands are there, and which of them came last.
    #[inline(always)]
    pub(super) fn operands(&self, lists: &Lists, uop: &Uop) -> (u64, Cause) {
        let (mut ready, mut cause) = (0, Cause::Frontend);
        for r in uop.first {
            let v = &self.values[usize::from(r)];
            (ready, cause) = if v.at > ready { (v.at, v.cause) } else { (ready, cause) };
        }
        if usize::from(uop.sources.1) <= FIRST {
            return (ready, cause);
        }
        for &r in &lists.sources(uop)[FIRST..] {
            let v = &self.values[usize::from(r)];
            if v.at > ready {
                (ready, cause) = (v.at, v.cause);
            }
        }
        (ready, cause)
    }
}
