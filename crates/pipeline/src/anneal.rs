//! Schedules by annealing.
//!
//! The scheduler ([`super::modulo`]) places each operation once and cannot know what a row
//! will still have to hold. Here all operations stand from the beginning, units and paths are
//! never taken twice, and what is broken is counted instead: cycles by which orders between
//! operations fail, and values beyond the registers of a row. One operation after another is
//! moved, or changes places with one of another row; a move may cost something, at first more
//! and at last hardly anything (G. Dueck and T. Scheuer, "Threshold accepting", J. Comp.
//! Phys. 90, 1990; how much is drawn anew for each move, about as in simulated annealing),
//! until nothing is broken.
//!
//! How a schedule begins is in [`begin`], how operations change sides on the way in [`sides`];
//! values that only some of the registers can hold are counted a second time, by [`super::certain`].
//! Intervals and stages stay as they are; what comes out is checked once more.

mod begin;
mod push;
mod sides;

use super::body::From;
use super::certain::Certain;
use super::graph::{kept, latency};
use super::modulo::{Schedule, keeps_orders, mix};
use super::place::{Ops, Sides};
use super::relieve::Neighbours;
use super::table::Table;
use ciphermill_machine::InstrId;
use sides::Outside;
pub use sides::level;
use smallvec::SmallVec;
use std::ops::Range;

/// What a cycle costs by which an order fails.
const FAULT: i64 = 16;
/// One move of so many begins with any operation, the others with one where something is
/// broken.
const ANY: usize = 6;
/// One of so many goes anywhere that orders allow, the others not far.
const FAR: usize = 6;
const NEAR: i64 = 6;
/// One of so many goes anywhere near, and not where it would mend something.
const AIMED: usize = 2;
/// The warmth is worked out once for so many moves.
const STEADY: u64 = 64;
/// What is broken is looked for anew after so many moves, or as many as half the operations.
const LOOK: usize = 128;
/// Parts of a unit of warmth.
const PARTS: i64 = 256;
/// One move of so many takes an operation to another side.
const SIDED: usize = 8;
/// One of so many pushes what it would break along ([`push`]), where an order fails.
const PUSHES: usize = 10;
/// Operations of another row that one is tried to change places with.
const EXCHANGED: usize = 4;

/// Cost that a move may have: the mean at the beginning and at the end.
pub type Warmth = (i64, i64);

/// What one value more costs in a row that has so many more than registers already: rows that
/// are full, or nearly so, have no room for the next move.
fn dearer(more: i32) -> i32 {
    i32::from(more >= -2) + i32::from(more >= 0) * (19 + 8 * more)
}

/// What all schedules of a loop are annealed with.
#[derive(Clone, Copy)]
pub struct Loop<'a> {
    pub sides: &'a Sides<'a>,
    pub ops: &'a Ops,
    pub near: &'a Neighbours,
    /// Accesses that would probably meet in a bank of memory stand in different cycles.
    pub apart: bool,
    /// Registers of each side, those of values from outside among them.
    pub pool: &'a [i64],
}

impl<'a> Loop<'a> {
    /// The same loop, some of whose operations have changed sides.
    pub fn settled<'b>(self, ops: &'b Ops) -> Loop<'b>
    where
        'a: 'b,
    {
        Loop { ops, ..self }
    }
}

/// `sign * (time[own] - time[other]) + cycles <= 0`.
#[derive(Clone, Copy)]
struct Order {
    other: u32,
    /// 1 where the other comes later, -1 where it comes before.
    sign: i32,
    cycles: i32,
    /// The operand by which the later one reads the earlier one's result.
    operand: Option<u8>,
}

/// Cycles in which a value is alive: the first, and how many.
type Arc = (i64, i64);

/// What takes a move back.
struct Undo {
    /// The cycle of the operation, and the values that it reads or makes.
    time: i64,
    arcs: SmallVec<[(u32, Arc); 4]>,
    /// Excess, heat and faults.
    counts: (i64, i64, i64),
}

/// What has to be known of an operation's result.
#[derive(Clone, Copy, Default)]
struct Value {
    /// None where it has no result.
    side: Option<usize>,
    kept: i64,
    /// Is it there before the loop, or read behind it?
    initial: bool,
    behind: bool,
    /// Can only certain registers hold it, so many that these have to be counted?
    certain: bool,
}

