//! A program as assembly text for its machine's GNU assembler.
//!
//! Every instruction is its machine file's own template with the operands
//! filled in; nothing here knows a machine. Registers get the machine's
//! prefix, immediates are decimal, blocks are local labels `.Lf_b` (function
//! `f`, block `b`), exported functions global symbols of their names.
//!
//! The code computes addresses as absolute numbers, so the three sections have
//! to be linked where the numbers say, which a comment at the head repeats:
//!
//! | section | holds | address |
//! |---|---|---|
//! | `.text` | the code | anywhere, [`CODE_BASE`] by convention |
//! | `.cm_linear` | linear memory in its first size | 0 |
//! | `.cm_system` | globals, table, passive segments | [`SYSTEM_BASE`] |
//!
//! Whoever starts the program sets the stack pointer, gives the registers that
//! hold globals their first values (symbols `cm_global_REGISTER`), and calls
//! `cm_start` if there is one, as the calling convention has it.

use crate::layout::CODE_BASE;
use crate::{Func, Inst, Operand, Program};
use ciphermill_ir::{PAGE_BYTES, SYSTEM_BASE};
use ciphermill_machine::Reg;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Symbols of our own, which no function gets.
const RESERVED: [&str; 6] = ["_start", "cm_start", "cm_linear_start", "cm_linear_end", "cm_system_start", "cm_system_end"];

/// The whole program as assembly text.
pub fn print(program: &Program) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_program(&mut out, program);
    out
}

/// One instruction as the assembler wants it. `func` is the number of the
/// function that holds it, `symbols` the names of all functions.
fn instruction(program: &Program, symbols: &[String], func: usize, inst: &Inst) -> String {
    let Some(instr) = program.machine.instrs.get(usize::from(inst.instr.0)) else {
        return format!("<instruction {}>", inst.instr.0);
    };
    let mut out = String::new();
    let mut rest = instr.asm.as_str();
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, tail)) = after.split_once('}') else { break };
        out.push_str(before);
        let index = instr.operands.iter().position(|o| o.name == name);
        match index.and_then(|i| inst.operands.get(i)) {
            Some(&Operand::Reg(r)) => out.push_str(&register(program, r)),
            Some(Operand::Imm(x)) => {
                let _ = write!(out, "{x}");
            }
            Some(Operand::Block(b)) => {
                let _ = write!(out, ".L{func}_{b}");
            }
            Some(&Operand::Func(f)) => out.push_str(symbols.get(f as usize).map_or("<function>", |s| s)),
            None => {
                let _ = write!(out, "<{name}>");
            }
        }
        rest = tail;
    }
    out.push_str(rest);
    out
}

fn register(program: &Program, r: Reg) -> String {
    let name = program.machine.regs.get(usize::from(r.0)).map_or("<register>", |r| &r.name);
    format!("{}{name}", program.machine.asm.reg_prefix)
}

/// Assembler symbols of all functions, each once.
fn symbols(program: &Program) -> Vec<String> {
    let mut used: BTreeSet<String> = RESERVED.iter().map(ToString::to_string).collect();
    let names = program.funcs.iter().enumerate().map(|(i, f)| {
        let export = program.exports.iter().find(|(_, func)| *func as usize == i);
        (i, export.map(|(n, _)| n.as_str()), f)
    });
    let (exported, local): (Vec<_>, Vec<_>) = names.partition(|(_, e, _)| e.is_some());
    let mut out = vec![String::new(); program.funcs.len()];
    for (i, export, func) in exported.into_iter().chain(local) {
        out[i] = unique(&mut used, &symbol(export.unwrap_or(&func.name)));
    }
    out
}

/// A name with nothing in it that the assembler could mistake.
fn symbol(name: &str) -> String {
    let mut s: String = name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
    if s.is_empty() || s.starts_with(|c: char| c.is_ascii_digit()) {
        s.insert(0, '_');
    }
    s
}

fn unique(used: &mut BTreeSet<String>, name: &str) -> String {
    let mut s = name.to_string();
    let mut n = 1;
    while !used.insert(s.clone()) {
        n += 1;
        s = format!("{name}_{n}");
    }
    s
}

fn write_program(out: &mut String, program: &Program) -> std::fmt::Result {
    let machine = &program.machine;
    let c = &machine.asm.comment;
    let symbols = symbols(program);
    let mut taken: BTreeSet<String> = symbols.iter().cloned().collect();
    taken.extend(RESERVED.iter().map(ToString::to_string));
    writeln!(out, "{c} {} ({} bytes of code)", machine.title, program.code_bytes())?;
    writeln!(out, "{c} Link .text at {CODE_BASE:#x}, .cm_linear at 0 and .cm_system at {SYSTEM_BASE:#x}:")?;
    writeln!(out, "{c} addresses in the code are absolute numbers.")?;
    for line in &machine.asm.prologue {
        writeln!(out, "\t{line}")?;
    }
    for &(reg, value) in &program.global_regs {
        let name = machine.regs.get(usize::from(reg.0)).map_or("", |r| &r.name);
        writeln!(out, "\t.globl cm_global_{name}\n\t.set cm_global_{name}, {value}")?;
    }
    writeln!(out, "\n\t.text")?;
    for (i, func) in program.funcs.iter().enumerate() {
        writeln!(out, "\n\t.balign 16")?;
        if !func.name.is_empty() && func.name != symbols[i] {
            writeln!(out, "{c} {}", func.name.escape_debug())?;
        }
        if func.frame_bytes > 0 {
            writeln!(out, "{c} frame: {} bytes", func.frame_bytes)?;
        }
        if program.start == Some(i as u32) {
            writeln!(out, "\t.globl cm_start\ncm_start:")?;
        }
        for (n, (name, _)) in program.exports.iter().filter(|(_, f)| *f as usize == i).enumerate() {
            let s = if n == 0 { symbols[i].clone() } else { unique(&mut taken, &symbol(name)) };
            writeln!(out, "\t.globl {s}\n\t.type {s}, @function")?;
            if n > 0 {
                writeln!(out, "{s}:")?;
            }
        }
        write_func(out, program, &symbols, i, func)?;
    }
    write_linear(out, program)?;
    write_system(out, program, &symbols)
}

