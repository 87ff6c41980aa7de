//! Loops written once more for a trip count that is expected.
//!
//! The number of rounds of a cipher often stands in its context: the loop over
//! rounds has no constant trip count, though in one run it is the same for all
//! blocks. Given the count of such a run ([`super::options::LoopTrips`]), the
//! *root* of the count is looked for, the one value that is not a constant in
//! what the loop starts from and is compared with. If root `== c` gives that
//! count, the widest loop around in which the root does not change is copied:
//!
//! ```text
//! front(params): root == c ? copy(params) : original(params)
//! ```
//!
//! In the copy the root is the constant `c`, and with it the loop a matter of
//! complete unrolling; the original stays for every other value. So a wrong or
//! stale profile costs code, never correctness.
//!
//! **Conditions.** Whether a cipher's key is a long one stands there, too, and what it asks in
//! every round is the same for all blocks. A condition that does not change in a loop and that
//! was always true in the run, or always false, or what a switch hangs on and that was always
//! the same ([`super::options::Steady`]), is a root like a count's: in the copy it is what it
//! was, and so is every other value there that is computed in the same way. The original, for
//! when it is not, is not looked at again.
//!
//! **The root in front.** It may be computed inside the loop that is copied.
//! It is computed again in front, where that is the same: arithmetic on values
//! from outside, and loads from an address that does not change, if nothing in
//! the loop may write there, and if the load runs whenever the loop is entered
//! (under strict traps: if it is in bounds for certain).
//!
//! **Finding `c`.** From the wanted count follows what the start or the bound
//! of the counter has to be; additions, exclusive ors, shifts and the like on
//! the way from the root are turned round. Shifts and masks lose bits, and steps of more than one
//! end at several bounds, so there are several such numbers: a C compiler that makes two rounds at a
//! time asks behind the loop whether there is one more. Of those with which running the counters
//! ([`super::trips`]) gives the count the first is taken with which every condition that hangs on the
//! root, and was always the same in the run, is what it was; so it stays a guess. Of a loop with
//! several branches out of it those count by which the run left it.

use super::copy::{self, Copy};
use super::counted::{Bound, Counted, Test, offset};
use super::graph::{Graph, size};
use super::options::LoopTrips;
use super::{iterations, repair, trips};
use crate::alias::{Aliases, Place};
use crate::options::Options;
use ciphermill_ir::bits;
use ciphermill_ir::cfg::LoopId;
use ciphermill_ir::{BinOp, Block, CmpOp, Func, Module, Op, Space, Target, Terminator, Type, Value};

/// Levels of operations between a root and a counter, and in front of a loop.
const DEPTH: u32 = 8;
/// A loop may be copied for a condition that is so many times what an unrolled loop may come to:
/// of the copy only what the condition chooses is left, and the original is there for the rest.
const COPIED: u32 = 2;
/// So many of the bits that a loop's count does not hang on are tried, and so many bounds that end it as soon: enough
/// for loops that a C compiler has made of 16 rounds, and of eight.
const LOST: usize = 4;
const SOONER: u64 = 8;
/// Versions made in one function.
const MAX_VERSIONS: usize = 64;

pub(crate) fn run(module: &mut Module, options: &Options) -> bool {
    if options.unroll.profile.is_empty() && options.unroll.steady.is_empty() {
        return false;
    }
    let mut aliases = Aliases::with_promises(module, options);
    super::for_each_chosen(module, options, |_, id, func| {
        let mut done: Vec<(Block, Option<Count>)> = Vec::new();
        // Blocks of originals: where other counts are not looked for, and other conditions.
        let (mut uncounted, mut unasked): (Vec<Block>, Vec<Block>) = Default::default();
        while done.len() < MAX_VERSIONS {
            let graph = Graph::new(func);
            aliases.enter(id, func);
            let pass = Pass { aliases: &aliases, graph: &graph, options };
            let counted = pass.find(func, &done, &uncounted);
            let Some(version) = counted.or_else(|| pass.steady(func, &unasked)) else { break };
            let data = graph.data(version.id);
            unasked.extend(&data.blocks);
            if version.counted.is_none() {
                uncounted.extend(&data.blocks);
            }
            done.push((data.header, version.counted));
            pass.write(func, &version);
        }
        !done.is_empty()
    })
}

