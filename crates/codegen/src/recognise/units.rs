//! What a machine's table and matrix instructions compute, in a form that a
//! program's values can be compared with.
//!
//! An instruction with its immediates fixed is a [`Unit`] if its result is
//!
//! * a matrix over GF(2) times one register, or the sum of such products of two
//!   registers, or
//! * a sum of tables of one byte each (a table's entry times a matrix, written
//!   out for all 256 values of the byte), added to, or inserted into, another
//!   register.
//!
//! An instruction that multiplies by a matrix held in registers is a
//! [`Configurable`]: which matrix it holds is for [`super::configure`] to say.
//!
//! Which it is comes from its semantics, evaluated over [`Form`]s whose columns
//! are the bits of its registers and of its tables' outputs.

use super::form::{Form, WORD};
use crate::pattern::{Action, Pat, Template, cost};
use ciphermill_ir::BinOp;
use ciphermill_machine::sem::{Dest, Expr, Stmt};
use ciphermill_machine::{CompoundPart, Instr, InstrId, InstrKind, Machine, OperandKind, PartArg, Reg};
use std::collections::HashMap;
use std::sync::Arc;

/// Most combinations of immediates that an instruction is tried with.
const MOST_VARIANTS: usize = 64;
/// Columns of tables stand behind those of two registers.
const TABLE_COLUMNS: usize = 2 * WORD;

/// A function of one byte, as all its values.
pub type ByteTable = [u32; 256];

/// One table within a unit.
#[derive(Clone)]
pub struct Part {
    /// Which of the unit's register sources, and which of its bytes, lowest 0.
    pub source: usize,
    pub byte: u8,
    pub table: Arc<ByteTable>,
}

#[derive(Clone)]
pub enum Meaning {
    /// For each source, row i: its bits that bit i is the sum of.
    Matrix(Vec<[u32; WORD]>),
    /// The sum of the parts, added to the bits `keep` of the accumulator (a
    /// source, if there is one). Unless it keeps all bits, the parts have none
    /// of those it keeps.
    Tables { parts: Vec<Part>, accumulator: Option<usize>, keep: u32 },
}

/// An instruction with its immediates fixed.
#[derive(Clone)]
pub struct Unit {
    pub meaning: Meaning,
    /// Number of register sources.
    pub sources: usize,
    /// The number of [`ciphermill_ir::Op::Apply`].
    pub function: u16,
    /// The same where it does not matter what the accumulator holds: it is no
    /// operand then.
    pub regardless: Option<u16>,
}

impl Unit {
    /// The matrix that it is with the same word for all its sources.
    pub fn one_word(&self) -> Option<[u32; WORD]> {
        let Meaning::Matrix(of) = &self.meaning else { return None };
        Some(of.iter().fold([0; WORD], |sum, rows| std::array::from_fn(|i| sum[i] ^ rows[i])))
    }
}

/// A multiplication by the matrix that registers hold.
pub struct Configurable {
    /// Its function.
    pub function: u16,
    /// The register of row 0; the others follow.
    pub first: Reg,
}

/// The machine's first instruction of that kind, with its template, which is
/// function `function`.
pub fn configurable(machine: &Machine, function: usize) -> Option<(Configurable, Template)> {
    if usize::from(machine.word_bits) != WORD {
        return None;
    }
    machine.instrs.iter().enumerate().find_map(|(id, instr)| {
        let [Stmt::Assign { dest: Dest::Operand(dest), value: Expr::MatVec { first, a, .. } }] = &instr.semantics[..] else {
            return None;
        };
        let Expr::Operand(source) = **a else { return None };
        if !instr.selectable || instr.operands.len() != 2 {
            return None;
        }
        let made = template(machine, id, *dest, &[source], &[], (function as u16, false));
        Some((Configurable { function: function as u16, first: *first }, made))
    })
}

