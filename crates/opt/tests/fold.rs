//! One line a rule: an expression as compilers write it, and what is left.

mod support;

use ciphermill_opt::{Options, run_pass};
use support::text::{func, module, returned};

/// Clean up an expression over parameters `[x]` and `[y]` of type `ty`.
fn folded(ty: &str, expression: &str) -> String {
    let result = result_type(ty, expression);
    let body = number(expression, ty);
    let text = format!("(module (func (export \"f\") (param {ty} {ty}) (result {result}) {body}))");
    let mut module = module(&text);
    let options = Options { word_bits: 64, ..Options::default() };
    for _ in 0..4 {
        for pass in ["simplify_cfg", "fold", "gvn", "dce"] {
            run_pass(&mut module, &options, pass);
        }
    }
    returned(func(&module, "f"))
}

/// Comparisons give `i32` whatever they compare.
fn result_type<'a>(ty: &'a str, expression: &str) -> &'a str {
    let name = expression.split_once('.').map_or("", |(_, name)| name);
    let compares = ["eq", "ne", "lt", "gt", "le", "ge"].iter().any(|c| name.starts_with(c));
    if compares { "i32" } else { ty }
}

/// Write out `[x]`, `[y]`, and `[12]` for a constant of the type.
fn number(text: &str, ty: &str) -> String {
    let mut out = String::new();
    for part in text.split('[') {
        match part.split_once(']') {
            Some(("x", rest)) => out.push_str(&format!("(local.get 0){rest}")),
            Some(("y", rest)) => out.push_str(&format!("(local.get 1){rest}")),
            Some((n, rest)) => out.push_str(&format!("({ty}.const {n}){rest}")),
            None => out.push_str(part),
        }
    }
    out
}

fn check(ty: &str, cases: &[(&str, &str)]) {
    for (from, to) in cases {
        assert_eq!(&folded(ty, from), to, "{ty}: {from}");
    }
}

#[test]
fn sums() {
    check(
        "i32",
        &[
            ("(i32.add [x] [0])", "p0"),
            ("(i32.add [3] [4])", "7"),
            ("(i32.add [7] [x])", "add(p0, 7)"),
            ("(i32.sub [x] [7])", "add(p0, -7)"),
            ("(i32.add (i32.add [x] [3]) [4])", "add(p0, 7)"),
            ("(i32.add (i32.sub [3] [x]) [4])", "sub(7, p0)"),
            ("(i32.sub [9] (i32.add [x] [4]))", "sub(5, p0)"),
            ("(i32.add [x] [x])", "shl(p0, 1)"),
            ("(i32.sub [x] [x])", "0"),
            ("(i32.sub (i32.add [x] [y]) [x])", "p1"),
            ("(i32.add [x] (i32.sub [y] [x]))", "p1"),
            ("(i32.sub [x] (i32.sub [x] [y]))", "p1"),
            ("(i32.add [x] (i32.sub [0] [y]))", "sub(p0, p1)"),
            ("(i32.sub [0] (i32.sub [x] [y]))", "sub(p1, p0)"),
            ("(i32.add (i32.xor [x] [-1]) [1])", "sub(0, p0)"),
        ],
    );
}

#[test]
fn products() {
    check(
        "i32",
        &[
            ("(i32.mul [x] [0])", "0"),
            ("(i32.mul [x] [1])", "p0"),
            ("(i32.mul [16] [x])", "shl(p0, 4)"),
            ("(i32.mul [x] [-1])", "sub(0, p0)"),
            ("(i32.mul (i32.mul [x] [3]) [5])", "mul(p0, 15)"),
            ("(i32.mul (i32.shl [x] [2]) [5])", "mul(p0, 20)"),
            ("(i32.div_u [x] [8])", "shr_u(p0, 3)"),
            ("(i32.rem_u [x] [8])", "and(p0, 7)"),
            ("(i32.div_s [x] [1])", "p0"),
            ("(i32.div_s [x] [4])", "shr_s(add(p0, shr_u(shr_s(p0, 31), 30)), 2)"),
            // These trap, always or perhaps.
            ("(i32.div_u [x] [0])", "div_u(p0, 0)"),
            ("(i32.div_s [-0x80000000] [-1])", "div_s(-2147483648, -1)"),
            ("(i32.div_s [x] [-1])", "div_s(p0, -1)"),
            ("(i32.rem_s [x] [-1])", "0"),
        ],
    );
}

