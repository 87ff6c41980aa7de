//! Official test vectors, run on the reference interpreter.
//!
//! The simulated machine is compared with the reference, so the reference has
//! to be right: the same compiled module has to give the published outputs.
//! Sets are JSON files of three kinds. `block`: key, plaintext, ciphertext of
//! one block each. `stream`: key, IV, a length, and chunks of the keystream, or
//! of the ciphertext of a plaintext.
//! `mct` (Monte-Carlo chains of millions of blocks) takes too long for every
//! measurement and is left to the tests.

use crate::crash::{self, Run};
use crate::error::MeasureError;
use crate::interface::{Interface, Kind};
use crate::plan::{self, Call, Space};
use crate::request::{Direction, TextFile, VectorReport};
use crate::target::{Target, run};
use ciphermill_reference::Reference;
use serde::Deserialize;

#[derive(Deserialize)]
struct Set {
    kind: String,
    /// The variants it holds for; absent: all.
    variants: Option<Vec<String>>,
    vectors: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    id: String,
    key: String,
    #[serde(default)]
    plaintext: Option<String>,
    #[serde(default)]
    ciphertext: Option<String>,
    #[serde(default)]
    iv: String,
    #[serde(default)]
    length: u32,
    #[serde(default)]
    chunks: Vec<Chunk>,
}

#[derive(Deserialize)]
struct Chunk {
    offset: u32,
    hex: String,
}

/// Which vectors are run.
#[derive(Clone, Debug)]
pub struct Selection<'a> {
    pub variant: &'a str,
    pub direction: Direction,
    pub key_bits: u32,
    /// Steps that a case may take; None: as many as a measurement of its length.
    pub limit: Option<u64>,
}

/// Run all vectors of a key size and direction; stops at the first failure.
///
/// [`Direction::Keysetup`] is checked by encrypting: a key schedule has no
/// vectors of its own.
pub fn check(
    module: &Interface,
    files: &[TextFile],
    select: &Selection,
    target: &mut Reference,
) -> Result<VectorReport, MeasureError> {
    let mut report = VectorReport { cases: 0, failed: None };
    for file in files {
        let set: Set = serde_json::from_str(&file.text)
            .map_err(|e| MeasureError::input(format!("{}: not a vector file: {e}", file.path)))?;
        fits(module, &set.kind).map_err(|wrong| MeasureError::input(format!("{}: {wrong}", file.path)))?;
        if set.variants.is_some_and(|names| !names.iter().any(|n| n == select.variant)) {
            continue;
        }
        for case in &set.vectors {
            let at = |what: &str| format!("{}: vector {}: {what}", file.path, case.id);
            let hex = |name: &str, text: &str| {
                unhex(text).ok_or_else(|| MeasureError::input(at(&format!("{name} is not hexadecimal"))))
            };
            let key = hex("key", &case.key)?;
            if key.len() * 8 != select.key_bits as usize {
                continue;
            }
            let expected = match set.kind.as_str() {
                "block" => {
                    let plain = hex("plaintext", case.plaintext.as_deref().unwrap_or(""))?;
                    let coded = hex("ciphertext", case.ciphertext.as_deref().unwrap_or(""))?;
                    if plain.len() != module.block_bytes as usize || coded.len() != plain.len() {
                        return Err(MeasureError::input(at(&format!("a block has {} bytes", module.block_bytes))));
                    }
                    let decrypt = select.direction == Direction::Decrypt;
                    let (input, output) = if decrypt { (coded, plain) } else { (plain, coded) };
                    apply_block(module, decrypt, &key, &input, target, select.limit).map(|out| out == output)
                }
                "stream" => {
                    let iv = hex("iv", &case.iv)?;
                    let message = match &case.plaintext {
                        Some(text) => hex("plaintext", text)?,
                        None => vec![0; case.length as usize],
                    };
                    let stream = apply_stream(module, &key, &iv, &message, target, select.limit);
                    match stream {
                        Err(e) => Err(e),
                        Ok(stream) => {
                            let mut equal = true;
                            for chunk in &case.chunks {
                                let bytes = hex("a chunk", &chunk.hex)?;
                                let from = chunk.offset as usize;
                                equal &= stream.get(from..from + bytes.len()) == Some(&bytes[..]);
                            }
                            Ok(equal)
                        }
                    }
                }
                _ => continue,
            };
            report.cases += 1;
            if !expected? {
                report.failed = Some(at("the module's output differs"));
                return Ok(report);
            }
        }
    }
    Ok(report)
}

