//! Both translations of every instruction that comes with the project.

use ciphermill_machine::{Instr, InstrKind, Machine, NamedText, Request, load, names_in};
use ciphermill_rtl::ports::Ports;
use ciphermill_rtl::{Tables, bench, blast, hardware};
use std::path::PathBuf;

/// Between them they take every extension.
const MACHINES: [&str; 6] = [
    "machines/leon2.toml",
    "machines/rv32.toml",
    "machines/rv64.toml",
    "machines/epic.toml",
    "machines/avr.toml",
    "machines/msp430.toml",
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(path: &str) -> NamedText {
    NamedText::new(path, std::fs::read_to_string(root().join(path)).unwrap())
}

fn machine(path: &str, with: &str) -> Option<Machine> {
    let request = Request {
        machine: text(path),
        parents: &|name| Some(text(&format!("machines/{name}.toml"))),
        vocabulary: &|| {
            let names = names_in(&root().join("extensions"));
            names.iter().map(|n| text(&format!("extensions/{n}.toml"))).collect()
        },
        extensions: if with.is_empty() { vec![] } else { vec![text(&format!("extensions/{with}.toml"))] },
        without: vec![],
        settings: vec![],
        rules: text("machines/rules.toml"),
    };
    load(&request).ok()
}

/// Compare the gates with the plain interpreter.
fn check(m: &Machine) -> usize {
    let mut made = 0;
    for instr in &m.instrs {
        let Ok(ports) = Ports::of(m, instr) else { continue };
        let Ok(graph) = blast::blast(m, instr, &ports) else { continue };
        for n in 0..120 {
            let inputs = bench::case(&ports, n);
            let Ok(expected) = bench::outputs(m, instr, &ports, &inputs) else { continue };
            assert_eq!(graph.evaluate(&inputs), expected, "{} {inputs:x?}", instr.name);
        }
        made += 1;
    }
    made
}

#[test]
fn gates_compute_what_semantics_say() {
    for path in ["machines/leon2.toml", "machines/rv32.toml", "machines/c6201.toml"] {
        assert!(check(&machine(path, "").unwrap()) > 20, "{path}");
    }
    for name in names_in(&root().join("extensions")) {
        let loaded = MACHINES.iter().filter_map(|m| machine(m, &name)).next_back();
        let m = loaded.unwrap_or_else(|| panic!("{name} loads nowhere"));
        assert!(check(&m) > 0, "{name}");
    }
}

#[test]
fn every_extension_becomes_hardware() {
    for name in names_in(&root().join("extensions")) {
        let m = MACHINES.iter().find_map(|m| machine(m, &name)).unwrap();
        // Loads and stores with an addressing mode of their own are the processor's.
        let own =
            |i: &&Instr| i.extension.as_ref() == Some(&name) && !matches!(i.kind, InstrKind::Load | InstrKind::Store);
        for instr in m.instrs.iter().filter(own) {
            let made = hardware(&m, instr, Tables::Case).unwrap_or_else(|e| panic!("{e}"));
            assert!(made.verilog.contains(&format!("module op_{} (", instr.name)));
            assert!(made.parts.iter().all(|p| p.verilog.is_some()));
        }
    }
}

#[test]
fn what_has_no_hardware_says_why() {
    let m = machine("machines/rv32.toml", "").unwrap();
    let why = |name: &str| {
        let instr = m.instr(m.instr_named(name).unwrap());
        hardware(&m, instr, Tables::Case).unwrap_err().to_string()
    };
    assert_eq!(why("lw"), "lw reaches memory: its hardware is the processor's");
    assert_eq!(why("beq"), "beq jumps: its hardware is the processor's");
    assert_eq!(why("nop"), "nop writes no register");
    assert_eq!(why("divu"), "divu divides: a divider is not made of gates alone");
}

/// What a reader sees.
#[test]
fn a_module_reads_as_what_it_is() {
    let m = machine("machines/rv32.toml", "zkne").unwrap();
    let made = hardware(&m, m.instr(m.instr_named("aes32esmi").unwrap()), Tables::Hand).unwrap();
    assert_eq!(made.parts.iter().map(|p| p.module.as_str()).collect::<Vec<_>>(), ["aes_sbox", "matrix_aes_mix_byte"]);
    assert!(made.verilog.contains("aes_sbox u"), "{}", made.verilog);
    let m = machine("machines/rv32.toml", "zbkb").unwrap();
    let made = hardware(&m, m.instr(m.instr_named("pack").unwrap()), Tables::Hand).unwrap();
    assert!(made.verilog.contains("assign rd = {rs2[15:0], rs1[15:0]};"), "{}", made.verilog);
}

#[test]
fn unit_gates_are_counted_by_hand() {
    use ciphermill_rtl::aig::Graph;
    let mut g = Graph::new();
    let (x, y, z) = (g.input(1)[0], g.input(1)[0], g.input(1)[0]);
    let sum = g.xor(x, y);
    let sum = g.xor(sum, z);
    let product = g.and(x, z);
    let _unneeded = g.or(y, z);
    g.outputs = vec![vec![sum, !product]];
    assert_eq!(g.unit_gates(), 2 + 2 + 1);
    let chosen = g.mux(x, y, z);
    g.outputs = vec![vec![chosen]];
    assert_eq!(g.unit_gates(), 3);
}
