//! What the table and matrix instructions of a machine of 64-bit words compute, as
//! sums of functions of bytes of their register sources.

use super::super::semantics::{Domain, fixed};
use super::sum::Sum;
use ciphermill_ir::{BinOp, UnOp, ops};
use ciphermill_machine::Machine;
use ciphermill_machine::gf2::BitMatrix;
use ciphermill_patterns::pattern::Template;

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
    /// Only the low 32 bits count, rotated to the right by so many; above them is their sign, or
    /// zeros where that is how the machine holds 32 bits.
    pub low: Option<u32>,
    /// A source that is added to the sum as it is.
    pub added: Option<usize>,
}

impl Unit {
    /// The same with what is added left out of the sum, if a source is.
    fn without_added(&self) -> Option<Unit> {
        let added = (0..self.sources).find(|&s| {
            let own: Vec<_> = self.sum.parts.iter().filter(|p| p.source == s).collect();
            let whole = Sum::source(s, u64::MAX);
            own.len() == whole.parts.len() && whole.parts.iter().all(|p| own.contains(&p))
        })?;
        let parts = self.sum.parts.iter().filter(|p| p.source != added).cloned().collect();
        Some(Unit { sum: Sum { parts, constant: self.sum.constant }, added: Some(added), ..self.clone() })
    }
}

/// Rotations of 32 bits that are tried.
const TURNS: [u32; 4] = [0, 8, 16, 24];

/// The low 32 bits of a word, rotated to the right, as the machine holds 32 bits.
fn low(machine: &Machine, word: u64, turn: u32) -> u64 {
    let low = u64::from((word as u32).rotate_right(turn));
    if machine.computes_narrow() { low } else { ops::sext(low, 32) as u64 }
}

/// All units of a machine, and the templates that compute them: template n is
/// function n.
pub fn units(machine: &Machine) -> (Vec<Unit>, Vec<Template>) {
    let (mut units, mut templates) = (Vec::new(), Vec::new());
    for instr in fixed(machine) {
        let sources = instr.sources.len();
        let Some((dest, sum)) = instr.result(&mut Sums { machine }) else { continue };
        let uses_all = |sum: &Sum<usize>| (0..sources).all(|s| sum.parts.iter().any(|p| p.source == s));
        if (1..=2).contains(&sources) && uses_all(&sum) {
            let function = templates.len() as u16;
            templates.push(instr.template(machine, dest, &instr.sources, function, false));
            let unit = Unit { name: instr.instr.name.clone(), sum, sources, function, low: None, added: None };
            let halves = TURNS.map(|turn| Unit {
                sum: unit.sum.through(|w| low(machine, w, turn)),
                low: Some(turn),
                ..unit.clone()
            });
            let bare = unit.without_added();
            units.extend(std::iter::once(unit).chain(halves.into_iter().filter(|u| uses_all(&u.sum))).chain(bare));
        }
    }
    (units, templates)
}

/// Sums of functions of the bytes of the registers.
struct Sums<'a> {
    machine: &'a Machine,
}

impl Domain for Sums<'_> {
    type Value = Sum<usize>;

    fn source(&self, n: usize) -> Sum<usize> {
        Sum::source(n, u64::MAX)
    }

    fn constant(&self, c: u64) -> Sum<usize> {
        Sum::constant(c)
    }

    fn binary(&self, op: BinOp, bits: u8, a: &Sum<usize>, b: &Sum<usize>) -> Option<Sum<usize>> {
        binary(op, bits.into(), a, b)
    }

    fn unary(&self, op: UnOp, bits: u8, a: &Sum<usize>) -> Option<Sum<usize>> {
        unary(op, bits.into(), a)
    }

    fn slice(&self, a: &Sum<usize>, lo: u8, width: u8) -> Option<Sum<usize>> {
        let mask = ops::mask(u32::from(width));
        Some(a.through(|x| x >> lo & mask))
    }

    fn linear(&self, matrix: &BitMatrix, a: &Sum<usize>) -> Sum<usize> {
        a.through(|x| matrix.apply(x))
    }

    fn lookup(&mut self, table: usize, index: &Sum<usize>) -> Option<Sum<usize>> {
        let values = &self.machine.tables.get(table)?.values;
        index.lookup(|i| values.get((i % values.len() as u64) as usize).copied())
    }
}

/// An operation of two sums in so many bits, with zeros above, if it is such a sum for certain.
pub fn binary<S: Copy + PartialEq>(op: BinOp, bits: u32, a: &Sum<S>, b: &Sum<S>) -> Option<Sum<S>> {
    if let (Some(x), Some(y)) = (a.as_constant(), b.as_constant()) {
        return op.eval(x, y, bits).map(Sum::constant);
    }
    let cut = |x: &Sum<S>| if bits < 64 { x.through(|x| x & ops::mask(bits)) } else { x.clone() };
    let (a, b) = (&cut(a), &cut(b));
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
            Some(a.through(|x| op.eval(x, by, bits).unwrap_or(0)))
        }
        _ => None,
    }
}

/// The same of one.
pub fn unary<S: Copy + PartialEq>(op: UnOp, bits: u32, a: &Sum<S>) -> Option<Sum<S>> {
    let linear = matches!(op, UnOp::Bswap | UnOp::SExt8 | UnOp::SExt16 | UnOp::SExt32);
    linear.then(|| a.through(|x| op.eval(x, bits)))
}
