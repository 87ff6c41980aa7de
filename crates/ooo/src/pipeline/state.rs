//! The core's state, and for the memo all of it that its future cycles depend on, apart
//! from what [`super::outside`] answers; written relative to the cycle that renaming has
//! come to.
//!
//! What can no longer matter is written as if it were just past: an operand
//! that was there long ago is one that is there now. Each such line below is a
//! promise about a comparison elsewhere in this crate; a test runs programs
//! with and without the memo, and every count has to be the same.

use super::marks::{Marks, Tally};
use super::memo::Memo;
use super::sums::Sum;
use crate::chain::Chains;
use crate::code::{Code, NONE, pc_shift};
use crate::events::Cause;
use crate::front::Front;
use crate::late::Delayed;
use crate::log::Log;
use crate::mem::Memory;
use crate::mem::stores::{Store, Stores};
use crate::opcache::OpCache;
use crate::overtaken::Overtaken;
use crate::ports::Calendar;
use crate::predict::{Btb, Direction, Indirect, ReturnStack};
use crate::queues::Choice;
use crate::sample::{Sampler, Sampling};
use crate::uop::Kind;
use crate::words::{Reader, Writer};
use ciphermill_machine::Machine;
use ciphermill_machine::core::{Core, Disambiguation, PartialReads, QueueChoice, Renaming};
use std::sync::Arc;

/// Loads whose stores are remembered (`renaming = "distance"`), a power of two: more than loops have.
const DISTANCES: usize = 4096;
/// A distance that no store has.
pub(super) const NOT_SEEN: u8 = u8::MAX;

/// An access to memory, in program order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    pub addr: u32,
    pub bytes: u32,
}

/// When a register's value is there, and, in the lowest eight bits, who made it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value(u64);

impl Value {
    /// A cycle that does not come.
    pub(super) const NEVER: u64 = u64::MAX >> 9;

    #[inline(always)]
    pub(super) fn new(at: u64, cause: Cause) -> Value {
        Value(at << 8 | cause as u64)
    }

    #[inline(always)]
    pub(super) fn at(self) -> u64 {
        self.0 >> 8
    }

    #[inline(always)]
    pub(super) fn cause(self) -> Cause {
        Cause::ALL[self.0 as u8 as usize % Cause::ALL.len()]
    }

    /// The later of two, this one where both come together.
    #[inline(always)]
    pub(super) fn or_later(self, other: Value) -> Value {
        if other.0 > self.0 | 0xff { other } else { self }
    }
}

/// The core's state.
pub struct Pipeline {
    pub(super) code: Arc<Code>,
    pub(super) core: Core,
    pub(super) front: Front,
    pub(super) calendar: Calendar,
    /// Units of which a store's data takes one, too.
    pub(super) through: u32,
    pub(super) memory: Memory,
    pub(super) ops: Option<OpCache>,
    pub(super) stores: Stores,
    /// By a load's address: how many stores were younger than the one it had its value from.
    pub(super) distances: Vec<u8>,
    pub(super) direction: Direction,
    pub(super) btb: Btb,
    pub(super) indirect: Indirect,
    pub(super) returns: ReturnStack,
    pub(super) values: Vec<Value>,
    pub(super) saved: Vec<Value>,
    /// Nothing that reads a register is renamed before: the last write was one of a part. Only where renaming waits for
    /// whole registers.
    pub(super) wholes: Vec<u64>,
    pub(super) saved_wholes: Vec<u64>,
    /// Retire cycles of the last micro-operations and loads, in rings.
    pub(super) rob: Vec<u64>,
    pub(super) rob_at: usize,
    pub(super) load_queue: Vec<u64>,
    pub(super) load_at: usize,
    pub(super) renamed_now: u32,
    /// Renaming waits for whole registers.
    pub(super) stalls: bool,
    /// Different written registers read in this cycle.
    pub(super) read_now: Vec<u16>,
    /// Nothing is renamed before.
    pub(super) recover: u64,
    /// In order: the last start.
    pub(super) last_start: u64,
    /// The last place for retiring that was taken: cycle and number in it.
    pub(super) retire_cycle: u64,
    pub(super) retire_place: u64,
    /// All older stores have their addresses.
    pub(super) addresses_known: u64,
    pub(super) waits: Vec<u8>,
    /// The load under way was taken to read a store that it does not read; loads of which that is known.
    pub(super) misnamed: bool,
    pub(super) known_names: Btb,
    /// The address half of the store under way, and its access's number.
    pub(super) store: Store,
    pub(super) stored: u16,
    /// What comes after the run of code under way.
    pub(super) next: u32,
    pub(super) memo: Memo,
    pub(super) begun: u64,
    pub(super) tally: Tally,
    /// By the first instruction of a run.
    pub(super) sums: Vec<Sum>,
    pub(super) places: [u64; Cause::ALL.len()],
    pub(super) work: Vec<u64>,
    pub(super) base: crate::mem::Counts,
    pub(super) base_walks: u64,
    pub(super) windows: Option<Box<Windows>>,
    pub(super) later: Option<Later>,
    pub(super) chains: Option<Chains>,
    pub log: Option<Log>,
    /// Bits of an address below the size of every instruction.
    pub(super) pc_shift: u32,
}

