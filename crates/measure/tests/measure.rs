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
        aligned: false,
        fixed: false,
        constant_time: false,
        cipher: "toy".into(),
        variant: "plain".into(),
        direction: Direction::Encrypt,
        key_bits: 32,
        iv_bytes: 0,
        block_bytes: None,
        blocks: Blocks::Multi,
        bytes: Some(1024),
        machine: machine(machine_name),
        vectors: None,
        level: 2,
        optimise: Goal::Speed,
        origin: serde_json::Value::Null,
        trace: None,
        schedules: vec![],
        search: None,
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
    let message = refused(&cipher("unreachable"), &request("rv32"));
    assert_eq!(
        message,
        "cm_encrypt_blocks stopped on the reference interpreter: trap: an unreachable place was reached \
         (abort, a failed assertion, undefined behaviour)"
    );
}

#[test]
fn a_cipher_that_never_returns() {
    let message = refused(&cipher("(loop $l (br $l)) unreachable"), &request("rv32"));
    assert_eq!(message, "cm_encrypt_blocks stopped on the reference interpreter: it does not come to an end");
}

#[test]
fn a_missing_direction_is_named() {
    let message = refused(&cipher(XOR), &Request { direction: Direction::Decrypt, ..request("rv32") });
    assert!(
        message.starts_with("the module does not export cm_keysetup_decrypt (it exports cm_block_bytes, "),
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
        Err(MeasureError::Input(_)) => {}
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
