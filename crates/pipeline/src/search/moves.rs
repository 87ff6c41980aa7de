//! Moves of single operations, accepted by threshold.
//!
//! An operation is moved to another cycle, by itself or in exchange for one of that row. A move
//! may cost something, at first more and at last hardly anything (Dueck and Scheuer, *Threshold
//! accepting*, J. Comp. Phys. 90, 1990; the threshold is drawn anew for each move, about as in
//! simulated annealing), until nothing is broken. Most moves begin where something is: with an
//! operation whose dependence fails, or a value that is live where registers are too few.

use super::params::Temperature;
use super::state::{Arc2, Order, State, row};
use ciphermill_machine::{InstrId, UnitId};
use ciphermill_program::search_log::Moves;
use smallvec::SmallVec;
use std::collections::BinaryHeap;
use std::ops::Range;

/// Parts of a unit of temperature.
const PARTS: i64 = 256;
/// So many dependences of an operation take as long to look at as a move of one with few.
const ORDERS: u64 = 32;
/// The temperature is worked out once for so many moves.
const STEADY: u64 = 64;

/// What takes a move back.
pub(super) struct Undo {
    /// The cycle of the operation, and the values that it reads or makes.
    time: i64,
    arcs: SmallVec<[(u32, Arc2); 4]>,
    /// Excess, heat and faults.
    counts: (i64, i64, i64),
}

/// Operations that were moved, with the variants that they had.
type Moved = Vec<(usize, InstrId, Undo)>;

