//! The table of II rows that all iterations share: which units and paths each
//! row has taken.
//!
//! An operation gets the free variant whose unit others want least; where none
//! is free, one that stands in the row may move to another of its units.

use super::body::From;
use super::place::{Op, Ops, Sides};
use crate::banks::{Set, meet};
use ciphermill_machine::{Instr, InstrId, UnitId};
use std::collections::BTreeMap;

/// What the rows hold.
pub struct Table<'a> {
    sides: &'a Sides<'a>,
    ii: i64,
    units: Vec<Vec<u16>>,
    paths: Vec<Vec<(UnitId, From)>>,
    /// Values read in each row, and how many times.
    reads: Vec<Vec<(From, u16)>>,
    /// Instructions in each row.
    pub count: Vec<u16>,
    /// Operations in each row.
    held: Vec<Vec<usize>>,
    /// Banks of memory that the accesses of each row may touch, by operation.
    banks: Vec<Vec<(usize, Set)>>,
    /// Are accesses kept apart that would probably meet in a bank?
    apart: bool,
    /// How many want each unit, for choosing the one least wanted.
    demand: Vec<f64>,
}

impl<'a> Table<'a> {
    pub fn new(sides: &'a Sides<'a>, ops: &Ops, ii: i64, apart: bool) -> Table<'a> {
        let n = sides.machine.units.len();
        Table {
            sides,
            ii,
            units: vec![vec![0; n]; ii as usize],
            paths: vec![Vec::new(); ii as usize],
            reads: vec![Vec::new(); ii as usize],
            count: vec![0; ii as usize],
            held: vec![Vec::new(); ii as usize],
            banks: vec![Vec::new(); ii as usize],
            apart,
            demand: demand(sides, ops),
        }
    }

    pub fn row(&self, time: i64) -> usize {
        time.rem_euclid(self.ii) as usize
    }

    /// Operations that stand in a row.
    pub fn held(&self, row: usize) -> &[usize] {
        &self.held[row]
    }

    /// The unit a variant would run on in a row, if it is free with its paths.
    pub fn free(&self, row: usize, op: &Op, v: InstrId) -> Option<Option<UnitId>> {
        let machine = self.sides.machine;
        let instr = &machine.instrs[usize::from(v.0)];
        let unit = match instr.units.as_slice() {
            [] => None,
            units => Some(*units.iter().find(|u| self.units[row][**u] < machine.units[**u].count)?),
        };
        if self.apart && self.banks[row].iter().any(|b| meet(b.1, banks(op))) {
            return None;
        }
        let most = machine.issue.register_reads;
        let crowded = |value: &From| {
            let all = self.reads[row].iter().chain(ported(instr, op).iter()).filter(|r| r.0 == *value).map(|r| r.1).sum::<u16>();
            all > most
        };
        if most > 0 && ported(instr, op).iter().any(|r| crowded(&r.0)) {
            return None;
        }
        for &(path, o) in &instr.paths {
            let value = travels(op, o);
            let on = self.paths[row].iter().filter(|p| p.0 == path);
            let (n, same) = on.fold((0, value.is_some()), |(n, same), p| (n + 1, same && Some(p.1) == value));
            if !machine.units[path].takes(n, same) {
                return None;
            }
        }
        Some(unit)
    }

    /// The free variant whose unit is least in demand.
    pub fn best(&self, row: usize, op: &Op) -> Option<(InstrId, Option<UnitId>)> {
        let fits = op.variants.iter().filter_map(|&v| Some((v, self.free(row, op, v)?)));
        let weight = |u: Option<UnitId>| u.map_or(0.0, |u| self.demand[u]);
        let crossing = |v: InstrId| self.sides.machine.instrs[usize::from(v.0)].paths.len();
        fits.min_by(|a, b| {
            let key = |x: &(InstrId, Option<UnitId>)| (crossing(x.0), weight(x.1));
            key(a).partial_cmp(&key(b)).unwrap_or(std::cmp::Ordering::Equal).then(a.0.cmp(&b.0))
        })
    }

    /// As [`Table::best`] in the row of a cycle, while the row has room.
    pub fn slot(&self, time: i64, op: &Op) -> Option<(InstrId, Option<UnitId>)> {
        let row = self.row(time);
        if self.count[row] >= self.sides.machine.issue.width { None } else { self.best(row, op) }
    }

    pub fn put(&mut self, row: usize, i: usize, op: &Op, v: InstrId, unit: Option<UnitId>) {
        if let Some(u) = unit {
            self.units[row][u] += 1;
        }
        for &(path, o) in &self.sides.machine.instrs[usize::from(v.0)].paths {
            if let Some(value) = travels(op, o) {
                self.paths[row].push((path, value));
            } else {
                self.paths[row].push((path, From::Node(i, 0)));
            }
        }
        self.reads[row].extend(ported(&self.sides.machine.instrs[usize::from(v.0)], op));
        if banks(op) != 0 {
            self.banks[row].push((i, banks(op)));
        }
        self.count[row] += 1;
        self.held[row].push(i);
    }

    pub fn take(&mut self, row: usize, i: usize, op: &Op, v: InstrId) {
        if let [u] = self.sides.machine.instrs[usize::from(v.0)].units.as_slice() {
            self.units[row][*u] -= 1;
        }
        for &(path, o) in &self.sides.machine.instrs[usize::from(v.0)].paths {
            let value = travels(op, o).unwrap_or(From::Node(i, 0));
            if let Some(k) = self.paths[row].iter().position(|p| *p == (path, value)) {
                self.paths[row].swap_remove(k);
            }
        }
        for read in ported(&self.sides.machine.instrs[usize::from(v.0)], op) {
            if let Some(k) = self.reads[row].iter().position(|r| *r == read) {
                self.reads[row].swap_remove(k);
            }
        }
        self.count[row] -= 1;
        self.held[row].retain(|&x| x != i);
        self.banks[row].retain(|x| x.0 != i);
    }
}

