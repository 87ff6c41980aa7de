//! Where the cycles go, cycle by cycle: the hottest stretches of a program.
//!
//! The request's message is run and every block counted. From the hottest block the most frequent
//! path is followed until it comes back (a loop) or its count drops by half. [`crate::kernel`] then
//! says what each instruction of the stretch waited for; here that becomes names and numbers, and
//! one sentence.

use crate::backends::Simulated;
use crate::choose::choose;
use crate::circuits::{self, MemoryDependence};
use crate::class::class;
use crate::compare::stopped;
use crate::error::MeasureError;
use crate::hints;
use crate::kernel::{Edge, Kernel, Step as Timed, Wait};
use crate::pipeline::{self, How};
use crate::pipelining::{self, Step};
use crate::plan::{RunPlan, backstop};
use crate::probe::open;
use crate::proved::{self, LoopBounds, Proofs};
use crate::request::Request;
use crate::target::{prepare, run};
use crate::view::{self, Passage};
use crate::work::{message, work};
use ciphermill_ir::PAGE_BYTES;
use ciphermill_machine::{InstrId, InstrKind, Machine, Reg};
use ciphermill_patterns::nearest::{Unused, unused};
use ciphermill_program::{Operand, PipelinedLoop, Program, Role};
use ciphermill_recognise::finding::Finding;
use ciphermill_recognise::report::findings;
use ciphermill_sim::circuits::{ObservedLoop, loops};
use ciphermill_sim::hazard::branch_costs;
use serde::Serialize;
use std::collections::BTreeSet;

/// The hottest stretches, most cycles first.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    /// Cycles of the whole message.
    pub cycles: u64,
    pub stretches: Vec<Stretch>,
    /// The pipelined loops of the functions that ran, with all that is proved of them.
    pub loops: Vec<LoopBounds>,
    /// Matrices over GF(2) and constant tables in the cipher's functions, with the
    /// instructions that compute them, or why none does.
    pub maps: Vec<Finding>,
    /// Instructions of extensions that the program does not use, and why.
    pub unused: Vec<Unused>,
    /// On machines that schedule at run time, where no cycle belongs to one
    /// instruction, instead of stretches: micro-operations in the pipeline.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub passages: Vec<Passage>,
}

