//! An operation as the line of semantics that an instruction for it would have: what
//! someone who writes a machine file is told that it lacks.

use ciphermill_ir::{BinOp, CmpOp, MemAccess, Op, UnOp};

/// The semantics of an instruction that would do `op` with registers `a`, `b` and `c`.
pub fn semantics(op: Op) -> String {
    match op {
        Op::Const(value) => format!("`rd = imm` where imm is {:#x}", value),
        Op::Bin(op) => format!("`rd = {}`", binary(op)),
        Op::Un(op) => format!("`rd = {}(a)`", unary(op)),
        Op::Cmp(op) => format!("`rd = a {} b`", comparison(op)),
        Op::Select => "`rd = c ? a : b`, nor a branch".to_owned(),
        Op::Wrap => "`rd = a[31:0]`".to_owned(),
        Op::ZExt => "`rd = zext32(a)`".to_owned(),
        Op::SExt => "`rd = sext32(a)`".to_owned(),
        Op::Load(access) => format!("`rd = {}[a]`", memory(access)),
        Op::Store(access) => format!("`{}[a] = b`", memory(MemAccess { signed: false, ..access })),
        other => format!("{other:?}"),
    }
}

fn binary(op: BinOp) -> &'static str {
    match op {
        BinOp::Add => "a + b",
        BinOp::Sub => "a - b",
        BinOp::Mul => "a * b",
        BinOp::MulHiU => "mulhu(a, b)",
        BinOp::MulHiS => "mulhs(a, b)",
        BinOp::DivU => "a /u b",
        BinOp::DivS => "a /s b",
        BinOp::RemU => "a %u b",
        BinOp::RemS => "a %s b",
        BinOp::And => "a & b",
        BinOp::Or => "a | b",
        BinOp::Xor => "a ^ b",
        BinOp::Shl => "a << b",
        BinOp::ShrU => "a >>u b",
        BinOp::ShrS => "a >>s b",
        BinOp::RotL => "rotl(a, b)",
        BinOp::RotR => "rotr(a, b)",
    }
}

fn unary(op: UnOp) -> &'static str {
    match op {
        UnOp::Clz => "clz",
        UnOp::Ctz => "ctz",
        UnOp::Popcnt => "popcnt",
        UnOp::SExt8 => "sext8",
        UnOp::SExt16 => "sext16",
        UnOp::SExt32 => "sext32",
        UnOp::Bswap => "bswap",
    }
}

fn comparison(op: CmpOp) -> &'static str {
    match op {
        CmpOp::Eq => "==",
        CmpOp::Ne => "!=",
        CmpOp::LtU => "<u",
        CmpOp::LtS => "<s",
        CmpOp::LeU => "<=u",
        CmpOp::LeS => "<=s",
    }
}

fn memory(access: MemAccess) -> String {
    format!("mem{}{}", 8 * access.bytes, if access.signed { "s" } else { "" })
}
