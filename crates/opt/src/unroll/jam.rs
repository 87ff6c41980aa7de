//! Several blocks of a message at once: the outermost counted loops are
//! unrolled partially, and where they hold inner loops, those are fused.
//!
//! A loop over the blocks of a message whose body is straight code is unrolled
//! by `k` as [`super::partial`] does it; that the `k` bodies stand in one block
//! is all a scheduler needs to interleave them. When a loop over the rounds is
//! left in the body, because it was too large to unroll, its `k` copies would
//! run one after the other. *Unroll and jam* makes one loop of them whose iteration
//! does one iteration of each.
//!
//! **Shape.** The body is a chain of segments, each a block of straight code
//! or a loop of a single block. In the new loop each segment holds the `k`
//! copies of the old one; a fused inner loop carries the parameters of all of
//! them and asks the first one's condition. Parameters that are the same in
//! all copies (a counter, a pointer to the round keys) are carried once.
//!
//! **Why sound.** Copies change their order, so
//! * what an iteration of the outer loop hands to the next must be computable before
//!   anything else of the iteration: arithmetic on the loop's own parameters, which
//!   is written at the top for all copies;
//! * all copies of an inner loop iterate equally often: what its condition
//!   depends on starts from values that the outer loop does not change;
//! * no store of one copy may touch what another copy reads or writes, unless
//!   both stand in the same straight segment, where the order is kept. The
//!   question is put to the copies themselves, so that pointers a constant
//!   apart are known to be apart; the promises about buffers usually decide;
//! * nothing else in the body may have an effect, and traps do not count.
//!
//! Where one of these fails the loop stays as it was.

use super::copy::{self, Copy};
use super::counted::Counted;
use super::graph::{Graph, size};
use super::{partial, repair, trips};
use crate::alias::{Aliases, Place};
use crate::edit;
use crate::options::Options;
use ciphermill_ir::cfg::LoopId;
use ciphermill_ir::{Block, Func, FuncId, Inst, Module, Op, Space, Terminator, Value};

/// Instructions that the body of an unrolled loop may have.
const MAX_BODY: u32 = 40_000;
/// Levels of operations between what an iteration gets and what it hands on.
const DEPTH: u32 = 8;

pub(crate) fn run(module: &mut Module, options: &Options) -> bool {
    let k = options.unroll.jam;
    if k < 2 {
        return false;
    }
    let mut aliases = Aliases::with_promises(module, options);
    let strict = options.strict_traps;
    super::for_each_chosen(module, options, |_, id, func| run_func(&mut aliases, id, func, k, strict))
}

fn run_func(aliases: &mut Aliases, id: FuncId, func: &mut Func, k: u32, strict: bool) -> bool {
    let graph = Graph::new(func);
    let outermost = graph.loops.loops.values().filter(|l| l.parent.is_none());
    let headers: Vec<Block> = outermost.map(|l| l.header).collect();
    let mut changed = false;
    for header in headers {
        let graph = Graph::new(func);
        let Some(at) = graph.loops.innermost(header).filter(|&at| graph.data(at).header == header) else { continue };
        let Some(counted) = wanted(func, &graph, at, k) else { continue };
        let nested = graph.loops.loops.values().any(|l| l.parent == Some(at));
        changed |= if !nested {
            partial::unroll(func, &graph, at, &counted, k)
        } else if strict {
            false
        } else {
            let before = func.clone();
            let done = Jam::new(func, &graph, at, counted, k).and_then(|jam| jam.run(func, &graph));
            let legal = done.is_some_and(|bodies| {
                aliases.enter(id, func);
                disjoint(aliases, func, &bodies)
            });
            if !legal {
                *func = before;
            }
            legal
        };
    }
    changed
}

/// The counted branch of a loop worth unrolling: it is the only way out, the
/// loop calls nothing and iterates often enough.
fn wanted(func: &Func, graph: &Graph, id: LoopId, k: u32) -> Option<Counted> {
    let blocks = &graph.data(id).blocks;
    let calls =
        |&b: &Block| func.blocks[b].insts.iter().any(|&i| matches!(func.insts[i].op, Op::Call(_) | Op::CallPtr(_)));
    let small = size(func, blocks).saturating_mul(k) <= MAX_BODY;
    if graph.exits(id).len() != 1 || !small || blocks.iter().any(calls) {
        return None;
    }
    if trips::constant(func, graph, id, k - 1, &[]).is_some() {
        return None;
    }
    Counted::of(func, graph, id).into_iter().next()
}

/// One link of a loop's body.
#[derive(Clone, Copy)]
struct Segment {
    block: Block,
    /// It is an inner loop.
    turns: bool,
}

struct Jam {
    id: LoopId,
    counted: Counted,
    k: usize,
    segments: Vec<Segment>,
}

