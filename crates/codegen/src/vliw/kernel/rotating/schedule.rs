//! Iterative modulo scheduling, backwards (Rau, MICRO 1994).
//!
//! Operations are placed from the end of an iteration to its beginning, the one
//! with the longest way from the beginning first, each in the latest of the II
//! cycles before those that follow it that has a unit free. So values are made as
//! late as their readers allow. Where no cycle is free, an operation takes its
//! place all the same: what stands in its way, and what would come too late for
//! it, is taken out and placed again. A budget of placements ends attempts that
//! lead nowhere.
//!
//! The branch stands at the end of the first stage: it says whether another
//! iteration begins, and turns the registers' names.

use super::super::body::From;
use super::super::graph::latency;
use super::super::modulo::{Schedule, mix};
use super::super::place::{Ops, Sides};
use super::super::table::Table;
use ciphermill_machine::InstrId;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Placements for each operation before an attempt is given up.
const BUDGET: usize = 6;

/// `t[second] + distance * II >= t[first] + cycles`.
#[derive(Clone, Copy)]
struct Edge {
    first: usize,
    second: usize,
    cycles: i64,
    distance: i64,
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
    out
}

/// Longest way from the beginning of an iteration to each operation, with the
/// ways round through other iterations; none where they never end.
fn depths(n: usize, edges: &[Edge], ii: i64) -> Option<Vec<i64>> {
    let mut depth = vec![0i64; n];
    for _ in 0..=n {
        let mut changed = false;
        for e in edges {
            let d = depth[e.first] + e.cycles - e.distance * ii;
            if d > depth[e.second] {
                depth[e.second] = d;
                changed = true;
            }
        }
        if !changed {
            return Some(depth);
        }
    }
    None
}

/// A schedule of an interval, with so many stages.
pub fn schedule(sides: &Sides<'_>, ops: &Ops, ii: i64, stages: i64, seed: u64) -> Option<Schedule> {
    let n = ops.ops.len();
    let edges = edges(ops);
    let depth = depths(n, &edges, ii)?;
    let (mut preds, mut succs) = (vec![Vec::new(); n], vec![Vec::new(); n]);
    for e in &edges {
        preds[e.second].push(*e);
        succs[e.first].push(*e);
    }
    let noise = |i: usize| if seed == 0 { 0 } else { (mix(seed, i as u64) % 3) as i64 };
    let key = |i: usize| (Reverse(depth[i] + noise(i)), i);
    let lowest = -(stages * ii);
    let mut table = Table::new(sides, ops, ii, false);
    let mut time: Vec<Option<i64>> = vec![None; n];
    let mut before: Vec<Option<i64>> = vec![None; n];
    let mut variant = vec![InstrId(0); n];

    let back = n.checked_sub(1)?;
    let t = lowest + ii - 1;
    let (v, unit) = table.slot(t, &ops.ops[back])?;
    table.put(table.row(t), back, &ops.ops[back], v, unit);
    (time[back], variant[back]) = (Some(t), v);

    let mut queue: BTreeSet<(Reverse<i64>, usize)> = (0..back).map(key).collect();
    let mut budget = BUDGET * n;
    while let Some((_, i)) = queue.pop_first() {
        budget = budget.checked_sub(1)?;
        let op = &ops.ops[i];
        let late = |e: &Edge| {
            let t = if e.second == i { None } else { time[e.second] };
            t.map(|t| t + e.distance * ii - e.cycles)
        };
        let latest = succs[i].iter().filter_map(late).min().unwrap_or(-1).min(-1);
        let found = (latest - ii + 1..=latest).rev().find_map(|t| Some((t, table.slot(t, op)?)));
        let (t, (v, unit)) = match found {
            Some(found) => found,
            None => {
                let t = before[i].map_or(latest, |b| latest.min(b - 1));
                let row = table.row(t);
                let choice = loop {
                    if let Some(choice) = table.slot(t, op) {
                        break choice;
                    }
                    let out = in_the_way(sides, ops, &time, &variant, i, row, ii, back)?;
                    table.take(row, out, &ops.ops[out], variant[out]);
                    time[out] = None;
                    queue.insert(key(out));
                };
                (t, choice)
            }
        };
        if t < lowest {
            return None;
        }
        table.put(table.row(t), i, op, v, unit);
        (time[i], before[i], variant[i]) = (Some(t), Some(t), v);
        // Neighbours that the new place contradicts are placed again.
        let again = |e: &Edge| {
            let (a, b) = (time[e.first]?, time[e.second]?);
            (b + e.distance * ii < a + e.cycles).then_some(())
        };
        let wrong = preds[i].iter().filter(|e| again(e).is_some()).map(|e| e.first);
        let wrong: BTreeSet<usize> = wrong.chain(succs[i].iter().filter(|e| again(e).is_some()).map(|e| e.second)).collect();
        for out in wrong {
            if out == back || out == i {
                return None;
            }
            if let Some(t) = time[out].take() {
                table.take(table.row(t), out, &ops.ops[out], variant[out]);
                queue.insert(key(out));
            }
        }
    }
    let time: Vec<i64> = time.into_iter().map(|t| Some(t? - lowest)).collect::<Option<_>>()?;
    let holds = |e: &Edge| time[e.second] + e.distance * ii >= time[e.first] + e.cycles;
    edges.iter().all(holds).then_some(Schedule { ii, time, variant, stages })
}

/// An operation that stands in a row where another has to: the one with the
/// shortest way to it that runs on one of the other's units, or any where the
/// row is full.
#[allow(clippy::too_many_arguments)]
fn in_the_way(
    sides: &Sides<'_>,
    ops: &Ops,
    time: &[Option<i64>],
    variant: &[InstrId],
    i: usize,
    row: usize,
    ii: i64,
    back: usize,
) -> Option<usize> {
    let units = |v: InstrId| &sides.machine.instrs[usize::from(v.0)].units;
    let here: Vec<usize> = (0..ops.ops.len())
        .filter(|&k| k != i && k != back && time[k].is_some_and(|t| t.rem_euclid(ii) as usize == row))
        .collect();
    let shares = |k: &&usize| {
        ops.ops[i].variants.iter().any(|&v| units(v).iter().any(|u| units(variant[**k]).contains(u)))
    };
    here.iter().filter(shares).max_by_key(|&&k| time[k]).or_else(|| here.first()).copied()
}
