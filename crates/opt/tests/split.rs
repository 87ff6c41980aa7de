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

/// Does each block stand behind those that dominate it? The stages behind rely on it.
fn in_order(func: &Func) -> bool {
    let cfg = Cfg::new(func);
    let doms = Dominators::new(func, &cfg);
    let behind = |at: usize| func.layout[at + 1..].iter().all(|&later| !doms.dominates(later, func.layout[at]));
    (0..func.layout.len()).all(behind)
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
    let begins = [0, 3, 15, 16, 31, 32, 47, 64, 0xffff_fff1];
    counts.iter().flat_map(|&n| begins.map(|i| vec![0x1234_5678 + n, i, n])).collect()
}

#[test]
fn each_side_becomes_a_loop_of_one_block() {
    for (condition, next) in [
        ("(i32.and (local.get $i) (i32.const 16))", COUNT),
        ("(i32.eqz (i32.and (local.get $i) (i32.const 16)))", COUNT),
        ("(i32.lt_u (local.get $i) (i32.const 16))", COUNT),
        ("(i32.lt_u (local.get $i) (i32.const 16))", &[COUNT; 3].concat()),
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
            assert!(in_order(func(&after, "f")), "seed {seed}, {name}\n{after}");
            same(&before, &after, false, &inputs(), &format!("seed {seed}, {name}\n{before}\n{after}"));
            cleaned(&mut after);
        }
        same(&before, &after, false, &inputs(), &format!("seed {seed}, cleaned up"));
    }
    assert!(divided > 50 && joined > 10, "{divided} divided, {joined} joined");
}

/// `f(x, i, n)`: two tables that selections choose, one written at the counter and one read at random.
fn chosen(index: &str, other: &str) -> String {
    format!(
        "(module (memory 1)
           (func (export \"f\") (param $x i32) (param $i i32) (param $n i32) (result i32) (local $c i32) (local $p i32)
             (loop $l
               (local.set $c (i32.lt_u (local.get $i) (i32.const 64)))
               (local.set $p (i32.add {index} (select (i32.const 1024) (i32.const 2048) (local.get $c))))
               (i32.store (local.get $p) (i32.add (i32.load (local.get $p)) (i32.load (i32.add
                 (select (i32.const 2048) {other} (local.get $c)) (i32.and (local.get $x) (i32.const 0xfc))))))
               (local.set $x (i32.add (i32.mul (local.get $x) (i32.const 0x01000193)) (i32.load (local.get $p))))
               (local.set $i (i32.and (i32.add (local.get $i) (i32.const 2)) (i32.const 127)))
               (br_if $l (i32.gt_s (local.tee $n (i32.sub (local.get $n) (i32.const 1))) (i32.const 0))))
             (local.get $x)))"
    )
}

