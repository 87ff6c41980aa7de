//! Sums put together so that they are there soonest.
//!
//! `(((h + s) + c) + k) + w` as it was written waits for `s`, which comes last, and takes three additions more. For terms
//! that exist at certain times, adding always the two earliest is best (Golumbic, *Combinatorial merging*, IEEE
//! Transactions on Computers, 1976). The number of operations stays.
//!
//! A sum is a tree of additions, or of exclusive ors, of one block in which only the root has several uses. An `or` is
//! left alone, as what puts bytes or the parts of a rotated word together is recognised by its form later; so is an
//! address, in which the constant has to stay outermost. Crate `select` does the same for what goes round a loop, with the
//! machine's own latencies; this is for whole iterations, whose length decides how many of them overlap.
//!
//! When a value exists is the length of the longest way to it, in operations and the cycles of the slower ones, after some
//! passes of the loops that it is in: what goes round by many operations comes later then than what does by few or not at
//! all, and is added last.

use crate::edit;
use crate::options::Options;
use crate::unroll::for_each_chosen;
use ciphermill_ir::{BinOp, Block, Cfg, Func, Inst, Module, Op, Value};
use cranelift_entity::SecondaryMap;

/// Terms of a sum. Longer ones are left as they are.
const MOST: usize = 64;

/// Cycles of a load, of a product and of a rotation on machines that schedules are made for: TI's C6000 (SPRU732: 5, 2 for
/// 16 bits and 4 for 32, and 2), and Itanium 2 alike.
const LOAD: u32 = 5;
const PRODUCT: u32 = 4;
const ROTATION: u32 = 2;

/// Passes of a loop after which what waits for the pass before is told from what does not: a load of the next word takes as
/// long as several additions.
const PASSES: usize = 16;

pub(crate) fn run(module: &mut Module, options: &Options) -> bool {
    for_each_chosen(module, options, |_, _, func| {
        let cfg = Cfg::new(func);
        let mut sums = Sums { depth: SecondaryMap::new(), uses: edit::count_uses(func), fixed: addresses(func) };
        for _ in 0..PASSES {
            cfg.rpo.iter().for_each(|&block| sums.go_through(func, &cfg, block));
        }
        let mut changed = false;
        for &block in &cfg.rpo {
            changed |= sums.shorten(func, block);
        }
        changed
    })
}

/// Values that are used as addresses.
fn addresses(func: &Func) -> SecondaryMap<Value, bool> {
    let mut out = SecondaryMap::new();
    for &inst in func.layout.iter().flat_map(|&b| &func.blocks[b].insts) {
        let data = &func.insts[inst];
        if let Op::Load(_) | Op::Store(_) = data.op {
            out[data.args[0]] = true;
        }
    }
    out
}

struct Sums {
    /// When each value exists.
    depth: SecondaryMap<Value, u32>,
    /// How often each was used before sums were rebuilt.
    uses: SecondaryMap<Value, u32>,
    /// Values whose form stays.
    fixed: SecondaryMap<Value, bool>,
}

impl Sums {
    /// Work out when the values of a block exist.
    fn go_through(&mut self, func: &Func, cfg: &Cfg, block: Block) {
        for (i, &param) in func.blocks[block].params.iter().enumerate() {
            let given = cfg.preds(block).iter().filter_map(|edge| {
                let targets = func.blocks[edge.from].term.targets();
                targets[edge.index as usize].args.get(i).map(|&v| self.depth[v])
            });
            self.depth[param] = given.max().unwrap_or(0);
        }
        for &inst in &func.blocks[block].insts {
            self.exists(func, inst);
        }
    }

    /// Work out when the results of an instruction exist.
    fn exists(&mut self, func: &Func, inst: Inst) {
        let data = &func.insts[inst];
        let from = data.args.iter().map(|&v| self.depth[v]).max().unwrap_or(0);
        let cycles = match data.op {
            Op::Const(_) => 0,
            Op::Load(_) => LOAD,
            Op::Bin(BinOp::Mul | BinOp::MulHiU | BinOp::MulHiS) => PRODUCT,
            Op::Bin(BinOp::RotL | BinOp::RotR) => ROTATION,
            _ => 1,
        };
        data.results.iter().for_each(|&v| self.depth[v] = from + cycles);
    }

