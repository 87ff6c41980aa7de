//! Affine forms: a word each bit of which is a sum over GF(2).
//!
//! A [`Form`] says for each of the 32 bits of a word which columns it is the
//! exclusive-or of, and whether it is complemented. What a column stands for is
//! the user's business: a bit of a source, or of a table's output. Operators
//! answer with a form where the result is affine for certain, and else with
//! nothing; they never guess.

use ciphermill_ir::{BinOp, CmpOp, Op, UnOp, ops};

/// Bits of a word here.
pub const WORD: usize = 32;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Form {
    /// Row i: the columns that bit i is the sum of.
    pub rows: [u128; WORD],
    /// Bit i: whether one is added to it.
    pub constant: u32,
}

impl Form {
    pub fn constant(constant: u32) -> Form {
        Form { rows: [0; WORD], constant }
    }

    /// The columns from `first` on, one for each bit that `possible` allows to
    /// be set.
    pub fn source(first: usize, possible: u32) -> Form {
        let row = |i: usize| if possible >> i & 1 == 1 { 1 << (first + i) } else { 0 };
        Form { rows: std::array::from_fn(row), constant: 0 }
    }

    /// Bits that may be set.
    pub fn mask(&self) -> u32 {
        (0..WORD).fold(self.constant, |m, i| m | u32::from(self.rows[i] != 0) << i)
    }

    pub fn as_const(&self) -> Option<u32> {
        self.rows.iter().all(|&r| r == 0).then_some(self.constant)
    }

    fn bit(&self, i: usize) -> (u128, bool) {
        (self.rows[i], self.constant >> i & 1 == 1)
    }

    /// A form from its bits; None when one of them is not affine.
    fn of_bits(bit: impl Fn(usize) -> Option<(u128, bool)>) -> Option<Form> {
        let mut out = Form::constant(0);
        for i in 0..WORD {
            let (row, one) = bit(i)?;
            out.rows[i] = row;
            out.constant |= u32::from(one) << i;
        }
        Some(out)
    }

    /// Bit i of the result is bit `from(i)` of this, or zero.
    pub fn moved(&self, from: impl Fn(usize) -> Option<usize>) -> Form {
        let bit = |i| Some(from(i).map_or((0, false), |j| self.bit(j)));
        Form::of_bits(bit).unwrap_or_else(|| Form::constant(0))
    }

    pub fn xor(&self, other: &Form) -> Form {
        let rows = std::array::from_fn(|i| self.rows[i] ^ other.rows[i]);
        Form { rows, constant: self.constant ^ other.constant }
    }

    /// The sum of the bits of this that each row of a matrix names.
    pub fn times(&self, matrix: &[u64]) -> Form {
        let mut out = Form::constant(0);
        for (i, row) in matrix.iter().enumerate().take(WORD) {
            for j in (0..WORD).filter(|j| row >> j & 1 == 1) {
                out.rows[i] ^= self.rows[j];
                out.constant ^= (self.constant >> j & 1) << i;
            }
        }
        out
    }

    /// That of an operation of an instruction's semantics, in so many bits.
    pub fn combined(&self, op: BinOp, bits: u8, other: &Form) -> Option<Form> {
        if usize::from(bits) != WORD {
            return None;
        }
        match (self.as_const(), other.as_const()) {
            (Some(a), Some(b)) => Some(Form::constant(op.eval(a.into(), b.into(), WORD as u32)? as u32)),
            _ => Form::bin(op, self, other),
        }
    }

    /// The same of one operand.
    pub fn changed(&self, op: UnOp, bits: u8) -> Option<Form> {
        (usize::from(bits) == WORD).then(|| Form::of(Op::Un(op), &[self]))?
    }

    /// `width` bits from bit `lo` on.
    pub fn cut(&self, lo: u8, width: u8) -> Option<Form> {
        let shifted = Form::bin(BinOp::ShrU, self, &Form::constant(u32::from(lo)))?;
        Form::bin(BinOp::And, &shifted, &Form::constant(ops::mask(u32::from(width)) as u32))
    }

