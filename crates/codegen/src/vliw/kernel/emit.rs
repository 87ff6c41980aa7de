//! From a schedule with registers to blocks of bundles.
//!
//! One stage: the loop is one block. Otherwise iterations enter one by one: block
//! `p` of the prologue runs stage 0 of iteration `p`, stage 1 of the one before and
//! so on; the kernel runs a stage of each iteration that can be under way; and the
//! epilogue runs what is left of them when none begins any more. The branch stands
//! in the first stage: it says whether another iteration begins. In the prologue
//! the opposite one leaves for an epilogue, that of the kernel when all but one of
//! its iterations are under way, and one of its own, out of the way, when there are
//! fewer.

use super::Kernel;
use super::body::From;
use crate::CompileError;
use crate::finish::Laid;
use crate::vcode::VOp;
use crate::vliw::pack::{Row, bundles};
use ciphermill_ir::Space;
use ciphermill_machine::{InstrId, Machine};
use ciphermill_program::{Block, Inst, Operand, Role};
use std::ops::RangeInclusive;

/// Write out a kernel: prologue, loop, epilogue.
pub fn emit(machine: &Machine, k: &Kernel, out: &mut Laid) -> Result<(), CompileError> {
    if let Some(names) = &k.rotating {
        return super::rotating::emit::emit(machine, k, names, out);
    }
    let (head, tail, done) = (out.fresh(), out.fresh(), out.fresh());
    let ii = k.schedule.ii;
    let insts: Vec<Inst> = (0..k.ops.ops.len()).map(|i| inst(k, i)).collect::<Result<_, _>>()?;
    let branch = insts.len() - 1;
    let stages = k.schedule.stages;
    // The rows of an interval in which these stages run.
    let rows = |run: RangeInclusive<i64>, back: &Inst| -> Vec<Row> {
        let mut rows: Vec<Row> = Vec::new();
        rows.resize_with(ii as usize, Row::default);
        for (i, inst) in insts.iter().enumerate() {
            let t = k.schedule.time[i];
            if run.contains(&(t / ii)) {
                rows[(t % ii) as usize].insts.push(if i == branch { back.clone() } else { inst.clone() });
            }
        }
        rows
    };
    let mut back = insts[branch].clone();
    aim(&mut back, head);
    // Behind the last iteration's first stage nothing begins, and at the end nothing
    // may be under way.
    let landed = (0..insts.len())
        .map(|i| k.schedule.time[i] + k.ops.ops[i].writes.map_or(1, |w| i64::from(w.1)) - ii)
        .max()
        .unwrap_or(0)
        .max(0) as usize;
    // What is left of so many iterations when the last has passed its first stage.
    let rest = |begun: i64| -> Vec<Row> {
        let mut rest: Vec<Row> = (1..stages).flat_map(|s| rows(s..=(begun - 1 + s).min(stages - 1), &back)).collect();
        while rest.last().is_some_and(|r| r.insts.is_empty()) {
            rest.pop();
        }
        if !machine.issue.interlock {
            rest.resize_with(landed.max(rest.len()), Row::default);
        }
        rest
    };
    let outside = k.loop_depth.saturating_sub(1);
    let block = |rows: Vec<Row>, depth: u8| -> Result<Block, CompileError> {
        Ok(Block { bundles: bundles(machine, rows)?, loop_depth: depth })
    };
    for begun in 1..stages {
        // The same unit as the branch back: the row has it free.
        let units = |v: InstrId| &machine.instrs[usize::from(v.0)].units;
        let skip = machine.variants[usize::from(k.skip.0)].iter().copied().find(|&v| units(v) == units(back.instr));
        let Some(skip) = skip else {
            return Err(CompileError::Internal("a branch has no opposite on its unit".into()));
        };
        let mut past = Inst { instr: skip, ..back.clone() };
        let own = begun + 1 < stages;
        let to = if own { out.fresh() } else { tail };
        aim(&mut past, to);
        out.blocks.push(block(rows(0..=begun - 1, &past), outside)?);
        if own {
            let mut rows = rest(begun);
            rows.extend(jump(machine, done));
            out.aside(to, vec![block(rows, outside)?]);
        }
    }
    out.label(head);
    out.blocks.push(block(rows(0..=stages - 1, &back), k.loop_depth)?);
    out.label(tail);
    out.blocks.push(block(rest(stages), outside)?);
    out.label(done);
    Ok(())
}

/// A jump and its delay slots.
fn jump(machine: &Machine, to: u32) -> Vec<Row> {
    let instr = machine.abi.ops.jump;
    let inst = Inst {
        instr,
        operands: [Operand::Block(to)].into_iter().collect(),
        space: Space::Linear,
        trap: None,
        role: Role::Overhead,
        guard: None,
        loc: 0,
    };
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
        guard: None,
        loc: op.inst.loc,
    })
}
