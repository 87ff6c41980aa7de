//! A stretch of machine code under the magnifying glass: when each instruction
//! issues, what it waited for, which units and registers are how full, and the
//! recurrence circuit of a loop.
//!
//! All of it is worked out from the program and its machine alone. A loop is
//! looked at in its steady state: time is counted modulo one pass, and a value
//! read before the pass has written it is the last pass's. In any other stretch
//! only what happens inside it is known; an operand from elsewhere is taken to
//! be there.

use ciphermill_machine::sem::Stmt;
use ciphermill_machine::{Instr, InstrId, Machine, Reg, UnitId};
use ciphermill_program::{Bundle, Inst};
use ciphermill_sim::cycle::{self, Circuit, Dependence};
use ciphermill_sim::hazard::{BundleTiming, Pipes};
use ciphermill_sim::uses::{dest_of, latency, statement_reads};

/// An instruction of the stretch.
pub struct Node<'a> {
    pub inst: &'a Inst,
    pub instr: &'a Instr,
    /// Cycle of the pass in which it issues.
    pub time: u64,
    /// Cycles its bundle stood still before.
    pub stalled: u64,
    reads: Vec<Reg>,
    writes: Vec<(Reg, u64)>,
}

/// Why an instruction issues when it does and not earlier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// For this register, which the instruction of this number makes.
    Operand(Reg, usize),
    /// For a unit: all that it could have run on were taken since its operands
    /// were there, so many cycles ago.
    Unit(u64),
    /// For the instructions before it: the machine issues in order.
    Order,
    /// For nothing: it could have issued so many cycles earlier. The scheduler
    /// put it here (None: all its operands come from outside the loop).
    Nothing(Option<u64>),
}

/// A dependence through a register.
pub struct Edge {
    pub from: usize,
    to: usize,
    pub reg: Reg,
    pub latency: u64,
    /// Cycles between the value's arrival and its use.
    pub slack: u64,
    /// Passes from the write to the use.
    pub distance: u64,
}

/// One cycle's worth of code on its way: a bundle, and the cycles lost behind
/// it to a branch that goes the usual way.
pub struct Step<'a> {
    pub bundle: &'a Bundle,
    pub lost: u32,
}

/// A stretch of code, timed.
pub struct Kernel<'a> {
    machine: &'a Machine,
    pub nodes: Vec<Node<'a>>,
    /// Cycles of one pass.
    pub cycles: u64,
    /// Those of each step, with what it waited for; they add up to the pass.
    pub spans: Vec<u64>,
    /// Does its end lead to its beginning?
    pub looped: bool,
    edges: Vec<Edge>,
    memory: Vec<Dependence>,
    /// Registers read and never written.
    pub constant: Vec<Reg>,
}

