//! A complete modulo schedule whose broken rules are counted.
//!
//! Every operation stands in a cycle, on a variant that has its unit and its paths in the modulo
//! reservation table: resources are never taken twice. What may be broken is counted instead:
//! cycles by which dependences fail ([`State::faults`]), and live values beyond the registers of a
//! cluster, row by row ([`State::excess`]). [`super::moves`] changes the cycle of an operation and
//! [`super::clusters`] its cluster; both keep all counts, so the cost of a move is known at once.
//!
//! One model of lifetimes serves static and rotating registers. A value is live from the cycle in
//! which its register changes to its last read. A static register is written anew every II cycles,
//! so there a longer lifetime is a dependence that fails. A rotating one is not: the value is live
//! in several registers at once, and counts as often.

use super::super::body::From;
use super::super::certain::Certain;
use super::super::graph::{Neighbours, kept, latency};
use super::super::modulo::{Schedule, keeps_orders};
use super::super::place::{Ops, Sides};
use super::super::table::Table;
use super::clusters::Outside;
use super::params::Params;
use ciphermill_machine::InstrId;
use ciphermill_program::search_log::Moves;
use smallvec::SmallVec;
use std::sync::Arc;

/// A loop whose operations have clusters.
#[derive(Clone, Debug)]
pub struct Task {
    pub ops: Ops,
    pub near: Neighbours,
    /// Accesses that would probably meet in a bank of memory stand in different cycles.
    pub apart: bool,
    /// Registers of each cluster, those of values from outside among them.
    pub pool: Vec<i64>,
    /// Values have rotating registers.
    pub rotates: bool,
}

/// What all schedules of a loop share.
#[derive(Clone)]
pub struct Loop<'s> {
    pub sides: &'s Sides<'s>,
    pub task: Arc<Task>,
    pub params: &'s Params,
}

/// `sign * (time[own] - time[other]) + cycles <= 0`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order {
    pub other: u32,
    /// 1 where the other comes later, -1 where it comes before.
    pub sign: i32,
    pub cycles: i32,
    /// The operand by which the later one reads the earlier one's result.
    pub operand: Option<u8>,
}

/// Cycles in which a value is live: the first, and how many.
pub(super) type Arc2 = (i64, i64);

/// What has to be known of an operation's result.
#[derive(Clone, Copy, Default)]
pub(super) struct Value {
    /// None where it has no result.
    pub cluster: Option<usize>,
    kept: i64,
    /// Is it there before the loop, or read behind it?
    initial: bool,
    behind: bool,
    /// Can only certain registers hold it, so few that these have to be counted?
    certain: bool,
}

/// A schedule under way.
#[derive(Clone)]
pub struct State<'s> {
    pub all: Loop<'s>,
    /// The operations, with the clusters that they have now.
    pub(super) ops: Ops,
    pub(super) table: Table<'s>,
    pub schedule: Schedule,
    /// The dependences of each operation, one operation's after the other's, and where they begin.
    orders: Vec<Order>,
    begins: Vec<u32>,
    /// Values that each operation reads or makes.
    pub(super) touched: Vec<SmallVec<[u32; 4]>>,
    pub(super) values: Vec<Value>,
    /// Readers of each value, one value's after the other's, with the cycles between the
    /// iterations, and where they begin.
    readers: Vec<(u32, i32)>,
    reading: Vec<u32>,
    /// Values live, cluster by cluster, row by row; and of each cluster those that only certain
    /// registers can hold, where these are counted.
    pub(super) live: Vec<i32>,
    pub(super) arcs: Vec<Arc2>,
    /// The same of the values that are counted together: the value, the row of the first cycle,
    /// and how many.
    pub(super) spans: Vec<Vec<(u32, i32, i32)>>,
    /// Where a value is among those of its cluster, and among those of certain registers.
    pub(super) among: Vec<[u32; 2]>,
    /// Clusters and rows that had too many when that was last looked at.
    pub(super) crowded: Vec<(usize, usize)>,
    /// Operations with dependences that failed then.
    pub(super) broken: Vec<usize>,
    pub(super) outside: Outside,
    /// Registers of each cluster that values from outside leave; and the certain ones.
    pub(super) limits: Vec<i64>,
    /// Live values beyond the limits, over all rows.
    pub excess: i64,
    /// What rows cost.
    pub(super) heat: i64,
    /// Cycles by which dependences fail.
    pub faults: i64,
    /// Moves of the anneal that is under way.
    pub(super) moves: Moves,
}

