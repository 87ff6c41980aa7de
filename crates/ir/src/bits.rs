//! Known zero bits of values.
//!
//! A mask covers every bit that a value can ever have set; the largest value is
//! then at most the mask itself, which is what the proofs that an address stays
//! inside a table rest on. There are two ways to it:
//!
//! * [`possible`] looks a few definitions deep, never through block parameters:
//!   cheap enough to ask anew each time, while a function changes.
//! * [`Masks`] is a forward analysis of a whole function. A parameter's mask
//!   covers those of all its arguments; it starts with none of them and grows
//!   until nothing changes, which a mask can do only as often as it has bits.

use crate::{BinOp, Chain, Func, InstData, Op, Type, UnOp, Value, ValueDef, ops};
use std::collections::HashMap;

const DEPTH: u32 = 6;

/// A mask that covers all bits `v` may have set. Any value `v` takes is at
/// most this mask, read as a number.
pub fn possible(func: &Func, v: Value) -> u64 {
    bits(func, v, DEPTH)
}

fn bits(func: &Func, v: Value, depth: u32) -> u64 {
    let v = func.resolve(v);
    let ty = func.ty(v);
    let ValueDef::Inst(inst, _) = func.values[v].def else { return ty.mask() };
    let data = &func.insts[inst];
    match data.op {
        Op::Const(c) => c,
        _ if depth == 0 => ty.mask(),
        _ => transfer(func, data, ty, &|v| bits(func, v, depth - 1)),
    }
}

/// The masks of all values of a function, as it was when they were made.
pub struct Masks {
    of: HashMap<Value, u64>,
}

impl Masks {
    pub fn new(func: &Func) -> Masks {
        Masks::within(func, &HashMap::new())
    }

    /// The same where some values are known to have no other bits than these.
    pub fn within(func: &Func, known: &HashMap<Value, u64>) -> Masks {
        let entry = func.blocks[func.entry].params.iter().map(|&p| (p, func.ty(p).mask()));
        let mut masks = Masks { of: entry.collect() };
        let cut = |v: Value, mask: u64| mask & known.get(&v).copied().unwrap_or(u64::MAX);
        loop {
            let mut changed = false;
            for &block in &func.layout {
                for &inst in &func.blocks[block].insts {
                    let data = &func.insts[inst];
                    for &result in &data.results {
                        let new = cut(result, transfer(func, data, func.ty(result), &|v| masks.so_far(func, v)));
                        changed |= masks.of.insert(result, new) != Some(new);
                    }
                }
                for target in func.blocks[block].term.targets() {
                    for (&param, &arg) in func.blocks[target.block].params.iter().zip(&target.args) {
                        let old = masks.so_far(func, param);
                        let new = cut(param, old | masks.so_far(func, arg));
                        changed |= masks.of.insert(param, new) != Some(new);
                    }
                }
            }
            if !changed {
                return masks;
            }
        }
    }

    /// No bits for what nothing has reached yet.
    fn so_far(&self, func: &Func, v: Value) -> u64 {
        self.of.get(&func.resolve(v)).copied().unwrap_or(0)
    }

    /// As [`possible`], for values old and new.
    pub fn possible(&self, func: &Func, v: Value) -> u64 {
        let v = func.resolve(v);
        self.of.get(&v).copied().unwrap_or_else(|| possible(func, v))
    }
}

/// All bits up to the highest one that is set in `x`.
fn smear(x: u64) -> u64 {
    if x == 0 { 0 } else { u64::MAX >> x.leading_zeros() }
}

/// All bits but the zeros at the end of `x`. Multiples of a power of two have multiples as sums, differences and
/// products.
fn multiples(x: u64) -> u64 {
    u64::MAX.checked_shl(x.trailing_zeros()).unwrap_or(0)
}

