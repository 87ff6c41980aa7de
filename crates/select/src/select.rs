//! Instruction selection: covering a function with templates.
//!
//! Each block is covered by itself. Going forward, the cheapest template is
//! found for every operation, a node folded into a pattern costing nothing
//! more and a leaf that is used only here costing its own best cover (dynamic
//! programming over the trees of the block). Going backward, what is needed is
//! marked from the block's effects and from values used elsewhere, so that a
//! folded or dead operation is never emitted. Going forward again, the chosen
//! templates are written out.
//!
//! Constants in registers stay symbolic ([`VOp::Const`]); where they are made
//! is decided by [`crate::constants`] once the code is known.

use crate::banks::Analysis;
use crate::lookups::Lookups;
use crate::provenance::{self, Root};
use ciphermill_ir::bits::Masks;
use ciphermill_ir::low_bits::use_counts;
use ciphermill_ir::{
    BinOp, Block, Cfg, CmpOp, Dominators, Func, FuncId, GlobalId, Inst, Loops, MemAccess, Op, Space, Terminator, Value,
    ValueDef,
};
use ciphermill_machine::{InstrId, Machine, OperandKind, Reg};
use ciphermill_patterns::matcher::{Bind, Binds, Matcher, half};
use ciphermill_patterns::pattern::{Action, Template};
use ciphermill_patterns::wanted;
use ciphermill_program::Role;
use ciphermill_vcode::CompileError;
use ciphermill_vcode::{Inverse, MemRef, Object, VBlock, VFunc, VInst, VKind, VOp, VReg};
use cranelift_entity::{EntityRef, SecondaryMap};
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Cost of a constant that has to be in a register, in the unit of
/// [`Template::cost`]: most are made once, outside the loop.
const CONSTANT_COST: u32 = 4;

/// Cost of keeping a value that a two-address instruction overwrites.
const COPY_COST: u32 = 12;

/// What is known about memory: promises of the caller, and the machine's banks.
pub struct MemoryFacts<'a> {
    /// So many of the function's first parameters point to buffers that do not
    /// overlap.
    pub buffers: usize,
    /// Ranges of linear memory that are never written.
    pub readonly: &'a [Range<u32>],
    /// Where memory has banks.
    pub banks: Option<Analysis<'a>>,
}

/// Select instructions for one legalised function.
pub fn select(
    func: &Func,
    machine: &Machine,
    matcher: &Matcher,
    pinned: &[(GlobalId, Reg)],
    memory: &MemoryFacts<'_>,
) -> Result<VFunc, CompileError> {
    let cfg = Cfg::new(func);
    let doms = Dominators::new(func, &cfg);
    let loops = Loops::new(func, &cfg, &doms);
    let index: HashMap<Block, u32> = func.layout.iter().enumerate().map(|(i, &b)| (b, i as u32)).collect();
    let mut home = HashMap::new();
    for &block in &func.layout {
        for &inst in &func.blocks[block].insts {
            home.insert(inst, block);
        }
    }
    let vfunc = VFunc {
        name: func.name.clone(),
        blocks: Vec::new(),
        idom: func.layout.iter().map(|&b| doms.idom(b).map(|d| index[&d])).collect(),
        vregs: 0,
        has_calls: false,
        params: func.sig.params.len(),
        results: func.sig.results.len(),
    };
    let mut s = Selector {
        func,
        machine,
        matcher,
        pinned,
        lookups: Lookups::new(func, &|n| matcher.reads_table(machine, n)),
        roots: provenance::roots(func, memory.buffers),
        readonly: memory.readonly,
        banks: memory.banks.as_ref(),
        masks: Masks::new(func),
        uses: use_counts(func),
        home,
        index,
        needed: HashSet::new(),
        vregs: HashMap::new(),
        best: HashMap::new(),
        latest: HashMap::new(),
        current: func.entry,
        read_here: HashMap::new(),
        folds_loads: matcher.folds_loads(),
        vfunc,
        out: Vec::new(),
    };
    s.mark_used_elsewhere();
    for (i, &block) in func.layout.iter().enumerate() {
        let mut vblock = s.block(block, i as u32)?;
        vblock.loop_depth = loops.depth(block).min(255) as u8;
        vblock.preheader = outermost_preheader(block, &loops, &doms).map(|b| s.index[&b]);
        s.vfunc.blocks.push(vblock);
    }
    Ok(s.vfunc)
}

