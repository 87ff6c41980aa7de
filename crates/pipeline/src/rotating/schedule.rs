//! Iterative modulo scheduling, backwards (Rau, MICRO 1994).
//!
//! Operations are placed from the end of an iteration to its beginning, the one
//! with the longest way from the beginning (or the last in the program) first, each in the latest of the II
//! cycles before those that follow it that has a unit free. So values are made as
//! late as their readers allow. Where no cycle is free, an operation takes its
//! place all the same: what stands in its way, and what would come too late for
//! it, is taken out and placed again. A budget of placements ends attempts that
//! lead nowhere.
//!
//! The branch stands at the end of the first stage: it says whether another
//! iteration begins, and turns the registers' names.

use super::super::modulo::{Schedule, mix};
use super::super::place::{Ops, Sides};
use super::super::rounds::{Edge, Orders};
use super::super::table::Table;
use ciphermill_machine::InstrId;
use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Placements for each operation before an attempt is given up.
const BUDGET: usize = 4;

/// Which operation is placed first.
#[derive(Clone, Copy, Debug)]
pub enum Order {
    /// The one with the longest way from the beginning: for loops that wait for
    /// chains of dependences.
    Depth,
    /// The last in the program, whose order keeps few values alive: for loops that
    /// fill their slots.
    Program,
    /// Something between the two.
    Both,
}

impl Order {
    pub const ALL: [Order; 3] = [Order::Depth, Order::Both, Order::Program];
}

/// How an attempt is made.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    pub order: Order,
    /// Not 0: ways are taken to be a little longer, each number in a way of its own.
    pub seed: u64,
}

impl Policy {
    /// How urgent an operation is, of `n`, of which the deepest is at `most`.
    fn urgency(self, i: usize, depth: i64, n: usize, most: i64) -> i64 {
        let noise = if self.seed == 0 { 0 } else { (mix(self.seed, i as u64) % 3) as i64 };
        let place = i as i64 * most.max(1) / n.max(1) as i64;
        match self.order {
            Order::Depth => 2 * (depth + noise),
            Order::Program => 2 * n as i64 + i as i64 + noise * (1 + n as i64 / 64),
            Order::Both => depth + place + noise,
        }
    }
}

/// A schedule of an interval, with so many stages. What is left of `work`, in cycles
/// that are looked at, grows less; with none left nothing is found.
#[expect(clippy::too_many_arguments, reason = "the problem, and how it is to be solved")]
pub fn schedule(
    sides: &Sides<'_>,
    ops: &Ops,
    orders: &Orders,
    depth: &[i64],
    ii: i64,
    stages: i64,
    policy: Policy,
    work: &Cell<i64>,
) -> Option<Schedule> {
    let n = ops.ops.len();
    let Orders { edges, preds, succs } = orders;
    let deepest = depth.iter().copied().max().unwrap_or(0);
    let key = |i: usize| (Reverse(policy.urgency(i, depth[i], n, deepest)), i);
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
        let looked = found.map_or(ii, |f| latest - f.0) as usize + 1 + preds[i].len() + succs[i].len();
        work.set(work.get() - looked as i64);
        if work.get() <= 0 {
            return None;
        }
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
