//! Divisions of 32-bit words by constants: products with the reciprocal.
//!
//! `n / d` is `n m >> s` for an `m` a little above `2^s / d`, as long as what that is too much does
//! not reach the next quotient (Granlund and Montgomery, "Division by Invariant Integers using
//! Multiplication", PLDI 1994). With `m d = 2^s + e` that is so for all `n` with `n e < 2^s`. How large
//! `n` becomes is often known: a count below 128 needs a product of one word only.
//!
//! A machine that divides takes many times as long for it as for a product, and one that does not
//! calls a function, which keeps the loop around it from being pipelined and the
//! constants of an unrolled loop from being folded.

use crate::edit;
use crate::options::Options;
use ciphermill_ir::{BinOp, Func, Inst, Module, Op, Type, Value, bits};

/// Bits of a word.
const WORD: u32 = 32;
/// The largest word.
const MOST: u64 = 0xFFFF_FFFF;
/// Above all negative numbers' magnitudes.
const SIGN: u64 = 1 << (WORD - 1);

pub(crate) fn run(module: &mut Module, _: &Options) -> bool {
    edit::for_each_func(module, |_, func| {
        let mut changed = false;
        for block in func.layout.clone() {
            let before = std::mem::take(&mut func.blocks[block].insts);
            let mut writer = Writer { func, out: Vec::with_capacity(before.len()), loc: 0 };
            for inst in before {
                changed |= writer.visit(inst);
            }
            let after = writer.out;
            func.blocks[block].insts = after;
        }
        func.resolve_all();
        changed
    })
}

/// A reciprocal: `n / d` is `n m >> s` for all `n` up to what it was made for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Reciprocal {
    m: u64,
    s: u32,
}

impl Reciprocal {
    /// The one with the smallest shift, and the smallest of at least one word where the product then has
    /// to be of two.
    fn new(d: u64, most: u64) -> Reciprocal {
        let right = |s: u32| {
            let m = (1_u128 << s).div_ceil(u128::from(d)) as u64;
            let e = u128::from(m) * u128::from(d) - (1_u128 << s);
            (u128::from(most) * e < 1_u128 << s).then_some(Reciprocal { m, s })
        };
        let short = (0..=WORD).find_map(|s| right(s).filter(|r| r.m.saturating_mul(most) <= MOST));
        // With s = 32 + log d rounded up, e is less than d, so 2^s is more than 2^32 e.
        short.or_else(|| (WORD..=2 * WORD).find_map(right)).unwrap_or(Reciprocal { m: 0, s: 0 })
    }

    /// Is the product with the largest dividend one word?
    fn short(self, most: u64) -> bool {
        self.m.saturating_mul(most) <= MOST
    }
}

struct Writer<'a> {
    func: &'a mut Func,
    out: Vec<Inst>,
    loc: u32,
}

