//! What a cover costs, and which operations may be folded into one instruction.

use super::{CONSTANT_COST, COPY_COST, Selector};
use crate::constants;
use ciphermill_ir::{BinOp, Block, Inst, Op, Value, ValueDef};
use ciphermill_machine::OperandKind;
use ciphermill_patterns::matcher::{Bind, Binds, half};
use ciphermill_patterns::pattern::Template;
use ciphermill_vcode::MemRef;
use std::collections::{HashMap, HashSet};

/// Cost of a constant that no register holds: more than that of any instruction.
const UNFIT: u32 = 1 << 16;

impl Selector<'_> {
    pub(super) fn mark_used_elsewhere(&mut self) {
        let func = self.func;
        for &block in &func.layout {
            let mut mark = |v: Value| {
                let v = func.resolve(v);
                if let ValueDef::Inst(inst, _) = func.values[v].def
                    && self.home.get(&inst) != Some(&block)
                {
                    self.needed.insert(v);
                }
            };
            for &inst in &func.blocks[block].insts {
                func.insts[inst].args.iter().copied().for_each(&mut mark);
                // A multiplier that takes halves looks through what cuts them out, wherever that
                // stands: it reads the whole.
                if self.matcher.takes_halves && func.insts[inst].op == Op::Bin(BinOp::Mul) {
                    for &v in &func.insts[inst].args {
                        std::iter::successors(half(func, v), |&v| half(func, v)).for_each(&mut mark);
                    }
                }
            }
            func.blocks[block].term.for_each_value(&mut mark);
            for target in func.blocks[block].term.targets() {
                for &v in &target.args {
                    self.needed.insert(func.resolve(v));
                }
            }
        }
    }

    /// May the value be computed inside a pattern of its block?
    pub(super) fn foldable(&self, v: Value, block: Block) -> bool {
        (self.uses.get(&v) == Some(&1) || self.taken_in.contains(&v))
            && !self.needed.contains(&v)
            && self
                .func
                .def_inst(v)
                .is_some_and(|i| self.home.get(&i) == Some(&block) && self.func.insts[i].op.is_pure())
    }

    /// Rotates by constants in this block with several users, all of which have an instruction that
    /// takes the rotate in for nothing, as second operands of ARM's do. Shifts are left alone: addresses
    /// take them in, with latencies that the cost of a template does not say.
    pub(super) fn taken_in(&self, block: Block) -> HashSet<Value> {
        let func = self.func;
        let rotates = |v: Value| {
            let inst = func.def_inst(v)?;
            let by_constant = func.insts[inst].args.get(1).is_some_and(|&n| func.as_const(func.resolve(n)).is_some());
            let rotate = matches!(func.insts[inst].op, Op::Bin(BinOp::RotL | BinOp::RotR));
            (rotate && by_constant && self.home.get(&inst) == Some(&block)).then_some(v)
        };
        let mut users: HashMap<Value, Vec<Inst>> = HashMap::new();
        for &inst in &func.blocks[block].insts {
            for v in self.args(inst).into_iter().filter_map(rotates).filter(|v| !self.needed.contains(v)) {
                users.entry(v).or_default().push(inst);
            }
        }
        let all = |(v, list): &(Value, Vec<Inst>)| {
            list.len() > 1
                && self.uses.get(v) == Some(&(list.len() as u32))
                && list.iter().all(|&i| self.takes_in(i, *v))
        };
        users.into_iter().filter(all).map(|u| u.0).collect()
    }

    /// Can the operation take in what makes one of its arguments, at no cost?
    fn takes_in(&self, inst: Inst, v: Value) -> bool {
        let func = self.func;
        let (op, args) = (func.insts[inst].op, self.args(inst));
        if !op.is_pure() {
            return false;
        }
        let bits = self.matcher.width(func, op, &args, func.insts[inst].results.first().copied());
        let least = |fold: &dyn Fn(Value) -> bool, fits: &dyn Fn(&Binds) -> bool| {
            let templates = self.matcher.candidates(op).iter().map(|&i| &self.matcher.templates[i]);
            let matching =
                templates.filter(|t| self.matcher.value(func, t, bits, op, &args, fold).is_some_and(|b| fits(&b)));
            matching.map(|t| t.cost).min()
        };
        let plain = least(&|_| false, &|_| true);
        let whole = |b: &Binds| b.iter().flatten().all(|b| !matches!(b, Bind::Val(x) if *x == v));
        let taken = least(&|x| x == v, &whole);
        taken.is_some_and(|t| plain.is_none_or(|p| t <= p))
    }

    /// Is the value computed in this block, by an operation that may be repeated?
    pub(super) fn computed(&self, v: Value, block: Block) -> bool {
        self.func.def_inst(v).is_some_and(|i| self.home.get(&i) == Some(&block) && self.func.insts[i].op.is_pure())
    }

    /// The same, or a load that may happen as late as the instruction at `at`.
    pub(super) fn foldable_at(&self, v: Value, block: Block, at: usize) -> bool {
        if self.foldable(v, block) {
            return true;
        }
        self.uses.get(&v) == Some(&1)
            && !self.needed.contains(&v)
            && self.func.def_inst(v).and_then(|i| self.latest.get(&i)).is_some_and(|&latest| at <= latest)
    }

    /// For each load of a block, the place of the last instruction that it can
    /// be made at: nothing between may write what it reads.
    pub(super) fn latest(&self, block: Block) -> HashMap<Inst, usize> {
        let insts = &self.func.blocks[block].insts;
        let mut out = HashMap::new();
        // What writes behind the instruction at hand, the nearest last: a store's memory, or a
        // call's, which may be any.
        let mut writers: Vec<(usize, Option<MemRef>)> = Vec::new();
        for (i, &inst) in insts.iter().enumerate().rev() {
            let data = &self.func.insts[inst];
            match data.op {
                Op::Load(m) => {
                    let mine = self.mem_ref(m, data.args[0], false);
                    let writes = |w: &&(usize, Option<MemRef>)| w.1.is_none_or(|other| other.conflicts(&mine));
                    out.insert(inst, writers.iter().rev().find(writes).map_or(usize::MAX, |w| w.0));
                }
                Op::Store(s) => writers.push((i, Some(self.mem_ref(s, data.args[0], true)))),
                Op::Call(_) | Op::CallPtr(_) => writers.push((i, None)),
                _ => {}
            }
        }
        out
    }

    pub(super) fn total(&self, t: &Template, binds: &Binds, block: Block) -> u32 {
        let leaf = |b: &Option<Bind>| match b {
            Some(Bind::Val(v)) if self.func.as_const(*v).is_some() => {
                self.func.as_const(*v).map_or(0, |c| self.constant_cost(c))
            }
            Some(Bind::Val(v)) if self.foldable(*v, block) => self.best.get(v).map_or(0, |b| b.2),
            Some(Bind::Val(v)) if self.loaded_for_this(*v, block) => self.best.get(v).map_or(0, |b| b.2),
            _ => 0,
        };
        // Along a chain of values that are each read twice the sum doubles from one to the next.
        binds.iter().map(leaf).fold(t.cost.saturating_add(self.copies(t, binds)), u32::saturating_add)
    }

    /// What it costs that an instruction wants a constant in a register.
    ///
    /// Registers of narrow words are few, so a constant there counts as made for this one use. What is wider than they
    /// are, as addresses of the program's own memory, they cannot hold.
    fn constant_cost(&self, c: u64) -> u32 {
        if self.machine.chains.is_none() {
            return CONSTANT_COST;
        }
        if c >> self.machine.value_bits() != 0 {
            return UNFIT;
        }
        constants::recipe(self.machine, self.matcher, c).map_or(UNFIT, |r| r.0.cost)
    }

    /// A load that only one operation here uses, which might take it in.
    pub(super) fn loaded_for_this(&self, v: Value, block: Block) -> bool {
        self.folds_loads
            && self.uses.get(&v) == Some(&1)
            && self
                .func
                .def_inst(v)
                .is_some_and(|i| self.home.get(&i) == Some(&block) && matches!(self.func.insts[i].op, Op::Load(_)))
    }

    /// Cost of the moves that save a value from being overwritten: most of them
    /// vanish with register allocation, if the value has no other user. Counted
    /// where overwriting is the rule: elsewhere the alternative is a constant in
    /// a register, which costs more.
    pub(super) fn copies(&self, t: &Template, binds: &Binds) -> u32 {
        let overwritten = |i: &usize| match t.operands[*i].kind {
            OperandKind::Reg { def: true, used: true, .. } => match binds[*i] {
                Some(Bind::Val(v)) => self.read_later(v),
                _ => false,
            },
            _ => false,
        };
        if t.any_old || !self.folds_loads {
            0
        } else {
            COPY_COST * (0..t.operands.len()).filter(overwritten).count() as u32
        }
    }

    /// Is the value read behind the instruction that is being looked at?
    pub(super) fn read_later(&self, v: Value) -> bool {
        let here = match self.func.values[v].def {
            ValueDef::Inst(inst, _) => self.home.get(&inst) == Some(&self.current),
            ValueDef::Param(block, _) => block == self.current,
            ValueDef::Alias(_) => false,
        };
        let read = self.read_here.get(&v).copied().unwrap_or(0);
        !here || self.uses.get(&v).is_some_and(|&n| n > read)
    }

    /// Cheapest of the templates `matches` accepts.
    pub(super) fn cheapest(
        &self,
        list: &[usize],
        block: Block,
        matches: impl Fn(&Template) -> Option<Binds>,
    ) -> Option<(usize, Binds, u32)> {
        let mut best: Option<(usize, Binds, u32)> = None;
        for &i in list {
            let t = &self.matcher.templates[i];
            if let Some(binds) = matches(t) {
                let cost = self.total(t, &binds, block);
                if best.as_ref().is_none_or(|b| cost < b.2 || (cost == b.2 && t.deep)) {
                    best = Some((i, binds, cost));
                }
            }
        }
        best
    }
}
