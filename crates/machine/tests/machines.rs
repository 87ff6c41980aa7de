//! The machine files that come with the project.

use ciphermill_machine::eval::{Memory, Outcome, Value, execute};
use ciphermill_machine::parse::{self, Scope};
use ciphermill_machine::prove::counterexample;
use ciphermill_machine::{Machine, OperandKind, load_from_dir, print};
use std::collections::BTreeMap;
use std::path::PathBuf;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn load(name: &str, with: &[&str]) -> Machine {
    let with: Vec<String> = with.iter().map(|s| (*s).to_owned()).collect();
    match load_from_dir(&root(), name, &with, &[], &[]) {
        Ok(machine) => machine,
        Err(e) => panic!("{e}"),
    }
}

fn all() -> [Machine; 3] {
    [load("leon2", &[]), load("rv32", &[]), load("rv32", &["zba", "zbb", "zbkb"])]
}

/// Nothing is ever loaded or stored in the instructions tested here.
struct NoMemory;

impl Memory for NoMemory {
    fn load(&self, _: u64, _: u8) -> Option<u64> {
        None
    }
    fn store(&mut self, _: u64, _: u8, _: u64) -> Option<()> {
        None
    }
}

/// The first result of instruction `name` on register values or immediates,
/// given in the order of its operands without the result.
fn compute(m: &Machine, name: &str, args: &[i64]) -> u64 {
    let instr = m.instr(m.instr_named(name).expect(name));
    let mut regs = vec![0; m.regs.len()];
    let mut free = (0..m.regs.len()).filter(|&i| !m.regs[i].zero && m.regs[i].file == 0);
    let (mut args, mut result, mut values) = (args.iter(), None, Vec::new());
    for o in &instr.operands {
        values.push(match &o.kind {
            OperandKind::Reg { def, .. } => {
                let r = free.next().unwrap();
                if *def {
                    result = Some(r)
                } else {
                    regs[r] = *args.next().unwrap() as u64 & 0xffff_ffff
                }
                Value::Reg(ciphermill_machine::Reg(r as u16))
            }
            _ => Value::Imm(*args.next().unwrap()),
        });
    }
    let outcome = execute(m, &instr.semantics, &values, &mut regs, 0, &mut NoMemory);
    assert_eq!(outcome, Some(Outcome::Next), "{name}");
    regs[result.unwrap()]
}

#[test]
fn compounds_do_what_they_say() {
    for m in all() {
        assert!(m.compounds.len() > 10, "{}", m.name);
        for c in &m.compounds {
            assert_eq!(counterexample(&m, c, 2000), None, "{} {}", m.name, c.name);
        }
    }
}

#[test]
fn assembly_mentions_every_operand() {
    for m in all() {
        for i in &m.instrs {
            for o in &i.operands {
                assert!(i.asm.contains(&format!("{{{}}}", o.name)), "{}: {} in {}", m.name, o.name, i.asm);
            }
            assert!(!i.asm.contains("{name}") && !i.asm.contains('\n'));
        }
    }
}

#[test]
fn printed_semantics_read_back_the_same() {
    for m in all() {
        let names: BTreeMap<_, _> =
            m.regs.iter().enumerate().map(|(i, r)| (r.name.clone(), ciphermill_machine::Reg(i as u16))).collect();
        for i in &m.instrs {
            let text = print::statements(&i.semantics, m.names(&i.operands));
            let scope = Scope {
                bound: &[],
                word: 32,
                operands: &i.operands,
                regs: &names,
                reg_infos: &m.regs,
                files: &[],
                tables: &m.tables,
                matrices: &m.matrices,
            };
            let (again, temps) = parse::statements(&text, &scope).unwrap_or_else(|e| panic!("{text}: {e:?}"));
            assert_eq!((&again, temps), (&i.semantics, i.temps), "{}: {text}", i.name);
        }
    }
}

#[test]
fn every_number_has_a_source() {
    for m in all() {
        for (path, source) in &m.sources {
            assert!(source.len() > 10, "{path}: {source}");
        }
        for i in &m.instrs {
            assert!(m.source(&format!("timings.{}.latency", i.timing)).is_some(), "{}", i.name);
        }
    }
}

