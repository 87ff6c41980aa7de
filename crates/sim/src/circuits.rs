//! Which instructions of a loop really wait for which, seen in a run.
//!
//! A loop of one block runs the same bundles in every pass. Where a pass, or a later one,
//! reads a register that an instruction of the loop wrote, or loads a byte that one of its stores
//! put there, the two have been seen to depend on each other, so many passes apart. A schedule is
//! made before the program runs and is the same in every pass: it has to keep this order and the
//! cycles between in all passes, although the addresses may meet in a few only. So for any recurrence
//! circuit of such dependences a pass takes no less than its cycles divided by its passes
//! ([`crate::cycle`]), whatever else the schedule does. This is RecMII (Rau, *Iterative modulo
//! scheduling*, MICRO 1994), of observed dependences instead of those that cannot be ruled out.
//!
//! Cycles are counted as in [`crate::dataflow`]: registers by the machine's latencies, bytes of
//! memory a cycle after their store. Nothing is concluded from what was not seen: a circuit less
//! makes the bound lower, never wrong. An instruction whose predicate was false did not depend on
//! anything, and left its register to the one before.

use crate::code::CodeMap;
use crate::cycle::{self, Circuit, Dependence};
use crate::exec::State;
use crate::flatten::Flow;
use crate::hazard::BundleTiming;
use crate::simulator::{Simulator, Stop};
use crate::step::{Access, NoWatch, Stepper, Watch};
use crate::uses::statement_reads;
use crate::xop::Slot;
use ciphermill_machine::InstrKind::{Load, Store};
use ciphermill_machine::Reg;
use ciphermill_program::{Inst, Operand, Program};
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::ops::Range;

/// What a run showed of one loop of one block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObservedLoop {
    /// Its place: indices into the program's functions and that function's blocks.
    pub func: u32,
    pub block: u32,
    /// How often it was entered, and how often it ran.
    pub entries: u64,
    pub passes: u64,
    /// Instructions are numbered through in the block's order.
    pub dependences: Vec<Dependence>,
    /// How often each instruction did something.
    pub ran: Vec<u64>,
}

impl ObservedLoop {
    /// The recurrence circuit with the most cycles a pass.
    pub fn circuit(&self) -> Option<Circuit> {
        cycle::longest(self.ran.len(), &self.dependences)
    }
}

/// The loops of one block that load and store; others have no circuit through memory.
pub fn loops(program: &Program) -> Vec<(u32, u32)> {
    let kind = |i: &Inst| program.machine.instrs[usize::from(i.instr.0)].kind;
    let mut out = Vec::new();
    for (f, func) in program.funcs.iter().enumerate() {
        for (b, block) in func.blocks.iter().enumerate() {
            let insts = || block.bundles.iter().flat_map(|b| &b.insts);
            let again = insts().flat_map(|i| &i.operands).any(|o| *o == Operand::Block(b as u32));
            if again && insts().any(|i| kind(i) == Load) && insts().any(|i| kind(i) == Store) {
                out.push((f as u32, b as u32));
            }
        }
    }
    out
}

/// An instruction of a loop that ran, and in which pass.
#[derive(Clone, Copy, Debug)]
struct Made {
    by: u32,
    instruction: u32,
    /// Passes are numbered through over all entries of all loops.
    pass: u64,
    entry: u64,
    /// Cycles from its start to its result.
    cycles: u32,
}

/// The numbers of the first bundle of a loop and of the one behind its last.
struct Place {
    bundles: Range<u32>,
    /// Number of the first instruction of each bundle.
    first: Vec<u32>,
    seen: ObservedLoop,
    found: HashSet<Dependence>,
}

