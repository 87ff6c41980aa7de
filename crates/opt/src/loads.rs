//! Memory: loads of what is known already, and stores nobody reads.
//!
//! **Forward**, along extended basic blocks (a block with one edge into it
//! continues the knowledge of its predecessor): each load and store leaves
//! "the bytes at this place are this value". A later load of the same place
//! with no store between that may touch it is that value, cut or extended to
//! fit. A store forgets what it may touch; a call forgets all but read-only
//! data.
//!
//! **Backward**, in one block: a store whose bytes are all stored again before
//! anything may read them goes. Under strict traps the memory a trap leaves
//! behind counts, so nothing that may trap can stand between, and the store
//! itself must be in bounds for certain.
//!
//! Two accesses are the same place when [`crate::alias`] finds equal bases and
//! offsets. Under strict traps the address operand and offset must be the very
//! same, since `(x + 4) + 0` and `x + 4` differ where the sum wraps.

use crate::alias::{Aliases, Place, split};
use crate::edit;
use crate::options::Options;
use ciphermill_ir::{BinOp, Block, Cfg, Func, Inst, MemAccess, Module, Op, Space, UnOp, Value, ops};
use cranelift_entity::SecondaryMap;

pub(crate) fn run(module: &mut Module, options: &Options) -> bool {
    let max_known = if options.unroll.is_active() { MAX_KNOWN_UNROLLED } else { MAX_KNOWN };
    let aliases = Aliases::with_promises(module, options);
    let mut pass = Pass { aliases, strict: options.strict_traps, max_known };
    edit::for_each_func_id(module, |_, id, func| {
        pass.aliases.enter(id, func);
        let changed = pass.forward(func);
        pass.backward(func) | changed
    })
}

/// Places remembered at once; the oldest is forgotten first. Keeps the work
/// linear.
const MAX_KNOWN: usize = 64;
/// The same where loops are unrolled, so that the copies of one iteration share
/// what they load.
const MAX_KNOWN_UNROLLED: usize = 1024;

/// The bytes at a place.
#[derive(Clone, Copy)]
struct Known {
    place: Place,
    /// As loaded, or the value stored, of which the low bytes count.
    value: Value,
    stored: bool,
}

struct Pass {
    aliases: Aliases,
    strict: bool,
    max_known: usize,
}

impl Pass {
    fn same_place(&self, func: &Func, a: Place, b: Place) -> bool {
        if a.access.space != b.access.space {
            return false;
        }
        if self.strict {
            return a.addr == b.addr && a.access.offset == b.access.offset;
        }
        let ((base_a, ca), (base_b, cb)) = (split(func, a.addr), split(func, b.addr));
        base_a == base_b && ca.wrapping_add(a.access.offset) == cb.wrapping_add(b.access.offset)
    }

    fn remember(&self, func: &Func, known: &mut Vec<Known>, new: Known) {
        // Lookups in read-only tables are many, and `gvn` has shared them.
        let table = || !new.stored && self.aliases.is_constant(func, new.place.addr, new.place.access);
        if self.max_known > MAX_KNOWN && table() {
            return;
        }
        if known.len() == self.max_known {
            known.remove(0);
        }
        known.push(new);
    }

    fn forward(&self, func: &mut Func) -> bool {
        let cfg = Cfg::new(func);
        let mut at_exit: SecondaryMap<Block, Vec<Known>> = SecondaryMap::new();
        let mut changed = false;
        for &block in &cfg.rpo {
            let mut known = match cfg.preds(block) {
                [edge] => at_exit[edge.from].clone(),
                _ => Vec::new(),
            };
            let insts = std::mem::take(&mut func.blocks[block].insts);
            let mut out = Vec::with_capacity(insts.len());
            for inst in insts {
                for i in 0..func.insts[inst].args.len() {
                    func.insts[inst].args[i] = func.resolve(func.insts[inst].args[i]);
                }
                if self.visit(func, inst, &mut known, &mut out) {
                    out.push(inst);
                } else {
                    changed = true;
                }
            }
            func.blocks[block].insts = out;
            at_exit[block] = known;
        }
        func.resolve_all();
        changed
    }

