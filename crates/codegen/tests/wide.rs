//! Machines of 64-bit words: 32-bit arithmetic in their registers, and their table
//! and matrix instructions, found in what programs compute.

use ciphermill_codegen::{Options, compile};
use ciphermill_machine::{Machine, load_from_dir};
use ciphermill_program::Program;
use ciphermill_sim::{SimOptions, Simulator};
use std::path::Path;
use std::sync::Arc;

/// Where the tests' constants stand.
const TABLE: u32 = 65536;

fn machine(with: &[&str]) -> Machine {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let with: Vec<String> = with.iter().map(|w| w.to_string()).collect();
    load_from_dir(&root, "rv64", &with, &[], &[]).expect("the machine file is good")
}

fn program(with: &[&str], constants: &[u8], body: &str) -> Arc<Program> {
    at_level(2, with, constants, body)
}

fn at_level(level: u8, with: &[&str], constants: &[u8], body: &str) -> Arc<Program> {
    let bytes: String = constants.iter().map(|b| format!("\\{b:02x}")).collect();
    let module = format!("(module (memory 2) (data $.rodata (i32.const {TABLE}) \"{bytes}\") {body})");
    let wasm = wat::parse_str(module).expect("the test's module is well formed");
    let mut module = ciphermill_load::load(&wasm).expect("the test's module loads");
    if level > 0 {
        let options = ciphermill_opt::Options { word_bits: 64, ..ciphermill_opt::Options::default() };
        ciphermill_opt::optimise(&mut module, &options).expect("the module optimises");
    }
    let options = Options { level, ..Options::default() };
    Arc::new(compile(&module, Arc::new(machine(with)), &options).expect("the module compiles"))
}

fn count(program: &Program, name: &str) -> usize {
    let insts = program.funcs.iter().flat_map(|f| &f.blocks).flat_map(|b| &b.bundles).flat_map(|b| &b.insts);
    insts.filter(|i| program.machine.instrs[usize::from(i.instr.0)].name == name).count()
}

fn result(program: &Arc<Program>, args: &[u64]) -> u64 {
    let mut sim = Simulator::new(program.clone(), SimOptions::default()).expect("the program fits its machine");
    sim.call_export("f", args).expect("the call returns")[0]
}

/// Of two words of 32 bits, held with their signs extended.
#[track_caller]
fn check_words(op: &str, expected: fn(u32, u32) -> u32, instructions: &[&str]) {
    let body = format!("(func (export \"f\") (param i32 i32) (result i32) ({op} (local.get 0) (local.get 1)))");
    let made = program(&[], &[], &body);
    for name in instructions {
        assert_eq!(count(&made, name), 1, "{op}:\n{}", ciphermill_program::asm::print(&made));
    }
    for a in [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0x1234_5678] {
        for b in [0u32, 1, 31, 32, 33, 0x8000_0000, 0xffff_ffff] {
            let extended = |x: u32| i64::from(x as i32) as u64;
            assert_eq!(result(&made, &[extended(a), extended(b)]), extended(expected(a, b)), "{op} {a:#x} {b:#x}");
        }
    }
}

#[test]
fn words_of_32_bits_keep_their_sign_extended() {
    check_words("i32.add", u32::wrapping_add, &["addw"]);
    check_words("i32.sub", u32::wrapping_sub, &["subw"]);
    check_words("i32.mul", u32::wrapping_mul, &["mulw"]);
    check_words("i32.xor", |a, b| a ^ b, &["xor"]);
    check_words("i32.shl", u32::wrapping_shl, &["sllw"]);
    check_words("i32.shr_u", u32::wrapping_shr, &["srlw"]);
    check_words("i32.shr_s", |a, b| (a as i32).wrapping_shr(b) as u32, &[]);
    check_words("i32.rotl", |a, b| a.rotate_left(b & 31), &["sllw", "srlw"]);
    check_words("i32.rotr", |a, b| a.rotate_right(b & 31), &["sllw", "srlw"]);
    check_words("i32.lt_u", |a, b| u32::from(a < b), &["sltu"]);
    check_words("i32.lt_s", |a, b| u32::from((a as i32) < b as i32), &["slt"]);
}

/// A word of the program made longer has nothing above its 32 bits, even where only
/// that is looked at.
#[test]
fn what_is_above_a_word_is_zero() {
    for look in ["i64.shr_u", "i64.and"] {
        let by = if look == "i64.and" { "-4294967296" } else { "32" };
        let body = format!(
            "(func (export \"f\") (param i32) (result i64)
               ({look} (i64.extend_i32_u (i32.shr_u (local.get 0) (i32.const 8))) (i64.const {by})))"
        );
        assert_eq!(result(&at_level(0, &[], &[], &body), &[u64::MAX]), 0, "{look}");
    }
}

