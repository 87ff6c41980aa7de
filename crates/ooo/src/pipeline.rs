//! The core: instructions in program order in, cycles and counts out.
//!
//! [`Pipeline::run`] is told what was executed, a straight run of code at a
//! time, and gives every micro-operation its cycles as it passes: renamed,
//! started, ended, retired. Nothing is stepped cycle by cycle.

use crate::chain::Chains;
use crate::code::{Code, Inst1, Jump, NONE};
use crate::events::{Cause, Counts};
use crate::front::Front;
use crate::log::{Log, Row};
use crate::mem::stores::{Found, Store, Stores};
use crate::mem::{Level, Memory};
use crate::ports::Calendar;
use crate::predict::{Btb, Direction, Indirect, ReturnStack};
use crate::uop::{Kind, Uop};
use ciphermill_machine::Machine;
use ciphermill_machine::core::{Core, Disambiguation, Event};

/// An access to memory, in program order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    pub addr: u32,
    pub bytes: u32,
}

/// When a register's value is there, and who made it.
#[derive(Clone, Copy, Debug)]
struct Value {
    at: u64,
    /// Cycle after which it is read from the register file.
    retired: u64,
    cause: Cause,
}

/// What is counted one by one; the rest is sums.
#[derive(Clone, Copy, Default, Debug)]
struct Tally {
    cycles: u64,
    instructions: u64,
    branches: u64,
    mispredicted: u64,
    conditional: u64,
    conditional_wrong: u64,
    recovery: u64,
    renamed: u64,
    dispatched: u64,
    retired: u64,
    slots: u64,
    wrong_path: u64,
    loads: u64,
    stores: u64,
    forwarded: u64,
    failed: u64,
    violations: u64,
    btb: u64,
    macro_fused: u64,
}

/// A micro-operation's fate.
#[derive(Clone, Copy)]
struct Done {
    start: u64,
    end: u64,
    cause: Cause,
}

/// The core's state.
pub struct Pipeline {
    code: Code,
    core: Core,
    front: Front,
    calendar: Calendar,
    memory: Memory,
    stores: Stores,
    direction: Direction,
    btb: Btb,
    indirect: Indirect,
    returns: ReturnStack,
    values: Vec<Value>,
    saved: Vec<Value>,
    /// Retire cycles of the last micro-operations and loads, in rings.
    rob: Vec<u64>,
    rob_at: usize,
    load_queue: Vec<u64>,
    load_at: usize,
    renamed_now: u32,
    /// Different retired registers read in this cycle.
    read_now: Vec<u16>,
    /// Nothing is renamed before.
    recover: u64,
    recovering: bool,
    /// In order: the last start.
    last_start: u64,
    /// The last place for retiring that was taken: cycle and number in it.
    retire_cycle: u64,
    retire_place: u64,
    /// All older stores have their addresses.
    addresses_known: u64,
    waits: Vec<u8>,
    /// The address half of the store under way.
    store: Store,
    begun: u64,
    tally: Tally,
    places: [u64; Cause::ALL.len()],
    work: Vec<u64>,
    base: crate::mem::Counts,
    base_walks: u64,
    chains: Option<Chains>,
    pub log: Option<Log>,
    /// Bits of an address below the size of every instruction.
    pc_shift: u32,
}

impl Pipeline {
    pub fn new(machine: &Machine, core: &Core, code: Code) -> Pipeline {
        let latencies = code.uops.iter().map(|u| u64::from(u.latency.max(u.busy))).max().unwrap_or(1);
        let slowest = latencies + Memory::worst(core) + u64::from(core.load.forward_latency + core.load.failed_forward_cycles);
        let reach = slowest.saturating_mul(2 * u64::from(core.reorder_buffer) + 2).min(1 << 22) as usize;
        let sizes = code.insts.iter().map(|i| u32::from(i.bytes)).fold(0, |a, b| a | b);
        Pipeline {
            front: Front::new(core),
            calendar: Calendar::new(reach, core.rename.binds_port),
            memory: Memory::new(machine, core),
            stores: Stores::new(core.store.buffers),
            direction: Direction::new(&core.predictor),
            btb: Btb::new(core.predictor.btb_entries, core.predictor.btb_ways),
            indirect: Indirect::new(core.predictor.indirect_entries, core.predictor.indirect_history),
            returns: ReturnStack::new(core.predictor.return_stack),
            values: vec![Value { at: 0, retired: 0, cause: Cause::Base }; code.registers],
            saved: Vec::new(),
            rob: vec![0; core.reorder_buffer.max(1) as usize],
            rob_at: 0,
            load_queue: vec![0; core.load.buffers.max(1) as usize],
            load_at: 0,
            renamed_now: 0,
            read_now: Vec::new(),
            recover: 0,
            recovering: false,
            last_start: 0,
            retire_cycle: 0,
            retire_place: 0,
            addresses_known: 0,
            waits: match core.load.disambiguation {
                Disambiguation::Predict { entries } => vec![0; entries as usize],
                _ => vec![],
            },
            store: Store::default(),
            begun: 0,
            tally: Tally::default(),
            places: [0; Cause::ALL.len()],
            work: vec![0; code.ports.classes.len()],
            base: crate::mem::Counts::default(),
            base_walks: 0,
            chains: None,
            log: None,
            pc_shift: if sizes == 0 { 0 } else { sizes.trailing_zeros().min(2) },
            code,
            core: core.clone(),
        }
    }

