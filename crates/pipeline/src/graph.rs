//! Orders between the operations of an iteration, and the bounds that follow:
//! the longest chain, the resource bound ResMII and the recurrence bound RecMII
//! on the initiation interval (Rau, MICRO 1994).

use super::body::{Body, From, Node};
use super::place::{At, Ops, Sides, settle};
use super::rounds;
use ciphermill_machine::InstrId;
use ciphermill_program::Role;
use ciphermill_vcode::CompileError;
use smallvec::SmallVec;
use std::cell::Cell;
use std::collections::BTreeMap;

/// Orders looked at for the longest way round.
const ROUNDS: i64 = 20_000_000;

/// An order between two operations of one iteration: the second issues at
/// least so many cycles after the first.
pub struct Edges {
    pub preds: Vec<SmallVec<[(usize, i64); 4]>>,
    pub succs: Vec<SmallVec<[(usize, i64); 4]>>,
}

/// The orders of an iteration, and what follows from them.
pub struct Orders {
    /// Inductions, which no order ties to one place.
    pub lazy: Vec<bool>,
    /// Those among them that only make a value for behind the loop of another's.
    pub parting: Vec<usize>,
    pub edges: Edges,
    /// The operations, each behind those before it.
    pub sorted: Vec<usize>,
    /// Longest way from the iteration's beginning to each operation.
    pub depth: Vec<i64>,
}

impl Orders {
    pub fn of(ops: &Ops) -> Orders {
        let mut lazy: Vec<bool> = (0..ops.ops.len()).map(|i| induction(ops, i)).collect();
        let parting: Vec<usize> = parting(ops, &lazy);
        parting.iter().for_each(|&i| lazy[i] = true);
        let edges = edges(ops, &lazy);
        let sorted = topological(&edges);
        let mut depth = vec![0i64; ops.ops.len()];
        for &i in &sorted {
            depth[i] = edges.preds[i].iter().map(|&(p, w)| depth[p] + w).max().unwrap_or(0).max(0);
        }
        Orders { lazy, parting, edges, sorted, depth }
    }

    /// Length of the longest chain of one iteration, in cycles.
    pub fn chain(&self, ops: &Ops) -> i64 {
        (0..ops.ops.len()).map(|i| self.depth[i] + latency(ops, i)).max().unwrap_or(1)
    }

    /// The least II that each value carried round needs by itself: from the
    /// operation that reads it to the one that makes its successor.
    pub fn rec_mii(&self, ops: &Ops) -> i64 {
        let n = ops.ops.len();
        let mut readers: BTreeMap<usize, Vec<(usize, i64)>> = BTreeMap::new();
        for (i, op) in ops.ops.iter().enumerate() {
            for &(o, from) in &op.reads {
                if let From::Node(p, 1) = from {
                    readers.entry(p).or_default().push((i, ops.crossing(i, o)));
                }
            }
        }
        let mut best = 1;
        let mut dist: Vec<Option<i64>> = vec![None; n];
        for (&p, list) in readers.iter().filter(|r| ops.initial.contains_key(r.0)) {
            if self.lazy[p] {
                // Nothing but itself leads to it.
                let own = list.iter().filter(|r| r.0 == p).map(|r| r.1).max().unwrap_or(0);
                best = best.max(own + latency(ops, p));
                continue;
            }
            dist.fill(None);
            for &(i, crossing) in list {
                dist[i] = dist[i].max(Some(crossing));
            }
            for &i in &self.sorted {
                let way = self.edges.preds[i].iter().filter_map(|&(q, w)| Some(dist[q]? + w)).max();
                dist[i] = way.max(dist[i]);
            }
            if let Some(d) = dist[p] {
                best = best.max(d + latency(ops, p));
            }
        }
        best
    }
}

/// `t[second] + distance * II >= t[first] + cycles`.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    pub other: usize,
    /// Without what a path between clusters may add.
    pub cycles: i64,
    pub distance: i64,
    /// The operand by which the second reads the first one's result.
    pub operand: Option<u8>,
}

/// The operations of a loop as neighbours in time.
#[derive(Clone, Debug)]
pub struct Neighbours {
    pub before: Vec<SmallVec<[Order; 4]>>,
    pub after: Vec<SmallVec<[Order; 4]>>,
    /// Readers of each value, and how many iterations later they read it; and the
    /// values that each operation reads.
    pub readers: Vec<SmallVec<[(usize, i64); 4]>>,
    pub reads: Vec<SmallVec<[(usize, i64); 4]>>,
}

impl Neighbours {
    pub fn of(ops: &Ops) -> Neighbours {
        let n = ops.ops.len();
        let mut all = Neighbours {
            before: vec![SmallVec::new(); n],
            after: vec![SmallVec::new(); n],
            readers: vec![SmallVec::new(); n],
            reads: vec![SmallVec::new(); n],
        };
        for (i, op) in ops.ops.iter().enumerate() {
            for &(o, from) in &op.reads {
                if let From::Node(p, d) = from {
                    let distance = i64::from(d);
                    all.order(p, i, Order { other: 0, cycles: latency(ops, p), distance, operand: Some(o as u8) });
                    if !all.reads[i].contains(&(p, distance)) {
                        all.reads[i].push((p, distance));
                        all.readers[p].push((i, distance));
                    }
                }
            }
        }
        for &(a, b, cycles, distance) in &ops.memory {
            let (cycles, distance) = (i64::from(cycles), i64::from(distance));
            all.order(a, b, Order { other: 0, cycles, distance, operand: None });
        }
        all
    }

