//! Bounds from the flow of data: what no width and no schedule can undercut.
//!
//! The simulator runs the same program once more as a dataflow machine, where
//! an instruction starts as soon as its operands exist. The length of such a
//! run of one block is the *critical path*; how much longer a run gets for
//! each further block is the *recurrence*: the chain of dependences from one
//! block to the next. In a feedback mode that is the cipher itself, with
//! independent blocks little more than a counter.
//!
//! The recurrence is a slope between two short messages: the chain that
//! repeats is the same in every block once the first has passed.

use crate::backends::Simulated;
use crate::error::MeasureError;
use crate::interface::Interface;
use crate::plan::{Plan, Work};
use crate::target::{prepare, run};
use ciphermill_ir::PAGE_BYTES;
use ciphermill_program::Program;

/// Dataflow lengths, in cycles per block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Heights {
    pub critical_path: f64,
    pub recurrence: f64,
}

/// Messages of so many blocks give the slope.
const SLOPE: (u32, u32) = (4, 8);

/// The dataflow lengths of a program; `unit` is the size of a block in bytes.
pub fn heights(program: &Program, module: &Interface, work: Work, unit: u32) -> Result<Heights, MeasureError> {
    let length = |blocks: u32| -> Result<f64, MeasureError> {
        let plan = Plan::new(module, work, blocks * unit)?;
        let pages = plan.memory_bytes.div_ceil(PAGE_BYTES) as u32;
        let mut machine = Simulated::new(program, pages.max(program.min_pages), plan.limit)?;
        let stopped = |stop: crate::target::Stopped| {
            MeasureError::internal(format!("{} stopped as a dataflow program: {}", stop.export, stop.halt))
        };
        prepare(&mut machine, &plan).map_err(stopped)?;
        let Some((last, before)) = plan.measured.split_last() else { return Ok(0.0) };
        run(&mut machine, before).map_err(stopped)?;
        machine.critical_path(last).map(|cycles| cycles as f64)
    };
    let one = length(1)?;
    // Calls of a key set-up are separate runs: nothing carries over.
    let recurrence = match work.direction {
        crate::request::Direction::Keysetup => one,
        _ => (length(SLOPE.1)? - length(SLOPE.0)?) / f64::from(SLOPE.1 - SLOPE.0),
    };
    Ok(Heights { critical_path: one, recurrence })
}
