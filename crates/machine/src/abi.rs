//! The calling convention, and the instructions frame code is written with.
//!
//! Frame code is not selected: it is written down, out of the instructions
//! named here. So each must mean what the section says it means.

use crate::builder::{Builder, int, nodes, text};
use crate::error::{FileError, did_you_mean, list, near_instruction};
use crate::model::*;
use crate::operands::expand;
use crate::pushes::{self, Run};
use crate::sem::{Dest, Expr, Stmt};
use crate::tree::{Node, Table as Tree};
use ciphermill_ir::BinOp;
use std::collections::BTreeSet;

pub(crate) fn abi(b: &Builder) -> Result<Abi, FileError> {
    let empty = Tree::default();
    let t = b.top.table("abi").unwrap_or(&empty);
    let whole = b.top.get("abi").unwrap_or(&b.merged.tree);
    let regs = |key: &str| registers(b, nodes(t, key));
    let (args, results) = (regs("args")?, regs("results")?);
    let return_address = t.get("return_address").map(|_| register(b, t, "return_address", whole)).transpose()?;
    let narrow = b.top.get("chains").and(regs("allocatable")?.first().copied());
    let value_bits = narrow.map_or(b.word, |r| b.files[b.regs[usize::from(r.0)].file].bits);
    let stack_pointer = register(b, t, "stack_pointer", whole)?;
    let abi = Abi {
        callee_args: if t.get("callee_args").is_some() { regs("callee_args")? } else { args.clone() },
        callee_results: if t.get("callee_results").is_some() { regs("callee_results")? } else { results.clone() },
        args,
        results,
        allocatable: regs("allocatable")?,
        callee_saved: regs("callee_saved")?,
        call_preserved: regs("call_preserved")?,
        stack_pointer,
        return_address,
        return_bytes: int(t, "return_bytes").unwrap_or(u32::from(b.word / 8)),
        code_unit: int(t, "code_unit").unwrap_or(1),
        scratch: regs("scratch")?,
        globals: regs("globals")?,
        spill: regs("spill")?,
        stack_align: int(t, "stack_align").unwrap_or(4),
        frame_reserve: int(t, "frame_reserve").unwrap_or(0),
        return_stack: t.get("return_stack").map(|_| register(b, t, "return_stack", whole)).transpose()?,
        ops: ops(b, t.get("ops").unwrap_or(whole), (stack_pointer, return_address), value_bits)?,
        link: t.get("link").map(|n| link(b, n)).transpose()?,
        windows: t.get("windows").map(|n| windows(b, n)).transpose()?,
        rotation: t.get("rotation").map(|n| rotation(b, n)).transpose()?,
    };
    let mut abi = abi;
    if let Some(most) = int::<usize>(t, "registers") {
        abi.allocatable.truncate(most);
        // Where there are clusters, what an instruction of one cannot reach comes to it by a scratch register.
        let clustered = b.files.iter().any(|f| f.cluster != 0);
        let mut left = most - abi.allocatable.len();
        let (mut first, mut clusters) = (true, BTreeSet::new());
        abi.scratch.retain(|r| {
            let cluster = b.files[b.regs[usize::from(r.0)].file].cluster;
            if std::mem::take(&mut first) || (clustered && clusters.insert(cluster)) {
                return true;
            }
            let more = left > 0;
            left -= usize::from(more);
            more
        });
    }
    let place = |key: &str| t.get(key).map_or(&whole.place, |n| &n.place);
    if !abi.stack_align.is_power_of_two() {
        return Err(place("stack_align").error("must be a power of two"));
    }
    if abi.callee_args.len() != abi.args.len() || abi.callee_results.len() != abi.results.len() {
        return Err(place("callee_args")
            .error("caller and callee must agree on how many registers carry arguments and results"));
    }
    roles(b, t, whole, &abi, value_bits)?;
    let mov = &b.instrs[usize::from(abi.ops.mov.0)];
    if let Some(&r) = abi.spill.iter().find(|r| mov.only.iter().any(|o| !o.1.contains(r))) {
        let name = b.regs[usize::from(r.0)].name.as_str();
        let error = place("spill").error(format!("`{name}` is no register that `{}` takes", mov.name));
        return Err(error.mend("values are moved there and back by the instruction that `mov` names in `[abi.ops]`"));
    }
    Ok(abi)
}

