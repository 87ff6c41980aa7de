//! A lower bound on the II of loops that ways round and units hold together.
//!
//! RecMII looks at one way round as if there were units without end, ResMII at units as if
//! nothing waited for anything. A block that takes the one before it as its input has both: each
//! round begins with the results of the last, and its sixteen lookups need eight cycles of two
//! units before the next can begin. From an operation in one iteration to the same operation `k`
//! iterations later it takes `k * II` cycles, and all that stands between the two, behind the one
//! and before the other, has to issue in them.
//!
//! How long that takes at the least is asked as E. Langevin and E. Cerny do (*A recursive technique
//! for computing lower-bound performance of schedules*, ACM TODAES 1(4), 1996): operations are gone
//! through in their order, and each gets the earliest cycle that the operations before it leave it.
//! These are relaxed to tasks of one cycle on equal units, each with the earliest cycle that it has
//! been found to have and with the longest way from it to the operation asked about (M. Rim and R.
//! Jain, *Lower-bound performance estimation for the high-level synthesis scheduling problem*, IEEE
//! TCAD 13(4), 1994). Such tasks are scheduled best by taking, of those that are there, the one with
//! the longest way first.
//!
//! Everything is left out that would only make it longer: registers, paths, copies between sides,
//! units that are held for several cycles, and operations that are far away.

use super::body::Body;
use super::graph::{capacity, one_side, unions, units_of};
use super::place::Sides;
use super::rounds::{Edge, Orders};
use ciphermill_program::Role;
use ciphermill_vcode::CompileError;
use std::collections::BinaryHeap;

/// Operations of the iterations together.
const MOST: usize = 6_000;
/// Iterations from one operation to itself: the first and the last are not whole.
const ITERATIONS: usize = 4;
/// Operations from which a way round is measured.
const STARTS: usize = 3;
/// Cycles before an operation from which others are looked at.
const NEAR: i64 = 60;
/// Orders and tasks that are looked at for one operation to begin with.
const WORK: i64 = 40_000_000;

/// Units that some operations cannot leave: their number, and which operations these are.
struct Crowd {
    units: usize,
    members: Vec<bool>,
}

/// No II below this is possible, whatever runs where; none where ways round are short beside
/// what units need, `(ResMII, RecMII)` in cycles, or the loop is too large to ask.
///
/// # Errors
/// When some operation has no variant.
pub fn bound(sides: &Sides<'_>, body: &Body, (res_mii, rec_mii): (i64, i64)) -> Result<Option<i64>, CompileError> {
    let n = body.nodes.len();
    if 2 * rec_mii < res_mii || 2 * n > MOST {
        return Ok(None);
    }
    let ops = one_side(sides, body)?;
    let orders = Orders::new(&ops);
    let n = ops.ops.len();
    let own = |i: &usize| ops.ops[*i].inst.role != Role::Overhead;
    let masks: Vec<u64> = (0..n)
        .map(|i| match own(&i) {
            true => units_of(sides, &sides.machine.variants[usize::from(ops.ops[i].inst.instr.0)]),
            false => 0,
        })
        .collect();
    let crowds = crowds(sides, &masks, rec_mii);
    let iterations = (MOST / n.max(1)).clamp(1, ITERATIONS);
    let Some(round) = Round::new(&orders, &crowds, iterations) else { return Ok(None) };
    Ok(round.starts().into_iter().filter_map(|x| round.least(x)).max())
}

/// The sets of units whose operations take a good part of the way round, and the issue slots.
fn crowds(sides: &Sides<'_>, masks: &[u64], rec_mii: i64) -> Vec<Crowd> {
    let mut sets: Vec<u64> = masks.iter().copied().filter(|m| *m != 0).collect();
    sets.sort_unstable();
    sets.dedup();
    let of = |set: u64| Crowd {
        units: capacity(sides, set) as usize,
        members: masks.iter().map(|&m| m != 0 && m & !set == 0).collect(),
    };
    let width = usize::from(sides.machine.issue.width.max(1));
    let all = Crowd { units: width, members: masks.iter().map(|m| *m != 0).collect() };
    let crowded = |c: &Crowd| {
        let members = c.members.iter().filter(|m| **m).count();
        c.units > 0 && 4 * members >= rec_mii.max(1) as usize * c.units
    };
    unions(sets).into_iter().map(of).chain([all]).filter(crowded).collect()
}

