//! A program as assembly text for its machine's GNU assembler.
//!
//! Every instruction is its machine file's own template with the operands
//! filled in; nothing here knows a machine. Registers get the machine's
//! prefix, immediates are decimal, blocks are local labels `.Lf_b` (function
//! `f`, block `b`), literals `.Lf_b_k`, exported functions global symbols of their names.
//!
//! The code computes addresses as absolute numbers, so the three sections have
//! to be linked where the numbers say, which a comment at the head repeats:
//!
//! | section | holds | address |
//! |---|---|---|
//! | `.text` | the code | anywhere, [`CODE_BASE`] by convention |
//! | `.cm_linear` | linear memory in its first size | 0 |
//! | `.cm_flash` | tables in flash, where there are any | as the head says |
//! | `.cm_system` | globals, table, passive segments | [`SYSTEM_BASE`] |
//!
//! Memory of a big-endian machine is word-invariant (see the code generator's
//! expansion): every aligned word has the value that the module expects, so
//! the bytes of the images are printed in the order `3 2 1 0  7 6 5 4 ...`.
//!
//! Whoever starts the program sets the stack pointer, gives the registers that
//! hold globals their first values (symbols `cm_global_REGISTER`), and calls
//! `cm_start` if there is one, as the calling convention has it.

use crate::layout::{CODE_BASE, LITERAL_BYTES, Layout, is_far};
use crate::{Inst, Operand, Program, Segment};
use ciphermill_ir::{PAGE_BYTES, SYSTEM_BASE};
use ciphermill_machine::{Endian, Reg};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Symbols of our own, which no function gets.
const RESERVED: [&str; 8] = [
    "_start",
    "cm_start",
    "cm_linear_start",
    "cm_linear_end",
    "cm_flash_start",
    "cm_flash_end",
    "cm_system_start",
    "cm_system_end",
];

/// The whole program as assembly text.
pub fn print(program: &Program) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_program(&mut out, program);
    out
}

/// The instructions of one block as the assembler wants them, by bundles.
pub fn block(program: &Program, func: usize, block: usize) -> Vec<Vec<String>> {
    let symbols = symbols(program);
    let Some(code) = program.funcs.get(func).and_then(|f| f.blocks.get(block)) else { return Vec::new() };
    let text = |inst: &Inst| instruction(program, &symbols, (func, block), inst, false);
    code.bundles.iter().map(|b| b.insts.iter().map(text).collect()).collect()
}

/// One instruction as the assembler wants it. `(func, block)` are the numbers of the
/// function and block that hold it, `symbols` the names of all functions.
fn instruction(program: &Program, symbols: &[String], (func, block): (usize, usize), inst: &Inst, far: bool) -> String {
    let Some(instr) = program.machine.instrs.get(usize::from(inst.instr.0)) else {
        return format!("<instruction {}>", inst.instr.0);
    };
    let mut out = String::new();
    if let Some(p) = inst.predicate {
        out.push_str(&program.machine.asm.guard.replace("{p}", &register(program, p, None)));
    }
    let mut rest = instr.far_asm.as_deref().filter(|_| far).unwrap_or(&instr.asm);
    let braces = |text: &str| text.replace("}}", "}");
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(&braces(before));
        if let Some(tail) = after.strip_prefix('{') {
            out.push('{');
            rest = tail;
            continue;
        }
        let Some((name, tail)) = after.split_once('}') else { break };
        let (name, view) = name.split_once('.').map_or((name, None), |(n, v)| (n, Some(v)));
        let index = instr.operands.iter().position(|o| o.name == name);
        match index.and_then(|i| inst.operands.get(i)) {
            Some(&Operand::Reg(r)) => out.push_str(&register(program, r, view)),
            Some(Operand::Imm(x)) if view == Some("pow2") => {
                let _ = write!(out, "{}", 1u64.checked_shl(*x as u32).unwrap_or(0));
            }
            Some(Operand::Imm(x)) if index == instr.literal.map(|l| l.operand) => {
                let _ = write!(out, "{}", literal(program, (func, block), *x as u32));
            }
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
    out.push_str(&braces(rest));
    out
}

/// Label of the first literal of that value in or behind the block.
fn literal(program: &Program, (func, block): (usize, usize), value: u32) -> String {
    let blocks = program.funcs[func].blocks.iter().enumerate().skip(block);
    let found = blocks.into_iter().find_map(|(b, at)| Some((b, at.literals.iter().position(|&l| l == value)?)));
    found.map_or_else(|| format!("<literal {value}>"), |(b, k)| format!(".L{func}_{b}_{k}"))
}

/// The register's name, or that of the part which `view` means.
fn register(program: &Program, r: Reg, view: Option<&str>) -> String {
    let info = program.machine.regs.get(usize::from(r.0));
    let part = |i: &'_ ciphermill_machine::RegInfo| {
        let found = i.views.iter().find(|v| Some(v.0.as_str()) == view);
        found.map_or_else(|| i.name.clone(), |v| v.1.clone())
    };
    let name = info.map_or_else(|| "<register>".to_owned(), part);
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
    let flash = program.flash_tables();
    if let Some((at, _)) = &flash {
        writeln!(out, "{c} Link .cm_flash, tables in flash, at {at:#x} of the program memory.")?;
    }
    for line in &machine.asm.prologue {
        writeln!(out, "\t{line}")?;
    }
    for &(reg, value) in &program.global_regs {
        let name = machine.regs.get(usize::from(reg.0)).map_or("", |r| &r.name);
        writeln!(out, "\t.globl cm_global_{name}\n\t.set cm_global_{name}, {value}")?;
    }
    writeln!(out, "\n\t.text")?;
    let layout = Layout::new(program);
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
            let kind = machine.asm.function_type.as_deref().unwrap_or("@function");
            writeln!(out, "\t.globl {s}\n\t.type {s}, {kind}")?;
            if n > 0 {
                writeln!(out, "{s}:")?;
            }
        }
        // Some linkers and assemblers want to know of the others, too.
        if let (Some(kind), true) = (&machine.asm.function_type, program.exports.iter().all(|(_, f)| *f as usize != i))
        {
            writeln!(out, "\t.type {}, {kind}", symbols[i])?;
        }
        write_func(out, program, &symbols, &layout, i)?;
    }
    write_linear(out, program)?;
    if let Some((_, tables)) = &flash {
        writeln!(out, "\n\t.section .cm_flash,\"a\"\n\t.globl cm_flash_start\ncm_flash_start:")?;
        write_bytes(out, tables)?;
        writeln!(out, "\t.globl cm_flash_end\ncm_flash_end:")?;
    }
    write_system(out, program, &symbols)
}