/// The entries of a profile for the loop that an offset lies in: those of the
/// smallest range around it.
fn entries(profile: &[LoopTrips], loc: u32) -> Vec<LoopTrips> {
    let around = || profile.iter().filter(|p| (p.first..=p.last).contains(&loc));
    let Some(best) = around().map(|p| (p.last - p.first, p.first)).min() else { return Vec::new() };
    around().filter(|p| (p.last - p.first, p.first) == best && p.trips > 0).copied().collect()
}

/// A loop to copy.
struct Version {
    id: LoopId,
    root: Value,
    c: u64,
    /// Other values of the loop that are the root.
    also: Vec<Value>,
    /// The loop that iterates so often; none for a condition. The original is then not copied again.
    counted: Option<Count>,
    /// The loop around of which only the iterations with this root are written once more.
    each: Option<LoopId>,
}

/// The header of a loop that counts, and what is known of it.
type Count = (Block, LoopTrips);

struct Pass<'a> {
    aliases: &'a Aliases,
    graph: &'a Graph,
    options: &'a Options,
}

impl Pass<'_> {
    /// A loop to copy for how often it iterates, or one in it does: by a branch that the run is known
    /// to have left it by, where there is one.
    fn find(&self, func: &Func, done: &[(Block, Option<Count>)], uncounted: &[Block]) -> Option<Version> {
        let ids = || self.graph.loops.loops.keys().filter(|&id| !uncounted.contains(&self.graph.data(id).header));
        let by = |id, known| self.by_count(func, id, done, |c| self.left(func, c) == known);
        ids().find_map(|id| by(id, Some(true))).or_else(|| ids().find_map(|id| by(id, None)))
    }

    fn by_count(
        &self,
        func: &Func,
        id: LoopId,
        done: &[(Block, Option<Count>)],
        which: impl Fn(&Counted) -> bool,
    ) -> Option<Version> {
        let profile = &self.options.unroll.profile;
        Counted::of(func, self.graph, id).into_iter().filter(which).find_map(|counted| {
            entries(profile, func.insts[counted.stepper].loc).into_iter().find_map(|entry| {
                let (root, c) = self.solve(func, id, &counted, entry.trips)?;
                let widest = self.widest(func, id, root)?;
                let counted = Some((self.graph.data(id).header, entry));
                let new = !done.contains(&(self.graph.data(widest).header, counted));
                let each = self.each(func, (id, widest), root, entry.trips);
                new.then(|| Version { id: widest, root, c, also: Vec::new(), counted, each })
            })
        })
    }

    /// Was a loop left by this of its branches, where that is known?
    fn left(&self, func: &Func, counted: &Counted) -> Option<bool> {
        let loc = func.insts[func.def_inst(counted.exit.cond)?].loc;
        let unroll = &self.options.unroll;
        let always = unroll.steady.iter().find(|s| s.loc == loc).map(|s| (s.value != 0) == counted.exit.when_true);
        always.or_else(|| unroll.varied.contains(&loc).then_some(true))
    }

    /// A loop with a condition, or a switch, that does not change in it and was always the same.
    fn steady(&self, func: &Func, unasked: &[Block]) -> Option<Version> {
        let known = &self.options.unroll.steady;
        let likely =
            |b: &&Block| !known.is_empty() && !unasked.contains(b) && self.graph.loops.innermost(**b).is_some();
        func.layout.iter().filter(likely).find_map(|&block| {
            let (root, is_condition) = match &func.blocks[block].term {
                Terminator::Branch { cond, .. } => (func.resolve(*cond), true),
                Terminator::Switch { index, .. } => (func.resolve(*index), false),
                _ => return None,
            };
            let loc = func.insts[func.def_inst(root)?].loc;
            let value = known.iter().find(|s| s.loc == loc)?.value;
            // Anything but zero is true, and only one of these can be put in its place.
            if func.as_const(root).is_some() || is_condition && value != 0 && bits::possible(func, root) > 1 {
                return None;
            }
            let id = self.widest(func, self.graph.loops.innermost(block)?, root)?;
            let blocks = &self.graph.data(id).blocks;
            if size(func, blocks) > COPIED * self.options.unroll.full_budget {
                return None;
            }
            let results = blocks.iter().flat_map(|&b| &func.blocks[b].insts).flat_map(|&i| &func.insts[i].results);
            let equal =
                |v: &Value| *v != root && self.equal(func, *v, root, DEPTH) && self.movable(func, id, *v, DEPTH);
            let also = results.copied().filter(equal).collect();
            Some(Version {
                id,
                root,
                c: u64::from(if is_condition { value.min(1) } else { value }),
                also,
                counted: None,
                each: None,
            })
        })
    }

    /// Are two values computed in the same way?
    fn equal(&self, func: &Func, a: Value, b: Value, depth: u32) -> bool {
        let (a, b) = (func.resolve(a), func.resolve(b));
        let (Some(i), Some(j)) = (func.def_inst(a), func.def_inst(b)) else { return a == b };
        let (i, j) = (&func.insts[i], &func.insts[j]);
        let args = || i.args.iter().zip(&j.args).all(|(&a, &b)| self.equal(func, a, b, depth - 1));
        a == b || depth > 0 && i.op == j.op && i.results.len() == 1 && i.args.len() == j.args.len() && args()
    }

    /// The root of a loop's count, and its value for the count wanted: of several that give it one with which
    /// conditions are what they always were in the run.
    fn solve(&self, func: &Func, id: LoopId, counted: &Counted, trips: u32) -> Option<(Value, u64)> {
        if trips::constant(func, self.graph, id, trips, &[]).is_some() {
            return None;
        }
        let start = self.graph.origin(func, self.graph.agreed(func, &self.graph.entries(id), counted.counter)?);
        let turns = u64::from(trips.checked_sub(1)?);
        let mask = counted.ty.mask();
        // From the counter's start to the value that ends the loop.
        let way = counted.ahead.wrapping_add(counted.step.wrapping_mul(turns));
        let beyond = match counted.test {
            Test::Below { or_equal: true, .. } => 1,
            Test::Above { or_equal: true, .. } => u64::MAX,
            _ => 0,
        };
        let known_start = func.as_const(start);
        let (from, value, back) = match (known_start, counted.bound) {
            (None, Bound::Constant(n)) => (start, n.wrapping_add(beyond).wrapping_sub(way), 1),
            (Some(c), Bound::Value(n)) => {
                (self.graph.origin(func, n), c.wrapping_add(way).wrapping_sub(beyond), u64::MAX)
            }
            _ => return None,
        };
        // A comparison that is not for equality ends the loop by as much as a step sooner.
        let (sooner, steps) = match counted.test {
            Test::NotEqual => (0, 1),
            Test::Below { .. } => (back, counted.step),
            Test::Above { .. } => (back.wrapping_neg(), counted.step.wrapping_neg()),
        };
        let values = (0..(steps & mask).min(SOONER)).map(|k| value.wrapping_add(sooner.wrapping_mul(k)) & mask);
        let candidates = values.flat_map(|value| {
            let (root, c, lost) = backwards(func, from, value);
            let bits: Vec<u64> = (0..64).map(|bit| 1 << bit).filter(|bit| lost & bit != 0).take(LOST).collect();
            let set = |n: usize| (0..).zip(&bits).filter(|(k, _)| n >> k & 1 != 0).fold(c, |c, (_, bit)| c | bit);
            let all: Vec<u64> = (0..1usize << bits.len()).map(set).collect();
            all.into_iter().map(move |c| (root, c, known_start.unwrap_or(value)))
        });
        let counts =
            |root, c| trips::constant(func, self.graph, id, trips, &[(root, c)]).is_some_and(|t| t.count == trips);
        let found: Vec<(Value, u64, u64)> = candidates.filter(|&(root, c, _)| counts(root, c)).collect();
        let agrees = |&&(root, c, start): &&(Value, u64, u64)| {
            self.agrees(func, root, &self.ended(func, (id, counted), (root, c), (start, turns)))
        };
        let &(root, c, _) = found.iter().find(agrees).or(found.first())?;
        Some((root, c))
    }

    /// What is known when a loop is left behind so many turns, where the root and the counter's start are: what its
    /// counters have come to, and when they have taken another step, and what is made of these behind it.
    fn ended(
        &self,
        func: &Func,
        (id, counted): (LoopId, &Counted),
        root: (Value, u64),
        (start, turns): (u64, u64),
    ) -> Vec<(Value, u64)> {
        let data = self.graph.data(id);
        let mut known: Vec<(Value, u64)> = Vec::new();
        for (k, &counter) in func.blocks[data.header].params.iter().enumerate() {
            let first = || self.graph.agreed(func, &self.graph.entries(id), k).map(|v| self.graph.origin(func, v));
            let first = if k == counted.counter { Some(start) } else { first().and_then(|v| func.as_const(v)) };
            let next = self.graph.agreed(func, &self.graph.back_edges(id), k);
            let (Some(first), Some(next)) = (first, next) else { continue };
            let (from, step) = offset(func, next);
            if from == counter {
                let (last, mask) = (first.wrapping_add(step.wrapping_mul(turns)), func.ty(counter).mask());
                known.extend([(counter, last & mask), (next, last.wrapping_add(step) & mask)]);
            }
        }
        known.push(root);
        // Behind the loop as in it: what its blocks hand on.
        for &block in func.layout.iter().filter(|b| self.graph.doms.dominates(data.header, **b)) {
            for target in func.blocks[block].term.targets().into_iter().filter(|t| !data.blocks.contains(&t.block)) {
                for (&param, &arg) in func.blocks[target.block].params.iter().zip(&target.args) {
                    let value = trips::outside(func, &known, func.resolve(arg), DEPTH);
                    known.extend(value.map(|value| (param, value)));
                }
            }
        }
        known
    }

    /// With these values, are all conditions on a root what they always were in the run? Whether a number of rounds that
    /// are made two at a time is odd is such a condition.
    fn agrees(&self, func: &Func, root: Value, known: &[(Value, u64)]) -> bool {
        func.layout.iter().all(|&block| {
            let Terminator::Branch { cond, .. } = &func.blocks[block].term else { return true };
            let cond = func.resolve(*cond);
            let loc = func.def_inst(cond).map(|inst| func.insts[inst].loc);
            let steady = self.options.unroll.steady.iter().find(|s| Some(s.loc) == loc);
            let Some(steady) = steady.filter(|_| depends(func, cond, root, DEPTH)) else { return true };
            let is = trips::outside(func, known, cond, DEPTH).map(|value| value != 0);
            is.is_none_or(|is| is == (steady.value != 0))
        })
    }

    /// The widest loop around in which the root can be told in front.
    fn widest(&self, func: &Func, id: LoopId, root: Value) -> Option<LoopId> {
        let mut best = None;
        let mut at = Some(id);
        while let Some(id) = at.filter(|&id| self.movable(func, id, root, DEPTH)) {
            best = Some(id);
            at = self.graph.data(id).parent;
        }
        best
    }

    /// The loop around one that can be copied for a count, if each of its iterations begins with what the count
    /// hangs on, and the counted loop will be unrolled in a copy of it.
    fn each(&self, func: &Func, (id, widest): (LoopId, LoopId), root: Value, trips: u32) -> Option<LoopId> {
        let around = self.graph.data(widest).parent?;
        let inner = size(func, &self.graph.data(id).blocks).saturating_mul(trips);
        let rest = size(func, &self.graph.data(around).blocks);
        let fits = inner.saturating_add(rest) <= self.options.unroll.full_budget;
        (fits && iterations::begins(func, self.graph, around, root, DEPTH)).then_some(around)
    }

    /// Can the value be computed in front of the loop?
    fn movable(&self, func: &Func, id: LoopId, v: Value, depth: u32) -> bool {
        if self.graph.invariant(id, v) {
            return true;
        }
        let Some(inst) = func.def_inst(v) else { return false };
        let data = &func.insts[inst];
        let ok = match data.op {
            Op::Load(access) => self.same_always(func, id, Place { addr: data.args[0], access }, v),
            op => op.is_pure(),
        };
        ok && depth > 0 && data.args.iter().all(|&a| self.movable(func, id, func.resolve(a), depth - 1))
    }

    /// Does a load in the loop read the same in front of it, without a trap
    /// that was not there?
    fn same_always(&self, func: &Func, id: LoopId, place: Place, result: Value) -> bool {
        let Some(home) = self.graph.home(result) else { return false };
        let safe = match self.options.strict_traps {
            true => self.aliases.in_bounds(func, place.addr, place.access),
            // What the access states of its alignment holds if it is made.
            false => self.graph.exits(id).iter().all(|e| self.graph.doms.dominates(home, e.from)),
        };
        let mut insts = self.graph.data(id).blocks.iter().flat_map(|&b| &func.blocks[b].insts);
        safe && insts.all(|&inst| {
            let data = &func.insts[inst];
            match data.op {
                Op::Call(_) | Op::CallPtr(_) => false,
                Op::Store(access) if access.space == Space::System => false,
                Op::Store(access) => !self.aliases.store_may_touch(func, Place { addr: data.args[0], access }, place),
                _ => true,
            }
        })
    }

    fn write(&self, func: &mut Func, version: &Version) {
        if let Some(around) = version.each {
            return iterations::write(func, self.graph, around, version.root, version.c);
        }
        let header = self.graph.data(version.id).header;
        let escapes = repair::escapes(func, self.graph, version.id);
        let layout_end = func.layout.len();
        let front = func.add_block();
        for i in 0..func.blocks[header].params.len() {
            let ty = func.ty(func.blocks[header].params[i]);
            func.add_param(front, ty);
        }
        let root = self.again(func, version.id, front, version.root, &mut Copy::default());
        let ty = func.ty(root);
        let c = func.append1(front, Op::Const(version.c), &[], ty, 0);
        let cond = func.append1(front, Op::Cmp(CmpOp::Eq), &[root, c], Type::I32, 0);
        let originals = &self.graph.data(version.id).blocks;
        let copy = copy::blocks(func, originals);
        let own = copy.value(func, version.root);
        let also: Vec<Value> = version.also.iter().map(|&v| copy.value(func, v)).collect();
        let outside = self.hanging_on(func, version, originals);
        let mut rebuilt = Copy::default();
        rebuilt.values.insert(version.root, c);
        for &v in &outside {
            self.rebuild(func, front, v, &mut rebuilt, DEPTH);
        }
        for &block in originals {
            let block = copy.block(block);
            repair::substitute(func, block, own, c);
            also.iter().for_each(|&v| repair::substitute(func, block, v, c));
            for &v in &outside {
                let new = rebuilt.value(func, v);
                repair::substitute(func, block, v, new);
            }
        }
        let params = func.blocks[front].params.clone();
        let start =
            |i: usize| Some(self.graph.origin(func, self.graph.agreed(func, &self.graph.entries(version.id), i)?));
        let starts: Vec<Option<Value>> = (0..params.len()).map(start).collect();
        let mut first = params.clone();
        for (arg, start) in first.iter_mut().zip(starts) {
            if let Some(start) = start.filter(|&v| depends(func, v, version.root, DEPTH)) {
                self.rebuild(func, front, start, &mut rebuilt, DEPTH);
                *arg = rebuilt.value(func, start);
            }
        }
        let then = Target::new(copy.block(header), first);
        func.blocks[front].term = Terminator::Branch { cond, then, els: Target::new(header, params) };
        copy::redirect(func, &self.graph.entries(version.id), front);
        copy::place_before(func, layout_end, header);
        repair::rejoin(func, &escapes, |v, home| vec![copy.definition(v, home), (home, v)]);
    }

    /// Values from outside the loop that it uses, and that are arithmetic on
    /// the root.
    fn hanging_on(&self, func: &Func, version: &Version, blocks: &[Block]) -> Vec<Value> {
        let mut found: Vec<Value> = Vec::new();
        for &block in blocks {
            let mut note = |v: Value| {
                let v = func.resolve(v);
                let new = self.graph.invariant(version.id, v) && v != version.root && !found.contains(&v);
                if new && depends(func, v, version.root, DEPTH) {
                    found.push(v);
                }
            };
            for &inst in &func.blocks[block].insts {
                func.insts[inst].args.iter().for_each(|&v| note(v));
            }
            func.blocks[block].term.for_each_value(note);
        }
        found
    }

    /// Compute a value again at the end of a block, from operands that have
    /// been made again.
    fn rebuild(&self, func: &mut Func, block: Block, v: Value, copy: &mut Copy, depth: u32) {
        let Some(inst) = func.def_inst(v) else { return };
        if depth == 0 || copy.value(func, v) != v || !func.insts[inst].op.is_pure() {
            return;
        }
        let args = func.insts[inst].args.clone();
        for &arg in &args {
            let arg = func.resolve(arg);
            self.rebuild(func, block, arg, copy, depth - 1);
        }
        if args.iter().any(|&a| copy.value(func, a) != func.resolve(a)) {
            let new = copy::inst_into(func, block, inst, copy);
            copy::map_operands(func, new, copy);
        }
    }

    /// Compute a movable value at the end of a block.
    fn again(&self, func: &mut Func, id: LoopId, block: Block, v: Value, copy: &mut Copy) -> Value {
        let known = copy.value(func, v);
        if known != v || self.graph.invariant(id, v) {
            return known;
        }
        let Some(inst) = func.def_inst(v) else { return v };
        for arg in func.insts[inst].args.clone() {
            let arg = func.resolve(arg);
            self.again(func, id, block, arg, copy);
        }
        let new = copy::inst_into(func, block, inst, copy);
        copy::map_operands(func, new, copy);
        func.result(new)
    }
}

