//! RecMII: the recurrence circuit with the most cycles an iteration (the maximum cycle ratio; Lawler,
//! *Combinatorial Optimization*, 1976).

use crate::certificate::Circuit;
use crate::model::{Edge, Loop};

/// Edges looked at before the slowest circuit so far is taken.
const WORK: usize = 40_000_000;

/// The slowest circuit of the edges that `counts`; none where none of them lead round. Where the work
/// comes to its end it is one that may not be the slowest.
pub fn slowest(l: &Loop, counts: impl Fn(&Edge) -> bool) -> Option<Circuit> {
    let mut edges: Vec<usize> = (0..l.edges.len()).filter(|&e| counts(&l.edges[e])).collect();
    // Operations stand behind what they read: in their order a chain is followed in one go.
    edges.sort_by_key(|&e| l.edges[e].from);
    let mut work = WORK;
    let (mut best, mut ii) = (None, 0);
    while let Some(circuit) = longer(l, &edges, ii, &mut work) {
        let latency: i64 = circuit.iter().map(|&e| l.edges[e].latency).sum();
        let distance: i64 = circuit.iter().map(|&e| l.edges[e].distance).sum();
        let least = if distance > 0 { (latency + distance - 1).div_euclid(distance) } else { break };
        best = Some(Circuit { edges: circuit });
        if least <= ii {
            break;
        }
        ii = least;
    }
    best
}

/// A circuit that an II is too short for.
fn longer(l: &Loop, edges: &[usize], ii: i64, work: &mut usize) -> Option<Vec<usize>> {
    let n = l.operations.len();
    let mut depth = vec![0i64; n];
    let mut by: Vec<Option<usize>> = vec![None; n];
    for _ in 0..=n {
        *work = work.checked_sub(edges.len() + n)?;
        let mut changed = false;
        for &k in edges {
            let e = &l.edges[k];
            let d = depth[e.from] + e.latency - e.distance * ii;
            if d > depth[e.to] {
                (depth[e.to], by[e.to], changed) = (d, Some(k), true);
            }
        }
        if !changed {
            return None;
        }
        if let Some(round) = round(l, &by) {
            return Some(round);
        }
    }
    None
}

/// Edges by which the ways back from some operation come to it again.
fn round(l: &Loop, by: &[Option<usize>]) -> Option<Vec<usize>> {
    let mut seen_from = vec![usize::MAX; by.len()];
    for start in 0..by.len() {
        let mut at = start;
        while let (usize::MAX, Some(k)) = (seen_from[at], by[at]) {
            seen_from[at] = start;
            at = l.edges[k].from;
        }
        if seen_from[at] == start && by[at].is_some() {
            let mut way = Vec::new();
            let mut i = at;
            while let Some(k) = by[i] {
                way.push(k);
                i = l.edges[k].from;
                if i == at {
                    break;
                }
            }
            way.reverse();
            return Some(way);
        }
    }
    None
}
