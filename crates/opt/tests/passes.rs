//! What each pass does, on the smallest function that shows it.

mod support;

use ciphermill_ir::{BinOp, Module, Op, Terminator};
use ciphermill_opt::{IndexForm, Options, optimise, run_pass};
use support::text::{count, expr, func, module, returned};

fn strict() -> Options {
    Options { strict_traps: true, ..Options::default() }
}

fn loose() -> Options {
    Options::default()
}

fn run(module: &mut Module, options: &Options, passes: &[&str]) {
    for pass in passes {
        run_pass(module, options, pass);
    }
}

fn is_load(op: Op) -> bool {
    matches!(op, Op::Load(_))
}

fn is_store(op: Op) -> bool {
    matches!(op, Op::Store(_))
}

fn is_call(op: Op) -> bool {
    matches!(op, Op::Call(_))
}

/// Instructions of one kind left in `f` after the passes.
fn left(wat: &str, options: &Options, passes: &[&str], f: impl Fn(Op) -> bool) -> usize {
    let mut module = module(wat);
    run(&mut module, options, passes);
    count(func(&module, "f"), f)
}

const TWICE: &str = "(module (memory 1) (func (export \"f\") (param i32 i32) (result i32)
    (i32.mul (i32.mul (local.get 0) (local.get 1)) (i32.mul (local.get 1) (local.get 0)))))";

#[test]
fn gvn_shares_equal_operations() {
    let is_mul = |op| op == Op::Bin(BinOp::Mul);
    assert_eq!(left(TWICE, &loose(), &[], is_mul), 3);
    assert_eq!(left(TWICE, &loose(), &["gvn"], is_mul), 2);
}

#[test]
fn gvn_does_not_share_between_branches() {
    let wat = "(module (func (export \"f\") (param i32 i32) (result i32)
        (if (result i32) (local.get 0)
          (then (i32.mul (local.get 0) (local.get 1)))
          (else (i32.sub (i32.mul (local.get 0) (local.get 1)) (local.get 1))))))";
    assert_eq!(left(wat, &loose(), &["gvn"], |op| op == Op::Bin(BinOp::Mul)), 2);
}

#[test]
fn dead_loads_go_unless_their_trap_counts() {
    let wat = "(module (memory 1) (func (export \"f\") (param i32)
        (drop (i32.load (local.get 0)))
        (drop (i32.load offset=8 (i32.and (local.get 0) (i32.const 0xfff))))))";
    assert_eq!(left(wat, &loose(), &["dce"], is_load), 0);
    // The second one is in bounds of the one page there is.
    assert_eq!(left(wat, &strict(), &["dce"], is_load), 1);
}

#[test]
fn dead_divisions_stay_while_they_may_trap() {
    let wat = "(module (func (export \"f\") (param i32 i32)
        (drop (i32.div_u (local.get 0) (local.get 1)))
        (drop (i32.div_u (local.get 0) (i32.const 10)))))";
    assert_eq!(left(wat, &loose(), &["dce"], |op| op == Op::Bin(BinOp::DivU)), 1);
}

#[test]
fn parameters_that_only_feed_themselves_go() {
    let wat = "(module (func (export \"f\") (param i32) (result i32) (local i32 i32)
        (loop $l
          (local.set 1 (i32.add (local.get 1) (local.get 2)))
          (local.set 2 (i32.mul (local.get 2) (i32.const 3)))
          (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
        (local.get 0)))";
    let mut module = module(wat);
    run(&mut module, &loose(), &["simplify_cfg", "dce"]);
    let f = func(&module, "f");
    let params: usize = f.layout.iter().filter(|&&b| b != f.entry).map(|&b| f.blocks[b].params.len()).sum();
    assert_eq!(params, 1, "{f}");
}

