//! What a value is modulo a number, where its polynomial says so.
//!
//! Multiples of the number are left out; a difference of quotients by 2^k of numbers that are equal
//! modulo 2^k is the difference of the numbers, divided by 2^k. What is left of a product that is reduced
//! is the product, and a power of two that it is divided by.

use super::residue::{Atom, Monomial, Part, Residue};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Sources by their numbers, multiplied.
type Product = Vec<usize>;

/// `sum / 2^shift` modulo `modulus`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Congruence {
    pub modulus: i128,
    pub shift: u32,
    pub sum: BTreeMap<Product, i128>,
    /// It is so only where no sum is too large for its word.
    pub unless_it_wraps: bool,
}

impl Congruence {
    /// Of a value: of the numbers that parts are taken so often, the largest that leaves something.
    pub fn of(value: &Residue) -> Option<Congruence> {
        let mut moduli: Vec<i128> = Vec::new();
        value.parts(&mut |_, c| moduli.extend(c.map(|c| (c >> c.trailing_zeros()).abs()).filter(|&c| c > 2)));
        moduli.sort_unstable_by(|a, b| b.cmp(a));
        moduli.dedup();
        moduli.into_iter().find_map(|modulus| {
            let mut found = Congruence { modulus, shift: 0, sum: BTreeMap::new(), unless_it_wraps: false };
            let (shift, sum) = found.reduce(value)?;
            found.shift = shift;
            found.sum = sum;
            (!found.sum.keys().all(Vec::is_empty)).then_some(found)
        })
    }

    /// How many sources are in it.
    pub fn sources(&self) -> usize {
        self.sum.keys().flatten().collect::<BTreeSet<_>>().len()
    }

    fn reduce(&mut self, value: &Residue) -> Option<(u32, BTreeMap<Product, i128>)> {
        self.unless_it_wraps |= !value.is_a_number(true) && !value.is_a_number(false);
        let mut direct: BTreeMap<Product, i128> = BTreeMap::new();
        let mut quotients: Vec<(&Part, i128)> = Vec::new();
        for (monomial, c) in value.terms().filter(|t| t.1 % self.modulus != 0) {
            match (sources(monomial), &monomial[..]) {
                (Some(product), _) => *direct.entry(product).or_default() += c,
                (None, [atom]) => match &**atom {
                    Atom::Part(part) => quotients.push((part, c)),
                    Atom::Source { .. } => return None,
                },
                _ => return None,
            }
        }
        let (mut shift, mut sum) = (0, BTreeMap::new());
        if let Some(&(first, _)) = quotients.first() {
            // The parts together, before they are cut.
            let bits = quotients.iter().map(|q| q.0.of.bits()).max()?;
            if quotients.iter().any(|q| q.0.low != first.low) {
                return None;
            }
            let zero = Residue::constant(0, bits);
            let whole = quotients.iter().fold(zero, |sum, (part, c)| sum.plus(&part.of.valued(true, bits), *c));
            if first.low > 0 && whole.reduced(first.low) != Residue::constant(0, first.low) {
                return None;
            }
            let (inner, terms) = self.reduce(&whole)?;
            (shift, sum) = (inner + first.low, terms);
        }
        for (product, c) in direct {
            *sum.entry(product).or_default() += c.checked_mul(1i128.checked_shl(shift)?)?;
        }
        sum.retain(|_, c| *c % self.modulus != 0);
        Some((shift, sum))
    }

    /// In words, with the names that sources have.
    pub fn text(&self, name: &dyn Fn(usize) -> String) -> String {
        let mut text = String::new();
        let mut terms: Vec<(&Product, i128)> = self.sum.iter().map(|(p, &c)| (p, c)).collect();
        terms.sort_by_key(|t| (t.1 < 0, t.0.len()));
        for (product, c) in terms {
            let sign = match (text.is_empty(), c < 0) {
                (true, false) => "",
                (true, true) => "-",
                (false, false) => " + ",
                (false, true) => " - ",
            };
            let names: Vec<String> = product.iter().map(|&n| name(n)).collect();
            let shift = self.shift - c.trailing_zeros().min(self.shift);
            let c = (c >> (self.shift - shift)).abs();
            let factor = if c == 1 && !names.is_empty() { None } else { Some(c.to_string()) };
            let _ = write!(text, "{sign}{}", factor.into_iter().chain(names).collect::<Vec<_>>().join(" * "));
            if shift > 0 {
                let _ = write!(text, " / 2^{shift}");
            }
        }
        let wraps = if self.unless_it_wraps { ", where nothing wraps" } else { "" };
        format!("{text} modulo {}{wraps}", self.modulus)
    }
}

fn sources(monomial: &Monomial) -> Option<Product> {
    let number = |a: &std::sync::Arc<Atom>| match &**a {
        Atom::Source { number, .. } => Some(*number),
        Atom::Part(_) => None,
    };
    monomial.iter().map(number).collect()
}
