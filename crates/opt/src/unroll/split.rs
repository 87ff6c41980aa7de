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
use super::halves::Halves;
use super::lasting;
use super::{repair, selections};
use crate::edit;
use crate::options::Options;
use ciphermill_ir::cfg::LoopId;
use ciphermill_ir::{Block, Func, Module, Target, Terminator};

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
                if let Some(id) = graph.loops.loops.keys().find(|&id| divided(func, &graph, id, budget)) {
                    divide(func, &graph, id, budget);
                } else if let Some(found) =
                    graph.loops.loops.keys().find_map(|id| selections::find(func, &graph, id, options))
                {
                    selections::branch(func, found);
                } else {
                    break;
                }
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
        let seen = graph.reached(from, |_, to| inside(to));
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
        && lasting::lasts(func, graph, id, *cond, LASTS)
}

fn divide(func: &mut Func, graph: &Graph, id: LoopId, budget: u32) {
    func.resolve_all();
    let (header, entries) = (graph.data(id).header, graph.entries(id));
    let halves = match &func.blocks[header].term {
        Terminator::Branch { cond, .. } => Halves::of(func, graph, id, *cond),
        _ => None,
    };
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
    // The counter, if it is wanted behind the header.
    let halves = halves.and_then(|h| Some((h, handed.iter().position(|&v| v == h.counter)?)));
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
    let mut targets = Vec::new();
    for (side, target, when) in [(&sides[0], &then, true), (&sides[1], &els, false)] {
        let originals: Vec<Block> = std::iter::once(ask).chain(side.iter().copied()).collect();
        let another = |func: &mut Func| {
            let copy = copy::blocks(func, &originals);
            let args = target.args.iter().map(|&v| copy.value(func, v)).collect();
            func.blocks[copy.block(ask)].term = Terminator::Jump(Target::new(copy.block(target.block), args));
            copy
        };
        let copy = another(func);
        let (begin, last) = (copy.block(ask), copy.block(header));
        let mut to = begin;
        // One more copy of this side may be made.
        let room = size(func, &graph.data(id).blocks) + size(func, side) <= budget;
        let known = halves.filter(|h| room || !h.0.tested(when));
        if let Terminator::Jump(again) = func.blocks[last].term.clone() {
            let (stay, leave) = (again.clone(), Target::new(ask, again.args.clone()));
            let mut cond = again.args[asked];
            if let Some((halves, at)) = known.filter(|h| h.0.tested(when)) {
                cond = halves.stays(func, last, cond, again.args[at], when);
            }
            let (then, els) = if when { (stay, leave) } else { (leave, stay) };
            func.blocks[last].term = Terminator::Branch { cond, then, els };
        }
        if let Some((halves, at)) = known {
            if halves.tested(when) {
                let other = another(func);
                if let Terminator::Jump(again) = &mut func.blocks[other.block(header)].term {
                    again.block = ask;
                }
                to = halves.check(func, params[at], [begin, other.block(ask)], &params);
                // Before what it dominates.
                func.layout.retain(|&b| b != to);
                func.layout.insert(layout_end, to);
                copies.push(other);
            }
            let blocks: Vec<Block> = originals.iter().map(|&b| copy.block(b)).collect();
            let counter = copy.value(func, params[at]);
            halves.write(func, &blocks, begin, counter, when);
        }
        let args = if to == begin { params.clone() } else { Vec::new() };
        targets.push(Target::new(to, args));
        copies.push(copy);
    }
    let [then, els] = [targets[0].clone(), targets[1].clone()];
    func.blocks[ask].term = Terminator::Branch { cond, then, els };
    copy::place_before(func, layout_end, header);
    edit::remove_unreachable(func);
    repair::rejoin(func, &escapes, |v, home| copies.iter().map(|c| c.definition(v, home)).collect());
}

/// The loop that a block is the header of.
fn id_of(graph: &Graph, header: Block) -> Option<LoopId> {
    graph.loops.loops.iter().find(|(_, data)| data.header == header).map(|(id, _)| id)
}
