//! Loop-invariant code motion: what gives the same in every iteration is computed once, in front of the
//! loop.
//!
//! Loops are taken innermost first; what leaves one may leave the next. An
//! instruction is moved when its operands come from outside the loop and
//!
//! * it is pure, and its block runs in every iteration, so that no iteration pays for
//!   what it does not use. Constants stay: the code generator places those;
//! * or it is a load that nothing in the loop can change: no call, no store
//!   that may touch it, no store to the system area (which may be the size of
//!   memory); and moving it makes no trap that was not there: it is in bounds
//!   for certain, or it runs whenever the loop is entered. Under strict traps
//!   the latter has to be so without anything observable before it: it stands
//!   in the header, and nothing there before it writes or may trap.
//!
//! A sum or exclusive or of one varying and two invariant operands is first
//! regrouped so that the invariant ones meet: `(i + p) + c` is `i + (p + c)`.
//!
//! What is moved is live across the whole loop and raises its register pressure, so the number moved
//! from one loop is bounded. Loads can be told to stay altogether ([`crate::Unroll::keep_loads`]):
//! moving one saves an issue slot that may be free anyway, and costs a register in a loop whose
//! pressure unrolling has raised.

use crate::alias::{Aliases, Place};
use crate::edit;
use crate::options::Options;
use ciphermill_ir::cfg::LoopId;
use ciphermill_ir::{
    BinOp, Block, Cfg, Dominators, Func, Inst, Loops, Module, Op, Space, Target, Terminator, Value, ValueDef,
};
use cranelift_entity::SecondaryMap;

/// Values moved out of one loop.
const MAX_MOVED: usize = 16;

pub(crate) fn run(module: &mut Module, options: &Options) -> bool {
    let mut aliases = Aliases::with_promises(module, options);
    edit::for_each_func_id(module, |_, id, func| {
        aliases.enter(id, func);
        run_func(&aliases, func, options)
    })
}

fn run_func(aliases: &Aliases, func: &mut Func, options: &Options) -> bool {
    if !add_preheaders(func) {
        return false;
    }
    let cfg = Cfg::new(func);
    let doms = Dominators::new(func, &cfg);
    let loops = Loops::new(func, &cfg, &doms);
    let mut home: SecondaryMap<Inst, Option<Block>> = SecondaryMap::new();
    for &block in &cfg.rpo {
        for &inst in &func.blocks[block].insts {
            home[inst] = Some(block);
        }
    }
    // Regrouping makes some counts too large, which only holds back.
    let uses = edit::count_uses(func);
    let mut changed = false;
    let ids: Vec<LoopId> = loops.loops.keys().collect();
    for &id in ids.iter().rev() {
        changed |= regroup(func, &uses, &loops, id, &mut home);
        let exits = exits(&cfg, &loops, id);
        let pass = Motion {
            aliases,
            doms: &doms,
            loops: &loops,
            id,
            exits,
            strict: options.strict_traps,
            keep_loads: options.unroll.keep_loads,
        };
        let moved = pass.collect(func, &home);
        let Some(front) = doms.idom(loops.loops[id].header) else { continue };
        if moved.is_empty() {
            continue;
        }
        let mut gone: SecondaryMap<Inst, bool> = SecondaryMap::new();
        for &inst in &moved {
            gone[inst] = true;
            home[inst] = Some(front);
        }
        for &block in &loops.loops[id].blocks {
            func.blocks[block].insts.retain(|&inst| !gone[inst]);
        }
        func.blocks[front].insts.extend(moved);
        changed = true;
    }
    changed
}

