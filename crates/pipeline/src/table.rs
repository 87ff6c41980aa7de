//! The table of II rows that all iterations share: which units and paths each
//! row has taken.
//!
//! An operation gets the free variant whose unit others want least; where none
//! is free, one that stands in the row may move to another of its units.

use super::body::From;
use super::place::{Op, Ops, Sides, bit};
use ciphermill_machine::{Instr, InstrId, UnitId};
use ciphermill_vcode::banks::{Set, meet};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the rows hold.
#[derive(Clone)]
pub struct Table<'a> {
    sides: &'a Sides<'a>,
    ii: i64,
    /// Operations on each unit and on each path that carries one value, row after row.
    units: Vec<u16>,
    /// Those of which a row has no more, a bit each.
    full: Vec<u64>,
    /// Values on paths that several may share.
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
            full: vec![0; ii as usize],
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

    /// Operations that a row has slots for.
    pub fn width(&self) -> u16 {
        self.sides.machine.issue.width
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

    /// Could a variant stand in a row, as far as units and paths of its own go, if
    /// these bits of the row were `full`?
    fn may(&self, v: InstrId, full: u64) -> bool {
        self.sides.takes[usize::from(v.0)].bits & full == 0
    }

    /// Could an operation perhaps stand in a row if one of this variant left it?
    pub fn may_follow(&self, row: usize, op: &Op, left: InstrId) -> bool {
        let full = self.full[row] & !self.sides.takes[usize::from(left.0)].bits;
        op.variants.iter().any(|&v| self.may(v, full))
    }

    /// One more on a unit, or on a path that carries one value at a time.
    fn add(&mut self, row: usize, unit: UnitId) {
        let units = &self.sides.machine.units;
        let on = &mut self.units[row * units.len() + unit];
        *on += 1;
        if *on >= units[unit].count {
            self.full[row] |= bit(unit);
        }
    }

    fn remove(&mut self, row: usize, unit: UnitId) {
        let units = &self.sides.machine.units;
        let on = &mut self.units[row * units.len() + unit];
        *on -= 1;
        if *on < units[unit].count {
            self.full[row] &= !bit(unit);
        }
    }

    /// Does a path carry one value at a time, whoever reads it?
    fn single(&self, path: UnitId) -> bool {
        let unit = &self.sides.machine.units[path];
        unit.shared <= unit.count
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
        let takes = &self.sides.takes[usize::from(v.0)];
        let instr = &machine.instrs[usize::from(v.0)];
        if takes.ports && machine.issue.register_reads > 0 && !self.readable(row, op, instr) {
            return false;
        }
        if takes.alone {
            return self.may(v, self.full[row]);
        }
        for &(path, o) in &instr.paths {
            if self.single(path) {
                if self.full(row, path) {
                    return false;
                }
                continue;
            }
            let value = travels(op, o);
            let on = self.paths[row].iter().filter(|p| p.0 == path);
            let (n, same) = on.fold((0, value.is_some()), |(n, same), p| (n + 1, same && Some(p.1) == value));
            if !machine.units[path].takes(n, same) {
                return false;
            }
        }
        true
    }

    /// Are there ports left for what an operation reads?
    fn readable(&self, row: usize, op: &Op, instr: &Instr) -> bool {
        let most = self.sides.machine.issue.register_reads;
        ported(instr, op).all(|(value, _)| {
            let times: u16 = ported(instr, op).filter(|r| r.0 == value).map(|r| r.1).sum();
            let others = self.reads[row].iter().filter(|r| r.0 == value).map(|r| r.1);
            times + others.sum::<u16>() <= most
        })
    }

    /// The free variant whose unit is least in demand.
    pub fn best(&self, row: usize, op: &Op) -> Option<(InstrId, Option<UnitId>)> {
        let mut best: Option<((usize, f64, InstrId), Option<UnitId>)> = None;
        if self.meets(row, op) {
            return None;
        }
        for &v in op.variants.iter().filter(|v| self.may(**v, self.full[row])) {
            let takes = &self.sides.takes[usize::from(v.0)];
            let unit = if takes.alone { Some(takes.unit) } else { self.unit(row, v) };
            let Some(unit) = unit else { continue };
            let key = (takes.paths, unit.map_or(0.0, |u| self.demand[u]), v);
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
        let instr = &self.sides.machine.instrs[usize::from(v.0)];
        if let Some(u) = unit {
            self.add(row, u);
        }
        for &(path, o) in &instr.paths {
            if self.single(path) {
                self.add(row, path);
            } else {
                self.paths[row].push((path, travels(op, o).unwrap_or(From::Node(i, 0))));
            }
        }
        self.reads[row].extend(ported(instr, op));
        if banks(op) != 0 {
            self.banks[row].push((i, banks(op)));
        }
        self.count[row] += 1;
        self.held[row].push(i);
    }

    /// An operation stands again in a row that it was taken out of.
    pub fn put_back(&mut self, row: usize, i: usize, op: &Op, v: InstrId) {
        let unit = self.free(row, op, v).flatten();
        self.put(row, i, op, v, unit);
    }

    pub fn take(&mut self, row: usize, i: usize, op: &Op, v: InstrId) {
        let instr = &self.sides.machine.instrs[usize::from(v.0)];
        if let [u] = instr.units.as_slice() {
            self.remove(row, *u);
        }
        for &(path, o) in &instr.paths {
            if self.single(path) {
                self.remove(row, path);
                continue;
            }
            let value = travels(op, o).unwrap_or(From::Node(i, 0));
            if let Some(k) = self.paths[row].iter().position(|p| *p == (path, value)) {
                self.paths[row].swap_remove(k);
            }
        }
        for read in ported(instr, op) {
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
fn ported<'a>(instr: &'a Instr, op: &'a Op) -> impl Iterator<Item = (From, u16)> + 'a {
    // A value and that of the iteration before are in one register, and in a cycle it holds one of them.
    let register = |value| if let From::Node(node, _) = value { From::Node(node, 0) } else { value };
    instr.ports.iter().filter_map(move |&(o, times)| Some((register(travels(op, o)?), times)))
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
        // One that stands in the way of nothing, or of not all that does, only changes
        // its turn.
        let without = table.full[row] & !table.sides.takes[usize::from(old.0)].bits;
        let alone = !ops.ops[i].variants.iter().any(|&v| table.may(v, without));
        let idle = alone
            || match (&blocking, table.sides.machine.instrs[usize::from(old.0)].units.as_slice()) {
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
