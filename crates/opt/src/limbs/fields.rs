//! Bits cut out of a value: `(x >> n) & m` and the like, where all of them come from one limb and go to one.
//!
//! The shift by itself would bring bits of the neighbouring limb, which the mask then takes off again.

use super::Lower;
use super::width::Limbs;
use ciphermill_ir::{BinOp, InstData, Op};

impl Lower<'_> {
    /// The limbs of an `and` with a constant, if its other operand is such a shift.
    pub(super) fn field(&mut self, data: &InstData) -> Option<Limbs> {
        let mask = self.old.as_const(data.args[1])?;
        let shift = &self.old.insts[self.old.def_inst(data.args[0])?];
        let Op::Bin(op @ (BinOp::Shl | BinOp::ShrU)) = shift.op else { return None };
        let (from, n) = (shift.args[0], self.old.as_const(shift.args[1])?);
        let back = if op == BinOp::Shl { BinOp::ShrU } else { BinOp::Shl };
        let taken = back.eval(mask, n, 32).unwrap_or(0) & self.masks.possible(&self.old, from);
        let made = op.eval(taken, n, 32).unwrap_or(0);
        let bits = self.narrow.bits;
        let limb = |set: u64| {
            let k = set.trailing_zeros() / bits;
            (set != 0 && set >> (k * bits) <= self.emit.ones()).then_some(k)
        };
        let (source, result) = (limb(taken)?, limb(made)?);
        let word = self.limbs(from)[source as usize];
        let lowest = |set: u64, limb: u32| set.trailing_zeros() - limb * bits;
        let (at, to) = (lowest(taken, source), lowest(made, result));
        let moved = if to < at { self.emit.right_limb(word, at - to) } else { self.emit.left_limb(word, to - at) };
        let kept = self.emit.constant(made >> (result * bits));
        let field = self.emit.bitwise(BinOp::And, moved, kept);
        let zero = self.emit.constant(0);
        let mut limbs: Limbs = std::iter::repeat_n(zero, result as usize).collect();
        limbs.push(field);
        Some(limbs)
    }
}
