//! Subgraphs of small programs, counted by hand.

use ciphermill_discover::{Candidate, Counts, Limits, cones};
use ciphermill_ir::{Func, FuncId, Module};

fn module(body: &str) -> Module {
    module_of(body, "i32")
}

fn module_of(body: &str, word: &str) -> Module {
    let text =
        format!("(module (func (export \"f\") (param {word} {word} {word}) (result {word}) (local {word}) {body}))");
    let wasm = wat::parse_str(text).expect("the test's module is well formed");
    let mut module = ciphermill_load::load(&wasm).expect("the test's module loads");
    let word_bits = if word == "i64" { 64 } else { 32 };
    let options = ciphermill_opt::Options { word_bits, ..ciphermill_opt::Options::default() };
    ciphermill_opt::optimise(&mut module, &options).expect("the module optimises");
    module
}

/// Candidates of a function that ran once.
fn found(body: &str, inputs: usize, outputs: usize) -> Vec<Candidate> {
    found_in(&module(body), inputs, outputs)
}

fn found_in(module: &Module, inputs: usize, outputs: usize) -> Vec<Candidate> {
    let funcs: Vec<(FuncId, Func)> = module.funcs.iter().map(|(id, f)| (id, f.clone())).collect();
    let blocks = funcs.iter().flat_map(|(id, f)| f.layout.iter().map(move |&b| ((*id, b), 1)));
    let counts: Counts = blocks.collect();
    cones::candidates(&funcs, &machine("rv32"), &counts, Limits { inputs, outputs, most: 100 })
}

fn machine(name: &str) -> ciphermill_machine::Machine {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    ciphermill_machine::load_from_dir(&root, name, &[], &[], &[]).expect("the machine file is good")
}

fn semantics(body: &str, inputs: usize) -> Vec<String> {
    let mut all: Vec<String> = found(body, inputs, 1).into_iter().map(|c| c.semantics).collect();
    all.sort();
    all
}

const X: &str = "(local.get 0)";
const Y: &str = "(local.get 1)";
const Z: &str = "(local.get 2)";

#[test]
fn words_of_64_bits_are_words_too() {
    let body = format!("(i64.xor (i64.xor {X} (i64.rotl {X} (i64.const 45))) (i64.const 0x123456789a))");
    let all = found_in(&module_of(&body, "i64"), 1, 1);
    let largest = all.iter().max_by_key(|c| c.operations).expect("there are three operations");
    assert_eq!((largest.operations, largest.saves), (3, 2));
    assert!(largest.semantics.contains("0x123456789a") && largest.semantics.contains("rotl(rs1, 45)"), "{largest:?}");
}

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
    assert_eq!(
        semantics(&body, 2),
        ["let part0 = (rs1 + rs2); rd = rotl(part0, 5) ^ part0", "rd = rotl(rs1, 5) ^ rs1"]
    );
}

#[test]
fn the_same_but_for_one_constant_is_one() {
    let turned = |x: &str, n: u32| format!("(i32.xor (i32.shr_u {x} (i32.const {n})) {Z})");
    let body = format!("(i32.mul {} {})", turned(X, 3), turned(Y, 9));
    let all = found(&body, 2, 1);
    let one: Vec<&Candidate> = all.iter().filter(|c| !c.immediates.is_empty()).collect();
    assert_eq!(one.len(), 1, "{all:?}");
    assert_eq!(one[0].immediates, [("imm".to_owned(), vec![3, 9])]);
    assert_eq!((one[0].places, one[0].operations, one[0].saves), (2, 2, 2));
    assert_eq!(one[0].semantics, "rd = (rs1 >>u imm) ^ rs2");
}

#[test]
fn constants_that_differ_become_immediates_each() {
    let turned =
        |x: &str, n: u32, m: u32| format!("(i32.xor (i32.shr_u {x} (i32.const {n})) (i32.shl {x} (i32.const {m})))");
    let body = format!("(i32.mul {} {})", turned(X, 3, 4), turned(Y, 9, 7));
    let all = found(&body, 1, 1);
    let two: Vec<&Candidate> = all.iter().filter(|c| c.immediates.len() == 2).collect();
    assert_eq!(two.len(), 1, "{all:?}");
    assert!(two[0].semantics.contains("imm2") && two[0].places == 2 && two[0].operations == 3, "{two:?}");
}