impl<'s> State<'s> {
    /// Nothing stands yet.
    pub(super) fn empty(all: &Loop<'s>, ops: &Ops, ii: i64, stages: i64) -> State<'s> {
        let (near, pool, rotates) = (&all.task.near, &all.task.pool, all.task.rotates);
        let n = ops.ops.len();
        let mut values: Vec<Value> = vec![Value::default(); n];
        let certain = Certain::of(all.sides, ops);
        let counted = pool.len() + certain.limits.len();
        let (mut spans, mut among) = (vec![Vec::new(); counted], vec![[0; 2]; n]);
        let mut orders: Vec<Vec<Order>> = vec![Vec::new(); n];
        let mut touched = vec![SmallVec::new(); n];
        for i in 0..n {
            let cluster = ops.ops[i].writes.map(|_| ops.ops[i].at.result);
            let initial = ops.initial.contains_key(&i);
            values[i] = Value { cluster, kept: kept(ops, i), initial, behind: false, certain: certain.holds(i) };
            for (k, place) in places(values[i], pool.len()).into_iter().enumerate() {
                among[i][k] = spans[place].len() as u32;
                spans[place].push((i as u32, 0, 0));
            }
            let mut order = |first: usize, second: usize, cycles: i64, operand: Option<u8>| {
                let cycles = cycles as i32;
                orders[first].push(Order { other: second as u32, sign: 1, cycles, operand });
                orders[second].push(Order { other: first as u32, sign: -1, cycles, operand });
            };
            for e in &near.before[i] {
                let crossing = e.operand.map_or(0, |o| ops.crossing(i, usize::from(o)));
                order(e.other, i, e.cycles + crossing - e.distance * ii, e.operand);
            }
            if !rotates {
                // No value may be there when its successor comes.
                for &(p, d) in near.reads[i].iter().filter(|r| r.0 != i) {
                    order(i, p, d * ii - kept(ops, p) - ii + 1, None);
                }
                // Nor what has come into its register since.
                if let Some((root, since)) = root(ops, i) {
                    let read = near.readers[i].iter().filter(|r| r.0 != root);
                    read.for_each(|&(r, d)| order(r, root, (d + since) * ii - kept(ops, root) - ii + 1, None));
                }
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
        let outside = Outside::of(ops, pool.len(), rotates);
        let left = pool.iter().enumerate().map(|(cluster, pool)| pool - outside.on(cluster));
        let limits = left.chain(certain.limits).collect();
        State {
            ops: ops.clone(),
            table: Table::new(all.sides, ops, ii, all.task.apart),
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
            moves: Moves::default(),
            all: all.clone(),
        }
    }

    pub(super) fn count_all(&mut self) {
        for i in 0..self.values.len() {
            self.follow(i);
        }
        // Every dependence is at two operations.
        self.faults = (0..self.values.len()).map(|i| self.faults_at(i)).sum::<i64>() / 2;
    }

    /// Cycles by which dependences of an operation fail.
    pub(super) fn faults_at(&self, i: usize) -> i64 {
        let mut sum = 0;
        for o in self.orders_of(i) {
            sum += self.fault(i, o).max(0);
        }
        sum
    }

    pub(super) fn orders_of(&self, i: usize) -> &[Order] {
        &self.orders[self.begins[i] as usize..self.begins[i + 1] as usize]
    }

    /// Where the dependences of an operation are.
    pub(super) fn begins_of(&self, i: usize) -> std::ops::Range<usize> {
        self.begins[i] as usize..self.begins[i + 1] as usize
    }

    pub(super) fn order(&self, n: usize) -> Order {
        self.orders[n]
    }

    /// Cycles by which a dependence fails; not more than 0 where it holds.
    pub(super) fn fault(&self, i: usize, o: &Order) -> i64 {
        let time = &self.schedule.time;
        i64::from(o.sign) * (time[i] - time[o.other as usize]) + i64::from(o.cycles)
    }

    /// The cycles of a reader's dependences follow the paths that its operands now take.
    pub(super) fn recross(&mut self, reader: usize) {
        for k in self.begins[reader] as usize..self.begins[reader + 1] as usize {
            let Order { other, sign: -1, cycles, operand: Some(o) } = self.orders[k] else { continue };
            let p = other as usize;
            let own = (latency(&self.ops, p) + self.ops.crossing(reader, usize::from(o))) as i32;
            let distance = self.ops.ops[reader].reads.iter().find(|r| r.0 == usize::from(o));
            let distance = if let Some((_, From::Node(_, d))) = distance { i64::from(*d) } else { 0 };
            let new = own - (distance * self.schedule.ii) as i32;
            if new == cycles {
                continue;
            }
            let slack = self.schedule.time[p] - self.schedule.time[reader];
            self.faults += (slack + i64::from(new)).max(0) - (slack + i64::from(cycles)).max(0);
            self.orders[k].cycles = new;
            let mirror = self.begins[p] as usize..self.begins[p + 1] as usize;
            let same = |m: &&mut Order| m.sign == 1 && m.other as usize == reader && m.operand == Some(o);
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
        self.heat + self.all.params.fault * self.faults
    }

    /// The operations, with the clusters that they have now.
    pub fn ops(&self) -> &Ops {
        &self.ops
    }

    /// The schedule, where nothing is broken.
    pub fn finish(&self) -> Option<Schedule> {
        let time = &self.schedule.time;
        let orders = || keeps_orders(&self.ops, self.schedule.ii, time, self.all.task.rotates);
        // Where an instruction has several units to choose from, what was taken back may stand on another.
        let whole = self.left() == 0 && orders() && State::carried_with(&self.all, &self.schedule, &self.ops).is_some();
        whole.then(|| {
            // The last stages may have been left empty.
            let stages = time.iter().max().map_or(1, |t| t / self.schedule.ii + 1);
            Schedule { stages, ..self.schedule.clone() }
        })
    }

    /// Readers of a value, with the cycles between the iterations.
    pub(super) fn readers_of(&self, i: usize) -> &[(u32, i32)] {
        &self.readers[self.reading[i] as usize..self.reading[i + 1] as usize]
    }

    /// The cycles for which a value has its register, as colouring has them: the first and how
    /// many.
    pub(super) fn arc(&self, i: usize) -> Arc2 {
        let (time, ii) = (&self.schedule.time, self.schedule.ii);
        let value = self.values[i];
        let mut start = time[i] + value.kept;
        let mut stop = start;
        for r in self.readers_of(i) {
            stop = stop.max(time[r.0 as usize] + i64::from(r.1));
        }
        if value.behind {
            stop = stop.max(self.schedule.stages * ii);
        }
        if value.initial {
            start = start.min(ii);
        }
        let cycles = stop - start + 1;
        (start, if self.all.task.rotates { cycles } else { cycles.min(ii) })
    }

    /// The rows of a value are what its operation and its readers now make them.
    pub(super) fn follow(&mut self, i: usize) {
        if self.values[i].cluster.is_some() {
            self.live_in(i, self.arc(i));
        }
    }

    /// A value is live in these cycles, and no longer in those so far.
    pub(super) fn live_in(&mut self, i: usize, new: Arc2) {
        let (old, value) = (self.arcs[i], self.values[i]);
        let Some(cluster) = value.cluster.filter(|_| old != new) else { return };
        self.arcs[i] = new;
        let span = (i as u32, row(new.0, self.schedule.ii) as i32, new.1 as i32);
        self.spans[cluster][self.among[i][0] as usize] = span;
        let (old, new) = ((old.0, old.0 + old.1), (new.0, new.0 + new.1));
        self.changes(cluster, old, new);
        if value.certain {
            let place = self.all.task.pool.len() + cluster;
            self.spans[place][self.among[i][1] as usize] = span;
            self.changes(place, old, new);
        }
    }

    /// A value of a cluster is live from one cycle to another, and no longer where it was.
    fn changes(&mut self, place: usize, old: (i64, i64), new: (i64, i64)) {
        // Only what differs changes.
        let overlap = (old.0.max(new.0), old.1.min(new.1));
        if overlap.0 >= overlap.1 {
            self.change::<false>(place, old);
            self.change::<true>(place, new);
            return;
        }
        self.change::<false>(place, (old.0, overlap.0));
        self.change::<false>(place, (overlap.1, old.1));
        self.change::<true>(place, (new.0, overlap.0));
        self.change::<true>(place, (overlap.1, new.1));
    }

    /// In some cycles a value of a cluster comes or goes.
    fn change<const COMES: bool>(&mut self, place: usize, mut cycles: (i64, i64)) {
        let ii = self.schedule.ii as usize;
        let limit = self.limits[place] as i32;
        while cycles.0 < cycles.1 {
            let end = cycles.1.min(cycles.0 + ii as i64);
            let rows = &mut self.live[place * ii..(place + 1) * ii];
            let first = row(cycles.0, ii as i64) as usize;
            let last = first + (end - cycles.0) as usize;
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
            cycles.0 = end;
        }
    }

    /// A cluster has so many registers more, or fewer.
    pub(super) fn limit(&mut self, place: usize, more: i64) {
        let ii = self.schedule.ii as usize;
        let rows = &self.live[place * ii..(place + 1) * ii];
        for _ in 0..more.abs() {
            let comes = more > 0;
            let limit = (self.limits[place] + i64::from(comes)) as i32;
            // With one register less each value is as dear as the next one was.
            let (excess, heat) = rows.iter().fold((0, 0), |(excess, heat), &row| {
                (excess + i64::from(row >= limit), heat + i64::from(dearer(row - limit) - dearer(-limit)))
            });
            let by = if comes { -1 } else { 1 };
            self.limits[place] -= by;
            self.excess += by * excess;
            self.heat += by * heat;
        }
    }

    /// One register of a cluster less than there is, for arcs that could not be coloured with all.
    pub fn tighten(&mut self, cluster: usize) {
        self.limit(cluster, -1);
    }

    /// See what is broken.
    pub(super) fn look(&mut self) {
        let rows = 0..self.schedule.ii as usize;
        let all = (0..self.limits.len()).flat_map(|place| rows.clone().map(move |row| (place, row)));
        self.crowded = all.filter(|&(place, row)| self.crowds(place, row)).collect();
        self.broken = (0..self.values.len()).filter(|&i| self.faults_at(i) > 0).collect();
    }

    /// Has a row of a cluster more values than registers?
    pub(super) fn crowds(&self, place: usize, row: usize) -> bool {
        i64::from(self.live[place * self.schedule.ii as usize + row]) > self.limits[place]
    }

    /// The first and the last cycle of an iteration.
    pub(super) fn cycles(&self) -> std::ops::Range<i64> {
        0..self.schedule.stages * self.schedule.ii
    }
}

/// What one value more costs in a row that has so many more than registers already: rows that
/// are full, or nearly so, have no room for the next move.
pub(super) fn dearer(more: i32) -> i32 {
    i32::from(more >= -2) + i32::from(more >= 0) * (19 + 8 * more.min(400))
}

/// Where a value is counted: on its cluster, and among those of certain registers.
pub(super) fn places(value: Value, clusters: usize) -> SmallVec<[usize; 2]> {
    let certain = value.cluster.filter(|_| value.certain).map(|cluster| clusters + cluster);
    value.cluster.into_iter().chain(certain).collect()
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
pub(super) fn row(cycle: i64, ii: i64) -> i64 {
    if !(-8 * ii..8 * ii).contains(&cycle) {
        return cycle.rem_euclid(ii);
    }
    let mut row = cycle;
    while row < 0 {
        row += ii;
    }
    while row >= ii {
        row -= ii;
    }
    row
}
