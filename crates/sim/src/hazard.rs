//! Timing of interlocked in-order pipelines, block by block.
//!
//! # The rules
//!
//! Bundles issue in program order, one at a time. A bundle issues at the first
//! cycle at which
//!
//! 1. the bundle before it has issued and its `issue_cycles` have passed,
//! 2. every register it reads is ready: a register written by an instruction
//!    that issued at cycle `t` is ready at `t + latency`,
//! 3. for each of its instructions a unit that can run it is free: a unit that
//!    took an instruction at `t` is free again at `t + unit_cycles`.
//!
//! A machine may say of single timings that the first and the second rule are
//! otherwise: an instruction may let one of certain timings follow sooner
//! (`issue_before`), and want an operand so many cycles before it issues
//! (`early`).
//!
//! Where control divides (after the delay slots, if any) `taken_cycles` or
//! `untaken_cycles` are added, as the predictor has it; an unconditional jump
//! always pays its `taken_cycles`. An annulled delay slot takes one cycle in
//! which nothing issues. Where a jump leads to an instruction that lies in two
//! pieces of fetched code, `split_target_cycles` come before its first issue.
//!
//! # Why blocks can be memoised
//!
//! The wait of a bundle depends on how far in the future registers and units
//! are ready, relative to now: a small *hazard state*, empty most of the time.
//! So the cycles of a straight run of bundles, and the state it leaves, are a
//! function of the run, the state on entry, and whether its branch is taken.
//! Everything dynamic (a cache miss, a window trap) freezes the whole
//! pipeline, which changes no relative distance: it only adds. Hence each
//! (run, state) pair is timed once and counted from then on, and the total is
//! exact.

use crate::uses::{dest_of, latency, statement_reads};
use ciphermill_machine::sem::Stmt;
use ciphermill_machine::{Instr, InstrKind, Machine, OperandKind, Predictor, Reg, UnitId};
use ciphermill_program::{Bundle, Operand, Role};

/// What makes a value, as far as waiting for it is accounted for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Maker {
    #[default]
    Other,
    Load,
    /// A load that is a table lookup.
    Lookup,
}

/// What the timing rules need to know of a bundle.
#[derive(Clone, Debug, Default)]
pub struct BundleTiming {
    pub reads: Vec<Reg>,
    /// Register, latency, and what makes it.
    pub writes: Vec<(Reg, u32, Maker)>,
    /// For each instruction that needs one: the unit classes that do, and how
    /// long it keeps its unit.
    pub units: Vec<(Vec<UnitId>, u32)>,
    pub issue_cycles: u32,
    /// Name of its timing and fewer cycles in front of one of such a timing, where any are stated.
    pub timing: String,
    pub issue_before: Vec<(String, u32)>,
    /// Of what it reads, what has to be ready so many cycles before.
    pub early: Vec<(Reg, u32)>,
    /// Does it lie in two pieces of fetched code?
    pub split: bool,
    /// Opens (+1) or closes (-1) a window.
    pub window: i8,
    /// Rotating registers take their new names behind it.
    pub rotates: bool,
    /// Registers read over paths that several instructions may share.
    pub crossing: Vec<Reg>,
}

