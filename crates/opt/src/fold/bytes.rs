//! Byte permutations: an or of shifted and masked copies of one word.
//!
//! Compilers write a byte reversal as four shifts, masks and ors, or as two
//! rotates and masks, or with halves exchanged first. Instead of listing
//! shapes, the expression is evaluated symbolically: each byte of a value is
//! zero, byte `i` of some other value, or neither. If the bytes of an `or`
//! come out as those of one word reversed, in place, or rotated, it is
//! `Bswap`, that word, or a `RotL`.

use super::Folder;
use ciphermill_ir::{BinOp, Op, Type, UnOp, Value};

/// What a byte of a value is known to be.
#[derive(Clone, Copy, PartialEq)]
enum Byte {
    Zero,
    Of(Value, u8),
}

/// The bytes of a value, least significant first, of which the first
/// `width / 8` count. `None` is a byte of no known shape.
type Bytes = [Option<Byte>; 8];

/// Ors nested deeper than this are not followed: a reversal of 8 bytes is
/// seven ors, and each arm a mask and a shift or two.
const DEPTH: u32 = 8;

impl Folder<'_> {
    /// The value of `x | y` if its bytes are a permutation of one word's.
    pub(super) fn byte_permutation(&mut self, x: Value, y: Value, ty: Type) -> Option<Value> {
        let n = ty.bits() as usize / 8;
        let mut budget = 64;
        let (a, b) = (self.bytes(x, DEPTH, &mut budget), self.bytes(y, DEPTH, &mut budget));
        let all = union(&a, &b);
        let Some(Byte::Of(word, first)) = all[0] else { return None };
        let first = usize::from(first);
        let is = |f: &dyn Fn(usize) -> usize| (0..n).all(|i| all[i] == Some(Byte::Of(word, f(i) as u8)));
        if is(&|i| n - 1 - i) {
            return self.bswap.then(|| self.build(Op::Un(UnOp::Bswap), &[word], ty));
        }
        if is(&|i| (i + first) % n) {
            let left = (n - first) % n * 8;
            return Some(self.bin_const(BinOp::RotL, word, left as u64, ty));
        }
        None
    }

    fn bytes(&self, v: Value, depth: u32, budget: &mut u32) -> Bytes {
        let v = self.func.resolve(v);
        let n = self.func.ty(v).bits() as usize / 8;
        let mut opaque: Bytes = [None; 8];
        for (i, byte) in opaque.iter_mut().enumerate().take(n) {
            *byte = Some(Byte::Of(v, i as u8));
        }
        if depth == 0 || *budget == 0 {
            return opaque;
        }
        *budget -= 1;
        let known = match self.def(v) {
            Some((Op::Bin(BinOp::Or | BinOp::Xor | BinOp::Add), [a, b])) => {
                let (a, b) = (self.bytes(a, depth - 1, budget), self.bytes(b, depth - 1, budget));
                disjoint(&a, &b, n).then(|| union(&a, &b))
            }
            Some((Op::Bin(BinOp::And), [a, b])) => self.constant(b).and_then(|c| {
                let mut bytes = self.bytes(a, depth - 1, budget);
                for (i, byte) in bytes.iter_mut().enumerate().take(n) {
                    match (c >> (8 * i)) & 0xff {
                        0xff => {}
                        0 => *byte = Some(Byte::Zero),
                        _ => return None,
                    }
                }
                Some(bytes)
            }),
            Some((Op::Bin(op @ (BinOp::Shl | BinOp::ShrU | BinOp::RotL)), [a, b])) => self.constant(b).and_then(|c| {
                let k = c as usize % (8 * n);
                if !k.is_multiple_of(8) {
                    return None;
                }
                Some(moved(op, &self.bytes(a, depth - 1, budget), k / 8, n))
            }),
            Some((Op::Un(UnOp::Bswap), [a, _])) => {
                let mut bytes = self.bytes(a, depth - 1, budget);
                bytes[..n].reverse();
                Some(bytes)
            }
            _ => None,
        };
        known.unwrap_or(opaque)
    }
}

/// The bytes of a shift or rotate by `k` whole bytes.
fn moved(op: BinOp, from: &Bytes, k: usize, n: usize) -> Bytes {
    let mut to: Bytes = [None; 8];
    for (i, byte) in to.iter_mut().enumerate().take(n) {
        *byte = match op {
            BinOp::RotL => from[(i + n - k) % n],
            BinOp::Shl if i < k => Some(Byte::Zero),
            BinOp::Shl => from[i - k],
            _ if i + k < n => from[i + k],
            _ => Some(Byte::Zero),
        };
    }
    to
}

fn disjoint(a: &Bytes, b: &Bytes, n: usize) -> bool {
    (0..n).all(|i| a[i] == Some(Byte::Zero) || b[i] == Some(Byte::Zero))
}

fn union(a: &Bytes, b: &Bytes) -> Bytes {
    std::array::from_fn(|i| match (a[i], b[i]) {
        (Some(Byte::Zero), other) | (other, Some(Byte::Zero)) => other,
        _ => None,
    })
}
