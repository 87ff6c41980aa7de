//! Loops with a way that no run took, on the smallest module that shows it.

mod support;

use ciphermill_ir::{BinOp, Block, CmpOp, Func, Module, Op};
use ciphermill_opt::{Options, Steady, Unroll, optimise};
use support::same;
use support::text::{func, module};

/// `f(x, n)`: `n` steps of a generator that squares, and stirs where what has been stored is high;
/// what is taken away behind that is shared by both ways.
const GENERATOR: &str = "(module (memory 1)
  (func (export \"f\") (param $x i32) (param $n i32) (result i32)
    (local $y i32) (local $i i32)
    (block $out
      (br_if $out (i32.eqz (local.get $n)))
      (loop $steps
        (local.set $x (i32.add (i32.mul (local.get $x) (local.get $x)) (local.get $n)))
        (i32.store offset=2048 (i32.and (local.get $y) (i32.const 0xffc)) (local.get $x))
        (if (i32.gt_u (i32.load8_u offset=2048 (i32.and (local.get $x) (i32.const 0xc))) (i32.const 0xa0))
          (then
            (local.set $i (i32.load8_u (i32.and (local.get $x) (i32.const 0xff))))
            (loop $stir
              (local.set $y (i32.rotl (i32.xor (local.get $y) (local.get $i)) (i32.const 5)))
              (i32.store offset=1024 (i32.and (local.get $y) (i32.const 0xfc)) (local.get $x))
              (br_if $stir (i32.le_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 3))))))
        (local.set $y (i32.sub (i32.rotl (local.get $y) (i32.const 3)) (local.get $x)))
        (br_if $steps (local.tee $n (i32.sub (local.get $n) (i32.const 1))))))
    (i32.xor (local.get $x) (local.get $y))))";

/// Blocks that square and blocks that subtract; of the latter, how many are loops.
fn steps(func: &Func) -> [usize; 3] {
    let has = |b: Block, op: BinOp| func.blocks[b].insts.iter().any(|&i| func.insts[i].op == Op::Bin(op));
    let again = |b: Block| func.blocks[b].term.targets().iter().any(|t| t.block == b);
    let count = |wanted: &dyn Fn(Block) -> bool| func.layout.iter().filter(|&&b| wanted(b)).count();
    let takes = |b: Block| has(b, BinOp::Sub);
    [count(&|b| has(b, BinOp::Mul)), count(&takes), count(&|b| takes(b) && again(b))]
}

fn traced(before: &Module, value: u32, full_budget: u32) -> Module {
    let f = func(before, "f");
    let asks = f.insts.values().find(|i| matches!(i.op, Op::Cmp(CmpOp::LtU)) && i.loc != 0).expect("it asks");
    let unroll =
        Unroll { full_budget, if_convert: 8, steady: vec![Steady { loc: asks.loc, value }], ..Unroll::default() };
    let mut after = before.clone();
    optimise(&mut after, &Options { unroll, ..Options::default() }).expect("nothing to lower");
    let inputs = [1, 2, 3, 10, 50].into_iter().flat_map(|n| [0, 1, 6, 0x1234_5678].map(|x| vec![x, n]));
    same(before, &after, false, &inputs.collect::<Vec<_>>(), "a way that is rarely taken");
    after
}

#[test]
fn the_usual_way_becomes_a_loop_of_one_block() {
    let after = traced(&module(GENERATOR), 0, 400);
    let f = func(&after, "f");
    // What stands before the question is there once, what both ways share twice.
    assert_eq!(steps(f), [1, 2, 1], "{f}");
}

#[test]
fn where_the_usual_way_has_a_loop_in_it_or_is_too_long_nothing_is_done() {
    for (value, budget) in [(1, 400), (0, 2)] {
        let after = traced(&module(GENERATOR), value, budget);
        let f = func(&after, "f");
        assert_eq!(steps(f), [1, 1, 0], "{value} {budget}: {f}");
    }
}
