//! Rules for sums, products and divisions.

use super::Folder;
use ciphermill_ir::{BinOp, Op, Type, Value};

impl Folder<'_> {
    pub(super) fn add(&mut self, x: Value, y: Value, ty: Type) -> Option<Value> {
        if let Some(c) = self.constant(y) {
            if c == 0 {
                return Some(x);
            }
            if let Some((a, c1)) = self.as_bin_const(BinOp::Add, x) {
                return Some(self.bin_const(BinOp::Add, a, c1.wrapping_add(c), ty));
            }
            if let Some((a, b)) = self.as_bin(BinOp::Sub, x)
                && let Some(c1) = self.constant(a)
            {
                let sum = self.make_const(c1.wrapping_add(c), ty);
                return Some(self.bin(BinOp::Sub, sum, b, ty));
            }
            // -x is the complement plus one.
            if c == 1
                && let Some((a, m)) = self.as_bin_const(BinOp::Xor, x)
                && m == ty.mask()
            {
                let zero = self.make_const(0, ty);
                return Some(self.bin(BinOp::Sub, zero, a, ty));
            }
            return None;
        }
        if x == y {
            return Some(self.bin_const(BinOp::Shl, x, 1, ty));
        }
        for (a, b) in [(x, y), (y, x)] {
            if let Some((p, q)) = self.as_bin(BinOp::Sub, b) {
                if q == a {
                    return Some(p);
                }
                if self.constant(p) == Some(0) {
                    return Some(self.bin(BinOp::Sub, a, q, ty));
                }
            }
        }
        self.rotate_of_halves(x, y, ty, false)
    }

    pub(super) fn sub(&mut self, x: Value, y: Value, ty: Type) -> Option<Value> {
        if let Some(c) = self.constant(y) {
            return Some(self.bin_const(BinOp::Add, x, c.wrapping_neg(), ty));
        }
        if x == y {
            return Some(self.make_const(0, ty));
        }
        if let Some((p, q)) = self.as_bin(BinOp::Add, x) {
            if p == y {
                return Some(q);
            }
            if q == y {
                return Some(p);
            }
        }
        if let Some((p, q)) = self.as_bin(BinOp::Add, y)
            && (p == x || q == x)
        {
            let zero = self.make_const(0, ty);
            return Some(self.bin(BinOp::Sub, zero, if p == x { q } else { p }, ty));
        }
        if let Some((p, q)) = self.as_bin(BinOp::Sub, y) {
            if p == x {
                return Some(q);
            }
            if self.constant(p) == Some(0) {
                return Some(self.bin(BinOp::Add, x, q, ty));
            }
            if self.constant(x) == Some(0) {
                return Some(self.bin(BinOp::Sub, q, p, ty));
            }
        }
        if let Some((p, q)) = self.as_bin(BinOp::Sub, x)
            && p == y
        {
            let zero = self.make_const(0, ty);
            return Some(self.bin(BinOp::Sub, zero, q, ty));
        }
        if let Some(c) = self.constant(x)
            && let Some((a, c1)) = self.as_bin_const(BinOp::Add, y)
        {
            let rest = self.make_const(c.wrapping_sub(c1), ty);
            return Some(self.bin(BinOp::Sub, rest, a, ty));
        }
        None
    }

    pub(super) fn mul(&mut self, op: BinOp, x: Value, c: u64, ty: Type) -> Option<Value> {
        let width = u64::from(ty.bits());
        let log = c.is_power_of_two().then(|| u64::from(c.trailing_zeros()));
        match op {
            _ if c == 0 => Some(self.make_const(0, ty)),
            BinOp::Mul => match log {
                Some(0) => Some(x),
                Some(k) => Some(self.bin_const(BinOp::Shl, x, k, ty)),
                None if c == ty.mask() => {
                    let zero = self.make_const(0, ty);
                    Some(self.bin(BinOp::Sub, zero, x, ty))
                }
                None => {
                    if let Some((a, c1)) = self.as_bin_const(BinOp::Mul, x) {
                        return Some(self.bin_const(BinOp::Mul, a, c1.wrapping_mul(c), ty));
                    }
                    let (a, k) = self.as_bin_const(BinOp::Shl, x)?;
                    Some(self.bin_const(BinOp::Mul, a, c << (k % width), ty))
                }
            },
            BinOp::MulHiU => match log? {
                0 => Some(self.make_const(0, ty)),
                k => Some(self.bin_const(BinOp::ShrU, x, width - k, ty)),
            },
            // The sign bit alone is the smallest number, not a power of two.
            _ => match log? {
                k if k == width - 1 => None,
                0 => Some(self.bin_const(BinOp::ShrS, x, width - 1, ty)),
                k => Some(self.bin_const(BinOp::ShrS, x, width - k, ty)),
            },
        }
    }

    /// Division by a constant that is a power of two. Signed division rounds
    /// towards zero, so a negative dividend gets `2^k - 1` added first.
    pub(super) fn div(&mut self, op: BinOp, x: Value, c: u64, ty: Type) -> Option<Value> {
        let width = u64::from(ty.bits());
        let signed = matches!(op, BinOp::DivS | BinOp::RemS);
        if signed && op == BinOp::RemS && c == ty.mask() {
            return Some(self.make_const(0, ty));
        }
        if !c.is_power_of_two() || (signed && u64::from(c.trailing_zeros()) == width - 1) {
            return None;
        }
        let k = u64::from(c.trailing_zeros());
        match op {
            BinOp::DivU => return Some(self.bin_const(BinOp::ShrU, x, k, ty)),
            BinOp::RemU => return Some(self.bin_const(BinOp::And, x, c - 1, ty)),
            BinOp::DivS if k == 0 => return Some(x),
            _ if k == 0 => return Some(self.make_const(0, ty)),
            _ => {}
        }
        let sign = self.bin_const(BinOp::ShrS, x, width - 1, ty);
        let bias = self.bin_const(BinOp::ShrU, sign, width - k, ty);
        let sum = self.build(Op::Bin(BinOp::Add), &[x, bias], ty);
        if op == BinOp::DivS {
            return Some(self.bin_const(BinOp::ShrS, sum, k, ty));
        }
        let low = self.bin_const(BinOp::And, sum, c - 1, ty);
        Some(self.bin(BinOp::Sub, low, bias, ty))
    }
}
