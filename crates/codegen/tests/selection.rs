//! What small functions become, most of them on the two in-order machines: the instructions,
//! in order, as the assembly printer writes them.
//!
//! The expected listings stand in `listings/`; `BLESS=1` writes them anew, and
//! each was read before it was committed.

use ciphermill_codegen::{Options, compile};
use std::path::Path;
use std::sync::Arc;

/// The instructions of function `f` of a module, one a line.
fn listing(machine: &str, with: &[&str], aligned: &[usize], body: &str) -> String {
    let text = format!("(module (memory 1) {body})");
    let wasm = wat::parse_str(&text).expect("the test's module is well formed");
    let mut module = ciphermill_load::load(&wasm).expect("the test's module loads");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let with: Vec<String> = with.iter().map(|w| w.to_string()).collect();
    let machine = ciphermill_machine::load_from_dir(&root, machine, &with, &[], &[]).expect("the machine file is good");
    let form = ciphermill_opt::IndexForm::ShiftThenMask;
    let options = ciphermill_opt::Options { index_form: form, ..ciphermill_opt::Options::default() };
    ciphermill_opt::optimise(&mut module, &options).expect("the module optimises");
    let aligned_params = aligned.iter().map(|&i| ("f".to_owned(), i, 16)).collect();
    let options = Options { level: 2, strict_traps: false, aligned_params, ..Options::default() };
    let program = compile(&module, Arc::new(machine), &options).expect("the module compiles");
    let text = ciphermill_program::asm::print(&program);
    let from = text.find("\nf:").expect("function f is printed");
    let lines = text[from + 1..].lines().skip(1);
    let code = lines.take_while(|l| !l.contains(".size") && !l.starts_with("cm_")).map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('.'));
    code.map(|l| l.split('#').next().unwrap_or(l).split('!').next().unwrap_or(l).trim_end().replace('\t', " "))
        .collect::<Vec<_>>()
        .join("\n")
}

#[track_caller]
fn check(name: &str, machine: &str, with: &[&str], aligned: &[usize], body: &str) {
    let found = listing(machine, with, aligned, body) + "\n";
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/listings").join(format!("{name}-{machine}.s"));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&file, &found).expect("the listing can be written");
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(found, expected, "{} differs; found\n{found}", file.display());
}

const LOOKUP: &str = r#"
    (func (export "f") (param i32 i32) (result i32)
      (i32.xor (local.get 0)
        (i32.load offset=4096 (i32.shl (i32.and (i32.shr_u (local.get 1) (i32.const 8)) (i32.const 255)) (i32.const 2)))))"#;

#[test]
fn a_table_lookup_takes_its_index_already_scaled() {
    check("lookup", "leon2", &[], &[], LOOKUP);
    check("lookup", "rv32", &[], &[], LOOKUP);
}

/// The amounts of both rotates live as long as the words that are rotated.
const AMOUNTS: &str = r#"(func (export "f") (param i32 i32 i32 i32) (result i32)
    (local i32 i32)
    (loop
      (local.set 4 (i32.mul (local.get 1) (i32.add (local.get 1) (local.get 1))))
      (local.set 5 (i32.mul (local.get 2) (i32.add (local.get 2) (local.get 2))))
      (local.set 0 (i32.add (i32.rotl (i32.xor (local.get 0) (local.get 4)) (local.get 5)) (i32.load (local.get 3))))
      (local.set 2 (i32.add (i32.rotl (i32.xor (local.get 1) (local.get 5)) (local.get 4)) (local.get 0)))
      (local.set 1 (i32.xor (local.get 4) (local.get 5)))
      (br_if 0 (local.tee 3 (i32.sub (local.get 3) (i32.const 4)))))
    (i32.add (local.get 0) (i32.add (local.get 1) (local.get 2))))"#;

#[test]
fn amounts_go_to_their_register_for_a_rotate_only() {
    check("amounts", "zen5", &[], &[], AMOUNTS);
}

/// Two values that change places in each iteration: moves on the way back.
const TURNS: &str = r#"(func (export "f") (param i32 i32 i32) (result i32) (local i32)
    (loop
      (local.set 3 (local.get 0))
      (local.set 0 (local.get 1))
      (local.set 1 (local.get 3))
      (br_if 0 (local.tee 2 (i32.sub (local.get 2) (i32.const 1)))))
    (local.get 0))"#;