/// The block before the outermost loop around `block`.
fn outermost_preheader(block: Block, loops: &Loops, doms: &Dominators) -> Option<Block> {
    let mut id = loops.innermost(block)?;
    while let Some(parent) = loops.loops[id].parent {
        id = parent;
    }
    doms.idom(loops.loops[id].header)
}

struct Selector<'a> {
    func: &'a Func,
    machine: &'a Machine,
    matcher: &'a Matcher,
    pinned: &'a [(GlobalId, Reg)],
    lookups: Lookups,
    roots: SecondaryMap<Value, Root>,
    readonly: &'a [Range<u32>],
    banks: Option<&'a Analysis<'a>>,
    /// Bits that values may have.
    masks: Masks,
    uses: HashMap<Value, u32>,
    home: HashMap<Inst, Block>,
    index: HashMap<Block, u32>,
    needed: HashSet<Value>,
    vregs: HashMap<Value, VReg>,
    /// Cheapest cover of a value's operation: template, bindings, cost.
    best: HashMap<Value, (usize, Binds, u32)>,
    /// Of the block at hand: see [`Selector::latest`].
    latest: HashMap<Inst, usize>,
    /// The block at hand, and how often each value was read in it so far.
    current: Block,
    read_here: HashMap<Value, u32>,
    /// Does the machine have instructions that take a load in?
    folds_loads: bool,
    vfunc: VFunc,
    out: Vec<VInst>,
}

