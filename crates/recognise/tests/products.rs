//! Words as polynomials in the bits of two factors, against products computed bit by bit.

use ciphermill_ir::{BinOp, UnOp};
use ciphermill_recognise::quadratic::{Word, carryless};

fn by_hand(x: u64, y: u64) -> u128 {
    (0..64).filter(|n| y >> n & 1 != 0).fold(0, |sum, n| sum ^ u128::from(x) << n)
}

/// What a word is for factors of these values.
fn value(word: &Word, bits: u32, x: u64, y: u64) -> u64 {
    let bit = |n: u32| {
        let poly = word.bit(n).expect("the bit is known");
        let products = poly.products.iter().map(|p| (x >> p.0 & 1) & u64::from((y & p.1).count_ones()));
        let single = u64::from((x & poly.first).count_ones()) + u64::from((y & poly.second).count_ones());
        (products.sum::<u64>() + single + u64::from(poly.one)) & 1
    };
    (0..bits).fold(0, |all, n| all | bit(n) << n)
}

/// Values that have no order, the same each time (the odd constant of splitmix64).
fn values() -> impl Iterator<Item = (u64, u64)> {
    (1..20u64).map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15), (n + 77).wrapping_mul(0xbf58_476d_1ce4_e5b9)))
}

#[test]
fn halves_of_a_product() {
    for (bits, low) in [(32, 0), (32, 32), (32, 31), (64, 0), (64, 64), (64, 63)] {
        let mask = u64::MAX >> (64 - bits);
        let word = carryless([mask; 2], bits, low);
        assert!(word.is_symmetric());
        for (x, y) in values().map(|(x, y)| (x & mask, y & mask)) {
            let wanted = (by_hand(x, y) >> low) as u64 & mask;
            assert_eq!(value(&word, bits, x, y), wanted, "bits from {low} of {x:#x} times {y:#x}");
        }
    }
}

fn masked(word: &Word, mask: u64) -> Word {
    Word::bin(BinOp::And, word, &Word::constant(mask, 32)).expect("a mask is always possible")
}

#[test]
fn products_of_integers_with_room_for_carries() {
    let (x, y) = (Word::first(u64::MAX, 32), Word::second(u64::MAX, 32));
    let part = |op, i: u32, j: u32| {
        Word::bin(op, &masked(&x, 0x1111_1111 << i), &masked(&y, 0x1111_1111 << j)).expect("a product has a form")
    };
    for (op, low) in [(BinOp::Mul, 0), (BinOp::MulHiU, 32)] {
        let class = |k: u32| {
            let terms = (0..4).map(|i| part(op, i, (4 + k - i) % 4));
            let sum = terms.reduce(|a, b| Word::bin(BinOp::Xor, &a, &b).expect("sums have a form"));
            masked(&sum.expect("there are four"), 0x1111_1111 << k)
        };
        let all = (0..4).map(class).reduce(|a, b| Word::bin(BinOp::Or, &a, &b).expect("nothing overlaps"));
        assert_eq!(all, Some(carryless([0xffff_ffff; 2], 32, low)));
    }
}

#[test]
fn bits_that_carries_get_into_are_not_known() {
    let (x, y) = (Word::first(u64::MAX, 32), Word::second(u64::MAX, 32));
    let product = Word::bin(BinOp::Mul, &x, &y).expect("a product has a form");
    // Into bit 1 nothing is carried: there is one product of bits below it.
    assert!((0..2).all(|n| product.bit(n).is_some()) && (2..32).all(|n| product.bit(n).is_none()));
    // Every second bit leaves room for two terms of each place, and no more.
    let apart = Word::bin(BinOp::Mul, &masked(&x, 0x5555_5555), &masked(&y, 0x5555_5555)).expect("as above");
    assert!((0..=4).step_by(2).all(|n| apart.bit(n).is_some()) && apart.bit(8).is_none());
    assert_eq!(product.factors(), None);
}

#[test]
fn masks_made_of_a_bit() {
    let (x, y) = (Word::first(u64::MAX, 32), Word::second(u64::MAX, 32));
    let bit = masked(&Word::bin(BinOp::ShrU, &y, &Word::constant(5, 32)).expect("moved"), 1);
    let mask = Word::bin(BinOp::Sub, &Word::constant(0, 32), &bit).expect("a difference has a form");
    let selected = bit.select(&x, &Word::constant(0, 32)).expect("one bit decides");
    assert_eq!(Word::bin(BinOp::And, &mask, &x), Some(selected.clone()));
    assert_eq!(Word::bin(BinOp::Mul, &bit, &x), Some(selected));
}

#[test]
fn operations_on_constants_are_those_of_programs() {
    let ops = [BinOp::Add, BinOp::Sub, BinOp::And, BinOp::Or, BinOp::Xor, BinOp::Mul, BinOp::MulHiU];
    for (x, y) in values() {
        let factors = (Word::first(u64::MAX, 64), Word::second(u64::MAX, 64));
        for op in ops {
            let word = Word::bin(op, &Word::constant(x, 64), &Word::constant(y, 64)).expect("constants have a form");
            assert_eq!(value(&word, 64, 0, 0), op.eval(x, y, 64).expect("no division"), "{op:?} {x:#x} {y:#x}");
        }
        for by in [1, 7, 31, 63] {
            for op in [BinOp::Shl, BinOp::ShrU, BinOp::ShrS, BinOp::RotL, BinOp::RotR] {
                let word = Word::bin(op, &factors.0, &Word::constant(by, 64)).expect("bits are moved");
                assert_eq!(value(&word, 64, x, y), op.eval(x, by, 64).expect("no division"), "{op:?} {x:#x} {by}");
            }
        }
        for op in [UnOp::Bswap, UnOp::SExt8, UnOp::SExt16, UnOp::SExt32] {
            assert_eq!(value(&factors.1.un(op).expect("bits are moved"), 64, x, y), op.eval(y, 64), "{op:?} {y:#x}");
        }
    }
}

#[test]
fn a_part_of_a_word_and_how_it_was_moved() {
    let whole = carryless([0xffff_ffff; 2], 32, 0);
    let moved = |op, by| Word::bin(op, &whole, &Word::constant(by, 32)).expect("bits are moved");
    assert_eq!(whole.part_of(&whole), Some((0, 0xffff_ffff)));
    assert_eq!(moved(BinOp::ShrU, 5).part_of(&whole), Some((5, 0xffff_ffff)));
    assert_eq!(moved(BinOp::Shl, 5).part_of(&whole), Some((-5, 0xffff_ffff)));
    assert_eq!(masked(&whole, 0xf0).part_of(&whole), Some((0, 0xf0)));
    assert_eq!(carryless([0xffff_ffff; 2], 32, 32).part_of(&whole), None);
}