#[test]
fn a_turn_of_a_loop_ends_in_one_branch() {
    let found = listing("core2", &[], &[], TURNS);
    let jumps: Vec<&str> = found.lines().map(|l| l.split(' ').next().unwrap_or(l)).filter(|l| l.starts_with('j')).collect();
    // Into the loop, once; and back, each iteration.
    assert_eq!(jumps, ["jmp", "jne"], "{found}");
}

const ROTATE: &str = r#"(func (export "f") (param i32 i32) (result i32)
    (i32.xor (i32.rotl (local.get 0) (i32.const 7)) (i32.rotl (local.get 0) (local.get 1))))"#;

#[test]
fn a_rotate_is_one_instruction_where_there_is_one() {
    check("rotate", "rv32", &["zbb"], &[], ROTATE);
    check("rotate", "leon2", &[], &[], ROTATE);
}

#[test]
fn a_rotate_by_a_register_uses_shifts_by_six_bits() {
    check("rotate", "c6201", &[], &[], ROTATE);
    check("rotate", "c64x", &[], &[], ROTATE);
}

/// RC6's quadratic, and a rotate by its five top bits.
const QUADRATIC: &str = r#"(func (export "f") (param i32 i32) (result i32) (local i32)
    (local.set 2 (i32.rotl (i32.mul (local.get 0) (i32.or (i32.shl (local.get 0) (i32.const 1)) (i32.const 1))) (i32.const 5)))
    (i32.rotl (i32.xor (local.get 1) (local.get 2)) (local.get 2)))"#;

#[test]
fn a_square_takes_two_products_and_the_amount_no_mask() {
    check("quadratic", "c6201", &[], &[], QUADRATIC);
    check("quadratic", "c64x", &[], &[], QUADRATIC);
}

#[test]
fn a_product_with_half_a_word_takes_two_products() {
    let body = r#"(func (export "f") (param i32 i32) (result i32)
        (i32.mul (i32.and (local.get 0) (i32.const 65535)) (local.get 1)))"#;
    check("half-product", "c6201", &[], &[], body);
}

#[test]
fn a_term_is_added_to_half_a_rotate_where_one_unit_shifts() {
    // The sum waits for the first shift only; the C64x has an instruction for the rotate.
    let sum = r#"(func (export "f") (param i32 i32) (result i32)
        (i32.add (local.get 1) (i32.rotl (i32.xor (local.get 0) (i32.const -1)) (i32.const 9))))"#;
    check("half-rotate", "c6201", &[], &[], sum);
    check("half-rotate", "c64x", &[], &[], sum);
    // An eightfold is added as four times the double: no shift but that to the right.
    let three = r#"(func (export "f") (param i32) (result i32) (i32.rotl (local.get 0) (i32.const 3)))"#;
    check("rotate-by-three", "c6201", &[], &[], three);
}

#[test]
fn accesses_beyond_the_displacement_share_a_base_where_they_are_many() {
    let words: String = (0..40).map(|i| format!("(i32.store offset={} (local.get 0) (local.get 1))", 132 + 4 * i)).collect();
    check("far-words", "c6201", &[], &[], &format!(r#"(func (export "f") (param i32 i32) {words})"#));
}

const BYTES: &str = r#"(func (export "f") (param i32 i32)
    (i32.store8 offset=1 (local.get 0) (i32.load8_u offset=2 (local.get 1))))"#;

#[test]
fn byte_addresses_are_turned_on_a_big_endian_machine() {
    // Known to be multiples of 16: byte 2 is byte 2 ^ 3 = 1, byte 1 is 2.
    check("bytes-aligned", "leon2", &[], &[0, 1], BYTES);
    // Nothing known: the address is computed and turned.
    check("bytes", "leon2", &[], &[], BYTES);
    check("bytes", "rv32", &[], &[], BYTES);
}

#[test]
fn an_access_that_does_not_claim_alignment_is_made_of_bytes() {
    let word = r#"(func (export "f") (param i32) (result i32) (i32.load align=1 (local.get 0)))"#;
    check("unaligned-word", "rv32", &[], &[], word);
    let half = r#"(func (export "f") (param i32) (result i32) (i32.load align=2 (local.get 0)))"#;
    check("unaligned-half", "rv32", &[], &[], half);
    check("unaligned-word", "c6201", &[], &[], word);
    // The C64x has a load for it.
    check("unaligned-word", "c64x", &[], &[], word);
}

#[test]
fn a_mask_and_its_complement_share_a_register() {
    let masks = r#"(func (export "f") (param i32) (result i32)
        (i32.xor (i32.and (i32.shl (local.get 0) (i32.const 1)) (i32.const 0xfefefefe))
                 (i32.and (i32.shr_u (local.get 0) (i32.const 7)) (i32.const 0x01010101))))"#;
    check("masks", "leon2", &[], &[], masks);
}

