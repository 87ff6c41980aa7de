//! What a machine's table and matrix instructions compute, in a form that a
//! program's values can be compared with.
//!
//! An instruction with its immediates fixed is a [`Unit`] if its result is
//!
//! * a matrix over GF(2) times one register, or the sum of such products of two
//!   registers, or
//! * a sum of tables of one byte or one nibble each (a table's entry times a matrix,
//!   written out for all 256 values of the byte), added to, or inserted into, another
//!   register.
//!
//! An instruction that multiplies by a matrix held in registers is a
//! [`Configurable`]: which matrix it holds is for [`super::configure`] to say.
//!
//! Which it is comes from its semantics, evaluated over [`Form`]s whose columns
//! are the bits of its registers and of its tables' outputs.

use super::form::{Form, WORD};
use super::nibbles::{self, ByteTable};
use super::semantics::{Domain, Fixed, fixed};
use ciphermill_ir::{BinOp, UnOp, ops};
use ciphermill_machine::gf2::BitMatrix;
use ciphermill_machine::sem::{Dest, Expr, Stmt};
use ciphermill_machine::{Machine, Reg};
use ciphermill_patterns::pattern::Template;
use std::collections::HashMap;
use std::sync::Arc;

/// Columns of tables stand behind those of two registers.
const TABLE_COLUMNS: usize = 2 * WORD;

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
    /// The parts taken apart into functions of one nibble each, where the instruction
    /// looks up nibbles; else empty.
    pub nibbles: Vec<Part>,
}

impl Unit {
    /// The matrix that it is with the same word for all its sources.
    pub(crate) fn one_word(&self) -> Option<[u32; WORD]> {
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
pub(crate) fn configurable(machine: &Machine, function: usize) -> Option<(Configurable, Template)> {
    if usize::from(machine.word_bits) != WORD {
        return None;
    }
    machine.instrs.iter().enumerate().find_map(|(id, instr)| {
        let [Stmt::Assign { dest: Dest::Operand(dest), value: Expr::MatVec { first, a, .. } }] = &instr.semantics[..]
        else {
            return None;
        };
        let Expr::Operand(source) = **a else { return None };
        if !instr.selectable || instr.operands.len() != 2 {
            return None;
        }
        let fixed = Fixed { id, instr, sources: vec![source], immediates: Vec::new() };
        let made = fixed.template(machine, *dest, &[source], function as u16, false);
        Some((Configurable { function: function as u16, first: *first }, made))
    })
}

/// All units of a machine, and the templates that compute them: template n is
/// function n.
pub fn units(machine: &Machine) -> (Vec<Unit>, Vec<Template>) {
    let (mut units, mut templates) = (Vec::new(), Vec::new());
    if usize::from(machine.word_bits) != WORD {
        return (units, templates);
    }
    for instr in fixed(machine) {
        let Some(UnitMeaning { meaning, dest, nibbles }) = found(machine, &instr) else { continue };
        let mut number = |sources: &[usize], any_old| {
            let n = templates.len() as u16;
            templates.push(instr.template(machine, dest, sources, n, any_old));
            n
        };
        let sources = &instr.sources;
        let function = number(sources, false);
        let regardless = match &meaning {
            Meaning::Tables { accumulator: Some(a), keep, .. } if *keep != u32::MAX && sources[*a] == dest => {
                let others: Vec<usize> = sources.iter().copied().filter(|&s| s != dest).collect();
                Some(number(&others, true))
            }
            _ => None,
        };
        units.push(Unit { meaning, sources: sources.len(), function, regardless, nibbles });
    }
    (units, templates)
}

struct UnitMeaning {
    meaning: Meaning,
    dest: usize,
    nibbles: Vec<Part>,
}

fn found(machine: &Machine, instr: &Fixed) -> Option<UnitMeaning> {
    let sources = &instr.sources;
    if sources.len() > 2 {
        return None;
    }
    let mut forms = Forms { machine, atoms: Vec::new() };
    let (dest, form) = instr.result(&mut forms)?;
    let meaning =
        if forms.atoms.is_empty() { matrix(&form, sources)? } else { tables(machine, &form, &forms.atoms, sources)? };
    let nibbles = match &meaning {
        Meaning::Tables { parts, .. } if forms.atoms.iter().any(|a| a.width == 4) => halves(parts).unwrap_or_default(),
        _ => Vec::new(),
    };
    Some(UnitMeaning { meaning, dest, nibbles })
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
    let mut parts: Vec<Part> = Vec::new();
    for (n, atom) in atoms.iter().enumerate() {
        let values = &machine.tables[atom.table].values;
        let entry = |x: usize| {
            let mask = ops::mask(atom.bits);
            let value = values[x >> atom.shift & (values.len() - 1)];
            let sum = |i: usize| (form.rows[i] >> atom.column) as u64 & mask & value;
            let word = (0..WORD).fold(0, |w, i| w | (sum(i).count_ones() & 1) << i);
            if n == 0 { word ^ form.constant } else { word }
        };
        let table: ByteTable = std::array::from_fn(entry);
        if keep != u32::MAX && table.iter().any(|t| t & keep != 0) {
            return None;
        }
        match parts.iter_mut().find(|p| (p.source, p.byte) == (atom.source, atom.byte)) {
            Some(there) => there.table = Arc::new(std::array::from_fn(|x| there.table[x] ^ table[x])),
            None => parts.push(Part { source: atom.source, byte: atom.byte, table: Arc::new(table) }),
        }
    }
    Some(Meaning::Tables { parts, accumulator, keep })
}

/// The parts as functions of one nibble each, those that are nothing left out; None
/// where one is of the whole byte.
fn halves(parts: &[Part]) -> Option<Vec<Part>> {
    let mut out = Vec::new();
    for part in parts {
        let there = nibbles::split(&part.table)?.into_iter().filter(|t| t.iter().any(|&entry| entry != 0));
        out.extend(there.map(|table| Part { table: Arc::new(table), ..part.clone() }));
    }
    Some(out)
}

/// A table looked up with a byte of a register, or with one of the byte's nibbles.
struct Atom {
    table: usize,
    source: usize,
    byte: u8,
    /// Bits of the index, and where in the byte they begin.
    width: usize,
    shift: usize,
    /// Where its output stands among the columns, and of how many bits it is.
    column: usize,
    bits: u32,
}

/// Forms over the bits of the registers, and of the tables' outputs behind them.
struct Forms<'a> {
    machine: &'a Machine,
    atoms: Vec<Atom>,
}

impl Domain for Forms<'_> {
    type Value = Form;

