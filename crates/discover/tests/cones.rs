//! Subgraphs of small programs, counted by hand.

use ciphermill_discover::{Candidate, Counts, Limits, cones};
use ciphermill_ir::{Func, FuncId, Module};

fn module(body: &str) -> Module {
    let text = format!("(module (func (export \"f\") (param i32 i32 i32) (result i32) (local i32) {body}))");
    let wasm = wat::parse_str(text).expect("the test's module is well formed");
    let mut module = ciphermill_load::load(&wasm).expect("the test's module loads");
    ciphermill_opt::optimise(&mut module, &ciphermill_opt::Options::default()).expect("the module optimises");
    module
}

/// Candidates of a function that ran once.
fn found(body: &str, inputs: usize) -> Vec<Candidate> {
    let module = module(body);
    let funcs: Vec<(FuncId, Func)> = module.funcs.iter().map(|(id, f)| (id, f.clone())).collect();
    let blocks = funcs.iter().flat_map(|(id, f)| f.layout.iter().map(move |&b| ((*id, b), 1)));
    let counts: Counts = blocks.collect();
    cones::candidates(&funcs, &counts, Limits { inputs, most: 100 })
}

fn semantics(body: &str, inputs: usize) -> Vec<String> {
    let mut all: Vec<String> = found(body, inputs).into_iter().map(|c| c.semantics).collect();
    all.sort();
    all
}

const X: &str = "(local.get 0)";
const Y: &str = "(local.get 1)";
const Z: &str = "(local.get 2)";

#[test]
fn inputs_are_counted() {
    let body = format!("(i32.add (i32.xor {X} {Y}) {Z})");
    assert_eq!(semantics(&body, 2), [] as [String; 0]);
    assert_eq!(semantics(&body, 3), ["rd = (rs1 ^ rs2) + rs3"]);
    let body = format!("(i32.add (i32.xor {X} {Y}) (i32.and {X} {Y}))");
    let expected = ["rd = (rs1 & rs2) + (rs1 ^ rs2)", "rd = (rs1 ^ rs2) + (rs1 & rs2)"];
    let all = semantics(&body, 2);
    assert!(all.len() == 1 && expected.contains(&all[0].as_str()), "{all:?}");
}

#[test]
fn what_others_need_stays_outside() {
    // The sum goes into both: with all three words there are too many inputs.
    let body = format!(
        "(local.set 3 (i32.add {X} {Y})) (i32.xor (i32.rotl (local.get 3) (i32.const 5)) (i32.mul (local.get 3) {Z}))"
    );
    let all = semantics(&body, 2);
    assert!(!all.is_empty() && all.iter().all(|s| !s.contains('+')), "{all:?}");
}

#[test]
fn what_is_used_twice_inside_is_written_once() {
    let body =
        format!("(local.set 3 (i32.add {X} {Y})) (i32.xor (i32.rotl (local.get 3) (i32.const 5)) (local.get 3))");
    assert_eq!(semantics(&body, 2), ["let t0 = (rs1 + rs2); rd = rotl(t0, 5) ^ t0", "rd = rotl(rs1, 5) ^ rs1"]);
}

#[test]
fn the_same_but_for_one_constant_is_one() {
    let turned = |x: &str, n: u32| format!("(i32.xor (i32.shr_u {x} (i32.const {n})) {Z})");
    let body = format!("(i32.mul {} {})", turned(X, 3), turned(Y, 9));
    let all = found(&body, 2);
    let one: Vec<&Candidate> = all.iter().filter(|c| c.immediate.is_some()).collect();
    assert_eq!(one.len(), 1, "{all:?}");
    assert_eq!(one[0].immediate, Some(("imm".to_owned(), vec![3, 9])));
    assert_eq!((one[0].places, one[0].operations, one[0].saves), (2, 2, 2));
    assert_eq!(one[0].semantics, "rd = (rs1 >>u imm) ^ rs2");
}
