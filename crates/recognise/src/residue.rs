//! Words as polynomials modulo a power of two.
//!
//! Arithmetic modulo a prime is sums, differences and products of words, and parts cut out of
//! them: upper halves, low halves, signs. So a word is held as a polynomial with coefficients
//! modulo 2^n whose variables ([`Atom`]) are sources and parts of other polynomials. Parts are put
//! into one form: what a part of a part is, of which bits a part is that is looked at modulo less,
//! and that a difference which a power of two divides is the difference of the quotients. Two words
//! with the same form are equal; of two with different forms nothing is known. (Such
//! polynomials modulo 2^n, without parts: N. Shekhar, P. Kalla, F. Enescu, *Equivalence verification of
//! polynomial datapaths using ideal membership testing*, IEEE TCAD 26(7), 2007.)
//!
//! Sources are integers within known bounds. Bounds of a polynomial tell where a word does not wrap,
//! so that it is the same number in a wider one.

mod bounds;
mod parts;
mod quotients;

use std::collections::BTreeMap;
use std::sync::Arc;

/// Terms of a polynomial, and nodes of it and of all parts in it, at most: a butterfly of sums modulo a
/// prime has some twenty.
const MOST_TERMS: usize = 12;
const MOST_NODES: usize = 80;

/// From a number to another, both included.
pub type Range = (i128, i128);

/// An integer.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Atom {
    Source { number: usize, range: Range },
    Part(Part),
}

/// Bits of a word, as a number with or without a sign.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Part {
    /// It has no bits above the part.
    pub of: Residue,
    pub low: u32,
    pub width: u32,
    pub signed: bool,
    range: Range,
    /// It is the quotient of a number by 2^low.
    is_quotient: bool,
}

impl Atom {
    pub fn range(&self) -> Range {
        match self {
            Atom::Source { range, .. } => *range,
            Atom::Part(part) => part.range,
        }
    }

    fn is_bit(&self) -> bool {
        self.range() == (0, 1)
    }
}

/// What a term multiplies: none for a constant.
pub type Monomial = Vec<Arc<Atom>>;

/// A word of so many bits, up to 128.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Residue {
    bits: u32,
    terms: BTreeMap<Monomial, u128>,
}

/// The atom of a monomial of one.
fn single(monomial: &Monomial) -> Option<&Atom> {
    match &monomial[..] {
        [atom] => Some(atom),
        _ => None,
    }
}

fn mask(bits: u32) -> u128 {
    if bits >= 128 { u128::MAX } else { (1 << bits) - 1 }
}

