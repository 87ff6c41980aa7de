//! Two questions in a loop become one.
//!
//! A loop of two blocks, each of which may leave it, becomes one of one block, as software pipelining
//! needs it: both questions are asked at once, and which of them ended the loop is asked behind it. Of more
//! blocks in a row one after the other goes.
//!
//! ```text
//! A: ..  m ? B : out            A: ..  b  m & c ? A : which
//! B: b   c ? A : ask     ->     which: m ? ask : out
//! ```
//!
//! What the second block does happens once more than it did, when the loop ends: so it may only
//! compute, and load what the first block has loaded or stored in the same iteration.

use super::graph::{Graph, size};
use crate::edit;
use crate::options::Options;
use ciphermill_ir::cfg::LoopId;
use ciphermill_ir::{BinOp, Block, CmpOp, Func, MemAccess, Module, Op, Target, Terminator, Type, Value};

/// For loops that `split` has made.
pub(crate) fn run(module: &mut Module, options: &Options) -> bool {
    each(module, options, false)
}

/// For questions alone that no program asks, but `iterations`.
pub(crate) fn made(module: &mut Module, options: &Options) -> bool {
    each(module, options, true)
}

fn each(module: &mut Module, options: &Options, made: bool) -> bool {
    let budget = options.unroll.full_budget;
    budget > 0
        && super::for_each_chosen(module, options, |_, _, func| {
            let mut changed = false;
            // Each time a block less.
            loop {
                let graph = Graph::new(func);
                let found = graph.loops.loops.keys().find_map(|id| {
                    let blocks = &graph.data(id).blocks;
                    let asked = |&&b: &&Block| !made || own(func, b);
                    blocks.iter().filter(asked).find_map(|&b| two(func, &graph, id, b, budget))
                });
                let Some(row) = found else { break };
                join(func, row);
                changed = true;
            }
            if changed {
                edit::in_order(func);
            }
            changed
        })
}

/// Is what a block branches on no instruction of the program?
fn own(func: &Func, block: Block) -> bool {
    let Terminator::Branch { cond, .. } = &func.blocks[block].term else { return false };
    func.def_inst(func.resolve(*cond)).is_some_and(|i| func.insts[i].loc == 0)
}

/// A block of a loop of blocks in a row, with those before and behind it, if what it does may happen once more.
fn two(func: &Func, graph: &Graph, id: LoopId, b: Block, budget: u32) -> Option<[Block; 3]> {
    let data = graph.data(id);
    // Where the only way on in the loop leads to.
    let onward = |from: Block| match &func.blocks[from].term {
        Terminator::Branch { then, els, .. } => {
            match [then, els].map(|t| graph.loops.contains(id, t.block).then_some(t.block)) {
                [Some(next), None] | [None, Some(next)] => Some(next),
                _ => None,
            }
        }
        _ => None,
    };
    let row = |&b: &Block| b == data.header || graph.cfg.preds(b).len() == 1;
    let [edge] = graph.cfg.preds(b) else { return None };
    let (a, next) = (edge.from, onward(b)?);
    if b == data.header || onward(a) != Some(b) || !data.blocks.iter().all(row) {
        return None;
    }
    let fits = size(func, &[b]) <= budget;
    (fits && harmless(func, a, b)).then_some([a, b, next])
}

/// May what a block does behind another one happen once more?
pub(super) fn harmless(func: &Func, a: Block, b: Block) -> bool {
    func.blocks[b].insts.iter().all(|&i| match func.insts[i].op {
        Op::Load(access) => accessed(func, a, func.insts[i].args[0], access),
        Op::GlobalGet(_) => true,
        op => op.is_pure(),
    })
}

/// Has a block touched the very same place?
fn accessed(func: &Func, block: Block, addr: Value, access: MemAccess) -> bool {
    func.blocks[block].insts.iter().any(|&i| match func.insts[i].op {
        Op::Load(m) | Op::Store(m) => m == access && func.resolve(func.insts[i].args[0]) == func.resolve(addr),
        _ => false,
    })
}

/// The condition under which a branch goes to a block, as 0 or 1; the target there, and the other.
fn towards(func: &mut Func, at: Block, term: Terminator, to: Block) -> Option<(Value, Target, Target)> {
    let Terminator::Branch { cond, then, els } = term else { return None };
    let (wanted, other, op) = if then.block == to { (then, els, CmpOp::Ne) } else { (els, then, CmpOp::Eq) };
    let is_bit = matches!(func.def_op(func.resolve(cond)), Some(Op::Cmp(_)));
    if is_bit && op == CmpOp::Ne {
        return Some((cond, wanted, other));
    }
    let zero = func.append1(at, Op::Const(0), &[], Type::I32, 0);
    Some((func.append1(at, Op::Cmp(op), &[cond, zero], Type::I32, 0), wanted, other))
}

fn join(func: &mut Func, [a, b, next]: [Block; 3]) {
    let term = edit::take_term(func, a);
    let Some((more, onward, out)) = towards(func, a, term, b) else { return };
    let params = std::mem::take(&mut func.blocks[b].params);
    params.into_iter().zip(onward.args).for_each(|(param, value)| func.replace(param, value));
    let insts = std::mem::take(&mut func.blocks[b].insts);
    func.blocks[a].insts.extend(insts);
    let term = edit::take_term(func, b);
    let Some((stay, back, leave)) = towards(func, a, term, next) else { return };
    // The second block becomes the one behind the loop.
    func.blocks[b].term = Terminator::Branch { cond: more, then: leave, els: out };
    let both = func.append1(a, Op::Bin(BinOp::And), &[more, stay], Type::I32, 0);
    func.blocks[a].term = Terminator::Branch { cond: both, then: back, els: Target::new(b, Vec::new()) };
    func.resolve_all();
}
