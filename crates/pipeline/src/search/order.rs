//! An order of a loop's operations that keeps few values live.
//!
//! Operations are put in order from the last to the first: at each step one of those whose
//! readers all stand, first what ends more lifetimes than it begins, then what goes on with the
//! value met last, or what stood last before. The best of a few such orders is taken, by MaxLive
//! and then by the sum of all lifetimes (the greedy order of Sethi and Ullman, *The generation of
//! optimal code for arithmetic expressions*, J. ACM 17(4), 1970, for graphs).

use super::moves::mix;
use crate::body::From;
use crate::place::Ops;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// The place of each operation in the best of so many orders and the one that they have.
pub fn frugal(ops: &Ops, tried: u64) -> Vec<i64> {
    let graph = Graph::of(ops);
    let own: Vec<usize> = (0..ops.ops.len()).collect();
    let all = std::iter::once(own).chain((0..tried).map(|k| graph.backwards(k)));
    let best = all.min_by_key(|order| graph.pressure(order)).unwrap_or_default();
    let mut place = vec![0; best.len()];
    best.iter().enumerate().for_each(|(k, &i)| place[i] = k as i64);
    place
}

struct Graph {
    /// Operations that come before each, and among them those whose values it reads.
    before: Vec<Vec<usize>>,
    sources: Vec<Vec<usize>>,
    readers: Vec<Vec<usize>>,
    /// Operations on the longest way to each.
    depth: Vec<usize>,
    /// Is the value live at the end of an iteration, and at its beginning as well?
    held: Vec<bool>,
    carried: Vec<bool>,
    cluster: Vec<usize>,
}

impl Graph {
    fn of(ops: &Ops) -> Graph {
        let n = ops.ops.len();
        let own = |i: usize| -> Vec<usize> {
            let reads = ops.ops[i].reads.iter();
            let mut read: Vec<usize> =
                reads.filter_map(|r| if let From::Node(p, 0) = r.1 { Some(p) } else { None }).collect();
            read.sort_unstable();
            read.dedup();
            read
        };
        let sources: Vec<Vec<usize>> = (0..n).map(own).collect();
        let mut readers = vec![Vec::new(); n];
        for (i, list) in sources.iter().enumerate() {
            list.iter().for_each(|&p| readers[p].push(i));
        }
        let mut before = sources.clone();
        for &(a, b, _, distance) in &ops.memory {
            if distance == 0 {
                before[b].push(a);
            }
        }
        let mut depth: Vec<usize> = vec![0; n];
        for i in 0..n {
            depth[i] = before[i].iter().map(|&p| depth[p] + 1).max().unwrap_or(0);
        }
        let carried: Vec<bool> = (0..n).map(|i| ops.initial.contains_key(&i)).collect();
        let mut held = carried.clone();
        ops.live_out.iter().for_each(|l| held[l.0] = true);
        let cluster = ops.ops.iter().map(|op| op.at.result).collect();
        Graph { before, sources, readers, depth, held, carried, cluster }
    }

    /// An order made from its end. Of equals the one met last goes first, or the one that stood
    /// last before, or the one on the longest way; from the fourth on with a little chance in it.
    fn backwards(&self, trial: u64) -> Vec<usize> {
        let n = self.before.len();
        let mut waiting = vec![0usize; n];
        self.before.iter().flatten().for_each(|&p| waiting[p] += 1);
        let mut open = self.held.clone();
        let chance = |i: usize| if trial < 3 { 0 } else { mix(trial, i as u64) as usize % (1 << (trial % 7)) };
        let deep = trial.is_multiple_of(3);
        let mut first: Vec<usize> = match trial % 3 {
            0 => vec![0; n],
            1 => (0..n).map(|i| i + chance(i)).collect(),
            _ => (0..n).map(|i| self.depth[i] + chance(i)).collect(),
        };
        // Sources of each that no reader has met yet.
        let mut opens: Vec<i64> = self.sources.iter().map(|s| s.iter().filter(|&&p| !open[p]).count() as i64).collect();
        let ends = |i: usize, open: bool| i64::from(open && !self.carried[i]);
        // The branch is the last and stays so.
        let key = |i: usize, gain: i64, first: usize| (i + 1 != n, gain, Reverse((first, i)));
        let mut is_ready = vec![false; n];
        let mut ready = BTreeSet::new();
        for i in (0..n).filter(|&i| waiting[i] == 0) {
            is_ready[i] = true;
            ready.insert(key(i, opens[i] - ends(i, open[i]), first[i]));
        }
        let mut out = Vec::with_capacity(n);
        while let Some((_, _, Reverse((_, i)))) = ready.pop_first() {
            is_ready[i] = false;
            out.push(i);
            for &p in &self.sources[i] {
                if !std::mem::replace(&mut open[p], true) {
                    for &r in &self.readers[p] {
                        if is_ready[r] {
                            let gain = opens[r] - ends(r, open[r]);
                            ready.remove(&key(r, gain, first[r]));
                            ready.insert(key(r, gain - 1, first[r]));
                        }
                        opens[r] -= 1;
                    }
                }
                if deep {
                    first[p] = out.len() + chance(p);
                }
            }
            for &p in &self.before[i] {
                waiting[p] -= 1;
                if waiting[p] == 0 {
                    is_ready[p] = true;
                    ready.insert(key(p, opens[p] - ends(p, open[p]), first[p]));
                }
            }
        }
        out.reverse();
        out
    }

    /// MaxLive of a cluster, and the values live over all steps.
    fn pressure(&self, order: &[usize]) -> (usize, usize) {
        let mut open = self.held.clone();
        let mut live = vec![0usize; self.cluster.iter().max().map_or(0, |m| m + 1)];
        (0..open.len()).filter(|&i| open[i]).for_each(|i| live[self.cluster[i]] += 1);
        let (mut most, mut all) = (0, 0);
        for &i in order.iter().rev() {
            if open[i] && !self.carried[i] {
                open[i] = false;
                live[self.cluster[i]] -= 1;
            }
            for &p in &self.sources[i] {
                if !open[p] {
                    open[p] = true;
                    live[self.cluster[p]] += 1;
                }
            }
            most = most.max(live.iter().copied().max().unwrap_or(0));
            all += live.iter().sum::<usize>();
        }
        (most, all)
    }
}