    fn order(&mut self, first: usize, second: usize, order: Order) {
        if first != second {
            self.after[first].push(Order { other: second, ..order });
            self.before[second].push(Order { other: first, ..order });
        }
    }
}

/// Is the operation an induction: a function of its own last result and of
/// values from outside? One that is wanted behind the loop is no less: nothing
/// writes its register any more when the last iteration has.
pub fn induction(ops: &Ops, i: usize) -> bool {
    let op = &ops.ops[i];
    op.writes.is_some()
        && op.reads.iter().all(|r| matches!(r.1, From::Outside(_)) || r.1 == From::Node(i, 1))
        && ops.initial.contains_key(&i)
        && !ops.ops.iter().any(|o| o.reads.iter().any(|r| r.1 == From::Node(i, 0)))
}

/// Operations that nothing in the loop reads, which read inductions of the iteration
/// before and nothing else: copies of pointers for what comes behind the loop.
fn parting(ops: &Ops, inductions: &[bool]) -> Vec<usize> {
    let mut read = vec![false; ops.ops.len()];
    let reads = ops.ops.iter().flat_map(|o| &o.reads);
    reads.for_each(|r| {
        if let From::Node(p, _) = r.1 {
            read[p] = true
        }
    });
    let only = |r: &(usize, From)| match r.1 {
        From::Node(p, d) => d == 1 && inductions[p],
        From::Outside(_) => true,
    };
    let touches = |i: usize| ops.memory.iter().any(|m| m.0 == i || m.1 == i);
    let fits = |&i: &usize| {
        let op = &ops.ops[i];
        let free = op.writes.is_some() && !op.tied && op.inst.mem.is_none();
        free && !read[i] && !ops.initial.contains_key(&i) && op.reads.iter().all(only) && !touches(i)
    };
    (0..ops.ops.len()).filter(fits).collect()
}

/// The orders within one iteration: results before their readers, readers
/// before what overwrites their values, accesses to memory.
fn edges(ops: &Ops, lazy: &[bool]) -> Edges {
    let n = ops.ops.len();
    let mut e = Edges { preds: vec![SmallVec::new(); n], succs: vec![SmallVec::new(); n] };
    let mut add = |a: usize, b: usize, w: i64| {
        e.succs[a].push((b, w));
        e.preds[b].push((a, w));
    };
    for (i, op) in ops.ops.iter().enumerate() {
        for &(o, from) in &op.reads {
            match from {
                From::Node(p, 0) => add(p, i, latency(ops, p) + ops.crossing(i, o)),
                // Read before this iteration's result lands in its place.
                From::Node(p, _) if p != i && !lazy[p] => add(i, p, 1 - kept(ops, p)),
                _ => {}
            }
        }
    }
    for &(a, b, cycles, distance) in &ops.memory {
        if distance == 0 {
            add(a, b, i64::from(cycles));
        }
    }
    e
}

/// Cycles until an operation's result can be read.
pub fn latency(ops: &Ops, i: usize) -> i64 {
    ops.ops[i].writes.map_or(1, |w| i64::from(w.1))
}

/// Cycles for which the register of an operation's result still holds what was
/// in it: until the result lands on an exposed pipeline, for the cycle of issue
/// where the hardware keeps track.
pub fn kept(ops: &Ops, i: usize) -> i64 {
    if ops.interlock { 1 } else { latency(ops, i) }
}

fn topological(e: &Edges) -> Vec<usize> {
    let n = e.preds.len();
    let mut left: Vec<usize> = e.preds.iter().map(SmallVec::len).collect();
    let mut ready: Vec<usize> = (0..n).filter(|&i| left[i] == 0).collect();
    let mut out = Vec::with_capacity(n);
    while let Some(i) = ready.pop() {
        out.push(i);
        for &(s, _) in &e.succs[i] {
            left[s] -= 1;
            if left[s] == 0 {
                ready.push(s);
            }
        }
    }
    out
}

/// The least II that units allow with the sides as they are: for every set of
/// units that some operations cannot leave, their number.
pub fn res_mii(sides: &Sides<'_>, ops: &Ops) -> i64 {
    resource_bound(sides, ops.ops.iter().map(|op| op.variants.as_slice()))
}

