//! Recurrence circuits of loops of one block, as part of the recurrence bound.
//!
//! The dataflow machine of [`crate::bounds`] executes every access on its own address, so two that
//! meet in some passes only cost time in these. A schedule is made before addresses are known and is
//! the same in every pass: a dependence that was seen once must be kept always
//! ([`ciphermill_sim::circuits`]). So each pass of a loop of one block takes no less than the ratio
//! of its longest circuit (RecMII: Rau, *Iterative modulo scheduling*, MICRO 1994).
//!
//! Circuits of several passes are rounded down, once for each entry into the loop: `n` passes in `e`
//! entries, with a circuit of `k` passes and `c` cycles, take at least `(n / k - e) * c` cycles. Loops
//! of one block run one after the other, so their bounds add up.

use crate::backends::Simulated;
use crate::compare::stopped;
use crate::error::MeasureError;
use crate::plan::{RunPlan, backstop};
use crate::steady::{Lengths, Steady, Wanted};
use crate::target::{prepare, run};
use ciphermill_ir::PAGE_BYTES;
use ciphermill_program::{Inst, Program};
use ciphermill_sim::circuits::{ObservedLoop, loops};
use ciphermill_sim::cycle::Circuit;
use serde::Serialize;

/// The longest recurrence circuit of a loop, where it goes through memory.
#[derive(Clone, Debug, Serialize)]
pub struct LoopCircuit {
    pub function: String,
    /// Number of the loop's block in its function.
    pub block: u32,
    /// What it adds to the recurrence bound.
    pub cycles_per_block: f64,
    /// Cycles of the circuit, and its passes (the sum of its distances).
    pub cycles: u64,
    pub passes: u64,
    /// Its instructions, in order.
    pub chain: Vec<String>,
    /// Its dependences from a store to a load of the same byte.
    pub accesses: Vec<MemoryDependence>,
}

/// A store and a load of one loop that were seen to touch the same byte.
#[derive(Clone, Debug, Serialize)]
pub struct MemoryDependence {
    pub store: String,
    pub load: String,
    /// Their offsets in the WebAssembly module; 0 where there is none.
    pub store_at: u32,
    pub load_at: u32,
    /// Passes from the one to the other.
    pub passes: u64,
}

/// Bound by recurrence circuits, in cycles a block, and those of the circuits that go through memory.
#[derive(Clone, Debug, Default)]
pub struct Circuits {
    pub recurrence: f64,
    pub through_memory: Vec<LoopCircuit>,
}

/// Longer messages show nothing new.
const LONGEST: u32 = 1 << 16;
/// Nor do more instructions in most programs: what is seen of a loop is seen in its first passes. Following LED on
/// `c64x` through 3.6 million cycles took a third of a run of 27 s.
const FOLLOWED: f64 = 1e6;

/// The circuits in the passes that the steady state was taken from; or in shorter ones, where these are very long and
/// another bound, in cycles a block, is the greater one in any case. A shorter message need not be like the whole of it: a
/// cipher may have one loop for its first half and another for the second.
///
/// # Errors
/// When the program stops in a run.
pub fn recurrence_circuits(wanted: &Wanted<'_>, steady: &Steady, other: f64) -> Result<Circuits, MeasureError> {
    let program = wanted.program;
    let loops = loops(program);
    if loops.is_empty() || steady.lengths.longer > LONGEST || program.machine.core.is_some() {
        return Ok(Circuits::default());
    }
    let each = steady.slope(|s| s.instructions);
    let brief = wanted.briefer(&steady.lengths, each, FOLLOWED);
    let circuits = in_passes(wanted, &loops, &brief)?;
    if circuits.recurrence > other && brief.0.longer < steady.lengths.longer {
        return in_passes(wanted, &loops, &(steady.lengths, wanted.blocks(&steady.lengths)));
    }
    Ok(circuits)
}

/// The circuits in two passes of these lengths, and so many blocks between them.
fn in_passes(
    wanted: &Wanted<'_>,
    loops: &[(u32, u32)],
    (lengths, blocks): &(Lengths, f64),
) -> Result<Circuits, MeasureError> {
    let program = wanted.program;
    let (from, to) = wanted.compared(lengths)?;
    let long = observed(program, &to, loops)?;
    let short = match from {
        Some(from) => observed(program, &from, loops)?,
        None => long.iter().map(|s| ObservedLoop { ran: vec![0; s.ran.len()], ..ObservedLoop::default() }).collect(),
    };
    let mut out = Circuits::default();
    for (from, to) in short.iter().zip(&long) {
        // A loop may have run in the shorter pass alone: the other one has so many cycles less.
        let Some(circuit) = to.circuit().or_else(|| from.circuit()) else { continue };
        // In a pass in which a predicate was false for one of its instructions, there was no circuit.
        let least = |s: &ObservedLoop| circuit.dependences.iter().map(|d| s.ran[d.from]).min().unwrap_or(0) as i64;
        let passes = (least(to) - least(from)).div_euclid(circuit.passes as i64);
        let entries = to.entries.saturating_sub(from.entries) as i64;
        let cycles = (passes - entries.min(passes.max(0))) * circuit.cycles as i64;
        if cycles == 0 {
            continue;
        }
        let cycles_per_block = cycles as f64 / blocks;
        out.recurrence += cycles_per_block;
        if circuit.memory() && cycles > 0 {
            let (chain, accesses) = chain(program, to, &circuit);
            let function = program.funcs[to.func as usize].name.clone();
            let (cycles, passes) = (circuit.cycles, circuit.passes);
            out.through_memory.push(LoopCircuit {
                function,
                block: to.block,
                cycles_per_block,
                cycles,
                passes,
                chain,
                accesses,
            });
        }
    }
    out.recurrence = out.recurrence.max(0.0);
    out.through_memory.sort_by(|a, b| b.cycles_per_block.total_cmp(&a.cycles_per_block));
    Ok(out)
}

/// The loops of a program as the last call of a plan runs them.
///
/// # Errors
/// When the program stops.
pub fn observed(program: &Program, plan: &RunPlan, loops: &[(u32, u32)]) -> Result<Vec<ObservedLoop>, MeasureError> {
    let pages = plan.memory_bytes.div_ceil(PAGE_BYTES) as u32;
    let mut machine = Simulated::new(program, pages.max(program.min_pages), backstop(plan.limit))?;
    prepare(&mut machine, plan).map_err(stopped)?;
    let Some((last, before)) = plan.measured.split_last() else { return Ok(Vec::new()) };
    run(&mut machine, before).map_err(stopped)?;
    machine.circuits(last, loops)
}

/// The instructions of a circuit, and its dependences through memory.
pub fn chain(program: &Program, seen: &ObservedLoop, circuit: &Circuit) -> (Vec<String>, Vec<MemoryDependence>) {
    let (f, b) = (seen.func as usize, seen.block as usize);
    let texts: Vec<String> = ciphermill_program::asm::block(program, f, b).into_iter().flatten().collect();
    let insts: Vec<&Inst> = program.funcs[f].blocks[b].bundles.iter().flat_map(|b| &b.insts).collect();
    let dependence = |d: &ciphermill_sim::cycle::Dependence| MemoryDependence {
        store: texts[d.from].clone(),
        load: texts[d.to].clone(),
        store_at: insts[d.from].loc,
        load_at: insts[d.to].loc,
        passes: d.passes,
    };
    let chain = circuit.dependences.iter().map(|d| texts[d.from].clone()).collect();
    (chain, circuit.dependences.iter().filter(|d| d.memory).map(dependence).collect())
}
