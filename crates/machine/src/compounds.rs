//! Compounds: reading their parts, and checking how values flow through them.
//!
//! The parts are a tiny straight-line program. Its rules keep it valid in SSA
//! form and under any allocation in which a result may share a register with
//! a source: each scratch register is written once, before it is read; each
//! result is written once; and after a result is written no source is read.
//! What the parts compute is then compared with what the compound says it
//! means ([`crate::prove`]) whenever the machine is loaded: a wrong compound
//! in somebody's machine file is an error with a counterexample.

use crate::builder::{Builder, nodes};
use crate::error::{FileError, did_you_mean, list, near_instruction};
use crate::eval::eval;
use crate::imm::{Imms, sample_imm};
use crate::model::*;
use crate::operands;
use crate::parse;
use crate::prove::counterexample;
use crate::random::Random;
use crate::sem::Expr;
use crate::tree::{Node, Table as Tree};
use std::collections::BTreeMap;

pub use crate::imm::part_imm;

/// Trials of each compound whenever a machine is loaded.
const TRIALS: usize = 16;
/// Trials of each immediate argument.
const IMM_TRIALS: usize = 64;

pub(crate) fn add(b: &Builder, machine: &mut Machine) -> Result<(), FileError> {
    for entry in b.top.table("compounds").into_iter().flat_map(Tree::iter) {
        let Some(t) = entry.node.as_table() else { continue };
        if nodes(t, "parts").iter().any(|n| b.merged.removed.contains_key(head(n.as_str().unwrap_or_default()).0)) {
            continue;
        }
        let compound = read(b, &entry.key, &entry.node, t)?;
        if let Some(message) = counterexample(machine, &compound, TRIALS) {
            let place = t.get("parts").map_or(&entry.place, |n| &n.place);
            return Err(place.error(format!("`{}` does not do what it says: {message}", entry.key)));
        }
        machine.compounds.push(compound);
    }
    Ok(())
}

/// The instruction's name and the offset of its arguments.
fn head(part: &str) -> (&str, usize) {
    let start = part.len() - part.trim_start().len();
    let rest = &part[start..];
    let end = rest.find(|c: char| c.is_whitespace()).unwrap_or(rest.len());
    (&rest[..end], start + end)
}

fn read(b: &Builder, name: &str, whole: &Node, t: &Tree) -> Result<Compound, FileError> {
    let empty = Tree::default();
    let format = t.get("format").map(|n| b.named("formats", n)).transpose()?.unwrap_or(&empty);
    let mut operands = operands::read(b, format.get("operands"), t.get("operands"))?;
    let node = t.get("semantics").unwrap_or(whole);
    let (semantics, temps) = b.statements(t, whole, &operands)?;
    operands::mark_uses(&mut operands, &semantics);
    operands::check_used(&operands, &semantics).map_err(|m| node.place.error(format!("`{name}`: {m}")))?;
    let mut compound = Compound { name: name.to_owned(), operands, semantics, temps, parts: Vec::new(), scratch: 0 };
    let parts = nodes(t, "parts");
    for (i, node) in parts.iter().enumerate() {
        let part = part(b, &mut compound, node, i + 1 == parts.len())?;
        compound.parts.push(part);
    }
    if parts.is_empty() {
        return Err(whole.place.error(format!("`{name}` has no parts")));
    }
    flow(b, &compound, parts)?;
    Ok(compound)
}

