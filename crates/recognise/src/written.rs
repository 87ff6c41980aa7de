//! Polynomials with parts as semantics of an instruction.

use super::residue::{Atom, Monomial, Part, Range, Residue};
use std::collections::HashMap;
use std::sync::Arc;

/// A polynomial as text, in words of `bits` bits. Sources are registers of which only those bits are
/// read that their range needs.
pub struct Writer {
    bits: u32,
    lets: Vec<String>,
    /// Polynomials that have a name, in words of the machine.
    known: HashMap<Residue, String>,
}

impl Writer {
    pub fn new(bits: u32) -> Writer {
        Writer { bits, lets: Vec::new(), known: HashMap::new() }
    }

    /// The semantics of an instruction that gives `value` in `rd`.
    pub fn semantics(mut self, value: &Residue) -> Option<String> {
        let text = self.sum(value)?;
        let lets: String = self.lets.iter().map(|text| format!("{text}; ")).collect();
        Some(format!("{lets}rd = {}", bare(&text)))
    }

    fn named(&mut self, value: Residue, text: String) -> String {
        let name = self.fresh(&text);
        self.known.insert(value, name.clone());
        name
    }

    fn fresh(&mut self, text: &str) -> String {
        // No machine has a register of such a name.
        let name = format!("part{}", self.lets.len());
        self.lets.push(format!("let {name} = {}", bare(text)));
        name
    }

    fn sum(&mut self, value: &Residue) -> Option<String> {
        if let Some(name) = self.known.get(value) {
            return Some(name.clone());
        }
        if value.bits() > self.bits {
            return None;
        }
        let mut terms: Vec<(&Monomial, i128)> = value.terms().collect();
        terms.sort_by_key(|t| (t.1 < 0, t.0.is_empty()));
        // A multiplication by a large number is no more than one by a small one and a difference.
        if let [(_, c)] = &mut terms[..]
            && *c < 0
            && value.bits() <= 64
            && (value.bits() == self.bits || !value.is_a_number(true))
        {
            *c += 1 << value.bits();
        }
        let mut text = String::new();
        for (monomial, c) in terms {
            let term = self.term(monomial, c.abs())?;
            text = match (text.is_empty(), c < 0) {
                (true, false) => term,
                (true, true) => format!("(0 - {term})"),
                (false, false) => format!("({text} + {term})"),
                (false, true) => format!("({text} - {term})"),
            };
        }
        if text.is_empty() { Some("0".to_owned()) } else { Some(text) }
    }

    /// A product; of two bits, or of a bit and a number, one is the mask of the other.
    fn term(&mut self, monomial: &Monomial, c: i128) -> Option<String> {
        if let [atom] = &monomial[..]
            && let Atom::Part(part) = &**atom
            && part.width == 1
            && c != 1
            && !c.unsigned_abs().is_power_of_two()
        {
            return Some(format!("({} & {})", self.sign(part)?, number(c)));
        }
        let factors: Vec<String> = monomial.iter().map(|a| self.atom(a)).collect::<Option<_>>()?;
        let text = factors.into_iter().reduce(|text, f| format!("({text} * {f})"));
        let text = match text {
            None => return Some(number(c)),
            Some(text) if monomial.len() > 1 => {
                let product = Residue::product(monomial.clone(), self.bits);
                let known = self.known.get(&product).cloned();
                known.unwrap_or_else(|| self.named(product, text))
            }
            Some(text) => text,
        };
        Some(if c == 1 { text } else { format!("({text} * {})", number(c)) })
    }

    fn atom(&mut self, atom: &Atom) -> Option<String> {
        match atom {
            Atom::Source { number, range } => Some(self.source(*number, *range)),
            Atom::Part(part) => self.part(part),
        }
    }

    /// A source with the bits of its range: what a narrow multiplier takes.
    fn source(&mut self, number: usize, (from, to): Range) -> String {
        let name = format!("rs{}", number + 1);
        let above = |x: i128| 128 - x.leading_zeros();
        let bits = above(to.max(!from));
        if from < 0 {
            return match [8, 16, 32].into_iter().find(|&b| bits < b) {
                Some(b) if b < self.bits => format!("sext{b}({name})"),
                _ => name,
            };
        }
        if bits < self.bits { format!("{name}[{}:0]", bits.max(1) - 1) } else { name }
    }

