//! Matrices over GF(2), and the constants over GF(2^m) they come from.
//!
//! Every map of bits that only adds (exclusive-or) is a matrix over GF(2):
//! MixColumns, an MDS, a bit permutation, the multiplication by a constant.
//! One form serves all: row i is the set of input bits whose sum is output
//! bit i. A matrix of field constants is written out into that form when it is
//! read, because multiplying by a constant is linear in the bits (Elbirt,
//! AINAW 2007, equation 2).
//!
//! What does not live here: reading files ([`crate::tables`]), and finding
//! such maps in programs.

use std::sync::Arc;

/// A matrix over GF(2) of at most 64 by 64 bits.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct BitMatrix {
    /// How semantics write it: `linear(name, x)` or `gfmul(c, x, p)`.
    pub origin: Origin,
    /// Row i: the input bits that output bit i is the sum of.
    pub rows: Vec<u64>,
    /// Input bits.
    pub columns: u8,
}

/// Where a matrix comes from.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Origin {
    /// An entry of `[matrices]`.
    Named(String),
    /// Multiplication by a constant modulo a polynomial.
    Constant { constant: u64, polynomial: u64 },
}

impl BitMatrix {
    /// Its name in `[matrices]`, unless it is the multiplication by a constant.
    pub fn name(&self) -> Option<&str> {
        match &self.origin {
            Origin::Named(name) => Some(name),
            Origin::Constant { .. } => None,
        }
    }

    /// The product of the matrix and the bits of `x`.
    pub fn apply(&self, x: u64) -> u64 {
        let bit = |(i, row): (usize, &u64)| u64::from((row & x).count_ones() & 1) << i;
        self.rows.iter().enumerate().map(bit).fold(0, |a, b| a | b)
    }

    /// The product as one table for each byte of the input, whose entries are
    /// to be added: the form in which it is computed fast.
    pub fn byte_tables(&self) -> Vec<[u64; 256]> {
        let bytes = usize::from(self.columns).div_ceil(8);
        let entry = |byte: usize, x: usize| self.apply((x as u64) << (8 * byte));
        (0..bytes).map(|byte| std::array::from_fn(|x| entry(byte, x))).collect()
    }

    /// Multiplication of a field element by a constant. `None` when the
    /// polynomial has no degree from 1 to 32 or the constant is no element.
    pub fn constant(constant: u64, polynomial: u64) -> Option<Arc<BitMatrix>> {
        let m = degree(polynomial)?;
        if constant >> m != 0 {
            return None;
        }
        let rows = product_rows(constant, polynomial, m);
        Some(Arc::new(BitMatrix { origin: Origin::Constant { constant, polynomial }, rows, columns: m }))
    }

    /// A matrix of field elements: element j of the input is its j-th lowest
    /// group of bits, and likewise for the output. `None` when something is no
    /// field element or a side has more than 64 bits.
    pub fn of_field(name: &str, rows: &[Vec<u64>], polynomial: u64) -> Option<BitMatrix> {
        let m = degree(polynomial)?;
        let wide = rows.first()?.len();
        let columns = u8::try_from(wide).ok()?.checked_mul(m).filter(|&c| c <= 64)?;
        if rows.len() * usize::from(m) > 64 || rows.iter().any(|r| r.len() != wide) {
            return None;
        }
        if rows.iter().flatten().any(|c| c >> m != 0) {
            return None;
        }
        let mut bits = Vec::new();
        for row in rows {
            let blocks: Vec<Vec<u64>> = row.iter().map(|&c| product_rows(c, polynomial, m)).collect();
            for i in 0..usize::from(m) {
                bits.push(blocks.iter().enumerate().fold(0, |sum, (j, b)| sum | b[i] << (j * usize::from(m))));
            }
        }
        Some(BitMatrix { origin: Origin::Named(name.to_owned()), rows: bits, columns })
    }
}

/// The degree of a polynomial, from 1 to 32.
pub(crate) fn degree(polynomial: u64) -> Option<u8> {
    polynomial.checked_ilog2().filter(|d| (1..=32).contains(d)).map(|d| d as u8)
}

