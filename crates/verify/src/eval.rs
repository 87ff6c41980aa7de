//! The semantics of an instruction that says where control goes, statement by statement.
//!
//! Numbers fold, so that predicates, counts of stages and the branch of a rotating loop are
//! worked out. A comparison for equality is a term of its own, whichever way round it is asked:
//! what the program decided by it, it decides for everyone ([`Decisions`]).

use crate::terms::{Kind, Map, Term, Terms};
use ciphermill_ir::{BinOp, CmpOp};
use ciphermill_machine::Reg;
use ciphermill_machine::sem::Expr;

/// What the loop's branch decides: for each comparison the iteration behind which it is made, and
/// what it gives where another iteration follows.
#[derive(Default)]
pub(crate) struct Decisions {
    pub followed: Map<Term, (u32, bool)>,
}

/// What a path of execution knows of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    /// So many iterations were followed by another.
    pub followed: u32,
    /// The one behind these is the last.
    pub over: bool,
}

impl Decisions {
    /// Is the comparison true, as far as the path knows?
    pub fn of(&self, t: Term, known: Known) -> Option<bool> {
        let &(iteration, again) = self.followed.get(&t)?;
        if iteration <= known.followed {
            Some(again)
        } else if known.over && iteration == known.followed + 1 {
            Some(!again)
        } else {
            None
        }
    }
}

/// Where an expression finds its inputs.
pub(crate) struct Env<'a> {
    pub word: u32,
    pub operand: &'a dyn Fn(usize) -> Option<Term>,
    pub imm: &'a dyn Fn(usize) -> Option<i64>,
    pub fixed: &'a dyn Fn(Reg) -> Term,
    pub temps: &'a [Option<Term>],
    pub decided: &'a dyn Fn(Term) -> Option<bool>,
    /// A number for what is not gone into, such as a load.
    pub whole: Term,
}

/// The term of an expression; none where an operand is missing.
pub(crate) fn eval(terms: &mut Terms, e: &Expr, env: &Env<'_>) -> Option<Term> {
    let mask = if env.word >= 64 { u64::MAX } else { (1 << env.word) - 1 };
    let both = |terms: &mut Terms, a: &Expr, b: &Expr| Some((eval(terms, a, env)?, eval(terms, b, env)?));
    Some(match e {
        Expr::Operand(o) => (env.operand)(*o)?,
        Expr::Imm(o) => terms.constant((env.imm)(*o)? as u64 & mask),
        Expr::Const(c) => terms.constant(*c & mask),
        Expr::Fixed(r) => (env.fixed)(*r),
        Expr::Temp(t) => (*env.temps.get(*t)?)?,
        Expr::Bin { op, bits, a, b } => {
            let (a, b) = both(terms, a, b)?;
            let (x, y) = (terms.number(a), terms.number(b));
            let full = u32::from(*bits) == env.word;
            match (op, x, y) {
                (op, Some(x), Some(y)) if op.eval(x, y, u32::from(*bits)).is_some() => {
                    let value = op.eval(x, y, u32::from(*bits)).unwrap_or(0);
                    terms.constant(value & mask)
                }
                (BinOp::And, Some(0), _) | (BinOp::And, _, Some(0)) => terms.constant(0),
                (BinOp::Or, Some(0), _) if full => b,
                (BinOp::Or, _, Some(0)) if full => a,
                _ => terms.of(&[Kind::Operator as u32, 1, *op as u32, u32::from(*bits), a, b]),
            }
        }
        Expr::Cmp { op, bits, a, b } => {
            let (a, b) = both(terms, a, b)?;
            if let (Some(x), Some(y)) = (terms.number(a), terms.number(b)) {
                return Some(terms.constant(u64::from(op.eval(x, y, u32::from(*bits)))));
            }
            if !matches!(op, CmpOp::Eq | CmpOp::Ne) {
                return Some(terms.of(&[Kind::Operator as u32, 2, *op as u32, u32::from(*bits), a, b]));
            }
            let equal = terms.of(&[Kind::Equal as u32, u32::from(*bits), a.min(b), a.max(b)]);
            let differs = *op == CmpOp::Ne;
            match (env.decided)(equal) {
                Some(yes) => terms.constant(u64::from(yes != differs)),
                None if differs => terms.differs(equal),
                None => equal,
            }
        }
        Expr::Select { cond, then, els } => {
            let cond = eval(terms, cond, env)?;
            match terms.number(cond) {
                Some(0) => eval(terms, els, env)?,
                Some(_) => eval(terms, then, env)?,
                None => {
                    let (a, b) = both(terms, then, els)?;
                    terms.of(&[Kind::Guarded as u32, cond, a, b])
                }
            }
        }
        Expr::Pc => terms.of(&[Kind::Here as u32, env.whole]),
        // The instruction as a whole, and which of its expressions: by its text.
        other => {
            let text = format!("{other:?}");
            let mut key = vec![Kind::Operator as u32, 4, env.whole];
            key.extend(text.as_bytes().chunks(4).map(|c| c.iter().fold(0, |w, &b| w << 8 | u32::from(b))));
            terms.of(&key)
        }
    })
}
