//! A counter of a loop's own, and the question whether it has come to its end.

use super::graph::Exit;
use ciphermill_ir::cfg::Edge;
use ciphermill_ir::{BinOp, Block, CmpOp, Func, Op, Terminator, Type, Value};

/// What a counter starts from, and what is added to it in a turn, modulo its type.
pub(super) struct Steps {
    pub ty: Type,
    pub start: u64,
    pub step: u64,
    /// The line that counts.
    pub loc: u32,
}

/// A counter for a loop with these edges into it and back. Returns it and its next value.
pub(super) fn add(func: &mut Func, header: Block, entries: &[Edge], back: &[Edge], steps: &Steps) -> (Value, Value) {
    let Steps { ty, start, step, loc } = *steps;
    let now = func.add_param(header, ty);
    for &edge in entries {
        let start = func.append1(edge.from, Op::Const(start), &[], ty, 0);
        hand(func, edge, start);
    }
    let step = func.append1(header, Op::Const(step & ty.mask()), &[], ty, 0);
    let next = func.append1(header, Op::Bin(BinOp::Add), &[now, step], ty, loc);
    back.iter().for_each(|&edge| hand(func, edge, next));
    (now, next)
}

/// Give an edge one more argument.
fn hand(func: &mut Func, edge: Edge, value: Value) {
    if let Some(target) = func.blocks[edge.from].term.targets_mut().into_iter().nth(edge.index as usize) {
        target.args.push(value);
    }
}

/// The branch leaves the loop when two values are equal, whatever it asked before.
pub(super) fn leave_where_equal(func: &mut Func, exit: Exit, a: Value, b: Value, loc: u32) {
    let op = if exit.when_true { CmpOp::Eq } else { CmpOp::Ne };
    let asked = func.append1(exit.block, Op::Cmp(op), &[a, b], Type::I32, loc);
    ask(func, exit, asked);
}

/// The branch leaves the loop when a value is 0. Where it can, it takes the value itself: a comparison would be folded
/// into one of the counter before its step, for which a machine needs an instruction more.
pub(super) fn leave_at_zero(func: &mut Func, exit: Exit, left: Value) {
    if exit.when_true {
        let none = func.append1(exit.block, Op::Const(0), &[], Type::I32, 0);
        leave_where_equal(func, exit, left, none, 0);
    } else {
        ask(func, exit, left);
    }
}

fn ask(func: &mut Func, exit: Exit, asked: Value) {
    if let Terminator::Branch { cond, .. } = &mut func.blocks[exit.block].term {
        *cond = asked;
    }
}
