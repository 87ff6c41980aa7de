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

use std::collections::BTreeMap;
use std::sync::Arc;

/// Terms of a polynomial, and nodes of it and of all parts in it, at most: a butterfly of sums modulo a
/// prime has some twenty.
const MOST_TERMS: usize = 12;
const MOST_NODES: usize = 80;

/// Numbers that bounds are known for are smaller: what is done with bounds stays within 128 bits.
const LARGE: i128 = 1 << 120;

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

/// The bits of the smallest word that holds these numbers.
fn bits_for((low, high): Range, signed: bool) -> u32 {
    let above = |x: i128| 128 - x.leading_zeros();
    if signed { 1 + above(high.max(0)).max(above(!low.min(-1))) } else { above(high).max(1) }
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
    fn bounded(self) -> Option<Residue> {
        (self.terms.len() <= MOST_TERMS && self.nodes() <= MOST_NODES).then_some(self)
    }

    /// Bounds of the polynomial as a number: the word's value, where they fit into the word.
    ///
    /// A quotient is what it is one of, less a remainder, divided: so a number less the multiples of another in it is
    /// small.
    pub fn range(&self) -> Option<Range> {
        let mut range = self.bounds()?;
        for (monomial, &c) in &self.terms {
            let Some(Atom::Part(part)) = single(monomial) else { continue };
            if !part.is_quotient || part.low == 0 {
                continue;
            }
            let (c, power) = (self.centred(c), 1i128 << part.low.min(126));
            let scaled = |d: i128, by: i128| d.checked_mul(by).filter(|x| x.abs() < LARGE).map(|x| x as u128);
            let others = self.terms().filter(|t| t.0 != monomial).map(|(m, d)| Some((m.clone(), scaled(d, power)?)));
            let divided = part.of.terms().map(|(m, d)| Some((m.clone(), scaled(d, c)?)));
            let Some(terms) = others.chain(divided).collect::<Option<Vec<_>>>() else { continue };
            let sum = Residue::of(terms, 128).cleared();
            let Some((from, to)) = sum.bounds() else { continue };
            let Some(remainder) = scaled(c, power - 1).map(|r| r as i128) else { continue };
            let (from, to) = (from - remainder.max(0), to - remainder.min(0));
            range = (range.0.max(-(-from >> part.low)), range.1.min(to >> part.low));
        }
        Some(range)
    }

    /// Of the terms by themselves.
    fn bounds(&self) -> Option<Range> {
        let mut sum: Range = (0, 0);
        for (monomial, c) in self.terms() {
            let mut product = (c, c);
            for atom in monomial {
                let (a, b) = atom.range();
                let all = [
                    product.0.checked_mul(a)?,
                    product.0.checked_mul(b)?,
                    product.1.checked_mul(a)?,
                    product.1.checked_mul(b)?,
                ];
                product = (*all.iter().min()?, *all.iter().max()?);
            }
            sum = (sum.0.checked_add(product.0)?, sum.1.checked_add(product.1)?);
        }
        Some(sum).filter(|s| s.0 > -LARGE && s.1 < LARGE)
    }

    /// Are its values these numbers?
    fn holds(&self, range: Range, signed: bool) -> bool {
        (signed || range.0 >= 0) && bits_for(range, signed) <= self.bits
    }

    /// Is the word, with or without a sign, the number that its polynomial is?
    pub fn is_a_number(&self, signed: bool) -> bool {
        self.fits(signed).is_some()
    }

    /// Is every bit of it above all that another may have?
    pub fn is_above(&self, other: &Residue) -> bool {
        let zeros = self.terms.values().map(|c| c.trailing_zeros()).min().unwrap_or(self.bits);
        other.fits(false).is_some_and(|bits| bits <= zeros)
    }

    /// The bits of the smallest word that its numbers fit into, if that is no larger than its own.
    fn fits(&self, signed: bool) -> Option<u32> {
        self.range().filter(|&r| self.holds(r, signed)).map(|r| bits_for(r, signed))
    }

    /// The same modulo 2^bits, with atoms that may be larger taken as numbers of so many bits with a sign.
    fn with_signs(&self) -> Residue {
        let (from, to) = signed_range(self.bits);
        let term = |(m, &c): (&Monomial, &u128)| match &m[..] {
            [atom] if atom.range().0 < from || atom.range().1 > to => {
                let part = match &**atom {
                    Atom::Part(p) if p.width == self.bits => Part::new(p.of.clone(), p.low, p.width, true),
                    _ => Part::new(Residue::product(m.clone(), self.bits), 0, self.bits, true),
                };
                (vec![Arc::new(Atom::Part(part))], c)
            }
            _ => (m.clone(), c),
        };
        Residue::of(self.terms.iter().map(term), self.bits)
    }

    /// Modulo a smaller power of two.
    pub fn reduced(&self, bits: u32) -> Residue {
        let mut out = Residue { bits, terms: BTreeMap::new() };
        for (monomial, &c) in &self.terms {
            let c = c & mask(bits);
            if c == 0 {
                continue;
            }
            // So many bits of each atom count.
            let count = bits - c.trailing_zeros();
            let change = monomial
                .iter()
                .position(|a| matches!(&**a, Atom::Part(p) if p.width >= count && p.is_more_than(count)));
            let Some(at) = change else {
                out.add(monomial.clone(), c);
                continue;
            };
            let Atom::Part(part) = &*monomial[at] else { continue };
            let seen = Residue::part(&part.of, part.low, count, false, count);
            let mut others = monomial.clone();
            others.remove(at);
            let rest = Residue::of([(others, 1)], count);
            let product = rest.times_all(&seen);
            for (m, &d) in &product.reduced(count).terms {
                out.add(m.clone(), d.wrapping_mul(c));
            }
        }
        out.cleared().joined()
    }

    /// Its value, with or without a sign, in a word of any size.
    pub fn valued(&self, signed: bool, bits: u32) -> Residue {
        if bits <= self.bits {
            return self.reduced(bits);
        }
        let with_signs = if signed { Some(self.with_signs()) } else { None };
        if let Some(number) = [Some(self), with_signs.as_ref()].into_iter().flatten().find(|r| r.fits(signed).is_some())
        {
            return Residue::of(number.terms().map(|(m, c)| (m.clone(), c as u128)), bits).cleared();
        }
        Residue::atom(Part::new(self.clone(), 0, self.bits, signed), bits)
    }

    fn atom(part: Part, bits: u32) -> Residue {
        Residue::of([(vec![Arc::new(Atom::Part(part))], 1)], bits)
    }

    /// Bits `low` to `low + width` of a word as a number, in a word of `to` bits.
    pub fn part(of: &Residue, low: u32, width: u32, signed: bool, to: u32) -> Residue {
        if width == 1 {
            let bit = Residue::bit(of, low, to);
            return if signed { bit.scaled(-1) } else { bit };
        }
        let of = of.reduced(low + width);
        if let Some(c) = of.as_constant() {
            let value = c >> low;
            let negative = signed && value >> (width - 1) & 1 != 0;
            let value = if negative { value | !mask(width) } else { value };
            return Residue::of([(Vec::new(), value)], to).cleared();
        }
        // Zeros at its end.
        let zeros = of.terms.values().map(|c| c.trailing_zeros()).min().unwrap_or(0).min(low);
        if zeros > 0 {
            let terms = of.terms.iter().map(|(m, c)| (m.clone(), c >> zeros));
            return Residue::part(&Residue::of(terms, of.bits - zeros), low - zeros, width, signed, to);
        }
        if low == 0 {
            return of.valued(signed, to);
        }
        // Multiples of 2^low are what they are multiples by.
        let rest_of = |c: i128| {
            let rest = c & mask(low) as i128;
            if rest > 1 << (low - 1) { rest - (1 << low) } else { rest }
        };
        if of.terms().any(|(_, c)| rest_of(c) != c) {
            let rest = Residue::of(of.terms().map(|(m, c)| (m.clone(), rest_of(c) as u128)), of.bits).cleared();
            let numbers = of.fits(signed).is_some() && rest.fits(signed).is_some();
            if to <= width || numbers {
                let multiples = of.terms().map(|(m, c)| (m.clone(), ((c - rest_of(c)) >> low) as u128));
                let multiples = Residue::of(multiples, to).normal();
                return multiples.plus(&Residue::part(&rest, low, width, signed, to), 1);
            }
        }
        let signed = (signed || to <= width) && of.fits(false).is_none_or(|n| n == of.bits);
        // What is above its numbers is their sign.
        if let Some(n) = of.fits(signed).filter(|&n| n < of.bits) {
            let of = of.reduced(n);
            return match n.checked_sub(low) {
                Some(width) if width > 0 => Residue::part(&of, low, width, signed, to),
                _ if signed => Residue::bit(&of, n - 1, to).scaled(-1),
                _ => Residue { bits: to, terms: BTreeMap::new() },
            };
        }
        if let Some(n) = of.fits(true).filter(|&n| !signed && low + 1 >= n) {
            return Residue::bit(&of, n - 1, to).scaled((1 << width) - 1);
        }
        if let Some(Atom::Part(inner)) = of.only().map(|a| &**a)
            && inner.width == of.bits
        {
            return Residue::part(&inner.of, inner.low + low, width, signed, to);
        }
        // What 2^low divides may be turned round: the first term is positive.
        let first = of.terms().next().map_or(1, |t| t.1);
        if first < 0 && of.reduced(low).terms.is_empty() {
            let turned = of.scaled(-1);
            let numbers = signed && turned.fits(true).is_some() && of.fits(true).is_some();
            if (numbers || to <= width) && turned.terms().next().is_some_and(|t| t.1 > 0) {
                return Residue::part(&turned, low, width, signed, to).scaled(-1);
            }
        }
        Residue::atom(Part::new(of, low, width, signed), to)
    }

    /// 1 unless it is 0.
    pub fn nonzero(&self, to: u32) -> Residue {
        if let Some(c) = self.as_constant() {
            return Residue::constant(u64::from(c != 0), to);
        }
        let first = self.terms().next().map_or(1, |t| t.1);
        let word = if first < 0 { self.scaled(-1) } else { self.clone() };
        let below = word.valued(false, self.bits + 1).scaled(-1);
        Residue::bit(&below, self.bits, to)
    }

    /// The word without a sign: the number with one, and 2^n times its uppermost bit.
    pub fn above_its_sign(&self, bits: u32) -> Residue {
        if self.fits(false).is_some() {
            return self.valued(false, bits);
        }
        let sign = Residue::bit(self, self.bits - 1, bits).scaled(1 << self.bits);
        self.valued(true, bits).plus(&sign, 1)
    }

    /// One bit, as 0 or 1.
    fn bit(of: &Residue, at: u32, to: u32) -> Residue {
        let of = of.reduced(at + 1);
        if to == 1 && at == 0 {
            return of;
        }
        if let Some(c) = of.as_constant() {
            return Residue::constant((c >> at) as u64 & 1, to);
        }
        let zeros = of.terms.values().map(|c| c.trailing_zeros()).min().unwrap_or(0).min(at);
        if zeros > 0 {
            let terms = of.terms.iter().map(|(m, c)| (m.clone(), c >> zeros));
            return Residue::bit(&Residue::of(terms, of.bits - zeros), at - zeros, to);
        }
        if let Some(n) = of.fits(false).filter(|&n| n <= at) {
            debug_assert!(n < of.bits);
            return Residue { bits: to, terms: BTreeMap::new() };
        }
        if let Some(n) = of.fits(true).filter(|&n| n < of.bits) {
            return Residue::bit(&of, n - 1, to);
        }
        if at == 0 && of.only().is_some_and(|a| a.is_bit()) {
            return of.valued(false, to);
        }
        match of.only().map(|a| &**a) {
            Some(Atom::Part(inner)) if inner.width > at => return Residue::bit(&inner.of, inner.low + at, to),
            _ => {}
        }
        // Of a number and its complement one is written.
        let first = of.terms().find(|t| !t.0.is_empty()).map_or(1, |t| t.1);
        let complement = of.complement();
        let one = Residue::constant(1, to);
        if first < 0 && complement.terms().find(|t| !t.0.is_empty()).is_some_and(|t| t.1 > 0) {
            return one.plus(&Residue::bit(&complement, at, to), -1);
        }
        if of.terms.get(&Vec::new()).is_some_and(|c| c >> at & 1 != 0) {
            let mut other = of;
            other.add(Vec::new(), 1 << at);
            return one.plus(&Residue::bit(&other.cleared(), at, to), -1);
        }
        Residue::atom(Part::new(of, at, 1, false), to)
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

    /// A part less 2^n times its uppermost bit, of n bits, is that part with its sign.
    fn signed_again(self) -> Residue {
        for (monomial, &c) in &self.terms {
            let Some(Atom::Part(part)) = single(monomial) else { continue };
            if part.signed || part.width == 1 || part.width >= self.bits || self.terms.len() < 2 {
                continue;
            }
            let c = self.centred(c);
            let top = Residue::bit(&part.of, part.low + part.width - 1, self.bits);
            let number = Residue::part(&part.of, part.low, part.width, true, self.bits);
            let mut new = self.clone();
            new.terms.remove(monomial);
            let all = top.terms().map(|(m, d)| (m.clone(), c.wrapping_mul(d).wrapping_shl(part.width)));
            for (m, d) in all.chain(number.terms().map(|(m, d)| (m.clone(), c.wrapping_mul(d)))) {
                new.add(m, d as u128);
            }
            let new = new.cleared();
            if new.terms.len() < self.terms.len() {
                return new;
            }
        }
        self
    }

    /// The difference of two quotients by 2^k, of numbers that are equal modulo 2^k, is that of the difference;
    /// their sum, of numbers whose sum 2^k divides, is that of the sum less a carry.
    fn joined(self) -> Residue {
        let quotient = |(m, &c)| match single(m) {
            Some(Atom::Part(part)) if part.low > 0 => Some((m, part, c)),
            _ => None,
        };
        let quotients: Vec<(&Monomial, &Part, u128)> = self.terms.iter().filter_map(quotient).collect();
        for (n, &(one, first, c)) in quotients.iter().enumerate() {
            for &(other, second, d) in &quotients[n + 1..] {
                let opposite = c.wrapping_add(d) & mask(self.bits) == 0;
                if !opposite && c != d {
                    continue;
                }
                // By a smaller power of two it is a quotient of a multiple.
                let low = first.low.max(second.low);
                let known = |p: &Part| p.is_quotient || p.width >= self.bits;
                if !known(first) || !known(second) {
                    continue;
                }
                let bits = match first.is_quotient && second.is_quotient {
                    true => [first, second].map(|p| p.of.bits + low - p.low).into_iter().fold(0, u32::max) + 1,
                    false => low + self.bits,
                };
                let [of, less] = [first, second].map(|p| p.of.valued(p.signed, bits).scaled(1 << (low - p.low)));
                let difference = of.plus(&less, if opposite { -1 } else { 1 });
                if difference.reduced(low).terms.is_empty() {
                    let joined = Residue::part(&difference, low, bits - low, true, self.bits).scaled(self.centred(c));
                    let mut rest = self.clone();
                    rest.terms.retain(|m, _| m != one && m != other);
                    // What both have below adds up to 2^k, unless it is 0.
                    let carried = if opposite { 0 } else { self.centred(c) };
                    let below = of.reduced(low).nonzero(self.bits).scaled(carried);
                    return rest.plus(&joined, 1).plus(&below, -1);
                }
            }
        }
        self
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

    pub(super) fn limited(self) -> Option<Residue> {
        self.bounded()
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