    /// Follow the longest chain of dependences from now on.
    pub fn follow_chains(&mut self) {
        self.chains = Some(Chains::new(self.code.registers, self.core.load.latency, self.core.load.forward_latency));
    }

    /// Its cycles so far.
    pub fn longest_chain(&self) -> u64 {
        self.chains.as_ref().map_or(0, |c| c.longest)
    }

    /// A call begins: on an empty pipeline, with all registers there.
    pub fn begin(&mut self) {
        let at = self.retire_cycle.max(self.stores.last_drained()).max(self.calendar.now()) + 1;
        self.calendar.restart(at);
        self.front.redirect(at, Cause::Frontend);
        self.values.fill(Value { at, retired: at, cause: Cause::Base });
        (self.recover, self.recovering, self.last_start, self.renamed_now) = (at, false, at, 0);
        self.read_now.clear();
        (self.begun, self.retire_cycle, self.retire_place) = (at, at, u64::MAX);
    }

    /// The call has ended, and its last instruction has retired.
    pub fn end(&mut self) {
        let width = u64::from(self.core.retire.width);
        if self.retire_place == u64::MAX {
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
        let mut at = 0;
        let mut n = first;
        let end = first + count;
        while n < end {
            let inst = self.code.insts[n as usize];
            let pair = inst.pairs && n + 1 < end;
            let parts = if pair { self.code.insts[n as usize + 1].pair } else { inst.parts };
            let needs = usize::from(parts.loads + parts.stores);
            let Some(made) = accesses.get(at..at + needs) else {
                return Err(format!("the instruction at {:#x} made fewer accesses than its semantics say", inst.addr));
            };
            at += needs;
            if inst.bytes > 0 {
                self.instruction(n, &inst, pair, made, taken && n + 1 + u32::from(pair) == end, next);
            }
            n += 1 + u32::from(pair);
        }
        if at != accesses.len() {
            return Err(format!("{} accesses to memory where the semantics say {at}", accesses.len()));
        }
        Ok(())
    }

    fn instruction(&mut self, n: u32, inst: &Inst1, pair: bool, accesses: &[Access], taken: bool, next: u32) {
        let second = if pair { self.code.insts[n as usize + 1] } else { *inst };
        let parts = if pair { second.pair } else { inst.parts };
        self.tally.instructions += 1 + u64::from(pair);
        self.tally.macro_fused += u64::from(pair);
        let mut fetched = self.front.fetch(inst.addr, u32::from(inst.bytes), Some(&mut self.memory));
        if pair {
            fetched = self.front.fetch(second.addr, u32::from(second.bytes), Some(&mut self.memory));
        }
        let decoded = self.front.decode(fetched, u32::from(parts.slots));
        if pair {
            self.front.decode_paired();
        }
        let why = self.front.why();
        let (mut load, mut store) = (0, usize::from(parts.loads));
        let (mut i, to) = (parts.first as usize, parts.first as usize + usize::from(parts.count));
        let mut outcome = 0;
        let mut restart = 0;
        while i < to {
            let uop = self.code.uops[i];
            let both = uop.fused && i + 1 < to;
            let last = i + usize::from(both);
            let (renamed, late) = self.rename(i, last, decoded, why, u64::MAX);
            let mut done = Done { start: 0, end: 0, cause: Cause::Base };
            let mut finished = false;
            for k in i..=last {
                let uop = self.code.uops[k];
                let access = match uop.kind {
                    Kind::Load => {
                        load += 1;
                        accesses.get(load - 1)
                    }
                    Kind::StoreAddress => {
                        store += 1;
                        accesses.get(store - 1)
                    }
                    _ => None,
                };
                let (one, again) = self.execute(inst, &uop, access.copied(), renamed, late);
                restart = restart.max(again);
                if one.end >= done.end {
                    done = one;
                }
                let split = !self.core.store.data_units.is_empty();
                let data = uop.kind == Kind::StoreData || (uop.kind == Kind::StoreAddress && !split);
                if data {
                    self.store.data = one.start;
                    finished = true;
                }
                self.tally.retired += 1;
                self.work[usize::from(uop.class)] += u64::from(uop.busy);
                if let Some(chains) = &mut self.chains {
                    chains.add(&self.code.lists, &uop, access.map(|a| (a.addr, a.bytes)), data);
                }
                if let Some(log) = &mut self.log {
                    log.push(Row { number: n, kind: uop.kind, fetched, decoded, renamed, start: one.start, end: one.end, retired: 0, wrong: false });
                }
            }
            let retired = self.retire(done);
            if let Some(log) = &mut self.log {
                log.retire(last + 1 - i, retired);
            }
            for k in i..=last {
                let uop = self.code.uops[k];
                for r in self.code.lists.results(&uop) {
                    self.values[usize::from(r.reg)].retired = retired;
                }
                if uop.kind == Kind::Load {
                    self.load_queue[self.load_at] = retired;
                    self.load_at = (self.load_at + 1) % self.load_queue.len();
                    self.tally.loads += 1;
                }
            }
            if finished {
                self.commit(inst, retired);
            }
            self.rob[self.rob_at] = retired;
            self.rob_at = if self.rob_at + 1 == self.rob.len() { 0 } else { self.rob_at + 1 };
            outcome = done.end;
            i = last + 1;
        }
        if second.jump != Jump::No {
            let number = n + u32::from(pair);
            self.branch(number, &second, taken, next, outcome);
        }
        if restart > 0 {
            self.front.redirect(restart, Cause::Forward);
        }
    }

    /// Rename micro-operations `first..=last`, which take one place: the
    /// cycle, and why it was not earlier. Not at or after `until`.
    #[inline(always)]
    fn rename(&mut self, first: usize, last: usize, decoded: u64, why: Cause, until: u64) -> (u64, Cause) {
        let uop = self.code.uops[first];
        let mut late = why;
        let mut at = decoded;
        if at < self.recover {
            if self.recovering {
                self.tally.recovery += self.recover.saturating_sub(at.max(self.calendar.now()));
            }
            (at, late) = (self.recover, Cause::Mispredict);
        }
        self.recovering = false;
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
        let needs = (first..=last).filter(|&k| self.code.uops[k].kind != Kind::Nothing).count() as u32;
        while self.calendar.waiting > 0 && self.calendar.waiting + needs > self.core.reservation_stations {
            self.calendar.step();
            (self.renamed_now, late) = (0, Cause::Window);
            self.read_now.clear();
            if self.calendar.now() >= until {
                return (until, late);
            }
        }
        if self.core.rename.retired_reads > 0 && !self.reads_fit(first, last) {
            self.calendar.step();
            (self.renamed_now, late) = (0, Cause::ReadPorts);
            self.read_now.clear();
            self.reads_fit(first, last);
        }
        self.renamed_now += 1;
        self.tally.renamed += 1;
        let now = self.calendar.now();
        self.front.renamed(now);
        (now, late)
    }

    /// Do the retired registers it reads fit into this cycle? Then they are
    /// read. The first micro-operation of a cycle always fits.
    fn reads_fit(&mut self, first: usize, last: usize) -> bool {
        let now = self.calendar.now();
        let before = self.read_now.len();
        for k in first..=last {
            for &r in self.code.lists.sources(&self.code.uops[k]) {
                if self.values[usize::from(r)].retired <= now && !self.read_now.contains(&r) {
                    self.read_now.push(r);
                }
            }
        }
        let fits = self.read_now.len() <= self.core.rename.retired_reads as usize || self.renamed_now == 0;
        if !fits {
            self.read_now.truncate(before);
        }
        fits
    }

    /// When the operands are there, and which of them came last.
    #[inline(always)]
    fn operands(&self, uop: &Uop) -> (u64, Cause) {
        let (mut ready, mut cause) = (0, Cause::Frontend);
        for &r in self.code.lists.sources(uop) {
            let v = &self.values[usize::from(r)];
            if v.at > ready {
                (ready, cause) = (v.at, v.cause);
            }
        }
        (ready, cause)
    }

    /// Start a micro-operation renamed in a cycle; and, where a load was wrong
    /// to pass a store, the cycle in which fetch starts again.
    #[inline(always)]
    fn execute(&mut self, inst: &Inst1, uop: &Uop, access: Option<Access>, renamed: u64, late: Cause) -> (Done, u64) {
        let earliest = renamed + u64::from(self.core.rename.stages);
        let (ready, slow) = self.operands(uop);
        if uop.kind == Kind::Nothing {
            // Its result is there as soon as its source.
            let at = ready.max(renamed);
            self.results(uop, at, None, slow);
            return (Done { start: at, end: at, cause: late }, 0);
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
            (Kind::Load, Some(access)) => self.load(inst, uop, access, start, guess, cause),
            (Kind::StoreAddress, Some(access)) => {
                self.store = Store { addr: access.addr, bytes: access.bytes, address: start + 1, data: start, drained: 0 };
                self.addresses_known = self.addresses_known.max(start + 1);
                (Done { start, end: start + 1, cause }, 0)
            }
            _ => {
                self.results(uop, start, None, Cause::Dependences);
                (Done { start, end: start + u64::from(uop.latency), cause }, 0)
            }
        }
    }

    /// Results from a start, with their own latencies or all at once.
    #[inline(always)]
    fn results(&mut self, uop: &Uop, start: u64, all: Option<u64>, cause: Cause) {
        for r in self.code.lists.results(uop) {
            let at = all.unwrap_or(start + u64::from(r.latency));
            self.values[usize::from(r.reg)] = Value { at, retired: u64::MAX, cause };
        }
    }

    /// May a load start before all older stores have their addresses?
    #[inline(always)]
    fn may_pass(&self, inst: &Inst1) -> bool {
        match self.core.load.disambiguation {
            Disambiguation::Wait => false,
            Disambiguation::Perfect => true,
            Disambiguation::Predict { .. } => self.waits[self.wait_at(inst)] == 0,
        }
    }

    fn wait_at(&self, inst: &Inst1) -> usize {
        (inst.addr >> self.pc_shift) as usize & (self.waits.len() - 1)
    }

    fn load(&mut self, inst: &Inst1, uop: &Uop, access: Access, start: u64, passed: bool, mut cause: Cause) -> (Done, u64) {
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
        let from = if matches!(cause, Cause::L2 | Cause::Memory | Cause::Translation | Cause::Forward) { cause } else { Cause::L1 };
        self.results(uop, start, Some(end), from);
        (Done { start, end, cause }, again)
    }

    /// The store under way has retired: it goes to the cache, in order.
    fn commit(&mut self, inst: &Inst1, retired: u64) {
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

    /// The next place for retiring from a cycle on.
    #[inline(always)]
    fn retire(&mut self, done: Done) -> u64 {
        let width = u64::from(self.core.retire.width);
        let place = self.retire_place.wrapping_add(1);
        let (mut cycle, mut place) = if place == width { (self.retire_cycle + 1, 0) } else { (self.retire_cycle, place) };
        if done.end > cycle {
            self.places[done.cause as usize] += (done.end - cycle) * width - place;
            (cycle, place) = (done.end, 0);
        }
        self.places[Cause::Base as usize] += 1;
        self.tally.slots += 1;
        (self.retire_cycle, self.retire_place) = (cycle, place);
        cycle
    }

    fn branch(&mut self, number: u32, inst: &Inst1, taken: bool, next: u32, outcome: u64) {
        let pc = inst.addr >> self.pc_shift;
        self.tally.branches += 1;
        let address = |code: &Code, n: u32| code.insts.get(n as usize).map_or(0, |i| i.addr);
        match inst.jump {
            Jump::No => {}
            Jump::Conditional => {
                self.tally.conditional += 1;
                let guess = self.direction.guess(pc, inst.target <= number);
                self.direction.learn(pc, taken);
                if guess != taken {
                    self.tally.conditional_wrong += 1;
                    let wrong = if guess { inst.target } else { number + 1 };
                    self.mispredicted(wrong, outcome);
                } else if taken {
                    self.follow(number, inst);
                } else {
                    self.front.untaken(number);
                }
            }
            Jump::Direct => self.follow(number, inst),
            Jump::Call => {
                self.returns.push(inst.addr + u32::from(inst.bytes));
                self.follow(number, inst);
            }
            Jump::CallIndirect | Jump::Indirect | Jump::Return => {
                let target = address(&self.code, next);
                let history = self.direction.history();
                let guess = match (inst.jump, self.core.predictor.return_stack) {
                    (Jump::Return, 1..) => self.returns.pop().unwrap_or(0),
                    _ => self.indirect.guess_and_learn(pc, history, target),
                };
                if inst.jump == Jump::CallIndirect {
                    self.returns.push(inst.addr + u32::from(inst.bytes));
                }
                if guess == target || next == NONE {
                    self.follow_to(number, NONE, pc);
                } else {
                    self.mispredicted(NONE, outcome);
                }
            }
        }
    }

    /// Fetch follows a taken branch to its target.
    fn follow(&mut self, number: u32, inst: &Inst1) {
        let pc = inst.addr >> self.pc_shift;
        self.follow_to(number, inst.target, pc);
    }

    fn follow_to(&mut self, number: u32, target: u32, pc: u32) {
        let known = self.btb.knows(pc);
        self.tally.btb += u64::from(!known);
        let back = (target <= number).then(|| {
            let (from, last) = (&self.code.insts[target as usize], &self.code.insts[number as usize]);
            (from.addr, last.addr + u32::from(last.bytes.max(1)) - 1)
        });
        self.front.taken(number, target, back, known);
    }

    /// Fetch goes wrong after a branch, until its outcome is known.
    fn mispredicted(&mut self, wrong: u32, outcome: u64) {
        self.tally.mispredicted += 1;
        if wrong != NONE {
            self.wrong_path(wrong, outcome);
        }
        self.front.redirect(outcome, Cause::Mispredict);
        if self.core.retire.recovers {
            self.recover = self.retire_cycle + 1;
            self.recovering = true;
        } else {
            self.recover = outcome;
        }
    }

    /// What the core does on a path that it leaves in cycle `until`.
    ///
    /// Loads there take the first cache's latency and change no cache; branches
    /// are guessed, and teach nobody; behind a computed jump or a return nothing is fetched.
    fn wrong_path(&mut self, from: u32, until: u64) {
        self.saved.clone_from(&self.values);
        let kept = (self.rob_at, self.load_at, self.last_start, self.addresses_known);
        self.front.turn_away();
        let mut n = from;
        let mut taken_places = 0;
        'path: while let Some(inst) = self.code.insts.get(n as usize).copied() {
            if inst.bytes == 0 {
                n += 1;
                continue;
            }
            let fetched = self.front.fetch(inst.addr, u32::from(inst.bytes), None);
            if fetched >= until {
                break;
            }
            let decoded = self.front.decode(fetched, u32::from(inst.parts.slots));
            if decoded >= until {
                break;
            }
            let (mut i, to) = (inst.parts.first as usize, inst.parts.first as usize + usize::from(inst.parts.count));
            while i < to {
                let last = i + usize::from(self.code.uops[i].fused && i + 1 < to);
                if taken_places == self.rob.len() {
                    break 'path;
                }
                let (renamed, _) = self.rename(i, last, decoded, Cause::Mispredict, until);
                if renamed >= until {
                    break 'path;
                }
                taken_places += 1;
                self.rob[self.rob_at] = 0;
                self.rob_at = if self.rob_at + 1 == self.rob.len() { 0 } else { self.rob_at + 1 };
                for k in i..=last {
                    let uop = self.code.uops[k];
                    if uop.kind == Kind::Load {
                        self.load_queue[self.load_at] = 0;
                        self.load_at = (self.load_at + 1) % self.load_queue.len();
                    }
                    self.start_wrong(n, &uop, fetched, decoded, renamed, until);
                }
                i = last + 1;
            }
            n = match inst.jump {
                Jump::No => n + 1,
                Jump::Conditional => {
                    let pc = inst.addr >> self.pc_shift;
                    if self.direction.guess(pc, inst.target <= n) {
                        self.front.taken(n, inst.target, None, true);
                        inst.target
                    } else {
                        n + 1
                    }
                }
                Jump::Direct | Jump::Call => {
                    self.front.taken(n, inst.target, None, true);
                    inst.target
                }
                Jump::CallIndirect | Jump::Indirect | Jump::Return => break,
            };
        }
        std::mem::swap(&mut self.values, &mut self.saved);
        (self.rob_at, self.load_at, self.last_start, self.addresses_known) = kept;
    }

    /// A micro-operation that will be thrown away: it starts if it can before that.
    fn start_wrong(&mut self, number: u32, uop: &Uop, fetched: u64, decoded: u64, renamed: u64, until: u64) {
        let (ready, _) = self.operands(uop);
        if uop.kind == Kind::Nothing {
            self.results(uop, ready.max(renamed), None, Cause::Base);
            return;
        }
        let mut from = ready.max(renamed + u64::from(self.core.rename.stages));
        if self.core.in_order {
            from = from.max(self.last_start);
        }
        let (start, port) = match from < until {
            true => self.calendar.find(self.calendar.bind(uop.ports), uop.busy, from),
            false => (until, 0),
        };
        if start >= until {
            self.calendar.wait_until(until);
            self.results(uop, 0, Some(u64::MAX / 2), Cause::Base);
            return;
        }
        self.calendar.take(port, uop.busy, start);
        self.last_start = start;
        self.tally.dispatched += 1;
        self.tally.wrong_path += 1;
        self.results(uop, start, None, Cause::Base);
        if let Some(log) = &mut self.log {
            let end = start + u64::from(uop.latency);
            log.push(Row { number, kind: uop.kind, fetched, decoded, renamed, start, end, retired: until, wrong: true });
        }
    }

    /// Zero all counts. What caches and predictors know stays.
    pub fn reset(&mut self) {
        self.tally = Tally::default();
        self.places = [0; Cause::ALL.len()];
        self.work.fill(0);
        self.calendar.starts = [0; 32];
        self.base = self.memory.counts;
        self.base_walks = self.memory.walks();
    }

    /// Everything counted since the last reset.
    pub fn counts(&self) -> Counts {
        let (t, m, b) = (&self.tally, &self.memory.counts, &self.base);
        let of = |name: &str| match name {
            "cycles" => t.cycles,
            "instructions" => t.instructions,
            "branches" => t.branches,
            "branches_mispredicted" => t.mispredicted,
            "conditional_branches" => t.conditional,
            "conditional_mispredicted" => t.conditional_wrong,
            "l1d_lines_in" => m.l1d_lines - b.l1d_lines,
            "l1d_accesses" => m.l1d_accesses - b.l1d_accesses,
            "l1d_misses" => m.l1d_misses - b.l1d_misses,
            "l1d_writebacks" => m.l1d_writebacks - b.l1d_writebacks,
            "l1i_misses" => m.l1i_misses - b.l1i_misses,
            "l2_lines_in" => m.l2_lines - b.l2_lines,
            "l2_accesses" => m.l2_accesses - b.l2_accesses,
            "l2_misses" => m.l2_misses - b.l2_misses,
            "l2_writebacks" => m.l2_writebacks - b.l2_writebacks,
            "dtlb_misses" => self.memory.walks() - self.base_walks,
            "branch_recovery_stalls" => t.recovery,
            "uops_renamed" => t.renamed,
            "uops_dispatched" => t.dispatched,
            "uops_retired" => t.retired,
            "uops_retired_fused" => t.slots,
            "uops_fused_pairs" => t.retired - t.slots + t.macro_fused,
            "uops_wrong_path" => t.wrong_path,
            "loads_retired" => t.loads,
            "stores_retired" => t.stores,
            "loads_forwarded" => t.forwarded,
            "forwards_failed" => t.failed,
            "memory_order_violations" => t.violations,
            "btb_misses" => t.btb,
            "macro_fused" => t.macro_fused,
            "prefetches" => m.prefetches - b.prefetches,
            _ => 0,
        };
        Counts {
            events: Event::NAMES.iter().map(|n| of(n)).collect(),
            places: self.places.to_vec(),
            retire_width: u64::from(self.core.retire.width),
            work: self.code.ports.classes.iter().copied().zip(self.work.iter().copied()).filter(|w| w.0 != 0).collect(),
            starts: self.code.ports.names.iter().cloned().zip(self.calendar.starts).collect(),
        }
    }

    /// The core that this is.
    pub fn core(&self) -> &Core {
        &self.core
    }
}
