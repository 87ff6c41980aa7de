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
//! A side may compute what may run in any case ([`crate::speculate`]). A store becomes a load of what
//! is there, a selection, and a store that always happens.

use crate::alias::Aliases;
use crate::edit;
use crate::options::Options;
use crate::speculate::{Speculation, select};
use crate::unroll::for_each_chosen;
use ciphermill_ir::{Block, Cfg, Func, Inst, Module, Op, Target, Terminator, Value};

pub(crate) fn run(module: &mut Module, options: &Options) -> bool {
    let most = options.unroll.if_convert as usize;
    if most == 0 {
        return false;
    }
    let mut aliases = Aliases::with_promises(module, options);
    for_each_chosen(module, options, |module, id, func| {
        aliases.enter(id, func);
        let cfg = Cfg::new(func);
        let pass = Pass { speculation: Speculation::new(module, options, &aliases, &cfg), most };
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
    speculation: Speculation<'a>,
    most: usize,
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
                self.speculation.align(func, block, inst);
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
        let [edge] = self.speculation.cfg.preds(block) else { return direct };
        let Terminator::Jump(onward) = &func.blocks[block].term else { return direct };
        // Parameters of a block with one edge are replaced by `simplify_cfg`.
        let plain = edge.from == from && func.blocks[block].params.is_empty() && onward.block != block;
        let harmless = || func.blocks[block].insts.iter().all(|&inst| self.speculation.harmless(func, from, inst));
        if plain && harmless() { (Some(block), onward.clone()) } else { direct }
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