/// A loop's ways round.
struct Round<'a> {
    orders: &'a Orders,
    crowds: &'a [Crowd],
    iterations: usize,
    /// Operations of all iterations, numbered iteration by iteration, each behind what it waits
    /// for.
    sorted: Vec<usize>,
}

impl<'a> Round<'a> {
    /// None where the operations of an iteration wait for each other.
    fn new(orders: &'a Orders, crowds: &'a [Crowd], iterations: usize) -> Option<Round<'a>> {
        let n = orders.preds.len();
        let mut left: Vec<usize> = orders.preds.iter().map(|p| p.iter().filter(|e| e.distance == 0).count()).collect();
        let mut ready: Vec<usize> = (0..n).rev().filter(|&i| left[i] == 0).collect();
        let mut one = Vec::with_capacity(n);
        while let Some(i) = ready.pop() {
            one.push(i);
            for e in orders.succs[i].iter().filter(|e| e.distance == 0) {
                left[e.second] -= 1;
                if left[e.second] == 0 {
                    ready.push(e.second);
                }
            }
        }
        let sorted = (0..=iterations).flat_map(|t| one.iter().map(move |i| t * n + i)).collect();
        (one.len() == n).then_some(Round { orders, crowds, iterations, sorted })
    }

    /// Operations whose results go round, those first from which the way round is longest.
    fn starts(&self) -> Vec<usize> {
        let mut firsts: Vec<usize> = self.orders.edges.iter().filter(|e| e.distance > 0).map(|e| e.first).collect();
        firsts.sort_unstable();
        firsts.dedup();
        let mut long: Vec<(i64, usize)> = firsts.into_iter().filter_map(|x| Some((self.heads(x)?.1, x))).collect();
        long.sort_unstable_by_key(|&(length, x)| (-length, x));
        long.into_iter().take(STARTS).map(|x| x.1).collect()
    }

    fn n(&self) -> usize {
        self.orders.preds.len()
    }

    /// The number of the operation that an order comes from, of an iteration's.
    fn before(&self, e: &Edge, at: usize) -> Option<usize> {
        (at / self.n()).checked_sub(usize::try_from(e.distance).ok()?).map(|t| t * self.n() + e.first)
    }

    /// The longest way from an operation to each that also leads back to it in the last iteration,
    /// and the length of that.
    fn heads(&self, x: usize) -> Option<(Vec<Option<i64>>, i64)> {
        let (n, sorted) = (self.n(), &self.sorted);
        let last = self.iterations * n + x;
        let mut leads = vec![false; sorted.len()];
        leads[last] = true;
        for &v in sorted.iter().rev().filter(|v| **v <= last) {
            if leads[v] {
                for p in self.orders.preds[v % n].iter().filter_map(|e| self.before(e, v)) {
                    leads[p] = true;
                }
            }
        }
        let mut heads: Vec<Option<i64>> = vec![None; sorted.len()];
        heads[x] = Some(0);
        for &v in sorted.iter().filter(|&&v| leads[v] && v != x) {
            let ways = self.orders.preds[v % n].iter().filter_map(|e| Some(heads[self.before(e, v)?]? + e.cycles));
            heads[v] = ways.max();
        }
        let length = heads[last]?;
        Some((heads, length))
    }

    /// The least II by the way from an operation back to it, iterations later.
    fn least(&self, x: usize) -> Option<i64> {
        let (n, sorted) = (self.n(), &self.sorted);
        let (mut heads, _) = self.heads(x)?;
        let mut place = vec![0; sorted.len()];
        sorted.iter().enumerate().for_each(|(k, &v)| place[v] = k);
        let mut tails: Vec<Option<i64>> = vec![None; sorted.len()];
        let mut work = WORK;
        for &v in sorted.iter().filter(|&&v| v != x) {
            let Some(mut head) = heads[v] else { continue };
            // What earlier operations were found to need counts for all behind them.
            let ways = self.orders.preds[v % n].iter().filter_map(|e| Some(heads[self.before(e, v)?]? + e.cycles));
            head = head.max(ways.max()?);
            let near = self.near(v, &heads, &place, &mut tails);
            work -= near.len() as i64 * (4 + self.crowds.len() as i64);
            if work < 0 {
                return None;
            }
            for crowd in self.crowds {
                let tasks = near.iter().filter(|t| crowd.members[t.0 % n]).map(|&(_, head, tail)| (head, tail));
                head = head.max(end(tasks.collect(), crowd.units));
            }
            heads[v] = Some(head);
        }
        let k = self.iterations as i64;
        Some((heads[self.iterations * n + x]? + k - 1) / k)
    }

    /// Operations before one, with their earliest cycles and the longest ways to it; `tails` is
    /// left as it was.
    fn near(
        &self,
        v: usize,
        heads: &[Option<i64>],
        place: &[usize],
        tails: &mut [Option<i64>],
    ) -> Vec<(usize, i64, i64)> {
        let mut found = Vec::new();
        let mut waiting = BinaryHeap::from([(place[v], v)]);
        tails[v] = Some(0);
        while let Some((_, u)) = waiting.pop() {
            let Some(tail) = tails[u].take() else { continue };
            if u != v {
                found.extend(heads[u].map(|head| (u, head, tail)));
            }
            for e in &self.orders.preds[u % self.n()] {
                let Some(p) = self.before(e, u).filter(|&p| heads[p].is_some()) else { continue };
                if tail + e.cycles <= NEAR {
                    if tails[p].is_none() {
                        waiting.push((place[p], p));
                    }
                    tails[p] = tails[p].max(Some(tail + e.cycles));
                }
            }
        }
        found
    }
}

