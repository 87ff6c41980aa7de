//! Dead code: instructions, block parameters and functions nobody needs.
//!
//! Liveness is optimistic: everything is dead until something that must stay
//! needs it, so a cycle of block parameters that only feed themselves goes.
//! What must stay: stores, sets of globals, calls, divisions that may trap,
//! control flow, and, under strict traps, loads not proven in bounds.
//!
//! Functions that no export, start function, table entry or live call can
//! reach keep their number and signature but their body becomes a trap.

use crate::alias::{self, Aliases};
use crate::edit;
use crate::options::Options;
use crate::reachable::reachable_functions;
use ciphermill_ir::{Cfg, Func, Inst, Module, Op, Value, ValueDef};
use cranelift_entity::SecondaryMap;

pub(crate) fn run(module: &mut Module, options: &Options) -> bool {
    let aliases = Aliases::new(module);
    edit::for_each_func(module, |_, func| run_func(&aliases, func, options.strict_traps))
}

fn run_func(aliases: &Aliases, func: &mut Func, strict: bool) -> bool {
    let mut changed = edit::remove_unreachable(func);
    let live = live_values(aliases, func, strict);
    let cfg = Cfg::new(func);
    for &block in &cfg.rpo {
        let mut insts = std::mem::take(&mut func.blocks[block].insts);
        let before = insts.len();
        insts.retain(|&inst| live.insts[inst]);
        changed |= insts.len() != before;
        func.blocks[block].insts = insts;
        if block != func.entry && func.blocks[block].params.iter().any(|&p| !live.values[p]) {
            let keep: Vec<bool> = func.blocks[block].params.iter().map(|&p| live.values[p]).collect();
            edit::retain_params(func, &cfg, block, &keep);
            changed = true;
        }
    }
    changed
}

struct Live {
    insts: SecondaryMap<Inst, bool>,
    values: SecondaryMap<Value, bool>,
}

fn live_values(aliases: &Aliases, func: &Func, strict: bool) -> Live {
    let cfg = Cfg::new(func);
    let mut live = Live { insts: SecondaryMap::new(), values: SecondaryMap::new() };
    let mut work: Vec<Value> = Vec::new();
    for &block in &cfg.rpo {
        for &inst in &func.blocks[block].insts {
            if must_stay(aliases, func, inst, strict) {
                live.insts[inst] = true;
                work.extend(&func.insts[inst].args);
            }
        }
        // Not the arguments of targets: those live by their parameter.
        use ciphermill_ir::Terminator::{Branch, Return, Switch};
        match &func.blocks[block].term {
            Branch { cond: v, .. } | Switch { index: v, .. } => work.push(*v),
            Return(values) => work.extend(values),
            _ => {}
        }
    }
    while let Some(v) = work.pop() {
        if std::mem::replace(&mut live.values[v], true) {
            continue;
        }
        match func.values[v].def {
            ValueDef::Inst(inst, _) => {
                if !std::mem::replace(&mut live.insts[inst], true) {
                    work.extend(&func.insts[inst].args);
                }
            }
            ValueDef::Param(block, index) => {
                for edge in cfg.preds(block) {
                    let targets = func.blocks[edge.from].term.targets();
                    work.push(targets[edge.index as usize].args[usize::from(index)]);
                }
            }
            ValueDef::Alias(to) => work.push(to),
        }
    }
    live
}

fn must_stay(aliases: &Aliases, func: &Func, inst: Inst, strict: bool) -> bool {
    let data = &func.insts[inst];
    match data.op {
        Op::Load(access) => strict && !aliases.in_bounds(func, data.args[0], access),
        Op::Bin(op) if op.may_trap() => alias::division_may_trap(func, op, data.args[1]),
        op => op.has_effect(),
    }
}

/// Empty the bodies of functions that cannot run.
pub(crate) fn dead_functions(module: &mut Module, _: &Options) -> bool {
    let reached = reachable_functions(module);
    let mut changed = false;
    for (id, func) in &mut module.funcs {
        if !reached[id] && func.size() > 1 {
            *func = Func::new(std::mem::take(&mut func.name), std::mem::take(&mut func.sig));
            changed = true;
        }
    }
    changed
}
