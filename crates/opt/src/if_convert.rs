//! Short branches become selections.
//!
//! A block that branches to two sides which meet again at once, or around one
//! side, computes both sides and selects. It makes one block of three, which a
//! scheduler and a software pipeline want, at the cost of the side not taken,
//! so the number of instructions on both sides and of selections together is
//! bounded ([`crate::Unroll::if_convert`]). Nested branches are converted from
//! inside out, by repetition with `simplify_cfg`. A condition is anything not
//! zero, as a selection's is.
//!
//! A side may compute what has no effect and cannot trap. A load has to be in
//! bounds for certain. A store (not under strict traps) becomes a load of what
//! is there, a selection, and a store that always happens; it has to be in
//! bounds for certain too, and writes back what it read when the side is not
//! taken, which only something that runs at the same time could tell.
//!
//! An access states how its address is aligned, which is a promise for when it
//! is made. One that is made in any case keeps of it what other accesses with
//! the same base have promised.
//!
//! **In bounds for certain** is an access inside the memory the module starts
//! with, one inside a buffer of promised size, or one between two accesses that
//! have been made on the way here, where all have a base in common. The address
//! operand has to be as high as that of one of these (which is a number below
//! the size of memory, since that access did not trap) and the end as low as
//! that of another. Memory being at most 2^30 bytes and the offset below 2^31,
//! no sum can have wrapped on the way.

use crate::alias::{Aliases, Place, split};
use crate::edit;
use crate::options::Options;
use crate::unroll::for_each_chosen;
use ciphermill_ir::bits;
use ciphermill_ir::{Block, Cfg, Func, Inst, Module, Op, PAGE_BYTES, Space, Target, Terminator, Value};

pub(crate) fn run(module: &mut Module, options: &Options) -> bool {
    let most = options.unroll.if_convert as usize;
    if most == 0 {
        return false;
    }
    let mut aliases = Aliases::with_promises(module, options);
    let small_memory = u64::from(module.memory.max_pages) * PAGE_BYTES <= 1 << 30;
    for_each_chosen(module, options, |_, id, func| {
        aliases.enter(id, func);
        let cfg = Cfg::new(func);
        let pass = Pass { aliases: &aliases, cfg: &cfg, most, small_memory, strict: options.strict_traps };
        let mut changed = false;
        for &block in cfg.rpo.iter().rev() {
            changed |= pass.convert(func, block);
        }
        if changed {
            edit::remove_unreachable(func);
        }
        changed
    })
}

struct Pass<'a> {
    aliases: &'a Aliases,
    /// Edges when the pass began. Conversion only takes edges away, but for
    /// those onward from a converted block, whose target had others before.
    cfg: &'a Cfg,
    most: usize,
    small_memory: bool,
    strict: bool,
}