/// A schedule that is being annealed.
pub struct State<'a> {
    all: Loop<'a>,
    /// The operations, with the sides that they have now.
    ops: Ops,
    table: Table<'a>,
    schedule: Schedule,
    /// The orders that each operation is one of two in, one operation's after the other's,
    /// and where they begin.
    orders: Vec<Order>,
    begins: Vec<u32>,
    /// Values that each operation reads or makes.
    touched: Vec<SmallVec<[u32; 4]>>,
    values: Vec<Value>,
    /// Readers of each value, one value's after the other's, with the cycles between the
    /// iterations, and where they begin.
    readers: Vec<(u32, i32)>,
    reading: Vec<u32>,
    /// Values alive, side by side, row by row; and of each side those that only certain
    /// registers can hold, where these are counted.
    live: Vec<i32>,
    /// Cycles in which values are alive.
    arcs: Vec<Arc>,
    /// The same of the values that are counted together: the value, the row of the first cycle,
    /// and how many.
    spans: Vec<Vec<(u32, i32, i32)>>,
    /// Where a value is among those of its side, and among those of certain registers.
    among: Vec<[u32; 2]>,
    /// Sides and rows that had too many when that was last looked at.
    crowded: Vec<(usize, usize)>,
    /// Operations with orders that failed then.
    broken: Vec<usize>,
    /// Values from outside.
    outside: Outside,
    /// Registers of each side that these leave; and the certain ones.
    limits: Vec<i64>,
    /// Values beyond the limits, over all rows.
    excess: i64,
    /// What rows cost.
    heat: i64,
    /// Cycles by which orders fail.
    faults: i64,
}