fn write_func(out: &mut String, program: &Program, symbols: &[String], i: usize, func: &Func) -> std::fmt::Result {
    let c = &program.machine.asm.comment;
    writeln!(out, "{}:", symbols[i])?;
    for (b, block) in func.blocks.iter().enumerate() {
        write!(out, ".L{i}_{b}:")?;
        match block.loop_depth {
            0 => writeln!(out)?,
            depth => writeln!(out, "\t{c} loop depth {depth}")?,
        }
        for bundle in &block.bundles {
            if bundle.insts.is_empty() {
                let nop = program.machine.instrs.get(usize::from(program.machine.abi.ops.nop.0));
                writeln!(out, "\t{}", nop.map_or("nop", |n| &n.asm))?;
            }
            for (k, inst) in bundle.insts.iter().enumerate() {
                let parallel = if k > 0 { "||" } else { "" };
                writeln!(out, "{parallel}\t{}", instruction(program, symbols, i, inst))?;
            }
        }
    }
    Ok(())
}

fn write_linear(out: &mut String, program: &Program) -> std::fmt::Result {
    writeln!(out, "\n\t.section .cm_linear,\"aw\"\n\t.globl cm_linear_start\ncm_linear_start:")?;
    let size = u64::from(program.min_pages) * PAGE_BYTES;
    // Segments may overlap (the later wins) and come in any order.
    let mut image = Vec::new();
    for s in &program.data {
        let (from, to) = (s.addr as usize, s.addr as usize + s.bytes.len());
        if image.len() < to {
            image.resize(to, 0);
        }
        image[from..to].copy_from_slice(&s.bytes);
    }
    write_bytes(out, &image)?;
    if size > image.len() as u64 {
        writeln!(out, "\t.skip {}", size - image.len() as u64)?;
    }
    writeln!(out, "\t.globl cm_linear_end\ncm_linear_end:")
}

fn write_system(out: &mut String, program: &Program, symbols: &[String]) -> std::fmt::Result {
    writeln!(out, "\n\t.section .cm_system,\"aw\"\n\t.globl cm_system_start\ncm_system_start:")?;
    writeln!(out, "\t.4byte {}, {}", program.min_pages, program.max_pages)?;
    let mut refs: Vec<(usize, u32)> =
        program.system_func_refs.iter().map(|r| (r.offset as usize, r.func.as_u32())).collect();
    refs.sort_unstable();
    let mut at = 8;
    for (offset, func) in refs {
        if offset < at || offset + 4 > program.system.len() {
            continue;
        }
        write_bytes(out, &program.system[at..offset])?;
        writeln!(out, "\t.4byte {}", symbols.get(func as usize).map_or("0", |s| s))?;
        at = offset + 4;
    }
    write_bytes(out, program.system.get(at..).unwrap_or(&[]))?;
    writeln!(out, "\t.globl cm_system_end\ncm_system_end:")
}

/// Bytes, sixteen to a line, long runs of zeros in one.
fn write_bytes(out: &mut String, bytes: &[u8]) -> std::fmt::Result {
    let mut at = 0;
    while at < bytes.len() {
        let zeros = bytes[at..].iter().take_while(|&&b| b == 0).count();
        if zeros >= 16 {
            writeln!(out, "\t.skip {zeros}")?;
            at += zeros;
            continue;
        }
        let line = &bytes[at..bytes.len().min(at + 16)];
        let text: Vec<String> = line.iter().map(ToString::to_string).collect();
        writeln!(out, "\t.byte {}", text.join(","))?;
        at += line.len();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_clean_and_unique() {
        let mut used = BTreeSet::new();
        assert_eq!(unique(&mut used, &symbol("a b")), "a_b");
        assert_eq!(unique(&mut used, &symbol("a-b")), "a_b_2");
        assert_eq!(symbol("0x"), "_0x");
        assert_eq!(symbol(""), "_");
    }

    #[test]
    fn bytes_keep_their_number() {
        let mut bytes = vec![1, 2, 3];
        bytes.extend([0; 40]);
        bytes.push(9);
        let mut out = String::new();
        write_bytes(&mut out, &bytes).unwrap();
        assert_eq!(out, "\t.byte 1,2,3,0,0,0,0,0,0,0,0,0,0,0,0,0\n\t.skip 27\n\t.byte 9\n");
    }
}