impl BundleTiming {
    /// Extract from a bundle; an error when the machine can never issue it.
    pub fn new(machine: &Machine, bundle: &Bundle) -> Result<BundleTiming, String> {
        let mut t = BundleTiming { issue_cycles: 1, ..BundleTiming::default() };
        if bundle.insts.len() > usize::from(machine.issue.width.max(1)) {
            return Err(format!(
                "a bundle of {} instructions on a machine of width {}",
                bundle.insts.len(),
                machine.issue.width
            ));
        }
        for inst in &bundle.insts {
            let instr = machine.instrs.get(usize::from(inst.instr.0)).ok_or("an instruction number is out of range")?;
            if let Some(p) = inst.predicate
                && !t.reads.contains(&p)
            {
                t.reads.push(p);
            }
            for s in &instr.semantics {
                statement_reads(inst, s, &mut |r| {
                    if writable(machine, r) && !t.reads.contains(&r) {
                        t.reads.push(r);
                    }
                });
                match s {
                    Stmt::Assign { dest, .. } => {
                        let reg = dest_of(inst, dest)?;
                        if writable(machine, reg) {
                            let maker = match (instr.kind, inst.role) {
                                (InstrKind::Load, Role::Lookup) => Maker::Lookup,
                                (InstrKind::Load, _) => Maker::Load,
                                _ => Maker::Other,
                            };
                            t.writes.push((reg, latency(instr, dest), maker));
                        }
                    }
                    Stmt::Rotate => t.rotates = true,
                    Stmt::WindowSave => t.window = 1,
                    Stmt::WindowRestore => t.window = -1,
                    _ => {}
                }
            }
            if !instr.units.is_empty() {
                t.units.push((instr.units.clone(), instr.unit_cycles.max(1)));
            }
            t.issue_cycles = t.issue_cycles.max(instr.issue_cycles);
            t.timing.clone_from(&instr.timing);
            t.issue_before.clone_from(&instr.issue_before);
            for &(operand, cycles) in &instr.early {
                if let Some(Operand::Reg(r)) = inst.operands.get(operand) {
                    t.early.push((*r, cycles));
                }
            }
        }
        if bundle.insts.len() > 1 {
            // Bundles follow each other as their slowest instructions allow.
            (t.timing, t.issue_before) = (String::new(), Vec::new());
        }
        paths(machine, bundle, &mut t)?;
        if Pipes::new(machine).assign(&t.units, 0).is_none() {
            return Err("a bundle needs more units than the machine has".into());
        }
        Ok(t)
    }
}

impl BundleTiming {
    /// Cycles until `next` may issue, if it comes right behind.
    pub fn cycles_before(&self, next: &BundleTiming) -> u32 {
        let joined = self.issue_before.iter().find(|(timing, _)| *timing == next.timing);
        joined.map_or(self.issue_cycles, |j| j.1).max(1)
    }
}

/// How many cycles before they issue instructions want their operands, at most.
fn earliest(machine: &Machine) -> u32 {
    machine.instrs.iter().flat_map(|i| &i.early).map(|e| e.1).max().unwrap_or(0)
}

/// Check the paths of a bundle's instructions, and that each operand is a
/// register it can be.
fn paths(machine: &Machine, bundle: &Bundle, t: &mut BundleTiming) -> Result<(), String> {
    let mut used: Vec<(UnitId, Reg)> = Vec::new();
    let mut reads: Vec<(Reg, u16)> = Vec::new();
    for inst in &bundle.insts {
        let instr = &machine.instrs[usize::from(inst.instr.0)];
        let reg = |o: usize| match inst.operands.get(o) {
            Some(Operand::Reg(r)) => Ok(*r),
            other => Err(format!("operand {o} of `{}` should be a register, not {other:?}", instr.name)),
        };
        for (o, spec) in instr.operands.iter().enumerate() {
            let OperandKind::Reg { file, .. } = spec.kind else { continue };
            let r = reg(o)?;
            let allowed = instr.only.iter().find(|p| p.0 == o);
            let fits = match allowed {
                Some((_, regs)) => regs.contains(&r),
                None => machine.regs.get(usize::from(r.0)).is_some_and(|info| info.file == file),
            };
            if !fits {
                return Err(format!(
                    "`{}` cannot have the register {} as its operand `{}`",
                    instr.name, r.0, spec.name
                ));
            }
        }
        for &(o, times) in &instr.ports {
            reads.push((reg(o)?, times));
        }
        for &(path, o) in &instr.paths {
            let (r, unit) = (reg(o)?, &machine.units[path]);
            let before = used.iter().filter(|u| u.0 == path).count();
            let same = used.iter().all(|u| u.0 != path || u.1 == r);
            if !unit.takes(before, same) {
                return Err(format!("two instructions of a bundle use the path `{}`", unit.name));
            }
            used.push((path, r));
            if unit.shared > 1 {
                t.crossing.push(r);
            }
        }
    }
    let times = |r: Reg| -> u16 { reads.iter().filter(|x| x.0 == r).map(|x| x.1).sum() };
    let most = machine.issue.register_reads;
    match reads.iter().find(|r| most > 0 && times(r.0) > most) {
        Some((r, _)) => Err(format!("a bundle reads the register {} more than {most} times", r.0)),
        None => Ok(()),
    }
}

