//! The bundle-by-bundle engine: exposed pipelines, and dataflow analysis.
//!
//! Time here is the pipeline's own: a bundle issues, time advances by its
//! `issue_cycles`, and whatever falls due at the new time happens first.
//!
//! On an **exposed** pipeline a register is written `latency` cycles after
//! issue, and a jump takes effect after its delay slots, counted in cycles; a
//! multi-cycle no-operation ends early when a jump falls due. Reading sooner
//! gives the old value. Nothing waits, so nothing may need to: two writes of
//! one register in the same cycle, or an instruction whose unit is still busy,
//! are errors of the code generator's. Cache misses freeze everything and
//! advance the clock but not the pipeline's time.
//!
//! On an **interlocked** machine the same loop runs with every latency 1 and
//! every bundle one step: what is left are the values, which do not depend on
//! timing there. [`crate::dataflow`] watches either.

use crate::cache::Cache;
use crate::code::CodeMap;
use crate::engine::{Halt, add_bundles, is_return};
use crate::exec::{self, Exit, Hook, State};
use crate::flatten::{Condition, Flattener, Flow, Place, Target};
use crate::hazard::{BundleTiming, Pipes, branch_costs, jump_cycles, rotating};
use crate::stats::Stats;
use crate::superblock::delay_slots;
use crate::xop::{Op, Slot, Xop};
use ciphermill_machine::{Banks, Endian, InstrKind};
use ciphermill_program::Program;
use ciphermill_program::layout::is_far;

/// One access to memory.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    pub addr: u32,
    pub bytes: u8,
    pub store: bool,
    /// Index of the instruction in its bundle.
    pub slot: u16,
}

/// Follows a run, bundle by bundle.
pub trait Watch {
    /// A bundle is about to execute: registers and memory are as its instructions read them.
    fn before(&mut self, _n: u32, _state: &State) {}
    /// A bundle executed with these accesses. Its register writes come later; what they
    /// write stands in the slots of `state` that `flow` names.
    fn issued(&mut self, n: u32, timing: &BundleTiming, flow: &Flow, accesses: &[Access], state: &State);
    /// The write of `flow.writes[which]` of the bundle that issued as number
    /// `serial` landed in `reg`.
    fn landed(&mut self, reg: Slot, serial: u64, which: usize);
    /// These registers have taken the values of those before them.
    fn rotated(&mut self, registers: std::ops::Range<usize>);
}

/// Watches nothing.
pub struct NoWatch;

impl Watch for NoWatch {
    fn issued(&mut self, _: u32, _: &BundleTiming, _: &Flow, _: &[Access], _: &State) {}
    fn landed(&mut self, _: Slot, _: u64, _: usize) {}
    fn rotated(&mut self, _: std::ops::Range<usize>) {}
}

/// Records accesses for whoever asks after the bundle.
#[derive(Default)]
struct Recorder {
    accesses: Vec<Access>,
    slot: u16,
}

impl Hook for Recorder {
    fn load(&mut self, addr: u64, bytes: u64) {
        self.accesses.push(Access { addr: addr as u32, bytes: bytes as u8, store: false, slot: self.slot });
    }
    fn store(&mut self, addr: u64, bytes: u64) {
        self.accesses.push(Access { addr: addr as u32, bytes: bytes as u8, store: true, slot: self.slot });
    }
    fn mark(&mut self, instruction: u16) {
        self.slot = instruction;
    }
}

/// A bundle, decoded.
struct Step {
    code: usize,
    flow: Flow,
    timing: BundleTiming,
    delay: u32,
    /// Delay slots are skipped when the jump is not taken.
    annul: bool,
    /// Extra cycles: taken, untaken.
    extra: [u32; 2],
}

/// A register write under way.
struct Pending {
    due: u64,
    reg: Slot,
    value: u64,
    serial: u64,
    which: usize,
    load: bool,
}

