//! Shifts and rotates of limbs.
//!
//! By whole limbs they rename. By less than a limb a chain moves everything by one bit, as often as needed: to the one
//! side, or to the other one from a limb further on, whichever takes fewer instructions. Half a limb of a single limb
//! is an exchange of its halves.

use super::emit::Emit;
use super::width::Limbs;
use ciphermill_ir::{BinOp, Chain, CmpOp, Target, Terminator, Type, Value};
use std::ops::Range;

impl Emit {
    /// Shift or rotate a whole value by `n` bits; of the result only the limbs in `wanted` count.
    pub fn shift(&mut self, op: BinOp, a: &[Value], n: u32, wanted: Range<usize>) -> Limbs {
        let (count, width) = (a.len(), a.len() as u32 * self.bits);
        let zero = self.constant(0);
        let (limbs, rest) = ((n / self.bits) as usize, n % self.bits);
        match op {
            _ if n == 0 => a.iter().copied().collect(),
            BinOp::Shl => {
                let moved: Limbs = std::iter::repeat_n(zero, limbs).chain(a.iter().copied()).take(count).collect();
                self.left(&moved, rest, wanted)
            }
            BinOp::ShrU => {
                let moved: Limbs = a[limbs..].iter().copied().chain(std::iter::repeat(zero)).take(count).collect();
                self.right(&moved, rest, wanted, false)
            }
            BinOp::ShrS => {
                let sign = if limbs > 0 || wanted.end < count { self.sign(a[count - 1]) } else { zero };
                let moved: Limbs = a[limbs..].iter().copied().chain(std::iter::repeat(sign)).take(count).collect();
                self.right(&moved, rest, wanted, true)
            }
            BinOp::RotR => self.shift(BinOp::RotL, a, width - n, wanted),
            // Where limbs are zero or not wanted, two shifts move less.
            _ if wanted != (0..count) || a.iter().any(|&v| self.is_zero(v)) => {
                let left = self.shift(BinOp::Shl, a, n, wanted.clone());
                let right = self.shift(BinOp::ShrU, a, width - n, wanted);
                left.iter().zip(&right).map(|(&l, &r)| self.bitwise(BinOp::Or, l, r)).collect()
            }
            _ if self.halves_pay(count, count as u32 + 1, rest.abs_diff(self.bits / 2), rest.min(self.bits - rest)) => {
                let half = self.bits / 2;
                let moved: Limbs = (0..count).map(|k| a[(k + count - limbs % count) % count]).collect();
                let mut turned = self.rotate_half(&moved);
                let chain = if rest < half { Chain::RotR } else { Chain::RotL };
                for _ in 0..rest.abs_diff(half) {
                    turned = self.chain(chain, &turned).into_iter().collect();
                }
                turned
            }
            _ => {
                let back = rest > self.bits / 2;
                let limbs = limbs + usize::from(back);
                let mut turned: Limbs = (0..count).map(|k| a[(k + count - limbs % count) % count]).collect();
                let (chain, times) = if back { (Chain::RotR, self.bits - rest) } else { (Chain::RotL, rest) };
                for _ in 0..times {
                    turned = self.chain(chain, &turned).into_iter().collect();
                }
                turned
            }
        }
    }

    /// `a << n`, `n` less than a limb.
    fn left(&mut self, a: &[Value], n: u32, wanted: Range<usize>) -> Limbs {
        let mut out: Limbs = a.iter().copied().collect();
        if n == 0 || wanted.is_empty() {
            return out;
        }
        // Bits come from one limb below, and from none that is zero.
        let first = a.iter().position(|&v| !self.is_zero(v)).unwrap_or(0).max(wanted.start.saturating_sub(1));
        let end = wanted.end.max(first + 1);
        // A limb above the last one that is not zero takes what leaves it.
        let last = a[..end].iter().rposition(|&v| !self.is_zero(v)).map_or(first, |k| k + 1);
        let end = end.min(last + 1).max(first + 1);
        let length = (end - first) as u32;
        if length == 1 {
            out[first] = self.left_limb(a[first], n);
            return out;
        }
        let half = self.bits / 2;
        if n >= half && self.halves_pay(end - first, length, n - half, n) {
            let moved = self.left_half(&a[first..end]);
            out[first..end].copy_from_slice(&moved);
            return self.left(&out, n - half, wanted);
        }
        if n * length <= (self.bits - n) * (length + 1) {
            for _ in 0..n {
                let part: Limbs = out[first..end].iter().copied().collect();
                let sum = self.chain(Chain::Add, &[&part[..], &part[..]].concat());
                out[first..end].copy_from_slice(&sum);
            }
            return out;
        }
        let mut part: Limbs = std::iter::once(self.constant(0)).chain(out[first..end].iter().copied()).collect();
        for _ in 0..self.bits - n {
            part = self.chain(Chain::ShrU, &part).into_iter().collect();
        }
        out[first..end].copy_from_slice(&part[..part.len() - 1]);
        out
    }

