//! What an instruction with tables or matrices computes: the walk through its
//! semantics, whatever the values are that they are evaluated over.
//!
//! A [`Domain`] says what a value is and what the operators make of it: affine
//! forms on machines of 32-bit words ([`super::units`]), sums of functions of bytes
//! on those of 64 ([`super::wide::units`]). What becomes of the result is theirs too.

use ciphermill_ir::{BinOp, UnOp};
use ciphermill_machine::gf2::BitMatrix;
use ciphermill_machine::sem::{Dest, Expr, Stmt};
use ciphermill_machine::{CompoundPart, Instr, InstrId, InstrKind, Machine, OperandKind, PartArg, Reg};
use ciphermill_patterns::pat::Pat;
use ciphermill_patterns::pattern::{Action, Template, cost};
use std::sync::Arc;

/// Most combinations of immediates that an instruction is tried with.
const MOST_VARIANTS: usize = 64;

/// Values that semantics can be evaluated over. None is no value of that kind for
/// certain.
pub trait Domain {
    type Value: Clone;

    /// All of register source `n`.
    fn source(&self, n: usize) -> Self::Value;
    fn constant(&self, c: u64) -> Self::Value;
    /// What a register holds that the semantics name, where that is known.
    fn register(&self, _: Reg) -> Option<Self::Value> {
        None
    }
    /// In so many bits, with zeros above.
    fn binary(&self, op: BinOp, bits: u8, a: &Self::Value, b: &Self::Value) -> Option<Self::Value>;
    fn unary(&self, op: UnOp, bits: u8, a: &Self::Value) -> Option<Self::Value>;
    /// `width` bits from bit `lo` on.
    fn slice(&self, a: &Self::Value, lo: u8, width: u8) -> Option<Self::Value>;
    fn linear(&self, matrix: &BitMatrix, a: &Self::Value) -> Self::Value;
    /// The entry of the machine's table of that number.
    fn lookup(&mut self, table: usize, index: &Self::Value) -> Option<Self::Value>;
}

/// An instruction with its immediates fixed.
pub struct Fixed<'a> {
    pub id: usize,
    pub instr: &'a Instr,
    /// Operands that are registers to read, in the order of arguments.
    pub sources: Vec<usize>,
    /// Operands that are immediates, with their values.
    pub immediates: Vec<(usize, i64)>,
}

/// The machine's instructions that may be chosen and whose semantics have a table or
/// a matrix, or are a matrix that is written as a sum, with every choice of their immediates; none of those with too many.
pub fn fixed(machine: &Machine) -> impl Iterator<Item = Fixed<'_>> {
    let found = |i: &&Instr| {
        i.selectable && i.kind == InstrKind::Compute && (i.semantics.iter().any(has_table_or_matrix) || is_layer(i))
    };
    machine.instrs.iter().enumerate().filter(move |(_, instr)| found(instr)).flat_map(move |(id, instr)| {
        let sources = register_sources(instr);
        immediates(instr).into_iter().map(move |immediates| Fixed { id, instr, sources: sources.clone(), immediates })
    })
}

impl Fixed<'_> {
    /// The operand that is assigned, and what: None unless it is one, and its value is
    /// of the domain.
    pub fn result<D: Domain>(&self, domain: &mut D) -> Option<(usize, D::Value)> {
        let mut walk = Walk { fixed: self, domain, temps: Vec::new() };
        let mut result = None;
        for stmt in &self.instr.semantics {
            match stmt {
                Stmt::Let { value, .. } => {
                    let value = walk.value(value)?;
                    walk.temps.push(value);
                }
                Stmt::Assign { dest: Dest::Operand(d), value } if result.is_none() => {
                    result = Some((*d, walk.value(value)?));
                }
                _ => return None,
            }
        }
        result
    }

    /// Its template as function `function`; `any_old` says that the result's old value
    /// does not matter.
    pub fn template(
        &self,
        machine: &Machine,
        dest: usize,
        sources: &[usize],
        function: u16,
        any_old: bool,
    ) -> Template {
        let pat = Pat::Apply(function, sources.iter().map(|&s| Arc::new(Pat::Reg(s))).collect());
        let args = (0..self.instr.operands.len()).map(PartArg::Operand).collect();
        let parts = vec![CompoundPart { instr: InstrId(self.id as u16), args }];
        Template {
            action: Action::Value(dest, pat),
            bits: 0,
            operands: self.instr.operands.clone(),
            cost: cost(machine, &parts),
            parts,
            scratch: 0,
            unaligned: false,
            fixed: self.immediates.clone(),
            any_old,
            deep: false,
        }
    }
}

