//! Small modules whose verdict is known.

use ciphermill_audit::{AuditError, Kind, Report, Run, audit};

/// A context, a key of 16 bytes, and messages of one, two and three blocks of 16; other ones for each number.
fn run(driver: &str, counts: [u64; 3], secrets: u8) -> Run {
    let [ctx, key, input, output] = [65536u32, 65600, 65664, 65728];
    let at = |n: u32| u64::from(n);
    let mut calls = vec![("cm_keysetup".into(), vec![at(ctx), at(key), 16])];
    calls.extend(counts.map(|n| (driver.into(), vec![at(ctx), at(input), at(output), n])));
    let bytes = |seed: u8, n: u8| (0..n).map(|i| seed.wrapping_mul(77).wrapping_add(i.wrapping_mul(41))).collect();
    Run { memory: output + 64, secrets: vec![(key, bytes(1 + secrets, 16)), (input, bytes(2 + secrets, 48))], calls }
}

/// A block cipher whose `cm_encrypt_blocks` has this body. The key is copied
/// to the context by `cm_keysetup`; word 16 of the context is its length.
fn cipher(body: &str, more: &str) -> Report {
    let text = format!(
        r#"(module
          (memory (export "memory") 4)
          (global $stack (mut i32) (i32.const 60000))
          (global (export "__heap_base") i32 (i32.const 65536))
          (table 2 funcref)
          (elem (i32.const 0) $leaf $leaf)
          (type $leaf_type (func (param i32) (result i32)))
          (func $leaf (type $leaf_type) (i32.add (local.get 0) (i32.const 1)))
          (func (export "cm_ctx_bytes") (result i32) (i32.const 20))
          (func (export "cm_block_bytes") (result i32) (i32.const 16))
          (func (export "cm_keysetup") (param $ctx i32) (param $key i32) (param $bytes i32)
            (memory.copy (local.get $ctx) (local.get $key) (local.get $bytes))
            (i32.store offset=16 (local.get $ctx) (local.get $bytes)))
          {more}
          (func $encrypt (export "cm_encrypt_blocks")
            (param $ctx i32) (param $in i32) (param $out i32) (param $n i32) (local $x i32)
            {body}))"#
    );
    let runs: Vec<Run> = (0..4).map(|secrets| run("cm_encrypt_blocks", [1, 2, 3], secrets)).collect();
    audit(&wat::parse_str(text).unwrap(), &runs, None).unwrap()
}

fn kinds(body: &str, more: &str) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = cipher(body, more).findings.iter().map(|f| f.kind).collect();
    kinds.dedup();
    kinds
}

#[test]
fn arithmetic_on_secrets_is_clean() {
    let report = cipher(
        "(i32.store (local.get $out) (i32.rotl (i32.add (i32.load (local.get $in)) (i32.load (local.get $ctx)))
                                               (i32.load (local.get $in))))",
        "",
    );
    assert!(report.clean && report.findings.is_empty());
    assert!(report.reached > 0 && report.reached <= report.sites && report.runs > 0);
}

#[test]
fn a_branch_on_the_message() {
    let body = "(if (i32.load8_u (local.get $in)) (then (i32.store (local.get $out) (i32.const 1))))";
    let report = cipher(body, "");
    assert_eq!(report.findings.len(), 1, "{report:?}");
    assert_eq!((report.findings[0].kind, report.findings[0].function.as_str()), (Kind::Branch, "encrypt"));
    assert!(!report.clean && report.findings[0].offset > 0 && report.findings[0].line.is_none());
}

#[test]
fn a_branch_on_the_key() {
    assert_eq!(
        kinds("(if (i32.load (local.get $ctx)) (then (nop) (i32.store (local.get $out) (i32.const 1))))", ""),
        [Kind::Branch]
    );
}

#[test]
fn a_switch_on_a_secret() {
    let body =
        "(block $a (block $b (br_table $a $b (i32.load (local.get $in)))) (i32.store (local.get $out) (i32.const 1)))";
    assert_eq!(kinds(body, ""), [Kind::Branch]);
}