/// The rotating registers of each file, as numbers of registers.
pub fn rotating(machine: &Machine) -> impl Iterator<Item = std::ops::Range<usize>> {
    let of = |(first, count): (Reg, u16)| usize::from(first.0)..usize::from(first.0) + usize::from(count);
    machine.files.iter().map(move |f| of(f.rotating)).filter(|r| !r.is_empty())
}

/// Can the register's value change?
fn writable(machine: &Machine, r: Reg) -> bool {
    machine.regs.get(usize::from(r.0)).is_some_and(|info| !info.zero)
}

/// Where the cycles of a run went. All but `issue` are stalls.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Cost {
    /// One for each bundle issued.
    pub issue: u64,
    pub load_wait: u64,
    /// Of `load_wait`, what table lookups were waited for.
    pub lookup_wait: u64,
    pub operand_wait: u64,
    pub unit: u64,
    pub branch: u64,
}

impl Cost {
    pub fn cycles(&self) -> u64 {
        self.issue + self.load_wait + self.operand_wait + self.unit + self.branch
    }
}

/// What is still in the pipeline, relative to the next possible issue.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct Hazards {
    /// Register, cycles until ready (at least 1), what makes it.
    regs: Vec<(u16, u32, Maker)>,
    /// Unit, cycles until free (at least 1): one entry for each busy one.
    units: Vec<(u16, u32)>,
    /// The last bundle holds the pipeline: for how many cycles more, and fewer for single timings.
    held: Option<(u32, Vec<(String, u32)>)>,
    /// Control came here by a jump, where that makes a difference.
    jumped: bool,
}

/// How a run ends, for timing.
#[derive(Clone, Copy, Default, Debug)]
pub struct Ending {
    /// Cycles added where control divides, for exits 0 and 1.
    pub extra: [u32; 2],
    /// The same where a predictor that learns has guessed wrong.
    pub wrong: [u32; 2],
    /// Bundles at the end of the run that are annulled on exit 1.
    pub annulled: usize,
    /// Is exit 0 a jump?
    pub jump: bool,
}

/// Extra cycles of a jump, taken and untaken; more of them where its target is not near.
pub fn jump_cycles(instr: &Instr, far: bool) -> (u32, u32) {
    let more = if far { instr.far_cycles } else { [0; 2] };
    (instr.taken_cycles + more[0], instr.untaken_cycles + more[1])
}

/// Extra cycles of a branch for taken and untaken, where a predictor that learns is right.
pub fn branch_costs(predictor: Predictor, conditional: bool, backward: bool, taken: u32, untaken: u32) -> [u32; 2] {
    match (predictor, conditional) {
        (Predictor::Dynamic(_), _) => [0, 0],
        (_, false) => [taken, taken],
        (Predictor::None, true) => [taken, untaken],
        (Predictor::BackwardTaken, true) if backward => [0, untaken],
        (Predictor::BackwardTaken, true) => [taken, 0],
    }
}

/// Times each unit is free again.
pub struct Pipes {
    free: Vec<Vec<u64>>,
}

impl Pipes {
    /// All units free.
    pub fn new(machine: &Machine) -> Pipes {
        Pipes { free: machine.units.iter().map(|u| vec![0; usize::from(u.count)]).collect() }
    }

