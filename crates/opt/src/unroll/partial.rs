//! Partial unrolling: `k` iterations of a counted loop as one iteration of a new loop.
//!
//! In front of the loop, and at the end of each iteration of the new one, a guard
//! ([`super::counted`]) asks whether the tests between the next `k` iterations are
//! certain to go on. While it holds, the new loop runs the bodies one after
//! the other without asking. What is left over is for the original loop, which
//! stays as it is:
//!
//! ```text
//! entry(args):  guard ? main(args) : header(args)
//! main(params): body 1, body 2, ..., body k
//!               guard ? main(next) : rest
//! rest:         body k's own test ? header(next) : out
//! ```
//!
//! That is the shape when the loop tests at its end, after loop rotation. In front, the guard stands
//! for the `k - 1` tests that are skipped; behind body `k` it stands for that body's own test as well,
//! which has not been made yet. After a multiple of `k` iterations `rest` leaves the loop. When the
//! test stands elsewhere, all `k` are skipped in each iteration and `rest` is the original header,
//! which asks again.
//!
//! Since the new loop is left only through the guard, its body is one block
//! where the original's was, and the branch back is its only one.

use super::copy::{self, Copy};
use super::counted::{Counted, Guard};
use super::graph::Graph;
use super::repair;
use crate::edit;
use ciphermill_ir::cfg::LoopId;
use ciphermill_ir::{BinOp, Block, Func, Op, Target, Terminator, Type, Value};

/// The loop's only way out is the counted branch, and that is its end.
pub(crate) fn tests_at_end(graph: &Graph, id: LoopId, counted: &Counted) -> bool {
    graph.data(id).latches == [counted.exit.block]
}

/// What decides between the loop and its unrolled form: a block in front of
/// both, with parameters as the loop's header has them, and the guards to ask
/// in it and at the end of the unrolled body.
pub(crate) struct Gate {
    front: Block,
    entry: Guard,
    again: Guard,
}

impl Gate {
    /// None when no guard is known.
    pub(crate) fn new(func: &mut Func, header: Block, counted: &Counted, k: u32, at_end: bool) -> Option<Gate> {
        let front = copy::same_params(func, header);
        let entry = counted.guard(func, front, if at_end { k - 1 } else { k }, false);
        let again = counted.guard(func, front, k, at_end);
        if entry.is_none() || again.is_none() {
            func.layout.retain(|&b| b != front);
        }
        Some(Gate { front, entry: entry?, again: again? })
    }
}

/// Let the block in front decide between the two loops, and lead the edges
/// into the original to it.
pub(crate) fn connect(func: &mut Func, graph: &Graph, id: LoopId, counted: &Counted, gate: &Gate, main: Block) {
    let (header, front) = (graph.data(id).header, gate.front);
    let params = func.blocks[front].params.clone();
    let mut cond = gate.entry.ask(func, front, params[counted.counter]);
    for once in gate.entry.once.into_iter().chain(gate.again.once) {
        cond = func.append1(front, Op::Bin(BinOp::And), &[once, cond], Type::I32, 0);
    }
    let els = Target::new(header, params.clone());
    func.blocks[front].term = Terminator::Branch { cond, then: Target::new(main, params), els };
    copy::redirect(func, &graph.entries(id), front);
}

/// End the new loop of a loop that tests at its end: `latch` is the new loop's
/// last block, `last` the copy of the last body.
pub(crate) fn close(func: &mut Func, counted: &Counted, gate: &Gate, latch: Block, last: &Copy, main: Block) {
    let mut term = func.blocks[counted.exit.block].term.clone();
    term.map_values(|v| last.value(func, v));
    let next: Vec<Value> = match &term {
        Terminator::Branch { then, els, .. } => if counted.exit.when_true { els } else { then }.args.clone(),
        _ => Vec::new(),
    };
    let cond = gate.again.ask(func, latch, next[counted.counter]);
    let rest = func.add_block();
    func.blocks[rest].term = term;
    func.blocks[latch].term =
        Terminator::Branch { cond, then: Target::new(main, next), els: Target::new(rest, Vec::new()) };
}

/// Unroll a loop whose only exit is the counted branch. False when no guard is
/// known.
pub(crate) fn unroll(func: &mut Func, graph: &Graph, id: LoopId, counted: &Counted, k: u32) -> bool {
    let header = graph.data(id).header;
    let at_end = tests_at_end(graph, id, counted);
    let layout_end = func.layout.len();
    let Some(gate) = Gate::new(func, header, counted, k, at_end) else { return false };
    let escapes = repair::escapes(func, graph, id);
    let originals = graph.data(id).blocks.clone();
    let copies: Vec<Copy> = (0..k).map(|_| copy::blocks(func, &originals)).collect();
    let main = copies[0].block(header);
    let last = copies.len() - 1;
    // Where the last body goes when the test does not stand at the end.
    let again = copy::same_params(func, header);
    for (i, this) in copies.iter().enumerate() {
        let here = this.block(header);
        let next = copies.get(i + 1).map_or(again, |c| c.block(header));
        for &latch in &graph.data(id).latches {
            let mut targets = func.blocks[this.block(latch)].term.targets_mut();
            targets.iter_mut().filter(|t| t.block == here).for_each(|t| t.block = next);
        }
        let exit = this.block(counted.exit.block);
        if at_end && i == last {
            close(func, counted, &gate, exit, this, main);
            continue;
        }
        let term = edit::take_term(func, exit);
        func.blocks[exit].term = match term {
            Terminator::Branch { then, els, .. } => Terminator::Jump(if counted.exit.when_true { els } else { then }),
            other => other,
        };
    }
    let params = func.blocks[again].params.clone();
    let cond = gate.again.ask(func, again, params[counted.counter]);
    let (then, els) = (Target::new(main, params.clone()), Target::new(header, params));
    func.blocks[again].term = Terminator::Branch { cond, then, els };
    connect(func, graph, id, counted, &gate, main);
    copy::place_before(func, layout_end, header);
    edit::remove_unreachable(func);
    repair::rejoin(func, &escapes, |v, home| copies.iter().map(|c| c.definition(v, home)).chain([(home, v)]).collect());
    true
}
