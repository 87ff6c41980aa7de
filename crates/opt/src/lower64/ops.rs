//! Double-word arithmetic on pairs, low word first.

use super::Pair;
use super::emit::Emit;
use ciphermill_ir::{BinOp, CmpOp, Op, UnOp, Value};

impl Emit {
    pub fn constant(&mut self, c: u64) -> Pair {
        (self.word(c as u32), self.word((c >> 32) as u32))
    }

    pub fn binary(&mut self, op: BinOp, a: Pair, b: Pair) -> Pair {
        match op {
            BinOp::Add => self.add(a, b),
            BinOp::Sub => self.sub(a, b),
            BinOp::Mul => self.mul(a, b),
            BinOp::MulHiU => self.mul_high(a, b),
            BinOp::MulHiS => self.mul_high_signed(a, b),
            _ => (self.bin(op, a.0, b.0), self.bin(op, a.1, b.1)),
        }
    }

    pub fn add(&mut self, a: Pair, b: Pair) -> Pair {
        let low = self.bin(BinOp::Add, a.0, b.0);
        let carry = self.cmp(CmpOp::LtU, low, a.0);
        let high = self.bin(BinOp::Add, a.1, b.1);
        (low, self.bin(BinOp::Add, high, carry))
    }

    fn sub(&mut self, a: Pair, b: Pair) -> Pair {
        let low = self.bin(BinOp::Sub, a.0, b.0);
        let borrow = self.cmp(CmpOp::LtU, a.0, b.0);
        let high = self.bin(BinOp::Sub, a.1, b.1);
        (low, self.bin(BinOp::Sub, high, borrow))
    }

    /// The 64-bit product of two words, signed or not by the operation for its
    /// upper half.
    pub fn product(&mut self, high: BinOp, a: Value, b: Value) -> Pair {
        (self.bin(BinOp::Mul, a, b), self.bin(high, a, b))
    }

    fn mul(&mut self, a: Pair, b: Pair) -> Pair {
        let (low, high) = self.product(BinOp::MulHiU, a.0, b.0);
        let cross = self.bin(BinOp::Mul, a.0, b.1);
        let high = self.bin(BinOp::Add, high, cross);
        let cross = self.bin(BinOp::Mul, a.1, b.0);
        (low, self.bin(BinOp::Add, high, cross))
    }

    /// The upper 64 bits of the 128-bit product, schoolbook. No sum of a
    /// product of words and one or two words overflows 64 bits.
    fn mul_high(&mut self, a: Pair, b: Pair) -> Pair {
        let zero = self.zero();
        let carried = self.bin(BinOp::MulHiU, a.0, b.0);
        let cross = self.product(BinOp::MulHiU, a.0, b.1);
        let first = self.add(cross, (carried, zero));
        let cross = self.product(BinOp::MulHiU, a.1, b.0);
        let second = self.add(cross, (first.0, zero));
        let top = self.product(BinOp::MulHiU, a.1, b.1);
        let sum = self.add(top, (first.1, zero));
        self.add(sum, (second.1, zero))
    }

    /// A negative operand counts 2^64 too much: take the other off the top.
    fn mul_high_signed(&mut self, a: Pair, b: Pair) -> Pair {
        let mut high = self.mul_high(a, b);
        for (x, y) in [(a, b), (b, a)] {
            let sign = self.sign(x.1);
            let masked = (self.bin(BinOp::And, sign, y.0), self.bin(BinOp::And, sign, y.1));
            high = self.sub(high, masked);
        }
        high
    }

    pub fn compare(&mut self, op: CmpOp, a: Pair, b: Pair) -> Value {
        let (upper, lower) = match op {
            CmpOp::Eq | CmpOp::Ne => {
                let low = self.bin(BinOp::Xor, a.0, b.0);
                let high = self.bin(BinOp::Xor, a.1, b.1);
                let any = self.bin(BinOp::Or, low, high);
                let zero = self.zero();
                return self.cmp(op, any, zero);
            }
            CmpOp::LtU => (CmpOp::LtU, CmpOp::LtU),
            CmpOp::LeU => (CmpOp::LtU, CmpOp::LeU),
            CmpOp::LtS => (CmpOp::LtS, CmpOp::LtU),
            CmpOp::LeS => (CmpOp::LtS, CmpOp::LeU),
        };
        let high = self.cmp(upper, a.1, b.1);
        let same = self.cmp(CmpOp::Eq, a.1, b.1);
        let low = self.cmp(lower, a.0, b.0);
        let tie = self.bin(BinOp::And, same, low);
        self.bin(BinOp::Or, high, tie)
    }