    /// `a >> n`, `n` less than a limb.
    fn right(&mut self, a: &[Value], n: u32, wanted: Range<usize>, signed: bool) -> Limbs {
        let mut out: Limbs = a.iter().copied().collect();
        if n == 0 || wanted.is_empty() {
            return out;
        }
        // Bits come from one limb above.
        let first = wanted.start;
        let mut end = (wanted.end + 1).min(a.len());
        let top = end == a.len();
        while !signed && end > first + 1 && self.is_zero(a[end - 1]) {
            end -= 1;
        }
        // What is left of a limb with copies of its sign above it is its sign.
        if n == self.bits - 1 && wanted.clone().all(|k| k + 1 < a.len() && a[k + 1] == self.sign(a[k])) {
            wanted.for_each(|k| out[k] = a[k + 1]);
            return out;
        }
        let length = (end - first) as u32;
        if length == 1 && !signed {
            out[first] = self.right_limb(a[first], n);
            return out;
        }
        let half = self.bits / 2;
        if !(signed && top) && n >= half && self.halves_pay(end - first, length, n - half, n) {
            let moved = self.right_half(&a[first..end]);
            out[first..end].copy_from_slice(&moved);
            return self.right(&out, n - half, wanted, false);
        }
        if n * length <= (self.bits - n) * (length + 1) + if signed && top { 2 } else { 0 } {
            let chain = if signed && top { Chain::ShrS } else { Chain::ShrU };
            for _ in 0..n {
                let part: Limbs = out[first..end].iter().copied().collect();
                let moved = self.chain(chain, &part);
                out[first..end].copy_from_slice(&moved);
            }
            return out;
        }
        let above = if signed && top { self.sign(a[end - 1]) } else { self.constant(0) };
        let mut part: Limbs = out[first..end].iter().copied().chain([above]).collect();
        for _ in 0..self.bits - n {
            part = self.chain(Chain::Add, &[&part[..], &part[..]].concat()).into_iter().collect();
        }
        out[first..end].copy_from_slice(&part[1..]);
        out
    }

    pub(super) fn left_limb(&mut self, a: Value, n: u32) -> Value {
        let half = self.bits / 2;
        let (mut v, rest) = if n >= half {
            let mask = self.constant(self.ones() & self.ones() << half);
            let swapped = self.chain(Chain::Swap, &[a])[0];
            (self.bitwise(BinOp::And, swapped, mask), n - half)
        } else {
            (a, n)
        };
        for _ in 0..rest {
            v = self.chain(Chain::Add, &[v, v])[0];
        }
        v
    }

    pub(super) fn right_limb(&mut self, a: Value, n: u32) -> Value {
        let half = self.bits / 2;
        let (mut v, rest) = if n >= half {
            let mask = self.constant(self.ones() >> half);
            let swapped = self.chain(Chain::Swap, &[a])[0];
            (self.bitwise(BinOp::And, swapped, mask), n - half)
        } else {
            (a, n)
        };
        for _ in 0..rest {
            v = self.chain(Chain::ShrU, &[v])[0];
        }
        v
    }

    /// Shift or rotate by an amount that is not known: a loop of one bit each time.
    pub fn shift_by(&mut self, op: BinOp, a: &[Value], amount: Value) -> Limbs {
        let most = self.constant(31);
        let count = self.bitwise(BinOp::And, amount, most);
        let (head, body, exit) = {
            let exit = self.new_block();
            let body = self.new_block();
            (self.new_block(), body, exit)
        };
        let start: Vec<Value> = a.iter().copied().chain([count]).collect();
        self.end(Terminator::Jump(Target::new(head, start)));
        let params: Vec<Value> = (0..=a.len()).map(|_| self.func.add_param(head, Type::I32)).collect();
        let (left, value) = (params[a.len()], &params[..a.len()]);
        self.at(head);
        let zero = self.constant(0);
        let branch = self.branch(CmpOp::Eq, &[left], &[zero], Target::new(exit, vec![]), Target::new(body, vec![]));
        self.end(branch);
        self.at(body);
        let mut moved = match op {
            BinOp::Shl => self.chain(Chain::Add, &[value, value].concat()),
            BinOp::ShrU => self.chain(Chain::ShrU, value),
            BinOp::ShrS => self.chain(Chain::ShrS, value),
            BinOp::RotL => self.chain(Chain::RotL, value),
            _ => self.chain(Chain::RotR, value),
        };
        let one = self.constant(1);
        moved.extend(self.chain(Chain::Sub, &[left, one]));
        self.end(Terminator::Jump(Target::new(head, moved)));
        self.at(exit);
        value.iter().copied().collect()
    }
}
