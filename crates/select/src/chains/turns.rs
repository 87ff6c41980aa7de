//! Rotates taken out of each other's way.
//!
//! What is rotated by a constant and then, behind an exclusive-or, by an amount that is computed, can be
//! rotated once; what is cut out of a rotated word can be cut out of the word:
//!
//! ```text
//! rotl(rotl(x, c) ^ a, n)      ->   rotl(x ^ rotl(a, -c), n + c)
//! n = rotl(f, k), n + c        ->   (f + (c << (32 - k))) >> (32 - k)     as an amount, for k >= 5
//! rotl(x, c) >> s & m          ->   x >> (s - c) & m                      where the field stands together
//! ```
//!
//! Whether that is of use hangs on which value is there last and on what the machine has; so code is made
//! with it and without, and the cheaper form is taken. It is done before rotates
//! are taken apart.

use super::blocks::{loops, sweep};
use ciphermill_ir::low_bits::use_counts;
use ciphermill_ir::{BinOp, Func, Inst, Op, Type, Value};
use std::collections::HashMap;

/// Rewrite the rotates in loops of one block; true where there were some.
pub fn turn(func: &mut Func) -> bool {
    let uses = use_counts(func);
    let mut changed = false;
    for block in loops(func) {
        let insts = std::mem::take(&mut func.blocks[block].insts);
        let place = insts.iter().enumerate().map(|(i, &inst)| (inst, i)).collect();
        let mut turner = Turner { func, uses: &uses, place, out: Vec::with_capacity(insts.len()) };
        for inst in insts {
            changed |= turner.visit(inst);
            turner.out.push(inst);
        }
        let out = turner.out;
        func.blocks[block].insts = out;
        sweep(func, block);
    }
    changed
}

struct Turner<'a> {
    func: &'a mut Func,
    uses: &'a HashMap<Value, u32>,
    /// Where the block's instructions stand.
    place: HashMap<Inst, usize>,
    out: Vec<Inst>,
}

