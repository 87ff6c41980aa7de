//! Values of 32 bits split into words of 8 and 16, against this computer's own arithmetic.

mod support;

use ciphermill_ir::{Module, Op};
use ciphermill_opt::limbs::{self, Known, Narrow};
use ciphermill_opt::{Options, optimise};
use support::interp::{Interp, Outcome};
use support::random::Rng;
use support::text::{count, func, module};

/// Two amounts of bits, and a displacement that some offsets are beyond.
const NARROW: [Narrow; 2] =
    [Narrow { bits: 8, reach: 63, compares_all: true }, Narrow { bits: 16, reach: 32767, compares_all: false }];

fn lowered(before: &Module, narrow: Narrow) -> Module {
    let mut after = before.clone();
    optimise(&mut after, &Options::default()).expect("no division");
    limbs::lower(&mut after, narrow, Known { whole: &[], registers: &[] }).expect("nothing that is refused");
    after
}

/// The only result of a call, its operands and the result in words of so many bits.
fn call(module: &Module, name: &str, args: &[u32], bits: u32) -> u32 {
    let id = module.export(name).expect("exported");
    let ones = ciphermill_ir::mask(bits);
    let words: Vec<u64> =
        args.iter().flat_map(|&a| (0..32 / bits).map(move |k| u64::from(a) >> (k * bits) & ones)).collect();
    match Interp::new(module, 1_000_000).call(id, &words) {
        Outcome::Values(words) => words.iter().rev().fold(0, |all, w| all << bits | *w as u32),
        other => panic!("{name}: {other:?}"),
    }
}

fn expected(op: &str, a: u32, b: u32) -> u32 {
    let (n, sa, sb) = (b & 31, a as i32, b as i32);
    match op {
        "add" => a.wrapping_add(b),
        "sub" => a.wrapping_sub(b),
        "mul" => a.wrapping_mul(b),
        "and" => a & b,
        "or" => a | b,
        "xor" => a ^ b,
        "shl" => a << n,
        "shr_u" => a >> n,
        "shr_s" => (sa >> n) as u32,
        "rotl" => a.rotate_left(n),
        "rotr" => a.rotate_right(n),
        "eq" => u32::from(a == b),
        "ne" => u32::from(a != b),
        "lt_u" => u32::from(a < b),
        "le_u" => u32::from(a <= b),
        "lt_s" => u32::from(sa < sb),
        "le_s" => u32::from(sa <= sb),
        "clz" => a.leading_zeros(),
        "ctz" => a.trailing_zeros(),
        "popcnt" => a.count_ones(),
        "extend8_s" => a as i8 as u32,
        _ => a as i16 as u32,
    }
}

const BINARY: [&str; 17] = [
    "add", "sub", "mul", "and", "or", "xor", "shl", "shr_u", "shr_s", "rotl", "rotr", "eq", "ne", "lt_u", "le_u",
    "lt_s", "le_s",
];
const UNARY: [&str; 5] = ["clz", "ctz", "popcnt", "extend8_s", "extend16_s"];

#[test]
fn arithmetic_agrees_with_the_computer() {
    let two = |op: &str| {
        format!("(func (export \"{op}\") (param i32 i32) (result i32) (i32.{op} (local.get 0) (local.get 1)))")
    };
    let one = |op: &str| format!("(func (export \"{op}\") (param i32) (result i32) (i32.{op} (local.get 0)))");
    let before = module(&format!("(module {} {})", BINARY.map(two).concat(), UNARY.map(one).concat()));
    for narrow in NARROW {
        let after = lowered(&before, narrow);
        let mut rng = Rng::new(1);
        for _ in 0..200 {
            let (a, b) = (rng.interesting() as u32, rng.interesting() as u32);
            for op in BINARY {
                assert_eq!(call(&after, op, &[a, b], narrow.bits), expected(op, a, b), "{op} {a:#x} {b:#x} {narrow:?}");
            }
            for op in UNARY {
                assert_eq!(call(&after, op, &[a], narrow.bits), expected(op, a, 0), "{op} {a:#x} {narrow:?}");
            }
        }
    }
}

/// All amounts, of whole values and of parts of them, with parts of the result looked at.
#[test]
fn shifts_by_constants_agree() {
    for op in ["shl", "shr_u", "shr_s", "rotl", "rotr"] {
        let mut text = String::new();
        let mut wanted: Vec<(String, u32, u32, u32)> = Vec::new();
        for n in 0..32 {
            for (k, (within, of)) in
                [(!0, !0), (0xff, !0), (!0, 0xff), (0xff00, !0), (!0, 0xff_0000), (!0, 0x8000_00ff)]
                    .into_iter()
                    .enumerate()
            {
                text += &format!(
                    "(func (export \"{n} {k}\") (param i32) (result i32) (i32.and (i32.const {of}) (i32.{op}
                      (i32.and (local.get 0) (i32.const {within})) (i32.const {n}))))"
                );
                wanted.push((format!("{n} {k}"), n, within, of));
            }
        }
        let before = module(&format!("(module {text})"));
        for narrow in NARROW {
            let after = lowered(&before, narrow);
            let mut rng = Rng::new(2);
            for (name, n, within, of) in &wanted {
                for _ in 0..4 {
                    let a = rng.interesting() as u32;
                    let got = call(&after, name, &[a], narrow.bits);
                    assert_eq!(got, expected(op, a & within, *n) & of, "{op} {name} of {a:#x}, {narrow:?}");
                }
            }
        }
    }
}