/// Vectors of a kind that is not the cipher's would never be run, and nobody would know.
fn fits(module: &Interface, kind: &str) -> Result<(), String> {
    let (its, other) = match kind {
        "block" | "mct" => (Kind::Block, "a block cipher"),
        "stream" => (Kind::Stream, "a stream cipher"),
        _ => return Err(format!("kind `{kind}`: it is block, mct or stream")),
    };
    if its == module.kind {
        return Ok(());
    }
    let wanted = if its == Kind::Block { "stream" } else { "block" };
    Err(format!("kind `{kind}` is for {other}, and this is none; its vectors are of kind `{wanted}`"))
}

/// Encrypt or decrypt whole blocks, each on its own.
pub fn apply_block(
    module: &Interface,
    decrypt: bool,
    key: &[u8],
    data: &[u8],
    target: &mut Reference,
    limit: Option<u64>,
) -> Result<Vec<u8>, MeasureError> {
    let (setup, driver) = match decrypt {
        true => ("cm_keysetup_decrypt", "cm_decrypt_blocks"),
        false => ("cm_keysetup", "cm_encrypt_blocks"),
    };
    module.require(&[setup, driver])?;
    let count = data.len() as u64 / u64::from(module.block_bytes);
    apply(module, key, None, data, (setup, driver, count), target, limit)
}

/// Xor a fresh stream to `data`.
pub fn apply_stream(
    module: &Interface,
    key: &[u8],
    iv: &[u8],
    data: &[u8],
    target: &mut Reference,
    limit: Option<u64>,
) -> Result<Vec<u8>, MeasureError> {
    module.require(&["cm_keysetup", "cm_keystream"])?;
    let iv = module.has("cm_ivsetup").then_some(iv);
    apply(module, key, iv, data, ("cm_keysetup", "cm_keystream", data.len() as u64), target, limit)
}

fn apply(
    module: &Interface,
    key: &[u8],
    iv: Option<&[u8]>,
    data: &[u8],
    (setup, driver, count): (&'static str, &'static str, u64),
    target: &mut Reference,
    limit: Option<u64>,
) -> Result<Vec<u8>, MeasureError> {
    let too_long = || MeasureError::input("the message is longer than a module's memory");
    let len = u32::try_from(data.len()).map_err(|_| too_long())?;
    let mut space = Space::new(module);
    let ctx = space.take("context", module.ctx_bytes)?;
    let key_at = space.take("key", key.len() as u32)?;
    let mut writes = vec![(key_at, key.to_vec())];
    let mut calls = vec![Call { export: setup, args: vec![ctx.into(), key_at.into(), key.len() as u64] }];
    if let Some(iv) = iv {
        let iv_at = space.take("IV", iv.len() as u32)?;
        writes.push((iv_at, iv.to_vec()));
        calls.push(Call { export: "cm_ivsetup", args: vec![ctx.into(), iv_at.into(), iv.len() as u64] });
    }
    let input = space.take("input", len)?;
    let output = space.take("output", len)?;
    writes.push((input, data.to_vec()));
    calls.push(Call { export: driver, args: vec![ctx.into(), input.into(), output.into(), count] });
    target.reserve(space.end()).map_err(MeasureError::input)?;
    target.set_fuel(limit.unwrap_or_else(|| plan::limit(data.len())));
    for (addr, bytes) in &writes {
        target.write(*addr, bytes);
    }
    let whole = Run { writes: &writes, calls: [&[], &calls, &[]], bytes: space.end() };
    run(target, &calls).map_err(|stop| crash::found(target.wasm(), &stop, &whole))?;
    Ok(target.read(output, len).to_vec())
}

/// Bytes of a hexadecimal string; None when it is none.
fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(text.get(i..i + 2)?, 16).ok()).collect()
}
