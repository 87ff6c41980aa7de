//! Rules for shifts and rotates, and rotates written as two shifts.

use super::Folder;
use ciphermill_ir::{BinOp, Op, Type, UnOp, Value};

/// Masks up to this fit the immediate field of every machine we know of, so
/// that "shift and mask" beats "shift up and down".
const SMALL_MASK: u64 = 0x7ff;

impl Folder<'_> {
    pub(super) fn shift(&mut self, op: BinOp, x: Value, y: Value, ty: Type) -> Option<Value> {
        if self.constant(x) == Some(0) {
            return Some(x);
        }
        let width = u64::from(ty.bits());
        let Some(n) = self.constant(y) else { return self.variable_amount(op, x, y, ty) };
        if n % width == 0 {
            return Some(x);
        }
        if n >= width {
            return Some(self.bin_const(op, x, n % width, ty));
        }
        if let Some((a, n1)) = self.as_bin_const(op, x) {
            let sum = n1 % width + n;
            return Some(match op {
                BinOp::ShrS => self.bin_const(op, a, sum.min(width - 1), ty),
                _ if sum >= width => self.make_const(0, ty),
                _ => self.bin_const(op, a, sum, ty),
            });
        }
        match op {
            BinOp::Shl => self.shl(x, n, ty),
            BinOp::ShrU => self.shr_u(x, n, ty),
            _ => self.shr_s(x, n, ty),
        }
    }

    fn shl(&mut self, x: Value, n: u64, ty: Type) -> Option<Value> {
        let width = u64::from(ty.bits());
        if self.possible(x) << n & ty.mask() == 0 {
            return Some(self.make_const(0, ty));
        }
        if let Some((a, n1)) = self.as_bin_const(BinOp::ShrU, x)
            && n1 % width == n
        {
            return Some(self.bin_const(BinOp::And, a, ty.mask() << n, ty));
        }
        // A mask that only clears what the shift drops.
        let (a, c) = self.as_bin_const(BinOp::And, x)?;
        let kept = ty.mask() >> n;
        (self.possible(a) & kept & !c == 0).then(|| self.bin_const(BinOp::Shl, a, n, ty))
    }

    fn shr_u(&mut self, x: Value, n: u64, ty: Type) -> Option<Value> {
        let width = u64::from(ty.bits());
        if self.possible(x) >> n == 0 {
            return Some(self.make_const(0, ty));
        }
        if let Some((a, c)) = self.as_bin_const(BinOp::And, x) {
            let field = self.bin_const(BinOp::ShrU, a, n, ty);
            return Some(self.bin_const(BinOp::And, field, c >> n, ty));
        }
        if let Some(field) = self.field_of_rotate(x, n, ty.mask() >> n, ty) {
            return Some(field);
        }
        let (a, n1) = self.as_bin_const(BinOp::Shl, x)?;
        let (n1, mask) = (n1 % width, ty.mask() >> n);
        let lossless = self.possible(a) << n1 & ty.mask() == self.possible(a) << n1
            && self.possible(a).leading_zeros() >= n1 as u32;
        if n1 == n {
            return Some(self.bin_const(BinOp::And, a, mask, ty));
        }
        if lossless {
            let (op, by) = if n1 > n { (BinOp::Shl, n1 - n) } else { (BinOp::ShrU, n - n1) };
            return Some(self.bin_const(op, a, by, ty));
        }
        if n1 < n && mask <= SMALL_MASK {
            let field = self.bin_const(BinOp::ShrU, a, n - n1, ty);
            return Some(self.bin_const(BinOp::And, field, mask, ty));
        }
        None
    }

    /// `x >> n & mask` of a rotate `x` by bytes, cut out of the word before it is turned: bits that lie side by side there,
    /// too. By other numbers of bits it stays: bytes of what is turned are none of the word's, and machines have
    /// instructions and addresses for bytes.
    pub(super) fn field_of_rotate(&mut self, x: Value, n: u64, mask: u64, ty: Type) -> Option<Value> {
        let width = u64::from(ty.bits());
        let (word, left) = self.as_bin_const(BinOp::RotL, x)?;
        let from = (n + width - left % width) % width;
        if left % 8 != 0 || mask > SMALL_MASK || mask > ty.mask() >> from {
            return None;
        }
        let field = self.bin_const(BinOp::ShrU, word, from, ty);
        Some(self.bin_const(BinOp::And, field, mask, ty))
    }

    fn shr_s(&mut self, x: Value, n: u64, ty: Type) -> Option<Value> {
        let width = u64::from(ty.bits());
        if self.possible(x) >> (width - 1) == 0 {
            return Some(self.bin_const(BinOp::ShrU, x, n, ty));
        }
        let (a, n1) = self.as_bin_const(BinOp::Shl, x)?;
        if n1 % width != n {
            return None;
        }
        let op = match width - n {
            8 => UnOp::SExt8,
            16 => UnOp::SExt16,
            32 => UnOp::SExt32,
            _ => return None,
        };
        Some(self.build(Op::Un(op), &[a], ty))
    }

    /// Amounts count modulo the width: masks and multiples of it go.
    fn variable_amount(&mut self, op: BinOp, x: Value, y: Value, ty: Type) -> Option<Value> {
        let low = u64::from(ty.bits()) - 1;
        for inner in [BinOp::And, BinOp::Add] {
            if let Some((a, c)) = self.as_bin_const(inner, y)
                && c & low == if inner == BinOp::And { low } else { 0 }
            {
                return Some(self.bin(op, x, a, ty));
            }
        }
        // c - a, with c a multiple of the width but not zero.
        if let Some((a, b)) = self.as_bin(BinOp::Sub, y)
            && let Some(c) = self.constant(a)
            && c != 0
            && c & low == 0
        {
            let zero = self.make_const(0, ty);
            let negated = self.bin(BinOp::Sub, zero, b, ty);
            return Some(self.bin(op, x, negated, ty));
        }
        None
    }

    pub(super) fn rotate(&mut self, op: BinOp, x: Value, y: Value, ty: Type) -> Option<Value> {
        let width = u64::from(ty.bits());
        if let Some(c) = self.constant(x)
            && (c == 0 || c == ty.mask())
        {
            return Some(x);
        }
        if let Some(n) = self.constant(y) {
            let left = if op == BinOp::RotL { n % width } else { (width - n % width) % width };
            if left == 0 {
                return Some(x);
            }
            if op == BinOp::RotR || left != n {
                return Some(self.bin_const(BinOp::RotL, x, left, ty));
            }
            let (a, n1) = self.as_bin_const(BinOp::RotL, x)?;
            return Some(self.bin_const(BinOp::RotL, a, (n1 + left) % width, ty));
        }
        if let Some((zero, amount)) = self.as_bin(BinOp::Sub, y)
            && self.constant(zero) == Some(0)
        {
            let other = if op == BinOp::RotL { BinOp::RotR } else { BinOp::RotL };
            return Some(self.bin(other, x, amount, ty));
        }
        self.variable_amount(op, x, y, ty)
    }

    /// `(x << n) | (x >>u (width - n))`, the halves in either order. With
    /// variable amounts only `or` is a rotate: by 0, both halves are `x`.
    pub(super) fn rotate_of_halves(&mut self, a: Value, b: Value, ty: Type, or: bool) -> Option<Value> {
        let width = u64::from(ty.bits());
        let (left, right) = match (self.as_bin(BinOp::Shl, a), self.as_bin(BinOp::Shl, b)) {
            (Some(l), None) => (l, self.as_bin(BinOp::ShrU, b)?),
            (None, Some(l)) => (l, self.as_bin(BinOp::ShrU, a)?),
            _ => return None,
        };
        let ((x, n), (x2, m)) = (left, right);
        if x != x2 {
            return None;
        }
        if let (Some(n), Some(m)) = (self.constant(n), self.constant(m)) {
            let (n, m) = (n % width, m % width);
            return (n != 0 && n + m == width).then(|| self.bin_const(BinOp::RotL, x, n, ty));
        }
        let negates = |p: Value, q: Value| {
            let (c, v) = self.as_bin(BinOp::Sub, p)?;
            (v == q && self.constant(c)? % width == 0).then_some(())
        };
        if or && negates(m, n).is_some() {
            return Some(self.bin(BinOp::RotL, x, n, ty));
        }
        if or && negates(n, m).is_some() {
            return Some(self.bin(BinOp::RotR, x, m, ty));
        }
        None
    }
}
