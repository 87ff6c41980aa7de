//! A pipeline with rotating registers as code: what goes into the ring, the
//! loop, what comes out of it.

use super::super::Kernel;
use super::super::body::From;
use super::Names;
use ciphermill_ir::Space;
use ciphermill_machine::{InstrId, Machine, OperandKind, Reg};
use ciphermill_program::{Block, Inst, Operand, Role};
use ciphermill_schedule::bundle::{Row, bundles};
use ciphermill_vcode::CompileError;
use ciphermill_vcode::Laid;
use ciphermill_vcode::VOp;

/// Write out a kernel: moves and the count of stages, the loop, moves.
pub fn emit(machine: &Machine, k: &Kernel, names: &Names, out: &mut Laid) -> Result<u32, CompileError> {
    let missing = || CompileError::Internal("a pipelined loop on a machine without rotation".into());
    let rotation = machine.abi.rotation.as_ref().ok_or_else(missing)?;
    let (ii, stages) = (k.schedule.ii, k.schedule.stages);
    let head = out.fresh();
    let stage = |i: usize| k.schedule.time[i].div_euclid(ii);
    let outside =
        |i: usize| k.registers.result[i].ok_or_else(|| CompileError::Internal("a value has no register".into()));

    let mut enter = plain(rotation.enter, [Operand::Imm(stages)], Role::Other);
    enter.role = Role::Overhead;
    let mut before = vec![enter];
    for &i in k.ops.initial.keys() {
        // The value of the iteration before the first, at the first one's beginning.
        let Some(place) = names.of[i] else { continue };
        before.push(mov(machine, names.register(place + 1 - stage(i)), outside(i)?));
    }
    out.blocks.push(straight(machine, before, k.loop_depth.saturating_sub(1))?);

    let mut rows: Vec<Row> = Vec::new();
    rows.resize_with(ii as usize, Row::default);
    let branch = k.ops.ops.len() - 1;
    for i in 0..k.ops.ops.len() {
        let mut inst = inst(k, names, i, &stage)?;
        if i == branch {
            inst.instr = names.back;
            inst.operands = back(machine, &inst, names.back, head);
        } else {
            inst.predicate = rotation.predicates.get(stage(i) as usize).copied();
        }
        rows[k.schedule.time[i].rem_euclid(ii) as usize].insts.push(inst);
    }
    out.label(head);
    let at = out.blocks.len() as u32;
    out.blocks.push(Block { bundles: bundles(machine, rows)?, loop_depth: k.loop_depth, ..Block::default() });

    let mut after = Vec::new();
    for &(i, _) in &k.ops.live_out {
        let Some(place) = names.of[i] else { continue };
        after.push(mov(machine, outside(i)?, names.register(place + stages - stage(i))));
    }
    out.blocks.push(straight(machine, after, k.loop_depth.saturating_sub(1))?);
    Ok(at)
}

/// Instructions one after the other that have nothing to do with each other.
fn straight(machine: &Machine, insts: Vec<Inst>, depth: u8) -> Result<Block, CompileError> {
    let rows = insts.into_iter().map(|inst| {
        let mut row = Row::default();
        row.insts.push(inst);
        row
    });
    Ok(Block { bundles: bundles(machine, rows.collect())?, loop_depth: depth, ..Block::default() })
}

fn plain(instr: InstrId, operands: impl IntoIterator<Item = Operand>, role: Role) -> Inst {
    Inst {
        instr,
        operands: operands.into_iter().collect(),
        space: Space::Linear,
        trap: None,
        role,
        predicate: None,
        loc: 0,
    }
}

fn mov(machine: &Machine, to: Reg, from: Reg) -> Inst {
    let mov = machine.abi.ops.mov;
    let spec = &machine.instrs[usize::from(mov.0)].operands;
    let of = |o: &ciphermill_machine::Operand| match o.kind {
        OperandKind::Reg { def: true, .. } => Operand::Reg(to),
        _ => Operand::Reg(from),
    };
    plain(mov, spec.iter().map(of).collect::<Vec<_>>(), Role::Overhead)
}

/// Operands of the branch back: the register that the loop's own branch tests.
fn back(machine: &Machine, own: &Inst, instr: InstrId, head: u32) -> smallvec::SmallVec<[Operand; 4]> {
    let tested = own.operands.iter().find(|o| matches!(o, Operand::Reg(_))).copied();
    let spec = machine.instrs[usize::from(instr.0)].operands.iter();
    spec.map(|o| match (&o.kind, tested) {
        (OperandKind::Reg { .. }, Some(r)) => r,
        _ => Operand::Block(head),
    })
    .collect()
}

/// An operation with the names that its operands have in its stage.
fn inst(k: &Kernel, names: &Names, i: usize, stage: &dyn Fn(usize) -> i64) -> Result<Inst, CompileError> {
    let op = &k.ops.ops[i];
    let register = |o: usize| -> Option<Reg> {
        if op.writes.is_some_and(|w| w.0 == o) {
            return Some(names.register(names.of[i]?));
        }
        match op.reads.iter().find(|r| r.0 == o)?.1 {
            From::Node(p, d) => Some(names.register(names.of[p]? + stage(i) + i64::from(d) - stage(p))),
            From::Outside(v) => k.registers.outside.get(&(v, op.at.unit)).copied(),
        }
    };
    let missing = || CompileError::Internal("an operand of a pipelined loop has no register".into());
    let operands = op.inst.ops.iter().enumerate().map(|(o, x)| match x {
        VOp::Imm(v) => Ok(Operand::Imm(*v)),
        VOp::Phys(r) => Ok(Operand::Reg(*r)),
        VOp::Block(b) => Ok(Operand::Block(*b)),
        _ => register(o).map(Operand::Reg).ok_or_else(missing),
    });
    Ok(Inst {
        instr: k.schedule.variant[i],
        operands: operands.collect::<Result<_, _>>()?,
        space: op.inst.mem.map_or(Space::Linear, |m| m.space),
        trap: None,
        role: op.inst.role,
        predicate: None,
        loc: op.inst.loc,
    })
}