fn write_func(out: &mut String, program: &Program, symbols: &[String], layout: &Layout, i: usize) -> std::fmt::Result {
    let func = &program.funcs[i];
    let c = &program.machine.asm.comment;
    writeln!(out, "{}:", symbols[i])?;
    for (b, block) in func.blocks.iter().enumerate() {
        write!(out, ".L{i}_{b}:")?;
        match block.loop_depth {
            0 => writeln!(out)?,
            depth => writeln!(out, "\t{c} loop depth {depth}")?,
        }
        for (n, bundle) in block.bundles.iter().enumerate() {
            if bundle.insts.is_empty() {
                let nop = program.machine.instrs.get(usize::from(program.machine.abi.ops.nop.0));
                writeln!(out, "\t{}", nop.map_or("nop", |n| &n.asm))?;
            }
            for (k, inst) in bundle.insts.iter().enumerate() {
                let parallel = if k > 0 { "||" } else { "" };
                let instr = program.machine.instrs.get(usize::from(inst.instr.0));
                let far = instr.is_some_and(|instr| is_far(instr, layout.sizes[i][b][n]));
                writeln!(out, "{parallel}\t{}", instruction(program, symbols, (i, b), inst, far))?;
            }
        }
        if !block.literals.is_empty() {
            writeln!(out, "\t.balign {LITERAL_BYTES}")?;
        }
        for (k, value) in block.literals.iter().enumerate() {
            writeln!(out, ".L{i}_{b}_{k}:\n\t.4byte {value}")?;
        }
    }
    Ok(())
}

fn write_linear(out: &mut String, program: &Program) -> std::fmt::Result {
    writeln!(out, "\n\t.section .cm_linear,\"aw\"\n\t.globl cm_linear_start\ncm_linear_start:")?;
    let size = u64::from(program.min_pages) * PAGE_BYTES;
    // Segments may overlap (the later wins) and come in any order.
    let mut image = Vec::new();
    let in_ram = |s: &&Segment| program.flash.as_ref().is_none_or(|flash| !flash.contains(&s.addr));
    for s in program.data.iter().filter(in_ram) {
        let (from, to) = (s.addr as usize, s.addr as usize + s.bytes.len());
        if image.len() < to {
            image.resize(to, 0);
        }
        image[from..to].copy_from_slice(&s.bytes);
    }
    image.resize(image.len().next_multiple_of(4), 0);
    write_bytes(out, &machine_order(program, &image))?;
    if size > image.len() as u64 {
        writeln!(out, "\t.skip {}", size - image.len() as u64)?;
    }
    writeln!(out, "\t.globl cm_linear_end\ncm_linear_end:")
}

fn write_system(out: &mut String, program: &Program, symbols: &[String]) -> std::fmt::Result {
    writeln!(out, "\n\t.section .cm_system,\"aw\"\n\t.globl cm_system_start\ncm_system_start:")?;
    writeln!(out, "\t.4byte {}, {}", program.min_pages, program.max_pages)?;
    let pointer = |func: usize| {
        let symbol = symbols.get(func).map_or("0", |s| s);
        let narrow = program.machine.asm.code_pointer.as_ref();
        narrow.map_or_else(|| format!(".4byte {symbol}"), |p| format!(".2byte {}, 0", p.replace("{f}", symbol)))
    };
    let mut refs: Vec<(usize, String)> =
        program.system_func_refs.iter().map(|r| (r.offset as usize, pointer(r.func.as_u32() as usize))).collect();
    refs.extend(program.system_own_address.map(|at| (at as usize, ".4byte cm_system_start".to_owned())));
    refs.sort_unstable();
    let mut system = program.system.clone();
    system.resize(system.len().max(8).next_multiple_of(8), 0);
    let system = machine_order(program, &system);
    let mut at = 8;
    for (offset, word) in refs {
        // References are words: in either order they are four bytes in place.
        if offset < at || offset + 4 > system.len() {
            continue;
        }
        write_bytes(out, &system[at..offset])?;
        writeln!(out, "\t{word}")?;
        at = offset + 4;
    }
    write_bytes(out, &system[at..])?;
    writeln!(out, "\t.globl cm_system_end\ncm_system_end:")
}

