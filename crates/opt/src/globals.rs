//! Globals: what a global holds at each point of a function, and which sets
//! nobody sees.
//!
//! A global that is not mutable, or that nothing in the module sets and the
//! outside cannot, is its initial value. For the others two data-flow problems
//! are solved for each function:
//!
//! * **forward**: at each point a global holds a known value or is unknown. A
//!   set or get makes it known, a call that may set globals forgets it, paths
//!   that disagree forget it. Any solution of the equations is an invariant of
//!   the program, so an optimistic start is sound. A get of a known value is
//!   that value; a set to it does nothing.
//! * **backward**: a set is dead when on every path the global is set again, or
//!   the run ends in a trap that does not count, before anything can see it:
//!   a get, a call that may touch globals, a return; under strict traps also
//!   anything that may trap.
//!
//! The pair turns the shadow stack pointer of compiled C, once its users are
//! inlined, into plain arithmetic.

use crate::alias::Aliases;
use crate::edit;
use crate::options::Options;
use ciphermill_ir::{Block, Cfg, Func, FuncId, GlobalId, Inst, Module, Op, Terminator, Value};
use cranelift_entity::SecondaryMap;

pub(crate) fn run(module: &mut Module, options: &Options) -> bool {
    let facts = Facts::new(module);
    let aliases = Aliases::new(module);
    edit::for_each_func(module, |module, func| {
        let mut changed = constants(module, &facts, func);
        let tracked = tracked(func);
        if !tracked.is_empty() {
            let pass = Tracker { facts: &facts, tracked: &tracked };
            changed |= pass.forward(func);
            changed |= pass.backward(&aliases, func, options.strict_traps);
        }
        changed
    })
}

/// Globals followed in one function; one bit of a word each.
const MAX_TRACKED: usize = 64;
/// Sweeps of a data-flow problem before it is given up.
const MAX_SWEEPS: usize = 16;

/// What the whole module says.
struct Facts {
    /// Globals that always hold their initial value.
    fixed: SecondaryMap<GlobalId, bool>,
    /// Functions that may set, or get or set, a mutable global, themselves or
    /// through what they call.
    sets: SecondaryMap<FuncId, bool>,
    touches: SecondaryMap<FuncId, bool>,
}

impl Facts {
    fn new(module: &Module) -> Facts {
        let mut facts = Facts { fixed: SecondaryMap::new(), sets: SecondaryMap::new(), touches: SecondaryMap::new() };
        let mut set: SecondaryMap<GlobalId, bool> = SecondaryMap::new();
        let mut callers: SecondaryMap<FuncId, Vec<FuncId>> = SecondaryMap::new();
        for (id, func) in &module.funcs {
            for &inst in func.layout.iter().flat_map(|&b| &func.blocks[b].insts) {
                match func.insts[inst].op {
                    Op::GlobalSet(global) => {
                        set[global] = true;
                        facts.sets[id] = true;
                        facts.touches[id] = true;
                    }
                    Op::GlobalGet(global) if module.globals[global].mutable => facts.touches[id] = true,
                    Op::CallPtr(_) => {
                        facts.sets[id] = true;
                        facts.touches[id] = true;
                    }
                    Op::Call(callee) => callers[callee].push(id),
                    _ => {}
                }
            }
        }
        // The outside may set what is exported.
        for &(_, global) in &module.exported_globals {
            set[global] = true;
        }
        for (id, global) in &module.globals {
            facts.fixed[id] = !global.mutable || !set[id];
        }
        for map in [&mut facts.sets, &mut facts.touches] {
            let mut work: Vec<FuncId> = module.funcs.keys().filter(|&f| map[f]).collect();
            while let Some(f) = work.pop() {
                for &caller in &callers[f] {
                    if !std::mem::replace(&mut map[caller], true) {
                        work.push(caller);
                    }
                }
            }
        }
        facts
    }

    fn call(&self, op: Op, map: &SecondaryMap<FuncId, bool>) -> bool {
        match op {
            Op::Call(callee) => map[callee],
            Op::CallPtr(_) => true,
            _ => false,
        }
    }
}

fn constants(module: &Module, facts: &Facts, func: &mut Func) -> bool {
    let mut changed = false;
    for b in 0..func.layout.len() {
        for &inst in &func.blocks[func.layout[b]].insts {
            if let Op::GlobalGet(global) = func.insts[inst].op
                && facts.fixed[global]
            {
                func.insts[inst].op = Op::Const(module.globals[global].init);
                changed = true;
            }
        }
    }
    changed
}

/// The globals a function gets or sets, in order of appearance.
fn tracked(func: &Func) -> Vec<GlobalId> {
    let mut seen = Vec::new();
    for &inst in func.layout.iter().flat_map(|&b| &func.blocks[b].insts) {
        if let Op::GlobalGet(global) | Op::GlobalSet(global) = func.insts[inst].op
            && seen.len() < MAX_TRACKED
            && !seen.contains(&global)
        {
            seen.push(global);
        }
    }
    seen
}

struct Tracker<'a> {
    facts: &'a Facts,
    tracked: &'a [GlobalId],
}

/// What each tracked global holds; none for unknown.
type GlobalValues = Vec<Option<Value>>;