/// The earliest that tasks of one cycle on so many units, each with its earliest cycle and what
/// comes behind it, can all have come to their ends.
fn end(mut tasks: Vec<(i64, i64)>, units: usize) -> i64 {
    tasks.sort_unstable();
    let mut last = 0;
    let mut there: BinaryHeap<i64> = BinaryHeap::new();
    let mut rest = tasks.into_iter().peekable();
    let mut now = 0;
    while let Some(&(next, _)) = rest.peek() {
        now = now.max(next);
        while let Some((_, tail)) = rest.next_if(|t| t.0 <= now) {
            there.push(tail);
        }
        // Until more arrive.
        while !there.is_empty() && rest.peek().is_none_or(|t| t.0 > now) {
            (0..units).map_while(|_| there.pop()).for_each(|tail| last = last.max(now + tail));
            now += 1;
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::{Crowd, Round, end};
    use crate::rounds::{Edge, Orders};

    #[test]
    fn the_longest_way_goes_first() {
        // Three at once on one unit, and one that comes later.
        assert_eq!(end(vec![(0, 1), (0, 5), (0, 3)], 1), 5);
        assert_eq!(end(vec![(0, 5), (0, 5), (0, 5)], 1), 7);
        assert_eq!(end(vec![(0, 5), (0, 5), (0, 5)], 2), 6);
        assert_eq!(end(vec![(0, 2), (4, 2), (4, 2)], 1), 7);
        assert_eq!(end(vec![], 2), 0);
    }

    /// One operation that eight wait for, one that waits for the eight, and back to the first in
    /// the next iteration: by so many iterations, from operation `x`, with units for the eight.
    fn round(iterations: usize, x: usize, units: usize) -> Option<i64> {
        let edge = |first, second, distance| Edge { first, second, cycles: 1, distance };
        let mut edges: Vec<Edge> = (1..9).flat_map(|i| [edge(0, i, 0), edge(i, 9, 0)]).collect();
        edges.push(edge(9, 0, 1));
        let orders = Orders::of(10, edges);
        let crowds = [Crowd { units, members: (0..10).map(|i| (1..9).contains(&i)).collect() }];
        Round::new(&orders, &crowds, iterations)?.least(x)
    }

    #[test]
    fn what_stands_between_has_to_issue() {
        // 0, then the eight in four cycles, 9, and 0 again: 0 1..4 5 6.
        assert_eq!(round(1, 0, 2), Some(6));
        assert_eq!(round(1, 0, 8), Some(3));
        assert_eq!(round(1, 9, 1), Some(10));
        // Between one of the eight and itself the others stand only from the second time on.
        assert_eq!(round(1, 1, 2), Some(3));
        assert_eq!(round(2, 1, 2), Some(5));
        assert_eq!(round(4, 1, 2), Some(6));
    }
}
