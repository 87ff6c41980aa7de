//! Loops of every form a compiler writes, unrolled, against the same loops
//! left alone: all comparisons, both directions, steps of one and more, tests
//! before and after the body and on the counter before and after its step, and
//! counts from none to more than two iterations of the unrolled loop, at both ends
//! of the number circle.

mod support;

use ciphermill_ir::{Module, Op};
use ciphermill_opt::{Options, Unroll, optimise};
use support::interp::Outcome;
use support::text::{count, func, module};
use support::{run, same};

/// Where the test stands, and what it looks at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shape {
    /// `do { } while (test(++i))`
    EndNew,
    /// `do { } while (test(i++))`
    EndOld,
    /// `while (test(i)) { }`
    Start,
    /// `do { half } while (test) { other half }`
    Middle,
}

const SHAPES: [Shape; 4] = [Shape::EndNew, Shape::EndOld, Shape::Start, Shape::Middle];

/// A loop from `first` while `first + turns * step` compares so with `bound`;
/// the operands are WebAssembly expressions.
fn counted(ty: &str, shape: Shape, test: &str, step: i64, first: &str, bound: &str) -> String {
    let body = format!(
        "(local.set $acc ({ty}.add ({ty}.rotl (local.get $acc) ({ty}.const 5)) (local.get $i)))
         (local.set $turns (i32.add (local.get $turns) (i32.const 1)))"
    );
    let next = format!("(local.set $i ({ty}.add (local.get $i) ({ty}.const {step})))");
    let ask = format!("({ty}.{test} (local.get $i) (local.get $n))");
    let looped = match shape {
        Shape::EndNew => format!("(loop $l {body} {next} (br_if $l {ask}))"),
        Shape::EndOld => format!("(loop $l {body} (local.set $go {ask}) {next} (br_if $l (local.get $go)))"),
        Shape::Start => format!("(block $o (loop $l (br_if $o (i32.eqz {ask})) {body} {next} (br $l)))"),
        Shape::Middle => format!("(block $o (loop $l {body} {next} (br_if $o (i32.eqz {ask})) {body} (br $l)))"),
    };
    format!(
        "(module (func (export \"f\") (param $p {ty}) (param $q {ty}) (result {ty} i32)
           (local $i {ty}) (local $n {ty}) (local $acc {ty}) (local $turns i32) (local $go i32)
           (local.set $i {first}) (local.set $n {bound}) (local.set $acc (local.get $p))
           {looped}
           (local.get $acc) (local.get $turns)))"
    )
}

fn unrolled(before: &Module, unroll: Unroll, strict_traps: bool) -> Module {
    let mut after = before.clone();
    let options = Options { word_bits: 64, strict_traps, unroll, ..Options::default() };
    optimise(&mut after, &options).expect("nothing to lower");
    after
}

/// Pairs of first value and bound whose loops are short, wherever they lie.
fn arguments(ty: &str, step: i64) -> Vec<Vec<u64>> {
    let (mask, half) = if ty == "i32" { (0xFFFF_FFFF, 1u64 << 31) } else { (u64::MAX, 1 << 63) };
    let mut pairs = Vec::new();
    for from in [0u64, 5, half - 3, half, mask - 6, mask] {
        for turns in -1..8i64 {
            for off in 0..if step.abs() == 1 { 1 } else { 2i64 } {
                let to = from.wrapping_add(step.wrapping_mul(turns) as u64).wrapping_add(off as u64);
                pairs.push(vec![from & mask, to & mask]);
            }
        }
    }
    pairs
}

const TESTS: [&str; 9] = ["ne", "lt_u", "lt_s", "le_u", "le_s", "gt_u", "gt_s", "ge_u", "ge_s"];

#[test]
fn every_form_of_counted_loop_turns_as_often_as_before() {
    let jam = |jam| Unroll { jam, ..Unroll::default() };
    for (ty, steps) in [("i32", &[1, -1, 2, -3, 16][..]), ("i64", &[1, -16])] {
        for shape in SHAPES {
            for test in TESTS {
                for &step in steps {
                    let wat = counted(ty, shape, test, step, "(local.get $p)", "(local.get $q)");
                    let before = module(&wat);
                    let arguments = arguments(ty, step);
                    for (k, strict) in [(2, false), (3, true)] {
                        let after = unrolled(&before, jam(k), strict);
                        same(&before, &after, strict, &arguments, &format!("{ty} {shape:?} {test} {step} by {k}"));
                    }
                }
            }
        }
    }
}

