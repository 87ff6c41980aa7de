//! Starting: operands, ports, loads and stores.

use super::question::{Data, Older, Question};
use super::state::{Access, Pipeline, Value};
use crate::events::Cause;
use crate::mem::Level;
use crate::mem::stores::{Forwarding, Store, StoreMatch};
use crate::uop::{Kind, Lists, Uop};
use ciphermill_machine::core::{Disambiguation, Renaming};

/// A micro-operation's fate.
#[derive(Clone, Copy)]
pub(super) struct Done {
    pub(super) start: u64,
    pub(super) end: u64,
    /// A set of one; 0: it takes none.
    pub(super) port: u32,
    pub(super) cause: Cause,
}

impl Pipeline {
    /// Start a micro-operation renamed in a cycle; and, where a load was wrong
    /// to pass a store, the cycle in which fetch starts again.
    #[inline(always)]
    pub(super) fn execute<const PLAIN: bool>(
        &mut self,
        lists: &Lists,
        number: u32,
        uop: &Uop,
        access: Option<u16>,
        accesses: &[Access],
        (renamed, late): (u64, Cause),
    ) -> (Done, u64) {
        let earliest = renamed + u64::from(self.core.rename.stages);
        let (ready, slow) = self.operands(lists, uop);
        if uop.kind == Kind::Nothing {
            // Its result is there as soon as its source.
            let at = ready.max(renamed);
            self.results::<PLAIN>(lists, uop, at, None, slow);
            return (Done { start: at, end: at, port: 0, cause: late }, 0);
        }
        let (mut from, mut cause) = if ready > earliest { (ready, slow) } else { (earliest, late) };
        if !PLAIN && self.core.in_order && self.last_start > from {
            (from, cause) = (self.last_start, Cause::Dependences);
        }
        let (seen, guess) = match (uop.kind, access) {
            (Kind::Load, Some(access)) => self.older(number, access, accesses),
            _ => (StoreMatch::default(), true),
        };
        if !guess && self.addresses_known > from {
            (from, cause) = (self.addresses_known, Cause::Forward);
        }
        let ports = self.calendar.bind(uop.ports, uop.own);
        let (start, port, other) = self.place(uop, ports, from);
        self.occupy(lists, uop, port, start);
        self.calendar.pass(other, start);
        self.last_start = start;
        if start > from {
            cause = Cause::Ports;
        }
        match (uop.kind, access) {
            (Kind::Load, Some(access)) => {
                self.load::<PLAIN>(lists, number, uop, (access, accesses), (renamed, start, port), (seen, guess), cause)
            }
            (Kind::StoreAddress, Some(access)) => {
                self.store = Store { address: start + 1, data: start, drained: 0 };
                self.stored = access;
                self.addresses_known = self.addresses_known.max(start + 1);
                (Done { start, end: start + 1, port, cause }, 0)
            }
            _ => {
                self.results::<PLAIN>(lists, uop, start, None, Cause::Dependences);
                (Done { start, end: start + u64::from(uop.latency), port, cause }, 0)
            }
        }
    }

    /// Take its port. A place is kept for what may have to start again because it was started for a load that came
    /// late; a store's address is an end in itself, and gives its place back when it starts (chains of loads with stores
    /// between them, EPYC 9005, 2026-11-27).
    #[inline(always)]
    pub(super) fn occupy(&mut self, lists: &Lists, uop: &Uop, port: u32, start: u64) {
        if uop.kind == Kind::StoreAddress {
            self.calendar.take_until(port, uop.busy, uop.ends(), start, start);
        } else {
            self.calendar.overtaken.results = uop.results;
            self.calendar.take(port, uop.busy, uop.ends(), start);
            if !self.calendar.overtaken.moved.is_empty() {
                self.overtaken(lists);
            }
        }
    }

    /// Results that come later than was said, where nothing younger has been written there since.
    #[cold]
    fn overtaken(&mut self, lists: &Lists) {
        for moved in self.calendar.overtaken.moved.drain(..) {
            for r in &lists.results[moved.results.0 as usize..][..usize::from(moved.results.1)] {
                let (value, latency) = (&mut self.values[usize::from(r.reg)], u64::from(r.latency));
                if value.at() == moved.from + latency {
                    *value = Value::new(moved.to + latency, value.cause());
                }
            }
        }
    }

    /// When it starts, where, and the other unit that a store's data may pass through (0: none).
    #[inline(always)]
    pub(super) fn place(&mut self, uop: &Uop, ports: u32, from: u64) -> (u64, u32, u32) {
        if uop.kind == Kind::StoreData && self.through != 0 {
            return self.calendar.find_with(ports, self.through, from);
        }
        let (start, port) = self.calendar.find(ports, uop.busy, uop.ends(), from);
        (start, port, 0)
    }

    /// Results from a start, with their own latencies or all at once.
    #[inline(always)]
    pub(super) fn results<const PLAIN: bool>(
        &mut self,
        lists: &Lists,
        uop: &Uop,
        start: u64,
        all: Option<u64>,
        cause: Cause,
    ) {
        for r in lists.results(uop) {
            let at = all.unwrap_or(start + u64::from(r.latency));
            self.values[usize::from(r.reg)] = Value::new(at, cause);
            if !PLAIN && self.stalls {
                self.wholes[usize::from(r.reg)] = 0;
            }
        }
    }

