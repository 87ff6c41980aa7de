//! Words whose bits are polynomials over GF(2) in the bits of two others.
//!
//! A carry-less product is a sum of products of one bit of each factor, however a program makes it:
//! by shifts and masks, by selections, or by products of integers between whose bits there is room
//! for the carries. So each bit of a word is held as a polynomial: a constant, bits of either
//! factor, and products of one bit of the first with one of the second. A bit that may be anything
//! else, such as one that a carry gets into, is not known; a mask may take it away again.

use super::form::Form;
use ciphermill_ir::{BinOp, CmpOp, UnOp, ops};

/// A polynomial. Bit n of a mask stands for bit n of a factor.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Poly {
    pub one: bool,
    pub first: u64,
    pub second: u64,
    /// A bit of the first factor, and the bits of the second that it is multiplied by: none twice,
    /// none empty, in order.
    pub products: Vec<(u8, u64)>,
}

impl Poly {
    fn constant(one: bool) -> Poly {
        Poly { one, ..Poly::default() }
    }

    pub fn is_zero(&self) -> bool {
        !self.one && self.first == 0 && self.second == 0 && self.products.is_empty()
    }

    fn is_one(&self) -> bool {
        self.one && self.first == 0 && self.second == 0 && self.products.is_empty()
    }

    fn plus(&self, other: &Poly) -> Poly {
        let mut products = Vec::with_capacity(self.products.len() + other.products.len());
        let (mut a, mut b) = (self.products.iter().peekable(), other.products.iter().peekable());
        loop {
            let (next, with) = match (a.peek(), b.peek()) {
                (Some(p), Some(q)) if p.0 == q.0 => (p.0, p.1 ^ q.1),
                (Some(p), Some(q)) if p.0 < q.0 => **p,
                (_, Some(q)) => **q,
                (Some(p), None) => **p,
                (None, None) => break,
            };
            a.next_if(|p| p.0 == next);
            b.next_if(|q| q.0 == next);
            if with != 0 {
                products.push((next, with));
            }
        }
        Poly {
            one: self.one ^ other.one,
            first: self.first ^ other.first,
            second: self.second ^ other.second,
            products,
        }
    }

    /// With the factors exchanged.
    fn exchanged(&self) -> Poly {
        let row = |n: u8| self.products.iter().filter(|p| p.1 >> n & 1 != 0).fold(0, |all, p| all | 1 << p.0);
        let products = (0..64).map(|n| (n, row(n))).filter(|p| p.1 != 0).collect();
        Poly { one: self.one, first: self.second, second: self.first, products }
    }

    /// None where the product is no such polynomial.
    fn times(&self, other: &Poly) -> Option<Poly> {
        if self.is_zero() || other.is_zero() {
            return Some(Poly::default());
        }
        if self.is_one() || self == other {
            return Some(other.clone());
        }
        if other.is_one() {
            return Some(self.clone());
        }
        let within =
            |p: &Poly, q: &Poly| p.second == 0 && q.first == 0 && p.products.is_empty() && q.products.is_empty();
        let (a, b) = if within(self, other) { (self, other) } else { (other, self) };
        within(a, b).then(|| Poly {
            one: a.one && b.one,
            first: if b.one { a.first } else { 0 },
            second: if a.one { b.second } else { 0 },
            products: if b.second == 0 { Vec::new() } else { set(a.first).map(|n| (n, b.second)).collect() },
        })
    }
}

/// The numbers of the bits of a mask.
fn set(mask: u64) -> impl Iterator<Item = u8> {
    (0..64).filter(move |n| mask >> n & 1 != 0)
}

/// A bit; None where it is not known.
type Bit = Option<Poly>;

fn is_zero(bit: &Bit) -> bool {
    bit.as_ref().is_some_and(Poly::is_zero)
}

fn xor(a: &Bit, b: &Bit) -> Bit {
    Some(a.as_ref()?.plus(b.as_ref()?))
}

