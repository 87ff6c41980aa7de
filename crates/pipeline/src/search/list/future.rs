//! Registers that what is left of a program will need.
//!
//! Placed in the order of the program, the operations that are left need a number of
//! registers that is known for each step. One that is placed ahead of its turn ends its
//! own value earlier than that and makes its operands alive earlier; it may, where no
//! step between then takes more registers than there are. So within one stage the next
//! operation in the order of the program can be placed at last, and few attempts end
//! without a way on: which order needs few registers is a question of its own
//! ([`super::order`]). Where stages overlap, what the later ones hold in a row is
//! known when the earlier ones come to it, and counted with the rest.

use super::peaks::Peaks;
use super::{Attempt, Together};
use smallvec::SmallVec;
use std::cell::Cell;

type Changes = SmallVec<[(usize, i64, usize); 8]>;

/// Rows before an operation's that must have room for what is alive with it.
const AHEAD: i64 = 5;

/// For each kind how many values will be alive when the operations from a number on
/// stand, and those placed ahead of their turn.
pub struct Future {
    alive: Vec<Peaks>,
    /// The last operation in the order of the program that does not stand, and one more.
    pub top: usize,
    /// Steps that were looked at.
    pub steps: Cell<usize>,
}

impl Future {
    /// Of an attempt in which nothing stands but the branch.
    pub fn new(a: &Attempt<'_>) -> Future {
        let n = a.time.len();
        let mut open: Vec<bool> = a.lives.iter().map(|l| l.open).collect();
        let mut carried = a.carried.clone();
        let mut alive = vec![vec![0; n + 1]; a.alive.len()];
        let mut now = a.alive.clone();
        for m in (0..=n).rev() {
            if m < n && a.time[m].is_none() && !a.plan.orders.lazy[m] {
                let mut change = |p: usize, by: i64| a.lives[p].kinds.iter().for_each(|&kind| now[kind] += by);
                change(m, -i64::from(open[m]));
                for &p in &a.plan.sources[m] {
                    change(p, i64::from(!std::mem::replace(&mut open[p], true)));
                }
                for &p in &a.plan.before[m] {
                    change(p, i64::from(!std::mem::replace(&mut carried[p], true)));
                }
            }
            now.iter().zip(&mut alive).for_each(|(now, alive)| alive[m] = *now);
        }
        let alive = alive.iter().map(|alive| Peaks::of(alive)).collect();
        let mut future = Future { alive, top: n, steps: Cell::new(0) };
        future.lower(a, n);
        future
    }

    /// Operations from the last on that stand, or are `standing` next, have had their turn.
    fn lower(&mut self, a: &Attempt<'_>, standing: usize) {
        let stands = |i: usize| i == standing || a.time[i].is_some() || a.plan.orders.lazy[i];
        while self.top > 0 && stands(self.top - 1) {
            self.top -= 1;
        }
    }

    /// The values that operations change which are placed ahead of their turn: the kind,
    /// by how much, and the operation at whose turn that would have come.
    fn changes(a: &Attempt<'_>, placed: &[usize]) -> Changes {
        let last = |list: &[usize]| list.iter().copied().filter(|&r| a.time[r].is_none()).max();
        let mut out = Changes::new();
        let mut change =
            |p: usize, by: i64, turn: usize| out.extend(a.lives[p].kinds.iter().map(|&kind| (kind, by, turn)));
        let mut opened: SmallVec<[usize; 8]> = SmallVec::new();
        for &i in placed {
            if a.lives[i].open || opened.contains(&i) {
                change(i, -1, i);
            }
            for &p in &a.plan.sources[i] {
                if !a.lives[p].open && !opened.contains(&p) {
                    opened.push(p);
                    last(&a.plan.readers[p]).into_iter().for_each(|turn| change(p, 1, turn));
                }
            }
            for &p in a.plan.before[i].iter().filter(|p| !a.carried[**p]) {
                last(&a.plan.behind[p]).into_iter().for_each(|turn| change(p, 1, turn));
            }
        }
        out
    }

    /// Would an operation placed now, at cycle `t`, leave too few registers for what is
    /// left, or for what is alive in this cycle? `keep` are to be left on each side.
    pub fn short(&self, a: &Attempt<'_>, i: usize, t: i64, keep: i64, together: Together) -> bool {
        let mut placed: SmallVec<[usize; 4]> = SmallVec::new();
        placed.push(i);
        placed.extend(a.with(i).filter(|_| together == Together::WithSources));
        let changes = Future::changes(a, &placed);
        (0..a.alive.len()).any(|kind| {
            let of_kind = || changes.iter().filter(|c| c.0 == kind);
            let gain: i64 = of_kind().map(|c| c.1).sum();
            let limit = a.limit[kind] - if kind < a.sides.files.len() { keep } else { 0 };
            let taken = (0..=AHEAD).map(|c| a.occupied(kind, t - c)).max().unwrap_or(0);
            if gain > 0 && a.alive[kind] + gain + taken > limit {
                return true;
            }
            // Between the turns of two changes all steps have as many more.
            let mut turns: SmallVec<[usize; 8]> = of_kind().map(|c| c.2 + 1).filter(|t| *t < self.top).collect();
            turns.sort_unstable();
            turns.push(self.top);
            turns.windows(2).any(|w| {
                let more: i64 = of_kind().filter(|c| c.2 < w[0]).map(|c| c.1).sum();
                more > 0 && self.alive[kind].most(w[0]..w[1], &self.steps) + more + taken > limit
            })
        })
    }

    /// An operation is about to stand.
    pub fn place(&mut self, a: &Attempt<'_>, i: usize) {
        for (kind, by, turn) in Future::changes(a, &[i]) {
            let from = (turn + 1).min(self.top);
            self.alive[kind].add(from..self.top, by, &self.steps);
        }
        self.lower(a, i);
    }
}
