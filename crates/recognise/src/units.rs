//! What a machine's table and matrix instructions compute, in the form that a program's
//! values are compared with.
//!
//! An instruction with its immediates fixed is a [`Unit`] if its result is a [`Sum`] over the
//! bytes of one or two registers: a matrix, S-boxes, S-boxes with a matrix behind them, it is
//! all one. A register that is only added to that, or into whose other bits the rest is
//! inserted, is the unit's *accumulator* and stands apart, because a program may hold any
//! value there.
//!
//! On a machine of 64-bit words the lower half of a result is a unit too: it computes what a
//! program does with words of 32 bits.
//!
//! An instruction that multiplies by a matrix held in registers is a [`Configurable`]: which
//! matrix it holds is for [`super::configure`] to say.

use super::nibbles;
use super::semantics::{Words, all, fixed};
use super::sum::{Part, Rows, Sum, times};
use ciphermill_ir::ops;
use ciphermill_machine::Machine;
use ciphermill_machine::sem::HeldMatrix;
use ciphermill_patterns::pattern::Template;

/// An instruction with its immediates fixed.
#[derive(Clone)]
pub struct Unit {
    pub name: String,
    /// Over register sources, by their numbers; without the accumulator.
    pub sum: Sum<usize>,
    pub accumulator: Option<Accumulator>,
    /// Number of register sources.
    pub sources: usize,
    /// The number of [`ciphermill_ir::Op::Apply`].
    pub function: u16,
    /// The same where it does not matter what the accumulator holds: it is no operand then.
    pub regardless: Option<u16>,
    /// The matrix of each source, where it is nothing but a sum of such products.
    pub matrix: Vec<Rows>,
    /// Its sum, without an accumulator, for each rotation that its result may be given, that
    /// by nothing first: by parts of bytes, and by functions of one nibble each where all parts
    /// are such, and it is no matrix.
    pub bytes: Vec<Turn>,
    pub nibbles: Vec<Turn>,
    /// Only the lower half of the result counts.
    pub low: Option<Low>,
    /// Of a word.
    pub bits: u32,
}

/// A source of which the result has the bits `keep`; what else it has, if these are not all,
/// is in other bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Accumulator {
    pub source: usize,
    pub keep: u64,
}

/// What a unit computes, rotated to the left.
#[derive(Clone)]
pub struct Turn {
    pub by: u32,
    pub parts: Vec<Part<usize>>,
    pub constant: u64,
}

/// How the machine holds words of 32 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Low {
    /// Above them is their sign, and else zeros.
    pub signed: bool,
}

impl Unit {
    /// The matrix that it is with the same word for all its sources.
    pub fn one_word(&self) -> Option<Rows> {
        let sum = |sum: Rows, rows: &Rows| sum.iter().zip(rows).map(|(a, b)| a ^ b).collect();
        let (first, others) = self.matrix.split_first().filter(|_| self.low.is_none())?;
        Some(others.iter().fold(first.clone(), sum))
    }

    /// Does it add to all of an accumulator?
    pub fn adds(&self) -> bool {
        self.accumulator.is_some_and(|a| a.keep == ops::mask(self.bits))
    }

    /// The rotations of 32 bits, in steps of so many, of parts that come to its sum.
    fn turns(&self, parts: &[Part<usize>], step: usize) -> Vec<Turn> {
        let bits = if self.bits == 32 || self.low.is_some() { 32 } else { 1 };
        let turn = |by: u32| Turn {
            by,
            parts: parts.iter().map(|p| p.through(|x| self.turned(x, by))).collect(),
            constant: self.turned(self.sum.at_zero(), by),
        };
        (0..bits).step_by(step).map(turn).collect()
    }

    fn with_turns(mut self) -> Unit {
        self.bytes = self.turns(&self.sum.parts, 8);
        if self.matrix.is_empty() && self.low.is_none() {
            self.nibbles = nibbles::halves(&self.sum.parts).map_or(Vec::new(), |halves| self.turns(&halves, 4));
        }
        self
    }

    /// A word of its result rotated to the left.
    pub fn turned(&self, word: u64, turn: u32) -> u64 {
        let turned = || u64::from((word as u32).rotate_left(turn));
        match self.low {
            Some(Low { signed: true }) => ops::sext(turned(), 32) as u64,
            Some(_) => turned(),
            None if turn == 0 => word,
            None => turned(),
        }
    }
}

