//! Functions of a byte that are sums of functions of its two nibbles.
//!
//! S-boxes of four bits are looked up with nibbles. What they give is held as a
//! function of the byte that the nibble is half of, like any other table; here such a
//! function is separated again, so that an instruction for nibbles is found where
//! the program wants one of a byte's two, or has a table for both at once.

use super::sum::{Part, Table};

const LOW: usize = 0x0f;
const HIGH: usize = 0xf0;

/// The table as functions of the lower and of the upper nibble, whose sum it is.
///
/// What a result has for a byte of zero goes, bit by bit, to the function that the bit
/// depends on, to the lower one if that is both or none: so equal functions are taken
/// separated into equal ones. None where the nibbles do more together.
pub fn split(table: &Table) -> Option<[Table; 2]> {
    let zero = table[0];
    let separated = |x: usize| table[x & LOW] ^ table[x & HIGH] ^ zero;
    if !(0..256).all(|x| table[x] == separated(x)) {
        return None;
    }
    let depends = |nibble: usize| (0..256).fold(0, |m, x| m | (table[x & nibble] ^ zero));
    let upper = zero & depends(HIGH) & !depends(LOW);
    Some([std::array::from_fn(|x| table[x & LOW] ^ upper), std::array::from_fn(|x| table[x & HIGH] ^ zero ^ upper)])
}

/// Parts as functions of one nibble each, those that are nothing left out; None where one is
/// of the whole byte.
pub(crate) fn halves<S: Copy>(parts: &[Part<S>]) -> Option<Vec<Part<S>>> {
    let mut out = Vec::new();
    for part in parts {
        let tables = split(&part.table())?;
        out.extend(tables.iter().map(|table| part.with(table)).filter(|half| half.possible() != 0));
    }
    Some(out)
}

/// Where in the byte the nibble begins that a function of one nibble looks at.
pub fn first<T: PartialEq>(table: &[T; 256]) -> usize {
    if is_of_lower(table) { 0 } else { 4 }
}

/// Does the function look at one of the nibbles alone?
pub fn is_of_one<T: PartialEq>(table: &[T; 256]) -> bool {
    is_of_lower(table) || looks_at(table, HIGH)
}

/// Does the function look at no more than the lower nibble?
pub(crate) fn is_of_lower<T: PartialEq>(table: &[T; 256]) -> bool {
    looks_at(table, LOW)
}

fn looks_at<T: PartialEq>(table: &[T; 256], nibble: usize) -> bool {
    (0..256).all(|x| table[x] == table[x & nibble])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The function of a byte that looks up one of its nibbles, the one from bit `shift` on.
    fn of_byte(shift: usize, entry: impl Fn(usize) -> u64) -> Table {
        std::array::from_fn(|x| entry(x >> shift & LOW))
    }

    const PRESENT: [u64; 16] = [0xc, 5, 6, 0xb, 9, 0, 0xa, 0xd, 3, 0xe, 0xf, 8, 4, 7, 1, 2];

    #[test]
    fn two_s_boxes_side_by_side() {
        let low = of_byte(0, |x| PRESENT[x]);
        let high = of_byte(4, |x| PRESENT[x] << 4);
        let both: Table = std::array::from_fn(|x| low[x] | high[x]);
        assert_eq!(split(&both), Some([low, high]));
        assert_eq!(split(&low), Some([low, [0; 256]]));
        assert_eq!(split(&high), Some([[0; 256], high]));
    }

    #[test]
    fn a_table_of_a_whole_byte_stays_whole() {
        let mut both: Table = std::array::from_fn(|x| PRESENT[x & 15] | PRESENT[x >> 4] << 4);
        both[0x37] ^= 1;
        assert_eq!(split(&both), None);
        assert_eq!(split(&std::array::from_fn(|x| (x * x) as u64)), None);
    }

    #[test]
    fn the_two_together_are_the_table() {
        let table: Table = std::array::from_fn(|x| 0x5000 ^ PRESENT[x & 15] ^ (PRESENT[x >> 4] * 0x11));
        let [low, high] = split(&table).unwrap();
        assert!((0..256).all(|x| low[x] ^ high[x] == table[x]));
        assert!((0..256).all(|x| low[x] == low[x & 15] && high[x] == high[x & 0xf0]));
    }
}