/// Has the root gone into the value, by arithmetic?
fn depends(func: &Func, v: Value, root: Value, depth: u32) -> bool {
    let data = match func.def_inst(v) {
        _ if v == root => return true,
        Some(inst) => &func.insts[inst],
        None => return false,
    };
    depth > 0 && data.op.is_pure() && data.args.iter().any(|&a| depends(func, func.resolve(a), root, depth - 1))
}

/// The value that an expression hangs on, and what it has to be for the
/// expression to be `c`; right where an operation can be turned round. And those of its bits that the
/// expression does not hang on.
fn backwards(func: &Func, v: Value, c: u64) -> (Value, u64, u64) {
    let (mut v, mut c) = (func.resolve(v), c);
    let mut lost = 0;
    for _ in 0..DEPTH {
        let Some(data) = func.def_inst(v).map(|i| &func.insts[i]) else { break };
        let ty = func.ty(v);
        let constant = data.args.get(1).and_then(|&a| func.as_const(a));
        let amount = constant.map_or(0, |n| n % u64::from(ty.bits())) as u32;
        c = match (data.op, constant) {
            (Op::Bin(BinOp::Add), Some(k)) => c.wrapping_sub(k),
            (Op::Bin(BinOp::Sub), Some(k)) => c.wrapping_add(k),
            (Op::Bin(BinOp::Xor), Some(k)) => c ^ k,
            (Op::Bin(BinOp::Shl), Some(_)) => c >> amount,
            (Op::Bin(BinOp::ShrU | BinOp::ShrS), Some(_)) => c << amount,
            (Op::Bin(BinOp::Mul), Some(k)) if k != 0 && c.is_multiple_of(k) => c / k,
            (Op::Bin(BinOp::DivU), Some(k)) => c.wrapping_mul(k),
            // A mask that keeps all of what is wanted.
            (Op::Bin(BinOp::And), Some(k)) if c & !k == 0 => c,
            (Op::Wrap | Op::ZExt | Op::SExt, _) => c,
            _ => break,
        };
        lost = match (data.op, constant) {
            (Op::Bin(BinOp::And), Some(k)) => lost | !k,
            (Op::Bin(BinOp::ShrU | BinOp::ShrS), Some(_)) => lost << amount | ((1 << amount) - 1),
            (Op::Wrap | Op::ZExt | Op::SExt, _) => lost,
            // Which bits these are in what is left is not followed.
            _ => 0,
        };
        v = func.resolve(data.args[0]);
        c &= func.ty(v).mask();
    }
    (v, c, lost & func.ty(v).mask())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_without_a_constant_count_is_not_taken_for_the_one_around() {
        let (around, inside) =
            (LoopTrips { first: 0, last: 100, trips: 7 }, LoopTrips { first: 10, last: 20, trips: 0 });
        assert_eq!([5, 15, 50].map(|loc| entries(&[around, inside], loc)), [vec![around], vec![], vec![around]]);
        assert_eq!(entries(&[around], 15), [around]);
    }
}
