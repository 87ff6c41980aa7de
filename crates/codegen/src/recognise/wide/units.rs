//! What the table and matrix instructions of a machine of 64-bit words compute, as
//! sums of functions of bytes of their register sources.

use super::super::units::{has_table_or_matrix, immediates, register_sources, template};
use super::sum::Sum;
use crate::pattern::Template;
use ciphermill_ir::{BinOp, UnOp, ops};
use ciphermill_machine::sem::{Dest, Expr, Stmt};
use ciphermill_machine::{Instr, InstrKind, Machine};

/// An instruction with its immediates fixed.
#[derive(Clone)]
pub struct Unit {
    pub name: String,
    /// Parts name a register source by its number.
    pub sum: Sum<usize>,
    /// Number of register sources.
    pub sources: usize,
    /// The number of [`ciphermill_ir::Op::Apply`].
    pub function: u16,
    /// Only the low 32 bits count, rotated to the right by so many, their sign
    /// extended.
    pub low: Option<u32>,
}

/// Rotations of 32 bits that are tried.
const TURNS: [u32; 4] = [0, 8, 16, 24];

/// The low 32 bits of a word, rotated to the right, with their sign extended.
fn low(word: u64, turn: u32) -> u64 {
    ops::sext(u64::from((word as u32).rotate_right(turn)), 32) as u64
}

/// All units of a machine, and the templates that compute them: template n is
/// function n.
pub fn units(machine: &Machine) -> (Vec<Unit>, Vec<Template>) {
    let (mut units, mut templates) = (Vec::new(), Vec::new());
    for (id, instr) in machine.instrs.iter().enumerate() {
        if !instr.selectable || instr.kind != InstrKind::Compute || !instr.semantics.iter().any(has_table_or_matrix) {
            continue;
        }
        for immediates in immediates(instr) {
            let sources = register_sources(instr);
            let Some((dest, sum)) = meaning(machine, instr, &sources, &immediates) else { continue };
            let used = |s: usize| sum.parts.iter().any(|p| p.source == s);
            if (1..=2).contains(&sources.len()) && (0..sources.len()).all(used) {
                let function = templates.len() as u16;
                templates.push(template(machine, id, dest, &sources, &immediates, (function, false)));
                let unit = Unit { name: instr.name.clone(), sum, sources: sources.len(), function, low: None };
                let halves =
                    TURNS.map(|turn| Unit { sum: unit.sum.through(|w| low(w, turn)), low: Some(turn), ..unit.clone() });
                let uses_all = |u: &Unit| (0..u.sources).all(|s| u.sum.parts.iter().any(|p| p.source == s));
                units.extend(std::iter::once(unit).chain(halves.into_iter().filter(uses_all)));
            }
        }
    }
    (units, templates)
}

/// The result's operand, and what it is given.
fn meaning(
    machine: &Machine,
    instr: &Instr,
    sources: &[usize],
    immediates: &[(usize, i64)],
) -> Option<(usize, Sum<usize>)> {
    let mut eval = Eval { machine, sources, immediates, temps: Vec::new() };
    let mut result = None;
    for stmt in &instr.semantics {
        match stmt {
            Stmt::Let { value, .. } => {
                let sum = eval.sum(value)?;
                eval.temps.push(sum);
            }
            Stmt::Assign { dest: Dest::Operand(d), value } if result.is_none() => {
                result = Some((*d, eval.sum(value)?));
            }
            _ => return None,
        }
    }
    result
}

struct Eval<'a> {
    machine: &'a Machine,
    sources: &'a [usize],
    immediates: &'a [(usize, i64)],
    temps: Vec<Sum<usize>>,
}

impl Eval<'_> {
    fn sum(&self, e: &Expr) -> Option<Sum<usize>> {
        let word = self.machine.word_bits;
        Some(match e {
            Expr::Operand(i) => Sum::source(self.sources.iter().position(|s| s == i)?, u64::MAX),
            Expr::Imm(i) => Sum::constant(self.immediates.iter().find(|m| m.0 == *i)?.1 as u64),
            Expr::Temp(i) => self.temps.get(*i)?.clone(),
            Expr::Const(c) => Sum::constant(*c),
            Expr::Bin { op, bits, a, b } if *bits == word => binary(*op, &self.sum(a)?, &self.sum(b)?)?,
            Expr::Un { op, bits, a } if *bits == word => unary(*op, &self.sum(a)?)?,
            Expr::Slice { a, lo, width } => {
                let mask = ops::mask(u32::from(*width));
                self.sum(a)?.through(|x| x >> lo & mask)
            }
            Expr::Linear { matrix, a } => self.sum(a)?.through(|x| matrix.apply(x)),
            Expr::Table { table, index } => {
                let values = &self.machine.tables.get(*table)?.values;
                let index = self.sum(index)?;
                index.lookup(|i| values.get((i % values.len() as u64) as usize).copied())?
            }
            _ => return None,
        })
    }
}

/// An operation of two sums, if it is such a sum for certain.
pub fn binary<S: Copy + PartialEq>(op: BinOp, a: &Sum<S>, b: &Sum<S>) -> Option<Sum<S>> {
    if let (Some(x), Some(y)) = (a.as_constant(), b.as_constant()) {
        return op.eval(x, y, 64).map(Sum::constant);
    }
    let disjoint = || a.possible() & b.possible() == 0;
    match op {
        BinOp::Xor => a.xor(b),
        BinOp::Or | BinOp::Add if disjoint() => a.xor(b),
        BinOp::And => match (a.as_constant(), b.as_constant()) {
            (_, Some(mask)) => Some(a.through(|x| x & mask)),
            (Some(mask), _) => Some(b.through(|x| x & mask)),
            _ => None,
        },
        // Linear in the word for any amount.
        BinOp::Shl | BinOp::ShrU | BinOp::ShrS | BinOp::RotL | BinOp::RotR => {
            let by = b.as_constant()?;
            Some(a.through(|x| op.eval(x, by, 64).unwrap_or(0)))
        }
        _ => None,
    }
}

/// The same of one.
pub fn unary<S: Copy + PartialEq>(op: UnOp, a: &Sum<S>) -> Option<Sum<S>> {
    let linear = matches!(op, UnOp::Bswap | UnOp::SExt8 | UnOp::SExt16 | UnOp::SExt32);
    linear.then(|| a.through(|x| op.eval(x, 64)))
}
