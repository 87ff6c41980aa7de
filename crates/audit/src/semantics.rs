//! Values of semantics with the masks of their secret bits.
//!
//! What an instruction does stands in its machine file as expressions, which
//! are few kinds of node. Evaluating those on values with masks beside them
//! ([`Word`]) follows secrets through every instruction of every machine and
//! extension without knowing one of them. Values come out as
//! `ciphermill_machine::eval` has them; masks keep what [`crate::taint`]
//! promises: two runs that agree in the clear bits of everything read agree in
//! the clear bits of everything made. The tests try that on all values of the
//! secret bits.
//!
//! Some nodes allow more than "any secret bit makes all bits secret", and code
//! that masks its secrets away needs it:
//!
//! - a **comparison** is decided when the ranges that the clear bits leave do
//!   not meet, an equality when clear bits differ;
//! - a **table entry** can only change in bits in which the entries differ that
//!   the index's clear bits leave;
//! - a **matrix** over GF(2) hands on the secret bits of its rows alone.
//!
//! A selection evaluates one arm when its condition is public. When it is
//! secret, both are, and what a load in one of them does is noted: whether
//! memory is accessed depends on the secret ([`Seen::perhaps`]). The arm that
//! the run does not take may have no value (a load outside memory); then
//! nothing is promised of the result.

use crate::taint::{self, Word};
use ciphermill_ir::{CmpOp, mask, sext};
use ciphermill_machine::eval::{flags_add, flags_logic, flags_sub, flags_test};
use ciphermill_machine::sem::Expr;
use ciphermill_machine::{Machine, Reg};
use ciphermill_program::Operand;

/// What expressions read.
pub trait Source {
    fn register(&self, reg: Reg) -> Word;
    /// `bytes` bytes in the machine's byte order; `None` outside memory.
    fn load(&self, addr: u32, bytes: u8) -> Option<Word>;
}

/// What was seen on the way to a value.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Seen {
    /// Secret bits of addresses that were loaded from.
    pub address: u64,
    /// Something was loaded, or was not, as a secret decided.
    pub perhaps: bool,
    /// Secret bits of what was loaded.
    pub loaded: u64,
}

/// Evaluates the expressions of one instruction.
pub struct Evaluator<'a, S> {
    pub machine: &'a Machine,
    pub source: &'a S,
    pub operands: &'a [Operand],
    /// Addresses of blocks and functions, by operand.
    pub target: &'a dyn Fn(Operand) -> u64,
    pub pc: u64,
    /// Values of `let`s; none where there is no value.
    pub lets: Vec<Option<Word>>,
    pub seen: Seen,
    /// Secrets that decide whether this is evaluated at all.
    pub under: u32,
}

