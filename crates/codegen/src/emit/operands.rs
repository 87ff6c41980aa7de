//! An instruction with the places that its values were given.

use crate::context::Emitter;
use ciphermill_ir::Space;
use ciphermill_machine::InstrId;
use ciphermill_program::{Inst, Operand};
use ciphermill_regalloc::fold::FoldedOperand;
use ciphermill_vcode::CompileError;
use ciphermill_vcode::{MemRef, VInst, VOp};
use ciphermill_vcode::{PInst, Place};
use smallvec::smallvec;
use std::collections::HashMap;

/// The instruction with its allocated registers.
pub(super) fn physical(v: &VInst, places: &[Place]) -> Result<PInst, CompileError> {
    let mut places = places.iter();
    let mut next = || match places.next() {
        Some(Place::Reg(r)) => Ok(Operand::Reg(*r)),
        _ => Err(CompileError::Internal("an operand was not given a register".into())),
    };
    let mut operands = smallvec![];
    for op in &v.ops {
        operands.push(match op {
            VOp::Use(_) | VOp::Def(_) => next()?,
            VOp::Tied { .. } => {
                next()?;
                next()?
            }
            VOp::Phys(r) => Operand::Reg(*r),
            VOp::Imm(i) => Operand::Imm(*i),
            VOp::Block(b) => Operand::Block(*b),
            VOp::Func(f) => Operand::Func(*f),
            VOp::Const(c) => return Err(CompileError::Internal(format!("the constant {c:#x} was never made"))),
        });
    }
    let space = v.mem.map_or(Space::Linear, |m| m.space);
    let inst = Inst { instr: v.instr, operands, space, trap: v.trap, role: v.role, predicate: None, loc: v.loc };
    Ok(PInst { inst, mem: v.mem, kind: v.kind })
}

/// The inverse of a branch, with the registers of the same virtual registers.
pub(super) fn inverted(
    branch: &PInst,
    v: &VInst,
    instr: InstrId,
    ops: &[VOp],
    places: &[Place],
) -> Result<PInst, CompileError> {
    let mut at = HashMap::new();
    for (vreg, place) in v.uses().zip(places) {
        at.insert(vreg, *place);
    }
    let operands = ops
        .iter()
        .map(|op| match op {
            VOp::Use(u) => match at.get(u) {
                Some(Place::Reg(r)) => Ok(Operand::Reg(*r)),
                _ => Err(CompileError::Internal("a reversed branch reads another register".into())),
            },
            VOp::Phys(r) => Ok(Operand::Reg(*r)),
            VOp::Imm(i) => Ok(Operand::Imm(*i)),
            VOp::Block(b) => Ok(Operand::Block(*b)),
            _ => Err(CompileError::Internal("a reversed branch has an operand of another kind".into())),
        })
        .collect::<Result<_, _>>()?;
    let mut p = branch.clone();
    p.inst.instr = instr;
    p.inst.operands = operands;
    Ok(p)
}

impl Emitter<'_> {
    /// The instruction with its places, one of which may be a stack slot.
    pub(super) fn placed(&self, v: &VInst, places: &[Place]) -> Result<PInst, CompileError> {
        let Some((n, slot)) =
            places.iter().enumerate().find_map(|(n, p)| if let Place::Slot(s) = p { Some((n, *s)) } else { None })
        else {
            return physical(v, places);
        };
        // Any register will do for the operand that is in memory.
        let sp = self.machine.abi.stack_pointer;
        let mut registers = places.to_vec();
        registers[n] = Place::Reg(sp);
        let mut p = physical(v, &registers)?;
        let operand =
            v.ops.iter().enumerate().filter(|(_, o)| matches!(o, VOp::Use(_) | VOp::Def(_) | VOp::Tied { .. }));
        let counted =
            operand.flat_map(|(i, o)| std::iter::repeat_n(i, if matches!(o, VOp::Tied { .. }) { 2 } else { 1 }));
        let folded = counted.into_iter().nth(n).and_then(|k| self.folds?.folded(v.instr, k));
        let folded = folded.ok_or_else(|| CompileError::Internal("an operand was not given a register".into()))?;
        let offset = self.frame.slot_offset(slot);
        let old = std::mem::take(&mut p.inst.operands);
        p.inst.operands = folded
            .operands
            .iter()
            .map(|part| match part {
                FoldedOperand::Same(i) => old[*i],
                FoldedOperand::Base => Operand::Reg(sp),
                FoldedOperand::Displacement => Operand::Imm(offset),
            })
            .collect();
        p.inst.instr = folded.instr;
        p.inst.space = Space::Stack;
        let bytes = self.machine.word_bits / 8;
        p.mem = Some(MemRef::own(Space::Stack, false, offset, bytes));
        Ok(p)
    }
}
