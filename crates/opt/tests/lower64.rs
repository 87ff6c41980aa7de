//! Splitting 64-bit values, against this computer's own 64-bit arithmetic.

mod support;

use ciphermill_ir::{FuncId, Op, Type};
use ciphermill_opt::{OptError, Options, optimise};
use support::interp::{Interp, Outcome};
use support::random::Rng;
use support::text::{count, func, module};
use support::{run, same};

const OPS: [&str; 15] = [
    "add", "sub", "mul", "and", "or", "xor", "shl", "shr_u", "shr_s", "rotl", "rotr", "div_u", "div_s", "rem_u",
    "rem_s",
];

/// What the computer says; none for a trap.
fn expected(op: &str, a: u64, b: u64) -> Option<u64> {
    let n = (b & 63) as u32;
    let (sa, sb) = (a as i64, b as i64);
    Some(match op {
        "add" => a.wrapping_add(b),
        "sub" => a.wrapping_sub(b),
        "mul" => a.wrapping_mul(b),
        "and" => a & b,
        "or" => a | b,
        "xor" => a ^ b,
        "shl" => a << n,
        "shr_u" => a >> n,
        "shr_s" => (sa >> n) as u64,
        "rotl" => a.rotate_left(n),
        "rotr" => a.rotate_right(n),
        "div_u" => a.checked_div(b)?,
        "rem_u" => a.checked_rem(b)?,
        "div_s" => sa.checked_div(sb)? as u64,
        _ if b == 0 => return None,
        _ => sa.wrapping_rem(sb) as u64,
    })
}

#[test]
fn arithmetic_agrees_with_the_computer() {
    let body = |op: &str| {
        format!("(func (export \"{op}\") (param i64 i64) (result i64) (i64.{op} (local.get 0) (local.get 1)))")
    };
    let before = module(&format!("(module {})", OPS.map(body).concat()));
    for level in 0..=2 {
        let mut after = before.clone();
        optimise(&mut after, &Options { level, ..Options::default() }).expect("the runtime is linked");
        let mut rng = Rng::new(u64::from(level));
        for op in OPS {
            let id = after.export(op).expect("exported");
            for _ in 0..300 {
                let (a, b) = (rng.interesting(), rng.interesting());
                let got = run(&after, &before, id, &[a, b]).outcome;
                match expected(op, a, b) {
                    Some(value) => assert_eq!(got, Outcome::Values(vec![value]), "{op} {a:#x} {b:#x}"),
                    None => assert!(matches!(got, Outcome::Trap(_)), "{op} {a:#x} {b:#x}: {got:?}"),
                }
            }
        }
    }
}

#[test]
fn shifts_by_constants_agree() {
    let mut text = String::new();
    for op in ["shl", "shr_u", "shr_s", "rotl", "rotr"] {
        for n in [0, 1, 31, 32, 33, 48, 63, 64, 65] {
            text += &format!(
                "(func (export \"{op} {n}\") (param i64) (result i64) (i64.{op} (local.get 0) (i64.const {n})))"
            );
        }
    }
    let before = module(&format!("(module {text})"));
    let mut after = before.clone();
    optimise(&mut after, &Options { level: 0, ..Options::default() }).expect("no division");
    let mut rng = Rng::new(5);
    for (name, id) in &before.exports {
        let (op, n) = name.split_once(' ').expect("name and amount");
        let n: u64 = n.parse().expect("a number");
        for _ in 0..20 {
            let a = rng.interesting();
            let want = expected(op, a, n).expect("shifts do not trap");
            assert_eq!(run(&after, &before, *id, &[a]).outcome, Outcome::Values(vec![want]), "{name} of {a:#x}");
        }
    }
}