    /// Step over one instruction; false when it is a load now replaced.
    fn visit(&self, func: &mut Func, inst: Inst, known: &mut Vec<Known>, out: &mut Vec<Inst>) -> bool {
        let data = &func.insts[inst];
        match data.op {
            Op::Load(access) => {
                let place = Place { addr: data.args[0], access };
                let result = func.result(inst);
                let (ty, loc) = (func.ty(result), data.loc);
                let usable = |k: &&Known| {
                    k.place.access.bytes == access.bytes
                        && func.ty(k.value) == ty
                        && self.same_place(func, k.place, place)
                };
                if let Some(found) = known.iter().rev().find(usable).copied() {
                    let v = reuse(func, found, access, loc, out);
                    func.replace(result, v);
                    return false;
                }
                self.remember(func, known, Known { place, value: result, stored: false });
            }
            Op::Store(access) => {
                let place = Place { addr: data.args[0], access };
                let value = data.args[1];
                known.retain(|k| !self.aliases.store_may_touch(func, place, k.place));
                self.remember(func, known, Known { place, value, stored: true });
            }
            Op::Call(_) | Op::CallPtr(_) => {
                known.retain(|k| self.aliases.is_constant(func, k.place.addr, k.place.access));
            }
            _ => {}
        }
        true
    }

    fn backward(&self, func: &mut Func) -> bool {
        let mut changed = false;
        for b in 0..func.layout.len() {
            let block = func.layout[b];
            // Places stored to further down, with nothing between that reads.
            let mut overwritten: Vec<Place> = Vec::new();
            let insts = std::mem::take(&mut func.blocks[block].insts);
            let mut kept = Vec::with_capacity(insts.len());
            for inst in insts.into_iter().rev() {
                let data = &func.insts[inst];
                if let Op::Store(access) = data.op {
                    let place = Place { addr: data.args[0], access };
                    // Were this one to trap, what stands between must not run;
                    // were a wider one to trap, this one must have run.
                    let exact = self.strict;
                    let removable = !exact || self.aliases.in_bounds(func, place.addr, access);
                    let fits = |o: &Place| match exact {
                        true => o.access.bytes == access.bytes,
                        false => o.access.bytes >= access.bytes,
                    };
                    let covered = removable && overwritten.iter().any(|o| fits(o) && self.same_place(func, *o, place));
                    // The size register of the system area acts when written.
                    if covered && access.space == Space::Linear {
                        changed = true;
                        continue;
                    }
                    if self.strict && !self.aliases.in_bounds(func, place.addr, access) {
                        overwritten.clear();
                    }
                    if overwritten.len() < self.max_known {
                        overwritten.push(place);
                    }
                } else if let Op::Load(access) = data.op {
                    let place = Place { addr: data.args[0], access };
                    overwritten.retain(|o| !self.aliases.store_may_touch(func, *o, place));
                }
                let call = matches!(data.op, Op::Call(_) | Op::CallPtr(_));
                let traps = !matches!(data.op, Op::Store(_)) && self.aliases.may_trap(func, inst);
                if call || (self.strict && traps) {
                    overwritten.clear();
                }
                kept.push(inst);
            }
            kept.reverse();
            func.blocks[block].insts = kept;
        }
        changed
    }
}

/// What a load of shape `access` gives, from known bytes of the same place, as
/// many, and of the load's type. Instructions needed are appended to `out`.
fn reuse(func: &mut Func, known: Known, access: MemAccess, loc: u32, out: &mut Vec<Inst>) -> Value {
    let ty = func.ty(known.value);
    let width = u32::from(access.bytes) * 8;
    let full = width == ty.bits();
    if full || (!known.stored && known.place.access.signed == access.signed) {
        return known.value;
    }
    let mut emit = |op: Op, args: &[Value]| {
        let inst = func.make_inst(op, args, &[ty], loc);
        out.push(inst);
        func.result(inst)
    };
    match (access.signed, width) {
        (true, 8) => emit(Op::Un(UnOp::SExt8), &[known.value]),
        (true, 16) => emit(Op::Un(UnOp::SExt16), &[known.value]),
        (true, _) => emit(Op::Un(UnOp::SExt32), &[known.value]),
        (false, _) => {
            let mask = emit(Op::Const(ops::mask(width)), &[]);
            emit(Op::Bin(BinOp::And), &[known.value, mask])
        }
    }
}