#[test]
fn a_product_with_a_constant_is_shifts_where_multiplying_is_slow() {
    let product = r#"(func (export "f") (param i32) (result i32) (i32.mul (local.get 0) (i32.const 27)))"#;
    check("product", "leon2", &[], &[], product);
    check("product", "rv32", &[], &[], product);
}

#[test]
fn selection_of_a_constant_folds() {
    let select = r#"(func (export "f") (param i32 i32) (result i32)
        (select (i32.const 16) (i32.const 0) (i32.lt_u (local.get 0) (local.get 1))))"#;
    check("select", "rv32", &[], &[], select);
    check("select", "leon2", &[], &[], select);
}

#[test]
fn a_loop_branches_back_with_its_step_in_the_delay_slot() {
    let sum = r#"(func (export "f") (param i32 i32) (result i32) (local i32)
        (loop $l
          (local.set 2 (i32.add (local.get 2) (i32.load (local.get 0))))
          (local.set 0 (i32.add (local.get 0) (i32.const 4)))
          (br_if $l (local.tee 1 (i32.sub (local.get 1) (i32.const 1)))))
        (local.get 2))"#;
    check("loop", "leon2", &[], &[], sum);
    check("loop", "rv32", &[], &[], sum);
}

/// Tables by all bytes of a word that is rotated, and of one that is wanted as it is, afterwards; and of one
/// that nobody wants any more.
const UPPER: &str = r#"(func (export "f") (param $x i32) (param $y i32) (param $z i32) (result i32) (local $sum i32)
    (local.set $sum (i32.load8_u offset=256 (i32.shr_u (local.get $x) (i32.const 24))))
    (local.set $sum (i32.add (local.get $sum) (i32.load8_u offset=512 (i32.and (i32.shr_u (local.get $x) (i32.const 16)) (i32.const 255)))))
    (local.set $sum (i32.add (local.get $sum) (i32.load8_u offset=768 (i32.and (i32.shr_u (local.get $x) (i32.const 8)) (i32.const 255)))))
    (local.set $sum (i32.add (local.get $sum) (i32.load8_u offset=1024 (i32.and (local.get $x) (i32.const 255)))))
    (local.set $sum (i32.sub (local.get $sum) (i32.rotl (local.get $x) (i32.const 1))))
    (local.set $sum (i32.sub (local.get $sum) (i32.rotr (local.get $x) (i32.const 16))))
    (local.set $sum (i32.xor (local.get $sum) (i32.load8_u offset=256 (i32.shr_u (local.get $y) (i32.const 24)))))
    (local.set $sum (i32.xor (local.get $sum) (i32.load8_u offset=512 (i32.and (i32.shr_u (local.get $y) (i32.const 16)) (i32.const 255)))))
    (local.set $sum (i32.mul (local.get $sum) (local.get $y)))
    (local.set $sum (i32.xor (local.get $sum) (i32.load8_u offset=256 (i32.shr_u (local.get $z) (i32.const 24)))))
    (i32.xor (local.get $sum) (i32.load8_u offset=512 (i32.and (i32.shr_u (local.get $z) (i32.const 16)) (i32.const 255)))))"#;

#[test]
fn words_are_turned_for_their_upper_bytes() {
    check("upper", "ia32", &[], &[], UPPER);
    // Copies cost nothing there.
    check("upper", "zen5", &[], &[], UPPER);
}