impl<'a> Kernel<'a> {
    /// Time a stretch of code.
    ///
    /// # Errors
    /// When the machine could not issue one of its bundles.
    pub fn new(machine: &'a Machine, steps: &[Step<'a>], looped: bool) -> Result<Kernel<'a>, String> {
        let timing = |s: &Step<'_>| BundleTiming::new(machine, s.bundle).map(|t| (t, s.lost));
        let timings = steps.iter().map(timing).collect::<Result<Vec<_>, _>>()?;
        let (times, spans) = times(machine, &timings, looped);
        let cycles: u64 = spans.iter().sum();
        let mut nodes = Vec::new();
        for (step, &(time, stalled)) in steps.iter().zip(&times) {
            for inst in &step.bundle.insts {
                let instr = &machine.instrs[usize::from(inst.instr.0)];
                let (mut reads, mut writes) = (Vec::new(), Vec::new());
                for s in &instr.semantics {
                    statement_reads(inst, s, &mut |r| reads.push(r));
                    if let Stmt::Assign { dest, .. } = s {
                        writes.push((dest_of(inst, dest)?, u64::from(latency(instr, dest))));
                    }
                }
                let live = |r: Reg| !machine.regs[usize::from(r.0)].zero;
                reads.retain(|&r| live(r));
                writes.retain(|&(r, _)| live(r));
                reads.sort_unstable();
                reads.dedup();
                nodes.push(Node { inst, instr, time, stalled, reads, writes });
            }
        }
        let cycles = cycles.max(1);
        let mut kernel = Kernel {
            machine,
            nodes,
            cycles,
            spans,
            looped,
            edges: Vec::new(),
            memory: Vec::new(),
            constant: Vec::new(),
        };
        kernel.connect();
        Ok(kernel)
    }

    /// Find for every read the write whose value it gets.
    fn connect(&mut self) {
        let mut edges = Vec::new();
        for (to, node) in self.nodes.iter().enumerate() {
            for &reg in &node.reads {
                let mut best: Option<Edge> = None;
                for (from, writer) in self.nodes.iter().enumerate() {
                    for &(_, latency) in writer.writes.iter().filter(|w| w.0 == reg) {
                        let lands = writer.time + latency;
                        let (slack, distance) = match node.time.checked_sub(lands) {
                            Some(slack) if !self.looped => (slack, 0),
                            None if !self.looped => continue,
                            Some(slack) => (slack % self.cycles, 0),
                            None => {
                                let passes = (lands - node.time).div_ceil(self.cycles);
                                (node.time + passes * self.cycles - lands, passes)
                            }
                        };
                        if best.as_ref().is_none_or(|b| slack < b.slack) {
                            best = Some(Edge { from, to, reg, latency, slack, distance });
                        }
                    }
                }
                match best {
                    Some(edge) => edges.push(edge),
                    None if !self.constant.contains(&reg) => self.constant.push(reg),
                    None => {}
                }
            }
        }
        self.edges = edges;
    }

    /// The values that an instruction needs from others of the stretch.
    pub fn needs(&self, n: usize) -> impl Iterator<Item = &Edge> {
        self.edges.iter().filter(move |e| e.to == n)
    }

    /// What an instruction waited for.
    pub fn wait(&self, n: usize) -> Wait {
        let node = &self.nodes[n];
        let last = self.needs(n).min_by_key(|e| e.slack);
        if self.machine.issue.interlock {
            return match last {
                _ if node.stalled == 0 => Wait::Order,
                Some(e) if e.slack == 0 => Wait::Operand(e.reg, e.from),
                _ => Wait::Unit(node.stalled),
            };
        }
        let Some(e) = last else { return Wait::Nothing(None) };
        if e.slack == 0 {
            return Wait::Operand(e.reg, e.from);
        }
        let units = self.choices(node.inst.instr);
        let earlier = (1..=e.slack).map(|k| (node.time + self.cycles * e.slack - k) % self.cycles);
        let taken = |cycle: u64| !units.is_empty() && units.iter().all(|&u| self.taken(u, cycle));
        if earlier.into_iter().all(taken) { Wait::Unit(e.slack) } else { Wait::Nothing(Some(e.slack)) }
    }

    /// All units on which some variant of an instruction runs.
    fn choices(&self, instr: InstrId) -> Vec<UnitId> {
        let group = self.machine.variants.iter().filter(|v| v.contains(&instr)).max_by_key(|v| v.len());
        let all = group.map_or(&[][..], |v| v).iter().chain([&instr]);
        all.flat_map(|i| self.machine.instrs[usize::from(i.0)].units.iter().copied()).collect()
    }

    fn taken(&self, unit: UnitId, cycle: u64) -> bool {
        let here = |n: &&Node| n.time == cycle && n.instr.units.contains(&unit);
        self.nodes.iter().filter(here).count() >= usize::from(self.machine.units[unit].count)
    }

    /// Cycles of a pass in which each unit and path is taken, where the program
    /// says which it is.
    pub fn busy(&self) -> Vec<(UnitId, u64)> {
        let mut work = vec![0u64; self.machine.units.len()];
        for n in self.nodes.iter().filter(|n| !n.instr.semantics.is_empty()) {
            if let [unit] = n.instr.units[..] {
                work[unit] += u64::from(n.instr.unit_cycles.max(1));
            }
            let mut paths: Vec<UnitId> = n.instr.paths.iter().map(|p| p.0).collect();
            paths.dedup();
            // A path that several share for one register is taken once a cycle.
            paths.into_iter().for_each(|p| work[p] += 1);
        }
        work.into_iter().enumerate().filter(|w| w.1 > 0).collect()
    }

    /// The most values of each register file that are alive at once, those
    /// that the loop only reads included.
    pub fn live(&self) -> Vec<u64> {
        let file = |r: Reg| self.machine.regs[usize::from(r.0)].file;
        let mut alive = vec![vec![0u64; self.cycles as usize]; self.machine.files.len()];
        for (from, node) in self.nodes.iter().enumerate() {
            for &(reg, latency) in &node.writes {
                let reads = self.edges.iter().filter(|e| e.from == from && e.reg == reg);
                let life = reads.map(|e| e.slack).max().unwrap_or(0).min(self.cycles - 1);
                for k in 0..=life {
                    alive[file(reg)][((node.time + latency + k) % self.cycles) as usize] += 1;
                }
            }
        }
        let constant = |f: usize| self.constant.iter().filter(|&&r| file(r) == f).count() as u64;
        alive.iter().enumerate().map(|(f, a)| a.iter().max().copied().unwrap_or(0) + constant(f)).collect()
    }

    /// Adds dependences through memory that a run has shown.
    pub fn remember(&mut self, seen: &[Dependence]) {
        self.memory = seen.iter().filter(|d| d.memory && d.from.max(d.to) < self.nodes.len()).copied().collect();
    }

    /// The recurrence circuit with the most cycles a pass; None if there is none.
    pub fn circuit(&self) -> Option<Circuit> {
        let value =
            |e: &Edge| Dependence { from: e.from, to: e.to, cycles: e.latency, passes: e.distance, memory: false };
        let all: Vec<Dependence> = self.edges.iter().map(value).chain(self.memory.iter().copied()).collect();
        if self.looped { cycle::longest(self.nodes.len(), &all) } else { None }
    }

    /// Lower bound on the cycles of a pass by recurrence circuits, and the instructions of the longest.
    pub fn recurrence(&self) -> (u64, Vec<usize>) {
        let bound = |c: Circuit| (c.cycles.div_ceil(c.passes), c.dependences.iter().map(|d| d.from).collect());
        self.circuit().map_or((0, Vec::new()), bound)
    }
}

