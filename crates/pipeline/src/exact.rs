//! A loop written out for an exact scheduler, and its answer taken back.
//!
//! Two problems are made of one loop. In the *divided* one the work is shared
//! between the clusters as the heuristic left it, copies included, so that an
//! answer is a schedule. In the *free* one each node may run on any cluster and
//! each value may be copied once to any other: what has no schedule there has
//! none at all, of at most so many stages and with each operation run once; and
//! a schedule there is at least a better division to start from.
//!
//! Both leave out what the solver's form cannot say (a predicate must stand in
//! certain registers, two readers of one register may share a path, a register
//! is read so many times in a cycle, arcs on a circle may need more colours
//! than overlap). Leaving out only makes schedules possible, so proofs stand;
//! a schedule that comes back is checked against everything, and coloured,
//! before it is used.

use super::body::{Body, From};
use super::graph::latency;
use super::modulo::Schedule;
use super::place::{At, Ops, Sides, settle};
use super::recorded::holding;
use super::{Kernel, color};
use ciphermill_machine::{InstrId, Machine, OperandKind};
use ciphermill_program::exact::{self, Alternative, Answer, Edge, LoopProblem, Node, Problem, Source};
use ciphermill_vcode::CompileError;
use ciphermill_vcode::Registers;
use ciphermill_vcode::VReg;
use std::collections::BTreeMap;

/// What goes to a solver and what came back, loop by loop in the order in
/// which they are pipelined.
#[derive(Debug, Default)]
pub struct Exchange {
    pub answers: Vec<Answer>,
    pub problems: Vec<LoopProblem>,
}

impl Exchange {
    /// Write a loop out; what an answer says of it goes into the kernel.
    ///
    /// # Errors
    /// When an answer belongs to another loop.
    pub fn improve(
        &mut self,
        mut kernel: Kernel,
        body: &Body,
        sides: &Sides<'_>,
        registers: &Registers,
    ) -> Result<Kernel, CompileError> {
        let answer = self.answers.get(self.problems.len()).cloned().unwrap_or_default();
        let stages = super::stages(kernel.schedule.stages - 1);
        let free = (sides.files.len() > 1).then(|| free(body, sides, stages));
        let ops = match (&answer.division, &free) {
            (Some(division), Some((_, ways))) => settle(body, sides, &sides_of(body, sides, ways, division)?)?,
            _ => kernel.ops.clone(),
        };
        let (divided, ways) = divided(&ops, sides, stages);
        let found = kernel.schedule.ii;
        kernel.least = kernel.least.max(i64::from(answer.least));
        if let Some(answer) = &answer.schedule
            && let Some(schedule) = taken(&ops, sides, &ways, answer, stages)?
            && let Ok(registers) = color::color(sides, &ops, &schedule, &registers.allocatable)
        {
            kernel = Kernel { ops, schedule, registers, ..kernel };
        }
        let machine = sides.machine;
        let delay = i64::from(machine.instrs[usize::from(kernel.skip.0)].delay_slots);
        let first = kernel.res_mii.max(kernel.rec_mii).max(kernel.least).max(delay + 2);
        let free = free.map(|f| f.0);
        kernel.asked = answer.asked;
        self.problems.push(LoopProblem { func: 0, runs: true, ii: found as u32, first: first as u32, divided, free });
        Ok(kernel)
    }
}

/// The alternatives of a node with the variants they stand for, and the side of
/// its result.
type Ways = Vec<(InstrId, Option<usize>)>;

