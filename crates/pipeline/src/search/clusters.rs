//! Moves of operations between clusters.
//!
//! Which cluster does what is decided before there is a schedule, and what a row then lacks may
//! be there on the other cluster. So some moves take an operation, or a load's result, to another
//! cluster, in its own cycle or in another one; what reads its result reads it over a path then,
//! or no longer. Only what needs no copy that is not there already can move so: copies come
//! and go with [`super::shorten`].

use super::moves::Dice;
use super::state::{Loop, State, places, row};
use crate::body::From;
use crate::graph::without_units;
use crate::place::{At, Ops, Sides, fit};
use ciphermill_machine::InstrId;
use ciphermill_vcode::VReg;
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// The changes that [`changes`] knows.
const CHANGES: usize = 6;
/// A cluster keeps so many registers for the values of the loop.
pub const LEAST: i64 = 2;

/// Values from outside, which have a register on each cluster that reads them.
#[derive(Clone)]
pub struct Outside {
    /// Those that each operation reads.
    read: Vec<SmallVec<[u32; 2]>>,
    /// Operations that read each value, cluster after cluster.
    readers: Vec<Vec<u32>>,
}

impl Outside {
    /// Where registers rotate, these stand still and are not counted.
    pub fn of(ops: &Ops, clusters: usize, rotates: bool) -> Outside {
        let mut numbers: BTreeMap<VReg, u32> = BTreeMap::new();
        let mut read = vec![SmallVec::new(); ops.ops.len()];
        for (list, op) in read.iter_mut().zip(&ops.ops) {
            for &(_, from) in &op.reads {
                if let From::Outside(v) = from {
                    let next = numbers.len() as u32;
                    let number = *numbers.entry(v).or_insert(next);
                    if !list.contains(&number) {
                        list.push(number);
                    }
                }
            }
        }
        let mut readers = vec![vec![0; numbers.len()]; clusters];
        for (list, op) in read.iter().zip(&ops.ops).filter(|_| !rotates) {
            list.iter().for_each(|&v| readers[op.at.unit][v as usize] += 1);
        }
        Outside { read, readers }
    }

    /// Registers that they take on a cluster.
    pub fn on(&self, cluster: usize) -> i64 {
        self.readers[cluster].iter().filter(|n| **n > 0).count() as i64
    }

    /// An operation goes from one cluster to another: registers that this leaves free on the
    /// one, and takes on the other.
    fn go(&mut self, i: usize, from: usize, to: usize) -> (i64, i64) {
        let (mut free, mut taken) = (0, 0);
        for &v in &self.read[i] {
            self.readers[from][v as usize] -= 1;
            free += i64::from(self.readers[from][v as usize] == 0);
            taken += i64::from(self.readers[to][v as usize] == 0);
            self.readers[to][v as usize] += 1;
        }
        (free, taken)
    }
}

/// What operations were before some of them changed clusters.
struct Turned {
    at: SmallVec<[(usize, At); 4]>,
    /// The variants that fitted those, and the readers of their results.
    variants: SmallVec<[(usize, SmallVec<[InstrId; 8]>); 8]>,
}

impl Turned {
    /// Operations have other clusters now, and so many variants fit them and those who read their
    /// results. `None` where one has none left, and nothing has changed.
    fn turn(all: &Loop<'_>, ops: &mut Ops, new: &[(usize, At)]) -> Option<Turned> {
        let mut turned = Turned { at: SmallVec::new(), variants: SmallVec::new() };
        let mut changed: SmallVec<[usize; 8]> = SmallVec::new();
        for &(i, at) in new {
            let was = std::mem::replace(&mut ops.ops[i].at, at);
            turned.at.push((i, was));
            changed.push(i);
            if was.result != at.result {
                changed.extend(all.task.near.readers[i].iter().map(|r| r.0));
            }
        }
        changed.sort_unstable();
        changed.dedup();
        for k in changed {
            let fitting = if ops.ops[k].tied { SmallVec::new() } else { fit(all.sides, ops, k) };
            if fitting.is_empty() {
                turned.back(all.sides, ops);
                return None;
            }
            turned.variants.push((k, std::mem::replace(&mut ops.ops[k].variants, fitting)));
            ops.ops[k].follow_paths(all.sides);
        }
        Some(turned)
    }

