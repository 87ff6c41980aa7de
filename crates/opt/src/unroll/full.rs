//! Complete unrolling: a loop of `n` iterations becomes `n` copies of its body.
//!
//! `trips.rs` names the branch that leaves the loop in iteration `n` and in none
//! before. The copies are chained, each back edge leading to the next copy's
//! header; the branch becomes a jump, onwards in all copies but the last and
//! outwards in the last one. The body may be any graph of blocks and may have
//! other ways out: they are copied as they are. In the last copy what lies
//! behind the branch cannot be reached, so its back edges are traps that no
//! run meets.
//!
//! Inner loops come first. Once an outer loop is unrolled, counts of its inner
//! loops that hung on the outer counter are constants as well: the caller
//! folds and asks again, so nests collapse from both sides. Nests of one header are told apart
//! first ([`nests`]).

use super::copy::{self, Copy};
use super::graph::{Graph, size};
use super::nests;
use super::repair;
use super::trips::{self, Trips};
use crate::edit;
use crate::options::Options;
use ciphermill_ir::cfg::LoopId;
use ciphermill_ir::{Func, Module, Op, Terminator, TrapCode};

/// A loop that touches no memory stays when it has more iterations: a constant counter settles no address
/// and no table's entry in it, and straight code of hundreds of equal steps takes the stages behind a
/// minute (SNOW 3G's powers by recursion, of up to 245 steps; TEA has 32 rounds).
const MOST_WITHOUT_MEMORY: u32 = 32;

pub(crate) fn run(module: &mut Module, options: &Options) -> bool {
    let budget = options.unroll.full_budget;
    budget > 0 && super::for_each_chosen(module, options, |_, _, func| run_func(func, budget))
}

fn run_func(func: &mut Func, budget: u32) -> bool {
    let mut changed = false;
    nests::separate(func, budget);
    // Each iteration of this takes away a loop, unless that has inner loops, whose
    // copies are then more loops; the budget bounds those.
    loop {
        let graph = Graph::new(func);
        let found = graph.loops.loops.keys().rev().find_map(|id| {
            let blocks = &graph.data(id).blocks;
            let mut insts = blocks.iter().flat_map(|&b| &func.blocks[b].insts);
            let memory = insts.any(|&i| matches!(func.insts[i].op, Op::Load(_) | Op::Store(_)));
            let most = if memory { u32::MAX } else { MOST_WITHOUT_MEMORY };
            let limit = (budget / size(func, blocks).max(1)).min(most);
            Some((id, trips::constant(func, &graph, id, limit, &[])?))
        });
        let Some((id, trips)) = found else { return changed };
        unroll(func, &graph, id, trips);
        changed = true;
    }
}

/// Replace a loop by copies of its body.
fn unroll(func: &mut Func, graph: &Graph, id: LoopId, trips: Trips) {
    let originals = graph.data(id).blocks.clone();
    let header = graph.data(id).header;
    let escapes = repair::escapes(func, graph, id);
    let layout_end = func.layout.len();
    let copies: Vec<Copy> = (0..trips.count).map(|_| copy::blocks(func, &originals)).collect();
    copy::place_before(func, layout_end, header);
    for (i, this) in copies.iter().enumerate() {
        let here = this.block(header);
        let next = copies.get(i + 1).map(|c| c.block(header));
        for &latch in &graph.data(id).latches {
            let latch = this.block(latch);
            let mut term = edit::take_term(func, latch);
            match next {
                Some(next) => term.targets_mut().into_iter().filter(|t| t.block == here).for_each(|t| t.block = next),
                None => term = Terminator::Trap(TrapCode::Unreachable),
            }
            func.blocks[latch].term = term;
        }
        // The branch out may be the latch itself, whose back edge is what the
        // last copy has just lost.
        let exit = this.block(trips.exit.block);
        let outwards = next.is_none();
        let mut term = func.blocks[trips.exit.block].term.clone();
        if let Terminator::Branch { then, els, .. } = &mut term {
            let taken = if outwards == trips.exit.when_true { then } else { els };
            taken.args.iter_mut().for_each(|v| *v = this.value(func, *v));
            taken.block = match (taken.block == header, next) {
                (true, Some(next)) => next,
                _ => this.block(taken.block),
            };
            let taken = taken.clone();
            func.blocks[exit].term = Terminator::Jump(taken);
        }
    }
    let first = copies[0].block(header);
    copy::redirect(func, &graph.entries(id), first);
    edit::remove_unreachable(func);
    repair::rejoin(func, &escapes, |v, home| copies.iter().map(|c| c.definition(v, home)).collect());
}
