//! What an instruction with tables or matrices computes.
//!
//! With its immediates fixed, what an instruction assigns is a [`Sum`] over the bytes of its
//! register sources, or nothing that is looked for here. Some of what it reads may be known:
//! constants in place of a source, or what a register holds that the semantics name
//! ([`super::fields`]).

use super::form;
use super::sum::Sum;
use ciphermill_ir::{BinOp, ops};
use ciphermill_machine::sem::{Expr, Stmt};
use ciphermill_machine::{CompoundPart, Instr, InstrId, InstrKind, Machine, OperandKind, PartArg, Reg, Table};
use ciphermill_patterns::pat::Pat;
use ciphermill_patterns::pattern::{Action, Template, cost};
use std::sync::Arc;

/// Most combinations of immediates that an instruction is tried with.
const MOST_VARIANTS: usize = 64;

/// What is known of what an instruction reads.
pub struct Known {
    /// One of its sources, by number.
    pub source: (usize, u64),
    pub register: (Reg, u64),
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
    /// The operand that is assigned, and what: None unless it is one, and its value is such
    /// a sum for certain. Sources are named by their numbers.
    pub fn result(&self, word_bits: u8, tables: &[Table], known: Option<&Known>) -> Option<(usize, Sum<usize>)> {
        let leaf = |e: &Expr| {
            Some(match e {
                Expr::Operand(i) => {
                    let source = self.sources.iter().position(|s| s == i)?;
                    match known.filter(|k| k.source.0 == source) {
                        Some(known) => Sum::constant(known.source.1),
                        None => Sum::source(source, ops::mask(word_bits.into())),
                    }
                }
                Expr::Imm(i) => Sum::constant(self.immediate(*i)?),
                Expr::Fixed(r) => Sum::constant(known.filter(|k| k.register.0 == *r)?.register.1),
                Expr::Const(c) => Sum::constant(*c),
                _ => return None,
            })
        };
        form::assigned(self.instr, tables, word_bits.into(), &leaf)
    }

    /// The value of an immediate.
    pub fn immediate(&self, operand: usize) -> Option<u64> {
        self.immediates.iter().find(|m| m.0 == operand).map(|m| m.1 as u64)
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
            flash: false,
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

/// Does it add up three terms of one or two registers, shifts and rotates for instance? As a
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
    sums >= 2 && (1..=2).contains(&register_sources(instr).len())
}

/// Every choice of the immediates; none when there are too many.
pub fn immediates(instr: &Instr) -> Vec<Vec<(usize, i64)>> {
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
pub fn register_sources(instr: &Instr) -> Vec<usize> {
    let reads = |k: &OperandKind| matches!(k, OperandKind::Reg { used: true, .. });
    (0..instr.operands.len()).filter(|&i| reads(&instr.operands[i].kind)).collect()
}