/// The bounds that hold whatever runs where: ResMII of the loop's own
/// operations on the units of all sides, and RecMII without copies between
/// sides, by values and by the order of accesses to memory.
pub fn lower(sides: &Sides<'_>, body: &Body) -> Result<(i64, i64), CompileError> {
    let ops = one_side(sides, body)?;
    let single = Orders::of(&ops);
    let values = single.rec_mii(&ops);
    let work = Cell::new(ROUNDS);
    let round = rounds::Orders::new(&ops).least(values, values.max(2 * single.chain(&ops) + 2), &work);
    // Without an answer in that time: what values say.
    let rec_mii = round.filter(|_| work.get() > 0).unwrap_or(values);
    Ok((resources(sides, &ops), rec_mii))
}

/// What an interval may come down to, whatever runs where, if no value has to stay in its register
/// for longer than that: ResMII, and the circuits that dependences alone make.
pub fn least(sides: &Sides<'_>, body: &Body) -> Result<i64, CompileError> {
    let ops = one_side(sides, body)?;
    let res_mii = resources(sides, &ops);
    let work = Cell::new(ROUNDS);
    let last = res_mii.max(2 * Orders::of(&ops).chain(&ops) + 2);
    Ok(rounds::Orders::new(&ops).least(res_mii, last, &work).unwrap_or(last))
}

/// A body with all of it on one side.
pub fn one_side(sides: &Sides<'_>, body: &Body) -> Result<Ops, CompileError> {
    settle(body, sides, &vec![At { unit: 0, result: 0 }; body.nodes.len()])
}

/// ResMII of all operations of a form, those that move values about as well, whatever unit of whatever side they run on; what
/// has a certain register as an operand runs on that one's side.
pub fn of_form(sides: &Sides<'_>, body: &Body) -> i64 {
    let variants = |node: &Node| -> Vec<InstrId> {
        let side = sides.certain(&node.inst);
        let all = sides.machine.variants[usize::from(node.inst.instr.0)].iter().copied();
        all.filter(|v| side.is_none_or(|side| sides.of_variant(*v) == side)).collect()
    };
    let all: Vec<Vec<InstrId>> = body.nodes.iter().map(variants).collect();
    resource_bound(sides, all.iter().map(Vec::as_slice))
}

/// ResMII of the loop's own operations, whatever unit of whatever side they run on.
pub fn resources(sides: &Sides<'_>, ops: &Ops) -> i64 {
    let own = ops.ops.iter().filter(|op| op.inst.role != Role::Overhead);
    let anywhere = own.map(|op| sides.machine.variants[usize::from(op.inst.instr.0)].as_slice());
    resource_bound(sides, anywhere)
}

fn resource_bound<'a>(sides: &Sides<'_>, variants: impl Iterator<Item = &'a [InstrId]>) -> i64 {
    let mut most = 1;
    let issue = bound_to(sides, variants, |work, units| most = most.max(work.div_ceil(units)));
    most.max(issue.div_ceil(u64::from(sides.machine.issue.width.max(1)))) as i64
}

/// Operations for which the units that they cannot leave have no cycle at an II.
pub fn without_units<'a>(sides: &Sides<'_>, variants: impl Iterator<Item = &'a [InstrId]>, ii: i64) -> u64 {
    let mut most = 0;
    bound_to(sides, variants, |work, units| most = most.max(work.saturating_sub(units * ii as u64)));
    most
}

/// The units that some of these run on, a bit for each.
pub fn units_of(sides: &Sides<'_>, variants: &[InstrId]) -> u64 {
    variants.iter().fold(0, |m, v| m | sides.units[usize::from(v.0)])
}

/// For every set of units, the operations that cannot leave them and the number of the
/// units; and the number of all operations.
fn bound_to<'a>(
    sides: &Sides<'_>,
    variants: impl Iterator<Item = &'a [InstrId]>,
    mut each: impl FnMut(u64, u64),
) -> u64 {
    // `(units, operations that cannot leave them)`; there are few different sets.
    let mut counts: Vec<(u64, u64)> = Vec::new();
    for set in variants.map(|list| units_of(sides, list)).filter(|m| *m != 0) {
        match counts.iter_mut().find(|c| c.0 == set) {
            Some(c) => c.1 += 1,
            None => counts.push((set, 1)),
        }
    }
    counts.sort_unstable();
    let sets: Vec<u64> = counts.iter().map(|c| c.0).collect();
    for set in unions(sets) {
        each(counts.iter().filter(|m| m.0 & !set == 0).map(|m| m.1).sum::<u64>(), capacity(sides, set).max(1));
    }
    counts.iter().map(|c| c.1).sum()
}

/// All unions of some sets of units, a bit for each; of very many sets, these alone.
pub fn unions(sets: Vec<u64>) -> Vec<u64> {
    let mut unions = sets.clone();
    if sets.len() <= 14 {
        for s in sets {
            let more: Vec<u64> = unions.iter().map(|u| u | s).collect();
            unions.extend(more);
            unions.sort_unstable();
            unions.dedup();
        }
    }
    unions
}

/// The number of units in a set.
pub fn capacity(sides: &Sides<'_>, set: u64) -> u64 {
    let inside = |u: usize| set >> u.min(63) & 1 == 1;
    sides.machine.units.iter().enumerate().filter(|(u, _)| inside(*u)).map(|(_, x)| u64::from(x.count)).sum()
}
