//! Common subexpressions: an operation whose equal has been computed on every
//! path here becomes that value.
//!
//! A walk over the dominator tree in preorder keeps a table of the operations
//! computed in the blocks above; leaving a block takes its entries out again.
//! The key is the operation, its operands' final values (of a commutative one,
//! in order) and the type, so equal keys mean equal values. Besides pure
//! operations this covers divisions (the one above has trapped if this one
//! would), reads of globals that never change, and loads from read-only data
//! at an address known to lie there.
//!
//! The table is only looked up, never iterated, so the result does not depend
//! on hashing.

use crate::alias::Aliases;
use crate::edit;
use crate::options::Options;
use ciphermill_ir::{Block, Cfg, Dominators, Func, Inst, Module, Op, Type, Value};
use smallvec::SmallVec;
use std::collections::HashMap;

pub(crate) fn run(module: &mut Module, _: &Options) -> bool {
    let aliases = Aliases::new(module);
    edit::for_each_func(module, |module, func| run_func(module, &aliases, func))
}

type Key = (Op, SmallVec<[Value; 3]>, Type);

enum Step {
    Enter(Block),
    /// Take the last so many keys out of the table.
    Leave(usize),
}

fn run_func(module: &Module, aliases: &Aliases, func: &mut Func) -> bool {
    let cfg = Cfg::new(func);
    let doms = Dominators::new(func, &cfg);
    let mut table: HashMap<Key, Value> = HashMap::new();
    let mut scope: Vec<Key> = Vec::new();
    let mut steps = vec![Step::Enter(func.entry)];
    let mut changed = false;
    while let Some(step) = steps.pop() {
        let block = match step {
            Step::Leave(count) => {
                for key in scope.drain(scope.len() - count..) {
                    table.remove(&key);
                }
                continue;
            }
            Step::Enter(block) => block,
        };
        let before = scope.len();
        let mut insts = std::mem::take(&mut func.blocks[block].insts);
        insts.retain(|&inst| {
            for i in 0..func.insts[inst].args.len() {
                func.insts[inst].args[i] = func.resolve(func.insts[inst].args[i]);
            }
            let Some(key) = key(module, aliases, func, inst) else { return true };
            let result = func.result(inst);
            match table.get(&key) {
                Some(&same) => {
                    func.replace(result, same);
                    changed = true;
                    false
                }
                None => {
                    table.insert(key.clone(), result);
                    scope.push(key);
                    true
                }
            }
        });
        func.blocks[block].insts = insts;
        steps.push(Step::Leave(scope.len() - before));
        steps.extend(doms.children(block).iter().rev().map(|&b| Step::Enter(b)));
    }
    func.resolve_all();
    changed
}

fn key(module: &Module, aliases: &Aliases, func: &Func, inst: Inst) -> Option<Key> {
    let data = &func.insts[inst];
    let eligible = match data.op {
        Op::Bin(_) => true,
        Op::GlobalGet(global) => !module.globals[global].mutable,
        Op::Load(access) => aliases.is_constant(func, data.args[0], access),
        op => op.is_pure(),
    };
    if !eligible {
        return None;
    }
    let mut args = data.args.clone();
    if let Op::Bin(op) = data.op
        && op.commutes()
    {
        args.sort();
    }
    if let Op::Cmp(ciphermill_ir::CmpOp::Eq | ciphermill_ir::CmpOp::Ne) = data.op {
        args.sort();
    }
    Some((data.op, args, func.ty(func.result(inst))))
}