/// Are the numbers modulo this polynomial a field? They are where it is irreducible.
///
/// Rabin's test (Probabilistic algorithms in finite fields, 1980): x to the power of 2^m is x, and
/// for no prime divisor q of m has x^(2^(m/q)) - x a factor in common with the polynomial.
pub(crate) fn is_field(polynomial: u64) -> bool {
    let Some(m) = degree(polynomial) else { return false };
    // x itself, as an element; of a field of two elements it is the constant of the polynomial.
    let x = if m == 1 { polynomial & 1 } else { 2 };
    let power = |times: u8| (0..times).fold(x, |power, _| multiply(power, power, polynomial));
    let prime = |q: &u8| m % q == 0 && (2..*q).all(|d| !q.is_multiple_of(d));
    power(m) == x && (2..=m).filter(prime).all(|q| common(power(m / q) ^ x, polynomial) == 1)
}

/// The greatest common divisor of two polynomials.
fn common(mut a: u64, mut b: u64) -> u64 {
    while a != 0 {
        while b != 0 && b.ilog2() >= a.ilog2() {
            b ^= a << (b.ilog2() - a.ilog2());
        }
        (a, b) = (b, a);
    }
    b
}

/// The product of two field elements modulo a polynomial of degree m.
pub fn multiply(mut a: u64, mut b: u64, polynomial: u64) -> u64 {
    let Some(m) = degree(polynomial) else { return 0 };
    let mut product = 0;
    while b != 0 {
        if b & 1 != 0 {
            product ^= a;
        }
        b >>= 1;
        a <<= 1;
        if a >> m & 1 != 0 {
            a ^= polynomial;
        }
    }
    product
}

/// Multiplication by `c` as bits: row i of an m by m matrix.
fn product_rows(c: u64, polynomial: u64, m: u8) -> Vec<u64> {
    // Column j is c times x^j.
    let columns: Vec<u64> = (0..m).map(|j| multiply(c, 1 << j, polynomial)).collect();
    let row = |i: u8| columns.iter().enumerate().fold(0, |row, (j, column)| row | (column >> i & 1) << j);
    (0..m).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_matrix_of_multiplication_by_two_is_the_one_in_the_paper() {
        // Elbirt, AINAW 2007, equation 2: b0 = a7, b1 = a0 + a7, b2 = a1,
        // b3 = a2 + a7, b4 = a3 + a7, b5 = a4, b6 = a5, b7 = a6.
        let rows = [0x80, 0x81, 0x02, 0x84, 0x88, 0x10, 0x20, 0x40];
        assert_eq!(BitMatrix::constant(2, 0x11b).unwrap().rows, rows);
    }

    #[test]
    fn a_matrix_multiplies_as_the_field_does() {
        for c in 0..256 {
            let matrix = BitMatrix::constant(c, 0x11b).unwrap();
            let tables = matrix.byte_tables();
            for x in 0..256u64 {
                assert_eq!(matrix.apply(x), multiply(c, x, 0x11b));
                assert_eq!(tables[0][x as usize], multiply(c, x, 0x11b));
            }
        }
        // FIPS 197, 4.2: {57} times {83} is {c1}.
        assert_eq!(multiply(0x57, 0x83, 0x11b), 0xc1);
    }

    #[test]
    fn a_column_of_fips_197_is_mixed() {
        let rows = [vec![2, 3, 1, 1], vec![1, 2, 3, 1], vec![1, 1, 2, 3], vec![3, 1, 1, 2]];
        let mix = BitMatrix::of_field("mix", &rows, 0x11b).unwrap();
        // FIPS 197, appendix B, round 1: d4 bf 5d 30 becomes 04 66 81 e5.
        assert_eq!(mix.apply(0x305d_bfd4), 0xe581_6604);
    }

    #[test]
    fn fields_are_told_from_rings() {
        // As many irreducible polynomials of each degree as Gauss's formula says.
        let count = |m: u32| (1u64 << m..2 << m).filter(|&p| is_field(p)).count();
        assert_eq!((1..=10).map(count).collect::<Vec<_>>(), [2, 1, 2, 3, 6, 9, 18, 30, 56, 99]);
        assert!(is_field(0x11b) && is_field(0x1_0040_0007) && !is_field(0x100) && !is_field(0x101) && !is_field(1));
    }

    #[test]
    fn what_is_no_field_element_is_refused() {
        assert!(BitMatrix::constant(256, 0x11b).is_none());
        assert!(BitMatrix::constant(1, 1).is_none());
        assert!(BitMatrix::of_field("m", &[vec![1, 2], vec![1]], 0x11b).is_none());
        assert!(BitMatrix::of_field("m", &[vec![1; 9]], 0x11b).is_none());
    }
}
