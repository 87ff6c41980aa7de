//! The operators that only compute: one WebAssembly operator, one operation.

use ciphermill_ir::{BinOp, CmpOp, MemAccess, Op, Space, Type, UnOp};
use wasmparser::{MemArg, MemArgTarget, Operator};

/// What a computing operator means.
pub(crate) enum Numeric {
    Const(Type, u64),
    Bin(Type, BinOp),
    Un(Type, UnOp),
    /// The flag says that the operands are exchanged.
    Cmp(CmpOp, bool),
    /// A comparison of the one operand, of this type, with zero.
    Eqz(Type),
    /// A conversion to the given type.
    Convert(Type, Op),
    Load(Type, MemAccess),
    Store(MemAccess),
}

/// The meaning of an operator, if it is one that only computes.
pub(crate) fn numeric(op: &Operator<'_>) -> Option<Numeric> {
    use Operator as O;
    use Type::{I32, I64};
    let load = |ty, bytes, signed, memarg: &MemArg| Numeric::Load(ty, access(bytes, signed, memarg));
    let store = |bytes, memarg: &MemArg| Numeric::Store(access(bytes, false, memarg));
    Some(match op {
        O::I32Const { value } => Numeric::Const(I32, u64::from(*value as u32)),
        O::I64Const { value } => Numeric::Const(I64, *value as u64),

        O::I32Add => Numeric::Bin(I32, BinOp::Add),
        O::I32Sub => Numeric::Bin(I32, BinOp::Sub),
        O::I32Mul => Numeric::Bin(I32, BinOp::Mul),
        O::I32DivS => Numeric::Bin(I32, BinOp::DivS),
        O::I32DivU => Numeric::Bin(I32, BinOp::DivU),
        O::I32RemS => Numeric::Bin(I32, BinOp::RemS),
        O::I32RemU => Numeric::Bin(I32, BinOp::RemU),
        O::I32And => Numeric::Bin(I32, BinOp::And),
        O::I32Or => Numeric::Bin(I32, BinOp::Or),
        O::I32Xor => Numeric::Bin(I32, BinOp::Xor),
        O::I32Shl => Numeric::Bin(I32, BinOp::Shl),
        O::I32ShrS => Numeric::Bin(I32, BinOp::ShrS),
        O::I32ShrU => Numeric::Bin(I32, BinOp::ShrU),
        O::I32Rotl => Numeric::Bin(I32, BinOp::RotL),
        O::I32Rotr => Numeric::Bin(I32, BinOp::RotR),
        O::I64Add => Numeric::Bin(I64, BinOp::Add),
        O::I64Sub => Numeric::Bin(I64, BinOp::Sub),
        O::I64Mul => Numeric::Bin(I64, BinOp::Mul),
        O::I64DivS => Numeric::Bin(I64, BinOp::DivS),
        O::I64DivU => Numeric::Bin(I64, BinOp::DivU),
        O::I64RemS => Numeric::Bin(I64, BinOp::RemS),
        O::I64RemU => Numeric::Bin(I64, BinOp::RemU),
        O::I64And => Numeric::Bin(I64, BinOp::And),
        O::I64Or => Numeric::Bin(I64, BinOp::Or),
        O::I64Xor => Numeric::Bin(I64, BinOp::Xor),
        O::I64Shl => Numeric::Bin(I64, BinOp::Shl),
        O::I64ShrS => Numeric::Bin(I64, BinOp::ShrS),
        O::I64ShrU => Numeric::Bin(I64, BinOp::ShrU),
        O::I64Rotl => Numeric::Bin(I64, BinOp::RotL),
        O::I64Rotr => Numeric::Bin(I64, BinOp::RotR),

        O::I32Clz => Numeric::Un(I32, UnOp::Clz),
        O::I32Ctz => Numeric::Un(I32, UnOp::Ctz),
        O::I32Popcnt => Numeric::Un(I32, UnOp::Popcnt),
        O::I32Extend8S => Numeric::Un(I32, UnOp::SExt8),
        O::I32Extend16S => Numeric::Un(I32, UnOp::SExt16),
        O::I64Clz => Numeric::Un(I64, UnOp::Clz),
        O::I64Ctz => Numeric::Un(I64, UnOp::Ctz),
        O::I64Popcnt => Numeric::Un(I64, UnOp::Popcnt),
        O::I64Extend8S => Numeric::Un(I64, UnOp::SExt8),
        O::I64Extend16S => Numeric::Un(I64, UnOp::SExt16),
        O::I64Extend32S => Numeric::Un(I64, UnOp::SExt32),

        O::I32Eqz => Numeric::Eqz(I32),
        O::I64Eqz => Numeric::Eqz(I64),
        O::I32Eq | O::I64Eq => Numeric::Cmp(CmpOp::Eq, false),
        O::I32Ne | O::I64Ne => Numeric::Cmp(CmpOp::Ne, false),
        O::I32LtU | O::I64LtU => Numeric::Cmp(CmpOp::LtU, false),
        O::I32LtS | O::I64LtS => Numeric::Cmp(CmpOp::LtS, false),
        O::I32LeU | O::I64LeU => Numeric::Cmp(CmpOp::LeU, false),
        O::I32LeS | O::I64LeS => Numeric::Cmp(CmpOp::LeS, false),
        O::I32GtU | O::I64GtU => Numeric::Cmp(CmpOp::LtU, true),
        O::I32GtS | O::I64GtS => Numeric::Cmp(CmpOp::LtS, true),
        O::I32GeU | O::I64GeU => Numeric::Cmp(CmpOp::LeU, true),
        O::I32GeS | O::I64GeS => Numeric::Cmp(CmpOp::LeS, true),

        O::I32WrapI64 => Numeric::Convert(I32, Op::Wrap),
        O::I64ExtendI32U => Numeric::Convert(I64, Op::ZExt),
        O::I64ExtendI32S => Numeric::Convert(I64, Op::SExt),

        O::I32Load { memarg } => load(I32, 4, false, memarg),
        O::I32Load8U { memarg } => load(I32, 1, false, memarg),
        O::I32Load8S { memarg } => load(I32, 1, true, memarg),
        O::I32Load16U { memarg } => load(I32, 2, false, memarg),
        O::I32Load16S { memarg } => load(I32, 2, true, memarg),
        O::I64Load { memarg } => load(I64, 8, false, memarg),
        O::I64Load8U { memarg } => load(I64, 1, false, memarg),
        O::I64Load8S { memarg } => load(I64, 1, true, memarg),
        O::I64Load16U { memarg } => load(I64, 2, false, memarg),
        O::I64Load16S { memarg } => load(I64, 2, true, memarg),
        O::I64Load32U { memarg } => load(I64, 4, false, memarg),
        O::I64Load32S { memarg } => load(I64, 4, true, memarg),
        O::I32Store { memarg } | O::I64Store32 { memarg } => store(4, memarg),
        O::I32Store8 { memarg } | O::I64Store8 { memarg } => store(1, memarg),
        O::I32Store16 { memarg } | O::I64Store16 { memarg } => store(2, memarg),
        O::I64Store { memarg } => store(8, memarg),
        _ => return None,
    })
}

/// The shape of an access. Offsets of 32-bit memories have 32 bits, and memory
/// 1 exists only in the runtime module (see [`crate::runtime`]).
fn access(bytes: u8, signed: bool, memarg: &MemArg) -> MemAccess {
    let space = match memarg.target {
        MemArgTarget::Memory(0) => Space::Linear,
        _ => Space::System,
    };
    let align = 1u8.checked_shl(u32::from(memarg.align)).map_or(bytes, |align| align.clamp(1, bytes));
    MemAccess { bytes, signed, align, offset: memarg.offset as u32, space }
}
