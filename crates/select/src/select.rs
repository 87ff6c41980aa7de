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
//! A rotate with several users is folded, too, where each of them takes it in
//! at no cost ([`Selector::taken_in`]): then it is made nowhere.
//!
//! Constants in registers stay symbolic ([`VOp::Const`]); where they are made
//! is decided by [`crate::constants`] once the code is known.

mod carried;
mod cost;
mod emission;
mod words;

use crate::banks::Analysis;
use crate::carries::Carries;
use crate::lookups::Lookups;
use crate::provenance::{self, Root};
use ciphermill_ir::bits::Masks;
use ciphermill_ir::low_bits::use_counts;
use ciphermill_ir::{Block, Cfg, CmpOp, Dominators, Func, GlobalId, Inst, Loops, Op, Terminator, Value};
use ciphermill_machine::{Machine, OperandKind, Reg};
use ciphermill_patterns::matcher::{Bind, Binds, Matcher};
use ciphermill_patterns::pattern::{Action, Template};
use ciphermill_patterns::wanted;
use ciphermill_vcode::CompileError;
use ciphermill_vcode::{VBlock, VFunc, VInst, VKind, VReg};
use cranelift_entity::SecondaryMap;
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
        files: Vec::new(),
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
        taken_in: HashSet::new(),
        folds_loads: matcher.folds_loads(),
        carries: Carries::new(machine),
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
    /// Of the block at hand: see [`Selector::taken_in`].
    taken_in: HashSet<Value>,
    /// Does the machine have instructions that take a load in?
    folds_loads: bool,
    carries: Carries,
    vfunc: VFunc,
    out: Vec<VInst>,
}

impl Selector<'_> {
    fn vreg(&mut self, v: Value) -> VReg {
        let v = self.func.resolve(v);
        if let Some(&r) = self.vregs.get(&v) {
            return r;
        }
        let r = self.vfunc.new_vreg();
        self.vregs.insert(v, r);
        r
    }

    fn args(&self, inst: Inst) -> SmallVec<[Value; 3]> {
        self.func.insts[inst].args.iter().map(|&a| self.func.resolve(a)).collect()
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
        self.taken_in = self.taken_in(block);
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
        let chained = match &data.term {
            Terminator::Branch { cond, .. } => self.chained(block, func.resolve(*cond)),
            _ => None,
        };
        if let Some((_, inst)) = chained {
            self.needed.insert(func.result(inst));
        }
        let branch = if chained.is_some() { None } else { self.branch(block, at)? };
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
                Op::CallPtr(_) => {
                    self.needed.extend(self.pointer_words(args[0]));
                    self.needed.extend(&args[1..]);
                }
                Op::Call(_) | Op::GlobalSet(_) => {
                    self.needed.extend(args);
                }
                Op::Const(_) | Op::GlobalGet(_) => {}
                _ if self.in_words(inst) => {
                    if func.insts[inst].results.iter().any(|v| self.needed.contains(v)) {
                        match self.product_added(inst) {
                            Some(added) => self.needed.extend([added.sum, added.factors].concat()),
                            None => self.needed.extend(args),
                        }
                    }
                }
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
}
