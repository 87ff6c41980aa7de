//! Parts of words in their one form.

use super::{Atom, Monomial, Part, Residue, mask, signed_range};
use std::collections::BTreeMap;
use std::sync::Arc;

impl Residue {
    /// The same modulo 2^bits, with atoms that may be larger taken as numbers of so many bits with a sign.
    pub(super) fn with_signs(&self) -> Residue {
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

    /// Its lower bits as a number with a sign, if only so many are looked at.
    pub fn seen(&self, wanted: u32) -> Residue {
        if (1..self.bits).contains(&wanted) { self.reduced(wanted).valued(true, self.bits) } else { self.clone() }
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

    pub(super) fn atom(part: Part, bits: u32) -> Residue {
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
    pub(super) fn bit(of: &Residue, at: u32, to: u32) -> Residue {
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
}
