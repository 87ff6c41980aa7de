//! What operations make of words as polynomials modulo a power of two.
//!
//! Sums, differences and products always are such. Shifts, masks and comparisons are where they
//! cut out bits that are side by side; a choice by a bit, and a mask made of one, are products with that bit.

use super::form::Form;
use super::residue::Residue;
use ciphermill_ir::{BinOp, CmpOp, UnOp, ops};

impl Form for Residue {
    fn within(&self, bits: u32) -> Residue {
        self.valued(false, bits)
    }

    fn bin(op: BinOp, bits: u32, a: &Residue, b: &Residue) -> Option<Residue> {
        let by = || Some(b.as_constant()? as u32 % bits);
        let upper = |signed: bool| {
            let [a, b] = [a, b].map(|f| if signed { f.valued(true, 2 * bits) } else { f.above_its_sign(2 * bits) });
            Some(Residue::part(&a.times(&b)?, bits, bits, signed, bits))
        };
        let result = match op {
            BinOp::Add => a.plus(b, 1),
            BinOp::Sub => a.plus(b, -1),
            BinOp::Mul => a.times(b)?,
            BinOp::MulHiU => upper(false)?,
            BinOp::MulHiS => upper(true)?,
            BinOp::Shl => a.scaled(1 << by()?),
            BinOp::ShrU | BinOp::ShrS => Residue::part(a, by()?, bits - by()?, op == BinOp::ShrS, bits),
            BinOp::And => match (a.as_constant(), b.as_constant()) {
                (_, Some(c)) => masked(a, c as u64)?,
                (Some(c), _) => masked(b, c as u64)?,
                _ => match (a.mask_of_bit(), b.mask_of_bit()) {
                    (Some(bit), _) => bit.times(b)?,
                    (_, Some(bit)) => bit.times(a)?,
                    _ => return None,
                },
            },
            BinOp::Or | BinOp::Xor if a.is_above(b) || b.is_above(a) => a.plus(b, 1),
            BinOp::Xor if b.as_constant() == Some(ops::mask(bits).into()) => a.complement(),
            BinOp::Xor if a.as_constant() == Some(ops::mask(bits).into()) => b.complement(),
            _ => return None,
        };
        result.bounded()
    }

    fn un(op: UnOp, bits: u32, a: &Residue) -> Option<Residue> {
        let from = match op {
            UnOp::SExt8 => 8,
            UnOp::SExt16 => 16,
            UnOp::SExt32 => 32,
            _ => return None,
        };
        a.reduced(from.min(bits)).valued(true, bits).bounded()
    }

    fn compare(op: CmpOp, bits: u32, a: &Residue, b: &Residue) -> Option<Residue> {
        // The sign of the difference, in a word where it does not wrap.
        let below = |a: &Residue, b: &Residue, signed: bool| {
            let [a, b] = [a, b].map(|f| f.valued(signed, bits + 1));
            Residue::part(&a.plus(&b, -1), bits, 1, false, bits)
        };
        let not = |bit: Residue| Residue::constant(1, bits).plus(&bit, -1);
        let result = match op {
            CmpOp::LtS => below(a, b, true),
            CmpOp::LtU if a.as_constant() == Some(0) => b.nonzero(bits),
            CmpOp::LtU => below(a, b, false),
            CmpOp::LeS => not(below(b, a, true)),
            CmpOp::LeU => not(below(b, a, false)),
            CmpOp::Eq => not(a.plus(b, -1).nonzero(bits)),
            CmpOp::Ne => a.plus(b, -1).nonzero(bits),
        };
        result.bounded()
    }

    fn select(cond: &Residue, then: &Residue, els: &Residue) -> Option<Residue> {
        cond.range().filter(|r| r.0 >= 0 && r.1 <= 1)?;
        let bits = then.bits().max(els.bits());
        let [cond, then, els] = [cond, then, els].map(|f| f.within(bits));
        els.plus(&cond.times(&then.plus(&els, -1))?, 1).bounded()
    }

    fn slice(a: &Residue, low: u32, width: u32) -> Option<Residue> {
        Residue::part(a, low, width, false, a.bits()).bounded()
    }

    fn extended(a: &Residue, signed: bool, to: u32) -> Option<Residue> {
        a.reduced(32).valued(signed, to).bounded()
    }
}

/// The bits of a mask: if it has them side by side, or if all of them are the same.
fn masked(word: &Residue, mask: u64) -> Option<Residue> {
    if mask == 0 {
        return Some(Residue::constant(0, word.bits()));
    }
    let (low, width) = (mask.trailing_zeros(), mask.count_ones());
    if let Some(bit) = word.reduced(64 - mask.leading_zeros()).mask_of_bit() {
        return bit.valued(false, word.bits()).times(&Residue::constant(mask, word.bits()));
    }
    let beside = mask >> low == ops::mask(width);
    beside.then(|| Residue::part(word, low, width, false, word.bits()).scaled(1 << low))
}
