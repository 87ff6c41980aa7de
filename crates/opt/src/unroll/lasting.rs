//! Conditions that last, and the counters that they hang on: a comparison of a counter with a constant, or one of
//! its bits. The counter is a value that goes round, or a place in memory that each iteration stores again.

use super::graph::Graph;
use crate::alias::split as parts;
use ciphermill_ir::cfg::LoopId;
use ciphermill_ir::{BinOp, CmpOp, Func, Inst, Op, Space, Value};

/// Steps of a counter that are added up: as many as an unrolled loop around them may have had.
const STEPS: u32 = 64;

/// Does a condition change no more often than every so many iterations, as far as can be seen?
pub(super) fn lasts(func: &Func, graph: &Graph, id: LoopId, cond: Value, least: u64) -> bool {
    let Some((op, a, b)) = operation(func, cond) else { return false };
    let number = func.as_const(b);
    let slow =
        |x: Value, reach: u64| step(func, graph, id, x).is_some_and(|s| s > 0 && s.saturating_mul(least) <= reach);
    let bit = |x: Value| match operation(func, x) {
        Some((Op::Bin(BinOp::And), y, mask)) => {
            func.as_const(mask).is_some_and(|m| m != 0 && slow(y, m & m.wrapping_neg()))
        }
        _ => false,
    };
    match (op, number) {
        (Op::Cmp(CmpOp::Eq | CmpOp::Ne), Some(0)) => bit(a) || lasts(func, graph, id, a, least),
        (Op::Cmp(CmpOp::Eq | CmpOp::Ne), Some(n)) if n & (n.wrapping_sub(1)) == 0 => bit(a),
        (Op::Cmp(CmpOp::Eq | CmpOp::Ne), _) => false,
        (Op::Cmp(_), Some(n)) => slow(a, n),
        (Op::Cmp(_), None) => func.as_const(a).is_some_and(|n| slow(b, n)),
        (Op::Bin(BinOp::And), _) => bit(cond),
        _ => false,
    }
}

/// The operation that makes a value of two.
pub(super) fn operation(func: &Func, v: Value) -> Option<(Op, Value, Value)> {
    let data = &func.insts[func.def_inst(func.resolve(v))?];
    let [a, b] = data.args[..] else { return None };
    Some((data.op, func.resolve(a), func.resolve(b)))
}

/// The two values that a value is the sum of.
pub(super) fn sum(func: &Func, v: Value) -> Option<(Value, Value)> {
    match operation(func, v)? {
        (Op::Bin(BinOp::Add), a, b) => Some((a, b)),
        _ => None,
    }
}

/// By how much a counter goes on in each iteration.
pub(super) fn step(func: &Func, graph: &Graph, id: LoopId, counter: Value) -> Option<u64> {
    let counter = func.resolve(counter);
    let own = func.def_inst(counter).and_then(|i| place(func, i));
    let is_load = |x: Value| {
        let load = |&i: &Inst| matches!(func.insts[i].op, Op::Load(_)) && place(func, i) == own;
        x == counter || own.is_some() && func.def_inst(x).as_ref().is_some_and(load)
    };
    agreed(
        next(func, graph, id, counter)?
            .into_iter()
            .map(|v| Some(added(func, v, &is_load, STEPS)?.unsigned_abs().into())),
    )
}

/// What a counter may be in the next iteration: what goes round, or what is stored in the place in memory that it
/// is loaded from, if nothing else is stored there.
pub(super) fn next(func: &Func, graph: &Graph, id: LoopId, counter: Value) -> Option<Vec<Value>> {
    let counter = func.resolve(counter);
    if let Some(i) = graph.header_param(func, id, counter) {
        return Some(graph.back_edges(id).into_iter().map(|e| graph.argument(func, e, i)).collect());
    }
    let own = place(func, func.def_inst(counter)?)?;
    if own.2.is_some_and(|base| !graph.invariant(id, base)) {
        return None;
    }
    // What a block stores there last.
    let stored = |&i: &&Inst| matches!(func.insts[*i].op, Op::Store(_)) && place(func, *i) == Some(own);
    let last = graph.data(id).blocks.iter().filter_map(|&b| func.blocks[b].insts.iter().rfind(stored));
    Some(last.map(|&i| func.insts[i].args[1]).collect())
}

/// Where an access is, if its address stays the same: memory, bytes, base and offset.
fn place(func: &Func, inst: Inst) -> Option<(Space, u8, Option<Value>, u32)> {
    let data = &func.insts[inst];
    match data.op {
        Op::Load(access) | Op::Store(access) => {
            let (base, c) = parts(func, data.args[0]);
            Some((access.space, access.bytes, base, c.wrapping_add(access.offset)))
        }
        _ => None,
    }
}

/// What all of some say, if that is one and the same.
fn agreed(mut all: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    let first = all.next()??;
    all.all(|v| v == Some(first)).then_some(first)
}

/// What is added to a counter, in steps, whatever mask is put on it.
fn added(func: &Func, next: Value, counter: &dyn Fn(Value) -> bool, steps: u32) -> Option<i32> {
    match operation(func, next)? {
        (Op::Bin(BinOp::And), a, mask) if func.as_const(mask).is_some() => added(func, a, counter, steps),
        (Op::Bin(BinOp::Add), a, by) => {
            let by = func.as_const(by)? as u32 as i32;
            let before = if counter(a) { 0 } else { added(func, a, counter, steps.checked_sub(1)?)? };
            Some(before.wrapping_add(by))
        }
        _ => None,
    }
}
