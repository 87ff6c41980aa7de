//! What operations make of sums.
//!
//! An operation answers with a sum only where its result is one for certain; it never guesses.
//! Exclusive-or, moves of bits by constants and masks always are. An `and`, an `or`, an
//! addition, a product with a constant are where no bit depends on two at once: one of the two
//! is constant there, or both are the same, or nothing is carried.

use super::form::Form;
use super::sum::Sum;
use ciphermill_ir::{BinOp, CmpOp, UnOp, ops};
use ciphermill_machine::Table;
use ciphermill_machine::gf2::BitMatrix;

impl<S: Copy + Ord> Sum<S> {
    /// Of two words of so many bits.
    pub fn bin(op: BinOp, bits: u32, a: &Sum<S>, b: &Sum<S>) -> Option<Sum<S>> {
        if let (Some(x), Some(y)) = (a.as_constant(), b.as_constant()) {
            return op.eval(x, y, bits).map(Sum::constant);
        }
        match op {
            BinOp::Xor => a.xor(b),
            BinOp::And => a.and(b),
            BinOp::Or | BinOp::Add if a.possible() & b.possible() == 0 => a.xor(b),
            BinOp::Or => {
                let all = Sum::constant(ops::mask(bits));
                a.xor(&all)?.and(&b.xor(&all)?)?.xor(&all)
            }
            // x - (x & m), and the mask made of a bit.
            BinOp::Sub if a.as_constant() == Some(0) && b.possible() == 1 => {
                Some(b.through(|x| x.wrapping_neg() & ops::mask(bits)))
            }
            BinOp::Sub => a.xor(b).filter(|sum| sum.possible() & b.possible() == 0),
            BinOp::Mul => match (a.as_constant(), b.as_constant()) {
                (_, Some(c)) => a.times(c, bits),
                (Some(c), _) => b.times(c, bits),
                _ => None,
            },
            // Linear in the word for any amount.
            BinOp::Shl | BinOp::ShrU | BinOp::ShrS | BinOp::RotL | BinOp::RotR => {
                let by = b.as_constant()?;
                Some(a.through(|x| op.eval(x, by, bits).unwrap_or(0)))
            }
            _ => None,
        }
    }

    fn and(&self, other: &Sum<S>) -> Option<Sum<S>> {
        let both = self.possible() & other.possible();
        let (own, others) = (both & other.certain(), both & self.certain());
        let same = both & !own & !others;
        if same != 0 && self.xor(other)?.possible() & same != 0 {
            return None;
        }
        self.through(|x| x & (own | same)).xor(&other.through(|x| x & others & !own))
    }

    /// A product whose partial products do not overlap, so that none carries.
    fn times(&self, c: u64, bits: u32) -> Option<Sum<S>> {
        let mut sum = Sum::constant(0);
        for n in (0..bits).filter(|n| c >> n & 1 == 1) {
            let part = self.through(|x| x << n & ops::mask(bits));
            if sum.possible() & part.possible() != 0 {
                return None;
            }
            sum = sum.xor(&part)?;
        }
        Some(sum)
    }

    pub fn un(&self, op: UnOp, bits: u32) -> Option<Sum<S>> {
        let linear = matches!(op, UnOp::Bswap | UnOp::SExt8 | UnOp::SExt16 | UnOp::SExt32);
        linear.then(|| self.through(|x| op.eval(x, bits)))
    }

    /// Comparisons that test a single bit.
    fn cmp(&self, op: CmpOp, bits: u32, other: &Sum<S>) -> Option<Sum<S>> {
        let possible = self.possible();
        let bit = match op {
            _ if other.as_constant() != Some(0) => return None,
            CmpOp::LtS => bits - 1,
            CmpOp::Eq | CmpOp::Ne if possible.is_power_of_two() => possible.trailing_zeros(),
            _ => return None,
        };
        let set = self.through(|x| x >> bit & 1);
        if op == CmpOp::Eq { set.xor(&Sum::constant(1)) } else { Some(set) }
    }

    /// One of two constants, by a single bit.
    fn select(&self, then: u64, otherwise: u64) -> Option<Sum<S>> {
        let bit = self.possible();
        let chosen = |x: u64| if x & bit != 0 { then ^ otherwise } else { 0 };
        bit.is_power_of_two().then(|| self.through(chosen))?.xor(&Sum::constant(otherwise))
    }
}

impl<S: Copy + Ord> Form for Sum<S> {
    fn within(&self, bits: u32) -> Sum<S> {
        Sum::within(self, bits)
    }

    fn bin(op: BinOp, bits: u32, a: &Sum<S>, b: &Sum<S>) -> Option<Sum<S>> {
        Sum::bin(op, bits, a, b)
    }

    fn un(op: UnOp, bits: u32, a: &Sum<S>) -> Option<Sum<S>> {
        a.un(op, bits)
    }

    fn compare(op: CmpOp, bits: u32, a: &Sum<S>, b: &Sum<S>) -> Option<Sum<S>> {
        a.cmp(op, bits, b)
    }

    fn select(cond: &Sum<S>, then: &Sum<S>, els: &Sum<S>) -> Option<Sum<S>> {
        cond.select(then.as_constant()?, els.as_constant()?)
    }

    fn slice(a: &Sum<S>, low: u32, width: u32) -> Option<Sum<S>> {
        Some(a.through(|x| x >> low & ops::mask(width)))
    }

    fn extended(a: &Sum<S>, signed: bool, _to: u32) -> Option<Sum<S>> {
        Some(if signed { a.through(|x| ops::sext(x, 32) as u64) } else { a.within(32) })
    }

