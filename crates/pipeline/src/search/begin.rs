//! How a schedule under way begins.
//!
//! [`State::spread`] makes one from nothing: an iteration is spread over so many cycles, each
//! operation in proportion to the longest way from it to the end, or to its place in an order of
//! the operations that keeps few values live. [`State::carried`] takes over a schedule of nearly
//! the same operations. [`State::resized`] takes rows out of a schedule or puts some in: what
//! stands behind a row in each stage comes a cycle earlier or later, and only dependences that
//! had no cycle to spare across that row are broken.

use super::moves::Dice;
use super::preset::Stands;
use super::state::{Loop, State};
use crate::graph::latency;
use crate::modulo::Schedule;
use crate::place::Ops;
use crate::table::shuffle;
use ciphermill_machine::{InstrId, UnitId};
use smallvec::SmallVec;
use std::cmp::Reverse;

impl<'s> State<'s> {
    /// A schedule in which operation `i` stands near `wish[i]`, the branch in its own cycle. Those
    /// with few units to choose from are placed first, and where all places are taken others give
    /// way. `None` where units are too few for that.
    pub fn spread(all: &Loop<'s>, ops: &Ops, branch: i64, (ii, stages): (i64, i64), wish: &[i64]) -> Option<State<'s>> {
        let (near, params) = (&all.task.near, all.params);
        let n = ops.ops.len();
        let mut state = State::empty(all, ops, ii, stages);
        let wish = |i: usize| if i + 1 == n { branch } else { wish[i] };
        // What only the next iteration reads stands behind its readers, when they do.
        let next = |i: usize| near.readers[i].iter().all(|r| r.1 > 0) && ops.initial.contains_key(&i);
        let units = |i: usize| ops.ops[i].variants.iter().fold(0, |m, v| m | all.sides.units[usize::from(v.0)]);
        let choice = |i: usize| units(i).count_ones() > 1;
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by_key(|&i| Reverse((i + 1 != n, next(i), ops.ops[i].inst.mem.is_none(), choice(i), wish(i))));
        let (mut dice, mut pushed) = (Dice(0), 0);
        while let Some(i) = order.pop() {
            let readers = near.readers[i].iter().filter(|r| r.0 != i).map(|r| state.schedule.time[r.0] + 1);
            let at = if next(i) { readers.max().unwrap_or(stages * ii - 2) } else { wish(i) };
            if state.put_near(i, at.clamp(0, stages * ii - 1)).is_some() {
                continue;
            }
            pushed += 1;
            if pushed > params.pushed * n {
                return None;
            }
            order.push(state.displace(&mut dice, i, at, params.around + pushed as i64 / 4)?);
        }
        state.count_all();
        Some(state)
    }

    /// A schedule of these operations, some of whose clusters are not those of the loop.
    pub fn carried_with(all: &Loop<'s>, schedule: &Schedule, ops: &Ops) -> Option<State<'s>> {
        let stood = schedule.time.iter().copied().zip(schedule.variant.iter().copied()).map(Some).collect::<Vec<_>>();
        let mut state = State::empty(all, ops, schedule.ii, schedule.stages);
        state.stand_again(&stood)?;
        state.count_all();
        Some(state)
    }

    /// A schedule in which some operations stand already, and the others near a cycle. None where units have no place for
    /// one.
    pub(super) fn around(
        all: &Loop<'s>,
        (ii, stages): (i64, i64),
        stood: &[Option<Stands>],
        wish: &[i64],
    ) -> Option<State<'s>> {
        let mut state = State::empty(all, &all.task.ops, ii, stages);
        state.stand_again(stood)?;
        for i in (0..wish.len()).filter(|i| stood[*i].is_none()) {
            state.put_somewhere(i, wish[i].clamp(0, stages * ii - 1))?;
        }
        state.count_all();
        Some(state)
    }

    /// Operations stand where they did, those first whose instruction has the fewest units to choose from: so those of a
    /// row find units in any order that they once had.
    fn stand_again(&mut self, stood: &[Option<Stands>]) -> Option<()> {
        let mut order: Vec<(usize, Stands)> = stood.iter().enumerate().filter_map(|(i, s)| Some((i, (*s)?))).collect();
        order.sort_by_key(|(_, (_, variant))| self.all.sides.units[usize::from(variant.0)].count_ones());
        for (i, (time, variant)) in order {
            (self.schedule.time[i], self.schedule.variant[i]) = (time, variant);
            let row = self.table.row(time);
            let unit = self.table.free(row, &self.ops.ops[i], variant)?;
            self.table.put(row, i, &self.ops.ops[i], variant, unit);
        }
        Some(())
    }

    /// The same without some rows, and with one more behind each of some others. `None` where an
    /// operation of a row that goes finds no other.
    pub fn resized(&self, gone: &[i64], come: &[i64]) -> Option<State<'s>> {
        let old = &self.schedule;
        let ii = old.ii - gone.len() as i64 + come.len() as i64;
        let ops = &self.ops;
        let mut homeless = Vec::new();
        let mut state = State::empty(&self.all, ops, ii, old.stages);
        for i in with_few_units_first(&self.all, old) {
            let op = &ops.ops[i];
            let (stage, own) = (old.time[i] / old.ii, old.time[i] % old.ii);
            let less = gone.iter().filter(|&&row| row < own).count() as i64;
            let more = come.iter().filter(|&&row| row < own).count() as i64;
            let time = (stage * ii + own - less + more).min(old.stages * ii - 1);
            (state.schedule.time[i], state.schedule.variant[i]) = (time, old.variant[i]);
            if gone.contains(&own) {
                homeless.push(i);
                continue;
            }
            let to = state.table.row(time);
            let unit = state.table.free(to, op, old.variant[i])?;
            state.table.put(to, i, op, old.variant[i], unit);
        }
        for i in homeless {
            state.put_somewhere(i, state.schedule.time[i])?;
        }
        state.count_all();
        Some(state)
    }