    fn part(&mut self, part: &Part) -> Option<String> {
        let end = part.low + part.width;
        if let Some(borrow) = self.borrow(part) {
            return Some(borrow);
        }
        if part.low == self.bits && part.width > 1 && end <= 2 * self.bits {
            let upper = self.upper(part)?;
            let whole = end == 2 * self.bits || part.of.is_a_number(part.signed);
            return Some(if whole { upper } else { self.cut(&upper, part) });
        }
        let word = self.word(&part.of)?;
        let text = match part.signed {
            false => format!("{word}[{}:{}]", end - 1, part.low),
            true if end == self.bits && part.low == 0 => word,
            true if part.of.is_a_number(true) || end == self.bits => format!("({word} >>s {})", part.low),
            true if [8, 16, 32].contains(&end) && part.low == 0 => format!("sext{end}({word})"),
            true => format!("(({word} << {}) >>s {})", self.bits - end, self.bits - part.width),
        };
        Some(text)
    }

    /// The lower bits of the word above a part's lowest bit.
    fn cut(&mut self, upper: &str, part: &Part) -> String {
        let (name, above) = (self.fresh(upper), self.bits - part.width);
        if part.signed { format!("(({name} << {above}) >>s {above})") } else { format!("{name}[{}:0]", part.width - 1) }
    }

    /// The word that a part is cut from, with a name.
    fn word(&mut self, of: &Residue) -> Option<String> {
        let text = self.sum(of)?;
        let simple = text.chars().all(|c| c.is_ascii_alphanumeric());
        Some(if simple { text } else { self.named(of.clone(), text) })
    }

    /// The bit above the difference of two words without signs: whether the first is less.
    fn borrow(&mut self, part: &Part) -> Option<String> {
        if part.width != 1 || part.low != self.bits || part.of.bits() != self.bits + 1 {
            return None;
        }
        let words = part.of.sides().map(|side| side.fits_into(self.bits).then(|| side.reduced(self.bits)));
        let [Some(a), Some(b)] = words else { return None };
        Some(format!("({} <u {})", self.sum(&a)?, self.sum(&b)?))
    }

    /// All bits the same as one.
    fn sign(&mut self, part: &Part) -> Option<String> {
        if let Some(borrow) = self.borrow(part) {
            return Some(format!("(0 - {borrow})"));
        }
        let word = self.word(&part.of)?;
        match part.of.bits() {
            _ if part.of.is_a_number(true) => Some(format!("({word} >>s {})", self.bits - 1)),
            bits if part.low + 1 == self.bits && bits == self.bits => Some(format!("({word} >>s {})", self.bits - 1)),
            _ => Some(format!("(({word} << {}) >>s {})", self.bits - 1 - part.low, self.bits - 1)),
        }
    }

    /// The upper word of a product; of a difference of two that are equal below, the difference of both.
    fn upper(&mut self, part: &Part) -> Option<String> {
        let mut terms: Vec<(&Monomial, i128)> = part.of.terms().collect();
        terms.sort_by_key(|t| t.1 < 0);
        match terms[..] {
            [(monomial, c)] if c > 0 => self.upper_product(monomial, c),
            [(a, c), (b, d)] if c > 0 && d < 0 && part.of.reduced(self.bits).as_constant() == Some(0) => {
                Some(format!("({} - {})", self.upper_product(a, c)?, self.upper_product(b, -d)?))
            }
            _ => None,
        }
    }

    fn upper_product(&mut self, monomial: &Monomial, c: i128) -> Option<String> {
        // A product of sources and a constant is one of two words where that of the sources is a number in one.
        let product = |of: &[Arc<Atom>]| Residue::product(of.to_vec(), 2 * self.bits);
        let (first, second) = match (&monomial[..], c) {
            ([a, b], 1) => (product(std::slice::from_ref(a)), product(std::slice::from_ref(b))),
            (_, 1) => return None,
            _ => (product(monomial), Residue::constant(u64::try_from(c).ok()?, 2 * self.bits)),
        };
        let ranges = [first.range()?, second.range()?];
        let half = 1 << (self.bits - 1);
        let name = if ranges.iter().all(|&(from, to)| from >= -half && to < half) {
            "mulhs"
        } else if ranges.iter().all(|&(from, to)| from >= 0 && to < 2 * half) {
            "mulhu"
        } else {
            return None;
        };
        let factors = [first, second].map(|factor| self.sum(&factor.reduced(self.bits)));
        let [Some(a), Some(b)] = factors else { return None };
        Some(format!("{name}({}, {})", bare(&a), bare(&b)))
    }
}

fn number(c: i128) -> String {
    if c < 1 << 16 { c.to_string() } else { format!("{c:#x}") }
}

/// Without the parentheses around all of it.
pub fn bare(text: &str) -> &str {
    let balanced = |t: &str| {
        let mut depth = 0i32;
        t.chars().all(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            depth >= 0
        })
    };
    text.strip_prefix('(').and_then(|t| t.strip_suffix(')')).filter(|t| balanced(t)).unwrap_or(text)
}