impl<'a> State<'a> {
    /// Nothing stands yet.
    fn empty(all: Loop<'a>, ops: &Ops, ii: i64, stages: i64) -> State<'a> {
        let near = all.near;
        let n = ops.ops.len();
        let mut values: Vec<Value> = vec![Value::default(); n];
        let certain = Certain::of(all.sides, ops);
        let counted = all.pool.len() + certain.limits.len();
        let (mut spans, mut among) = (vec![Vec::new(); counted], vec![[0; 2]; n]);
        let mut orders: Vec<Vec<Order>> = vec![Vec::new(); n];
        let mut touched = vec![SmallVec::new(); n];
        for i in 0..n {
            let side = ops.ops[i].writes.map(|_| ops.ops[i].at.result);
            let initial = ops.initial.contains_key(&i);
            values[i] = Value { side, kept: kept(ops, i), initial, behind: false, certain: certain.holds(i) };
            for (k, place) in places(values[i], all.pool.len()).into_iter().enumerate() {
                among[i][k] = spans[place].len() as u32;
                spans[place].push((i as u32, 0, 0));
            }
            let mut order = |first: usize, second: usize, cycles: i64, operand: Option<u8>| {
                let cycles = cycles as i32;
                orders[first].push(Order { other: second as u32, sign: 1, cycles, operand });
                orders[second].push(Order { other: first as u32, sign: -1, cycles, operand });
            };
            for e in &near.before[i] {
                // Which operands cross follows the sides that operations have now.
                let cycles = e.operand.map_or(e.cycles, |o| latency(ops, e.other) + ops.crossing(i, o));
                order(e.other, i, cycles - e.distance * ii, e.operand.map(|o| o as u8));
            }
            // No value may be there when its successor comes.
            for &(p, d) in near.reads[i].iter().filter(|r| r.0 != i) {
                order(i, p, d * ii - kept(ops, p) - ii + 1, None);
            }
            // Nor what has come into its register since.
            if let Some((root, since)) = root(ops, i) {
                let read = near.readers[i].iter().filter(|r| r.0 != root);
                read.for_each(|&(r, d)| order(r, root, (d + since) * ii - kept(ops, root) - ii + 1, None));
            }
            let list: &mut SmallVec<[u32; 4]> = &mut touched[i];
            list.extend(near.reads[i].iter().map(|r| r.0 as u32));
            list.push(i as u32);
            list.sort_unstable();
            list.dedup();
            list.retain(|p| ops.ops[*p as usize].writes.is_some());
        }
        ops.live_out.iter().for_each(|l| values[l.0].behind = true);
        let read = |r: &(usize, i64)| (r.0 as u32, (r.1 * ii) as i32);
        let readers: Vec<Vec<(u32, i32)>> = near.readers.iter().map(|l| l.iter().map(read).collect()).collect();
        let outside = Outside::of(ops, all.pool.len());
        let left = all.pool.iter().enumerate().map(|(side, pool)| pool - outside.on(side));
        let limits = left.chain(certain.limits).collect();
        State {
            all,
            ops: ops.clone(),
            table: Table::new(all.sides, ops, ii, all.apart),
            schedule: Schedule { ii, time: vec![0; n], variant: vec![InstrId(0); n], stages },
            begins: begins(&orders),
            orders: orders.concat(),
            reading: begins(&readers),
            readers: readers.concat(),
            touched,
            values,
            live: vec![0; ii as usize * counted],
            arcs: vec![(0, 0); n],
            spans,
            among,
            crowded: Vec::new(),
            broken: Vec::new(),
            limits,
            outside,
            excess: 0,
            heat: 0,
            faults: 0,
        }
    }

    fn count_all(&mut self) {
        for i in 0..self.values.len() {
            self.follow(i);
        }
        // Every order is at two operations.
        self.faults = (0..self.values.len()).map(|i| self.faults_at(i)).sum::<i64>() / 2;
    }

    /// Cycles by which orders at an operation fail.
    fn faults_at(&self, i: usize) -> i64 {
        let mut sum = 0;
        for o in self.orders_of(i) {
            sum += self.fault(i, o).max(0);
        }
        sum
    }

    fn orders_of(&self, i: usize) -> &[Order] {
        &self.orders[self.begins[i] as usize..self.begins[i + 1] as usize]
    }

    /// Cycles by which an order at an operation fails; not more than 0 where it holds.
    fn fault(&self, i: usize, o: &Order) -> i64 {
        let time = &self.schedule.time;
        i64::from(o.sign) * (time[i] - time[o.other as usize]) + i64::from(o.cycles)
    }

    /// The cycles of a reader's orders follow the paths that its operands now take.
    fn recross(&mut self, reader: usize) {
        for k in self.begins[reader] as usize..self.begins[reader + 1] as usize {
            let Order { other, sign: -1, cycles, operand: Some(o) } = self.orders[k] else { continue };
            let (p, operand) = (other as usize, usize::from(o));
            let read = self.ops.ops[reader].reads.iter().find(|r| r.0 == operand);
            let distance = if let Some((_, From::Node(_, d))) = read { i64::from(*d) } else { 0 };
            let own = latency(&self.ops, p) + self.ops.crossing(reader, operand);
            let new = (own - distance * self.schedule.ii) as i32;
            if new == cycles {
                continue;
            }
            let apart = self.schedule.time[p] - self.schedule.time[reader];
            self.faults += (apart + i64::from(new)).max(0) - (apart + i64::from(cycles)).max(0);
            self.orders[k].cycles = new;
            let same = |m: &&mut Order| m.sign == 1 && m.other as usize == reader && m.operand == Some(o);
            let mirror = self.begins[p] as usize..self.begins[p + 1] as usize;
            if let Some(mirror) = self.orders[mirror].iter_mut().find(same) {
                mirror.cycles = new;
            }
        }
    }

    /// What is broken still.
    pub fn left(&self) -> i64 {
        self.excess + self.faults
    }

    /// What is broken, and what may soon be.
    pub fn energy(&self) -> i64 {
        self.heat + FAULT * self.faults
    }

    /// The operations, with the sides that they have now.
    pub fn ops(&self) -> &Ops {
        &self.ops
    }

    /// The schedule, where nothing is broken.
    pub fn finish(&self) -> Option<&Schedule> {
        let whole = self.left() == 0 && keeps_orders(&self.ops, self.schedule.ii, &self.schedule.time);
        whole.then_some(&self.schedule)
    }

    /// The cycles for which a value has its register, as colouring has them: the first and how
    /// many.
    fn arc(&self, i: usize) -> Arc {
        let (time, ii) = (&self.schedule.time, self.schedule.ii);
        let value = self.values[i];
        let mut start = time[i] + value.kept;
        let readers = &self.readers[self.reading[i] as usize..self.reading[i + 1] as usize];
        let mut stop = start;
        for r in readers {
            stop = stop.max(time[r.0 as usize] + i64::from(r.1));
        }
        if value.behind {
            stop = stop.max(self.schedule.stages * ii);
        }
        if value.initial {
            start = start.min(ii);
        }
        (start, (stop - start + 1).min(ii))
    }

    /// The rows of a value are what its operation and its readers now make them.
    fn follow(&mut self, i: usize) {
        if self.values[i].side.is_some() {
            self.live_in(i, self.arc(i));
        }
    }

    /// A value is alive in these cycles, and no longer in those so far.
    fn live_in(&mut self, i: usize, new: Arc) {
        let (old, value) = (self.arcs[i], self.values[i]);
        let Some(side) = value.side.filter(|_| old != new) else { return };
        self.arcs[i] = new;
        let span = (i as u32, row(new.0, self.schedule.ii) as i32, new.1 as i32);
        self.spans[side][self.among[i][0] as usize] = span;
        let (old, new) = ((old.0, old.0 + old.1), (new.0, new.0 + new.1));
        self.changes(side, old, new);
        if value.certain {
            let place = self.all.pool.len() + side;
            self.spans[place][self.among[i][1] as usize] = span;
            self.changes(place, old, new);
        }
    }

    /// A value of a side is alive from one cycle to another, and no longer where it was.
    fn changes(&mut self, side: usize, old: (i64, i64), new: (i64, i64)) {
        // Only what differs changes.
        let overlap = (old.0.max(new.0), old.1.min(new.1));
        if overlap.0 >= overlap.1 {
            self.change::<false>(side, old);
            self.change::<true>(side, new);
            return;
        }
        self.change::<false>(side, (old.0, overlap.0));
        self.change::<false>(side, (overlap.1, old.1));
        self.change::<true>(side, (new.0, overlap.0));
        self.change::<true>(side, (overlap.1, new.1));
    }

    /// In some cycles, of one II at most, a value of a side comes or goes.
    fn change<const COMES: bool>(&mut self, side: usize, cycles: (i64, i64)) {
        if cycles.0 >= cycles.1 {
            return;
        }
        let ii = self.schedule.ii as usize;
        let rows = &mut self.live[side * ii..(side + 1) * ii];
        let first = row(cycles.0, ii as i64) as usize;
        let last = first + (cycles.1 - cycles.0) as usize;
        let limit = self.limits[side] as i32;
        let (mut excess, mut heat) = (0, 0);
        for part in [first..last.min(ii), 0..last.saturating_sub(ii)] {
            for row in &mut rows[part] {
                let less = *row - limit - i32::from(!COMES);
                excess += i32::from(less >= 0);
                heat += dearer(less);
                *row += if COMES { 1 } else { -1 };
            }
        }
        let by = if COMES { 1 } else { -1 };
        self.excess += by * i64::from(excess);
        self.heat += by * i64::from(heat);
    }

    /// Anneal until nothing is broken, or for so many moves; the number of those made.
    pub fn anneal(&mut self, moves: u64, warmth: Warmth, seed: u64) -> u64 {
        self.anneal_part(0..moves, moves, warmth, seed)
    }

    /// The same, for part of the moves.
    pub fn anneal_part(&mut self, part: Range<u64>, moves: u64, warmth: Warmth, seed: u64) -> u64 {
        let look = LOOK.max(self.values.len() / 2) as u64;
        let mut dice = Dice(mix(seed, moves + part.start));
        let mut warm_now = warm(warmth, part.start, moves);
        let (first, sided) = (part.start, self.all.sided());
        for k in part.clone() {
            if self.left() == 0 {
                return k - first;
            }
            if k == first || k % look == 0 {
                self.look();
            }
            if k % STEADY == 0 {
                warm_now = warm(warmth, k, moves);
            }
            // Zeros at the end of a random number: each one more is half as likely.
            let chance = dice.roll();
            let drawn = i64::from(chance.trailing_zeros()) * PARTS + (chance >> 56) as i64;
            let allowed = drawn * warm_now / (PARTS * PARTS);
            if sided && dice.below(SIDED) == 0 {
                self.change_sides(&mut dice, allowed);
            } else {
                self.step(&mut dice, allowed);
            }
        }
        part.end - first
    }

    /// See what is broken.
    fn look(&mut self) {
        let rows = 0..self.schedule.ii as usize;
        let all = (0..self.limits.len()).flat_map(|side| rows.clone().map(move |row| (side, row)));
        self.crowded = all.filter(|&(side, row)| self.crowds(side, row)).collect();
        self.broken = (0..self.values.len()).filter(|&i| self.faults_at(i) > 0).collect();
    }

    /// Has a row of a side more values than registers?
    fn crowds(&self, side: usize, row: usize) -> bool {
        i64::from(self.live[side * self.schedule.ii as usize + row]) > self.limits[side]
    }

    /// The cycles that its neighbours leave an operation.
    fn window(&self, i: usize) -> (i64, i64) {
        let time = &self.schedule.time;
        let (mut low, mut high) = (0, self.schedule.stages * self.schedule.ii - 1);
        for o in self.orders_of(i) {
            let other = time[o.other as usize];
            if o.sign > 0 {
                high = high.min(other - i64::from(o.cycles));
            } else {
                low = low.max(other + i64::from(o.cycles));
            }
        }
        (low, high)
    }

    /// Try one move that may cost so much.
    fn step(&mut self, dice: &mut Dice, allowed: i64) {
        let n = self.values.len();
        // What has been mended since it was looked for is not.
        let crowded = self.crowded.get(dice.below(self.crowded.len())).copied();
        let crowded = crowded.filter(|&(side, row)| self.crowds(side, row));
        let broken = self.broken.get(dice.below(self.broken.len())).copied();
        // An operation, and a cycle in which it would mend what is broken.
        let found = match (dice.below(ANY), crowded, broken) {
            (0, ..) | (_, None, None) => Some((dice.below(n), None)),
            (w, Some((side, row)), b) if w % 2 == 0 || b.is_none() => {
                let (first, own) = (dice.below(self.spans[side].len()), dice.below(2) == 0);
                self.concerned(side, row, first, own)
            }
            (_, _, b) => b.map(|i| (i, self.mended(i, dice.below(8)))),
        };
        // The branch stays where its delay slots end with the stage.
        let Some((i, aim)) = found.filter(|f| f.0 + 1 < n) else { return };
        let now = self.schedule.time[i];
        let last = self.schedule.stages * self.schedule.ii - 1;
        let to = match aim.filter(|_| dice.below(AIMED) > 0) {
            Some(aim) => aim,
            None => {
                let (low, high) = self.window(i);
                let (low, high) = match dice.below(FAR) {
                    0 if low <= high => (low, high),
                    w if low <= high && w % 2 == 0 => (low.max(now - NEAR), high.min(now + NEAR)),
                    _ => (now - NEAR, now + NEAR),
                };
                let (low, high) = (low.max(0), high.min(last));
                if low > high {
                    return;
                }
                low + dice.below((high - low + 1) as usize) as i64
            }
        };
        if to != now && (0..=last).contains(&to) {
            if !self.broken.is_empty() && dice.below(PUSHES) == 0 {
                self.push(i, to, dice, allowed);
            } else {
                self.go(i, to, allowed, dice.below(64));
            }
        }
    }

    /// The cycle in which one of the orders that fail at an operation, the next from `first`
    /// on, would hold.
    fn mended(&self, i: usize, first: usize) -> Option<i64> {
        let orders = self.orders_of(i);
        (0..orders.len()).map(|k| orders[(first + k) % orders.len()]).find_map(|o| {
            let fault = self.fault(i, &o);
            (fault > 0).then_some(self.schedule.time[i] - i64::from(o.sign) * fault)
        })
    }

    /// The operation of a value that is in a row, the next from `first` on, or else the last
    /// that reads it; and a cycle in which the value would not be in the row.
    fn concerned(&self, side: usize, row: usize, first: usize, own: bool) -> Option<(usize, Option<i64>)> {
        let (time, ii, spans) = (&self.schedule.time, self.schedule.ii, &self.spans[side]);
        let since = |&(i, at, cycles): &(u32, i32, i32)| {
            let since = row as i32 - at;
            let since = if since < 0 { since + ii as i32 } else { since };
            (since < cycles).then_some((i as usize, i64::from(since)))
        };
        let (before, after) = spans.split_at(first.min(spans.len()));
        let (value, since) = after.iter().find_map(since).or_else(|| before.iter().find_map(since))?;
        let last = self.all.near.readers[value].iter().max_by_key(|r| time[r.0] + r.1 * ii);
        Some(match last.filter(|_| !own) {
            Some(reader) => (reader.0, Some(time[reader.0] - self.arcs[value].1 + since)),
            None => (value, Some(time[value] + since + 1)),
        })
    }

    /// An operation changes its cycle, unless the energy is more than `most` then; nothing is
    /// said of the table.
    fn transfer(&mut self, i: usize, to: i64, most: i64) -> Option<Undo> {
        let time = &self.schedule.time;
        let (now, by) = (time[i], to - time[i]);
        let mut faults = self.faults;
        for o in self.orders_of(i) {
            let fault = self.fault(i, o);
            faults += (fault + i64::from(o.sign) * by).max(0) - fault.max(0);
        }
        if FAULT * faults > most {
            return None;
        }
        let mut undo = Undo { time: now, arcs: SmallVec::new(), counts: (self.excess, self.heat, self.faults) };
        self.schedule.time[i] = to;
        self.faults = faults;
        for k in 0..self.touched[i].len() {
            let value = self.touched[i][k];
            undo.arcs.push((value, self.arcs[value as usize]));
            self.follow(value as usize);
        }
        if self.energy() > most {
            self.undo(i, &undo);
            return None;
        }
        Some(undo)
    }

    /// Take the last move back.
    fn undo(&mut self, i: usize, undo: &Undo) {
        self.schedule.time[i] = undo.time;
        for &(value, arc) in &undo.arcs {
            self.live_in(value as usize, arc);
        }
        (self.excess, self.heat, self.faults) = undo.counts;
    }

    /// Move an operation, by itself or in exchange for another, if that costs no more than is
    /// allowed.
    fn go(&mut self, i: usize, to: i64, allowed: i64, first: usize) {
        let (now, old) = (self.schedule.time[i], self.schedule.variant[i]);
        let ii = self.schedule.ii;
        let (row, new) = (row(now, ii) as usize, row(to, ii) as usize);
        let most = self.energy() + allowed;
        let Some(undo) = self.transfer(i, to, most) else { return };
        if row == new {
            return;
        }
        let alone = self.table.count[new] < self.table.width();
        let op = &self.ops.ops[i];
        if let Some((v, unit)) = alone.then(|| self.table.best(new, op)).flatten() {
            self.table.take(row, i, op, old);
            self.table.put(new, i, op, v, unit);
            self.schedule.variant[i] = v;
            return;
        }
        let held: SmallVec<[usize; 8]> = SmallVec::from_slice(self.table.held(new));
        for k in 0..held.len().min(EXCHANGED) {
            let other = held[(first + k) % held.len()];
            if other + 1 < self.values.len() && self.exchange(i, other, (row, new), most) {
                return;
            }
        }
        self.undo(i, &undo);
    }

    /// Operation `i`, which counts in the new one of two rows already, takes the place of
    /// `other` there, which goes to the row that was left.
    fn exchange(&mut self, i: usize, other: usize, rows: (usize, usize), most: i64) -> bool {
        let (op, its) = (&self.ops.ops[i], &self.ops.ops[other]);
        let (old, was) = (self.schedule.variant[i], self.schedule.variant[other]);
        let ii = self.schedule.ii;
        let from = self.schedule.time[other];
        let by = (rows.0 as i64 - rows.1 as i64 + ii / 2).rem_euclid(ii) - ii / 2;
        let may = self.table.may_follow(rows.1, op, was) && self.table.may_follow(rows.0, its, old);
        if !may || !(0..self.schedule.stages * ii).contains(&(from + by)) {
            return false;
        }
        let Some(undo) = self.transfer(other, from + by, most) else { return false };
        let (op, its) = (&self.ops.ops[i], &self.ops.ops[other]);
        self.table.take(rows.0, i, op, old);
        self.table.take(rows.1, other, its, was);
        if let Some((v, unit)) = self.table.best(rows.1, op)
            && let Some((w, its_unit)) = self.table.best(rows.0, its)
        {
            self.table.put(rows.1, i, op, v, unit);
            self.table.put(rows.0, other, its, w, its_unit);
            (self.schedule.variant[i], self.schedule.variant[other]) = (v, w);
            return true;
        }
        self.table.put_back(rows.1, other, its, was);
        self.table.put_back(rows.0, i, op, old);
        self.undo(other, &undo);
        false
    }
}

/// Where a value is counted: on its side, and among those of certain registers.
fn places(value: Value, sides: usize) -> SmallVec<[usize; 2]> {
    let certain = value.side.filter(|_| value.certain).map(|side| sides + side);
    value.side.into_iter().chain(certain).collect()
}

/// The first value of those that share a register with an operation's result, and the
/// iterations that it came before it; none where the result shares none.
fn root(ops: &Ops, i: usize) -> Option<(usize, i64)> {
    let before = |i: usize| {
        let op = &ops.ops[i];
        let own = op.reads.iter().find(|r| op.tied && op.writes.is_some_and(|w| w.0 == r.0))?;
        match own.1 {
            From::Node(p, d) if p != i => Some((p, i64::from(d))),
            _ => None,
        }
    };
    let (mut at, mut since) = before(i)?;
    // As many at most as there are operations: ties that go round are no registers'.
    for _ in 0..ops.ops.len() {
        let Some((p, d)) = before(at) else { break };
        (at, since) = (p, since + d);
    }
    Some((at, since))
}

/// Where each list begins when all are one, and where the last ends.
fn begins<T>(lists: &[Vec<T>]) -> Vec<u32> {
    let ends = lists.iter().scan(0, |at, list| {
        *at += list.len() as u32;
        Some(*at)
    });
    std::iter::once(0).chain(ends).collect()
}

/// The row of a cycle, which is one of few stages: quicker than a division.
fn row(cycle: i64, ii: i64) -> i64 {
    let mut row = cycle;
    while row < 0 {
        row += ii;
    }
    while row >= ii {
        row -= ii;
    }
    row
}

/// Random numbers, the same for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix(self.0, 0)
    }

    /// One of so many numbers from 0 on; 0 where there are none.
    fn below(&mut self, of: usize) -> usize {
        (((self.roll() >> 32) * of as u64) >> 32) as usize
    }
}

