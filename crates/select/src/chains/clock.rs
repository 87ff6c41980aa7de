//! When the values of a loop arrive, were there units for everything.
//!
//! Each operation is covered by the cheapest template, as selection will do, and takes that one's
//! latency from the latest value it reads. Passes follow each other through the loop's parameters.
//! After a few passes what the longest circuit makes is a whole circuit later each time, and
//! everything else, counters and what comes from outside, has been there for long.

use ciphermill_ir::{Block, Func, Inst, Op, Target, Value};
use ciphermill_machine::{InstrId, Machine, UnitId};
use ciphermill_patterns::matcher::{Bind, Binds, Matcher};
use ciphermill_patterns::pattern::Template;
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Passes after which values arrive in a steady rhythm, and over which the rhythm is taken.
const PASSES: i64 = 4;

/// Cycles of circuit that a cycle more by units has to save at least. Serpent's encryption on the C6201, with 139 cycles
/// of circuit less and 222 of units more, was 10 % slower; RC6's, with 60 less and 20 more, 9 % faster.
const SHARE: i64 = 1;

/// When values from outside the loop arrive, and what depends on nothing else: before everything.
pub const EARLY: i64 = -(1 << 40);

/// When a value arrives that no instruction makes.
pub const NEVER: i64 = 1 << 40;

/// Values that an instruction reads, and cycles until its result.
type Reads = SmallVec<[(Value, i64); 4]>;

/// How one operation is covered.
#[derive(Clone)]
struct Cover {
    template: Option<usize>,
    reads: Reads,
    /// With everything that is folded into it.
    cost: u32,
}

/// The times of one loop.
#[derive(Clone)]
pub struct Clock<'a> {
    machine: &'a Machine,
    matcher: &'a Matcher,
    block: Block,
    uses: HashMap<Value, u32>,
    covers: HashMap<Value, Cover>,
    /// Arrival in a pass far from the first.
    at: HashMap<Value, i64>,
    /// Values that a longest circuit goes through.
    critical: HashSet<Value>,
    /// Cycles of [`PASSES`] passes by the longest circuit, and by units.
    circuit: i64,
    units: i64,
}

