//! Ways round: from an operation through others, of later iterations too, back to itself.
//!
//! Values that one iteration leaves to the next make such ways, and accesses to memory that
//! have to keep their order. None may take longer than the intervals that it goes through.

use super::body::From;
use super::graph::latency;
use super::place::Ops;
use std::cell::Cell;

/// `t[second] + distance * II >= t[first] + cycles`.
#[derive(Clone, Copy)]
pub struct Edge {
    pub first: usize,
    pub second: usize,
    pub cycles: i64,
    pub distance: i64,
}

/// The orders between the operations of a loop.
pub struct Orders {
    pub edges: Vec<Edge>,
    pub preds: Vec<Vec<Edge>>,
    pub succs: Vec<Vec<Edge>>,
}

impl Orders {
    pub fn new(ops: &Ops) -> Orders {
        Orders::of(ops.ops.len(), edges(ops))
    }

    /// Those between `n` operations.
    pub fn of(n: usize, edges: Vec<Edge>) -> Orders {
        let (mut preds, mut succs) = (vec![Vec::new(); n], vec![Vec::new(); n]);
        for e in &edges {
            preds[e.second].push(*e);
            succs[e.first].push(*e);
        }
        Orders { edges, preds, succs }
    }

    /// Longest way from the beginning of an iteration to each operation, with the
    /// ways round through other iterations; none where they never end, because the
    /// interval is shorter than some way round; nor where `work` comes to its end.
    pub fn depths(&self, ii: i64, work: &Cell<i64>) -> Option<Vec<i64>> {
        let n = self.preds.len();
        let mut depth = vec![0i64; n];
        let mut before = vec![n; n];
        for _ in 0..=n {
            work.set(work.get() - (n + self.edges.len()) as i64);
            if work.get() <= 0 {
                return None;
            }
            let mut changed = false;
            for e in &self.edges {
                let d = depth[e.first] + e.cycles - e.distance * ii;
                if d > depth[e.second] {
                    depth[e.second] = d;
                    before[e.second] = e.first;
                    changed = true;
                }
            }
            if !changed {
                return Some(depth);
            }
            // The longest ways lead round: each turn makes them longer.
            if goes_round(&before) {
                return None;
            }
        }
        None
    }

    /// The least interval of at least `first` cycles that no way round forbids.
    pub fn least(&self, first: i64, last: i64, work: &Cell<i64>) -> Option<i64> {
        let fits = |ii: i64| self.depths(ii, work).is_some();
        if fits(first) {
            return Some(first);
        }
        if !fits(last) {
            return None;
        }
        let (mut low, mut high) = (first, last);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if fits(middle) { high = middle } else { low = middle }
        }
        Some(high)
    }
}

/// Does the way back from some operation, each of which names the one before it
/// (or none: their number), come to itself?
fn goes_round(before: &[usize]) -> bool {
    let mut seen_from = vec![usize::MAX; before.len()];
    (0..before.len()).any(|start| {
        let mut i = start;
        while i < before.len() && seen_from[i] == usize::MAX {
            seen_from[i] = start;
            i = before[i];
        }
        i < before.len() && seen_from[i] == start
    })
}

fn edges(ops: &Ops) -> Vec<Edge> {
    let mut out = Vec::new();
    for (i, op) in ops.ops.iter().enumerate() {
        for &(_, from) in &op.reads {
            if let From::Node(p, d) = from {
                out.push(Edge { first: p, second: i, cycles: latency(ops, p), distance: i64::from(d) });
            }
        }
    }
    let memory = ops.memory.iter().map(|&(a, b, cycles, d)| Edge {
        first: a,
        second: b,
        cycles: i64::from(cycles),
        distance: i64::from(d),
    });
    out.extend(memory.filter(|e| e.first != e.second));
    // Operations stand in an order that respects their dependences: taken in it, a
    // chain is followed to its end in one go.
    out.sort_by_key(|e| e.first);
    out
}
