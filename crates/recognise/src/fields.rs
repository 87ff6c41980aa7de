//! Multiplication of the four bytes of a word, each by its own constant, in a field of 256
//! elements.
//!
//! An instruction like the C64x's GMPY4 is no matrix by itself: both its operands are
//! registers, and a third register says which polynomial the field has. With a constant for
//! the one operand and a polynomial in that register it is: one block of 8 by 8 bits for each
//! byte. Matrices of 4 by 4 constants, MixColumns and its inverse among them, are sums of up to
//! four of these, times the word rotated by a byte each time; where the constants are all 1 the
//! rotated word itself will do.
//!
//! Which polynomial a matrix wants is read from it. That the instruction then computes what is
//! wanted is never taken for granted: its semantics are evaluated with the constants, and the
//! matrix they come to is compared.

use super::matrices::Turned;
use super::semantics::{Fixed, Known, Words};
use super::sum::{Rows, identity};
use ciphermill_machine::sem::Expr;
use ciphermill_machine::{Instr, InstrKind, Machine, OperandKind, Reg};
use ciphermill_patterns::pattern::Template;
use std::collections::BTreeSet;

/// Words are of 32 bits here.
const WORD: u8 = 32;
const BYTES: usize = 4;
/// The polynomial that instructions are tried with: 0x11b, that of AES.
const TRIED: u32 = 0x1b;
/// Bits of a polynomial in its register.
const LOWEST: u32 = 0xff;

/// An instruction that multiplies in fields.
pub struct Multiplier {
    /// Its function: of the word and of the constants.
    pub function: u16,
    /// The register whose lowest byte says which polynomial the field has, without its
    /// highest term.
    pub register: Reg,
    /// Its other bits, as they are after a reset: fields of 256 elements.
    rest: u32,
    /// The instruction, and which of its operands is the word, which the constants.
    id: usize,
    instr: Instr,
    operands: [usize; 2],
}

/// The machine's first such instruction, with its template, which is function `function`.
pub fn multiplier(machine: &Machine, function: usize) -> Option<(Multiplier, Template)> {
    if machine.value_bits() != WORD {
        return None;
    }
    machine.instrs.iter().enumerate().find_map(|(id, instr)| {
        let registers = |used: bool| {
            let is = move |k: &OperandKind| matches!(k, OperandKind::Reg { used: u, .. } if *u == used);
            (0..instr.operands.len()).filter(move |&i| is(&instr.operands[i].kind))
        };
        let sources: Vec<usize> = registers(true).collect();
        let fits = instr.selectable && instr.kind == InstrKind::Compute && instr.operands.len() == 3;
        let ([a, b], true) = (&sources[..], fits) else { return None };
        let mut read = BTreeSet::new();
        ciphermill_machine::for_each_expr(&instr.semantics, &mut |e| {
            if let Expr::Fixed(r) = e {
                read.insert(*r);
            }
        });
        let register = *read.first().filter(|_| read.len() == 1)?;
        let file = &machine.files[machine.regs[usize::from(register.0)].file];
        let rest = if file.state { file.reset as u32 & !LOWEST } else { return None };
        let one = |operands: [usize; 2]| {
            let multiplier =
                Multiplier { function: function as u16, register, rest, id, instr: instr.clone(), operands };
            let doubled = |byte: usize| Some(multiplier.block(2)?[byte] == times(2, TRIED));
            let fits = multiplier.times(rest | TRIED, 0x0101_0101)? == identity(32)
                && (0..BYTES).all(|k| doubled(k) == Some(true));
            fits.then_some(multiplier)
        };
        let found = [[*a, *b], [*b, *a]].into_iter().find_map(one)?;
        let dest = registers(false).next()?;
        let template = found.fixed().template(machine, dest, &found.operands, function as u16, false);
        Some((found, template))
    })
}

impl Multiplier {
    pub fn name(&self) -> String {
        self.instr.name.clone()
    }

