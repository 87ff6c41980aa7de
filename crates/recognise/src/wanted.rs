//! How many of its lower bits anything looks at, for each value.

use ciphermill_ir::{BinOp, Func, InstData, Op, Terminator, UnOp, Value};
use std::collections::HashMap;

/// The least solution: what nobody looks at has none.
pub fn low_bits(func: &Func) -> HashMap<Value, u32> {
    let mut out: HashMap<Value, u32> = HashMap::new();
    let more = |out: &mut HashMap<Value, u32>, v: Value, bits: u32| {
        let v = func.resolve(v);
        let entry = out.entry(v).or_default();
        let old = std::mem::replace(entry, (*entry).max(bits.min(func.ty(v).bits())));
        old < out[&v]
    };
    loop {
        let mut changed = false;
        for &block in func.layout.iter().rev() {
            let term = &func.blocks[block].term;
            match term {
                Terminator::Branch { cond: v, .. } | Terminator::Switch { index: v, .. } => {
                    changed |= more(&mut out, *v, u32::MAX);
                }
                Terminator::Return(values) => {
                    values.iter().for_each(|&v| changed |= more(&mut out, v, u32::MAX));
                }
                Terminator::Jump(_) | Terminator::Trap(_) => {}
            }
            for target in term.targets() {
                for (&param, &arg) in func.blocks[target.block].params.iter().zip(&target.args) {
                    let bits = out.get(&param).copied().unwrap_or(0);
                    changed |= more(&mut out, arg, bits);
                }
            }
            for &inst in func.blocks[block].insts.iter().rev() {
                let data = &func.insts[inst];
                let mine = data.results.first().map_or(0, |r| out.get(r).copied().unwrap_or(0));
                for (n, &v) in data.args.iter().enumerate() {
                    changed |= more(&mut out, v, looked_at(func, data, n, mine));
                }
            }
        }
        if !changed {
            return out;
        }
    }
}

/// Of operand `n`, where the lower `mine` of the result are looked at.
fn looked_at(func: &Func, data: &InstData, n: usize, mine: u32) -> u32 {
    let constant = |i: usize| func.as_const(data.args[i]);
    let by = || constant(1).map(|c| c as u32 % func.ty(func.resolve(data.args[0])).bits());
    match data.op {
        _ if data.op.is_pure() && mine == 0 => 0,
        Op::Bin(BinOp::And) => constant(1 - n).map_or(mine, |c| mine.min(64 - c.leading_zeros())),
        Op::Bin(BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Or | BinOp::Xor) | Op::Wrap => mine,
        Op::Select if n > 0 => mine,
        Op::ZExt | Op::SExt | Op::Un(UnOp::SExt32) => mine.min(32),
        Op::Bin(BinOp::Shl) if n == 0 => by().map_or(u32::MAX, |by| mine.saturating_sub(by)),
        Op::Bin(BinOp::ShrU) if n == 0 => by().map_or(u32::MAX, |by| mine.saturating_add(by)),
        Op::Un(UnOp::SExt8) => mine.min(8),
        Op::Un(UnOp::SExt16) => mine.min(16),
        Op::Store(m) if n == 1 => 8 * u32::from(m.bytes),
        _ => u32::MAX,
    }
}
