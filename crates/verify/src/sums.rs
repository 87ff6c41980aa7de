//! Addresses as sums of terms times constants, plus a constant, modulo 2^32.
//!
//! Adding, subtracting and multiplying agree modulo 2^32 whatever is above the lowest 32 bits of a
//! word. So what an instruction makes of sums is worked out from its semantics, and two addresses
//! that are sums of the same terms are as far apart, modulo 2^32, as their constants. Two bytes of
//! one address are of one address modulo 2^32: accesses that are apart there touch no common byte.
//! Where the terms are others, how far two addresses are apart lies in a range, and is a multiple of
//! something beside a constant, by the bits that the terms may have ([`crate::bits`]).

use crate::bits;
use crate::code::{Arg, Inst};
use crate::terms::{Kind, Map, Place, Term, Terms};
use ciphermill_ir::{BinOp, UnOp};
use ciphermill_machine::sem::{Expr, Stmt};
use ciphermill_machine::{Instr, Machine, OperandKind};
use std::cell::{Cell, RefCell};

/// Operations of an instruction's result, each as often as it is read, beyond which it is no sum.
const LARGEST: u32 = 1_000;
/// A sum of more terms is a term of its own.
const LONGEST: usize = 12;

/// Terms in their order, each with its factor, which is not 0, and a constant.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Sum {
    parts: Vec<(Term, u32)>,
    constant: u32,
}

impl Sum {
    pub fn of(term: Term) -> Sum {
        Sum { parts: vec![(term, 1)], constant: 0 }
    }

    pub fn number(value: u64) -> Sum {
        Sum { parts: Vec::new(), constant: value as u32 }
    }

    /// The number that it is, if it is one.
    pub fn known(&self) -> Option<u32> {
        Some(self.constant).filter(|_| self.parts.is_empty())
    }

    /// `a * self + b * other`
    fn combined(&self, a: u32, other: &Sum, b: u32) -> Sum {
        let scaled = |s: &Sum, by: u32| s.parts.iter().map(|p| (p.0, p.1.wrapping_mul(by))).collect::<Vec<_>>();
        let mut parts = scaled(self, a);
        parts.extend(scaled(other, b));
        parts.sort_unstable_by_key(|p| p.0);
        parts.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 = kept.1.wrapping_add(next.1);
            }
            same
        });
        parts.retain(|p| p.1 != 0);
        let constant = self.constant.wrapping_mul(a).wrapping_add(other.constant.wrapping_mul(b));
        Sum { parts, constant }
    }

    pub fn times(&self, by: u32) -> Sum {
        self.combined(by, &Sum::default(), 0)
    }

    pub fn plus(&self, other: &Sum) -> Sum {
        self.combined(1, other, 1)
    }

    /// The same without its constant.
    fn root(&self) -> Sum {
        Sum { constant: 0, ..self.clone() }
    }
}

/// Of terms that are sums of others, these sums; and of all, the bits that they may have.
#[derive(Default)]
pub(crate) struct Sums {
    of: Map<Term, Sum>,
    bits: Map<Term, u64>,
    /// What places are counted from.
    roots: Map<Term, Sum>,
    /// How far two of those are apart.
    gaps: RefCell<Map<u64, Gap>>,
}

impl Sums {
    /// Does nobody know yet whether a term is a sum, and what bits it may have?
    pub fn is_plain(&self, t: Term) -> bool {
        !self.of.contains_key(&t) && !self.bits.contains_key(&t)
    }

    /// A term is this sum, modulo 2^32.
    pub fn say(&mut self, t: Term, sum: Sum) {
        self.of.entry(t).or_insert(sum);
    }

    /// A term has no other bits than these.
    pub fn say_bits(&mut self, t: Term, bits: u64) {
        self.bits.entry(t).or_insert(bits);
    }

    /// A term as a sum, of itself if nothing else is known.
    pub fn of(&self, terms: &Terms, t: Term) -> Sum {
        match terms.number(t) {
            Some(n) => Sum::number(n),
            None => self.of.get(&t).cloned().unwrap_or_else(|| Sum::of(t)),
        }
    }

    /// The bits that a term may have.
    pub fn bits(&self, terms: &Terms, t: Term) -> u64 {
        terms.number(t).unwrap_or_else(|| self.bits.get(&t).copied().unwrap_or(u64::MAX))
    }