#[test]
fn memory_loops_and_selections_agree() {
    let before = module(
        "(module (memory 1) (global $g (mut i32) (i32.const 0x12345678))
        (func (export \"f\") (param i32 i32) (result i32) (local i32)
          (i32.store offset=300 (i32.and (local.get 0) (i32.const 0xfc)) (local.get 1))
          (i32.store16 offset=40 (i32.const 4) (local.get 0))
          (loop $again
            (local.set 2 (i32.add (i32.mul (local.get 2) (i32.const 5))
              (select (global.get $g) (local.get 1) (i32.lt_s (local.get 2) (local.get 0)))))
            (global.set $g (i32.rotl (global.get $g) (i32.and (local.get 1) (i32.const 7))))
            (local.set 1 (i32.shr_u (local.get 1) (i32.const 3)))
            (br_if $again (i32.gt_u (local.get 1) (i32.const 2))))
          (i32.xor (local.get 2) (i32.xor
            (i32.load offset=300 (i32.and (local.get 0) (i32.const 0xfc)))
            (i32.sub (i32.load16_s offset=44 (i32.const 0)) (i32.load8_s (i32.const 45)))))))",
    );
    let id = before.export("f").expect("exported");
    for narrow in NARROW {
        let after = lowered(&before, narrow);
        let mut rng = Rng::new(3);
        for _ in 0..100 {
            let (a, b) = (rng.interesting() as u32, rng.interesting() as u32);
            let want = Interp::new(&before, 1_000_000).call(id, &[a.into(), b.into()]);
            let got = call(&after, "f", &[a, b], narrow.bits);
            assert_eq!(Outcome::Values(vec![got.into()]), want, "{a:#x} {b:#x} {narrow:?}");
        }
    }
}

/// Bytes in wider variables become operations on bytes, and no more of them than the program has.
#[test]
fn only_what_is_looked_at_is_made() {
    let before = module(
        "(module (memory 1) (func (export \"f\") (param i32 i32)
          (i32.store8 (local.get 0) (i32.xor (i32.shr_u (local.get 1) (i32.const 16)) (i32.add (local.get 1) (i32.const 3))))))",
    );
    let after = lowered(&before, NARROW[0]);
    let f = func(&after, "f");
    assert_eq!(count(f, |op| matches!(op, Op::Chain(..))), 1, "{f}");
    assert_eq!(count(f, |op| matches!(op, Op::Store(_))), 1, "{f}");
}

/// A counter is as many limbs as its values need, downwards too; not if its loop may go on for longer.
#[test]
fn counters_are_short() {
    for (start, step, end, limbs) in [(0, 1, 16, 1), (255, -1, 0, 1), (0, 16, 1024, 2), (0, 1, 1024, 4)] {
        let before = module(&format!(
            "(module (memory 1) (func (export \"f\") (param i32) (local i32)
              (local.set 1 (i32.const {start}))
              (loop $again
                (i32.store8 offset=100 (local.get 0) (i32.load8_u (i32.const 9)))
                (local.set 1 (i32.add (local.get 1) (i32.const {step})))
                (br_if $again (i32.ne (local.get 1) (i32.const {end}))))))"
        ));
        let f = lowered(&before, NARROW[0]);
        let f = func(&f, "f");
        let header = f.layout.iter().map(|&b| f.blocks[b].params.len()).skip(1).max();
        assert_eq!(header, Some(limbs), "{start} {step} {end}: {f}");
    }
}

/// A table's entries, and the code addresses in them, are found by their lower halves.
#[test]
fn calls_through_tables_of_functions_agree() {
    let before = module(
        "(module (memory 1) (type $t (func (param i32 i32) (result i32))) (table 3 funcref)
        (elem (i32.const 0) $add $sub $rotl)
        (func $add (type $t) (i32.add (local.get 0) (local.get 1)))
        (func $sub (type $t) (i32.sub (local.get 0) (local.get 1)))
        (func $rotl (type $t) (i32.rotl (local.get 0) (local.get 1)))
        (func (export \"f\") (param i32 i32) (result i32)
          (call_indirect (type $t) (local.get 0) (local.get 1)
            (i32.rem_u (i32.and (local.get 0) (i32.const 0xff)) (i32.const 3)))))",
    );
    let id = before.export("f").expect("exported");
    for narrow in NARROW {
        let after = lowered(&before, narrow);
        assert_eq!(count(func(&after, "f"), |op| matches!(op, Op::CallPtr(_))), 1);
        let mut rng = Rng::new(4);
        for _ in 0..100 {
            let (a, b) = (rng.interesting() as u32, rng.interesting() as u32);
            let want = Interp::new(&before, 1_000_000).call(id, &[a.into(), b.into()]);
            let got = call(&after, "f", &[a, b], narrow.bits);
            assert_eq!(Outcome::Values(vec![got.into()]), want, "{a:#x} {b:#x} {narrow:?}");
        }
    }
}
