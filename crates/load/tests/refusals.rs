//! The messages that refused modules get.

use ciphermill_load::load;

fn refusal(text: &str) -> String {
    let wasm = wat::parse_str(text).expect("the text is valid");
    match load(&wasm) {
        Ok(_) => "accepted".into(),
        Err(e) => e.to_string(),
    }
}

#[test]
fn operators_outside_the_subset_are_named_with_place_and_mend() {
    let body = |body: &str| refusal(&format!("(module (memory 1) (table 1 funcref) (func $mix {body}))"));
    assert_eq!(
        body("(drop (f32.add (f32.const 1) (f32.const 2)))"),
        "function \"mix\" at offset 0x22: f32.const is a floating-point operator; ciphermill takes integer code only"
    );
    let ends = [
        (
            "(drop (i32.trunc_f64_s (f64.load (i32.const 0))))",
            "f64.load is a floating-point operator; ciphermill takes integer code only",
        ),
        ("(drop (v128.load (i32.const 0)))", "v128.load is a vector operator; compile without -msimd128"),
        (
            "(drop (i32.atomic.load (i32.const 0)))",
            "i32.atomic.load is an operator for threads; compile without -matomics and -pthread",
        ),
        ("(return_call $mix)", "return_call is a tail call; compile without -mtail-call"),
        ("(drop (ref.null func))", "ref.null is an operator on references; compile without -mreference-types"),
        (
            "(drop (table.get (i32.const 0)))",
            "table.get is an operator on references; compile without -mreference-types",
        ),
    ];
    for (text, end) in ends {
        let message = body(text);
        assert!(message.starts_with("function \"mix\" at offset 0x"), "{message}");
        assert!(message.ends_with(end), "{message}");
    }
}

#[test]
fn a_floating_point_variable_is_told_by_the_operator_that_needs_it() {
    let text = "(module (func $mix (param i32) (local f64) (local.set 1 (f64.convert_i32_u (local.get 0)))))";
    assert_eq!(
        refusal(text),
        "function \"mix\" at offset 0x1c: f64.convert_i32_u is a floating-point operator; ciphermill takes integer code only"
    );
}

#[test]
fn types_outside_the_subset_are_named() {
    assert_eq!(
        refusal("(module (func $mix (local i32 f64)))"),
        "function \"mix\" at offset 0x19: a local variable is of a floating-point type; ciphermill takes integer code only"
    );
    assert_eq!(
        refusal("(module (func $mix (param v128)))"),
        "function \"mix\" at offset 0x17: a parameter or result is of a vector type; compile without -msimd128"
    );
    assert_eq!(
        refusal("(module (global f32 (f32.const 0)))"),
        "at offset 0xb: global 0 is of a floating-point type; ciphermill takes integer code only"
    );
    assert_eq!(refusal("(module (type (func (param f32))))"), "accepted", "a type nobody uses does no harm");
}

#[test]
fn imports_are_named_with_a_mend() {
    assert_eq!(
        refusal(r#"(module (import "env" "memcpy" (func (param i32 i32 i32) (result i32))))"#),
        "the module imports the function \"env\".\"memcpy\", and a cipher must be self-contained: define it in the \
         source, or add the C file that does to the cipher's manifest"
    );
    assert!(refusal(r#"(module (import "env" "memory" (memory 1)))"#).ends_with("link without --import-memory"));
    assert!(refusal(r#"(module (import "trap" "integer-overflow" (func)))"#).contains("self-contained"));
}

#[test]
fn memories_and_tables_outside_the_subset() {
    assert!(refusal("(module (memory 16385))").ends_with("the memory starts with 16385 pages; at most 16384 work"));
    assert_eq!(refusal("(module (memory 1 65536))"), "accepted", "a larger maximum is lowered");
    assert!(refusal("(module (memory 1) (memory 1))").ends_with("more than one memory; link it with one"));
    assert!(refusal("(module (memory i64 1))").ends_with("compile for wasm32, not wasm64"));
    assert!(refusal("(module (memory 1 1 shared))").ends_with("link without --shared-memory"));
    assert!(refusal("(module (table 1 externref))").ends_with("not a plain table of functions (funcref)"));
    assert!(refusal("(module (table 1 funcref) (table 1 funcref))").ends_with("more than one table"));
    assert!(refusal("(module (table 2000000 funcref))").contains("2000000 entries"));
}

#[test]
fn what_is_no_module_is_said_to_be_none() {
    for bytes in [&b""[..], b"hello", b"\0asm\x01\0\0\0\x01\x7f", b"\0asm\x01\0\0\0\xff"] {
        let message = load(bytes).err().map(|e| e.to_string()).unwrap_or_default();
        assert!(message.starts_with("not a valid WebAssembly module: "), "{message}");
    }
    let component = load(b"\0asm\x0d\0\x01\0").err().map(|e| e.to_string()).unwrap_or_default();
    assert!(component.contains("component"), "{component}");
}

#[test]
fn an_invalid_body_names_its_function() {
    // i32.add without operands.
    let wasm =
        [b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x03\x02\x01\0\x0a\x05\x01\x03\0".as_slice(), &[0x6A, 0x0B]].concat();
    let message = load(&wasm).err().map(|e| e.to_string()).unwrap_or_default();
    assert!(message.starts_with("function \"func0\" at offset 0x17: type mismatch"), "{message}");
}

/// Cutting a valid module anywhere, or damaging any byte of it, gives a module
/// or an error.
#[test]
fn no_damage_makes_the_loader_panic() {
    let text = r#"(module (memory 1 2) (table 2 funcref) (global (mut i64) (i64.const 1))
        (func $f (export "f") (param i32 i64) (result i64) (local i32)
          (block (loop (br_if 1 (local.get 0)) (br_table 0 1 0 (local.get 2))))
          (if (result i64) (local.get 0) (then (i64.div_s (local.get 1) (i64.const 3))) (else (global.get 0)))
          (memory.copy (local.get 0) (local.get 2) (i32.const 24))
          (memory.init 1 (i32.const 0) (i32.const 1) (i32.const 2)) (data.drop 1)
          (table.init 1 (i32.const 0) (i32.const 0) (i32.const 1)) (elem.drop 1)
          (drop (call_indirect (param i32 i64) (result i64) (i32.const 1) (i64.const 2) (i32.const 0))))
        (elem (i32.const 0) $f $f) (elem func $f) (data (i32.const 4) "xyz") (data "passive"))"#;
    let wasm = wat::parse_str(text).expect("the text is valid");
    load(&wasm).expect("it loads whole");
    for end in 0..wasm.len() {
        let _ = load(&wasm[..end]);
    }
    for at in 0..wasm.len() {
        for flip in [0x01, 0x02, 0x10, 0x40, 0x80, 0xFF] {
            let mut damaged = wasm.clone();
            damaged[at] ^= flip;
            if let Ok(module) = load(&damaged)
                && let Err(e) = ciphermill_ir::verify::verify(&module)
            {
                panic!("byte {at} changed by {flip:#x}: {e}");
            }
        }
    }
}
