//! The dataflow bound: a program on an infinitely wide machine.
//!
//! A run is executed as usual and every instruction is given the earliest
//! cycle at which its inputs exist: registers by the machine's latencies, and
//! bytes of memory one cycle after the store that wrote them. Control,
//! anti-dependences, units and issue width are ignored. Each of these only
//! removes reasons to wait that the real machine has, so by induction over the
//! run no instruction starts later here than there: the critical path (last
//! start plus one) is never above the real cycle count.
//!
//! Beside it the work is summed: for each set of units that instructions
//! choose from, the cycles they occupy there. From these follows the resource
//! bound: for any group of units, the work that only they can do, divided by
//! how many there are (Hall's condition).

use crate::code::CodeMap;
use crate::flatten::Flow;
use crate::hazard::BundleTiming;
use crate::step::{Access, Stepper, Watch};
use crate::uses::reads;
use crate::xop::Slot;
use crate::{Simulator, Stop};
use ciphermill_machine::sem::Stmt;
use ciphermill_machine::{Machine, Reg, UnitId};
use ciphermill_program::Program;
use std::collections::{BTreeMap, HashMap, VecDeque};

/// What a run would cost if only its data flow counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Dataflow {
    /// Cycles of the longest chain of dependent instructions.
    pub critical_path: u64,
    pub instructions: u64,
    /// Sum of `issue_cycles` over all instructions.
    pub issue_cycles: u64,
    /// For each set of units (by number) that instructions chose from: cycles
    /// occupied in all.
    pub occupancy: Vec<(Vec<UnitId>, u64)>,
    /// The longest any instruction keeps its unit.
    pub longest_unit: u64,
}

impl Dataflow {
    /// Cycles that the machine's width and units need at least, as a fraction:
    /// for differences between runs.
    pub fn resource_cycles(&self, machine: &Machine) -> f64 {
        let mut bound = self.issue_cycles as f64 / f64::from(machine.issue.width.max(1));
        let sets: Vec<_> = self.occupancy.iter().take(16).collect();
        for choice in 1u32..1 << sets.len() {
            let mut units: Vec<UnitId> = Vec::new();
            for (i, (set, _)) in sets.iter().enumerate() {
                if choice >> i & 1 == 1 {
                    units.extend(set);
                }
            }
            units.sort_unstable();
            units.dedup();
            let work: u64 = sets.iter().filter(|(set, _)| set.iter().all(|u| units.contains(u))).map(|(_, w)| w).sum();
            let count: u32 = units.iter().filter_map(|&u| machine.units.get(u)).map(|u| u32::from(u.count)).sum();
            if count > 0 {
                // The last instruction on each unit may outlast the run.
                let over = (self.longest_unit.saturating_sub(1)) as f64;
                bound = bound.max(work as f64 / f64::from(count) - over);
            }
        }
        bound
    }
}

/// Times at which values exist.
struct Tracker<'a> {
    program: &'a Program,
    map: &'a CodeMap,
    ready: Vec<u64>,
    saved: Vec<Vec<u64>>,
    memory: HashMap<u32, u64>,
    /// For bundles whose writes have not all landed: serial of the first, and
    /// for each the times of its writes.
    landing: VecDeque<Vec<u64>>,
    first: u64,
    occupancy: BTreeMap<Vec<UnitId>, u64>,
    out: Dataflow,
}

impl Tracker<'_> {
    fn turn(&mut self, window: i8) {
        let Some(w) = &self.program.machine.abi.windows else { return };
        let index = |r: &Reg| usize::from(r.0);
        let kept: Vec<usize> = w.locals.iter().chain(&w.ins).map(index).collect();
        if window == 1 {
            self.saved.push(kept.iter().map(|&r| self.ready[r]).collect());
            for (i, o) in w.ins.iter().zip(&w.outs) {
                self.ready[index(i)] = self.ready[index(o)];
            }
            for r in w.locals.iter().chain(&w.outs) {
                self.ready[index(r)] = 0;
            }
        } else if window == -1 {
            for (i, o) in w.ins.iter().zip(&w.outs) {
                self.ready[index(o)] = self.ready[index(i)];
            }
            if let Some(times) = self.saved.pop() {
                for (r, t) in kept.into_iter().zip(times) {
                    self.ready[r] = t;
                }
            }
        }
    }
}