impl Writer<'_> {
    fn visit(&mut self, inst: Inst) -> bool {
        let data = &self.func.insts[inst];
        self.loc = data.loc;
        let made = match (data.op, &data.args[..], &data.results[..]) {
            (Op::Bin(op), &[n, d], &[result]) if op.may_trap() && self.func.ty(result) == Type::I32 => {
                let n = self.func.resolve(n);
                self.func.as_const(self.func.resolve(d)).and_then(|d| self.divided(op, n, d)).map(|q| (result, q))
            }
            _ => None,
        };
        match made {
            Some((result, to)) => self.func.replace(result, to),
            None => self.out.push(inst),
        }
        made.is_some()
    }

    /// What a division by a constant gives; none where `fold` knows better: by 0, 1 and -1, and
    /// powers of two.
    fn divided(&mut self, op: BinOp, n: Value, d: u64) -> Option<Value> {
        let most = bits::possible(self.func, n);
        let signed = matches!(op, BinOp::DivS | BinOp::RemS);
        let negative = signed && d >= SIGN;
        let size = if negative { (1 << WORD) - d } else { d };
        if size < 3 || size.is_power_of_two() {
            return None;
        }
        let quotient = if signed && most >= SIGN { self.signed(n, size) } else { self.unsigned(n, size, most) };
        Some(match op {
            BinOp::DivU => quotient,
            BinOp::DivS if negative => {
                let zero = self.constant(0);
                self.bin(BinOp::Sub, zero, quotient)
            }
            BinOp::DivS => quotient,
            // The sign is the dividend's, whatever that of the divisor.
            _ => {
                let whole = self.bin_const(BinOp::Mul, quotient, size);
                self.bin(BinOp::Sub, n, whole)
            }
        })
    }

    fn unsigned(&mut self, n: Value, d: u64, most: u64) -> Value {
        if most < d {
            return self.constant(0);
        }
        let of = Reciprocal::new(d, most);
        if of.short(most) {
            let product = self.bin_const(BinOp::Mul, n, of.m);
            return self.shifted(BinOp::ShrU, product, of.s);
        }
        if of.m <= MOST {
            let high = self.bin_const(BinOp::MulHiU, n, of.m);
            return self.shifted(BinOp::ShrU, high, of.s - WORD);
        }
        // The reciprocal has a bit more than a word has. One of what is odd of d needs less.
        let twos = d.trailing_zeros();
        if twos > 0 {
            let half = self.shifted(BinOp::ShrU, n, twos);
            return self.unsigned(half, d >> twos, most >> twos);
        }
        // n (2^32 + m) >> 32 is n + high, whose carry is kept by halving first.
        let high = self.bin_const(BinOp::MulHiU, n, of.m & MOST);
        let rest = self.bin(BinOp::Sub, n, high);
        let half = self.shifted(BinOp::ShrU, rest, 1);
        let sum = self.bin(BinOp::Add, half, high);
        self.shifted(BinOp::ShrU, sum, of.s - WORD - 1)
    }

    /// Rounded towards zero: a negative dividend's product is rounded down, and is one too small.
    fn signed(&mut self, n: Value, d: u64) -> Value {
        let of = Reciprocal::new(d, SIGN);
        let mut high = self.bin_const(BinOp::MulHiS, n, of.m);
        if of.m >= SIGN {
            // Taken for negative, m was 2^32 too small.
            high = self.bin(BinOp::Add, high, n);
        }
        let down = self.shifted(BinOp::ShrS, high, of.s - WORD);
        let sign = self.bin_const(BinOp::ShrS, n, u64::from(WORD) - 1);
        self.bin(BinOp::Sub, down, sign)
    }

    fn shifted(&mut self, op: BinOp, x: Value, by: u32) -> Value {
        if by == 0 { x } else { self.bin_const(op, x, by.into()) }
    }

    fn constant(&mut self, c: u64) -> Value {
        self.made(Op::Const(c & MOST), &[])
    }

    fn bin_const(&mut self, op: BinOp, x: Value, c: u64) -> Value {
        let c = self.constant(c);
        self.bin(op, x, c)
    }

    fn bin(&mut self, op: BinOp, x: Value, y: Value) -> Value {
        self.made(Op::Bin(op), &[x, y])
    }

    fn made(&mut self, op: Op, args: &[Value]) -> Value {
        let inst = self.func.make_inst(op, args, &[Type::I32], self.loc);
        self.out.push(inst);
        self.func.result(inst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where a quotient changes, and around the ends, for every small divisor and some large ones.
    #[test]
    fn a_reciprocal_divides_all_that_it_is_made_for() {
        let large = [1000, 3329, 65_535, 65_537, 0x7FFF_FFFF, 0x8000_0001, 0xFFFF_FFFE, MOST];
        for d in (3..=300).chain(large).filter(|d: &u64| !d.is_power_of_two()) {
            for most in [1, 100, 255, 65_535, 0xFF_FFFF, SIGN, MOST] {
                let of = Reciprocal::new(d, most);
                // No shift of a word is by all of its bits or more.
                assert!(most < d || !of.short(most) || of.s < WORD, "{d}, up to {most}: {of:?}");
                let near = (0..40).flat_map(|k| [k * d, most.saturating_sub(k * d) / d * d]);
                for n in near.flat_map(|x| [x.saturating_sub(1), x, x + 1]).chain([most]).filter(|&n| n <= most) {
                    let quotient = (u128::from(n) * u128::from(of.m)) >> of.s;
                    assert_eq!(quotient as u64, n / d, "{n} / {d} by {of:?}");
                }
            }
        }
    }

    #[test]
    fn few_bits_need_one_word() {
        // 4 k + 3 of 32 rounds, by 10.
        assert!(Reciprocal::new(10, 127).short(127));
        assert!(Reciprocal::new(3, 65_535).short(0xFFFF / 2));
        assert!(!Reciprocal::new(10, MOST).short(MOST));
    }
}
