//! Byte tables on a big-endian machine: which loads go to the copy in the
//! machine's byte order, and that all of them read the right byte, wherever
//! their index leads.

use ciphermill_codegen::{Options, compile};
use ciphermill_ir::Space;
use ciphermill_machine::InstrKind;
use ciphermill_program::Program;
use ciphermill_sim::{SimOptions, Simulator};
use std::path::Path;
use std::sync::Arc;

/// Linear memory from [`TABLE`] on: constants, then data that may change.
const TABLE: u32 = 65536;
const CONSTANTS: u32 = 13;
const BYTES: [u8; 24] = *b"constants...and the rest";

/// Function `f` of a module with that memory, for a machine.
fn program(machine: &str, body: &str) -> Arc<Program> {
    let (constants, data) = BYTES.split_at(CONSTANTS as usize);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("the table is text");
    let module = format!(
        r#"(module (memory 2)
        (data $.rodata (i32.const {TABLE}) "{}")
        (data $.data (i32.const {}) "{}")
        (func (export "f") (param $i i32) (result i32) {body}))"#,
        text(constants),
        TABLE + CONSTANTS,
        text(data)
    );
    let wasm = wat::parse_str(module).expect("the test's module is well formed");
    let mut module = ciphermill_load::load(&wasm).expect("the test's module loads");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let machine = ciphermill_machine::load_from_dir(&root, machine, &[], &[], &[]).expect("the machine file is good");
    ciphermill_opt::optimise(&mut module, &ciphermill_opt::Options::default()).expect("the module optimises");
    let options = Options { level: 2, ..Options::default() };
    Arc::new(compile(&module, Arc::new(machine), &options).expect("the module compiles"))
}

/// Loads that go to the copies, which are in the system area.
fn from_copies(program: &Program) -> usize {
    let loads = |i: &&ciphermill_program::Inst| {
        i.space == Space::System && program.machine.instrs[usize::from(i.instr.0)].kind == InstrKind::Load
    };
    let blocks = program.funcs.iter().flat_map(|f| &f.blocks);
    blocks.flat_map(|b| &b.bundles).flat_map(|b| &b.insts).filter(loads).count()
}

/// Check `f(i) == BYTES[at(i)]` for each index, on both byte orders, and how
/// many loads of the big-endian program go to a copy.
#[track_caller]
fn check(body: &str, copies: usize, indices: &[u32], at: impl Fn(u32) -> usize) {
    for machine in ["leon2", "rv32"] {
        let program = program(machine, body);
        assert_eq!(from_copies(&program), if machine == "leon2" { copies } else { 0 }, "{machine}: {body}");
        // The sum of base and index wraps, as addresses do.
        let options = SimOptions { strict_addresses: false, ..SimOptions::default() };
        let mut sim = Simulator::new(program, options).expect("the program fits its machine");
        for &i in indices {
            let found = sim.call_export("f", &[i.into()]).unwrap_or_else(|e| panic!("{machine}: {body}: f({i}): {e}"));
            assert_eq!(found, [u64::from(BYTES[at(i)])], "{machine}: {body}: f({i})");
        }
    }
}

#[test]
fn an_index_that_stays_inside_reads_the_copy() {
    let body = format!("(i32.load8_u offset={} (i32.and (local.get $i) (i32.const 7)))", TABLE + 5);
    check(&body, 1, &[0, 1, 6, 7, 8, 0xffff_ffff], |i| 5 + (i & 7) as usize);
}

#[test]
fn an_index_that_may_leave_the_segment_reads_what_is_there() {
    // One more than the last constant: 5 + 8 is the first byte of the data.
    let body = format!("(i32.load8_u offset={} (i32.and (local.get $i) (i32.const 8)))", TABLE + 5);
    check(&body, 0, &[0, 8], |i| 5 + (i & 8) as usize);
    let body = format!("(i32.load8_u offset={TABLE} (local.get $i))");
    check(&body, 0, &[0, 5, 12, 13, 23], |i| i as usize);
}

#[test]
fn a_table_behind_the_constants_is_not_taken_for_one_of_them() {
    // `data[i - 1]`: the constant is the address of the last of the constants.
    let body = format!("(i32.load8_u (i32.add (local.get $i) (i32.const {})))", TABLE + CONSTANTS - 1);
    check(&body, 0, &[1, 2, 10, 11, 0, -12i32 as u32], |i| (CONSTANTS - 1).wrapping_add(i) as usize);
}

#[test]
fn an_index_that_goes_round_a_loop_is_bounded_too() {
    // A byte looks up the next, `i & 3` times.
    let body = format!(
        "(local $x i32) (local.set $i (i32.and (local.get $i) (i32.const 3)))
        (block $done (loop $next
            (br_if $done (i32.eqz (local.get $i)))
            (local.set $x (i32.and (i32.load8_u offset={TABLE} (local.get $x)) (i32.const 7)))
            (local.set $i (i32.sub (local.get $i) (i32.const 1)))
            (br $next)))
        (i32.load8_u offset={TABLE} (local.get $x))"
    );
    let steps = |n: u32| (0..n).fold(0, |x, _| usize::from(BYTES[x] & 7));
    check(&body, 2, &[0, 1, 2, 3], steps);
}
