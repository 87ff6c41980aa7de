//! Nests whose inner loops go over a span from where the outer one stands, and small loops that are made larger.

mod support;

use ciphermill_ir::{BinOp, Block, CmpOp, Func, Module, Op};
use ciphermill_opt::{LoopTrips, Options, Unroll, optimise, run_pass};
use support::same;
use support::text::{count, func, module};

/// Any profile will do: loops are not asked for by it.
fn options(loop_size: u32) -> Options {
    let profile = vec![LoopTrips { first: 0, last: 0, trips: 0 }];
    Options { unroll: Unroll { profile, loop_size, ..Unroll::default() }, ..Options::default() }
}

/// Groups of words from 0 up to a bound: `for (i = 0; i < bound; i = j + gap) for (j = i; j < i + span; j++) ..`, as a
/// compiler rotates them; what is added up tells words and their order apart.
fn groups(from: &str, asks: &str, step: u32) -> String {
    format!(
        "(module (func (export \"f\") (param $bound i32) (result i32)
          (local $i i32) (local $j i32) (local $end i32) (local $x i32)
          (local.set $i {from})
          (loop $outer
            (local.set $j (local.get $i))
            (local.set $end (i32.add (local.get $i) (i32.const 6)))
            (loop $inner
              (local.set $x (i32.add (i32.mul (local.get $x) (i32.const 0x9E3779B1)) (local.get $j)))
              (br_if $inner
                (i32.lt_u (local.tee $j (i32.add (local.get $j) (i32.const {step}))) (local.get $end))))
            (local.set $i (i32.add (local.get $j) (i32.const 6)))
            (br_if $outer ({asks})))
          (i32.xor (local.get $x) (local.get $j))))"
    )
}

const BELOW: &str = "i32.lt_u (local.get $i) (i32.const 100)";

fn after(before: &Module, options: &Options, passes: &[&str]) -> Module {
    let mut after = before.clone();
    for pass in ["simplify_cfg", "fold", "gvn"].iter().chain(passes).chain(&["fold", "gvn", "dce"]) {
        run_pass(&mut after, options, pass);
    }
    after
}

fn compares(func: &Func, op: CmpOp) -> usize {
    count(func, |o| o == Op::Cmp(op))
}

#[test]
fn a_span_from_a_bounded_start_has_a_counter_of_its_own() {
    for step in [1, 2, 4, 5] {
        let before = module(&groups("(i32.const 0)", BELOW, step));
        let once = after(&before, &options(0), &["spans"]);
        let f = func(&once, "f");
        // The question of the outer loop alone still asks what is less.
        assert_eq!((compares(f, CmpOp::LtU), compares(f, CmpOp::Ne)), (1, 1), "{step}: {f}");
        same(&before, &once, false, &[vec![0]], "spans");
        // The inner loop and then the outer one have constant counts.
        let mut whole = before.clone();
        let options = Options { unroll: Unroll { full_budget: 1000, ..options(0).unroll }, ..options(0) };
        optimise(&mut whole, &options).expect("nothing to lower");
        assert_eq!(func(&whole, "f").layout.len(), 1, "{step}: {}", func(&whole, "f"));
        same(&before, &whole, false, &[vec![0]], "unrolled");
    }
}

#[test]
fn a_span_that_may_wrap_around_stays() {
    let anywhere = "(local.get $bound)";
    let refused = [
        // Nobody says where it begins.
        groups(anywhere, BELOW, 1),
        // Nor where it goes on.
        groups("(i32.const 0)", "i32.ne (local.get $i) (i32.const 120)", 1),
        // Below, but not without a sign.
        groups("(i32.const 0)", "i32.lt_s (local.get $i) (i32.const 100)", 1),
        // What is asked is the other way round.
        groups("(i32.const 0)", "i32.lt_u (i32.const 200) (local.get $i)", 1),
    ];
    for text in refused {
        let before = module(&text);
        let f = func(&before, "f").clone();
        let after = after(&before, &options(0), &["spans"]);
        let asked = |f: &Func| [CmpOp::LtU, CmpOp::LtS, CmpOp::Ne].map(|op| compares(f, op));
        assert_eq!(asked(func(&after, "f")), asked(&f), "{f}");
        let starts = [0, 1, 0xffff_fff0, 0xffff_fffd].map(|start| vec![start]);
        same(&before, &after, false, &starts, "stays");
    }
}