    /// Where an address is that is this sum.
    pub fn place(&mut self, terms: &mut Terms, sum: &Sum) -> Place {
        let mut key = vec![Kind::Sum as u32];
        key.extend(sum.parts.iter().flat_map(|p| [p.0, p.1]));
        let root = terms.of(&key);
        self.roots.entry(root).or_insert_with(|| sum.root());
        Place { root, at: sum.constant }
    }

    /// Can `bytes` from a place on be none of as many as are there from another one on?
    pub fn apart(&self, one: (Place, u8), other: (Place, u8)) -> bool {
        let ((a, a_bytes), (b, b_bytes)) = (one, other);
        let key = u64::from(a.root) << 32 | u64::from(b.root);
        let known = self.gaps.borrow().get(&key).copied();
        let gap = known.unwrap_or_else(|| {
            let gap = self.gap(a.root, b.root);
            self.gaps.borrow_mut().insert(key, gap);
            gap
        });
        gap.apart(b.at.wrapping_sub(a.at), u32::from(a_bytes), u32::from(b_bytes))
    }

    /// How far the second root is from the first.
    fn gap(&self, from: Term, to: Term) -> Gap {
        let (Some(from), Some(to)) = (self.roots.get(&from), self.roots.get(&to)) else { return Gap::UNKNOWN };
        let between = to.combined(1, from, u32::MAX);
        let most = |part: &(Term, u32)| self.bits.get(&part.0).map_or(u32::MAX, |bits| *bits as u32);
        between.parts.iter().fold(Gap::NONE, |gap, part| gap.plus(part.1, most(part)))
    }
}

/// What is known of a difference modulo 2^32: it is `low` and at most `extent` more, and a multiple of a
/// power of two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Gap {
    low: u32,
    extent: u64,
    /// The power of two; 2^32 if the difference is 0.
    multiple: u64,
}

impl Gap {
    const NONE: Gap = Gap { low: 0, extent: 0, multiple: 1 << 32 };
    const UNKNOWN: Gap = Gap { low: 0, extent: u32::MAX as u64, multiple: 1 };

    /// The difference plus a factor times a number with no other bits than these.
    fn plus(self, factor: u32, bits: u32) -> Gap {
        let lowest = |x: u32| u64::from(x & x.wrapping_neg());
        // The factor is as well a negative one.
        let size = factor.min(factor.wrapping_neg());
        let reach = u64::from(size) * u64::from(bits);
        let low = if size == factor { self.low } else { self.low.wrapping_sub(reach as u32) };
        let multiple = match lowest(factor) * lowest(bits) {
            0 => self.multiple,
            own => self.multiple.min(own),
        };
        Gap { low, extent: self.extent.saturating_add(reach), multiple }
    }

    /// Do so many bytes, and so many others that begin this far behind and `behind` more, not overlap?
    fn apart(&self, behind: u32, bytes: u32, others: u32) -> bool {
        // Bytes of both are one where the difference is one of these numbers, from 1 - others to bytes - 1.
        let (first, count) = (1u32.wrapping_sub(others), u64::from(bytes) + u64::from(others) - 1);
        let from_low = u64::from(first.wrapping_sub(behind.wrapping_add(self.low)));
        let out_of_range = from_low > self.extent && from_low + count <= 1 << 32;
        let rest = u64::from(behind) % self.multiple;
        let not_met = rest >= u64::from(bytes) && rest + u64::from(others) <= self.multiple;
        out_of_range || not_met
    }
}

/// Does a register operand have all of the 32 bits?
fn wide(machine: &Machine, instr: &Instr, o: usize) -> bool {
    let file = |kind: &OperandKind| if let OperandKind::Reg { file, .. } = kind { Some(*file) } else { None };
    instr.operands.get(o).and_then(|o| file(&o.kind)).is_some_and(|f| machine.files[f].bits >= 32)
}

/// An expression with the temporaries replaced, if it is made of what sums are made of, and of not too many
/// operations; as far as can be said without its operands.
pub(crate) fn form(machine: &Machine, instr: &Instr, e: &Expr) -> Option<Expr> {
    Writing { machine, instr, left: Cell::new(LARGEST) }.form(e)
}

struct Writing<'a> {
    machine: &'a Machine,
    instr: &'a Instr,
    /// Operations that the whole may have yet.
    left: Cell<u32>,
}

