//! The whole way, on ciphers of a few lines, and what happens when something
//! on the way is wrong.

use ciphermill_measure::{
    Blocks, Direction, Goal, MachineRequest, MeasureError, Measurement, Request, TextFile, VectorReport, measure, speed,
};
use std::path::Path;

/// A block cipher in WebAssembly text: blocks of 4 bytes, xored with the key
/// and rotated. `{encrypt}` is the body of the round.
fn cipher(round: &str) -> Vec<u8> {
    wat::parse_str(text(round)).unwrap()
}

fn text(round: &str) -> String {
    format!(
        r#"(module
        (memory (export "memory") 2)
        (global (export "__heap_base") i32 (i32.const 66000))
        (data $.rodata (i32.const 65536) "\01\02\03\04\05\06\07\08")
        (func (export "cm_ctx_bytes") (result i32) i32.const 4)
        (func (export "cm_block_bytes") (result i32) i32.const 4)
        (func (export "cm_keysetup") (param $ctx i32) (param $key i32) (param i32)
            (i32.store (local.get $ctx) (i32.load (local.get $key))))
        (func $round (param $ctx i32) (param $x i32) (result i32) {round})
        (func (export "cm_encrypt_blocks") (param $ctx i32) (param $in i32) (param $out i32) (param $n i32)
            (if (i32.eqz (local.get $n)) (then return))
            (loop $more
                (i32.store (local.get $out) (call $round (local.get $ctx) (i32.load (local.get $in))))
                (local.set $in (i32.add (local.get $in) (i32.const 4)))
                (local.set $out (i32.add (local.get $out) (i32.const 4)))
                (br_if $more (local.tee $n (i32.sub (local.get $n) (i32.const 1))))))
        (func (export "cm_encrypt_feedback") (param $ctx i32) (param $in i32) (param $out i32) (param $n i32)
            (local $x i32)
            (local.set $x (i32.load (local.get $in)))
            (loop $more
                (local.set $x (call $round (local.get $ctx) (local.get $x)))
                (br_if $more (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
            (i32.store (local.get $out) (local.get $x))))"#
    )
}

const XOR: &str = "(i32.rotl (i32.xor (local.get $x) (i32.load (local.get $ctx))) (i32.const 5))";

fn machine(name: &str) -> MachineRequest {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = |name: &str| -> Vec<TextFile> {
        let mut files: Vec<_> = std::fs::read_dir(root.join(name)).unwrap().map(|e| e.unwrap().path()).collect();
        files.retain(|p| p.extension().is_some_and(|e| e == "toml"));
        files.sort();
        files
            .iter()
            .map(|p| TextFile { path: p.display().to_string(), text: std::fs::read_to_string(p).unwrap() })
            .collect()
    };
    let library = folder("machines");
    let file = library.iter().find(|f| f.path.ends_with(&format!("{name}.toml"))).unwrap().clone();
    MachineRequest { file, library, extensions: folder("extensions"), with: vec![], without: vec![], set: vec![] }
}

fn request(machine_name: &str) -> Request {
    Request {
        jam: None,
        unroll: None,
        exact: None,
        whole: false,
        hints: true,
        aligned: false,
        fixed: false,
        constant_time: false,
        cipher: "toy".into(),
        variant: "plain".into(),
        direction: Direction::Encrypt,
        key_bits: 32,
        kernel: None,
        iv_bytes: 0,
        block_bytes: None,
        blocks: Blocks::Multi,
        limit: None,
        bytes: Some(1024),
        machine: machine(machine_name),
        vectors: None,
        level: 2,
        optimise: Goal::Speed,
        origin: serde_json::Value::Null,
        trace: None,
        schedules: vec![],
        kept_in: vec![],
        search: None,
        patience: 1,
    }
}

fn ok(wasm: &[u8], request: &Request) -> Measurement {
    measure(wasm, request).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn a_toy_cipher_on_both_machines() {
    for name in ["rv32", "leon2"] {
        let m = ok(&cipher(XOR), &request(name));
        assert!(m.verified, "{:?}", m.failure);
        assert_eq!((m.bytes, m.block_bytes, m.machine.as_str()), (1024, 4, name));
        // Load, xor, rotate, store, two pointers, a counter and a branch.
        assert!((6.0..30.0).contains(&m.cycles_per_block), "{}", m.cycles_per_block);
        assert!(m.bounds.lower <= m.cycles_per_block);
        assert_eq!(m.table_bytes, 0);
    }
}

#[test]
fn optimisation_changes_cycles_and_nothing_else() {
    let fast = ok(&cipher(XOR), &request("rv32"));
    let slow = ok(&cipher(XOR), &Request { level: 0, ..request("rv32") });
    assert!(slow.verified && slow.cycles > fast.cycles);
    assert_ne!(slow.provenance.settings, fast.provenance.settings);
}

#[test]
fn small_code_is_right_and_no_larger() {
    for name in ["rv32", "leon2", "c6201", "epic"] {
        let fast = ok(&cipher(XOR), &request(name));
        let small = ok(&cipher(XOR), &Request { optimise: Goal::Size, ..request(name) });
        assert!(small.verified, "{:?}", small.failure);
        assert!(small.code_bytes <= fast.code_bytes, "{name}: {} and {}", small.code_bytes, fast.code_bytes);
        assert_ne!(small.provenance.settings, fast.provenance.settings);
    }
    // A loop in few bundles: without prologue and epilogue, and none of it left blank.
    let small = ok(&cipher(XOR), &Request { optimise: Goal::Size, ..request("c6201") });
    assert!(small.loops.is_empty() && small.unroll == 1 && small.jam == 1);
}

#[test]
fn a_feedback_mode_waits_for_itself() {
    let multi = ok(&cipher(XOR), &request("rv32"));
    let single = ok(&cipher(XOR), &Request { blocks: Blocks::Single, ..request("rv32") });
    assert!(single.verified);
    // Xor, then two shifts at once, then or: three cycles from block to block.
    assert_eq!(single.bounds.recurrence, 3.0);
    assert!(multi.bounds.recurrence < 3.0);
}

#[test]
fn tables_are_counted() {
    let round = "(i32.xor (local.get $x) (i32.load8_u offset=65536 (i32.and (local.get $x) (i32.const 7))))";
    let m = ok(&cipher(round), &request("leon2"));
    assert!(m.verified);
    assert_eq!(m.table_bytes, 8);
    assert!(m.metrics.lookup_share > 0.0);
}

#[test]
fn failed_vectors_are_not_verified() {
    let vectors = Some(VectorReport { cases: 3, failed: Some("vector 3".into()) });
    let m = ok(&cipher(XOR), &Request { vectors, ..request("rv32") });
    assert!(!m.verified);
    assert_eq!(m.failure.as_deref(), Some("vector 3"));
}

fn refused(wasm: &[u8], request: &Request) -> String {
    match measure(wasm, request) {
        Err(MeasureError::Input(message)) => message,
        other => panic!("not refused as bad input: {other:?}"),
    }
}

#[test]
fn a_trap_is_the_modules_fault() {
    // One in the round, which the driver calls; what an unreachable place has no operator for is told by the one before.
    let traps = [
        (
            "(drop (i32.const 7)) unreachable",
            "an unreachable place was reached (abort, a failed assertion, undefined behaviour)",
        ),
        ("(i32.load (i32.const -8))", "an access outside of memory"),
        ("(i32.rem_u (local.get $x) (i32.const 0))", "a division by zero"),
        ("(call $round (local.get $ctx) (local.get $x))", "calls nested too deep (endless recursion?)"),
    ];
    for (round, what) in traps {
        let placed = match measure(&cipher(round), &request("rv32")) {
            Err(MeasureError::Module(placed)) => placed,
            other => panic!("{round}: {other:?}"),
        };
        assert_eq!(placed.what, format!("{what}, when cm_encrypt_blocks ran on the reference interpreter"));
        let functions: Vec<&str> = placed.places.iter().map(|place| place.function.as_str()).collect();
        assert!(functions.starts_with(&["round"]), "{round}: {functions:?}");
        assert_eq!(functions.last(), Some(&"cm_encrypt_blocks"), "{round}");
        assert!(placed.places.iter().all(|place| place.offset != 0), "{round}");
        assert!(placed.to_string().starts_with("function \"round\" at offset 0x"), "{placed}");
        assert!(placed.to_string().lines().count() < 20, "{placed}");
    }
}

#[test]
fn a_cipher_that_never_returns() {
    for direction in [Direction::Encrypt, Direction::Keysetup] {
        let endless = match direction {
            Direction::Encrypt => cipher("(loop $l (br $l)) unreachable"),
            _ => wat::parse_str(text(XOR).replace("(param i32)\n", "(param i32) (loop $l (br $l))\n")).unwrap(),
        };
        let message = refused(&endless, &Request { direction, bytes: None, limit: Some(2_000_000), ..request("rv32") });
        assert!(message.contains(" stopped on the reference interpreter: the limit of 2,000,000 steps"), "{message}");
        assert!(message.contains(" --limit 20000000"), "{message}");
    }
}

#[test]
fn a_limit_is_the_same_on_every_machine() {
    // Some hundred steps a block; on a machine without division each is a hundred instructions and more.
    let slow = cipher(
        "(local $i i32) (local.set $i (i32.const 40))
         (loop $more
            (local.set $x (i32.rem_u (i32.rotl (local.get $x) (i32.const 5)) (i32.const 159)))
            (br_if $more (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
         (i32.add (local.get $x) (i32.rem_u (local.get $i) (i32.load (local.get $ctx))))",
    );
    let on = |machine: &str, limit: u64| measure(&slow, &Request { limit: Some(limit), ..request(machine) });
    let mut refusals = std::collections::BTreeSet::new();
    for machine in ["rv32", "c6201", "leon2"] {
        let m = on(machine, 100_000).unwrap_or_else(|e| panic!("{machine}: {e}"));
        assert!(m.verified, "{machine}: {:?}", m.failure);
        refusals.insert(on(machine, 20_000).unwrap_err().to_string());
    }
    assert!(on("c6201", 100_000).unwrap().instructions > 100_000, "it says nothing where the limit is not reached");
    assert_eq!(refusals.len(), 1, "{refusals:?}");
    let refusal = refusals.first().unwrap();
    assert!(refusal.contains("the limit of 20,000 steps") && refusal.contains("--limit 200000"), "{refusal}");
}

#[test]
fn a_wrong_alignment_hint_costs_cycles_and_is_no_error() {
    // The key is read at an odd address, by an operator that states 4, and by one that states nothing.
    let at = |align: u32| {
        let round = format!(
            "(i32.rotl (i32.xor (local.get $x) (i32.load offset=1 align={align} (i32.const 65536))) (i32.load (local.get $ctx)))"
        );
        cipher(&round)
    };
    for name in ["rv32", "leon2", "c6201", "core2"] {
        let (wrong, honest) = (ok(&at(4), &request(name)), ok(&at(1), &request(name)));
        assert!(wrong.verified, "{name}: {:?}", wrong.failure);
        assert_eq!(wrong.cycles, honest.cycles, "{name}: one access is not believed, and no other");
        let found = wrong.misaligned.map(|w| (w.accesses, w.first.map(|p| p.function)));
        let expected = (name != "core2").then(|| (Some(1), Some("round".to_owned())));
        assert_eq!((found, honest.misaligned), (expected, None), "{name}");
    }
}

#[test]
fn a_hint_that_is_wrong_late_is_found_on_the_message_itself() {
    // What is read moves to an odd address with the ninth block.
    let late = cipher(
        "(i32.store (i32.const 65600) (i32.add (i32.load (i32.const 65600)) (i32.const 1)))
         (i32.xor (local.get $x) (i32.load
            (i32.add (i32.const 65536) (i32.ge_u (i32.load (i32.const 65600)) (i32.const 9)))))",
    );
    for name in ["rv32", "leon2"] {
        let m = ok(&late, &request(name));
        assert!(m.verified, "{name}: {:?}", m.failure);
        assert_eq!(m.misaligned.map(|w| (w.accesses, w.first)), Some((None, None)), "{name}");
    }
}

#[test]
fn a_missing_direction_is_named() {
    let message = refused(&cipher(XOR), &Request { direction: Direction::Decrypt, ..request("rv32") });
    assert!(
        message.starts_with(
            "the cipher does not decrypt: the module exports cm_encrypt_blocks and no cm_keysetup_decrypt; "
        ),
        "{message}"
    );
}

#[test]
fn a_module_without_heap_base() {
    let text = r#"(module (memory (export "memory") 1)
        (func (export "cm_ctx_bytes") (result i32) i32.const 4)
        (func (export "cm_block_bytes") (result i32) i32.const 4))"#;
    let message = refused(&wat::parse_str(text).unwrap(), &request("rv32"));
    assert!(message.contains("link it with -Wl,--export=__heap_base"), "{message}");
}

#[test]
fn a_module_that_keeps_to_the_interface_by_half() {
    let altered = |from: &str, to: &str| {
        let text = text(XOR);
        assert!(text.contains(from));
        refused(&wat::parse_str(text.replacen(from, to, 1)).unwrap(), &request("rv32"))
    };
    let message = altered(
        "\"cm_keysetup\") (param $ctx i32) (param $key i32) (param i32)",
        "\"cm_keysetup\") (param $ctx i32) (param $key i32)",
    );
    assert!(
        message.starts_with("the module's cm_keysetup takes (i32, i32); it must take (i32, i32, i32)"),
        "{message}"
    );
    let message = altered("(memory (export \"memory\") 2)", "(memory 2)");
    assert!(message.starts_with("the module exports no memory"), "{message}");
    let message = altered("(i32.const 66000)", "(i32.const -64)");
    assert!(
        message.starts_with("__heap_base is so high that no context buffer fits behind it (address 0xffffffc0"),
        "{message}"
    );
}

#[test]
fn sizes_that_make_no_sense() {
    let text = r#"(module (memory (export "memory") 1) (global (export "__heap_base") i32 (i32.const 0))
        (func (export "cm_ctx_bytes") (result i32) i32.const 0)
        (func (export "cm_block_bytes") (result i32) i32.const 4))"#;
    let message = refused(&wat::parse_str(text).unwrap(), &request("rv32"));
    assert!(message.starts_with("cm_ctx_bytes() returned [0]; it must return a size of 1 to "), "{message}");
}

#[test]
fn a_memory_that_cannot_grow() {
    let text = r#"(module
        (memory (export "memory") 2 2)
        (global (export "__heap_base") i32 (i32.const 66000))
        (func (export "cm_ctx_bytes") (result i32) i32.const 4)
        (func (export "cm_block_bytes") (result i32) i32.const 4)
        (func (export "cm_keysetup") (param i32 i32 i32))
        (func (export "cm_encrypt_blocks") (param i32 i32 i32 i32)
            (i32.store (local.get 2) (i32.load (local.get 1)))))"#;
    let message = refused(&wat::parse_str(text).unwrap(), &Request { bytes: Some(1 << 20), ..request("rv32") });
    assert!(message.contains("use a shorter message, or link with a larger --max-memory"), "{message}");
}

#[test]
fn damaged_modules_are_refused_or_measured_right() {
    let good = cipher(XOR);
    let try_it = |bytes: &[u8], what: String| match measure(bytes, &Request { bytes: Some(8), ..request("rv32") }) {
        Ok(m) => assert!(m.verified, "{what}: {:?}", m.failure),
        Err(MeasureError::Input(_) | MeasureError::Module(_) | MeasureError::Misaligned(_)) => {}
        Err(MeasureError::Internal(message)) => panic!("{what}: {message}"),
    };
    for end in (0..good.len()).step_by(7) {
        try_it(&good[..end], format!("the first {end} bytes"));
    }
    for at in (8..good.len()).step_by(11) {
        let mut bad = good.clone();
        bad[at] ^= 0x41;
        try_it(&bad, format!("byte {at} changed"));
    }
}

#[test]
fn timed_runs_count_what_the_measurement_counts() {
    let request = Request { bytes: Some(1 << 18), ..request("leon2") };
    let m = ok(&cipher(XOR), &request);
    let timed = speed(&cipher(XOR), &request, 3).unwrap();
    assert_eq!((timed.instructions, timed.cycles), (m.instructions, m.cycles));
    assert_eq!(timed.seconds.len(), 3);
    assert!(timed.seconds.iter().all(|&s| s > 0.0));
    let wrong = Request { bytes: Some(3), ..request };
    assert!(speed(&cipher(XOR), &wrong, 1).is_err());
}