    /// Which older stores matter to a load, and may it start before all of them have their
    /// addresses?
    #[inline(always)]
    fn older(&mut self, number: u32, access: u16, accesses: &[Access]) -> (StoreMatch, bool) {
        let older = Older::unpack(self.ask(Question::Load { pc: self.pc(number), access }, 0, accesses));
        let passes = match self.core.load.disambiguation {
            Disambiguation::Wait => false,
            Disambiguation::Perfect => true,
            Disambiguation::Predict { .. } => older.passes,
        };
        (older.seen, passes)
    }

    #[expect(clippy::too_many_arguments, reason = "what is decided so far, each once")]
    #[inline(always)]
    pub(super) fn load<const PLAIN: bool>(
        &mut self,
        lists: &Lists,
        number: u32,
        uop: &Uop,
        (access, accesses): (u16, &[Access]),
        (renamed, start, port): (u64, u64, u32),
        (seen, passed): (StoreMatch, bool),
        mut cause: Cause,
    ) -> (Done, u64) {
        let load = &self.core.load;
        // The address's form may make it longer.
        let latency = u64::from(uop.latency);
        let forward = u64::from(load.forward_latency) + latency - u64::from(load.latency);
        let failed = u64::from(load.failed_forward_cycles);
        let violation = u64::from(load.violation_cycles);
        let predicts = matches!(load.disambiguation, Disambiguation::Predict { .. });
        let split = u64::from(load.split_cycles);
        let mut again = 0;
        if self.memo.listens {
            self.memo.still(self.stores.under_way(start));
        }
        // It looks again once the store that it took for its own is in the cache.
        let looks = self.stores.blocked(seen.alias, start).unwrap_or(start);
        if looks > start {
            self.tally.aliased += 1;
            cause = Cause::Forward;
        }
        let mut waited = looks;
        let found = self.stores.find(seen.overlap, looks);
        let early = if uop.unnamed { None } else { self.renamed_load(number, seen, &found, accesses) };
        if early.is_some() {
            // It knew its store.
        } else if let Forwarding::Whole { address, .. } | Forwarding::Part { address, .. } = found
            && address > looks
        {
            // The address of the store it needs came after it had started.
            if passed && predicts {
                self.tally.violations += 1;
                again = address + violation;
                self.ask(Question::Passed { pc: self.pc(number), wrong: true }, 0, accesses);
            }
            waited = address;
        } else if predicts && !passed {
            self.ask(Question::Passed { pc: self.pc(number), wrong: false }, 0, accesses);
        }
        let end = match found {
            Forwarding::Whole { data, .. } => {
                self.tally.forwarded += 1;
                let end = waited.max(data) + forward;
                if end > start + latency {
                    cause = Cause::Forward;
                }
                end
            }
            Forwarding::Part { drained, .. } => {
                self.tally.failed += 1;
                cause = Cause::Forward;
                waited.max(drained) + failed + latency
            }
            Forwarding::Nothing => {
                let got = Data::unpack(self.ask(
                    Question::Data { pc: self.pc(number), access, write: false },
                    looks,
                    accesses,
                ));
                match got.level {
                    _ if got.translated && got.level == Level::First => cause = Cause::Translation,
                    Level::First => {}
                    Level::Second => cause = Cause::L2,
                    Level::Memory => cause = Cause::Memory,
                }
                looks + got.later + latency + if got.crosses { split } else { 0 }
            }
        };
        let from = if matches!(cause, Cause::L2 | Cause::Memory | Cause::Translation | Cause::Forward) {
            cause
        } else {
            Cause::L1
        };
        if uop.misnamed && self.ask(Question::Misnamed { number }, 0, accesses) != 0 {
            self.tally.misnamed += 1;
            self.misnamed = true;
            again = again.max(1);
        }
        let known = early.map_or(end, |at| at.max(renamed).min(end));
        self.results::<PLAIN>(lists, uop, start, Some(known), from);
        (Done { start, end, port, cause }, again)
    }

    /// When a load has its value from an older store whose name it was given; none: it has no such store.
    #[inline(always)]
    fn renamed_load(&mut self, number: u32, seen: StoreMatch, found: &Forwarding, accesses: &[Access]) -> Option<u64> {
        let load = &self.core.load;
        let (Forwarding::Whole { data, .. }, Some(store)) = (found, seen.overlap) else { return None };
        if load.renaming == Renaming::No || !store.first || store.younger > load.renaming_distance {
            return None;
        }
        let at = data + u64::from(load.renamed_cycles);
        let younger = u8::try_from(store.younger).ok()?;
        (self.ask(Question::Renames { pc: self.pc(number), younger }, 0, accesses) != 0).then_some(at)
    }

    /// The store under way has retired: it goes to the cache, in order.
    pub(super) fn commit(&mut self, number: u32, accesses: &[Access], retired: u64) {
        let at = retired + 1;
        let question = Question::Data { pc: self.pc(number), access: self.stored, write: true };
        let data = Data::unpack(self.ask(question, at, accesses));
        let next = self.stores.next_commit(self.core.store.commits, data.apart);
        let there = at + data.later;
        self.store.drained = there.max(next);
        self.stores.settle(self.store);
    }
}
