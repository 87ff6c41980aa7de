//! The core: instructions in program order in, cycles and counts out.
//!
//! [`Pipeline::run`] is told what was executed, a straight run of code at a
//! time, and gives every micro-operation its cycles as it passes: renamed,
//! started, ended, retired. Nothing is stepped cycle by cycle.
//!
//! Here is the way of one instruction through the core; its steps are in
//! [`rename`], [`execute`] and [`branch`], counting in [`tally`] (what is counted is in
//! [`marks`], what is the same each time in [`sums`]), what is done with long runs in
//! [`sampled`]. [`outside`] has all that the core asks of caches and predictors ([`question`]:
//! what can be asked), [`memo`] what it need not work out twice ([`asked`]: what of it is kept;
//! [`recall`]: how it is used), [`state`] the core's state and what of it that depends on.

mod asked;
mod branch;
mod execute;
mod marks;
mod memo;
mod outside;
mod question;
mod recall;
mod rename;
mod sampled;
mod state;
mod sums;
mod tally;

pub use state::{Access, Pipeline};

use crate::chain::Chains;
use crate::code::{Code, Jump};
use crate::events::Cause;
use crate::log::Row;
use crate::uop::Kind;
use ciphermill_machine::core::{Core, Renaming};
use execute::Done;
use memo::Run;
use question::Question;
use state::Value;

impl Pipeline {
    /// Follow the longest chain of dependences from now on.
    pub fn follow_chains(&mut self) {
        let load = &self.core.load;
        let renamed = (load.renaming != Renaming::No).then_some(load.renamed_cycles);
        self.chains = Some(Chains::new(self.code.registers, load.latency, load.forward_latency, renamed));
    }

    /// Its cycles so far.
    pub fn longest_chain(&self) -> u64 {
        self.chains.as_ref().map_or(0, |c| c.longest)
    }

    /// The cycle in which the next call will begin.
    pub fn next_call(&self) -> u64 {
        self.retire_cycle.max(self.stores.last_drained()).max(self.calendar.now()) + 1
    }

    /// A call begins: on an empty pipeline, with all registers there.
    pub fn begin(&mut self) {
        self.leave();
        let at = self.next_call();
        self.calendar.restart(at);
        self.front.redirect(at, Cause::Frontend);
        self.values.fill(Value::new(at, Cause::Base));
        self.wholes.fill(0);
        (self.recover, self.last_start, self.renamed_now) = (at, at, 0);
        self.read_now.clear();
        (self.begun, self.retire_cycle, self.retire_place) = (at, at, u64::MAX);
    }

    /// The call has ended, and its last instruction has retired.
    pub fn end(&mut self) {
        self.leave();
        let width = u64::from(self.core.retire.width);
        if self.retire_place == u64::MAX || self.windows.is_some() {
            return;
        }
        self.tally.cycles += self.retire_cycle + 1 - self.begun;
        // The last cycle is used as far as there was something to retire.
        self.places[Cause::Base as usize] += width - 1 - self.retire_place;
        self.retire_place = u64::MAX;
    }

    /// `count` instructions from `first` on have executed. The last one, if it is a jump, was
    /// `taken` or not, and `next` comes after it (`NONE`: the call returned).
    /// `accesses` are all that they made, in program order.
    ///
    /// # Errors
    /// When the accesses are not those that the instructions make.
    pub fn run(&mut self, first: u32, count: u32, taken: bool, next: u32, accesses: &[Access]) -> Result<(), String> {
        let before = self.tally.instructions;
        if !self.times() {
            self.warm(first, count, taken, next, accesses);
            self.pass(self.tally.instructions - before);
            return Ok(());
        }
        if accesses.len() > usize::from(u16::MAX) {
            return Err(format!("{} accesses to memory in one run of code", accesses.len()));
        }
        self.next = next;
        let run = Run { first, count, taken, next };
        if self.recall(run, accesses) {
            self.pass(self.tally.instructions - before);
            return Ok(());
        }
        self.straight(run, accesses)?;
        self.remember(run);
        if let Some(later) = &mut self.later {
            later.worked += self.tally.instructions - before;
        }
        self.pass(self.tally.instructions - before);
        Ok(())
    }

    fn straight(&mut self, run: Run, accesses: &[Access]) -> Result<(), String> {
        let plain = self.is_plain();
        self.count_run(run, accesses.len(), !plain)?;
        match plain {
            true => self.each::<true>(run, accesses),
            false => self.each::<false>(run, accesses),
        }
        Ok(())
    }

    /// Is nothing kept of single micro-operations, and has the core none of the rules that few have?
    fn is_plain(&self) -> bool {
        let kept = self.log.is_some() || self.chains.is_some();
        !kept && !self.stalls && !self.core.in_order && self.core.rename.written_reads == 0
    }

    /// All instructions of a run; [`Pipeline::is_plain`] is known.
    fn each<const PLAIN: bool>(&mut self, run: Run, accesses: &[Access]) {
        let Run { first, count, taken, .. } = run;
        let code = self.code.clone();
        let mut at = 0;
        let mut n = first;
        let end = first + count;
        while n < end {
            let inst = &code.insts[n as usize];
            let pair = inst.pairs && n + 1 < end;
            let parts = if pair { &code.insts[n as usize + 1].pair } else { &inst.parts };
            if inst.bytes > 0 {
                self.instruction::<PLAIN>(&code, n, pair, (at, accesses), taken && n + 1 + u32::from(pair) == end);
            }
            at += usize::from(parts.loads + parts.stores);
            n += 1 + u32::from(pair);
        }
    }