    /// Start these instructions at `t`; false when some unit is not free.
    pub fn take(&mut self, needs: &[(Vec<UnitId>, u32)], t: u64) -> bool {
        // Where every instruction names its unit there is nothing to choose.
        if needs.iter().all(|(classes, _)| classes.len() == 1) {
            let wanted = |class: UnitId| needs.iter().filter(|n| n.0[0] == class).count();
            let free =
                |class: UnitId| self.free.get(class).map_or(0, |units| units.iter().filter(|u| **u <= t).count());
            if needs.iter().any(|n| free(n.0[0]) < wanted(n.0[0])) {
                return false;
            }
            for (classes, cycles) in needs {
                if let Some(unit) = self.free[classes[0]].iter_mut().find(|u| **u <= t) {
                    *unit = t + u64::from(*cycles);
                }
            }
            return true;
        }
        let Some(units) = self.assign(needs, t) else { return false };
        for ((class, i), (_, cycles)) in units.into_iter().zip(needs) {
            self.free[class][i] = t + u64::from(*cycles);
        }
        true
    }

    /// A unit (class, number) for each instruction, all free at `t`: a
    /// bipartite matching by augmenting paths.
    fn assign(&self, needs: &[(Vec<UnitId>, u32)], t: u64) -> Option<Vec<(UnitId, usize)>> {
        let mut taken: Vec<Vec<Option<usize>>> = self.free.iter().map(|c| vec![None; c.len()]).collect();
        for n in 0..needs.len() {
            let mut seen: Vec<Vec<bool>> = taken.iter().map(|c| vec![false; c.len()]).collect();
            if !self.place(n, needs, t, &mut taken, &mut seen) {
                return None;
            }
        }
        let mut out = vec![(0, 0); needs.len()];
        for (class, units) in taken.iter().enumerate() {
            for (i, n) in units.iter().enumerate() {
                if let Some(n) = n {
                    out[*n] = (class, i);
                }
            }
        }
        Some(out)
    }

    fn place(
        &self,
        n: usize,
        needs: &[(Vec<UnitId>, u32)],
        t: u64,
        taken: &mut [Vec<Option<usize>>],
        seen: &mut [Vec<bool>],
    ) -> bool {
        for &class in &needs[n].0 {
            let Some(units) = self.free.get(class) else { continue };
            for i in 0..units.len() {
                if units[i] > t || std::mem::replace(&mut seen[class][i], true) {
                    continue;
                }
                let holder = taken[class][i];
                if holder.is_none_or(|m| self.place(m, needs, t, taken, seen)) {
                    taken[class][i] = Some(n);
                    return true;
                }
            }
        }
        false
    }
}

/// Times runs of bundles.
pub struct Timer<'m> {
    machine: &'m Machine,
    ready: Vec<(u64, Maker)>,
    pipes: Pipes,
    held: Option<(u32, Vec<(String, u32)>)>,
    /// Times count from so many cycles before a run, so that what is early can be said of registers
    /// that are ready when it begins.
    base: u64,
}