/// The template of an instruction with immediates and sources fixed; `number` is
/// its function, and whether the result's old value does not matter.
pub(super) fn template(
    machine: &Machine,
    id: usize,
    dest: usize,
    sources: &[usize],
    immediates: &[(usize, i64)],
    (function, any_old): (u16, bool),
) -> Template {
    let instr = &machine.instrs[id];
    let pat = Pat::Apply(function, sources.iter().map(|&s| Pat::Reg(s)).collect());
    let parts = vec![CompoundPart {
        instr: InstrId(id as u16),
        args: (0..instr.operands.len()).map(PartArg::Operand).collect(),
    }];
    Template {
        action: Action::Value(dest, pat),
        operands: instr.operands.clone(),
        cost: cost(machine, &parts),
        parts,
        scratch: 0,
        unaligned: false,
        fixed: immediates.to_vec(),
        any_old,
        deep: false,
    }
}

/// All units of a machine, and the templates that compute them: template n is
/// function n.
pub fn units(machine: &Machine) -> (Vec<Unit>, Vec<Template>) {
    let (mut units, mut templates) = (Vec::new(), Vec::new());
    if usize::from(machine.word_bits) != WORD {
        return (units, templates);
    }
    for (id, instr) in machine.instrs.iter().enumerate() {
        if !instr.selectable || instr.kind != InstrKind::Compute || !instr.semantics.iter().any(has_table_or_matrix) {
            continue;
        }
        for immediates in immediates(instr) {
            let Some(found) = unit(machine, instr, &immediates) else { continue };
            let mut number = |sources: &[usize], any_old| {
                let n = templates.len() as u16;
                templates.push(template(machine, id, found.dest, sources, &immediates, (n, any_old)));
                n
            };
            let function = number(&found.sources, false);
            let regardless = match &found.meaning {
                Meaning::Tables { accumulator: Some(a), keep, .. }
                    if *keep != u32::MAX && found.sources[*a] == found.dest =>
                {
                    let others: Vec<usize> = found.sources.iter().copied().filter(|&s| s != found.dest).collect();
                    Some(number(&others, true))
                }
                _ => None,
            };
            units.push(Unit { meaning: found.meaning, sources: found.sources.len(), function, regardless });
        }
    }
    (units, templates)
}

pub(super) fn has_table_or_matrix(stmt: &Stmt) -> bool {
    let (Stmt::Let { value, .. } | Stmt::Assign { value, .. }) = stmt else { return false };
    let mut found = false;
    value.walk(&mut |e| found |= matches!(e, Expr::Table { .. } | Expr::Linear { .. }));
    found
}