fn and(a: &Bit, b: &Bit) -> Bit {
    if is_zero(a) || is_zero(b) {
        return Some(Poly::default());
    }
    a.as_ref()?.times(b.as_ref()?)
}

fn not(a: &Bit) -> Bit {
    xor(a, &Some(Poly::constant(true)))
}

/// Bits, the lowest first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Word(Vec<Bit>);

impl Word {
    pub fn constant(value: u64, bits: u32) -> Word {
        Word((0..bits).map(|n| Some(Poly::constant(value >> n & 1 != 0))).collect())
    }

    /// Those bits of the first factor that `mask` has.
    pub fn first(mask: u64, bits: u32) -> Word {
        Word((0..bits).map(|n| Some(Poly { first: mask & 1 << n, ..Poly::default() })).collect())
    }

    /// Those bits of the second factor that `mask` has.
    pub fn second(mask: u64, bits: u32) -> Word {
        Word((0..bits).map(|n| Some(Poly { second: mask & 1 << n, ..Poly::default() })).collect())
    }

    /// The bits of both factors that a sum of products takes: None unless the word is such a sum, in which
    /// one bit at least adds several products, and nothing is added.
    pub fn factors(&self) -> Option<(u64, u64)> {
        let (mut first, mut second, mut adds) = (0, 0, false);
        for bit in &self.0 {
            let poly = bit.as_ref().filter(|p| !p.one && p.first == 0 && p.second == 0)?;
            first |= poly.products.iter().fold(0, |all, p| all | 1 << p.0);
            second |= poly.products.iter().fold(0, |all, p| all | p.1);
            adds |= poly.products.iter().map(|p| p.1.count_ones()).sum::<u32>() > 1;
        }
        adds.then_some((first, second))
    }

    /// Is it the same with the factors exchanged?
    pub fn is_symmetric(&self) -> bool {
        self.0.iter().flatten().all(|poly| poly.exchanged() == *poly)
    }

    /// A bit; None where it is not known.
    pub fn bit(&self, n: u32) -> Option<&Poly> {
        self.0.get(n as usize)?.as_ref()
    }

    /// By how much another word is moved down so that this one has bits of it, and else zeros; and where it has bits.
    pub fn part_of(&self, whole: &Word) -> Option<(i32, u64)> {
        let lowest = self.0.iter().position(|bit| !is_zero(bit))?;
        let at = whole.0.iter().position(|bit| *bit == self.0[lowest])?;
        let down = at as i32 - lowest as i32;
        let mut mask = 0;
        for (n, bit) in self.0.iter().enumerate().filter(|(_, bit)| !is_zero(bit)) {
            let other = usize::try_from(n as i32 + down).ok().and_then(|n| whole.0.get(n))?;
            if bit != other {
                return None;
            }
            mask |= 1 << n;
        }
        // Where the other has zeros of its own, nothing need be cut off.
        let zero = |n: u32| usize::try_from(n as i32 + down).ok().and_then(|n| whole.0.get(n)).is_none_or(is_zero);
        let free = (0..self.bits()).filter(|&n| zero(n)).fold(0, |all, n| all | 1 << n);
        Some((down, mask | free))
    }

    fn bits(&self) -> u32 {
        self.0.len() as u32
    }

    /// The number that the word is for certain.
    fn as_constant(&self) -> Option<u64> {
        let bit = |(n, bit): (usize, &Bit)| {
            let poly = bit.as_ref().filter(|p| p.is_zero() || p.is_one())?;
            Some(u64::from(poly.one) << n)
        };
        self.0.iter().enumerate().map(bit).try_fold(0, |all, bit| Some(all | bit?))
    }

    /// In so many bits, with zeros above.
    pub fn within(&self, bits: u32) -> Word {
        let zero = Some(Poly::default());
        Word((0..bits as usize).map(|n| self.0.get(n).unwrap_or(&zero).clone()).collect())
    }