#[test]
fn masks() {
    check(
        "i32",
        &[
            ("(i32.and [x] [0])", "0"),
            ("(i32.and [x] [-1])", "p0"),
            ("(i32.and (i32.and [x] [0xff0]) [0xff])", "and(p0, 240)"),
            ("(i32.and (i32.shr_u [x] [24]) [0xff])", "shr_u(p0, 24)"),
            ("(i32.and (i32.or [x] [0xff00]) [0xff])", "and(p0, 255)"),
            ("(i32.or (i32.and [x] [0xf0]) (i32.and [x] [0x0f]))", "and(p0, 255)"),
            ("(i32.or [x] (i32.and [x] [y]))", "p0"),
            ("(i32.xor (i32.xor [x] [y]) [x])", "p1"),
            ("(i32.xor (i32.xor [x] [5]) [3])", "xor(p0, 6)"),
            ("(i32.or [x] [x])", "p0"),
            ("(i32.and (i32.extend8_s [x]) [0xff])", "and(p0, 255)"),
            ("(i32.and (i32.add [x] [0x3f6]) [0x1ff])", "and(add(p0, 502), 511)"),
            ("(i32.and (i32.add (i32.and [x] [0x1f0]) [0x201]) [0x1ff])", "add(and(p0, 496), 1)"),
            ("(i32.and (i32.add [x] [0x200]) [0x1ff])", "and(p0, 511)"),
            ("(i32.and (i32.add [x] [-1]) [0x1ff])", "and(add(p0, -1), 511)"),
            ("(i32.and (i32.add [x] [0x3f6]) [0x1fe])", "and(add(p0, 1014), 510)"),
        ],
    );
}

#[test]
fn shifts() {
    check(
        "i32",
        &[
            ("(i32.shl (i32.shl [x] [3]) [4])", "shl(p0, 7)"),
            ("(i32.shl (i32.shl [x] [20]) [20])", "0"),
            ("(i32.shr_s (i32.shr_s [x] [20]) [20])", "shr_s(p0, 31)"),
            ("(i32.shl [x] [32])", "p0"),
            ("(i32.shl [x] [33])", "shl(p0, 1)"),
            ("(i32.shr_u (i32.shl [x] [8]) [24])", "and(shr_u(p0, 16), 255)"),
            ("(i32.shr_u (i32.shl [x] [8]) [8])", "and(p0, 16777215)"),
            ("(i32.shl (i32.shr_u [x] [8]) [8])", "and(p0, -256)"),
            ("(i32.shl (i32.and [x] [0xff]) [24])", "shl(p0, 24)"),
            ("(i32.shr_u (i32.and [x] [0xff00]) [8])", "and(shr_u(p0, 8), 255)"),
            ("(i32.shr_s (i32.shl [x] [24]) [24])", "sext8(p0)"),
            ("(i32.shr_s (i32.and [x] [0xff]) [2])", "and(shr_u(p0, 2), 63)"),
            ("(i32.shl [x] (i32.and [y] [31]))", "shl(p0, p1)"),
            ("(i32.shl [x] (i32.and [y] [15]))", "shl(p0, and(p1, 15))"),
            ("(i32.shr_u [x] (i32.sub [32] [y]))", "shr_u(p0, sub(0, p1))"),
        ],
    );
}

#[test]
fn rotates() {
    check(
        "i32",
        &[
            ("(i32.or (i32.shl [x] [8]) (i32.shr_u [x] [24]))", "rotl(p0, 8)"),
            ("(i32.add (i32.shr_u [x] [24]) (i32.shl [x] [8]))", "rotl(p0, 8)"),
            ("(i32.xor (i32.shl [x] [8]) (i32.shr_u [x] [24]))", "rotl(p0, 8)"),
            ("(i32.or (i32.shl [x] [8]) (i32.shr_u [x] [23]))", "or(shl(p0, 8), shr_u(p0, 23))"),
            ("(i32.or (i32.shl [x] [8]) (i32.shr_u [y] [24]))", "or(shl(p0, 8), shr_u(p1, 24))"),
            ("(i32.or (i32.shl [x] [y]) (i32.shr_u [x] (i32.sub [32] [y])))", "rotl(p0, p1)"),
            ("(i32.or (i32.shl [x] (i32.sub [0] [y])) (i32.shr_u [x] [y]))", "rotr(p0, p1)"),
            // By 0 the halves cancel: no rotate.
            (
                "(i32.xor (i32.shl [x] [y]) (i32.shr_u [x] (i32.sub [32] [y])))",
                "xor(shl(p0, p1), shr_u(p0, sub(0, p1)))",
            ),
            ("(i32.rotr [x] [8])", "rotl(p0, 24)"),
            ("(i32.rotl (i32.rotl [x] [20]) [20])", "rotl(p0, 8)"),
            ("(i32.rotl (i32.rotl [x] [20]) [12])", "p0"),
            ("(i32.rotl [x] (i32.sub [32] [y]))", "rotr(p0, p1)"),
            // Fields of a rotate by bytes are fields of the word.
            ("(i32.and (i32.rotl [x] [24]) [255])", "and(shr_u(p0, 8), 255)"),
            ("(i32.and (i32.shr_u (i32.rotl [x] [24]) [16]) [255])", "shr_u(p0, 24)"),
            ("(i32.shr_u (i32.rotl [x] [24]) [24])", "and(p0, 255)"),
            ("(i32.and (i32.rotl [x] [20]) [255])", "and(rotl(p0, 20), 255)"),
            ("(i32.and (i32.rotl [x] [4]) [255])", "and(rotl(p0, 4), 255)"),
            ("(i32.and (i32.rotl [x] [8]) [0x00ff00ff])", "and(rotl(p0, 8), 16711935)"),
        ],
    );
}