#[test]
fn a_table_lookup_and_a_scattered_store() {
    let lookup = "(i32.store (local.get $out) (i32.load8_u offset=1024 (i32.load8_u (local.get $in))))";
    assert_eq!(kinds(lookup, ""), [Kind::Address]);
    let store = "(i32.store8 offset=1024 (i32.load8_u (local.get $in)) (i32.const 1))";
    assert_eq!(kinds(store, ""), [Kind::Address]);
    // What is read at a secret address is secret, whatever stands there.
    let then = "(if (i32.load8_u offset=1024 (i32.load8_u (local.get $in))) (then (unreachable)))";
    assert_eq!(cipher(then, "").findings.len(), 2);
}

#[test]
fn a_division_and_a_call_through_a_pointer() {
    let division = "(i32.store (local.get $out) (i32.div_u (i32.load (local.get $in)) (i32.const 10)))";
    assert_eq!(kinds(division, ""), [Kind::Division]);
    let call = "(i32.store (local.get $out)
        (call_indirect (type $leaf_type) (i32.const 7) (i32.and (i32.load (local.get $in)) (i32.const 1))))";
    assert!(kinds(call, "").contains(&Kind::IndirectCall), "{:?}", kinds(call, ""));
}

#[test]
fn what_is_public_stays_public() {
    // The count of blocks, the length kept in the context, a public table entry.
    let body = "(loop $l
          (i32.store (local.get $out) (i32.load offset=1024 (i32.load offset=16 (local.get $ctx))))
          (local.set $n (i32.sub (local.get $n) (i32.const 1)))
          (br_if $l (local.get $n)))
        (if (i32.load offset=16 (local.get $ctx)) (then (i32.store (local.get $out) (i32.const 1))))
        (if (i32.and (i32.load (local.get $in)) (i32.const 0)) (then (unreachable)))";
    assert!(cipher(body, "").clean);
}

#[test]
fn secrets_pass_through_memory_and_are_overwritten() {
    let spill = "(i32.store (i32.const 2048) (i32.load (local.get $in)))";
    let branch = "(if (i32.load (i32.const 2048)) (then (i32.store (local.get $out) (i32.const 1))))";
    assert_eq!(kinds(&format!("{spill}{branch}"), ""), [Kind::Branch]);
    assert!(cipher(&format!("{spill}(i32.store (i32.const 2048) (i32.const 5)){branch}"), "").clean);
    // One byte of four is enough; its neighbours are as they were.
    let byte = "(i32.store8 (i32.const 2049) (i32.load8_u (local.get $in)))";
    assert_eq!(kinds(&format!("{byte}{branch}"), ""), [Kind::Branch]);
    let beside = "(if (i32.load8_u (i32.const 2048)) (then (i32.store (local.get $out) (i32.const 1))))";
    assert!(cipher(&format!("{byte}{beside}"), "").clean);
}

const HELPERS: &str = r#"
    (func $identity (param i32) (result i32) (local.get 0))
    (func $leaks (param i32) (result i32)
      (if (result i32) (local.get 0) (then (i32.const 1)) (else (i32.const 2))))
    (func $through_frame (param $x i32) (result i32) (local $frame i32)
      (local.set $frame (i32.sub (global.get $stack) (i32.const 16)))
      (global.set $stack (local.get $frame))
      (i32.store offset=4 (local.get $frame) (i32.const 3))
      (i32.store offset=8 (local.get $frame) (local.get $x))
      (global.set $stack (i32.add (local.get $frame) (i32.const 16)))
      (i32.load offset=8 (local.get $frame)))"#;

#[test]
fn secrets_pass_through_calls() {
    let body = "(if (call $identity (i32.load (local.get $in))) (then (i32.store (local.get $out) (i32.const 1))))";
    assert_eq!(kinds(body, HELPERS), [Kind::Branch]);
    // A function called with a secret and with a public value is judged by call.
    let body = "(if (call $identity (i32.const 1)) (then (i32.store (local.get $out) (call $identity (i32.load (local.get $in))))))";
    assert!(cipher(body, HELPERS).clean);
    let report = cipher("(i32.store (local.get $out) (call $leaks (i32.load (local.get $in))))", HELPERS);
    assert_eq!(report.findings[0].function, "leaks");
}