    fn fixed(&self) -> Fixed<'_> {
        Fixed { sources: self.operands.to_vec(), ..Fixed::of(self.id, &self.instr) }
    }

    /// The matrix that it multiplies a word by, with constants and what the register holds.
    fn times(&self, loaded: u32, constants: u32) -> Option<Rows> {
        let known = Known { source: (1, constants.into()), register: (self.register, loaded.into()) };
        let (_, sum) =
            self.fixed().result(Words { bits: WORD.into(), register: WORD.into(), tables: &[] }, Some(&known))?;
        sum.is_linear().then(|| sum.rows(0, WORD.into()))
    }

    fn block(&self, constant: u32) -> Option<[[u8; 8]; BYTES]> {
        let rows = self.times(self.rest | TRIED, constant * 0x0101_0101)?;
        let straight = (0..BYTES).all(|i| (0..BYTES).all(|j| i == j || block(&rows, i, j) == [0; 8]));
        straight.then(|| std::array::from_fn(|k| block(&rows, k, k)))
    }

    /// Products that add up to a matrix times a word, with what the register holds.
    pub fn products(&self, rows: &Rows, loaded: u32) -> Option<Vec<Turned>> {
        let mut out = Vec::new();
        for turn in 0..BYTES {
            // Byte i of the word, rotated to the left by so many bytes, is its byte i - turn.
            let from = |i: usize| (i + BYTES - turn) % BYTES;
            let blocks: [[u8; 8]; BYTES] = std::array::from_fn(|i| block(rows, i, from(i)));
            let constants = (0..BYTES).fold(0, |all, i| all | u32::from(column(&blocks[i], 0)) << (8 * i));
            let whole: Rows = (0..32).map(|r| u64::from(blocks[r / 8][r % 8]) << (8 * (r / 8))).collect();
            if whole.iter().all(|&row| row == 0) {
                continue;
            }
            let (function, by) = if whole == identity(32) {
                (None, None)
            } else {
                if self.times(loaded, constants)? != whole {
                    return None;
                }
                (Some(self.function), Some(constants))
            };
            out.push(Turned { function, before: 8 * turn as u32, behind: 0, by });
        }
        // Without a product there is nothing to gain. With more of them than bytes that go in,
        // these are better put into one word first, and with more than come out, better cut from
        // one that is made as a whole.
        out.sort_by_key(|t| t.function.is_none());
        let count = out.iter().filter(|t| t.function.is_some()).count();
        let into = |i: usize| rows[8 * i..8 * i + 8].iter().any(|row| *row != 0);
        let from = |i: usize| rows.iter().any(|row| row >> (8 * i) & u64::from(LOWEST) != 0);
        let bytes = |goes: &dyn Fn(usize) -> bool| (0..BYTES).filter(|&i| goes(i)).count();
        (1..=bytes(&into).min(bytes(&from))).contains(&count).then_some(out)
    }

    /// The same with the polynomial that the matrix wants, and what the register holds then.
    pub fn any(&self, rows: &Rows) -> Option<(u32, Vec<Turned>)> {
        let wanted = self.rest | polynomial(rows)?;
        Some((wanted, self.products(rows, wanted)?))
    }
}

/// The polynomial, without its highest term, in whose field all blocks of a matrix are
/// multiplications; none where they are not, or would be in any.
fn polynomial(rows: &Rows) -> Option<u32> {
    let mut found = None;
    let blocks: Vec<[u8; 8]> = (0..BYTES * BYTES).map(|n| block(rows, n / BYTES, n % BYTES)).collect();
    for bits in &blocks {
        let columns: [u8; 8] = std::array::from_fn(|j| column(bits, j));
        for pair in columns.windows(2).filter(|pair| pair[0] & 0x80 != 0) {
            let own = u32::from(pair[1] ^ pair[0] << 1);
            if *found.get_or_insert(own) != own {
                return None;
            }
        }
    }
    let found = found?;
    blocks.iter().all(|bits| *bits == times(column(bits, 0), found)).then_some(found)
}

/// The matrix of a multiplication by a constant.
pub(crate) fn times(constant: u8, polynomial: u32) -> [u8; 8] {
    let mut power = u32::from(constant);
    let mut rows = [0; 8];
    for column in 0..8 {
        for (i, row) in rows.iter_mut().enumerate() {
            *row |= ((power >> i & 1) << column) as u8;
        }
        power <<= 1;
        if power & 0x100 != 0 {
            power ^= 0x100 | polynomial;
        }
    }
    rows
}

/// The bits of a matrix with which byte `j` of a word goes into byte `i` of the product.
pub(crate) fn block(rows: &Rows, i: usize, j: usize) -> [u8; 8] {
    std::array::from_fn(|r| (rows[8 * i + r] >> (8 * j)) as u8)
}

pub(crate) fn column(block: &[u8; 8], j: usize) -> u8 {
    (0..8).fold(0, |c, i| c | (block[i] >> j & 1) << i)
}

#[cfg(test)]
mod tests {
    use super::{Multiplier, Rows, multiplier, times};
    use crate::matrices::Turned;
    use std::path::Path;

