//! Control flow: fewer blocks, fewer branches, fewer block parameters.
//!
//! * A branch or switch on a constant, or with equal targets, is a jump.
//! * A block that does nothing but transfer control, and whose parameters are
//!   used for nothing else, is stepped over: edges into it go to where it
//!   leads. If it branches on one of its parameters, an edge that brings a
//!   constant for it goes straight to the side chosen (jump threading).
//! * A block with one edge into it, from a jump, joins its predecessor.
//! * A parameter that gets the same value on every edge is that value. The
//!   value reaches all predecessors, so it is defined above the block.
//!   Two parameters that agree on every edge are one, and equal constants from
//!   several places are made once more in the block itself.
//!
//! These feed each other, so they repeat until nothing changes. Each removes a
//! block, an edge or a parameter, or shortens a path, so that ends; stepping
//! over never follows a block into itself.

use crate::edit;
use crate::options::Options;
use ciphermill_ir::cfg::Edge;
use ciphermill_ir::{Block, Cfg, Dominators, Func, Module, Op, Target, Terminator, Value};
use cranelift_entity::SecondaryMap;

pub(crate) fn run(module: &mut Module, _: &Options) -> bool {
    edit::for_each_func(module, |_, func| run_func(func))
}

/// Bound on repetitions; each is linear, and more than a few are rare.
const MAX_ROUNDS: usize = 20;

fn run_func(func: &mut Func) -> bool {
    let mut any = edit::remove_unreachable(func);
    for _ in 0..MAX_ROUNDS {
        let mut changed = false;
        for i in 0..func.layout.len() {
            changed |= simplify_term(func, func.layout[i]);
        }
        changed |= step_over(func);
        changed |= edit::remove_unreachable(func);
        changed |= join(func);
        changed |= params(func);
        if !changed {
            break;
        }
        any = true;
    }
    any
}

/// Constant conditions and equal targets.
fn simplify_term(func: &mut Func, block: Block) -> bool {
    let term = edit::take_term(func, block);
    let (term, changed) = match term {
        Terminator::Branch { cond, then, els } => match func.as_const(cond) {
            Some(c) => (Terminator::Jump(if c != 0 { then } else { els }), true),
            None if then == els => (Terminator::Jump(then), true),
            None => (Terminator::Branch { cond, then, els }, false),
        },
        Terminator::Switch { index, mut targets, default } => {
            let before = targets.len();
            while targets.last() == Some(&default) {
                targets.pop();
            }
            match func.as_const(index) {
                Some(c) => (Terminator::Jump(targets.get(c as usize).unwrap_or(&default).clone()), true),
                None if targets.is_empty() => (Terminator::Jump(default), true),
                None if targets.len() == 1 => {
                    let els = targets.remove(0);
                    (Terminator::Branch { cond: index, then: default, els }, true)
                }
                None => {
                    let changed = targets.len() != before;
                    (Terminator::Switch { index, targets, default }, changed)
                }
            }
        }
        other => (other, false),
    };
    func.blocks[block].term = term;
    changed
}

/// Where an edge that brings `args` to an empty block really leads.
fn onward(func: &Func, block: Block, args: &[Value]) -> Option<Target> {
    let params = &func.blocks[block].params;
    let at = |v: Value| match params.iter().position(|&p| p == v) {
        Some(i) => args[i],
        None => v,
    };
    let target = match &func.blocks[block].term {
        Terminator::Jump(target) => target,
        Terminator::Branch { cond, then, els } if params.contains(cond) => {
            if func.as_const(at(*cond))? != 0 {
                then
            } else {
                els
            }
        }
        Terminator::Switch { index, targets, default } if params.contains(index) => {
            let i = func.as_const(at(*index))?;
            targets.get(i as usize).unwrap_or(default)
        }
        _ => return None,
    };
    if target.block == block {
        return None;
    }
    Some(Target::new(target.block, target.args.iter().map(|&v| at(v)).collect()))
}

/// Blocks without instructions whose parameters only their terminator uses. But not the header of a loop that only
/// leads to that of an inner one: without it the two would be one loop.
fn transparent(func: &Func) -> SecondaryMap<Block, bool> {
    let uses = edit::count_uses(func);
    let nests = nests(func);
    let mut found = SecondaryMap::new();
    for &block in &func.layout {
        let data = &func.blocks[block];
        let only_here = |p: Value| {
            let mut here = 0;
            data.term.for_each_value(|v| here += u32::from(v == p));
            uses[p] == here
        };
        let empty = block != func.entry && data.insts.is_empty() && !nests.contains(&block);
        found[block] = empty && data.params.iter().all(|&p| only_here(p));
    }
    found
}

/// Empty blocks that lead to the header of a loop and begin one around it.
fn nests(func: &Func) -> Vec<Block> {
    let leads = |&b: &Block| match &func.blocks[b].term {
        Terminator::Jump(to) if func.blocks[b].insts.is_empty() && to.block != b => Some((b, to.block)),
        _ => None,
    };
    let cfg = Cfg::new(func);
    let several = |b: Block| cfg.preds(b).len() > 1;
    let mut found: Vec<(Block, Block)> = func.layout.iter().filter_map(leads).collect();
    found.retain(|&(outer, inner)| several(outer) && several(inner));
    if found.is_empty() {
        return Vec::new();
    }
    let doms = Dominators::new(func, &cfg);
    let header = |b: Block| cfg.preds(b).iter().any(|e| doms.dominates(b, e.from));
    found.into_iter().filter(|&(outer, inner)| header(outer) && header(inner)).map(|(outer, _)| outer).collect()
}

