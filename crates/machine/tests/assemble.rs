//! GNU as judges the assembly templates: every instruction is written with
//! the ends of its operands' ranges and several registers, and must assemble to the declared
//! number of bytes. Skipped where the assembler is not installed.

use ciphermill_machine::{Instr, InstrKind, Machine, OperandKind, Reg, load_from_dir};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Clone, Copy)]
enum Sample {
    Reg(Reg),
    Imm(i64),
    Label,
}

/// `nth` picks a register or a number of an immediate's range. The stack pointer is no index,
/// and no operand of anything else either: code has it as a base only.
fn sample(m: &Machine, instr: &Instr, k: usize, nth: usize) -> Sample {
    match &instr.operands[k].kind {
        OperandKind::Reg { file, .. } => {
            let f = &m.files[*file];
            let all: Vec<Reg> = (f.first.0..f.first.0 + f.count).map(Reg).collect();
            let only = instr.only.iter().find(|o| o.0 == k).map_or(all, |o| o.1.clone());
            let only: Vec<Reg> = only.into_iter().filter(|&r| Some(r) != m.abi.stack_pointer.into()).collect();
            Sample::Reg(only[(7 + 5 * nth + 3 * k) % only.len()])
        }
        OperandKind::Imm { min, max, .. } => Sample::Imm(match nth {
            0 => *min,
            1 => *max,
            n => (*min).max(n as i64 - 1).min(*max),
        }),
        OperandKind::Label => Sample::Label,
    }
}

/// The line of assembly, and the bytes that the machine file says. None where a shorter
/// instruction is written alike, which the assembler takes.
fn written(m: &Machine, instr: &Instr, nth: usize) -> Option<(String, i64)> {
    let samples: Vec<Sample> = (0..instr.operands.len()).map(|k| sample(m, instr, k, nth)).collect();
    let holds = |i: &Instr| {
        i.operands.iter().zip(&samples).all(|(o, s)| match (&o.kind, s) {
            (OperandKind::Imm { min, max, .. }, Sample::Imm(x)) => (min..=max).contains(&x),
            _ => true,
        })
    };
    if m.instrs.iter().any(|i| i.asm == instr.asm && i.bytes < instr.bytes && holds(i)) {
        return None;
    }
    let mut line = instr.asm.clone();
    for (o, s) in instr.operands.iter().zip(&samples) {
        match s {
            Sample::Reg(r) => {
                let info = &m.regs[usize::from(r.0)];
                line = line.replace(&format!("{{{}}}", o.name), &format!("{}{}", m.asm.reg_prefix, info.name));
                for (view, name) in &info.views {
                    line = line.replace(&format!("{{{}.{view}}}", o.name), &format!("{}{name}", m.asm.reg_prefix));
                }
            }
            Sample::Imm(x) => {
                line = line.replace(&format!("{{{}}}", o.name), &x.to_string());
                if line.contains(".pow2") {
                    line = line.replace(&format!("{{{}.pow2}}", o.name), &(1u64 << x).to_string());
                }
            }
            Sample::Label => line = line.replace(&format!("{{{}}}", o.name), "target"),
        }
    }
    let matching = instr.sizes.iter().filter(|s| match samples[s.operand] {
        Sample::Reg(r) => s.regs.contains(&r),
        Sample::Imm(x) => s.values.contains(&x),
        Sample::Label => false,
    });
    let (prefixes, others): (Vec<_>, Vec<_>) = matching.partition(|s| s.prefix);
    let changed: i64 = others.iter().chain(prefixes.first()).map(|s| i64::from(s.bytes)).sum();
    Some((line, i64::from(instr.bytes) + changed))
}

/// Lines for each instruction.
const SAMPLES: usize = 7;

fn assembles(machine: &str, with: &[&str], assembler: &str, flags: &[&str]) {
    let nm = if assembler == "as" { "nm".to_owned() } else { assembler.replace("-as", "-nm") };
    if Command::new(assembler).arg("--version").output().is_err() {
        println!("skipped: {assembler} is not installed");
        return;
    }
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let with: Vec<String> = with.iter().map(|s| (*s).to_owned()).collect();
    let m = load_from_dir(&root, machine, &with, &[], &[]).unwrap_or_else(|e| panic!("{e}"));
    let (mut text, mut lines) = (String::from(".text\n"), Vec::new());
    for line in &m.asm.prologue {
        writeln!(text, "{line}").unwrap();
    }
    text.push_str("target:\n");
    let sized = |i: &&Instr| i.short_bytes.is_none() || !matches!(i.kind, InstrKind::Branch | InstrKind::Jump);
    for instr in m.instrs.iter().filter(sized) {
        for nth in 0..SAMPLES {
            let Some((line, bytes)) = written(&m, instr, nth) else { continue };
            let n = lines.len();
            writeln!(text, "L{n}:\t{line} {} {}", m.asm.comment, instr.name).unwrap();
            lines.push((line, bytes));
        }
    }
    writeln!(text, "L{}:", lines.len()).unwrap();
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, object) = (dir.join(format!("{machine}.s")), dir.join(format!("{machine}.o")));
    std::fs::write(&source, text).unwrap();
    let out = Command::new(assembler).args(flags).arg("-o").args([&object, &source]).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let out = Command::new(nm).arg(&object).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let mut at = vec![None; lines.len() + 1];
    for line in String::from_utf8_lossy(&out.stdout).lines() {
        if let [address, _, name] = line.split_whitespace().collect::<Vec<_>>()[..]
            && let Some(n) = name.strip_prefix('L').and_then(|n| n.parse::<usize>().ok())
        {
            at[n] = i64::from_str_radix(address, 16).ok();
        }
    }
    for (n, (line, bytes)) in lines.iter().enumerate() {
        assert_eq!(Some(at[n].unwrap() + bytes), at[n + 1], "{machine}: bytes of `{line}`");
    }
}

#[test]
fn sparc() {
    assembles("leon2", &[], "sparc64-linux-gnu-as", &["-32", "-Av8"]);
}

#[test]
fn risc_v() {
    let flags = ["-march=rv32im_zba_zbb_zbkb_zbc_zknh", "-mabi=ilp32"];
    assembles("rv32", &["zba", "zbb", "zbkb", "zbc", "zknh"], "riscv64-linux-gnu-as", &flags);
    let flags = ["-march=rv64im_zba_zbb_zbkb_zbkx_zkne_zknd_zbc_zknh", "-mabi=lp64"];
    let extensions =
        ["zba_rv64", "zbb_rv64", "zbkb_rv64", "zbkx_rv64", "zkne_rv64", "zknd_rv64", "zbc_rv64", "zknh_rv64"];
    assembles("rv64", &extensions, "riscv64-linux-gnu-as", &flags);
}

#[test]
fn x86() {
    if !cfg!(any(target_arch = "x86", target_arch = "x86_64")) {
        return println!("skipped: `as` is that of another processor");
    }
    assembles("ia32", &[], "as", &["--32"]);
    assembles("x86_64", &[], "as", &["--64", "-mindex-reg"]);
}