/// Fewest registers that values can be in, in each cluster: what an instruction reads is in registers at once.
const FEWEST: usize = 2;

/// Registers from the first one on among which those of the calling convention are: the allocator's sets have so many.
const SPAN: u16 = 64;

/// Are there registers enough, and where the allocator finds them?
fn enough(b: &Builder, t: &Tree, whole: &Node, abi: &Abi) -> Result<(), FileError> {
    let place = || b.last_stated([t.get("allocatable"), t.get("registers")]).unwrap_or(&whole.place);
    let file = |r: Reg| &b.files[b.regs[usize::from(r.0)].file];
    let clusters: BTreeSet<u8> = match &b.clusters {
        Some(c) => c.files.iter().map(|&f| b.files[f].cluster).collect(),
        None => abi.allocatable.iter().map(|r| file(*r).cluster).chain([0]).take(1).collect(),
    };
    for cluster in &clusters {
        let count = abi.allocatable.iter().filter(|r| file(**r).cluster == *cluster).count();
        if count < FEWEST {
            let there = if clusters.len() > 1 { format!(" of cluster {cluster}") } else { String::new() };
            let error =
                place().error(format!("{count} registers{there} for values, where programs need {FEWEST} at least"));
            return Err(error
                .mend("list more in `allocatable`, or allow more with `registers`, which takes them from its front"));
        }
    }
    // An operand that only certain registers fit has to find one of them.
    for (name, (_, regs)) in &b.classes {
        // Frame code has the stack pointer at hand.
        let chosen = || b.instrs.iter().any(|i| i.selectable && i.only.iter().any(|o| o.1 == *regs));
        if regs[..] == [abi.stack_pointer] && !chosen() {
            continue;
        }
        let same = |r: &Reg| abi.allocatable.iter().any(|a| file(*a).first == file(*r).first);
        for cluster in &clusters {
            let mine: Vec<&Reg> = regs.iter().filter(|r| file(**r).cluster == *cluster && same(r)).collect();
            if !mine.is_empty() && !mine.iter().any(|r| abi.allocatable.contains(r)) {
                let names = mine.iter().map(|r| b.regs[usize::from(r.0)].name.as_str());
                let error = place().error(format!(
                    "no register for values is of the class `{name}`, which some operands have to be of"
                ));
                return Err(error.mend(format!(
                    "one of {} must be in `allocatable`, and among the first where `registers` limits them",
                    list(names)
                )));
            }
        }
    }
    let first = abi.allocatable.iter().map(|r| file(*r).first.0).min().unwrap_or(0);
    let used = [&abi.allocatable, &abi.args, &abi.results, &abi.callee_args, &abi.callee_results];
    let id = |r: Reg| b.regs[usize::from(r.0)].file;
    for &reg in used.into_iter().flatten() {
        let of_values = match &b.clusters {
            Some(c) => c.files.contains(&id(reg)),
            None => abi.allocatable.first().is_some_and(|a| id(*a) == id(reg)),
        };
        if !of_values {
            let error = place()
                .error(format!("`{}` is not of the register file that values are in", b.regs[usize::from(reg.0)].name));
            return Err(error.mend("name registers of one file, or of those of [clusters]"));
        }
        if reg.0 < first || reg.0 - first >= SPAN {
            let name = &b.regs[usize::from(reg.0)].name;
            let error = place().error(format!(
                "`{name}` is not among the {SPAN} registers from the first of the file of `allocatable` on"
            ));
            return Err(
                error.mend("values, arguments and results have to be among so many, in the order of [registers]")
            );
        }
    }
    Ok(())
}