    pub fn unary(&mut self, op: UnOp, a: Pair) -> Pair {
        match op {
            UnOp::Clz => (self.count(op, a.1, a.0), self.zero()),
            UnOp::Ctz => (self.count(op, a.0, a.1), self.zero()),
            UnOp::Popcnt => {
                let (low, high) = (self.one(Op::Un(op), &[a.0]), self.one(Op::Un(op), &[a.1]));
                (self.bin(BinOp::Add, low, high), self.zero())
            }
            UnOp::Bswap => (self.one(Op::Un(op), &[a.1]), self.one(Op::Un(op), &[a.0])),
            UnOp::SExt8 | UnOp::SExt16 => {
                let low = self.one(Op::Un(op), &[a.0]);
                (low, self.sign(low))
            }
            UnOp::SExt32 => (a.0, self.sign(a.0)),
        }
    }

    /// Zeros counted from the end at `first` on.
    fn count(&mut self, op: UnOp, first: Value, then: Value) -> Value {
        let near = self.one(Op::Un(op), &[first]);
        let far = self.one(Op::Un(op), &[then]);
        let far = self.bin_const(BinOp::Add, far, 32);
        self.select(first, near, far)
    }

    /// Shift or rotate by `n` below 64.
    pub fn shift_const(&mut self, op: BinOp, a: Pair, n: u32) -> Pair {
        let (low, high) = a;
        if n == 0 {
            return a;
        }
        let m = n % 32;
        match op {
            BinOp::RotR => self.shift_const(BinOp::RotL, a, 64 - n),
            BinOp::RotL => {
                let (low, high) = if n >= 32 { (high, low) } else { (low, high) };
                if m == 0 {
                    return (low, high);
                }
                (self.funnel(low, high, m), self.funnel(high, low, m))
            }
            BinOp::Shl if n >= 32 => {
                let zero = self.zero();
                (zero, if m == 0 { low } else { self.bin_const(op, low, m) })
            }
            BinOp::Shl => (self.bin_const(op, low, m), self.funnel(high, low, m)),
            _ if n >= 32 => {
                let fill = if op == BinOp::ShrS { self.sign(high) } else { self.zero() };
                (if m == 0 { high } else { self.bin_const(op, high, m) }, fill)
            }
            _ => (self.funnel(high, low, 32 - m), self.bin_const(op, high, m)),
        }
    }

    /// The upper word of `(upper, lower) << n`, `n` from 1 to 31.
    fn funnel(&mut self, upper: Value, lower: Value, n: u32) -> Value {
        let left = self.bin_const(BinOp::Shl, upper, n);
        let right = self.bin_const(BinOp::ShrU, lower, 32 - n);
        self.bin(BinOp::Or, left, right)
    }

    /// Shift or rotate by `n` modulo 64. Word shifts count modulo 32, so
    /// `n ^ 31` is `31 - n` to them, and a shift by one and then by that is a
    /// shift by `32 - n` that gives 0 for `n = 0`.
    pub fn shift(&mut self, op: BinOp, a: Pair, n: Value) -> Pair {
        let far = self.bin_const(BinOp::And, n, 32);
        let rest = self.bin_const(BinOp::Xor, n, 31);
        match op {
            BinOp::Shl => {
                let low = self.bin(op, a.0, n);
                let high = self.variable_funnel(BinOp::Shl, a.1, a.0, n, rest);
                let zero = self.zero();
                (self.select(far, zero, low), self.select(far, low, high))
            }
            BinOp::ShrU | BinOp::ShrS => {
                let high = self.bin(op, a.1, n);
                let low = self.variable_funnel(BinOp::ShrU, a.0, a.1, n, rest);
                let fill = if op == BinOp::ShrS { self.sign(a.1) } else { self.zero() };
                (self.select(far, high, low), self.select(far, fill, high))
            }
            _ => {
                let (low, high) = (self.select(far, a.1, a.0), self.select(far, a.0, a.1));
                let way = if op == BinOp::RotL { BinOp::Shl } else { BinOp::ShrU };
                (self.variable_funnel(way, low, high, n, rest), self.variable_funnel(way, high, low, n, rest))
            }
        }
    }

    /// `main` shifted by `n`, the gap filled from the other end of `side`.
    fn variable_funnel(&mut self, op: BinOp, main: Value, side: Value, n: Value, rest: Value) -> Value {
        let back = if op == BinOp::Shl { BinOp::ShrU } else { BinOp::Shl };
        let main = self.bin(op, main, n);
        let side = self.bin_const(back, side, 1);
        let side = self.bin(back, side, rest);
        self.bin(BinOp::Or, main, side)
    }
}