impl<S: Source> Evaluator<'_, S> {
    /// The value of an expression; `None` where it has none (a load outside
    /// memory, a division without a result, an operand of another kind).
    pub fn eval(&mut self, e: &Expr) -> Option<Word> {
        let word = u32::from(self.machine.word_bits);
        let whole = mask(word);
        let value = match e {
            Expr::Operand(i) => match self.operands.get(*i)? {
                Operand::Reg(r) => self.source.register(*r),
                _ => return None,
            },
            Expr::Imm(i) => match self.operands.get(*i)? {
                Operand::Imm(x) => Word::public(*x as u64),
                Operand::Reg(_) => return None,
                other => Word::public((self.target)(*other)),
            },
            Expr::Fixed(r) => self.source.register(*r),
            Expr::Temp(i) => (*self.lets.get(*i)?)?,
            Expr::Const(c) => Word::public(*c),
            Expr::Pc => Word::public(self.pc),
            Expr::Bin { op, bits, a, b } => {
                let bits = u32::from(*bits);
                let (a, b) = (self.eval(a)?.low(bits), self.eval(b)?.low(bits));
                Word { bits: op.eval(a.bits, b.bits, bits)?, secret: taint::binary(*op, a, b, bits) }
            }
            Expr::Un { op, bits, a } => {
                let bits = u32::from(*bits);
                let a = self.eval(a)?.low(bits);
                Word { bits: op.eval(a.bits, bits), secret: taint::unary(*op, a, bits) }
            }
            Expr::Cmp { op, bits, a, b } => {
                let bits = u32::from(*bits);
                let (a, b) = (self.eval(a)?.low(bits), self.eval(b)?.low(bits));
                Word { bits: op.eval(a.bits, b.bits, bits).into(), secret: compared(*op, a, b, bits) }
            }
            Expr::Select { cond, then, els } => {
                let cond = truth(self.eval(cond)?);
                if !cond.is_secret() {
                    return self.eval(if cond.bits != 0 { then } else { els }).map(|w| w.low(word));
                }
                self.under += 1;
                let (then, els) = (self.eval(then), self.eval(els));
                self.under -= 1;
                let (chosen, other) = if cond.bits != 0 { (then?, els) } else { (els?, then) };
                chosen.or(other)
            }
            Expr::Slice { a, lo, width } => {
                let a = self.eval(a)?;
                let cut = |x: u64| (x >> lo) & mask(u32::from(*width));
                Word { bits: cut(a.bits), secret: cut(a.secret) }
            }
            Expr::Load { bytes, signed, addr } => {
                let addr = self.eval(addr)?;
                self.seen.address |= addr.secret;
                self.seen.perhaps |= self.under > 0;
                let bits = 8 * u32::from(*bytes);
                let mut found = self.source.load(addr.bits as u32, *bytes)?;
                if addr.is_secret() {
                    found.secret = mask(bits);
                }
                self.seen.loaded |= found.secret;
                let extend = |x: u64| if *signed { sext(x, bits) as u64 } else { x };
                Word { bits: extend(found.bits), secret: extend(found.secret) }
            }
            Expr::Table { table, index } => {
                let values = &self.machine.tables.get(*table)?.values;
                entry(values, self.eval(index)?)?
            }
            Expr::Linear { matrix, a } => {
                let a = self.eval(a)?;
                let bit = |(i, row): (usize, &u64)| u64::from(row & a.secret != 0) << i;
                Word { bits: matrix.apply(a.bits), secret: matrix.rows.iter().enumerate().map(bit).sum() }
            }
            Expr::MatVec { matrix, a } => {
                let a = self.eval(a)?;
                let mut sum = Word::default();
                for i in 0..matrix.rows {
                    let mut row = Word::default();
                    for (r, at) in matrix.row(i) {
                        let part = self.source.register(r);
                        row.bits |= part.bits << at;
                        row.secret |= part.secret << at;
                    }
                    let both = taint::binary(ciphermill_ir::BinOp::And, row, a, 64);
                    sum.bits |= u64::from((row.bits & a.bits).count_ones() & 1) << i;
                    sum.secret |= u64::from(both != 0) << i;
                }
                sum
            }
            Expr::FlagsSub { bits, a, b } => {
                let (a, b) = (self.eval(a)?.low((*bits).into()), self.eval(b)?.low((*bits).into()));
                let difference = taint::binary(ciphermill_ir::BinOp::Sub, a, b, (*bits).into());
                let result = Word { bits: a.bits.wrapping_sub(b.bits) & mask((*bits).into()), secret: difference };
                let borrow = compared(CmpOp::LtU, a, b, (*bits).into());
                Word { bits: flags_sub(a.bits, b.bits, *bits), secret: flags(result, *bits) | borrow | overflow(a, b) }
            }
            Expr::FlagsAdd { bits, a, b } => {
                let (a, b) = (self.eval(a)?.low((*bits).into()), self.eval(b)?.low((*bits).into()));
                let sum = taint::binary(ciphermill_ir::BinOp::Add, a, b, (*bits).into());
                let result = Word { bits: a.bits.wrapping_add(b.bits) & mask((*bits).into()), secret: sum };
                let carry = u64::from(a.is_secret() || b.is_secret());
                Word { bits: flags_add(a.bits, b.bits, *bits), secret: flags(result, *bits) | carry | overflow(a, b) }
            }
            Expr::FlagsLogic { bits, a } => {
                let a = self.eval(a)?.low((*bits).into());
                Word { bits: flags_logic(a.bits, *bits), secret: flags(a, *bits) }
            }
            Expr::FlagsTest { op, flags } => {
                let flags = self.eval(flags)?;
                let holds = flags_test(*op, flags.bits);
                let may = (0..16).filter(|f| (f ^ flags.bits) & 15 & !flags.secret == 0);
                let varies = flags.is_secret() && may.into_iter().any(|f| flags_test(*op, f) != holds);
                Word { bits: holds.into(), secret: varies.into() }
            }
        };
        Some(Word { bits: value.bits & whole, secret: value.secret & whole })
    }
}

