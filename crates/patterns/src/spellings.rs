//! The ways in which a program may have written what an instruction means.
//!
//! A pattern is a tree, and a program has the same sum grouped in another way, a
//! product with two as a shift, a rotate to the left for one to the right, or as two
//! shifts where the machine has no rotate. The instructions of a machine are written as
//! programs come to the selector; who writes an extension need not know how that is. So
//! their patterns are tried in all of these forms.
//!
//! Commuted operands are the matcher's business ([`crate::matcher`]), linear layers mixed
//! with other terms are recognition's.

use crate::graph::mapped;
use crate::pat::Pat;
use ciphermill_ir::BinOp;
use std::sync::Arc;

/// Terms of a sum that are grouped in every way; in a longer one those of its parts are.
const MOST_TERMS: usize = 4;
/// Patterns of one instruction, at most.
const MOST: usize = 96;

/// How rotates by a constant, or by an immediate, are written.
#[derive(Clone, Copy)]
enum Rotates {
    AsTheyAre,
    Left,
    Right,
    Shifts,
}

const ROTATES: [Rotates; 4] = [Rotates::AsTheyAre, Rotates::Left, Rotates::Right, Rotates::Shifts];

/// A pattern and everything else it may look like, in `word` bits; the first is itself.
pub fn spellings(pat: &Pat, word: u8) -> Vec<Pat> {
    let mut out = turned(pat, word);
    for rotates in ROTATES {
        for new in grouped(&rewritten(pat, rotates, word)) {
            if out.len() < MOST && !out.contains(&new) {
                out.push(new);
            }
        }
    }
    out
}

/// A pattern as it is grouped, with its rotates in all their forms; the first is itself.
pub fn turned(pat: &Pat, word: u8) -> Vec<Pat> {
    let mut out = vec![pat.clone()];
    for new in ROTATES.map(|rotates| rewritten(pat, rotates, word)) {
        if !out.contains(&new) {
            out.push(new);
        }
    }
    out
}

fn binary(op: BinOp, a: Pat, b: Pat) -> Pat {
    Pat::Bin(op, Arc::new(a), Arc::new(b))
}

/// In the form that the optimiser gives to programs, with rotates as they are wanted.
fn rewritten(pat: &Pat, rotates: Rotates, word: u8) -> Pat {
    let make = |p: &Pat, parts: &[Arc<Pat>]| {
        Some(Arc::new(match (p, parts) {
            (Pat::Bin(op, ..), [a, b]) => match (op, &**b) {
                (BinOp::Mul, Pat::Const(c)) if c.is_power_of_two() => {
                    Pat::Bin(BinOp::Shl, a.clone(), Arc::new(Pat::Const(u64::from(c.trailing_zeros()))))
                }
                // Into bits that a shift has cleared nothing is carried.
                (BinOp::Add, Pat::Const(c)) if cleared(a) & c == *c => Pat::Bin(BinOp::Or, a.clone(), b.clone()),
                (BinOp::RotL | BinOp::RotR, by @ (Pat::Const(_) | Pat::Imm(_))) => {
                    rotate(*op, a, by.clone(), rotates, word)
                }
                _ => Pat::Bin(*op, a.clone(), b.clone()),
            },
            (Pat::Un(op, _), [a]) => Pat::Un(*op, a.clone()),
            (Pat::Low(_), [a]) => Pat::Low(a.clone()),
            (Pat::Cmp(op, ..), [a, b]) => Pat::Cmp(*op, a.clone(), b.clone()),
            (Pat::Select(..), [c, a, b]) => Pat::Select(c.clone(), a.clone(), b.clone()),
            _ => p.clone(),
        }))
    };
    mapped(pat, &make).map_or_else(|| pat.clone(), Arc::unwrap_or_clone)
}

/// The low bits that a shift to the left has cleared.
fn cleared(pat: &Pat) -> u64 {
    match pat {
        Pat::Bin(BinOp::Shl, _, by) => match **by {
            Pat::Const(n) if n < 64 => (1 << n) - 1,
            _ => 0,
        },
        _ => 0,
    }
}

fn rotate(op: BinOp, a: &Arc<Pat>, by: Pat, rotates: Rotates, word: u8) -> Pat {
    let of = |op: BinOp, by: &Pat| Pat::Bin(op, a.clone(), Arc::new(by.clone()));
    let word = u64::from(word);
    // By how much to the other side is the same.
    let other = match &by {
        Pat::Const(c) => Pat::Const((word - c % word) % word),
        by => binary(BinOp::Sub, Pat::Const(word), by.clone()),
    };
    let by = match by {
        Pat::Const(c) => Pat::Const(c % word),
        by => by,
    };
    let (left, right) = if op == BinOp::RotL { (&by, &other) } else { (&other, &by) };
    match rotates {
        Rotates::Left => of(BinOp::RotL, left),
        Rotates::Right => of(BinOp::RotR, right),
        Rotates::Shifts if *left != Pat::Const(0) => binary(BinOp::Or, of(BinOp::Shl, left), of(BinOp::ShrU, right)),
        Rotates::AsTheyAre | Rotates::Shifts => of(op, &by),
    }
}

