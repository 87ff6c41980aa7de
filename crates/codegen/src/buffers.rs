//! Which parameters are buffers that the caller has promised to be apart.

use crate::options::Options;
use ciphermill_ir::{Func, FuncId, Module, Op};
use std::collections::{BTreeSet, HashMap};

/// For each function how many of its first parameters are such buffers. None are those of functions that the module calls
/// itself, or could by pointer: their callers may give one buffer twice.
pub fn promised(module: &Module, options: &Options) -> HashMap<FuncId, usize> {
    let called: BTreeSet<FuncId> =
        module.funcs.values().flat_map(calls).chain(module.system.func_refs.iter().map(|r| r.func)).collect();
    let of = |id: FuncId| {
        let names = module.exports.iter().filter(|(_, f)| *f == id).map(|(name, _)| name);
        names.filter_map(|name| options.buffers.iter().find(|b| b.0 == *name)).map(|b| b.1).min()
    };
    let outside = module.funcs.keys().filter(|id| !called.contains(id));
    outside.filter_map(|id| Some((id, of(id)?))).collect()
}

/// The functions that a function calls, as often as it does.
pub fn calls(func: &Func) -> impl Iterator<Item = FuncId> {
    let insts = func.layout.iter().flat_map(|&b| &func.blocks[b].insts).map(|&i| func.insts[i].op);
    insts.filter_map(|op| if let Op::Call(f) = op { Some(f) } else { None })
}