#[test]
fn unreachable_functions_lose_their_body() {
    let wat = "(module (table 1 funcref) (elem (i32.const 0) $in_table)
        (func $unused (call $only_from_unused)) (func $only_from_unused (nop) (call $f))
        (func $f (export \"f\") (call $called)) (func $called (nop)) (func $in_table (call $called)))";
    let mut module = module(wat);
    run(&mut module, &loose(), &["dead_functions"]);
    let dead: Vec<&str> = module
        .funcs
        .values()
        .filter(|f| matches!(f.blocks[f.entry].term, Terminator::Trap(_)))
        .map(|f| f.name.as_str())
        .collect();
    assert_eq!(dead, ["unused", "only_from_unused"]);
}

#[test]
fn constant_branches_and_straight_lines_collapse() {
    let wat = "(module (func (export \"f\") (param i32) (result i32)
        (block $out
          (block (br_if 0 (i32.const 0)) (br_if $out (i32.const 1)))
          (return (i32.const 9)))
        (if (result i32) (local.get 0) (then (local.get 0)) (else (local.get 0)))))";
    let mut module = module(wat);
    run(&mut module, &loose(), &["simplify_cfg", "simplify_cfg"]);
    let f = func(&module, "f");
    assert_eq!(f.layout.len(), 1, "{f}");
    assert_eq!(returned(f), "p0");
}

#[test]
fn a_known_condition_skips_its_branch() {
    // The inner `if` tests what the outer one has decided.
    let wat = "(module (func (export \"f\") (param i32 i32) (result i32)
        (if (result i32)
          (if (result i32) (i32.lt_u (local.get 0) (local.get 1))
            (then (i32.const 1)) (else (i32.const 0)))
          (then (i32.const 10)) (else (i32.const 20)))))";
    let mut module = module(wat);
    run(&mut module, &loose(), &["simplify_cfg", "fold", "dce"]);
    let f = func(&module, "f");
    let branches = f.layout.iter().filter(|&&b| matches!(f.blocks[b].term, Terminator::Branch { .. })).count();
    assert_eq!(branches, 1, "{f}");
}

#[test]
fn calls_of_small_and_once_called_functions_are_inlined() {
    let wat = "(module
        (func $small (param i32 i32) (result i32 i32) (local.get 1) (i32.add (local.get 0) (i32.const 1)))
        (func $recursive (param i32) (result i32)
          (if (result i32) (local.get 0) (then (call $recursive (i32.sub (local.get 0) (i32.const 1)))) (else (local.get 0))))
        (func (export \"f\") (param i32) (result i32)
          (call $small (local.get 0) (i32.const 7)) (i32.mul) (call $recursive)))";
    let mut module = module(wat);
    run(&mut module, &loose(), &["inline", "simplify_cfg", "fold"]);
    let f = func(&module, "f");
    assert_eq!(count(f, is_call), 1, "{f}");
    assert_eq!(count(f, |op| op == Op::Bin(BinOp::Mul)), 1, "{f}");
    assert_eq!(f.layout.len(), 1, "{f}");
}

#[test]
fn known_globals_are_not_read_again() {
    let wat = "(module (global $g (mut i32) (i32.const 1)) (global $k i32 (i32.const 5))
        (global $never_set (mut i32) (i32.const 6))
        (func (export \"f\") (param i32) (result i32)
          (global.set $g (local.get 0))
          (global.set $g (i32.add (global.get $g) (global.get $k)))
          (i32.add (global.get $g) (global.get $never_set))))";
    let mut module = module(wat);
    run(&mut module, &strict(), &["globals", "fold", "dce"]);
    let f = func(&module, "f");
    assert_eq!(returned(f), "add(p0, 11)");
    assert_eq!(count(f, |op| matches!(op, Op::GlobalSet(_))), 1, "{f}");
}