#[test]
fn timings_are_those_of_the_sources() {
    let m = load("leon2", &[]);
    let cycles = |name: &str| {
        let i = m.instr(m.instr_named(name).expect(name));
        (i.issue_cycles, i.latency)
    };
    assert_eq!(cycles("add"), (1, 1));
    assert_eq!(cycles("ld"), (1, 2));
    assert_eq!(cycles("st"), (2, 1));
    assert_eq!(cycles("umul"), (5, 5));
    assert_eq!(cycles("udiv"), (35, 35));
    assert_eq!(cycles("ret"), (2, 2));
    let be = m.instr(m.instr_named("be").unwrap());
    assert_eq!((be.delay_slots, be.annul, be.issue_cycles, be.taken_cycles), (1, false, 1, 0));
    let m = load("rv32", &[]);
    let bne = m.instr(m.instr_named("bne").unwrap());
    assert_eq!((bne.delay_slots, bne.taken_cycles, bne.untaken_cycles), (0, 2, 0));
}

#[test]
fn risc_v_division_has_no_exceptions() {
    let m = load("rv32", &[]);
    let min = i64::from(i32::MIN);
    assert_eq!(compute(&m, "div", &[7, 0]), 0xffff_ffff);
    assert_eq!(compute(&m, "div", &[min, -1]), 0x8000_0000);
    assert_eq!(compute(&m, "div", &[-7, 2]), 0xffff_fffd);
    assert_eq!(compute(&m, "divu", &[7, 0]), 0xffff_ffff);
    assert_eq!(compute(&m, "rem", &[7, 0]), 7);
    assert_eq!(compute(&m, "rem", &[min, -1]), 0);
    assert_eq!(compute(&m, "rem", &[-7, 2]), 0xffff_ffff);
    assert_eq!(compute(&m, "remu", &[7, 0]), 7);
}

#[test]
fn bit_manipulation_matches_its_definition() {
    let m = load("rv32", &["zba", "zbb", "zbkb"]);
    for x in [0u32, 1, 0x8000_0000, 0x1234_5678, 0xdead_beef, 0x00ff_0100, 0xffff_ffff, 0x0080_7f01] {
        let y = x.rotate_left(13) ^ 0x5bd1_e995;
        let (a, b) = (i64::from(x), i64::from(y));
        let is = |name: &str, args: &[i64], value: u32| {
            assert_eq!(compute(&m, name, args), u64::from(value), "{name} of {x:x}");
        };
        let bytes = |f: fn(u8) -> u8| u32::from_le_bytes(x.to_le_bytes().map(f));
        let bit = |i: u32| (x >> i) & 1;
        is("sh2add", &[a, b], (x << 2).wrapping_add(y));
        is("andn", &[a, b], x & !y);
        is("orn", &[a, b], x | !y);
        is("xnor", &[a, b], !(x ^ y));
        is("clz", &[a], x.leading_zeros());
        is("ctz", &[a], x.trailing_zeros());
        is("cpop", &[a], x.count_ones());
        is("max", &[a, b], (x as i32).max(y as i32) as u32);
        is("minu", &[a, b], x.min(y));
        is("sext_b", &[a], x as u8 as i8 as u32);
        is("zext_h", &[a], x & 0xffff);
        is("rol", &[a, b], x.rotate_left(y % 32));
        is("ror", &[a, b], x.rotate_right(y % 32));
        is("rori", &[a, 7], x.rotate_right(7));
        is("orc_b", &[a], bytes(|b| if b == 0 { 0 } else { 255 }));
        is("rev8", &[a], x.swap_bytes());
        is("brev8", &[a], bytes(u8::reverse_bits));
        is("pack", &[a, b], (x & 0xffff) | (y << 16));
        is("packh", &[a, b], (x & 0xff) | ((y & 0xff) << 8));
        is("zip", &[a], (0..16).map(|i| bit(i) << (2 * i) | bit(i + 16) << (2 * i + 1)).sum());
        is("unzip", &[a], (0..16).map(|i| bit(2 * i) << i | bit(2 * i + 1) << (i + 16)).sum());
    }
}

#[test]
fn json_has_every_instruction_and_its_meaning() {
    let m = load("leon2", &[]);
    let json = m.to_json();
    assert_eq!(json["instructions"].as_array().unwrap().len(), m.instrs.len());
    let add = &json["instructions"][0];
    assert_eq!((add["name"].as_str(), add["semantics"].as_str()), (Some("add"), Some("rd = rs1 + rs2")));
    assert!(add["source"].as_str().unwrap().contains("LEON2Itineraries"));
    assert_eq!(json["compounds"][0]["parts"][0], "sethi imm & 0xfffffc00, $0");
    assert_eq!(json["abi"]["windows"]["count"], 8);
    let schema = ciphermill_machine::schema();
    assert_eq!(schema["machine"]["properties"]["issue"]["properties"]["width"]["type"], "integer");
}