/// Bring the invariant operands of nested sums together.
fn regroup(
    func: &mut Func,
    uses: &SecondaryMap<Value, u32>,
    loops: &Loops,
    id: LoopId,
    home: &mut SecondaryMap<Inst, Option<Block>>,
) -> bool {
    let outside = |func: &Func, home: &SecondaryMap<Inst, Option<Block>>, v: Value| {
        let block = match func.values[v].def {
            ValueDef::Inst(i, _) => home[i],
            ValueDef::Param(b, _) => Some(b),
            ValueDef::Alias(_) => None,
        };
        func.as_const(v).is_some() || block.is_some_and(|b| !loops.contains(id, b))
    };
    let mut count = 0;
    for &block in &loops.loops[id].blocks {
        let mut at = 0;
        while at < func.blocks[block].insts.len() && count < MAX_MOVED {
            let inst = func.blocks[block].insts[at];
            at += 1;
            let op = func.insts[inst].op;
            if !matches!(op, Op::Bin(BinOp::Add | BinOp::Xor)) {
                continue;
            }
            let (x, y) = (func.insts[inst].args[0], func.insts[inst].args[1]);
            let sum_and_other = [(x, y), (y, x)]
                .into_iter()
                .find(|&(sum, other)| uses[sum] == 1 && func.def_op(sum) == Some(op) && outside(func, home, other));
            let Some((sum, other)) = sum_and_other else { continue };
            let Some(inner) = func.def_inst(sum).filter(|&i| home[i].is_some_and(|b| loops.contains(id, b))) else {
                continue;
            };
            let (p, q) = (func.insts[inner].args[0], func.insts[inner].args[1]);
            let (varying, fixed) = match (outside(func, home, p), outside(func, home, q)) {
                (false, true) => (p, q),
                (true, false) => (q, p),
                _ => continue,
            };
            if func.as_const(fixed).is_some() && func.as_const(other).is_some() {
                continue;
            }
            let ty = func.ty(x);
            let grouped = func.make_inst(op, &[fixed, other], &[ty], func.insts[inst].loc);
            home[grouped] = Some(block);
            func.blocks[block].insts.insert(at - 1, grouped);
            at += 1;
            let grouped = func.result(grouped);
            func.insts[inst].args = [varying, grouped].into_iter().collect();
            count += 1;
        }
    }
    count > 0
}

/// Give every loop one block that is left only for its header and is the only
/// one to enter it from outside, hence the header's immediate dominator. Those
/// that stay empty are stepped over by `simplify_cfg`. False without loops.
fn add_preheaders(func: &mut Func) -> bool {
    let cfg = Cfg::new(func);
    let doms = Dominators::new(func, &cfg);
    let loops = Loops::new(func, &cfg, &doms);
    for (id, data) in &loops.loops {
        let header = data.header;
        let outside: Vec<_> = cfg.preds(header).iter().filter(|e| !loops.contains(id, e.from)).collect();
        if let [edge] = outside[..]
            && matches!(func.blocks[edge.from].term, Terminator::Jump(_))
        {
            continue;
        }
        let new = func.add_block();
        func.layout.pop();
        let at = func.layout.iter().position(|&b| b == header).unwrap_or(func.layout.len());
        func.layout.insert(at, new);
        let types: Vec<_> = func.blocks[header].params.iter().map(|&v| func.ty(v)).collect();
        let args = types.into_iter().map(|ty| func.add_param(new, ty)).collect();
        func.blocks[new].term = Terminator::Jump(Target::new(header, args));
        for edge in outside {
            func.blocks[edge.from].term.targets_mut()[edge.index as usize].block = new;
        }
    }
    !loops.loops.is_empty()
}

struct Motion<'a> {
    aliases: &'a Aliases,
    doms: &'a Dominators,
    loops: &'a Loops,
    id: LoopId,
    /// Blocks the loop or the function can be left from.
    exits: Vec<Block>,
    strict: bool,
    keep_loads: bool,
}

/// The blocks of a loop that lead out of it, or nowhere.
fn exits(cfg: &Cfg, loops: &Loops, id: LoopId) -> Vec<Block> {
    let leaves = |b: Block| cfg.succs(b).is_empty() || cfg.succs(b).iter().any(|&s| !loops.contains(id, s));
    loops.loops[id].blocks.iter().copied().filter(|&b| leaves(b)).collect()
}

