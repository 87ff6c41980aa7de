//! A loop as plain data for bounds of its initiation interval ([`ciphermill_bounds`]).
//!
//! There are two of each. In the *plain* one all stands on one side, so that no division between the
//! clusters is in it: what the loop needs whatever runs where. A way to run an operation that takes all that another takes, and more, is
//! left out, and with it whatever goes over a path where it need not. Copies and other operations that
//! the loop itself does not ask for take nothing. The *divided* one is what was scheduled: the operations
//! of the form that was chosen, on their clusters, with copies and accesses to the frame.

use super::body::{Body, From};
use super::exact::before_end;
use super::graph::{kept, one_side};
use super::place::{Op, Ops, Sides};
use super::rounds::Orders;
use ciphermill_bounds::model::{Edge, File, Kind, Loop, Operation, Resource, Use, Value, Why};
use ciphermill_machine::{InstrId, Machine};
use ciphermill_program::{CircuitStep, Role};
use ciphermill_vcode::{CompileError, VReg};
use std::collections::BTreeSet;

/// The loop, whatever runs where; `ring` says how many registers rotate, where values of the loop are
/// in these.
///
/// # Errors
/// When some operation has no variant.
pub fn plain(sides: &Sides<'_>, body: &Body, ring: Option<usize>) -> Result<Loop, CompileError> {
    let ops = one_side(sides, body)?;
    let machine = sides.machine;
    let asked = |op: &Op| match op.inst.role {
        Role::Overhead => Vec::new(),
        _ => ways(machine, &machine.variants[usize::from(op.inst.instr.0)]),
    };
    let count = sides.pool.iter().map(|p| p.len() as u32).sum();
    let all = File { name: String::new(), count, outside: outside(&ops, |_| true) };
    Ok(with(sides, &ops, asked, |_| 0, vec![rotating(all, ring)]))
}

/// The loop with its operations as they are divided between the clusters, copies and all.
pub fn divided(sides: &Sides<'_>, ops: &Ops, ring: Option<usize>) -> Loop {
    let file = |side: usize| File {
        name: sides.machine.files[sides.files[side]].name.clone(),
        count: sides.pool[side].len() as u32,
        outside: outside(ops, |op| op.at.unit == side),
    };
    let files = (0..sides.files.len()).map(|side| rotating(file(side), ring)).collect();
    with(sides, ops, |op| ways(sides.machine, &op.variants), |op| op.at.result, files)
}

fn with(
    sides: &Sides<'_>,
    ops: &Ops,
    ways: impl Fn(&Op) -> Vec<Vec<Use>>,
    file: impl Fn(&Op) -> usize,
    files: Vec<File>,
) -> Loop {
    let machine = sides.machine;
    let name = |op: &Op| machine.instrs[usize::from(op.inst.instr.0)].name.clone();
    let mut l = Loop {
        operations: ops.ops.iter().map(|op| Operation { name: name(op), ways: ways(op) }).collect(),
        resources: resources(machine),
        edges: edges(ops),
        values: values(ops, file),
        // Where a copy takes so long that a value is in no register meanwhile, none are counted.
        files: if copies_hold(sides, ops) { files } else { Vec::new() },
    };
    begin(&mut l, ops, machine);
    l
}

/// Units, paths that carry one value at a time, and the issue slots behind them.
fn resources(machine: &Machine) -> Vec<Resource> {
    let crossed: BTreeSet<usize> = machine.instrs.iter().flat_map(|i| i.paths.iter().map(|p| p.0)).collect();
    let unit = |(u, unit): (usize, &ciphermill_machine::Unit)| Resource {
        name: unit.name.clone(),
        count: u32::from(unit.count.max(unit.shared)),
        kind: if crossed.contains(&u) { Kind::Path } else { Kind::Unit },
    };
    let issue = Resource { name: "issue".into(), count: u32::from(machine.issue.width.max(1)), kind: Kind::Issue };
    machine.units.iter().enumerate().map(unit).chain([issue]).collect()
}

