//! Words as polynomials modulo a power of two, against operations on numbers.

use ciphermill_ir::{BinOp, CmpOp, UnOp};
use ciphermill_recognise::form::Form;
use ciphermill_recognise::residue::{Range, Residue};

const Q: u64 = 3329;
const SHORT: Range = (-(1 << 15), (1 << 15) - 1);

fn bin(op: BinOp, a: &Residue, b: &Residue) -> Residue {
    Residue::bin(op, a.bits(), a, b).expect("it has a form")
}

fn with(op: BinOp, a: &Residue, c: i64) -> Residue {
    bin(op, a, &Residue::constant(c as u64, a.bits()))
}

fn sext16(a: &Residue) -> Residue {
    Residue::un(UnOp::SExt16, a.bits(), a).expect("it has a form")
}

fn source(number: usize) -> Residue {
    Residue::source(number, SHORT, 32)
}

/// Montgomery's product as FIPS 203's reference writes it.
fn montgomery() -> Residue {
    let x = bin(BinOp::Mul, &source(0), &source(1));
    let t = sext16(&with(BinOp::Mul, &sext16(&x), -3327));
    with(BinOp::ShrS, &bin(BinOp::Sub, &x, &with(BinOp::Mul, &t, Q as i64)), 16)
}

#[test]
fn one_product_written_in_four_ways() {
    let x = bin(BinOp::Mul, &source(1), &source(0));
    // As a compiler has it: the sign by two shifts, the constants moved into one another.
    let up = with(BinOp::ShrS, &with(BinOp::Mul, &x, i64::from((-3327i32) << 16)), 16);
    let sum = bin(BinOp::Add, &with(BinOp::Mul, &up, -(Q as i64)), &x);
    assert_eq!(with(BinOp::ShrS, &sum, 16), montgomery());
    // Of its lower bits alone.
    assert_eq!(with(BinOp::ShrU, &sum, 16).reduced(16), montgomery().reduced(16));
    assert_eq!(sext16(&with(BinOp::ShrU, &sum, 16)), montgomery());
    // With products of upper halves, as vector code does it.
    let high = |a: &Residue| with(BinOp::ShrS, a, 16);
    assert_eq!(bin(BinOp::Sub, &high(&x), &high(&with(BinOp::Mul, &up, Q as i64))), montgomery());
    assert_ne!(with(BinOp::ShrS, &with(BinOp::Add, &sum, 1 << 16), 16), montgomery());
}

#[test]
fn a_product_of_64_bits_in_words_of_32() {
    let [a, b] = [0, 1].map(|n| Residue::source(n, (-(1 << 31), (1 << 31) - 1), 32));
    let (q, inverse) = (8_380_417, 58_728_449);
    let wide = |f: &Residue| Residue::extended(f, true, 64).expect("a sign is possible");
    let x = bin(BinOp::Mul, &wide(&a), &wide(&b));
    let t = with(BinOp::Mul, &x.reduced(32), inverse);
    let whole = with(BinOp::ShrS, &bin(BinOp::Sub, &x, &with(BinOp::Mul, &wide(&t), q)), 32).reduced(32);
    // The lower halves are equal, so nothing is borrowed.
    let low = [bin(BinOp::Mul, &a, &b), with(BinOp::Mul, &t, q)];
    let high = [bin(BinOp::MulHiS, &a, &b), with(BinOp::MulHiS, &t, q)];
    let borrow = Residue::compare(CmpOp::LtU, 32, &low[0], &low[1]).expect("it has a form");
    assert_eq!(borrow, Residue::constant(0, 32));
    assert_eq!(bin(BinOp::Sub, &bin(BinOp::Sub, &high[0], &high[1]), &borrow), whole);
    // The same with the complement of q, as a word without a sign.
    let upper = bin(BinOp::Sub, &with(BinOp::MulHiU, &t, -q), &t);
    let upper = bin(BinOp::Add, &upper, &with(BinOp::Mul, &with(BinOp::ShrS, &t, 31), -q));
    let zero = Residue::constant(0, 32);
    let carry = Residue::compare(CmpOp::Ne, 32, &low[0], &zero).expect("it has a form");
    assert_eq!(bin(BinOp::Add, &bin(BinOp::Add, &high[0], &upper), &carry), whole);
}

