//! Small tools that more than one pass needs: walking the functions of a
//! module, dropping unreachable blocks, counting uses, redirecting edges.

use ciphermill_ir::{Block, Cfg, Dominators, Func, FuncId, Module, Signature, Terminator, TrapCode, Value, ValueDef};
use cranelift_entity::SecondaryMap;

/// Run `f` on every function, with the rest of the module to look at. The
/// module seen by `f` lacks the function's own body while it is worked on;
/// its signature is there.
pub(crate) fn for_each_func(module: &mut Module, mut f: impl FnMut(&Module, &mut Func) -> bool) -> bool {
    for_each_func_id(module, |module, _, func| f(module, func))
}

/// As [`for_each_func`], with the function's number.
pub(crate) fn for_each_func_id(module: &mut Module, mut f: impl FnMut(&Module, FuncId, &mut Func) -> bool) -> bool {
    let mut changed = false;
    let ids: Vec<_> = module.funcs.keys().collect();
    for id in ids {
        let empty = Func::new("", Signature::default());
        let mut func = std::mem::replace(&mut module.funcs[id], empty);
        module.funcs[id].sig = func.sig.clone();
        changed |= f(module, id, &mut func);
        module.funcs[id] = func;
    }
    changed
}

/// Take blocks that no path reaches out of the layout.
pub(crate) fn remove_unreachable(func: &mut Func) -> bool {
    let cfg = Cfg::new(func);
    let before = func.layout.len();
    func.layout.retain(|&b| cfg.is_reachable(b));
    func.layout.len() != before
}

/// Blocks in an order in which each stands behind those that dominate it, as the stages behind need it: as
/// they are if that is one. When a copied loop's first question is answered before it is asked, the way in
/// leads past a block that was the first of the loop.
pub(crate) fn in_order(func: &mut Func) {
    let cfg = Cfg::new(func);
    let doms = Dominators::new(func, &cfg);
    let mut place: SecondaryMap<Block, usize> = SecondaryMap::new();
    func.layout.iter().enumerate().for_each(|(at, &block)| place[block] = at);
    let behind = |block: Block| doms.idom(block).is_none_or(|above| place[above] < place[block]);
    if !func.layout.iter().all(|&block| behind(block)) {
        func.layout = cfg.rpo.clone();
    }
}

/// How often each value is used in the blocks of the layout.
pub(crate) fn count_uses(func: &Func) -> SecondaryMap<Value, u32> {
    let mut uses = SecondaryMap::with_capacity(func.values.len());
    for &block in &func.layout {
        for &inst in &func.blocks[block].insts {
            for &arg in &func.insts[inst].args {
                uses[arg] += 1;
            }
        }
        func.blocks[block].term.for_each_value(|v| uses[v] += 1);
    }
    uses
}

/// Take the terminator out of a block to work on it; the caller puts one back.
pub(crate) fn take_term(func: &mut Func, block: Block) -> Terminator {
    std::mem::replace(&mut func.blocks[block].term, Terminator::Trap(TrapCode::Unreachable))
}

/// Take the parameters not kept out of a block, and their arguments out of
/// every edge to it. The graph must be current.
pub(crate) fn retain_params(func: &mut Func, cfg: &Cfg, block: Block, keep: &[bool]) {
    retain_by(&mut func.blocks[block].params, keep);
    for (i, &param) in func.blocks[block].params.iter().enumerate() {
        func.values[param].def = ValueDef::Param(block, i as u16);
    }
    for edge in cfg.preds(block) {
        let mut targets = func.blocks[edge.from].term.targets_mut();
        retain_by(&mut targets[edge.index as usize].args, keep);
    }
}

fn retain_by(values: &mut Vec<Value>, keep: &[bool]) {
    let mut flags = keep.iter();
    values.retain(|_| flags.next().copied().unwrap_or(true));
}
