//! Operations, their types, and their meaning on constants.
//!
//! The binary, unary and comparison operators are shared with the semantics
//! language of machine files, so that folding a constant, selecting an
//! instruction and simulating it agree by construction. Their judge is
//! `wasmi`, which shares nothing with them.

use crate::ids::{FuncId, GlobalId, SigId};
use serde::{Deserialize, Serialize};

/// The type of an SSA value. Comparison results are `I32` holding 0 or 1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Type {
    I32,
    I64,
}

impl Type {
    /// Width in bits: 32 or 64.
    pub fn bits(self) -> u32 {
        match self {
            Type::I32 => 32,
            Type::I64 => 64,
        }
    }

    /// The type of a machine's words, of 32 or 64 bits.
    pub fn of_word(bits: u32) -> Type {
        if bits == 64 { Type::I64 } else { Type::I32 }
    }

    /// All ones in the width of this type.
    pub fn mask(self) -> u64 {
        mask(self.bits())
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Signature {
    pub params: Vec<Type>,
    pub results: Vec<Type>,
}

/// All ones in the low `bits` bits; `bits` is 1 to 64.
pub fn mask(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1u64 << bits) - 1 }
}

/// Sign-extend the low `bits` bits of `x` to 64 bits.
pub fn sext(x: u64, bits: u32) -> i64 {
    let s = 64 - bits;
    ((x << s) as i64) >> s
}

/// Operators of two operands of one type with a result of that type.
///
/// Shift and rotate amounts are taken modulo the width, as in WebAssembly.
/// `MulHiU` and `MulHiS` are the upper half of the double-width product; no
/// WebAssembly operator makes them, the 64-bit lowering does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord, Serialize, Deserialize)]
pub enum BinOp {
    Add,
    Sub,
    Mul,
    MulHiU,
    MulHiS,
    DivU,
    DivS,
    RemU,
    RemS,
    And,
    Or,
    Xor,
    Shl,
    ShrU,
    ShrS,
    RotL,
    RotR,
}

impl BinOp {
    /// True when the operands may be exchanged.
    pub fn commutes(self) -> bool {
        use BinOp::*;
        matches!(self, Add | Mul | MulHiU | MulHiS | And | Or | Xor)
    }

    /// True when WebAssembly gives the operation a trap (division only).
    pub fn may_trap(self) -> bool {
        use BinOp::*;
        matches!(self, DivU | DivS | RemU | RemS)
    }

    /// The value of the operation in `bits` bits, or `None` where WebAssembly
    /// traps (division by zero, overflow of signed division).
    pub fn eval(self, a: u64, b: u64, bits: u32) -> Option<u64> {
        use BinOp::*;
        let m = mask(bits);
        let (a, b) = (a & m, b & m);
        let n = (b % u64::from(bits)) as u32;
        let (sa, sb) = (sext(a, bits), sext(b, bits));
        let r = match self {
            Add => a.wrapping_add(b),
            Sub => a.wrapping_sub(b),
            Mul => a.wrapping_mul(b),
            MulHiU => ((u128::from(a) * u128::from(b)) >> bits) as u64,
            MulHiS => ((i128::from(sa) * i128::from(sb)) >> bits) as u64,
            DivU => a.checked_div(b)?,
            RemU => a.checked_rem(b)?,
            DivS if b == 0 || (sb == -1 && a == 1u64 << (bits - 1)) => return None,
            DivS => sa.wrapping_div(sb) as u64,
            RemS if b == 0 => return None,
            RemS => sa.wrapping_rem(sb) as u64,
            And => a & b,
            Or => a | b,
            Xor => a ^ b,
            Shl => a << n,
            ShrU => a >> n,
            ShrS => (sa >> n) as u64,
            RotL => (a << n) | (a >> ((bits - n) % bits)),
            RotR => (a >> n) | (a << ((bits - n) % bits)),
        };
        Some(r & m)
    }
}

/// Operators of one operand. `SExt8`, `SExt16` and `SExt32` extend the sign of
/// the low part within the type. `Bswap` reverses the bytes of the type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord, Serialize, Deserialize)]
pub enum UnOp {
    Clz,
    Ctz,
    Popcnt,
    SExt8,
    SExt16,
    SExt32,
    Bswap,
}