    /// The form of an operation of the program, given its operands'.
    pub fn of(op: Op, args: &[&Form]) -> Option<Form> {
        match (op, args) {
            (Op::Bin(op), [a, b]) => Form::bin(op, a, b),
            (Op::Un(op), [a]) => Form::un(op, a),
            (Op::Cmp(op), [a, b]) => Form::cmp(op, a, b),
            (Op::Select, [c, t, e]) => Form::select(c, t, e),
            _ => None,
        }
    }

    pub fn bin(op: BinOp, a: &Form, b: &Form) -> Option<Form> {
        let amount = || b.as_const().map(|n| n as usize % WORD);
        Some(match op {
            BinOp::Xor => a.xor(b),
            BinOp::And => {
                return Form::of_bits(|i| match (a.bit(i), b.bit(i)) {
                    ((0, false), _) | (_, (0, false)) => Some((0, false)),
                    ((0, true), x) | (x, (0, true)) => Some(x),
                    (x, y) => (x == y).then_some(x),
                });
            }
            BinOp::Or => {
                return Form::of_bits(|i| match (a.bit(i), b.bit(i)) {
                    ((0, true), _) | (_, (0, true)) => Some((0, true)),
                    ((0, false), x) | (x, (0, false)) => Some(x),
                    (x, y) => (x == y).then_some(x),
                });
            }
            // Nothing is carried where no bit can be set on both sides.
            BinOp::Add if a.mask() & b.mask() == 0 => a.xor(b),
            // x - (x & m), and the mask made of a bit.
            BinOp::Sub if (0..WORD).all(|i| matches!(b.bit(i), (0, false)) || b.bit(i) == a.bit(i)) => a.xor(b),
            BinOp::Sub if a.as_const() == Some(0) && b.mask() == 1 => b.moved(|_| Some(0)),
            BinOp::Mul => {
                let (x, c) = match (a.as_const(), b.as_const()) {
                    (_, Some(c)) => (a, c),
                    (Some(c), _) => (b, c),
                    _ => return None,
                };
                return x.product(c);
            }
            BinOp::Shl => {
                let n = amount()?;
                a.moved(|i| i.checked_sub(n))
            }
            BinOp::ShrU => {
                let n = amount()?;
                a.moved(|i| Some(i + n).filter(|&j| j < WORD))
            }
            BinOp::ShrS => {
                let n = amount()?;
                a.moved(|i| Some((i + n).min(WORD - 1)))
            }
            BinOp::RotL => {
                let n = amount()?;
                a.moved(|i| Some((i + WORD - n) % WORD))
            }
            BinOp::RotR => {
                let n = amount()?;
                a.moved(|i| Some((i + n) % WORD))
            }
            _ => return None,
        })
    }

    /// A product whose partial products do not overlap, so that none carries.
    fn product(&self, c: u32) -> Option<Form> {
        let mut sum = Form::constant(0);
        for n in (0..WORD).filter(|n| c >> n & 1 == 1) {
            let part = self.moved(|i| i.checked_sub(n));
            if sum.mask() & part.mask() != 0 {
                return None;
            }
            sum = sum.xor(&part);
        }
        Some(sum)
    }

    fn un(op: UnOp, a: &Form) -> Option<Form> {
        Some(match op {
            UnOp::Bswap => a.moved(|i| Some(i ^ 24)),
            UnOp::SExt8 => a.moved(|i| Some(i.min(7))),
            UnOp::SExt16 => a.moved(|i| Some(i.min(15))),
            UnOp::SExt32 => a.clone(),
            _ => return None,
        })
    }

    /// Comparisons that test a single bit.
    fn cmp(op: CmpOp, a: &Form, b: &Form) -> Option<Form> {
        if b.as_const() != Some(0) {
            return None;
        }
        let bit = match op {
            CmpOp::LtS => WORD - 1,
            CmpOp::Eq | CmpOp::Ne if a.mask().is_power_of_two() => a.mask().trailing_zeros() as usize,
            _ => return None,
        };
        let is_set = a.moved(|i| (i == 0).then_some(bit));
        Some(if op == CmpOp::Eq { is_set.xor(&Form::constant(1)) } else { is_set })
    }

