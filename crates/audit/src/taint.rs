//! Which bits of a word are secret, and how operations carry secrecy on.
//!
//! A value is followed together with a mask: a set bit means that this bit of
//! the value *may* change when only secrets change. The rules are those of
//! bit-precise taint tracking (as in Valgrind's memcheck): a clear bit of a
//! result is a promise, a set bit is none. What each rule must keep is
//!
//! > if the operands of two runs agree in every clear bit, so do the results.
//!
//! Two values that agree in the clear bits of a product or sum may differ from
//! the lowest set bit upwards and nowhere below; a bit AND-ed with a public
//! zero is public; anything without such a rule is secret in all bits as soon
//! as one bit of an operand is. The last test of this file tries the promise
//! on random operands.

use ciphermill_ir::{BinOp, UnOp, mask};

/// A value and the mask of its secret bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Word {
    pub bits: u64,
    pub secret: u64,
}

impl Word {
    pub fn public(bits: u64) -> Word {
        Word { bits, secret: 0 }
    }

    pub(crate) fn is_secret(self) -> bool {
        self.secret != 0
    }
}

/// Every bit when any is secret.
fn all(secret: u64, bits: u32) -> u64 {
    if secret == 0 { 0 } else { mask(bits) }
}

/// From the lowest secret bit upwards: what carries can reach.
fn upwards(secret: u64, bits: u32) -> u64 {
    (secret | secret.wrapping_neg()) & mask(bits)
}

/// The secret bits of `op(a, b)` in `bits` bits.
pub fn binary(op: BinOp, a: Word, b: Word, bits: u32) -> u64 {
    use BinOp::*;
    let any = a.secret | b.secret;
    if any == 0 {
        return 0;
    }
    match op {
        And => (a.secret | a.bits) & (b.secret | b.bits) & any,
        Or => (a.secret | !a.bits) & (b.secret | !b.bits) & any & mask(bits),
        Xor => any,
        Add | Sub | Mul => upwards(any, bits),
        // What moves by a public amount keeps its mask; the sign's mask is
        // extended as the sign is.
        Shl | ShrU | ShrS | RotL | RotR if b.secret & u64::from(bits - 1) == 0 => {
            op.eval(a.secret, b.bits, bits).unwrap_or_else(|| mask(bits))
        }
        Shl | ShrU | ShrS | RotL | RotR | MulHiU | MulHiS | DivU | DivS | RemU | RemS => all(any, bits),
    }
}

/// The secret bits of `op(a)` in `bits` bits.
pub fn unary(op: UnOp, a: Word, bits: u32) -> u64 {
    match op {
        UnOp::SExt8 | UnOp::SExt16 | UnOp::SExt32 | UnOp::Bswap => op.eval(a.secret, bits),
        UnOp::Clz | UnOp::Ctz | UnOp::Popcnt => all(a.secret, bits),
    }
}

/// The secret bits of a choice between two values.
pub fn select(condition: Word, then: Word, els: Word) -> u64 {
    let chosen = if condition.bits as u32 != 0 { then } else { els };
    match condition.is_secret() {
        true => then.secret | els.secret | (then.bits ^ els.bits),
        false => chosen.secret,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let x = *state;
        (x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }

    const BINARY: [BinOp; 17] = {
        use BinOp::*;
        [Add, Sub, Mul, MulHiU, MulHiS, DivU, DivS, RemU, RemS, And, Or, Xor, Shl, ShrU, ShrS, RotL, RotR]
    };

    #[test]
    fn clear_bits_are_a_promise() {
        let mut state = 1;
        for round in 0..40_000u32 {
            let bits = if round % 2 == 0 { 32 } else { 64 };
            let mut word = || {
                // Sparse masks: in dense ones nothing is left to promise.
                let secret = random(&mut state) & random(&mut state) & random(&mut state) & mask(bits);
                let value = random(&mut state) & mask(bits);
                let other = value ^ (random(&mut state) & secret);
                (Word { bits: value, secret }, other)
            };
            let ((a, a2), (b, b2)) = (word(), word());
            for op in BINARY {
                let (Some(x), Some(y)) = (op.eval(a.bits, b.bits, bits), op.eval(a2, b2, bits)) else { continue };
                let secret = binary(op, a, b, bits);
                assert_eq!((x ^ y) & !secret, 0, "{op:?} {a:x?} {a2:x} {b:x?} {b2:x}");
            }
            for op in [UnOp::Clz, UnOp::Ctz, UnOp::Popcnt, UnOp::SExt8, UnOp::SExt16, UnOp::Bswap] {
                let secret = unary(op, a, bits);
                assert_eq!((op.eval(a.bits, bits) ^ op.eval(a2, bits)) & !secret, 0, "{op:?} {a:x?} {a2:x}");
            }
        }
    }

    #[test]
    fn a_mask_hides_secrets_and_a_sum_spreads_them_upwards() {
        let secret = Word { bits: 0x1234, secret: 0xff00 };
        assert_eq!(binary(BinOp::And, secret, Word::public(0xff), 32), 0);
        assert_eq!(binary(BinOp::Or, secret, Word::public(0xf000), 32), 0x0f00);
        assert_eq!(binary(BinOp::Add, secret, Word::public(1), 32), 0xffff_ff00);
        assert_eq!(binary(BinOp::RotL, secret, Word::public(8), 32), 0xff_0000);
        assert_eq!(binary(BinOp::RotL, Word::public(1), secret, 32), 0, "the amount's low bits are public");
        assert_eq!(select(secret, Word::public(5), Word::public(5)), 0);
    }
}
