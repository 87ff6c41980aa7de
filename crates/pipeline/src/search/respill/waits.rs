//! Values that wait: in a register where rows have too many, or in the frame where a register is free.

use super::super::state::{State, row};
use crate::body::From;
use crate::graph::{kept, latency};
use crate::place::{Op, Ops};
use ciphermill_ir::Space;
use ciphermill_program::Role;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Range;

/// Cycles that a value must be idle for beyond those that its store and its load take.
const SPARE: i64 = 1;
/// Rows with too many values that it must leave.
const WORTH: i64 = 2;

/// A value that is not read for a while.
pub struct Idle {
    pub value: usize,
    /// Its readers behind that.
    pub readers: Vec<usize>,
    /// The cycles of the last read before that, or in which it is made, and of the next read.
    pub gap: (i64, i64),
    /// It is made again, without a store.
    pub again: bool,
}

impl Idle {
    /// Operations that it takes.
    pub fn cost(&self) -> i64 {
        if self.again { 1 } else { 2 }
    }

    /// The cycles in which it has no register then.
    fn cycles(&self) -> Range<i64> {
        self.gap.0 + self.cost()..self.gap.1
    }
}

/// A value that is loaded though there is a register for it.
pub struct Held {
    pub store: usize,
    pub load: usize,
    /// What has it in a register already: the operation that made it, or another load.
    pub bearer: usize,
    pub readers: Vec<usize>,
    /// The cycles in which it has a register more.
    pub gap: (i64, i64),
}

/// Does an operation load a word of the frame that has a value of the loop, or store one there?
fn is_framed(op: &Op) -> bool {
    op.inst.role == Role::Overhead && op.inst.mem.is_some_and(|m| m.space == Space::Stack)
}

/// Is an order that of a store to the frame before a load of what it stores in the same iteration?
pub fn is_load(ops: &Ops, (store, load, cycles, distance): (usize, usize, u32, u32)) -> bool {
    let (store, load) = (&ops.ops[store], &ops.ops[load]);
    let word = |op: &Op| op.inst.mem.map(|m| m.offset);
    let both = is_framed(store) && is_framed(load) && word(store) == word(load);
    both && (cycles, distance) == (1, 0) && store.writes.is_none() && load.writes.is_some()
}

/// Rows of each cluster that have too many values.
struct Crowd {
    over: Vec<Vec<i64>>,
    /// How many there are before each row.
    before: Vec<Vec<i64>>,
}

impl Crowd {
    fn of(state: &State<'_>) -> Crowd {
        let ii = state.schedule.ii as usize;
        let side = |side: usize| {
            let live = state.live[side * ii..(side + 1) * ii].iter();
            live.map(|&l| i64::from(l) - state.limits[side]).collect::<Vec<i64>>()
        };
        let over: Vec<Vec<i64>> = (0..state.all.task.pool.len()).map(side).collect();
        let mut crowd = Crowd { before: vec![vec![0; ii + 1]; over.len()], over };
        (0..crowd.over.len()).for_each(|side| crowd.count(side));
        crowd
    }

    fn count(&mut self, side: usize) {
        for (row, over) in self.over[side].iter().enumerate() {
            self.before[side][row + 1] = self.before[side][row] + i64::from(*over > 0);
        }
    }

    /// Rows of some cycles that have too many.
    fn within(&self, side: usize, cycles: &Range<i64>) -> i64 {
        let (before, ii) = (&self.before[side], self.over[side].len() as i64);
        let length = (cycles.end - cycles.start).clamp(0, ii);
        let first = row(cycles.start, ii);
        let last = first + length;
        let rows = |from: i64, to: i64| before[to as usize] - before[from as usize];
        rows(first, last.min(ii)) + if last > ii { rows(0, last - ii) } else { 0 }
    }

    /// A value more in some cycles, or one less.
    fn change(&mut self, side: usize, cycles: Range<i64>, by: i64) {
        let ii = self.over[side].len() as i64;
        cycles.take(ii as usize).for_each(|t| self.over[side][row(t, ii) as usize] += by);
        self.count(side);
    }
}