/// Whole words of little-endian bytes as the machine has them in memory.
fn machine_order(program: &Program, bytes: &[u8]) -> Vec<u8> {
    let turn = if program.machine.endian == Endian::Big { 3 } else { 0 };
    (0..bytes.len()).map(|i| bytes.get(i ^ turn).copied().unwrap_or(0)).collect()
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

    /// A program of one exported function `f.1` (`add`, a load, a branch, a
    /// call) and one that is not exported, for a real machine.
    fn sample(name: &str) -> Program {
        use crate::{Block, Bundle};
        use ciphermill_ir::Space;
        use smallvec::smallvec;
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let machine = ciphermill_machine::load_from_dir(&root, name, &[], &[], &[]).unwrap();
        let find = |n: &str| machine.instrs.iter().position(|i| i.name == n).unwrap();
        let reg = |n: &str| Operand::Reg(Reg(machine.regs.iter().position(|r| r.name == n).unwrap() as u16));
        let inst = |n: &str, ops: &[Operand]| Bundle {
            insts: smallvec![Inst {
                instr: ciphermill_machine::InstrId(find(n) as u16),
                operands: ops.into(),
                space: Space::Linear,
                trap: None,
                role: Default::default(),
                predicate: None,
                loc: 0,
            }],
        };
        let bundles = if name == "leon2" {
            vec![
                inst("ld", &[reg("o0"), Operand::Imm(-8), reg("g2")]),
                inst("bne_a", &[Operand::Block(1)]),
                inst("sethi", &[Operand::Imm(0xf000_0000), reg("o1")]),
                inst("call", &[Operand::Func(1)]),
            ]
        } else {
            vec![
                inst("lw", &[reg("t0"), Operand::Imm(-8), reg("a0")]),
                inst("bne", &[reg("a0"), reg("zero"), Operand::Block(1)]),
                inst("call", &[Operand::Func(1)]),
            ]
        };
        let func =
            |name: &str, blocks| crate::Func { name: name.into(), blocks, frame_bytes: 0, params: 0, results: 0 };
        let looped = Block { loop_depth: 2, ..Block::default() };
        Program {
            machine: std::sync::Arc::new(machine),
            funcs: vec![
                func("f.1", vec![Block { bundles, ..Block::default() }, looped]),
                func("", vec![Block::default()]),
            ],
            exports: vec![("f.1".into(), 0), ("also".into(), 0)],
            start: Some(1),
            min_pages: 1,
            max_pages: 2,
            data: vec![Segment { addr: 16, bytes: vec![1, 2, 3, 4, 5] }],
            readonly: vec![],
            flash: None,
            system: vec![0; 16],
            system_func_refs: vec![ciphermill_ir::FuncRef { offset: 12, func: ciphermill_ir::FuncId::from_u32(1) }],
            system_own_address: None,
            arg_overflow: 16,
            global_regs: vec![],
            loops: vec![],
            plain_loops: vec![],
            searches_cut: 0,
            problems: vec![],
            kept_schedules: vec![],
        }
    }

    #[test]
    fn leon2_text() {
        let text = print(&sample("leon2"));
        let code = "also:\nf_1:\n.L0_0:\n\tld [%o0 + -8], %g2\n\tbne,a .L0_1\n\tsethi %hi(4026531840), %o1\n\tcall _\n.L0_1:\t! loop depth 2\n";
        assert!(text.contains(code), "{text}");
        assert!(text.contains("cm_start:\n_:\n.L1_0:\n"), "{text}");
        // Words of a big-endian machine, each with the value the module expects.
        assert!(text.contains("\t.skip 16\n\t.byte 4,3,2,1,0,0,0,5\n\t.skip 65512\n"), "{text}");
        assert!(text.contains("\t.4byte 1, 2\n\t.byte 0,0,0,0\n\t.4byte _\n"), "{text}");
    }

    #[test]
    fn rv32_text() {
        let text = print(&sample("rv32"));
        let code = "f_1:\n.L0_0:\n\tlw t0, -8(a0)\n\tbne a0, zero, .L0_1\n\tjal ra, _\n.L0_1:\t# loop depth 2\n";
        assert!(text.contains(code), "{text}");
        assert!(text.contains("\t.skip 16\n\t.byte 1,2,3,4,5,0,0,0\n"), "{text}");
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