impl Watch for Tracker<'_> {
    fn issued(&mut self, n: u32, timing: &BundleTiming, flow: &Flow, accesses: &[Access]) {
        let bundle = self.map.bundle(self.program, n);
        let mut starts = Vec::with_capacity(bundle.insts.len());
        for (k, inst) in bundle.insts.iter().enumerate() {
            let instr = &self.program.machine.instrs[usize::from(inst.instr.0)];
            let mut start = 0;
            let ready = &self.ready;
            let mut wait = |r: Reg| start = start.max(ready[usize::from(r.0)]);
            for s in &instr.semantics {
                match s {
                    Stmt::Let { value, .. } | Stmt::Assign { value, .. } => reads(inst, value, &mut wait),
                    Stmt::Store { addr, value, .. } => {
                        reads(inst, addr, &mut wait);
                        reads(inst, value, &mut wait);
                    }
                    Stmt::Goto { cond: Some(c), .. } => reads(inst, c, &mut wait),
                    _ => {}
                }
            }
            for a in accesses.iter().filter(|a| !a.store && usize::from(a.slot) == k) {
                for b in 0..u32::from(a.bytes) {
                    start = start.max(self.memory.get(&a.addr.wrapping_add(b)).copied().unwrap_or(0));
                }
            }
            starts.push(start);
            self.out.critical_path = self.out.critical_path.max(start + 1);
            self.out.instructions += 1;
            self.out.issue_cycles += u64::from(instr.issue_cycles.max(1));
            if !instr.units.is_empty() {
                let cycles = u64::from(instr.unit_cycles.max(1));
                *self.occupancy.entry(instr.units.clone()).or_insert(0) += cycles;
                self.out.longest_unit = self.out.longest_unit.max(cycles);
            }
        }
        for a in accesses.iter().filter(|a| a.store) {
            for b in 0..u32::from(a.bytes) {
                let start = starts.get(usize::from(a.slot)).copied().unwrap_or(0);
                self.memory.insert(a.addr.wrapping_add(b), start + 1);
            }
        }
        self.turn(timing.window);
        let times = flow.writes.iter().map(|w| starts[w.slot] + u64::from(w.latency)).collect();
        self.landing.push_back(times);
        // No latency reaches back further than this many bundles.
        if self.landing.len() > 4096 {
            self.landing.pop_front();
            self.first += 1;
        }
    }

    fn landed(&mut self, reg: Slot, serial: u64, which: usize) {
        let times = serial.checked_sub(self.first).and_then(|i| self.landing.get(i as usize));
        if let Some(&t) = times.and_then(|t| t.get(which)) {
            self.ready[usize::from(reg)] = t;
        }
    }
}

impl Simulator {
    /// Call a function and return its results with its dataflow costs. Leaves
    /// the counts of [`Simulator::stats`] as they are.
    pub fn dataflow(&mut self, func: u32, args: &[u64]) -> Result<(Vec<u64>, Dataflow), Stop> {
        self.start()?;
        let entry = self.prepare(func, args)?;
        let mut stepper = Stepper::new(&self.program, &self.map, false).map_err(Stop::Internal)?;
        let mut tracker = Tracker {
            program: &self.program,
            map: &self.map,
            ready: vec![0; self.program.machine.regs.len()],
            saved: Vec::new(),
            memory: HashMap::new(),
            landing: VecDeque::new(),
            first: 0,
            occupancy: BTreeMap::new(),
            out: Dataflow::default(),
        };
        let windows = (self.state.windows.overflows, self.state.windows.underflows);
        let fuel = self.options.max_instructions;
        let run = stepper.call(&self.program, &self.map, &mut self.state, entry, fuel, &mut tracker);
        let mut out = tracker.out;
        out.occupancy = tracker.occupancy.into_iter().collect();
        (self.state.windows.overflows, self.state.windows.underflows) = windows;
        let results = self.leave(func, run.map(|_| ()))?;
        stepper.drain(&mut self.state);
        Ok((results, out))
    }
}