/// What each way to run an instruction takes; of two ways one of which takes all that the other does,
/// only the other.
fn ways(machine: &Machine, variants: &[InstrId]) -> Vec<Vec<Use>> {
    let mut all: Vec<Vec<Use>> = Vec::new();
    let take = |resource: usize| Use { resource, cycles: 1 };
    for v in variants {
        let v = &machine.instrs[usize::from(v.0)];
        let rest: Vec<Use> = v.paths.iter().map(|p| take(p.0)).chain([take(machine.units.len())]).collect();
        let units: Vec<Option<usize>> = v.units.iter().copied().map(Some).collect();
        for unit in if units.is_empty() { vec![None] } else { units } {
            let mut way: Vec<Use> = unit.map(take).into_iter().chain(rest.iter().copied()).collect();
            way.sort_unstable();
            way.dedup();
            all.push(way);
        }
    }
    all.sort_by_key(Vec::len);
    let mut least: Vec<Vec<Use>> = Vec::new();
    for way in all {
        if !least.iter().any(|less| less.iter().all(|u| way.contains(u))) {
            least.push(way);
        }
    }
    least
}

fn edges(ops: &Ops) -> Vec<Edge> {
    let memory: BTreeSet<(usize, usize, i64, i64)> =
        ops.memory.iter().map(|&(a, b, cycles, d)| (a, b, i64::from(cycles), i64::from(d))).collect();
    let edge = |e: super::rounds::Edge| {
        let orders = memory.contains(&(e.first, e.second, e.cycles, e.distance));
        let why = if orders { Why::Memory } else { Why::Value };
        Edge { from: e.first, to: e.second, latency: e.cycles, distance: e.distance, why }
    };
    Orders::new(ops).edges.into_iter().map(edge).collect()
}

fn values(ops: &Ops, file: impl Fn(&Op) -> usize) -> Vec<Value> {
    let mut readers: Vec<Vec<(usize, i64)>> = vec![Vec::new(); ops.ops.len()];
    for (i, op) in ops.ops.iter().enumerate() {
        for &(_, from) in &op.reads {
            if let From::Node(p, d) = from {
                readers[p].push((i, i64::from(d)));
            }
        }
    }
    let value = |(i, readers): (usize, Vec<(usize, i64)>)| {
        let op = &ops.ops[i];
        op.writes.is_some().then(|| Value { operation: i, file: file(op), lands: kept(ops, i), readers })
    };
    readers.into_iter().enumerate().filter_map(value).collect()
}

/// The beginning of an iteration, as an operation: the others come behind it, and the branch so many
/// cycles before that of the next.
fn begin(l: &mut Loop, ops: &Ops, machine: &Machine) {
    let start = l.operations.len();
    let Some(branch) = ops.ops.last() else { return };
    let mut waits = vec![false; start];
    l.edges.iter().filter(|e| e.distance == 0).for_each(|e| waits[e.to] = true);
    l.operations.push(Operation { name: "start".into(), ways: Vec::new() });
    let order = |from, to, latency, distance| Edge { from, to, latency, distance, why: Why::Branch };
    l.edges.extend((0..start).filter(|&i| !waits[i]).map(|i| order(start, i, 0, 0)));
    l.edges.push(order(start - 1, start, before_end(machine, branch.inst.instr), 1));
}

/// Is a value in a register in every cycle while it is copied?
fn copies_hold(sides: &Sides<'_>, ops: &Ops) -> bool {
    ops.interlock || sides.machine.instrs[usize::from(sides.machine.abi.ops.mov.0)].latency <= 1
}

/// Values from outside that some operations read, each of which has a register all the time.
fn outside(ops: &Ops, reads: impl Fn(&Op) -> bool) -> u32 {
    let outside = |r: &(usize, From)| if let From::Outside(v) = r.1 { Some(v) } else { None };
    let held: BTreeSet<VReg> =
        ops.ops.iter().filter(|op| reads(op)).flat_map(|op| &op.reads).filter_map(outside).collect();
    held.len() as u32
}

/// A file, or the ring of rotating registers in its place, which values from outside are not in.
fn rotating(file: File, ring: Option<usize>) -> File {
    ring.map_or(file.clone(), |ring| File { count: ring as u32, outside: 0, ..file })
}

/// The operations of a circuit of edges.
///
/// # Errors
/// When some operation has no variant.
pub fn steps(sides: &Sides<'_>, body: &Body, l: &Loop, circuit: &[usize]) -> Result<Vec<CircuitStep>, CompileError> {
    let ops = one_side(sides, body)?;
    let step = |e: &Edge| {
        let inst = &ops.ops.get(e.from)?.inst;
        let (cycles, distance) = (e.latency as u32, e.distance as u32);
        Some(CircuitStep { instr: inst.instr, loc: inst.loc, cycles, distance, memory: e.why == Why::Memory })
    };
    Ok(circuit.iter().filter_map(|&k| step(l.edges.get(k)?)).collect())
}
