//! Writing out templates: every operand gets the value it stands for, and one
//! that has none is an error, never a zero.

use ciphermill_codegen::{CompileError, Options, compile};
use ciphermill_machine::{Machine, OperandKind};
use ciphermill_patterns::matcher::Matcher;
use ciphermill_patterns::pattern::{Action, Template};
use ciphermill_select::constants::Expansion;
use ciphermill_vcode::{VInst, VOp, VReg};
use std::path::Path;
use std::sync::Arc;

fn machine(name: &str, with: &[&str], set: &[(&str, &str)]) -> Machine {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let with: Vec<String> = with.iter().map(|w| w.to_string()).collect();
    let set: Vec<_> = set.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    ciphermill_machine::load_from_dir(&root, name, &with, &[], &set).expect("the machine file is good")
}

fn expand(machine: &Machine, t: &Template, ops: &[Option<VOp>]) -> Result<Vec<VInst>, CompileError> {
    let mut vregs = 100;
    Expansion { machine, new_vreg: &mut vregs }.expand(t, ops, Some(VReg(50)), Some(7))
}

/// A value for each operand that the matcher would bind; `imm` of the first
/// and the last value of an immediate's range.
fn operands(t: &Template, imm: fn(i64, i64) -> i64) -> Vec<Option<VOp>> {
    let dest = if let Action::Value(d, _) = &t.action { Some(*d) } else { None };
    let value = |(i, o): (usize, &ciphermill_machine::Operand)| match &o.kind {
        OperandKind::Reg { used, .. } if Some(i) == dest && !used => None,
        OperandKind::Reg { .. } => Some(VOp::Use(VReg(i as u32))),
        OperandKind::Imm { values: Some(v), .. } => Some(VOp::Imm(imm(v[0], v[v.len() - 1]))),
        OperandKind::Imm { min, max, .. } => Some(VOp::Imm(imm(*min, *max))),
        OperandKind::Label => None,
    };
    t.operands.iter().enumerate().map(value).collect()
}

#[test]
fn every_template_can_be_written_out() {
    for machine in [
        machine("leon2", &[], &[]),
        machine("rv32", &["zba", "zbb", "zbkb"], &[]),
        machine("c6201", &[], &[]),
        machine("c64x", &[], &[]),
    ] {
        for t in &Matcher::new(&machine).templates {
            for imm in [|min, _| min, |_, max| max] {
                let ops = operands(t, imm);
                let insts = expand(&machine, t, &ops).unwrap_or_else(|e| panic!("{}: {e}", machine.name));
                let written = insts.iter().flat_map(|i| &i.ops);
                let results = written.filter(|o| matches!(o, VOp::Def(VReg(50)) | VOp::Tied { def: VReg(50), .. }));
                assert_eq!(results.count(), usize::from(matches!(t.action, Action::Value(..))));
            }
        }
    }
}

#[test]
fn an_operand_without_a_value_is_an_error() {
    for machine in [machine("leon2", &[], &[]), machine("rv32", &[], &[])] {
        let mut tried = 0;
        for t in &Matcher::new(&machine).templates {
            let ops = operands(t, |min, _| min);
            for i in (0..ops.len()).filter(|&i| ops[i].is_some()) {
                let mut lacking = ops.clone();
                lacking[i] = None;
                match expand(&machine, t, &lacking) {
                    Err(CompileError::Internal(text)) => assert!(text.contains("has no value"), "{text}"),
                    other => panic!("{}: operand {i} of {t:?}: {other:?}", machine.name),
                }
                tried += 1;
            }
        }
        assert!(tried > 50, "{tried}");
    }
}

#[test]
fn immediates_of_a_compounds_parts_come_from_their_expressions() {
    // rv32 makes a word from `lui` and `addi`, whose parts share its constant.
    let machine = machine("rv32", &[], &[]);
    let matcher = Matcher::new(&machine);
    for c in [0u64, 1, 0x7ff, 0x800, 0xfff, 0x1000, 0x1234_5678, 0x8000_0000, 0xffff_f800, 0xffff_ffff] {
        let (t, ops) = ciphermill_select::constants::recipe(&machine, &matcher, c).expect("any constant can be made");
        let mut value = 0i64;
        for inst in expand(&machine, t, &ops).expect("it is written out") {
            let imm = inst.ops.iter().find_map(|o| if let VOp::Imm(i) = o { Some(*i) } else { None });
            let imm = imm.expect("each part has an immediate");
            let name = machine.instrs[usize::from(inst.instr.0)].name.as_str();
            assert!(["lui", "addi", "li"].contains(&name), "{c:#x} by {name}");
            value += imm;
        }
        assert_eq!(value as u32, c as u32, "{c:#x}");
    }
}

#[test]
fn constant_time_code_takes_no_instruction_whose_time_varies() {
    let functions = r#"(module (memory 1)
      (func (export "upper") (param i32 i32) (result i32)
        (i32.wrap_i64 (i64.shr_u (i64.mul (i64.extend_i32_u (local.get 0)) (i64.extend_i32_u (local.get 1))) (i64.const 32))))
      (func (export "quotient") (param i32 i32) (result i32) (i32.div_u (local.get 0) (local.get 1))))"#;
    let mut module = ciphermill_load::load(&wat::parse_str(functions).expect("well formed")).expect("the module loads");
    let words = ciphermill_opt::Options { word_bits: 32, ..Default::default() };
    ciphermill_opt::run_lower64(&mut module).expect("words of 32 bits");
    ["fold", "dce"].iter().for_each(|pass| {
        ciphermill_opt::run_pass(&mut module, &words, pass);
    });
    // By function of the module, helpers left out: how many of its instructions vary. Of a quotient there is no other way.
    let varying = |name: &str, constant_time: bool| {
        let machine = Arc::new(machine(name, &[], &[]));
        let options = Options { level: 2, constant_time, ..Options::default() };
        let program = compile(&module, machine.clone(), &options).expect("there is a way");
        let varies = |i: &&ciphermill_program::Inst| !machine.instrs[usize::from(i.instr.0)].varies_with.is_empty();
        let insts = |f: &ciphermill_program::Func| {
            f.blocks.iter().flat_map(|b| &b.bundles).flat_map(|b| &b.insts).filter(varies).count()
        };
        program.funcs.iter().take(2).map(insts).collect::<Vec<_>>()
    };
    assert_eq!(varying("cortex-m3", false), [1, 1]);
    assert_eq!(varying("cortex-m3", true), [0, 1]);
    assert_eq!(varying("cortex-m4", true), [0, 1]);
}

#[test]
fn a_setting_that_no_code_is_generated_for_is_named() {
    let wasm = wat::parse_str(r#"(module (memory 1) (func (export "f")))"#).expect("the module is well formed");
    let module = ciphermill_load::load(&wasm).expect("the module loads");
    let machine = machine("leon2", &[], &[("issue.interlock", "false")]);
    match compile(&module, Arc::new(machine), &Options::default()) {
        Err(CompileError::Unsupported(text)) => {
            assert!(text.contains("issue.interlock = false") && text.contains("set it to true"), "{text}");
        }
        other => panic!("{:?}", other.map(|p| p.funcs.len())),
    }
}
