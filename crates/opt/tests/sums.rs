//! Sums put together so that they are there soonest, each on the smallest module that shows it.

mod support;

use ciphermill_ir::{BinOp, Func, Module, Op, Value, ValueDef};
use ciphermill_opt::{Options, optimise, shorten_sums};
use support::same;
use support::text::{count, func, module};

/// What the module's function becomes, run beside what it was, and whether a sum became shorter.
fn after(body: &str) -> (Func, bool) {
    let wat = format!(
        "(module (memory 1) (func (export \"f\")
           (param $a i32) (param $b i32) (param $c i32) (param $d i32) (param $e i32) (result i32) {body}))"
    );
    let options = Options::default();
    let mut plain = module(&wat);
    optimise(&mut plain, &options).expect("nothing to lower");
    let mut after: Module = plain.clone();
    let changed = shorten_sums(&mut after, &options);
    let arguments = [[0; 5], [1, 2, 3, 4, 5], [u64::from(u32::MAX), 77, 1 << 31, 12, 9]].map(|a| a.to_vec());
    same(&plain, &after, false, &arguments, &wat);
    (func(&after, "f").clone(), changed)
}

/// Operations on the longest way to a value.
fn depth(f: &Func, v: Value) -> usize {
    match f.values[f.resolve(v)].def {
        ValueDef::Inst(inst, _) if !matches!(f.insts[inst].op, Op::Const(_)) => {
            1 + f.insts[inst].args.iter().map(|&v| depth(f, v)).max().unwrap_or(0)
        }
        _ => 0,
    }
}

/// The depth of what a function returns.
fn whole(f: &Func) -> usize {
    let mut out = 0;
    f.layout.iter().for_each(|&b| f.blocks[b].term.for_each_value(|v| out = out.max(depth(f, v))));
    out
}

fn operations(f: &Func, op: BinOp) -> usize {
    count(f, |o| matches!(o, Op::Bin(own) if own == op))
}

const A: &str = "(local.get $a)";
const B: &str = "(local.get $b)";
const C: &str = "(local.get $c)";
const D: &str = "(local.get $d)";
const E: &str = "(local.get $e)";

fn add(a: &str, b: &str) -> String {
    format!("(i32.add {a} {b})")
}

fn xor(a: &str, b: &str) -> String {
    format!("(i32.xor {a} {b})")
}

#[test]
fn a_chain_becomes_a_tree() {
    let (f, changed) = after(&xor(&xor(&xor(A, B), C), D));
    assert!(changed);
    assert_eq!((whole(&f), operations(&f, BinOp::Xor)), (2, 3));
}

#[test]
fn what_comes_last_is_added_last() {
    // A product is four cycles late: the other three are one term by then.
    let late = "(i32.mul (local.get $a) (local.get $b))";
    let (f, changed) = after(&add(&add(&add(late, C), D), E));
    assert!(changed);
    assert_eq!(operations(&f, BinOp::Add), 3);
    let last =
        f.layout.iter().rev().flat_map(|&b| f.blocks[b].insts.iter().rev().copied()).next().expect("an addition");
    assert!(f.insts[last].args.iter().any(|&v| f.def_op(v) == Some(Op::Bin(BinOp::Mul))));
    // So it stands where it is behind them already.
    assert!(!after(&add(&add(&add(C, D), E), late)).1);
}

#[test]
fn what_is_used_twice_stays_a_value() {
    let body = format!("(local.set $a {}) {}", add(A, B), xor(A, &add(&add(A, C), &add(D, E))));
    let (f, _) = after(&body);
    assert_eq!(operations(&f, BinOp::Add), 4);
}

#[test]
fn what_goes_round_a_loop_comes_later_than_what_does_not() {
    // a = ((a + x) + y) + z of words at e, so many times: round it goes by one addition.
    let load = |at: u32| format!("(i32.load offset={at} {E})");
    let body = format!(
        "(loop $l (local.set $a {})
           (br_if $l (local.tee $e (i32.and (i32.shr_u {E} (i32.const 1)) (i32.const 15)))))
         {A}",
        add(&add(&add(A, &load(0)), &load(4)), &load(8))
    );
    let (f, changed) = after(&body);
    assert!(changed);
    let params: Vec<Value> = f.layout.iter().flat_map(|&b| f.blocks[b].params.clone()).collect();
    let mut direct = 0;
    for &block in &f.layout {
        f.blocks[block].term.for_each_value(|v| {
            let inst = f.def_inst(v).filter(|&i| f.insts[i].op == Op::Bin(BinOp::Add));
            direct += inst.map_or(0, |i| f.insts[i].args.iter().filter(|a| params.contains(a)).count());
        });
    }
    // It goes round, and is what is returned.
    assert_eq!(direct, 2);
}

#[test]
fn an_address_keeps_its_form() {
    let at = add(
        &add(
            &add("(i32.and (local.get $a) (i32.const 12))", "(i32.const 64)"),
            "(i32.mul (local.get $b) (i32.const 0))",
        ),
        "(i32.and (local.get $c) (i32.const 12))",
    );
    assert!(!after(&format!("(i32.load {at})")).1);
}
