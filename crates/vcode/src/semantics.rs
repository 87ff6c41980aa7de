//! What is read off an instruction's semantics in more than one stage.

use ciphermill_machine::sem::{Expr, Stmt};

/// Operand indices of the stored value (None for a load) and of the base.
pub fn access_operands(semantics: &[Stmt]) -> Option<(Option<usize>, usize)> {
    let base = |e: &Expr| match e {
        Expr::Bin { a, b, .. } => match (&**a, &**b) {
            (Expr::Operand(i), _) | (_, Expr::Operand(i)) => Some(*i),
            _ => None,
        },
        Expr::Operand(i) => Some(*i),
        _ => None,
    };
    semantics.iter().find_map(|s| match s {
        Stmt::Store { addr, value: Expr::Operand(v), .. } => Some((Some(*v), base(addr)?)),
        Stmt::Assign { value: Expr::Load { addr, .. }, .. } => Some((None, base(addr)?)),
        _ => None,
    })
}
