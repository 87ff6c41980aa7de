//! What an instruction with tables or matrices computes: the walk through its semantics.
//!
//! With its immediates fixed, what an instruction assigns is a [`Sum`] over the bytes of its
//! register sources, or nothing that is looked for here. Some of what it reads may be known:
//! constants in place of a source, or what a register holds that the semantics name
//! ([`super::fields`]).

use super::form;
use super::sum::Sum;
use ciphermill_ir::{BinOp, ops};
use ciphermill_machine::sem::{Expr, HeldMatrix, Stmt};
use ciphermill_machine::{
    Compound, CompoundPart, Instr, InstrId, InstrKind, Machine, Operand, OperandKind, PartArg, Reg, Table,
};
use ciphermill_patterns::pat::Pat;
use ciphermill_patterns::pattern::{Action, Template, cost};
use std::cell::Cell;
use std::sync::Arc;

/// Most combinations of immediates that an instruction is tried with.
const MOST_VARIANTS: usize = 64;

/// What is known of what an instruction reads.
pub struct Known {
    /// One of its sources, by number.
    pub source: (usize, u64),
    pub register: (Reg, u64),
}

/// Of a machine: bits of the words in which programs compute and of registers, and its tables.
#[derive(Clone, Copy)]
pub struct Words<'a> {
    pub bits: u32,
    pub register: u32,
    pub tables: &'a [Table],
}

impl<'a> Words<'a> {
    pub fn of(machine: &'a Machine) -> Words<'a> {
        let register = machine.value_bits().into();
        Words { bits: machine.word_bits.into(), register, tables: &machine.tables }
    }
}

/// An instruction or a compound with its immediates fixed.
///
/// Where registers have fewer bits than the words that programs compute in, its operands are the lowest words of values,
/// or as many of them together as a value has words are one value.
#[derive(Clone)]
pub struct Fixed<'a> {
    pub name: &'a str,
    pub operands: &'a [Operand],
    pub semantics: &'a [Stmt],
    pub parts: Vec<CompoundPart>,
    pub scratch: usize,
    /// Operands that are registers to read, in the order of arguments.
    pub sources: Vec<usize>,
    /// Operands that are immediates, with their values.
    pub immediates: Vec<(usize, i64)>,
}

/// The machine's instructions that may be chosen and its compounds, if their semantics have a table or
/// a matrix, or are a matrix that is written as a sum, with every choice of their immediates; none of those with too many.
pub fn fixed(machine: &Machine) -> impl Iterator<Item = Fixed<'_>> {
    all(machine).filter(|f| f.semantics.iter().any(has_table_or_matrix) || f.is_layer()).flat_map(|f| {
        let chosen = immediates(f.operands).into_iter();
        chosen.map(move |immediates| Fixed { immediates, ..f.clone() })
    })
}

/// The same of whatever they compute, with no immediates fixed yet.
pub fn all(machine: &Machine) -> impl Iterator<Item = Fixed<'_>> {
    let chosen = |i: &&Instr| i.selectable && i.kind == InstrKind::Compute;
    let instrs = machine.instrs.iter().enumerate().filter(move |i| chosen(&i.1)).map(|(id, i)| Fixed::of(id, i));
    instrs.chain(machine.compounds.iter().map(Fixed::of_compound))
}

