//! The forms in which values are compared, and how semantics and programs are written in one.
//!
//! A form answers an operation with a value only where it has one for certain. There are sums of
//! tables ([`super::sum`]), words as polynomials over bits ([`super::quadratic`]) and words as
//! polynomials modulo a power of two ([`super::residue`]); the walks through semantics and
//! through a program's operations are the same for all.

use ciphermill_ir::{BinOp, CmpOp, Func, InstData, Op, UnOp};
use ciphermill_machine::Table;
use ciphermill_machine::gf2::BitMatrix;
use ciphermill_machine::sem::{Dest, Expr, Stmt};
use std::collections::BTreeMap;

/// Values of one form. Operands have no bits but those that an operation computes in.
pub trait Form: Clone {
    /// The lower bits, with zeros above.
    fn within(&self, bits: u32) -> Self;
    fn bin(op: BinOp, bits: u32, a: &Self, b: &Self) -> Option<Self>;
    fn un(op: UnOp, bits: u32, a: &Self) -> Option<Self>;
    /// 0 or 1.
    fn compare(op: CmpOp, bits: u32, a: &Self, b: &Self) -> Option<Self>;
    fn select(cond: &Self, then: &Self, els: &Self) -> Option<Self>;
    /// `width` bits from bit `low` on.
    fn slice(a: &Self, low: u32, width: u32) -> Option<Self>;
    /// The lower 32 bits as a word of `to` bits, with zeros or with their sign above.
    fn extended(a: &Self, signed: bool, to: u32) -> Option<Self>;

    fn linear(_matrix: &BitMatrix, _a: &Self) -> Option<Self> {
        None
    }

    fn table(_table: &Table, _index: &Self) -> Option<Self> {
        None
    }
}

/// The operand that is assigned, and what: None unless it is one and has the form.
/// `leaf` gives the operands, immediates, registers and constants, words of so many bits.
pub fn assigned<F: Form>(
    semantics: &[Stmt],
    tables: &[Table],
    word_bits: u32,
    leaf: &dyn Fn(&Expr) -> Option<F>,
) -> Option<(usize, F)> {
    let all = all_assigned(semantics, tables, word_bits, &|e, _| leaf(e))?;
    let mut results = all.into_iter();
    results.next().filter(|_| results.next().is_none())
}

/// The operands that are assigned, and what: None unless all have the form. `leaf` is given what is multiplied by a matrix
/// in registers, too.
pub fn all_assigned<F: Form>(
    semantics: &[Stmt],
    tables: &[Table],
    word_bits: u32,
    leaf: &dyn Fn(&Expr, Option<F>) -> Option<F>,
) -> Option<BTreeMap<usize, F>> {
    let mut walk = Walk { tables, word_bits, leaf, temps: Vec::new() };
    let mut results = BTreeMap::new();
    for stmt in semantics {
        match stmt {
            Stmt::Let { value, .. } => {
                let value = walk.value(value)?;
                walk.temps.push(value);
            }
            Stmt::Assign { dest: Dest::Operand(d), value } if !results.contains_key(d) => {
                results.insert(*d, walk.value(value)?);
            }
            _ => return None,
        }
    }
    Some(results)
}

struct Walk<'a, F> {
    tables: &'a [Table],
    word_bits: u32,
    leaf: &'a dyn Fn(&Expr, Option<F>) -> Option<F>,
    temps: Vec<F>,
}

impl<F: Form> Walk<'_, F> {
    fn value(&self, e: &Expr) -> Option<F> {
        let of = |e: &Expr, bits: &u8| Some(self.value(e)?.within((*bits).into()));
        let value = match e {
            Expr::Operand(_) | Expr::Imm(_) | Expr::Fixed(_) | Expr::Const(_) => (self.leaf)(e, None),
            Expr::MatVec { a, .. } => (self.leaf)(e, Some(self.value(a)?)),
            Expr::Temp(i) => self.temps.get(*i).cloned(),
            Expr::Bin { op, bits, a, b } => F::bin(*op, (*bits).into(), &of(a, bits)?, &of(b, bits)?),
            Expr::Un { op, bits, a } => F::un(*op, (*bits).into(), &of(a, bits)?),
            Expr::Cmp { op, bits, a, b } => F::compare(*op, (*bits).into(), &of(a, bits)?, &of(b, bits)?),
            Expr::Select { cond, then, els } => F::select(&self.value(cond)?, &self.value(then)?, &self.value(els)?),
            Expr::Slice { a, lo, width } => F::slice(&self.value(a)?, (*lo).into(), (*width).into()),
            Expr::Linear { matrix, a } => F::linear(matrix, &self.value(a)?),
            Expr::Table { table, index } => F::table(self.tables.get(*table)?, &self.value(index)?),
            _ => None,
        };
        Some(value?.within(self.word_bits))
    }
}

/// What an operation of a program gives of these operands.
pub fn operation<F: Form>(func: &Func, data: &InstData, args: &[&F]) -> Option<F> {
    let &[result] = &data.results[..] else { return None };
    let bits = || func.ty(func.resolve(data.args[0])).bits();
    let to = func.ty(result).bits();
    match (data.op, args) {
        (Op::Bin(op), [a, b]) => F::bin(op, bits(), a, b),
        (Op::Un(op), [a]) => F::un(op, bits(), a),
        (Op::Cmp(op), [a, b]) => Some(F::compare(op, bits(), a, b)?.within(to)),
        (Op::Select, [c, a, b]) => F::select(c, a, b),
        (Op::Wrap | Op::ZExt, [a]) => F::extended(a, false, to),
        (Op::SExt, [a]) => F::extended(a, true, to),
        _ => None,
    }
}
