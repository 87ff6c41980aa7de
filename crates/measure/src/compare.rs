//! One plan, carried out on the simulated machine and on the reference.
//!
//! Compared are every result of every call and the whole linear memory: the
//! output, the context, and all that the C compiler placed below them. Memory
//! that the module grew in one and not in the other is a difference too.

use crate::backends::{Simulated, reference};
use crate::error::MeasureError;
use crate::margins::Margins;
use crate::plan::Plan;
use crate::shared::{self, Judged};
use crate::sparse::Sparse;
use crate::target::{Stopped, Target, prepare, run};
use ciphermill_ir::PAGE_BYTES;
use ciphermill_ooo::Sampling;
use ciphermill_program::Program;
use ciphermill_sim::Stats;
use std::sync::Arc;

/// What a run on both came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Counters of the measured calls alone.
    pub stats: Stats,
    /// What differed, if anything did.
    pub failure: Option<String>,
    /// Bytes of the message after which the two were compared.
    pub compared: u32,
}

/// Run a plan on both.
///
/// # Errors
/// When the module itself traps (the request is at fault), or the simulated
/// machine stops where the reference does not (we are).
pub fn side_by_side(wasm: &[u8], program: &Program, plan: &Plan) -> Result<Outcome, MeasureError> {
    sampled(wasm, program, plan, None)
}

/// The same, with only windows timed when there is a `sampling`. The reference
/// then makes only the first of the plan's measured calls: it is an interpreter,
/// and a message in pieces is sampled because it is long. What the
/// others give is not compared with anything.
///
/// # Errors
/// As [`side_by_side`].
pub fn sampled(wasm: &[u8], program: &Program, plan: &Plan, sampling: Option<Sampling>) -> Result<Outcome, MeasureError> {
    let compared = if sampling.is_some() { plan.measured.len().min(1) } else { plan.measured.len() };
    let judged = judge(wasm, plan, compared)?;

    let mut machine = Simulated::new(program, judged.pages as u32, plan.limit)?;
    prepare(&mut machine, plan).map_err(stopped)?;
    machine.sample(sampling);
    machine.reset();
    let results = run(&mut machine, &plan.measured[..compared]).map_err(stopped)?;
    let failure = if results != judged.results {
        Some(format!("the calls returned {results:?}, the reference's {:?}", judged.results))
    } else {
        judged.memory.difference(machine.memory()).map(|(at, theirs)| {
            let byte = |byte: Option<u8>| byte.map_or("absent".to_owned(), |b| format!("{b:#04x}"));
            let ours = machine.memory().get(at).copied();
            format!("{} is {}, the reference's {}", plan.place(at as u32), byte(ours), byte(theirs))
        })
    };
    run(&mut machine, &plan.measured[compared..]).map_err(stopped)?;
    let compared = if compared < plan.measured.len() { plan.first_bytes } else { plan.bytes };
    Ok(Outcome { stats: machine.stats(), failure, compared })
}

/// What the reference interpreter makes of a plan's first `calls` measured
/// calls, now or the last time.
fn judge(wasm: &[u8], plan: &Plan, calls: usize) -> Result<Arc<Judged>, MeasureError> {
    let made = || {
        let mut judge = reference(wasm, plan.limit)?;
        judge.reserve(plan.memory_bytes).map_err(MeasureError::input)?;
        let pages = judge.memory().len() as u64 / PAGE_BYTES;
        let trapped = |stop: Stopped| {
            MeasureError::input(format!("{} stopped on the reference interpreter: {}", stop.export, stop.halt))
        };
        let margins = Margins::new(plan, judge.memory());
        prepare(&mut judge, plan).map_err(trapped)?;
        if let Some(call) = plan.setup.last() {
            margins.check(judge.memory(), call.export)?;
        }
        let results = run(&mut judge, &plan.measured[..calls]).map_err(trapped)?;
        if let Some(call) = plan.measured[..calls].last() {
            margins.check(judge.memory(), call.export)?;
        }
        Ok(Judged { pages, results, memory: Sparse::of(judge.memory()) })
    };
    if plan.memory_bytes > shared::LARGEST as u64 {
        return made().map(Arc::new);
    }
    shared::JUDGED.get(shared::key(&[wasm, format!("{calls} {plan:?}").as_bytes()]), made)
}

/// Whose fault it is that the simulated machine stopped.
pub(crate) fn stopped(stop: Stopped) -> MeasureError {
    let Stopped { export, halt } = stop;
    if halt.promise {
        return MeasureError::input(format!(
            "{export}: {halt}; C code without undefined behaviour does not do this (read unaligned words with \
             cm_load32_le, leave constants alone), so if yours has none, it is an error in ciphermill"
        ));
    }
    MeasureError::internal(format!(
        "{export} stopped on the simulated machine, and not on the reference interpreter: {halt}"
    ))
}