impl<'a> Fixed<'a> {
    /// An instruction, by its number.
    pub fn of(id: usize, instr: &'a Instr) -> Fixed<'a> {
        let args = (0..instr.operands.len()).map(PartArg::Operand).collect();
        Fixed {
            name: &instr.name,
            operands: &instr.operands,
            semantics: &instr.semantics,
            parts: vec![CompoundPart { instr: InstrId(id as u16), args }],
            scratch: 0,
            sources: register_sources(&instr.operands),
            immediates: Vec::new(),
        }
    }

    fn of_compound(compound: &'a Compound) -> Fixed<'a> {
        Fixed {
            name: &compound.name,
            operands: &compound.operands,
            semantics: &compound.semantics,
            parts: compound.parts.clone(),
            scratch: compound.scratch,
            sources: register_sources(&compound.operands),
            immediates: Vec::new(),
        }
    }

    /// Registers of a value: one, or on machines of narrow words as many as hold a whole one.
    fn registers(&self, words: Words<'_>) -> Option<usize> {
        let results = self.semantics.iter().filter(|s| matches!(s, Stmt::Assign { .. })).count();
        let whole = (words.bits / words.register) as usize;
        ((results == 1 || results == whole) && self.sources.len().is_multiple_of(results)).then_some(results)
    }

    /// The first operand of the value that is assigned, and what: None unless it is one, depends on all values that are
    /// read where nothing is known of them, and is such a sum for certain. Sources are named by the numbers of these values.
    pub fn result(&self, words: Words<'_>, known: Option<&Known>) -> Option<(usize, Sum<usize>)> {
        self.walked(words, known).filter(|w| w.2.is_none()).map(|(dest, sum, _)| (dest, sum))
    }

    /// The first operand of the value that is assigned, if that is a matrix in registers times the one value that is read,
    /// and the matrix.
    pub fn held_product(&self, words: Words<'_>) -> Option<(usize, HeldMatrix)> {
        let (dest, sum, held) = self.walked(words, None)?;
        (sum == Sum::source(0, ops::mask(words.bits))).then_some(())?;
        Some((dest, held?))
    }

    /// As [`Fixed::result`]; a matrix in registers counts as the identity, and is reported.
    fn walked(&self, words: Words<'_>, known: Option<&Known>) -> Option<(usize, Sum<usize>, Option<HeldMatrix>)> {
        let registers = self.registers(words)?;
        let held = Cell::new(None);
        let source = |register: usize| {
            let (source, word) = (register / registers, (register % registers) as u32);
            let from = word * words.register;
            match known.filter(|k| k.source.0 == source) {
                Some(known) => Sum::constant(known.source.1),
                None => Sum::source(source, ops::mask(words.register) << from).through(|x| x >> from),
            }
        };
        let leaf = |e: &Expr, multiplied: Option<Sum<usize>>| {
            Some(match e {
                Expr::Operand(i) => source(self.sources.iter().position(|s| s == i)?),
                Expr::Imm(i) => Sum::constant(self.immediate(*i)?),
                Expr::Fixed(r) => Sum::constant(known.filter(|k| k.register.0 == *r)?.register.1),
                Expr::Const(c) => Sum::constant(*c),
                Expr::MatVec { matrix, .. } => {
                    let whole = multiplied.filter(|a| *a == Sum::source(0, ops::mask(words.bits)))?;
                    held.replace(Some(*matrix)).is_none().then_some(whole)?
                }
                _ => return None,
            })
        };
        let results = form::all_assigned(self.semantics, words.tables, words.bits, &leaf)?;
        let dest = *results.keys().next()?;
        let mut whole = Sum::constant(0);
        for (n, part) in results.into_values().enumerate() {
            let part = part.through(|x| (x & ops::mask(words.register)) << (n as u32 * words.register));
            whole = whole.xor(&part)?;
        }
        let all = known.is_some() || whole.sources().len() == self.sources.len() / registers;
        all.then_some((dest, whole, held.get()))
    }

    /// The value of an immediate.
    pub fn immediate(&self, operand: usize) -> Option<u64> {
        self.immediates.iter().find(|m| m.0 == operand).map(|m| m.1 as u64)
    }

    /// Does it add up three terms of one or two registers, shifts and rotates for instance? As a
    /// pattern that would be found only where a program adds just these.
    fn is_layer(&self) -> bool {
        let mut sums = 0;
        for stmt in self.semantics {
            let (Stmt::Let { value, .. } | Stmt::Assign { value, .. }) = stmt else { return false };
            let term = |e: &Expr| !matches!(e, Expr::Const(_) | Expr::Imm(_));
            value.walk(&mut |e| {
                sums += usize::from(matches!(e, Expr::Bin { op: BinOp::Xor, a, b, .. } if term(a) && term(b)))
            });
        }
        sums >= 2 && (1..=2).contains(&self.sources.len())
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
        Template {
            action: Action::Value(dest, pat),
            bits: 0,
            operands: self.operands.to_vec(),
            cost: cost(machine, &self.parts),
            parts: self.parts.clone(),
            scratch: self.scratch,
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

/// Every choice of the immediates; none when there are too many.
pub fn immediates(operands: &[Operand]) -> Vec<Vec<(usize, i64)>> {
    let mut all: Vec<Vec<(usize, i64)>> = vec![vec![]];
    for (i, operand) in operands.iter().enumerate() {
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
pub fn register_sources(operands: &[Operand]) -> Vec<usize> {
    let reads = |k: &OperandKind| matches!(k, OperandKind::Reg { used: true, .. });
    (0..operands.len()).filter(|&i| reads(&operands[i].kind)).collect()
}
