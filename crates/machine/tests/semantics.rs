//! The semantics language: precedence, canonical forms, values.

use ciphermill_ir::{BinOp, CmpOp};
use ciphermill_machine::eval::{Env, eval};
use ciphermill_machine::parse::{Scope, expression};
use ciphermill_machine::print::{self, Names};
use ciphermill_machine::sem::Expr;
use ciphermill_machine::{Operand, OperandKind, Table};
use std::collections::BTreeMap;

struct Values([u64; 3], Vec<Table>);

impl Env for Values {
    fn operand(&self, index: usize) -> Option<u64> {
        self.0.get(index).copied()
    }
    fn load(&self, addr: u64, bytes: u8) -> Option<u64> {
        Some(addr.wrapping_mul(0x0101_8181) & (u64::MAX >> (64 - 8 * u32::from(bytes))))
    }
    fn table(&self, index: usize) -> Option<&Table> {
        self.1.get(index)
    }
}

fn operands() -> Vec<Operand> {
    let reg =
        |name: &str| Operand { name: name.to_owned(), kind: OperandKind::Reg { file: 0, def: false, used: true } };
    vec![reg("a"), reg("b"), reg("c")]
}

fn tables() -> Vec<Table> {
    vec![Table { name: "t".to_owned(), bits: 8, values: vec![0x10, 0x21, 0x32, 0x43], verilog: None }]
}

fn parse(text: &str, word: u8) -> Expr {
    let (operands, tables, regs) = (operands(), tables(), BTreeMap::new());
    let scope = Scope {
        word,
        operands: &operands,
        regs: &regs,
        reg_infos: &[],
        files: &[],
        tables: &tables,
        matrices: &[],
        bound: &[],
    };
    expression(text, &scope).unwrap_or_else(|e| panic!("{text}: {e:?}"))
}

/// The value with a = 0x89abcdef, b = 5, c = 3; the printed form must parse to
/// the same tree.
fn value(text: &str, word: u8) -> u64 {
    let e = parse(text, word);
    let (operands, tables) = (operands(), tables());
    let printed = print::expression(&e, Names { word, operands: &operands, regs: &[], tables: &tables });
    assert_eq!(parse(&printed, word), e, "{text} printed as {printed}");
    eval(&e, word, &Values([0x89ab_cdef, 5, 3], tables)).unwrap()
}

#[test]
fn operators_bind_as_in_c() {
    assert_eq!(value("b + c * 2", 32), 11);
    assert_eq!(value("(b + c) * 2", 32), 16);
    assert_eq!(value("b - c - 1", 32), 1);
    assert_eq!(value("b - (c - 1)", 32), 3);
    assert_eq!(value("1 << b + 1", 32), 64);
    assert_eq!(value("b & c == 3", 32), 1);
    assert_eq!(value("b | c ^ c & 1", 32), 5 | (3 ^ (3 & 1)));
    assert_eq!(value("b <u c ? 1 : b == 5 ? 2 : 3", 32), 2);
    assert_eq!(value("~b & 0xff", 32), 0xfa);
    assert_eq!(value("-b >>s 1", 32), 0xffff_fffd);
    assert_eq!(value("!b | !0", 32), 1);
    assert_eq!(value("b <u c <u 1", 32), 1);
    assert_eq!(value("-b /s c", 32), 0xffff_ffff);
    assert_eq!(value("-b %s c", 32), 0xffff_fffe);
    assert_eq!(value("b >s -c & b >u 1", 32), 1);
}

#[test]
fn one_meaning_has_one_form() {
    assert_eq!(parse("a >u b", 32), parse("b <u a", 32));
    assert_eq!(parse("a >=s b", 32), parse("b <=s a", 32));
    assert_eq!(parse("5 + a", 32), parse("a + 5", 32));
    assert_eq!(parse("~a", 32), parse("a ^ 0xffffffff", 32));
    assert_eq!(parse("!a", 32), parse("0 == a", 32));
    assert_eq!(parse("W - 1 + 2 * 3", 32), Expr::Const(37));
    assert_eq!(parse("~0", 64), Expr::Const(u64::MAX));
    assert_eq!(parse("zext8(a)", 32), parse("a[7:0]", 32));
    assert_eq!(parse("a[31:0]", 32), Expr::Operand(0));
    assert_eq!(parse("sext32(a)", 32), Expr::Operand(0));
    assert_eq!(parse("add32(a, b)", 32), parse("a + b", 32));
    assert_ne!(parse("add32(a, b)", 64), parse("a + b", 64));
    assert_eq!(parse("1 ? a : b", 32), Expr::Operand(0));
    let Expr::Cmp { op: CmpOp::Eq, b, .. } = parse("gtu(a)", 32) else { panic!("gtu") };
    assert_eq!(*b, Expr::Const(0));
}