impl<'m> Timer<'m> {
    pub fn new(machine: &'m Machine) -> Timer<'m> {
        let ready = vec![(0, Maker::Other); machine.regs.len()];
        Timer { machine, ready, pipes: Pipes::new(machine), held: None, base: earliest(machine).into() }
    }

    /// Cycles of a run that is entered in state `entry` and left by `exit`
    /// (2 more: as the predictor had not guessed), and the state it leaves.
    pub fn time(&mut self, run: &[&BundleTiming], entry: &Hazards, ending: Ending, exit: usize) -> (Cost, Hazards) {
        let (exit, extra) = (exit & 1, if exit < 2 { ending.extra } else { ending.wrong });
        self.enter(entry);
        let mut cost = Cost::default();
        let mut next = self.base;
        if entry.jumped && run.first().is_some_and(|b| b.split) {
            cost.branch = self.machine.branch.split_target_cycles.into();
            next += cost.branch;
            self.pass(cost.branch);
        }
        let executed = if exit == 1 { run.len() - ending.annulled } else { run.len() };
        for b in &run[..executed] {
            next = self.issue(b, next, &mut cost);
        }
        let lost = (run.len() - executed) as u64 + u64::from(extra[exit]);
        cost.branch += lost;
        next += lost;
        self.pass(lost);
        let mut left = self.leave(next);
        left.jumped = exit == 0 && ending.jump && self.machine.branch.split_target_cycles > 0;
        (cost, left)
    }

    /// Cycles pass in which nothing issues.
    fn pass(&mut self, cycles: u64) {
        let Some((others, before)) = &mut self.held else { return };
        let cycles = u32::try_from(cycles).unwrap_or(u32::MAX);
        *others = others.saturating_sub(cycles);
        before.iter_mut().for_each(|b| b.1 = b.1.saturating_sub(cycles));
    }

    fn enter(&mut self, entry: &Hazards) {
        self.held.clone_from(&entry.held);
        self.ready.fill((0, Maker::Other));
        for &(r, at, maker) in &entry.regs {
            self.ready[usize::from(r)] = (u64::from(at), maker);
        }
        for class in &mut self.pipes.free {
            class.fill(0);
        }
        for &(class, at) in &entry.units {
            if let Some(unit) = self.pipes.free[usize::from(class)].iter_mut().find(|f| **f == 0) {
                *unit = u64::from(at);
            }
        }
    }

    fn issue(&mut self, b: &BundleTiming, next: u64, cost: &mut Cost) -> u64 {
        let held = self.held.take().map_or(0, |(others, before)| {
            before.iter().find(|(timing, _)| *timing == b.timing).map_or(others, |j| j.1)
        });
        let next = next + u64::from(held);
        cost.unit += u64::from(held);
        let (mut t, mut for_what) = (next, Maker::Other);
        let early = b.early.iter().map(|(r, cycles)| (r, u64::from(*cycles)));
        for (r, early) in b.reads.iter().map(|r| (r, 0)).chain(early) {
            let (at, maker) = self.ready[usize::from(r.0)];
            let at = at + early;
            if at > t || (at == t && at > next && maker != Maker::Other && for_what == Maker::Other) {
                (t, for_what) = (at, maker);
            }
        }
        *(if for_what == Maker::Other { &mut cost.operand_wait } else { &mut cost.load_wait }) += t - next;
        if for_what == Maker::Lookup {
            cost.lookup_wait += t - next;
        }
        if !b.units.is_empty() {
            let ready = t;
            while !self.pipes.take(&b.units, t) {
                // Nothing changes before the next unit becomes free.
                match self.pipes.free.iter().flatten().filter(|&&f| f > t).min() {
                    Some(&f) => t = f,
                    None => break,
                }
            }
            cost.unit += t - ready;
        }
        self.turn(b.window);
        for &(r, latency, maker) in &b.writes {
            self.ready[usize::from(r.0)] = (t + u64::from(latency), maker);
        }
        if b.rotates {
            rotating(self.machine).for_each(|range| self.ready[range].rotate_right(1));
        }
        cost.issue += 1;
        if !b.issue_before.is_empty() {
            let before = b.issue_before.iter().map(|(timing, cycles)| (timing.clone(), cycles - 1));
            self.held = Some((b.issue_cycles - 1, before.collect()));
            return t + 1;
        }
        cost.unit += u64::from(b.issue_cycles) - 1;
        t + u64::from(b.issue_cycles)
    }

    /// Registers change their names with the window.
    fn turn(&mut self, window: i8) {
        let Some(w) = &self.machine.abi.windows else { return };
        let (from, to) = match window {
            1 => (&w.outs, &w.ins),
            -1 => (&w.ins, &w.outs),
            _ => return,
        };
        for (f, t) in from.iter().zip(to) {
            self.ready[usize::from(t.0)] = self.ready[usize::from(f.0)];
        }
        for r in w.locals.iter().chain(from) {
            self.ready[usize::from(r.0)] = (0, Maker::Other);
        }
    }

    fn leave(&mut self, now: u64) -> Hazards {
        let mut h = Hazards { held: self.held.take(), ..Hazards::default() };
        for (r, &(at, maker)) in self.ready.iter().enumerate() {
            if at + self.base > now {
                h.regs.push((r as u16, (at + self.base - now) as u32, maker));
            }
        }
        for (class, units) in self.pipes.free.iter().enumerate() {
            let start = h.units.len();
            let busy = units.iter().filter(|&&f| f > now);
            h.units.extend(busy.map(|f| (class as u16, (f + self.base - now) as u32)));
            h.units[start..].sort_unstable();
        }
        h
    }
}