impl Selector<'_> {
    fn mark_used_elsewhere(&mut self) {
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

    fn vreg(&mut self, v: Value) -> VReg {
        let v = self.func.resolve(v);
        if let Some(&r) = self.vregs.get(&v) {
            return r;
        }
        let r = self.vfunc.new_vreg();
        self.vregs.insert(v, r);
        r
    }

    /// May the value be computed inside a pattern of its block?
    fn foldable(&self, v: Value, block: Block) -> bool {
        self.uses.get(&v) == Some(&1)
            && !self.needed.contains(&v)
            && self
                .func
                .def_inst(v)
                .is_some_and(|i| self.home.get(&i) == Some(&block) && self.func.insts[i].op.is_pure())
    }

    /// Is the value computed in this block, by an operation that may be repeated?
    fn computed(&self, v: Value, block: Block) -> bool {
        self.func.def_inst(v).is_some_and(|i| self.home.get(&i) == Some(&block) && self.func.insts[i].op.is_pure())
    }

    /// The same, or a load that may happen as late as the instruction at `at`.
    fn foldable_at(&self, v: Value, block: Block, at: usize) -> bool {
        if self.foldable(v, block) {
            return true;
        }
        self.uses.get(&v) == Some(&1)
            && !self.needed.contains(&v)
            && self.func.def_inst(v).and_then(|i| self.latest.get(&i)).is_some_and(|&latest| at <= latest)
    }

    /// For each load of a block, the place of the last instruction that it can
    /// be made at: nothing between may write what it reads.
    fn latest(&self, block: Block) -> HashMap<Inst, usize> {
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

    fn args(&self, inst: Inst) -> SmallVec<[Value; 3]> {
        self.func.insts[inst].args.iter().map(|&a| self.func.resolve(a)).collect()
    }

    fn total(&self, t: &Template, binds: &Binds, block: Block) -> u32 {
        let leaf = |b: &Option<Bind>| match b {
            Some(Bind::Val(v)) if self.func.as_const(*v).is_some() => CONSTANT_COST,
            Some(Bind::Val(v)) if self.foldable(*v, block) => self.best.get(v).map_or(0, |b| b.2),
            Some(Bind::Val(v)) if self.loaded_for_this(*v, block) => self.best.get(v).map_or(0, |b| b.2),
            _ => 0,
        };
        t.cost + binds.iter().map(leaf).sum::<u32>() + self.copies(t, binds)
    }

    /// A load that only one operation here uses, which might take it in.
    fn loaded_for_this(&self, v: Value, block: Block) -> bool {
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
    fn copies(&self, t: &Template, binds: &Binds) -> u32 {
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
    fn read_later(&self, v: Value) -> bool {
        let here = match self.func.values[v].def {
            ValueDef::Inst(inst, _) => self.home.get(&inst) == Some(&self.current),
            ValueDef::Param(block, _) => block == self.current,
            ValueDef::Alias(_) => false,
        };
        let read = self.read_here.get(&v).copied().unwrap_or(0);
        !here || self.uses.get(&v).is_some_and(|&n| n > read)
    }

    /// Cheapest of the templates `matches` accepts.
    fn cheapest(
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

    fn block(&mut self, block: Block, at: u32) -> Result<VBlock, CompileError> {
        let func = self.func;
        let data = &func.blocks[block];
        self.latest = if self.folds_loads { self.latest(block) } else { HashMap::new() };
        let places: HashMap<Inst, usize> = data.insts.iter().enumerate().map(|(i, &inst)| (inst, i)).collect();
        let together = {
            let computed = |v: Value| self.computed(v, block);
            ciphermill_patterns::several::together(func, self.matcher, &data.insts, &computed)
        };
        (self.current, self.read_here) = (block, HashMap::new());
        for (at, &inst) in data.insts.iter().enumerate() {
            let op = func.insts[inst].op;
            let args = self.args(inst);
            for &a in &args {
                *self.read_here.entry(a).or_default() += 1;
            }
            let this = &*self;
            let fold = |v: Value| this.foldable_at(v, block, at);
            let list = this.matcher.candidates(op);
            let shared = |v: Value| this.computed(v, block) || this.foldable_at(v, block, at);
            let bits = this.matcher.width(func, op, &args, func.insts[inst].results.first().copied());
            let choice = |t: &Template, args: &[Value]| {
                this.matcher.value(func, t, bits, op, args, if t.deep { &shared } else { &fold })
            };
            let mut found = this.cheapest(list, block, |t| choice(t, &args));
            // Which source is overwritten matters where one of them is.
            if let (Op::Bin(o), true, &[a, b]) = (op, this.folds_loads, &args[..])
                && o.commutes()
                && let Some(turned) = this.cheapest(list, block, |t| choice(t, &[b, a]))
                && found.as_ref().is_none_or(|f| turned.2 < f.2)
            {
                found = Some(turned);
            }
            if let Some((i, binds)) = together.get(&inst) {
                // One of several results: its part of what the instruction costs.
                let t = self.matcher.template(*i);
                let group = self.matcher.several.iter().find(|g| g.iter().any(|result| result.contains(i)));
                let parts = group.map_or(1, |g| g.len() as u32);
                let cost = self.total(t, binds, block).saturating_sub(t.cost - t.cost / parts);
                if found.as_ref().is_none_or(|f| cost <= f.2) {
                    found = Some((*i, binds.clone(), cost));
                }
            }
            if let Some(found) = found {
                self.best.insert(func.result(inst), found);
            }
        }

        // Backward: what the terminator and the effects need.
        let branch = self.branch(block, at)?;
        if let Some((_, binds, ..)) = &branch {
            self.need(binds);
        }
        match &data.term {
            Terminator::Return(values) => values.iter().for_each(|&v| {
                self.needed.insert(func.resolve(v));
            }),
            Terminator::Branch { .. } | Terminator::Jump(_) | Terminator::Trap(_) | Terminator::Switch { .. } => {}
        }
        let mut stores = HashMap::new();
        for &inst in data.insts.iter().rev() {
            let args = self.args(inst);
            match func.insts[inst].op {
                Op::Store(m) => {
                    let this = &*self;
                    let fold = |v: Value| this.foldable_at(v, block, places[&inst]);
                    let found = this
                        .cheapest(&this.matcher.stores, block, |t| this.matcher.store(func, t, m, &args, &fold))
                        .ok_or_else(|| self.no_instruction(inst))?;
                    self.need(&found.1);
                    stores.insert(inst, found);
                }
                Op::Call(_) | Op::CallPtr(_) | Op::GlobalSet(_) => {
                    self.needed.extend(args);
                }
                Op::Const(_) | Op::GlobalGet(_) => {}
                _ => {
                    let v = func.result(inst);
                    if self.needed.contains(&v) {
                        let binds = self.best.get(&v).ok_or_else(|| self.no_instruction(inst))?.1.clone();
                        self.need(&binds);
                    }
                }
            }
        }

        // Forward: write it out.
        let params: Vec<VReg> = if block == func.entry {
            let regs: Vec<(VReg, Reg)> =
                data.params.iter().zip(&self.machine.abi.callee_args).map(|(&p, &r)| (self.vreg(p), r)).collect();
            let mut inst = VInst::new(VKind::Params, self.machine.abi.ops.nop, &[], 0);
            inst.fixed_defs = regs;
            self.out.push(inst);
            Vec::new()
        } else {
            data.params.iter().map(|&p| self.vreg(p)).collect()
        };
        for &inst in &data.insts {
            self.emit_inst(inst, &mut stores)?;
        }
        let mut vblock = VBlock { params, ..VBlock::default() };
        self.emit_term(block, at, branch, &mut vblock)?;
        vblock.insts = std::mem::take(&mut self.out);
        Ok(vblock)
    }

    fn need(&mut self, binds: &Binds) {
        for b in binds.iter().flatten() {
            if let Bind::Val(v) = b {
                self.needed.insert(*v);
            }
        }
    }

    fn no_instruction(&self, inst: Inst) -> CompileError {
        let data = &self.func.insts[inst];
        CompileError::NoInstruction { operation: wanted::semantics(data.op), loc: data.loc }
    }

    /// The template for a block's conditional branch, negated when the taken
    /// side is the next block: `(template, binds, negated)`.
    fn branch(&self, block: Block, at: u32) -> Result<Option<(usize, Binds, bool)>, CompileError> {
        let Terminator::Branch { cond, then, .. } = &self.func.blocks[block].term else { return Ok(None) };
        let negate = self.index[&then.block] == at + 1;
        let (i, binds) = self.condition(*cond, block, negate).ok_or(CompileError::NoInstruction {
            operation: "a conditional branch, `if (a == b) goto target`, of the kind the program has".into(),
            loc: 0,
        })?;
        Ok(Some((i, binds, negate)))
    }

    /// A template that branches when `cond` is not zero (or is, if `negate`).
    fn condition(&self, cond: Value, block: Block, negate: bool) -> Option<(usize, Binds)> {
        let cond = self.func.resolve(cond);
        let fold = |v: Value| self.foldable_at(v, block, usize::MAX);
        let branches = &self.matcher.branches;
        let mut best: Option<(usize, Binds, u32)> = None;
        // The comparison itself, if it stands in this block (its operands are
        // then at hand), and else the value against zero.
        if let Some(inst) = self.func.def_inst(cond)
            && let Op::Cmp(op) = self.func.insts[inst].op
            && self.home.get(&inst) == Some(&block)
        {
            let mut args = self.args(inst);
            let mut op = op;
            if negate {
                let (n, swap) = op.negated();
                op = n;
                if swap {
                    args.swap(0, 1);
                }
            }
            best = self.cheapest(branches, block, |t| self.matcher.branch(self.func, t, Op::Cmp(op), &args, &fold));
        }
        if best.is_none() {
            let op = if negate { CmpOp::Eq } else { CmpOp::Ne };
            best = self.cheapest(branches, block, |t| self.zero_test(t, op, cond));
        }
        best.map(|(i, b, _)| (i, b))
    }

    /// Match `cond op 0`, where no value of the program is that zero.
    fn zero_test(&self, t: &Template, op: CmpOp, cond: Value) -> Option<Binds> {
        use ciphermill_patterns::pat::Pat;
        let Action::Branch { cond: Pat::Cmp(p, a, b), .. } = &t.action else { return None };
        let Pat::Reg(x) = **a else { return None };
        if *p != op {
            return None;
        }
        let mut binds: Binds = SmallVec::from_elem(None, t.operands.len());
        binds[x] = Some(Bind::Val(cond));
        match **b {
            Pat::Const(0) => {}
            Pat::Imm(i) => {
                ciphermill_patterns::pattern::fits(&t.operands[i], 0, 32)?;
                binds[i] = Some(Bind::Imm(0));
            }
            Pat::Reg(i) => {
                let OperandKind::Reg { file, .. } = t.operands[i].kind else { return None };
                binds[i] = Some(Bind::Zero(self.matcher.zero(file)?));
            }
            _ => return None,
        }
        Some(binds)
    }

    fn emit_inst(&mut self, inst: Inst, stores: &mut HashMap<Inst, (usize, Binds, u32)>) -> Result<(), CompileError> {
        let func = self.func;
        let data = &func.insts[inst];
        let loc = data.loc;
        match data.op {
            Op::Const(_) => {}
            Op::Store(m) => {
                let (i, binds, _) = stores.remove(&inst).ok_or_else(|| self.no_instruction(inst))?;
                let mem = self.mem_ref(m, data.args[0], true);
                self.emit_template(i, &binds, None, Some(mem), self.role(inst), loc)?;
            }
            Op::GlobalGet(g) => {
                if self.needed.contains(&func.result(inst)) {
                    let reg = self.pinned_reg(g, inst)?;
                    let def = self.vreg(func.result(inst));
                    let mov = self.mov(VOp::Def(def), VOp::Phys(reg), loc);
                    self.out.push(mov);
                }
            }
            Op::GlobalSet(g) => {
                let reg = self.pinned_reg(g, inst)?;
                let value = self.operand(data.args[0]);
                let mov = self.mov(VOp::Phys(reg), value, loc);
                self.out.push(mov);
            }
            Op::Call(callee) => self.emit_call(inst, Some(callee)),
            Op::CallPtr(_) => self.emit_call(inst, None),
            op => {
                let v = func.result(inst);
                if !self.needed.contains(&v) {
                    return Ok(());
                }
                let (i, binds, _) = self.best[&v].clone();
                let def = self.vreg(v);
                let mem = match op {
                    Op::Load(m) => Some(self.mem_ref(m, data.args[0], false)),
                    _ => None,
                };
                self.emit_template(i, &binds, Some(def), mem, self.role(inst), loc)?;
            }
        }
        Ok(())
    }

    fn role(&self, inst: Inst) -> Role {
        if self.lookups.contains(inst) { Role::Lookup } else { Role::Other }
    }

    fn pinned_reg(&self, g: GlobalId, inst: Inst) -> Result<Reg, CompileError> {
        let found = self.pinned.iter().find(|p| p.0 == g);
        found.map(|p| p.1).ok_or_else(|| self.no_instruction(inst))
    }

    fn mem_ref(&self, m: MemAccess, addr: Value, store: bool) -> MemRef {
        let addr = self.func.resolve(addr);
        let offset = i64::from(m.offset as i32);
        let (base, offset) = match self.func.as_const(addr) {
            Some(c) => (None, i64::from((c as u32).wrapping_add(m.offset))),
            None => (Some(addr), offset),
        };
        let object = match self.roots[addr] {
            Root::Pointer(i) if m.space == Space::Linear => Object::Buffer(i),
            Root::Int => Object::Own,
            _ => Object::Anything,
        };
        let linear = m.space == Space::Linear;
        let span = linear.then(|| provenance::extent(self.func, &self.masks, addr, m.offset, m.bytes)).flatten();
        let within = |&(first, last): &(u32, u32)| self.readonly.iter().any(|r| r.start <= first && last < r.end);
        let constant = !store && span.as_ref().is_some_and(within);
        let banks = self.banks.map_or(0, |banks| banks.touched(self.func, m, addr));
        MemRef { space: m.space, store, base, offset, bytes: m.bytes, object, span, constant, banks }
    }

    fn operand(&mut self, v: Value) -> VOp {
        let v = self.func.resolve(v);
        match self.func.as_const(v) {
            Some(c) => VOp::Const(c),
            None => VOp::Use(self.vreg(v)),
        }
    }

    /// The value in a virtual register, made on the spot if it is a constant.
    fn in_register(&mut self, v: Value) -> VReg {
        match self.operand(v) {
            VOp::Use(r) => r,
            op => {
                let def = self.vfunc.new_vreg();
                let mov = self.mov(VOp::Def(def), op, 0);
                self.out.push(mov);
                def
            }
        }
    }

    fn mov(&self, to: VOp, from: VOp, loc: u32) -> VInst {
        ciphermill_vcode::moves::mov(self.machine, to, from, loc)
    }

    fn emit_call(&mut self, inst: Inst, callee: Option<FuncId>) {
        self.vfunc.has_calls = true;
        let func = self.func;
        let abi = &self.machine.abi;
        let data = &func.insts[inst];
        let args = &data.args[usize::from(callee.is_none())..];
        let fixed_uses = args.iter().zip(&abi.args).map(|(&a, &r)| (self.in_register(a), r)).collect();
        let mut call = match callee {
            Some(id) => {
                let op = VOp::Func(id.index() as u32);
                VInst::new(VKind::Call, abi.ops.call, &self.fill(abi.ops.call, Some(op), &[]), data.loc)
            }
            None => {
                let target = VOp::Use(self.in_register(data.args[0]));
                VInst::new(
                    VKind::Call,
                    abi.ops.call_indirect,
                    &self.fill(abi.ops.call_indirect, None, &[target]),
                    data.loc,
                )
            }
        };
        call.mem = self.return_slot(true);
        call.fixed_uses = fixed_uses;
        call.fixed_defs = data.results.iter().zip(&abi.results).map(|(&v, &r)| (self.vreg(v), r)).collect();
        self.out.push(call);
    }

    /// Where a call puts the return address and a return finds it, if that is
    /// on the stack.
    fn return_slot(&self, store: bool) -> Option<MemRef> {
        let bytes = self.machine.word_bits / 8;
        let slot = MemRef::own(Space::Stack, store, 0, bytes);
        self.machine.abi.return_address.is_none().then_some(slot)
    }

    /// Operands of a fixed-form instruction: its label, its registers in
    /// order, zero for immediates.
    fn fill(&self, instr: InstrId, label: Option<VOp>, regs: &[VOp]) -> SmallVec<[VOp; 4]> {
        let mut regs = regs.iter().copied();
        let spec = &self.machine.instrs[instr.0 as usize].operands;
        spec.iter()
            .map(|o| match &o.kind {
                OperandKind::Label => label.unwrap_or(VOp::Imm(0)),
                OperandKind::Reg { .. } => regs.next().unwrap_or(VOp::Imm(0)),
                OperandKind::Imm { min, .. } => VOp::Imm((*min).max(0)),
            })
            .collect()
    }

    /// Write out a template's parts; the last definition of its result is
    /// `result`.
    fn emit_template(
        &mut self,
        i: usize,
        binds: &Binds,
        result: Option<VReg>,
        mem: Option<MemRef>,
        role: Role,
        loc: u32,
    ) -> Result<(), CompileError> {
        let matcher = self.matcher;
        let t = matcher.template(i);
        let insts = self.expand(t, binds, result, None)?;
        let folded = self.folded(binds);
        let mem = mem.or(folded.map(|f| f.0));
        let role = if folded.is_some_and(|f| f.1 == Role::Lookup) { Role::Lookup } else { role };
        for mut inst in insts {
            let kind = self.machine.instrs[inst.instr.0 as usize].kind;
            if matches!(kind, ciphermill_machine::InstrKind::Load | ciphermill_machine::InstrKind::Store) {
                inst.mem = mem;
            }
            inst.role = role;
            inst.loc = loc;
            self.out.push(inst);
        }
        Ok(())
    }

    /// What a load taken in by the pattern reads, and whom it works for.
    fn folded(&self, binds: &Binds) -> Option<(MemRef, Role)> {
        let inst = binds.iter().find_map(|b| if let Some(Bind::Load(i)) = b { Some(*i) } else { None })?;
        let data = &self.func.insts[inst];
        let Op::Load(m) = data.op else { return None };
        Some((self.mem_ref(m, data.args[0], false), self.role(inst)))
    }

    fn expand(
        &mut self,
        t: &Template,
        binds: &Binds,
        result: Option<VReg>,
        label: Option<u32>,
    ) -> Result<Vec<VInst>, CompileError> {
        let mut f = crate::constants::Expansion { machine: self.machine, new_vreg: &mut self.vfunc.vregs };
        let mut vregs = HashMap::new();
        for b in binds.iter().flatten() {
            if let Bind::Val(v) = b
                && self.func.as_const(*v).is_none()
            {
                vregs.insert(*v, ());
            }
        }
        let operand = |b: Bind, vregs: &HashMap<Value, VReg>| match b {
            Bind::Imm(i) => VOp::Imm(i),
            Bind::Zero(r) => VOp::Phys(r),
            Bind::Val(v) => match self.func.as_const(v) {
                Some(c) => VOp::Const(c),
                None => VOp::Use(vregs[&v]),
            },
            // No operand: expansion never looks at it.
            Bind::Load(_) => VOp::Imm(0),
        };
        let mut known = HashMap::new();
        let mut values: Vec<Value> = vregs.into_keys().collect();
        values.sort();
        for v in values {
            let r = *self.vregs.entry(v).or_insert_with(|| {
                *f.new_vreg += 1;
                VReg(*f.new_vreg - 1)
            });
            known.insert(v, r);
        }
        let ops: Vec<Option<VOp>> = binds.iter().map(|b| b.map(|b| operand(b, &known))).collect();
        f.expand(t, &ops, result, label)
    }

    fn emit_term(
        &mut self,
        block: Block,
        at: u32,
        branch: Option<(usize, Binds, bool)>,
        vblock: &mut VBlock,
    ) -> Result<(), CompileError> {
        let func = self.func;
        let abi = &self.machine.abi;
        let term = &func.blocks[block].term;
        match term {
            Terminator::Jump(target) => {
                let args = target.args.iter().map(|&a| self.in_register(a)).collect();
                let to = self.index[&target.block];
                vblock.succs.push((to, args));
                let ops = self.fill(abi.ops.jump, Some(VOp::Block(to)), &[]);
                self.out.push(VInst::new(VKind::Jump, abi.ops.jump, &ops, 0));
            }
            Terminator::Branch { cond, then, els } => {
                let (then, els) = (self.index[&then.block], self.index[&els.block]);
                let (i, binds, negated) = branch.ok_or(CompileError::NoInstruction {
                    operation: "a conditional branch, `if (a == b) goto target`".into(),
                    loc: 0,
                })?;
                let (taken, fall) = if negated { (els, then) } else { (then, els) };
                let matcher = self.matcher;
                let insts = self.expand(&matcher.templates[i], &binds, None, Some(taken))?;
                vblock.inverse = self.inverse(*cond, block, !negated, &insts, fall);
                vblock.succs = vec![(taken, vec![]), (fall, vec![])];
                let last = insts.len() - 1;
                let folded = self.folded(&binds);
                for (n, mut inst) in insts.into_iter().enumerate() {
                    if n == last {
                        inst.kind = VKind::Branch;
                    } else if self.machine.instrs[inst.instr.0 as usize].kind == ciphermill_machine::InstrKind::Load {
                        inst.mem = folded.map(|f| f.0);
                    }
                    self.out.push(inst);
                }
            }
            Terminator::Return(values) => {
                let uses = values.iter().zip(&abi.callee_results).map(|(&v, &r)| (self.in_register(v), r)).collect();
                let mut inst = VInst::new(VKind::Return, abi.ops.ret, &self.fill(abi.ops.ret, None, &[]), 0);
                inst.fixed_uses = uses;
                inst.mem = self.return_slot(false);
                self.out.push(inst);
            }
            Terminator::Trap(code) => {
                let mut inst = VInst::new(VKind::Trap, abi.ops.trap, &self.fill(abi.ops.trap, None, &[]), 0);
                inst.trap = Some(*code);
                self.out.push(inst);
            }
            Terminator::Switch { .. } => {
                return Err(CompileError::Internal(format!("block {at} still ends in a switch")));
            }
        }
        Ok(())
    }

    /// The same branch the other way round: the parts before the branch must
    /// be the same, so that only the last instruction changes.
    fn inverse(&mut self, cond: Value, block: Block, negate: bool, insts: &[VInst], label: u32) -> Option<Inverse> {
        let (i, binds) = self.condition(cond, block, negate)?;
        let matcher = self.matcher;
        let before = self.vfunc.vregs;
        let other = self.expand(&matcher.templates[i], &binds, None, Some(label)).ok()?;
        let (last, head) = other.split_last()?;
        let (_, our_head) = insts.split_last()?;
        let same = head.len() == our_head.len()
            && head.iter().zip(our_head).all(|(a, b)| a.instr == b.instr && a.ops == b.ops)
            && self.vfunc.vregs == before;
        same.then(|| Inverse { instr: last.instr, ops: last.ops.clone() })
    }
}