/// Cycles that accesses of one bundle wait for each other's banks.
fn conflicts(banks: &Banks, accesses: &[Access]) -> u64 {
    let mut load: Vec<(u32, u64)> = Vec::new();
    for a in accesses {
        for bank in banks.touched(a.addr, u32::from(a.bytes)) {
            match load.iter_mut().find(|l| l.0 == bank) {
                Some(l) => l.1 += 1,
                None => load.push((bank, 1)),
            }
        }
    }
    load.iter().map(|l| l.1 - 1).max().unwrap_or(0)
}

/// What the engine keeps between calls.
pub struct Stepper {
    code: Vec<Xop>,
    places: Vec<Place>,
    steps: Vec<Option<Box<Step>>>,
    exposed: bool,
    big: bool,
    pub icache: Option<Cache>,
    pub dcache: Option<Cache>,
    /// By when they fall due.
    pending: Vec<Pending>,
    banks: Option<Banks>,
    cross_stall: u32,
    /// Registers written at the present time by other than loads.
    fresh: Vec<Slot>,
    counts: Vec<u64>,
    /// Cycles, stalls and branches; the rest follows from `counts`.
    tally: Stats,
}

impl Stepper {
    pub fn new(program: &Program, map: &CodeMap, caches: bool) -> Result<Stepper, String> {
        let machine = &program.machine;
        if !machine.issue.interlock && machine.abi.windows.is_some() {
            return Err("register windows on an exposed pipeline are not modelled".into());
        }
        let cache = |model: &Option<ciphermill_machine::Cache>| match model {
            Some(m) if caches => Cache::new(m).map(Some),
            _ => Ok(None),
        };
        Ok(Stepper {
            code: Vec::new(),
            places: Vec::new(),
            steps: map.bundles.iter().map(|_| None).collect(),
            exposed: !machine.issue.interlock,
            big: machine.endian == Endian::Big,
            icache: cache(&machine.memory.icache)?,
            dcache: cache(&machine.memory.dcache)?,
            pending: Vec::new(),
            banks: machine.memory.banks.clone().filter(|_| caches),
            cross_stall: machine.issue.cross_stall,
            fresh: Vec::new(),
            counts: vec![0; map.bundles.len()],
            tally: Stats::default(),
        })
    }

    fn decode(&mut self, program: &Program, map: &CodeMap, state: &mut State, n: u32) -> Result<(), String> {
        let at = map.bundles[n as usize];
        let bundle = map.bundle(program, n);
        let place = |e: String| format!("{}: {e}", map.describe(program, n));
        let code = self.code.len();
        let mut flattener = Flattener {
            machine: &program.machine,
            layout: &map.layout,
            matrices: &map.matrices,
            pool: &mut state.pool,
            code: &mut self.code,
            places: &mut self.places,
            deferred: true,
            place: (n, 0),
            func: at.func as usize,
        };
        let flow = flattener.bundle(bundle, at.addr, false).map_err(place)?;
        self.code.push(Xop { op: Op::End, d: 0, a: 0, b: 0 });
        self.places.push((n, 0));
        let (mut annul, mut extra) = (false, [0; 2]);
        if let Some(jump) = &flow.jump {
            let instr = &program.machine.instrs[usize::from(bundle.insts[jump.slot].instr.0)];
            let conditional = !matches!(jump.condition, Condition::Always);
            let backward = matches!(jump.target, Target::Address(a) if a <= u64::from(at.addr));
            annul = instr.annul && conditional && instr.delay_slots > 0;
            if annul && self.exposed {
                return Err(place("annulled delay slots on an exposed pipeline are not modelled".into()));
            }
            let predictor = program.machine.branch.predictor;
            let (taken, untaken) = jump_cycles(instr, is_far(instr, at.bytes));
            extra = branch_costs(predictor, conditional, backward, taken, untaken);
        }
        let timing = BundleTiming::new(&program.machine, bundle).map_err(place)?;
        let delay = delay_slots(program, map, n);
        self.steps[n as usize] = Some(Box::new(Step { code, flow, timing, delay, annul, extra }));
        Ok(())
    }