/// Sides on which an operand's register may stand for a variant.
fn operand_sides(sides: &Sides<'_>, v: InstrId, o: usize) -> Vec<usize> {
    let instr = &sides.machine.instrs[usize::from(v.0)];
    match (instr.only.iter().find(|p| p.0 == o), &instr.operands[o].kind) {
        (Some((_, regs)), _) => {
            (0..sides.pool.len()).filter(|&s| regs.iter().any(|r| sides.pool[s].contains(r))).collect()
        }
        (None, OperandKind::Reg { file, .. }) => sides.of_file(*file).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// Every way to run an operation, the same two only once. A value from outside
/// is read on the unit's own side.
fn ways(
    sides: &Sides<'_>,
    variants: &[InstrId],
    reads: &[(usize, From)],
    writes: Option<usize>,
    allowed: impl Fn(InstrId, &[usize], Option<usize>) -> bool,
) -> (Vec<Alternative>, Ways) {
    let machine = sides.machine;
    let file = |s: usize| machine.files[sides.files[s]].name.clone();
    let (mut alternatives, mut ways) = (Vec::new(), Ways::new());
    for &v in variants {
        let instr = &machine.instrs[usize::from(v.0)];
        let mut choices: Vec<Vec<usize>> = vec![Vec::new()];
        for &(o, from) in reads {
            let own = |s: &usize| !matches!(from, From::Outside(_)) || *s == sides.of_variant(v);
            let may: Vec<usize> = operand_sides(sides, v, o).into_iter().filter(own).collect();
            choices = choices.iter().flat_map(|c| may.iter().map(|&s| [c.as_slice(), &[s]].concat())).collect();
        }
        let results: Vec<Option<usize>> =
            writes.map_or(vec![None], |o| operand_sides(sides, v, o).into_iter().map(Some).collect());
        let units: Vec<Option<usize>> =
            if instr.units.is_empty() { vec![None] } else { instr.units.iter().copied().map(Some).collect() };
        let mut product = Vec::new();
        for choice in &choices {
            for &result in &results {
                product.extend(units.iter().map(|unit| (choice, result, unit)));
            }
        }
        for (choice, result, unit) in product {
            if !allowed(v, choice, result) {
                continue;
            }
            let used = unit.iter().copied().chain(instr.paths.iter().map(|p| p.0));
            let uses = std::iter::once(ISSUE.to_owned()).chain(used.map(|u| machine.units[u].name.clone()));
            let reads = choice.iter().map(|&s| file(s)).collect();
            let one = Alternative { uses: uses.collect(), result: result.map(file), reads };
            if !alternatives.contains(&one) {
                alternatives.push(one);
                ways.push((v, result));
            }
        }
    }
    (alternatives, ways)
}

/// The name under which the issue width is a resource.
const ISSUE: &str = "issue";

/// A problem without nodes, whose iterations have so many stages at the most.
fn empty(sides: &Sides<'_>, stages: i64) -> Problem {
    let machine = sides.machine;
    let mut resources: BTreeMap<String, u32> =
        machine.units.iter().map(|u| (u.name.clone(), u32::from(u.count.max(u.shared)))).collect();
    resources.insert(ISSUE.to_owned(), u32::from(machine.issue.width));
    let files = sides.files.iter().zip(&sides.pool);
    let files = files.map(|(&f, pool)| (machine.files[f].name.clone(), pool.len() as u32)).collect();
    Problem { stages, resources, files, outside: 0, nodes: Vec::new(), edges: Vec::new() }
}

/// Numbers for values from outside, in the order in which they are met.
#[derive(Default)]
struct Outside(BTreeMap<VReg, usize>);

impl Outside {
    fn source(&mut self, v: VReg) -> Source {
        let next = self.0.len();
        Source::Outside { outside: *self.0.entry(v).or_insert(next) }
    }
}

fn edges(memory: &[(usize, usize, u32, u32)]) -> Vec<Edge> {
    memory.iter().map(|&(from, to, cycles, distance)| Edge { from, to, latency: i64::from(cycles), distance }).collect()
}

/// Cycles before the end of the first stage at which the last node, the branch
/// back, issues.
pub fn before_end(machine: &Machine, branch: InstrId) -> i64 {
    i64::from(machine.instrs[usize::from(branch.0)].delay_slots) + 1
}

/// The loop with its work divided as it is.
fn divided(ops: &Ops, sides: &Sides<'_>, stages: i64) -> (Problem, Vec<Ways>) {
    let mut problem = empty(sides, stages);
    let (mut all, mut outside) = (Vec::new(), Outside::default());
    for (i, op) in ops.ops.iter().enumerate() {
        let stands = |_: InstrId, choice: &[usize], result: Option<usize>| {
            let reads = op.reads.iter().zip(choice).all(|(r, s)| ops.side(r.1, op.at.unit) == *s);
            reads && result.is_none_or(|s| s == op.at.result)
        };
        let (alternatives, way) = ways(sides, &op.variants, &op.reads, op.writes.map(|w| w.0), stands);
        all.push(way);
        let mut source = |from: From| match from {
            From::Node(node, distance) => Source::Node { node, distance },
            From::Outside(v) => outside.source(v),
        };
        let operands = op.reads.iter().map(|r| vec![source(r.1)]).collect();
        let last = i + 1 == ops.ops.len();
        let before_end = last.then(|| before_end(sides.machine, op.inst.instr));
        problem.nodes.push(Node { optional: false, latency: latency(ops, i), before_end, operands, alternatives });
    }
    problem.outside = outside.0.len();
    problem.edges = edges(&ops.memory);
    (problem, all)
}

/// The loop with nothing said of where its work is done. Behind the nodes of
/// the body stand the copies of their values.
fn free(body: &Body, sides: &Sides<'_>, stages: i64) -> (Problem, Vec<Ways>) {
    let machine = sides.machine;
    let mut problem = empty(sides, stages);
    let (mut all, mut outside) = (Vec::new(), Outside::default());
    let values: Vec<usize> = (0..body.nodes.len()).filter(|&i| body.nodes[i].writes.is_some()).collect();
    let copy = |p: usize| values.binary_search(&p).map(|k| body.nodes.len() + k);
    for (i, node) in body.nodes.iter().enumerate() {
        let variants = &machine.variants[usize::from(node.inst.instr.0)];
        let (alternatives, way) = ways(sides, variants, &node.reads, node.writes.map(|w| w.0), |_, _, _| true);
        all.push(way);
        let mut sources = |from: From| match from {
            From::Node(p, distance) => {
                let both = std::iter::once(p).chain(copy(p));
                both.map(|node| Source::Node { node, distance }).collect()
            }
            From::Outside(v) => vec![outside.source(v)],
        };
        let operands = node.reads.iter().map(|r| sources(r.1)).collect();
        let last = i + 1 == body.nodes.len();
        let before_end = last.then(|| before_end(machine, node.inst.instr));
        let latency = node.writes.map_or(1, |w| i64::from(w.1));
        problem.nodes.push(Node { optional: false, latency, before_end, operands, alternatives });
    }
    let mov = machine.abi.ops.mov;
    let instr = &machine.instrs[usize::from(mov.0)];
    let is_def = |o: &usize| matches!(instr.operands[*o].kind, OperandKind::Reg { def: true, .. });
    let (def, used): (Vec<usize>, Vec<usize>) = (0..instr.operands.len()).partition(is_def);
    let (def, used) = (def.first().copied(), used.first().copied().unwrap_or(0));
    for &p in &values {
        let crosses = |_: InstrId, choice: &[usize], result: Option<usize>| choice.first().copied() != result;
        let variants = &machine.variants[usize::from(mov.0)];
        let (alternatives, _) = ways(sides, variants, &[(used, From::Node(p, 0))], def, crosses);
        let operands = vec![vec![Source::Node { node: p, distance: 0 }]];
        let latency = i64::from(instr.latency);
        problem.nodes.push(Node { optional: true, latency, before_end: None, operands, alternatives });
    }
    problem.outside = outside.0.len();
    problem.edges = edges(&body.memory);
    (problem, all)
}

/// Where an answer to the free problem has each node of the body.
fn sides_of(body: &Body, sides: &Sides<'_>, ways: &[Ways], division: &[usize]) -> Result<Vec<At>, CompileError> {
    if division.len() != body.nodes.len() {
        return Err(strange());
    }
    let at = division.iter().zip(ways).map(|(&a, ways)| {
        let &(v, result) = ways.get(a).ok_or_else(strange)?;
        let unit = sides.of_variant(v);
        Ok(At { unit, result: result.unwrap_or(unit) })
    });
    at.collect()
}

/// The schedule of an answer, if it keeps every rule.
fn taken(
    ops: &Ops,
    sides: &Sides<'_>,
    ways: &[Ways],
    answer: &exact::Schedule,
    most_stages: i64,
) -> Result<Option<Schedule>, CompileError> {
    let n = ops.ops.len();
    if answer.time.len() != n || answer.alternative.len() != n || answer.ii == 0 {
        return Err(strange());
    }
    let ii = i64::from(answer.ii);
    let chosen = answer.alternative.iter().zip(ways).map(|(&a, ways)| ways.get(a).map(|w| w.0).ok_or_else(strange));
    let variant: Vec<InstrId> = chosen.collect::<Result<_, _>>()?;
    Ok(holding(ops, sides, ii, &answer.time, variant, None).filter(|schedule| schedule.stages <= most_stages))
}

fn strange() -> CompileError {
    CompileError::Internal("an exact schedule belongs to another loop".into())
}
