//! Iterative modulo scheduling (Rau, MICRO 1994), backwards.
//!
//! Operations are placed from the end of an iteration to its beginning, the most urgent first, each
//! in the latest of the II cycles before those that follow it that has a unit free. So values are
//! made as late as their readers allow. Where no cycle is free, an operation takes its place all the
//! same: what stands in its way, and what would come too late for it, is taken out and placed
//! again. A budget of placements ends attempts that lead nowhere.
//!
//! Dependences hold in what comes of it; registers are not looked at.

use super::state::Loop;
use crate::graph::kept;
use crate::modulo::Schedule;
use crate::place::{Ops, Sides};
use crate::rounds::{Edge, Orders};
use crate::table::Table;
use ciphermill_machine::InstrId;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Which operation is placed first.
#[derive(Clone, Copy, Debug)]
pub enum Order {
    /// The one with the longest way from the beginning: for loops that wait for chains of
    /// dependences.
    Depth,
    /// The last in the program, whose order keeps few values alive: for loops that
    /// fill their slots.
    Program,
    /// Both together.
    Both,
}

impl Order {
    /// How urgent operation `i` of `n` is, of which the deepest is at `most`.
    fn urgency(self, i: usize, depth: i64, n: usize, most: i64) -> i64 {
        let place = i as i64 * most.max(1) / n.max(1) as i64;
        match self {
            Order::Depth => depth,
            Order::Program => i as i64,
            Order::Both => depth + place,
        }
    }
}

/// The dependences of a loop; where registers stand still, a value is read before its successor
/// comes.
pub fn dependences(all: &Loop<'_>, ops: &Ops) -> Orders {
    let near = &all.task.near;
    let mut edges = Vec::new();
    for (i, before) in near.before.iter().enumerate() {
        for e in before {
            let crossing = e.operand.map_or(0, |o| ops.crossing(i, usize::from(o)));
            edges.push(Edge { first: e.other, second: i, cycles: e.cycles + crossing, distance: e.distance });
        }
        if !all.task.rotates {
            for &(p, d) in near.reads[i].iter().filter(|r| r.0 != i) {
                edges.push(Edge { first: i, second: p, cycles: 1 - kept(ops, p), distance: 1 - d });
            }
        }
    }
    Orders::of(ops.ops.len(), edges)
}

/// A schedule of an interval, with so many stages and the branch in its cycle; none when so many
/// placements for each operation do not lead to one.
pub fn schedule(
    all: &Loop<'_>,
    ops: &Ops,
    (orders, depth): (&Orders, &[i64]),
    (ii, stages): (i64, i64),
    branch: i64,
    order: Order,
) -> Option<Schedule> {
    let sides = all.sides;
    let n = ops.ops.len();
    let Orders { edges, preds, succs } = orders;
    let deepest = depth.iter().copied().max().unwrap_or(0);
    let key = |i: usize| (Reverse(order.urgency(i, depth[i], n, deepest)), i);
    let lowest = -(stages * ii);
    let mut table = Table::new(sides, ops, ii, false);
    let mut time: Vec<Option<i64>> = vec![None; n];
    let mut before: Vec<Option<i64>> = vec![None; n];
    let mut variant = vec![InstrId(0); n];

    let back = n.checked_sub(1)?;
    let t = lowest + branch;
    let (v, unit) = table.slot(t, &ops.ops[back])?;
    table.put(table.row(t), back, &ops.ops[back], v, unit);
    (time[back], variant[back]) = (Some(t), v);

    let mut queue: BTreeSet<(Reverse<i64>, usize)> = (0..back).map(key).collect();
    let mut budget = all.params.placements * n;
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
                    let out = in_the_way(sides, ops, table.held(row), &time, &variant, i, back)?;
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
        let wrong: BTreeSet<usize> =
            wrong.chain(succs[i].iter().filter(|e| again(e).is_some()).map(|e| e.second)).collect();
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

/// Of the operations that stand in a row, the one to make room for another: the
/// latest that runs on one of the other's units, or any where the row is full.
fn in_the_way(
    sides: &Sides<'_>,
    ops: &Ops,
    held: &[usize],
    time: &[Option<i64>],
    variant: &[InstrId],
    i: usize,
    back: usize,
) -> Option<usize> {
    let units = |v: InstrId| &sides.machine.instrs[usize::from(v.0)].units;
    let here = || held.iter().filter(|&&k| k != back);
    let shares =
        |k: &&usize| ops.ops[i].variants.iter().any(|&v| units(v).iter().any(|u| units(variant[**k]).contains(u)));
    here().filter(shares).max_by_key(|&&k| (time[k], k)).or_else(|| here().next()).copied()
}