impl Word {
    /// Its lowest bits.
    pub fn low(self, bits: u32) -> Word {
        Word { bits: self.bits & mask(bits), secret: self.secret & mask(bits) }
    }

    /// This value, where a secret may have put the other instead. Of one that
    /// is missing nothing is known.
    pub fn or(self, other: Option<Word>) -> Word {
        let secret = other.map_or(u64::MAX, |o| self.secret | o.secret | (self.bits ^ o.bits));
        Word { bits: self.bits, secret }
    }
}

/// Is it other than zero? Public where a clear bit is set.
pub fn truth(a: Word) -> Word {
    let certain = a.bits & !a.secret != 0;
    Word { bits: u64::from(a.bits != 0), secret: u64::from(a.is_secret() && !certain) }
}

/// 1 where the comparison can come out either way.
fn compared(op: CmpOp, a: Word, b: Word, bits: u32) -> u64 {
    let any = a.secret | b.secret;
    if any == 0 {
        return 0;
    }
    let turn = match op {
        CmpOp::Eq | CmpOp::Ne => return u64::from((a.bits ^ b.bits) & !any & mask(bits) == 0),
        CmpOp::LtU | CmpOp::LeU => 0,
        // With the sign bit turned the order is the unsigned one.
        CmpOp::LtS | CmpOp::LeS => 1 << (bits - 1),
    };
    let range = |w: Word| ((w.bits ^ turn) & !w.secret, (w.bits ^ turn) | w.secret);
    let ((a_least, a_most), (b_least, b_most)) = (range(a), range(b));
    let decided = match op {
        CmpOp::LtU | CmpOp::LtS => a_most < b_least || a_least >= b_most,
        _ => a_most <= b_least || a_least > b_most,
    };
    u64::from(!decided)
}

/// Secret bits among negative (3) and zero (2) of a result.
fn flags(result: Word, bits: u8) -> u64 {
    let negative = result.secret >> (bits - 1) & 1;
    negative << 3 | truth(result).secret << 2
}

/// The overflow bit (1), when anything is secret.
fn overflow(a: Word, b: Word) -> u64 {
    u64::from(a.is_secret() || b.is_secret()) << 1
}

/// Indices tried one by one; with more of them nothing is promised.
const MOST_TRIED: u32 = 12;

/// The entry of a table and the bits in which those differ that it could be.
fn entry(values: &[u64], index: Word) -> Option<Word> {
    let length = values.len().max(1) as u64;
    let at = |i: u64| values.get((i % length) as usize).copied();
    let bits = at(index.bits)?;
    if index.secret.count_ones() > MOST_TRIED {
        return Some(Word { bits, secret: u64::from(index.is_secret()).wrapping_neg() });
    }
    // All subsets of the secret bits, one after the other.
    let (mut secret, mut subset) = (0, index.secret);
    loop {
        secret |= bits ^ at((index.bits & !index.secret) | subset)?;
        if subset == 0 {
            return Some(Word { bits, secret });
        }
        subset = (subset - 1) & index.secret;
    }
}
