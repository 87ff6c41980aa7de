//! What goes round a program's loops through memory: part of the recurrence bound.
//!
//! The dataflow machine of [`crate::bounds`] lets every access go to its own address, so two that
//! meet in a few passes only hold it up in these. Code cannot: a schedule is made before addresses
//! are known and is the same in every pass, so what two accesses of a loop have been seen to do
//! once, it has to allow for always ([`ciphermill_sim::circuits`]). A loop of one block takes for
//! each pass no less than its longest way round.
//!
//! A way round of several passes, and what one entry into the loop leaves over, is rounded down:
//! of `n` passes with `e` entries, a way round of `k` passes and `c` cycles is a bound of
//! `(n / k - e) * c` cycles. Loops of one block run one after the other, so theirs add up.

use crate::backends::Simulated;
use crate::compare::stopped;
use crate::error::MeasureError;
use crate::plan::{Plan, backstop};
use crate::steady::{Steady, Wanted};
use crate::target::{prepare, run};
use ciphermill_ir::PAGE_BYTES;
use ciphermill_program::{Inst, Program};
use ciphermill_sim::circuits::{self, Seen};
use ciphermill_sim::cycle::Circuit;
use serde::Serialize;

/// A way round a loop that takes longest for its passes, and goes through memory.
#[derive(Clone, Debug, Serialize)]
pub struct Round {
    pub function: String,
    /// Number of the loop's block in its function.
    pub block: u32,
    /// Of the recurrence bound.
    pub cycles_per_block: f64,
    /// Cycles of the way round, and the passes it goes through.
    pub cycles: u64,
    pub passes: u64,
    /// The instructions of the way round, in its order.
    pub chain: Vec<String>,
    /// Its steps from a store to the load that finds what was stored.
    pub accesses: Vec<Meeting>,
}

/// A store and a load of one loop that were seen to touch the same byte.
#[derive(Clone, Debug, Serialize)]
pub struct Meeting {
    pub store: String,
    pub load: String,
    /// Their offsets in the WebAssembly module; 0 where there is none.
    pub store_at: u32,
    pub load_at: u32,
    /// Passes from the one to the other.
    pub passes: u64,
}

/// What goes round, in cycles a block, and which ways through memory it is made of.
#[derive(Clone, Debug, Default)]
pub struct Rounds {
    pub recurrence: f64,
    pub through_memory: Vec<Round>,
}

/// Longer messages show nothing new.
const LONGEST: u32 = 1 << 16;
/// Nor do more instructions: what is seen of a loop is seen in its first passes. Following LED on
/// `c64x` through 3.6 million cycles took a third of a run of 27 s.
const FOLLOWED: f64 = 1e6;

/// What goes round in the passes that the steady state was taken from, or in shorter ones where
/// these are very long.
///
/// # Errors
/// When the program stops in a run.
pub fn rounds(wanted: &Wanted<'_>, steady: &Steady) -> Result<Rounds, MeasureError> {
    let program = wanted.program;
    let loops = circuits::loops(program);
    if loops.is_empty() || steady.lengths.longer > LONGEST || program.machine.core.is_some() {
        return Ok(Rounds::default());
    }
    let (lengths, blocks) = wanted.briefer(&steady.lengths, steady.slope(|s| s.instructions), FOLLOWED);
    let (from, to) = wanted.compared(&lengths)?;
    let long = seen(program, &to, &loops)?;
    let short = match from {
        Some(from) => seen(program, &from, &loops)?,
        None => long.iter().map(|s| Seen { ran: vec![0; s.ran.len()], ..Seen::default() }).collect(),
    };
    let mut out = Rounds::default();
    for (from, to) in short.iter().zip(&long) {
        let Some(circuit) = to.circuit() else { continue };
        // In a pass in which one of its instructions had nothing to do there was no way round.
        let least = |s: &Seen| circuit.way.iter().map(|d| s.ran[d.from]).min().unwrap_or(0);
        let passes = least(to).saturating_sub(least(from)) / circuit.passes;
        let cycles = passes.saturating_sub(to.entries.saturating_sub(from.entries)) * circuit.cycles;
        if cycles == 0 {
            continue;
        }
        let cycles_per_block = cycles as f64 / blocks;
        out.recurrence += cycles_per_block;
        if circuit.memory() {
            let (chain, accesses) = words(program, to, &circuit);
            let function = program.funcs[to.func as usize].name.clone();
            let (cycles, passes) = (circuit.cycles, circuit.passes);
            out.through_memory.push(Round { function, block: to.block, cycles_per_block, cycles, passes, chain, accesses });
        }
    }
    out.through_memory.sort_by(|a, b| b.cycles_per_block.total_cmp(&a.cycles_per_block));
    Ok(out)
}

/// What the last call of a plan shows of a program's loops.
///
/// # Errors
/// When the program stops.
pub fn seen(program: &Program, plan: &Plan, loops: &[(u32, u32)]) -> Result<Vec<Seen>, MeasureError> {
    let pages = plan.memory_bytes.div_ceil(PAGE_BYTES) as u32;
    let mut machine = Simulated::new(program, pages.max(program.min_pages), backstop(plan.limit))?;
    prepare(&mut machine, plan).map_err(stopped)?;
    let Some((last, before)) = plan.measured.split_last() else { return Ok(Vec::new()) };
    run(&mut machine, before).map_err(stopped)?;
    machine.circuits(last, loops)
}

/// The instructions of a way round, and where it goes through memory.
pub fn words(program: &Program, seen: &Seen, circuit: &Circuit) -> (Vec<String>, Vec<Meeting>) {
    let (f, b) = (seen.func as usize, seen.block as usize);
    let texts: Vec<String> = ciphermill_program::asm::block(program, f, b).into_iter().flatten().collect();
    let insts: Vec<&Inst> = program.funcs[f].blocks[b].bundles.iter().flat_map(|b| &b.insts).collect();
    let meeting = |d: &ciphermill_sim::cycle::Dependence| Meeting {
        store: texts[d.from].clone(),
        load: texts[d.to].clone(),
        store_at: insts[d.from].loc,
        load_at: insts[d.to].loc,
        passes: d.passes,
    };
    let chain = circuit.way.iter().map(|d| texts[d.from].clone()).collect();
    (chain, circuit.way.iter().filter(|d| d.memory).map(meeting).collect())
}
