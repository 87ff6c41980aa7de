//! Whether a machine has room for a request's buffers.

use crate::error::MeasureError;
use crate::pipeline;
use crate::plan::RunPlan;
use crate::probe::open;
use crate::request::Request;
use crate::work::{message, work};

/// Do a request's buffers fit into the machine's RAM, behind what the module has there itself?
///
/// # Errors
/// For a module, machine or setting that cannot be measured at all.
pub fn ram(wasm: &[u8], request: &Request) -> Result<bool, MeasureError> {
    let (_, interface, _) = open(wasm, request.kernel.as_ref())?;
    let described = pipeline::described(&request.machine)?;
    let interface = interface.on(&described.tables.machine);
    let work = work(&interface, request)?;
    let (_, bytes) = message(&interface, request, work)?;
    Ok(RunPlan::new(&interface, work, bytes).is_ok())
}