impl Pass<'_> {
    fn convert(&self, func: &mut Func, block: Block) -> bool {
        let Terminator::Branch { cond, then, els } = &func.blocks[block].term else { return false };
        let cond = *cond;
        let (mut through, mut onto) = self.side(func, block, then);
        let (mut through_els, mut onto_els) = self.side(func, block, els);
        if onto.block != onto_els.block {
            // Around one side: the other may be a block of the same kind.
            if through.is_some() && onto.block == els.block {
                (through_els, onto_els) = (None, els.clone());
            } else if through_els.is_some() && onto_els.block == then.block {
                (through, onto) = (None, then.clone());
            } else {
                return false;
            }
        }
        let insts = |side: Option<Block>| side.map(|b| func.blocks[b].insts.clone()).unwrap_or_default();
        let (when_true, when_false) = (insts(through), insts(through_els));
        let both = || when_true.iter().chain(&when_false);
        let cost = both().filter(|&&i| !matches!(func.insts[i].op, Op::Const(_))).count();
        let selections = onto.args.iter().zip(&onto_els.args).filter(|(a, b)| a != b).count();
        // A store costs a load and a selection more.
        let stores = both().filter(|&&i| matches!(func.insts[i].op, Op::Store(_))).count();
        if cost + selections + 2 * stores > self.most {
            return false;
        }
        for (side, insts, taken) in [(through, when_true, true), (through_els, when_false, false)] {
            for inst in insts {
                self.align(func, block, inst);
                if let Op::Store(_) = func.insts[inst].op {
                    choose_stored(func, block, cond, inst, taken);
                }
                func.blocks[block].insts.push(inst);
            }
            if let Some(side) = side {
                func.blocks[side].insts.clear();
            }
        }
        let pairs: Vec<(Value, Value)> = onto.args.iter().copied().zip(onto_els.args.iter().copied()).collect();
        let args = pairs.into_iter().map(|(a, b)| select(func, block, cond, a, b)).collect();
        func.blocks[block].term = Terminator::Jump(Target::new(onto.block, args));
        true
    }

    /// Where a side leads, and the block it runs through if that can be
    /// computed in any case.
    fn side(&self, func: &Func, from: Block, target: &Target) -> (Option<Block>, Target) {
        let direct = (None, target.clone());
        let block = target.block;
        let [edge] = self.cfg.preds(block) else { return direct };
        let Terminator::Jump(onward) = &func.blocks[block].term else { return direct };
        // Parameters of a block with one edge are replaced by `simplify_cfg`.
        let plain = edge.from == from && func.blocks[block].params.is_empty() && onward.block != block;
        let harmless = func.blocks[block].insts.iter().all(|&inst| {
            let data = &func.insts[inst];
            match data.op {
                Op::Load(access) => self.in_bounds(func, from, Place { addr: data.args[0], access }),
                // Nothing is written to read-only data, not even what is there.
                Op::Store(access) => {
                    let place = Place { addr: data.args[0], access };
                    let writable = !self.aliases.is_constant(func, place.addr, access);
                    !self.strict && writable && self.in_bounds(func, from, place)
                }
                Op::GlobalGet(_) => true,
                op => op.is_pure(),
            }
        });
        if plain && harmless { (Some(block), onward.clone()) } else { direct }
    }

    /// Instructions that have run when the block ends, back to where paths met.
    fn before(&self, func: &Func, block: Block) -> Vec<Inst> {
        let mut insts = func.blocks[block].insts.clone();
        let mut at = block;
        for _ in 0..MAX_BACK {
            let [edge] = self.cfg.preds(at) else { break };
            at = edge.from;
            insts.extend(&func.blocks[at].insts);
        }
        insts
    }

    /// Let an access state only what is known of its alignment in any case.
    fn align(&self, func: &mut Func, block: Block, inst: Inst) {
        let Some(place) = access(func, inst) else { return };
        let (base, start) = position(func, place);
        // The lowest bit that may be set in the address, and all above it.
        let lowest = |bits: u64| bits & bits.wrapping_neg();
        let own = base.map_or(0, |b| bits::possible(func, b)) | u64::from(start);
        let mut known = if own == 0 { u64::MAX } else { lowest(own) };
        for inst in self.before(func, block) {
            let Some(other) = access(func, inst) else { continue };
            let (from, c) = position(func, other);
            if from == base && other.access.space == place.access.space {
                known = known.max(lowest(u64::from(start.wrapping_sub(c)) | u64::from(other.access.align)));
            }
        }
        if let Op::Load(access) | Op::Store(access) = &mut func.insts[inst].op {
            access.align = u64::from(access.align).min(known) as u8;
        }
    }

    /// Can an access be made at the end of the block without a trap?
    fn in_bounds(&self, func: &Func, block: Block, place: Place) -> bool {
        if self.aliases.in_bounds(func, place.addr, place.access) || self.aliases.in_buffer(func, place) {
            return true;
        }
        if !self.small_memory || place.access.space != Space::Linear {
            return false;
        }
        let (base, c) = split(func, place.addr);
        let end = |c: u32, p: Place| c.wrapping_add(p.access.offset).wrapping_add(u32::from(p.access.bytes));
        let (mut from_below, mut from_above) = (false, false);
        for inst in self.before(func, block) {
            let Some(known) = access(func, inst).filter(|k| k.access.space == Space::Linear) else { continue };
            let (other, k) = split(func, known.addr);
            if other == base {
                // How far the known operand is below, and the known end above.
                from_below |= c.wrapping_sub(k) < NEAR;
                from_above |= end(k, known).wrapping_sub(end(c, place)) < NEAR;
            }
        }
        from_below && from_above && place.access.offset < 1 << 31
    }
}

/// Blocks looked back through.
const MAX_BACK: usize = 8;
/// Farther than this from an access nothing is concluded from it.
const NEAR: u32 = 1 << 16;

/// Base and distance from it, modulo 2^32, of an access's first byte.
fn position(func: &Func, place: Place) -> (Option<Value>, u32) {
    let (base, c) = split(func, place.addr);
    (base, c.wrapping_add(place.access.offset))
}

fn access(func: &Func, inst: Inst) -> Option<Place> {
    let data = &func.insts[inst];
    match data.op {
        Op::Load(access) | Op::Store(access) => Some(Place { addr: data.args[0], access }),
        _ => None,
    }
}

/// Let a store write what is there already when its side is not taken.
fn choose_stored(func: &mut Func, block: Block, cond: Value, store: Inst, taken: bool) {
    let data = func.insts[store].clone();
    let Op::Store(access) = data.op else { return };
    let ty = func.ty(data.args[1]);
    let old = func.append1(block, Op::Load(access), &[data.args[0]], ty, data.loc);
    let (a, b) = if taken { (data.args[1], old) } else { (old, data.args[1]) };
    func.insts[store].args[1] = select(func, block, cond, a, b);
}

fn select(func: &mut Func, block: Block, cond: Value, a: Value, b: Value) -> Value {
    if a == b {
        return a;
    }
    let ty = func.ty(a);
    func.append1(block, Op::Select, &[cond, a, b], ty, 0)
}