    /// Run from bundle `entry` until a return to the outside.
    pub fn call(
        &mut self,
        program: &Program,
        map: &CodeMap,
        state: &mut State,
        entry: u32,
        fuel: u64,
        watch: &mut impl Watch,
    ) -> Result<u64, Halt> {
        let mut pipes = Pipes::new(&program.machine);
        let mut recorder = Recorder::default();
        let mut jumps: Vec<(u64, u64)> = Vec::new();
        let (mut now, mut serial, mut executed, mut n) = (0u64, 0u64, 0u64, entry);
        self.pending.clear();
        loop {
            self.land(state, now, watch);
            if let Some(i) = jumps.iter().position(|&(due, _)| due <= now) {
                let (due, target) = jumps.remove(i);
                if jumps.iter().any(|&(d, _)| d == due) {
                    return Err(Halt::Internal(format!("two jumps take effect before {}", map.describe(program, n))));
                }
                if is_return(target) {
                    return Ok(executed);
                }
                n = map.lookup(target)?;
            }
            if n as usize >= map.bundles.len() {
                return Err(Halt::Internal("control runs off the end of the code".into()));
            }
            if self.steps[n as usize].is_none() {
                self.decode(program, map, state, n)?;
            }
            let Some(step) = self.steps[n as usize].take() else {
                return Err(Halt::Internal("a bundle was not decoded".into()));
            };
            let at = map.bundles[n as usize];
            if let Some(icache) = &mut self.icache {
                let (first, last) =
                    (icache.line_of(at.addr.into()), icache.line_of((at.addr + at.bytes.max(1) - 1).into()));
                (first..=last).for_each(|line| icache.read_line(line));
            }
            recorder.accesses.clear();
            watch.before(n, state);
            let exit = if self.big {
                exec::run::<true, _>(&self.code, step.code, state, &mut recorder)
            } else {
                exec::run::<false, _>(&self.code, step.code, state, &mut recorder)
            };
            if let Exit::Fault(fault, xop) = exit {
                self.steps[n as usize] = Some(step);
                return Err(Halt::Fault(fault, self.places[xop]));
            }
            if let Some(dcache) = &mut self.dcache {
                for a in &recorder.accesses {
                    let (addr, bytes) = (u64::from(a.addr), u64::from(a.bytes));
                    if a.store { dcache.store(addr, bytes) } else { dcache.load(addr, bytes) }
                }
            }
            if let Some(banks) = &self.banks
                && recorder.accesses.len() > 1
            {
                self.tally.stalls.bank += conflicts(banks, &recorder.accesses);
            }
            if self.cross_stall > 0
                && step.timing.crossing.iter().any(|r| self.fresh.contains(&state.pool.register(*r)))
            {
                self.tally.stalls.cross += u64::from(self.cross_stall);
            }
            watch.issued(n, &step.timing, &step.flow, &recorder.accesses, state);
            if self.exposed && !pipes.take(&step.timing.units, now) {
                return Err(Halt::Internal(format!("{}: a unit is still busy", map.describe(program, n))));
            }
            for (which, w) in step.flow.writes.iter().enumerate() {
                let due = now + if self.exposed { u64::from(w.latency.max(1)) } else { 1 };
                if self.exposed && self.pending.iter().any(|p| p.due == due && p.reg == w.reg) {
                    return Err(Halt::Internal(format!(
                        "{}: two writes of one register in one cycle",
                        map.describe(program, n)
                    )));
                }
                let value = state.pool.values[usize::from(w.value)];
                let load = map
                    .bundle(program, n)
                    .insts
                    .get(w.slot)
                    .is_some_and(|i| program.machine.instrs[usize::from(i.instr.0)].kind == InstrKind::Load);
                let place = self.pending.partition_point(|p| p.due <= due);
                self.pending.insert(place, Pending { due, reg: w.reg, value, serial, which, load });
            }
            if step.timing.rotates {
                self.rotate(program, state, watch);
            }
            self.counts[n as usize] += 1;
            executed += map.bundle(program, n).insts.len() as u64;
            serial += 1;
            let mut skip = 0;
            if let Some(jump) = &step.flow.jump {
                let (taken, conditional) = match jump.condition {
                    Condition::Slot(s) => (state.pool.values[usize::from(s)] != 0, true),
                    Condition::Compare(op, a, b) => {
                        (op.eval(state.pool.values[usize::from(a)], state.pool.values[usize::from(b)], 32), true)
                    }
                    Condition::Always => (true, false),
                };
                let target = match jump.target {
                    Target::Address(a) => a,
                    Target::Slot(s) => state.pool.values[usize::from(s)],
                };
                if taken {
                    jumps.push((now + 1 + u64::from(step.delay), target));
                } else if step.annul {
                    skip = step.delay;
                }
                self.tally.branches_taken += u64::from(taken && conditional);
                self.tally.branches_untaken += u64::from(!taken && conditional);
                self.tally.stalls.branch += u64::from(step.extra[usize::from(!taken)]);
            }
            let cycles = if self.exposed { u64::from(step.timing.issue_cycles) } else { 1 };
            let mut next = now + cycles;
            if let Some(due) = jumps.iter().map(|&(due, _)| due).min() {
                next = next.min(due.max(now + 1));
            }
            self.tally.stalls.unit += next - now - 1;
            now = next;
            n += 1 + skip;
            self.steps[(n - 1 - skip) as usize] = Some(step);
            if executed > fuel {
                return Err(Halt::Fuel);
            }
        }
    }

