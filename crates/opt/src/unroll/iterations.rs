//! Iterations of a loop written once more for what most of them have in common.
//!
//! What takes a message in pieces works out in each iteration how long this piece is: the smaller of what is
//! left and a block. The loop over the piece's bytes has the same trip count in all iterations but the last,
//! and no loop around has it for good. Here an iteration asks at its beginning, and
//! those that have the count become a loop of their own:
//!
//! ```text
//! head(x): ..  more ? head(x') : out     ->     ask(x):   f(x) == c ? whole(x) : head(x)
//!                                                whole(x): ..  more ? again(x') : out
//!                                                again(x): f(x) == c ? whole(x) : head(x)
//!                                                head(x):  ..  more ? ask(x') : out
//! ```
//!
//! That means the same whatever the count is. In `whole` the root is the constant `c`, so
//! the inner loop is a matter of complete unrolling, and with [`super::one_exit`] one block is left, as
//! software pipelining needs it. Counts are `specialise`'s ([`super::specialise`]).
//!
//! The pass here does the same for conditions: whether a buffer is used up, and has to be filled again, was
//! always true in a run on whole blocks ([`super::options::Steady`]). It pays where a side is too large to be
//! computed in any case, or has blocks of its own.

use super::copy::{self, Copy};
use super::graph::{Graph, size};
use super::repair;
use crate::options::Options;
use ciphermill_ir::bits;
use ciphermill_ir::cfg::LoopId;
use ciphermill_ir::{Block, CmpOp, Func, Module, Op, Target, Terminator, Type, Value};

/// Levels of operations between what an iteration begins with and a condition.
const DEPTH: u32 = 8;
/// So many conditions of a function at the most.
const MOST: usize = 4;

pub(crate) fn run(module: &mut Module, options: &Options) -> bool {
    let budget = options.unroll.full_budget;
    budget > 0
        && !options.unroll.steady.is_empty()
        && super::for_each_chosen(module, options, |_, _, func| {
            let mut done: Vec<Block> = Vec::new();
            while done.len() < MOST {
                let graph = Graph::new(func);
                let found = func.layout.iter().find_map(|&b| steady(func, &graph, b, &done, options));
                let Some((block, id, root, c)) = found else { break };
                done.push(block);
                write(func, &graph, id, root, c);
            }
            !done.is_empty()
        })
}

/// The loop whose iterations begin with the condition that a block branches on, which was always the same; the
/// condition, and what it was.
fn steady(
    func: &Func,
    graph: &Graph,
    block: Block,
    done: &[Block],
    options: &Options,
) -> Option<(Block, LoopId, Value, u64)> {
    let Terminator::Branch { cond, then, els } = &func.blocks[block].term else { return None };
    let (root, id) = (func.resolve(*cond), graph.loops.innermost(block)?);
    let inside = |b: Block| graph.loops.contains(id, b) && b != graph.data(id).header;
    if done.contains(&block) || graph.invariant(id, root) || !inside(then.block) || !inside(els.block) {
        return None;
    }
    let loc = func.insts[func.def_inst(root)?].loc;
    let value = options.unroll.always(loc)?;
    // Anything but zero is true, and only one of these can be put in its place.
    if value != 0 && bits::possible(func, root) > 1 || !begins(func, graph, id, root, DEPTH) {
        return None;
    }
    let blocks = &graph.data(id).blocks;
    // A side may be a loop.
    let beyond = |side: Block| -> Vec<Block> {
        let entries = graph.cfg.preds(side).iter().filter(|e| !graph.doms.dominates(side, e.from)).count();
        blocks.iter().copied().filter(|&b| entries == 1 && graph.doms.dominates(side, b)).collect()
    };
    let sides = [beyond(then.block), beyond(els.block)];
    // Else both sides can be computed.
    let several = |side: &Vec<Block>| side.len() > 1 || side.iter().any(|&b| graph.loops.innermost(b) != Some(id));
    let large = sides.iter().any(several) || size(func, &sides.concat()) > options.unroll.if_convert;
    let fits = size(func, blocks) <= options.unroll.full_budget;
    (fits && large).then_some((block, id, root, u64::from(value.min(1))))
}

/// Is a value arithmetic on what an iteration begins with?
pub(super) fn begins(func: &Func, graph: &Graph, id: LoopId, v: Value, depth: u32) -> bool {
    let v = func.resolve(v);
    if graph.invariant(id, v) || graph.header_param(func, id, v).is_some() {
        return true;
    }
    let Some(data) = func.def_inst(v).map(|i| &func.insts[i]) else { return false };
    depth > 0 && data.op.is_pure() && data.args.iter().all(|&a| begins(func, graph, id, a, depth - 1))
}

/// Write the iterations in which `root`, of which [`begins`] holds, is `c` as a loop of their own.
pub(super) fn write(func: &mut Func, graph: &Graph, id: LoopId, root: Value, c: u64) {
    let data = graph.data(id);
    let header = data.header;
    let escapes = repair::escapes(func, graph, id);
    let layout_end = func.layout.len();
    let ask = func.add_block();
    let copy = copy::blocks(func, &data.blocks);
    let whole = copy.block(header);
    let constant = question(func, graph, id, (root, c), ask, whole);
    let again = func.add_block();
    question(func, graph, id, (root, c), again, whole);
    let own = copy.value(func, root);
    data.blocks.iter().for_each(|&block| repair::substitute(func, copy.block(block), own, constant));
    for &latch in &data.latches {
        let mut targets = func.blocks[copy.block(latch)].term.targets_mut();
        targets.iter_mut().filter(|t| t.block == whole).for_each(|t| t.block = again);
    }
    copy::redirect(func, &graph.entries(id), ask);
    copy::redirect(func, &graph.back_edges(id), ask);
    copy::place_before(func, layout_end, header);
    repair::rejoin(func, &escapes, |v, home| vec![copy.definition(v, home), (home, v)]);
}

/// Fill a block that asks which of the two an iteration is to be; gives the constant.
fn question(func: &mut Func, graph: &Graph, id: LoopId, (root, c): (Value, u64), block: Block, whole: Block) -> Value {
    let header = graph.data(id).header;
    let mut made = Copy::default();
    for i in 0..func.blocks[header].params.len() {
        let param = func.blocks[header].params[i];
        let ty = func.ty(param);
        made.values.insert(param, func.add_param(block, ty));
    }
    let params = func.blocks[block].params.clone();
    let asked = early(func, graph, id, block, root, &mut made);
    let constant = func.append1(block, Op::Const(c), &[], func.ty(asked), 0);
    let cond = func.append1(block, Op::Cmp(CmpOp::Eq), &[asked, constant], Type::I32, 0);
    let (then, els) = (Target::new(whole, params.clone()), Target::new(header, params));
    func.blocks[block].term = Terminator::Branch { cond, then, els };
    constant
}

/// Compute a value that an iteration [`begins`] with at the end of a block.
fn early(func: &mut Func, graph: &Graph, id: LoopId, block: Block, v: Value, made: &mut Copy) -> Value {
    let v = func.resolve(v);
    if made.values.contains_key(&v) || graph.invariant(id, v) {
        return made.value(func, v);
    }
    let Some(inst) = func.def_inst(v) else { return v };
    for arg in func.insts[inst].args.clone() {
        early(func, graph, id, block, arg, made);
    }
    let new = copy::inst_into(func, block, inst, made);
    // It is not where the condition was: no iterations are told apart by the question itself.
    func.insts[new].loc = 0;
    copy::map_operands(func, new, made);
    func.result(new)
}
