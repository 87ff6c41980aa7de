//! Which variants of an instruction its registers allow.
//!
//! The allocator hands out registers of all clusters alike. An instruction
//! whose operands then stand in files that no variant can combine gets moves:
//! sources come over into a scratch register of the right file, a result goes
//! out of one. Which variant costs the fewest is found by trying all.

use ciphermill_vcode::CompileError;
use crate::context::Finish;
use ciphermill_schedule::bundle::Sided;
use ciphermill_vcode::PInst;
use ciphermill_machine::{InstrId, Machine, OperandKind, Reg};
use ciphermill_program::Operand;

/// Can `instr` have the register as its operand `o`?
pub fn accepts(machine: &Machine, instr: InstrId, o: usize, r: Reg) -> bool {
    let instr = &machine.instrs[usize::from(instr.0)];
    match (instr.only.iter().find(|p| p.0 == o), &instr.operands[o].kind) {
        (Some((_, regs)), _) => regs.contains(&r),
        (None, OperandKind::Reg { file, .. }) => machine.regs[usize::from(r.0)].file == *file,
        _ => true,
    }
}

/// Operands of `p` that the variant cannot have: `(operand, register)`.
fn misfits(machine: &Machine, p: &PInst, variant: InstrId) -> Vec<(usize, Reg)> {
    let regs = p.inst.operands.iter().enumerate();
    regs.filter_map(|(o, op)| match op {
        Operand::Reg(r) if !accepts(machine, variant, o, *r) => Some((o, *r)),
        _ => None,
    })
    .collect()
}

/// The instruction, with the moves it needs, in order.
///
/// # Errors
/// When there are not enough scratch registers; the machine's `[abi]` should
/// give one for each cluster beside the first.
pub fn settle(finish: &Finish<'_>, p: PInst, out: &mut Vec<Sided>) -> Result<(), CompileError> {
    let machine = finish.machine;
    let all = &machine.variants[usize::from(p.inst.instr.0)];
    let fitting: Vec<InstrId> = all.iter().copied().filter(|&v| misfits(machine, &p, v).is_empty()).collect();
    if !fitting.is_empty() {
        out.push(Sided { inst: p, variants: fitting });
        return Ok(());
    }
    let repaired = all.iter().filter_map(|&v| Some((repair(machine, &p, v)?, v))).min_by_key(|(r, v)| (r.len(), *v));
    let Some((moved, _)) = repaired else {
        let name = &machine.instrs[usize::from(p.inst.instr.0)].name;
        return Err(CompileError::Internal(format!("no cluster can run `{name}` on the registers it was given")));
    };
    let mut inst = p.clone();
    let (mut before, mut behind) = (Vec::new(), Vec::new());
    for (o, from, to) in moved {
        inst.inst.operands[o] = Operand::Reg(to);
        let OperandKind::Reg { def, used, .. } = machine.instrs[usize::from(p.inst.instr.0)].operands[o].kind else {
            continue;
        };
        let mov = machine.abi.ops.mov;
        if used {
            before.push(finish.frame.inst(mov, &[to, from], 0));
        }
        if def {
            behind.push(finish.frame.inst(mov, &[from, to], 0));
        }
    }
    for p in before.into_iter().chain([inst]).chain(behind) {
        let all = &machine.variants[usize::from(p.inst.instr.0)];
        let variants: Vec<InstrId> = all.iter().copied().filter(|&v| misfits(machine, &p, v).is_empty()).collect();
        if variants.is_empty() {
            let name = &machine.instrs[usize::from(p.inst.instr.0)].name;
            return Err(CompileError::Internal(format!("no cluster can run `{name}` even after moves")));
        }
        out.push(Sided { inst: p, variants });
    }
    Ok(())
}

/// Scratch registers that make the variant fit: `(operand, its register, the
/// scratch register)`, one register for all operands that have the same.
fn repair(machine: &Machine, p: &PInst, variant: InstrId) -> Option<Vec<(usize, Reg, Reg)>> {
    // The first scratch register is the frame code's own.
    let mut free: Vec<Reg> = machine.abi.scratch.iter().copied().skip(1).collect();
    let mut out: Vec<(usize, Reg, Reg)> = Vec::new();
    for (o, r) in misfits(machine, p, variant) {
        let shared = out.iter().find(|m| m.1 == r && accepts(machine, variant, o, m.2)).map(|m| m.2);
        let to = match shared {
            Some(to) => to,
            None => {
                let at = free.iter().position(|&f| accepts(machine, variant, o, f))?;
                free.remove(at)
            }
        };
        out.push((o, r, to));
    }
    Some(out)
}