/// What has been counted in the windows of a sampled run.
pub(super) struct Windows {
    pub(super) sampler: Sampler,
    /// Counts at the start of the window, and sums over those before.
    pub(super) before: Marks,
    pub(super) sums: Marks,
    /// Counts of what was timed as a whole before the first.
    pub(super) whole: Marks,
}

/// Windows that are to begin where little of a run has been seen before.
pub(super) struct Later {
    pub(super) sampling: Sampling,
    /// Instructions after which it is asked again.
    pub(super) at: u64,
    /// Instructions that were worked out since it was asked.
    pub(super) worked: u64,
}

impl Pipeline {
    pub fn new(machine: &Machine, core: &Core, mut code: Code) -> Pipeline {
        let choice = match core.rename.queue_choice {
            _ if core.rename.binds_port => Choice::First,
            QueueChoice::Fewest => Choice::Fewest,
            QueueChoice::InTurn => Choice::InTurn,
            QueueChoice::Scattered => Choice::Scattered(core.rename.queue_slack),
            QueueChoice::Delayed => Choice::Delayed(Delayed {
                cycles: core.rename.queue_delay,
                step: core.rename.queue_step,
                spare: core.rename.queue_spare,
            }),
        };
        // Units that only a store's data passes through are no class's.
        let through = code.ports.mask(&core.store.data_through);
        let classes: Vec<u32> = code.ports.classes.iter().copied().chain((through != 0).then_some(through)).collect();
        let mut calendar = Calendar::new(&code.ports.queues(core), choice, &classes);
        let computations = code.uops.iter().filter(|u| u.kind == Kind::Compute).map(|u| (u.ports, u.latency));
        calendar.set_result_bus(core.result_bus, Overtaken::new(core.result_patience, computations));
        // One more than there are, whose value is always there.
        let values = vec![Value::new(0, Cause::Base); code.registers + 1];
        let stalls = core.rename.partial_reads == PartialReads::Stall;
        let always = code.registers as u16;
        for uop in &mut code.uops {
            uop.own = calendar.own(uop.ports, uop.lot);
            let mut read = code.lists.sources(uop).iter().copied();
            uop.first = std::array::from_fn(|_| read.next().unwrap_or(always));
        }
        let memo = Memo::new(calendar.forgets() && code.ports.names.len() <= 16);
        Pipeline {
            front: Front::new(core),
            calendar,
            through,
            memory: Memory::new(machine, core),
            ops: OpCache::new(&core.fetch, &code),
            stores: Stores::new(core.store.buffers, core.load.alias_bytes, core.load.renaming_bytes),
            distances: match core.load.renaming {
                Renaming::Distance => vec![NOT_SEEN; DISTANCES],
                _ => vec![],
            },
            direction: Direction::new(&core.predictor),
            btb: Btb::new(core.predictor.btb_entries, core.predictor.btb_ways),
            indirect: Indirect::new(core.predictor.indirect_entries, core.predictor.indirect_history),
            returns: ReturnStack::new(core.predictor.return_stack),
            values,
            saved: Vec::new(),
            wholes: if stalls { vec![0; code.registers + 1] } else { vec![] },
            saved_wholes: Vec::new(),
            rob: vec![0; core.reorder_buffer.max(1) as usize],
            rob_at: 0,
            load_queue: vec![0; core.load.buffers.max(1) as usize],
            load_at: 0,
            renamed_now: 0,
            stalls,
            read_now: Vec::new(),
            recover: 0,
            last_start: 0,
            retire_cycle: 0,
            retire_place: 0,
            addresses_known: 0,
            waits: match core.load.disambiguation {
                Disambiguation::Predict { entries } => vec![0; entries as usize],
                _ => vec![],
            },
            misnamed: false,
            known_names: core.load.misnamed.map_or(Btb::new(0, 1), |m| Btb::new(m.entries, m.ways)),
            store: Store::default(),
            stored: 0,
            next: NONE,
            memo,
            begun: 0,
            tally: Tally::default(),
            sums: vec![Sum::default(); code.insts.len()],
            places: [0; Cause::ALL.len()],
            work: vec![0; code.ports.classes.len()],
            base: crate::mem::Counts::default(),
            base_walks: 0,
            windows: None,
            later: None,
            chains: None,
            log: None,
            pc_shift: pc_shift(code.insts.iter().map(|i| u32::from(i.bytes))),
            code: Arc::new(code),
            core: core.clone(),
        }
    }

