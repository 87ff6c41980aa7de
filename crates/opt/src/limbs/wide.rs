//! Operations that are better written out in 32 bits before values are split: counts of zeros and of ones.

use ciphermill_ir::{BinOp, Block, Func, Module, Op, Type, UnOp, Value};

/// Write them out.
pub(super) fn expand(module: &mut Module) {
    for func in module.funcs.values_mut() {
        for block in func.layout.clone() {
            let insts = std::mem::take(&mut func.blocks[block].insts);
            for inst in insts {
                let (op, loc) = (func.insts[inst].op, func.insts[inst].loc);
                let Op::Un(op @ (UnOp::Clz | UnOp::Ctz | UnOp::Popcnt)) = op else {
                    func.blocks[block].insts.push(inst);
                    continue;
                };
                let (arg, old) = (func.resolve(func.insts[inst].args[0]), func.result(inst));
                let mut count = Count { func, block, loc };
                let new = count.of(op, arg);
                func.replace(old, new);
            }
        }
        func.resolve_all();
    }
}

struct Count<'a> {
    func: &'a mut Func,
    block: Block,
    loc: u32,
}

impl Count<'_> {
    fn bin(&mut self, op: BinOp, a: Value, b: Value) -> Value {
        self.func.append1(self.block, Op::Bin(op), &[a, b], Type::I32, self.loc)
    }

    fn with(&mut self, op: BinOp, a: Value, c: u32) -> Value {
        let c = self.func.append1(self.block, Op::Const(c.into()), &[], Type::I32, self.loc);
        self.bin(op, a, c)
    }

    fn of(&mut self, op: UnOp, a: Value) -> Value {
        match op {
            // Zeros below the lowest one: what is below it are ones in `!a & (a - 1)`.
            UnOp::Ctz => {
                let not = self.with(BinOp::Xor, a, u32::MAX);
                let less = self.with(BinOp::Add, a, u32::MAX);
                let below = self.bin(BinOp::And, not, less);
                self.ones(below)
            }
            // Ones from the highest one down, complemented.
            UnOp::Clz => {
                let mut a = a;
                for n in [1, 2, 4, 8, 16] {
                    let moved = self.with(BinOp::ShrU, a, n);
                    a = self.bin(BinOp::Or, a, moved);
                }
                let above = self.with(BinOp::Xor, a, u32::MAX);
                self.ones(above)
            }
            _ => self.ones(a),
        }
    }

    /// Ones counted in pairs, fours and bytes (Warren, Hacker's Delight, 5-1).
    fn ones(&mut self, a: Value) -> Value {
        let half = self.with(BinOp::ShrU, a, 1);
        let half = self.with(BinOp::And, half, 0x5555_5555);
        let a = self.bin(BinOp::Sub, a, half);
        let low = self.with(BinOp::And, a, 0x3333_3333);
        let high = self.with(BinOp::ShrU, a, 2);
        let high = self.with(BinOp::And, high, 0x3333_3333);
        let a = self.bin(BinOp::Add, low, high);
        let high = self.with(BinOp::ShrU, a, 4);
        let a = self.bin(BinOp::Add, a, high);
        let mut a = self.with(BinOp::And, a, 0x0f0f_0f0f);
        for n in [8, 16] {
            let moved = self.with(BinOp::ShrU, a, n);
            a = self.bin(BinOp::Add, a, moved);
        }
        self.with(BinOp::And, a, 63)
    }
}