impl State<'_> {
    /// Nodes whose values are carried round or wanted behind the loop.
    fn stay(&self) -> BTreeSet<usize> {
        let ops = self.ops();
        ops.initial.keys().copied().chain(ops.live_out.iter().map(|l| l.0)).collect()
    }

    /// Values that are not read for long in rows with too many, those first that leave most of these for each operation
    /// that it takes; each once.
    pub fn idle(&self) -> Vec<Idle> {
        let ops = self.ops();
        let stay = self.stay();
        let mut all: Vec<Idle> = Vec::new();
        for p in (0..ops.ops.len()).filter(|p| ops.ops[*p].writes.is_some() && !stay.contains(p)) {
            all.extend(self.idle_of(p));
        }
        let mut crowd = Crowd::of(self);
        let mut out: Vec<Idle> = Vec::new();
        loop {
            let side = |i: &Idle| ops.ops[i.value].at.result;
            let rows = |i: &Idle| crowd.within(side(i), &i.cycles());
            let worth = all.iter().enumerate().map(|(k, i)| (rows(i), k)).filter(|(rows, _)| *rows >= WORTH);
            let Some((_, k)) = worth.max_by_key(|&(rows, k)| (2 * rows / all[k].cost(), Reverse(k))) else { break };
            let best = all.swap_remove(k);
            all.retain(|i| i.value != best.value);
            crowd.change(ops.ops[best.value].at.result, best.cycles(), -1);
            out.push(best);
        }
        out
    }

    /// Where a value is not read for long.
    fn idle_of(&self, p: usize) -> Vec<Idle> {
        let (ops, time) = (self.ops(), &self.schedule.time);
        let op = &ops.ops[p];
        let outside = !op.tied && op.reads.iter().all(|r| matches!(r.1, From::Outside(_)));
        let again = outside && (is_framed(op) || op.inst.mem.is_none_or(|m| m.constant));
        let machine = self.all.sides.machine;
        let load = i64::from(machine.instrs[usize::from(machine.abi.ops.load.0)].latency);
        let least = SPARE + if again { 1 + latency(ops, p) } else { 2 + load };
        if self.readers_of(p).iter().any(|r| r.1 != 0) {
            return Vec::new();
        }
        let mut reads: Vec<(i64, usize)> =
            self.readers_of(p).iter().map(|r| (time[r.0 as usize], r.0 as usize)).collect();
        reads.sort_unstable();
        let mut last = time[p] + kept(ops, p);
        let mut out = Vec::new();
        for (k, &(t, _)) in reads.iter().enumerate() {
            // What is made again and not read before that need only be made later.
            if t - last >= least && (k > 0 || !again) {
                let readers = reads[k..].iter().map(|r| r.1).collect();
                out.push(Idle { value: p, readers, gap: (last, t), again });
            }
            last = last.max(t);
        }
        out
    }

    /// Values that are loaded from the frame though registers are free all the while, those first that wait least; each
    /// operation once.
    pub fn held(&self) -> Vec<Held> {
        let ops = self.ops();
        let stay = self.stay();
        let loads = ops.memory.iter().filter(|m| is_load(ops, **m));
        let mut all: Vec<Held> = loads.filter_map(|m| self.held_by(m.0, m.1, &stay)).collect();
        all.sort_by_key(|h| (h.gap.1 - h.gap.0, h.load));
        let mut crowd = Crowd::of(self);
        let mut used: BTreeSet<usize> = BTreeSet::new();
        all.retain(|h| {
            let side = ops.ops[h.load].at.result;
            let cycles = h.gap.0..h.gap.1;
            let fresh = [h.store, h.load, h.bearer].iter().all(|i| !used.contains(i));
            let free = fresh
                && cycles
                    .clone()
                    .take(self.schedule.ii as usize)
                    .all(|t| crowd.over[side][row(t, self.schedule.ii) as usize] < 0);
            if free {
                crowd.change(side, cycles, 1);
                used.extend([h.store, h.load, h.bearer]);
            }
            free
        });
        all
    }

    /// What has the value of a load in a register before that, latest of all.
    fn held_by(&self, store: usize, load: usize, stay: &BTreeSet<usize>) -> Option<Held> {
        let (ops, ii, time) = (self.ops(), self.schedule.ii, &self.schedule.time);
        let made = |p: usize| time[p] + kept(ops, p);
        let last = |p: usize| self.readers_of(p).iter().map(|r| time[r.0 as usize]).max().unwrap_or(0).max(made(p));
        let same_iteration = |p: usize| self.readers_of(p).iter().all(|r| r.1 == 0);
        // Nothing else gets its register.
        let alone = |p: usize| self.readers_of(p).iter().all(|r| !overwrites(&ops.ops[r.0 as usize], p));
        let source = ops.ops[store].reads.iter().find_map(|r| if let From::Node(p, 0) = r.1 { Some(p) } else { None });
        let readers: Vec<usize> = self.readers_of(load).iter().map(|r| r.0 as usize).collect();
        let first = readers.iter().map(|&r| time[r]).min().filter(|_| same_iteration(load))?;
        let may = |&p: &usize| {
            let there =
                ops.ops[p].at.result == ops.ops[load].at.result && last(p) <= first && last(load) - made(p) < ii;
            there && p != load && same_iteration(p) && alone(p) && !stay.contains(&p) && !stay.contains(&load)
        };
        let others = ops.memory.iter().filter(|m| m.0 == store && is_load(ops, **m)).map(|m| m.1);
        let bearer = others.chain(source).filter(may).max_by_key(|&p| (last(p), p))?;
        Some(Held { store, load, bearer, readers, gap: (last(bearer) + 1, made(load)) })
    }
}

/// Does the result of an operation get the register of a value that it reads?
fn overwrites(op: &Op, value: usize) -> bool {
    let own = op.writes.and_then(|w| op.reads.iter().find(|r| r.0 == w.0));
    op.tied && own.is_some_and(|r| matches!(r.1, From::Node(p, _) if p == value))
}
