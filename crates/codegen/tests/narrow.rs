//! Machines that compute in 32 bits and in 64: x86-64.

use ciphermill_codegen::{Options, compile};
use ciphermill_machine::load_from_dir;
use ciphermill_program::Program;
use ciphermill_sim::{SimOptions, Simulator};
use std::path::Path;
use std::sync::Arc;

fn program(level: u8, body: &str) -> Arc<Program> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let machine = load_from_dir(&root, "x86_64", &[], &[], &[]).expect("the machine file is good");
    let wasm = wat::parse_str(format!("(module (memory 2) {body})")).expect("the test's module is well formed");
    let mut module = ciphermill_load::load(&wasm).expect("the test's module loads");
    if level > 0 {
        let options = ciphermill_opt::Options { word_bits: 64, ..ciphermill_opt::Options::default() };
        ciphermill_opt::optimise(&mut module, &options).expect("the module optimises");
    }
    Arc::new(compile(&module, Arc::new(machine), &Options { level, ..Options::default() }).expect("the module compiles"))
}

fn names(program: &Program) -> Vec<String> {
    let insts = program.funcs.iter().flat_map(|f| &f.blocks).flat_map(|b| &b.bundles).flat_map(|b| &b.insts);
    let all = insts.map(|i| program.machine.instrs[usize::from(i.instr.0)].name.clone());
    all.filter(|n| !matches!(n.as_str(), "mov" | "ret")).collect()
}

fn result(program: &Arc<Program>, args: &[u64]) -> u64 {
    let mut sim = Simulator::new(program.clone(), SimOptions::default()).expect("the program fits its machine");
    sim.call_export("f", args).expect("the call returns")[0]
}

const EDGES: [u64; 10] = [
    0, 1, 31, 32, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0x1_0000_0000, 0x8765_4321_fedc_ba98, u64::MAX,
];

/// An operation in 32 bits and in 64: the instructions, and the values.
#[track_caller]
fn check(op: &str, instructions: &[&str], value: fn(u64, u64, u32) -> u64) {
    for (ty, bits, suffix) in [("i32", 32u32, ""), ("i64", 64, "_q")] {
        let body = format!("(func (export \"f\") (param {ty} {ty}) (result {ty}) ({ty}.{op} (local.get 0) (local.get 1)))");
        let made = program(2, &body);
        let expected: Vec<String> = instructions.iter().map(|i| format!("{i}{suffix}")).collect();
        assert_eq!(names(&made), expected, "{ty}.{op}:\n{}", ciphermill_program::asm::print(&made));
        let mask = u64::MAX >> (64 - bits);
        for a in EDGES {
            for b in EDGES {
                let (a, b) = (a & mask, b & mask);
                assert_eq!(result(&made, &[a, b]), value(a, b, bits) & mask, "{ty}.{op} {a:#x} {b:#x}");
            }
        }
    }
}

fn shifted(b: u64, bits: u32) -> u32 {
    (b % u64::from(bits)) as u32
}

#[test]
fn each_width_has_its_instructions() {
    check("sub", &["sub"], |a, b, _| a.wrapping_sub(b));
    check("xor", &["xor"], |a, b, _| a ^ b);
    check("mul", &["imul"], |a, b, _| a.wrapping_mul(b));
    check("shl", &["shl_cl"], |a, b, bits| a << shifted(b, bits));
    check("shr_u", &["shr_cl"], |a, b, bits| a >> shifted(b, bits));
    check("rotl", &["rol_cl"], |a, b, bits| {
        let by = shifted(b, bits);
        if by == 0 { a } else { a << by | a >> (bits - by) }
    });
}

#[test]
fn what_is_above_32_bits_is_zero() {
    for (value, expected) in [
        ("(i32.add (local.get 0) (i32.const -1))", 0xffff_fffe_u64),
        ("(i32.shl (local.get 0) (i32.const 4))", 0xffff_fff0),
        ("(i32.shr_s (local.get 0) (i32.const 4))", 0xffff_ffff),
        ("(i32.rotl (local.get 0) (i32.const 4))", 0xffff_ffff),
        ("(i32.extend8_s (local.get 0))", 0xffff_ffff),
        ("(i32.load8_s (i32.const 0))", 0xffff_ff80),
        ("(i32.load16_s (i32.const 0))", 0xffff_ff80),
        ("(i32.load (i32.const 4))", 0xffff_ff80),
    ] {
        let data = "(data (i32.const 0) \"\\80\\ff\\00\\00\\80\\ff\\ff\\ff\")";
        let body = format!("{data} (func (export \"f\") (param i32) (result i64) (i64.extend_i32_u {value}))");
        for level in [0, 2] {
            assert_eq!(result(&program(level, &body), &[0xffff_ffff]), expected, "{value} at level {level}");
        }
    }
}

#[test]
fn changing_the_width_costs_nothing_between_operations() {
    // Longer: what 32-bit instructions leave is the value already.
    let longer = "(func (export \"f\") (param i32 i64) (result i64)
        (i64.add (local.get 1) (i64.extend_i32_u (i32.xor (local.get 0) (i32.const 5)))))";
    let made = program(2, longer);
    assert_eq!(names(&made), ["xor_i_i8", "add_q"], "{}", ciphermill_program::asm::print(&made));
    assert_eq!(result(&made, &[0xffff_ffff, 1]), 0xffff_fffb);
    // Shorter: 32-bit instructions read no more.
    let shorter = "(func (export \"f\") (param i64 i32) (result i32)
        (i32.xor (local.get 1) (i32.wrap_i64 (i64.shr_u (local.get 0) (i64.const 7)))))";
    let made = program(2, shorter);
    assert_eq!(names(&made), ["shr_i_q", "xor"], "{}", ciphermill_program::asm::print(&made));
    assert_eq!(result(&made, &[0xffff_ffff_0000_0080, 2]), 0xfe00_0003);
    // A comparison wants the word cut.
    let compared = "(func (export \"f\") (param i64 i32) (result i32) (i32.lt_s (i32.wrap_i64 (local.get 0)) (local.get 1)))";
    let made = program(2, compared);
    assert_eq!(result(&made, &[0x1_ffff_ffff, 0]), 1);
    assert_eq!(result(&made, &[0xffff_ffff_7fff_ffff, 0x8000_0000]), 0);
}

#[test]
fn an_address_has_32_bits() {
    let body = "(data (i32.const 64) \"\\07\") (func (export \"f\") (param i32 i32) (result i32)
        (i32.load8_u (i32.add (local.get 0) (i32.shl (local.get 1) (i32.const 2)))))";
    let made = program(2, body);
    assert_eq!(names(&made), ["load8_bis"], "{}", ciphermill_program::asm::print(&made));
    assert_eq!(result(&made, &[72, 0xffff_fffe]), 7, "an index may be negative");
}
