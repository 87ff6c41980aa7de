//! Loops that count with a pointer, counted by the distance it has gone.
//!
//! `for (p = b + 4; p != b + n; p += 4)` says how often it iterates only if the
//! addresses that `p` starts from and ends at are compared. Both have the base
//! `b`: the loop gets a counter of its own that starts from the constant and is
//! compared with `n`, and what depends on `n` alone is a matter for
//! [`super::specialise`]. Equality is all that is asked, so it makes no
//! difference where addresses wrap around.

use super::counted::{Bound, Counted, Test, offset};
use super::counter::{self, Steps};
use super::graph::Graph;
use crate::options::Options;
use ciphermill_ir::cfg::LoopId;
use ciphermill_ir::{BinOp, Func, Module, Op, Value};

pub(crate) fn run(module: &mut Module, options: &Options) -> bool {
    if options.unroll.profile.is_empty() {
        return false;
    }
    super::for_each_loop(module, options, |func, graph, id| {
        find(func, graph, id).map(|counted_loop| write(func, graph, id, &counted_loop)).is_some()
    })
}

/// A counter whose start and bound have a base in common.
struct PointerLoop {
    counted: Counted,
    /// The start, less the base.
    start: u64,
    /// The bound, less the base, is this value plus `more`.
    bound: Value,
    more: u64,
}

fn find(func: &Func, graph: &Graph, id: LoopId) -> Option<PointerLoop> {
    Counted::of(func, graph, id).into_iter().find_map(|counted| {
        let (Test::NotEqual, Bound::Value(bound)) = (counted.test, counted.bound) else { return None };
        let start = graph.origin(func, graph.agreed(func, &graph.entries(id), counted.counter)?);
        let (base, start) = offset(func, start);
        let base = graph.origin(func, base);
        let (sum, more) = offset(func, graph.origin(func, bound));
        let data = &func.insts[func.def_inst(sum)?];
        let (Op::Bin(BinOp::Add), [a, b]) = (data.op, &data.args[..]) else { return None };
        let [a, b] = [a, b].map(|&v| func.resolve(v));
        let is_base = |v: Value| graph.origin(func, v) == base;
        let bound = if is_base(a) { b } else { Some(a).filter(|_| is_base(b))? };
        let counts = func.as_const(base).is_none() && graph.invariant(id, bound);
        counts.then_some(PointerLoop { counted, start, bound, more })
    })
}

fn write(func: &mut Func, graph: &Graph, id: LoopId, counted_loop: &PointerLoop) {
    let PointerLoop { counted, start, bound, more } = counted_loop;
    let (ty, exit) = (counted.ty, counted.exit);
    let loc = func.insts[counted.stepper].loc;
    let steps = Steps { ty, start: *start, step: counted.step, loc };
    let (entries, back) = (graph.entries(id), graph.back_edges(id));
    let (distance, _) = counter::add(func, graph.data(id).header, &entries, &back, &steps);
    let ahead = func.append1(exit.block, Op::Const(counted.ahead.wrapping_sub(*more) & ty.mask()), &[], ty, 0);
    let tested = func.append1(exit.block, Op::Bin(BinOp::Add), &[distance, ahead], ty, loc);
    counter::leave_where_equal(func, exit, tested, *bound, loc);
}
