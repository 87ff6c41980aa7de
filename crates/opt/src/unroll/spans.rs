//! Loops over a span of known length from wherever the loop around stands.
//!
//! A transform goes through its words in groups, and from one group to the next by where the counter came out:
//!
//! ```text
//! for (i = 0; i < 256; i = j + 8)
//!     for (j = i; j < i + 8; j++) ..
//! ```
//!
//! The inner loop turns eight times only if `i + 8` does not wrap around, and the outer loop's count hangs on what
//! `j` is behind the inner one. Where every way to `i` asks whether it is below a constant, or brings one, nothing wraps:
//! then the inner loop gets a counter of its own from 0 on, and `j` behind it is `i` and a constant.

use super::counted::{Bound, Counted, Test, offset};
use super::counter::{self, Steps};
use super::graph::Graph;
use super::replace_behind;
use crate::options::Options;
use ciphermill_ir::cfg::{Edge, LoopId};
use ciphermill_ir::{BinOp, CmpOp, Func, Module, Op, Terminator, Type, Value, ValueDef};

pub(crate) fn run(module: &mut Module, options: &Options) -> bool {
    if options.unroll.profile.is_empty() {
        return false;
    }
    super::for_each_loop(module, options, |func, graph, id| {
        find(func, graph, id).map(|span| write(func, graph, id, &span)).is_some()
    })
}

/// A counter that starts from a base and a constant, and ends at the base and another one.
struct Span {
    counted: Counted,
    base: Value,
    /// The start, less the base.
    start: u64,
    turns: u64,
}

fn find(func: &Func, graph: &Graph, id: LoopId) -> Option<Span> {
    let [_] = graph.exits(id)[..] else { return None };
    Counted::of(func, graph, id).into_iter().find_map(|counted| {
        let (Test::Below { signed: false, or_equal: false }, Bound::Value(bound)) = (counted.test, counted.bound)
        else {
            return None;
        };
        let start = graph.origin(func, graph.agreed(func, &graph.entries(id), counted.counter)?);
        let ((base, start), (of_bound, end)) = (offset(func, start), offset(func, graph.origin(func, bound)));
        let base = graph.origin(func, base);
        let same = graph.origin(func, of_bound) == base && func.as_const(base).is_none();
        // All of these are small, so no sum of them comes near to the end of the word.
        let small = |c: u64| c < 1 << 24;
        let most = below(func, graph, base)?;
        if !(same && [start, end, counted.ahead, counted.step, most].into_iter().all(small)) || counted.ty != Type::I32
        {
            return None;
        }
        let turns = 1 + end.saturating_sub(start + counted.ahead).div_ceil(counted.step);
        Some(Span { counted, base, start, turns })
    })
}

/// A constant that a value is below, as all ways to it say.
fn below(func: &Func, graph: &Graph, v: Value) -> Option<u64> {
    let ValueDef::Param(block, param) = func.values[v].def else { return None };
    let of = |&edge: &Edge| {
        let arg = graph.argument(func, edge, usize::from(param));
        func.as_const(arg).map(|c| c + 1).or_else(|| asked(func, edge, arg))
    };
    graph.cfg.preds(block).iter().map(of).collect::<Option<Vec<u64>>>()?.into_iter().max()
}

/// The constant that a value is below on an edge, as the branch there asks.
fn asked(func: &Func, edge: Edge, v: Value) -> Option<u64> {
    let Terminator::Branch { cond, then, els } = &func.blocks[edge.from].term else { return None };
    let data = &func.insts[func.def_inst(func.resolve(*cond))?];
    let (Op::Cmp(op), [x, y]) = (data.op, &data.args[..]) else { return None };
    let (x, y) = (func.resolve(*x), func.resolve(*y));
    let (holds, fails) = (edge.index == 0, then.block == els.block);
    match (op, func.as_const(x), func.as_const(y)) {
        _ if fails => None,
        (CmpOp::LtU, None, Some(c)) if holds && x == v => Some(c),
        (CmpOp::LeU, None, Some(c)) if holds && x == v => Some(c + 1),
        (CmpOp::LtU, Some(c), None) if !holds && y == v => Some(c + 1),
        (CmpOp::LeU, Some(c), None) if !holds && y == v => Some(c),
        _ => None,
    }
}

fn write(func: &mut Func, graph: &Graph, id: LoopId, span: &Span) {
    let Span { counted, base, start, turns } = span;
    let (ty, header, exit) = (counted.ty, graph.data(id).header, counted.exit);
    let loc = func.insts[counted.stepper].loc;
    let steps = Steps { ty, start: 0, step: 1, loc };
    let (entries, back) = (graph.entries(id), graph.back_edges(id));
    let (_, next) = counter::add(func, header, &entries, &back, &steps);
    let all = func.append1(exit.block, Op::Const(*turns), &[], ty, 0);
    counter::leave_where_equal(func, exit, next, all, loc);
    // What the counter and its next value are behind the loop.
    let old = func.blocks[header].params[counted.counter];
    let stepped = func.result(counted.stepper);
    for (old, turns) in [(old, turns - 1), (stepped, *turns)] {
        let c = func.append1(exit.block, Op::Const(start + turns * counted.step), &[], ty, 0);
        let new = func.append1(exit.block, Op::Bin(BinOp::Add), &[*base, c], ty, loc);
        replace_behind(func, graph, id, |v| if v == old { new } else { v });
    }
}
