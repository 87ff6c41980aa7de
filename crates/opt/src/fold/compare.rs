//! Rules for comparisons, selects, and operations of one operand.

use super::Folder;
use ciphermill_ir::{BinOp, CmpOp, Op, Type, UnOp, Value, ops};

/// How many low bits a sign extension keeps.
pub(super) fn extends_from(op: UnOp) -> Option<u32> {
    match op {
        UnOp::SExt8 => Some(8),
        UnOp::SExt16 => Some(16),
        UnOp::SExt32 => Some(32),
        _ => None,
    }
}

impl Folder<'_> {
    pub(super) fn compare(&mut self, op: CmpOp, x: Value, y: Value) -> Option<Value> {
        let ty = self.func.ty(x);
        let bits = ty.bits();
        let truth = |folder: &mut Self, b: bool| Some(folder.make_const(u64::from(b), Type::I32));
        if x == y {
            return truth(self, op.eval(0, 0, bits));
        }
        match (self.constant(x), self.constant(y)) {
            (Some(a), Some(b)) => truth(self, op.eval(a, b, bits)),
            (Some(_), None) if matches!(op, CmpOp::Eq | CmpOp::Ne) => Some(self.cmp(op, y, x)),
            (None, Some(c)) if matches!(op, CmpOp::Eq | CmpOp::Ne) => self.equal(op, x, c, ty),
            (None, Some(c)) => self.below_const(op, x, c, ty),
            (Some(c), None) => self.above_const(op, c, y, ty),
            (None, None) => None,
        }
    }

    /// `x == c` and `x != c`.
    fn equal(&mut self, op: CmpOp, x: Value, c: u64, ty: Type) -> Option<Value> {
        let possible = self.possible(x);
        if c & !possible != 0 {
            return Some(self.make_const(u64::from(op == CmpOp::Ne), Type::I32));
        }
        if possible == 1 && ty == Type::I32 {
            // x is 0 or 1: the test is x itself or its opposite.
            if (op == CmpOp::Eq) == (c == 1) {
                return Some(x);
            }
            if c == 1 {
                let zero = self.make_const(0, ty);
                return Some(self.cmp(CmpOp::Eq, x, zero));
            }
            if let Some((Op::Cmp(inner), [a, b])) = self.def(x) {
                let (negated, swap) = inner.negated();
                return Some(if swap { self.cmp(negated, b, a) } else { self.cmp(negated, a, b) });
            }
        }
        match self.def(x)? {
            (Op::Bin(BinOp::Sub), [a, b]) if c == 0 => Some(self.cmp(op, a, b)),
            (Op::Bin(BinOp::Xor), [a, b]) if c == 0 && self.constant(b).is_none() => Some(self.cmp(op, a, b)),
            (Op::Bin(inner @ (BinOp::Add | BinOp::Xor)), [a, b]) => {
                let k = self.constant(b)?;
                let other = if inner == BinOp::Add { c.wrapping_sub(k) } else { c ^ k };
                let other = self.make_const(other, ty);
                Some(self.cmp(op, a, other))
            }
            (Op::Bin(BinOp::RotL), [a, b]) if c == 0 || c == ty.mask() => {
                self.constant(b)?;
                let other = self.make_const(c, ty);
                Some(self.cmp(op, a, other))
            }
            (Op::ZExt, [a, _]) => {
                let other = self.make_const(c, Type::I32);
                Some(self.cmp(op, a, other))
            }
            (Op::Select, _) => self.equal_select(op, x, c),
            _ => None,
        }
    }

    /// A select of two constants, compared with one of them.
    fn equal_select(&mut self, op: CmpOp, x: Value, c: u64) -> Option<Value> {
        let inst = self.func.def_inst(x)?;
        let args = self.func.insts[inst].args.clone();
        let (yes, no) = (self.constant(args[1])?, self.constant(args[2])?);
        let cond = self.func.resolve(args[0]);
        let zero = self.make_const(0, Type::I32);
        match ((yes == c) == (op == CmpOp::Eq), (no == c) == (op == CmpOp::Eq)) {
            (true, false) => Some(self.cmp(CmpOp::Ne, cond, zero)),
            (false, true) => Some(self.cmp(CmpOp::Eq, cond, zero)),
            (both, _) => Some(self.make_const(u64::from(both), Type::I32)),
        }
    }

    /// `x < c` and `x <= c`.
    fn below_const(&mut self, op: CmpOp, x: Value, c: u64, ty: Type) -> Option<Value> {
        let signed = matches!(op, CmpOp::LtS | CmpOp::LeS);
        let strict = matches!(op, CmpOp::LtU | CmpOp::LtS);
        let (least, most) = limits(signed, ty);
        if strict && c == least {
            return Some(self.make_const(0, Type::I32));
        }
        if !strict && c == most {
            return Some(self.make_const(1, Type::I32));
        }
        if !strict {
            let next = self.make_const(c.wrapping_add(1), ty);
            let lt = if signed { CmpOp::LtS } else { CmpOp::LtU };
            return Some(self.cmp(lt, x, next));
        }
        if c == least.wrapping_add(1) & ty.mask() {
            let least = self.make_const(least, ty);
            return Some(self.cmp(CmpOp::Eq, x, least));
        }
        if c == most {
            let most = self.make_const(most, ty);
            return Some(self.cmp(CmpOp::Ne, x, most));
        }
        let possible = self.possible(x);
        let positive = possible >> (ty.bits() - 1) == 0;
        if signed && positive {
            let as_signed = ops::sext(c, ty.bits());
            return match as_signed <= 0 {
                true => Some(self.make_const(0, Type::I32)),
                false => {
                    let c = self.make_const(c, ty);
                    Some(self.cmp(CmpOp::LtU, x, c))
                }
            };
        }
        let below = match signed {
            true => return None,
            false if possible < c => 1,
            false if self.at_least(x, ty) >= c => 0,
            false => return None,
        };
        Some(self.make_const(below, Type::I32))
    }

    /// `c < y` and `c <= y`.
    fn above_const(&mut self, op: CmpOp, c: u64, y: Value, ty: Type) -> Option<Value> {
        let signed = matches!(op, CmpOp::LtS | CmpOp::LeS);
        let strict = matches!(op, CmpOp::LtU | CmpOp::LtS);
        let (least, most) = limits(signed, ty);
        if strict && c == most {
            return Some(self.make_const(0, Type::I32));
        }
        if !strict && c == least {
            return Some(self.make_const(1, Type::I32));
        }
        if !strict {
            let before = self.make_const(c.wrapping_sub(1), ty);
            let lt = if signed { CmpOp::LtS } else { CmpOp::LtU };
            return Some(self.cmp(lt, before, y));
        }
        if c == least {
            let least = self.make_const(least, ty);
            return Some(self.cmp(CmpOp::Ne, y, least));
        }
        if c == most.wrapping_sub(1) & ty.mask() {
            let most = self.make_const(most, ty);
            return Some(self.cmp(CmpOp::Eq, y, most));
        }
        let possible = self.possible(y);
        let positive = possible >> (ty.bits() - 1) == 0;
        if signed && positive {
            return match ops::sext(c, ty.bits()) < 0 {
                true => Some(self.make_const(1, Type::I32)),
                false => {
                    let c = self.make_const(c, ty);
                    Some(self.cmp(CmpOp::LtU, c, y))
                }
            };
        }
        let above = match signed {
            true => return None,
            false if possible <= c => 0,
            false if self.at_least(y, ty) > c => 1,
            false => return None,
        };
        Some(self.make_const(above, Type::I32))
    }

    /// What an unsigned value is at the least: what is added last, if that cannot wrap around.
    fn at_least(&self, x: Value, ty: Type) -> u64 {
        let Some((a, k)) = self.as_bin_const(BinOp::Add, x) else { return 0 };
        if self.possible(a).checked_add(k).is_some_and(|most| most <= ty.mask()) { k } else { 0 }
    }

    pub(super) fn select(&mut self, cond: Value, x: Value, y: Value, ty: Type) -> Option<Value> {
        if x == y {
            return Some(x);
        }
        if let Some(c) = self.constant(cond) {
            return Some(if c != 0 { x } else { y });
        }
        let (plain, inverted) = self.condition(cond);
        if plain != cond {
            let (x, y) = if inverted { (y, x) } else { (x, y) };
            return Some(self.build(Op::Select, &[plain, x, y], ty));
        }
        if ty == Type::I32 {
            let zero_or_one = (self.constant(x), self.constant(y));
            if zero_or_one == (Some(1), Some(0)) {
                return Some(self.cmp(CmpOp::Ne, cond, y));
            }
            if zero_or_one == (Some(0), Some(1)) {
                return Some(self.cmp(CmpOp::Eq, cond, x));
            }
        }
        // `a == b ? a : b` is b, `a != b ? a : b` is a.
        if let Some((Op::Cmp(op @ (CmpOp::Eq | CmpOp::Ne)), [a, b])) = self.def(cond)
            && ((a == x && b == y) || (a == y && b == x))
        {
            return Some(if op == CmpOp::Eq { y } else { x });
        }
        None
    }

    pub(super) fn unary(&mut self, op: UnOp, x: Value, ty: Type) -> Option<Value> {
        if let Some(c) = self.constant(x) {
            return Some(self.make_const(op.eval(c, ty.bits()), ty));
        }
        if op == UnOp::Bswap {
            return match self.def(x)? {
                (Op::Un(UnOp::Bswap), [a, _]) => Some(a),
                _ => None,
            };
        }
        let from = extends_from(op)?;
        if self.possible(x) >> (from - 1) == 0 {
            return Some(x);
        }
        match self.def(x)? {
            // An extension from fewer bits has extended this one already;
            // one from more leaves the low bits alone.
            (Op::Un(inner), [a, _]) => match extends_from(inner)? {
                inner if inner <= from => Some(x),
                _ => Some(self.build(Op::Un(op), &[a], ty)),
            },
            (Op::Bin(BinOp::And), [a, b]) => {
                let low = ops::mask(from);
                (self.constant(b)? & low == low).then(|| self.build(Op::Un(op), &[a], ty))
            }
            (Op::Load(access), _) if access.signed && u32::from(access.bytes) * 8 <= from => Some(x),
            (Op::ZExt, [a, _]) if op == UnOp::SExt32 => Some(self.build(Op::SExt, &[a], ty)),
            (Op::SExt, _) if op == UnOp::SExt32 => Some(x),
            _ => None,
        }
    }

    pub(super) fn wrap(&mut self, x: Value) -> Option<Value> {
        if let Some(c) = self.constant(x) {
            return Some(self.make_const(c, Type::I32));
        }
        match self.def(x)? {
            (Op::ZExt | Op::SExt, [a, _]) => Some(a),
            _ => None,
        }
    }

    pub(super) fn sext(&mut self, x: Value) -> Option<Value> {
        if let Some(c) = self.constant(x) {
            return Some(self.make_const(ops::sext(c, 32) as u64, Type::I64));
        }
        (self.possible(x) >> 31 == 0).then(|| self.build(Op::ZExt, &[x], Type::I64))
    }
}

/// The least and the largest value of a type, as bits.
fn limits(signed: bool, ty: Type) -> (u64, u64) {
    let sign = 1u64 << (ty.bits() - 1);
    if signed { (sign, sign - 1) } else { (0, ty.mask()) }
}
