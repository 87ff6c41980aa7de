//! GNU as judges the assembly templates: every instruction is written with
//! the ends of its operands' ranges and must assemble to the declared number
//! of bytes. Skipped where the assembler is not installed.

use ciphermill_machine::{Machine, Operand, OperandKind, load_from_dir};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// `nth` picks a register or an end of an immediate's range.
fn sample(m: &Machine, o: &Operand, nth: usize) -> String {
    match &o.kind {
        OperandKind::Reg { file, .. } => {
            let f = &m.files[*file];
            let reg = usize::from(f.first.0) + (7 + 5 * nth) % usize::from(f.count);
            format!("{}{}", m.asm.reg_prefix, m.regs[reg].name)
        }
        OperandKind::Imm { min, max, .. } => if nth == 0 { min } else { max }.to_string(),
        OperandKind::Label => "target".to_owned(),
    }
}

fn assembles(machine: &str, with: &[&str], assembler: &str, flags: &[&str]) {
    let nm = assembler.replace("-as", "-nm");
    if Command::new(assembler).arg("--version").output().is_err() {
        println!("skipped: {assembler} is not installed");
        return;
    }
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let with: Vec<String> = with.iter().map(|s| (*s).to_owned()).collect();
    let m = load_from_dir(&root, machine, &with, &[], &[]).unwrap_or_else(|e| panic!("{e}"));
    let (mut text, mut written) = (String::from(".text\n"), Vec::new());
    for line in &m.asm.prologue {
        writeln!(text, "{line}").unwrap();
    }
    text.push_str("target:\n");
    for instr in &m.instrs {
        for nth in 0..2 {
            let mut line = instr.asm.clone();
            for o in &instr.operands {
                line = line.replace(&format!("{{{}}}", o.name), &sample(&m, o, nth));
            }
            let n = written.len();
            writeln!(text, "L{n}:\t{line} {} {}", m.asm.comment, instr.name).unwrap();
            written.push((line, instr.bytes));
        }
    }
    writeln!(text, "L{}:", written.len()).unwrap();
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, object) = (dir.join(format!("{machine}.s")), dir.join(format!("{machine}.o")));
    std::fs::write(&source, text).unwrap();
    let out = Command::new(assembler).args(flags).arg("-o").args([&object, &source]).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let out = Command::new(nm).arg(&object).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let mut at = vec![None; written.len() + 1];
    for line in String::from_utf8_lossy(&out.stdout).lines() {
        if let [address, _, name] = line.split_whitespace().collect::<Vec<_>>()[..]
            && let Some(n) = name.strip_prefix('L').and_then(|n| n.parse::<usize>().ok())
        {
            at[n] = u64::from_str_radix(address, 16).ok();
        }
    }
    for (n, (line, bytes)) in written.iter().enumerate() {
        assert_eq!(Some(at[n].unwrap() + u64::from(*bytes)), at[n + 1], "{machine}: bytes of `{line}`");
    }
}

#[test]
fn sparc() {
    assembles("leon2", &[], "sparc64-linux-gnu-as", &["-32", "-Av8"]);
}

#[test]
fn risc_v() {
    let flags = ["-march=rv32im_zba_zbb_zbkb", "-mabi=ilp32"];
    assembles("rv32", &["zba", "zbb", "zbkb"], "riscv64-linux-gnu-as", &flags);
    let flags = ["-march=rv64im_zba_zbb_zbkb_zbkx_zkne_zknd", "-mabi=lp64"];
    let extensions = ["zba_rv64", "zbb_rv64", "zbkb_rv64", "zbkx_rv64", "zkne_rv64", "zknd_rv64"];
    assembles("rv64", &extensions, "riscv64-linux-gnu-as", &flags);
}