impl<'a> Clock<'a> {
    pub fn new(
        func: &Func,
        machine: &'a Machine,
        matcher: &'a Matcher,
        block: Block,
        uses: &HashMap<Value, u32>,
    ) -> Clock<'a> {
        let mut clock = Clock {
            machine,
            matcher,
            block,
            uses: uses.clone(),
            covers: HashMap::new(),
            at: HashMap::new(),
            critical: HashSet::new(),
            circuit: 0,
            units: 0,
        };
        let data = &func.blocks[block];
        let values: Vec<Value> = data.insts.iter().flat_map(|&i| func.insts[i].results.iter().copied()).collect();
        for &inst in &data.insts {
            clock.cover(func, inst);
        }
        let stores = clock.stores(func);
        clock.units = clock.by_units(func, &stores);
        let Some(back) = data.term.targets().into_iter().find(|t| t.block == block).cloned() else { return clock };
        clock.forward(func, &back, &values);
        clock.backward(func, &back, &values);
        clock
    }

    /// Cycles that some passes take at least.
    pub fn bound(&self) -> i64 {
        self.circuit.max(self.units)
    }

    /// What a form of the loop is judged by: the bound, and its share of what units do. An operation more
    /// is not free although units are idle: it takes a slot, registers and paths between clusters.
    pub fn price(&self) -> i64 {
        self.bound() + SHARE * self.units
    }

    /// Does a circuit hold the loop longer than units do?
    pub fn circuit_binds(&self) -> bool {
        self.circuit > self.units
    }

    /// Does a longest circuit go through the value?
    pub fn is_critical(&self, v: Value) -> bool {
        self.critical.contains(&v)
    }

    /// When a value arrives; before everything if it is not the loop's.
    pub fn at(&self, v: Value) -> i64 {
        self.at.get(&v).copied().unwrap_or(EARLY)
    }

    /// Is the value computed in the loop, by an operation that may be repeated?
    pub fn computed(&self, func: &Func, v: Value) -> Option<Inst> {
        func.def_inst(v).filter(|&i| self.covers.contains_key(&v) && func.insts[i].op.is_pure())
    }

    /// Is the value used by one operation only? Those that were just made are.
    pub fn used_once(&self, v: Value) -> bool {
        self.uses.get(&v).is_none_or(|&n| n <= 1)
    }

    /// Look at an operation that was made or changed: how it is covered, and when its value arrives.
    pub fn settle(&mut self, func: &Func, inst: Inst) {
        self.cover(func, inst);
        for &v in &func.insts[inst].results {
            let at = self.arrival(v);
            self.at.insert(v, at);
        }
    }

    fn arrival(&self, v: Value) -> i64 {
        let Some(cover) = self.covers.get(&v) else { return EARLY };
        let last = cover.reads.iter().map(|&(r, cycles)| self.at(r) + cycles).max().unwrap_or(EARLY);
        if cover.template.is_none() {
            return NEVER;
        }
        // A sum of values from outside is no later than these.
        if last < EARLY / 2 { EARLY } else { last }
    }

    fn cover(&mut self, func: &Func, inst: Inst) {
        let data = &func.insts[inst];
        let args: SmallVec<[Value; 3]> = data.args.iter().map(|&a| func.resolve(a)).collect();
        let Some(&first) = data.results.first() else { return };
        if matches!(data.op, Op::Const(_)) {
            self.covers.insert(first, Cover { template: Some(usize::MAX), reads: Reads::new(), cost: 0 });
            return;
        }
        let bits = self.matcher.width(func, data.op, &args, Some(first));
        let fold = |v: Value| self.used_once(v) && self.computed(func, v).is_some();
        let mut best: Option<Cover> = None;
        for &number in self.matcher.candidates(data.op) {
            let template = &self.matcher.templates[number];
            let Some(binds) = self.matcher.value(func, template, bits, data.op, &args, &fold) else { continue };
            let cost = self.cost(func, template, &binds);
            if best.as_ref().is_none_or(|b| cost < b.cost) {
                let reads = self.reads(func, template, &binds);
                best = Some(Cover { template: Some(number), reads, cost });
            }
        }
        // What selection does otherwise (calls, reads of globals) is on no circuit that could be
        // shortened; operations that the machine lacks are no choice.
        let simple = matches!(data.op, Op::Bin(_) | Op::Un(_) | Op::Cmp(_) | Op::Select);
        let cover = best.unwrap_or_else(|| Cover {
            template: (!simple).then_some(usize::MAX),
            reads: args.iter().filter(|&&a| func.as_const(a).is_none()).map(|&a| (a, 1)).collect(),
            cost: 0,
        });
        for &v in &data.results {
            self.covers.insert(v, cover.clone());
        }
    }

    /// Of a template, with what is folded into it.
    fn cost(&self, func: &Func, template: &Template, binds: &Binds) -> u32 {
        let leaf = |bind: &Option<Bind>| match bind {
            Some(Bind::Val(v)) if self.used_once(*v) && self.computed(func, *v).is_some() => {
                self.covers.get(v).map_or(0, |c| c.cost)
            }
            _ => 0,
        };
        // A template that reads a value twice counts what is folded into it twice, so that along a chain
        // of such values the sum doubles from one to the next.
        binds.iter().map(leaf).fold(template.cost, u32::saturating_add)
    }

    fn reads(&self, func: &Func, template: &Template, binds: &Binds) -> Reads {
        let cycles: u32 = template.parts.iter().map(|p| self.machine.instrs[usize::from(p.instr.0)].latency).sum();
        let value = |bind: &Option<Bind>| match bind {
            Some(Bind::Val(v)) if func.as_const(*v).is_none() => Some((*v, i64::from(cycles))),
            _ => None,
        };
        binds.iter().filter_map(value).collect()
    }

    /// The block's stores: their templates, and what these read.
    fn stores(&self, func: &Func) -> Vec<(usize, Reads)> {
        let mut found = Vec::new();
        let fold = |v: Value| self.used_once(v) && self.computed(func, v).is_some();
        for &inst in &func.blocks[self.block].insts {
            let data = &func.insts[inst];
            let Op::Store(m) = data.op else { continue };
            let args: SmallVec<[Value; 3]> = data.args.iter().map(|&a| func.resolve(a)).collect();
            let fitting = self.matcher.stores.iter().filter_map(|&number| {
                let template = &self.matcher.templates[number];
                let binds = self.matcher.store(func, template, m, &args, &fold)?;
                Some((self.cost(func, template, &binds), number, self.reads(func, template, &binds)))
            });
            found.extend(fitting.min_by_key(|f| f.0).map(|(_, number, reads)| (number, reads)));
        }
        found
    }

    /// Cycles of [`PASSES`] passes by units: ResMII, of all sets of units that some instruction
    /// can run on the one with most work for each.
    fn by_units(&self, func: &Func, stores: &[(usize, Reads)]) -> i64 {
        let mut wanted: Vec<Value> = stores.iter().flat_map(|s| s.1.iter().map(|r| r.0)).collect();
        let data = &func.blocks[self.block];
        data.term.for_each_value(|v| wanted.push(func.resolve(v)));
        for &inst in data.insts.iter().filter(|&&i| !func.insts[i].op.is_pure()) {
            let stored = matches!(func.insts[inst].op, Op::Store(_));
            wanted.extend(func.insts[inst].results.iter().copied());
            wanted.extend(func.insts[inst].args.iter().filter(|_| !stored).map(|&a| func.resolve(a)));
        }
        let mut work: BTreeMap<BTreeSet<UnitId>, i64> = BTreeMap::new();
        let mut count = |template: usize| {
            for part in &self.matcher.templates[template].parts {
                let cycles = i64::from(self.machine.instrs[usize::from(part.instr.0)].unit_cycles);
                *work.entry(self.units_of(part.instr)).or_default() += cycles.max(1);
            }
        };
        stores.iter().for_each(|s| count(s.0));
        let mut seen = HashSet::new();
        while let Some(v) = wanted.pop() {
            if func.as_const(v).is_some() || !seen.insert(v) {
                continue;
            }
            let Some(cover) = self.covers.get(&v) else { continue };
            wanted.extend(cover.reads.iter().map(|r| r.0));
            if let Some(number) = cover.template.filter(|&n| n != usize::MAX) {
                count(number);
            }
        }
        let places = |set: &BTreeSet<UnitId>| -> i64 {
            set.iter().map(|&u| i64::from(self.machine.units[u].count)).sum::<i64>().max(1)
        };
        let of_set = |set: &BTreeSet<UnitId>| {
            let inside: i64 = work.iter().filter(|(units, _)| units.is_subset(set)).map(|(_, n)| n).sum();
            inside * PASSES / places(set)
        };
        let width = i64::from(self.machine.issue.width).max(1);
        let all: i64 = work.values().sum::<i64>() * PASSES / width;
        work.keys().filter(|set| !set.is_empty()).map(of_set).max().unwrap_or(0).max(all)
    }

    /// The units that one of an instruction's variants runs on.
    fn units_of(&self, id: InstrId) -> BTreeSet<UnitId> {
        let variants = std::iter::once(&id).chain(&self.machine.variants[usize::from(id.0)]);
        variants.flat_map(|v| &self.machine.instrs[usize::from(v.0)].units).copied().collect()
    }

    /// Arrivals, pass by pass.
    fn forward(&mut self, func: &Func, back: &Target, values: &[Value]) {
        let params = &func.blocks[self.block].params;
        let mut begins: Vec<i64> = vec![0; params.len()];
        let mut ends = Vec::new();
        for _ in 0..=2 * PASSES {
            self.at.extend(params.iter().copied().zip(begins.iter().copied()));
            for &v in values {
                let at = self.arrival(v);
                self.at.insert(v, at);
            }
            ends.push(begins.iter().copied().max().unwrap_or(0));
            begins = back.args.iter().map(|&a| self.at(func.resolve(a))).collect();
        }
        self.circuit = ends[2 * PASSES as usize] - ends[PASSES as usize];
    }

    /// What is left of the way through later passes, from each value's arrival on.
    fn backward(&mut self, func: &Func, back: &Target, values: &[Value]) {
        let params = &func.blocks[self.block].params;
        let mut after: Vec<i64> = vec![0; params.len()];
        let mut left: HashMap<Value, i64> = HashMap::new();
        for _ in 0..=2 * PASSES {
            left.clear();
            let raise = |left: &mut HashMap<Value, i64>, v: Value, to: i64| {
                let entry = left.entry(v).or_insert(to);
                *entry = to.max(*entry);
            };
            for (&arg, &to) in back.args.iter().zip(&after) {
                raise(&mut left, func.resolve(arg), to);
            }
            for &v in values.iter().rev() {
                let Some(&behind) = left.get(&v) else { continue };
                let Some(cover) = self.covers.get(&v) else { continue };
                for &(read, cycles) in &cover.reads {
                    raise(&mut left, read, behind + cycles);
                }
            }
            after = params.iter().map(|p| left.get(p).copied().unwrap_or(EARLY)).collect();
        }
        let through = |v: &Value| self.at(*v) + left.get(v).copied().unwrap_or(EARLY);
        let longest = values.iter().map(through).max().unwrap_or(0);
        self.critical = values.iter().copied().filter(|v| through(v) == longest).collect();
    }
}
