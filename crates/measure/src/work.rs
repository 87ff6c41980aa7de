//! What a request asks for: the work, the message, and the program that does it.

use crate::choose::choose;
use crate::chosen::Chosen;
use crate::error::MeasureError;
use crate::interface::{Interface, Kind};
use crate::pipeline;
use crate::plan::{self, Work};
use crate::probe::open;
use crate::request::{Blocks, Direction, Request};
use crate::stated;

/// What is asked for, checked against what the module is and exports.
pub(crate) fn work(module: &Interface, request: &Request) -> Result<Work, MeasureError> {
    let stream = module.kind == Kind::Stream;
    let wrong = |what: &str| {
        let direction = request.direction.name();
        Err(MeasureError::input(format!("--direction {direction}: {} is {what}", request.cipher)))
    };
    match request.direction {
        Direction::Encrypt | Direction::Decrypt if stream => return wrong("a stream cipher; use keystream"),
        Direction::Keystream if !stream => return wrong("a block cipher; use encrypt or decrypt"),
        Direction::Keystream if request.blocks == Blocks::Single => {
            return Err(MeasureError::input(
                "--blocks single: a stream cipher has no feedback mode; leave --blocks out",
            ));
        }
        Direction::Keysetup if request.blocks == Blocks::Single => {
            return Err(MeasureError::input(
                "--blocks single: a key set-up has no blocks that could depend on each other; leave --blocks out",
            ));
        }
        _ => {}
    }
    stated::manifest(module, request)?;
    module.require(&plan::needed(request.direction, request.blocks))?;
    Ok(Work {
        direction: request.direction,
        blocks: request.blocks,
        key_bytes: request.key_bits / 8,
        iv_bytes: request.iv_bytes,
        limit: request.limit,
    })
}

/// Bytes of what is counted (a block, or a key), and of the message.
pub(crate) fn message(module: &Interface, request: &Request, work: Work) -> Result<(u32, u32), MeasureError> {
    let unit = if work.direction == Direction::Keysetup { work.key_bytes } else { module.block_bytes };
    let bytes = match (work.direction, request.bytes) {
        (Direction::Keysetup, None) => unit,
        (Direction::Keysetup, Some(_)) => {
            return Err(MeasureError::input("--bytes: a key set-up has no message; leave --bytes out"));
        }
        _ => plan::length(unit, request.bytes, module.kind == Kind::Stream)?,
    };
    Ok((unit, bytes))
}

pub(crate) fn chosen(wasm: &[u8], request: &Request) -> Result<Chosen, MeasureError> {
    let (module, interface, _) = open(wasm)?;
    let described = pipeline::described(&request.machine)?;
    let work = work(&interface, request)?;
    let (unit, _) = message(&interface, request, work)?;
    choose(wasm, &module, &interface, &described, request, work, unit)
}