    fn linear(matrix: &BitMatrix, a: &Sum<S>) -> Option<Sum<S>> {
        Some(a.through(|x| matrix.apply(x)))
    }

    fn table(table: &Table, index: &Sum<S>) -> Option<Sum<S>> {
        let values = &table.values;
        index.lookup(|i| values.get((i % values.len() as u64) as usize).copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ciphermill_ir::Op;

    struct Rng(u64);

    impl Rng {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            self.0.rotate_left(32)
        }

        fn below(&mut self, n: usize) -> usize {
            (self.next() as u32) as usize % n
        }
    }

    /// The plain meaning of a sum.
    fn value(sum: &Sum<()>, x: u64) -> u64 {
        sum.parts.iter().fold(sum.rest, |w, p| w ^ p.table()[(x >> (8 * p.byte)) as usize & 0xff])
    }

    fn of(op: Op, bits: u32, args: &[&Sum<()>]) -> Option<Sum<()>> {
        match (op, args) {
            (Op::Bin(op), [a, b]) => Sum::bin(op, bits, a, b),
            (Op::Un(op), [a]) => a.un(op, bits),
            (Op::Cmp(op), [a, b]) => a.cmp(op, bits, b),
            (_, [c, t, e]) => c.select(t.as_constant()?, e.as_constant()?),
            _ => None,
        }
    }

    fn evaluate(op: Op, bits: u32, args: &[u64]) -> u64 {
        match op {
            Op::Bin(op) => op.eval(args[0], args[1], bits).unwrap_or(0),
            Op::Un(op) => op.eval(args[0], bits),
            Op::Cmp(op) => op.eval(args[0], args[1], bits).into(),
            _ => args[if args[0] != 0 { 1 } else { 2 }],
        }
    }

    /// Random expressions of one word: wherever there is a sum, it gives the value that the
    /// operations themselves do.
    #[test]
    fn sums_are_what_the_operations_compute() {
        use BinOp::*;
        const BINARY: [BinOp; 11] = [Xor, And, Or, Add, Sub, Mul, Shl, ShrU, ShrS, RotL, RotR];
        const UNARY: [UnOp; 4] = [UnOp::Bswap, UnOp::SExt8, UnOp::SExt16, UnOp::SExt32];
        const COMPARE: [CmpOp; 3] = [CmpOp::Eq, CmpOp::Ne, CmpOp::LtS];
        const MASKS: [u32; 6] = [0x0101_0101, 0x8080_8080, 0x7f7f_7f7f, 1, 0xff00, 0x8000_0000];
        let mut rng = Rng(7);
        let (mut found, mut deep, mut tables) = (0, 0, 0);
        for round in 0..3000 {
            let bits = if round % 2 == 0 { 32 } else { 64 };
            let xs: [u64; 6] = std::array::from_fn(|_| rng.next() & ops::mask(bits));
            let mut nodes: Vec<(Sum<()>, [u64; 6])> = vec![(Sum::source((), ops::mask(bits)), xs)];
            for _ in 0..16 {
                let mask = u64::from(MASKS[rng.below(MASKS.len())]);
                let constant = match rng.below(4) {
                    0 => rng.below(32) as u64,
                    1 if bits == 64 => mask << 32 | mask,
                    1 => mask,
                    2 => 0x1b,
                    _ => 0,
                };
                let c = (Sum::constant(constant), [constant; 6]);
                // The later ones are made of more.
                let pick = |rng: &mut Rng| nodes[rng.below(nodes.len()).max(rng.below(nodes.len()))].clone();
                let (a, b) = (pick(&mut rng), pick(&mut rng));
                if rng.below(16) == 0 {
                    let sbox = |x: u64| (x & 0xff) * (x & 0xff) + 99;
                    let byte = a.0.through(|x| x >> 8 & 0xff);
                    let Some(looked_up) = byte.lookup(|x| Some(sbox(x))) else { continue };
                    tables += 1;
                    nodes.push((looked_up, a.1.map(|x| sbox(x >> 8))));
                    continue;
                }
                let (op, args) = match rng.below(16) {
                    0 => (Op::Un(UNARY[rng.below(UNARY.len())]), vec![a]),
                    1 => (Op::Cmp(COMPARE[rng.below(COMPARE.len())]), vec![a, c]),
                    2 => (Op::Select, vec![a, c, (Sum::constant(5), [5; 6])]),
                    3 => (Op::Bin(Sub), vec![c, a]),
                    4..8 => (Op::Bin(Xor), vec![a, b]),
                    8..10 => (Op::Bin(BINARY[rng.below(BINARY.len())]), vec![a, b]),
                    _ => (Op::Bin(BINARY[rng.below(BINARY.len())]), vec![a, c]),
                };
                let sums: Vec<&Sum<()>> = args.iter().map(|a| &a.0).collect();
                let Some(sum) = of(op, bits, &sums) else { continue };
                let values: [u64; 6] =
                    std::array::from_fn(|i| evaluate(op, bits, &args.iter().map(|a| a.1[i]).collect::<Vec<_>>()));
                for (x, v) in xs.iter().zip(values) {
                    assert_eq!(value(&sum, *x), v, "{op:?} of {x:#x} in {bits} bits");
                    assert_eq!(v & !sum.possible(), 0, "{op:?} of {x:#x} in {bits} bits");
                }
                found += 1;
                deep += usize::from(sum.rows((), bits).iter().any(|r| r.count_ones() > 2));
                nodes.push((sum, values));
            }
        }
        assert!(found > 10_000 && deep > 100 && tables > 500, "{found} sums, {deep} of many bits, {tables} tables");
    }
}