    /// All is as it was.
    fn back(self, sides: &Sides<'_>, ops: &mut Ops) {
        self.at.iter().for_each(|&(i, at)| ops.ops[i].at = at);
        for (k, variants) in self.variants {
            ops.ops[k].variants = variants;
            ops.ops[k].follow_paths(sides);
        }
    }
}

/// Operations that may change clusters together, one of them given, and where to.
type Changes = SmallVec<[(usize, At); 4]>;

/// Operations with the variants that they had.
type Stood = SmallVec<[(usize, InstrId); 8]>;

/// One of a few ways to change clusters: an operation, for a load with or without its result or
/// that alone; with what makes its operands for it alone; with those who read its result.
fn changes(all: &Loop<'_>, ops: &Ops, i: usize, way: usize) -> Changes {
    let count = all.task.pool.len();
    let other = |i: usize| {
        let at = ops.ops[i].at;
        let (unit, result) = ((at.unit + 1) % count, (at.result + 1) % count);
        let apart = at.unit != at.result;
        At { unit, result: if apart { result } else { unit } }
    };
    let at = ops.ops[i].at;
    let load = ops.ops[i].inst.mem.is_some() && ops.ops[i].writes.is_some();
    let (new, way) = match way {
        0 if load => (At { result: other(i).result, ..at }, 0),
        1 if load => (At { unit: other(i).unit, ..at }, 0),
        2 if load => (At { unit: other(i).unit, ..at }, 1),
        _ => (other(i), way % 3),
    };
    let mut out: Changes = SmallVec::from_slice(&[(i, new)]);
    match way {
        1 => {
            for &(p, d) in &all.task.near.reads[i] {
                if d == 0 && p != i && all.task.near.readers[p].len() == 1 && ops.ops[p].at.result == at.unit {
                    out.push((p, At { result: new.unit, ..other(p) }));
                }
            }
        }
        2 => {
            for &(r, _) in &all.task.near.readers[i] {
                if r != i && ops.ops[r].at.unit == at.result && out.iter().all(|o| o.0 != r) {
                    out.push((r, other(r)));
                }
            }
        }
        _ => {}
    }
    out
}

/// Operations for which the units of their clusters, or paths, have no cycle; and how many take
/// paths.
fn lacking(all: &Loop<'_>, ops: &Ops, ii: i64) -> (u64, u64) {
    let variants = |side: usize| ops.ops.iter().filter(move |op| op.at.unit == side).map(|op| op.variants.as_slice());
    let units: u64 = (0..all.task.pool.len()).map(|side| without_units(all.sides, variants(side), ii)).sum();
    // Units that an operation has to run on, and paths that it has to take: one that several
    // may read a value over at once counts once for each value.
    let mut needed = [0u64; 64];
    let mut paths = 0;
    let mut values: Vec<(usize, From)> = Vec::new();
    for op in &ops.ops {
        let takes = op.variants.iter().map(|v| &all.sides.takes[usize::from(v.0)]);
        let mut bits = takes.clone().fold(u64::MAX, |m, t| m & t.bits);
        let least = takes.map(|t| t.paths as u64).min().unwrap_or(0);
        paths += least;
        while bits != 0 && bits != u64::MAX {
            needed[bits.trailing_zeros() as usize] += 1;
            bits &= bits - 1;
        }
        if let (1.., Some(v)) = (least, op.variants.first()) {
            let shared = all.sides.machine.instrs[usize::from(v.0)].paths.iter();
            let shared = shared.filter(|p| op.stalling.contains(&p.1) || all.sides.machine.units[p.0].shared > 1);
            values.extend(shared.filter_map(|p| Some((p.0, op.reads.iter().find(|r| r.0 == p.1)?.1))));
        }
    }
    values.sort_unstable();
    values.dedup();
    values.iter().for_each(|v| needed[v.0.min(63)] += 1);
    let cycles = |unit: usize| ii as u64 * all.sides.machine.units.get(unit).map_or(1, |u| u64::from(u.count));
    let over = needed.iter().enumerate().map(|(unit, n)| n.saturating_sub(cycles(unit)));
    (units + over.sum::<u64>(), paths)
}

