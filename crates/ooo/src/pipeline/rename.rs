//! Entering the window: renaming, and what it waits for.

use super::state::{Pipeline, Value};
use crate::events::Cause;
use crate::ports::Calendar;
use crate::uop::{FIRST, Kind, Lists, Uop};

impl Pipeline {
    /// Rename micro-operations that take one place: the cycle, and why it was
    /// not earlier. Not at or after `until`.
    #[inline(always)]
    pub(super) fn rename<const PLAIN: bool>(
        &mut self,
        lists: &Lists,
        uops: &[Uop],
        decoded: u64,
        why: Cause,
        until: u64,
    ) -> (u64, Cause) {
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
        if !PLAIN && self.stalls {
            let sources = uops.iter().flat_map(|u| lists.sources(u));
            let whole = sources.map(|&r| self.wholes[usize::from(r)]).max().unwrap_or(0);
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
            self.begin_cycle::<PLAIN>();
        }
        let (needs, stations) = (u32::from(uop.stations), self.core.reservation_stations);
        let full = |c: &Calendar| c.waiting() + needs > stations || uops.iter().any(|u| !c.has_room(u.ports, u.own));
        while self.calendar.waiting() > 0 && full(&self.calendar) {
            self.calendar.step();
            late = Cause::Window;
            self.begin_cycle::<PLAIN>();
            if self.calendar.now() >= until {
                return (until, late);
            }
        }
        if !PLAIN && self.core.rename.written_reads > 0 && !self.reads_fit(lists, uops) {
            self.calendar.step();
            late = Cause::ReadPorts;
            self.begin_cycle::<PLAIN>();
            self.reads_fit(lists, uops);
        }
        self.renamed_now += 1;
        let now = self.calendar.now();
        self.front.renamed(now);
        (now, late)
    }

    /// Nothing has been renamed in this cycle.
    #[inline(always)]
    fn begin_cycle<const PLAIN: bool>(&mut self) {
        self.renamed_now = 0;
        if !PLAIN {
            self.read_now.clear();
        }
    }

    /// Do the written registers it reads fit into this cycle? Then they are
    /// read. The first micro-operation of a cycle always fits.
    pub(super) fn reads_fit(&mut self, lists: &Lists, uops: &[Uop]) -> bool {
        let now = self.calendar.now();
        let before = self.read_now.len();
        for (n, uop) in uops.iter().enumerate() {
            // What one of them hands to the next comes from no register.
            let own = |r: u16| uops[..n].iter().any(|u| lists.results(u).iter().any(|made| made.reg == r));
            for &r in lists.sources(uop) {
                if self.values[usize::from(r)].at() <= now && !self.read_now.contains(&r) && !own(r) {
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
        let mut last = Value::new(0, Cause::Frontend);
        for r in uop.first {
            last = last.or_later(self.values[usize::from(r)]);
        }
        if usize::from(uop.sources.1) > FIRST {
            for &r in &lists.sources(uop)[FIRST..] {
                last = last.or_later(self.values[usize::from(r)]);
            }
        }
        (last.at(), last.cause())
    }
}
