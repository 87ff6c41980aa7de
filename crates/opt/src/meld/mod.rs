//! Two sides of a branch that do nearly the same become one.
//!
//! A cipher that works on one of two tables in turn, or encrypts or decrypts, is often written with the same
//! code on both sides of a branch, with other tables and other constants. Converting that computes both
//! sides; melding computes what they have in common once, on selected operands:
//!
//! ```text
//! if c: p[i] = rotl(p[j], 22)       a = select(c, 0, 2048)
//! else: q[i] = rotl(q[j], 10)       [i + a] = rotl([j + a], select(c, 22, 10))
//! ```
//!
//! An access that both sides make is made where the side taken makes it, so it needs no proof of anything.
//! What only one side does has to be able to run in any case ([`crate::speculate`]); a side that stores
//! more often than the other is left.
//!
//! **Pairs** ([`pairs`]) are found from the end: stores in their order, and what the sides give to the block
//! where they meet, are paired, then operands of paired instructions that do the same, and so on.
//! Operands are exchanged where that fits better.
//!
//! **Memory.** Stores cut a side into sections. Loads are paired and stay in their section, so no access passes a
//! store. Other instructions are paired only if the last load that went into them is of one section
//! on both sides; then they are never asked for before that.
//!
//! **Cost.** At least half of what comes out has to serve both sides, and it may have only so many
//! instructions more than the longer side had ([`crate::Unroll::meld`]).

mod pairs;

use crate::alias::Aliases;
use crate::edit;
use crate::options::Options;
use crate::speculate::{Speculation, select};
use crate::unroll::for_each_chosen;
use ciphermill_ir::{BinOp, Block, Cfg, Func, Inst, MemAccess, Module, Op, Target, Terminator, Type, Value};
use pairs::{Pairs, Side, distances};
use std::collections::BTreeMap;

/// Longer sides, in instructions without constants, are left: each has enough to do for a loop of its
/// own (`split`). A step of a stream cipher that renews one of two tables has 30 to 40.
const LONGEST_SIDE: usize = 96;

pub(crate) fn run(module: &mut Module, options: &Options) -> bool {
    let most = options.unroll.meld as usize;
    if most == 0 || options.strict_traps {
        return false;
    }
    let mut aliases = Aliases::with_promises(module, options);
    for_each_chosen(module, options, |module, id, func| {
        aliases.enter(id, func);
        let cfg = Cfg::new(func);
        let speculation = Speculation::new(module, options, &aliases, &cfg);
        let mut changed = false;
        for &block in cfg.rpo.iter().rev() {
            changed |= meld(func, &speculation, block, most);
        }
        if changed {
            edit::remove_unreachable(func);
        }
        changed
    })
}

/// Make one of the two sides that a block branches to, if it does and they are worth it.
fn meld(func: &mut Func, speculation: &Speculation<'_>, block: Block, most: usize) -> bool {
    let Terminator::Branch { cond, then, els } = &func.blocks[block].term else { return false };
    let (cond, then, els) = (*cond, then.block, els.block);
    let onward = |side: Block| -> Option<Target> {
        let [edge] = speculation.cfg.preds(side) else { return None };
        let Terminator::Jump(target) = &func.blocks[side].term else { return None };
        // Parameters of a block with one edge are replaced by `simplify_cfg`.
        (edge.from == block && func.blocks[side].params.is_empty() && target.block != side).then(|| target.clone())
    };
    let (Some(onto), Some(onto_els)) = (onward(then), onward(els)) else { return false };
    if then == els || onto.block != onto_els.block {
        return false;
    }
    let (Some(a), Some(b)) = (Side::of(func, then, onto.args), Side::of(func, els, onto_els.args)) else {
        return false;
    };
    let longer = a.len.max(b.len);
    if longer > LONGEST_SIDE {
        return false;
    }
    let Some(pairs) = Pairs::of(func, &a, &b) else { return false };
    let Some(size) = pairs.size(func) else { return false };
    let alone = |side: &Side, own: usize| {
        side.live.iter().filter(|&&i| !pairs.paired(own, i)).all(|&i| speculation.harmless(func, block, i))
    };
    let worth = 2 * size.shared >= size.all && size.all <= longer + most;
    if !worth || !alone(&a, 0) || !alone(&b, 1) {
        return false;
    }
    let mut writer = Writer { pairs: &pairs, block, cond, made: BTreeMap::new(), choices: BTreeMap::new() };
    writer.write(func, speculation, [&a, &b]);
    let args: Vec<(Value, Value)> = a.args.iter().copied().zip(b.args.iter().copied()).collect();
    let args = args.into_iter().map(|(x, y)| writer.chosen(func, speculation, x, y)).collect();
    func.blocks[block].term = Terminator::Jump(Target::new(onto.block, args));
    for side in [then, els] {
        func.blocks[side].insts.clear();
    }
    true
}

