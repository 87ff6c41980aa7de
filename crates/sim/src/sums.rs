//! Sums whose terms may be added in any order.
//!
//! A chain `((a ^ b) ^ c) ^ d` takes three operations one after the other as it
//! was written, and two when it is written as a tree. How C code or a compiler
//! happened to associate says nothing about a cipher, so its critical path is
//! taken over the best order: for a value that is a sum of terms that exist at
//! certain times, always the two earliest are added first, which is optimal
//! for any operation of constant latency (Golumbic, IEEE ToC 1976).
//!
//! What counts as one sum: operations that associate and commute (`+`, `^`,
//! `&`, `|`) on two registers or immediates. An `|` of words that share no bit
//! is an `^`, whatever the values: which bits a word may have is followed
//! through loads of bytes, shifts and masks.

use ciphermill_ir::BinOp;
use ciphermill_machine::sem::{Expr, Stmt};
use ciphermill_machine::{Instr, Reg};
use ciphermill_program::{Inst, Operand};

/// A value as a sum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sum {
    pub op: BinOp,
    /// Cycles of one addition.
    pub latency: u64,
    /// When each term exists; None: before everything else.
    pub terms: Vec<Option<u64>>,
}

/// Longer sums are taken as they are.
const MOST: usize = 64;

impl Sum {
    /// When the whole exists; None when no term depends on anything.
    pub fn depth(&self) -> Option<u64> {
        let mut left = self.terms.clone();
        left.sort_unstable_by(|a, b| b.cmp(a));
        while left.len() > 1 {
            let (Some(a), Some(b)) = (left.pop(), left.pop()) else { break };
            let sum = a.max(b).map(|d| d + self.latency);
            let at = left.partition_point(|&t| t > sum);
            left.insert(at, sum);
        }
        left.pop().flatten()
    }

    /// The sum of two sums.
    pub fn join(op: BinOp, latency: u64, parts: [Vec<Option<u64>>; 2]) -> Sum {
        let mut sum = Sum { op, latency, terms: parts.concat() };
        if sum.terms.len() > MOST {
            sum.terms = vec![sum.depth()];
        }
        sum
    }
}

/// If all that an instruction does is to add two things: the operation and the
/// two.
pub fn addition(instr: &Instr) -> Option<(BinOp, [&Expr; 2])> {
    let [Stmt::Assign { value: Expr::Bin { op, a, b, .. }, .. }] = &instr.semantics[..] else { return None };
    let simple = |e: &Expr| matches!(e, Expr::Operand(_) | Expr::Imm(_) | Expr::Const(_));
    let sums = matches!(op, BinOp::Add | BinOp::Xor | BinOp::And | BinOp::Or);
    (sums && simple(a) && simple(b)).then_some((*op, [a, b]))
}

/// The bits that an expression's value may have, from those of the registers.
/// `word` has all bits of a word.
pub fn possible(inst: &Inst, e: &Expr, word: u64, of: &impl Fn(Reg) -> u64) -> u64 {
    let bits = |e: &Expr| possible(inst, e, word, of);
    let fixed = |e: &Expr| match e {
        Expr::Const(c) => Some(*c),
        Expr::Imm(i) => match inst.operands.get(*i) {
            Some(Operand::Imm(x)) => Some(*x as u64),
            _ => None,
        },
        _ => None,
    };
    let found = match e {
        Expr::Operand(i) => match inst.operands.get(*i) {
            Some(Operand::Reg(r)) => of(*r),
            _ => word,
        },
        Expr::Fixed(r) => of(*r),
        Expr::Imm(_) | Expr::Const(_) => fixed(e).unwrap_or(word),
        Expr::Bin { op: BinOp::And, a, b, .. } => bits(a) & bits(b),
        Expr::Bin { op: BinOp::Or | BinOp::Xor, a, b, .. } => bits(a) | bits(b),
        Expr::Bin { op: op @ (BinOp::Shl | BinOp::ShrU), a, b, .. } => match (op, fixed(b)) {
            (BinOp::Shl, Some(n @ 0..64)) => bits(a) << n,
            (BinOp::ShrU, Some(n @ 0..64)) => (bits(a) & word) >> n,
            _ => word,
        },
        Expr::Slice { a, lo, width: width @ 0..64 } => (bits(a) >> lo.min(&63)) & ((1 << width) - 1),
        Expr::Load { bytes: bytes @ 0..8, signed: false, .. } => (1 << (8 * u32::from(*bytes))) - 1,
        Expr::Cmp { .. } => 1,
        _ => word,
    };
    found & word
}

#[cfg(test)]
mod tests {
    use super::*;

    fn depth(terms: &[Option<u64>]) -> Option<u64> {
        Sum { op: BinOp::Xor, latency: 1, terms: terms.to_vec() }.depth()
    }

    #[test]
    fn the_two_earliest_first() {
        // Four lookups and a key that was there before: a tree of three levels.
        assert_eq!(depth(&[Some(4), Some(4), Some(4), Some(4), None]), Some(7));
        // Three that come a cycle later leave the key and the first time to meet.
        assert_eq!(depth(&[Some(4), Some(5), Some(5), Some(5), None]), Some(7));
        // A late one waits for nobody.
        assert_eq!(depth(&[Some(1), Some(1), Some(1), Some(9)]), Some(10));
        assert_eq!(depth(&[None, None, Some(3)]), Some(4));
        assert_eq!(depth(&[None, None]), None);
        assert_eq!(depth(&[Some(5)]), Some(5));
    }

    #[test]
    fn a_long_sum_ends_somewhere() {
        let half = vec![Some(0); 40];
        let sum = Sum::join(BinOp::Xor, 1, [half.clone(), half]);
        assert_eq!(sum.terms, [Some(7)]);
    }
}