#[test]
fn two_outputs_of_the_same_inputs() {
    // A butterfly: the sum and the difference, both needed.
    let body = format!("(i32.mul (i32.add {X} {Y}) (i32.shl (i32.sub {X} {Y}) (i32.const 3)))");
    let all: Vec<String> = found(&body, 2, 2).into_iter().filter(|c| c.outputs == 2).map(|c| c.semantics).collect();
    assert!(all.iter().any(|s| s == "rd = rs1 + rs2; rd2 = rs1 - rs2"), "{all:?}");
    assert!(all.iter().any(|s| s == "rd = rs1 + rs2; rd2 = (rs1 - rs2) << 3"), "{all:?}");
}

#[test]
fn a_value_inside_may_be_an_output() {
    let body = format!(
        "(local.set 3 (i32.add {X} {Y})) (i32.mul (i32.xor (i32.rotl (local.get 3) (i32.const 5)) {X}) (local.get 3))"
    );
    let all: Vec<String> = found(&body, 2, 2).into_iter().filter(|c| c.outputs == 2).map(|c| c.semantics).collect();
    assert!(all.iter().any(|s| s == "let part0 = (rs1 + rs2); rd = part0; rd2 = rotl(part0, 5) ^ rs1"), "{all:?}");
}

#[test]
fn subgraphs_stay_convex() {
    // From the sum by way of a load to the product: with the load outside, the sum and the
    // product cannot be one instruction.
    let text = format!(
        "(module (memory 1) (func (export \"f\") (param i32 i32 i32) (result i32) (local i32) \
         (local.set 3 (i32.add {X} {Y})) (i32.mul (i32.load (local.get 3)) (i32.xor (local.get 3) {X}))))"
    );
    let wasm = wat::parse_str(text).expect("the test's module is well formed");
    let mut module = ciphermill_load::load(&wasm).expect("the test's module loads");
    ciphermill_opt::optimise(&mut module, &ciphermill_opt::Options::default()).expect("the module optimises");
    let funcs: Vec<(FuncId, Func)> = module.funcs.iter().map(|(id, f)| (id, f.clone())).collect();
    let counts: Counts = funcs.iter().flat_map(|(id, f)| f.layout.iter().map(move |&b| ((*id, b), 1))).collect();
    let all = cones::candidates(&funcs, &machine("rv32"), &counts, Limits { inputs: 3, outputs: 2, most: 100 });
    let wrong: Vec<_> = all.iter().filter(|c| c.semantics.contains('+') && c.semantics.contains('*')).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    assert!(all.iter().any(|c| c.semantics == "let part0 = (rs1 + rs2); rd = part0; rd2 = part0 ^ rs1"), "{all:?}");
}

/// Where words have 64 bits and instructions compute in 32, the semantics say which.
#[test]
fn operations_of_32_bits_are_written_as_such_in_wider_words() {
    let text = "(module (func (export \"f\") (param i32 i32 i64) (result i64)
        (i64.xor (i64.rotl (local.get 2) (i64.const 9))
          (i64.extend_i32_u (i32.rotl (i32.add (local.get 0) (local.get 1)) (i32.const 5))))))";
    let wasm = wat::parse_str(text).expect("the test's module is well formed");
    let module = ciphermill_load::load(&wasm).expect("the test's module loads");
    let funcs: Vec<(FuncId, Func)> = module.funcs.iter().map(|(id, f)| (id, f.clone())).collect();
    let counts: Counts = funcs.iter().flat_map(|(id, f)| f.layout.iter().map(move |&b| ((*id, b), 1))).collect();
    let all = cones::candidates(&funcs, &machine("x86_64"), &counts, Limits { inputs: 2, outputs: 1, most: 100 });
    let found: Vec<&str> = all.iter().map(|c| c.semantics.as_str()).collect();
    assert!(found.contains(&"rd = rotl32(add32(rs1, rs2), 5)"), "{found:?}");
    assert!(found.contains(&"rd = rotl(rs1, 9) ^ rs2"), "{found:?}");
}

/// Two programs that differ in which operand of the sums stands first.
#[test]
fn the_order_of_operands_makes_no_difference() {
    let turned = |n: u32| format!("(i32.rotl {Y} (i32.const {n}))");
    let one = format!("(i32.xor {X} {})", turned(7));
    let other = format!("(i32.xor {} {X})", turned(7));
    assert_eq!(semantics(&one, 2), semantics(&other, 2));
    // The first input of the one operation is the second of the other.
    let mix = |sum: &str| format!("(local.set 3 {sum}) (i32.mul (local.get 3) (i32.or {} (local.get 3)))", turned(9));
    let (there, back) = (mix(&format!("(i32.add {X} {Y})")), mix(&format!("(i32.add {Y} {X})")));
    assert_eq!(semantics(&there, 2), semantics(&back, 2));
    assert!(!semantics(&there, 2).is_empty());
}
