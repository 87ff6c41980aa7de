//! Masks and their complements.
//!
//! Packed arithmetic uses masks in pairs: `x & 0x7f7f7f7f` and
//! `x & 0x80808080`, `(x << 1) & 0xfefefefe` and `(x >> 7) & 0x01010101`. Where
//! neither fits an immediate and the machine has an and-not, one register
//! serves both: the rarer mask is written as the complement of the other.

use ciphermill_ir::{BinOp, Func, Op, Type};
use ciphermill_patterns::matcher::Matcher;
use ciphermill_patterns::pat::Pat;
use ciphermill_patterns::pattern::{Action, fits};
use std::collections::BTreeMap;

/// Rewrite `x & c` to `x & ~k` where `k = ~c` is needed in a register anyway.
pub fn pair(func: &mut Func, matcher: &Matcher, bits: u32) {
    if !has_and_not(matcher) {
        return;
    }
    let ones = ciphermill_ir::ops::mask(bits);
    let mut count: BTreeMap<u64, usize> = BTreeMap::new();
    let masks = |func: &Func| -> Vec<_> {
        let insts =
            func.layout.iter().flat_map(|&b| func.blocks[b].insts.iter().enumerate().map(move |(i, &x)| (b, i, x)));
        insts
            .filter(|&(_, _, x)| func.insts[x].op == Op::Bin(BinOp::And))
            .filter_map(|(b, i, x)| Some((b, i, x, func.as_const(func.insts[x].args[1])? & ones)))
            .filter(|&(_, _, _, c)| !fits_immediate(matcher, c, bits))
            .collect()
    };
    for (_, _, _, c) in masks(func) {
        *count.entry(c).or_default() += 1;
    }
    let rare = |c: u64| {
        let other = !c & ones;
        count.get(&other).is_some_and(|&n| (count[&c], c) < (n, other))
    };
    for (block, _, inst, c) in masks(func).into_iter().rev() {
        if !rare(c) {
            continue;
        }
        let ty = Type::of_word(bits);
        let made: Vec<_> = [!c & ones, ones].map(|k| func.make_inst(Op::Const(k), &[], &[ty], 0)).into();
        let args = [func.result(made[0]), func.result(made[1])];
        let not = func.make_inst(Op::Bin(BinOp::Xor), &args, &[ty], func.insts[inst].loc);
        func.insts[inst].args[1] = func.result(not);
        let at = func.blocks[block].insts.iter().position(|&i| i == inst).unwrap_or(0);
        func.blocks[block].insts.splice(at..at, [made[0], made[1], not]);
    }
}

fn has_and_not(matcher: &Matcher) -> bool {
    let is_not =
        |p: &Pat| matches!(p, Pat::Bin(BinOp::Xor, a, b) if matches!((&**a, &**b), (Pat::Reg(_), Pat::Const(_))));
    matcher.templates.iter().any(|t| {
        matches!(&t.action, Action::Value(_, Pat::Bin(BinOp::And, a, b)) if matches!(**a, Pat::Reg(_)) && is_not(b))
    })
}

fn fits_immediate(matcher: &Matcher, c: u64, bits: u32) -> bool {
    matcher.templates.iter().any(|t| match &t.action {
        Action::Value(_, Pat::Bin(BinOp::And, _, b)) => match **b {
            Pat::Imm(i) => fits(&t.operands[i], c, bits).is_some(),
            _ => ciphermill_patterns::pattern::solve(b, c, bits, &t.operands).is_some(),
        },
        _ => false,
    })
}
