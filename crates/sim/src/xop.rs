//! Small operations ("xops"): what instructions become before they run.
//!
//! A tree of semantics is walked once, when its instruction is decoded, and
//! leaves a few three-address operations behind: `slot[d] = slot[a] op
//! slot[b]`. Slots are one flat array of 64-bit values: the machine's
//! registers, then a few reserved places, temporaries, and a pool of constants.
//! Immediates are slots too, so no operation asks where its operands come from.
//! An xop is eight bytes; one that needs a fourth operand is followed by an
//! [`Op::Data`] xop that carries it.
//!
//! Values narrower than 64 bits are held zero-extended. `…32` operators read
//! the low halves of their operands and write zero-extended results.

use ciphermill_ir::{BinOp, CmpOp, Space, UnOp};

/// Index into the slot array.
pub type Slot = u16;

/// What an xop does. The comments use `d`, `a`, `b` for the slots' values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u16)]
pub enum Op {
    /// Carries operands of the xop before it; never executed.
    Data,
    Mov,
    Add32,
    Sub32,
    Mul32,
    And32,
    Or32,
    Xor32,
    Shl32,
    ShrU32,
    ShrS32,
    RotL32,
    RotR32,
    MulHiU32,
    MulHiS32,
    Add64,
    Sub64,
    Mul64,
    And64,
    Or64,
    Xor64,
    Shl64,
    ShrU64,
    ShrS64,
    RotL64,
    RotR64,
    Eq32,
    Ne32,
    LtU32,
    LtS32,
    LeU32,
    LeS32,
    Eq64,
    Ne64,
    LtU64,
    LtS64,
    LeU64,
    LeS64,
    SExt8In32,
    SExt16In32,
    Bswap32,
    /// Any binary operator at any width; Data: `d` = operator, `a` = bits.
    /// Divisions, which may trap, are always this.
    Bin,
    /// Any comparison at any width; Data: `d` = operator, `a` = bits.
    Cmp,
    /// `d = un(a)`; the field `b` is operator + bits * 256.
    Un,
    /// `d = a != 0 ? b : data.a`.
    Select,
    /// Skip the field `b` xops when `a` is zero.
    SkipIfZero,
    /// Skip the field `b` xops.
    Skip,
    /// Field `b` is lo + width * 256.
    Slice,
    /// Field `b` is the table's number.
    Table,
    /// Field `b` is the number of a matrix over GF(2).
    Linear,
    /// Bit i of `d` is the parity of `a` and row i; row 0 is in the `d` slots from `b` on, each of `b` bits, of Data, whose
    /// `a` is the number of rows.
    MatVec,
    FlagsSub32,
    FlagsSub64,
    FlagsAdd32,
    FlagsAdd64,
    FlagsLogic32,
    FlagsLogic64,
    /// `d = (b >> a) & 1` with the field `b` itself as a 16-entry truth table.
    FlagsTest,
    // Loads: d = mem[a + b]; the letter is the space.
    LdL8,
    LdL16,
    LdL32,
    LdL64,
    LdK8,
    LdK16,
    LdK32,
    LdK64,
    LdY8,
    LdY16,
    LdY32,
    LdY64,
    /// Of flash, and of RAM where there is flash.
    LdF8,
    LdF16,
    LdR8,
    LdR16,
    /// Linear, at any address.
    LdU32,
    /// Signed loads into 32 bits.
    LdL8S,
    LdL16S,
    // Stores: mem[a + b] = d.
    StL8,
    StL16,
    StL32,
    StL64,
    /// Linear, at any address.
    StU32,
    StK8,
    StK16,
    StK32,
    StK64,
    StY8,
    StY16,
    StY32,
    StY64,
    /// The `b` slots from `a` on each take the value of the one before; the first
    /// takes the last one's.
    Rotate,
    WindowSave,
    WindowRestore,
    /// Tell the hook that the xops of instruction `a` of the bundle follow.
    Mark,
    Trap,
    /// Leave by exit 0.
    End,
    /// Leave by exit 0 when `a` is not zero, else by exit 1.
    EndIf,
    /// Leave by exit 1 when `a` is zero, else go on (annulled delay slots).
    EndUnless,
    EndEq32,
    EndNe32,
    EndLtU32,
    EndLtS32,
    EndLeU32,
    EndLeS32,
    /// Leave to the code address `a`.
    EndTo,
    /// Leave to the code address `b` when `a` is not zero, else by exit 1.
    EndToIf,
}