/// The mask of a result of type `ty`, given its operands'.
fn transfer(func: &Func, data: &InstData, ty: Type, mask: &dyn Fn(Value) -> u64) -> u64 {
    let full = ty.mask();
    let width = ty.bits();
    let arg = |i: usize| mask(data.args[i]);
    let amount = || func.as_const(data.args[1]).map(|n| (n % u64::from(width)) as u32);
    match data.op {
        Op::Const(c) => c,
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
                Some(sum) if sum <= full => smear(sum) & multiples(arg(0) | arg(1)),
                _ => full & multiples(arg(0) | arg(1)),
            },
            BinOp::Sub => full & multiples(arg(0) | arg(1)),
            BinOp::Mul => match arg(0).checked_mul(arg(1)) {
                Some(product) if product <= full => smear(product) & multiples(arg(0) | arg(1)),
                _ => full & multiples(arg(0) | arg(1)),
            },
            BinOp::MulHiU => smear(((u128::from(arg(0)) * u128::from(arg(1))) >> width) as u64),
            BinOp::DivU => smear(arg(0)),
            BinOp::RemU => smear(arg(0)).min(smear(arg(1))),
            BinOp::MulHiS | BinOp::DivS | BinOp::RemS => full,
        },
        Op::Un(op) => match op {
            UnOp::Clz | UnOp::Ctz | UnOp::Popcnt => smear(u64::from(width)),
            UnOp::Bswap => UnOp::Bswap.eval(arg(0), width),
            UnOp::SExt8 => extended(arg(0), 8, full),
            UnOp::SExt16 => extended(arg(0), 16, full),
            UnOp::SExt32 => extended(arg(0), 32, full),
        },
        Op::Cmp(_) | Op::Chain(Chain::Compare(_), _) => 1,
        Op::Chain(Chain::Swap, bits) => {
            let (whole, half) = (ops::mask(bits.into()), u32::from(bits) / 2);
            (arg(0) << half | (arg(0) & whole) >> half) & whole
        }
        Op::Chain(chain @ (Chain::ShrU | Chain::ShrS), bits) if data.args.len() == 1 => {
            let word = arg(0) & ops::mask(bits.into());
            word >> 1 | if chain == Chain::ShrS { word & 1 << (bits - 1) } else { 0 }
        }
        Op::Chain(_, bits) => ops::mask(bits.into()),
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
    use crate::{Block, CmpOp, MemAccess, Signature, Space, Target, Terminator};

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
            let masks = Masks::new(&func);
            for (&v, value) in exprs.iter().zip(values) {
                assert_eq!(value & !masks.possible(&func, v), 0, "{value:#x} outside the mask of {v} in {func}");
            }
        }
    }

    fn byte(func: &mut Func, block: Block, addr: Value) -> Value {
        let access = MemAccess { bytes: 1, signed: false, align: 1, offset: 0, space: Space::Linear };
        func.append1(block, Op::Load(access), &[addr], Type::I32, 0)
    }

    /// Two bytes are loop-carried, exchanged and mixed; a third value is shifted.
    #[test]
    fn masks_go_round_loops() {
        let mut func = Func::new("f", Signature { params: vec![Type::I32; 2], results: vec![Type::I32] });
        let entry = func.entry;
        let [p, q] = func.blocks[entry].params[..] else { panic!("two parameters") };
        let (round, out) = (func.add_block(), func.add_block());
        let (a, b) = (byte(&mut func, entry, p), byte(&mut func, entry, q));
        let one = func.append1(entry, Op::Const(1), &[], Type::I32, 0);
        func.blocks[entry].term = Terminator::Jump(Target::new(round, vec![a, b, one]));
        let [x, y, z] = [(); 3].map(|()| func.add_param(round, Type::I32));
        // Further than `possible` looks.
        let mixed = (0..10).fold(x, |v, _| func.append1(round, Op::Bin(BinOp::Xor), &[v, y], Type::I32, 0));
        let shifted = func.append1(round, Op::Bin(BinOp::Shl), &[z, one], Type::I32, 0);
        let more = func.append1(round, Op::Cmp(CmpOp::LtU), &[mixed, p], Type::I32, 0);
        func.blocks[round].term = Terminator::Branch {
            cond: more,
            then: Target::new(round, vec![y, mixed, shifted]),
            els: Target::new(out, vec![]),
        };
        func.blocks[out].term = Terminator::Return(vec![mixed]);

        let masks = Masks::new(&func);
        let found = |v| masks.possible(&func, v);
        assert_eq!([x, y, mixed].map(found), [0xff; 3]);
        assert_eq!((found(z), found(shifted)), (0xffff_ffff, 0xffff_fffe));
        assert_eq!((found(more), found(p)), (1, 0xffff_ffff));
        assert_eq!(possible(&func, mixed), 0xffff_ffff);
        let late = byte(&mut func, out, p);
        assert_eq!(masks.possible(&func, late), 0xff);
    }
}
