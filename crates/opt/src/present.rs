//! Pointers that are asked whether they are there.
//!
//! Libraries begin a function with `if (in == NULL) return`. Where buffers are promised never to
//! stand at address 0 ([`Options::no_buffer_at_zero`]), an address based on such a buffer
//! ([`crate::bases`]) is not 0, and the question is answered here. Otherwise it would be asked
//! for every block, and a loop over blocks that may be left by its middle is no loop to unroll
//! or to pipeline.

use crate::bases::{Bases, Promises};
use crate::edit;
use crate::options::Options;
use ciphermill_ir::{CmpOp, Func, Inst, Module, Op, Terminator, Value};

pub(crate) fn run(module: &mut Module, options: &Options) -> bool {
    if !options.no_buffer_at_zero {
        return false;
    }
    let promises = Promises::new(module, options);
    edit::for_each_func_id(module, |_, id, func| answer(func, &promises.bases(id, func)))
}

fn answer(func: &mut Func, bases: &Bases) -> bool {
    let mut changed = false;
    for block in func.layout.clone() {
        for inst in func.blocks[block].insts.clone() {
            if let Some(equal) = compared(func, bases, inst) {
                let data = &mut func.insts[inst];
                data.op = Op::Const(u64::from(equal));
                data.args.clear();
                changed = true;
            }
        }
        if let Terminator::Branch { cond, then, .. } = &func.blocks[block].term
            && bases.in_buffer(func.resolve(*cond))
        {
            func.blocks[block].term = Terminator::Jump(then.clone());
            changed = true;
        }
    }
    changed
}

/// What a comparison of a pointer with 0 gives.
fn compared(func: &Func, bases: &Bases, inst: Inst) -> Option<bool> {
    let data = &func.insts[inst];
    let equal = match data.op {
        Op::Cmp(CmpOp::Eq) => true,
        Op::Cmp(CmpOp::Ne) => false,
        _ => return None,
    };
    let is_zero = |v: Value| func.as_const(func.resolve(v)) == Some(0);
    let in_buffer = |v: Value| bases.in_buffer(func.resolve(v));
    let [x, y] = data.args[..] else { return None };
    (in_buffer(x) && is_zero(y) || is_zero(x) && in_buffer(y)).then_some(!equal)
}