fn part(b: &Builder, compound: &mut Compound, node: &Node, last: bool) -> Result<CompoundPart, FileError> {
    let text = node.as_str().unwrap_or_default();
    let (name, rest) = head(text);
    let Some(&id) = b.instr_names.get(name) else {
        let error = node.error_within(rest - name.len()..rest, format!("unknown instruction `{name}`"));
        return Err(error.mend_opt(near_instruction(name, b.instr_names.keys().map(String::as_str))));
    };
    let instr = &b.instrs[usize::from(id.0)];
    let plain = matches!(instr.kind, InstrKind::Compute | InstrKind::Load | InstrKind::Store);
    let branch = matches!(instr.kind, InstrKind::Branch | InstrKind::Jump);
    if !(plain || branch && last) {
        let error = node.place.error(format!("`{name}` cannot stand here in a compound"));
        return Err(error.mend("parts compute, load or store; the last may be a branch"));
    }
    let pieces = split(text, rest);
    if pieces.len() != instr.operands.len() {
        let wanted = list(instr.operands.iter().map(|o| o.name.as_str()));
        return Err(node.place.error(format!(
            "`{name}` takes {} arguments ({wanted}), here are {}",
            instr.operands.len(),
            pieces.len()
        )));
    }
    let mut args = Vec::new();
    for (operand, (at, piece)) in instr.operands.iter().zip(pieces) {
        let arg = arg(b, compound, operand, node, at, piece)?;
        if let PartArg::Scratch(n) = arg {
            compound.scratch = compound.scratch.max(n + 1);
        }
        args.push(arg);
    }
    Ok(CompoundPart { instr: id, args })
}

/// Arguments with their offsets: cut at commas outside brackets.
fn split(text: &str, from: usize) -> Vec<(usize, &str)> {
    let (mut out, mut depth, mut start) = (Vec::new(), 0i32, from);
    for (i, c) in text.char_indices().skip_while(|(i, _)| *i < from) {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ',' if depth == 0 => {
                out.push((start, &text[start..i]));
                start = i + 1;
            }
            _ => {}
        }
    }
    if !out.is_empty() || !text[start..].trim().is_empty() {
        out.push((start, &text[start..]));
    }
    out.into_iter().map(|(at, piece)| (at + piece.len() - piece.trim_start().len(), piece.trim())).collect()
}

fn arg(
    b: &Builder,
    compound: &Compound,
    to: &Operand,
    node: &Node,
    at: usize,
    piece: &str,
) -> Result<PartArg, FileError> {
    let wrong = |message: String| node.error_within(at..at + piece.len(), message);
    let mine = compound.operands.iter().position(|o| o.name == piece);
    match &to.kind {
        OperandKind::Label => match mine {
            Some(i) if matches!(compound.operands[i].kind, OperandKind::Label) => Ok(PartArg::Operand(i)),
            _ => Err(wrong(format!("`{}` needs a label operand, here is `{piece}`", to.name))),
        },
        OperandKind::Reg { file, .. } => {
            if let Some(n) = piece.strip_prefix('$') {
                return match n.parse::<usize>() {
                    Ok(n) if n < 8 => Ok(PartArg::Scratch(n)),
                    _ => Err(wrong(format!("`{piece}` is no scratch register")).mend("there are $0 to $7")),
                };
            }
            if let Some(name) = piece.strip_prefix('%') {
                return match b.reg_names.get(name) {
                    Some(&r) if b.regs[usize::from(r.0)].file == *file => Ok(PartArg::Reg(r)),
                    Some(_) => Err(wrong(format!("`{name}` is not of the register file `{}`", b.files[*file].name))),
                    None => Err(wrong(format!("unknown register `{name}`"))
                        .mend_opt(did_you_mean(name, b.reg_names.keys().map(String::as_str)))),
                };
            }
            match mine.map(|i| (i, &compound.operands[i].kind)) {
                Some((i, OperandKind::Reg { file: f, .. })) if f == file => Ok(PartArg::Operand(i)),
                _ => Err(wrong(format!("`{}` needs a register, here is `{piece}`", to.name))
                    .mend("write an operand of the compound, `$0` for a scratch register, or `%name`")),
            }
        }
        OperandKind::Imm { .. } => {
            let parsed = parse::expression(piece, &b.scope(&compound.operands));
            let expr = parsed
                .map_err(|e| node.error_within(at + e.span.start..at + e.span.end, e.message).mend_opt(e.mend))?;
            if !expr.is_constant_of_immediates() {
                return Err(wrong(format!("`{}` is a constant: it can only depend on immediates", to.name)));
            }
            imm_fits(compound, &expr, &to.kind, b.word)
                .map_err(|m| wrong(format!("`{}` cannot hold `{piece}`: {m}", to.name)))?;
            Ok(match expr {
                Expr::Imm(i) => PartArg::Operand(i),
                expr => PartArg::Imm(expr),
            })
        }
    }
}

