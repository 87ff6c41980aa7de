//! Programs from text: instructions by their names in the machine, a line each.
//!
//! For what is not compiled: tests, and loops that measure one thing. Operands
//! stand in the machine's order: register names, numbers, block labels,
//! `@function`. Instructions of one bundle are parted by `||`. `name:` starts a block,
//! `func name params results` a function; `#` begins a comment. A final
//! `!stack` or `!system` names the memory; linear is the default. `(register)`
//! before an instruction is its predicate. What a vendor's
//! assembler would accept does not matter here ([`crate::asm`] writes that).

use crate::{Block, Bundle, Func, Inst, Operand, Program};
use ciphermill_ir::{Space, TrapCode};
use ciphermill_machine::{InstrId, InstrKind, Machine, Reg};
use std::sync::Arc;

/// A program without functions and with one page of memory.
pub fn empty(machine: Arc<Machine>) -> Program {
    Program {
        machine,
        funcs: vec![],
        exports: vec![],
        start: None,
        min_pages: 1,
        max_pages: 2,
        data: vec![],
        readonly: vec![],
        flash: None,
        system: vec![0; 64],
        system_func_refs: vec![],
        system_own_address: None,
        arg_overflow: 32,
        global_regs: vec![],
        loops: vec![],
        plain_loops: vec![],
        searches_cut: 0,
        problems: vec![],
        kept_schedules: vec![],
    }
}

/// Assemble a program; all its functions are exported.
///
/// # Errors
/// For a line that says nothing the machine knows; the message quotes it.
pub fn assemble(machine: Arc<Machine>, text: &str) -> Result<Program, String> {
    let mut program = empty(machine);
    let lines: Vec<&str> =
        text.lines().map(|l| l.split('#').next().unwrap_or("").trim()).filter(|l| !l.is_empty()).collect();
    let heads: Vec<Vec<&str>> =
        lines.iter().filter_map(|l| l.strip_prefix("func ")).map(|l| l.split_whitespace().collect()).collect();
    let names: Vec<&str> = heads.iter().filter_map(|h| h.first().copied()).collect();
    let mut i = 0;
    for head in &heads {
        if !lines[i].starts_with("func ") {
            return Err(format!("`{}` stands before the first function", lines[i]));
        }
        let &[name, params, results] = &head[..] else {
            return Err(format!("`{}`: a function is `func name params results`", lines[i]));
        };
        let number = |s: &str| s.parse().map_err(|_| format!("`{}`: `{s}` is no number", lines[i]));
        let (params, results) = (number(params)?, number(results)?);
        let end = (i + 1..lines.len()).find(|&j| lines[j].starts_with("func ")).unwrap_or(lines.len());
        let body = &lines[i + 1..end];
        let labels: Vec<&str> = std::iter::once("").chain(body.iter().filter_map(|l| l.strip_suffix(':'))).collect();
        let mut blocks = vec![Block::default()];
        for line in body {
            match (line.ends_with(':'), blocks.last_mut()) {
                (false, Some(block)) => {
                    let insts = line.split("||").map(|s| inst(&program.machine, s.trim(), &labels, &names));
                    block.bundles.push(Bundle { insts: insts.collect::<Result<_, _>>()? });
                }
                _ => blocks.push(Block::default()),
            }
        }
        program.exports.push((name.into(), program.funcs.len() as u32));
        program.funcs.push(Func { name: name.into(), blocks, frame_bytes: 0, params, results });
        i = end;
    }
    Ok(program)
}

fn inst(machine: &Machine, text: &str, labels: &[&str], names: &[&str]) -> Result<Inst, String> {
    let (text, space) = match text.rsplit_once('!') {
        Some((t, "stack")) => (t.trim(), Space::Stack),
        Some((t, "system")) => (t.trim(), Space::System),
        _ => (text, Space::Linear),
    };
    let (predicate, text) = match text.strip_prefix('(').and_then(|t| t.split_once(')')) {
        Some((name, rest)) => {
            let known = machine.regs.iter().position(|r| r.name == name);
            (Some(Reg(known.ok_or_else(|| format!("`{text}`: no register `{name}`"))? as u16)), rest.trim())
        }
        None => (None, text),
    };
    let (name, rest) = text.split_once(' ').unwrap_or((text, ""));
    let id =
        machine.instr_named(name).ok_or_else(|| format!("`{text}`: {} has no instruction `{name}`", machine.name))?;
    let operand = |s: &str| {
        let s = s.trim();
        if let Some(f) = s.strip_prefix('@') {
            let known = names.iter().position(|n| *n == f);
            return known.map(|f| Operand::Func(f as u32)).ok_or_else(|| format!("`{text}`: no function `{f}`"));
        }
        if let Some(r) = machine.regs.iter().position(|r| r.name == s) {
            return Ok(Operand::Reg(Reg(r as u16)));
        }
        if let Some(b) = labels.iter().position(|l| *l == s && !l.is_empty()) {
            return Ok(Operand::Block(b as u32));
        }
        s.parse().map(Operand::Imm).map_err(|_| format!("`{text}`: `{s}` is no register, label or number"))
    };
    let operands = rest.split(',').filter(|s| !s.trim().is_empty()).map(operand).collect::<Result<_, _>>()?;
    let instr = machine.instr(id);
    let inst = Inst {
        instr: InstrId(id.0),
        operands,
        space,
        trap: (instr.kind == InstrKind::Trap).then_some(TrapCode::Unreachable),
        role: Default::default(),
        predicate,
        loc: 7,
    };
    match inst.operands.len() == instr.operands.len() {
        true => Ok(inst),
        false => Err(format!("`{text}`: `{name}` has {} operands", instr.operands.len())),
    }
}