#[test]
fn addresses_that_a_lasting_condition_selects_are_known_on_either_side() {
    let index = "(i32.shl (i32.and (local.get $i) (i32.const 63)) (i32.const 2))";
    let inputs: Vec<Vec<u64>> = [1, 2, 31, 32, 33, 100]
        .iter()
        .flat_map(|&n| [0, 1, 62, 64, 65, 128, 0xffff_fffe].map(|i| vec![0x1234_5678 + n, i, n]))
        .collect();
    for other in ["(i32.const 1024)", "(i32.add (i32.and (local.get $n) (i32.const 4)) (i32.const 1024))"] {
        let before = module(&chosen(index, other));
        let mut after = before.clone();
        optimise(&mut after, &options()).expect("nothing to lower");
        let found = loops(func(&after, "f"));
        assert_eq!(found.iter().filter(|&&n| n == 1).count(), 2, "{found:?}\n{after}");
        assert!(!after.to_string().contains(" = select "), "{after}");
        same(&before, &after, false, &inputs, other);
    }
    // A condition that lasts for eight iterations is enough for a long loop.
    let soon =
        chosen(index, "(i32.const 1024)").replace("(i32.const 2)) (i32.const 127)", "(i32.const 8)) (i32.const 127)");
    let much = "(local.set $x (i32.add (i32.mul (local.get $x) (i32.const 3)) (i32.const 5)))".repeat(150);
    let long = soon.replace("(local.set $i (i32.and", &format!("{much} (local.set $i (i32.and"));
    let long_options = Options { unroll: Unroll { full_budget: 4000, ..options().unroll }, ..options() };
    for (text, divides) in [(soon, false), (long, true)] {
        let before = module(&text);
        let mut after = before.clone();
        run_pass(&mut after, &long_options, "simplify_cfg");
        assert_eq!(run_pass(&mut after, &long_options, "split"), divides, "{after}");
        same(&before, &after, false, &inputs, "a condition that lasts for less");
    }
    // One that does not last, and one that chooses no address.
    let often = chosen(index, "(i32.const 1024)").replace("(i32.const 127)", "(i32.const 3)").replace("64)", "2)");
    let value = "(module (func (export \"f\") (param $x i32) (param $i i32) (param $n i32) (result i32)
        (loop $l
          (local.set $x (i32.mul (i32.add (local.get $x)
            (select (local.get $i) (i32.const 9) (i32.lt_u (local.get $i) (i32.const 64)))) (i32.const 77)))
          (local.set $i (i32.and (i32.add (local.get $i) (i32.const 2)) (i32.const 127)))
          (br_if $l (i32.gt_s (local.tee $n (i32.sub (local.get $n) (i32.const 1))) (i32.const 0))))
        (local.get $x)))";
    for text in [&*often, value] {
        let mut module = module(text);
        run_pass(&mut module, &options(), "simplify_cfg");
        assert!(!run_pass(&mut module, &options(), "split"), "{module}");
    }
}

/// The condition is known where the loop begins, which makes another block the first of it.
#[test]
fn blocks_stand_behind_those_that_dominate_them() {
    let next = format!("(br_if $out (i32.eqz (local.get $x))) {COUNT}");
    let text = generator("(i32.and (local.get $i) (i32.const 16))", [ADD, XOR], &next)
        .replace("(block $out", "(local.set $i (i32.const 3)) (block $out");
    let before = module(&text);
    let mut after = before.clone();
    optimise(&mut after, &options()).expect("nothing to lower");
    assert!(in_order(func(&after, "f")), "{after}");
    same(&before, &after, false, &inputs(), "a known beginning");
}

/// In each half of the ring the counter is known to be in it; where the loop begins it may be anywhere.
#[test]
fn a_counter_is_known_by_the_half_of_its_ring() {
    let step = "(local.set $i (i32.and (i32.add (local.get $i) (i32.const 4)) (i32.const 127)))";
    let table = |begin: u32| {
        format!(
            "(i32.store (i32.add (i32.shl (local.get $i) (i32.const 2)) (i32.const 4096)) (local.get $x))
             (local.set $x (i32.add (local.get $x) (i32.load offset={begin} (i32.and (local.get $y) (i32.const 0xfc)))))
             (local.set $y (i32.add (local.get $y) (local.get $x)))"
        )
    };
    let before = module(&generator("(i32.lt_u (local.get $i) (i32.const 64))", [&table(4352), &table(4096)], step));
    let mut after = before.clone();
    optimise(&mut after, &options()).expect("nothing to lower");
    let text = after.to_string();
    // Multiples of 4 below 64, on either side.
    assert!(text.matches("const 0x3c").count() + text.matches("const 0xf0").count() >= 2, "{text}");
    let inputs: Vec<Vec<u64>> = [1, 2, 15, 16, 17, 50]
        .iter()
        .flat_map(|&n| [0, 1, 60, 64, 66, 124, 128, 0x3fff_fffc].map(|i| vec![0x1234_5678 + n, i, n]))
        .collect();
    same(&before, &after, false, &inputs, "halves");
}