/// An access in the new loop: which copy, which segment, and whether that is an
/// inner loop.
struct Touch {
    copy: usize,
    segment: usize,
    turns: bool,
    place: Place,
    stores: bool,
}

impl Jam {
    /// Take the loop apart; none when it is not of the shape.
    fn new(func: &Func, graph: &Graph, id: LoopId, counted: Counted, k: u32) -> Option<Jam> {
        let data = graph.data(id);
        let mut segments = Vec::new();
        let mut block = data.header;
        loop {
            let (turns, next) = match &func.blocks[block].term {
                Terminator::Jump(to) => (false, to.block),
                Terminator::Branch { then, els, .. } if then.block == block => (true, els.block),
                Terminator::Branch { then, els, .. } if els.block == block => (true, then.block),
                Terminator::Branch { .. } if block == counted.exit.block => (false, data.header),
                _ => return None,
            };
            let inside = graph.loops.contains(id, next) && graph.cfg.preds(block).len() == if turns { 2 } else { 1 };
            if block != data.header && !inside || segments.len() > data.blocks.len() {
                return None;
            }
            segments.push(Segment { block, turns });
            if next == data.header {
                break;
            }
            block = next;
        }
        let whole = segments.len() == data.blocks.len() && partial::tests_at_end(graph, id, &counted);
        let jam = Jam { id, counted, k: k as usize, segments };
        let fits = whole && jam.segments.iter().all(|s| !s.turns || jam.same_trips(func, graph, s.block));
        let insts = || jam.segments.iter().flat_map(|s| &func.blocks[s.block].insts).map(|&i| func.insts[i].op);
        let quiet = insts().all(|op| match op {
            Op::Store(access) => access.space == Space::Linear,
            op => !op.has_effect(),
        });
        (fits && quiet && !jam.segments[0].turns).then_some(jam)
    }

    /// Does the condition of an inner loop come out the same in all copies?
    fn same_trips(&self, func: &Func, graph: &Graph, inner: Block) -> bool {
        let Terminator::Branch { cond, .. } = &func.blocks[inner].term else { return false };
        self.uniform(func, graph, inner, *cond)
    }

    /// Is a value of an inner loop, in each of its iterations, the same whichever
    /// iteration of the outer loop it belongs to?
    fn uniform(&self, func: &Func, graph: &Graph, inner: Block, v: Value) -> bool {
        let Some(inner_id) = graph.loops.innermost(inner) else { return false };
        let mut seen: Vec<Value> = Vec::new();
        let mut work = vec![func.resolve(v)];
        while let Some(v) = work.pop() {
            if seen.contains(&v) || graph.invariant(self.id, v) || func.as_const(v).is_some() {
                continue;
            }
            seen.push(v);
            if let Some(param) = graph.header_param(func, inner_id, v) {
                work.extend(graph.cfg.preds(inner).iter().map(|&e| graph.argument(func, e, param)));
                continue;
            }
            match func.def_inst(v).map(|i| &func.insts[i]) {
                Some(data) if data.op.is_pure() => work.extend(data.args.iter().map(|&a| func.resolve(a))),
                _ => return false,
            }
        }
        true
    }

    /// Write the new loop; gives the accesses of its copies. None, with the
    /// function in disorder, when it cannot be done.
    fn run(&self, func: &mut Func, graph: &Graph) -> Option<Vec<Touch>> {
        let header = graph.data(self.id).header;
        let layout_end = func.layout.len();
        let gate = partial::Gate::new(func, header, &self.counted, self.k as u32, true)?;
        let escapes = repair::escapes(func, graph, self.id);
        let blocks: Vec<Block> = self.segments.iter().map(|_| func.add_block()).collect();
        let mut copies: Vec<Copy> = vec![Copy::default(); self.k];
        self.parameters(func, graph, &blocks, &mut copies);
        self.carried(func, graph, blocks[0], &mut copies)?;
        let mut touches = Vec::new();
        for (n, segment) in self.segments.iter().enumerate() {
            for (c, copy) in copies.iter_mut().enumerate() {
                for i in 0..func.blocks[segment.block].insts.len() {
                    let inst = func.blocks[segment.block].insts[i];
                    let new = copy::inst_into(func, blocks[n], inst, copy);
                    copy::map_operands(func, new, copy);
                    touches.extend(touch(func, new, c, n, segment.turns));
                }
            }
            if let Some(&next) = blocks.get(n + 1) {
                let term = self.transfer(func, graph, &copies, n, (blocks[n], next));
                func.blocks[blocks[n]].term = term;
            }
        }
        let (last, latch) = (&copies[self.k - 1], blocks[blocks.len() - 1]);
        partial::close(func, &self.counted, &gate, latch, last, blocks[0]);
        partial::connect(func, graph, self.id, &self.counted, &gate, blocks[0]);
        copy::place_before(func, layout_end, header);
        let new = |home| self.segments.iter().position(|s| s.block == home).map(|n| blocks[n]);
        repair::rejoin(func, &escapes, |v, home| {
            new(home).map(|b| (b, last.definition(v, home).1)).into_iter().chain([(home, v)]).collect()
        });
        edit::remove_unreachable(func);
        Some(touches)
    }