impl Writing<'_> {
    fn form(&self, e: &Expr) -> Option<Expr> {
        self.left.set(self.left.get().checked_sub(1)?);
        let inner = |e: &Expr| self.form(e).map(Box::new);
        Some(match e {
            Expr::Const(_) | Expr::Imm(_) => e.clone(),
            Expr::Operand(o) if wide(self.machine, self.instr, *o) => e.clone(),
            Expr::Temp(t) => {
                let bound = |s: &&Stmt| matches!(s, Stmt::Let { temp, .. } if temp == t);
                let Some(Stmt::Let { value, .. }) = self.instr.semantics.iter().find(bound) else { return None };
                self.form(value)?
            }
            Expr::Bin { op, bits, a, b } if *bits >= 32 => {
                use BinOp::{Add, And, Mul, Or, Shl, Sub, Xor};
                if !matches!(op, Add | Sub | Mul | Shl | And | Or | Xor) {
                    return None;
                }
                Expr::Bin { op: *op, bits: *bits, a: inner(a)?, b: inner(b)? }
            }
            Expr::Un { op: UnOp::SExt32, bits, a } if *bits >= 32 => *inner(a)?,
            Expr::Slice { a, lo: 0, width } => Expr::Slice { a: inner(a)?, lo: 0, width: *width },
            _ => return None,
        })
    }
}

/// The sum that a form is; `operand` finds what an operand's register holds, `bits` knows of bits.
pub(crate) fn sum(
    inst: &Inst,
    form: &Expr,
    operand: &dyn Fn(usize) -> Option<Sum>,
    bits: &bits::Reader<'_>,
) -> Option<Sum> {
    let of = |e: &Expr| sum(inst, e, operand, bits);
    let low = |e: &Expr| bits.of(e) as u32;
    let number = |o: usize| if let Some(Arg::Imm(v)) = inst.args.get(o) { Some(Sum::number(*v as u64)) } else { None };
    match form {
        Expr::Const(c) => Some(Sum::number(*c)),
        Expr::Imm(o) => number(*o),
        Expr::Operand(o) => number(*o).or_else(|| operand(*o)),
        Expr::Slice { a, width: 32.., .. } => of(a),
        Expr::Slice { a, width, .. } => {
            let (sum, kept) = (of(a)?, (1u32 << width) - 1);
            match sum.known() {
                Some(n) => Some(Sum::number(u64::from(n & kept))),
                None => Some(sum).filter(|_| low(a) | kept == kept),
            }
        }
        Expr::Bin { op, a, b, .. } => {
            let (first, second) = (low(a), low(b));
            let (a, b) = (of(a)?, of(b)?);
            let found = match (op, a.known(), b.known()) {
                (BinOp::Add, ..) => a.plus(&b),
                (BinOp::Sub, ..) => a.combined(1, &b, u32::MAX),
                (BinOp::Mul, _, Some(by)) => a.times(by),
                (BinOp::Mul, Some(by), _) => b.times(by),
                (BinOp::Shl, _, Some(by)) if by < 32 => a.times(1 << by),
                (BinOp::And, Some(a), Some(b)) => Sum::number(u64::from(a & b)),
                (BinOp::Or, Some(a), Some(b)) => Sum::number(u64::from(a | b)),
                // All that is there stays.
                (BinOp::And, _, Some(kept)) if first | kept == kept => a,
                (BinOp::And, Some(kept), _) if second | kept == kept => b,
                // No place has a bit of both.
                (BinOp::Or | BinOp::Xor, ..) if first & second == 0 => a.plus(&b),
                _ => return None,
            };
            Some(found).filter(|s| s.parts.len() <= LONGEST)
        }
        _ => None,
    }
}

/// The address of an instruction's one access to memory, and its bytes.
pub(crate) fn address(machine: &Machine, instr: &Instr) -> Option<(Expr, u8)> {
    let mut found = Vec::new();
    for stmt in &instr.semantics {
        match stmt {
            Stmt::Store { bytes, addr, value } => {
                found.push((addr, *bytes));
                loads(addr, &mut found);
                loads(value, &mut found);
            }
            Stmt::Let { value, .. } | Stmt::Assign { value, .. } => loads(value, &mut found),
            _ => return None,
        }
    }
    let [(addr, bytes)] = found[..] else { return None };
    Some((form(machine, instr, addr)?, bytes))
}

