//! Divisions that become calls on machines without any.

mod support;

use ciphermill_ir::{BinOp, Op};
use ciphermill_opt::{OptError, Options, optimise};
use support::same;

fn module(body: &str) -> ciphermill_ir::Module {
    let text = format!(r#"(module (func (export "f") (param i32 i32) (result i32) {body}))"#);
    ciphermill_load::load(&wat::parse_str(&text).expect("the test's module is well formed")).expect("it loads")
}

fn options(level: u8) -> Options {
    Options { level, software_division: true, ..Options::default() }
}

fn divides(module: &ciphermill_ir::Module) -> bool {
    let insts =
        module.funcs.values().flat_map(|f| f.layout.iter().flat_map(|&b| &f.blocks[b].insts).map(|&i| f.insts[i].op));
    insts.into_iter().any(|op| matches!(op, Op::Bin(BinOp::DivU | BinOp::DivS | BinOp::RemU | BinOp::RemS)))
}

#[test]
fn no_division_is_left_at_any_level() {
    let all = "(i32.xor (i32.xor (i32.div_u (local.get 0) (local.get 1)) (i32.div_s (local.get 0) (local.get 1)))
                        (i32.xor (i32.rem_u (local.get 0) (local.get 1)) (i32.rem_s (local.get 0) (local.get 1))))";
    for level in 0..=2 {
        let mut m = module(all);
        assert!(divides(&m));
        optimise(&mut m, &options(level)).expect("the runtime is linked");
        assert!(!divides(&m), "level {level}");
    }
}

#[test]
fn quotients_are_right_where_their_bits_begin_and_end() {
    let powers = (0..32).map(|bit| 1u32 << bit);
    let edges: Vec<u64> = powers.flat_map(|p| [p - 1, p, p | 1, !p, p | 0x5555]).map(u64::from).collect();
    let pairs: Vec<Vec<u64>> = edges.iter().flat_map(|&n| edges.iter().map(move |&d| vec![n, d])).collect();
    for op in ["div_u", "div_s", "rem_u", "rem_s"] {
        let before = module(&format!("(i32.{op} (local.get 0) (local.get 1))"));
        let mut after = before.clone();
        optimise(&mut after, &options(2)).expect("the runtime is linked");
        same(&before, &after, false, &pairs, op);
    }
}

#[test]
fn a_division_by_a_power_of_two_calls_nothing() {
    let mut m = module("(i32.div_u (local.get 0) (i32.const 8))");
    optimise(&mut m, &options(2)).expect("nothing is missing");
    let f = &m.funcs[m.export("f").expect("it is exported")];
    let mut ops = f.layout.iter().flat_map(|&b| &f.blocks[b].insts).map(|&i| f.insts[i].op);
    assert!(!ops.any(|op| matches!(op, Op::Call(_))));
}

#[test]
fn a_module_without_the_runtime_is_told_so() {
    let mut m = module("(i32.div_u (local.get 0) (local.get 1))");
    for func in m.funcs.values_mut().filter(|f| f.name == "rt_div_u32") {
        func.name = "another".into();
    }
    let error = optimise(&mut m, &options(2)).expect_err("nothing divides");
    assert!(matches!(&error, OptError::MissingRuntime { runtime: "rt_div_u32", .. }), "{error}");
}