#[test]
fn a_stack_frame_without_calls_leaves_no_trace() {
    let wat = "(module (memory 1) (global $sp (mut i32) (i32.const 1024))
        (func (export \"f\") (param i32) (result i32) (local i32)
          (global.set $sp (local.tee 1 (i32.sub (global.get $sp) (i32.const 16))))
          (loop $l
            (i32.store (local.get 1) (local.get 0))
            (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
          (global.set $sp (i32.add (local.get 1) (i32.const 16)))
          (local.get 0)))";
    let passes = ["simplify_cfg", "fold", "globals", "globals"];
    assert_eq!(left(wat, &loose(), &passes, |op| matches!(op, Op::GlobalSet(_))), 0);
    // A trap in the loop would show the lowered stack pointer.
    assert_eq!(left(wat, &strict(), &passes, |op| matches!(op, Op::GlobalSet(_))), 2);
}

#[test]
fn globals_are_forgotten_at_calls_that_set_them() {
    let wat = |set: &str| {
        format!(
            "(module (global $g (mut i32) (i32.const 1)) (global $h (mut i32) (i32.const 1))
            (func $callee (export \"c\") {set})
            (func (export \"f\") (result i32)
              (global.set $g (i32.const 3)) (call $callee) (global.get $g)))"
        )
    };
    let is_get = |op| matches!(op, Op::GlobalGet(_));
    assert_eq!(left(&wat("(global.set $g (i32.const 2))"), &loose(), &["globals"], is_get), 1);
    assert_eq!(left(&wat(""), &loose(), &["globals"], is_get), 0);
}

#[test]
fn loads_of_known_bytes_go() {
    let wat = |between: &str| {
        format!(
            "(module (memory 1) (func $other (export \"o\") (i32.store (i32.const 4) (i32.const 1)))
            (func (export \"f\") (param i32 i32) (result i32)
              (i32.store offset=4 (local.get 0) (local.get 1))
              {between}
              (i32.add (i32.load offset=4 (local.get 0)) (i32.load offset=4 (local.get 0)))))"
        )
    };
    let loads = |between: &str| left(&wat(between), &strict(), &["loads"], is_load);
    assert_eq!(loads(""), 0);
    // Next to it, over it, somewhere, anywhere.
    assert_eq!(loads("(i32.store offset=8 (local.get 0) (i32.const 0))"), 0);
    assert_eq!(loads("(i32.store8 offset=3 (local.get 0) (i32.const 0))"), 0);
    assert_eq!(loads("(i32.store8 offset=7 (local.get 0) (i32.const 0))"), 1);
    assert_eq!(loads("(i32.store16 offset=3 (local.get 0) (i32.const 0))"), 1);
    assert_eq!(loads("(i32.store8 (local.get 1) (i32.const 0))"), 1);
    assert_eq!(loads("(call $other)"), 1);
}

#[test]
fn narrow_stores_are_read_back_extended() {
    let wat = |load: &str| {
        format!(
            "(module (memory 1) (func (export \"f\") (param i32 i32) (result i32)
              (i32.store8 (local.get 0) (local.get 1)) ({load} (local.get 0))))"
        )
    };
    let result = |load: &str| {
        let mut module = module(&wat(load));
        run(&mut module, &loose(), &["loads"]);
        returned(func(&module, "f"))
    };
    assert_eq!(result("i32.load8_u"), "and(p1, 255)");
    assert_eq!(result("i32.load8_s"), "sext8(p1)");
    assert_eq!(result("i32.load"), "loadu32(p0 + 0)");
}

#[test]
fn overwritten_stores_go() {
    let wat = |at: &str, between: &str| {
        format!(
            "(module (memory 1) (func (export \"f\") (param i32 i32)
              (i32.store {at} (i32.const 1)) {between} (i32.store {at} (i32.const 2))))"
        )
    };
    let stores = |at: &str, between: &str, o: &Options| left(&wat(at, between), o, &["gvn", "loads"], is_store);
    assert_eq!(stores("(local.get 0)", "", &loose()), 1);
    assert_eq!(stores("(local.get 0)", "(drop (i32.load8_u (local.get 1)))", &loose()), 2);
    assert_eq!(stores("(local.get 0)", "(drop (i32.load8_u offset=4 (local.get 0)))", &loose()), 1);
    // A table before the place, and one that reaches it.
    let table =
        |mask: u32| format!("(drop (i32.load (i32.add (i32.and (local.get 1) (i32.const {mask})) (local.get 0))))");
    assert_eq!(stores("offset=4096 (local.get 0)", &table(0xffc), &loose()), 1);
    assert_eq!(stores("offset=4096 (local.get 0)", &table(0xffd), &loose()), 2);
    assert_eq!(stores("offset=4096 (local.get 0)", &table(0x1ffc), &loose()), 2);
    // Whether the first one trapped matters to what the second may do.
    assert_eq!(stores("(local.get 0)", "", &strict()), 2);
    assert_eq!(stores("(i32.const 16)", "", &strict()), 1);
    assert_eq!(stores("(i32.const 16)", "(drop (i32.load (i32.const 65533)))", &strict()), 2);
}

/// A loop `f(p, q, n)` with a load of `p` in it.
fn loop_with(before: &str, after: &str) -> String {
    format!(
        "(module (memory 1) (func (export \"f\") (param i32 i32 i32) (result i32) (local i32)
          (loop $l
            {before}
            (local.set 3 (i32.add (local.get 3) (i32.load (local.get 0))))
            {after}
            (br_if $l (local.tee 2 (i32.sub (local.get 2) (i32.const 1)))))
          (local.get 3)))"
    )
}

