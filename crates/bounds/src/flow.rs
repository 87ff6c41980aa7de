//! The dearest flow through a network of differences.
//!
//! Arcs say `t[to] - t[from] >= length`. From each source a unit flows to some sink, one to each; the
//! flow whose arcs have the greatest lengths together is the dual of the least sum of differences
//! `t[sink] - t[source]` (Dinechin, *Simplex scheduling: more than lifetime-sensitive instruction
//! scheduling*, PACT 1994, whose program it is). Units are sent one after the other, each by the
//! longest way that is left (successive shortest paths; Ahuja, Magnanti and Orlin, *Network flows*,
//! 1993).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// `t[to] - t[from] >= length`.
#[derive(Clone, Copy, Debug)]
pub struct Arc {
    pub from: usize,
    pub to: usize,
    pub length: i64,
}

/// How much flows through each arc; none where the arcs have a circuit of positive length, where a
/// source reaches no sink, or where `work`, in arcs looked at, comes to its end.
///
/// `sources` and `sinks` are nodes, as often as units flow from or to them.
pub fn dearest(nodes: usize, arcs: &[Arc], sources: &[usize], sinks: &[usize], work: &mut u64) -> Option<Vec<u64>> {
    let mut out: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    let mut into: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    for (k, a) in arcs.iter().enumerate() {
        out[a.from].push(k);
        into[a.to].push(k);
    }
    let mut level = levels(nodes, arcs, work)?;
    let mut flow = vec![0u64; arcs.len()];
    let mut open = vec![0usize; nodes];
    sinks.iter().for_each(|&s| open[s] += 1);
    // Of the way being looked for: its length to each node, and the arc by which it comes there, forward
    // or, taking back what flows, backward.
    let mut distance: Vec<i64> = vec![i64::MAX; nodes];
    let mut by: Vec<(usize, bool)> = vec![(0, false); nodes];
    for &source in sources {
        let mut waiting = BinaryHeap::from([Reverse((0i64, source))]);
        distance[source] = 0;
        let mut touched = vec![source];
        let mut settled: Vec<usize> = Vec::new();
        let end = loop {
            let Reverse((d, u)) = waiting.pop()?;
            if d > distance[u] {
                continue;
            }
            if open[u] > 0 {
                break u;
            }
            settled.push(u);
            *work = work.checked_sub((out[u].len() + into[u].len() + 1) as u64)?;
            // The slack of an arc is never negative, and 0 where something flows.
            let slack = |k: usize| level[arcs[k].to] - level[arcs[k].from] - arcs[k].length;
            let forward = out[u].iter().map(|&k| (k, arcs[k].to, slack(k), false));
            let back = into[u].iter().filter(|&&k| flow[k] > 0).map(|&k| (k, arcs[k].from, 0, true));
            for (k, v, cost, reverse) in forward.chain(back) {
                if d + cost < distance[v] {
                    if distance[v] == i64::MAX {
                        touched.push(v);
                    }
                    (distance[v], by[v]) = (d + cost, (k, reverse));
                    waiting.push(Reverse((d + cost, v)));
                }
            }
        };
        settled.iter().for_each(|&u| level[u] += distance[end] - distance[u]);
        touched.iter().for_each(|&v| distance[v] = i64::MAX);
        open[end] -= 1;
        let mut at = end;
        while at != source {
            let (k, reverse) = by[at];
            flow[k] = if reverse { flow[k] - 1 } else { flow[k] + 1 };
            at = if reverse { arcs[k].to } else { arcs[k].from };
        }
    }
    Some(flow)
}

/// The longest way from anywhere to each node.
fn levels(nodes: usize, arcs: &[Arc], work: &mut u64) -> Option<Vec<i64>> {
    let mut level = vec![0i64; nodes];
    for _ in 0..=nodes {
        *work = work.checked_sub(arcs.len() as u64)?;
        let mut changed = false;
        for a in arcs {
            if level[a.from] + a.length > level[a.to] {
                level[a.to] = level[a.from] + a.length;
                changed = true;
            }
        }
        if !changed {
            return Some(level);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{Arc, dearest};

    #[test]
    fn ways_are_given_to_those_who_gain_most() {
        // Sources 0 and 1, sinks 2 and 3: 0 to 2 is 5 long, 0 to 3 is 4, 1 to 2 is 4 and 1 to 3 is 1. Each
        // with its nearest, 0 to 2 and 1 to 3, makes 6; crosswise it is 8.
        let arcs = [(0, 2, 5), (0, 3, 4), (1, 2, 4), (1, 3, 1)].map(|(from, to, length)| Arc { from, to, length });
        assert_eq!(dearest(4, &arcs, &[0, 1], &[2, 3], &mut 1000), Some(vec![0, 1, 1, 0]));
        // Too little work, and a sink that nothing reaches.
        assert_eq!(dearest(4, &arcs, &[0, 1], &[2, 3], &mut 3), None);
        assert_eq!(dearest(5, &arcs, &[0], &[4], &mut 1000), None);
    }

    #[test]
    fn a_circuit_that_grows_has_no_dearest_flow() {
        let arcs = [(0, 1, 1), (1, 0, 0)].map(|(from, to, length)| Arc { from, to, length });
        assert_eq!(dearest(2, &arcs, &[0], &[1], &mut 1000), None);
    }
}
