//! Small loops of a constant number of turns: several turns become one.
//!
//! Where a branch has a delay, no interval of a pipelined loop is shorter than that, and a loop with less work than
//! fits into it waits. So the body is written down several times, until it is as large as the caller wants a loop to be.
//! Turns that are left over stand before the loop, and only the last of the copies asks. Loops of one block whose only
//! way out is at its end.
//!
//! The last copy knows whether to go on only when every copy has counted. Where a loop counts by constant steps that is
//! one sum; where it does so in another way (by a byte, with a mask), the loop gets a counter of its own.

use super::copy::{self, Copy};
use super::counted::Counted;
use super::counter::{self, Steps};
use super::graph::{Exit, Graph, size};
use super::{replace_behind, trips};
use crate::options::Options;
use ciphermill_ir::cfg::{Edge, LoopId};
use ciphermill_ir::{BinOp, Block, Func, Inst, Module, Op, Target, Terminator, Type, Value};
use std::collections::HashMap;

/// A product counts as so many instructions, and its upper half as twice that: where loops are pipelined for the delay of
/// a branch, multipliers are narrow.
const PRODUCT: u32 = 4;
/// Loops of more turns are not counted out.
const MOST: u32 = 1 << 14;

pub(crate) fn run(module: &mut Module, options: &Options) -> bool {
    let wanted = options.unroll.loop_size;
    wanted > 0
        && super::for_each_loop(module, options, |func, graph, id| {
            let found = find(func, graph, id, wanted);
            found.map(|found| write(func, graph, id, &found)).is_some()
        })
}

/// A loop, and how its turns become fewer.
struct Small {
    block: Block,
    exit: Exit,
    /// Turns before the loop, and turns that become one.
    ahead: u32,
    factor: u32,
    /// Turns that the loop has then, where it is to count them by itself.
    count: Option<u32>,
}

/// A loop that is smaller than wanted. Of the factors that make it as large and no larger than twice that, the one that
/// leaves the fewest turns over, and of these the least; where none makes it so large, the greatest of these.
fn find(func: &Func, graph: &Graph, id: LoopId, wanted: u32) -> Option<Small> {
    let [block] = graph.data(id).blocks[..] else { return None };
    let products = func.blocks[block].insts.iter().map(|&i| match func.insts[i].op {
        Op::Bin(BinOp::Mul) => PRODUCT - 1,
        Op::Bin(BinOp::MulHiU | BinOp::MulHiS) => 2 * PRODUCT - 1,
        _ => 0,
    });
    let size = size(func, &[block]) + products.sum::<u32>();
    if size >= wanted || !matches!(func.blocks[block].term, Terminator::Branch { .. }) {
        return None;
    }
    let trips = trips::constant(func, graph, id, MOST, &[])?;
    let turns = trips.count;
    let factors = 2..=(turns / 2).min(2 * wanted / size);
    let enough = factors.clone().filter(|k| k * size >= wanted).min_by_key(|k| turns % k);
    let factor = enough.or_else(|| factors.rev().min_by_key(|k| turns % k))?;
    let linear = Counted::of(func, graph, id).iter().any(|c| c.exit.block == trips.exit.block);
    let count = (!linear).then_some(turns / factor);
    Some(Small { block, exit: trips.exit, ahead: turns % factor, factor, count })
}

/// The turns of a loop written down one behind the other.
struct Turns {
    /// The loop's instructions, its parameters, and what they are in the next turn.
    insts: Vec<Inst>,
    params: Vec<Value>,
    back: Vec<Value>,
    /// The turn that was written last.
    last: Copy,
}

impl Turns {
    fn of(func: &Func, block: Block) -> Turns {
        let data = &func.blocks[block];
        let back = data.term.targets().into_iter().find(|t| t.block == block);
        let back = back.map_or(Vec::new(), |t| t.args.clone());
        Turns { insts: data.insts.clone(), params: data.params.clone(), back, last: Copy::default() }
    }

    /// Parameters become those of the next turn, all at once.
    fn step(&mut self, func: &Func) {
        let next: Vec<Value> = self.back.iter().map(|&v| self.last.value(func, v)).collect();
        self.last.values.extend(self.params.iter().copied().zip(next));
    }

    fn append(&mut self, func: &mut Func, block: Block) {
        for &inst in &self.insts {
            let new = copy::inst_into(func, block, inst, &mut self.last);
            copy::map_operands(func, new, &self.last);
        }
    }
}

fn write(func: &mut Func, graph: &Graph, id: LoopId, small: &Small) {
    let Small { block, exit, ahead, factor, count } = *small;
    let mut entries = graph.entries(id);
    if ahead > 0 {
        let front = before(func, block, ahead);
        copy::redirect(func, &entries, front);
        entries = vec![Edge { from: front, index: 0 }];
    }
    let mut turns = Turns::of(func, block);
    for _ in 1..factor {
        turns.step(func);
        turns.append(func, block);
    }
    let mut term = func.blocks[block].term.clone();
    term.map_values(|v| turns.last.value(func, v));
    func.blocks[block].term = term;
    if let Some(count) = count {
        let down = Steps { ty: Type::I32, start: u64::from(count), step: u64::MAX, loc: 0 };
        let (_, left) = counter::add(func, block, &entries, &graph.back_edges(id), &down);
        counter::leave_at_zero(func, exit, left);
    }
    let last: HashMap<Value, Value> = turns.last.values;
    replace_behind(func, graph, id, |v| last.get(&v).copied().unwrap_or(v));
}

/// So many turns of a loop in a block before it. Returns that block, which takes what the loop does.
fn before(func: &mut Func, block: Block, turns: u32) -> Block {
    let end = func.layout.len();
    let front = copy::same_params(func, block);
    copy::place_before(func, end, block);
    let mut all = Turns::of(func, block);
    all.last.values.extend(all.params.iter().copied().zip(func.blocks[front].params.iter().copied()));
    for _ in 0..turns {
        all.append(func, front);
        all.step(func);
    }
    let args = all.params.iter().map(|&p| all.last.value(func, p)).collect();
    func.blocks[front].term = Terminator::Jump(Target { block, args });
    front
}
