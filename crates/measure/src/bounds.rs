//! Bounds from the flow of data: what no width and no schedule can undercut.
//!
//! The simulator runs the same program once more as a dataflow machine, where
//! an instruction starts as soon as its operands exist ([`ciphermill_sim::dataflow`]).
//! Two lengths come of it.
//!
//! The *critical path* is that of the cipher's block alone: from its words in
//! registers to the words of the result, by the machine's latencies. On a
//! machine with the latencies that a paper assumes it is that paper's figure.
//!
//! The *recurrence* is how much longer a run gets for each further block: the
//! chain of dependences from one block to the next. In a feedback mode that is
//! the cipher itself with its way through memory, with independent blocks
//! little more than a counter. It is a slope between two short messages: in most programs the
//! chain that repeats is the same in every block once the first has passed. Where it would be the
//! lower bound, and blocks of the steady state are not like those, it is that of the steady state's passes.

use crate::backends::Simulated;
use crate::compare::stopped;
use crate::error::MeasureError;
use crate::interface::Interface;
use crate::plan::{RunPlan, Work, backstop};
use crate::shape::Count;
use crate::steady::{Steady, Wanted};
use crate::target::{prepare, run};
use ciphermill_ir::PAGE_BYTES;
use ciphermill_program::Program;
use ciphermill_sim::{Dataflow, Ends};

/// Dataflow lengths, in cycles per block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Heights {
    pub critical_path: f64,
    pub recurrence: f64,
}

/// Messages of so many blocks give the slope.
const SLOPE: (u32, u32) = (4, 8);
/// Blocks are alike whose instructions differ by less than this part.
const ALIKE: f64 = 0.1;

/// The dataflow lengths of a program, of which the recurrence is to be right where it is above another bound, in cycles a
/// block.
///
/// # Errors
/// When the program stops in a run.
pub fn heights(wanted: &Wanted<'_>, steady: &Steady, other: f64) -> Result<Heights, MeasureError> {
    let Wanted { program, interface: module, work, unit, .. } = *wanted;
    let flow = |blocks: u32| followed(program, &RunPlan::new(module, work, blocks * unit)?);
    let one = flow(1)?;
    if program.machine.core.is_some() {
        return Ok(Heights {
            critical_path: one.between.unwrap_or(0) as f64,
            recurrence: chains(program, module, work, unit)?,
        });
    }
    let recurrence = match work.count {
        // Calls are separate runs: nothing carries over. The second is the steady state; the
        // first may have made tables that stay.
        Count::Calls => flow(2)?.critical_path as f64,
        _ => {
            let slope = |long: Dataflow, short: Dataflow, blocks: f64| {
                let of = |long: u64, short: u64| (long as f64 - short as f64) / blocks;
                (of(long.critical_path, short.critical_path), of(long.instructions, short.instructions))
            };
            let (chain, instructions) = slope(flow(SLOPE.1)?, flow(SLOPE.0)?, f64::from(SLOPE.1 - SLOPE.0));
            let alike = (instructions / steady.slope(|s| s.instructions) - 1.0).abs() < ALIKE;
            if chain <= other || alike && chain <= steady.slope(|s| s.cycles) {
                chain
            } else {
                let (from, to) = wanted.compared(&steady.lengths)?;
                let short = from.map(|from| followed(program, &from)).transpose()?.unwrap_or_default();
                slope(followed(program, &to)?, short, wanted.blocks(&steady.lengths)).0
            }
        }
    };
    // A result that does not depend on the block takes no chain from it.
    Ok(Heights { critical_path: one.between.unwrap_or(0) as f64, recurrence })
}

/// The last call of a plan as a dataflow program.
fn followed(program: &Program, plan: &RunPlan) -> Result<Dataflow, MeasureError> {
    let pages = plan.memory_bytes.div_ceil(PAGE_BYTES) as u32;
    let mut machine = Simulated::new(program, pages.max(program.min_pages), backstop(plan.limit))?;
    let stopped = |stop: crate::target::Stopped| {
        MeasureError::internal(format!("{} stopped as a dataflow program: {}", stop.export, stop.halt))
    };
    prepare(&mut machine, plan).map_err(stopped)?;
    let Some((last, before)) = plan.measured.split_last() else { return Ok(Dataflow::default()) };
    run(&mut machine, before).map_err(stopped)?;
    machine.dataflow(last, &Ends { from: plan.places(&plan.shape.from), to: plan.places(&plan.shape.to) })
}

/// The recurrence on a machine that schedules at run time, whose core follows
/// the chains of its micro-operations itself.
fn chains(program: &Program, module: &Interface, work: Work, unit: u32) -> Result<f64, MeasureError> {
    let longest = |blocks: u32| -> Result<f64, MeasureError> {
        let plan = RunPlan::new(module, work, blocks * unit)?;
        let pages = plan.memory_bytes.div_ceil(PAGE_BYTES) as u32;
        let mut machine = Simulated::new(program, pages.max(program.min_pages), backstop(plan.limit))?;
        prepare(&mut machine, &plan).map_err(stopped)?;
        let Some((last, before)) = plan.measured.split_last() else { return Ok(0.0) };
        run(&mut machine, before).map_err(stopped)?;
        machine.follow_chains();
        run(&mut machine, std::slice::from_ref(last)).map_err(stopped)?;
        Ok(machine.longest_chain() as f64)
    };
    match work.count {
        Count::Calls => longest(2),
        _ => Ok((longest(SLOPE.1)? - longest(SLOPE.0)?) / f64::from(SLOPE.1 - SLOPE.0)),
    }
}
