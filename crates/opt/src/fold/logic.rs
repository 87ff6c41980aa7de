//! Rules for and, or, xor. Known zero bits do much of the work: a mask that
//! keeps all a value can have is no mask.

use super::Folder;
use ciphermill_ir::{BinOp, CmpOp, Op, Type, Value, ops};

impl Folder<'_> {
    pub(super) fn and(&mut self, x: Value, y: Value, ty: Type) -> Option<Value> {
        if x == y {
            return Some(x);
        }
        let Some(c) = self.constant(y) else { return self.absorbed(BinOp::Or, x, y) };
        let bits = self.possible(x);
        if bits & !c == 0 {
            return Some(x);
        }
        if bits & c == 0 {
            return Some(self.make_const(0, ty));
        }
        match self.def(x)? {
            (Op::Bin(BinOp::And), [a, b]) => {
                let c1 = self.constant(b)?;
                Some(self.bin_const(BinOp::And, a, c & c1, ty))
            }
            // One side of an or or xor that the mask clears goes.
            (Op::Bin(BinOp::Or | BinOp::Xor), [a, b]) => {
                let kept = if self.possible(b) & c == 0 {
                    a
                } else if self.possible(a) & c == 0 {
                    b
                } else {
                    return None;
                };
                Some(self.bin(BinOp::And, kept, y, ty))
            }
            // Of what is added to low bits no more counts than as many.
            (Op::Bin(BinOp::Add), [a, b]) if c & c.wrapping_add(1) == 0 => {
                let added = self.constant(b)?;
                let (low, whole) = (added & c, ops::sext(added, ty.bits()).unsigned_abs());
                let sum = (low < whole).then(|| self.bin_const(BinOp::Add, a, low, ty))?;
                Some(self.bin(BinOp::And, sum, y, ty))
            }
            (Op::Bin(BinOp::RotL), _) => self.field_of_rotate(x, 0, c, ty),
            (Op::Bin(BinOp::ShrU), [a, b]) => {
                let n = self.constant(b)?;
                self.field_of_rotate(a, n, c, ty)
            }
            // Low bits of a sign extension are those of its operand.
            (Op::Un(op), [a, _]) => {
                let from = super::compare::extends_from(op)?;
                (c >> from == 0).then(|| self.bin(BinOp::And, a, y, ty))
            }
            _ => None,
        }
    }

    /// `x & (x | y)` and `x | (x & y)` are `x`.
    fn absorbed(&self, inner: BinOp, x: Value, y: Value) -> Option<Value> {
        [(x, y), (y, x)].into_iter().find_map(|(a, b)| {
            let (p, q) = self.as_bin(inner, b)?;
            (p == a || q == a).then_some(a)
        })
    }

    pub(super) fn or(&mut self, x: Value, y: Value, ty: Type) -> Option<Value> {
        if x == y {
            return Some(x);
        }
        if let Some(c) = self.constant(y) {
            if c == 0 {
                return Some(x);
            }
            if c == ty.mask() {
                return Some(y);
            }
            if let Some((a, c1)) = self.as_bin_const(BinOp::Or, x) {
                return Some(self.bin_const(BinOp::Or, a, c | c1, ty));
            }
            return None;
        }
        if let Some(v) = self.absorbed(BinOp::And, x, y) {
            return Some(v);
        }
        if let (Some((a, c1)), Some((b, c2))) = (self.as_bin_const(BinOp::And, x), self.as_bin_const(BinOp::And, y))
            && a == b
        {
            return Some(self.bin_const(BinOp::And, a, c1 | c2, ty));
        }
        self.rotate_of_halves(x, y, ty, true).or_else(|| self.byte_permutation(x, y, ty))
    }

    pub(super) fn xor(&mut self, x: Value, y: Value, ty: Type) -> Option<Value> {
        if x == y {
            return Some(self.make_const(0, ty));
        }
        if let Some(c) = self.constant(y) {
            if c == 0 {
                return Some(x);
            }
            if let Some((a, c1)) = self.as_bin_const(BinOp::Xor, x) {
                return Some(self.bin_const(BinOp::Xor, a, c ^ c1, ty));
            }
            if c == 1 && ty == Type::I32 && self.possible(x) == 1 {
                let zero = self.make_const(0, ty);
                return Some(self.cmp(CmpOp::Eq, x, zero));
            }
            return None;
        }
        for (a, b) in [(x, y), (y, x)] {
            if let Some((p, q)) = self.as_bin(BinOp::Xor, b) {
                if p == a {
                    return Some(q);
                }
                if q == a {
                    return Some(p);
                }
            }
        }
        self.rotate_of_halves(x, y, ty, false)
    }
}
