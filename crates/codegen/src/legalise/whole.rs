//! Parts of a rule that are one instruction: which, and its operands.
//!
//! A selection `c ? a : b` in a rule is the semantics of an instruction (of a
//! shift by six bits of a register, say), written as the machine file writes
//! it. Here the rule's expression is laid over the templates; what stands where
//! a template has a register is a leaf, to be computed like any other value.

use crate::matcher::Matcher;
use crate::pattern::{Action, Pat};
use ciphermill_machine::sem::Expr;

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