/// Where a register is named, by itself or in a list.
fn named_at<'t>(t: &'t Tree, key: &str, name: &str) -> Option<&'t Node> {
    let node = t.get(key)?;
    let all = expand(node.as_list().unwrap_or_default()).unwrap_or_default();
    Some(all.into_iter().find(|(n, _)| n == name).map_or(node, |(_, item)| item))
}

/// What registers of one role may not be besides, and that a word fits them.
fn roles(b: &Builder, t: &Tree, whole: &Node, abi: &Abi, value_bits: u8) -> Result<(), FileError> {
    let zeros = zeros(b);
    let one = std::slice::from_ref::<Reg>;
    let none: &[Reg] = &[];
    // A call writes the return address, and a function that calls nothing returns through it.
    let kept: [(&str, &str, &[Reg]); 6] = [
        ("spill", "reserved for spilled values", &abi.spill),
        ("scratch", "reserved for the frame", &abi.scratch),
        ("globals", "reserved for globals", &abi.globals),
        ("stack_pointer", "the stack pointer", one(&abi.stack_pointer)),
        ("return_address", "the return address", abi.return_address.as_ref().map_or(none, one)),
        ("", "zero", &zeros),
    ];
    // A function that uses the register all the same hands it back like any other that it saves.
    let handed_back = |r: Reg| abi.windows.is_none() && abi.callee_saved.contains(&r);
    let users: [(&str, &[Reg]); 9] = [
        ("spill", &abi.spill),
        ("allocatable", &abi.allocatable),
        ("args", &abi.args),
        ("results", &abi.results),
        ("callee_args", &abi.callee_args),
        ("callee_results", &abi.callee_results),
        ("globals", &abi.globals),
        ("scratch", &abi.scratch),
        ("stack_pointer", one(&abi.stack_pointer)),
    ];
    let forbids = |user: &str, key: &str| match user {
        "allocatable" | "globals" | "spill" => key != user,
        "scratch" | "stack_pointer" => key.is_empty() || key == "spill",
        _ => key != "scratch",
    };
    let name = |r: Reg| b.regs[usize::from(r.0)].name.as_str();
    let at = |key: &str, r: Reg| named_at(t, key, name(r));
    for (user, regs) in users {
        for (key, role, others) in kept.iter().filter(|k| forbids(user, k.0)) {
            let may = |r: Reg| (user, *key) == ("allocatable", "return_address") && handed_back(r);
            let Some(&reg) = regs.iter().find(|r| others.contains(r) && !may(**r)) else { continue };
            // Whichever was stated last is at fault; what a file leaves out is what others say.
            let place = b.last_stated([at(key, reg), at(user, reg)]).unwrap_or(&whole.place);
            let error = place.error(format!(
                "`{}` is {role}: it cannot be {}",
                name(reg),
                if user == "stack_pointer" { "the stack pointer".to_owned() } else { format!("in `{user}`") }
            ));
            return Err(error.mend(format!("take it out of `{user}`, or let another register be that")));
        }
    }
    for (key, reg) in users.into_iter().flat_map(|(key, regs)| regs.iter().map(move |r| (key, *r))) {
        let file = &b.files[b.regs[usize::from(reg.0)].file];
        let wanted = if key == "stack_pointer" { b.word } else { value_bits };
        if file.bits != wanted {
            let bits = b.top.table("registers").and_then(|r| r.table(&file.name)).and_then(|f| f.get("bits"));
            let place = b.last_stated([bits, at(key, reg)]).unwrap_or(&whole.place);
            let error = place.error(format!(
                "`{}` is in `{key}`, but has {} bits, and a word has {}",
                name(reg),
                file.bits,
                wanted
            ));
            return Err(error.mend(format!(
                "give `registers.{}` as many bits as a word, or name registers that have them",
                file.name
            )));
        }
    }
    enough(b, t, whole, abi)?;
    if !abi.frame_reserve.is_multiple_of(u32::from(value_bits / 8)) {
        let place = t.get("frame_reserve").map_or(&whole.place, |n| &n.place);
        return Err(place.error(format!("`frame_reserve` must be whole words, multiples of {}", value_bits / 8)));
    }
    Ok(())
}