#[test]
fn nothing_wide_is_left() {
    let before = module(
        "(module (memory 1) (global (mut i64) (i64.const 0x123456789abcdef0))
        (type $t (func (param i64) (result i64))) (table 1 funcref) (elem (i32.const 0) $f)
        (func $f (export \"f\") (param i64) (result i64)
          (global.set 0 (i64.add (local.get 0) (global.get 0)))
          (i64.store (i32.const 8) (global.get 0))
          (i64.load (i32.const 8)))
        (func (export \"g\") (param i64) (result i64) (call_indirect (type $t) (local.get 0) (i32.const 0))))",
    );
    for level in 0..=2 {
        let mut after = before.clone();
        optimise(&mut after, &Options { level, ..Options::default() }).expect("no division");
        for f in after.funcs.values() {
            assert!(f.values.values().all(|v| v.ty == Type::I32), "{f}");
        }
        assert!(after.sigs.values().all(|s| !s.params.contains(&Type::I64) && !s.results.contains(&Type::I64)));
        assert_eq!(after.globals.len(), before.globals.len() + 1);
        same(&before, &after, true, &[vec![5], vec![u64::MAX]], "wide");
    }
}

#[test]
fn an_eight_byte_store_writes_all_or_nothing() {
    let before = module(
        "(module (memory 1) (func (export \"f\") (param i32)
          (i64.store offset=0 align=1 (local.get 0) (i64.const -1)))
        (func (export \"far\") (param i32)
          (i64.store offset=0xfffffffd align=1 (local.get 0) (i64.const -1))))",
    );
    let mut after = before.clone();
    optimise(&mut after, &Options { strict_traps: true, ..Options::default() }).expect("no division");
    let inputs: Vec<Vec<u64>> = (65520..65540).map(|a| vec![a]).chain([vec![0], vec![0xFFFF_FFFF]]).collect();
    same(&before, &after, true, &inputs, "store");
}

#[test]
fn extended_factors_need_one_product() {
    for (extend, high) in [("extend_i32_s", "mulhi_s"), ("extend_i32_u", "mulhi_u")] {
        let mut text = module(&format!(
            "(module (func (export \"f\") (param i32 i32) (result i64)
              (i64.mul (i64.{extend} (local.get 0)) (i64.{extend} (local.get 1)))))"
        ));
        optimise(&mut text, &Options::default()).expect("no division");
        let f = func(&text, "f");
        assert_eq!(count(f, |op| !matches!(op, Op::Const(_))), 2, "{f}");
        assert!(f.to_string().contains(high), "{f}");
    }
}

#[test]
fn division_without_the_runtime_is_an_error() {
    let mut text =
        module("(module (func (export \"f\") (param i64 i64) (result i64) (i64.div_u (local.get 0) (local.get 1))))");
    for f in text.funcs.values_mut() {
        f.name = f.name.replace("rt_", "not_");
    }
    let error = optimise(&mut text, &Options::default()).expect_err("no runtime");
    assert_eq!(error, OptError::MissingRuntime { func: "f".into(), runtime: "rt_div_u64" });
    assert!(error.to_string().contains("link the runtime"));
}

#[test]
fn a_user_function_does_not_stand_in_for_the_runtime() {
    let before = module(
        "(module
        (func $rt_div_u64 (export \"g\") (param i64 i64) (result i64) (i64.const 99))
        (func (export \"f\") (param i64 i64) (result i64) (i64.div_u (local.get 0) (local.get 1))))",
    );
    let mut after = before.clone();
    optimise(&mut after, &Options::default()).expect("the runtime is linked");
    let f = after.export("f").expect("exported");
    assert_eq!(run(&after, &before, f, &[100, 7]).outcome, Outcome::Values(vec![14]));
}

#[test]
fn word_bits_are_32_or_64() {
    let mut text = module("(module)");
    assert_eq!(optimise(&mut text, &Options { word_bits: 16, ..Options::default() }), Err(OptError::WordBits(16)));
}

#[test]
fn with_64_bit_words_nothing_is_split() {
    let mut text =
        module("(module (func (export \"f\") (param i64) (result i64) (i64.add (local.get 0) (local.get 0))))");
    optimise(&mut text, &Options { word_bits: 64, ..Options::default() }).expect("nothing to do");
    let outcome = Interp::new(&text, 100).call(FuncId::from_u32(0), &[1 << 40]);
    assert_eq!(outcome, Outcome::Values(vec![1 << 41]));
}
