//! Known zero bits of values.
//!
//! [`possible`] gives a mask that covers every bit a value can ever have set.
//! It is computed by looking a few definitions deep, never through block
//! parameters, so it terminates and is cheap enough to ask anew each time.
//! The largest value is then at most the mask itself, which is what the proofs
//! that an address stays inside a table rest on.

use ciphermill_ir::{BinOp, Func, Op, UnOp, Value, ValueDef, ops};

const DEPTH: u32 = 6;

/// A mask that covers all bits `v` may have set. Any value `v` takes is at
/// most this mask, read as a number.
pub(crate) fn possible(func: &Func, v: Value) -> u64 {
    bits(func, v, DEPTH)
}

/// All bits up to the highest one that is set in `x`.
fn smear(x: u64) -> u64 {
    if x == 0 { 0 } else { u64::MAX >> x.leading_zeros() }
}

fn bits(func: &Func, v: Value, depth: u32) -> u64 {
    let v = func.resolve(v);
    let ty = func.ty(v);
    let full = ty.mask();
    let width = ty.bits();
    let ValueDef::Inst(inst, _) = func.values[v].def else { return full };
    let data = &func.insts[inst];
    if let Op::Const(c) = data.op {
        return c;
    }
    if depth == 0 {
        return full;
    }
    let arg = |i: usize| bits(func, data.args[i], depth - 1);
    let amount = || func.as_const(data.args[1]).map(|n| (n % u64::from(width)) as u32);
    match data.op {
        Op::Bin(op) => match op {
            BinOp::And => arg(0) & arg(1),
            BinOp::Or | BinOp::Xor => arg(0) | arg(1),
            BinOp::Shl => amount().map_or(full, |n| (arg(0) << n) & full),
            BinOp::ShrS if arg(0) >> (width - 1) != 0 => full,
            BinOp::ShrU | BinOp::ShrS => match amount() {
                Some(n) => arg(0) >> n,
                None => smear(arg(0)),
            },
            BinOp::RotL | BinOp::RotR => match amount() {
                Some(n) => op.eval(arg(0), u64::from(n), width).unwrap_or(full),
                None => full,
            },
            BinOp::Add => match arg(0).checked_add(arg(1)) {
                Some(sum) if sum <= full => smear(sum),
                _ => full,
            },
            BinOp::Mul => match arg(0).checked_mul(arg(1)) {
                Some(product) if product <= full => smear(product),
                _ => full,
            },
            BinOp::MulHiU => smear(((u128::from(arg(0)) * u128::from(arg(1))) >> width) as u64),
            BinOp::DivU => smear(arg(0)),
            BinOp::RemU => smear(arg(0)).min(smear(arg(1))),
            BinOp::Sub | BinOp::MulHiS | BinOp::DivS | BinOp::RemS => full,
        },
        Op::Un(op) => match op {
            UnOp::Clz | UnOp::Ctz | UnOp::Popcnt => smear(u64::from(width)),
            UnOp::Bswap => UnOp::Bswap.eval(arg(0), width),
            UnOp::SExt8 => extended(arg(0), 8, full),
            UnOp::SExt16 => extended(arg(0), 16, full),
            UnOp::SExt32 => extended(arg(0), 32, full),
        },
        Op::Cmp(_) => 1,
        Op::Select => arg(1) | arg(2),
        Op::Wrap => arg(0) & full,
        Op::ZExt => arg(0),
        Op::SExt => extended(arg(0), 32, full),
        Op::Load(access) if !access.signed => ops::mask(u32::from(access.bytes) * 8),
        _ => full,
    }
}

/// The bits of a sign extension from `from` bits.
fn extended(x: u64, from: u32, full: u64) -> u64 {
    let low = x & ops::mask(from);
    if low >> (from - 1) & 1 == 0 { low } else { low | (full & !ops::mask(from)) }
}
