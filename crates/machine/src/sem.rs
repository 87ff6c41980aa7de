//! The meaning of an instruction, as a tree.
//!
//! One tree serves everyone: the selector matches it against the program, the
//! simulator flattens it into its own operations, the assembly printer ignores
//! it, and (later) Verilog is made from it.
//!
//! All arithmetic is in the machine's word (32 or 64 bits) unless a node says
//! otherwise. A comparison gives 0 or 1.

use crate::gf2::BitMatrix;
use crate::ids::Reg;
use ciphermill_ir::{BinOp, CmpOp, UnOp};
use std::sync::Arc;

/// Index of an operand in [`crate::Instr::operands`].
pub type OperandIndex = usize;
/// Index of a table in [`crate::Machine::tables`].
pub type TableIndex = usize;
/// Index of a `let` temporary within one instruction.
pub type TempIndex = usize;

/// A matrix that registers hold, row after row, each as wide as a word.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct HeldMatrix {
    /// The register of row 0, or of its lowest bits.
    pub first: Reg,
    pub rows: u8,
    /// Registers of a row, lowest bits first.
    pub words: u8,
    /// Bits of a register.
    pub bits: u8,
}

impl HeldMatrix {
    /// All registers, in their order.
    pub fn registers(self) -> impl Iterator<Item = Reg> {
        (0..u16::from(self.rows) * u16::from(self.words)).map(move |i| Reg(self.first.0 + i))
    }

    /// Registers of a row, lowest bits first, each with the place of its lowest bit.
    pub fn row(self, row: u8) -> impl Iterator<Item = (Reg, u32)> {
        let from = self.first.0 + u16::from(row) * u16::from(self.words);
        (0..u16::from(self.words)).map(move |w| (Reg(from + w), u32::from(w) * u32::from(self.bits)))
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Expr {
    /// A register operand's value.
    Operand(OperandIndex),
    /// An immediate operand's value (already signed or scaled as declared).
    Imm(OperandIndex),
    /// The value of a register named in the semantics itself (flags, `y`).
    Fixed(Reg),
    /// A temporary bound by an earlier [`Stmt::Let`].
    Temp(TempIndex),
    Const(u64),
    /// Address of this instruction.
    Pc,
    /// `bits` is the width the operator works in (a multiple of 8 up to 64;
    /// the word by default). Operands are truncated to it, the result is
    /// zero-extended from it.
    Bin {
        op: BinOp,
        bits: u8,
        a: Box<Expr>,
        b: Box<Expr>,
    },
    Un {
        op: UnOp,
        bits: u8,
        a: Box<Expr>,
    },
    Cmp {
        op: CmpOp,
        bits: u8,
        a: Box<Expr>,
        b: Box<Expr>,
    },
    /// `cond ? then : els`; `cond` is zero or not.
    Select {
        cond: Box<Expr>,
        then: Box<Expr>,
        els: Box<Expr>,
    },
    /// Bits `lo + width - 1` down to `lo`, zero-extended.
    Slice {
        a: Box<Expr>,
        lo: u8,
        width: u8,
    },
    /// `mem8[addr]`, `mem16s[addr]` ...: `bytes` bytes in the machine's byte order.
    Load {
        bytes: u8,
        signed: bool,
        addr: Box<Expr>,
    },
    /// Entry of a constant table; the index is taken modulo the table's length.
    Table {
        table: TableIndex,
        index: Box<Expr>,
    },
    /// `linear(M, a)`, `gfmul(c, a, p)`: a constant matrix over GF(2) times the
    /// bits of `a`; input bits beyond the matrix's columns do not count.
    Linear {
        matrix: Arc<BitMatrix>,
        a: Box<Expr>,
    },
    /// `matvec(r, a)`: bit i is the parity of row i and `a`; there are as many rows as a word has bits.
    MatVec {
        matrix: HeldMatrix,
        a: Box<Expr>,
    },
    /// The four condition bits of `a - b` in `bits` (32 or 64; the word by default): bit 3 N, bit 2 Z,
    /// bit 1 V, bit 0 C (C set when a borrow occurred: `a < b` unsigned).
    FlagsSub {
        bits: u8,
        a: Box<Expr>,
        b: Box<Expr>,
    },
    /// The condition bits of `a + b`: C is the carry out.
    FlagsAdd {
        bits: u8,
        a: Box<Expr>,
        b: Box<Expr>,
    },
    /// The condition bits of a logical result: V = C = 0.
    FlagsLogic {
        bits: u8,
        a: Box<Expr>,
    },
    /// 1 when the condition bits say that a comparison `a op b` held, given
    /// `flags = FlagsSub(a, b)`.
    FlagsTest {
        op: CmpOp,
        flags: Box<Expr>,
    },
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Dest {
    Operand(OperandIndex),
    Fixed(Reg),
}

/// Statements read all registers before any is written, whatever their order:
/// only `Let` is sequential.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stmt {
    Let {
        temp: TempIndex,
        value: Expr,
    },
    Assign {
        dest: Dest,
        value: Expr,
    },
    Store {
        bytes: u8,
        addr: Expr,
        value: Expr,
    },
    /// `goto target` or `if (cond) goto target`; the target is a code address
    /// (a [`crate::OperandKind::Label`] operand read as [`Expr::Imm`], or any
    /// expression for indirect jumps).
    Goto {
        cond: Option<Expr>,
        target: Expr,
    },
    /// Stop with an error (a trap instruction; which one, the program says).
    Trap,
    /// Enter a new register window: the caller's outs become the ins.
    /// Every rotating register takes the value of the one before it; the first
    /// takes the last one's. It happens after everything else in the bundle.
    Rotate,
    WindowSave,
    /// Leave the register window.
    WindowRestore,
}
