//! Parts of a rule that are one instruction: which, and its operands.
//!
//! A selection `c ? a : b` in a rule is the semantics of an instruction (of a
//! shift by six bits of a register, say), written as the machine file writes
//! it. Here the rule's expression is laid over the templates; what stands where
//! a template has a register is a leaf, to be computed like any other value.

use ciphermill_ir::{Func, Op, Value};
use ciphermill_machine::sem::Expr;
use ciphermill_patterns::graph::any;
use ciphermill_patterns::matcher::{Bind, Matcher};
use ciphermill_patterns::pat::Pat;
use ciphermill_patterns::pattern::Action;

/// A selection's template, and what each of its register operands stands for.
pub(super) fn cover<'e, 'm>(e: &'e Expr, matcher: &'m Matcher) -> Option<(&'m Pat, Vec<(usize, &'e Expr)>)> {
    if !matches!(e, Expr::Select { .. }) {
        return None;
    }
    matcher.templates.iter().find_map(|t| {
        let Action::Value(_, pat @ Pat::Select(..)) = &t.action else { return None };
        let mut leaves = Vec::new();
        lay(pat, e, &mut leaves).then_some((pat, leaves))
    })
}

/// The template of one instruction that computes an operation and, on the way, operands
/// that `once` says nothing else needs: with what its own operands are bound to.
pub(super) fn taking_in<'m>(
    func: &Func,
    matcher: &'m Matcher,
    bits: u32,
    op: Op,
    args: &[Value],
    once: &dyn Fn(Value) -> bool,
) -> Option<(&'m Pat, Vec<(usize, Bind)>)> {
    let fold = |v: Value| once(v) && func.def_op(v).is_some_and(Op::is_pure);
    matcher.candidates(op).iter().find_map(|&t| {
        let template = &matcher.templates[t];
        let Action::Value(_, pat) = &template.action else { return None };
        if template.parts.len() != 1 || !plain(pat) || !nested(pat) {
            return None;
        }
        let binds = matcher.value(func, template, bits, op, args, &fold)?;
        Some((pat, binds.into_iter().enumerate().filter_map(|(i, bind)| Some((i, bind?))).collect()))
    })
}

/// Does it compute more than its root?
fn nested(pat: &Pat) -> bool {
    let computed = |p: &Pat| !matches!(p, Pat::Reg(_) | Pat::Imm(_) | Pat::Const(_));
    match pat {
        Pat::Un(_, a) | Pat::Low(a) => computed(a),
        Pat::Bin(_, a, b) | Pat::Cmp(_, a, b) => computed(a) || computed(b),
        Pat::Select(c, a, b) => computed(c) || computed(a) || computed(b),
        _ => false,
    }
}

/// Nothing but arithmetic of registers and constants.
fn plain(pat: &Pat) -> bool {
    !any(pat, |p| matches!(p, Pat::Load { .. } | Pat::Low(_) | Pat::Apply(..)))
}

/// Is every selection in the expression an instruction of the machine?
pub(super) fn covered(e: &Expr, matcher: &Matcher) -> bool {
    let all = |list: &[&Expr]| list.iter().all(|e| covered(e, matcher));
    match e {
        Expr::Select { .. } => {
            cover(e, matcher).is_some_and(|(_, leaves)| leaves.iter().all(|(_, leaf)| covered(leaf, matcher)))
        }
        Expr::Bin { a, b, .. } | Expr::Cmp { a, b, .. } => all(&[a, b]),
        Expr::Un { a, .. } | Expr::Slice { a, .. } => all(&[a]),
        _ => true,
    }
}

fn lay<'e>(pat: &Pat, e: &'e Expr, leaves: &mut Vec<(usize, &'e Expr)>) -> bool {
    match (pat, e) {
        (Pat::Reg(i), _) => match leaves.iter().find(|l| l.0 == *i) {
            Some(l) => l.1 == e,
            None => {
                leaves.push((*i, e));
                true
            }
        },
        (Pat::Const(c), Expr::Const(k)) => c == k,
        (Pat::Bin(p, x, y), Expr::Bin { op, a, b, .. }) => p == op && lay(x, a, leaves) && lay(y, b, leaves),
        (Pat::Un(p, x), Expr::Un { op, a, .. }) => p == op && lay(x, a, leaves),
        (Pat::Cmp(p, x, y), Expr::Cmp { op, a, b, .. }) => p == op && lay(x, a, leaves) && lay(y, b, leaves),
        (Pat::Select(c, x, y), Expr::Select { cond, then, els }) => {
            lay(c, cond, leaves) && lay(x, then, leaves) && lay(y, els, leaves)
        }
        _ => false,
    }
}
