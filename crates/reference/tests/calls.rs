//! What the reference reports, on modules small enough to work out by hand.

use ciphermill_reference::{Reference, ReferenceError, Stop, TrapCode};

fn reference(text: &str) -> Result<Reference, ReferenceError> {
    Reference::new(&wat::parse_str(text).expect("the text is valid"))
}

#[test]
fn values_go_in_and_out_as_raw_bits() {
    let mut r = reference(
        r#"(module (func (export "f") (param i32 i64) (result i64 i32)
             (i64.add (local.get 1) (i64.extend_i32_s (local.get 0)))
             (i32.sub (i32.const 0) (local.get 0))))"#,
    )
    .expect("valid");
    assert_eq!(r.call("f", &[0xFFFF_FFFF, 1 << 40]), Ok(vec![(1 << 40) - 1, 1]));
    assert_eq!(r.functions(), ["f"]);
}

#[test]
fn every_trap_has_its_code() {
    let mut r = reference(
        r#"(module
             (memory (export "m") 1)
             (table 2 funcref) (elem (i32.const 0) $f)
             (type $other (func (result i64)))
             (type $same (func))
             (func $f)
             (func $deep (export "deep") (call $deep))
             (func (export "table copy") (table.copy (i32.const 1) (i32.const 0) (i32.const 2)))
             (func (export "memory fill") (memory.fill (i32.const 1) (i32.const 0) (i32.const 65536)))
             (func (export "unreachable") unreachable)
             (func (export "memory") (drop (i32.load (i32.const 65533))))
             (func (export "table") (call_indirect (type $same) (i32.const 2)))
             (func (export "null") (call_indirect (type $same) (i32.const 1)))
             (func (export "signature") (drop (call_indirect (type $other) (i32.const 0))))
             (func (export "zero") (drop (i32.div_u (i32.const 1) (i32.const 0))))
             (func (export "overflow") (drop (i32.div_s (i32.const 0x80000000) (i32.const -1)))))"#,
    )
    .expect("valid");
    let expected = [
        ("table copy", TrapCode::TableOutOfBounds),
        ("memory fill", TrapCode::MemoryOutOfBounds),
        ("unreachable", TrapCode::Unreachable),
        ("memory", TrapCode::MemoryOutOfBounds),
        ("table", TrapCode::TableOutOfBounds),
        ("null", TrapCode::IndirectCallToNull),
        ("signature", TrapCode::BadSignature),
        ("zero", TrapCode::IntegerDivisionByZero),
        ("overflow", TrapCode::IntegerOverflow),
        ("deep", TrapCode::StackOverflow),
    ];
    for (name, code) in expected {
        assert_eq!(r.call(name, &[]), Err(Stop::Trap(code)), "{name}");
    }
}

#[test]
fn a_trap_at_instantiation_is_told_from_an_invalid_module() {
    let stopped = |text| reference(text).err();
    let trap = |code| Some(ReferenceError::Stopped(Stop::Trap(code)));
    assert_eq!(stopped("(module (func $f unreachable) (start $f))"), trap(TrapCode::Unreachable));
    assert_eq!(stopped("(module (memory 1) (data (i32.const 65536) \"x\"))"), trap(TrapCode::MemoryOutOfBounds));
    assert_eq!(
        stopped("(module (table 1 funcref) (func $f) (elem (i32.const 1) $f))"),
        trap(TrapCode::TableOutOfBounds)
    );
    assert!(matches!(stopped("(module (import \"a\" \"b\" (func)))"), Some(ReferenceError::Invalid(_))));
    assert!(matches!(Reference::new(b"no").err(), Some(ReferenceError::Invalid(_))));
}

#[test]
fn memory_is_seen_changed_and_grown() {
    let mut r = reference(
        r#"(module (memory (export "memory") 1 3) (global (export "g") i64 (i64.const -2))
             (func (export "get") (param i32) (result i32) (i32.load8_u (local.get 0)))
             (func (export "size") (result i32) (memory.size)))"#,
    )
    .expect("valid");
    r.memory_mut()[7] = 9;
    assert_eq!(r.call("get", &[7]), Ok(vec![9]));
    assert_eq!(r.grow_memory_to(65537), Ok(()));
    assert_eq!(r.call("size", &[]), Ok(vec![2]));
    assert!(matches!(r.grow_memory_to(4 * 65536), Err(Stop::BadCall(_))));
    assert_eq!(r.global("g"), Some(u64::MAX - 1));
    assert_eq!(r.global("h"), None);
}

#[test]
fn fuel_ends_a_loop() {
    let wasm = wat::parse_str("(module (func (export \"f\") (loop (br 0))))").expect("the text is valid");
    let mut r = Reference::with_fuel(&wasm, 1000).expect("valid");
    assert_eq!(r.call("f", &[]), Err(Stop::OutOfFuel));
}

#[test]
fn a_bad_call_says_what_is_wrong() {
    let mut r = reference("(module (func (export \"f\") (param i32)))").expect("valid");
    assert_eq!(r.call("g", &[]), Err(Stop::BadCall("the module exports no function \"g\"".into())));
    assert_eq!(r.call("f", &[]), Err(Stop::BadCall("\"f\" takes 1 arguments, not 0".into())));
}

/// An interpreter that folds `i32.eqz` into `select` must also take over the
/// operand of the `i32.eqz`. (wasmi 2.0.0 does not, and traps here.)
#[test]
fn a_select_on_a_tested_local_is_right() {
    let mut r = reference(
        r#"(module (global $g (mut i32) (i32.const 400))
             (func (export "f") (param i32) (result i32)
               (i32.rem_u (global.get $g)
                 (select (i32.const 7) (local.get 0) (i32.eqz (local.get 0))))))"#,
    )
    .expect("valid");
    assert_eq!(r.call("f", &[0]), Ok(vec![400 % 7]));
    assert_eq!(r.call("f", &[9]), Ok(vec![400 % 9]));
}
