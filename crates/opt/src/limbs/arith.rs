//! Sums, differences and products of limbs.

use super::emit::Emit;
use super::width::Limbs;
use ciphermill_ir::{BinOp, Chain, UnOp, Value};

impl Emit {
    /// The sum, as many limbs as the operands have; a carry out of them is lost.
    pub fn add(&mut self, a: &[Value], b: &[Value]) -> Limbs {
        let mut out: Limbs = Limbs::new();
        for (&a, &b) in a.iter().zip(b) {
            match (self.is_zero(a), self.is_zero(b)) {
                (_, true) => out.push(a),
                (true, _) => out.push(b),
                _ => break,
            }
        }
        let from = out.len();
        if from < a.len() {
            // A constant stands on the right.
            let constant = a[from..].iter().all(|&v| self.constant_of(v).is_some());
            let (x, y) = if constant { (b, a) } else { (a, b) };
            out.extend(self.chain(Chain::Add, &[&x[from..], &y[from..]].concat()));
        }
        out
    }

    pub fn sub(&mut self, a: &[Value], b: &[Value]) -> Limbs {
        let from = b.iter().position(|&v| !self.is_zero(v)).unwrap_or(b.len());
        let mut out: Limbs = a[..from].iter().copied().collect();
        if from < a.len() {
            out.extend(self.chain(Chain::Sub, &[&a[from..], &b[from..]].concat()));
        }
        out
    }

    /// The lowest `end` limbs of the product.
    pub fn mul(&mut self, a: &[Value], b: &[Value], end: usize) -> Limbs {
        let zero = self.constant(0);
        let mut sum: Limbs = std::iter::repeat_n(zero, end).collect();
        let mut pairs: Vec<(usize, usize)> = (0..a.len()).flat_map(|i| (0..b.len()).map(move |j| (i, j))).collect();
        pairs.retain(|&(i, j)| i + j < end && !self.is_zero(a[i]) && !self.is_zero(b[j]));
        // Products that do not overlap come first: they are put in place without a sum.
        pairs.sort_by_key(|&(i, j)| (i != j, i + j, i));
        for (i, j) in pairs {
            let product = self.chain(Chain::Mul, &[a[i], b[j]]);
            let mut part: Limbs = std::iter::repeat_n(zero, end).collect();
            part[i + j] = product[0];
            if i + j + 1 < end {
                part[i + j + 1] = product[1];
            }
            sum = self.add(&sum, &part);
        }
        sum
    }

    /// The upper half of a product of two whole values, signed or not.
    pub fn mul_high(&mut self, op: BinOp, a: &[Value], b: &[Value]) -> Limbs {
        let whole = self.mul(a, b, 2 * a.len());
        let mut high: Limbs = whole[a.len()..].iter().copied().collect();
        if op == BinOp::MulHiS {
            // A negative operand counts too much: the other is taken off the top.
            for (x, y) in [(a, b), (b, a)] {
                let sign = self.sign(x[x.len() - 1]);
                let part: Vec<Value> = y.iter().map(|&y| self.bitwise(BinOp::And, y, sign)).collect();
                high = self.sub(&high, &part);
            }
        }
        high
    }

    /// A limb of copies of a limb's sign.
    pub fn sign(&mut self, top: Value) -> Value {
        let most = self.constant(self.ones() >> 1);
        self.chain(Chain::Below, &[most, top])[0]
    }

    /// Extensions of signs and bytes reversed; the others are gone before.
    pub fn unary(&mut self, op: UnOp, a: &[Value]) -> Limbs {
        match op {
            UnOp::SExt8 | UnOp::SExt16 => {
                let part = if op == UnOp::SExt8 { 8 } else { 16 };
                self.extended(a, part)
            }
            _ if self.bits == 8 => a.iter().rev().copied().collect(),
            _ => a.iter().rev().map(|&v| self.chain(Chain::Swap, &[v])[0]).collect(),
        }
    }

    /// The lowest `part` bits, their sign extended to whole limbs above.
    pub fn extended(&mut self, a: &[Value], part: u32) -> Limbs {
        let count = a.len() as u32;
        if part < self.bits {
            // Half a limb: its sign by what is left of a difference.
            let mask = self.constant(ciphermill_ir::mask(part));
            let sign = self.constant(1 << (part - 1));
            let low = self.bitwise(BinOp::And, a[0], mask);
            let low = self.bitwise(BinOp::Xor, low, sign);
            let low = self.chain(Chain::Sub, &[low, sign])[0];
            return self.extended_limbs(&[low], count);
        }
        self.extended_limbs(&a[..(part / self.bits) as usize], count)
    }

    fn extended_limbs(&mut self, a: &[Value], count: u32) -> Limbs {
        let sign = self.sign(a[a.len() - 1]);
        a.iter().copied().chain(std::iter::repeat(sign)).take(count as usize).collect()
    }
}
