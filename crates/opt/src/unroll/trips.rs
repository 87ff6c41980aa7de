//! Trip counts that are constants, found by running the loop's counters.
//!
//! For each branch that may leave the loop and that runs once in every iteration,
//! the operations that its condition depends on are evaluated iteration by iteration
//! from the values the loop is entered with, until the branch leaves or a
//! bound is passed. What the loop carries and the condition needs must be
//! computed by operations without memory or effect. Evaluation is that of
//! constant folding, so wrap-around, odd steps, masks, shifted counters and
//! whatever else a compiler makes of a `for` are exact by construction, and no
//! case analysis of comparisons is needed.
//!
//! Of several branches the one that leaves first counts. The others may leave
//! earlier still in a run; they stay in the code, so the count found is the
//! most turns there can be, and the turn in which the branch of the count
//! certainly leaves.

use super::graph::{Exit, Graph};
use ciphermill_ir::cfg::LoopId;
use ciphermill_ir::{Func, Inst, Op, Type, Value, ops};
use std::collections::HashMap;

/// The header runs at most `count` times; in turn number `count` (from 1) the
/// branch leaves the loop, and in none before.
#[derive(Clone, Copy)]
pub(crate) struct Trips {
    pub exit: Exit,
    pub count: u32,
}

/// Levels of operations outside the loop looked through for a start value.
const DEPTH: u32 = 8;

/// Values taken to be constants, besides those that are.
pub(crate) type Known<'a> = &'a [(Value, u64)];

/// The loop's trip count, if it is a constant not above `limit`.
pub(crate) fn constant(func: &Func, graph: &Graph, id: LoopId, limit: u32, known: Known) -> Option<Trips> {
    let counts = Exit::of(func, graph, id).into_iter().filter_map(|exit| {
        let run = Run::new(func, graph, id, exit.cond, known)?;
        Some(Trips { exit, count: run.count(exit, limit, &mut |_, _| {})? })
    });
    counts.min_by_key(|t| t.count)
}

/// Bits that a loop's counters, and what is computed of them, may have in a run: of those whose last turn is known
/// and not above `limit`.
pub(crate) fn bits(func: &Func, graph: &Graph, id: LoopId, limit: u32) -> HashMap<Value, u64> {
    let mut all: HashMap<Value, u64> = HashMap::new();
    for exit in Exit::of(func, graph, id) {
        let mut here: HashMap<Value, u64> = HashMap::new();
        let Some(run) = Run::new(func, graph, id, exit.cond, &[]) else { continue };
        if run.count(exit, limit, &mut |v, c| *here.entry(v).or_default() |= c).is_some() {
            // Each branch bounds them by itself.
            here.into_iter().for_each(|(v, c)| *all.entry(v).or_insert(u64::MAX) &= c);
        }
    }
    all
}

struct Run<'a> {
    func: &'a Func,
    graph: &'a Graph,
    id: LoopId,
    known: Known<'a>,
    /// Operations of the loop to evaluate, in an order that defines first.
    slice: Vec<Inst>,
    /// Header parameters that are needed.
    params: Vec<usize>,
}

