//! What may run although the program would not run it: the other side of a branch.
//!
//! Something without effect that cannot trap may. An access has to be in bounds for certain. A store
//! becomes one that always happens, of what is there already when its side is not taken; only something
//! that runs at the same time could tell, so not under strict traps.
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
use crate::options::Options;
use ciphermill_ir::bits;
use ciphermill_ir::{Block, Cfg, Func, Inst, Module, Op, PAGE_BYTES, Space, Value};

/// Blocks looked back through.
const MAX_BACK: usize = 8;
/// Farther than this from an access nothing is concluded from it.
const NEAR: u32 = 1 << 16;

/// What is known where a function's branches are taken apart.
pub(crate) struct Speculation<'a> {
    pub aliases: &'a Aliases,
    /// Edges when the pass began. Taking branches apart only takes edges away, but for
    /// those onward from a side, whose target had others before.
    pub cfg: &'a Cfg,
    small_memory: bool,
    strict: bool,
}

impl<'a> Speculation<'a> {
    pub(crate) fn new(module: &Module, options: &Options, aliases: &'a Aliases, cfg: &'a Cfg) -> Speculation<'a> {
        let small_memory = u64::from(module.memory.max_pages) * PAGE_BYTES <= 1 << 30;
        Speculation { aliases, cfg, small_memory, strict: options.strict_traps }
    }

    /// Can an instruction of a side run at the end of the block that branches to it, whichever side is taken?
    pub(crate) fn harmless(&self, func: &Func, from: Block, inst: Inst) -> bool {
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
    pub(crate) fn align(&self, func: &mut Func, block: Block, inst: Inst) {
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

/// The condition's choice of two values, at the end of a block.
pub(crate) fn select(func: &mut Func, block: Block, cond: Value, a: Value, b: Value) -> Value {
    if a == b {
        return a;
    }
    let ty = func.ty(a);
    func.append1(block, Op::Select, &[cond, a, b], ty, 0)
}
