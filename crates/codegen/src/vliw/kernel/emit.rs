//! From a schedule with registers to blocks of bundles.
//!
//! One stage: the loop is one block. Two stages: a prologue runs the first
//! stage of the first iteration, the kernel the second stage of one iteration
//! together with the first stage of the next, the epilogue the last second
//! stage. The branch stands in the first stage: it says whether another
//! iteration begins. When there is but one, the prologue's own branch, the
//! opposite one, passes the kernel by.

use super::Kernel;
use super::body::From;
use crate::CompileError;
use crate::finish::Laid;
use crate::vcode::VOp;
use crate::vliw::pack::{Row, bundles};
use ciphermill_ir::Space;
use ciphermill_machine::{InstrId, Machine};
use ciphermill_program::{Block, Inst, Operand};

/// Write out a kernel: prologue, loop, epilogue.
pub fn emit(machine: &Machine, k: &Kernel, out: &mut Laid) -> Result<(), CompileError> {
    if let Some(names) = &k.rotating {
        return super::rotating::emit::emit(machine, k, names, out);
    }
    let (head, tail) = (out.fresh(), out.fresh());
    let ii = k.schedule.ii;
    let insts: Vec<Inst> = (0..k.ops.ops.len()).map(|i| inst(k, i)).collect::<Result<_, _>>()?;
    let branch = insts.len() - 1;
    let rows = |stage: Option<i64>, back: &Inst| -> Vec<Row> {
        let mut rows: Vec<Row> = Vec::new();
        rows.resize_with(ii as usize, Row::default);
        for (i, inst) in insts.iter().enumerate() {
            let t = k.schedule.time[i];
            if stage.is_none_or(|s| t / ii == s) {
                rows[(t % ii) as usize].insts.push(if i == branch { back.clone() } else { inst.clone() });
            }
        }
        rows
    };
    let mut back = insts[branch].clone();
    aim(&mut back, head);
    let block = |rows: Vec<Row>, depth: u8| -> Result<Block, CompileError> {
        Ok(Block { bundles: bundles(machine, rows)?, loop_depth: depth })
    };
    if k.schedule.stages > 1 {
        // The same unit as the branch back: the row has it free.
        let units = |v: InstrId| &machine.instrs[usize::from(v.0)].units;
        let skip = machine.variants[usize::from(k.skip.0)].iter().copied().find(|&v| units(v) == units(back.instr));
        let Some(skip) = skip else {
            return Err(CompileError::Internal("a branch has no opposite on its unit".into()));
        };
        let mut past = Inst { instr: skip, ..back.clone() };
        aim(&mut past, tail);
        out.blocks.push(block(rows(Some(0), &past), k.loop_depth.saturating_sub(1))?);
    }
    out.label(head);
    out.blocks.push(block(rows(None, &back), k.loop_depth)?);
    out.label(tail);
    let mut last = if k.schedule.stages > 1 { rows(Some(1), &back) } else { Vec::new() };
    while last.last().is_some_and(|r| r.insts.is_empty()) {
        last.pop();
    }
    // Nothing may be under way behind the loop.
    let begin = (k.schedule.stages - 1).max(1) * ii;
    let landed = (0..insts.len())
        .map(|i| k.schedule.time[i] + k.ops.ops[i].writes.map_or(1, |w| i64::from(w.1)) - begin)
        .max()
        .unwrap_or(0)
        .max(0) as usize;
    if !machine.issue.interlock {
        last.resize_with(landed.max(last.len()), Row::default);
    }
    out.blocks.push(block(last, k.loop_depth.saturating_sub(1))?);
    Ok(())
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
        guard: None,
        loc: op.inst.loc,
    })
}