/// The warmth after `k` of so many moves: it falls by the same part with each.
fn warm(warmth: Warmth, k: u64, moves: u64) -> i64 {
    // Powers of two, with a straight line between them.
    let log = |x: i64| -> i64 {
        let whole = 63 - i64::from(x.max(1).leading_zeros());
        whole * PARTS + ((x.max(1) * PARTS) >> whole) - PARTS
    };
    let (first, last) = (log(warmth.0), log(warmth.1));
    let now = first - (first - last) * k as i64 / moves.max(1) as i64;
    ((PARTS + now % PARTS) << (now / PARTS)).max(1)
}

#[cfg(test)]
pub(super) mod tests {
    use super::{Loop, State, warm};
    use crate::body::{Body, From, Node};
    use crate::modulo::Schedule;
    use crate::place::{At, Sides, settle};
    use crate::relieve::Neighbours;
    use ciphermill_machine::{InstrId, Machine, Reg};
    use ciphermill_vcode::{VInst, VKind, VOp, VReg};
    use std::path::Path;

    pub fn machine() -> Machine {
        named_machine("c6201")
    }

    pub fn named_machine(name: &str) -> Machine {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        ciphermill_machine::load_from_dir(&root, name, &[], &[], &[]).unwrap()
    }

    pub fn named(m: &Machine, name: &str) -> InstrId {
        InstrId(m.instrs.iter().position(|i| i.name == name).unwrap() as u16)
    }