    /// One of two constants, by a single bit.
    fn select(c: &Form, t: &Form, e: &Form) -> Option<Form> {
        let (t, e) = (t.as_const()?, e.as_const()?);
        if !c.mask().is_power_of_two() {
            return None;
        }
        let bit = c.mask().trailing_zeros() as usize;
        let chosen = c.moved(|i| ((t ^ e) >> i & 1 == 1).then_some(bit));
        Some(chosen.xor(&Form::constant(e)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Rng(u64);

    impl Rng {
        fn next(&mut self) -> u32 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 32) as u32
        }

        fn below(&mut self, n: usize) -> usize {
            self.next() as usize % n
        }
    }

    /// The plain meaning of a form: each bit the parity of its row and `x`.
    fn value(form: &Form, x: u32) -> u32 {
        let bit = |i: usize| (form.rows[i] & u128::from(x)).count_ones() & 1;
        (0..WORD).fold(form.constant, |w, i| w ^ bit(i) << i)
    }

    fn evaluate(op: Op, args: &[u32]) -> u32 {
        match op {
            Op::Bin(op) => op.eval(args[0].into(), args[1].into(), 32).unwrap_or(0) as u32,
            Op::Un(op) => op.eval(args[0].into(), 32) as u32,
            Op::Cmp(op) => op.eval(args[0].into(), args[1].into(), 32).into(),
            _ => args[if args[0] != 0 { 1 } else { 2 }],
        }
    }

    /// Random expressions of one word: wherever there is a form, it gives the
    /// value that the operations themselves do.
    #[test]
    fn forms_are_what_the_operations_compute() {
        use BinOp::*;
        const BINARY: [BinOp; 11] = [Xor, And, Or, Add, Sub, Mul, Shl, ShrU, ShrS, RotL, RotR];
        const UNARY: [UnOp; 3] = [UnOp::Bswap, UnOp::SExt8, UnOp::SExt16];
        const COMPARE: [CmpOp; 3] = [CmpOp::Eq, CmpOp::Ne, CmpOp::LtS];
        const MASKS: [u32; 6] = [0x0101_0101, 0x8080_8080, 0x7f7f_7f7f, 1, 0xff00, 0x8000_0000];
        let mut rng = Rng(7);
        let (mut forms_found, mut deep) = (0, 0);
        for _ in 0..3000 {
            let xs: [u32; 6] = std::array::from_fn(|_| rng.next());
            let mut nodes: Vec<(Form, [u32; 6])> = vec![(Form::source(0, u32::MAX), xs)];
            for _ in 0..16 {
                let constant = match rng.below(4) {
                    0 => rng.below(32) as u32,
                    1 => MASKS[rng.below(MASKS.len())],
                    2 => 0x1b,
                    _ => 0,
                };
                let c = (Form::constant(constant), [constant; 6]);
                // The later ones are made of more.
                let pick = |rng: &mut Rng| nodes[rng.below(nodes.len()).max(rng.below(nodes.len()))].clone();
                let (a, b) = (pick(&mut rng), pick(&mut rng));
                let (op, args) = match rng.below(16) {
                    0 => (Op::Un(UNARY[rng.below(UNARY.len())]), vec![a]),
                    1 => (Op::Cmp(COMPARE[rng.below(COMPARE.len())]), vec![a, c]),
                    2 => (Op::Select, vec![a, c, (Form::constant(5), [5; 6])]),
                    3 => (Op::Bin(Sub), vec![c, a]),
                    4..8 => (Op::Bin(Xor), vec![a, b]),
                    8..10 => (Op::Bin(BINARY[rng.below(BINARY.len())]), vec![a, b]),
                    _ => (Op::Bin(BINARY[rng.below(BINARY.len())]), vec![a, c]),
                };
                let forms: Vec<&Form> = args.iter().map(|a| &a.0).collect();
                let Some(form) = Form::of(op, &forms) else { continue };
                let values: [u32; 6] =
                    std::array::from_fn(|i| evaluate(op, &args.iter().map(|a| a.1[i]).collect::<Vec<_>>()));
                for (x, v) in xs.iter().zip(values) {
                    assert_eq!(value(&form, *x), v, "{op:?} of {x:#x}");
                    assert_eq!(v & !form.mask(), 0, "{op:?} of {x:#x}");
                }
                forms_found += 1;
                deep += usize::from(form.rows.iter().any(|r| r.count_ones() > 2));
                nodes.push((form, values));
            }
        }
        assert!(forms_found > 10_000 && deep > 100, "{forms_found} forms, {deep} of them of many bits");
    }
}