/// A loop, or straight code that often runs.
#[derive(Clone, Debug, Serialize)]
pub struct Stretch {
    /// What limits it, in one sentence.
    pub why: String,
    /// Of a loop: whether it is software-pipelined, and how, or why not, in words.
    pub pipelining: String,
    pub function: String,
    /// Numbers of its blocks in the function, in the order they run.
    pub blocks: Vec<u32>,
    pub looped: bool,
    /// Of all cycles, as a fraction; cache misses and the like left out.
    pub share: f64,
    /// How often it ran.
    pub passes: u64,
    /// Cycles of one pass.
    pub cycles: u64,
    /// Lower bound on the cycles of a pass by recurrence circuits: through registers and, as far as
    /// this run has shown dependences there, through memory.
    pub recurrence: u64,
    /// The instructions of the longest circuit.
    pub chain: Vec<String>,
    /// Its dependences from a store to a load of the same byte.
    #[serde(rename = "meetings")]
    pub memory_dependences: Vec<MemoryDependence>,
    /// The circuit that RecMII comes from, where the loop is pipelined and RecMII exceeds ResMII.
    #[serde(rename = "round")]
    pub circuit: Vec<Step>,
    /// Cycles of a pass in which each unit and each path is taken; empty where
    /// the hardware chooses the unit.
    pub units: Vec<Taken>,
    /// The most registers of each file alive at once, of those there are to be had.
    pub registers: Vec<Alive>,
    pub instructions: Vec<Line>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Taken {
    pub unit: String,
    pub cluster: u8,
    /// A path between clusters or to memory, not a functional unit.
    pub path: bool,
    /// How many there are of it, each taken for a cycle at a time.
    pub count: u32,
    /// Cycles of a pass in which it is taken; of all `count` together.
    pub cycles: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct Alive {
    pub file: String,
    pub alive: u64,
    /// Registers that the compiler may use.
    pub of: u64,
}

/// An instruction in its cycle.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    pub cycle: u64,
    /// None where the hardware chooses among several.
    pub unit: Option<String>,
    /// Paths it takes between clusters or to memory.
    pub paths: Vec<String>,
    pub name: String,
    pub text: String,
    /// Offset in the WebAssembly module of what it was made of; 0 where it is the compiler's own.
    pub at: u32,
    /// `lookup`, `overhead` or `other`.
    pub role: &'static str,
    /// The kind of operation ([`crate::class`]).
    pub class: &'static str,
    /// Cycles that nothing issued before it.
    pub stalled: u64,
    /// `operand`, `unit`, `order` or `nothing`: what fixed its cycle.
    pub waits: &'static str,
    /// The register it waited for, and the instruction that makes it.
    pub register: Option<String>,
    pub producer: Option<usize>,
    /// Cycles by which it could have been earlier but for units, or for nothing.
    pub slack: Option<u64>,
    /// All values it needs from instructions of the stretch.
    pub needs: Vec<Need>,
}

/// A value made by one instruction of the stretch for another.
#[derive(Clone, Debug, Serialize)]
pub struct Need {
    /// Number of the instruction that makes it.
    pub from: usize,
    pub register: String,
    /// Cycles from its issue to the value.
    pub latency: u64,
    /// Cycles that the value was there before it was used.
    pub slack: u64,
    /// Passes ago that it was made.
    pub passes: u64,
}

/// Stretches with less of the cycles are not shown.
const LEAST: f64 = 0.05;
/// So full, something limits.
const FULL: f64 = 0.9;

/// Show where a request's cycles go.
///
/// # Errors
/// As [`crate::measure`], except that nothing is compared with the reference:
/// whoever asks has measured before.
pub fn explain(wasm: &[u8], request: &Request) -> Result<Explanation, MeasureError> {
    hints::retried(request, |request| explained(wasm, request))
}

fn explained(wasm: &[u8], request: &Request) -> Result<Explanation, MeasureError> {
    let (module, interface, _) = open(wasm, request.kernel.as_ref())?;
    let described = pipeline::described(&request.machine)?;
    let interface = interface.on(&described.tables.machine);
    let machine = &*described.tables.machine;
    let work = work(&interface, request)?;
    let (unit, bytes) = message(&interface, request, work)?;
    let chosen = choose(wasm, &module, &interface, &described, request, work, unit)?;
    let plan = RunPlan::new(&interface.at(chosen.context_at), work, bytes)?;
    let program = chosen.program;
    let pages = program.min_pages.max(plan.memory_bytes.div_ceil(PAGE_BYTES) as u32);
    let mut simulated = Simulated::new(&program, pages, backstop(plan.limit))?;
    prepare(&mut simulated, &plan).map_err(stopped)?;
    simulated.reset();
    run(&mut simulated, &plan.measured).map_err(stopped)?;
    let stats = simulated.stats();
    if machine.core.is_some() {
        // Once more, now that the length is known, for some from the middle.
        let passages = view::passages(&program, &plan, pages, stats.instructions)?;
        let mut optimised = module;
        pipeline::optimise(&mut optimised, &described.tables, &How::of(request))?;
        let (maps, unused) = (findings(&optimised, machine), unused(&optimised, machine, &instructions(&program)));
        let (stretches, loops) = (Vec::new(), Vec::new());
        return Ok(Explanation { cycles: stats.cycles, stretches, loops, passages, maps, unused });
    }
    let counts = simulated.bundle_counts();
    let observed = circuits::observed(&program, &plan, &loops(&program))?;
    let total = stats.cycles;
    let proved = |l| Proofs::of(l).map(|proofs| (l, proofs));
    let proved = pipelining::ran_most(&program, &stats).into_iter().map(proved);
    let proved = proved.collect::<Result<Vec<Proved<'_>>, String>>().map_err(MeasureError::internal)?;
    let mut seen = BTreeSet::new();
    let mut stretches = Vec::new();
    for (f, b) in hottest(&program, &counts) {
        if seen.contains(&(f, b)) {
            continue;
        }
        let path = follow(&program, &counts[f], f, b);
        seen.extend(path.blocks.iter().map(|&b| (f, b)));
        let passes = |b: usize| times(&counts[f], b);
        let stretch =
            describe(&program, f, &path, passes, total, (&observed, &proved)).map_err(MeasureError::internal)?;
        if stretch.share >= LEAST {
            stretches.push(stretch);
        }
    }
    stretches.sort_by(|a, b| b.share.total_cmp(&a.share));
    let loops = proved.iter().map(|(l, proofs)| proved::listed(&program, l, proofs)).collect();
    let mut optimised = module;
    pipeline::optimise(&mut optimised, &described.tables, &How::of(request))?;
    let (maps, unused) = (findings(&optimised, machine), unused(&optimised, machine, &instructions(&program)));
    Ok(Explanation { cycles: total, stretches, loops, passages: Vec::new(), maps, unused })
}

/// A pipelined loop with all its bounds.
type Proved<'a> = (&'a PipelinedLoop, Proofs);

