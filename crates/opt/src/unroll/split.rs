//! Loops that a condition which lasts divides: a loop for either side.
//!
//! A generator that renews one table for 512 steps and then another for as many asks in each step
//! which one it is. Its loop has two sides, of which neither is one block. Here each side becomes
//! an inner loop of its own that goes on while the condition stays as it is, and the outer loop asks only when
//! it has changed:
//!
//! ```text
//! head: h  c ? a : b            first: h   jump ask
//! a: ..  jump tail              ask:   c ? a : b
//! b: ..  jump tail       ->     a: ..  tail  h   c ? a : ask
//! tail: ..  more ? head : out   b: ..  tail  h   c ? ask : b
//! ```
//!
//! That means the same whatever the condition is: each iteration runs the same blocks in the same
//! order. It pays where the condition lasts, as a comparison of a counter with a constant does, or one of
//! its bits. The counter may be a value that goes round or a place in memory that each iteration stores
//! again. Whether it is one is guessed, since nothing but speed hangs on it; that one side runs through
//! its tail and the head once more for each copy is bounded by the budget.

use super::copy::{self, Copy};
use super::graph::{Graph, size};
use super::repair;
use crate::alias::split as parts;
use crate::edit;
use crate::options::Options;
use ciphermill_ir::cfg::LoopId;
use ciphermill_ir::{BinOp, Block, CmpOp, Func, Module, Op, Target, Terminator, Value};
use std::collections::BTreeSet;

/// A condition that changes more often than every so many iterations is none that lasts.
const LASTS: u64 = 4;
/// So many loops of a function at the most.
const MOST: usize = 8;

pub(crate) fn run(module: &mut Module, options: &Options) -> bool {
    let budget = options.unroll.full_budget;
    budget > 0
        && super::for_each_chosen(module, options, |_, _, func| {
            let mut changed = false;
            for _ in 0..MOST {
                let graph = Graph::new(func);
                let Some(id) = graph.loops.loops.keys().find(|&id| divided(func, &graph, id, budget)) else { break };
                divide(func, &graph, id);
                changed = true;
            }
            changed
        })
}

/// The two sides of a loop whose header ends in a branch between them: the blocks on each, which
/// share the tail.
fn sides(func: &Func, graph: &Graph, id: LoopId, header: Block) -> Option<[Vec<Block>; 2]> {
    let Terminator::Branch { then, els, .. } = &func.blocks[header].term else { return None };
    let inside = |b: Block| b != header && graph.loops.contains(id, b);
    if then.block == els.block || !inside(then.block) || !inside(els.block) {
        return None;
    }
    let reached = |from: Block| {
        let (mut seen, mut open) = (BTreeSet::from([from]), vec![from]);
        while let Some(b) = open.pop() {
            open.extend(graph.cfg.succs(b).iter().copied().filter(|&s| inside(s) && seen.insert(s)));
        }
        graph.data(id).blocks.iter().copied().filter(|b| seen.contains(b)).collect()
    };
    Some([reached(then.block), reached(els.block)])
}

/// Is a loop worth to be divided?
fn divided(func: &Func, graph: &Graph, id: LoopId, budget: u32) -> bool {
    let header = graph.data(id).header;
    let Some([a, b]) = sides(func, graph, id, header) else { return false };
    let Terminator::Branch { cond, .. } = &func.blocks[header].term else { return false };
    let shared: Vec<Block> = a.iter().copied().filter(|x| b.contains(x)).collect();
    // An edge from one side into the other would be one into the middle of a loop.
    let apart = shared.len() < a.len() && shared.len() < b.len();
    let home = graph.home(func.resolve(*cond)) == Some(header);
    let entered = !graph.entries(id).is_empty();
    apart
        && home
        && entered
        && size(func, &shared) + 2 * size(func, &[header]) <= budget
        && lasts(func, graph, id, *cond)
}

/// Does a condition change every so many iterations, as far as can be seen?
fn lasts(func: &Func, graph: &Graph, id: LoopId, cond: Value) -> bool {
    let Some((op, a, b)) = operation(func, cond) else { return false };
    let number = func.as_const(b);
    let slow =
        |x: Value, reach: u64| step(func, graph, id, x).is_some_and(|s| s > 0 && s.saturating_mul(LASTS) <= reach);
    let bit = |x: Value| match operation(func, x) {
        Some((Op::Bin(BinOp::And), y, mask)) => {
            func.as_const(mask).is_some_and(|m| m != 0 && slow(y, m & m.wrapping_neg()))
        }
        _ => false,
    };
    match (op, number) {
        (Op::Cmp(CmpOp::Eq | CmpOp::Ne), Some(0)) => bit(a) || lasts(func, graph, id, a),
        (Op::Cmp(CmpOp::Eq | CmpOp::Ne), Some(n)) if n & (n.wrapping_sub(1)) == 0 => bit(a),
        (Op::Cmp(CmpOp::Eq | CmpOp::Ne), _) => false,
        (Op::Cmp(_), Some(n)) => slow(a, n),
        (Op::Cmp(_), None) => func.as_const(a).is_some_and(|n| slow(b, n)),
        (Op::Bin(BinOp::And), _) => bit(cond),
        _ => false,
    }
}

/// The operation that makes a value of two.
fn operation(func: &Func, v: Value) -> Option<(Op, Value, Value)> {
    let data = &func.insts[func.def_inst(func.resolve(v))?];
    let [a, b] = data.args[..] else { return None };
    Some((data.op, func.resolve(a), func.resolve(b)))
}