impl UnOp {
    /// The value of the operation in `bits` bits.
    pub fn eval(self, a: u64, bits: u32) -> u64 {
        let m = mask(bits);
        let a = a & m;
        let r = match self {
            UnOp::Clz => u64::from(a.leading_zeros()) - u64::from(64 - bits),
            UnOp::Ctz if a == 0 => u64::from(bits),
            UnOp::Ctz => u64::from(a.trailing_zeros()),
            UnOp::Popcnt => u64::from(a.count_ones()),
            UnOp::SExt8 => sext(a, 8) as u64,
            UnOp::SExt16 => sext(a, 16) as u64,
            UnOp::SExt32 => sext(a, 32) as u64,
            UnOp::Bswap => a.swap_bytes() >> (64 - bits),
        };
        r & m
    }
}

/// Comparisons. Greater-than forms are written with the operands exchanged.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord, Serialize, Deserialize)]
pub enum CmpOp {
    Eq,
    Ne,
    LtU,
    LtS,
    LeU,
    LeS,
}

impl CmpOp {
    /// Compare two values of `bits` bits.
    pub fn eval(self, a: u64, b: u64, bits: u32) -> bool {
        let m = mask(bits);
        let (a, b) = (a & m, b & m);
        let (sa, sb) = (sext(a, bits), sext(b, bits));
        match self {
            CmpOp::Eq => a == b,
            CmpOp::Ne => a != b,
            CmpOp::LtU => a < b,
            CmpOp::LtS => sa < sb,
            CmpOp::LeU => a <= b,
            CmpOp::LeS => sa <= sb,
        }
    }

    /// The comparison that is true exactly when this one is false, and whether
    /// its operands are exchanged.
    pub fn negated(self) -> (CmpOp, bool) {
        match self {
            CmpOp::Eq => (CmpOp::Ne, false),
            CmpOp::Ne => (CmpOp::Eq, false),
            CmpOp::LtU => (CmpOp::LeU, true),
            CmpOp::LtS => (CmpOp::LeS, true),
            CmpOp::LeU => (CmpOp::LtU, true),
            CmpOp::LeS => (CmpOp::LtS, true),
        }
    }
}

/// What [`Op::Chain`] does with values of several words, which stand lowest word first.
///
/// A machine does it by a chain of instructions that hand a carry on, so nothing may come between
/// them: each is one operation here.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Chain {
    /// Operands: the words of a, then as many of b. Results: those of a + b.
    Add,
    /// The same of a - b.
    Sub,
    /// Operands and results: a shifted right by one bit, a zero coming in.
    ShrU,
    /// The same, the sign coming in.
    ShrS,
    /// a rotated by one bit.
    RotL,
    RotR,
    /// Operands: two words. Results: the lower and the upper word of their product.
    Mul,
    /// The two halves of one word exchanged.
    Swap,
    /// Operands as of `Add`. Result: a word of ones where a is less than b, both unsigned, or of zeros.
    Below,
    /// Operands as of `Add`. Result 1 or 0, for the branch right behind it.
    Compare(CmpOp),
}

impl Chain {
    /// How many results there are with so many operands.
    pub fn results(self, operands: usize) -> usize {
        match self {
            Chain::Add | Chain::Sub => operands / 2,
            Chain::ShrU | Chain::ShrS | Chain::RotL | Chain::RotR => operands,
            Chain::Mul => 2,
            Chain::Swap | Chain::Below | Chain::Compare(_) => 1,
        }
    }

    /// The results, from operands of `bits` bits each, of which there are no more than 64 bits together.
    pub fn eval(self, args: &[u64], bits: u32) -> Vec<u64> {
        let join = |words: &[u64]| words.iter().rev().fold(0, |all, w| all << bits | w & mask(bits));
        let width = args.len() as u32 * bits;
        let split =
            |all: u64, words: usize| (0..words as u32).map(|i| all >> (i * bits) & mask(bits)).collect::<Vec<u64>>();
        let whole = || join(args);
        let (a, b) = args.split_at(args.len() / 2);
        let binary = |op: BinOp| split(op.eval(join(a), join(b), width / 2).unwrap_or(0), a.len());
        let unary = |op: BinOp| split(op.eval(whole(), 1, width).unwrap_or(0), args.len());
        match self {
            Chain::Add => binary(BinOp::Add),
            Chain::Sub => binary(BinOp::Sub),
            Chain::ShrU => unary(BinOp::ShrU),
            Chain::ShrS => unary(BinOp::ShrS),
            Chain::RotL => unary(BinOp::RotL),
            Chain::RotR => unary(BinOp::RotR),
            Chain::Mul => split((a[0] & mask(bits)) * (b[0] & mask(bits)), 2),
            Chain::Swap => split(BinOp::RotL.eval(args[0], u64::from(bits / 2), bits).unwrap_or(0), 1),
            Chain::Below => vec![if join(a) < join(b) { mask(bits) } else { 0 }],
            Chain::Compare(op) => vec![u64::from(op.eval(join(a), join(b), width / 2))],
        }
    }
}

