//! What instructions read and write, found from their semantics.

use ciphermill_machine::sem::{Dest, Expr, Stmt};
use ciphermill_machine::{Instr, Machine, Reg};
use ciphermill_program::{Bundle, Inst, Operand};

type Res<T> = Result<T, String>;

/// The machine's description of an instruction.
pub(crate) fn instr_of<'m>(machine: &'m Machine, inst: &Inst) -> Res<&'m Instr> {
    machine.instrs.get(usize::from(inst.instr.0)).ok_or_else(|| format!("there is no instruction {}", inst.instr.0))
}

/// The register that a destination means in an instruction.
pub fn dest_of(inst: &Inst, dest: &Dest) -> Res<Reg> {
    match dest {
        Dest::Fixed(r) => Ok(*r),
        Dest::Operand(i) => match inst.operands.get(*i) {
            Some(Operand::Reg(r)) => Ok(*r),
            other => Err(format!("operand {i} should be a register, not {other:?}")),
        },
    }
}

/// Cycles until a destination can be read.
pub fn latency(instr: &Instr, dest: &Dest) -> u32 {
    instr.dest_latency.iter().find(|(d, _)| d == dest).map_or(instr.latency, |&(_, l)| l)
}

/// Call `f` with every register that an expression reads (`let`s not followed).
pub fn reads(inst: &Inst, e: &Expr, f: &mut impl FnMut(Reg)) {
    match e {
        Expr::Operand(i) => {
            if let Some(Operand::Reg(r)) = inst.operands.get(*i) {
                f(*r);
            }
        }
        Expr::Fixed(r) => f(*r),
        Expr::Imm(_) | Expr::Temp(_) | Expr::Const(_) | Expr::Pc => {}
        Expr::Bin { a, b, .. } | Expr::Cmp { a, b, .. } | Expr::FlagsSub { a, b, .. } | Expr::FlagsAdd { a, b, .. } => {
            reads(inst, a, f);
            reads(inst, b, f);
        }
        Expr::Un { a, .. } | Expr::Slice { a, .. } | Expr::Linear { a, .. } | Expr::FlagsLogic { a, .. } => {
            reads(inst, a, f)
        }
        Expr::MatVec { matrix, a } => {
            matrix.registers().for_each(&mut *f);
            reads(inst, a, f);
        }
        Expr::Select { cond, then, els } => {
            reads(inst, cond, f);
            reads(inst, then, f);
            reads(inst, els, f);
        }
        Expr::Load { addr, .. } => reads(inst, addr, f),
        Expr::Table { index, .. } => reads(inst, index, f),
        Expr::FlagsTest { flags, .. } => reads(inst, flags, f),
    }
}

/// Call `f` with every register that a statement reads.
pub fn statement_reads(inst: &Inst, s: &Stmt, f: &mut impl FnMut(Reg)) {
    match s {
        Stmt::Let { value, .. } | Stmt::Assign { value, .. } => reads(inst, value, f),
        Stmt::Store { addr, value, .. } => {
            reads(inst, addr, f);
            reads(inst, value, f);
        }
        Stmt::Goto { cond, target } => {
            if let Some(c) = cond {
                reads(inst, c, f);
            }
            reads(inst, target, f);
        }
        Stmt::Trap | Stmt::Rotate | Stmt::WindowSave | Stmt::WindowRestore => {}
    }
}

/// Is `reg` read by xops that come after statement `k` of instruction `n`?
/// True too often does no harm.
pub fn read_later(machine: &Machine, bundle: &Bundle, n: usize, k: usize, reg: Reg) -> bool {
    let mut found = false;
    for (m, inst) in bundle.insts.iter().enumerate() {
        let Ok(instr) = instr_of(machine, inst) else { continue };
        let last = instr.semantics.len() - 1;
        let stores = instr.semantics.iter().any(|s| matches!(s, Stmt::Store { .. }));
        for (j, s) in instr.semantics.iter().enumerate() {
            // A `let` may stand for a register until its last user.
            let later = m > n
                || (m == n && j > k)
                || match s {
                    Stmt::Store { .. } => true,
                    Stmt::Let { .. } => stores || (m == n && last > k),
                    _ => false,
                };
            if later {
                statement_reads(inst, s, &mut |r| found |= r == reg);
            }
        }
    }
    found
}

/// Can evaluating this stop the program?
pub(crate) fn may_stop(e: &Expr) -> bool {
    match e {
        Expr::Load { .. } => true,
        Expr::Bin { op, a, b, .. } => op.may_trap() || may_stop(a) || may_stop(b),
        Expr::Cmp { a, b, .. } | Expr::FlagsSub { a, b, .. } | Expr::FlagsAdd { a, b, .. } => {
            may_stop(a) || may_stop(b)
        }
        Expr::Un { a, .. }
        | Expr::Slice { a, .. }
        | Expr::Linear { a, .. }
        | Expr::MatVec { a, .. }
        | Expr::FlagsLogic { a, .. } => may_stop(a),
        Expr::Select { cond, then, els } => may_stop(cond) || may_stop(then) || may_stop(els),
        Expr::Table { index, .. } => may_stop(index),
        Expr::FlagsTest { flags, .. } => may_stop(flags),
        _ => false,
    }
}