/// By how much a counter goes on in each iteration.
fn step(func: &Func, graph: &Graph, id: LoopId, counter: Value) -> Option<u64> {
    let counter = func.resolve(counter);
    if let Some(i) = graph.header_param(func, id, counter) {
        let next: Vec<Value> = graph.back_edges(id).into_iter().map(|e| graph.argument(func, e, i)).collect();
        return agreed(next.into_iter().map(|v| added(func, v, &|x| x == counter)));
    }
    // A place whose address stays the same.
    let place = |inst| {
        let data = &func.insts[inst];
        match data.op {
            Op::Load(access) | Op::Store(access) => {
                let (base, c) = parts(func, data.args[0]);
                Some((access.space, access.bytes, base, c.wrapping_add(access.offset)))
            }
            _ => None,
        }
    };
    let own = place(func.def_inst(counter)?)?;
    if own.2.is_some_and(|base| !graph.invariant(id, base)) {
        return None;
    }
    let insts = graph.data(id).blocks.iter().flat_map(|&b| &func.blocks[b].insts);
    let stores = insts.filter(|&&i| matches!(func.insts[i].op, Op::Store(_)) && place(i) == Some(own));
    let is_load = |x: Value| {
        x == counter
            || func.def_inst(x).is_some_and(|i| matches!(func.insts[i].op, Op::Load(_)) && place(i) == Some(own))
    };
    agreed(stores.map(|&i| added(func, func.insts[i].args[1], &is_load)))
}

/// What all of some say, if that is one and the same.
fn agreed(mut all: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    let first = all.next()??;
    all.all(|v| v == Some(first)).then_some(first)
}

/// What is added to a counter, up or down, whatever mask is put on it.
fn added(func: &Func, next: Value, counter: &dyn Fn(Value) -> bool) -> Option<u64> {
    match operation(func, next)? {
        (Op::Bin(BinOp::And), a, mask) if func.as_const(mask).is_some() => added(func, a, counter),
        (Op::Bin(BinOp::Add), a, by) if counter(a) => {
            let by = func.as_const(by)? as u32 as i32;
            Some(u64::from(by.unsigned_abs()))
        }
        _ => None,
    }
}

fn divide(func: &mut Func, graph: &Graph, id: LoopId) {
    func.resolve_all();
    let (header, entries) = (graph.data(id).header, graph.entries(id));
    // All that the header makes goes to a block behind it, which asks.
    let ask = func.add_block();
    func.blocks[ask].term = edit::take_term(func, header);
    func.blocks[header].term = Terminator::Jump(Target::new(ask, Vec::new()));
    let within = Graph::new(func);
    let mut handed = Vec::new();
    for escape in repair::escapes_of(func, &within, |b| b == header) {
        let ty = func.ty(escape.value());
        let param = func.add_param(ask, ty);
        escape.users().iter().for_each(|&user| repair::substitute(func, user, escape.value(), param));
        handed.push(escape.value());
    }
    func.blocks[header].term = Terminator::Jump(Target::new(ask, handed));
    let layout_end = func.layout.len();
    let first = copy::blocks(func, &[header]);
    copy::redirect(func, &entries, first.block(header));
    // What dominates others stands before them.
    func.layout.swap(layout_end - 1, layout_end);
    copy::place_before(func, layout_end - 1, header);

    // The loop begins with the question now.
    let graph = Graph::new(func);
    let Some(id) = id_of(&graph, ask) else { return };
    let Terminator::Branch { cond, then, els } = func.blocks[ask].term.clone() else { return };
    let params = func.blocks[ask].params.clone();
    let asked = params.iter().position(|&p| p == func.resolve(cond));
    let (Some(sides), Some(asked)) = (sides(func, &graph, id, ask), asked) else { return };
    let escapes = repair::escapes(func, &graph, id);
    let layout_end = func.layout.len();
    let mut copies: Vec<Copy> = Vec::new();
    for (side, target) in sides.iter().zip([&then, &els]) {
        let originals: Vec<Block> = std::iter::once(ask).chain(side.iter().copied()).collect();
        let copy = copy::blocks(func, &originals);
        let begin = copy.block(ask);
        let args = target.args.iter().map(|&v| copy.value(func, v)).collect();
        func.blocks[begin].term = Terminator::Jump(Target::new(copy.block(target.block), args));
        let last = copy.block(header);
        if let Terminator::Jump(again) = func.blocks[last].term.clone() {
            let (stay, leave) = (again.clone(), Target::new(ask, again.args.clone()));
            let cond = again.args[asked];
            let (then, els) = if copies.is_empty() { (stay, leave) } else { (leave, stay) };
            func.blocks[last].term = Terminator::Branch { cond, then, els };
        }
        copies.push(copy);
    }
    let to = |copy: &Copy| Target::new(copy.block(ask), params.clone());
    func.blocks[ask].term = Terminator::Branch { cond, then: to(&copies[0]), els: to(&copies[1]) };
    copy::place_before(func, layout_end, header);
    edit::remove_unreachable(func);
    repair::rejoin(func, &escapes, |v, home| copies.iter().map(|c| c.definition(v, home)).collect());
}

/// The loop that a block is the header of.
fn id_of(graph: &Graph, header: Block) -> Option<LoopId> {
    graph.loops.loops.iter().find(|(_, data)| data.header == header).map(|(id, _)| id)
}