#[test]
fn q_is_added_to_what_is_negative_in_three_ways() {
    let t = with(BinOp::Sub, &source(0), Q as i64);
    let sign = |by| with(BinOp::And, &with(BinOp::ShrS, &t, by), Q as i64);
    let added = bin(BinOp::Add, &t, &sign(31));
    assert_eq!(bin(BinOp::Add, &t, &sign(20)), added);
    let below = |op, a: &Residue, b: &Residue| Residue::compare(op, 32, a, b).expect("it has a form");
    let select = |c: &Residue, a: &Residue, b: &Residue| Residue::select(c, a, b).expect("a bit decides");
    let x = source(0);
    assert_eq!(select(&below(CmpOp::LtS, &x, &Residue::constant(Q, 32)), &x, &t), added);
    // As compilers write not less.
    assert_eq!(select(&below(CmpOp::LtS, &Residue::constant(Q - 1, 32), &x), &t, &x), added);
}

/// Numbers without order (the odd constant of splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ mixed >> 27) % n
    }
}

#[test]
fn forms_have_the_values_of_the_operations() {
    let seed = 34;
    println!("seed {seed}");
    let mut random = Random(seed);
    let ranges: [Range; 4] = [SHORT, (0, 255), (0, 3328), (-(1 << 31), (1 << 31) - 1)];
    let ops = [BinOp::Add, BinOp::Sub, BinOp::Mul, BinOp::MulHiS, BinOp::MulHiU, BinOp::And, BinOp::Or];
    let shifts = [BinOp::Shl, BinOp::ShrU, BinOp::ShrS];
    let mut made = 0;
    for _ in 0..3000 {
        let given = [0, 1].map(|_| ranges[random.below(4) as usize]);
        let values = given.map(|(a, b)| a + i128::from(random.below((b - a + 1) as u64)));
        let mut all: Vec<(Residue, u64)> =
            (0..2).map(|n| (Residue::source(n, given[n], 32), values[n] as u64 & 0xffff_ffff)).collect();
        for c in [Q, 16, 1 << 15, 0xffff_ffff, 65_535, random.below(1 << 32)] {
            all.push((Residue::constant(c, 32), c));
        }
        for _ in 0..12 {
            let (a, x) = all[random.below(all.len() as u64) as usize].clone();
            let (b, y) = all[random.below(all.len() as u64) as usize].clone();
            let by = random.below(32);
            let (form, value) = match random.below(8) {
                0..3 => {
                    let op = ops[random.below(7) as usize];
                    (Residue::bin(op, 32, &a, &b), op.eval(x, y, 32))
                }
                3 | 4 => {
                    let op = shifts[random.below(3) as usize];
                    (Residue::bin(op, 32, &a, &Residue::constant(by, 32)), op.eval(x, by, 32))
                }
                5 => {
                    let op = [UnOp::SExt8, UnOp::SExt16][random.below(2) as usize];
                    (Residue::un(op, 32, &a), Some(op.eval(x, 32)))
                }
                6 => {
                    let op = [CmpOp::LtS, CmpOp::LtU, CmpOp::LeS, CmpOp::LeU, CmpOp::Ne, CmpOp::Eq]
                        [random.below(6) as usize];
                    (Residue::compare(op, 32, &a, &b), Some(op.eval(x, y, 32).into()))
                }
                _ => {
                    let bit = Residue::compare(CmpOp::LtS, 32, &a, &b);
                    (
                        bit.and_then(|bit| Residue::select(&bit, &a, &b)),
                        Some(if CmpOp::LtS.eval(x, y, 32) { x } else { y }),
                    )
                }
            };
            if let Some((form, value)) = form.zip(value) {
                assert_eq!(form.at(&values), u128::from(value), "seed {seed}: {form:?} at {values:?}");
                all.push((form, value));
                made += 1;
            }
        }
    }
    assert!(made > 20_000, "{made}");
}