    /// Rotating registers take their new names, writes under way too.
    fn rotate(&mut self, program: &Program, state: &mut State, watch: &mut impl Watch) {
        for range in rotating(&program.machine) {
            state.pool.values[range.clone()].rotate_right(1);
            for p in self.pending.iter_mut().filter(|p| range.contains(&usize::from(p.reg))) {
                let next = usize::from(p.reg) + 1;
                p.reg = if next == range.end { range.start } else { next } as Slot;
            }
            watch.rotated(range);
        }
    }

    /// Writes that fall due, the earlier ones first: several cycles pass at once where nothing
    /// is issued, and a register may have writes due in more than one of them.
    fn land(&mut self, state: &mut State, now: u64, watch: &mut impl Watch) {
        self.fresh.clear();
        let due = self.pending.partition_point(|p| p.due <= now);
        for p in self.pending.drain(..due) {
            if p.due == now && !p.load {
                self.fresh.push(p.reg);
            }
            state.pool.values[usize::from(p.reg)] = p.value;
            watch.landed(p.reg, p.serial, p.which);
        }
    }

    /// Let every write still under way land: time passes after the call.
    pub fn drain(&mut self, state: &mut State, watch: &mut impl Watch) {
        self.land(state, u64::MAX, watch);
    }

    /// Zero all counts; caches keep their content.
    pub fn reset(&mut self) {
        self.counts.fill(0);
        self.tally = Stats::default();
        for cache in self.icache.iter_mut().chain(&mut self.dcache) {
            cache.stats = Default::default();
        }
    }

    pub fn bundle_counts(&self) -> Vec<u64> {
        self.counts.clone()
    }

    /// Everything counted so far.
    pub fn stats(&self, program: &Program, map: &CodeMap) -> Stats {
        let mut s = self.tally.clone();
        add_bundles(&mut s, program, map, &self.counts);
        s.issue_cycles = s.bundles;
        s.icache = self.icache.as_ref().map(|c| c.stats);
        s.dcache = self.dcache.as_ref().map(|c| c.stats);
        s
    }
}