/// Every choice of the immediates; none when there are too many.
pub(super) fn immediates(instr: &Instr) -> Vec<Vec<(usize, i64)>> {
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

struct Found {
    meaning: Meaning,
    /// Operands that are the register sources, in the order of arguments.
    sources: Vec<usize>,
    dest: usize,
}

/// The operands that are registers to read.
pub(super) fn register_sources(instr: &Instr) -> Vec<usize> {
    let reads = |k: &OperandKind| matches!(k, OperandKind::Reg { used: true, .. });
    (0..instr.operands.len()).filter(|&i| reads(&instr.operands[i].kind)).collect()
}

fn unit(machine: &Machine, instr: &Instr, immediates: &[(usize, i64)]) -> Option<Found> {
    let sources = register_sources(instr);
    if sources.len() > 2 {
        return None;
    }
    let mut eval = Eval { machine, sources: &sources, immediates, temps: Vec::new(), atoms: Vec::new() };
    let mut result = None;
    for stmt in &instr.semantics {
        match stmt {
            Stmt::Let { value, .. } => {
                let form = eval.form(value)?;
                eval.temps.push(form);
            }
            Stmt::Assign { dest: Dest::Operand(d), value } if result.is_none() => {
                result = Some((*d, eval.form(value)?))
            }
            _ => return None,
        }
    }
    let (dest, form) = result?;
    let meaning =
        if eval.atoms.is_empty() { matrix(&form, &sources)? } else { tables(machine, &form, &eval.atoms, &sources)? };
    Some(Found { meaning, sources, dest })
}

fn matrix(form: &Form, sources: &[usize]) -> Option<Meaning> {
    let of = |n: usize| form.rows.map(|r| (r >> (WORD * n)) as u32);
    (!sources.is_empty() && form.constant == 0).then(|| Meaning::Matrix((0..sources.len()).map(of).collect()))
}

fn tables(machine: &Machine, form: &Form, atoms: &[Atom], sources: &[usize]) -> Option<Meaning> {
    let registers = (1u128 << TABLE_COLUMNS) - 1;
    let (mut accumulator, mut keep) = (None, 0u32);
    for (i, row) in form.rows.iter().enumerate().filter(|(_, r)| *r & registers != 0) {
        let column = (row & registers).trailing_zeros() as usize;
        let straight = (row & registers).is_power_of_two() && column % WORD == i;
        if !straight || accumulator.is_some_and(|a| a != column / WORD) {
            return None;
        }
        accumulator = Some(column / WORD);
        keep |= 1 << i;
    }
    let used = |s: usize| accumulator == Some(s) || atoms.iter().any(|a| a.source == s);
    if !(0..sources.len()).all(used) || atoms.iter().any(|a| accumulator == Some(a.source)) {
        return None;
    }
    let mut parts = Vec::new();
    for (n, atom) in atoms.iter().enumerate() {
        let values = &machine.tables[atom.table].values;
        let entry = |x: usize| {
            let mask = ciphermill_ir::ops::mask(atom.bits);
            let sum = |i: usize| (form.rows[i] >> atom.column) as u64 & mask & values[x];
            let word = (0..WORD).fold(0, |w, i| w | (sum(i).count_ones() & 1) << i);
            if n == 0 { word ^ form.constant } else { word }
        };
        let table: ByteTable = std::array::from_fn(entry);
        if keep != u32::MAX && table.iter().any(|t| t & keep != 0) {
            return None;
        }
        parts.push(Part { source: atom.source, byte: atom.byte, table: Arc::new(table) });
    }
    Some(Meaning::Tables { parts, accumulator, keep })
}

/// A table looked up with a byte of a register.
struct Atom {
    table: usize,
    source: usize,
    byte: u8,
    /// Where its output stands among the columns, and of how many bits it is.
    column: usize,
    bits: u32,
}

struct Eval<'a> {
    machine: &'a Machine,
    sources: &'a [usize],
    immediates: &'a [(usize, i64)],
    temps: Vec<Form>,
    atoms: Vec<Atom>,
}

impl Eval<'_> {
    fn form(&mut self, e: &Expr) -> Option<Form> {
        let word = WORD as u8;
        Some(match e {
            Expr::Operand(i) => Form::source(WORD * self.sources.iter().position(|s| s == i)?, u32::MAX),
            Expr::Imm(i) => Form::constant(self.immediates.iter().find(|m| m.0 == *i)?.1 as u32),
            Expr::Temp(i) => self.temps.get(*i)?.clone(),
            Expr::Const(c) => Form::constant(*c as u32),
            Expr::Bin { op, bits, a, b } if *bits == word => {
                let (a, b) = (self.form(a)?, self.form(b)?);
                match (a.as_const(), b.as_const()) {
                    (Some(a), Some(b)) => Form::constant(op.eval(a.into(), b.into(), WORD as u32)? as u32),
                    _ => Form::bin(*op, &a, &b)?,
                }
            }
            Expr::Un { op, bits, a } if *bits == word => Form::of(ciphermill_ir::Op::Un(*op), &[&self.form(a)?])?,
            Expr::Slice { a, lo, width } => {
                let shifted = Form::bin(BinOp::ShrU, &self.form(a)?, &Form::constant(u32::from(*lo)))?;
                let mask = ciphermill_ir::ops::mask(u32::from(*width)) as u32;
                Form::bin(BinOp::And, &shifted, &Form::constant(mask))?
            }
            Expr::Linear { matrix, a } => self.form(a)?.times(&matrix.rows),
            Expr::Table { table, index } => self.lookup(*table, index)?,
            _ => return None,
        })
    }

    fn lookup(&mut self, table: usize, index: &Expr) -> Option<Form> {
        let data = self.machine.tables.get(table)?;
        let index = self.form(index)?;
        if data.values.len() != 256 || usize::from(data.bits) > WORD {
            return None;
        }
        let first = index.rows[0].trailing_zeros() as usize;
        if index.rows[0] == 0 || first >= TABLE_COLUMNS || !first.is_multiple_of(8) {
            return None;
        }
        if index != Form::source(first, 0xff) {
            return None;
        }
        let (source, byte, bits) = (first / WORD, (first % WORD / 8) as u8, u32::from(data.bits));
        let same = |a: &&Atom| (a.table, a.source, a.byte) == (table, source, byte);
        let column = match self.atoms.iter().find(same) {
            Some(there) => there.column,
            None => {
                let column = self.atoms.last().map_or(TABLE_COLUMNS, |a| a.column + a.bits as usize);
                self.atoms.push(Atom { table, source, byte, column, bits });
                column
            }
        };
        let fits = column + bits as usize <= 128;
        fits.then(|| Form::source(column, ciphermill_ir::ops::mask(bits) as u32))
    }
}