struct Tracker<'a> {
    program: &'a Program,
    map: &'a CodeMap,
    loops: Vec<Place>,
    /// For each bundle the loop that it stands in.
    of: Vec<Option<u32>>,
    /// The loop that the bundle before stood in.
    inside: Option<usize>,
    pass: u64,
    entry: u64,
    registers: Vec<Option<Made>>,
    memory: HashMap<u32, Made>,
    landing: VecDeque<Vec<Lands>>,
    first: u64,
    /// Instructions of the bundle whose predicates are false.
    off: Vec<bool>,
}

/// What a write does to a register.
#[derive(Clone, Copy)]
enum Lands {
    Value(Option<Made>),
    /// The predicate was false: it keeps what it has.
    Nothing,
}

impl Tracker<'_> {
    fn of(&self, n: u32) -> Option<usize> {
        self.of.get(n as usize).copied().flatten().map(|l| l as usize)
    }
}

impl Watch for Tracker<'_> {
    fn before(&mut self, n: u32, state: &State) {
        let bundle = self.map.bundle(self.program, n);
        let off = |i: &Inst| i.predicate.is_some_and(|p| state.pool.values.get(usize::from(p.0)) == Some(&0));
        self.off = bundle.insts.iter().map(off).collect();
    }

    fn issued(&mut self, n: u32, timing: &BundleTiming, flow: &Flow, accesses: &[Access], _: &State) {
        let at = self.of(n);
        if let Some(l) = at {
            let place = &mut self.loops[l];
            if n == place.bundles.start {
                let entered = self.inside != at;
                place.seen.passes += 1;
                place.seen.entries += u64::from(entered);
                self.pass += 1;
                self.entry += u64::from(entered);
            }
        }
        let bundle = self.map.bundle(self.program, n);
        let made = |slot: usize, cycles: u32| {
            let place = &self.loops[at?];
            let inst = bundle.insts.get(slot).filter(|_| !self.off[slot])?;
            let instr = &self.program.machine.instrs[usize::from(inst.instr.0)];
            let instruction = place.first[(n - place.bundles.start) as usize] + slot as u32;
            (!instr.semantics.is_empty()).then_some(Made {
                by: at? as u32,
                instruction,
                pass: self.pass,
                entry: self.entry,
                cycles,
            })
        };
        let mut found: Vec<Dependence> = Vec::new();
        let mut depends = |on: Option<&Made>, to: Made, memory: bool| {
            if let Some(m) = on.filter(|m| m.by == to.by && m.entry == to.entry) {
                let (cycles, passes) = (u64::from(m.cycles), to.pass - m.pass);
                found.push(Dependence {
                    from: m.instruction as usize,
                    to: to.instruction as usize,
                    cycles,
                    passes,
                    memory,
                });
            }
        };
        for (slot, inst) in bundle.insts.iter().enumerate() {
            let Some(to) = made(slot, 1) else { continue };
            let instr = &self.program.machine.instrs[usize::from(inst.instr.0)];
            let zero = |r: Reg| self.program.machine.regs[usize::from(r.0)].zero;
            let mut read = |r: Reg| depends(self.registers[usize::from(r.0)].as_ref().filter(|_| !zero(r)), to, false);
            inst.predicate.iter().for_each(|&r| read(r));
            instr.semantics.iter().for_each(|s| statement_reads(inst, s, &mut read));
            for a in accesses.iter().filter(|a| !a.store && usize::from(a.slot) == slot) {
                (0..u32::from(a.bytes)).for_each(|b| depends(self.memory.get(&a.addr.wrapping_add(b)), to, true));
            }
        }
        for a in accesses.iter().filter(|a| a.store) {
            let by = made(usize::from(a.slot), 1);
            for addr in (0..u32::from(a.bytes)).map(|b| a.addr.wrapping_add(b)) {
                match by {
                    Some(m) => self.memory.insert(addr, m),
                    None => self.memory.remove(&addr),
                };
            }
        }
        let ran: Vec<usize> =
            (0..bundle.insts.len()).filter_map(|slot| Some(made(slot, 1)?.instruction as usize)).collect();
        let lands = |slot: usize, cycles: u32| {
            if self.off.get(slot) == Some(&true) { Lands::Nothing } else { Lands::Value(made(slot, cycles)) }
        };
        self.landing.push_back(flow.writes.iter().map(|w| lands(w.slot, w.latency)).collect());
        // No latency reaches back further than this many bundles.
        if self.landing.len() > 4096 {
            self.landing.pop_front();
            self.first += 1;
        }
        if timing.window != 0 {
            self.registers.fill(None);
        }
        if let Some(l) = at {
            self.loops[l].found.extend(found);
            ran.into_iter().for_each(|i| self.loops[l].seen.ran[i] += 1);
        }
        self.inside = at;
    }

    fn rotated(&mut self, registers: Range<usize>) {
        self.registers[registers].rotate_right(1);
    }

    fn landed(&mut self, reg: Slot, serial: u64, which: usize) {
        let lands = serial.checked_sub(self.first).and_then(|i| self.landing.get(i as usize));
        match lands.and_then(|l| l.get(which)) {
            Some(Lands::Value(made)) => self.registers[usize::from(reg)] = *made,
            Some(Lands::Nothing) => {}
            None => self.registers[usize::from(reg)] = None,
        }
    }
}