#[test]
fn secrets_pass_through_stack_frames() {
    let body =
        "(if (call $through_frame (i32.load (local.get $in))) (then (i32.store (local.get $out) (i32.const 1))))";
    assert_eq!(kinds(body, HELPERS), [Kind::Branch]);
    assert!(
        cipher("(if (call $through_frame (i32.const 9)) (then (i32.store (local.get $out) (i32.const 1))))", HELPERS)
            .clean
    );
}

#[test]
fn secrets_pass_through_globals_and_copies() {
    let body = "(global.set $stack (i32.load (local.get $in)))
                (if (global.get $stack) (then (i32.store (local.get $out) (i32.const 1))))";
    assert_eq!(kinds(body, ""), [Kind::Branch]);
    let body = "(memory.copy (i32.const 4096) (local.get $in) (i32.const 16))
                (if (i32.load (i32.const 4100)) (then (i32.store (local.get $out) (i32.const 1))))";
    assert_eq!(kinds(body, ""), [Kind::Branch]);
}

#[test]
fn a_secret_length_is_reported_where_it_is_used() {
    let body = "(memory.fill (i32.const 4096) (i32.const 0) (i32.and (i32.load (local.get $in)) (i32.const 15)))";
    let report = cipher(body, "");
    assert!(!report.clean);
    assert!(report.findings.iter().all(|f| f.function == "encrypt" && f.offset > 0), "{report:?}");
}

#[test]
fn both_sides_of_a_secret_branch_are_seen() {
    // One set of secrets takes one side only; four take both (a bit of each of 16 bytes).
    let mut body = String::new();
    for i in 0..16 {
        body += &format!(
            "(if (i32.and (i32.load8_u offset={i} (local.get $in)) (i32.const 1))
               (then (i32.store (local.get $out) (i32.load offset={i} (i32.load8_u (local.get $in)))))
               (else (i32.store (local.get $out) (i32.const {i}))))"
        );
    }
    let addresses = cipher(&body, "").findings.iter().filter(|f| f.kind == Kind::Address).count();
    assert!(addresses >= 12, "{addresses}");
}

#[test]
fn an_audit_repeats() {
    let body = "(i32.store (local.get $out) (i32.load8_u offset=1024 (i32.load8_u (local.get $in))))";
    assert_eq!(cipher(body, ""), cipher(body, ""));
}

#[test]
fn what_cannot_be_audited_is_refused() {
    let runs = [run("cm_keystream", [16, 1, 15], 0)];
    let refused = |text: &str| audit(&wat::parse_str(text).unwrap(), &runs, None).unwrap_err();
    assert!(matches!(refused("(module (memory 2))"), AuditError::Missing(name) if name == "cm_keysetup"));
    let endless = r#"(module (memory 2) (func (export "cm_keysetup") (param i32 i32 i32) (loop $l (br $l)))
                       (func (export "cm_keystream") (param i32 i32 i32 i32)))"#;
    assert!(matches!(refused(endless), AuditError::Endless { export, .. } if export == "cm_keysetup"));
    let long = endless.replace(
        "(loop $l (br $l))",
        "(local $i i32) (loop $l
            (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 10000))))",
    );
    let long = wat::parse_str(long).unwrap();
    assert!(audit(&long, &runs, None).is_ok());
    let message = audit(&long, &runs, Some(1000)).unwrap_err().to_string();
    assert!(message.contains("the limit of 1000 operations") && message.contains("--limit 10000"), "{message}");
    let traps = endless.replace("(loop $l (br $l))", "unreachable");
    assert!(matches!(refused(&traps), AuditError::Trap { .. }));
    let other = endless.replace("(param i32 i32 i32) (loop $l (br $l))", "(param i32)");
    assert!(matches!(refused(&other), AuditError::Signature { found: 1, expected: 3, .. }));
    assert!(audit(b"no module", &runs, None).is_err());
}