    /// The first cycle in which something can start that is not renamed yet.
    fn starts(&self) -> u64 {
        self.calendar.now() + u64::from(self.core.rename.stages)
    }

    /// The first cycle in which it matters that a value is there: earlier than that it is looked at while renaming,
    /// where reads are counted.
    fn looks(&self) -> u64 {
        if self.core.rename.written_reads > 0 { self.calendar.now() } else { self.starts() }
    }

    /// The same of a store's data, which a load that knew its store has `renamed_cycles` later.
    fn looks_at_data(&self) -> u64 {
        self.looks().saturating_sub(u64::from(self.core.load.renamed_cycles))
    }

    /// Write the state between two instructions.
    pub(super) fn save(&self, w: &mut Writer) {
        let now = self.calendar.now();
        let starts = self.starts();
        self.front.save(w, now);
        self.calendar.save(w, starts);
        // A copy that is no micro-operation ends with its source, which only matters behind the last that has retired.
        let there = self.looks().min(self.retire_cycle.max(now));
        let count = w.words.len();
        w.number(0);
        for r in self.code.live.before(self.next) {
            let v = self.values[r];
            let whole = self.wholes.get(r).copied();
            if v.at() > there || whole.is_some_and(|whole| whole > now) {
                w.words[count] += 1;
                w.number(r as u64);
                w.after(v.at(), now);
                w.number(if v.at() > now { v.cause() as u64 } else { 0 });
                if let Some(whole) = whole {
                    w.after(whole, now);
                }
            }
        }
        // The next `k` places are taken in as many cycles as it takes to rename so many. A place is free the cycle after
        // its tenant has retired.
        let width = u64::from(self.core.rename.width.max(1));
        let renamed = u64::from(self.renamed_now);
        let taken = |k: usize| now + (renamed + k as u64).saturating_sub(1) / width;
        w.places(&self.rob, self.rob_at, now, taken);
        w.places(&self.load_queue, self.load_at, now, taken);
        self.stores.save(w, (now, starts, self.looks_at_data()), self.retire_cycle, taken);
        w.number(u64::from(self.renamed_now));
        // Whether a register is in the list counts, and how many are.
        w.number(self.read_now.len() as u64);
        let read = w.words.len();
        self.read_now.iter().for_each(|&r| w.number(u64::from(r)));
        w.words[read..].sort_unstable();
        w.after(self.recover, now);
        w.after(if self.core.in_order { self.last_start } else { 0 }, starts);
        w.after(self.addresses_known, starts);
        w.around(self.retire_cycle, now);
        w.number(self.retire_place);
    }

    /// Set a state up again, as if renaming had come to this cycle, after so many stores.
    pub(super) fn restore(&mut self, words: &[u16], now: u64, stores: u64) {
        let r = &mut Reader::new(words);
        self.front.restore(r, now);
        self.calendar.restore(r, now);
        let starts = self.starts();
        self.values.fill(Value::new(now, Cause::ALL[0]));
        self.wholes.fill(0);
        for _ in 0..r.number() {
            let register = r.number() as usize;
            let at = r.after(now);
            let cause = Cause::ALL[r.number() as usize % Cause::ALL.len()];
            self.values[register] = Value::new(at, cause);
            if let Some(whole) = self.wholes.get_mut(register) {
                *whole = r.after(now);
            }
        }
        r.places(&mut self.rob, now);
        r.places(&mut self.load_queue, now);
        (self.rob_at, self.load_at) = (0, 0);
        self.stores.restore(r, (now, starts, self.looks_at_data()), stores);
        self.renamed_now = r.number() as u32;
        let reading = r.number();
        self.read_now.clear();
        self.read_now.extend((0..reading).map(|_| r.number() as u16));
        self.recover = r.after(now);
        self.last_start = r.after(starts);
        self.addresses_known = r.after(starts);
        self.retire_cycle = r.around(now);
        self.retire_place = r.number();
    }
}