/// Loads in an expression; of what may hold one unseen, two, so that there is not one.
fn loads<'a>(e: &'a Expr, out: &mut Vec<(&'a Expr, u8)>) {
    match e {
        Expr::Load { bytes, addr, .. } => {
            out.push((addr, *bytes));
            loads(addr, out);
        }
        Expr::Bin { a, b, .. } | Expr::Cmp { a, b, .. } => [a, b].into_iter().for_each(|e| loads(e, out)),
        Expr::Un { a, .. } | Expr::Slice { a, .. } => loads(a, out),
        Expr::Operand(_) | Expr::Imm(_) | Expr::Fixed(_) | Expr::Temp(_) | Expr::Const(_) | Expr::Pc => {}
        other => out.extend([(other, 0), (other, 0)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_the_same_terms_have_one_root() {
        let (mut terms, mut sums) = (Terms::default(), Sums::default());
        let (p, i) = (terms.initial(1), terms.initial(2));
        let four = Sum::number(4);
        let one = Sum::of(p).plus(&Sum::of(i).times(4)).plus(&four);
        let other = Sum::of(i).plus(&Sum::number(3)).times(4).plus(&Sum::of(p));
        let (one, other) = (sums.place(&mut terms, &one), sums.place(&mut terms, &other));
        assert_eq!((one.root, one.at, other.at), (other.root, 4, 12));
        let twice = sums.place(&mut terms, &Sum::of(p).plus(&Sum::of(i).times(8)));
        assert_ne!(one.root, twice.root);
        // What is added and taken away is not there, and what goes round 2^32 either.
        assert_eq!(Sum::of(p).plus(&Sum::of(p).times(u32::MAX)).known(), Some(0));
        assert_eq!(Sum::of(p).times(1 << 31).times(2).known(), Some(0));
    }

    #[test]
    fn places_whose_terms_are_small_or_multiples_are_apart() {
        let (mut terms, mut sums) = (Terms::default(), Sums::default());
        let [p, i, j, other] = [1, 2, 3, 4].map(|r| terms.initial(r));
        sums.say_bits(i, 0xff);
        sums.say_bits(j, 0xff);
        let mut at = |sum: Sum| sums.place(&mut terms, &sum);
        let table = |begin: u64, index: Term, scale: u32| {
            Sum::of(p).plus(&Sum::number(begin)).plus(&Sum::of(index).times(scale))
        };
        let (first, second) = (at(table(0, i, 4)), at(table(1024, j, 4)));
        let (below, down) = (at(table(1020, j, 4)), at(table(2048, j, 4u32.wrapping_neg())));
        let (field, pointer) = (at(table(2, j, 8)), at(Sum::of(p).plus(&Sum::number(1024))));
        let unknown = at(Sum::of(other));
        assert!(sums.apart((first, 4), (second, 4)) && sums.apart((second, 4), (first, 4)));
        assert!(!sums.apart((first, 4), (below, 4)) && !sums.apart((below, 4), (first, 4)));
        // From 1028 to 2048, and back.
        assert!(sums.apart((first, 4), (down, 4)) && !sums.apart((second, 4), (down, 4)));
        // Of two bytes at multiples of 4, and two at 2 more.
        assert!(sums.apart((first, 2), (field, 2)) && sums.apart((field, 2), (first, 2)));
        assert!(!sums.apart((first, 3), (field, 2)) && !sums.apart((field, 3), (first, 2)));
        assert!(sums.apart((first, 4), (pointer, 4)) && !sums.apart((first, 4), (unknown, 1)));
    }

    /// Differences of two sums, all of them.
    #[test]
    fn what_is_apart_never_meets() {
        let members = |bits: u32| (0..16u32).filter(move |x| x & !bits == 0);
        let mut apart = 0;
        for (bits, others) in (0..16u32).flat_map(|a| [0u32, 3, 5, 12, 15].map(|b| (a, b))) {
            for (factor, other) in [(1u32, 4u32), (4, 4), (6, u32::MAX), (4, 1 << 31), (u32::MAX - 7, 16)] {
                let gap = Gap::NONE.plus(factor, bits).plus(other, others);
                for behind in [0u32, 1, 2, 3, 17, 40, u32::MAX - 5, u32::MAX - 70, 1 << 31] {
                    for (bytes, more) in [(1u32, 1u32), (2, 4), (4, 4), (8, 1)] {
                        if gap.apart(behind, bytes, more) {
                            apart += 1;
                            let all = members(bits).flat_map(|x| members(others).map(move |y| (x, y)));
                            for (x, y) in all {
                                let d = behind.wrapping_add(factor.wrapping_mul(x)).wrapping_add(other.wrapping_mul(y))
                                    as i32;
                                let meet = -i64::from(more) < i64::from(d) && i64::from(d) < i64::from(bytes);
                                assert!(!meet, "{bits} {others} {factor} {other} {behind} {bytes} {more}");
                            }
                        }
                    }
                }
            }
        }
        assert!(apart > 1000, "{apart}");
    }
}