#[test]
fn slices_become_shifts_and_masks() {
    let byte = parse("a[15:8]", 32).without_slices(32);
    assert_eq!(byte, parse("(a >>u 8) & 0xff", 32));
    assert_eq!(parse("a[31:24]", 32).without_slices(32), parse("a >>u 24", 32));
    let nested = parse("t[a[9:8]] + b[0]", 32).without_slices(32);
    assert!(matches!(nested, Expr::Bin { op: BinOp::Add, .. }));
    let values = Values([0x89ab_cdef, 5, 3], tables());
    assert_eq!(eval(&nested, 32, &values), eval(&parse("t[a[9:8]] + b[0]", 32), 32, &values));
}

#[test]
fn functions_compute() {
    assert_eq!(value("a[15:8]", 32), 0xcd);
    assert_eq!(value("a[31] + a[30]", 32), 1);
    assert_eq!(value("cat(a[7:0], a[15:8], b[3:0])", 32), 0xefcd5);
    assert_eq!(value("cat(a[0], b == 5, t[c])", 32), 0x343);
    assert_eq!(value("t[c + 2]", 32), 0x21);
    assert_eq!(value("rotl(a, 8)", 32), 0xabcd_ef89);
    assert_eq!(value("mulhu(a, a)", 32), 0x4a09_55b6);
    assert_eq!(value("bswap(a)", 32), 0xefcd_ab89);
    assert_eq!(value("sext8(a)", 32), 0xffff_ffef);
    assert_eq!(value("sext16(a)", 64), 0xffff_ffff_ffff_cdef);
    assert_eq!(value("clz(b) + 100 * ctz(b << 3) + 10000 * popcnt(b)", 32), 29 + 300 + 20000);
    assert_eq!(value("mem8[b]", 32), 0x85);
    assert_eq!(value("mem8s[b]", 32), 0xffff_ff85);
    assert_eq!(value("rotl32(a << 32 | a, 4)", 64), 0x9abc_def8);
    assert_eq!(value("lts32(a, b) + 2 * lts(zext32(a), b)", 64), 1);
    assert_eq!(value("leu(flags_sub(b, c)) + 2 * geu(flags_sub(b, c))", 32), 2);
    // a is negative in 32 bits, and what is above them does not count.
    assert_eq!(value("lts(flags_sub32(a, b)) + 2 * lts(flags_sub(a, b))", 64), 1);
    assert_eq!(value("eq(flags_sub32(a + (b << 32), a)) + 2 * eq(flags_sub(a + (b << 32), a))", 64), 1);
    assert_eq!(value("flags_add32(a, a) | flags_logic32(a) << 4", 64), 0b1000_0011);
    assert_eq!(value("flags_logic32(c << 32)", 64), 0b0100);
}

#[test]
fn division_without_a_result_has_none() {
    let values = Values([0x8000_0000, 0, 3], tables());
    assert_eq!(eval(&parse("a /u b", 32), 32, &values), None);
    assert_eq!(eval(&parse("a /s ~b", 32), 32, &values), None);
    assert_eq!(eval(&parse("b == 0 ? 7 : a /u b", 32), 32, &values), Some(7));
    assert_eq!(eval(&parse("1 /u 0", 32), 32, &values), None);
}

#[test]
fn matrices_multiply() {
    assert_eq!(value("gfmul(2, a[7:0], 0x11b)", 32), 0xc5);
    // Only the bits of the field count: of 5, the lowest two.
    assert_eq!(value("cat(gfmul(1, a[7:0], 0x11b), gfmul(2, b, 7))", 32), 0xef << 2 | 2);
    assert_eq!(parse("gfmul(0x53, 0xca, 0x11b)", 32), Expr::Const(1));
}

#[test]
fn wrong_matrices_are_named() {
    let (operands, tables, regs) = (operands(), tables(), BTreeMap::new());
    let scope = Scope {
        word: 32,
        operands: &operands,
        regs: &regs,
        reg_infos: &[],
        files: &[],
        tables: &tables,
        matrices: &[],
        bound: &[],
    };
    for (text, message) in [
        ("gfmul(a, 3, 0x11b)", "`gfmul` takes a constant, a value and a polynomial"),
        ("gfmul(256, a, 0x11b)", "0x100 is no element of the field of 0x11b"),
        ("gfmul(1, a, 1)", "0x1 is no element of the field of 0x1"),
        ("linear(mix, a)", "unknown matrix `mix`; there are none"),
        ("linear(3, a)", "expected the name of a matrix"),
        ("matvec(q0, a)", "unknown name `q0`"),
    ] {
        let error = expression(text, &scope).unwrap_err();
        assert!(error.message.contains(message), "{text}: {}", error.message);
    }
}