    /// Its `from` low bits, in `bits` bits, with their sign above.
    pub fn extended(&self, from: u32, bits: u32) -> Word {
        Word((0..bits.max(1)).map(|n| self.0[n.min(from - 1) as usize].clone()).collect())
    }

    /// `bits` bits from bit `low` on.
    pub fn slice(&self, low: u32, bits: u32) -> Word {
        Word(self.0[low as usize..].to_vec()).within(bits)
    }

    fn each(&self, other: &Word, f: impl Fn(&Bit, &Bit) -> Bit) -> Word {
        Word(self.0.iter().zip(&other.0).map(|(a, b)| f(a, b)).collect())
    }

    /// Of two words of the same bits.
    pub fn bin(op: BinOp, a: &Word, b: &Word) -> Option<Word> {
        let bits = a.bits();
        if let (Some(x), Some(y)) = (a.as_constant(), b.as_constant()) {
            return op.eval(x, y, bits).map(|value| Word::constant(value, bits));
        }
        Some(match op {
            BinOp::Xor => a.each(b, xor),
            BinOp::And => a.each(b, and),
            BinOp::Or => a.each(b, |a, b| not(&and(&not(a), &not(b)))),
            BinOp::Add => sum(a, b, false),
            BinOp::Sub => sum(a, &b.each(b, |b, _| not(b)), true),
            BinOp::Mul => product(a, b, 0),
            BinOp::MulHiU => product(a, b, bits),
            BinOp::Shl | BinOp::ShrU | BinOp::ShrS | BinOp::RotL | BinOp::RotR => {
                moved(op, a, (b.as_constant()? % u64::from(bits)) as u32)
            }
            _ => return None,
        })
    }

    pub fn un(&self, op: UnOp) -> Option<Word> {
        let bits = self.bits();
        Some(match op {
            UnOp::SExt8 => self.extended(8, bits),
            UnOp::SExt16 => self.extended(16, bits),
            UnOp::SExt32 => self.extended(32, bits),
            UnOp::Bswap => Word((0..bits).map(|n| self.0[(bits - 8 - n / 8 * 8 + n % 8) as usize].clone()).collect()),
            // Its lowest bit is the parity.
            UnOp::Popcnt => {
                let parity = self.0.iter().try_fold(Poly::default(), |all, bit| Some(all.plus(bit.as_ref()?)));
                let above = (1..bits).map(|n| if n > bits.ilog2() { Some(Poly::default()) } else { None });
                Word(std::iter::once(parity).chain(above).collect())
            }
            UnOp::Clz | UnOp::Ctz => return None,
        })
    }

    fn compared(op: CmpOp, a: &Word, b: &Word) -> Option<Word> {
        let (word, constant) = match (a.as_constant(), b.as_constant()) {
            (None, Some(c)) => (a, c),
            (Some(c), None) if matches!(op, CmpOp::Eq | CmpOp::Ne) => (b, c),
            _ => return None,
        };
        let one = match (op, constant) {
            (CmpOp::LtS, 0) => word.0.last()?.clone(),
            (CmpOp::Eq | CmpOp::Ne, _) => {
                let differs = word.with_constant(BinOp::Xor, constant).only()?;
                if op == CmpOp::Ne { differs } else { not(&differs) }
            }
            _ => return None,
        };
        Some(Word(vec![one]).within(a.bits()))
    }

    /// `then` where this is not 0.
    pub fn select(&self, then: &Word, els: &Word) -> Option<Word> {
        let chosen = self.only()?;
        Some(then.each(els, |a, b| xor(b, &and(&chosen, &xor(a, b)))))
    }

    fn with_constant(&self, op: BinOp, constant: u64) -> Word {
        Word::bin(op, self, &Word::constant(constant, self.bits())).unwrap_or_else(|| self.clone())
    }

