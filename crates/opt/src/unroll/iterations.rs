//! Iterations of a loop written once more for a trip count that most of them have.
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
//! software pipelining needs it.

use super::copy::{self, Copy};
use super::graph::Graph;
use super::repair;
use ciphermill_ir::cfg::LoopId;
use ciphermill_ir::{Block, CmpOp, Func, Op, Target, Terminator, Type, Value};

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
    copy::map_operands(func, new, made);
    func.result(new)
}
