//! Read-only data: a load at a constant address is the constant that stands
//! there.
//!
//! What unrolling leaves of a walk over a table of constants. An access proven
//! to lie in a segment that is never written gives that segment's bytes;
//! where segments overlap the later one has been written over the earlier, so
//! the bytes are looked up from the last segment back.

use crate::alias::{Aliases, split};
use crate::edit;
use crate::options::Options;
use ciphermill_ir::{Func, Inst, Module, Op, ops};

pub(crate) fn run(module: &mut Module, options: &Options) -> bool {
    if options.unroll.full_budget == 0 && options.unroll.profile.is_empty() {
        return false;
    }
    let aliases = Aliases::new(module);
    edit::for_each_func(module, |module, func| {
        let mut changed = false;
        for b in 0..func.layout.len() {
            for i in 0..func.blocks[func.layout[b]].insts.len() {
                let inst = func.blocks[func.layout[b]].insts[i];
                if let Some(c) = value(module, &aliases, func, inst) {
                    func.insts[inst].op = Op::Const(c);
                    func.insts[inst].args.clear();
                    changed = true;
                }
            }
        }
        changed
    })
}

fn value(module: &Module, aliases: &Aliases, func: &Func, inst: Inst) -> Option<u64> {
    let data = &func.insts[inst];
    let Op::Load(access) = data.op else { return None };
    let (None, base) = split(func, data.args[0]) else { return None };
    if !aliases.is_constant(func, data.args[0], access) {
        return None;
    }
    let at = u64::from(base) + u64::from(access.offset);
    let byte = |at: u64| {
        module.data.iter().rev().find_map(|segment| {
            let i = at.checked_sub(u64::from(segment.addr))?;
            segment.bytes.get(usize::try_from(i).ok()?).copied()
        })
    };
    let mut raw = 0;
    for i in (0..u64::from(access.bytes)).rev() {
        raw = raw << 8 | u64::from(byte(at + i)?);
    }
    let from = u32::from(access.bytes) * 8;
    let full = func.ty(func.result(inst)).mask();
    Some(if access.signed { ops::sext(raw, from) as u64 & full } else { raw })
}
