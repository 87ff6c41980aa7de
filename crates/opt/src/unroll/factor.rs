//! Small loops of a constant number of turns: several turns become one.
//!
//! Where a branch has a delay, no interval of a pipelined loop is shorter than that, and a loop with less work than
//! fits into it waits. So the body is written down several times, by a factor of the number of turns, until it is as
//! large as the caller wants a loop to be. Loops of one block whose only way out is at its end; nothing is left over,
//! and only the last of the copies asks.

use super::graph::{Graph, size};
use super::{replace_behind, trips};
use crate::options::Options;
use ciphermill_ir::cfg::LoopId;
use ciphermill_ir::{BinOp, Block, Func, Module, Op, Terminator, Value};
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
            found.map(|(block, factor)| write(func, graph, id, block, factor)).is_some()
        })
}

/// The block of a loop that is smaller than wanted, and the least factor of its turns that makes it as large; or the
/// largest that makes it no larger than twice that.
fn find(func: &Func, graph: &Graph, id: LoopId, wanted: u32) -> Option<(Block, u32)> {
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
    let turns = trips::constant(func, graph, id, MOST, &[])?.count;
    let mut factors = (2..turns.min(2 * wanted / size + 1)).filter(|k| turns.is_multiple_of(*k));
    let enough = factors.clone().find(|k| k * size >= wanted);
    Some((block, enough.or_else(|| factors.next_back())?))
}

fn write(func: &mut Func, graph: &Graph, id: LoopId, block: Block, factor: u32) {
    let originals = func.blocks[block].insts.clone();
    let params = func.blocks[block].params.clone();
    let term = func.blocks[block].term.clone();
    let back: Vec<Value> = term
        .targets()
        .into_iter()
        .find(|t| t.block == block)
        .map_or(Vec::new(), |t| t.args.iter().map(|&a| func.resolve(a)).collect());
    let mut now: HashMap<Value, Value> = HashMap::new();
    let own = |now: &HashMap<Value, Value>, v: Value| now.get(&v).copied().unwrap_or(v);
    for _ in 1..factor {
        // All parameters change at once.
        let next: Vec<(Value, Value)> = params.iter().zip(&back).map(|(&p, &a)| (p, own(&now, a))).collect();
        now.extend(next);
        for &inst in &originals {
            let data = func.insts[inst].clone();
            let args: Vec<Value> = data.args.iter().map(|&a| own(&now, func.resolve(a))).collect();
            let types: Vec<_> = data.results.iter().map(|&v| func.ty(v)).collect();
            let new = func.append(block, data.op, &args, &types, data.loc);
            now.extend(data.results.iter().copied().zip(func.insts[new].results.iter().copied()));
        }
    }
    let mut term = term;
    term.map_values(|v| own(&now, func.resolve(v)));
    func.blocks[block].term = term;
    replace_behind(func, graph, id, |v| own(&now, v));
}
