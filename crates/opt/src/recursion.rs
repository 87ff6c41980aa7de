//! Linear recursion becomes a loop.
//!
//! Powers and products in finite fields are often written by recursion as a standard defines them:
//!
//! ```text
//! f(v, n) = n == 0 ? v : g(f(v, n - 1), v)
//! ```
//!
//! A function that calls itself at one place, does something with the result and returns goes down to its
//! base and comes up again. If what it does on the way up hangs on that result and on parameters that are the same at
//! every depth only, it does the same in every step, and it does not matter that the last call comes first: so many
//! steps can be made on the way down.
//!
//! ```text
//! f(v, n): r = v; while n != 0 { r = g(r, v); n = n - 1 }; return r
//! ```
//!
//! The function may do nothing that can be seen from outside, nor call another. Its base is one block that
//! computes what it returns from parameters that stay the same. Such a recursion that
//! never ends would have ended in an overflow of the stack, so not under strict traps. As a loop the
//! function can be inlined, and the loop unrolled or pipelined.

use crate::edit;
use crate::options::Options;
use ciphermill_ir::{Block, Cfg, Dominators, Func, FuncId, Inst, Module, Op, Target, Terminator, Value};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) fn run(module: &mut Module, options: &Options) -> bool {
    !options.strict_traps && edit::for_each_func_id(module, |_, id, func| run_func(func, id))
}

/// Operations between a parameter that stays the same and a value computed from it.
const DEPTH: u32 = 8;
/// Instructions of a block that returns and is copied: an extension of the result, mostly.
const COPIED: usize = 8;

fn run_func(func: &mut Func, id: FuncId) -> bool {
    let insts = func.layout.iter().flat_map(|&b| &func.blocks[b].insts);
    let changed = insts.filter(|&&i| func.insts[i].op == Op::Call(id)).count() == 1 && part_returns(func);
    rewrite(func, id) || changed
}

/// Give each way to a short block that returns a copy of its own.
fn part_returns(func: &mut Func) -> bool {
    let mut changed = false;
    for at in 0..func.layout.len() {
        let block = func.layout[at];
        let mut term = edit::take_term(func, block);
        for target in term.targets_mut() {
            let to = &func.blocks[target.block];
            let Terminator::Return(values) = to.term.clone() else { continue };
            if to.params.is_empty() || to.insts.len() > COPIED || !to.insts.iter().all(|&i| func.insts[i].op.is_pure())
            {
                continue;
            }
            let mut made: BTreeMap<Value, Value> = to.params.iter().copied().zip(target.args.iter().copied()).collect();
            let insts = to.insts.clone();
            let own = func.add_block();
            for &inst in &insts {
                let data = func.insts[inst].clone();
                let args: Vec<Value> = data.args.iter().map(|&v| here(func, &made, v)).collect();
                let copy = func.append1(own, data.op, &args, func.ty(func.result(inst)), data.loc);
                made.insert(func.result(inst), copy);
            }
            let values = values.into_iter().map(|v| here(func, &made, v)).collect();
            func.blocks[own].term = Terminator::Return(values);
            *target = Target::new(own, Vec::new());
            changed = true;
        }
        func.blocks[block].term = term;
    }
    changed && {
        edit::remove_unreachable(func);
        true
    }
}

fn here(func: &Func, made: &BTreeMap<Value, Value>, v: Value) -> Value {
    let v = func.resolve(v);
    *made.get(&v).unwrap_or(&v)
}

fn rewrite(func: &mut Func, id: FuncId) -> bool {
    let Some(found) = Recursion::of(func, id) else { return false };
    found.write(func);
    func.resolve_all();
    true
}

/// A function that calls itself at one place.
struct Recursion {
    /// The block that the call is in.
    block: Block,
    call: Inst,
    result: Value,
    /// The block that returns without a call.
    base: Block,
    /// Those that return after it.
    returns: Vec<Block>,
}