fn has_table_or_matrix(stmt: &Stmt) -> bool {
    let (Stmt::Let { value, .. } | Stmt::Assign { value, .. }) = stmt else { return false };
    let mut found = false;
    value.walk(&mut |e| found |= matches!(e, Expr::Table { .. } | Expr::Linear { .. }));
    found
}

/// Does it add up three terms of one register, its shifts and rotates for instance? As a
/// pattern that would be found only where a program adds just these.
fn is_layer(instr: &Instr) -> bool {
    let mut sums = 0;
    for stmt in &instr.semantics {
        let (Stmt::Let { value, .. } | Stmt::Assign { value, .. }) = stmt else { return false };
        let term = |e: &Expr| !matches!(e, Expr::Const(_) | Expr::Imm(_));
        value.walk(&mut |e| {
            sums += usize::from(matches!(e, Expr::Bin { op: BinOp::Xor, a, b, .. } if term(a) && term(b)))
        });
    }
    sums >= 2 && register_sources(instr).len() == 1
}

/// Every choice of the immediates; none when there are too many.
fn immediates(instr: &Instr) -> Vec<Vec<(usize, i64)>> {
    let mut all: Vec<Vec<(usize, i64)>> = vec![vec![]];
    for (i, operand) in instr.operands.iter().enumerate() {
        let values: Vec<i64> = match &operand.kind {
            OperandKind::Imm { values: Some(values), .. } => values.clone(),
            OperandKind::Imm { min, max, step, values: None } => {
                let step = (*step).max(1);
                (0..=MOST_VARIANTS as i64).map(|n| min.saturating_add(n * step)).take_while(|v| v <= max).collect()
            }
            _ => continue,
        };
        if all.len() * values.len() > MOST_VARIANTS {
            return Vec::new();
        }
        all = all.iter().flat_map(|a| values.iter().map(|&v| a.iter().copied().chain([(i, v)]).collect())).collect();
    }
    all
}

/// The operands that are registers to read.
fn register_sources(instr: &Instr) -> Vec<usize> {
    let reads = |k: &OperandKind| matches!(k, OperandKind::Reg { used: true, .. });
    (0..instr.operands.len()).filter(|&i| reads(&instr.operands[i].kind)).collect()
}

struct Walk<'a, D: Domain> {
    fixed: &'a Fixed<'a>,
    domain: &'a mut D,
    temps: Vec<D::Value>,
}

impl<D: Domain> Walk<'_, D> {
    fn value(&mut self, e: &Expr) -> Option<D::Value> {
        Some(match e {
            Expr::Operand(i) => self.domain.source(self.fixed.sources.iter().position(|s| s == i)?),
            Expr::Imm(i) => self.domain.constant(self.fixed.immediates.iter().find(|m| m.0 == *i)?.1 as u64),
            Expr::Fixed(r) => self.domain.register(*r)?,
            Expr::Temp(i) => self.temps.get(*i)?.clone(),
            Expr::Const(c) => self.domain.constant(*c),
            Expr::Bin { op, bits, a, b } => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                self.domain.binary(*op, *bits, &a, &b)?
            }
            Expr::Un { op, bits, a } => {
                let a = self.value(a)?;
                self.domain.unary(*op, *bits, &a)?
            }
            Expr::Slice { a, lo, width } => {
                let a = self.value(a)?;
                self.domain.slice(&a, *lo, *width)?
            }
            Expr::Linear { matrix, a } => {
                let a = self.value(a)?;
                self.domain.linear(matrix, &a)
            }
            Expr::Table { table, index } => {
                let index = self.value(index)?;
                self.domain.lookup(*table, &index)?
            }
            _ => return None,
        })
    }
}
