//! Instructions with tables, matrices and configuration: the fast simulator
//! computes what the plain interpreter of semantics does.

mod common;

use ciphermill_machine::eval::{Memory, Value, execute};
use ciphermill_machine::{Machine, OperandKind, load_from_dir};
use ciphermill_sim::{SimOptions, Simulator};
use std::path::Path;
use std::sync::Arc;

struct NoMemory;

impl Memory for NoMemory {
    fn load(&self, _: u64, _: u8) -> Option<u64> {
        None
    }
    fn store(&mut self, _: u64, _: u8, _: u64) -> Option<()> {
        None
    }
}

fn machine(name: &str, with: &[&str]) -> Machine {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let with: Vec<String> = with.iter().map(|s| (*s).to_owned()).collect();
    load_from_dir(&root, name, &with, &[], &[]).unwrap_or_else(|e| panic!("{e}"))
}

fn noise(n: u64) -> u64 {
    let x = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x ^ x >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32
}

/// Every instruction that extensions brought, on a few operand values: its
/// result in a function by the simulator, and by the plain interpreter.
fn same_results(m: &Machine, copy_and_return: &str) {
    let mut tried = 0;
    for instr in m.instrs.iter().filter(|i| m.extensions.iter().any(|e| i.extension.as_ref() == Some(e))) {
        for trial in 0..20u64 {
            let (mut values, mut words, mut result) = (Vec::new(), Vec::new(), None);
            for (i, o) in instr.operands.iter().enumerate() {
                match &o.kind {
                    OperandKind::Reg { file, def, .. } if *file == m.reg(m.abi.args[0]).file => {
                        let reg = m.abi.args[i];
                        result = if *def { Some(reg) } else { result };
                        values.push(Value::Reg(reg));
                        words.push(m.reg(reg).name.clone());
                    }
                    OperandKind::Imm { min, max, .. } => {
                        let imm = min + (noise(trial + 7) % (max - min + 1) as u64) as i64;
                        values.push(Value::Imm(imm));
                        words.push(imm.to_string());
                    }
                    _ => {}
                }
            }
            let Some(result) = result.filter(|_| words.len() == instr.operands.len()) else { continue };
            let args: Vec<u64> = (0..4).map(|i| noise(trial * 4 + i)).collect();
            let mut regs = vec![0; m.regs.len()];
            for (reg, value) in m.abi.args.iter().zip(&args) {
                regs[usize::from(reg.0)] = *value;
            }
            // Configuration is 0 at the start.
            execute(m, &instr.semantics, &values, &mut regs, 0, &mut NoMemory).unwrap();
            let copy = copy_and_return.replace("{}", &m.reg(result).name);
            let text = format!("func f 4 1\n{} {}\n{copy}", instr.name, words.join(", "));
            let program = common::assemble(m.clone(), &text);
            let mut s = Simulator::new(Arc::new(program), SimOptions::default()).unwrap();
            assert_eq!(s.call(0, &args).unwrap(), [regs[usize::from(result.0)]], "{} {args:x?}", instr.name);
            tried += 1;
        }
    }
    assert!(tried >= 20, "{tried}");
}

#[test]
fn extensions_of_rv32() {
    let copy = "mv a0, {}\nret";
    for set in [&["zkne", "zknd", "zbkx", "zbkb"][..], &["aes_v1"], &["aes_v2"], &["aes_v3"], &["aes_v5"]] {
        same_results(&machine("rv32", set), copy);
    }
}

#[test]
fn extensions_of_leon2() {
    let set = ["sbox", "sbox4", "sbox4s", "sbox4r", "mixcol4", "mixcol4s", "mixcolm"];
    same_results(&machine("leon2", &set), "mov {}, o0\nretl\nnop");
}

/// The general multiplier keeps its matrix from call to call.
#[test]
fn configuration_is_kept_between_calls() {
    let m = machine("leon2", &["mixcolm"]);
    // Output bit i is input bit 31 - i, and bit 0 also input bit 0.
    let rows: String = (0..32).map(|i| format!("sll_imm o0, {}, o1\nmixcolm_row o1, gfm{i}\n", 31 - i)).collect();
    let text = format!(
        "func configure 1 0\n{rows}add_imm o1, 0, o1\nsll_imm o0, 31, o1\nor o1, o0, o1\nmixcolm_row o1, gfm0\nretl\nnop\n\
         func multiply 1 1\nmixcolm o0, o0\nretl\nnop"
    );
    let mut s = Simulator::new(Arc::new(common::assemble(m, &text)), SimOptions::default()).unwrap();
    s.call_export("configure", &[1]).unwrap();
    for x in [0u32, 1, 0x8000_0000, 0x1234_5678, 0xffff_ffff] {
        assert_eq!(s.call_export("multiply", &[x.into()]).unwrap(), [u64::from(x.reverse_bits() ^ (x & 1))]);
    }
}