/// The upper half of a word is not shifted into a byte that is cut out of the lower.
#[test]
fn what_nobody_looks_at_is_left_as_it_is() {
    let cut = |by: u32, mask: u32| {
        let word = "(i32.wrap_i64 (local.get 0))";
        format!(
            "(func (export \"f\") (param i64) (result i32)
               (i32.and (i32.shr_u {word} (i32.const {by})) (i32.const {mask})))"
        )
    };
    for (by, mask, extended) in [(8, 255, 0), (16, 255, 0), (24, 255, 1), (25, 255, 1)] {
        let made = program(&[], &[], &cut(by, mask));
        let print = ciphermill_program::asm::print(&made);
        assert_eq!(count(&made, "sext_w") + count(&made, "srliw"), extended, "by {by}:\n{print}");
        let word = 0x8765_4321_fedc_ba98u64;
        assert_eq!(result(&made, &[word]), u64::from(word as u32 >> by & mask), "by {by}");
    }
}

/// An address is the sum that the program forms, whatever its sign; a sum that is also something
/// else has its sign extended.
#[test]
fn a_sum_that_is_only_an_address_has_no_sign() {
    let data = [1u8, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0];
    let of = |also: &str| {
        format!(
            "(func (export \"f\") (param i32 i32) (result i32) (local i32)
               (local.set 2 (i32.add (local.get 0) (i32.shl (i32.and (local.get 1) (i32.const 3)) (i32.const 2))))
               (i32.add (i32.load (local.get 2)) {also}))"
        )
    };
    for (with, sum) in [(&[][..], "add"), (&["zba_rv64"], "sh2add_uw")] {
        let alone = program(with, &data, &of("(i32.const 5)"));
        let print = ciphermill_program::asm::print(&alone);
        assert_eq!((count(&alone, sum), count(&alone, "addw")), (1, 0), "{print}");
        assert_eq!(result(&alone, &[u64::from(TABLE), 0xffff_ffff_ffff_ffff]), 5, "beyond the data are zeros");
        assert_eq!(result(&alone, &[u64::from(TABLE), 2]), 8);
        let twice = program(with, &data, &of("(local.get 2)"));
        assert_eq!(count(&twice, "addw"), 2, "{}", ciphermill_program::asm::print(&twice));
        assert_eq!(result(&twice, &[u64::from(TABLE), 1]), u64::from(TABLE) + 6);
    }
}

/// Both shifts of a rotate, or the instruction that is one, read the value as it is.
#[test]
fn a_rotate_reads_a_sum_once() {
    let body = "(func (export \"f\") (param i32 i32) (result i32)
                  (i32.rotl (i32.add (local.get 0) (local.get 1)) (i32.const 7)))";
    for (with, instructions) in [(&[][..], &["addw", "slliw", "srliw", "or"][..]), (&["zbb_rv64"], &["addw", "roriw"])] {
        let made = program(with, &[], body);
        let print = ciphermill_program::asm::print(&made);
        for name in instructions {
            assert_eq!(count(&made, name), 1, "{name}:\n{print}");
        }
        assert_eq!(result(&made, &[0x7000_0001, 0x1000_0000]), i64::from(0x8000_0001u32.rotate_left(7) as i32) as u64);
    }
}

/// A table of a machine, as bytes.
fn table(name: &str) -> Vec<u8> {
    let m = machine(&["aes_v4"]);
    let found = m.tables.iter().find(|t| t.name == name).expect("the extension has the table");
    found.values.iter().map(|&v| v as u8).collect()
}

/// SubBytes and ShiftRows of half a state: where each byte comes from, the lowest
/// first, bytes of the second word from 8 on.
const FROM: [u32; 8] = [0, 5, 10, 15, 4, 9, 14, 3];

fn half(from: &[u32; 8]) -> String {
    let entry = |(to, from): (usize, &u32)| {
        let byte = format!("(i64.shr_u (local.get {}) (i64.const {}))", from / 8, 8 * (from % 8));
        let index = format!("(i32.and (i32.wrap_i64 {byte}) (i32.const 255))");
        format!("(i64.shl (i64.load8_u offset={TABLE} {index}) (i64.const {}))", 8 * to)
    };
    let sum = from.iter().enumerate().map(entry).reduce(|a, b| format!("(i64.or {a} {b})")).unwrap_or_default();
    format!("(func (export \"f\") (param i64 i64 i64) (result i64) (i64.xor {sum} (local.get 2)))")
}

#[test]
fn eight_lookups_are_half_a_state() {
    let (box_, body) = (table("aes_sbox"), half(&FROM));
    let found = program(&["aes_v4"], &box_, &body);
    let print = ciphermill_program::asm::print(&found);
    assert_eq!((count(&found, "saes_v4_encs"), count(&found, "lbu")), (1, 0), "{print}");
    let plain = program(&[], &box_, &body);
    for args in [[0, 0, 0], [u64::MAX, 0, 5], [0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210, 1 << 63]] {
        assert_eq!(result(&found, &args), result(&plain, &args));
    }
}

#[test]
fn another_byte_or_table_is_no_match() {
    let mut from = FROM;
    from.swap(0, 4);
    assert_eq!(count(&program(&["aes_v4"], &table("aes_sbox"), &half(&from)), "saes_v4_encs"), 0);
    for at in [0, 200] {
        let mut wrong = table("aes_sbox");
        wrong[at] ^= 1;
        assert_eq!(count(&program(&["aes_v4"], &wrong, &half(&FROM)), "saes_v4_encs"), 0);
    }
}
