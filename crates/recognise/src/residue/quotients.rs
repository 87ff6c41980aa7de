//! Sums of parts that are one part.

use super::{Atom, Monomial, Part, Residue, mask, single};

impl Residue {
    /// A part less 2^n times its uppermost bit, of n bits, is that part with its sign.
    pub(super) fn signed_again(self) -> Residue {
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
    pub(super) fn joined(self) -> Residue {
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
                if bits > 128 {
                    continue;
                }
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
}