fn zeros(b: &Builder) -> Vec<Reg> {
    (0..b.regs.len()).filter(|&i| b.regs[i].zero).map(|i| Reg(i as u16)).collect()
}

fn reg(b: &Builder, name: &str, node: &Node) -> Result<Reg, FileError> {
    b.reg_names.get(name).copied().ok_or_else(|| {
        let error = node.place.error(format!("unknown register `{name}`"));
        error.mend_opt(did_you_mean(name, b.reg_names.keys().map(String::as_str)))
    })
}

fn register(b: &Builder, t: &Tree, key: &str, whole: &Node) -> Result<Reg, FileError> {
    reg(b, text(t, key).unwrap_or_default(), t.get(key).unwrap_or(whole))
}

fn registers(b: &Builder, list: &[Node]) -> Result<Vec<Reg>, FileError> {
    let mut out = Vec::new();
    for (name, node) in expand(list)? {
        let reg = reg(b, &name, node)?;
        if out.contains(&reg) {
            return Err(node.place.error(format!("`{name}` is listed twice")));
        }
        out.push(reg);
    }
    Ok(out)
}

fn instr(b: &Builder, t: &Tree, key: &str, whole: &Node) -> Result<InstrId, FileError> {
    let node = t.get(key).unwrap_or(whole);
    let name = node.as_str().unwrap_or_default();
    b.instr_names.get(name).copied().ok_or_else(|| {
        if let Some(gone) = b.merged.removed.get(name) {
            return crate::clusters::still_needed(
                node,
                gone,
                &format!("the frame code needs `{name}`, which is left out"),
            );
        }
        let error = node.place.error(format!("unknown instruction `{name}`"));
        error.mend_opt(near_instruction(name, b.instr_names.keys().map(String::as_str)))
    })
}

fn ops(
    b: &Builder,
    node: &Node,
    (stack_pointer, link): (Reg, Option<Reg>),
    value_bits: u8,
) -> Result<FrameOps, FileError> {
    let empty = Tree::default();
    let t = node.as_table().unwrap_or(&empty);
    let word = b.word;
    let get = |key: &str, meaning: &str, fits: &dyn Fn(&Instr) -> bool| {
        let id = instr(b, t, key, node)?;
        let instr = &b.instrs[usize::from(id.0)];
        if fits(instr) {
            return Ok(id);
        }
        let place = t.get(key).map_or(&node.place, |n| &n.place);
        Err(place.error(format!("`{}` cannot be `{key}`: that must be {meaning}", instr.name)))
    };
    let kind = |wanted: InstrKind| move |i: &Instr| i.kind == wanted;
    let far_jump = |i: &Instr| {
        let writes =
            i.semantics.iter().filter_map(|s| if let Stmt::Assign { dest, .. } = s { Some(dest) } else { None });
        i.kind == InstrKind::Jump
            && i.delay_slots == 0
            && writes.into_iter().all(|d| matches!(d, Dest::Fixed(r) if Some(*r) == link))
    };
    let loads = |i: &Instr| matches!(value(i), Some(Expr::Load { bytes, addr, .. }) if bytes * 8 == value_bits && displaced(i, addr));
    let stores = |i: &Instr| {
        matches!(i.semantics.as_slice(), [Stmt::Store { bytes, addr, value: Expr::Operand(_) }]
            if bytes * 8 == value_bits && displaced(i, addr))
    };
    // A machine of narrow words adds to its stack pointer, and calls, in one way only.
    let narrow = value_bits < word;
    let or = |key: &str, other: &str| if narrow && t.get(key).is_none() { other.to_owned() } else { key.to_owned() };
    let add_imm = |i: &Instr| matches!(beside_flags(i), Some(Expr::Bin { op: BinOp::Add, bits, a, b }) if *bits == word && base_imm(a, b));
    let far = |key: &str, fits: &dyn Fn(&Instr) -> bool| {
        t.get(key).map(|_| get(key, "what it is without `_far`", fits)).transpose()
    };
    let run = |push| Run { stack_pointer, word_bytes: value_bits / 8, push };
    Ok(FrameOps {
        mov: get("mov", "`rd = rs`", &|i| matches!(value(i), Some(Expr::Operand(_))))?,
        add_imm: get("add_imm", "`rd = rs + imm`", &add_imm)?,
        add: get(&or("add", "add_imm"), "`rd = rs1 + rs2`", &|i| {
            (narrow && add_imm(i))
                || matches!(beside_flags(i), Some(Expr::Bin { op: BinOp::Add, a, b, .. })
                if matches!((&**a, &**b), (Expr::Operand(_), Expr::Operand(_))))
        })?,
        load: get("load", "a word load `rd = mem[rs + imm]` whose imm can be 0", &loads)?,
        store: get("store", "a word store `mem[rs + imm] = rd` whose imm can be 0", &stores)?,
        load_far: far("load_far", &loads)?,
        store_far: far("store_far", &stores)?,
        push: pushes::list(b, t, "push", &run(true))?,
        pop: pushes::list(b, t, "pop", &run(false))?,
        jump: get("jump", "a jump to a label", &kind(InstrKind::Jump))?,
        far_jump: t
            .get("far_jump")
            .map(|_| get("far_jump", "a jump to a label, which may write the return address's register", &far_jump))
            .transpose()?,
        call: get("call", "a call of a label", &kind(InstrKind::Call))?,
        call_indirect: get(&or("call_indirect", "call"), "a call of a register", &|i| {
            i.kind == InstrKind::CallIndirect || narrow && i.kind == InstrKind::Call
        })?,
        ret: get("ret", "a jump to a register", &kind(InstrKind::JumpIndirect))?,
        trap: get("trap", "`trap`", &kind(InstrKind::Trap))?,
        nop: get("nop", "an instruction that does nothing", &|i| i.semantics.is_empty())?,
    })
}

