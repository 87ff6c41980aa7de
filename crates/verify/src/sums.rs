//! Addresses as sums of terms times constants, plus a constant, modulo 2^32.
//!
//! Adding, subtracting and multiplying agree modulo 2^32 whatever is above the lowest 32 bits of a
//! word. So what an instruction makes of sums is worked out from its semantics, and two addresses
//! that are sums of the same terms are as far apart, modulo 2^32, as their constants. Two bytes of
//! one address are of one address modulo 2^32: accesses that are apart there touch no common byte.

use crate::code::{Arg, Inst};
use crate::terms::{Kind, Map, Place, Term, Terms};
use ciphermill_ir::{BinOp, UnOp};
use ciphermill_machine::sem::{Expr, Stmt};
use ciphermill_machine::{Instr, Machine, OperandKind};

/// A sum of more terms is a term of its own.
const LONGEST: usize = 6;

/// Terms in their order, each with its factor, which is not 0, and a constant.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Sum {
    parts: Vec<(Term, u32)>,
    constant: u32,
}

impl Sum {
    pub fn of(term: Term) -> Sum {
        Sum { parts: vec![(term, 1)], constant: 0 }
    }

    pub fn number(value: u64) -> Sum {
        Sum { parts: Vec::new(), constant: value as u32 }
    }

    /// The number that it is, if it is one.
    pub fn known(&self) -> Option<u32> {
        Some(self.constant).filter(|_| self.parts.is_empty())
    }

    /// `a * self + b * other`
    fn combined(&self, a: u32, other: &Sum, b: u32) -> Sum {
        let scaled = |s: &Sum, by: u32| s.parts.iter().map(|p| (p.0, p.1.wrapping_mul(by))).collect::<Vec<_>>();
        let mut parts = scaled(self, a);
        parts.extend(scaled(other, b));
        parts.sort_unstable_by_key(|p| p.0);
        parts.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 = kept.1.wrapping_add(next.1);
            }
            same
        });
        parts.retain(|p| p.1 != 0);
        let constant = self.constant.wrapping_mul(a).wrapping_add(other.constant.wrapping_mul(b));
        Sum { parts, constant }
    }

    pub fn times(&self, by: u32) -> Sum {
        self.combined(by, &Sum::default(), 0)
    }

    pub fn plus(&self, other: &Sum) -> Sum {
        self.combined(1, other, 1)
    }

    pub fn place(&self, terms: &mut Terms) -> Place {
        let mut key = vec![Kind::Sum as u32];
        key.extend(self.parts.iter().flat_map(|p| [p.0, p.1]));
        Place { root: terms.of(&key), at: self.constant }
    }
}

/// Of terms that are sums of others, these sums.
#[derive(Default)]
pub(crate) struct Sums(Map<Term, Sum>);

impl Sums {
    /// Does nobody know yet whether a term is a sum?
    pub fn is_plain(&self, t: Term) -> bool {
        !self.0.contains_key(&t)
    }

    /// A term is this sum, modulo 2^32.
    pub fn say(&mut self, t: Term, sum: Sum) {
        self.0.entry(t).or_insert(sum);
    }

    /// A term as a sum, of itself if nothing else is known.
    pub fn of(&self, terms: &Terms, t: Term) -> Sum {
        match terms.number(t) {
            Some(n) => Sum::number(n),
            None => self.0.get(&t).cloned().unwrap_or_else(|| Sum::of(t)),
        }
    }
}

/// Does a register operand have all of the 32 bits?
fn wide(machine: &Machine, instr: &Instr, o: usize) -> bool {
    let file = |kind: &OperandKind| if let OperandKind::Reg { file, .. } = kind { Some(*file) } else { None };
    instr.operands.get(o).and_then(|o| file(&o.kind)).is_some_and(|f| machine.files[f].bits >= 32)
}

/// An expression with the temporaries replaced, if it is made of what sums are made of; as far as
/// can be said without its operands.
pub(crate) fn form(machine: &Machine, instr: &Instr, e: &Expr) -> Option<Expr> {
    let inner = |e: &Expr| form(machine, instr, e).map(Box::new);
    Some(match e {
        Expr::Const(_) | Expr::Imm(_) => e.clone(),
        Expr::Operand(o) if wide(machine, instr, *o) => e.clone(),
        Expr::Temp(t) => {
            let bound = |s: &&Stmt| matches!(s, Stmt::Let { temp, .. } if temp == t);
            let Some(Stmt::Let { value, .. }) = instr.semantics.iter().find(bound) else { return None };
            form(machine, instr, value)?
        }
        Expr::Bin { op, bits, a, b } if *bits >= 32 => {
            use BinOp::{Add, And, Mul, Or, Shl, Sub};
            if !matches!(op, Add | Sub | Mul | Shl | And | Or) {
                return None;
            }
            Expr::Bin { op: *op, bits: *bits, a: inner(a)?, b: inner(b)? }
        }
        Expr::Un { op: UnOp::SExt32, bits, a } if *bits >= 32 => *inner(a)?,
        Expr::Slice { a, lo: 0, width } => Expr::Slice { a: inner(a)?, lo: 0, width: *width },
        _ => return None,
    })
}