/// One small operation.
#[derive(Clone, Copy, Debug)]
pub struct Xop {
    pub op: Op,
    pub d: u16,
    pub a: u16,
    pub b: u16,
}

/// Operators by the number that [`Op::Bin`] carries.
pub const BIN_OPS: [BinOp; 17] = {
    use BinOp::*;
    [Add, Sub, Mul, MulHiU, MulHiS, DivU, DivS, RemU, RemS, And, Or, Xor, Shl, ShrU, ShrS, RotL, RotR]
};
/// Comparisons by the number that [`Op::Cmp`] carries.
pub const CMP_OPS: [CmpOp; 6] = [CmpOp::Eq, CmpOp::Ne, CmpOp::LtU, CmpOp::LtS, CmpOp::LeU, CmpOp::LeS];
/// Operators by the number that [`Op::Un`] carries.
pub const UN_OPS: [UnOp; 7] =
    [UnOp::Clz, UnOp::Ctz, UnOp::Popcnt, UnOp::SExt8, UnOp::SExt16, UnOp::SExt32, UnOp::Bswap];

/// Place of an operator in one of the lists above.
pub fn code_of<T: PartialEq>(list: &[T], x: &T) -> u16 {
    list.iter().position(|y| y == x).unwrap_or(0) as u16
}

/// Truth table over the four condition bits (N Z V C from bit 3 down).
pub fn flags_table(op: CmpOp) -> u16 {
    let mut table = 0;
    for f in 0..16u16 {
        let (n, z, v, c) = (f & 8 != 0, f & 4 != 0, f & 2 != 0, f & 1 != 0);
        let holds = match op {
            CmpOp::Eq => z,
            CmpOp::Ne => !z,
            CmpOp::LtU => c,
            CmpOp::LeU => c || z,
            CmpOp::LtS => n != v,
            CmpOp::LeS => z || n != v,
        };
        table |= u16::from(holds) << f;
    }
    table
}

/// The fast form of a binary operator at a width, where there is one.
pub fn fast_bin(op: BinOp, bits: u8) -> Option<Op> {
    use BinOp::*;
    Some(match (op, bits) {
        (Add, 32) => Op::Add32,
        (Sub, 32) => Op::Sub32,
        (Mul, 32) => Op::Mul32,
        (MulHiU, 32) => Op::MulHiU32,
        (MulHiS, 32) => Op::MulHiS32,
        (And, 32) => Op::And32,
        (Or, 32) => Op::Or32,
        (Xor, 32) => Op::Xor32,
        (Shl, 32) => Op::Shl32,
        (ShrU, 32) => Op::ShrU32,
        (ShrS, 32) => Op::ShrS32,
        (RotL, 32) => Op::RotL32,
        (RotR, 32) => Op::RotR32,
        (Add, 64) => Op::Add64,
        (Sub, 64) => Op::Sub64,
        (Mul, 64) => Op::Mul64,
        (And, 64) => Op::And64,
        (Or, 64) => Op::Or64,
        (Xor, 64) => Op::Xor64,
        (Shl, 64) => Op::Shl64,
        (ShrU, 64) => Op::ShrU64,
        (ShrS, 64) => Op::ShrS64,
        (RotL, 64) => Op::RotL64,
        (RotR, 64) => Op::RotR64,
        _ => return None,
    })
}