impl Recursion {
    fn of(func: &Func, id: FuncId) -> Option<Recursion> {
        let cfg = Cfg::new(func);
        let blocks = || func.layout.iter().copied().filter(|&b| cfg.is_reachable(b));
        let insts = || blocks().flat_map(|b| func.blocks[b].insts.iter().map(move |&i| (b, i)));
        let mut calls = insts().filter(|&(_, i)| func.insts[i].op == Op::Call(id));
        let (block, call) = calls.next()?;
        let quiet = |i: Inst| match func.insts[i].op {
            Op::Load(_) | Op::GlobalGet(_) | Op::Bin(_) => true,
            op => op.is_pure(),
        };
        let [result] = func.insts[call].results[..] else { return None };
        if calls.next().is_some() || insts().any(|(_, i)| i != call && !quiet(i)) {
            return None;
        }
        let doms = Dominators::new(func, &cfg);
        let (mut bases, mut returns) = (Vec::new(), Vec::new());
        for b in blocks() {
            match func.blocks[b].term {
                Terminator::Return(_) if doms.dominates(block, b) => returns.push(b),
                Terminator::Return(_) => bases.push(b),
                _ => {}
            }
        }
        let [base] = bases[..] else { return None };
        let found = Recursion { block, call, result, base, returns };
        let same = found.same(func);
        // On the way up, and at the base, nothing counts but the result and what is the same at every depth.
        let above: BTreeSet<Block> = blocks().filter(|&b| b != block && doms.dominates(block, b)).collect();
        let at = func.blocks[block].insts.iter().position(|&i| i == call)?;
        let behind = func.blocks[block].insts[at + 1..].iter().copied();
        let own: Vec<Inst> = behind.chain(above.iter().flat_map(|&b| func.blocks[b].insts.iter().copied())).collect();
        let made: BTreeSet<Value> = own
            .iter()
            .flat_map(|&i| func.insts[i].results.iter().copied())
            .chain(above.iter().flat_map(|&b| func.blocks[b].params.iter().copied()))
            .chain([result])
            .collect();
        let known = |v: Value| {
            let v = func.resolve(v);
            made.contains(&v) || steady(func, &same, v, DEPTH)
        };
        let mut fine = own.iter().all(|&i| func.insts[i].args.iter().all(|&v| known(v)));
        for &b in above.iter().chain([&block]) {
            func.blocks[b].term.for_each_value(|v| fine &= known(v));
            // What goes on from there comes back to no block before the call.
            fine &= func.blocks[b].term.targets().iter().all(|t| above.contains(&t.block));
        }
        let Terminator::Return(results) = &func.blocks[base].term else { return None };
        let starts = results.len() == 1 && results.iter().all(|&v| steady(func, &same, v, DEPTH));
        (fine && starts).then_some(found)
    }

    /// Parameters that the call is given as they are.
    fn same(&self, func: &Func) -> BTreeSet<Value> {
        let params = func.blocks[func.entry].params.iter().copied();
        let args = func.insts[self.call].args.iter().map(|&v| func.resolve(v));
        params.zip(args).filter(|(p, a)| p == a).map(|(p, _)| p).collect()
    }

    fn write(&self, func: &mut Func) {
        let Terminator::Return(results) = func.blocks[self.base].term.clone() else { return };
        let entry = func.entry;
        let front = func.add_block();
        let params: Vec<Value> = func.blocks[entry].params.clone();
        let own: Vec<Value> = params.iter().map(|&p| func.add_param(front, func.ty(p))).collect();
        let mut made: BTreeMap<Value, Value> = params.iter().copied().zip(own.iter().copied()).collect();
        let start = again(func, front, results[0], &mut made);
        let so_far = func.add_param(entry, func.ty(self.result));
        func.blocks[front].term = Terminator::Jump(Target::new(entry, own.into_iter().chain([start]).collect()));
        let args: Vec<Value> = func.insts[self.call].args.to_vec();
        for &b in &self.returns {
            let Terminator::Return(values) = edit::take_term(func, b) else { continue };
            let onward = args.iter().copied().chain(values).collect();
            func.blocks[b].term = Terminator::Jump(Target::new(entry, onward));
        }
        func.blocks[self.base].term = Terminator::Return(vec![so_far]);
        let call = self.call;
        func.blocks[self.block].insts.retain(|&i| i != call);
        func.replace(self.result, so_far);
        func.entry = front;
        func.layout.pop();
        func.layout.insert(0, front);
    }
}

/// Is it arithmetic on parameters that stay the same?
fn steady(func: &Func, same: &BTreeSet<Value>, v: Value, depth: u32) -> bool {
    let v = func.resolve(v);
    match func.def_inst(v).map(|i| &func.insts[i]) {
        _ if same.contains(&v) => true,
        Some(data) => depth > 0 && data.op.is_pure() && data.args.iter().all(|&a| steady(func, same, a, depth - 1)),
        None => false,
    }
}

/// Compute such a value again, in a block that has parameters of its own.
fn again(func: &mut Func, block: Block, v: Value, made: &mut BTreeMap<Value, Value>) -> Value {
    let v = func.resolve(v);
    if let Some(&known) = made.get(&v) {
        return known;
    }
    let Some(inst) = func.def_inst(v) else { return v };
    let args: Vec<Value> = func.insts[inst].args.to_vec();
    let args: Vec<Value> = args.into_iter().map(|a| again(func, block, a, made)).collect();
    let (op, ty, loc) = (func.insts[inst].op, func.ty(v), func.insts[inst].loc);
    let result = func.append1(block, op, &args, ty, loc);
    made.insert(v, result);
    result
}