fn imm_fits(compound: &Compound, expr: &Expr, kind: &OperandKind, word: u8) -> Result<(), String> {
    let mut random = Random::new(0x696d6d);
    for _ in 0..IMM_TRIALS {
        let imms: Vec<i64> = compound.operands.iter().map(|o| sample_imm(&o.kind, &mut random)).collect();
        let given = |i: usize| imms.get(i).copied();
        if part_imm(expr, given, kind, word).is_none() {
            let names = compound.operands.iter().zip(&imms).filter(|(o, _)| matches!(o.kind, OperandKind::Imm { .. }));
            let bound: Vec<String> = names.map(|(o, v)| format!("{} = {v}", o.name)).collect();
            let value = eval(expr, word, &Imms(given)).map_or("nothing".to_owned(), |v| format!("{v:#x}"));
            let when = if bound.is_empty() { String::new() } else { format!(" for {}", bound.join(", ")) };
            return Err(format!("it gives {value}{when}, out of its range"));
        }
    }
    Ok(())
}

/// The rules on who writes and reads what when.
fn flow(b: &Builder, compound: &Compound, parts: &[Node]) -> Result<(), FileError> {
    let mut scratch: BTreeMap<usize, FileId> = BTreeMap::new();
    let mut written = vec![false; compound.operands.len()];
    let overwrites = |i: usize| matches!(compound.operands[i].kind, OperandKind::Reg { def: true, used: true, .. });
    for (part, node) in compound.parts.iter().zip(parts) {
        let instr = &b.instrs[usize::from(part.instr.0)];
        let regs = || part.args.iter().zip(&instr.operands);
        for (arg, operand) in regs() {
            let OperandKind::Reg { used: true, file, .. } = operand.kind else { continue };
            match arg {
                PartArg::Scratch(n) if scratch.get(n) != Some(&file) => {
                    return Err(node.place.error(format!("`${n}` is read before it is written")));
                }
                PartArg::Operand(i)
                    if matches!(operand.kind, OperandKind::Reg { def: true, .. }) && written[*i] && !overwrites(*i) => {
                }
                PartArg::Operand(_) if written.contains(&true) => {
                    let error =
                        node.place.error("a source is read after a result was written: they may share a register");
                    return Err(
                        error.mend("pass the value through a scratch register (`$0`) and write the result last")
                    );
                }
                _ => {}
            }
        }
        for (arg, operand) in regs() {
            let OperandKind::Reg { def: true, used, file } = operand.kind else { continue };
            match arg {
                // A result that the compound overwrites a source with.
                PartArg::Operand(i) if used && overwrites(*i) && !written[*i] => written[*i] = true,
                // A result made in two steps: the second changes the first's register.
                PartArg::Operand(i) if used && written[*i] && !overwrites(*i) => {}
                PartArg::Scratch(_) | PartArg::Operand(_) if used => {
                    return Err(node
                        .place
                        .error(format!("`{}` changes a register that no part before it has written", instr.name))
                        .mend("let the part before write the result itself, not a scratch register"));
                }
                PartArg::Scratch(n) if scratch.insert(*n, file).is_some() => {
                    return Err(node
                        .place
                        .error(format!("`${n}` is written twice"))
                        .mend("use another scratch register"));
                }
                PartArg::Operand(i) if !matches!(compound.operands[*i].kind, OperandKind::Reg { def: true, .. }) => {
                    return Err(node.place.error(format!(
                        "`{}` is a source of the compound: its parts cannot write it",
                        compound.operands[*i].name
                    )));
                }
                PartArg::Operand(i) if std::mem::replace(&mut written[*i], true) => {
                    return Err(node.place.error(format!("`{}` is written twice", compound.operands[*i].name)));
                }
                _ => {}
            }
        }
    }
    Ok(())
}