fn banks(op: &Op) -> Set {
    op.inst.mem.map_or(0, |m| m.banks)
}

/// The most accesses of an iteration that no two of can stand in one cycle
/// without probably meeting in a bank: those that may touch the same banks.
pub fn bank_bound(ops: &Ops) -> i64 {
    let mut counts: BTreeMap<Set, i64> = BTreeMap::new();
    for op in ops.ops.iter().filter(|op| meet(banks(op), banks(op))) {
        *counts.entry(banks(op)).or_default() += 1;
    }
    counts.into_values().max().unwrap_or(0)
}

/// The value that an operand carries over a path; none for one that is written.
fn travels(op: &Op, operand: usize) -> Option<From> {
    op.reads.iter().find(|r| r.0 == operand).map(|r| r.1)
}

/// Values that an operation reads through ports, and how many times.
fn ported(instr: &Instr, op: &Op) -> Vec<(From, u16)> {
    instr.ports.iter().filter_map(|&(o, times)| Some((travels(op, o)?, times))).collect()
}

/// For each unit, how many operations would run on it if each chose evenly.
fn demand(sides: &Sides<'_>, ops: &Ops) -> Vec<f64> {
    let mut out = vec![0.0; sides.machine.units.len()];
    for op in &ops.ops {
        let mut units: Vec<UnitId> =
            op.variants.iter().flat_map(|v| sides.machine.instrs[usize::from(v.0)].units.iter().copied()).collect();
        units.sort_unstable();
        units.dedup();
        for &u in &units {
            out[u] += 1.0 / units.len() as f64;
        }
    }
    out
}

/// Make room for operation `i` in a row by moving one that stands there to
/// another of its units.
pub fn shuffle(
    table: &mut Table<'_>,
    ops: &Ops,
    variant: &mut [InstrId],
    row: usize,
    i: usize,
) -> Option<(InstrId, Option<UnitId>)> {
    for q in table.held[row].clone() {
        let other = &ops.ops[q];
        if other.variants.len() < 2 {
            continue;
        }
        let old = variant[q];
        table.take(row, q, other, old);
        for &v in other.variants.iter().filter(|v| **v != old) {
            let Some(unit) = table.free(row, other, v) else { continue };
            table.put(row, q, other, v, unit);
            if let Some(found) = table.best(row, &ops.ops[i]) {
                variant[q] = v;
                return Some(found);
            }
            table.take(row, q, other, v);
        }
        let unit = table.free(row, other, old)?;
        table.put(row, q, other, old, unit);
    }
    None
}
