//! Bytes processed by the reference interpreter alone, without a machine.

use crate::apply::apply;
use crate::error::MeasureError;
use crate::probe::open;
use crate::request::Direction;
use crate::shape::Kernel;
use serde::Deserialize;

/// What is to be processed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApplyRequest {
    direction: Direction,
    /// Bytes of the message, and of the digest or tag; None: as many as it has.
    length: u32,
    #[serde(default)]
    tag: Option<u32>,
    #[serde(default)]
    limit: Option<u64>,
    #[serde(default)]
    kernel: Option<Kernel>,
}

/// What a function returned, and its buffers by name.
pub type Answer = (Option<u64>, Vec<(String, Vec<u8>)>);

/// Run a direction once on the bytes `given` for buffers, by their names.
///
/// # Errors
/// When the module has no such direction, a buffer not this size; and when it traps.
pub fn process(wasm: &[u8], request: &ApplyRequest, given: &[(&str, &[u8])]) -> Result<Answer, MeasureError> {
    let (_, module, mut target) = open(wasm, request.kernel.as_ref())?;
    let tag = request.tag.unwrap_or(module.tag_bytes);
    let made = apply(&module, request.direction, given, (request.length, tag), &mut target, request.limit)?;
    let returned = made.returned();
    Ok((returned, made.into_buffers().into_iter().map(|(name, bytes)| (name.to_string(), bytes)).collect()))
}

fn output(
    wasm: &[u8],
    direction: Direction,
    given: &[(&str, &[u8])],
    length: usize,
    limit: Option<u64>,
) -> Result<Vec<u8>, MeasureError> {
    let length =
        u32::try_from(length).map_err(|_| MeasureError::input("the message is longer than a module's memory"))?;
    let (_, module, mut target) = open(wasm, None)?;
    if !module.kind.directions().contains(&direction) {
        return Err(MeasureError::input(format!("this is {}, which cannot {}", module.kind.words(), direction.name())));
    }
    Ok(apply(&module, direction, given, (length, 0), &mut target, limit)?.buffer("output").to_vec())
}

/// Encrypt or decrypt whole blocks on the reference interpreter.
///
/// # Errors
/// When the module is no block cipher, or `data` no whole number of blocks.
pub fn crypt(wasm: &[u8], key: &[u8], data: &[u8], decrypt: bool, limit: Option<u64>) -> Result<Vec<u8>, MeasureError> {
    let direction = if decrypt { Direction::Decrypt } else { Direction::Encrypt };
    output(wasm, direction, &[("key", key), ("input", data)], data.len(), limit)
}

/// The first `length` bytes of a stream, made by the reference interpreter.
///
/// # Errors
/// When the module is no stream cipher.
pub fn keystream(
    wasm: &[u8],
    key: &[u8],
    iv: &[u8],
    length: usize,
    limit: Option<u64>,
) -> Result<Vec<u8>, MeasureError> {
    output(wasm, Direction::Keystream, &[("key", key), ("IV", iv)], length, limit)
}
