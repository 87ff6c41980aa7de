//! What recurrence circuits and resources need together.
//!
//! RecMII looks at one way round as if there were units without end, ResMII at units as if nothing
//! waited for anything. A block that takes the one before it as its input has both: each round begins
//! with the results of the last, and its sixteen lookups need eight cycles of two units before the
//! next can begin. From an operation in one iteration to the same operation `k` iterations later it
//! takes `k * II` cycles, and all that stands between the two, behind the one and before the other, has
//! to issue in them.
//!
//! How long that takes at the least is asked as E. Langevin and E. Cerny do (*A recursive technique
//! for computing lower-bound performance of schedules*, ACM TODAES 1(4), 1996): operations are gone
//! through in their order, and each gets the earliest cycle that the operations before it leave it.
//! These are relaxed to tasks of one cycle on equal units, each with the earliest cycle that it has
//! been found to have and with the longest way from it to the operation asked about (M. Rim and R.
//! Jain, *Lower-bound performance estimation for the high-level synthesis scheduling problem*, IEEE
//! TCAD 13(4), 1994). Such tasks are scheduled best by taking, of those that are there, the one with
//! the longest way first; what makes the last of them late is a number of tasks that come no earlier
//! than a cycle, have no shorter ways, and keep all units busy from that cycle on. That number, the
//! cycle and the way are what the certificate says.

use crate::certificate::{Joint, Reason, Step};
use crate::model::{Edge, Loop};
use crate::sets::Crowd;
use std::collections::BinaryHeap;

/// Operations of the iterations together.
const MOST: usize = 6_000;
/// Iterations from one operation to itself: the first and the last are not whole.
const ITERATIONS: usize = 4;
/// Operations from which a way round is measured.
const STARTS: usize = 3;
/// Cycles before an operation from which others are looked at; fewer than 64 ([`Ways`]).
const NEAR: i64 = 60;
/// Orders and tasks that are looked at for one operation to begin with.
const WORK: i64 = 40_000_000;

/// The longest way round, where circuits of the edges that `counts` are long enough beside what units
/// need to be worth the question: ResMII and RecMII are given in cycles.
pub fn slowest(
    l: &Loop,
    crowds: &[Crowd],
    counts: impl Fn(&Edge) -> bool,
    (res_mii, rec_mii): (i64, i64),
) -> Option<Joint> {
    if 2 * rec_mii < res_mii || 2 * l.operations.len() > MOST {
        return None;
    }
    let crowded = |c: &&Crowd| 4 * c.members() as u64 >= rec_mii.max(1) as u64 * c.capacity;
    let crowds: Vec<&Crowd> = crowds.iter().filter(crowded).collect();
    let iterations = (MOST / l.operations.len().max(1)).clamp(1, ITERATIONS);
    let round = Round::new(l, &crowds, counts, iterations)?;
    let least = |j: &Joint| j.steps.last().map_or(0, |s| s.cycle);
    round.starts().into_iter().filter_map(|x| round.least(x)).max_by_key(least)
}

/// A loop's ways round.
struct Round<'a> {
    l: &'a Loop,
    /// Edges by the operation that they lead to.
    into: Vec<Vec<usize>>,
    crowds: &'a [&'a Crowd],
    iterations: usize,
    /// Operations of all iterations, numbered iteration by iteration, each behind what it waits
    /// for.
    sorted: Vec<usize>,
}

/// A task before an operation: its number, its earliest cycle and the longest way to the operation.
type Task = (usize, i64, i64);