/// A matrix that a rotate before it and one behind it may turn: the function,
/// then by how many bits to the left the source is rotated, and the result.
pub type Turned = (u16, u32, u32);

/// The matrices of `units`, and what byte rotations make of them.
pub fn matrices(units: &[Unit]) -> HashMap<[u32; WORD], Turned> {
    let mut out = HashMap::new();
    // Fewest rotates first: they win.
    for rotates in 0..=2 {
        for unit in units {
            let Some(rows) = unit.one_word() else { continue };
            for (before, behind) in (0..4).flat_map(|a| (0..4).map(move |b| (8 * a, 8 * b))) {
                if usize::from(before != 0) + usize::from(behind != 0) == rotates {
                    // Bit j of the rotated source is bit j - before of the source.
                    let turned = std::array::from_fn(|i| rows[(i + WORD - behind) % WORD].rotate_right(before as u32));
                    out.entry(turned).or_insert((unit.function, before as u32, behind as u32));
                }
            }
        }
    }
    out
}

/// The inverse of a unit's matrix: what a word was before the unit.
pub struct Inverse {
    /// The unit's function.
    pub function: u16,
    /// For each of the unit's sources: the bits of it that the unit looks at.
    pub masks: Vec<u32>,
    rows: [u32; WORD],
}

impl Inverse {
    /// The word that the unit turns into `x`.
    pub fn apply(&self, x: u32) -> u32 {
        (0..WORD).fold(0, |w, i| w | ((self.rows[i] & x).count_ones() & 1) << i)
    }

    /// Does each bit of the word come from one source only?
    pub fn splits(&self) -> bool {
        self.masks.len() == 2 && self.masks[0] & self.masks[1] == 0
    }
}

/// The inverses of the matrices that have one; those of two sources first,
/// because they take halves of words as they are.
pub fn inverses(units: &[Unit]) -> Vec<Inverse> {
    let inverse = |unit: &Unit| {
        let Meaning::Matrix(of) = &unit.meaning else { return None };
        let masks = of.iter().map(|rows| rows.iter().fold(0, |m, r| m | r)).collect();
        Some(Inverse { function: unit.function, masks, rows: inverted(unit.one_word()?)? })
    };
    let mut all: Vec<Inverse> = units.iter().filter_map(inverse).collect();
    all.sort_by_key(|i| std::cmp::Reverse(i.masks.len()));
    all
}

/// By elimination; None for a singular matrix.
fn inverted(mut rows: [u32; WORD]) -> Option<[u32; WORD]> {
    let mut out: [u32; WORD] = std::array::from_fn(|i| 1 << i);
    for column in 0..WORD {
        let pivot = (column..WORD).find(|&i| rows[i] >> column & 1 == 1)?;
        rows.swap(column, pivot);
        out.swap(column, pivot);
        for i in (0..WORD).filter(|&i| i != column) {
            if rows[i] >> column & 1 == 1 {
                rows[i] ^= rows[column];
                out[i] ^= out[column];
            }
        }
    }
    Some(out)
}
