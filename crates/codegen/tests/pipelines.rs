//! Loops whose iterations overlap, run for every number of iterations that enters
//! and leaves them in another way.

use ciphermill_codegen::{Options, compile};
use ciphermill_machine::load_from_dir;
use ciphermill_program::Program;
use ciphermill_sim::{SimOptions, Simulator};
use std::path::Path;
use std::sync::Arc;

fn program(machine: &str, body: &str) -> Arc<Program> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let machine = load_from_dir(&root, machine, &[], &[], &[]).expect("the machine file is good");
    let wasm = wat::parse_str(format!("(module (memory (export \"memory\") 1) {body})"));
    let mut module = ciphermill_load::load(&wasm.expect("the test's module is well formed")).expect("it loads");
    ciphermill_opt::optimise(&mut module, &ciphermill_opt::Options::default()).expect("it optimises");
    Arc::new(compile(&module, Arc::new(machine), &Options { level: 2, ..Options::default() }).expect("it compiles"))
}

/// Words from 1024 on, each squared (15 bits of it) and added to its own doubled so many
/// times over, are added up: a chain of dependences as long as that of a cipher, and a
/// sum that the last iteration leaves behind. What is given back is made of it.
const STEPS: usize = 12;

fn chain(back: &str) -> String {
    let step = "(local.set $x (i32.add (i32.shl (local.get $x) (i32.const 1))
                  (i32.mul (i32.and (local.get $x) (i32.const 0x7fff)) (i32.and (local.get $x) (i32.const 0x7fff)))))";
    format!(
        "(func (export \"f\") (param $n i32) (result i32) (local $p i32) (local $x i32) (local $sum i32)
           (loop $next
             (local.set $x (i32.load offset=1024 (local.get $p)))
             {}
             (local.set $sum (i32.add (local.get $sum) (local.get $x)))
             (local.set $p (i32.add (local.get $p) (i32.const 4)))
             (br_if $next (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
           {back})",
        step.repeat(STEPS)
    )
}

fn expected(word: u32) -> u32 {
    (0..STEPS).fold(word, |x, _| (x << 1).wrapping_add((x & 0x7fff) * (x & 0x7fff)))
}

/// A pipeline of three stages and more gives, for every number of iterations, the sum and
/// so much for each word.
fn enters_and_leaves(back: &str, each: u32) {
    let program = program("c64x", &chain(back));
    let stages = program.loops.iter().map(|l| l.stages).max();
    assert!(stages >= Some(3), "{stages:?} stages\n{}", ciphermill_program::asm::print(&program));
    for n in 1..=9u32 {
        let mut sim = Simulator::new(program.clone(), SimOptions::default()).expect("the program fits its machine");
        let words: Vec<u32> = (0..12).map(|i| 0x9e37_79b9u32.wrapping_mul(i + n)).collect();
        for (i, word) in words.iter().enumerate() {
            sim.memory_mut()[1024 + 4 * i..][..4].copy_from_slice(&word.to_le_bytes());
        }
        let found = sim.call_export("f", &[u64::from(n)]).expect("the call returns");
        let sum = words.iter().take(n as usize).fold(0u32, |sum, &word| sum.wrapping_add(expected(word)));
        assert_eq!(found, [u64::from(sum.wrapping_add(n * each))], "{n} words");
    }
}

#[test]
fn every_number_of_iterations_enters_and_leaves() {
    enters_and_leaves("(local.get $sum)", 0);
}

/// A pointer that the code behind the loop goes on from does not tie the end of one
/// iteration to the beginning of the next.
#[test]
fn a_pointer_wanted_behind_the_loop_lets_iterations_overlap() {
    enters_and_leaves("(i32.add (local.get $sum) (local.get $p))", 4);
}

/// Eight rotates in turn, each with one added, which the next iteration goes on from.
#[test]
fn both_shifts_of_a_rotate_start_at_once() {
    let step = "(local.set $x (i32.add (i32.rotl (local.get $x) (i32.const 9)) (i32.const 1)))";
    let body = format!(
        "(func (export \"f\") (param $n i32) (param $x i32) (result i32)
           (loop $next
             {}
             (br_if $next (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
           (local.get $x))",
        step.repeat(8)
    );
    let program = program("c6201", &body);
    // Two shifts, their sum, one more: three cycles with the shifters of both clusters, four with
    // one. A cycle beyond the 24 goes to the end of the loop.
    let ii: Vec<u32> = program.loops.iter().map(|l| l.ii).collect();
    assert!(matches!(ii[..], [24 | 25]), "{ii:?}: {}", ciphermill_program::asm::print(&program));
    for n in 1..=5u32 {
        let mut sim = Simulator::new(program.clone(), SimOptions::default()).expect("the program fits its machine");
        let found = sim.call_export("f", &[u64::from(n), 0x0123_4567]).expect("the call returns");
        let expected = (0..8 * n).fold(0x0123_4567u32, |x, _| x.rotate_left(9).wrapping_add(1));
        assert_eq!(found, [u64::from(expected)], "{n} iterations");
    }
}

/// What is measured and what it calls is worth a search, nothing else: only a search comes with a
/// bound of its own.
#[test]
fn loops_are_searched_in_what_is_measured_and_in_what_it_calls() {
    let rotates = |by: u32| {
        let step = format!("(local.set $x (i32.add (i32.rotl (local.get $x) (i32.const {by})) (i32.const 1)))");
        format!(
            "(param $n i32) (param $x i32) (result i32)
               (loop $next
                 {}
                 (br_if $next (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
               (local.get $x)",
            step.repeat(8)
        )
    };
    let text = format!(
        "(module (memory (export \"memory\") 1)
           (func $called {})
           (func (export \"measured\") (param i32 i32) (result i32)
             (call $called (local.get 0) (call $called (local.get 1) (local.get 0))))
           (func (export \"other\") {})",
        rotates(9),
        rotates(7)
    );
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let machine = Arc::new(load_from_dir(&root, "c6201", &[], &[], &[]).expect("the machine file is good"));
    let wasm = wat::parse_str(format!("{text})")).expect("the test's module is well formed");
    let mut module = ciphermill_load::load(&wasm).expect("it loads");
    let apart = ciphermill_opt::Options { inline_up_to: 0, ..Default::default() };
    ciphermill_opt::optimise(&mut module, &apart).expect("it optimises");
    let bounds = |searched: Option<&str>| {
        let options = Options { level: 2, searched: searched.map(str::to_owned), ..Options::default() };
        let program = compile(&module, machine.clone(), &options).expect("it compiles");
        program.loops.iter().map(|l| l.lower_bound > 0).collect::<Vec<_>>()
    };
    assert_eq!(bounds(None), [true, true]);
    assert_eq!(bounds(Some("measured")), [true, false]);
    assert_eq!(bounds(Some("other")), [false, true]);
}