/// How many loads of address `p0` itself stand in blocks that are loops.
fn loads_in_loops(wat: &str, options: &Options) -> usize {
    let mut module = module(wat);
    run(&mut module, options, &["simplify_cfg", "gvn", "licm"]);
    let f = func(&module, "f");
    let cfg = ciphermill_ir::Cfg::new(f);
    let doms = ciphermill_ir::Dominators::new(f, &cfg);
    let loops = ciphermill_ir::Loops::new(f, &cfg, &doms);
    let insts = f.layout.iter().filter(|&&b| loops.depth(b) > 0).flat_map(|&b| &f.blocks[b].insts);
    insts.filter(|&&i| is_load(f.insts[i].op) && expr(f, f.insts[i].args[0]) == "p0").count()
}

#[test]
fn invariant_loads_leave_loops() {
    assert_eq!(loads_in_loops(&loop_with("", ""), &loose()), 0);
    assert_eq!(loads_in_loops(&loop_with("", ""), &strict()), 0);
    // Something that may change it, near or far.
    assert_eq!(loads_in_loops(&loop_with("", "(i32.store8 (local.get 1) (i32.const 0))"), &loose()), 1);
    assert_eq!(loads_in_loops(&loop_with("", "(i32.store8 offset=4 (local.get 0) (i32.const 0))"), &loose()), 0);
    // Something observable before it, which a trap of the load must not undo.
    let store = "(i32.store8 offset=4 (local.get 0) (local.get 2))";
    assert_eq!(loads_in_loops(&loop_with(store, ""), &loose()), 0);
    assert_eq!(loads_in_loops(&loop_with(store, ""), &strict()), 1);
    // Not certain to run: the address may be bad.
    let exit = "(if (local.get 1) (then (return (i32.const 1))))";
    assert_eq!(loads_in_loops(&loop_with(exit, ""), &loose()), 1);
}

#[test]
fn invariant_arithmetic_leaves_loops_and_meets() {
    let wat = "(module (func (export \"f\") (param i32 i32 i32) (result i32) (local i32)
        (loop $l
          (local.set 3 (i32.xor (local.get 3)
            (i32.add (i32.add (local.get 2) (local.get 0)) (local.get 1))))
          (br_if $l (local.tee 2 (i32.sub (local.get 2) (i32.const 1)))))
        (local.get 3)))";
    let mut module = module(wat);
    run(&mut module, &loose(), &["simplify_cfg", "gvn", "licm"]);
    let f = func(&module, "f");
    let entry = f.blocks[f.entry].insts.iter().filter(|&&i| f.insts[i].op == Op::Bin(BinOp::Add)).count();
    assert_eq!(entry, 1, "{f}");
}

/// The address of the only load of `f(p, q)`.
fn address(wat: &str, options: &Options) -> String {
    let mut module = module(wat);
    run(&mut module, options, &["fold", "address", "fold", "gvn", "dce"]);
    let f = func(&module, "f");
    let insts = f.layout.iter().flat_map(|&b| &f.blocks[b].insts);
    let loads: Vec<String> =
        insts.filter(|&&i| is_load(f.insts[i].op)).map(|&i| expr(f, f.insts[i].results[0])).collect();
    loads.join("; ")
}

fn loads_at(body: &str) -> String {
    format!("(module (memory 1) (func (export \"f\") (param i32 i32) {body}))")
}

fn keep_load(addr: &str, offset: u32) -> String {
    format!("(i32.store (i32.const 0) (i32.load offset={offset} {addr}))")
}

#[test]
fn constants_move_into_accesses_when_they_cannot_wrap() {
    let at = |addr: &str, offset: u32, o: &Options| address(&loads_at(&keep_load(addr, offset)), o);
    let small = "(i32.add (i32.and (local.get 0) (i32.const 0xff0)) (i32.const 8))";
    assert_eq!(at(small, 4, &strict()), "loadu32(and(p0, 4080) + 12)");
    let or = "(i32.or (i32.and (local.get 0) (i32.const 0xff0)) (i32.const 8))";
    assert_eq!(at(or, 4, &strict()), "loadu32(and(p0, 4080) + 12)");
    // p0 may be -8 here: nothing says it is an address.
    let unknown = "(i32.add (local.get 0) (i32.const 8))";
    assert_eq!(at(unknown, 4, &strict()), "loadu32(add(p0, 8) + 4)");
    assert_eq!(at(unknown, 4, &loose()), "loadu32(add(p0, 8) + 4)");
    let back = "(i32.sub (local.get 0) (i32.const 8))";
    assert_eq!(at(back, 12, &loose()), "loadu32(p0 + 4)");
    assert_eq!(at(back, 12, &strict()), "loadu32(add(p0, -8) + 12)");
    assert_eq!(at("(i32.const 5000)", 4, &strict()), "loadu32(4096 + 908)");
}

