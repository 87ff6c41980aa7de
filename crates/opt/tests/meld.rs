//! Sides of a branch that become one, and recursion that becomes a loop, each on the smallest module that shows it.

mod support;

use ciphermill_ir::{Func, Module, Op};
use ciphermill_opt::{Options, Unroll, optimise};
use support::same;
use support::text::{count, func, module};

/// What the first of the module's functions becomes, run beside what it was.
fn after(wat: &str, options: &Options, arguments: &[Vec<u64>]) -> Func {
    let before = module(wat);
    let mut after: Module = before.clone();
    optimise(&mut after, options).expect("nothing to lower");
    same(&before, &after, options.strict_traps, arguments, wat);
    func(&after, "f").clone()
}

fn melding(most: u32) -> Options {
    Options { unroll: Unroll { meld: most, ..Unroll::default() }, ..Options::default() }
}

fn arguments() -> Vec<Vec<u64>> {
    [0, 1, 7].iter().flat_map(|&c| [vec![c, 0, 5], vec![c, 40, 77], vec![c, 4, 0x8000_0001]]).collect()
}

/// `c ? a : b` on the parameters c, i and x.
fn sides(a: &str, b: &str) -> String {
    format!(
        "(module (memory 1) (func (export \"f\") (param $c i32) (param $i i32) (param $x i32) (result i32)
           (if (local.get $c) (then {a}) (else {b}))
           (local.get $x)))"
    )
}

/// Renews an entry of a table, and picks one of another by it.
fn step(table: u32, other: u32, amount: u32) -> String {
    format!(
        "(i32.store offset={table} (local.get $i)
           (i32.add (i32.load offset={table} (local.get $i))
                    (i32.rotl (i32.xor (i32.load offset={} (local.get $i)) (local.get $x)) (i32.const {amount}))))
         (local.set $x (i32.xor (i32.load offset={other} (i32.and (i32.load offset={table} (local.get $i)) (i32.const 60)))
                                (local.get $x)))",
        table + 8
    )
}

#[test]
fn a_step_on_either_of_two_tables_becomes_one() {
    let wat = sides(&step(1024, 4096, 10), &step(4096, 1024, 22));
    let f = after(&wat, &melding(12), &arguments());
    assert_eq!(f.layout.len(), 1);
    assert_eq!((count(&f, |op| matches!(op, Op::Store(_))), count(&f, |op| matches!(op, Op::Select))), (1, 3));
    // Too many selections for what is allowed, and none under strict traps.
    assert!(after(&wat, &melding(2), &arguments()).layout.len() > 1);
    assert!(after(&wat, &Options { strict_traps: true, ..melding(12) }, &arguments()).layout.len() > 1);
}

#[test]
fn operands_are_paired_the_other_way_round_too() {
    let a = "(local.set $x (i32.sub (i32.mul (i32.xor (local.get $x) (local.get $i)) (i32.const 7)) (local.get $i)))";
    let b = "(local.set $x (i32.sub (i32.mul (i32.const 9) (i32.xor (local.get $i) (local.get $x))) (local.get $i)))";
    let f = after(&sides(a, b), &melding(8), &arguments());
    assert_eq!((f.layout.len(), count(&f, |op| matches!(op, Op::Select))), (1, 1));
}

#[test]
fn accesses_stay_on_their_side_of_a_store() {
    // What is loaded after the store on one side is loaded before it on the other.
    let store = "(i32.store offset=64 (local.get $i) (i32.mul (local.get $x) (local.get $x)))";
    let load = |at: u32| {
        format!(
            "(local.set $x (i32.add (i32.mul (local.get $x) (local.get $x)) (i32.load offset={at} (local.get $i))))"
        )
    };
    for (a, b) in [(64, 64), (64, 68), (68, 64)] {
        let wat = sides(&format!("{store} {}", load(a)), &format!("{} {store}", load(b)));
        after(&wat, &melding(40), &arguments());
    }
}