/// `turns` times a product, an exclusive or and a sum; two values change places on the way, and one leaves.
fn small(turns: u32) -> String {
    format!(
        "(module (func (export \"f\") (param $x i32) (result i32) (local $n i32) (local $y i32) (local $z i32)
          (loop $l
            (local.set $z (i32.xor (i32.mul (local.get $x) (i32.const 0x9E3779B1)) (local.get $n)))
            (local.set $x (i32.add (local.get $y) (i32.const 3)))
            (local.set $y (local.get $z))
            (br_if $l (i32.ne (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const {turns}))))
          (i32.sub (i32.add (local.get $z) (local.get $x)) (local.get $n))))"
    )
}

#[test]
fn a_small_loop_takes_several_turns_at_once() {
    // A turn counts as 9: five operations and the branch, three more for the product.
    for (turns, size, products) in [(24, 30, 4), (24, 10, 2), (24, 100, 12), (24, 9, 1), (35, 30, 5), (2, 30, 1)] {
        let before = module(&small(turns));
        let after = after(&before, &options(size), &["factor"]);
        let f = func(&after, "f");
        assert_eq!(count(f, |op| op == Op::Bin(BinOp::Mul)), products, "{turns} {size}: {f}");
        same(&before, &after, false, &[vec![0], vec![7], vec![0xDEAD_BEEF]], "factor");
    }
}

#[test]
fn turns_that_are_left_over_stand_before_a_small_loop() {
    // Products before the loop and in it.
    for (turns, size, wanted) in [(37, 30, [1, 4]), (239, 30, [3, 4]), (7, 30, [1, 3]), (5, 30, [1, 2])] {
        let before = module(&small(turns));
        let after = after(&before, &options(size), &["factor"]);
        let f = func(&after, "f");
        let products = |b: &Block| f.blocks[*b].insts.iter().filter(|&&i| f.insts[i].op == Op::Bin(BinOp::Mul)).count();
        let each: Vec<usize> = f.layout.iter().map(products).filter(|n| *n > 0).collect();
        assert_eq!(each, wanted, "{turns} {size}: {f}");
        same(&before, &after, false, &[vec![0], vec![7], vec![0xDEAD_BEEF]], "factor");
    }
}

/// A byte is multiplied by x over GF(2^8) so often, and a counter of a byte says so.
fn by_bytes(turns: u32, goes: &str) -> String {
    format!(
        "(module (func (export \"f\") (param $x i32) (result i32) (local $n i32)
          (local.set $n (i32.const {turns}))
          (block $out (loop $l
            (local.set $x (i32.xor (i32.shl (local.get $x) (i32.const 1))
                                   (i32.mul (i32.shr_u (local.get $x) (i32.const 7)) (i32.const 0x1B))))
            (local.set $n (i32.and (i32.sub (local.get $n) (i32.const 1)) (i32.const 255)))
            {goes}))
          (local.get $x)))"
    )
}

#[test]
fn a_small_loop_that_counts_by_bytes_counts_by_itself() {
    let ends = "(br_if $out (i32.eqz (local.get $n))) (br $l)";
    for (turns, goes) in [(245, "(br_if $l (local.get $n))"), (245, ends), (6, "(br_if $l (local.get $n))"), (64, ends)]
    {
        let before = module(&by_bytes(turns, goes));
        let after = after(&before, &options(30), &["factor", "dce"]);
        let f = func(&after, "f");
        assert_eq!(count(f, |op| op == Op::Bin(BinOp::And)), 0, "{turns}: {f}");
        same(&before, &after, false, &[vec![0], vec![7], vec![0xDEAD_BEEF]], "factor");
    }
}