    /// Rows before the branch's in which values or operations are too many.
    pub fn by_crowd(&self) -> Vec<i64> {
        let ii = self.schedule.ii;
        let mut broken = vec![0i64; ii as usize];
        for (place, limit) in self.limits.iter().enumerate() {
            let live = &self.live[place * ii as usize..(place + 1) * ii as usize];
            broken.iter_mut().zip(live).for_each(|(b, &l)| *b += (i64::from(l) - limit).max(0));
        }
        for (i, time) in self.schedule.time.iter().enumerate() {
            broken[(time % ii) as usize] += self.faults_at(i);
        }
        let branch = self.schedule.time.last().map_or(0, |t| t % ii);
        let mut rows: Vec<i64> = (0..branch.max(1)).collect();
        rows.sort_by_key(|&r| (-broken[r as usize], r));
        rows
    }

    /// Rows before the branch's, those first whose loss breaks least.
    pub fn by_breakage(&self) -> Vec<i64> {
        let (time, ii) = (&self.schedule.time, self.schedule.ii);
        let near = &self.all.task.near;
        let mut broken = vec![0i64; ii as usize];
        for (i, &own) in time.iter().enumerate() {
            // The row's own operations have to find a place.
            broken[(own % ii) as usize] += 1;
            for o in self.orders_of(i).iter().filter(|o| o.sign > 0 && o.operand.is_some()) {
                // Cycles between the two, with the iterations in them.
                if self.fault(i, o) == 0 {
                    let distance = near.after[i].iter().find(|e| e.other == o.other as usize).map_or(0, |e| e.distance);
                    let to = time[o.other as usize] + distance * ii;
                    (own..to.min(own + ii)).for_each(|t| broken[t.rem_euclid(ii) as usize] += 2);
                }
            }
            // A value that lives as long as II cycles allow does so wherever a row is lost.
            if !self.all.task.rotates && self.values[i].cluster.is_some() && self.arc(i).1 >= ii {
                broken.iter_mut().for_each(|b| *b += 1);
            }
        }
        let branch = time.last().copied().unwrap_or(0).clamp(0, ii);
        let mut rows: Vec<i64> = (0..branch).collect();
        rows.sort_by_key(|&r| (broken[r as usize], r));
        rows
    }

