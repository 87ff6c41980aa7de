//! From a schedule with registers to blocks of bundles.
//!
//! One stage: the loop is one block. Two stages: a prologue runs the first
//! stage of the first iteration, the kernel the second stage of one iteration
//! together with the first stage of the next, the epilogue the last second
//! stage. With three there are two blocks of prologue, the second of which begins
//! another iteration, and so on. The branch stands in the first stage: it says whether
//! another iteration begins. When there are fewer than the kernel needs, a prologue's own
//! branch, the opposite one, passes the kernel by: the last prologue's to the epilogue,
//! those before to what is left of the iterations begun, which stands aside.

use super::Kernel;
use super::body::From;
use ciphermill_ir::Space;
use ciphermill_machine::{InstrId, Machine};
use ciphermill_program::{Block, Inst, Operand};
use ciphermill_schedule::bundle::{Row, bundles};
use ciphermill_vcode::CompileError;
use ciphermill_vcode::Laid;
use ciphermill_vcode::VOp;

/// Write out a kernel: prologue, loop, epilogue. Returns the loop's place among the blocks.
pub fn emit(machine: &Machine, k: &Kernel, out: &mut Laid) -> Result<u32, CompileError> {
    if let Some(names) = &k.rotating {
        return super::rotating::emit::emit(machine, k, names, out);
    }
    let (head, tail) = (out.fresh(), out.fresh());
    let ii = k.schedule.ii;
    let insts: Vec<Inst> = (0..k.ops.ops.len()).map(|i| inst(k, i)).collect::<Result<_, _>>()?;
    let branch = insts.len() - 1;
    let stages = k.schedule.stages;
    // What of an iteration stands in some of its stages, one above the other.
    let rows = |from: i64, to: i64, back: &Inst| -> Vec<Row> {
        let mut rows: Vec<Row> = Vec::new();
        rows.resize_with(ii as usize, Row::default);
        for (i, inst) in insts.iter().enumerate() {
            let t = k.schedule.time[i];
            if (from..=to).contains(&(t / ii)) {
                rows[(t % ii) as usize].insts.push(if i == branch { back.clone() } else { inst.clone() });
            }
        }
        rows
    };
    let mut back = insts[branch].clone();
    aim(&mut back, head);
    let block = |rows: Vec<Row>, depth: u8| -> Result<Block, CompileError> {
        Ok(Block { bundles: bundles(machine, rows)?, loop_depth: depth, ..Block::default() })
    };
    let outside = k.loop_depth.saturating_sub(1);
    // Nothing may be under way behind the loop.
    let landed = (0..insts.len())
        .map(|i| k.schedule.time[i] + k.ops.ops[i].writes.map_or(1, |w| i64::from(w.1)) - ii)
        .max()
        .unwrap_or(0)
        .max(0) as usize;
    // The rest of all iterations when the last of them, and as many as `before` it, are
    // under way.
    let rest = |before: i64| -> Vec<Row> {
        let mut last: Vec<Row> = (1..stages).flat_map(|q| rows(q, (before + q).min(stages - 1), &back)).collect();
        while last.last().is_some_and(|r| r.insts.is_empty()) {
            last.pop();
        }
        if !machine.issue.interlock {
            last.resize_with(landed.max(last.len()), Row::default);
        }
        last
    };
    // The same unit as the branch back: the row has it free.
    let units = |v: InstrId| &machine.instrs[usize::from(v.0)].units;
    let skip = machine.variants[usize::from(k.skip.0)].iter().copied().find(|&v| units(v) == units(back.instr));
    let end = if stages > 2 { Some(out.fresh()) } else { None };
    for before in 0..stages - 1 {
        let Some(skip) = skip else {
            return Err(CompileError::Internal("a branch has no opposite on its unit".into()));
        };
        let mut past = Inst { instr: skip, ..back.clone() };
        let to = if before == stages - 2 { tail } else { out.fresh() };
        aim(&mut past, to);
        out.blocks.push(block(rows(0, before, &past), outside)?);
        if let (Some(end), true) = (end, to != tail) {
            let mut aside = rest(before);
            aside.extend(jump(machine, &back, end));
            out.aside.push((to, block(aside, outside)?));
        }
    }
    out.label(head);
    let at = out.blocks.len() as u32;
    out.blocks.push(block(rows(0, stages - 1, &back), k.loop_depth)?);
    out.label(tail);
    out.blocks.push(block(rest(stages - 1), outside)?);
    if let Some(end) = end {
        out.label(end);
    }
    Ok(at)
}

/// A jump to a label, with the cycles until it is taken.
fn jump(machine: &Machine, back: &Inst, to: u32) -> Vec<Row> {
    let jump = machine.abi.ops.jump;
    let instr = machine.variants[usize::from(jump.0)].first().copied().unwrap_or(jump);
    let mut inst = Inst { instr, role: ciphermill_program::Role::Overhead, ..back.clone() };
    inst.operands.retain(|o| matches!(o, Operand::Block(_)));
    aim(&mut inst, to);
    let mut rows = vec![Row::default()];
    rows[0].insts.push(inst);
    rows.resize_with(1 + usize::from(machine.instrs[usize::from(instr.0)].delay_slots), Row::default);
    rows
}

fn aim(inst: &mut Inst, label: u32) {
    for o in &mut inst.operands {
        if matches!(o, Operand::Block(_)) {
            *o = Operand::Block(label);
        }
    }
}

/// An operation with its registers.
fn inst(k: &Kernel, i: usize) -> Result<Inst, CompileError> {
    let op = &k.ops.ops[i];
    let missing = || CompileError::Internal("an operand of a pipelined loop has no register".into());
    let register = |o: usize| {
        if let Some((_, from)) = op.reads.iter().find(|r| r.0 == o)
            && op.writes.is_none_or(|w| w.0 != o)
        {
            return match from {
                From::Node(p, _) => k.registers.result[*p],
                From::Outside(v) => k.registers.outside.get(&(*v, op.at.unit)).copied(),
            };
        }
        k.registers.result[i]
    };
    let operands = op
        .inst
        .ops
        .iter()
        .enumerate()
        .map(|(o, x)| match x {
            VOp::Imm(v) => Ok(Operand::Imm(*v)),
            VOp::Phys(r) => Ok(Operand::Reg(*r)),
            VOp::Block(b) => Ok(Operand::Block(*b)),
            _ => register(o).map(Operand::Reg).ok_or_else(missing),
        })
        .collect::<Result<_, _>>()?;
    Ok(Inst {
        instr: k.schedule.variant[i],
        operands,
        space: op.inst.mem.map_or(Space::Linear, |m| m.space),
        trap: None,
        role: op.inst.role,
        predicate: None,
        loc: op.inst.loc,
    })
}
