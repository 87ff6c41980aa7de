//! Scalar promotion: memory kept in values while a loop runs.
//!
//! A feedback mode stores a block and loads it again in the next iteration, from
//! the same place. In a loop of one block such a place can be a value carried
//! from iteration to iteration: loaded once in front of the loop, if the loop reads it
//! before it writes it, and stored once behind it.
//!
//! A place is an address that does not change in the loop, with an offset and
//! a width. It is taken when it is stored to, and every access of the loop
//! that may touch any of its bytes is an access to exactly that place, of the
//! same type and the full width of it. Nothing in the loop may call, or write
//! to the system area. The loop's block runs from its start to its end in
//! every iteration and at least once, so the load in front and the store behind are
//! accesses the program would have made; what memory holds meanwhile nobody
//! sees, unless a trap shows it: not under strict traps.

use crate::alias::{Aliases, Place, split};
use crate::edit;
use crate::options::Options;
use crate::unroll::for_each_chosen;
use crate::unroll::graph::Graph;
use ciphermill_ir::cfg::{Edge, LoopId};
use ciphermill_ir::{Block, Func, Inst, Module, Op, Space, Target, Terminator, Type, Value};

pub(crate) fn run(module: &mut Module, options: &Options) -> bool {
    if !options.unroll.promote || options.strict_traps {
        return false;
    }
    let mut aliases = Aliases::with_promises(module, options);
    for_each_chosen(module, options, |_, id, func| {
        aliases.enter(id, func);
        let mut changed = false;
        let headers: Vec<Block> = Graph::new(func).loops.loops.values().map(|l| l.header).collect();
        for header in headers {
            // One loop's way out may be the next one's way in.
            let graph = Graph::new(func);
            let Some(id) = graph.loops.innermost(header) else { continue };
            let Some((block, exit)) = single(func, &graph, id) else { continue };
            let places = places(&aliases, func, &graph, id, block);
            if !places.is_empty() {
                write(func, &graph, id, exit, &places);
                changed = true;
            }
        }
        changed
    })
}

/// The block of a loop that is one block with one way out, and that way.
fn single(func: &Func, graph: &Graph, id: LoopId) -> Option<(Block, Edge)> {
    let [block] = graph.data(id).blocks[..] else { return None };
    let exits = graph.exits(id);
    let branch = matches!(func.blocks[block].term, Terminator::Branch { .. });
    (exits.len() == 1 && branch).then(|| (block, exits[0]))
}

/// A place that is written, with its accesses in order.
struct Promoted {
    place: Place,
    ty: Type,
    accesses: Vec<Inst>,
}

fn access(func: &Func, inst: Inst) -> Option<(Place, Type, bool)> {
    let data = &func.insts[inst];
    let (access, value, stores) = match data.op {
        Op::Load(access) => (access, *data.results.first()?, false),
        Op::Store(access) => (access, data.args[1], true),
        _ => return None,
    };
    Some((Place { addr: data.args[0], access }, func.ty(value), stores))
}

fn same(func: &Func, a: Place, b: Place) -> bool {
    let ((base_a, ca), (base_b, cb)) = (split(func, a.addr), split(func, b.addr));
    base_a == base_b
        && ca.wrapping_add(a.access.offset) == cb.wrapping_add(b.access.offset)
        && a.access.bytes == b.access.bytes
}