/// The value of an instruction that does nothing but assign its one result.
fn value(i: &Instr) -> Option<&Expr> {
    match i.semantics.as_slice() {
        [Stmt::Assign { dest: Dest::Operand(_), value }] => Some(value),
        _ => None,
    }
}

/// The same where registers that are no operands are written too: the stack
/// pointer is moved where no flags are awaited.
fn beside_flags(i: &Instr) -> Option<&Expr> {
    let mut values = i.semantics.iter().filter_map(|s| match s {
        Stmt::Assign { dest: Dest::Fixed(_), .. } => None,
        Stmt::Assign { dest: Dest::Operand(_), value } => Some(Some(value)),
        _ => Some(None),
    });
    let found = values.next()?;
    found.filter(|_| values.next().is_none())
}

fn base_imm(a: &Expr, b: &Expr) -> bool {
    matches!((a, b), (Expr::Operand(_), Expr::Imm(_)) | (Expr::Imm(_), Expr::Operand(_)))
}

/// What lies out of reach is accessed at a displacement of 0 from a scratch register.
fn displaced(i: &Instr, addr: &Expr) -> bool {
    let Expr::Bin { op: BinOp::Add, a, b, .. } = addr else { return false };
    let zero = |e: &Expr| matches!(e, Expr::Imm(o) if i.operands[*o].kind.imm_for(0, 64) == Some(0));
    base_imm(a, b) && (zero(a) || zero(b))
}

/// What the two instructions compute together is the simulator's to check: a
/// wrong one returns to where no instruction starts.
fn link(b: &Builder, node: &Node) -> Result<Link, FileError> {
    let empty = Tree::default();
    let t = node.as_table().unwrap_or(&empty);
    let loads_label = |key: &str| {
        let id = instr(b, t, key, node)?;
        let instr = &b.instrs[usize::from(id.0)];
        if instr.kind == InstrKind::Compute && instr.operands.iter().any(|o| matches!(o.kind, OperandKind::Label)) {
            return Ok(id);
        }
        let place = t.get(key).map_or(&node.place, |n| &n.place);
        Err(place.error(format!("`{}` cannot be `{key}`: that must compute with a label", instr.name)))
    };
    let jump_indirect = instr(b, t, "jump_indirect", node)?;
    if b.instrs[usize::from(jump_indirect.0)].kind != InstrKind::JumpIndirect {
        let place = t.get("jump_indirect").map_or(&node.place, |n| &n.place);
        return Err(place.error("`jump_indirect` must be a jump to a register"));
    }
    Ok(Link { low: loads_label("low")?, high: loads_label("high")?, jump_indirect })
}