#[test]
fn an_address_once_is_an_address_after() {
    let sum = "(i32.add (local.get 0) (i32.const 8))";
    let before = format!("(i32.store (local.get 0) (local.get 1)) {}", keep_load(sum, 0));
    assert_eq!(address(&loads_at(&before), &strict()), "loadu32(p0 + 8)");
    let after = format!("{} (i32.store (local.get 0) (local.get 1))", keep_load(sum, 0));
    assert_eq!(address(&loads_at(&after), &strict()), "loadu32(add(p0, 8) + 0)");
    assert_eq!(address(&loads_at(&after), &loose()), "loadu32(p0 + 8)");
    // On one of two paths only.
    let perhaps = "(if (local.get 1) (then (i32.store (local.get 0) (i32.const 0))))";
    let join = format!("{perhaps} {}", keep_load(sum, 0));
    assert_eq!(address(&loads_at(&join), &loose()), "loadu32(add(p0, 8) + 0)");
}

#[test]
fn fields_of_a_record_share_a_sum() {
    let field = |c: i32| keep_load(&format!("(i32.add (local.get 0) (i32.const {c}))"), 0);
    let both = loads_at(&format!("{}{}", field(100), field(96)));
    assert_eq!(address(&both, &loose()), "loadu32(add(p0, 96) + 4); loadu32(add(p0, 96) + 0)");
    assert_eq!(address(&both, &strict()), "loadu32(add(p0, 100) + 0); loadu32(add(p0, 96) + 0)");
    // With p0 = -98 the second one traps, and must.
    let below = keep_load("(i32.add (local.get 0) (i32.const 96))", 4);
    let falling = loads_at(&format!("{}{below}", field(100)));
    assert_eq!(address(&falling, &strict()), "loadu32(add(p0, 100) + 0); loadu32(add(p0, 96) + 4)");
    let rising = loads_at(&format!("{}{}", field(96), field(100)));
    assert_eq!(address(&rising, &strict()), "loadu32(add(p0, 96) + 0); loadu32(add(p0, 96) + 4)");
}

#[test]
fn table_indices_get_one_form() {
    let at = |index: &str, form| {
        let options = Options { index_form: form, ..Options::default() };
        address(&loads_at(&keep_load(index, 0)), &options)
    };
    let masked = "(i32.and (i32.shr_u (local.get 0) (i32.const 14)) (i32.const 0x3fc))";
    let scaled = "(i32.shl (i32.and (i32.shr_u (local.get 0) (i32.const 16)) (i32.const 0xff)) (i32.const 2))";
    for index in [masked, scaled] {
        assert_eq!(at(index, IndexForm::ExtractThenScale), "loadu32(shl(and(shr_u(p0, 16), 255), 2) + 0)");
        assert_eq!(at(index, IndexForm::ShiftThenMask), "loadu32(and(shr_u(p0, 14), 1020) + 0)");
    }
    let top = "(i32.and (i32.shr_u (local.get 0) (i32.const 22)) (i32.const 0x3fc))";
    assert_eq!(at(top, IndexForm::ExtractThenScale), "loadu32(shl(shr_u(p0, 24), 2) + 0)");
    let low = "(i32.and (i32.shl (local.get 0) (i32.const 2)) (i32.const 0x3fc))";
    assert_eq!(at(low, IndexForm::ExtractThenScale), "loadu32(shl(and(p0, 255), 2) + 0)");
}

#[test]
fn disabled_passes_do_not_run() {
    let mut text = module(TWICE);
    let options = Options { disable: vec!["gvn"], ..Options::default() };
    optimise(&mut text, &options).expect("nothing to lower");
    assert_eq!(count(func(&text, "f"), |op| op == Op::Bin(BinOp::Mul)), 3);
}