#[test]
fn what_may_trap_is_done_by_its_side_only() {
    // Both sides load, at addresses of which one is out of bounds when it is not taken.
    let load = |more: &str| {
        format!(
            "(local.set $x (i32.xor (i32.mul (i32.load {more}) (i32.const 5)) (i32.mul (local.get $i) (local.get $x))))"
        )
    };
    let one = after(&sides(&load("(local.get $i)"), &load("(local.get $x)")), &melding(20), &arguments());
    assert_eq!(one.layout.len(), 1, "{one}");
    let third = "(local.set $x (i32.add (local.get $x) (i32.load (i32.shl (local.get $x) (local.get $i)))))";
    let alone = format!("{} {third}", load("(local.get $i)"));
    let two = after(&sides(&alone, &load("(local.get $x)")), &melding(20), &arguments());
    assert!(two.layout.len() > 1, "{two}");
    // A side that stores more often.
    let store = format!("{} (i32.store (local.get $i) (local.get $x))", load("(local.get $i)"));
    assert!(after(&sides(&store, &load("(local.get $x)")), &melding(20), &arguments()).layout.len() > 1);
}

/// A product of `$v` and a power of x, by recursion with `base` at its end.
fn power(base: &str, up: &str) -> String {
    format!(
        "(module (memory 1)
           (func $power (param $v i32) (param $n i32) (result i32) (local $r i32)
             (if (result i32) (i32.eqz (local.get $n)) (then {base})
               (else
                 (local.set $r (call $power (local.get $v) (i32.sub (local.get $n) (i32.const 1))))
                 {up})))
           (func (export \"f\") (param $v i32) (param $n i32) (result i32)
             (call $power (local.get $v) (i32.and (local.get $n) (i32.const 63)))))"
    )
}

#[test]
fn linear_recursion_becomes_a_loop() {
    let arguments: Vec<Vec<u64>> = [0, 1, 2, 63].iter().flat_map(|&n| [vec![1, n], vec![0xB7, n]]).collect();
    let calls = |wat: &str, strict_traps: bool| {
        let f = after(wat, &Options { strict_traps, ..Options::default() }, &arguments);
        count(&f, |op| matches!(op, Op::Call(_)))
    };
    let times = "(if (result i32) (i32.and (local.get $r) (i32.const 128))
        (then (i32.xor (i32.shl (local.get $r) (i32.const 1)) (i32.const 0x1a9)))
        (else (i32.add (i32.shl (local.get $r) (i32.const 1)) (i32.shr_u (local.get $v) (i32.const 3)))))";
    assert_eq!(calls(&power("(local.get $v)", times), false), 0);
    assert_eq!(calls(&power("(i32.mul (local.get $v) (i32.const 3))", times), false), 0);
    assert_eq!(calls(&power("(i32.const 1)", "(i32.mul (local.get $r) (local.get $v))"), false), 0);
    // As compiled C has it: what is returned is cut to a byte behind both ways.
    let cut = power("(local.get $v)", times)
        .replace("(if (result i32) (i32.eqz", "(i32.and (i32.const 255) (if (result i32) (i32.eqz")
        .replace("(func (export", ")(func (export")
        .replace(")\n           )(func", "))\n           (func");
    assert_eq!(calls(&cut, false), 0);
    assert_eq!(calls(&power("(local.get $v)", times), true), 1);
    // What is done on the way up hangs on the depth; the base does; memory is written.
    assert_eq!(
        calls(&power("(local.get $v)", "(i32.xor (i32.mul (local.get $r) (i32.const 5)) (local.get $n))"), false),
        1
    );
    let deeper = "(i32.sub (local.get $v) (local.get $n))";
    assert_eq!(
        calls(
            &power(deeper, times)
                .replace("(call $power (local.get $v)", "(call $power (i32.add (local.get $v) (i32.const 1))"),
            false
        ),
        1
    );
    let stores = format!("(i32.store (i32.const 16) (local.get $r)) {times}");
    assert_eq!(calls(&power("(local.get $v)", &stores), false), 1);
}
