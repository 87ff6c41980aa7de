//! Starting: operands, ports, loads and stores.

use super::{Access, Pipeline, Value};
use crate::code::Inst1;
use crate::events::Cause;
use crate::mem::Level;
use crate::mem::stores::{Found, Store};
use crate::uop::{Kind, Lists, Uop};
use ciphermill_machine::core::Disambiguation;

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
    pub(super) fn execute(
        &mut self,
        lists: &Lists,
        inst: &Inst1,
        uop: &Uop,
        access: Option<Access>,
        renamed: u64,
        late: Cause,
    ) -> (Done, u64) {
        let earliest = renamed + u64::from(self.core.rename.stages);
        let (ready, slow) = self.operands(lists, uop);
        if uop.kind == Kind::Nothing {
            // Its result is there as soon as its source.
            let at = ready.max(renamed);
            self.results(lists, uop, at, None, slow);
            return (Done { start: at, end: at, port: 0, cause: late }, 0);
        }
        let (mut from, mut cause) = if ready > earliest { (ready, slow) } else { (earliest, late) };
        if self.core.in_order && self.last_start > from {
            (from, cause) = (self.last_start, Cause::Dependences);
        }
        let guess = match (uop.kind, access) {
            (Kind::Load, Some(_)) => self.may_pass(inst),
            _ => true,
        };
        if !guess && self.addresses_known > from {
            (from, cause) = (self.addresses_known, Cause::Forward);
        }
        let ports = self.calendar.bind(uop.ports);
        let (start, port) = self.calendar.find(ports, uop.busy, from);
        self.calendar.take(port, uop.busy, start);
        self.last_start = start;
        self.tally.dispatched += 1;
        if start > from {
            cause = Cause::Ports;
        }
        match (uop.kind, access) {
            (Kind::Load, Some(access)) => self.load(lists, inst, uop, access, (start, port), guess, cause),
            (Kind::StoreAddress, Some(access)) => {
                self.store =
                    Store { addr: access.addr, bytes: access.bytes, address: start + 1, data: start, drained: 0 };
                self.addresses_known = self.addresses_known.max(start + 1);
                (Done { start, end: start + 1, port, cause }, 0)
            }
            _ => {
                self.results(lists, uop, start, None, Cause::Dependences);
                (Done { start, end: start + u64::from(uop.latency), port, cause }, 0)
            }
        }
    }

    /// Results from a start, with their own latencies or all at once.
    #[inline(always)]
    pub(super) fn results(&mut self, lists: &Lists, uop: &Uop, start: u64, all: Option<u64>, cause: Cause) {
        for r in lists.results(uop) {
            let at = all.unwrap_or(start + u64::from(r.latency));
            self.values[usize::from(r.reg)] = Value { at, retired: u64::MAX, cause };
        }
    }

    /// May a load start before all older stores have their addresses?
    #[inline(always)]
    pub(super) fn may_pass(&self, inst: &Inst1) -> bool {
        match self.core.load.disambiguation {
            Disambiguation::Wait => false,
            Disambiguation::Perfect => true,
            Disambiguation::Predict { .. } => self.waits[self.wait_at(inst)] == 0,
        }
    }

    pub(super) fn wait_at(&self, inst: &Inst1) -> usize {
        (inst.addr >> self.pc_shift) as usize & (self.waits.len() - 1)
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn load(
        &mut self,
        lists: &Lists,
        inst: &Inst1,
        uop: &Uop,
        access: Access,
        (start, port): (u64, u32),
        passed: bool,
        mut cause: Cause,
    ) -> (Done, u64) {
        let load = &self.core.load;
        let (latency, forward) = (u64::from(load.latency), u64::from(load.forward_latency));
        let failed = u64::from(load.failed_forward_cycles);
        let violation = u64::from(load.violation_cycles);
        let predicts = matches!(load.disambiguation, Disambiguation::Predict { .. });
        let crosses = self.memory.line(access.addr) != self.memory.line(access.addr.wrapping_add(access.bytes - 1));
        let split = if crosses { u64::from(load.split_cycles) } else { 0 };
        let mut again = 0;
        let mut waited = start;
        let found = self.stores.find(access.addr, access.bytes, start);
        if let Found::Whole { address, .. } | Found::Part { address, .. } = found
            && address > start
        {
            // The address of the store it needs came after it had started.
            if passed && predicts {
                self.tally.violations += 1;
                again = address + violation;
                let at = self.wait_at(inst);
                self.waits[at] = 15;
            }
            waited = address;
        } else if predicts && !passed {
            let at = self.wait_at(inst);
            self.waits[at] -= 1;
        }
        let end = match found {
            Found::Whole { data, .. } => {
                self.tally.forwarded += 1;
                let end = waited.max(data) + forward;
                if end > start + latency {
                    cause = Cause::Forward;
                }
                end
            }
            Found::Part { drained, .. } => {
                self.tally.failed += 1;
                cause = Cause::Forward;
                waited.max(drained) + failed + latency
            }
            Found::Nothing => {
                let pc = inst.addr >> self.pc_shift;
                let got = self.memory.data(pc, access.addr, start, false);
                let mut ready = got.start;
                if crosses {
                    let last = access.addr.wrapping_add(access.bytes - 1);
                    ready = ready.max(self.memory.data(pc, last, start, false).start);
                }
                match got.level {
                    _ if got.translation > 0 && got.level == Level::First => cause = Cause::Translation,
                    Level::First => {}
                    Level::Second => cause = Cause::L2,
                    Level::Memory => cause = Cause::Memory,
                }
                ready + latency + split
            }
        };
        let from = if matches!(cause, Cause::L2 | Cause::Memory | Cause::Translation | Cause::Forward) {
            cause
        } else {
            Cause::L1
        };
        self.results(lists, uop, start, Some(end), from);
        (Done { start, end, port, cause }, again)
    }

    /// The store under way has retired: it goes to the cache, in order.
    pub(super) fn commit(&mut self, inst: &Inst1, retired: u64) {
        self.tally.stores += 1;
        let at = retired + 1;
        let pc = inst.addr >> self.pc_shift;
        let got = self.memory.data(pc, self.store.addr, at, true);
        let last = self.store.addr.wrapping_add(self.store.bytes - 1);
        let mut there = got.start;
        if self.memory.line(last) != self.memory.line(self.store.addr) {
            there = there.max(self.memory.data(pc, last, at, true).start);
        }
        self.store.drained = there.max(at).max(self.stores.last_drained() + 1);
        self.stores.push(self.store);
    }
}
