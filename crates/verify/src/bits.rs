//! Bits that a value may have, worked out from the semantics of what makes it. Nothing is known of the
//! bits of a register that is only found.

use crate::code::{Arg, Inst};
use ciphermill_ir::{BinOp, UnOp};
use ciphermill_machine::sem::{Expr, Stmt};
use ciphermill_machine::{Instr, Machine, OperandKind};
use std::cell::RefCell;

/// An instruction whose operands' bits `read` finds.
pub(crate) struct Reader<'a> {
    machine: &'a Machine,
    instr: &'a Instr,
    inst: &'a Inst,
    read: &'a dyn Fn(usize) -> u64,
    /// Temporaries whose bits have been worked out.
    temps: RefCell<Vec<(usize, u64)>>,
}

/// A number of so many bits, all of them set.
pub(crate) fn ones(bits: u64) -> u64 {
    1u64.checked_shl(bits as u32).map_or(u64::MAX, |next| next - 1)
}

/// The largest number that is as long as this one.
fn longest(x: u64) -> u64 {
    ones(u64::from(64 - x.leading_zeros()))
}

/// With that many zeros at the end.
fn behind(zeros: u32) -> u64 {
    !ones(u64::from(zeros))
}

impl<'a> Reader<'a> {
    pub fn new(machine: &'a Machine, instr: &'a Instr, inst: &'a Inst, read: &'a dyn Fn(usize) -> u64) -> Reader<'a> {
        Reader { machine, instr, inst, read, temps: RefCell::default() }
    }

    /// The bits of a register operand.
    pub fn register(&self, o: usize) -> u64 {
        match self.instr.operands.get(o).map(|o| &o.kind) {
            Some(OperandKind::Reg { file, .. }) => ones(u64::from(self.machine.files[*file].bits)),
            _ => u64::MAX,
        }
    }

    fn immediate(&self, o: usize) -> Option<u64> {
        if let Some(Arg::Imm(v)) = self.inst.args.get(o) { Some(*v as u64) } else { None }
    }

    fn number(&self, e: &Expr) -> Option<u64> {
        match e {
            Expr::Const(c) => Some(*c),
            Expr::Imm(o) => self.immediate(*o),
            _ => None,
        }
    }

    /// The bits that an expression may have.
    pub fn of(&self, e: &Expr) -> u64 {
        match e {
            Expr::Const(_) | Expr::Imm(_) => self.number(e).unwrap_or(u64::MAX),
            Expr::Operand(o) => self.immediate(*o).unwrap_or_else(|| (self.read)(*o) & self.register(*o)),
            Expr::Temp(t) => {
                if let Some(known) = self.temps.borrow().iter().find(|k| k.0 == *t) {
                    return known.1;
                }
                let bound = |s: &Stmt| {
                    if let Stmt::Let { temp, value } = s { (temp == t).then(|| self.of(value)) } else { None }
                };
                let bits = self.instr.semantics.iter().find_map(bound).unwrap_or(u64::MAX);
                self.temps.borrow_mut().push((*t, bits));
                bits
            }
            Expr::Bin { op, bits, a, b } => self.both(*op, u64::from(*bits), a, b),
            Expr::Un { op, bits, a } => {
                let sign = match op {
                    UnOp::SExt8 => 7,
                    UnOp::SExt16 => 15,
                    UnOp::SExt32 => 31,
                    _ => return ones(u64::from(*bits)),
                };
                let kept = self.of(a) & ones(sign + 1);
                if kept >> sign & 1 == 1 { ones(u64::from(*bits)) } else { kept }
            }
            Expr::Cmp { .. } | Expr::FlagsTest { .. } => 1,
            Expr::Select { then, els, .. } => self.of(then) | self.of(els),
            Expr::Slice { a, lo, width } => {
                self.of(a).checked_shr(u32::from(*lo)).unwrap_or(0) & ones(u64::from(*width))
            }
            Expr::Load { bytes, signed, .. } if !signed => ones(8 * u64::from(*bytes)),
            _ => u64::MAX,
        }
    }

    /// Those of what an operator that works in so many bits makes of two values.
    fn both(&self, op: BinOp, bits: u64, a: &Expr, b: &Expr) -> u64 {
        let full = ones(bits);
        let (x, y) = (self.of(a) & full, self.of(b) & full);
        let by = self.number(b).filter(|n| *n < bits);
        // No result is longer than the one of the largest operands, if that does not go round.
        let small = |largest: Option<u64>| largest.filter(|l| *l <= full).map_or(full, longest);
        match (op, by) {
            (BinOp::And, _) => x & y,
            (BinOp::Or | BinOp::Xor, _) => x | y,
            (BinOp::Shl, Some(by)) => x << by & full,
            (BinOp::ShrU, Some(by)) => x >> by,
            (BinOp::ShrU | BinOp::DivU, _) => longest(x),
            (BinOp::Add, _) => small(x.checked_add(y)) & behind((x | y).trailing_zeros()),
            (BinOp::Sub, _) => full & behind((x | y).trailing_zeros()),
            (BinOp::Mul, _) => small(x.checked_mul(y)) & behind(x.trailing_zeros() + y.trailing_zeros()),
            _ => full,
        }
    }
}