impl Turner<'_> {
    /// Rewrite an operation in its place.
    fn visit(&mut self, inst: Inst) -> bool {
        let data = &self.func.insts[inst];
        let Op::Bin(op) = data.op else { return false };
        let [a, b] = [0, 1].map(|i| self.func.resolve(data.args[i]));
        let (ty, loc) = (self.func.ty(a), data.loc);
        let constant = self.func.as_const(b);
        let new = match (op, constant) {
            (BinOp::RotL | BinOp::RotR, None) => self.rotate(op, a, b, ty, loc),
            (BinOp::And, Some(mask)) => self.field(a, mask, ty, loc),
            _ => None,
        };
        let Some((op, args)) = new else { return false };
        self.func.insts[inst].op = Op::Bin(op);
        self.func.insts[inst].args = args.into_iter().collect();
        true
    }

    /// A rotate by what is computed, its operand or its amount rewritten.
    fn rotate(&mut self, op: BinOp, of: Value, by: Value, ty: Type, loc: u32) -> Option<(BinOp, [Value; 2])> {
        let mut leaves = Vec::new();
        self.leaves(of, &mut leaves);
        let width = u64::from(ty.bits());
        // What is made last is likely to be what is waited for.
        let last = leaves.iter().enumerate().filter_map(|(i, &v)| {
            let (x, c) = self.rotated(v)?;
            Some((*self.place.get(&self.func.def_inst(v)?)?, i, x, c))
        });
        let Some((_, i, x, c)) = last.max_by_key(|l| l.0).filter(|_| leaves.len() > 1) else {
            return Some((op, [of, self.amount(by, 0, ty, loc)?]));
        };
        leaves.remove(i);
        let mut rest = leaves.remove(0);
        for leaf in leaves {
            rest = self.make(BinOp::Xor, rest, leaf, ty, loc);
        }
        let back = self.constant(width - c, ty, loc);
        let rest = self.make(BinOp::RotL, rest, back, ty, loc);
        let of = self.make(BinOp::Xor, x, rest, ty, loc);
        let more = if op == BinOp::RotL { c } else { width - c };
        let by = match self.amount(by, more, ty, loc) {
            Some(by) => by,
            None => {
                let more = self.constant(more, ty, loc);
                self.make(BinOp::Add, by, more, ty, loc)
            }
        };
        Some((op, [of, by]))
    }

    /// The operands of exclusive-ors that nothing else uses.
    fn leaves(&self, v: Value, found: &mut Vec<Value>) {
        let inside = |i: &Inst| self.uses.get(&v) == Some(&1) && self.place.contains_key(i);
        match self.func.def_inst(v).filter(inside).map(|i| &self.func.insts[i]) {
            Some(data) if data.op == Op::Bin(BinOp::Xor) => {
                data.args.iter().for_each(|&a| self.leaves(self.func.resolve(a), found));
            }
            _ => found.push(v),
        }
    }

    /// What a value is rotated to the left from, and by how much.
    fn rotated(&self, v: Value) -> Option<(Value, u64)> {
        let data = &self.func.insts[self.func.def_inst(v)?];
        let (&[x, by], width) = (data.args.first_chunk()?, u64::from(self.func.ty(v).bits()));
        let n = self.func.as_const(by)? % width;
        let left = match data.op {
            Op::Bin(BinOp::RotL) => n,
            Op::Bin(BinOp::RotR) => (width - n) % width,
            _ => return None,
        };
        (left != 0).then(|| (self.func.resolve(x), left))
    }

    /// An amount and `more`, where the amount is the top of a word: added there, before it is
    /// shifted down.
    fn amount(&mut self, by: Value, more: u64, ty: Type, loc: u32) -> Option<Value> {
        let (f, k) = self.rotated(by)?;
        let width = u64::from(ty.bits());
        if k < u64::from(width.ilog2()) || self.func.ty(by) != ty {
            return None;
        }
        let down = width - k;
        let f = if more == 0 {
            f
        } else {
            let added = self.constant(more << down, ty, loc);
            self.make(BinOp::Add, f, added, ty, loc)
        };
        let down = self.constant(down, ty, loc);
        Some(self.make(BinOp::ShrU, f, down, ty, loc))
    }

    /// A field of a rotated word, cut out of the word.
    fn field(&mut self, of: Value, mask: u64, ty: Type, loc: u32) -> Option<(BinOp, [Value; 2])> {
        let data = &self.func.insts[self.func.def_inst(of)?];
        let width = u64::from(ty.bits());
        let (r, down) = match (data.op, data.args.first_chunk()) {
            (Op::Bin(BinOp::ShrU), Some(&[r, n])) => (self.func.resolve(r), self.func.as_const(n)? % width),
            _ => (of, 0),
        };
        let (x, c) = self.rotated(r)?;
        let (low, high) = (u64::from(mask.trailing_zeros()), width - u64::from((mask << (64 - width)).leading_zeros()));
        if mask == 0 || down + high > width {
            return None;
        }
        // The field's lowest bit stands there in the word; it must not reach around its end.
        let at = (low + down + width - c) % width;
        if at + (high - low) > width {
            return None;
        }
        let (op, by) = if at >= low { (BinOp::ShrU, at - low) } else { (BinOp::Shl, low - at) };
        let field = if by == 0 {
            x
        } else {
            let by = self.constant(by, ty, loc);
            self.make(op, x, by, ty, loc)
        };
        let mask = self.constant(mask, ty, loc);
        Some((BinOp::And, [field, mask]))
    }

    fn constant(&mut self, c: u64, ty: Type, loc: u32) -> Value {
        self.append(Op::Const(c & ty.mask()), &[], ty, loc)
    }

    fn make(&mut self, op: BinOp, a: Value, b: Value, ty: Type, loc: u32) -> Value {
        self.append(Op::Bin(op), &[a, b], ty, loc)
    }

    fn append(&mut self, op: Op, args: &[Value], ty: Type, loc: u32) -> Value {
        let inst = self.func.make_inst(op, args, &[ty], loc);
        self.out.push(inst);
        self.func.result(inst)
    }
}