impl Simulator {
    /// Call a function and return what its run shows of these loops ([`loops`]). Leaves the
    /// counts of [`Simulator::stats`] as they are.
    ///
    /// # Errors
    /// When the program stops.
    pub fn circuits(&mut self, func: u32, args: &[u64], loops: &[(u32, u32)]) -> Result<Vec<ObservedLoop>, Stop> {
        self.start()?;
        let entry = self.prepare(func, args)?;
        let mut stepper = Stepper::new(&self.program, &self.map, false).map_err(Stop::Internal)?;
        let mut places: Vec<Place> = loops.iter().map(|&(f, b)| place(&self.program, &self.map, f, b)).collect();
        places.retain(|p| !p.bundles.is_empty());
        let mut of = vec![None; self.map.bundles.len()];
        for (l, p) in places.iter().enumerate() {
            of[p.bundles.start as usize..p.bundles.end as usize].fill(Some(l as u32));
        }
        let mut tracker = Tracker {
            program: &self.program,
            map: &self.map,
            loops: places,
            of,
            inside: None,
            pass: 0,
            entry: 0,
            registers: vec![None; self.program.machine.regs.len()],
            memory: HashMap::new(),
            landing: VecDeque::new(),
            first: 0,
            off: Vec::new(),
        };
        let windows = (self.state.windows.overflows, self.state.windows.underflows);
        let fuel = self.options.max_instructions;
        let run = stepper.call(&self.program, &self.map, &mut self.state, entry, fuel, &mut tracker);
        let sorted = |p: Place| {
            let dependences = p.found.into_iter().collect::<BTreeSet<_>>();
            ObservedLoop { dependences: dependences.into_iter().collect(), ..p.seen }
        };
        let seen = tracker.loops.into_iter().map(sorted).collect();
        (self.state.windows.overflows, self.state.windows.underflows) = windows;
        self.leave(func, args, run.map(|_| ()))?;
        stepper.drain(&mut self.state, &mut NoWatch);
        Ok(seen)
    }
}

fn place(program: &Program, map: &CodeMap, func: u32, block: u32) -> Place {
    let bundles = &program.funcs[func as usize].blocks[block as usize].bundles;
    let start = map.bundles.partition_point(|at| (at.func, at.block) < (func, block)) as u32;
    let mut first = Vec::with_capacity(bundles.len());
    let mut instructions = 0;
    for bundle in bundles {
        first.push(instructions as u32);
        instructions += bundle.insts.len();
    }
    let seen = ObservedLoop { func, block, ran: vec![0; instructions], ..ObservedLoop::default() };
    Place { bundles: start..start + bundles.len() as u32, first, seen, found: HashSet::new() }
}