fn places(aliases: &Aliases, func: &Func, graph: &Graph, id: LoopId, block: Block) -> Vec<Promoted> {
    let insts = &func.blocks[block].insts;
    let quiet = insts.iter().all(|&i| match func.insts[i].op {
        Op::Call(_) | Op::CallPtr(_) => false,
        Op::Store(access) => access.space == Space::Linear,
        _ => true,
    });
    if !quiet {
        return Vec::new();
    }
    let mut promoted: Vec<Promoted> = Vec::new();
    for &inst in insts {
        let Some((place, ty, true)) = access(func, inst) else { continue };
        let fixed = match split(func, place.addr).0 {
            None => true,
            Some(base) => graph.invariant(id, base),
        };
        let full = u32::from(place.access.bytes) * 8 == ty.bits();
        if fixed && full && !promoted.iter().any(|k| same(func, k.place, place)) {
            promoted.push(Promoted { place, ty, accesses: Vec::new() });
        }
    }
    promoted.retain_mut(|k| {
        insts.iter().all(|&inst| {
            let Some((place, ty, stores)) = access(func, inst) else { return true };
            if same(func, k.place, place) && ty == k.ty {
                k.accesses.push(inst);
                return true;
            }
            match stores {
                true => !aliases.may_alias(func, k.place, place),
                false => !aliases.store_may_touch(func, k.place, place),
            }
        })
    });
    promoted
}

fn write(func: &mut Func, graph: &Graph, id: LoopId, exit: Edge, promoted: &[Promoted]) {
    let block = exit.from;
    let front = func.add_block();
    let behind = func.add_block();
    func.layout.truncate(func.layout.len() - 2);
    let at = func.layout.iter().position(|&b| b == block).unwrap_or(0);
    func.layout.insert(at, front);
    func.layout.insert(at + 2, behind);
    let types: Vec<Type> = func.blocks[block].params.iter().map(|&v| func.ty(v)).collect();
    let mut args: Vec<Value> = types.into_iter().map(|ty| func.add_param(front, ty)).collect();
    let mut again: Vec<Value> = Vec::new();
    let mut gone: Vec<Inst> = Vec::new();
    for k in promoted {
        let reads = matches!(func.insts[k.accesses[0]].op, Op::Load(_));
        let mut now = None;
        if reads {
            let loc = func.insts[k.accesses[0]].loc;
            let addr = fixed_address(func, front, k.place.addr);
            let first = func.append1(front, Op::Load(k.place.access), &[addr], k.ty, loc);
            args.push(first);
            now = Some(func.add_param(block, k.ty));
        }
        for &inst in &k.accesses {
            match (func.insts[inst].op, now) {
                (Op::Store(_), _) => now = Some(func.insts[inst].args[1]),
                (_, Some(v)) => func.replace(func.result(inst), v),
                _ => {}
            }
            gone.push(inst);
        }
        let Some(last) = now.map(|v| func.resolve(v)) else { continue };
        if reads {
            again.push(last);
        }
        let addr = fixed_address(func, behind, k.place.addr);
        let loc = k.accesses.last().map_or(0, |&i| func.insts[i].loc);
        func.append(behind, Op::Store(k.place.access), &[addr, last], &[], loc);
    }
    func.blocks[block].insts.retain(|i| !gone.contains(i));
    let mut term = edit::take_term(func, block);
    let mut out = None;
    for (i, target) in term.targets_mut().into_iter().enumerate() {
        if i == exit.index as usize {
            out = Some(std::mem::replace(target, Target::new(behind, Vec::new())));
        } else {
            target.args.extend(&again);
        }
    }
    func.blocks[block].term = term;
    if let Some(out) = out {
        func.blocks[behind].term = Terminator::Jump(out);
    }
    for edge in graph.entries(id) {
        func.blocks[edge.from].term.targets_mut()[edge.index as usize].block = front;
    }
    func.blocks[front].term = Terminator::Jump(Target::new(block, args));
    func.resolve_all();
}

/// The address at the end of another block: its base comes from outside the
/// loop, the constant added to it may not.
fn fixed_address(func: &mut Func, block: Block, addr: Value) -> Value {
    let (base, c) = split(func, addr);
    if base == Some(addr) {
        return addr;
    }
    let c = func.append1(block, Op::Const(u64::from(c)), &[], Type::I32, 0);
    match base {
        None => c,
        Some(base) => func.append1(block, Op::Bin(ciphermill_ir::BinOp::Add), &[base, c], Type::I32, 0),
    }
}