/// When each bundle of a pass issues and how long it stood still before, and
/// the cycles until the next may; in a loop, once the passes repeat.
fn times(machine: &Machine, bundles: &[(BundleTiming, u32)], looped: bool) -> (Vec<(u64, u64)>, Vec<u64>) {
    let mut ready = vec![0u64; machine.regs.len()];
    let mut pipes = Pipes::new(machine);
    let mut next = 0;
    let mut found = Vec::new();
    let mut spans = Vec::new();
    // Whatever is under way at the end of a pass has landed a few passes on.
    for _ in 0..if looped { 4 } else { 1 } {
        let start = next;
        found.clear();
        spans.clear();
        for (n, (b, lost)) in bundles.iter().enumerate() {
            let mut t = next;
            if machine.issue.interlock {
                let early = b.early.iter().map(|(r, cycles)| (r, u64::from(*cycles)));
                // What nothing before has made has been ready for long: its time is 0.
                let made = |r: &Reg| Some(ready[usize::from(r.0)]).filter(|at| *at > 0);
                let reads = b.reads.iter().map(|r| (r, 0)).chain(early);
                t = reads.filter_map(|(r, early)| Some(made(r)? + early)).max().unwrap_or(0).max(next);
                // A unit is free again at some time.
                let limit = t + 10_000;
                while !pipes.take(&b.units, t) && t < limit {
                    t += 1;
                }
                for &(r, latency, _) in &b.writes {
                    ready[usize::from(r.0)] = t + u64::from(latency);
                }
            }
            found.push((t - start, t - next));
            let behind = bundles.get(n + 1).or(bundles.first().filter(|_| looped));
            let held = behind.map_or(b.issue_cycles, |(next, _)| b.cycles_before(next));
            let end = t + u64::from(held) + u64::from(*lost);
            spans.push(end - next);
            next = end;
        }
    }
    (found, spans)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ciphermill_ir::Space;
    use ciphermill_program::Operand;
    use std::path::Path;

    fn machine(name: &str) -> Machine {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        ciphermill_machine::load_from_dir(&root, name, &[], &[], &[]).unwrap()
    }

    fn reg(m: &Machine, name: &str) -> Reg {
        Reg(m.regs.iter().position(|r| r.name == name).unwrap() as u16)
    }

    /// `name unit operands`: registers, numbers, or `@` for the block itself.
    fn inst(m: &Machine, text: &str) -> Inst {
        let mut words = text.split_whitespace();
        let (name, unit) = (words.next().unwrap(), words.next().unwrap());
        let base = m.instrs.iter().position(|i| i.name == name).unwrap();
        let here = |v: &InstrId| {
            let i = &m.instrs[usize::from(v.0)];
            m.units[i.units[0]].name == unit && crosses(m, i) == 0
        };
        let found = *m.variants[base].iter().find(|v| here(v)).unwrap();
        let operand = |w: &str| match w.parse() {
            Ok(n) => Operand::Imm(n),
            Err(_) if w == "@" => Operand::Block(0),
            Err(_) => Operand::Reg(reg(m, w)),
        };
        Inst {
            instr: found,
            operands: words.map(operand).collect(),
            space: Space::Linear,
            trap: None,
            role: Default::default(),
            predicate: None,
            loc: 0,
        }
    }

    /// Operands from the other cluster.
    fn crosses(m: &Machine, i: &Instr) -> usize {
        let cluster = m.units[i.units[0]].cluster;
        let away = |p: &&(UnitId, usize)| m.units[p.0].cluster != cluster || m.units[p.0].name.starts_with('x');
        i.paths.iter().filter(away).count()
    }

    fn bundles(m: &Machine, rows: &[&str]) -> Vec<Bundle> {
        let row =
            |r: &&str| Bundle { insts: r.split("||").filter(|t| !t.trim().is_empty()).map(|t| inst(m, t)).collect() };
        rows.iter().map(row).collect()
    }

    fn kernel<'a>(m: &'a Machine, rows: &'a [Bundle], lost: u32) -> Kernel<'a> {
        let last = rows.len() - 1;
        let steps: Vec<Step<'_>> = rows
            .iter()
            .enumerate()
            .map(|(i, bundle)| Step { bundle, lost: if i == last { lost } else { 0 } })
            .collect();
        Kernel::new(m, &steps, true).unwrap()
    }

    #[test]
    fn a_pipelined_loop_by_hand() {
        let m = machine("c6201");
        let rows = bundles(
            &m,
            &[
                "ldw d1 a3 0 a5",
                "add_uimm d1 a4 4 a4 || ldw d2 b4 0 b5",
                "ldw d1 a4 0 a6 || ldw d2 b4 4 b6 || b_nz s1 a1 @",
                "ldw d1 a4 4 a7",
                "",
                "",
                "",
                "xor l1 a6 a5 a3 || xor l2 b6 b5 b7",
            ],
        );
        let k = kernel(&m, &rows, 0);
        assert_eq!((k.cycles, k.looped), (8, true));
        let wait = |n: usize| k.wait(n);
        // a3 of cycle 7 is there in cycle 0.
        assert_eq!(wait(0), Wait::Operand(reg(&m, "a3"), 7));
        // The last pass's sum is there since 7 cycles, and some .D was free.
        assert_eq!(wait(1), Wait::Nothing(Some(7)));
        assert_eq!(wait(2), Wait::Nothing(None));
        assert_eq!(wait(3), Wait::Operand(reg(&m, "a4"), 1));
        // a4 was there in cycle 2 already, and no .D.
        assert_eq!(wait(6), Wait::Unit(1));
        // Of the xor's operands the last to come is a6, at 2 + 5.
        assert_eq!(wait(7), Wait::Operand(reg(&m, "a6"), 3));
        let busy: Vec<(&str, u64)> = k.busy().iter().map(|&(u, n)| (m.units[u].name.as_str(), n)).collect();
        let expected = [("l1", 1), ("s1", 1), ("d1", 4), ("l2", 1), ("d2", 2), ("t1", 3), ("t2", 2)];
        assert_eq!(busy, expected);
        // The circuit: a load of 5 and an xor of 1.
        let (least, chain) = k.recurrence();
        assert_eq!(least, 6);
        assert_eq!(chain.iter().collect::<std::collections::BTreeSet<_>>(), [0, 7].iter().collect());
        // In cycle 7: a4 (all the time but its own cycle), a5 since 5, a6, and
        // a1, which the loop only reads; a7 has no reader but lands in cycle 0.
        assert_eq!(k.live()[..2], [4, 3]);
    }

    #[test]
    fn an_interlocked_pipeline_by_hand() {
        // The load's result comes a cycle late, the product's two; a taken
        // branch costs two: 5 instructions and 1 + 2 + 2 cycles.
        let m = machine("rv32");
        let rows = bundles(
            &m,
            &["lw lsu t0 0 a0", "add alu t1 t0 t0", "mul mul t2 t1 t1", "xor alu t3 t2 t2", "bne alu a0 t3 @"],
        );
        let k = kernel(&m, &rows, 2);
        assert_eq!(
            k.nodes.iter().map(|n| (n.time, n.stalled)).collect::<Vec<_>>(),
            [(0, 0), (2, 1), (3, 0), (6, 2), (7, 0)]
        );
        assert_eq!(k.cycles, 10);
        assert_eq!((k.wait(1), k.wait(2)), (Wait::Operand(reg(&m, "t0"), 0), Wait::Order));
        assert_eq!(k.wait(3), Wait::Operand(reg(&m, "t2"), 2));
        // No circuit.
        assert_eq!(k.recurrence(), (0, vec![]));
    }
}
