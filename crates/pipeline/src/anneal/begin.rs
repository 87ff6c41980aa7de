//! How a schedule that is to be annealed begins.
//!
//! [`State::without`] takes a row out of a schedule that is complete: what stood behind it in
//! each stage comes a cycle earlier, and only orders that had no cycle to spare across that
//! row are broken; [`State::wider`] puts a row in. [`State::carried`] takes over a schedule of
//! nearly the same operations. [`State::stretched`] spreads an iteration evenly over so many
//! cycles.

use super::{Dice, Loop, State};
use crate::graph::latency;
use crate::modulo::Schedule;
use crate::place::{Ops, Origin};
use crate::table::shuffle;
use ciphermill_machine::InstrId;
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// So many times for each operation one gives way to another in a fresh start.
const PUSHED: usize = 2;
/// Cycles to either side of where it should stand in which an operation first looks for
/// one that gives way.
const AROUND: usize = 30;

impl<'a> State<'a> {
    /// A schedule without one of its rows. `None` where an operation of that row finds no
    /// other.
    pub fn without(all: Loop<'a>, schedule: &Schedule, row: i64) -> Option<State<'a>> {
        let ii = schedule.ii - 1;
        let mut homeless = Vec::new();
        let mut state = State::empty(all, all.ops, ii, schedule.stages);
        for (i, op) in all.ops.ops.iter().enumerate() {
            let (stage, own) = (schedule.time[i] / schedule.ii, schedule.time[i] % schedule.ii);
            let (time, variant) = (schedule.time[i] - stage - i64::from(own > row), schedule.variant[i]);
            (state.schedule.time[i], state.schedule.variant[i]) = (time, variant);
            if own == row {
                homeless.push(i);
                continue;
            }
            let to = state.table.row(time);
            let unit = state.table.free(to, op, variant)?;
            state.table.put(to, i, op, variant, unit);
        }
        for i in homeless {
            state.put_somewhere(i, state.schedule.time[i])?;
        }
        state.count_all();
        Some(state)
    }

    /// The same with one more row, behind the one in which most is broken.
    pub fn wider(&self) -> State<'a> {
        let (all, ii) = (self.all, self.schedule.ii);
        let mut broken = vec![0i64; ii as usize];
        for (side, limit) in self.limits.iter().enumerate() {
            let live = &self.live[side * ii as usize..(side + 1) * ii as usize];
            broken.iter_mut().zip(live).for_each(|(b, &l)| *b += (i64::from(l) - limit).max(0));
        }
        for (i, time) in self.schedule.time.iter().enumerate() {
            broken[(time % ii) as usize] += self.faults_at(i);
        }
        let branch = self.schedule.time.last().map_or(0, |t| t % ii);
        let row = (0..branch.max(1)).max_by_key(|&r| (broken[r as usize], -r)).unwrap_or(0);
        let mut state = State::empty(all, &self.ops, ii + 1, self.schedule.stages);
        for (i, op) in self.ops.ops.iter().enumerate() {
            let (stage, own) = (self.schedule.time[i] / ii, self.schedule.time[i] % ii);
            let (time, variant) = (self.schedule.time[i] + stage + i64::from(own > row), self.schedule.variant[i]);
            (state.schedule.time[i], state.schedule.variant[i]) = (time, variant);
            let to = state.table.row(time);
            state.table.put_back(to, i, op, variant);
        }
        state.count_all();
        state
    }

