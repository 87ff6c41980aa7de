//! Matrices and tables in words, as a reader of the cipher's specification would name them,
//! where they can be.

use super::fields::{block, column, times};
use super::nibbles;
use super::sum::{Function, Rows, Table};

/// A map of several words in words.
pub fn several_described(map: &[Vec<Rows>], operations: usize) -> String {
    let (outputs, sources) = (map.len(), map[0].len());
    let ones: u32 = map.iter().flatten().flatten().map(|row| row.count_ones()).sum();
    let bits = map[0][0].len();
    format!(
        "a map over GF(2) of {sources} words to {outputs}, {} by {} bits with {ones} ones, in {operations} operations",
        bits * outputs,
        bits * sources
    )
}

/// A matrix in words: constants of a field, where it is made of such.
pub fn described(rows: &Rows) -> String {
    let bytes = rows.len() / 8;
    let blocks: Vec<[u8; 8]> = (0..bytes * bytes).map(|n| block(rows, n / bytes, n % bytes)).collect();
    let is_product = |b: &[u8; 8], p: u32| *b == times(column(b, 0), p & 0xff);
    // Among the polynomials that fit, an ordinary matrix of bits fits none.
    let mut fields = (0x101..0x200).step_by(2).filter(|&p| irreducible(p));
    match fields.find(|&p| blocks.iter().all(|b| is_product(b, p))) {
        Some(p) => {
            let row = |row: &[[u8; 8]]| row.iter().map(|b| format!("{:x}", column(b, 0))).collect::<Vec<_>>().join(" ");
            let all: Vec<String> = blocks.chunks(bytes).map(row).collect();
            format!("the {bytes} by {bytes} matrix ({}) over GF(2^8) modulo {p:#x}", all.join("; "))
        }
        None => format!("a matrix over GF(2) with {} ones", rows.iter().map(|r| r.count_ones()).sum::<u32>()),
    }
}

fn irreducible(p: u32) -> bool {
    let remainder = |mut a: u32, b: u32| {
        while a != 0 && a.ilog2() >= b.ilog2() {
            a ^= b << (a.ilog2() - b.ilog2());
        }
        a
    };
    (2..32).all(|d| remainder(p, d) != 0)
}

pub fn table_described(table: &Table) -> String {
    let mask = table.iter().fold(0, |m, t| m | t);
    let first: Vec<String> = table[..4].iter().map(|t| format!("{t:x}")).collect();
    let kind = if is_linear(table) { "linear over GF(2)" } else { "not linear" };
    let entries = if nibbles::is_of_lower(table) { "16 entries of " } else { "" };
    format!("a table of {entries}{} bits, {kind}: {} ...", 64 - mask.leading_zeros(), first.join(" "))
}

pub fn is_linear(table: &Table) -> bool {
    table[0] == 0 && matches!(Function::of(table), Function::Linear(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_of_a_field_are_named() {
        let mut rows = vec![0; 32];
        let mix = [[2u32, 3, 1, 1], [1, 2, 3, 1], [1, 1, 2, 3], [3, 1, 1, 2]];
        for (i, line) in mix.iter().enumerate() {
            for (j, &k) in line.iter().enumerate() {
                for bit in 0..8 {
                    let product = (0..bit).fold(k, |v, _| if v & 0x80 != 0 { v << 1 ^ 0x11b } else { v << 1 });
                    (0..8).for_each(|r| rows[8 * i + r] |= u64::from(product >> r & 1) << (8 * j + bit));
                }
            }
        }
        assert_eq!(
            described(&rows),
            "the 4 by 4 matrix (2 3 1 1; 1 2 3 1; 1 1 2 3; 3 1 1 2) over GF(2^8) modulo 0x11b"
        );
        rows[3] ^= 1 << 20;
        assert!(described(&rows).starts_with("a matrix over GF(2) with"));
    }

    #[test]
    fn polynomials_of_degree_8() {
        assert_eq!((0x100..0x200).filter(|&p| irreducible(p)).count(), 30);
    }
}