impl State<'_> {
    /// Move until nothing is broken, or for so many moves; those made.
    pub fn anneal(&mut self, moves: u64, temperature: Temperature, seed: u64) -> Moves {
        self.anneal_part(0..moves, moves, temperature, seed)
    }

    /// The same, for part of the moves.
    pub fn anneal_part(&mut self, part: Range<u64>, moves: u64, temperature: Temperature, seed: u64) -> Moves {
        let params = self.all.params;
        let look = params.look.max(self.values.len() / 2) as u64;
        let mut dice = Dice(mix(seed, moves + part.start));
        let mut now = temperature_at(temperature, part.start, moves);
        self.moves = Moves::default();
        let clustered = self.all.clustered() && params.one_crosses > 0;
        for k in part.clone() {
            if self.left() == 0 {
                break;
            }
            if k == part.start || k % look == 0 {
                self.look();
            }
            if k % STEADY == 0 {
                now = temperature_at(temperature, k, moves);
            }
            self.moves.work += 1;
            // Zeros at the end of a random number: each one more is half as likely.
            let chance = dice.roll();
            let drawn = i64::from(chance.trailing_zeros()) * PARTS + (chance >> 56) as i64;
            let allowed = drawn * now / (PARTS * PARTS);
            if clustered && dice.below(params.one_crosses) == 0 {
                self.change_clusters(&mut dice, allowed);
            } else {
                self.step(&mut dice, allowed);
            }
        }
        std::mem::take(&mut self.moves)
    }

    /// The cycles that its neighbours leave an operation.
    pub(super) fn window(&self, i: usize) -> (i64, i64) {
        let time = &self.schedule.time;
        let (mut low, mut high) = (0, self.cycles().end - 1);
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
        let params = self.all.params;
        let n = self.values.len();
        // What has been mended since it was looked for is not.
        let crowded = self.crowded.get(dice.below(self.crowded.len())).copied();
        let crowded = crowded.filter(|&(place, row)| self.crowds(place, row));
        let broken = self.broken.get(dice.below(self.broken.len())).copied();
        // An operation, and a cycle in which it would mend what is broken.
        let found = match (dice.below(params.one_anywhere), crowded, broken) {
            (0, ..) | (_, None, None) => Some((dice.below(n), None)),
            (w, Some((place, row)), b) if w % 2 == 0 || b.is_none() => {
                let (first, own) = (dice.below(self.spans[place].len()), dice.below(2) == 0);
                self.concerned(place, row, first, own)
            }
            (_, _, b) => b.map(|i| (i, self.mended(i, dice.below(8)))),
        };
        // The branch stays where its delay slots end with the stage.
        let Some((i, aim)) = found.filter(|f| f.0 + 1 < n) else { return };
        let now = self.schedule.time[i];
        let last = self.cycles().end - 1;
        let to = match aim.filter(|_| dice.below(params.one_blind) > 0) {
            Some(aim) => aim,
            None => {
                let near = (now - params.near, now + params.near);
                let (low, high) = self.window(i);
                let (low, high) = match dice.below(params.one_far) {
                    0 if low <= high => (low, high),
                    w if low <= high && w % 2 == 0 => (low.max(near.0), high.min(near.1)),
                    _ => near,
                };
                let (low, high) = (low.max(0), high.min(last));
                if low > high {
                    return;
                }
                low + dice.below((high - low + 1) as usize) as i64
            }
        };
        if to != now && (0..=last).contains(&to) {
            let pushes = params.one_pushes > 0 && !self.broken.is_empty();
            if pushes && dice.below(params.one_pushes) == 0 {
                // Twice as many, half as often.
                let most = params.pushed_at_once << dice.roll().trailing_zeros().min(10);
                let pushed = self.push(i, to, most, allowed);
                self.moves.pushes.count(pushed);
            } else {
                self.go(i, to, allowed, dice.below(64));
            }
        }
    }

    /// Move an operation, and as far as needed those whose dependences that would break, no more than
    /// `limit`; if that costs no more than is allowed.
    pub(super) fn push(&mut self, i: usize, to: i64, limit: usize, allowed: i64) -> bool {
        let ii = self.schedule.ii;
        let most = self.energy() + allowed;
        let last = self.values.len() - 1;
        let later = to > self.schedule.time[i];
        let mut done = Moved::new();
        // Those first that nothing else waiting can push again.
        let key = |time: i64| if later { -time } else { time };
        let mut waiting = BinaryHeap::new();
        let mut holds = self.push_one(i, to, &mut done);
        self.broken_by(i, later, |other, time| waiting.push((key(time), other)));
        while let Some((_, k)) = waiting.pop().filter(|_| holds) {
            let mut by = 0;
            for n in self.begins_of(k) {
                let o = self.order(n);
                if (o.sign < 0) == later {
                    by = by.max(self.fault(k, &o));
                }
            }
            if by == 0 {
                continue;
            }
            let to = self.schedule.time[k] + if later { by } else { -by };
            holds = k != last && done.len() < limit && self.push_one(k, to, &mut done);
            self.broken_by(k, later, |other, time| waiting.push((key(time), other)));
        }
        if holds && self.energy() <= most {
            return true;
        }
        while let Some((k, variant, undo)) = done.pop() {
            let from = row(self.schedule.time[k], ii) as usize;
            let back = row(undo.time, ii) as usize;
            self.table.take(from, k, &self.ops.ops[k], self.schedule.variant[k]);
            let unit = self.table.free(back, &self.ops.ops[k], variant).flatten();
            self.table.put(back, k, &self.ops.ops[k], variant, unit);
            self.schedule.variant[k] = variant;
            self.undo(k, &undo);
        }
        false
    }

    /// Those behind an operation, or before it, that come too soon or too late for it.
    fn broken_by(&self, k: usize, later: bool, mut each: impl FnMut(usize, i64)) {
        for o in self.orders_of(k) {
            if (o.sign > 0) == later && self.fault(k, o) > 0 {
                each(o.other as usize, self.schedule.time[o.other as usize]);
            }
        }
    }

    /// An operation goes to a cycle, or one a little farther where units are taken and nothing there
    /// can give way.
    fn push_one(&mut self, k: usize, to: i64, done: &mut Moved) -> bool {
        let ii = self.schedule.ii;
        let (now, old) = (self.schedule.time[k], self.schedule.variant[k]);
        let by = (to - now).signum();
        let from = row(now, ii) as usize;
        self.table.take(from, k, &self.ops.ops[k], old);
        let cycles = self.cycles();
        for t in (0..self.all.params.farther).map(|n| to + by * n).filter(|t| cycles.contains(t)) {
            let new = row(t, ii) as usize;
            let room = self.table.count[new] < self.table.width();
            let found = room.then(|| self.table.best(new, &self.ops.ops[k])).flatten();
            if let Some((v, unit)) = found.or_else(|| self.give_way(k, (from, new), done)) {
                self.table.put(new, k, &self.ops.ops[k], v, unit);
                self.schedule.variant[k] = v;
                if let Some(undo) = self.transfer(k, t, i64::MAX) {
                    done.push((k, old, undo));
                    return true;
                }
            }
        }
        let unit = self.table.free(from, &self.ops.ops[k], old).flatten();
        self.table.put(from, k, &self.ops.ops[k], old, unit);
        false
    }

    /// An operation of a row goes to another one where its dependences hold as well, so that there is
    /// a unit for another.
    fn give_way(
        &mut self,
        k: usize,
        (from, new): (usize, usize),
        done: &mut Moved,
    ) -> Option<(InstrId, Option<UnitId>)> {
        let (ii, last) = (self.schedule.ii, self.values.len() - 1);
        let held: SmallVec<[usize; 8]> = SmallVec::from_slice(self.table.held(new));
        for q in held.into_iter().filter(|&q| q != last && q != k) {
            let was = self.schedule.variant[q];
            if !self.table.may_follow(new, &self.ops.ops[k], was) {
                continue;
            }
            let (low, high) = self.window(q);
            let now = self.schedule.time[q];
            if high <= low {
                continue;
            }
            self.table.take(new, q, &self.ops.ops[q], was);
            if self.table.best(new, &self.ops.ops[k]).is_some() {
                let near =
                    (1..=self.all.params.near).flat_map(|d| [now + d, now - d]).filter(|t| (low..=high).contains(t));
                for t in near {
                    let other = row(t, ii) as usize;
                    // Where it comes from it may have to go back to.
                    let room = other != new && other != from && self.table.count[other] < self.table.width();
                    let Some((v, unit)) = room.then(|| self.table.best(other, &self.ops.ops[q])).flatten() else {
                        continue;
                    };
                    self.table.put(other, q, &self.ops.ops[q], v, unit);
                    self.schedule.variant[q] = v;
                    if let Some(undo) = self.transfer(q, t, i64::MAX) {
                        done.push((q, was, undo));
                    }
                    return self.table.best(new, &self.ops.ops[k]);
                }
            }
            let unit = self.table.free(new, &self.ops.ops[q], was).flatten();
            self.table.put(new, q, &self.ops.ops[q], was, unit);
        }
        None
    }

    /// The cycle in which one of the dependences that fail at an operation, the next from `first`
    /// on, would hold.
    fn mended(&self, i: usize, first: usize) -> Option<i64> {
        let orders = self.orders_of(i);
        (0..orders.len()).map(|k| orders[(first + k) % orders.len()]).find_map(|o: Order| {
            let fault = self.fault(i, &o);
            (fault > 0).then_some(self.schedule.time[i] - i64::from(o.sign) * fault)
        })
    }

    /// The operation of a value that is in a row, the next from `first` on, or else the last
    /// that reads it; and a cycle in which the value would not be in the row.
    pub(super) fn concerned(&self, place: usize, row: usize, first: usize, own: bool) -> Option<(usize, Option<i64>)> {
        let (time, ii, spans) = (&self.schedule.time, self.schedule.ii, &self.spans[place]);
        let since = |&(i, at, cycles): &(u32, i32, i32)| {
            let since = row as i32 - at;
            let since = if since < 0 { since + ii as i32 } else { since };
            (since < cycles).then_some((i as usize, i64::from(since)))
        };
        let (before, after) = spans.split_at(first.min(spans.len()));
        let (value, since) = after.iter().find_map(since).or_else(|| before.iter().find_map(since))?;
        let last = self.readers_of(value).iter().max_by_key(|r| time[r.0 as usize] + i64::from(r.1));
        Some(match last.filter(|_| !own) {
            Some(reader) => {
                let reader = reader.0 as usize;
                (reader, Some(time[reader] - self.arcs[value].1 + since))
            }
            None => (value, Some(time[value] + since + 1)),
        })
    }

    /// An operation changes its cycle, unless the energy is more than `most` then; nothing is
    /// said of the table.
    pub(super) fn transfer(&mut self, i: usize, to: i64, most: i64) -> Option<Undo> {
        self.moves.work += 1 + self.begins_of(i).len() as u64 / ORDERS;
        let time = &self.schedule.time;
        let (now, by) = (time[i], to - time[i]);
        let mut faults = self.faults;
        for o in self.orders_of(i) {
            let fault = self.fault(i, o);
            faults += (fault + i64::from(o.sign) * by).max(0) - fault.max(0);
        }
        if self.all.params.fault * faults > most {
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
    pub(super) fn undo(&mut self, i: usize, undo: &Undo) {
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
        let (from, new) = (row(now, ii) as usize, row(to, ii) as usize);
        let most = self.energy() + allowed;
        let Some(undo) = self.transfer(i, to, most) else {
            self.moves.shifts.count(false);
            return;
        };
        if from == new {
            self.moves.shifts.count(true);
            return;
        }
        let alone = self.table.count[new] < self.table.width();
        let op = &self.ops.ops[i];
        if let Some((v, unit)) = alone.then(|| self.table.best(new, op)).flatten() {
            self.table.take(from, i, op, old);
            self.table.put(new, i, op, v, unit);
            self.schedule.variant[i] = v;
            self.moves.shifts.count(true);
            return;
        }
        self.moves.shifts.count(false);
        let held: SmallVec<[usize; 8]> = SmallVec::from_slice(self.table.held(new));
        for k in 0..held.len().min(self.all.params.exchanged) {
            let other = held[(first + k) % held.len()];
            if other + 1 < self.values.len() {
                let exchanged = self.exchange(i, other, (from, new), most);
                if self.moves.exchanges.count(exchanged) {
                    return;
                }
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
        if !may || !self.cycles().contains(&(from + by)) {
            return false;
        }
        let Some(undo) = self.transfer(other, from + by, most) else { return false };
        let (op, its) = (&self.ops.ops[i], &self.ops.ops[other]);
        self.table.take(rows.0, i, op, old);
        self.table.take(rows.1, other, its, was);
        if let Some((v, unit)) = self.table.best(rows.1, op) {
            self.table.put(rows.1, i, op, v, unit);
            if let Some((w, its_unit)) = self.table.best(rows.0, its) {
                self.table.put(rows.0, other, its, w, its_unit);
                (self.schedule.variant[i], self.schedule.variant[other]) = (v, w);
                return true;
            }
            self.table.take(rows.1, i, op, v);
        }
        let unit = self.table.free(rows.1, its, was).flatten();
        self.table.put(rows.1, other, its, was, unit);
        let unit = self.table.free(rows.0, op, old).flatten();
        self.table.put(rows.0, i, op, old, unit);
        self.undo(other, &undo);
        false
    }
}

/// Random numbers, the same for the same seed.
pub(super) struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix(self.0, 0)
    }

    /// One of so many numbers from 0 on; 0 where there are none.
    pub fn below(&mut self, of: usize) -> usize {
        (((self.roll() >> 32) * of as u64) >> 32) as usize
    }
}

/// A number that looks random, from two (the finaliser of splitmix64, Steele
/// et al., OOPSLA 2014).
pub fn mix(a: u64, b: u64) -> u64 {
    let mut x = a.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(b.wrapping_mul(0xd1b5_4a32_d192_ed03));
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The temperature after `k` of so many moves, in parts: it falls by the same part with each.
pub(super) fn temperature_at(temperature: Temperature, k: u64, moves: u64) -> i64 {
    // Powers of two, with a straight line between them.
    let log = |x: i64| -> i64 {
        let whole = 63 - i64::from(x.max(1).leading_zeros());
        whole * PARTS + ((x.max(1) * PARTS) >> whole) - PARTS
    };
    let (first, last) = (log(temperature.0), log(temperature.1));
    let now = first - (first - last) * k as i64 / moves.max(1) as i64;
    ((PARTS + now % PARTS) << (now / PARTS)).max(1)
}
