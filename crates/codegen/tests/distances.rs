//! Loops whose iterations meet in memory at some distance, or not at all: how far their iterations
//! overlap, that they compute what they should, and that a schedule for one distance is refused for a
//! shorter one.

use ciphermill_codegen::{Options, compile};
use ciphermill_machine::load_from_dir;
use ciphermill_program::Program;
use ciphermill_schedule::verified::{Checked, Witness};
use ciphermill_sim::{SimOptions, Simulator};
use ciphermill_verify::{Arg, Inst, Pipeline, Rules, SourceLoop, pipelined};
use std::path::Path;
use std::sync::Arc;

const MACHINES: [&str; 4] = ["c6201", "c64x", "epic", "itanium2"];

/// A word is loaded, changed by a chain of dependences, and stored so many bytes further on.
const STEPS: u32 = 6;

/// The address that is stored to, as WebAssembly, and its offset. `q` begins where `p` does.
fn body(to: &str) -> String {
    let step = "(local.set $x (i32.add (i32.xor (local.get $x) (i32.shl (local.get $x) (i32.const 3))) (i32.const 9)))";
    format!(
        "(func (export \"f\") (param $p i32) (param $n i32) (local $x i32) (local $q i32)
           (local.set $q (i32.add (local.get $p) (i32.const 28)))
           (loop $next
             (local.set $x (i32.load (local.get $p)))
             {}
             (i32.store {to} (local.get $x))
             (local.set $p (i32.add (local.get $p) (i32.const 4)))
             (local.set $q (i32.add (local.get $q) (i32.const 4)))
             (br_if $next (local.tee $n (i32.sub (local.get $n) (i32.const 1))))))",
        step.repeat(STEPS as usize)
    )
}

fn changed(x: u32) -> u32 {
    (0..STEPS).fold(x, |x, _| (x ^ x << 3).wrapping_add(9))
}

struct Case {
    program: Arc<Program>,
    rules: Rules,
    source: SourceLoop,
    pipeline: Pipeline,
}

fn case(machine: &str, body: &str, buffers: bool) -> Case {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let machine = Arc::new(load_from_dir(&root, machine, &[], &[], &[]).expect("the machine file is good"));
    let wasm = wat::parse_str(format!("(module (memory (export \"memory\") 1) {body})"));
    let mut module = ciphermill_load::load(&wasm.expect("the test's module is well formed")).expect("it loads");
    ciphermill_opt::optimise(&mut module, &ciphermill_opt::Options::default()).expect("it optimises");
    let witness = Witness::default();
    let buffers = if buffers { vec![("f".into(), 2)] } else { Vec::new() };
    let options = Options { level: 2, buffers, witness: Some(witness.clone()), ..Options::default() };
    let program =
        Arc::new(compile(&module, machine.clone(), &options).expect("it compiles, and every schedule passes"));
    let checked = witness.lock().expect("nobody panicked").clone();
    let found = checked.into_iter().find_map(|c| if let Checked::Loop(s, p) = c { Some((s, p)) } else { None });
    let (source, pipeline) = found.unwrap_or_else(|| panic!("{}: the loop is pipelined", machine.name));
    Case { program, rules: Rules::new(machine), source, pipeline }
}