    /// An operation gets the place of another, at most so far from a cycle, or farther where
    /// none that is tried can give way. Returns the other, which has no place now.
    fn displace(&mut self, dice: &mut Dice, i: usize, wish: i64, far: i64) -> Option<usize> {
        let (ii, last) = (self.schedule.ii, self.values.len() - 1);
        for k in 0..ii {
            let far = far + k / 2;
            let at = wish - far + dice.below(2 * far as usize + 1) as i64;
            if !self.cycles().contains(&at) {
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
                let unit = self.table.free(to, &self.ops.ops[other], was).flatten();
                self.table.put(to, other, &self.ops.ops[other], was, unit);
            }
        }
        None
    }

    /// An operation gets the place nearest to a cycle.
    pub(super) fn put_near(&mut self, i: usize, at: i64) -> Option<()> {
        let ii = self.schedule.ii;
        let branch = i + 1 == self.ops.ops.len();
        let cycles = self.cycles();
        let around = |to: i64| {
            (0..if branch { 1 } else { to }).flat_map(move |by| [at - by, at + by]).filter(|t| cycles.contains(t))
        };
        // Near its cycle others may give way; farther away only where nothing is free.
        let near = self.all.params.shuffled.min(ii);
        let found = around(near).find_map(|t| Some((t, self.slot(t, i, true)?)));
        let found =
            found.or_else(|| around(ii).skip(2 * near as usize).find_map(|t| Some((t, self.slot(t, i, false)?))));
        let found =
            found.or_else(|| around(ii).skip(2 * near as usize).find_map(|t| Some((t, self.slot(t, i, true)?))));
        let (t, (v, unit)) = found?;
        (self.schedule.time[i], self.schedule.variant[i]) = (t, v);
        self.table.put(self.table.row(t), i, &self.ops.ops[i], v, unit);
        Some(())
    }

    /// A unit for an operation in a cycle, which another may leave for it.
    fn slot(&mut self, t: i64, i: usize, shuffled: bool) -> Option<(InstrId, Option<UnitId>)> {
        let row = self.table.row(t);
        if self.table.count[row] >= self.table.width() {
            return None;
        }
        let found = self.table.best(row, &self.ops.ops[i]);
        if found.is_some() || !shuffled {
            return found;
        }
        shuffle(&mut self.table, &self.ops, &mut self.schedule.variant, row, i)
    }
}

/// The operations of a schedule, those first whose instruction has the fewest units to choose from: so
/// those of a row find units in any order that they once had.
fn with_few_units_first(all: &Loop<'_>, schedule: &Schedule) -> Vec<usize> {
    let mut order: Vec<usize> = (0..schedule.variant.len()).collect();
    order.sort_by_key(|&i| all.sides.units[usize::from(schedule.variant[i].0)].count_ones());
    order
}

/// Cycles for which all values of an iteration live together, each operation standing in its cycle.
pub fn lifetimes(all: &Loop<'_>, time: &[i64], ii: i64) -> i64 {
    let last = |p: usize| all.task.near.readers[p].iter().map(|&(r, d)| time[r] + d * ii).max();
    (0..time.len()).filter_map(|p| Some((last(p)? - time[p]).max(1))).sum()
}

/// The longest way from each operation to the end of its iteration, in cycles.
pub fn ways(all: &Loop<'_>) -> Vec<i64> {
    let n = all.task.ops.ops.len();
    let mut way = vec![0i64; n];
    // In the order of the operations a chain is followed to its end in one go.
    for _ in 0..n {
        let mut longer = false;
        for i in (0..n).rev() {
            let after = all.task.near.after[i].iter().filter(|e| e.distance == 0);
            let own = after.map(|e| way[e.other] + e.cycles).max().unwrap_or(0);
            longer |= own > way[i];
            way[i] = way[i].max(own);
        }
        if !longer {
            break;
        }
    }
    (0..n).for_each(|i| {
        way[i] += latency(&all.task.ops, i).saturating_sub(1).max(0) * i64::from(all.task.near.after[i].is_empty())
    });
    way
}
