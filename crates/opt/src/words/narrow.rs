//! 32-bit values where a machine computes in 32 bits and in 64.
//!
//! Such a machine (`narrow = "zero"`, as x86-64) keeps the types of the program: an operation of
//! 32 bits is matched with instructions that compute in 32 bits (`add32`), and what is above its
//! result is zero. So a value made longer is the value itself, and what reads no more than the
//! lower half of a word takes the word. What is left is a comparison, or a merge of several
//! ways, that wants the other width: those have an instruction of their own.

use ciphermill_ir::{BinOp, Func, Inst, Module, Op, Type, UnOp, Value};

/// The 32 bits of a value.
const LOW: u64 = 0xffff_ffff;

/// Take out what only changes the width of values, function by function.
pub fn narrow(module: &mut Module) {
    for func in module.funcs.values_mut() {
        masks(func);
        uses(func);
    }
}

/// A word without its upper half is its lower half made longer; a sign made longer is
/// an operation of words.
fn masks(func: &mut Func) {
    for block in func.layout.clone() {
        let insts = std::mem::take(&mut func.blocks[block].insts);
        let mut out = Vec::with_capacity(insts.len());
        for inst in insts {
            let data = &func.insts[inst];
            let word = data.results.first().is_some_and(|&v| func.ty(v) == Type::I64);
            match data.op {
                Op::SExt => func.insts[inst].op = Op::Un(UnOp::SExt32),
                Op::Bin(BinOp::And) if word && func.as_const(data.args[1]) == Some(LOW) => {
                    let (word, loc) = (data.args[0], data.loc);
                    let half = func.make_inst(Op::Wrap, &[word], &[Type::I32], loc);
                    let half_value = func.result(half);
                    out.push(half);
                    let data = &mut func.insts[inst];
                    data.op = Op::ZExt;
                    data.args = [half_value].into_iter().collect();
                }
                _ => {}
            }
            out.push(inst);
        }
        func.blocks[block].insts = out;
    }
}

/// Let operations read the other width where it is the same to them.
fn uses(func: &mut Func) {
    for block in func.layout.clone() {
        for inst in func.blocks[block].insts.clone() {
            for n in 0..func.insts[inst].args.len() {
                let v = func.resolve(func.insts[inst].args[n]);
                func.insts[inst].args[n] = through(func, inst, n, v);
            }
        }
    }
}

/// The value that operand `n` of an instruction may be instead of `v`.
fn through(func: &Func, inst: Inst, n: usize, mut v: Value) -> Value {
    loop {
        let Some(def) = func.def_inst(v).map(|i| &func.insts[i]) else { return v };
        let (data, ty) = (&func.insts[inst], |v: Value| func.ty(v));
        let wide = data.results.first().is_some_and(|&r| ty(r) == Type::I64);
        let free = match (def.op, data.op) {
            // Not where rules or checks would compare it.
            (Op::Wrap, Op::Bin(op)) => !wide && !op.may_trap() && !matches!(op, BinOp::MulHiU | BinOp::MulHiS),
            (Op::Wrap, Op::Un(UnOp::SExt8 | UnOp::SExt16 | UnOp::SExt32)) => true,
            (Op::Wrap, Op::Load(_) | Op::Store(_)) => n == 0 || matches!(data.op, Op::Store(m) if m.bytes <= 4),
            (Op::ZExt, Op::Bin(op)) => wide && !op.may_trap(),
            (Op::ZExt, Op::Un(_)) => wide,
            // The half of a word that has nothing else.
            (Op::ZExt, Op::Wrap) | (Op::ZExt, Op::Store(_)) => true,
            _ => false,
        };
        if !free {
            return v;
        }
        v = func.resolve(def.args[0]);
    }
}
