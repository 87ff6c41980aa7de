//! What an instruction is, from what it does.
//!
//! Nobody declares an instruction to be a branch or a load: its semantics
//! already say so. What they must not say is checked here too, such as two
//! jumps in one instruction.

use crate::model::{InstrKind, Operand, OperandKind};
use crate::sem::{Dest, Expr, Stmt};
use std::collections::BTreeSet;

/// Work out what an instruction is.
pub(crate) fn kind(operands: &[Operand], stmts: &[Stmt]) -> Result<InstrKind, String> {
    // A call keeps an address of its own, in a register or in memory.
    let keeps = stmts.iter().any(|s| {
        let mut here = false;
        if let Stmt::Assign { value, .. } | Stmt::Store { value, .. } = s {
            value.walk(&mut |e| here |= matches!(e, Expr::Pc));
        }
        here
    });
    let stores = stmts.iter().any(|s| matches!(s, Stmt::Store { .. }));
    let gotos: Vec<_> = stmts
        .iter()
        .filter_map(|s| if let Stmt::Goto { cond, target } = s { Some((cond, target)) } else { None })
        .collect();
    let frame = stmts.iter().any(|s| matches!(s, Stmt::WindowSave | Stmt::WindowRestore));
    let traps = stmts.contains(&Stmt::Trap);
    let mut written = BTreeSet::new();
    for s in stmts {
        if let Stmt::Assign { dest, .. } = s
            && !written.insert(format!("{dest:?}"))
        {
            return Err("assigns to the same register twice".to_owned());
        }
    }
    if gotos.len() + usize::from(traps) + usize::from(frame) > 1 {
        return Err("more than one of `goto`, `trap` and window statements".to_owned());
    }
    if let Some((cond, target)) = gotos.first() {
        let label = matches!(target, Expr::Imm(i) if matches!(operands[*i].kind, OperandKind::Label));
        if stores && !keeps {
            return Err("a branch cannot store".to_owned());
        }
        return match (cond.is_some(), label, keeps) {
            (true, true, _) => Ok(InstrKind::Branch),
            (true, false, _) => Err("a conditional `goto` needs an operand of kind `label` as its target".to_owned()),
            (false, true, false) => Ok(InstrKind::Jump),
            (false, true, true) => Ok(InstrKind::Call),
            (false, false, false) => Ok(InstrKind::JumpIndirect),
            (false, false, true) => Ok(InstrKind::CallIndirect),
        };
    }
    let mut loads = false;
    for_each_expr(stmts, &mut |e| loads |= matches!(e, Expr::Load { .. }));
    Ok(match () {
        () if frame => InstrKind::Frame,
        () if traps => InstrKind::Trap,
        () if stores => InstrKind::Store,
        () if loads => InstrKind::Load,
        () => InstrKind::Compute,
    })
}

/// Can the selector find what this instruction does in a program? Not if it
/// depends on a special register, and not if it does nothing.
pub(crate) fn matches_programs(kind: InstrKind, stmts: &[Stmt]) -> bool {
    let mut fixed = false;
    for_each_expr(stmts, &mut |e| fixed |= matches!(e, Expr::Fixed(_) | Expr::Pc));
    let visible = stmts
        .iter()
        .any(|s| matches!(s, Stmt::Assign { dest: Dest::Operand(_), .. } | Stmt::Store { .. } | Stmt::Goto { .. }));
    let plain =
        matches!(kind, InstrKind::Compute | InstrKind::Load | InstrKind::Store | InstrKind::Branch | InstrKind::Jump);
    plain && !fixed && visible
}

/// Call `f` on every expression node of some statements.
pub fn for_each_expr(stmts: &[Stmt], f: &mut impl FnMut(&Expr)) {
    for stmt in stmts {
        match stmt {
            Stmt::Let { value, .. } | Stmt::Assign { value, .. } => value.walk(f),
            Stmt::Store { addr, value, .. } => {
                addr.walk(f);
                value.walk(f);
            }
            Stmt::Goto { cond, target } => {
                if let Some(cond) = cond {
                    cond.walk(f);
                }
                target.walk(f);
            }
            Stmt::Trap | Stmt::Rotate | Stmt::WindowSave | Stmt::WindowRestore => {}
        }
    }
}
