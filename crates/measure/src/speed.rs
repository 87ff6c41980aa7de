//! How fast the simulator itself is: wall time of simulated calls.
//!
//! Neither loading and compiling the module nor the reference interpreter is
//! in the time, and the comparison with it does not take place: whoever times
//! a request has measured it before. Each run starts on a new machine, so that
//! decoding the program and filling the caches are paid in every one of them,
//! as they are in a measurement.
//!
//! Times depend on the computer and its load; nothing of this goes into a
//! [`crate::Measurement`], which has to come out the same everywhere.

use crate::backends::Simulated;
use crate::choose::choose;
use crate::compare::stopped;
use crate::error::MeasureError;
use crate::hints;
use crate::pipeline;
use crate::plan::{RunPlan, backstop};
use crate::probe::open;
use crate::request::Request;
use crate::sampling::Timed;
use crate::target::{prepare, run};
use crate::work::{message, work};
use ciphermill_ir::PAGE_BYTES;
use serde::Serialize;
use std::time::Instant;

/// The times of some runs of the same calls.
#[derive(Clone, Debug, Serialize)]
pub struct Speed {
    /// Simulated instructions of one run.
    pub instructions: u64,
    /// Simulated cycles of one run.
    pub cycles: u64,
    /// Wall time of each run on one thread.
    pub seconds: Vec<f64>,
}

/// Simulate the message of a request `runs` times, and time each.
///
/// # Errors
/// As [`crate::measure`]; and [`MeasureError::Internal`] when two runs differ
/// in a count.
pub fn speed(wasm: &[u8], request: &Request, runs: u32) -> Result<Speed, MeasureError> {
    hints::retried(request, |request| timed(wasm, request, runs))
}

fn timed(wasm: &[u8], request: &Request, runs: u32) -> Result<Speed, MeasureError> {
    let (module, interface, _) = open(wasm, request.kernel.as_ref())?;
    let described = pipeline::described(&request.machine)?;
    let interface = interface.on(&described.tables.machine);
    let work = work(&interface, request)?;
    let (unit, bytes) = message(&interface, request, work)?;
    let chosen = choose(wasm, &module, &interface, &described, request, work, unit)?;
    let plan = RunPlan::new(&interface.at(chosen.context_at), work, bytes)?;
    let program = chosen.program;
    let needed = plan.memory_bytes.div_ceil(PAGE_BYTES) as u32;
    let pages = program.min_pages.max(needed);

    let mut counts = None;
    let mut seconds = Vec::new();
    for _ in 0..runs {
        let mut simulated = Simulated::new(&program, pages, backstop(plan.limit))?;
        prepare(&mut simulated, &plan).map_err(stopped)?;
        simulated.time(Timed::of(&program.machine, request, bytes));
        simulated.reset();
        let start = Instant::now();
        run(&mut simulated, &plan.measured).map_err(stopped)?;
        seconds.push(start.elapsed().as_secs_f64());
        let stats = simulated.stats();
        let found = (stats.instructions, stats.cycles);
        if *counts.get_or_insert(found) != found {
            return Err(MeasureError::internal("two runs of the same calls have different counts"));
        }
    }
    let (instructions, cycles) = counts.unwrap_or_default();
    Ok(Speed { instructions, cycles, seconds })
}