impl<'a> Round<'a> {
    /// None where the operations of an iteration wait for each other.
    fn new(
        l: &'a Loop,
        crowds: &'a [&'a Crowd],
        counts: impl Fn(&Edge) -> bool,
        iterations: usize,
    ) -> Option<Round<'a>> {
        let n = l.operations.len();
        let mut into = vec![Vec::new(); n];
        let mut left = vec![0usize; n];
        let mut behind = vec![Vec::new(); n];
        for (k, e) in l.edges.iter().enumerate().filter(|e| counts(e.1)) {
            into[e.to].push(k);
            if e.distance == 0 {
                left[e.to] += 1;
                behind[e.from].push(e.to);
            }
        }
        let mut ready: Vec<usize> = (0..n).rev().filter(|&i| left[i] == 0).collect();
        let mut one = Vec::with_capacity(n);
        while let Some(i) = ready.pop() {
            one.push(i);
            for &s in &behind[i] {
                left[s] -= 1;
                if left[s] == 0 {
                    ready.push(s);
                }
            }
        }
        let sorted = (0..=iterations).flat_map(|t| one.iter().map(move |i| t * n + i)).collect();
        (one.len() == n).then_some(Round { l, into, crowds, iterations, sorted })
    }

    /// Operations whose results go round, those first from which the way round is longest.
    fn starts(&self) -> Vec<usize> {
        let all = self.into.iter().flatten().map(|&k| &self.l.edges[k]);
        let mut firsts: Vec<usize> = all.filter(|e| e.distance > 0).map(|e| e.from).collect();
        firsts.sort_unstable();
        firsts.dedup();
        let mut long: Vec<(i64, usize)> = firsts.into_iter().filter_map(|x| Some((self.heads(x)?.1, x))).collect();
        long.sort_unstable_by_key(|&(length, x)| (-length, x));
        long.into_iter().take(STARTS).map(|x| x.1).collect()
    }

    fn n(&self) -> usize {
        self.l.operations.len()
    }

    /// Edges to an operation of some iteration, and the numbers of those that they come from.
    fn preds(&self, v: usize) -> impl Iterator<Item = (usize, usize, i64)> + '_ {
        let n = self.n();
        self.into[v % n].iter().filter_map(move |&k| {
            let e = &self.l.edges[k];
            let t = (v / n).checked_sub(usize::try_from(e.distance).ok()?)?;
            Some((k, t * n + e.from, e.latency))
        })
    }

    /// The longest way from an operation to each that also leads back to it in the last iteration,
    /// and the length of that.
    fn heads(&self, x: usize) -> Option<(Vec<Option<i64>>, i64)> {
        let sorted = &self.sorted;
        let last = self.iterations * self.n() + x;
        let mut leads = vec![false; sorted.len()];
        leads[last] = true;
        for &v in sorted.iter().rev() {
            if leads[v] {
                self.preds(v).for_each(|(_, p, _)| leads[p] = true);
            }
        }
        let mut heads: Vec<Option<i64>> = vec![None; sorted.len()];
        heads[x] = Some(0);
        for &v in sorted.iter().filter(|&&v| leads[v] && v != x) {
            heads[v] = self.preds(v).filter_map(|(_, p, cycles)| Some(heads[p]? + cycles)).max();
        }
        let length = heads[last]?;
        Some((heads, length))
    }

    /// The longest that it takes from an operation back to it, iterations later.
    fn least(&self, x: usize) -> Option<Joint> {
        let (n, sorted) = (self.n(), &self.sorted);
        let last = self.iterations * n + x;
        let (mut heads, _) = self.heads(x)?;
        let mut place = vec![0; sorted.len()];
        sorted.iter().enumerate().for_each(|(k, &v)| place[v] = k);
        let mut tails: Vec<Option<i64>> = vec![None; sorted.len()];
        let mut work = WORK;
        let (mut tasks, mut cycles) = (Vec::new(), Vec::new());
        // The reason of each cycle, and the tasks that it counts.
        let mut why: Vec<Option<(Reason, Vec<usize>)>> = vec![None; sorted.len()];
        for &v in sorted.iter().filter(|&&v| v != x) {
            if heads[v].is_none() {
                continue;
            }
            // What earlier operations were found to need counts for all behind them.
            let ways = self.preds(v).filter_map(|(k, p, cycles)| Some((heads[p]? + cycles, k, p)));
            let (mut head, edge, from) = ways.max()?;
            why[v] = Some((Reason::Edge(edge), vec![from]));
            let mut near = self.near(v, &heads, &place, &mut tails);
            work -= near.len() as i64 * (4 + self.crowds.len() as i64);
            if work < 0 {
                return None;
            }
            near.sort_unstable_by_key(|t| (t.1, t.2, t.0));
            for crowd in self.crowds {
                tasks.clear();
                let counts = |t: &&Task| t.2 >= 0 && crowd.cycles[t.0 % n] > 0;
                tasks.extend(near.iter().filter(counts).map(|t| (t.1, t.2)));
                if let Some((end, from, tail)) = end(&tasks, crowd.capacity as usize, &mut cycles)
                    && end > head
                {
                    head = end;
                    // Those that are counted, and what stands on their ways.
                    let counted = near.iter().filter(|t| t.1 >= from).map(|t| t.0).collect();
                    why[v] = Some((Reason::Crowd { set: crowd.set.clone(), from, tail }, counted));
                }
            }
            heads[v] = Some(head);
        }
        // Of all this, what the last cycle comes from.
        let mut wanted = vec![false; sorted.len()];
        wanted[last] = true;
        for &v in sorted.iter().rev().filter(|&&v| v != x) {
            if let (true, Some((_, from))) = (wanted[v], &why[v]) {
                from.iter().for_each(|&p| wanted[p] = true);
            }
        }
        let step = |&v: &usize| {
            let (reason, _) = why[v].take()?;
            Some(Step { operation: v % n, iteration: v / n, cycle: heads[v]?, reason })
        };
        let steps = sorted.iter().filter(|&&v| wanted[v] && v != x).filter_map(step).collect();
        Some(Joint { operation: x, iterations: self.iterations, steps })
    }

    /// Operations before one, with their earliest cycles and the longest ways to it; `tails` is
    /// left as it was.
    fn near(&self, v: usize, heads: &[Option<i64>], place: &[usize], tails: &mut [Option<i64>]) -> Vec<Task> {
        let mut found = Vec::new();
        let mut waiting = BinaryHeap::from([(place[v], v)]);
        tails[v] = Some(0);
        while let Some((_, u)) = waiting.pop() {
            let Some(tail) = tails[u].take() else { continue };
            if u != v {
                found.extend(heads[u].map(|head| (u, head, tail)));
            }
            for (_, p, cycles) in self.preds(u).filter(|p| heads[p.1].is_some()) {
                if tail + cycles <= NEAR {
                    if tails[p].is_none() {
                        waiting.push((place[p], p));
                    }
                    tails[p] = tails[p].max(Some(tail + cycles));
                }
            }
        }
        found
    }
}

