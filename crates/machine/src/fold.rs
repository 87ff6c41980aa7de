//! Building expressions in one canonical form.
//!
//! Everything that makes a [`Expr`] from text goes through here, so that one
//! meaning has one shape wherever possible: operations on constants are
//! carried out, the constant of a commuting operation stands on the right,
//! `~x` is `x ^ -1`, `-x` is `0 - x`, `a >u b` is `b <u a`, `x[hi:lo]` is a
//! [`Expr::Slice`], an extension that changes nothing vanishes.

use crate::gf2::BitMatrix;
use crate::sem::Expr;
use ciphermill_ir::{BinOp, CmpOp, UnOp};
use std::sync::Arc;

/// All ones in `bits` bits.
pub(crate) fn mask(bits: u8) -> u64 {
    ciphermill_ir::ops::mask(u32::from(bits))
}

pub fn bin(op: BinOp, bits: u8, a: Expr, b: Expr) -> Expr {
    if let (Expr::Const(x), Expr::Const(y)) = (&a, &b)
        && let Some(value) = op.eval(*x, *y, u32::from(bits))
    {
        return Expr::Const(value);
    }
    let (a, b) = if op.commutes() && matches!(a, Expr::Const(_)) { (b, a) } else { (a, b) };
    Expr::Bin { op, bits, a: Box::new(a), b: Box::new(b) }
}

pub fn un(op: UnOp, bits: u8, a: Expr) -> Expr {
    let whole = match op {
        UnOp::SExt8 => 8,
        UnOp::SExt16 => 16,
        UnOp::SExt32 => 32,
        UnOp::Clz | UnOp::Ctz | UnOp::Popcnt | UnOp::Bswap => u8::MAX,
    };
    match a {
        Expr::Const(x) => Expr::Const(op.eval(x, u32::from(bits))),
        _ if whole == bits => a,
        _ => Expr::Un { op, bits, a: Box::new(a) },
    }
}

pub fn cmp(op: CmpOp, bits: u8, a: Expr, b: Expr) -> Expr {
    match (&a, &b) {
        (Expr::Const(x), Expr::Const(y)) => Expr::Const(u64::from(op.eval(*x, *y, u32::from(bits)))),
        (Expr::Const(_), _) if matches!(op, CmpOp::Eq | CmpOp::Ne) => {
            Expr::Cmp { op, bits, a: Box::new(b), b: Box::new(a) }
        }
        _ => Expr::Cmp { op, bits, a: Box::new(a), b: Box::new(b) },
    }
}

pub fn select(cond: Expr, then: Expr, els: Expr) -> Expr {
    match cond {
        Expr::Const(0) => els,
        Expr::Const(_) => then,
        _ => Expr::Select { cond: Box::new(cond), then: Box::new(then), els: Box::new(els) },
    }
}

/// Bits `lo + width - 1 ..= lo` of `a`, which has `word` bits.
pub fn slice(a: Expr, lo: u8, width: u8, word: u8) -> Expr {
    match a {
        Expr::Const(x) => Expr::Const((x >> lo) & mask(width)),
        _ if lo == 0 && width == word => a,
        _ => Expr::Slice { a: Box::new(a), lo, width },
    }
}

/// A matrix times a value.
pub fn linear(matrix: Arc<BitMatrix>, a: Expr) -> Expr {
    match a {
        Expr::Const(x) => Expr::Const(matrix.apply(x)),
        _ => Expr::Linear { matrix, a: Box::new(a) },
    }
}

impl Expr {
    /// Call `f` on this node and every node below it.
    pub fn walk(&self, f: &mut impl FnMut(&Expr)) {
        f(self);
        self.children(|child| child.walk(f));
    }