    fn gmpy4() -> Multiplier {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let machine = ciphermill_machine::load_from_dir(&root, "c64x", &[], &[], &[]).unwrap();
        let (found, template) = multiplier(&machine, 7).unwrap();
        assert_eq!(machine.instrs[usize::from(template.parts[0].instr.0)].name, "gmpy4");
        assert_eq!((machine.regs[usize::from(found.register.0)].name.as_str(), found.function), ("gfpgfr", 7));
        found
    }

    /// A matrix of 4 by 4 constants, row by row.
    fn matrix(constants: [[u8; 4]; 4], polynomial: u32) -> Rows {
        let entry = |r: usize, j: usize| u64::from(times(constants[r / 8][j], polynomial)[r % 8]) << (8 * j);
        (0..32).map(|r| (0..4).fold(0, |row, j| row | entry(r, j))).collect()
    }

    /// Rotates and constants of the products.
    fn made(found: &[Turned]) -> Vec<(u32, Option<u32>)> {
        found.iter().map(|t| (t.before, t.by)).collect()
    }

    #[test]
    fn mix_columns_is_two_products_and_two_rotates() {
        let m = gmpy4();
        // FIPS 197, 5.1.3, the first row in the lowest byte.
        let mix = matrix([[2, 3, 1, 1], [1, 2, 3, 1], [1, 1, 2, 3], [3, 1, 1, 2]], 0x1b);
        let (loaded, products) = m.any(&mix).unwrap();
        assert_eq!(loaded, 0x0700_001b);
        // Byte i of the word rotated by 24 is its byte i + 1.
        assert_eq!(made(&products), [(0, Some(0x0202_0202)), (24, Some(0x0303_0303)), (8, None), (16, None)]);
        let inverse = matrix([[14, 11, 13, 9], [9, 14, 11, 13], [13, 9, 14, 11], [11, 13, 9, 14]], 0x1b);
        let four = [(0, 0x0e0e_0e0e), (8, 0x0909_0909), (16, 0x0d0d_0d0d), (24, 0x0b0b_0b0b)];
        assert_eq!(made(&m.any(&inverse).unwrap().1), four.map(|(turn, by)| (turn, Some(by))));
    }

    #[test]
    fn other_fields_and_single_bytes() {
        let m = gmpy4();
        // The MDS matrix of Twofish, modulo 0x169.
        let mds = matrix(
            [[0x01, 0xef, 0x5b, 0x5b], [0x5b, 0xef, 0xef, 0x01], [0xef, 0x5b, 0x01, 0xef], [0xef, 0x01, 0xef, 0x5b]],
            0x69,
        );
        let (loaded, products) = m.any(&mds).unwrap();
        assert_eq!((loaded, products.len()), (0x0700_0069, 4));
        // Of another field than the loaded one it is none.
        assert!(m.products(&mds, 0x0700_001b).is_none());
        // One byte doubled, the others gone.
        let one = matrix([[0, 0, 0, 0], [0, 2, 0, 0], [0; 4], [0; 4]], 0x1b);
        assert_eq!(made(&m.any(&one).unwrap().1), [(0, Some(0x0200))]);
        // One byte into all four takes as many products as four bytes, and so do four into one.
        let column = matrix([[14, 0, 0, 0], [9, 0, 0, 0], [13, 0, 0, 0], [11, 0, 0, 0]], 0x1b);
        let row = matrix([[14, 11, 13, 9], [0; 4], [0; 4], [0; 4]], 0x1b);
        assert!(m.any(&column).is_none() && m.any(&row).is_none());
    }

    #[test]
    fn what_is_no_multiplication_is_left() {
        let m = gmpy4();
        let mut bent = matrix([[2, 3, 1, 1], [1, 2, 3, 1], [1, 1, 2, 3], [3, 1, 1, 2]], 0x1b);
        bent[9] ^= 1 << 20;
        assert!(m.any(&bent).is_none());
        // Two fields at once.
        let mut two = matrix([[2, 0, 0, 0], [0, 2, 0, 0], [0; 4], [0; 4]], 0x1b);
        two[0] ^= 1 << 7;
        assert!(m.any(&two).is_none());
        // Rotates alone say no field, and need no products.
        let rotated = matrix([[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0]], 0x1b);
        assert!(m.any(&rotated).is_none() && m.products(&rotated, 0x0700_001b).is_none());
    }

    #[test]
    fn a_machine_without_one() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for name in ["c6201", "leon2", "rv32", "rv64", "core2"] {
            let machine = ciphermill_machine::load_from_dir(&root, name, &[], &[], &[]).unwrap();
            assert!(multiplier(&machine, 0).is_none(), "{name}");
        }
    }
}
