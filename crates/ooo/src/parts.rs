//! Registers that are written in part.
//!
//! An instruction that leaves part of its result register as it was makes two
//! things: the part, for who reads no more than that, and the whole register, for
//! who reads more, which the core may have to put together first. So a register
//! that a program writes in part anywhere has a second number here, its *whole*:
//! every instruction that writes the register makes both, at the same time unless it wrote a part; who reads
//! a byte of it reads the first, everyone else the second. Registers that are
//! always written whole have one number, and programs without partial writes pay
//! nothing.
//!
//! Bytes other than the lowest are taken for the whole register; that a register known to be zero
//! may be read whole behind a write of its part is not modelled.

use ciphermill_ir::BinOp;
use ciphermill_machine::core::{Core, PartialReads};
use ciphermill_machine::sem::{Dest, Expr, Stmt};
use ciphermill_machine::{Machine, Reg};
use ciphermill_program::{Inst, Operand};

/// The second numbers of registers.
#[derive(Clone, Default, Debug)]
pub struct Wholes {
    /// By register; 0: it has none.
    second: Vec<u16>,
    /// First number that is no register's.
    pub end: u16,
    /// What putting a register together takes.
    late: u16,
}

impl Wholes {
    /// Of a program's registers.
    pub fn new<'i>(machine: &Machine, core: &Core, insts: impl Iterator<Item = &'i Inst>) -> Wholes {
        let mut second = vec![0; machine.regs.len()];
        let mut end = machine.regs.len() as u16;
        let list = if core.rename.partial_reads == PartialReads::Free { None } else { Some(insts) };
        for inst in list.into_iter().flatten() {
            let instr = &machine.instrs[usize::from(inst.instr.0)];
            for stmt in &instr.semantics {
                if let Stmt::Assign { dest, value } = stmt
                    && let Some(r) = dest_of(inst, dest).filter(|&r| writes_part(inst, r, value))
                    && second[usize::from(r.0)] == 0
                {
                    second[usize::from(r.0)] = end;
                    end += 1;
                }
            }
        }
        let late = if core.rename.partial_reads == PartialReads::Late { core.rename.partial_cycles as u16 } else { 0 };
        Wholes { second, end, late }
    }

    /// The number under which all of a register is read.
    pub fn of(&self, r: Reg) -> u16 {
        match self.second[usize::from(r.0)] {
            0 => r.0,
            whole => whole,
        }
    }

    /// The same, if it is another one than the register's.
    pub fn second(&self, r: u16) -> Option<u16> {
        self.second.get(usize::from(r)).copied().filter(|&w| w != 0)
    }

    /// How much later the whole is there.
    pub fn late(&self, part: bool) -> u16 {
        if part { self.late } else { 0 }
    }
}

/// Does the value keep part of what is in the register: `(r & mask) | ...`?
pub fn writes_part(inst: &Inst, r: Reg, value: &Expr) -> bool {
    let kept = |e: &Expr| {
        matches!(e, Expr::Bin { op: BinOp::And, a, b, .. }
            if register(inst, a) == Some(r) && matches!(**b, Expr::Const(_) | Expr::Imm(_)))
    };
    matches!(value, Expr::Bin { op: BinOp::Or, a, b, .. } if kept(a) || kept(b))
}

/// The register that an operand, or a name, means.
pub fn register(inst: &Inst, e: &Expr) -> Option<Reg> {
    match e {
        Expr::Operand(i) => match inst.operands.get(*i) {
            Some(Operand::Reg(r)) => Some(*r),
            _ => None,
        },
        Expr::Fixed(r) => Some(*r),
        _ => None,
    }
}

/// The register that is assigned.
pub fn dest_of(inst: &Inst, dest: &Dest) -> Option<Reg> {
    match dest {
        Dest::Fixed(r) => Some(*r),
        Dest::Operand(i) => register(inst, &Expr::Operand(*i)),
    }
}
