//! The iterations of a loop that take the usual way become a loop of their own.
//!
//! A generator that renews its table when a word of it says so has a branch to something long that a run has not
//! seen taken. Because of it the loop has many blocks, and only a loop of one can be pipelined. Where the
//! condition is known when an iteration begins, [`super::iterations`] asks it there. Here the way that a run takes becomes an inner loop; the other way
//! is behind an exit of it, and goes on with its own copy of what both ways share:
//!
//! ```text
//!                                     outer: jump head
//! head: ..  c ? rare : tail           head:  ..  c ? rare : tail
//! rare: ..  jump tail          ->     tail:  ..  more ? head : out
//! tail: ..  more ? head : out         rare:  ..  jump again
//!                                     again: ..  more ? outer : out
//! ```
//!
//! That means the same whatever the condition is: each iteration runs the same blocks in the same order. With
//! [`super::one_exit`] one block is left of the inner loop, as software pipelining needs it. It is the formation
//! of a superblock by tail duplication: Hwu and others, *The superblock*, Journal of Supercomputing 7, 1993.

use super::copy::{self, Copy};
use super::graph::{Graph, size};
use super::{one_exit, repair};
use crate::edit;
use crate::options::Options;
use ciphermill_ir::cfg::{Edge, LoopId};
use ciphermill_ir::{Block, Func, Module, Target, Terminator};
use std::collections::BTreeSet;

/// So many branches of a function at the most.
const MOST: usize = 8;

pub(crate) fn run(module: &mut Module, options: &Options) -> bool {
    let budget = options.unroll.full_budget;
    budget > 0
        && !options.unroll.steady.is_empty()
        && super::for_each_chosen(module, options, |_, _, func| {
            let mut done: BTreeSet<Block> = BTreeSet::new();
            while done.len() < MOST {
                let graph = Graph::new(func);
                let found = func.layout.iter().find_map(|&b| rare(func, &graph, b, options));
                let Some(found) = found.filter(|found| done.insert(found.edge.from)) else { break };
                write(func, &graph, &found);
            }
            !done.is_empty()
        })
}

/// A way through a loop that no run has taken.
struct Rare {
    id: LoopId,
    edge: Edge,
    /// Blocks of the loop that this way alone leads to, and those that the usual way leads to as well.
    own: Vec<Block>,
    shared: Vec<Block>,
}

/// The way that a block's branch never took, if it is worth to be an exit of a loop of the others.
fn rare(func: &Func, graph: &Graph, block: Block, options: &Options) -> Option<Rare> {
    let Terminator::Branch { cond, then, els } = &func.blocks[block].term else { return None };
    let id = graph.loops.innermost(block)?;
    let data = graph.data(id);
    let inside = |b: Block| graph.loops.contains(id, b) && b != data.header;
    if !inside(then.block) || !inside(els.block) || then.block == els.block {
        return None;
    }
    let loc = func.insts[func.def_inst(func.resolve(*cond))?].loc;
    let value = options.unroll.always(loc)?;
    let edge = Edge { from: block, index: u32::from(value != 0) };
    let to = if value != 0 { els.block } else { then.block };
    let rare = graph.reached(to, |_, next| inside(next));
    let usual = graph.reached(data.header, |b, next| inside(next) && (b, next) != (block, to));
    let of = |wanted: &dyn Fn(&Block) -> bool| data.blocks.iter().copied().filter(|b| wanted(b)).collect::<Vec<_>>();
    let own = of(&|b| rare.contains(b) && !usual.contains(b));
    let shared = of(&|b| rare.contains(b) && usual.contains(b));
    // A loop that is left with loops in it is none of one block, and a small side can be computed in any case.
    let innermost = usual.iter().all(|&b| graph.loops.innermost(b) == Some(id));
    let large = size(func, &own) > options.unroll.if_convert;
    // Else the questions cannot become one.
    let behind = |b: &&Block| usual.contains(b) && !graph.doms.dominates(**b, block);
    let harmless = data.blocks.iter().filter(behind).all(|&b| one_exit::harmless(func, block, b));
    let goes_on = data.latches.iter().any(|l| usual.contains(l));
    let fits = size(func, &shared) <= options.unroll.full_budget && !graph.entries(id).is_empty();
    (innermost && large && harmless && goes_on && fits).then_some(Rare { id, edge, own, shared })
}

fn write(func: &mut Func, graph: &Graph, rare: &Rare) {
    func.resolve_all();
    let header = graph.data(rare.id).header;
    let escapes = repair::escapes_of(func, graph, |b| rare.shared.contains(&b));
    let layout_end = func.layout.len();
    let outer = func.add_block();
    let params: Vec<_> = func.blocks[header].params.iter().map(|&p| func.ty(p)).collect();
    let params = params.into_iter().map(|ty| func.add_param(outer, ty)).collect();
    let copy = copy::blocks(func, &rare.shared);
    copy::redirect(func, &graph.entries(rare.id), outer);
    lead(func, rare.edge.from, Some(rare.edge.index), &copy);
    for block in rare.own.iter().copied().chain(rare.shared.iter().map(|&b| copy.block(b))) {
        lead(func, block, None, &copy);
        func.blocks[block].term.targets_mut().into_iter().filter(|t| t.block == header).for_each(|t| t.block = outer);
    }
    func.blocks[outer].term = Terminator::Jump(Target::new(header, params));
    copy::place_before(func, layout_end, header);
    repair::rejoin(func, &escapes, |v, home| vec![copy.definition(v, home), (home, v)]);
    edit::in_order(func);
}

/// Lead a block's edges, or one of them, to the copies.
fn lead(func: &mut Func, block: Block, index: Option<u32>, copy: &Copy) {
    let edges = (0..).zip(func.blocks[block].term.targets_mut());
    edges.filter(|(i, _)| index.is_none_or(|index| index == *i)).for_each(|(_, t)| t.block = copy.block(t.block));
}