/// Every way to put the brackets of the sums and products in a pattern.
fn grouped(pat: &Pat) -> Vec<Pat> {
    match pat {
        Pat::Bin(op, a, b) if associates(*op) => {
            let mut terms = Vec::new();
            flatten(*op, pat, &mut terms);
            if terms.len() <= MOST_TERMS {
                let terms: Vec<Vec<Pat>> = terms.into_iter().map(grouped).collect();
                return trees(*op, &terms);
            }
            pairs(&grouped(a), &grouped(b), &|a, b| binary(*op, a, b))
        }
        Pat::Bin(op, a, b) => pairs(&grouped(a), &grouped(b), &|a, b| binary(*op, a, b)),
        Pat::Cmp(op, a, b) => pairs(&grouped(a), &grouped(b), &|a, b| Pat::Cmp(*op, Arc::new(a), Arc::new(b))),
        Pat::Un(op, a) => grouped(a).into_iter().map(|a| Pat::Un(*op, Arc::new(a))).collect(),
        _ => vec![pat.clone()],
    }
}

fn associates(op: BinOp) -> bool {
    matches!(op, BinOp::Add | BinOp::Mul | BinOp::And | BinOp::Or | BinOp::Xor)
}

fn flatten<'a>(op: BinOp, pat: &'a Pat, out: &mut Vec<&'a Pat>) {
    match pat {
        Pat::Bin(o, a, b) if *o == op => {
            flatten(op, a, out);
            flatten(op, b, out);
        }
        _ => out.push(pat),
    }
}

/// All trees over the terms, each of which has several forms. The first term is in the
/// left half, so that no tree comes twice.
fn trees(op: BinOp, terms: &[Vec<Pat>]) -> Vec<Pat> {
    let [first, rest @ ..] = terms else { return Vec::new() };
    if rest.is_empty() {
        return first.clone();
    }
    let mut out = Vec::new();
    // Bit n of `left`: term n of the rest goes with the first. Not all of them may.
    for left in 0..(1usize << rest.len()) - 1 {
        let side =
            |bit: usize| rest.iter().enumerate().filter(move |(n, _)| left >> n & 1 == bit).map(|(_, t)| t.clone());
        let with_first: Vec<Vec<Pat>> = std::iter::once(first.clone()).chain(side(1)).collect();
        let others: Vec<Vec<Pat>> = side(0).collect();
        out.extend(pairs(&trees(op, &with_first), &trees(op, &others), &|a, b| binary(op, a, b)));
        out.truncate(MOST);
    }
    out
}

fn pairs(a: &[Pat], b: &[Pat], make: &dyn Fn(Pat, Pat) -> Pat) -> Vec<Pat> {
    a.iter().flat_map(|x| b.iter().map(|y| make(x.clone(), y.clone()))).take(MOST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reg() -> Pat {
        Pat::Reg(0)
    }

    fn with(op: BinOp, a: Pat, c: u64) -> Pat {
        binary(op, a, Pat::Const(c))
    }

    #[test]
    fn a_sum_of_three_rotates_in_all_its_forms() {
        let turned = |op: BinOp, n: u64| with(op, reg(), n);
        let written = binary(BinOp::Xor, binary(BinOp::Xor, reg(), turned(BinOp::RotR, 19)), turned(BinOp::RotR, 28));
        let all = spellings(&written, 64);
        // Three groupings, each with rotates to the right, to the left, and as shifts.
        assert_eq!(all.len(), 9);
        assert_eq!(all[0], written);
        let clang = binary(BinOp::Xor, binary(BinOp::Xor, turned(BinOp::RotL, 45), turned(BinOp::RotL, 36)), reg());
        let same = |p: &Pat| commuted(p, &clang);
        assert!(all.iter().any(same));
    }

    #[test]
    fn a_rotate_by_an_immediate_is_two_shifts_of_which_one_is_by_the_rest() {
        let other = binary(BinOp::Sub, Pat::Const(32), Pat::Imm(2));
        let sum = |turned: Pat| binary(BinOp::Xor, turned, Pat::Reg(1));
        let all = spellings(&sum(binary(BinOp::RotL, reg(), Pat::Imm(2))), 32);
        assert!(all.contains(&sum(binary(BinOp::RotR, reg(), other.clone()))));
        let shifts = binary(BinOp::Or, binary(BinOp::Shl, reg(), Pat::Imm(2)), binary(BinOp::ShrU, reg(), other));
        assert!(all.contains(&sum(shifts)));
    }

    /// The same but for the order of operands.
    fn commuted(a: &Pat, b: &Pat) -> bool {
        match (a, b) {
            (Pat::Bin(p, a, b), Pat::Bin(q, c, d)) if p == q => {
                commuted(a, c) && commuted(b, d) || p.commutes() && commuted(a, d) && commuted(b, c)
            }
            _ => a == b,
        }
    }

    #[test]
    fn a_product_with_two_and_one_is_a_shift_and_a_bit() {
        let written = with(BinOp::Add, with(BinOp::Mul, reg(), 2), 1);
        assert!(spellings(&written, 32).contains(&with(BinOp::Or, with(BinOp::Shl, reg(), 1), 1)));
        let carries = with(BinOp::Add, with(BinOp::Mul, reg(), 2), 3);
        assert!(spellings(&carries, 32).contains(&with(BinOp::Add, with(BinOp::Shl, reg(), 1), 3)));
    }

    #[test]
    fn four_terms_have_fifteen_groupings() {
        let sum = |n: usize| (1..n).fold(reg(), |s, i| binary(BinOp::Add, s, Pat::Reg(i)));
        assert_eq!(spellings(&sum(4), 32).len(), 15);
        assert_eq!(spellings(&sum(5), 32).len(), 15, "those of the inner four");
    }
}