    /// Put the sums of a block together anew where they are there sooner then.
    fn shorten(&mut self, func: &mut Func, block: Block) -> bool {
        let insts = std::mem::take(&mut func.blocks[block].insts);
        let within = inner(func, &insts, &self.uses);
        let mut out = Vec::with_capacity(insts.len());
        let mut changed = false;
        for &inst in &insts {
            if let Some(op) = sum(func, inst).filter(|_| !within[inst])
                && let Some(terms) = self.terms(func, inst, op, &within)
            {
                changed |= self.rebuilt(func, inst, op, terms, &mut out);
            }
            self.exists(func, inst);
            out.push(inst);
        }
        func.blocks[block].insts = out;
        changed
    }

    /// The terms of a sum; none where it has too few or too many, or is an address.
    fn terms(&self, func: &Func, root: Inst, op: BinOp, within: &SecondaryMap<Inst, bool>) -> Option<Vec<Value>> {
        if self.fixed[func.result(root)] {
            return None;
        }
        let mut terms = Vec::new();
        let mut left = func.insts[root].args.to_vec();
        while let Some(value) = left.pop() {
            match func.def_inst(value).filter(|&i| within[i] && func.insts[i].op == Op::Bin(op)) {
                Some(inner) => left.extend(&func.insts[inner].args),
                None => terms.push(value),
            }
            if terms.len() + left.len() > MOST {
                return None;
            }
        }
        (terms.len() > 2).then_some(terms)
    }

    /// Add the two earliest, again and again; the root has the last two. False where that is no sooner.
    fn rebuilt(&mut self, func: &mut Func, root: Inst, op: BinOp, terms: Vec<Value>, out: &mut Vec<Inst>) -> bool {
        let result = func.result(root);
        let before = func.insts[root].args.iter().map(|&v| self.depth[v]).max().unwrap_or(0) + 1;
        let mut left: Vec<(u32, Value)> = terms.into_iter().map(|v| (self.depth[v], v)).collect();
        left.sort_unstable_by(|a, b| b.cmp(a));
        let depths: Vec<u32> = left.iter().map(|l| l.0).collect();
        if soonest(depths) >= before {
            return false;
        }
        let (ty, loc) = (func.ty(result), func.insts[root].loc);
        while left.len() > 2 {
            let (Some(a), Some(b)) = (left.pop(), left.pop()) else { break };
            let inst = func.make_inst(Op::Bin(op), &[a.1, b.1], &[ty], loc);
            out.push(inst);
            let sum = (a.0.max(b.0) + 1, func.result(inst));
            self.depth[sum.1] = sum.0;
            let at = left.partition_point(|l| *l > sum);
            left.insert(at, sum);
        }
        func.insts[root].args = left.iter().rev().map(|l| l.1).collect();
        true
    }
}

/// When the sum of terms exists that exist at these times, the latest first.
fn soonest(mut left: Vec<u32>) -> u32 {
    while let (Some(a), Some(b)) = (left.pop(), left.pop()) {
        let sum = a.max(b) + 1;
        if left.is_empty() {
            return sum;
        }
        let at = left.partition_point(|l| *l > sum);
        left.insert(at, sum);
    }
    0
}

/// The operation of a sum.
fn sum(func: &Func, inst: Inst) -> Option<BinOp> {
    match func.insts[inst].op {
        Op::Bin(op @ (BinOp::Add | BinOp::Xor)) => Some(op),
        _ => None,
    }
}

/// Instructions of a block whose only use is as a term of a sum of their kind there.
fn inner(func: &Func, insts: &[Inst], uses: &SecondaryMap<Value, u32>) -> SecondaryMap<Inst, bool> {
    let mut here: SecondaryMap<Inst, bool> = SecondaryMap::new();
    insts.iter().for_each(|&inst| here[inst] = true);
    let mut out = SecondaryMap::new();
    for &inst in insts {
        let Some(op) = sum(func, inst) else { continue };
        for &arg in &func.insts[inst].args {
            if let Some(term) = func.def_inst(arg).filter(|&i| here[i] && sum(func, i) == Some(op))
                && uses[func.result(term)] == 1
            {
                out[term] = true;
            }
        }
    }
    out
}
