//! Folding: constants, identities and canonical forms of single operations.
//!
//! One walk over the reachable blocks in reverse postorder sees every operand
//! in its final form before its use (but for loop-carried ones, which are
//! block parameters and opaque here). A rule looks at an operation and, a few
//! levels deep, at what defines its operands, and names a value that is
//! always equal: an operand, a constant, or something cheaper that
//! [`Folder::build`] makes on the spot, itself subject to the rules. Nothing
//! that may trap is dropped unless it provably does not.
//!
//! Canonical forms, so that later stages know one shape for one meaning:
//! * constants stand on the right; `x - c` is `x + (-c)`; `x * 2^k` a shift;
//! * a field of a word is `(x >>u s) & m`, not two shifts;
//! * rotates by constants are `RotL`, byte reversal is `Bswap`;
//! * unsigned and signed `<=` with a constant is `<`; a comparison of a
//!   comparison with 0 is the comparison or its negation;
//! * branch and select conditions are plain values where "not zero" is meant.
//!
//! Every rule makes the expression smaller, or the same size and closer to
//! the canonical form, so rewriting ends.

mod arith;
mod bytes;
mod compare;
mod logic;
mod shift;

use crate::edit;
use crate::options::Options;
use ciphermill_ir::bits;
use ciphermill_ir::{BinOp, Block, Cfg, CmpOp, Func, Inst, Module, Op, Terminator, Type, Value};

pub(crate) fn run(module: &mut Module, options: &Options) -> bool {
    let bswap = options.enabled("bswap");
    edit::for_each_func(module, |_, func| run_func(func, bswap))
}

fn run_func(func: &mut Func, bswap: bool) -> bool {
    let cfg = Cfg::new(func);
    let mut folder = Folder { func, out: Vec::new(), loc: 0, changed: false, bswap };
    for &block in &cfg.rpo {
        folder.block(block);
    }
    let changed = folder.changed;
    func.resolve_all();
    changed
}

/// The state of the walk: instructions of the current block so far.
struct Folder<'a> {
    func: &'a mut Func,
    out: Vec<Inst>,
    loc: u32,
    changed: bool,
    bswap: bool,
}

