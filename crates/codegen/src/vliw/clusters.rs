//! Clusters after register allocation.
//!
//! The allocator keeps a value in the file that scheduling has chosen, but what it spills and copies may
//! stand elsewhere. Each instruction gets the variants whose operands are in the files where their
//! registers are. If there is none, sources are moved to scratch registers of the right file and results
//! from one. Of all variants the one with the fewest moves is taken.

use crate::context::Emitter;
use ciphermill_machine::{InstrId, Machine, OperandKind, Reg};
use ciphermill_program::Operand;
use ciphermill_schedule::bundle::Schedulable;
use ciphermill_vcode::CompileError;
use ciphermill_vcode::PInst;

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
fn foreign_operands(machine: &Machine, p: &PInst, variant: InstrId) -> Vec<(usize, Reg)> {
    let regs = p.inst.operands.iter().enumerate();
    regs.filter_map(|(o, op)| match op {
        Operand::Reg(r) if !accepts(machine, variant, o, *r) => Some((o, *r)),
        _ => None,
    })
    .collect()
}

/// Appends the instruction with its variants, and the moves between clusters that it needs.
///
/// # Errors
/// When there are not enough scratch registers; the machine's `[abi]` should
/// give one for each cluster beside the first.
pub fn assign_clusters(emitter: &Emitter<'_>, p: PInst, out: &mut Vec<Schedulable>) -> Result<(), CompileError> {
    let machine = emitter.machine;
    let all = &machine.variants[usize::from(p.inst.instr.0)];
    let fitting: Vec<InstrId> = all.iter().copied().filter(|&v| foreign_operands(machine, &p, v).is_empty()).collect();
    if !fitting.is_empty() {
        out.push(Schedulable { inst: p, variants: fitting });
        return Ok(());
    }
    let with_moves =
        all.iter().filter_map(|&v| Some((moves_for(machine, &p, v)?, v))).min_by_key(|(r, v)| (r.len(), *v));
    let Some((moved, _)) = with_moves else {
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
            before.push(emitter.frame.inst(mov, &[to, from], 0));
        }
        if def {
            behind.push(emitter.frame.inst(mov, &[from, to], 0));
        }
    }
    for p in before.into_iter().chain([inst]).chain(behind) {
        let all = &machine.variants[usize::from(p.inst.instr.0)];
        let variants: Vec<InstrId> =
            all.iter().copied().filter(|&v| foreign_operands(machine, &p, v).is_empty()).collect();
        if variants.is_empty() {
            let name = &machine.instrs[usize::from(p.inst.instr.0)].name;
            return Err(CompileError::Internal(format!("no cluster can run `{name}` even after moves")));
        }
        out.push(Schedulable { inst: p, variants });
    }
    Ok(())
}

/// The moves that a variant needs: `(operand, its register, the scratch register)`. Operands in one
/// register share a scratch register.
fn moves_for(machine: &Machine, p: &PInst, variant: InstrId) -> Option<Vec<(usize, Reg, Reg)>> {
    // The first scratch register is the frame code's own.
    let mut free: Vec<Reg> = machine.abi.scratch.iter().copied().skip(1).collect();
    let mut out: Vec<(usize, Reg, Reg)> = Vec::new();
    for (o, r) in foreign_operands(machine, p, variant) {
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