/// A cycle in which tasks issue: which, the longest way behind one of them, the shortest, and are all
/// units busy?
type Issued = (i64, i64, i64, bool);

/// The earliest that tasks of one cycle on so many units, each with its earliest cycle and what comes
/// behind it, can all have come to their ends; with the cycle from which they come too thick, and the
/// way that each of those has behind it at the least. Tasks come by their earliest cycles, with ways
/// from 0 to [`NEAR`]; `cycles` is room to work in. None without tasks.
fn end(tasks: &[(i64, i64)], units: usize, cycles: &mut Vec<Issued>) -> Option<(i64, i64, i64)> {
    cycles.clear();
    let mut there = Ways::default();
    let mut rest = tasks.iter().peekable();
    let mut now = i64::MIN;
    while let Some(&&(next, _)) = rest.peek() {
        now = now.max(next);
        while let Some(&(_, tail)) = rest.next_if(|t| t.0 <= now) {
            there.push(tail);
        }
        // Until more arrive.
        while rest.peek().is_none_or(|t| t.0 > now) {
            let Some(longest) = there.pop() else { break };
            let (mut shortest, mut issued) = (longest, 1);
            while issued < units
                && let Some(tail) = there.pop()
            {
                (shortest, issued) = (tail, issued + 1);
            }
            cycles.push((now, longest, shortest, issued == units));
            now += 1;
        }
    }
    let (at, &(cycle, tail, ..)) = cycles.iter().enumerate().max_by_key(|(_, c)| c.0 + c.1)?;
    // Before it, as long as all units were busy with what has no shorter way.
    let full = |k: &usize| {
        let (then, _, shortest, busy) = cycles[*k];
        busy && shortest >= tail && then == cycle - (at - k) as i64
    };
    let thick = (0..at).rev().take_while(full).count() as i64;
    Some((cycle + tail, cycle - thick, tail))
}

