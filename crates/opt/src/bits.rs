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

#[cfg(test)]
mod tests {
    use super::*;
    use ciphermill_ir::{Signature, Type};

    struct Rng(u64);

    impl Rng {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            self.0 >> 16
        }

        fn word(&mut self) -> u64 {
            let word = self.next() ^ (self.next() << 24);
            match self.next() % 4 {
                0 => word & 0xff,
                1 => word & 0xffff_0000,
                2 => word | (!0 << 60),
                _ => word,
            }
        }
    }

    /// No value of a random expression ever has a bit outside its mask.
    #[test]
    fn masks_cover_all_values() {
        use BinOp::*;
        const BINARY: [BinOp; 16] =
            [Add, Mul, MulHiU, DivU, DivS, RemU, RemS, And, Or, Xor, Shl, ShrU, ShrS, RotL, RotR, Sub];
        const UNARY: [UnOp; 6] = [UnOp::Clz, UnOp::Ctz, UnOp::Popcnt, UnOp::SExt8, UnOp::SExt16, UnOp::Bswap];
        let mut rng = Rng(1);
        for round in 0..4000 {
            let ty = if round % 2 == 0 { Type::I32 } else { Type::I64 };
            let mut func = Func::new("f", Signature { params: vec![ty; 2], results: vec![] });
            let entry = func.entry;
            let mut exprs: Vec<Value> = func.blocks[entry].params.clone();
            let mut values: Vec<u64> = vec![rng.word() & ty.mask(), rng.word() & ty.mask()];
            for _ in 0..10 {
                let (a, b) = (rng.next() as usize % exprs.len(), rng.next() as usize % exprs.len());
                let (op, args, value) = match rng.next() % 8 {
                    0 | 1 => {
                        let c = if rng.next().is_multiple_of(2) { rng.next() % 16 } else { rng.word() & ty.mask() };
                        (Op::Const(c), vec![], Some(c))
                    }
                    2 => {
                        let op = UNARY[rng.next() as usize % UNARY.len()];
                        (Op::Un(op), vec![exprs[a]], Some(op.eval(values[a], ty.bits())))
                    }
                    _ => {
                        let op = BINARY[rng.next() as usize % BINARY.len()];
                        (Op::Bin(op), vec![exprs[a], exprs[b]], op.eval(values[a], values[b], ty.bits()))
                    }
                };
                let Some(value) = value else { continue };
                let v = func.append1(entry, op, &args, ty, 0);
                assert_eq!(value & !possible(&func, v), 0, "{value:#x} outside {:#x} in {func}", possible(&func, v));
                exprs.push(v);
                values.push(value);
            }
        }
    }
}