impl Tracker<'_> {
    fn slot(&self, global: GlobalId) -> Option<usize> {
        self.tracked.iter().position(|&g| g == global)
    }

    /// The effect of one instruction on what is known.
    fn step(&self, func: &Func, inst: Inst, values: &mut GlobalValues) {
        let data = &func.insts[inst];
        match data.op {
            Op::GlobalGet(global) => {
                if let Some(slot) = self.slot(global)
                    && values[slot].is_none()
                {
                    values[slot] = Some(func.result(inst));
                }
            }
            Op::GlobalSet(global) => {
                if let Some(slot) = self.slot(global) {
                    values[slot] = Some(func.resolve(data.args[0]));
                }
            }
            op if self.facts.call(op, &self.facts.sets) => values.fill(None),
            _ => {}
        }
    }

    fn forward(&self, func: &mut Func) -> bool {
        let cfg = Cfg::new(func);
        let Some(entry_states) = self.solve(func, &cfg) else { return false };
        let mut changed = false;
        for &block in &cfg.rpo {
            let mut values = entry_states[block].clone().unwrap_or_else(|| vec![None; self.tracked.len()]);
            let mut insts = std::mem::take(&mut func.blocks[block].insts);
            insts.retain(|&inst| {
                let known = |g| self.slot(g).and_then(|s| values[s]).map(|v| func.resolve(v));
                let keep = match func.insts[inst].op {
                    Op::GlobalGet(g) => match known(g) {
                        Some(v) => {
                            func.replace(func.result(inst), v);
                            false
                        }
                        None => true,
                    },
                    Op::GlobalSet(g) => known(g) != Some(func.resolve(func.insts[inst].args[0])),
                    _ => true,
                };
                if keep {
                    self.step(func, inst, &mut values);
                }
                changed |= !keep;
                keep
            });
            func.blocks[block].insts = insts;
        }
        func.resolve_all();
        changed
    }

    /// Known values of globals at the start of each block, or nothing when the equations
    /// do not settle.
    fn solve(&self, func: &Func, cfg: &Cfg) -> Option<SecondaryMap<Block, Option<GlobalValues>>> {
        let mut at_entry: SecondaryMap<Block, Option<GlobalValues>> = SecondaryMap::new();
        let mut at_exit: SecondaryMap<Block, Option<GlobalValues>> = SecondaryMap::new();
        for _ in 0..MAX_SWEEPS {
            let mut stable = true;
            for &block in &cfg.rpo {
                let mut values: Option<GlobalValues> = None;
                if block == func.entry {
                    values = Some(vec![None; self.tracked.len()]);
                }
                for edge in cfg.preds(block) {
                    // A predecessor not visited yet agrees with everything.
                    let Some(from) = &at_exit[edge.from] else { continue };
                    match &mut values {
                        None => values = Some(from.clone()),
                        Some(values) => {
                            for (h, f) in values.iter_mut().zip(from) {
                                if h != f {
                                    *h = None;
                                }
                            }
                        }
                    }
                }
                if at_entry[block] != values || at_exit[block].is_none() {
                    stable = false;
                    at_entry[block].clone_from(&values);
                    let mut values = values.unwrap_or_else(|| vec![None; self.tracked.len()]);
                    for &inst in &func.blocks[block].insts {
                        self.step(func, inst, &mut values);
                    }
                    at_exit[block] = Some(values);
                }
            }
            if stable {
                return Some(at_entry);
            }
        }
        None
    }

    fn backward(&self, aliases: &Aliases, func: &mut Func, strict: bool) -> bool {
        let cfg = Cfg::new(func);
        // Bit set: nobody will see what the global holds at the block's start.
        let mut unseen: SecondaryMap<Block, u64> = SecondaryMap::with_default(u64::MAX);
        let at_end = |func: &Func, block: Block, unseen: &SecondaryMap<Block, u64>| match func.blocks[block].term {
            Terminator::Return(_) => 0,
            Terminator::Trap(_) if strict => 0,
            Terminator::Trap(_) => u64::MAX,
            _ => cfg.succs(block).iter().fold(u64::MAX, |all, &s| all & unseen[s]),
        };
        loop {
            let mut stable = true;
            for &block in cfg.rpo.iter().rev() {
                let mut bits = at_end(func, block, &unseen);
                for &inst in func.blocks[block].insts.iter().rev() {
                    self.step_back(aliases, func, inst, strict, &mut bits);
                }
                stable &= unseen[block] == bits;
                unseen[block] = bits;
            }
            if stable {
                break;
            }
        }
        let mut changed = false;
        for &block in &cfg.rpo {
            let mut bits = at_end(func, block, &unseen);
            let mut kept = Vec::new();
            for &inst in func.blocks[block].insts.iter().rev() {
                let dead = matches!(func.insts[inst].op, Op::GlobalSet(g)
                    if self.slot(g).is_some_and(|s| bits >> s & 1 == 1));
                if dead {
                    changed = true;
                } else {
                    kept.push(inst);
                }
                self.step_back(aliases, func, inst, strict, &mut bits);
            }
            kept.reverse();
            func.blocks[block].insts = kept;
        }
        changed
    }

    fn step_back(&self, aliases: &Aliases, func: &Func, inst: Inst, strict: bool, bits: &mut u64) {
        match func.insts[inst].op {
            Op::GlobalGet(g) => {
                if let Some(slot) = self.slot(g) {
                    *bits &= !(1 << slot);
                }
            }
            Op::GlobalSet(g) => {
                if let Some(slot) = self.slot(g) {
                    *bits |= 1 << slot;
                }
            }
            op if self.facts.call(op, &self.facts.touches) => *bits = 0,
            _ if strict && aliases.may_trap(func, inst) => *bits = 0,
            _ => {}
        }
    }
}