/// The `rotl` of the body tells how many bodies there are.
fn bodies(module: &Module) -> usize {
    count(func(module, "f"), |op| op == Op::Bin(ciphermill_ir::BinOp::RotL))
}

#[test]
fn forms_that_count_towards_their_bound_are_unrolled() {
    for shape in SHAPES {
        let own = if shape == Shape::Middle { 2 } else { 1 };
        for test in TESTS {
            for step in [1, -1, 2, -3] {
                let wat = counted("i32", shape, test, step, "(local.get $p)", "(local.get $q)");
                let after = unrolled(&module(&wat), Unroll { jam: 3, ..Unroll::default() }, false);
                let towards = match &test[..2] {
                    "ne" => true,
                    "lt" | "le" => step > 0,
                    _ => step < 0,
                };
                // The middle of the loop is asked once more before its end.
                let wanted = if towards { own + 3 * own } else { own };
                let found = bodies(&after);
                assert!(found == wanted, "{shape:?} {test} {step}: {found} bodies\n{after}");
            }
        }
    }
}

#[test]
fn constant_counts_leave_no_loop() {
    let cases = [
        // Turns, comparison, step, first value, bound.
        (1, "lt_u", 1, 9, 5i64),
        (10, "ne", -1, 10, 0),
        (10, "lt_u", 1, 0, 10),
        (4, "lt_s", 3, -5, 6),
        (5, "ge_s", -4, 9, -10),
        (7, "le_u", 16, 0, 100),
        // Around the end of the number circle.
        (8, "ne", 1, -3, 5),
        (2, "gt_u", 1, -2, 10),
        (2, "lt_u", 0x7000_0000, 0, 0x8000_0000),
        (6, "ne", 0x2000_0000, 0x4000_0000, 0),
    ];
    for (turns, test, step, first, bound) in cases {
        let constant = |c: i64| format!("(i32.const {})", c as i32);
        let wat = counted("i32", Shape::EndNew, test, step, &constant(first), &constant(bound));
        let before = module(&wat);
        let after = unrolled(&before, Unroll { full_budget: 200, ..Unroll::default() }, true);
        let f = func(&after, "f");
        let found = run(&after, &before, after.export("f").expect("f is exported"), &[0, 0]).outcome;
        let Outcome::Values(values) = found else { panic!("{test} {step}: {found:?}") };
        assert_eq!((f.layout.len(), values[1]), (1, turns), "{test} {step} from {first} to {bound}\n{f}");
        same(&before, &after, true, &[vec![0, 0]], "constant counts");
    }
}

#[test]
fn the_budget_bounds_what_comes_out() {
    let wat = counted("i32", Shape::EndNew, "ne", -1, "(i32.const 10)", "(i32.const 0)");
    let bodies_for = |full_budget| bodies(&unrolled(&module(&wat), Unroll { full_budget, ..Unroll::default() }, false));
    // A body is rotl, two adds, the counter, and the branch.
    assert_eq!(bodies_for(40), 1);
    assert_eq!(bodies_for(60), 10);
}

#[test]
fn endless_loops_stay_endless() {
    for (test, step) in [("ne", 2), ("lt_u", -1), ("ge_u", 1)] {
        let bound = if test == "lt_u" { "(i32.const -1)" } else { "(i32.const 0)" };
        let first = "(i32.const 1)";
        let wat = counted("i32", Shape::EndNew, test, step, first, bound);
        let before = module(&wat);
        let after = unrolled(&before, Unroll { full_budget: 500, jam: 4, ..Unroll::default() }, false);
        let id = after.export("f").expect("f is exported");
        let (was, is) = (run(&before, &before, id, &[0, 0]).outcome, run(&after, &before, id, &[0, 0]).outcome);
        assert_eq!(was == Outcome::OutOfFuel, is == Outcome::OutOfFuel, "{test} {step}");
    }
}
