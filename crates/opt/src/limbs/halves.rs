//! Moves by half a limb: halves are exchanged within each limb, and then one of them between neighbours.

use super::emit::Emit;
use super::width::Limbs;
use ciphermill_ir::{BinOp, Chain, Value};

/// Instructions for each limb, about: its exchange, and two or three for the half that comes from the neighbour.
const HALF_MOVE: u32 = 5;

impl Emit {
    /// Is it worth while to move by half a limb at once, rather than bit by bit? `steps` bits are left then, and
    /// `otherwise` are to be moved without; each takes an instruction for each of `width` words.
    pub(super) fn halves_pay(&self, limbs: usize, width: u32, steps: u32, otherwise: u32) -> bool {
        HALF_MOVE * limbs as u32 + steps * width < otherwise * width
    }

    /// `a` rotated to the left by half a limb.
    pub(super) fn rotate_half(&mut self, a: &[Value]) -> Limbs {
        let swapped = self.swapped(a);
        (0..a.len()).map(|k| self.joined(swapped[k], swapped[(k + a.len() - 1) % a.len()])).collect()
    }

    /// `a << half a limb`.
    pub(super) fn left_half(&mut self, a: &[Value]) -> Limbs {
        let (swapped, zero) = (self.swapped(a), self.constant(0));
        (0..a.len()).map(|k| self.joined(swapped[k], if k == 0 { zero } else { swapped[k - 1] })).collect()
    }

    /// `a >> half a limb`, zeros coming in.
    pub(super) fn right_half(&mut self, a: &[Value]) -> Limbs {
        let (swapped, zero) = (self.swapped(a), self.constant(0));
        (0..a.len()).map(|k| self.joined(swapped.get(k + 1).copied().unwrap_or(zero), swapped[k])).collect()
    }

    fn swapped(&mut self, a: &[Value]) -> Limbs {
        a.iter().map(|&v| self.chain(Chain::Swap, &[v])[0]).collect()
    }

    /// The upper half of one limb and the lower half of another.
    fn joined(&mut self, upper: Value, lower: Value) -> Value {
        let half = self.ones() >> (self.bits / 2);
        let (low, high) = (self.constant(half), self.constant(self.ones() ^ half));
        if self.is_zero(upper) || self.is_zero(lower) {
            let (v, mask) = if self.is_zero(upper) { (lower, low) } else { (upper, high) };
            return self.bitwise(BinOp::And, v, mask);
        }
        let differ = self.bitwise(BinOp::Xor, upper, lower);
        let differ = self.bitwise(BinOp::And, differ, low);
        self.bitwise(BinOp::Xor, upper, differ)
    }
}