    #[inline(always)]
    fn instruction<const PLAIN: bool>(
        &mut self,
        code: &Code,
        n: u32,
        pair: bool,
        (at, accesses): (usize, &[Access]),
        taken: bool,
    ) {
        let inst = &code.insts[n as usize];
        let second = if pair { &code.insts[n as usize + 1] } else { inst };
        let parts = if pair { &second.pair } else { &inst.parts };
        let retired_before = self.tally.instructions;
        if !PLAIN {
            self.tally.instructions += 1 + u64::from(pair);
        }
        let mut fetched = self.fetch(inst, false);
        if pair {
            fetched = self.fetch(second, true);
        }
        let decoded = self.front.decode(fetched, u32::from(parts.slots));
        if pair {
            self.front.decode_paired();
        }
        let why = self.front.why();
        let (mut load, mut store) = (at, at + usize::from(parts.loads));
        let (mut i, to) = (parts.first as usize, parts.first as usize + usize::from(parts.count));
        let mut outcome = 0;
        let mut restart = 0;
        let split = !self.core.store.data_units.is_empty();
        while i < to {
            let uop = &code.uops[i];
            let last = i + usize::from(uop.fused && i + 1 < to);
            let (renamed, late) = self.rename::<PLAIN>(&code.lists, &code.uops[i..=last], decoded, why, u64::MAX);
            let mut done = Done { start: 0, end: 0, port: 0, cause: Cause::Base };
            let mut finished = false;
            for uop in &code.uops[i..=last] {
                let access = match uop.kind {
                    Kind::Load => {
                        load += 1;
                        Some(load as u16 - 1)
                    }
                    Kind::StoreAddress => {
                        store += 1;
                        Some(store as u16 - 1)
                    }
                    _ => None,
                };
                let (one, again) = self.execute::<PLAIN>(&code.lists, n, uop, access, accesses, (renamed, late));
                restart = restart.max(again);
                if one.end >= done.end {
                    done = one;
                }
                let data = uop.kind == Kind::StoreData || (uop.kind == Kind::StoreAddress && !split);
                if data {
                    self.store.data = one.start;
                    finished = true;
                }
                if PLAIN {
                    continue;
                }
                if let Some(chains) = &mut self.chains {
                    let access = access.and_then(|a| accesses.get(usize::from(a))).map(|a| (a.addr, a.bytes));
                    chains.add(&code.lists, uop, access, data);
                }
                if let Some(log) = &mut self.log {
                    log.push(Row {
                        number: n,
                        retired_before,
                        pair,
                        kind: uop.kind,
                        fetched,
                        decoded,
                        renamed,
                        started: true,
                        start: one.start,
                        end: one.end,
                        port: one.port,
                        retired: 0,
                        wrong: false,
                    });
                }
            }
            let retired = self.retire(done);
            if !PLAIN && let Some(log) = &mut self.log {
                log.retire(last + 1 - i, retired);
            }
            if !PLAIN && self.stalls {
                let whole = retired + 1 + u64::from(self.core.rename.partial_cycles);
                for r in code.uops[i..=last].iter().flat_map(|u| code.lists.results(u)).filter(|r| r.part) {
                    self.wholes[usize::from(r.reg)] = whole;
                }
            }
            // A load never stands second in a pair.
            if uop.kind == Kind::Load {
                self.load_queue[self.load_at] = retired;
                self.load_at = if self.load_at + 1 == self.load_queue.len() { 0 } else { self.load_at + 1 };
            }
            if finished {
                self.commit(n, accesses, retired);
            }
            self.rob[self.rob_at] = retired;
            self.rob_at = if self.rob_at + 1 == self.rob.len() { 0 } else { self.rob_at + 1 };
            outcome = done.end;
            i = last + 1;
        }
        if second.jump != Jump::No {
            let number = n + u32::from(pair);
            self.branch(number, second, taken, outcome);
        }
        if restart > 0 {
            if std::mem::take(&mut self.misnamed) {
                let cycles = self.core.load.misnamed.map_or(0, |m| m.cycles);
                restart = restart.max(self.retire_cycle + u64::from(cycles));
            }
            self.refetch(restart, Cause::Forward);
        }
    }

    /// Fetch an instruction, perhaps the second of a pair: the cycle in which it enters the queue.
    #[inline(always)]
    fn fetch(&mut self, inst: &crate::code::Inst1, second: bool) -> u64 {
        let bytes = u32::from(inst.bytes);
        if let Some(at) = self.front.reach(inst.addr, bytes, self.memory.shift()) {
            let addr = inst.addr + bytes.max(1) - 1;
            let answer = self.ask(Question::Line { addr }, at, &[]);
            self.front.arrived(at + (answer >> 1), answer & 1 != 0);
        }
        if inst.length_changing {
            self.front.length_change(u64::from(self.core.fetch.length_change_cycles));
        }
        self.front.enter(inst.addr, bytes, second)
    }

    /// The next place for retiring from a cycle on.
    #[inline(always)]
    fn retire(&mut self, done: Done) -> u64 {
        let width = u64::from(self.core.retire.width);
        let place = self.retire_place.wrapping_add(1);
        let (mut cycle, mut place) =
            if place == width { (self.retire_cycle + 1, 0) } else { (self.retire_cycle, place) };
        // Without a jump, which nobody would guess.
        let late = done.end.saturating_sub(cycle);
        self.places[done.cause as usize] += if late > 0 { late * width - place } else { 0 };
        place = if late > 0 { 0 } else { place };
        cycle += late;
        (self.retire_cycle, self.retire_place) = (cycle, place);
        cycle
    }

    /// The core that this is.
    pub fn core(&self) -> &Core {
        &self.core
    }
}
