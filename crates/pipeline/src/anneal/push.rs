//! Moves that take others along.
//!
//! In a chain of dependences without slack no operation can move by itself: whoever comes a cycle
//! later, so must all that waits for it, and where the last of them stands there is room. So some
//! moves push: an operation goes to its cycle, those whose orders that breaks go as far as they
//! must, and so on, as long as they are few. What stands in a full row gives way to a cycle where
//! its own orders hold as well. All of it counts as one move and is taken back as one (ejection
//! chains: Glover, Discrete Applied Mathematics 65, 1996).

use super::{Dice, State, Undo, row};
use ciphermill_machine::{InstrId, UnitId};
use smallvec::SmallVec;
use std::collections::BinaryHeap;

/// Operations that one move takes along at most; twice as many half as often.
const ALONG: usize = 6;
const DOUBLED: u32 = 10;
/// Cycles that are tried where units are taken in the one that is wanted.
const FARTHER: i64 = 3;
/// Cycles to either side to which an operation gives way.
const ASIDE: i64 = 6;

/// Operations that were moved, with the variants that they had.
type Moved = Vec<(usize, InstrId, Undo)>;

impl State<'_> {
    /// Move an operation, and as far as they must those whose orders that breaks, if that costs no
    /// more than is allowed.
    pub(super) fn push(&mut self, i: usize, to: i64, dice: &mut Dice, allowed: i64) {
        let most = self.energy() + allowed;
        let limit = ALONG << dice.roll().trailing_zeros().min(DOUBLED);
        let last = self.values.len() - 1;
        let later = to > self.schedule.time[i];
        // Those first that nothing else waiting can push again.
        let key = |time: i64| if later { -time } else { time };
        let mut moved = Moved::new();
        let mut waiting = BinaryHeap::new();
        let mut holds = self.push_one(i, to, &mut moved);
        self.broken_by(i, later, |other, time| waiting.push((key(time), other)));
        while let Some((_, k)) = waiting.pop().filter(|_| holds) {
            let late = self.orders_of(k).iter().filter(|o| (o.sign < 0) == later).map(|o| self.fault(k, o)).max();
            let Some(by) = late.filter(|by| *by > 0) else { continue };
            let to = self.schedule.time[k] + if later { by } else { -by };
            holds = k != last && moved.len() < limit && self.push_one(k, to, &mut moved);
            self.broken_by(k, later, |other, time| waiting.push((key(time), other)));
        }
        if holds && self.energy() <= most {
            return;
        }
        let ii = self.schedule.ii;
        while let Some((k, variant, undo)) = moved.pop() {
            let (from, back) = (row(self.schedule.time[k], ii) as usize, row(undo.time, ii) as usize);
            self.table.take(from, k, &self.ops.ops[k], self.schedule.variant[k]);
            self.table.put_back(back, k, &self.ops.ops[k], variant);
            self.schedule.variant[k] = variant;
            self.undo(k, &undo);
        }
    }

    /// Those behind an operation that come too soon for it, or those before it that come too late.
    fn broken_by(&self, k: usize, later: bool, mut each: impl FnMut(usize, i64)) {
        for o in self.orders_of(k) {
            if (o.sign > 0) == later && self.fault(k, o) > 0 {
                each(o.other as usize, self.schedule.time[o.other as usize]);
            }
        }
    }

    /// An operation goes to a cycle, or one a little farther where units are taken and nothing there
    /// can give way; whether it could.
    fn push_one(&mut self, k: usize, to: i64, moved: &mut Moved) -> bool {
        let ii = self.schedule.ii;
        let (now, old) = (self.schedule.time[k], self.schedule.variant[k]);
        let (by, from) = ((to - now).signum(), row(now, ii) as usize);
        let cycles = 0..self.schedule.stages * ii;
        self.table.take(from, k, &self.ops.ops[k], old);
        for t in (0..FARTHER).map(|n| to + by * n).filter(|t| cycles.contains(t)) {
            let new = row(t, ii) as usize;
            let room = self.table.count[new] < self.table.width();
            let found = room.then(|| self.table.best(new, &self.ops.ops[k])).flatten();
            if let Some((v, unit)) = found.or_else(|| self.give_way(k, (from, new), moved)) {
                self.table.put(new, k, &self.ops.ops[k], v, unit);
                self.schedule.variant[k] = v;
                if let Some(undo) = self.transfer(k, t, i64::MAX) {
                    moved.push((k, old, undo));
                    return true;
                }
            }
        }
        self.table.put_back(from, k, &self.ops.ops[k], old);
        false
    }

    /// An operation of a row goes to another one where its orders hold as well, so that there is a
    /// unit for one that comes from `from`.
    fn give_way(
        &mut self,
        k: usize,
        (from, new): (usize, usize),
        moved: &mut Moved,
    ) -> Option<(InstrId, Option<UnitId>)> {
        let (ii, last) = (self.schedule.ii, self.values.len() - 1);
        let held: SmallVec<[usize; 8]> = SmallVec::from_slice(self.table.held(new));
        for q in held.into_iter().filter(|&q| q != last && q != k) {
            let was = self.schedule.variant[q];
            let (now, (low, high)) = (self.schedule.time[q], self.window(q));
            if low >= high || !self.table.may_follow(new, &self.ops.ops[k], was) {
                continue;
            }
            self.table.take(new, q, &self.ops.ops[q], was);
            if self.table.best(new, &self.ops.ops[k]).is_some() {
                let near = (1..=ASIDE).flat_map(|by| [now + by, now - by]);
                for t in near.filter(|t| (low..=high).contains(t)) {
                    let other = row(t, ii) as usize;
                    // Where the other comes from it may have to go back to.
                    let room = other != new && other != from && self.table.count[other] < self.table.width();
                    let found = room.then(|| self.table.best(other, &self.ops.ops[q])).flatten();
                    let Some((v, unit)) = found else { continue };
                    self.table.put(other, q, &self.ops.ops[q], v, unit);
                    self.schedule.variant[q] = v;
                    if let Some(undo) = self.transfer(q, t, i64::MAX) {
                        moved.push((q, was, undo));
                    }
                    return self.table.best(new, &self.ops.ops[k]);
                }
            }
            self.table.put_back(new, q, &self.ops.ops[q], was);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::Dice;
    use super::State;
    use crate::anneal::tests::{on_one_side, on_two_sides};

    /// Two chains of eight additions in an interval of 20 cycles: the first operation of one comes a
    /// cycle before the second, and later by three it takes along all that stand close behind.
    #[test]
    fn a_chain_goes_as_far_as_it_must() {
        on_one_side((2, 8), 8, |_, _, _, all| {
            let mut state = State::stretched(all, 14, 20, 2, 40).unwrap();
            state.anneal(50_000, (30, 2), 1);
            assert_eq!(state.left(), 0);
            let before = state.schedule.time.clone();
            let to = before[1] + 2;
            state.push(0, to, &mut Dice(7), i64::from(i32::MAX));
            assert_eq!((state.faults, state.schedule.time[0]), (0, to));
            assert!((1..8).all(|i| state.schedule.time[i] > state.schedule.time[i - 1]));
            assert!((1..8).all(|i| state.schedule.time[i] >= before[i]));
            assert_eq!(state.schedule.time[16], before[16]);
        });
    }

    /// A push that costs too much leaves nothing behind: what is counted is what a fresh count says,
    /// and every operation has its unit.
    #[test]
    fn what_is_too_dear_is_taken_back() {
        on_two_sides((4, 10), 3, |all| {
            let mut state = State::stretched(all, 15, 21, 3, 60).unwrap();
            state.anneal(2_000, (30, 12), 1);
            let mut dice = Dice(3);
            let mut taken = 0;
            for k in 0..2_000 {
                let i = dice.below(40);
                let to = (state.schedule.time[i] + dice.below(9) as i64 - 4).clamp(0, 62);
                if to == state.schedule.time[i] {
                    continue;
                }
                let before = state.schedule.clone();
                let energy = state.energy();
                state.push(i, to, &mut dice, if k % 2 == 0 { -1 } else { 40 });
                let same = (&before.time, &before.variant) == (&state.schedule.time, &state.schedule.variant);
                assert!(same || state.energy() < energy || k % 2 == 1, "push {k}");
                taken += usize::from(!same);
                let fresh = State::carried(all.settled(state.ops()), &state.schedule, state.ops()).unwrap();
                assert_eq!((fresh.left(), fresh.energy()), (state.left(), state.energy()), "push {k}");
            }
            assert!(taken > 20, "{taken}");
        });
    }
}
