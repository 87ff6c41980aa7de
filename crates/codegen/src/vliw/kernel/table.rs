//! The table of II rows that all iterations share: which units and paths each
//! row has taken.
//!
//! An operation gets the free variant whose unit others want least; where none
//! is free, one that stands in the row may move to another of its units.

use super::body::From;
use super::place::{Op, Ops, Sides};
use crate::banks::{Set, meet};
use ciphermill_machine::{Instr, InstrId, UnitId};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the rows hold.
pub struct Table<'a> {
    sides: &'a Sides<'a>,
    ii: i64,
    /// Operations on each unit, row after row.
    units: Vec<u16>,
    paths: Vec<SmallVec<[(UnitId, From); 4]>>,
    /// Values read in each row, and how many times.
    reads: Vec<SmallVec<[(From, u16); 4]>>,
    /// Instructions in each row.
    pub count: Vec<u16>,
    /// Operations in each row.
    held: Vec<SmallVec<[usize; 8]>>,
    /// Banks of memory that the accesses of each row may touch, by operation.
    banks: Vec<SmallVec<[(usize, Set); 2]>>,
    /// Are accesses kept apart that would probably meet in a bank?
    apart: bool,
    /// How many want each unit, for choosing the one least wanted.
    demand: Arc<[f64]>,
}

impl<'a> Table<'a> {
    pub fn new(sides: &'a Sides<'a>, ops: &Ops, ii: i64, apart: bool) -> Table<'a> {
        Table::wanted(sides, demand(sides, ops), ii, apart)
    }

    /// An empty table for operations whose [`demand`] is known.
    pub fn wanted(sides: &'a Sides<'a>, demand: Arc<[f64]>, ii: i64, apart: bool) -> Table<'a> {
        let n = sides.machine.units.len();
        Table {
            sides,
            ii,
            units: vec![0; n * ii as usize],
            paths: vec![SmallVec::new(); ii as usize],
            reads: vec![SmallVec::new(); ii as usize],
            count: vec![0; ii as usize],
            held: vec![SmallVec::new(); ii as usize],
            banks: vec![SmallVec::new(); ii as usize],
            apart,
            demand,
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
        let unit = self.unit(row, v)?;
        if self.meets(row, op) { None } else { self.open(row, op, v).then_some(unit) }
    }

    /// The free unit that a variant would run on in a row, where it wants one.
    fn unit(&self, row: usize, v: InstrId) -> Option<Option<UnitId>> {
        match self.sides.machine.instrs[usize::from(v.0)].units.as_slice() {
            [] => Some(None),
            units => units.iter().find(|u| !self.full(row, **u)).map(|u| Some(*u)),
        }
    }

    fn full(&self, row: usize, unit: UnitId) -> bool {
        let units = &self.sides.machine.units;
        self.units[row * units.len() + unit] >= units[unit].count
    }

    /// Would an access probably meet one of the row's in a bank?
    fn meets(&self, row: usize, op: &Op) -> bool {
        self.apart && self.banks[row].iter().any(|b| meet(b.1, banks(op)))
    }

    /// Are the paths and ports of a variant free in a row?
    fn open(&self, row: usize, op: &Op, v: InstrId) -> bool {
        let machine = self.sides.machine;
        let instr = &machine.instrs[usize::from(v.0)];
        let most = machine.issue.register_reads;
        if most > 0 {
            let own = ported(instr, op);
            let times = |value: From| own.iter().chain(&self.reads[row]).filter(|r| r.0 == value).map(|r| r.1).sum::<u16>();
            if own.iter().any(|r| times(r.0) > most) {
                return false;
            }
        }
        for &(path, o) in &instr.paths {
            let value = travels(op, o);
            let on = self.paths[row].iter().filter(|p| p.0 == path);
            let (n, same) = on.fold((0, value.is_some()), |(n, same), p| (n + 1, same && Some(p.1) == value));
            if !machine.units[path].takes(n, same) {
                return false;
            }
        }
        true
    }

    /// The free variant whose unit is least in demand.
    pub fn best(&self, row: usize, op: &Op) -> Option<(InstrId, Option<UnitId>)> {
        let mut best: Option<((usize, f64, InstrId), Option<UnitId>)> = None;
        if self.meets(row, op) {
            return None;
        }
        for &v in &op.variants {
            let Some(unit) = self.unit(row, v) else { continue };
            let crossing = self.sides.machine.instrs[usize::from(v.0)].paths.len();
            let key = (crossing, unit.map_or(0.0, |u| self.demand[u]), v);
            // Paths are looked at last: that takes longest.
            if best.is_none_or(|b| key < b.0) && self.open(row, op, v) {
                best = Some((key, unit));
            }
        }
        best.map(|b| (b.0.2, b.1))
    }

    /// Can no operation in a row give way to another by moving to another
    /// unit? Otherwise: the units that one of which must be given up, or none
    /// where something else is in the way.
    fn blocking(&self, row: usize, op: &Op) -> Blocking {
        if self.meets(row, op) {
            return Blocking::All;
        }
        let mut wanted: SmallVec<[UnitId; 8]> = SmallVec::new();
        for &v in &op.variants {
            let units = &self.sides.machine.instrs[usize::from(v.0)].units;
            if units.is_empty() || units.iter().any(|u| !self.full(row, *u)) {
                return Blocking::Other;
            }
            wanted.extend(units.iter().copied());
        }
        Blocking::Units(wanted)
    }

    /// As [`Table::best`] in the row of a cycle, while the row has room.
    pub fn slot(&self, time: i64, op: &Op) -> Option<(InstrId, Option<UnitId>)> {
        let row = self.row(time);
        if self.count[row] >= self.sides.machine.issue.width { None } else { self.best(row, op) }
    }

    pub fn put(&mut self, row: usize, i: usize, op: &Op, v: InstrId, unit: Option<UnitId>) {
        if let Some(u) = unit {
            self.units[row * self.sides.machine.units.len() + u] += 1;
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
            self.units[row * self.sides.machine.units.len() + *u] -= 1;
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
        self.held[row].retain(|x| *x != i);
        self.banks[row].retain(|x| x.0 != i);
    }
}

/// What keeps an operation out of a row.
enum Blocking {
    /// An access to memory, whose bank stays the same on any unit.
    All,
    /// All its units are taken.
    Units(SmallVec<[UnitId; 8]>),
    /// Paths or ports.
    Other,
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
fn ported(instr: &Instr, op: &Op) -> SmallVec<[(From, u16); 4]> {
    instr.ports.iter().filter_map(|&(o, times)| Some((travels(op, o)?, times))).collect()
}

/// For each unit, how many operations would run on it if each chose evenly.
pub fn demand(sides: &Sides<'_>, ops: &Ops) -> Arc<[f64]> {
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
    out.into()
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
    let blocking = table.blocking(row, &ops.ops[i]);
    for q in table.held[row].clone() {
        let other = &ops.ops[q];
        if other.variants.len() < 2 {
            continue;
        }
        let old = variant[q];
        // One that stands in the way of nothing only changes its turn.
        let idle = match (&blocking, table.sides.machine.instrs[usize::from(old.0)].units.as_slice()) {
            (Blocking::All, [] | [_]) | (Blocking::Units(_), []) => true,
            (Blocking::Units(wanted), [unit]) => !wanted.contains(unit),
            _ => false,
        };
        if idle {
            table.held[row].retain(|x| *x != q);
            table.held[row].push(q);
            continue;
        }
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