/// The fast form of a comparison at a width, where there is one.
pub fn fast_cmp(op: CmpOp, bits: u8) -> Option<Op> {
    use CmpOp::*;
    Some(match (op, bits) {
        (Eq, 32) => Op::Eq32,
        (Ne, 32) => Op::Ne32,
        (LtU, 32) => Op::LtU32,
        (LtS, 32) => Op::LtS32,
        (LeU, 32) => Op::LeU32,
        (LeS, 32) => Op::LeS32,
        (Eq, 64) => Op::Eq64,
        (Ne, 64) => Op::Ne64,
        (LtU, 64) => Op::LtU64,
        (LtS, 64) => Op::LtS64,
        (LeU, 64) => Op::LeU64,
        (LeS, 64) => Op::LeS64,
        _ => return None,
    })
}

/// The leaving form of a 32-bit comparison.
pub fn end_cmp(op: CmpOp) -> Op {
    match op {
        CmpOp::Eq => Op::EndEq32,
        CmpOp::Ne => Op::EndNe32,
        CmpOp::LtU => Op::EndLtU32,
        CmpOp::LtS => Op::EndLtS32,
        CmpOp::LeU => Op::EndLeU32,
        CmpOp::LeS => Op::EndLeS32,
    }
}

/// The load of so many bytes from a space; `anywhere`: at any address.
pub fn load_op(bytes: u8, space: Space, anywhere: bool) -> Option<Op> {
    use Space::*;
    Some(match (bytes, space) {
        (4, Linear) if anywhere => Op::LdU32,
        (1, Linear) => Op::LdL8,
        (2, Linear) => Op::LdL16,
        (4, Linear) => Op::LdL32,
        (8, Linear) => Op::LdL64,
        (1, Stack) => Op::LdK8,
        (2, Stack) => Op::LdK16,
        (4, Stack) => Op::LdK32,
        (8, Stack) => Op::LdK64,
        (1, System) => Op::LdY8,
        (2, System) => Op::LdY16,
        (4, System) => Op::LdY32,
        (8, System) => Op::LdY64,
        (1, Flash) => Op::LdF8,
        (2, Flash) => Op::LdF16,
        _ => return None,
    })
}

/// The load of so many bytes from RAM where there may be flash beside it.
pub fn load_ram_op(bytes: u8) -> Option<Op> {
    match bytes {
        1 => Some(Op::LdR8),
        2 => Some(Op::LdR16),
        _ => None,
    }
}

/// The store of so many bytes to a space; `anywhere`: at any address.
pub fn store_op(bytes: u8, space: Space, anywhere: bool) -> Option<Op> {
    use Space::*;
    Some(match (bytes, space) {
        (4, Linear) if anywhere => Op::StU32,
        (1, Linear) => Op::StL8,
        (2, Linear) => Op::StL16,
        (4, Linear) => Op::StL32,
        (8, Linear) => Op::StL64,
        (1, Stack) => Op::StK8,
        (2, Stack) => Op::StK16,
        (4, Stack) => Op::StK32,
        (8, Stack) => Op::StK64,
        (1, System) => Op::StY8,
        (2, System) => Op::StY16,
        (4, System) => Op::StY32,
        (8, System) => Op::StY64,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_tables_agree_with_comparison() {
        let samples = [0u32, 1, 2, 0x7fff_ffff, 0x8000_0000, 0x8000_0001, u32::MAX];
        for &a in &samples {
            for &b in &samples {
                let r = a.wrapping_sub(b);
                let v = ((a ^ b) & (a ^ r)) >> 31;
                let flags = (r >> 31) << 3 | u32::from(r == 0) << 2 | v << 1 | u32::from(a < b);
                for op in CMP_OPS {
                    let holds = flags_table(op) >> flags & 1 == 1;
                    assert_eq!(holds, op.eval(u64::from(a), u64::from(b), 32), "{op:?} {a:#x} {b:#x}");
                }
            }
        }
    }
}
