//! One plan, carried out on the simulated machine and on the reference.
//!
//! Compared are every result of every call and the whole linear memory: the
//! output, the context, and all that the C compiler placed below them. Memory
//! that the module grew in one and not in the other is a difference too.

use crate::backends::{Simulated, reference};
use crate::crash::{self, Run};
use crate::error::MeasureError;
use crate::margins::Margins;
use crate::plan::{RunPlan, backstop};
use crate::sampling::Timed;
use crate::shape::Call;
use crate::shared::{self, Judged};
use crate::sparse::Sparse;
use crate::target::{Stopped, Target, prepare, run};
use ciphermill_ir::PAGE_BYTES;
use ciphermill_program::Program;
use ciphermill_sim::Stats;
use std::sync::Arc;

/// What a run on both came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Counters of the measured calls alone.
    pub stats: Stats,
    /// Cycles of the calls before them: key set-up, and that of the IV.
    pub setup_cycles: u64,
    /// Counters of each of the plan's passes, and before the first of them: of nothing.
    pub passes: Vec<Stats>,
    pub idle: Stats,
    /// What differed, if anything did.
    pub failure: Option<String>,
    /// Bytes of the message after which the two were compared.
    pub compared: u32,
    /// Bundles that the measured calls ran, by number.
    pub ran: Vec<bool>,
}

/// Run a plan on both. Where only windows are timed the reference
/// makes only the first of the plan's measured calls: it is an interpreter,
/// and a message in pieces is sampled because it is long. What the
/// others give is not compared with anything. A plan of this kind has no passes.
///
/// # Errors
/// When the module itself traps (the request is at fault), or the simulated
/// machine stops where the reference does not (we are).
pub fn side_by_side(wasm: &[u8], program: &Program, plan: &RunPlan, timed: Timed) -> Result<Outcome, MeasureError> {
    let compared = if timed == Timed::Windows { plan.measured.len().min(1) } else { plan.measured.len() };
    let judged = judge(wasm, plan, compared)?;

    let mut machine = Simulated::new(program, judged.pages as u32, backstop(judged.steps))?;
    prepare(&mut machine, plan).map_err(stopped)?;
    let setup_cycles = machine.stats().cycles;
    machine.time(timed);
    machine.reset();
    let idle = machine.stats();
    let results = run(&mut machine, &plan.measured[..compared]).map_err(stopped)?;
    let differ = |machine: &Simulated, results: &[Vec<u64>], theirs: (&[Vec<u64>], &Sparse)| {
        if results != theirs.0 {
            return Some(format!("the calls returned {results:?}, the reference's {:?}", theirs.0));
        }
        theirs.1.difference(machine.memory()).map(|(at, theirs)| {
            let byte = |byte: Option<u8>| byte.map_or("absent".to_owned(), |b| format!("{b:#04x}"));
            let ours = machine.memory().get(at).copied();
            format!("{} is {}, the reference's {}", plan.place(at as u32), byte(ours), byte(theirs))
        })
    };
    let mut failure = differ(&machine, &results, (&judged.results, &judged.memory));
    run(&mut machine, &plan.measured[compared..]).map_err(stopped)?;
    let stats = machine.stats();
    let ran = machine.bundle_counts().iter().flatten().flatten().map(|&n| n > 0).collect();
    let mut passes = Vec::with_capacity(plan.passes.len());
    if let Some((theirs, memory)) = &judged.passes {
        let mut results = Vec::with_capacity(plan.passes.len());
        for call in &plan.passes {
            machine.reset();
            results.extend(run(&mut machine, std::slice::from_ref(call)).map_err(stopped)?);
            passes.push(machine.stats());
        }
        let again = || differ(&machine, &results, (theirs, memory)).map(|what| format!("processed again, {what}"));
        failure = failure.or_else(again);
    }
    let compared = if compared < plan.measured.len() { plan.first_bytes } else { plan.bytes };
    Ok(Outcome { stats, setup_cycles, passes, idle, failure, compared, ran })
}

/// What the reference interpreter makes of a plan's first `calls` measured
/// calls, now or the last time.
pub(crate) fn judge(wasm: &[u8], plan: &RunPlan, calls: usize) -> Result<Arc<Judged>, MeasureError> {
    let made = || {
        let mut judge = reference(wasm, plan.limit)?;
        judge.reserve(plan.memory_bytes).map_err(MeasureError::input)?;
        let pages = judge.memory().len() as u64 / PAGE_BYTES;
        let margins = Margins::new(plan, judge.memory());
        let run_of = Run {
            writes: &plan.writes,
            calls: [&plan.setup, &plan.measured[..calls], &plan.passes],
            bytes: plan.memory_bytes,
        };
        prepare(&mut judge, plan).map_err(|stop| crash::found(wasm, &stop, &run_of))?;
        if let Some(call) = plan.setup.last() {
            margins.check(judge.memory(), &call.export)?;
        }
        let mut made = |calls: &[Call]| -> Result<(Vec<Vec<u64>>, Sparse, u64), MeasureError> {
            let results = run(&mut judge, calls).map_err(|stop| crash::found(wasm, &stop, &run_of))?;
            if let Some(call) = calls.last() {
                margins.check(judge.memory(), &call.export)?;
            }
            let steps = judge.steps();
            // The limit is for a key set-up and a message; passes over it have as much again.
            judge.set_fuel(plan.limit.saturating_mul(2));
            Ok((results, Sparse::of(judge.memory()), steps))
        };
        let (results, memory, steps) = made(&plan.measured[..calls])?;
        let passes = match &plan.passes[..] {
            [] => None,
            passes => Some(made(passes)?).map(|(results, memory, _)| (results, memory)),
        };
        Ok(Judged { pages, steps, results, memory, passes })
    };
    if plan.memory_bytes > shared::LARGEST as u64 {
        return made().map(Arc::new);
    }
    shared::JUDGED.get(shared::key(&[wasm, format!("{calls} {plan:?}").as_bytes()]), made)
}

/// Whose fault it is that the simulated machine stopped.
pub(crate) fn stopped(stop: Stopped) -> MeasureError {
    let Stopped { export, halt } = stop;
    if halt.misaligned {
        return MeasureError::Misaligned(format!("{export}: {halt}; the code is made for no such access"));
    }
    if halt.promise {
        return MeasureError::input(format!(
            "{export}: {halt}; C code without undefined behaviour does not do this (leave \
             constants alone), so if yours has none, it is an error in ciphermill"
        ));
    }
    MeasureError::internal(format!(
        "{export} stopped on the simulated machine, and not on the reference interpreter: {halt}"
    ))
}