    /// Call `f` on each direct operand.
    pub fn children(&self, mut f: impl FnMut(&Expr)) {
        match self {
            Expr::Operand(_) | Expr::Imm(_) | Expr::Fixed(_) | Expr::Temp(_) | Expr::Const(_) | Expr::Pc => {}
            Expr::Bin { a, b, .. }
            | Expr::Cmp { a, b, .. }
            | Expr::FlagsSub { a, b, .. }
            | Expr::FlagsAdd { a, b, .. } => {
                f(a);
                f(b);
            }
            Expr::Un { a, .. }
            | Expr::Slice { a, .. }
            | Expr::Linear { a, .. }
            | Expr::MatVec { a, .. }
            | Expr::FlagsLogic { a, .. } => f(a),
            Expr::FlagsTest { flags, .. } => f(flags),
            Expr::Load { addr, .. } => f(addr),
            Expr::Table { index, .. } => f(index),
            Expr::Select { cond, then, els } => {
                f(cond);
                f(then);
                f(els);
            }
        }
    }

    /// The same tree with each direct operand replaced by `f` of it.
    pub fn map_children(&self, mut f: impl FnMut(&Expr) -> Expr) -> Expr {
        let mut boxed = |e: &Expr| Box::new(f(e));
        match self {
            Expr::Operand(_) | Expr::Imm(_) | Expr::Fixed(_) | Expr::Temp(_) | Expr::Const(_) | Expr::Pc => {
                self.clone()
            }
            Expr::Bin { op, bits, a, b } => Expr::Bin { op: *op, bits: *bits, a: boxed(a), b: boxed(b) },
            Expr::Cmp { op, bits, a, b } => Expr::Cmp { op: *op, bits: *bits, a: boxed(a), b: boxed(b) },
            Expr::Un { op, bits, a } => Expr::Un { op: *op, bits: *bits, a: boxed(a) },
            Expr::Select { cond, then, els } => Expr::Select { cond: boxed(cond), then: boxed(then), els: boxed(els) },
            Expr::Slice { a, lo, width } => Expr::Slice { a: boxed(a), lo: *lo, width: *width },
            Expr::Load { bytes, signed, addr } => Expr::Load { bytes: *bytes, signed: *signed, addr: boxed(addr) },
            Expr::Table { table, index } => Expr::Table { table: *table, index: boxed(index) },
            Expr::Linear { matrix, a } => Expr::Linear { matrix: matrix.clone(), a: boxed(a) },
            Expr::MatVec { matrix, a } => Expr::MatVec { matrix: *matrix, a: boxed(a) },
            Expr::FlagsSub { bits, a, b } => Expr::FlagsSub { bits: *bits, a: boxed(a), b: boxed(b) },
            Expr::FlagsAdd { bits, a, b } => Expr::FlagsAdd { bits: *bits, a: boxed(a), b: boxed(b) },
            Expr::FlagsLogic { bits, a } => Expr::FlagsLogic { bits: *bits, a: boxed(a) },
            Expr::FlagsTest { op, flags } => Expr::FlagsTest { op: *op, flags: boxed(flags) },
        }
    }

    /// The same value with every slice written as a shift and a mask in
    /// `word` bits, the form in which programs come to the selector.
    pub fn without_slices(&self, word: u8) -> Expr {
        let inner = self.map_children(|child| child.without_slices(word));
        let Expr::Slice { a, lo, width } = inner else { return inner };
        let shifted = if lo == 0 { *a } else { bin(BinOp::ShrU, word, *a, Expr::Const(u64::from(lo))) };
        if lo + width >= word { shifted } else { bin(BinOp::And, word, shifted, Expr::Const(mask(width))) }
    }

    /// True when no register, memory, table or address stands in it.
    pub fn is_constant_of_immediates(&self) -> bool {
        let mut yes = true;
        self.walk(&mut |e| {
            yes &= !matches!(
                e,
                Expr::Operand(_)
                    | Expr::Fixed(_)
                    | Expr::Temp(_)
                    | Expr::Pc
                    | Expr::Load { .. }
                    | Expr::Table { .. }
                    | Expr::Linear { .. }
                    | Expr::MatVec { .. }
            );
        });
        yes
    }
}