impl Motion<'_> {
    fn inside(&self, block: Block) -> bool {
        self.loops.contains(self.id, block)
    }

    /// The instructions to move, in an order that defines before it uses.
    fn collect(&self, func: &Func, home: &SecondaryMap<Inst, Option<Block>>) -> Vec<Inst> {
        let data = &self.loops.loops[self.id];
        let mut moved: Vec<Inst> = Vec::new();
        let mut leaves: SecondaryMap<Inst, bool> = SecondaryMap::new();
        let stores = self.stores(func, &data.blocks);
        for &block in &data.blocks {
            let every_turn = data.latches.iter().all(|&l| self.doms.dominates(block, l));
            if !every_turn {
                continue;
            }
            let certain = self.certain(block);
            let mut quiet = block == data.header;
            for &inst in &func.blocks[block].insts {
                let op = func.insts[inst].op;
                let invariant = |v: Value| match func.values[v].def {
                    ValueDef::Inst(i, _) => leaves[i] || !home[i].is_some_and(|b| self.inside(b)),
                    ValueDef::Param(b, _) => !self.inside(b),
                    ValueDef::Alias(_) => false,
                };
                let constant = |v: Value| func.as_const(v).is_some();
                let args = &func.insts[inst].args;
                let stable = args.iter().all(|&v| invariant(v) || constant(v));
                let ok = match op {
                    Op::Const(_) => false,
                    Op::Load(_) if self.keep_loads => false,
                    Op::Load(access) => {
                        let place = Place { addr: args[0], access };
                        let safe =
                            self.aliases.in_bounds(func, place.addr, access) || (certain && (!self.strict || quiet));
                        stable && safe && self.unchanged(func, place, &stores)
                    }
                    op => stable && op.is_pure(),
                };
                if ok && moved.len() < MAX_MOVED {
                    leaves[inst] = true;
                    moved.push(inst);
                } else {
                    quiet &= !op.has_effect() && !self.aliases.may_trap(func, inst);
                }
            }
        }
        self.with_constants(func, moved, home)
    }

    /// Put the constants from inside the loop that are needed in front.
    fn with_constants(&self, func: &Func, moved: Vec<Inst>, home: &SecondaryMap<Inst, Option<Block>>) -> Vec<Inst> {
        let mut all = Vec::with_capacity(moved.len());
        for inst in moved {
            for &arg in &func.insts[inst].args {
                if let Some(def) = func.def_inst(arg)
                    && matches!(func.insts[def].op, Op::Const(_))
                    && home[def].is_some_and(|b| self.inside(b))
                    && !all.contains(&def)
                {
                    all.push(def);
                }
            }
            all.push(inst);
        }
        all
    }

    /// Does the block run whenever the loop is entered? It does when it
    /// dominates every block that the loop can be left from.
    fn certain(&self, block: Block) -> bool {
        self.exits.iter().all(|&b| self.doms.dominates(block, b))
    }

    /// The stores of the loop, or none when something may write anywhere.
    fn stores(&self, func: &Func, blocks: &[Block]) -> Option<Vec<Place>> {
        let mut stores = Vec::new();
        for &inst in blocks.iter().flat_map(|&b| &func.blocks[b].insts) {
            let data = &func.insts[inst];
            match data.op {
                Op::Store(access) if access.space == Space::System => return None,
                Op::Store(access) => stores.push(Place { addr: data.args[0], access }),
                Op::Call(_) | Op::CallPtr(_) => return None,
                _ => {}
            }
        }
        Some(stores)
    }

    fn unchanged(&self, func: &Func, load: Place, stores: &Option<Vec<Place>>) -> bool {
        if self.aliases.is_constant(func, load.addr, load.access) {
            return true;
        }
        stores
            .as_ref()
            .is_some_and(|stores| stores.iter().all(|&store| !self.aliases.store_may_touch(func, store, load)))
    }
}