/// Writes the instructions of both sides at the end of the block that branched.
struct Writer<'a> {
    pairs: &'a Pairs,
    block: Block,
    cond: Value,
    /// What has been written of a value of a side.
    made: BTreeMap<Value, Value>,
    choices: BTreeMap<(Value, Value), Value>,
}

impl Writer<'_> {
    fn write(&mut self, func: &mut Func, speculation: &Speculation<'_>, [a, b]: [&Side; 2]) {
        for section in 0..=a.stores.len() {
            for side in [a, b] {
                for &load in side.live.iter().filter(|&&i| side.sections[&i] == section) {
                    if matches!(func.insts[load].op, Op::Load(_)) {
                        self.made(func, speculation, func.result(load));
                    }
                }
            }
            if let (Some(&i), Some(&j)) = (a.stores.get(section), b.stores.get(section)) {
                let value = self.chosen(func, speculation, func.insts[i].args[1], func.insts[j].args[1]);
                let (addr, access) = self.place(func, speculation, i, j);
                let loc = func.insts[i].loc;
                func.append(self.block, Op::Store(access), &[addr, value], &[], loc);
            }
        }
    }

    /// A value of a side at the end of the block.
    fn made(&mut self, func: &mut Func, speculation: &Speculation<'_>, v: Value) -> Value {
        let v = func.resolve(v);
        if let Some(&made) = self.made.get(&v) {
            return made;
        }
        let Some(inst) = func.def_inst(v).filter(|&i| self.pairs.inside(i)) else { return v };
        let Some((i, j)) = self.pairs.pair(inst) else {
            let args: Vec<Value> = func.insts[inst].args.to_vec();
            let args: Vec<Value> = args.into_iter().map(|arg| self.made(func, speculation, arg)).collect();
            let (op, ty, loc) = (func.insts[inst].op, func.ty(v), func.insts[inst].loc);
            let new = func.make_inst(op, &args, &[ty], loc);
            speculation.align(func, self.block, new);
            func.blocks[self.block].insts.push(new);
            let result = func.result(new);
            self.made.insert(v, result);
            return result;
        };
        let (op, args) = if let Op::Load(_) = func.insts[i].op {
            let (addr, access) = self.place(func, speculation, i, j);
            (Op::Load(access), vec![addr])
        } else {
            let args = self.pairs.operands(func, i, j);
            (func.insts[i].op, args.into_iter().map(|(x, y)| self.chosen(func, speculation, x, y)).collect())
        };
        let (ty, loc) = (func.ty(v), func.insts[i].loc);
        let result = func.append1(self.block, op, &args, ty, loc);
        for inst in [i, j] {
            let own = func.result(inst);
            self.made.insert(own, result);
        }
        result
    }

    /// What either side has for a value.
    fn chosen(&mut self, func: &mut Func, speculation: &Speculation<'_>, x: Value, y: Value) -> Value {
        let (x, y) = (func.resolve(x), func.resolve(y));
        let constant = |v: Value| func.as_const(v).map(|c| (func.ty(v), c));
        if x != y && constant(x).is_some() && constant(x) == constant(y) {
            return self.made(func, speculation, x);
        }
        let x = self.made(func, speculation, x);
        let y = self.made(func, speculation, y);
        if let Some((base, c, d)) = distances(func, x, y) {
            return self.moved(func, base, c, d);
        }
        if let Some(&choice) = self.choices.get(&(x, y)) {
            return choice;
        }
        let choice = select(func, self.block, self.cond, x, y);
        self.choices.insert((x, y), choice);
        choice
    }

    /// Where two accesses access, and how.
    fn place(&mut self, func: &mut Func, speculation: &Speculation<'_>, i: Inst, j: Inst) -> (Value, MemAccess) {
        let (Op::Load(a) | Op::Store(a), Op::Load(b) | Op::Store(b)) = (func.insts[i].op, func.insts[j].op) else {
            unreachable!("only accesses have a place")
        };
        let offset = a.offset.min(b.offset);
        let access = MemAccess { offset, align: a.align.min(b.align), ..a };
        let mut addr = self.chosen(func, speculation, func.insts[i].args[0], func.insts[j].args[0]);
        if a.offset != b.offset {
            addr = self.moved(func, addr, a.offset - offset, b.offset - offset);
        }
        (addr, access)
    }

    /// A base moved on by what either side adds to it.
    fn moved(&mut self, func: &mut Func, base: Value, c: u32, d: u32) -> Value {
        let [x, y] = [c, d].map(|c| func.append1(self.block, Op::Const(u64::from(c)), &[], Type::I32, 0));
        let more = select(func, self.block, self.cond, x, y);
        func.append1(self.block, Op::Bin(BinOp::Add), &[base, more], Type::I32, 0)
    }
}