    /// The addition of a constant.
    pub fn addition(m: &Machine, from: From) -> Node {
        let ops = [VOp::Imm(4), VOp::Use(VReg(0)), VOp::Def(VReg(1))];
        let inst = VInst::new(VKind::Normal, named(m, "add_imm"), &ops, 0);
        Node { mem: None, inst, reads: vec![(1, from)], writes: Some((2, 1)), tied: false }
    }

    /// These nodes and the branch.
    pub fn with_branch(m: &Machine, mut nodes: Vec<Node>) -> Body {
        let branch = VInst::new(VKind::Normal, named(m, "b"), &[], 0);
        nodes.push(Node { mem: None, inst: branch, reads: vec![], writes: None, tied: false });
        Body::of(nodes, named(m, "b"))
    }

    /// `chains` independent chains of `links` additions each, and the branch.
    fn body(m: &Machine, chains: usize, links: usize) -> Body {
        let mut nodes = Vec::new();
        for _ in 0..chains {
            for link in 0..links {
                let from = if link == 0 { From::Outside(VReg(0)) } else { From::Node(nodes.len() - 1, 0) };
                nodes.push(addition(m, from));
            }
        }
        with_branch(m, nodes)
    }

    /// A loop on the C6201 with all chains on the first side, two units of which add a constant.
    /// Nothing may leave it.
    pub fn on_one_side<T>(
        shape: (usize, usize),
        registers: i64,
        run: impl FnOnce(&Body, &[Reg], &[At], Loop<'_>) -> T,
    ) -> T {
        on_one_side_of(machine(), shape, registers, run)
    }

    fn on_one_side_of<T>(
        m: Machine,
        (chains, links): (usize, usize),
        registers: i64,
        run: impl FnOnce(&Body, &[Reg], &[At], Loop<'_>) -> T,
    ) -> T {
        let free: Vec<Reg> = (0..m.regs.len() as u16).map(Reg).collect();
        let sides = Sides::new(&m, &free);
        let body = body(&m, chains, links);
        let at = vec![At { unit: 0, result: 0 }; body.nodes.len()];
        let mut ops = settle(&body, &sides, &at).unwrap();
        // What is tied stays where it is.
        ops.ops.iter_mut().for_each(|op| op.tied = true);
        let near = Neighbours::of(&ops);
        // One more for the value from outside.
        let pool = vec![registers + 1; sides.files.len()];
        run(&body, &free, &at, Loop { sides: &sides, ops: &ops, near: &near, apart: false, pool: &pool })
    }

    /// The same, and everything may go to the other side, which has the same units.
    pub fn on_two_sides<T>(shape: (usize, usize), registers: i64, run: impl FnOnce(Loop<'_>) -> T) -> T {
        on_two_sides_of(machine(), shape, registers, run)
    }

    pub fn on_two_sides_of<T>(m: Machine, shape: (usize, usize), registers: i64, run: impl FnOnce(Loop<'_>) -> T) -> T {
        on_one_side_of(m, shape, registers, |_, _, _, all| {
            let mut ops = all.ops.clone();
            ops.ops.iter_mut().for_each(|op| op.tied = false);
            run(all.settled(&ops))
        })
    }

    /// What comes of a fresh start.
    fn annealed(chains: usize, links: usize, ii: i64, stages: i64, registers: i64) -> (i64, Option<Schedule>) {
        on_one_side((chains, links), registers, |_, _, _, all| {
            let mut state = State::stretched(all, ii - 6, ii, stages, stages * ii).unwrap();
            state.anneal(50_000, (30, 2), 1);
            (state.left(), state.finish().cloned())
        })
    }

    #[test]
    fn units_are_used_to_the_full() {
        // 40 additions and the branch on two units in 21 rows: one slot is left over.
        let (left, schedule) = annealed(4, 10, 21, 2, 16);
        assert_eq!(left, 0);
        let schedule = schedule.unwrap();
        assert!((0..21).all(|row| schedule.time.iter().filter(|t| **t % 21 == row).count() <= 2));
        // Each link stands behind the one before it, in the same iteration.
        assert!((0..40).filter(|i| i % 10 > 0).all(|i| schedule.time[i] > schedule.time[i - 1]));
        assert_eq!(schedule.time[40], 15);
    }

    #[test]
    fn registers_that_are_too_few_are_said() {
        // 40 values, of a cycle each at least, in 21 rows: two registers, not one.
        assert_eq!(annealed(4, 10, 21, 1, 4).0, 0);
        let (left, schedule) = annealed(4, 10, 21, 1, 1);
        assert!(left > 0 && schedule.is_none());
    }

    #[test]
    fn a_row_goes() {
        on_one_side((2, 8), 8, |_, _, _, all| {
            let mut state = State::stretched(all, 14, 20, 1, 20).unwrap();
            state.anneal(50_000, (30, 2), 1);
            let schedule = state.finish().unwrap().clone();
            // 20 rows hold two chains of 8 with ease: a row with none of them takes nothing with it.
            let idle = (0..14).find(|row| !schedule.time.contains(row)).unwrap();
            let without = State::without(all, &schedule, idle).unwrap();
            assert_eq!((without.left(), without.finish().unwrap().ii), (0, 19));
            let earlier = |i: usize| schedule.time[i] - i64::from(schedule.time[i] > idle);
            assert!((0..17).all(|i| without.finish().unwrap().time[i] == earlier(i)));
        });
    }

    #[test]
    fn a_row_comes() {
        on_one_side((4, 10), 16, |_, _, _, all| {
            let mut state = State::stretched(all, 15, 21, 2, 42).unwrap();
            state.anneal(50_000, (30, 2), 1);
            let wider = state.wider();
            let schedule = wider.finish().unwrap();
            assert_eq!((schedule.ii, schedule.stages), (22, 2));
            assert_eq!((0..22).filter(|row| schedule.time.iter().all(|t| t % 22 != *row)).count(), 1);
        });
    }

    #[test]
    fn warmth_falls_from_the_first_to_the_last() {
        assert_eq!([warm((32, 2), 0, 4), warm((32, 2), 2, 4), warm((32, 2), 4, 4)], [32 * 256, 8 * 256, 2 * 256]);
        assert!((1..100).all(|k| warm((30, 2), k, 100) <= warm((30, 2), k - 1, 100)));
    }
}