/// Which memory an access means. The simulator holds the two apart: a
/// WebAssembly address never reaches the system area, however large it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Space {
    /// The module's linear memory.
    Linear,
    /// Globals, table, passive segments: written by the compiler's own code.
    System,
    /// The machine's stack: spills, saved registers, return addresses.
    Stack,
    /// Constants of linear memory that lie in the memory that code is in, at the same addresses, and that instructions
    /// of their own read.
    Flash,
}

/// The shape of a load or store: how many bytes at `address + offset`.
///
/// The effective address is the mathematical sum: it does not wrap.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MemAccess {
    /// 1, 2, 4 or 8; at most the width of the value's type.
    pub bytes: u8,
    /// Loads narrower than their type: extend the sign.
    pub signed: bool,
    /// Alignment of the effective address in bytes that the module states
    /// (the memarg's hint): 1 up to `bytes`. A promise the simulator checks;
    /// under strict traps nothing relies on it.
    pub align: u8,
    /// Constant added to the address operand, in bytes.
    pub offset: u32,
    pub space: Space,
}

/// Why a run stopped short. The codes are those of the WebAssembly
/// specification, and two of our own for machines.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum TrapCode {
    Unreachable,
    MemoryOutOfBounds,
    TableOutOfBounds,
    IndirectCallToNull,
    BadSignature,
    IntegerOverflow,
    IntegerDivisionByZero,
    StackOverflow,
}

/// What an instruction computes. Operands stand in [`crate::InstData::args`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    /// No operands; the bits of the constant, zero above the type's width.
    Const(u64),
    Bin(BinOp),
    Un(UnOp),
    /// Operands of one type, result `I32`.
    Cmp(CmpOp),
    /// `args = [condition (I32), if_nonzero, if_zero]`.
    Select,
    /// I64 to I32, dropping the upper half.
    Wrap,
    /// I32 to I64.
    ZExt,
    /// I32 to I64.
    SExt,
    /// `args = [address (I32)]`.
    Load(MemAccess),
    /// `args = [address (I32), value]`; no result.
    Store(MemAccess),
    GlobalGet(GlobalId),
    /// `args = [value]`; no result.
    GlobalSet(GlobalId),
    /// Operands and results by the callee's signature.
    Call(FuncId),
    /// `args = [code address (I32), operands ...]`; the signature has been
    /// checked by code before.
    CallPtr(SigId),
    /// A function of words that the machine has an instruction for, by its
    /// number. Only the code generator makes it (`codegen::recognise`) and knows
    /// what it computes; equal operands give an equal result.
    Apply(u16),
    /// An operation on values of several words of so many bits, of which each is an `I32` with
    /// zeros above ([`Chain`]). Only the split into words narrower than 32 bits makes it.
    Chain(Chain, u8),
}

impl Op {
    /// True when the instruction must stay and keep its place among other such
    /// instructions: it writes, calls, or may trap.
    ///
    /// Loads may trap too; whether that counts is the pass's business (see
    /// `opt`), so a load is not an effect here.
    pub fn has_effect(self) -> bool {
        match self {
            Op::Store(_) | Op::GlobalSet(_) | Op::Call(_) | Op::CallPtr(_) => true,
            Op::Bin(b) => b.may_trap(),
            _ => false,
        }
    }

    /// True when equal operands always give an equal result.
    pub fn is_pure(self) -> bool {
        match self {
            Op::Const(_)
            | Op::Un(_)
            | Op::Cmp(_)
            | Op::Select
            | Op::Wrap
            | Op::ZExt
            | Op::SExt
            | Op::Apply(_)
            | Op::Chain(..) => true,
            Op::Bin(b) => !b.may_trap(),
            _ => false,
        }
    }
}