    /// Its bit that may be 1, where there are not several.
    fn only(&self) -> Option<Bit> {
        let mut possible = self.0.iter().filter(|bit| !is_zero(bit));
        let bit = possible.next().cloned().unwrap_or(Some(Poly::default()));
        possible.next().is_none().then_some(bit)
    }
}

/// With a carry into the lowest bit or none.
fn sum(a: &Word, b: &Word, carry: bool) -> Word {
    let mut carry = Some(Poly::constant(carry));
    let mut bit = |(a, b): (&Bit, &Bit)| {
        let half = xor(a, b);
        let out = xor(&half, &carry);
        carry = xor(&and(a, b), &and(&half, &carry));
        out
    };
    Word(a.0.iter().zip(&b.0).map(&mut bit).collect())
}

/// Bits from `low` on of a product of integers: those that no carry gets into.
fn product(a: &Word, b: &Word, low: u32) -> Word {
    let bits = a.bits();
    let mut out = Vec::new();
    // What all lower places can come to together.
    let mut below = 0u128;
    for n in 0..low + bits {
        let mut parity = Some(Poly::default());
        let mut terms = 0u128;
        for i in n.saturating_sub(bits - 1)..bits.min(n + 1) {
            let term = and(&a.0[i as usize], &b.0[(n - i) as usize]);
            if !is_zero(&term) {
                terms += 1;
                parity = xor(&parity, &term);
            }
        }
        if n >= low {
            out.push(if below < 1 << n { parity } else { None });
        }
        below = below.saturating_add(terms.saturating_mul(1 << n));
    }
    Word(out)
}

impl Form for Word {
    fn within(&self, bits: u32) -> Word {
        Word::within(self, bits)
    }

    fn bin(op: BinOp, _bits: u32, a: &Word, b: &Word) -> Option<Word> {
        Word::bin(op, a, b)
    }

    fn un(op: UnOp, _bits: u32, a: &Word) -> Option<Word> {
        a.un(op)
    }

    fn compare(op: CmpOp, _bits: u32, a: &Word, b: &Word) -> Option<Word> {
        Word::compared(op, a, b)
    }

    fn select(cond: &Word, then: &Word, els: &Word) -> Option<Word> {
        cond.select(then, els)
    }

    fn slice(a: &Word, low: u32, width: u32) -> Option<Word> {
        Some(a.slice(low, width))
    }

    fn extended(a: &Word, signed: bool, to: u32) -> Option<Word> {
        Some(if signed { a.extended(32, to) } else { a.within(32).within(to) })
    }
}

/// By less than the word has bits.
fn moved(op: BinOp, a: &Word, by: u32) -> Word {
    let bits = a.bits();
    let from = |n: u32| -> Bit {
        let at = match op {
            BinOp::Shl => n.checked_sub(by),
            BinOp::ShrU => Some(n + by).filter(|&n| n < bits),
            BinOp::ShrS => Some((n + by).min(bits - 1)),
            BinOp::RotL => Some((n + bits - by) % bits),
            _ => Some((n + by) % bits),
        };
        at.map_or(Some(Poly::default()), |n| a.0[n as usize].clone())
    };
    Word((0..bits).map(from).collect())
}

/// A carry-less product of two words of `bits` bits from bit `low` on, of the bits of the factors that
/// the masks have.
pub fn carryless([first, second]: [u64; 2], bits: u32, low: u32) -> Word {
    let bit = |n: u32| {
        let with = |i: u32| match (n + low).checked_sub(i) {
            Some(j) if j < bits && first >> i & 1 != 0 => second & 1 << j,
            _ => 0,
        };
        let products = (0..bits).map(|i| (i as u8, with(i))).filter(|p| p.1 != 0).collect();
        Some(Poly { products, ..Poly::default() })
    };
    debug_assert!(bits <= 64 && first & !ops::mask(bits) == 0);
    Word((0..bits).map(bit).collect())
}