    /// A schedule of other operations of the same loop: what is in both stands where it stood.
    /// `None` where there is no place for an operation.
    pub fn carried(all: Loop<'a>, schedule: &Schedule, old: &Ops) -> Option<State<'a>> {
        let stood = old.origins.iter().zip(schedule.time.iter().zip(&schedule.variant));
        let stood: BTreeMap<Origin, (i64, InstrId)> =
            stood.filter(|o| *o.0 != Origin::Own).map(|(&o, (&t, &v))| (o, (t, v))).collect();
        let mut state = State::empty(all, all.ops, schedule.ii, schedule.stages);
        let (mut homeless, mut copies) = (Vec::new(), Vec::new());
        for (i, op) in all.ops.ops.iter().enumerate() {
            let Some(&(time, variant)) = stood.get(&all.ops.origins[i]) else {
                copies.push(i);
                continue;
            };
            (state.schedule.time[i], state.schedule.variant[i]) = (time, variant);
            let row = state.table.row(time);
            match op.variants.contains(&variant).then(|| state.table.free(row, op, variant)).flatten() {
                Some(unit) => state.table.put(row, i, op, variant, unit),
                None => homeless.push(i),
            }
        }
        for i in homeless {
            state.put_somewhere(i, state.schedule.time[i])?;
        }
        for i in copies {
            let read = |r: &(usize, i64)| state.schedule.time[r.0] + r.1 * schedule.ii;
            let first = all.near.readers[i].iter().map(read).min().unwrap_or(0);
            let at = (first - latency(all.ops, i)).clamp(0, schedule.stages * schedule.ii - 1);
            state.put_somewhere(i, at)?;
        }
        state.count_all();
        Some(state)
    }

    /// A schedule in which every operation stands in proportion to the longest way from it to
    /// the end of its iteration, which takes so many cycles. Where stages leave more, accesses
    /// to memory and what one unit has to do are placed first. Where all places are taken,
    /// others give way. `None` where units are too few for that.
    pub fn stretched(all: Loop<'a>, branch: i64, ii: i64, stages: i64, length: i64) -> Option<State<'a>> {
        let n = all.ops.ops.len();
        let mut state = State::empty(all, all.ops, ii, stages);
        let way = ways(all);
        let chain = way.iter().max().copied().unwrap_or(0).max(1);
        let last = length.min(stages * ii) - 2;
        let wish = |i: usize| if i + 1 == n { branch } else { last - way[i] * last / chain };
        // What only the next iteration reads stands behind its readers, when they do.
        let next = |i: usize| all.near.readers[i].iter().all(|r| r.1 > 0) && all.ops.initial.contains_key(&i);
        let units = |i: usize| all.ops.ops[i].variants.iter().fold(0, |m, v| m | all.sides.units[usize::from(v.0)]);
        let choice = |i: usize| length < stages * ii && units(i).count_ones() > 1;
        let no_access = |i: usize| length < stages * ii && all.ops.ops[i].inst.mem.is_none();
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by_key(|&i| Reverse((i + 1 != n, next(i), no_access(i), choice(i), wish(i))));
        let (mut dice, mut pushed) = (Dice(0), 0);
        while let Some(i) = order.pop() {
            let readers = all.near.readers[i].iter().filter(|r| r.0 != i).map(|r| state.schedule.time[r.0] + 1);
            let at = if next(i) { readers.max().unwrap_or(last) } else { wish(i) };
            if state.put_near(i, at).is_some() {
                continue;
            }
            pushed += 1;
            if pushed > PUSHED * n {
                return None;
            }
            order.push(state.displace(&mut dice, i, at, (AROUND + pushed / 4) as i64)?);
        }
        state.count_all();
        Some(state)
    }

    /// An operation gets the place of another, at most so far from a cycle, or farther where
    /// none that is tried can give way. Returns the other, which has no place now.
    fn displace(&mut self, dice: &mut Dice, i: usize, wish: i64, far: i64) -> Option<usize> {
        let (ii, last) = (self.schedule.ii, self.values.len() - 1);
        for k in 0..ii {
            let far = far + k / 2;
            let at = wish - far + dice.below(2 * far as usize + 1) as i64;
            if !(0..self.schedule.stages * ii).contains(&at) {
                continue;
            }
            let to = self.table.row(at);
            let held: SmallVec<[usize; 8]> = self.table.held(to).iter().copied().filter(|q| *q != last).collect();
            for &other in &held {
                let was = self.schedule.variant[other];
                self.table.take(to, other, &self.ops.ops[other], was);
                if let Some((v, unit)) = self.table.best(to, &self.ops.ops[i]) {
                    self.table.put(to, i, &self.ops.ops[i], v, unit);
                    (self.schedule.time[i], self.schedule.variant[i]) = (at, v);
                    return Some(other);
                }
                self.table.put_back(to, other, &self.ops.ops[other], was);
            }
        }
        None
    }

    /// An operation gets the place nearest to a cycle.
    pub(super) fn put_near(&mut self, i: usize, at: i64) -> Option<()> {
        let ii = self.schedule.ii;
        let op = &self.ops.ops[i];
        let branch = i + 1 == self.ops.ops.len();
        let cycles = 0..self.schedule.stages * ii;
        let around = (0..if branch { 1 } else { ii }).flat_map(|by| [at - by, at + by]).filter(|t| cycles.contains(t));
        for t in around {
            let row = self.table.row(t);
            if self.table.count[row] >= self.table.width() {
                continue;
            }
            let found = self.table.best(row, op);
            let found = found.or_else(|| shuffle(&mut self.table, &self.ops, &mut self.schedule.variant, row, i));
            if let Some((v, unit)) = found {
                (self.schedule.time[i], self.schedule.variant[i]) = (t, v);
                self.table.put(row, i, op, v, unit);
                return Some(());
            }
        }
        None
    }
}

/// The longest way from each operation to the end of its iteration.
fn ways(all: Loop<'_>) -> Vec<i64> {
    let n = all.ops.ops.len();
    let mut way = vec![0i64; n];
    loop {
        let mut longer = false;
        for i in (0..n).rev() {
            let after = all.near.after[i].iter().filter(|e| e.distance == 0);
            let own = after.map(|e| way[e.other] + e.cycles).max().unwrap_or(0);
            longer |= own > way[i];
            way[i] = way[i].max(own);
        }
        if !longer {
            return way;
        }
    }
}
