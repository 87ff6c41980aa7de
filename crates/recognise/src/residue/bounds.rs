//! Between which numbers a polynomial lies.

use super::{Atom, Range, Residue, single};

/// Numbers that bounds are known for are smaller: what is done with bounds stays within 128 bits.
const LARGE: i128 = 1 << 120;

/// The bits of the smallest word that holds these numbers.
pub(super) fn bits_for((low, high): Range, signed: bool) -> u32 {
    let above = |x: i128| 128 - x.leading_zeros();
    if signed { 1 + above(high.max(0)).max(above(!low.min(-1))) } else { above(high).max(1) }
}

impl Residue {
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
    pub(super) fn bounds(&self) -> Option<Range> {
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
    pub(super) fn holds(&self, range: Range, signed: bool) -> bool {
        (signed || range.0 >= 0) && bits_for(range, signed) <= self.bits
    }

    /// Is the word, with or without a sign, the number that its polynomial is?
    pub fn is_a_number(&self, signed: bool) -> bool {
        self.fits(signed).is_some()
    }

    /// Is it a number without a sign of so many bits?
    pub fn fits_into(&self, bits: u32) -> bool {
        self.fits(false).is_some_and(|fits| fits <= bits)
    }

    /// Is every bit of it above all that another may have?
    pub fn is_above(&self, other: &Residue) -> bool {
        let zeros = self.terms.values().map(|c| c.trailing_zeros()).min().unwrap_or(self.bits);
        other.fits(false).is_some_and(|bits| bits <= zeros)
    }

    /// The bits of the smallest word that its numbers fit into, if that is no larger than its own.
    pub(super) fn fits(&self, signed: bool) -> Option<u32> {
        self.range().filter(|&r| self.holds(r, signed)).map(|r| bits_for(r, signed))
    }
}