/// Ways of the tasks that are there: how many of each length, and a bit for each length of which
/// there are any.
struct Ways {
    count: [u32; NEAR as usize + 1],
    lengths: u64,
}

impl Default for Ways {
    fn default() -> Ways {
        Ways { count: [0; NEAR as usize + 1], lengths: 0 }
    }
}

impl Ways {
    fn push(&mut self, way: i64) {
        self.count[way as usize] += 1;
        self.lengths |= 1 << way;
    }

    /// The longest.
    fn pop(&mut self) -> Option<i64> {
        let way = self.lengths.checked_ilog2()?;
        let count = &mut self.count[way as usize];
        *count -= 1;
        if *count == 0 {
            self.lengths &= !(1 << way);
        }
        Some(i64::from(way))
    }
}

#[cfg(test)]
mod tests {
    use super::{end, slowest};
    use crate::certificate::Certificate;
    use crate::check::least;
    use crate::model::{Edge, Kind, Loop, Operation, Resource, Use, Why};
    use crate::sets::crowds;

    /// The end of tasks `(earliest cycle, way behind)`, and from when on they come too thick.
    fn of(tasks: &[(i64, i64)], units: usize) -> Option<(i64, i64, i64)> {
        end(tasks, units, &mut Vec::new())
    }

    #[test]
    fn the_longest_way_goes_first() {
        // Three at once on one unit: the longest way, 5, issues in cycle 0.
        assert_eq!(of(&[(0, 1), (0, 5), (0, 3)], 1), Some((5, 0, 5)));
        // Three of the same: in cycles 0, 1 and 2; on two units the third in cycle 1.
        assert_eq!(of(&[(0, 5), (0, 5), (0, 5)], 1), Some((7, 0, 5)));
        assert_eq!(of(&[(0, 5), (0, 5), (0, 5)], 2), Some((6, 0, 5)));
        // The two that come later are alone: in cycles 4 and 5.
        assert_eq!(of(&[(0, 2), (4, 2), (4, 2)], 1), Some((7, 4, 2)));
        assert_eq!(of(&[], 2), None);
    }

    /// One operation that eight wait for, one that waits for the eight, and back to the first in the
    /// next iteration; with units for the eight.
    fn round(units: u32) -> Option<i64> {
        let edge = |from, to, distance| Edge { from, to, latency: 1, distance, why: Why::Value };
        let mut edges: Vec<Edge> = (1..9).flat_map(|i| [edge(0, i, 0), edge(i, 9, 0)]).collect();
        edges.push(edge(9, 0, 1));
        let way = |i: usize| if (1..9).contains(&i) { vec![vec![Use { resource: 0, cycles: 1 }]] } else { vec![] };
        let operations = (0..10).map(|i| Operation { name: i.to_string(), ways: way(i) }).collect();
        let resources = vec![Resource { name: "L".into(), count: units, kind: Kind::Unit }];
        let l = Loop { operations, resources, edges, ..Loop::default() };
        let joint = slowest(&l, &crowds(&l), |_| true, (4, 4))?;
        Some(least(&l, &Certificate::Joint(joint)).unwrap())
    }

    #[test]
    fn what_stands_between_has_to_issue() {
        // 0, then the eight in four cycles, 9, and 0 again: 0 1..4 5 6. Units alone need 4, the
        // circuit alone 3.
        assert_eq!(round(2), Some(6));
        // With one unit: 0, 1..8, 9 and 10.
        assert_eq!(round(1), Some(10));
        // With eight the circuit decides.
        assert_eq!(round(8), Some(3));
    }
}