fn signed_range(bits: u32) -> Range {
    (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
}

impl Residue {
    pub fn constant(value: u64, bits: u32) -> Residue {
        Residue::of([(Vec::new(), u128::from(value))], bits).cleared()
    }

    /// A source, whose word of `bits` bits is a number within the range.
    pub fn source(number: usize, range: Range, bits: u32) -> Residue {
        Residue { bits, terms: BTreeMap::from([(vec![Arc::new(Atom::Source { number, range })], 1)]) }
    }

    /// A product of atoms.
    pub fn product(of: Monomial, bits: u32) -> Residue {
        Residue::of([(of, 1)], bits)
    }

    fn of(terms: impl IntoIterator<Item = (Monomial, u128)>, bits: u32) -> Residue {
        let mut sum = Residue { bits, terms: BTreeMap::new() };
        terms.into_iter().for_each(|(monomial, c)| sum.add(monomial, c));
        sum
    }

    fn add(&mut self, monomial: Monomial, coefficient: u128) {
        let bits = self.bits;
        let entry = self.terms.entry(monomial).or_default();
        *entry = entry.wrapping_add(coefficient) & mask(bits);
    }

    fn cleared(mut self) -> Residue {
        self.terms.retain(|_, c| *c != 0);
        self
    }

    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Terms with coefficients as numbers that are as small as possible.
    pub fn terms(&self) -> impl Iterator<Item = (&Monomial, i128)> {
        self.terms.iter().map(|(m, &c)| (m, self.centred(c)))
    }

    /// The terms that are added, and those that are subtracted, with their signs changed.
    pub fn sides(&self) -> [Residue; 2] {
        [1, -1].map(|sign| {
            let terms = self.terms().filter(|t| t.1 * sign > 0);
            Residue::of(terms.map(|(m, c)| (m.clone(), (c * sign) as u128)), self.bits)
        })
    }

    fn centred(&self, c: u128) -> i128 {
        if c >> (self.bits - 1) & 1 == 0 { c as i128 } else { (c | !mask(self.bits)) as i128 }
    }

    pub fn as_constant(&self) -> Option<u128> {
        match self.terms.len() {
            0 => Some(0),
            1 => self.terms.get(&Vec::new()).copied(),
            _ => None,
        }
    }

    /// The only atom, if it is one and nothing else.
    fn only(&self) -> Option<&Arc<Atom>> {
        match self.terms.first_key_value() {
            Some((m, 1)) if self.terms.len() == 1 && m.len() == 1 => m.first(),
            _ => None,
        }
    }

    fn nodes(&self) -> usize {
        let atom = |a: &Arc<Atom>| match &**a {
            Atom::Part(part) => 1 + part.of.nodes(),
            Atom::Source { .. } => 1,
        };
        self.terms.keys().map(|m| 1 + m.iter().map(atom).sum::<usize>()).sum()
    }

    /// Unless it has grown too large.
    pub fn bounded(self) -> Option<Residue> {
        (self.terms.len() <= MOST_TERMS && self.nodes() <= MOST_NODES).then_some(self)
    }

    /// All bits the other way round: -1 less it.
    pub fn complement(&self) -> Residue {
        let mut out = self.scaled(-1);
        out.add(Vec::new(), u128::MAX);
        out.cleared()
    }

    pub fn scaled(&self, by: i128) -> Residue {
        let terms = self.terms.iter().map(|(m, c)| (m.clone(), c.wrapping_mul(by as u128)));
        Residue::of(terms, self.bits).normal()
    }

    /// The sum with another times a factor.
    pub fn plus(&self, other: &Residue, times: i128) -> Residue {
        let mut out = self.clone();
        for (m, c) in &other.terms {
            out.add(m.clone(), c.wrapping_mul(times as u128));
        }
        out.normal()
    }

    /// Coefficients with zeros at their end leave less of their atoms to count.
    fn normal(self) -> Residue {
        let bits = self.bits;
        self.cleared().reduced(bits).signed_again()
    }

    pub fn times(&self, other: &Residue) -> Option<Residue> {
        if self.terms.len() * other.terms.len() > MOST_TERMS * MOST_TERMS {
            return None;
        }
        self.times_all(other).normal().bounded()
    }

    fn times_all(&self, other: &Residue) -> Residue {
        let mut out = Residue { bits: self.bits, terms: BTreeMap::new() };
        for (m, c) in &self.terms {
            for (n, d) in &other.terms {
                let mut both: Monomial = m.iter().chain(n).cloned().collect();
                both.sort();
                // The square of a bit is that bit.
                both.dedup_by(|a, b| a == b && a.is_bit());
                out.add(both, c.wrapping_mul(*d));
            }
        }
        out.cleared()
    }

    /// A word of zeros or ones: the bit that says which.
    pub fn mask_of_bit(&self) -> Option<Residue> {
        let bit = self.scaled(-1);
        (bit.range() == Some((0, 1))).then_some(bit)
    }

    /// The parts in it, its own parts' too, with the coefficients of those that are terms by themselves.
    pub fn parts<'a>(&'a self, found: &mut dyn FnMut(&'a Part, Option<i128>)) {
        for (monomial, c) in self.terms() {
            for atom in monomial {
                if let Atom::Part(part) = &**atom {
                    found(part, (monomial.len() == 1).then_some(c));
                    part.of.parts(found);
                }
            }
        }
    }

    /// What it is for these sources.
    pub fn at(&self, sources: &[i128]) -> u128 {
        let atom = |a: &Arc<Atom>| match &**a {
            Atom::Source { number, .. } => sources[*number] as u128,
            Atom::Part(part) => {
                let bits = part.of.at(sources) >> part.low & mask(part.width);
                let negative = part.signed && bits >> (part.width - 1) & 1 != 0;
                if negative { bits | !mask(part.width) } else { bits }
            }
        };
        let term = |(m, c): (&Monomial, &u128)| m.iter().map(atom).fold(*c, u128::wrapping_mul);
        self.terms.iter().map(term).fold(0, u128::wrapping_add) & mask(self.bits)
    }
}

impl Part {
    fn new(of: Residue, low: u32, width: u32, signed: bool) -> Part {
        let all = if signed { signed_range(width) } else { (0, (1 << width) - 1) };
        let known = of.range().filter(|&r| of.holds(r, signed) && low + width == of.bits);
        let range = known.map_or(all, |(from, to)| (from >> low, to >> low));
        Part { of, low, width, signed, range, is_quotient: known.is_some() }
    }

    /// Is a shorter part enough where only so many bits count, or may it be written as one?
    fn is_more_than(&self, count: u32) -> bool {
        self.width > count || self.low == 0 || self.width > 1 && !self.signed
    }
}