/// Words as the loop leaves them, by the code and by hand.
fn runs(case: &Case, behind: usize, what: &str) {
    for n in 1..=12usize {
        let mut sim =
            Simulator::new(case.program.clone(), SimOptions::default()).expect("the program fits its machine");
        let mut words: Vec<u32> = (0..40).map(|i| 0x9e37_79b9u32.wrapping_mul(i + n as u32)).collect();
        for (i, word) in words.iter().enumerate() {
            sim.memory_mut()[1024 + 4 * i..][..4].copy_from_slice(&word.to_le_bytes());
        }
        sim.call_export("f", &[1024, n as u64]).expect("the call returns");
        (0..n).for_each(|i| words[i + behind] = changed(words[i]));
        let left = &sim.memory_mut()[1024..][..160];
        let left: Vec<u32> = left.chunks(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect();
        assert_eq!(left, words, "{what}, {n} iterations");
    }
}

#[test]
fn the_interval_is_what_the_distance_leaves() {
    for name in MACHINES {
        let mut intervals = Vec::new();
        for behind in [1, 2, 3, 7] {
            let case = case(name, &body(&format!("offset={} (local.get $p)", 4 * behind)), false);
            runs(&case, behind, &format!("{name}, {behind} words behind"));
            intervals.push((case.program.loops[0].ii, case.program.loops[0].rec_mii));
        }
        // What goes round once in so many iterations takes so many times less of each.
        let whole = intervals[0].1;
        assert!(whole > 12, "{name}: {intervals:?}");
        assert_eq!(intervals[1].1, whole.div_ceil(2), "{name}: {intervals:?}");
        assert_eq!(intervals[2].1, whole.div_ceil(3), "{name}: {intervals:?}");
        assert!(intervals[2].0 < intervals[0].0, "{name}: {intervals:?}");
    }
}

/// All immediates of one value become another.
fn immediates(insts: &mut [Inst], from: i64, to: i64) -> usize {
    let mut changed = 0;
    for arg in insts.iter_mut().flat_map(|i| &mut i.args) {
        if *arg == Arg::Imm(from) {
            *arg = Arg::Imm(to);
            changed += 1;
        }
    }
    changed
}

/// The same schedule of the same loop, but for what it stores to.
fn bent(case: &Case, from: i64, to: i64) -> (SourceLoop, Pipeline) {
    let (mut source, mut pipeline) = (case.source.clone(), case.pipeline.clone());
    let mut changed = immediates(&mut source.body, from, to);
    for access in source.body.iter_mut().filter_map(|i| i.access.as_mut()).filter(|a| a.offset == from) {
        access.offset = to;
    }
    changed += immediates(&mut source.outside, from, to);
    for bundle in pipeline.blocks.iter_mut().flat_map(|b| &mut b.bundles) {
        immediates(bundle, from, to);
    }
    immediates(&mut pipeline.before, from, to);
    assert!(changed > 0, "nothing was changed in {:?}", case.source);
    (source, pipeline)
}

#[test]
fn a_schedule_for_a_longer_distance_is_refused() {
    for name in MACHINES {
        let case = case(name, &body("offset=28 (local.get $p)"), false);
        pipelined(&case.rules, &case.source, &case.pipeline).expect("as it was made it passes");
        // Seven words further on or more, nothing under way meets; one word on, the next iteration does.
        for (to, good) in [(32, true), (36, true), (4, false), (5, false), (3, false), (1, false)] {
            let (source, pipeline) = bent(&case, 28, to);
            let found = pipelined(&case.rules, &source, &pipeline);
            assert_eq!(found.is_ok(), good, "{name}: stored {to} bytes on: {found:?}");
        }
    }
}

/// A second pointer that begins 28 bytes behind the first is known by what it was made of.
#[test]
fn a_pointer_is_known_by_where_it_begins() {
    for name in MACHINES {
        let case = case(name, &body("(local.get $q)"), false);
        runs(&case, 7, name);
        assert!(case.program.loops[0].rec_mii < 12, "{name}: {:?}", case.program.loops[0].rec_mii);
        pipelined(&case.rules, &case.source, &case.pipeline).expect("as it was made it passes");
        let (begins, pipeline) = bent(&case, 28, 4);
        pipelined(&case.rules, &begins, &pipeline).expect_err("it begins one word behind the first");
        let alone = SourceLoop { outside: Vec::new(), ..case.source.clone() };
        let unknown = SourceLoop { entered: Vec::new(), ..case.source.clone() };
        if !case.source.outside.is_empty() {
            pipelined(&case.rules, &alone, &case.pipeline).expect_err("nobody knows where it begins");
            pipelined(&case.rules, &unknown, &case.pipeline).expect_err("nobody knows where either begins");
        }
    }
}

/// Two pointers to buffers of their own; the second takes such a step.
fn buffers(step: i32) -> String {
    body("(local.get $q)")
        .replacen(
            "(param $p i32) (param $n i32) (local $x i32) (local $q i32)",
            "(param $p i32) (param $q i32) (param $n i32) (local $x i32)",
            1,
        )
        .replacen("(local.set $q (i32.add (local.get $p) (i32.const 28)))", "", 1)
        .replacen("(i32.add (local.get $q) (i32.const 4))", &format!("(i32.add (local.get $q) (i32.const {step}))"), 1)
}

/// The loop with nothing known of its pointers but that the second begins so many bytes behind the first.
fn related(case: &Case, behind: i64) -> SourceLoop {
    let mut source = case.source.clone();
    for access in source.body.iter_mut().filter_map(|i| i.access.as_mut()) {
        access.object = ciphermill_verify::Object::Anything;
    }
    let pointer = |store: bool| {
        let is = |i: &&Inst| i.access.is_some_and(|a| a.store == store);
        let inst = source.body.iter().find(is).expect("it loads and stores");
        let own = |a: &Arg| if let Arg::Reg(r) = a { source.params.contains(r).then_some(*r) } else { None };
        inst.args.iter().find_map(own).expect("a pointer that is carried round")
    };
    let (load, store) = (pointer(false), pointer(true));
    let first = source.entered.iter().find(|e| e.0 == load).expect("one way into the loop").1;
    let new = 1 << 20;
    let reads = |a: &Arg| matches!(*a, Arg::Reg(r) | Arg::Tied { read: r, .. } if r == load);
    let advances = |i: &&Inst| i.access.is_none() && i.args.iter().any(reads);
    let mut begins = source.body.iter().chain(&source.between).find(advances).expect("the pointer goes on").clone();
    for arg in &mut begins.args {
        *arg = match *arg {
            Arg::Reg(r) if r == load => Arg::Reg(first),
            Arg::Reg(_) => Arg::Reg(new),
            Arg::Tied { .. } => Arg::Tied { read: first, write: new },
            Arg::Imm(_) => Arg::Imm(behind),
            other => other,
        };
    }
    source.outside.push(begins);
    source.entered.retain(|e| e.0 != store);
    source.entered.push((store, new));
    source
}

/// Pointers of different steps are apart for as many iterations as are run, and meet later.
#[test]
fn pointers_of_different_steps_are_not_told_apart() {
    for name in MACHINES {
        for (step, good) in [(4, true), (-4, false), (8, false), (12, false)] {
            let case = case(name, &buffers(step), true);
            pipelined(&case.rules, &case.source, &case.pipeline).expect("as it was made it passes");
            let found = pipelined(&case.rules, &related(&case, 4000), &case.pipeline);
            assert_eq!(found.is_ok(), good, "{name}: a step of {step}: {found:?}");
            pipelined(&case.rules, &related(&case, 4), &case.pipeline).expect_err("the next iteration loads it");
        }
    }
}