impl Folder<'_> {
    fn block(&mut self, block: Block) {
        let insts = std::mem::take(&mut self.func.blocks[block].insts);
        self.out.reserve(insts.len());
        for inst in insts {
            self.visit(inst);
        }
        self.terminator(block);
        self.func.blocks[block].insts = std::mem::take(&mut self.out);
    }

    fn visit(&mut self, inst: Inst) {
        for i in 0..self.func.insts[inst].args.len() {
            self.func.insts[inst].args[i] = self.func.resolve(self.func.insts[inst].args[i]);
        }
        let data = &self.func.insts[inst];
        let (op, loc) = (data.op, data.loc);
        self.loc = loc;
        let args = data.args.clone();
        if let [result] = data.results[..] {
            let ty = self.func.ty(result);
            if let Some(to) = self.rewrite(op, &args, ty) {
                debug_assert_eq!(self.func.ty(to), ty);
                self.func.replace(result, to);
                self.changed = true;
                return;
            }
        }
        if let (Op::Bin(b), [x, y]) = (op, &args[..])
            && b.commutes()
            && self.constant(*x).is_some()
            && self.constant(*y).is_none()
        {
            self.func.insts[inst].args.swap(0, 1);
        }
        self.out.push(inst);
    }

    /// A value equal to the operation, if a rule knows one.
    fn rewrite(&mut self, op: Op, args: &[Value], ty: Type) -> Option<Value> {
        match (op, args) {
            (Op::Bin(op), &[x, y]) => self.binary(op, x, y, ty),
            (Op::Un(op), &[x]) => self.unary(op, x, ty),
            (Op::Cmp(op), &[x, y]) => self.compare(op, x, y),
            (Op::Select, &[cond, x, y]) => self.select(cond, x, y, ty),
            (Op::Wrap, &[x]) => self.wrap(x),
            (Op::ZExt, &[x]) => self.constant(x).map(|c| self.make_const(c, ty)),
            (Op::SExt, &[x]) => self.sext(x),
            _ => None,
        }
    }

    fn binary(&mut self, op: BinOp, mut x: Value, mut y: Value, ty: Type) -> Option<Value> {
        let (mut cx, mut cy) = (self.constant(x), self.constant(y));
        if let (Some(a), Some(b)) = (cx, cy) {
            // None for a division that always traps: it stays.
            return op.eval(a, b, ty.bits()).map(|r| self.make_const(r, ty));
        }
        if op.commutes() && cx.is_some() {
            std::mem::swap(&mut x, &mut y);
            std::mem::swap(&mut cx, &mut cy);
        }
        match op {
            BinOp::Add => self.add(x, y, ty),
            BinOp::Sub => self.sub(x, y, ty),
            BinOp::Mul | BinOp::MulHiU | BinOp::MulHiS => self.mul(op, x, cy?, ty),
            BinOp::DivU | BinOp::DivS | BinOp::RemU | BinOp::RemS => self.div(op, x, cy?, ty),
            BinOp::And => self.and(x, y, ty),
            BinOp::Or => self.or(x, y, ty),
            BinOp::Xor => self.xor(x, y, ty),
            BinOp::Shl | BinOp::ShrU | BinOp::ShrS => self.shift(op, x, y, ty),
            BinOp::RotL | BinOp::RotR => self.rotate(op, x, y, ty),
        }
    }

    /// Make an operation, simplified if a rule applies.
    fn build(&mut self, op: Op, args: &[Value], ty: Type) -> Value {
        if let Some(v) = self.rewrite(op, args, ty) {
            return v;
        }
        let mut args: Vec<Value> = args.to_vec();
        if let Op::Bin(b) = op
            && b.commutes()
            && self.constant(args[0]).is_some()
        {
            args.swap(0, 1);
        }
        let inst = self.func.make_inst(op, &args, &[ty], self.loc);
        self.out.push(inst);
        self.func.result(inst)
    }

    fn bin(&mut self, op: BinOp, x: Value, y: Value, ty: Type) -> Value {
        self.build(Op::Bin(op), &[x, y], ty)
    }

    /// A binary operation with a constant, cut to the type's width.
    fn bin_const(&mut self, op: BinOp, x: Value, c: u64, ty: Type) -> Value {
        let c = self.make_const(c, ty);
        self.bin(op, x, c, ty)
    }

    fn cmp(&mut self, op: CmpOp, x: Value, y: Value) -> Value {
        self.build(Op::Cmp(op), &[x, y], Type::I32)
    }

    fn make_const(&mut self, c: u64, ty: Type) -> Value {
        let inst = self.func.make_inst(Op::Const(c & ty.mask()), &[], &[ty], self.loc);
        self.out.push(inst);
        self.func.result(inst)
    }

    fn constant(&self, v: Value) -> Option<u64> {
        self.func.as_const(v)
    }

    /// The operation and operands, resolved, that define a value.
    fn def(&self, v: Value) -> Option<(Op, [Value; 2])> {
        let inst = self.func.def_inst(v)?;
        let data = &self.func.insts[inst];
        let arg = |i: usize| data.args.get(i).map_or(v, |&a| self.func.resolve(a));
        Some((data.op, [arg(0), arg(1)]))
    }

    /// The operands of `v` when it is the given binary operation.
    fn as_bin(&self, op: BinOp, v: Value) -> Option<(Value, Value)> {
        match self.def(v)? {
            (Op::Bin(o), [x, y]) if o == op => Some((x, y)),
            _ => None,
        }
    }

    /// Operand and constant when `v` is the given operation with a constant on
    /// the right.
    fn as_bin_const(&self, op: BinOp, v: Value) -> Option<(Value, u64)> {
        let (x, y) = self.as_bin(op, v)?;
        Some((x, self.constant(y)?))
    }

    fn possible(&self, v: Value) -> u64 {
        bits::possible(self.func, v)
    }

    /// Conditions: `x != 0` tests what `x` tests, `x == 0` the opposite.
    /// Gives the plain value and whether the sense is turned round.
    fn condition(&self, mut cond: Value) -> (Value, bool) {
        let mut inverted = false;
        while let Some((Op::Cmp(op @ (CmpOp::Eq | CmpOp::Ne)), [x, y])) = self.def(cond)
            && self.func.ty(x) == Type::I32
            && self.constant(y) == Some(0)
        {
            inverted ^= op == CmpOp::Eq;
            cond = x;
        }
        (cond, inverted)
    }

    fn terminator(&mut self, block: Block) {
        let mut term = edit::take_term(self.func, block);
        term.map_values(|v| self.func.resolve(v));
        if let Terminator::Branch { cond, then, els } = &mut term {
            let (plain, inverted) = self.condition(*cond);
            if plain != *cond {
                *cond = plain;
                self.changed = true;
            }
            if inverted {
                std::mem::swap(then, els);
            }
        }
        self.func.blocks[block].term = term;
    }
}
