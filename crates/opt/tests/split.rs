//! Loops divided by a condition that lasts, each on the smallest module that shows it, and random ones.

mod support;

use ciphermill_ir::verify::verify;
use ciphermill_ir::{Cfg, Dominators, Func, Loops, Module};
use ciphermill_opt::{Options, Unroll, optimise, run_pass};
use support::random::Rng;
use support::same;
use support::text::{func, module};

/// Numbers of blocks of the function's loops, outer first.
fn loops(func: &Func) -> Vec<usize> {
    let cfg = Cfg::new(func);
    let doms = Dominators::new(func, &cfg);
    Loops::new(func, &cfg, &doms).loops.values().map(|l| l.blocks.len()).collect()
}

fn options() -> Options {
    Options { unroll: Unroll { full_budget: 400, promote: true, ..Unroll::default() }, ..Options::default() }
}

/// `f(x, i, n)`: `n` iterations with two sides between which `condition` decides, behind which `next` is run.
fn generator(condition: &str, sides: [&str; 2], next: &str) -> String {
    format!(
        "(module (memory 1)
           (func (export \"f\") (param $x i32) (param $i i32) (param $n i32) (result i32) (local $y i32)
             (block $out
               (loop $l
                 (if {condition} (then {}) (else {}))
                 {next}
                 (br_if $l (i32.gt_s (local.tee $n (i32.sub (local.get $n) (i32.const 1))) (i32.const 0)))))
             (i32.add (local.get $x) (local.get $y))))",
        sides[0], sides[1]
    )
}

const ADD: &str = "(local.set $x (i32.add (i32.rotl (local.get $x) (i32.const 5)) (local.get $i)))
    (i32.store offset=64 (i32.and (local.get $x) (i32.const 0xffc)) (local.get $y))";
const XOR: &str = "(local.set $y (i32.xor (local.get $y) (i32.mul (local.get $x) (i32.const 77))))
    (i32.store offset=128 (i32.and (local.get $y) (i32.const 0xffc)) (local.get $i))";
const COUNT: &str = "(local.set $i (i32.and (i32.add (local.get $i) (i32.const 1)) (i32.const 31)))";
const STORED: &str = "(i32.store offset=8 (i32.const 0) (i32.and (i32.add (i32.load offset=8 (i32.const 0)) (i32.const 2)) (i32.const 63)))";

fn inputs() -> Vec<Vec<u64>> {
    let counts = [0, 1, 2, 3, 7, 15, 16, 17, 18, 33, 70];
    counts.iter().flat_map(|&n| [0, 3, 15, 16, 31].map(|i| vec![0x1234_5678 + n, i, n])).collect()
}

#[test]
fn each_side_becomes_a_loop_of_one_block() {
    for (condition, next) in [
        ("(i32.and (local.get $i) (i32.const 16))", COUNT),
        ("(i32.eqz (i32.and (local.get $i) (i32.const 16)))", COUNT),
        ("(i32.lt_u (local.get $i) (i32.const 16))", COUNT),
        ("(i32.lt_u (i32.load offset=8 (i32.const 0)) (i32.const 32))", STORED),
    ] {
        let before = module(&generator(condition, [ADD, XOR], next));
        let mut after = before.clone();
        optimise(&mut after, &options()).expect("nothing to lower");
        let found = loops(func(&after, "f"));
        assert_eq!(found.iter().filter(|&&n| n == 1).count(), 2, "{condition}: {found:?}\n{after}");
        same(&before, &after, false, &inputs(), condition);
    }
}

#[test]
fn a_condition_that_does_not_last_stays() {
    for condition in [
        "(i32.and (local.get $i) (i32.const 1))",
        "(i32.and (local.get $x) (i32.const 16))",
        "(i32.lt_u (local.get $i) (i32.const 3))",
        "(i32.eq (local.get $i) (i32.const 16))",
    ] {
        let before = module(&generator(condition, [ADD, XOR], COUNT));
        let mut after = before.clone();
        run_pass(&mut after, &options(), "simplify_cfg");
        assert!(!run_pass(&mut after, &options(), "split"), "{condition}");
    }
}

/// Random sides, conditions and counters: some leave the loop in the middle, have loops of their own, or change
/// what the condition was thought to hang on.
#[test]
fn random_loops_mean_the_same() {
    let mut divided = 0;
    let mut joined = 0;
    for seed in 0..400 {
        let mut rng = Rng::new(seed ^ 0x5eed_0003);
        let mut pick = |of: &[&str]| of[rng.below(of.len())].to_owned();
        let bits = ["4", "8", "16", "24", "32"];
        let counter = pick(&[
            "(local.get $i)",
            "(local.get $i)",
            "(i32.load offset=8 (i32.const 0))",
            "(i32.load8_u offset=8 (i32.const 0))",
        ]);
        let (bit, limit) = (pick(&bits), pick(&bits));
        let condition = pick(&[
            &format!("(i32.and {counter} (i32.const {bit}))"),
            &format!("(i32.eqz (i32.and {counter} (i32.const {bit})))"),
            &format!("(i32.lt_u {counter} (i32.const {limit}))"),
            &format!("(i32.ge_s {counter} (i32.const {limit}))"),
            &format!("(i32.gt_u (i32.const {limit}) {counter})"),
        ]);
        let some = |pick: &mut dyn FnMut(&[&str]) -> String| {
            let mut side = String::new();
            for _ in 0..3 {
                side += &pick(&[
                    ADD,
                    XOR,
                    "",
                    "(br_if $out (i32.eq (i32.and (local.get $x) (i32.const 15)) (i32.const 3)))",
                    "(i32.store offset=8 (i32.const 0) (local.get $y))",
                    "(local.set $i (i32.xor (local.get $i) (local.get $n)))",
                    "(local.set $y (i32.const 5)) (loop $in (local.set $x (i32.mul (local.get $x) (i32.const 3)))
                       (br_if $in (local.tee $y (i32.sub (local.get $y) (i32.const 1)))))",
                    "(if (i32.and (local.get $x) (i32.const 1)) (then (local.set $y (local.get $n))))",
                    "(i32.store8 offset=9 (local.get $i) (local.get $x))",
                ]);
            }
            side
        };
        let sides = [some(&mut pick), some(&mut pick)];
        let next = pick(&[
            COUNT,
            STORED,
            &format!("{COUNT}{STORED}"),
            &format!("{STORED}(br_if $out (i32.eqz (local.get $x)))"),
        ]);
        let before = module(&generator(&condition, [&sides[0], &sides[1]], &next));
        let mut after = before.clone();
        let cleaned = |m: &mut Module| {
            for name in ["simplify_cfg", "fold", "gvn", "loads", "dce", "simplify_cfg"] {
                run_pass(m, &options(), name);
            }
        };
        cleaned(&mut after);
        for name in ["split", "one_exit"] {
            let changed = run_pass(&mut after, &options(), name);
            divided += u32::from(changed && name == "split");
            joined += u32::from(changed && name == "one_exit");
            verify(&after).unwrap_or_else(|e| panic!("seed {seed}, {name}: {e}\n{before}\n{after}"));
            same(&before, &after, false, &inputs(), &format!("seed {seed}, {name}\n{before}\n{after}"));
            cleaned(&mut after);
        }
        same(&before, &after, false, &inputs(), &format!("seed {seed}, cleaned up"));
    }
    assert!(divided > 50 && joined > 10, "{divided} divided, {joined} joined");
}