/// The sum that a form is; `operand` finds what an operand's register holds.
pub(crate) fn sum(inst: &Inst, form: &Expr, operand: &dyn Fn(usize) -> Option<Sum>) -> Option<Sum> {
    let of = |e: &Expr| sum(inst, e, operand);
    let number = |o: usize| if let Some(Arg::Imm(v)) = inst.args.get(o) { Some(Sum::number(*v as u64)) } else { None };
    match form {
        Expr::Const(c) => Some(Sum::number(*c)),
        Expr::Imm(o) => number(*o),
        Expr::Operand(o) => number(*o).or_else(|| operand(*o)),
        Expr::Slice { a, width: 32.., .. } => of(a),
        Expr::Slice { a, width, .. } => of(a)?.known().map(|n| Sum::number(u64::from(n & ((1 << width) - 1)))),
        Expr::Bin { op, a, b, .. } => {
            let (a, b) = (of(a)?, of(b)?);
            let found = match (op, a.known(), b.known()) {
                (BinOp::Add, ..) => a.plus(&b),
                (BinOp::Sub, ..) => a.combined(1, &b, u32::MAX),
                (BinOp::Mul, _, Some(by)) => a.times(by),
                (BinOp::Mul, Some(by), _) => b.times(by),
                (BinOp::Shl, _, Some(by)) if by < 32 => a.times(1 << by),
                (BinOp::And, _, Some(u32::MAX)) => a,
                (BinOp::And, Some(a), Some(b)) => Sum::number(u64::from(a & b)),
                (BinOp::Or, Some(a), Some(b)) => Sum::number(u64::from(a | b)),
                _ => return None,
            };
            Some(found).filter(|s| s.parts.len() <= LONGEST)
        }
        _ => None,
    }
}

/// The address of an instruction's one access to memory, and its bytes.
pub(crate) fn address(machine: &Machine, instr: &Instr) -> Option<(Expr, u8)> {
    let mut found = Vec::new();
    for stmt in &instr.semantics {
        match stmt {
            Stmt::Store { bytes, addr, value } => {
                found.push((addr, *bytes));
                loads(addr, &mut found);
                loads(value, &mut found);
            }
            Stmt::Let { value, .. } | Stmt::Assign { value, .. } => loads(value, &mut found),
            _ => return None,
        }
    }
    let [(addr, bytes)] = found[..] else { return None };
    Some((form(machine, instr, addr)?, bytes))
}

/// Loads in an expression; of what may hold one unseen, two, so that there is not one.
fn loads<'a>(e: &'a Expr, out: &mut Vec<(&'a Expr, u8)>) {
    match e {
        Expr::Load { bytes, addr, .. } => {
            out.push((addr, *bytes));
            loads(addr, out);
        }
        Expr::Bin { a, b, .. } | Expr::Cmp { a, b, .. } => [a, b].into_iter().for_each(|e| loads(e, out)),
        Expr::Un { a, .. } | Expr::Slice { a, .. } => loads(a, out),
        Expr::Operand(_) | Expr::Imm(_) | Expr::Fixed(_) | Expr::Temp(_) | Expr::Const(_) | Expr::Pc => {}
        other => out.extend([(other, 0), (other, 0)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_the_same_terms_have_one_root() {
        let mut terms = Terms::default();
        let (p, i) = (terms.initial(1), terms.initial(2));
        let four = Sum::number(4);
        let one = Sum::of(p).plus(&Sum::of(i).times(4)).plus(&four);
        let other = Sum::of(i).plus(&Sum::number(3)).times(4).plus(&Sum::of(p));
        let (one, other) = (one.place(&mut terms), other.place(&mut terms));
        assert_eq!((one.root, one.at, other.at), (other.root, 4, 12));
        let twice = Sum::of(p).plus(&Sum::of(i).times(8)).place(&mut terms);
        assert_ne!(one.root, twice.root);
        // What is added and taken away is not there, and what goes round 2^32 either.
        assert_eq!(Sum::of(p).plus(&Sum::of(p).times(u32::MAX)).known(), Some(0));
        assert_eq!(Sum::of(p).times(1 << 31).times(2).known(), Some(0));
    }
}
