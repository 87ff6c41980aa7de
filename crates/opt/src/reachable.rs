//! Which functions can be reached from outside the module.

use ciphermill_ir::{FuncId, Module, Op};
use cranelift_entity::SecondaryMap;

/// The functions that can run at all.
pub(crate) fn reachable_functions(module: &Module) -> SecondaryMap<FuncId, bool> {
    let mut reached: SecondaryMap<FuncId, bool> = SecondaryMap::new();
    let mut work: Vec<FuncId> = module.exports.iter().map(|&(_, f)| f).collect();
    work.extend(module.start);
    work.extend(module.system.func_refs.iter().map(|r| r.func));
    while let Some(id) = work.pop() {
        if std::mem::replace(&mut reached[id], true) {
            continue;
        }
        let func = &module.funcs[id];
        for &block in &func.layout {
            for &inst in &func.blocks[block].insts {
                if let Op::Call(callee) = func.insts[inst].op {
                    work.push(callee);
                }
            }
        }
    }
    reached
}