/// Those that stand anywhere in a program.
fn instructions(program: &Program) -> BTreeSet<InstrId> {
    let blocks = program.funcs.iter().flat_map(|f| &f.blocks);
    blocks.flat_map(|b| &b.bundles).flat_map(|b| &b.insts).map(|i| i.instr).collect()
}

/// Blocks that ran, by the instructions they account for.
fn hottest(program: &Program, counts: &[Vec<Vec<u64>>]) -> Vec<(usize, usize)> {
    let weight = |f: usize, b: usize| -> u64 { counts[f][b].iter().sum() };
    let blocks = |f: usize| (0..program.funcs[f].blocks.len()).map(move |b| (f, b));
    let mut all: Vec<_> = (0..program.funcs.len()).flat_map(blocks).filter(|&(f, b)| weight(f, b) > 0).collect();
    all.sort_by_key(|&(f, b)| (std::cmp::Reverse(weight(f, b)), f, b));
    all
}

/// The most frequent path from a hot block on.
struct HotPath {
    blocks: Vec<usize>,
    looped: bool,
    passes: u64,
}

/// How often a block ran.
fn times(counts: &[Vec<u64>], b: usize) -> u64 {
    counts.get(b).and_then(|c| c.first().copied()).unwrap_or(0)
}

fn follow(program: &Program, counts: &[Vec<u64>], f: usize, start: usize) -> HotPath {
    let passes = |b: usize| times(counts, b);
    let mut path = HotPath { blocks: vec![start], looped: false, passes: passes(start) };
    let mut at = start;
    // An empty block has no count of its own: the path ends there.
    while let Some(next) = successors(program, f, at).into_iter().max_by_key(|&b| passes(b)) {
        if next == start {
            path.looped = true;
            break;
        }
        if path.blocks.contains(&next) || passes(next) * 2 < path.passes {
            break;
        }
        path.blocks.push(next);
        at = next;
    }
    if !path.looped {
        path.blocks.truncate(1);
    }
    path
}

fn successors(program: &Program, f: usize, b: usize) -> Vec<usize> {
    let insts = || program.funcs[f].blocks[b].bundles.iter().flat_map(|b| &b.insts);
    let targets = insts().flat_map(|i| &i.operands).filter_map(|o| match o {
        Operand::Block(b) => Some(*b as usize),
        _ => None,
    });
    let kind = |i: &ciphermill_program::Inst| program.machine.instrs[usize::from(i.instr.0)].kind;
    let ends = insts().any(|i| matches!(kind(i), InstrKind::Jump | InstrKind::JumpIndirect | InstrKind::Trap));
    let through = (!ends && b + 1 < program.funcs[f].blocks.len()).then_some(b + 1);
    targets.chain(through).collect()
}