impl<'a> Run<'a> {
    /// None when something is needed that cannot be evaluated.
    fn new(func: &'a Func, graph: &'a Graph, id: LoopId, cond: Value, known: Known<'a>) -> Option<Run<'a>> {
        let mut run = Run { func, graph, id, known, slice: Vec::new(), params: Vec::new() };
        let backs = graph.back_edges(id);
        let mut wanted: Vec<Inst> = Vec::new();
        let mut work = vec![cond];
        while let Some(v) = work.pop() {
            if graph.invariant(id, v) || func.as_const(v).is_some() {
                continue;
            }
            if let Some(param) = graph.header_param(func, id, v) {
                if !run.params.contains(&param) {
                    run.params.push(param);
                    work.push(graph.agreed(func, &backs, param)?);
                }
                continue;
            }
            let inst = func.def_inst(v)?;
            // A value of an inner loop has no one value in an iteration of this one.
            let once = graph.home(v).is_some_and(|b| graph.loops.innermost(b) == Some(id));
            if !once || !(func.insts[inst].op.is_pure() || matches!(func.insts[inst].op, Op::Bin(_))) {
                return None;
            }
            if !wanted.contains(&inst) {
                wanted.push(inst);
                work.extend(func.insts[inst].args.iter().map(|&a| func.resolve(a)));
            }
            if wanted.len() > MAX_SLICE {
                return None;
            }
        }
        for &block in &graph.data(id).blocks {
            run.slice.extend(func.blocks[block].insts.iter().copied().filter(|i| wanted.contains(i)));
        }
        Some(run)
    }

    /// The turn that leaves; `note` is told each value of each turn.
    fn count(&self, exit: Exit, limit: u32, note: &mut dyn FnMut(Value, u64)) -> Option<u32> {
        let backs = self.graph.back_edges(self.id);
        let entries = self.graph.entries(self.id);
        let header = &self.func.blocks[self.graph.data(self.id).header].params;
        let mut values: HashMap<Value, u64> = HashMap::new();
        for &param in &self.params {
            let starts = entries.iter().map(|&e| self.outside(self.graph.argument(self.func, e, param), DEPTH));
            let starts: Vec<u64> = starts.collect::<Option<_>>()?;
            if starts.iter().any(|&s| s != starts[0]) {
                return None;
            }
            values.insert(header[param], *starts.first()?);
        }
        for turn in 1..=limit {
            for &inst in &self.slice {
                let data = &self.func.insts[inst];
                let args: Vec<u64> = data.args.iter().map(|&a| self.value(a, &values)).collect::<Option<_>>()?;
                values.insert(self.func.result(inst), evaluate(self.func, inst, &args)?);
            }
            values.iter().for_each(|(&v, &c)| note(v, c));
            if (self.value(exit.cond, &values)? != 0) == exit.when_true {
                return Some(turn);
            }
            let next = |&p: &usize| Some((header[p], self.value(self.graph.agreed(self.func, &backs, p)?, &values)?));
            let next: Vec<(Value, u64)> = self.params.iter().map(next).collect::<Option<_>>()?;
            values.extend(next);
        }
        None
    }

    fn value(&self, v: Value, values: &HashMap<Value, u64>) -> Option<u64> {
        let v = self.func.resolve(v);
        values.get(&v).copied().or_else(|| self.outside(v, DEPTH))
    }

    /// A value from outside the loop.
    fn outside(&self, v: Value, depth: u32) -> Option<u64> {
        outside(self.func, self.known, v, depth)
    }
}

/// The value of an expression over constants and known values.
pub(crate) fn outside(func: &Func, known: Known, v: Value, depth: u32) -> Option<u64> {
    if let Some(&(_, c)) = known.iter().find(|(k, _)| *k == v) {
        return Some(c);
    }
    let inst = func.def_inst(v)?;
    let data = &func.insts[inst];
    if depth == 0 || !(data.op.is_pure() || matches!(data.op, Op::Bin(_))) {
        return None;
    }
    let args: Option<Vec<u64>> = data.args.iter().map(|&a| outside(func, known, func.resolve(a), depth - 1)).collect();
    evaluate(func, inst, &args?)
}

/// Operations a condition may depend on.
const MAX_SLICE: usize = 64;

/// An operation on constants; none when it would trap or is not arithmetic.
pub(crate) fn evaluate(func: &Func, inst: Inst, args: &[u64]) -> Option<u64> {
    let data = &func.insts[inst];
    let ty = func.ty(*data.results.first()?);
    let of = || data.args.first().map_or(Type::I32, |&a| func.ty(a)).bits();
    Some(match (data.op, args) {
        (Op::Const(c), _) => c,
        (Op::Bin(op), &[x, y]) => op.eval(x, y, ty.bits())?,
        (Op::Un(op), &[x]) => op.eval(x, ty.bits()),
        (Op::Cmp(op), &[x, y]) => u64::from(op.eval(x, y, of())),
        (Op::Select, &[cond, x, y]) => {
            if cond != 0 {
                x
            } else {
                y
            }
        }
        (Op::Wrap, &[x]) => x & Type::I32.mask(),
        (Op::ZExt, &[x]) => x,
        (Op::SExt, &[x]) => ops::sext(x, 32) as u64,
        _ => return None,
    })
}
