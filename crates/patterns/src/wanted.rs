//! An operation as the line of semantics that an instruction for it would have: what
//! someone who writes a machine file is told that it lacks.

use ciphermill_ir::{Op, UnOp};
use ciphermill_machine::print::{Names, statements};
use ciphermill_machine::sem::{Dest, Expr, Stmt};
use ciphermill_machine::{Operand, OperandKind};

/// Width of the operators in the text: they are printed without one.
const WORD: u8 = 32;

/// The semantics of an instruction that would do `op` with registers `a`, `b` and `c`.
pub fn semantics(op: Op) -> String {
    let [a, b, c] = [0, 1, 2].map(|i| Box::new(Expr::Operand(i)));
    let value = match op {
        Op::Const(value) => return format!("`rd = imm` where imm is {value:#x}"),
        Op::Bin(op) => Expr::Bin { op, bits: WORD, a, b },
        Op::Un(op) => Expr::Un { op, bits: WORD, a },
        Op::Cmp(op) => Expr::Cmp { op, bits: WORD, a, b },
        Op::Select => return format!("{}, nor a branch", line(Expr::Select { cond: c, then: a, els: b })),
        Op::Wrap | Op::ZExt => Expr::Slice { a, lo: 0, width: 32 },
        Op::SExt => Expr::Un { op: UnOp::SExt32, bits: WORD, a },
        Op::Load(access) => Expr::Load { bytes: access.bytes, signed: access.signed, addr: a },
        Op::Store(access) => return quoted(Stmt::Store { bytes: access.bytes, addr: *a, value: *b }),
        other => return format!("{other:?}"),
    };
    line(value)
}

fn line(value: Expr) -> String {
    quoted(Stmt::Assign { dest: Dest::Operand(3), value })
}

fn quoted(statement: Stmt) -> String {
    let operands = ["a", "b", "c", "rd"].map(|name| Operand {
        name: name.to_owned(),
        kind: OperandKind::Reg { file: 0, def: name == "rd", used: name != "rd" },
    });
    let names = Names { word: WORD, operands: &operands, regs: &[], tables: &[] };
    format!("`{}`", statements(&[statement], names))
}

#[cfg(test)]
mod tests {
    use super::semantics;
    use ciphermill_ir::{BinOp, CmpOp, MemAccess, Op, Space, UnOp};

    #[test]
    fn an_operation_reads_as_a_machine_file_writes_it() {
        assert_eq!(semantics(Op::Bin(BinOp::ShrS)), "`rd = a >>s b`");
        assert_eq!(semantics(Op::Bin(BinOp::MulHiU)), "`rd = mulhu(a, b)`");
        assert_eq!(semantics(Op::Un(UnOp::Clz)), "`rd = clz(a)`");
        assert_eq!(semantics(Op::Cmp(CmpOp::LtU)), "`rd = a <u b`");
        assert_eq!(semantics(Op::Select), "`rd = c ? a : b`, nor a branch");
        assert_eq!(semantics(Op::Wrap), "`rd = a[31:0]`");
        let access = MemAccess { bytes: 2, signed: true, align: 2, offset: 0, space: Space::Linear };
        assert_eq!(semantics(Op::Load(access)), "`rd = mem16s[a]`");
        assert_eq!(semantics(Op::Store(access)), "`mem16[a] = b`");
    }
}
