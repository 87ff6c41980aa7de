//! Appending 32-bit operations to the function being built.

use ciphermill_ir::{BinOp, Block, CmpOp, Func, Op, Type, Value};

/// A function under construction and where the next instruction goes.
pub(super) struct Emit {
    pub func: Func,
    pub block: Block,
    pub loc: u32,
}

impl Emit {
    pub fn new(func: Func) -> Emit {
        let block = func.entry;
        Emit { func, block, loc: 0 }
    }

    /// Append an instruction and give its results.
    pub fn inst(&mut self, op: Op, args: &[Value], results: &[Type]) -> Vec<Value> {
        let inst = self.func.append(self.block, op, args, results, self.loc);
        self.func.insts[inst].results.to_vec()
    }

    /// Append an instruction with one 32-bit result.
    pub fn one(&mut self, op: Op, args: &[Value]) -> Value {
        self.func.append1(self.block, op, args, Type::I32, self.loc)
    }

    pub fn word(&mut self, c: u32) -> Value {
        self.one(Op::Const(u64::from(c)), &[])
    }

    pub fn zero(&mut self) -> Value {
        self.word(0)
    }

    pub fn bin(&mut self, op: BinOp, a: Value, b: Value) -> Value {
        self.one(Op::Bin(op), &[a, b])
    }

    pub fn bin_const(&mut self, op: BinOp, a: Value, c: u32) -> Value {
        let c = self.word(c);
        self.bin(op, a, c)
    }

    pub fn cmp(&mut self, op: CmpOp, a: Value, b: Value) -> Value {
        self.one(Op::Cmp(op), &[a, b])
    }

    pub fn select(&mut self, cond: Value, a: Value, b: Value) -> Value {
        self.one(Op::Select, &[cond, a, b])
    }

    /// A word of copies of the sign bit.
    pub fn sign(&mut self, a: Value) -> Value {
        self.bin_const(BinOp::ShrS, a, 31)
    }
}