fn describe(
    program: &Program,
    f: usize,
    path: &HotPath,
    passes: impl Fn(usize) -> u64,
    total: u64,
    (seen, proved): (&[ObservedLoop], &[Proved<'_>]),
) -> Result<Stretch, String> {
    let machine = &program.machine;
    let mut steps = Vec::new();
    let mut runs = Vec::new();
    let mut texts = Vec::new();
    let layout = ciphermill_program::layout::Layout::new(program);
    for (i, &b) in path.blocks.iter().enumerate() {
        let next = path.blocks.get(i + 1).or(if path.looped { path.blocks.first() } else { None });
        for (n, bundle) in program.funcs[f].blocks[b].bundles.iter().enumerate() {
            let bytes = layout.sizes[f][b][n];
            let lost = bundle.insts.iter().map(|inst| {
                let instr = &machine.instrs[usize::from(inst.instr.0)];
                let conditional = instr.kind == InstrKind::Branch;
                let target = inst.operands.iter().find_map(|o| match o {
                    Operand::Block(t) => Some(*t as usize),
                    _ => None,
                });
                let Some(target) = target else { return 0 };
                let (taken, backward) = (next == Some(&target), target <= b);
                let far = ciphermill_program::layout::is_far(instr, bytes);
                let (taken_cycles, untaken_cycles) = ciphermill_sim::hazard::jump_cycles(instr, far);
                let costs = branch_costs(machine.branch.predictor, conditional, backward, taken_cycles, untaken_cycles);
                costs[usize::from(!taken)]
            });
            steps.push(Timed { bundle, lost: lost.sum() });
            // Some passes leave before they come here.
            runs.push(passes(b).min(path.passes));
        }
        texts.extend(ciphermill_program::asm::block(program, f, b).into_iter().flatten());
    }
    let mut kernel = Kernel::new(machine, &steps, path.looped)?;
    let alone = |s: &&ObservedLoop| path.blocks[..] == [s.block as usize] && s.func as usize == f;
    let seen = seen.iter().find(alone);
    seen.iter().for_each(|s| kernel.remember(&s.dependences));
    let (recurrence, chain) = kernel.recurrence();
    let memory_dependences = seen.zip(kernel.circuit()).map_or(Vec::new(), |(s, c)| circuits::chain(program, s, &c).1);
    let pipelined = pipelining::pipelined(program, f, &path.blocks);
    let pipelining = match (pipelined, pipelining::plain(program, f, &path.blocks)) {
        (Some(l), _) => {
            let proofs = proved.iter().find(|p| std::ptr::eq(p.0, l)).map(|p| p.1.clone()).unwrap_or_default();
            pipelining::how(machine, l, recurrence, &proofs)
        }
        (None, Some(l)) if path.looped => pipelining::why_not(l),
        _ => String::new(),
    };
    let spent: u64 = kernel.spans.iter().zip(&runs).map(|(cycles, times)| cycles * times).sum();
    // Passes that follow each other without a gap may be slower than those that ran.
    let share = (spent as f64 / total.max(1) as f64).min(1.0);
    let paths: BTreeSet<usize> = machine.instrs.iter().flat_map(|i| &i.paths).map(|p| p.0).collect();
    let taken = |(u, cycles): (usize, u64)| {
        let unit = &machine.units[u];
        Taken {
            unit: unit.name.clone(),
            cluster: unit.cluster,
            path: paths.contains(&u),
            count: u32::from(unit.count),
            cycles,
        }
    };
    let units: Vec<Taken> = kernel.busy().into_iter().map(taken).collect();
    let registers = alive(machine, &kernel);
    let mut stretch = Stretch {
        why: String::new(),
        pipelining,
        function: program.funcs[f].name.clone(),
        blocks: path.blocks.iter().map(|&b| b as u32).collect(),
        looped: path.looped,
        share,
        passes: path.passes,
        cycles: kernel.cycles,
        recurrence,
        chain: chain.iter().map(|&n| texts[n].clone()).collect(),
        memory_dependences,
        circuit: pipelined
            .filter(|l| pipelining::binds(l))
            .map_or(Vec::new(), |l| pipelining::steps(machine, &l.circuit)),
        units,
        registers,
        instructions: (0..kernel.nodes.len()).map(|n| line(machine, &kernel, n, &texts[n])).collect(),
    };
    let behind = kernel.nodes.iter().skip(1).chain(kernel.nodes.first()).map(|n| &n.instr.timing);
    let held = kernel.nodes.iter().zip(behind).map(|(n, timing)| {
        let sooner = n.instr.issue_before.iter().find(|b| b.0 == *timing);
        u64::from(sooner.map_or(n.instr.issue_cycles, |b| b.1).max(1) - 1)
    });
    let longer = held.sum();
    stretch.why = why(&stretch, machine, longer);
    Ok(stretch)
}

fn line(machine: &Machine, kernel: &Kernel<'_>, n: usize, text: &str) -> Line {
    let node = &kernel.nodes[n];
    let name = |r: Reg| machine.regs[usize::from(r.0)].name.clone();
    let (waits, register, producer, slack) = match kernel.wait(n) {
        Wait::Operand(r, by) => ("operand", Some(name(r)), Some(by), Some(0)),
        Wait::Unit(cycles) => ("unit", None, None, Some(cycles)),
        Wait::Order => ("order", None, None, None),
        Wait::Nothing(slack) => ("nothing", None, None, slack),
    };
    let unit = |u: usize| machine.units[u].name.clone();
    let need =
        |e: &Edge| Need { from: e.from, register: name(e.reg), latency: e.latency, slack: e.slack, passes: e.distance };
    Line {
        cycle: node.time,
        unit: if let [u] = node.instr.units[..] { Some(unit(u)) } else { None },
        paths: node.instr.paths.iter().map(|p| unit(p.0)).collect(),
        name: node.instr.name.clone(),
        text: text.to_owned(),
        at: node.inst.loc,
        role: match node.inst.role {
            Role::Lookup => "lookup",
            Role::Overhead => "overhead",
            Role::Other => "other",
        },
        stalled: node.stalled,
        waits,
        register,
        producer,
        slack,
        class: class(node.instr),
        needs: kernel.needs(n).map(need).collect(),
    }
}

fn alive(machine: &Machine, kernel: &Kernel<'_>) -> Vec<Alive> {
    let usable = |f: usize| {
        let of = |r: &&Reg| machine.regs[usize::from(r.0)].file == f;
        let abi = &machine.abi;
        // A pipelined loop uses the return address's, too, which waits in the frame meanwhile.
        let back = abi.return_address.iter().filter(|_| machine.issue.explicit);
        let back = back.filter(|r| !abi.allocatable.contains(r) && !abi.scratch.contains(r));
        abi.allocatable.iter().chain(&abi.scratch).chain(back).filter(of).count() as u64
    };
    let one = |(f, alive): (usize, u64)| Alive { file: machine.files[f].name.clone(), alive, of: usable(f) };
    kernel.live().into_iter().enumerate().map(one).filter(|a| a.of > 0).collect()
}

/// The sentence: what is full, or that nothing is. In `longer` cycles an instruction that
/// issued before still holds the pipeline.
fn why(s: &Stretch, machine: &Machine, longer: u64) -> String {
    let percent = |n: u64, of: u64| (100.0 * n as f64 / of.max(1) as f64).round();
    let what = if s.looped { "The loop takes" } else { "Straight code takes" };
    let begin = format!("{what} {} a pass and {:.0} % of all cycles", cycles(s.cycles), 100.0 * s.share);
    // What there is of a unit in a pass.
    let there = |u: &Taken| s.cycles * u64::from(u.count.max(1));
    let fullest = s.units.iter().max_by(|a, b| (a.cycles * there(b)).cmp(&(b.cycles * there(a))));
    let crowded = s.registers.iter().max_by(|a, b| (a.alive * b.of).cmp(&(b.alive * a.of)));
    let unit = fullest.map(|u| {
        let kind = if u.path { "path" } else { "unit" };
        let share = percent(u.cycles, there(u));
        match u.count {
            0 | 1 => format!("{kind} {} is taken in {} of them ({share} %)", u.unit, u.cycles),
            n => format!("the {n} units {} are {share} % taken", u.unit),
        }
    });
    let width = u64::from(machine.issue.width);
    let issued = s.instructions.len() as u64;
    let slots = format!("its {issued} instructions take {} % of the issue slots", percent(issued, width * s.cycles));
    let circuits = match (s.recurrence, s.memory_dependences.is_empty()) {
        (0, _) => "it has no recurrence circuit".to_owned(),
        (least, true) => format!("its recurrence circuits need {} ({} %)", cycles(least), percent(least, s.cycles)),
        (least, false) => {
            let share = percent(least, s.cycles);
            format!("its recurrence circuits, through memory too, need {} ({share} %)", cycles(least))
        }
    };
    let in_use = crowded.map(|r| format!("{} of {} registers {} hold values at once", r.alive, r.of, r.file));
    let full = |n: u64, of: u64| n as f64 >= FULL * of as f64;
    let stalled: u64 = s.instructions.iter().map(|i| i.stalled).sum();
    if machine.issue.interlock && machine.issue.width == 1 {
        // What is left of a pass is lost behind branches.
        let lost = s.cycles.saturating_sub(issued + longer + stalled);
        let waits = [(stalled, "for operands and units"), (lost, "for branches")];
        let waits: Vec<String> = waits.iter().filter(|w| w.0 > 0).map(|(n, why)| format!("{n} {why}")).collect();
        return match full(issued + longer, s.cycles) {
            true if full(issued, s.cycles) => {
                format!("{begin}: its {issued} instructions limit it, one a cycle at most.")
            }
            true => format!(
                "{begin}: its {issued} instructions limit it, one a cycle at most, and {} more in which some of \
                 them hold the pipeline.",
                cycles(longer)
            ),
            false => format!(
                "{begin}: waiting limits it, {} of them are {}.",
                s.cycles.saturating_sub(issued + longer),
                waits.join(" and ")
            ),
        };
    }
    let limits = [
        (full(issued, width * s.cycles), Some(slots)),
        (fullest.is_some_and(|u| full(u.cycles, there(u))), unit.clone()),
        (s.looped && full(s.recurrence, s.cycles), Some(circuits.clone())),
        (crowded.is_some_and(|r| full(r.alive, r.of)), in_use.clone()),
    ];
    let said: Vec<String> = limits.into_iter().filter(|l| l.0).filter_map(|l| l.1).collect();
    if !said.is_empty() {
        return format!("{begin}: {}.", said.join("; "));
    }
    let circuits = s.looped.then_some(circuits);
    let rest: Vec<String> = [unit, circuits, in_use].into_iter().flatten().collect();
    format!("{begin}, and nothing of the machine is used up: {}.", rest.join("; "))
}

fn cycles(n: u64) -> String {
    if n == 1 { "1 cycle".to_owned() } else { format!("{n} cycles") }
}