/// All units of a machine, and the templates that compute them: template n is
/// function n.
pub fn units(machine: &Machine) -> (Vec<Unit>, Vec<Template>) {
    let (mut units, mut templates) = (Vec::new(), Vec::new());
    let bits = u32::from(machine.word_bits);
    for instr in fixed(machine) {
        let sources = &instr.sources;
        let Some((dest, all)) = instr.result(Words::of(machine), None) else { continue };
        let all = all.within(bits);
        let values = all.sources().len();
        if !(1..=2).contains(&values) {
            continue;
        }
        let mut number = |sources: &[usize], any_old| {
            let n = templates.len() as u16;
            templates.push(instr.template(machine, dest, sources, n, any_old));
            n
        };
        let function = number(sources, false);
        let matrix = if all.is_linear() { (0..values).map(|s| all.rows(s, bits)).collect() } else { Vec::new() };
        let (accumulator, sum) = accumulated(&all, bits).filter(|_| matrix.is_empty()).unzip();
        let sum = sum.unwrap_or(all);
        let regardless = match accumulator {
            Some(Accumulator { source, keep })
                if keep != ops::mask(bits) && values == sources.len() && sources[source] == dest =>
            {
                let others: Vec<usize> = sources.iter().copied().filter(|&s| s != dest).collect();
                Some(number(&others, true))
            }
            _ => None,
        };
        let unit = Unit {
            name: instr.name.to_owned(),
            sum,
            accumulator,
            sources: values,
            function,
            regardless,
            matrix,
            bytes: Vec::new(),
            nibbles: Vec::new(),
            low: None,
            bits,
        };
        let lower = lower(machine, &unit);
        units.push(unit.with_turns());
        units.extend(lower);
    }
    (units, templates)
}

/// The sum taken apart into an accumulator, if there is one, and the rest.
fn accumulated(all: &Sum<usize>, bits: u32) -> Option<(Accumulator, Sum<usize>)> {
    let (source, keep) = all.sources().into_iter().find_map(|s| Some((s, all.kept(s)?)))?;
    let own = all.parts.iter().filter(|p| p.source != source).cloned().collect();
    let rest = Sum { parts: own, rest: all.rest };
    let apart = rest.possible() & keep == 0 || keep == ops::mask(bits);
    (apart && !rest.parts.is_empty()).then_some((Accumulator { source, keep }, rest))
}

/// The lower half of a unit of 64-bit words.
fn lower(machine: &Machine, unit: &Unit) -> Option<Unit> {
    let low = Low { signed: !machine.computes_narrow() };
    let lower = Unit { low: Some(low), matrix: Vec::new(), ..unit.clone() };
    let sum = unit.sum.through(|x| lower.turned(x, 0));
    let whole = unit.bits == 64 && unit.accumulator.is_none() && sum.sources().len() == unit.sources;
    whole.then(|| Unit { sum, ..lower }.with_turns())
}

/// A multiplication by the matrix that registers hold.
pub struct Configurable {
    /// Its function.
    pub function: u16,
    pub matrix: HeldMatrix,
    pub name: String,
}

/// The machine's first instruction of that kind, with its template, which is
/// function `function`.
pub(crate) fn configurable(machine: &Machine, function: usize) -> Option<(Configurable, Template)> {
    if machine.word_bits != 32 {
        return None;
    }
    all(machine).find_map(|fixed| {
        let (dest, matrix) = fixed.held_product(Words::of(machine))?;
        let made = fixed.template(machine, dest, &fixed.sources, function as u16, false);
        Some((Configurable { function: function as u16, matrix, name: fixed.name.to_owned() }, made))
    })
}

impl Configurable {
    /// It as a unit, with a matrix in its registers.
    pub fn holding(&self, rows: Rows) -> Unit {
        let sum = Sum::source(0, u64::from(u32::MAX)).through(|x| times(&rows, x));
        Unit {
            name: self.name.clone(),
            sum,
            accumulator: None,
            sources: 1,
            function: self.function,
            regardless: None,
            matrix: vec![rows],
            bytes: Vec::new(),
            nibbles: Vec::new(),
            low: None,
            bits: 32,
        }
        .with_turns()
    }
}
