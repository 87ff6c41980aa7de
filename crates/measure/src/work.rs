//! What a request asks for: the work, the message, and the program that does it.

use crate::choose::choose;
use crate::chosen::Chosen;
use crate::error::MeasureError;
use crate::fits;
use crate::interface::Interface;
use crate::pipeline;
use crate::plan::{self, RunPlan, Work};
use crate::probe::open;
use crate::request::{Direction, Request};
use crate::shape::Count;
use crate::stated;

/// What is asked for, checked against what the module is and exports.
pub(crate) fn work(module: &Interface, request: &Request) -> Result<Work, MeasureError> {
    let kernel = module.kernel.as_deref();
    let directions = module.kind.directions();
    let keyed = module.kind.has_key() && request.direction == Direction::Keysetup;
    if !keyed && !directions.contains(&request.direction) {
        let mut names: Vec<&str> = directions.iter().map(|d| d.name()).collect();
        let last = names.pop().unwrap_or_default();
        let others = if names.is_empty() { String::new() } else { format!("{} or ", names.join(", ")) };
        return Err(MeasureError::input(format!(
            "--direction {}: {} is {}; use {others}{last}",
            request.direction.name(),
            request.cipher,
            module.kind.words()
        )));
    }
    let (allowed, why) = module.kind.blocks(request.direction, kernel);
    if !allowed.contains(&request.blocks) {
        return Err(MeasureError::input(format!("--blocks {}: {why}; leave --blocks out", request.blocks.name())));
    }
    stated::manifest(module, request)?;
    let shape = module.shape(request.direction, request.blocks)?;
    module.require(shape.exports().iter().map(|export| &**export))?;
    Ok(Work {
        direction: request.direction,
        blocks: request.blocks,
        count: shape.count(),
        key_bytes: request.key_bits / 8,
        iv_bytes: request.iv_bytes,
        limit: request.limit,
    })
}

/// Bytes of what is counted (a block, or a key), and of the message.
pub(crate) fn message(module: &Interface, request: &Request, work: Work) -> Result<(u32, u32), MeasureError> {
    let unit = work.unit(module);
    let bytes = match (work.count, request.bytes) {
        (Count::Calls, None) => unit,
        (Count::Calls, Some(_)) if work.direction == Direction::Keysetup => {
            return Err(MeasureError::input("--bytes: a key set-up has no message; leave --bytes out"));
        }
        (Count::Calls, Some(_)) => {
            return Err(MeasureError::input(
                "--bytes: the kernel has no parameter that counts blocks, so a call is always one; leave --bytes out",
            ));
        }
        _ => plan::length(unit, request.bytes, work.count == Count::Bytes)?,
    };
    Ok((unit, bytes))
}

/// Do a request's buffers fit into the machine's RAM, behind what the module has there itself?
///
/// # Errors
/// For a module, machine or setting that cannot be measured at all.
pub fn fits_ram(wasm: &[u8], request: &Request) -> Result<bool, MeasureError> {
    let (_, interface, _) = open(wasm, request.kernel.as_ref())?;
    let described = pipeline::described(&request.machine)?;
    let interface = interface.on(&described.tables.machine);
    let work = work(&interface, request)?;
    let (_, bytes) = message(&interface, request, work)?;
    Ok(RunPlan::new(&interface, work, bytes).is_ok())
}

pub(crate) fn chosen(wasm: &[u8], request: &Request) -> Result<Chosen, MeasureError> {
    let (module, interface, _) = open(wasm, request.kernel.as_ref())?;
    let described = pipeline::described(&request.machine)?;
    let work = work(&interface, request)?;
    let (unit, _) = message(&interface, request, work)?;
    let chosen = choose(wasm, &module, &interface, &described, request, work, unit)?;
    fits::flash(&described.tables.machine, &chosen.program)?;
    Ok(chosen)
}