/// The least interval at which units and paths have cycles enough for all operations.
pub fn least(all: &Loop<'_>, ops: &Ops) -> i64 {
    let (mut low, mut high) = (0, ops.ops.len() as i64);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if lacking(all, ops, middle).0 == 0 { high = middle } else { low = middle }
    }
    high
}

impl Loop<'_> {
    /// Can operations change clusters?
    pub fn clustered(&self) -> bool {
        self.task.pool.len() > 1 && self.task.ops.ops.len() > 1
    }
}

impl State<'_> {
    /// Try to take operations to another cluster, if that costs no more than is allowed.
    pub(super) fn change_clusters(&mut self, dice: &mut Dice, allowed: i64) {
        let n = self.values.len();
        // One whose value is where registers are too few, or any.
        let crowded = self.crowded.get(dice.below(self.crowded.len())).copied();
        let crowded = crowded.filter(|&(side, row)| dice.below(2) == 0 && self.crowds(side, row));
        let concerned = crowded.and_then(|(side, row)| {
            let first = dice.below(self.spans[side].len());
            self.concerned(side, row, first, true)
        });
        let i = concerned.map(|c| c.0).filter(|i| i + 1 < n).unwrap_or(dice.below(n - 1));
        let new = changes(&self.all, &self.ops, i, dice.below(CHANGES));
        let now = self.schedule.time[i];
        let last = self.cycles().end - 1;
        let to = match dice.below(2) {
            0 => now,
            _ => {
                let (low, high) = self.window(i);
                let (low, high) =
                    (low.max(now - self.all.params.near).max(0), high.min(now + self.all.params.near).min(last));
                if low > high { now } else { low + dice.below((high - low + 1) as usize) as i64 }
            }
        };
        let most = self.energy() + allowed;
        let crossed = self.cross(&new, to, most);
        self.moves.crossings.count(crossed);
    }

    /// Registers follow operations from the clusters that they had. False where too few are left
    /// on one.
    fn follow_clusters(&mut self, from: &[(usize, At)], readers: &[usize]) -> bool {
        let mut room = true;
        if self.ops.cross_stall > 0 {
            readers.iter().for_each(|&k| self.recross(k));
        }
        for &(i, was) in from {
            let to = self.ops.ops[i].at;
            if was.unit != to.unit && !self.outside.read[i].is_empty() {
                let (free, taken) = self.outside.go(i, was.unit, to.unit);
                self.limit(was.unit, free);
                self.limit(to.unit, -taken);
                room &= self.limits[to.unit] >= LEAST;
            }
            if self.values[i].cluster.is_some_and(|c| c != to.result) {
                let (arc, sides) = (self.arcs[i], self.all.task.pool.len());
                self.live_in(i, (0, 0));
                let old = places(self.values[i], sides);
                self.values[i].cluster = Some(to.result);
                let new = places(self.values[i], sides);
                for (k, (old, new)) in old.into_iter().zip(new).enumerate() {
                    let at = self.among[i][k] as usize;
                    self.spans[old].swap_remove(at);
                    if let Some(moved) = self.spans[old].get(at) {
                        self.among[moved.0 as usize][k] = at as u32;
                    }
                    self.among[i][k] = self.spans[new].len() as u32;
                    self.spans[new].push((i as u32, 0, 0));
                }
                self.live_in(i, arc);
            }
        }
        room
    }

    /// Everything is on the clusters where it was.
    fn turn_back(&mut self, turned: Turned) {
        let new: Changes = turned.at.iter().map(|&(i, _)| (i, self.ops.ops[i].at)).collect();
        let readers: SmallVec<[usize; 8]> = turned.variants.iter().map(|v| v.0).collect();
        turned.back(self.all.sides, &mut self.ops);
        self.follow_clusters(&new, &readers);
    }

    /// Operations go to other clusters, the first of them to a cycle, unless the energy is more
    /// than `most` then or a row has no unit or path for one of them or for a reader.
    fn cross(&mut self, new: &[(usize, At)], to: i64, most: i64) -> bool {
        let Some(&(i, _)) = new.first() else { return false };
        let now = self.schedule.time[i];
        let Some(turned) = Turned::turn(&self.all, &mut self.ops, new) else { return false };
        let readers: SmallVec<[usize; 8]> = turned.variants.iter().map(|v| v.0).collect();
        let room = self.follow_clusters(&turned.at, &readers);
        let undo = if to == now { None } else { self.transfer(i, to, i64::MAX) };
        if room && self.energy() <= most && self.stand(i, now, &turned, false).is_some() {
            return true;
        }
        if let Some(undo) = undo {
            self.undo(i, &undo);
        }
        self.turn_back(turned);
        false
    }

    /// Units and paths for all who changed, the first of whom was in another cycle, perhaps.
    /// `None` where there are none, and nothing has changed; otherwise those that stand, with the
    /// variants that they had. `standing` says that some have no place yet, and need none.
    fn stand(&mut self, i: usize, was: i64, turned: &Turned, standing: bool) -> Option<Stood> {
        let ii = self.schedule.ii;
        let own = |state: &State<'_>, k: usize| row(state.schedule.time[k], ii) as usize;
        let before = |state: &State<'_>, k: usize| if k == i { row(was, ii) as usize } else { own(state, k) };
        let mut old = Stood::new();
        for &(k, _) in &turned.variants {
            let (row, variant) = (before(self, k), self.schedule.variant[k]);
            if !standing || self.table.held(row).contains(&k) {
                self.table.take(row, k, &self.ops.ops[k], variant);
                old.push((k, variant));
            }
        }
        for (placed, &(k, _)) in old.iter().enumerate() {
            let (row, op) = (own(self, k), &self.ops.ops[k]);
            let room = self.table.count[row] < self.table.width();
            if let Some((v, unit)) = room.then(|| self.table.best(row, op)).flatten() {
                self.table.put(row, k, op, v, unit);
                self.schedule.variant[k] = v;
                continue;
            }
            for &(k, _) in &old[..placed] {
                self.table.take(own(self, k), k, &self.ops.ops[k], self.schedule.variant[k]);
            }
            for &(k, variant) in &old {
                let (row, op) = (before(self, k), &self.ops.ops[k]);
                self.table.put_back(row, k, op, variant);
                self.schedule.variant[k] = variant;
            }
            return None;
        }
        Some(old)
    }

    /// An operation that has no place yet gets the one nearest to a cycle, on another cluster
    /// where its own has none.
    pub(super) fn put_somewhere(&mut self, i: usize, at: i64) -> Option<()> {
        if self.put_near(i, at).is_some() {
            return Some(());
        }
        let ways = if self.all.clustered() { 0..CHANGES } else { 0..0 };
        ways.into_iter().find_map(|way| {
            let new = changes(&self.all, &self.ops, i, way);
            let turned = Turned::turn(&self.all, &mut self.ops, &new)?;
            let readers: SmallVec<[usize; 8]> = turned.variants.iter().map(|v| v.0).collect();
            let room = self.follow_clusters(&turned.at, &readers);
            let stood = if room { self.stand(i, self.schedule.time[i], &turned, true) } else { None };
            let Some(stood) = stood else {
                self.turn_back(turned);
                return None;
            };
            if self.put_near(i, at).is_some() {
                return Some(());
            }
            let own = |state: &State<'_>, k: usize| row(state.schedule.time[k], state.schedule.ii) as usize;
            for &(k, _) in &stood {
                self.table.take(own(self, k), k, &self.ops.ops[k], self.schedule.variant[k]);
            }
            self.turn_back(turned);
            for &(k, variant) in &stood {
                let (row, op) = (own(self, k), &self.ops.ops[k]);
                self.table.put_back(row, k, op, variant);
                self.schedule.variant[k] = variant;
            }
            None
        })
    }
}