/// Instructions of pipelined loops with rotating registers. That they count
/// stages rightly is the simulator's to check: its output is compared.
fn rotation(b: &Builder, node: &Node) -> Result<Rotation, FileError> {
    let empty = Tree::default();
    let t = node.as_table().unwrap_or(&empty);
    let wrong = |key: &str, meaning: &str| {
        let place = t.get(key).map_or(&node.place, |n| &n.place);
        place.error(format!("`rotation.{key}` must be {meaning}"))
    };
    let is = |i: InstrId, registers: usize, immediates: usize, labels: usize| {
        let of = |f: &dyn Fn(&OperandKind) -> bool| {
            b.instrs[usize::from(i.0)].operands.iter().filter(|o| f(&o.kind)).count()
        };
        of(&|k| matches!(k, OperandKind::Reg { .. })) == registers
            && of(&|k| matches!(k, OperandKind::Imm { .. })) == immediates
            && of(&|k| matches!(k, OperandKind::Label)) == labels
    };
    let back = |key: &str| {
        let id = instr(b, t, key, node)?;
        let rotates = b.instrs[usize::from(id.0)].semantics.contains(&Stmt::Rotate);
        if rotates && is(id, 1, 0, 1) {
            Ok(id)
        } else {
            Err(wrong(key, "a branch that rotates, with a register and a label"))
        }
    };
    let enter = instr(b, t, "enter", node)?;
    if !is(enter, 0, 1, 0) {
        return Err(wrong("enter", "an instruction with one immediate, the number of stages"));
    }
    let name = text(t, "predicates").unwrap_or_default();
    let file = b.files.iter().find(|f| f.name == name).filter(|f| f.rotating.1 > 1);
    let Some(file) = file else { return Err(wrong("predicates", "a register file with `rotating` registers")) };
    let predicates = (0..file.rotating.1).map(|i| Reg(file.rotating.0.0 + i)).collect();
    Ok(Rotation { enter, back: back("back")?, back_zero: back("back_zero")?, predicates })
}

fn windows(b: &Builder, node: &Node) -> Result<Windows, FileError> {
    let empty = Tree::default();
    let t = node.as_table().unwrap_or(&empty);
    let regs = |key: &str| registers(b, nodes(t, key));
    let frame = |key: &str, stmt: Stmt| {
        let id = instr(b, t, key, node)?;
        if b.instrs[usize::from(id.0)].semantics.contains(&stmt) {
            return Ok(id);
        }
        let place = t.get(key).map_or(&node.place, |n| &n.place);
        Err(place.error(format!("`{key}` must turn the register window")))
    };
    let windows = Windows {
        count: int(t, "count").unwrap_or(8),
        ins: regs("ins")?,
        locals: regs("locals")?,
        outs: regs("outs")?,
        save: frame("save", Stmt::WindowSave)?,
        save_reg: frame("save_reg", Stmt::WindowSave)?,
        restore: frame("restore", Stmt::WindowRestore)?,
        return_address: register(b, t, "return_address", node)?,
        ret: instr(b, t, "ret", node)?,
        overflow_cycles: int(t, "overflow_cycles").unwrap_or(0),
        underflow_cycles: int(t, "underflow_cycles").unwrap_or(0),
    };
    if windows.ins.len() != windows.outs.len() {
        let place = b.last_stated([t.get("ins"), t.get("outs")]).unwrap_or(&node.place);
        return Err(place
            .error(format!("{} `ins` and {} `outs`", windows.ins.len(), windows.outs.len()))
            .mend("as many of one as of the other, please: these become those"));
    }
    Ok(windows)
}
