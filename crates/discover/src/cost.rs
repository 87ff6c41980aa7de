//! What operations cost: an estimate for ranking.

use ciphermill_ir::{BinOp, Func, Op, Value};
use std::collections::BTreeSet;

/// Cycles of a multiplication, of which an instruction of one cycle saves all but one.
const PRODUCT: usize = 3;

/// Cycles of some operations, one after the other.
pub fn cycles(func: &Func, nodes: &BTreeSet<Value>) -> usize {
    let of = |v: &Value| match func.def_op(*v) {
        Some(Op::Bin(BinOp::Mul | BinOp::MulHiU | BinOp::MulHiS)) => PRODUCT,
        _ => 1,
    };
    nodes.iter().map(of).sum()
}