#[test]
fn byte_reversals() {
    check(
        "i32",
        &[
            (
                "(i32.or (i32.and (i32.rotl [x] [24]) [0xff00ff00]) (i32.and (i32.rotl [x] [8]) [0xff00ff]))",
                "bswap(p0)",
            ),
            (
                "(i32.or (i32.or (i32.shl [x] [24]) (i32.shl (i32.and [x] [0xff00]) [8]))
                     (i32.or (i32.and (i32.shr_u [x] [8]) [0xff00]) (i32.shr_u [x] [24])))",
                "bswap(p0)",
            ),
            ("(i32.or (i32.and [x] [0xffff]) (i32.and [x] [0xffff0000]))", "p0"),
            (
                "(i32.or (i32.or (i32.shl [x] [24]) (i32.shl (i32.and [x] [0xff00]) [8]))
                     (i32.or (i32.and (i32.shr_u [y] [8]) [0xff00]) (i32.shr_u [x] [24])))",
                "or(or(shl(p0, 24), shl(and(p0, 65280), 8)), or(and(shr_u(p1, 8), 65280), shr_u(p0, 24)))",
            ),
        ],
    );
}

#[test]
fn comparisons() {
    check(
        "i32",
        &[
            ("(i32.lt_u [511] (i32.add (i32.and [x] [0x1f0]) [0x201]))", "1"),
            ("(i32.lt_u [513] (i32.add (i32.and [x] [0x1f0]) [0x201]))", "lt_u(513, add(and(p0, 496), 513))"),
            ("(i32.lt_u (i32.add (i32.and [x] [15]) [16]) [16])", "0"),
            ("(i32.lt_u (i32.add [x] [16]) [16])", "lt_u(add(p0, 16), 16)"),
            ("(i32.eqz (i32.lt_u [x] [y]))", "le_u(p1, p0)"),
            ("(i32.eqz (i32.eqz (i32.eq [x] [y])))", "eq(p0, p1)"),
            ("(i32.ne (i32.eq [x] [y]) [0])", "eq(p0, p1)"),
            ("(i32.eq (i32.sub [x] [y]) [0])", "eq(p0, p1)"),
            ("(i32.eq (i32.add [x] [3]) [10])", "eq(p0, 7)"),
            ("(i32.ne (i32.xor [x] [3]) [1])", "ne(p0, 2)"),
            ("(i32.lt_u [x] [1])", "eq(p0, 0)"),
            ("(i32.gt_u [x] [0])", "ne(p0, 0)"),
            ("(i32.le_u [x] [7])", "lt_u(p0, 8)"),
            ("(i32.le_s [x] [0x7fffffff])", "1"),
            ("(i32.ge_u [x] [0])", "1"),
            ("(i32.lt_s (i32.and [x] [0xff]) [0])", "0"),
            ("(i32.lt_s (i32.and [x] [0xff]) [10])", "lt_u(and(p0, 255), 10)"),
            ("(i32.lt_u (i32.and [x] [0xff]) [256])", "1"),
            ("(i32.eq (i32.and [x] [0xf0]) [1])", "0"),
            ("(i32.ge_s [x] [5])", "lt_s(4, p0)"),
        ],
    );
    check("i64", &[("(i64.eqz (i64.xor [x] [y]))", "eq(p0, p1)"), ("(i64.lt_u [x] [1])", "eq(p0, 0)")]);
}

#[test]
fn selects() {
    check(
        "i32",
        &[
            ("(select [x] [x] [y])", "p0"),
            ("(select [5] [6] [0])", "6"),
            ("(select [x] [y] (i32.eqz [y]))", "select(p1, p1, p0)"),
            ("(select [x] [y] (i32.ne [y] [0]))", "select(p1, p0, p1)"),
            ("(select [1] [0] [x])", "ne(p0, 0)"),
            ("(select [0] [1] [x])", "eq(p0, 0)"),
            ("(select [x] [y] (i32.eq [x] [y]))", "p1"),
        ],
    );
}

#[test]
fn extensions() {
    check(
        "i32",
        &[
            ("(i32.extend8_s (i32.extend16_s [x]))", "sext8(p0)"),
            ("(i32.extend16_s (i32.extend8_s [x]))", "sext8(p0)"),
            ("(i32.extend8_s (i32.and [x] [0xff]))", "sext8(p0)"),
            ("(i32.extend8_s (i32.and [x] [0x7f]))", "and(p0, 127)"),
            ("(i32.clz [1])", "31"),
            ("(i32.wrap_i64 (i64.extend_i32_s [x]))", "p0"),
        ],
    );
    check("i64", &[("(i64.extend32_s (i64.extend_i32_u (i32.wrap_i64 [x])))", "sext(wrap(p0))")]);
}
