//! Selections of addresses by a condition that lasts become a branch.
//!
//! A generator with two tables may choose them by selections, without a branch: this one is renewed now, that one
//! is read. No two accesses can be told apart then, as each may be to either table. With a branch in the
//! place of the selections `split` makes a loop for either side, in which the tables are known.
//!
//! ```text
//! head: ..                      head: what c, p and q hang on   c ? a : b
//!       s = c ? p : q     ->    a: jump rest(p)   b: jump rest(q)
//!       ..                      rest(s): all else
//! ```

use super::graph::{Graph, size};
use super::{copy, lasting};
use crate::alias::split as parts;
use crate::edit;
use crate::options::Options;
use ciphermill_ir::cfg::LoopId;
use ciphermill_ir::{Block, Func, Inst, Op, Target, Terminator, Value};
use std::collections::BTreeSet;

/// A selection costs little, and the loop as it is may be a good one: the condition has to last for so many
/// iterations of a short loop, of up to `SHORT` instructions. In a longer one more selections hang on it, so it
/// is worth the same sooner, but not before so many iterations.
const LASTS: u64 = 32;
const SHORT: u64 = 64;
const LASTS_AT_LEAST: u64 = 8;
/// An address is looked at through so many sums.
const DEPTH: u32 = 4;

/// The selections of a loop's header by one condition, and what is to be known before it.
pub(super) struct Chosen {
    header: Block,
    cond: Value,
    selections: Vec<Inst>,
    before: BTreeSet<Inst>,
}

/// Selections of a loop that are worth a branch.
pub(super) fn find(func: &Func, graph: &Graph, id: LoopId, options: &Options) -> Option<Chosen> {
    let data = graph.data(id);
    let header = data.header;
    let insts = &func.blocks[header].insts;
    let cond_of = |&i: &Inst| (func.insts[i].op == Op::Select).then(|| func.resolve(func.insts[i].args[0]));
    let conds: BTreeSet<Value> = insts.iter().filter_map(cond_of).collect();
    let least = (LASTS * SHORT / u64::from(size(func, &data.blocks))).clamp(LASTS_AT_LEAST, LASTS);
    let lasting = |c: &Value| graph.home(*c) == Some(header) && lasting::lasts(func, graph, id, *c, least);
    let addresses = addresses(func, &data.blocks);
    conds.into_iter().filter(lasting).find_map(|cond| {
        let selections: Vec<Inst> = insts.iter().copied().filter(|i| cond_of(i) == Some(cond)).collect();
        let result = |&i: &Inst| func.insts[i].results.first().is_some_and(|r| addresses.contains(r));
        if !selections.iter().any(result) || graph.entries(id).is_empty() {
            return None;
        }
        let before = before(func, header, &selections, options.strict_traps)?;
        let head = before.iter().filter(|i| !matches!(func.insts[**i].op, Op::Const(_))).count() as u32;
        // As `split` counts them.
        let shared = size(func, &data.blocks) - head;
        let fits = shared + 2 * head <= options.unroll.full_budget;
        fits.then_some(Chosen { header, cond, selections, before })
    })
}

/// Values that addresses in some blocks are sums of.
fn addresses(func: &Func, blocks: &[Block]) -> BTreeSet<Value> {
    let mut found = BTreeSet::new();
    let insts = blocks.iter().flat_map(|&b| &func.blocks[b].insts).map(|&i| &func.insts[i]);
    let accesses = insts.filter(|d| matches!(d.op, Op::Load(_) | Op::Store(_)));
    let mut open: Vec<(Value, u32)> = accesses.map(|d| (func.resolve(d.args[0]), DEPTH)).collect();
    while let Some((v, depth)) = open.pop() {
        let base = parts(func, v).0;
        if let Some(base) = base.filter(|&base| depth > 0 && found.insert(base))
            && let Some((a, b)) = lasting::sum(func, base)
        {
            open.extend([(a, depth - 1), (b, depth - 1)]);
        }
    }
    found
}

/// What the condition and the sides of some selections hang on in their block, if it can come first.
fn before(func: &Func, block: Block, selections: &[Inst], strict: bool) -> Option<BTreeSet<Inst>> {
    let insts = &func.blocks[block].insts;
    let mut before = BTreeSet::new();
    let mut open: Vec<Value> = selections.iter().flat_map(|&i| &func.insts[i].args).copied().collect();
    while let Some(v) = open.pop() {
        let own = func.def_inst(func.resolve(v)).filter(|i| insts.contains(i));
        if let Some(inst) = own.filter(|&i| before.insert(i)) {
            open.extend(&func.insts[inst].args);
        }
    }
    let stored = insts.iter().position(|&i| !matches!(func.insts[i].op, Op::Load(_)) && !func.insts[i].op.is_pure());
    // What is loaded comes before all stores as it is; and what may trap comes before nothing else that may.
    let early = |i: &Inst| insts.iter().position(|x| x == i) < Some(stored.unwrap_or(insts.len()));
    let movable = |i: &Inst| match func.insts[*i].op {
        Op::Load(_) => !strict && early(i),
        op => op.is_pure(),
    };
    let apart = selections.iter().all(|s| !before.contains(s));
    (apart && before.iter().all(movable)).then_some(before)
}

/// Put a branch in the place of selections.
pub(super) fn branch(func: &mut Func, chosen: Chosen) {
    let Chosen { header, cond, selections, before } = chosen;
    func.resolve_all();
    let layout_end = func.layout.len();
    let [then, els, rest] = [(); 3].map(|()| func.add_block());
    let term = edit::take_term(func, header);
    func.blocks[rest].term = term;
    let insts = std::mem::take(&mut func.blocks[header].insts);
    let (first, others): (Vec<Inst>, Vec<Inst>) = insts.into_iter().partition(|i| before.contains(i));
    func.blocks[header].insts = first;
    func.blocks[rest].insts = others.into_iter().filter(|i| !selections.contains(i)).collect();
    let side = |func: &Func, k: usize| selections.iter().map(|&i| func.insts[i].args[k]).collect::<Vec<_>>();
    for (block, k) in [(then, 1), (els, 2)] {
        func.blocks[block].term = Terminator::Jump(Target::new(rest, side(func, k)));
    }
    for &selection in &selections {
        let result = func.result(selection);
        let param = func.add_param(rest, func.ty(result));
        func.replace(result, param);
    }
    let to = |block| Target::new(block, Vec::new());
    func.blocks[header].term = Terminator::Branch { cond, then: to(then), els: to(els) };
    // Behind the block that dominates them.
    let next = func.layout.iter().position(|&b| b == header).and_then(|at| func.layout.get(at + 1)).copied();
    if let Some(next) = next.filter(|&n| n != then) {
        copy::place_before(func, layout_end, next);
    }
    func.resolve_all();
}