fn step_over(func: &mut Func) -> bool {
    let transparent = transparent(func);
    let mut changed = false;
    for i in 0..func.layout.len() {
        let block = func.layout[i];
        let mut term = edit::take_term(func, block);
        for target in term.targets_mut() {
            // The first step may reach a block that is itself transparent;
            // the next round takes the next step.
            if transparent[target.block]
                && target.block != block
                && let Some(next) = onward(func, target.block, &target.args)
            {
                *target = next;
                changed = true;
            }
        }
        // A block that jumps to itself has lent its terminator to `term`.
        if let Terminator::Jump(target) = &term
            && transparent[target.block]
            && target.block != block
            && let Terminator::Trap(code) = func.blocks[target.block].term
        {
            term = Terminator::Trap(code);
            changed = true;
        }
        func.blocks[block].term = term;
    }
    changed
}

/// Append blocks to their only predecessor.
fn join(func: &mut Func) -> bool {
    let cfg = Cfg::new(func);
    // A block joined away lives on in the block named here.
    let mut joined: SecondaryMap<Block, Option<Block>> = SecondaryMap::new();
    let mut changed = false;
    for &block in &cfg.rpo {
        let [edge] = cfg.preds(block) else { continue };
        let mut into = edge.from;
        while let Some(next) = joined[into] {
            into = next;
        }
        if into == block || !matches!(func.blocks[into].term, Terminator::Jump(_)) {
            continue;
        }
        let Terminator::Jump(target) = edit::take_term(func, into) else { continue };
        let params = std::mem::take(&mut func.blocks[block].params);
        for (&param, &arg) in params.iter().zip(&target.args) {
            func.replace(param, arg);
        }
        let insts = std::mem::take(&mut func.blocks[block].insts);
        func.blocks[into].insts.extend(insts);
        func.blocks[into].term = edit::take_term(func, block);
        joined[block] = Some(into);
        changed = true;
    }
    if changed {
        func.layout.retain(|&b| joined[b].is_none());
        func.resolve_all();
    }
    changed
}

/// Parameters that are always one value, or always equal to another.
fn params(func: &mut Func) -> bool {
    let cfg = Cfg::new(func);
    let mut changed = false;
    for &block in &cfg.rpo {
        if block == func.entry {
            continue;
        }
        let mut keep = vec![true; func.blocks[block].params.len()];
        for i in 0..keep.len() {
            let param = func.blocks[block].params[i];
            let to = match incoming(func, &cfg, block, i) {
                Some(Incoming::Value(v)) => Some(v),
                Some(Incoming::Const(c)) => {
                    let ty = func.ty(param);
                    let inst = func.make_inst(Op::Const(c), &[], &[ty], 0);
                    func.blocks[block].insts.insert(0, inst);
                    Some(func.result(inst))
                }
                None => {
                    (0..i).find(|&j| keep[j] && agree(func, &cfg, block, i, j)).map(|j| func.blocks[block].params[j])
                }
            };
            if let Some(to) = to {
                func.replace(param, to);
                keep[i] = false;
                changed = true;
            }
        }
        if keep.contains(&false) {
            edit::retain_params(func, &cfg, block, &keep);
        }
    }
    func.resolve_all();
    changed
}

/// What all edges bring for a parameter.
enum Incoming {
    Value(Value),
    /// One constant, made in several places of which none need be above.
    Const(u64),
}

/// The argument on one edge, through replacements made so far.
fn argument(func: &Func, edge: &Edge, i: usize) -> Value {
    let targets = func.blocks[edge.from].term.targets();
    func.resolve(targets[edge.index as usize].args[i])
}

fn incoming(func: &Func, cfg: &Cfg, block: Block, i: usize) -> Option<Incoming> {
    let param = func.blocks[block].params[i];
    let mut args = cfg.preds(block).iter().map(|e| argument(func, e, i)).filter(|&a| a != param);
    let first = args.next()?;
    let constant = func.as_const(first);
    let mut one_value = true;
    for arg in args {
        one_value &= arg == first;
        if !one_value && (constant.is_none() || func.as_const(arg) != constant) {
            return None;
        }
    }
    match constant {
        Some(c) if !one_value => Some(Incoming::Const(c)),
        _ => Some(Incoming::Value(first)),
    }
}

fn agree(func: &Func, cfg: &Cfg, block: Block, i: usize, j: usize) -> bool {
    let params = &func.blocks[block].params;
    let (p, q) = (params[i], params[j]);
    func.ty(p) == func.ty(q)
        && cfg.preds(block).iter().all(|edge| {
            let (a, b) = (argument(func, edge, i), argument(func, edge, j));
            a == b || (a == p && b == q)
        })
}