    /// Parameters of the new blocks: the header's once, others for each copy
    /// unless the copies agree.
    fn parameters(&self, func: &mut Func, graph: &Graph, blocks: &[Block], copies: &mut [Copy]) {
        for (n, segment) in self.segments.iter().enumerate() {
            let params = func.blocks[segment.block].params.clone();
            for (c, copy) in copies.iter_mut().enumerate() {
                for &param in &params {
                    if c > 0 && (n == 0 || self.shared(func, graph, segment, param)) {
                        continue;
                    }
                    let new = func.add_param(blocks[n], func.ty(param));
                    copy.values.insert(param, new);
                }
            }
            for &param in params.iter().filter(|_| n > 0) {
                let first = copies[0].value(func, param);
                copies.iter_mut().for_each(|c| {
                    c.values.entry(param).or_insert(first);
                });
            }
        }
    }

    /// Is a segment's parameter one for all copies?
    fn shared(&self, func: &Func, graph: &Graph, segment: &Segment, param: Value) -> bool {
        segment.turns && self.uniform(func, graph, segment.block, param)
    }

    /// Compute at the top what each copy but the first gets from the one
    /// before it.
    fn carried(&self, func: &mut Func, graph: &Graph, top: Block, copies: &mut [Copy]) -> Option<()> {
        let header = graph.data(self.id).header;
        let back = *graph.back_edges(self.id).first()?;
        for c in 1..copies.len() {
            let mut before = copies[c - 1].clone();
            for i in 0..func.blocks[header].params.len() {
                let handed = graph.argument(func, back, i);
                let value = self.early(func, graph, top, &mut before, handed, DEPTH)?;
                copies[c].values.insert(func.blocks[header].params[i], value);
            }
        }
        Some(())
    }

    /// The copy of a value, made in the first block from parameters.
    fn early(
        &self,
        func: &mut Func,
        graph: &Graph,
        top: Block,
        copy: &mut Copy,
        v: Value,
        depth: u32,
    ) -> Option<Value> {
        if let Some(&known) = copy.values.get(&v) {
            let of_inner = graph.home(v).is_some_and(|b| b != self.segments[0].block) && func.def_inst(v).is_none();
            return (!of_inner).then_some(known);
        }
        if graph.invariant(self.id, v) {
            return Some(v);
        }
        let inst = func.def_inst(v)?;
        if depth == 0 || !func.insts[inst].op.is_pure() {
            return None;
        }
        for arg in func.insts[inst].args.clone() {
            let arg = func.resolve(arg);
            self.early(func, graph, top, copy, arg, depth - 1)?;
        }
        let new = copy::inst_into(func, top, inst, copy);
        copy::map_operands(func, new, copy);
        Some(func.result(new))
    }

    /// The terminator of a new segment, which repeats itself or goes on to the
    /// next: that of the first copy, with the arguments of all.
    fn transfer(
        &self,
        func: &Func,
        graph: &Graph,
        copies: &[Copy],
        n: usize,
        (new, next): (Block, Block),
    ) -> Terminator {
        let mut term = func.blocks[self.segments[n].block].term.clone();
        for target in term.targets_mut() {
            let again = target.block == self.segments[n].block;
            let segment = &self.segments[if again { n } else { n + 1 }];
            let mut args = Vec::new();
            for (c, copy) in copies.iter().enumerate() {
                for (&arg, &param) in target.args.iter().zip(&func.blocks[segment.block].params) {
                    if c == 0 || !self.shared(func, graph, segment, param) {
                        args.push(copy.value(func, arg));
                    }
                }
            }
            target.args = args;
            target.block = if again { new } else { next };
        }
        if let Terminator::Branch { cond, .. } = &mut term {
            *cond = copies[0].value(func, *cond);
        }
        term
    }
}

fn touch(func: &Func, inst: Inst, copy: usize, segment: usize, turns: bool) -> Option<Touch> {
    let data = &func.insts[inst];
    let (access, stores) = match data.op {
        Op::Load(access) => (access, false),
        Op::Store(access) => (access, true),
        _ => return None,
    };
    Some(Touch { copy, segment, turns, place: Place { addr: data.args[0], access }, stores })
}

/// Do copies never touch what another one stores, where their order changed?
fn disjoint(aliases: &Aliases, func: &Func, touches: &[Touch]) -> bool {
    let stores = touches.iter().filter(|t| t.stores);
    stores.into_iter().all(|store| {
        touches.iter().all(|other| {
            let ordered = store.copy == other.copy || (store.segment == other.segment && !store.turns);
            ordered || !aliases.store_may_touch(func, store.place, other.place)
        })
    })
}