    fn source(&self, n: usize) -> Form {
        Form::source(WORD * n, u32::MAX)
    }

    fn constant(&self, c: u64) -> Form {
        Form::constant(c as u32)
    }

    fn binary(&self, op: BinOp, bits: u8, a: &Form, b: &Form) -> Option<Form> {
        a.combined(op, bits, b)
    }

    fn unary(&self, op: UnOp, bits: u8, a: &Form) -> Option<Form> {
        a.changed(op, bits)
    }

    fn slice(&self, a: &Form, lo: u8, width: u8) -> Option<Form> {
        a.cut(lo, width)
    }

    fn linear(&self, matrix: &BitMatrix, a: &Form) -> Form {
        a.times(&matrix.rows)
    }

    fn lookup(&mut self, table: usize, index: &Form) -> Option<Form> {
        let data = self.machine.tables.get(table)?;
        let width = match data.values.len() {
            256 => 8,
            16 => 4,
            _ => return None,
        };
        let first = index.rows[0].trailing_zeros() as usize;
        if index.rows[0] == 0 || first >= TABLE_COLUMNS || !first.is_multiple_of(width) || usize::from(data.bits) > WORD
        {
            return None;
        }
        if *index != Form::source(first, ops::mask(width as u32) as u32) {
            return None;
        }
        let (source, byte, bits) = (first / WORD, (first % WORD / 8) as u8, u32::from(data.bits));
        let shift = first % 8;
        let same = |a: &&Atom| (a.table, a.source, a.byte, a.shift) == (table, source, byte, shift);
        let column = match self.atoms.iter().find(same) {
            Some(there) => there.column,
            None => {
                let column = self.atoms.last().map_or(TABLE_COLUMNS, |a| a.column + a.bits as usize);
                self.atoms.push(Atom { table, source, byte, width, shift, column, bits });
                column
            }
        };
        let fits = column + bits as usize <= 128;
        fits.then(|| Form::source(column, ops::mask(bits) as u32))
    }
}

/// Row i of a matrix: the bits that bit i is the sum of.
pub type Rows = [u32; WORD];

/// A matrix that a rotate before it and one behind it may turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Turned {
    /// None: the word itself.
    pub function: Option<u16>,
    /// Bits by which the source is rotated to the left, and the result.
    pub before: u32,
    pub behind: u32,
    /// Constants that are the function's other source; without, it has the same word twice.
    pub by: Option<u32>,
}

impl Turned {
    /// Operations that it takes, with those of a rotate.
    pub fn cost(&self, rotate: usize) -> usize {
        let rotates = usize::from(self.before != 0) + usize::from(self.behind != 0);
        usize::from(self.function.is_some()) + rotate * rotates
    }
}

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
                    let (function, before, behind) = (Some(unit.function), before as u32, behind as u32);
                    out.entry(turned).or_insert(Turned { function, before, behind, by: None });
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
pub(crate) fn inverses(units: &[Unit]) -> Vec<Inverse> {
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
