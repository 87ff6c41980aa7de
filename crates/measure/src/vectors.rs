//! Official test vectors, run on the reference interpreter.
//!
//! The simulated machine is compared with the reference, so the reference has
//! to be right: the same compiled module has to give the published outputs.
//! Sets are JSON files, one kind of vector each (`ciphers/README.md` has their fields). A vector
//! fills some buffers of a direction's [`Shape`](crate::shape::Shape) and says what others hold afterwards.
//! `mct` (Monte-Carlo chains of millions of blocks) takes too long for every
//! measurement and is left to the tests.

use crate::apply::{Applied, apply};
use crate::error::MeasureError;
use crate::interface::Interface;
use crate::kinds::Kind;
use crate::request::{Direction, TextFile, VectorReport};
use ciphermill_reference::Reference;
use serde::Deserialize;
use std::collections::BTreeMap;

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
    #[serde(default)]
    length: u32,
    #[serde(default)]
    chunks: Vec<Chunk>,
    /// Of a kernel: buffers by name, before and after.
    #[serde(default, rename = "in")]
    before: BTreeMap<String, String>,
    #[serde(default, rename = "out")]
    after: BTreeMap<String, String>,
    /// Everything else: bytes in hexadecimal, and what is for readers alone.
    #[serde(flatten)]
    fields: BTreeMap<String, serde_json::Value>,
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
/// A key schedule has no vectors of its own, nor has associated data alone: the kind's usual direction is run. So
/// it is for a direction that the kind does not have, of which the measurement will say so.
pub fn check(
    module: &Interface,
    files: &[TextFile],
    select: &Selection,
    target: &mut Reference,
) -> Result<VectorReport, MeasureError> {
    let mut report = VectorReport { cases: 0, failed: None };
    let direction = match select.direction {
        Direction::Authenticate => module.usual(),
        direction if module.kind.directions().contains(&direction) => direction,
        _ => module.usual(),
    };
    for file in files {
        let set: Set = serde_json::from_str(&file.text)
            .map_err(|e| MeasureError::input(format!("{}: not a vector file: {e}", file.path)))?;
        if set.variants.is_some_and(|names| !names.iter().any(|n| n == select.variant)) {
            continue;
        }
        fits(module, &set.kind).map_err(|wrong| MeasureError::input(format!("{}: {wrong}", file.path)))?;
        if set.kind == "mct" {
            continue;
        }
        for case in &set.vectors {
            let at = |what: &str| format!("{}: vector {}: {what}", file.path, case.id);
            let vector = Vector { module, direction, case, at: &at, limit: select.limit };
            let key = if module.kind.has_key() { vector.needed("key")? } else { Vec::new() };
            if key.len() * 8 != select.key_bits as usize {
                continue;
            }
            report.cases += 1;
            if !vector.holds(target)? {
                report.failed = Some(at("the module's output differs"));
                return Ok(report);
            }
        }
    }
    Ok(report)
}

/// Vectors of a kind that is not the cipher's would never be run, and nobody would know.
fn fits(module: &Interface, kind: &str) -> Result<(), String> {
    let known = [Kind::Block, Kind::Stream, Kind::Permutation, Kind::Hash, Kind::Mac, Kind::Aead, Kind::Kernel];
    let named = if kind == "mct" { "block" } else { kind };
    let Some(its) = known.into_iter().find(|k| k.name() == named) else {
        return Err(format!("kind `{kind}`: it is {}", known.map(Kind::name).join(", ") + " or mct"));
    };
    if its == module.kind {
        return Ok(());
    }
    Err(format!(
        "kind `{kind}` is for {}, and this is {}; its vectors are of kind `{}`",
        its.words(),
        module.kind.words(),
        module.kind.name()
    ))
}

/// One vector, and what is to be done with it.
struct Vector<'a> {
    module: &'a Interface,
    direction: Direction,
    case: &'a Case,
    at: &'a dyn Fn(&str) -> String,
    limit: Option<u64>,
}

impl Vector<'_> {
    /// A field's bytes, if there is one of that name.
    fn field(&self, name: &str) -> Result<Option<Vec<u8>>, MeasureError> {
        let Some(value) = self.case.fields.get(name) else { return Ok(None) };
        self.hex(name, value.as_str().unwrap_or("no string")).map(Some)
    }

    fn hex(&self, name: &str, text: &str) -> Result<Vec<u8>, MeasureError> {
        unhex(text).ok_or_else(|| MeasureError::input((self.at)(&format!("{name} is not hexadecimal"))))
    }

    fn needed(&self, name: &str) -> Result<Vec<u8>, MeasureError> {
        self.field(name)?.ok_or_else(|| MeasureError::input((self.at)(&format!("there is no {name}"))))
    }

    fn block(&self, name: &str) -> Result<Vec<u8>, MeasureError> {
        let bytes = self.field(name)?.unwrap_or_default();
        if bytes.len() == self.module.block_bytes as usize {
            return Ok(bytes);
        }
        Err(MeasureError::input((self.at)(&format!("a block has {} bytes", self.module.block_bytes))))
    }

    fn apply(
        &self,
        given: &[(&str, &[u8])],
        length: usize,
        tag: usize,
        target: &mut Reference,
    ) -> Result<Applied, MeasureError> {
        let u32 = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        apply(self.module, self.direction, given, (u32(length), u32(tag)), target, self.limit)
    }

    /// Does the module give what it says?
    fn holds(&self, target: &mut Reference) -> Result<bool, MeasureError> {
        let key = self.field("key")?.unwrap_or_default();
        match self.module.kind {
            Kind::Block | Kind::Permutation => {
                let names = match (self.module.kind, self.direction) {
                    (Kind::Permutation, _) => ("input", "output"),
                    (_, Direction::Decrypt) => ("ciphertext", "plaintext"),
                    _ => ("plaintext", "ciphertext"),
                };
                let (input, output) = (self.block(names.0)?, self.block(names.1)?);
                let made = self.apply(&[("key", &key), ("input", &input)], input.len(), 0, target)?;
                Ok(made.holds("output", &output))
            }
            Kind::Stream => {
                let iv = self.field("iv")?.unwrap_or_default();
                let message = self.field("plaintext")?.unwrap_or_else(|| vec![0; self.case.length as usize]);
                let made = self.apply(&[("key", &key), ("IV", &iv), ("input", &message)], message.len(), 0, target)?;
                let stream = made.buffer("output");
                let mut equal = true;
                for chunk in &self.case.chunks {
                    let bytes = self.hex("a chunk", &chunk.hex)?;
                    let from = chunk.offset as usize;
                    equal &= stream.get(from..from + bytes.len()) == Some(&bytes[..]);
                }
                Ok(equal)
            }
            Kind::Hash | Kind::Mac => {
                let tag = self.needed(if self.module.kind == Kind::Hash { "digest" } else { "tag" })?;
                let message = self.needed("message")?;
                let made = self.apply(&[("key", &key), ("input", &message)], message.len(), tag.len(), target)?;
                Ok(made.holds("output", &tag))
            }
            Kind::Aead => self.authenticated(&key, target),
            Kind::Kernel => {
                let bytes = |of: &BTreeMap<String, String>| -> Result<Vec<(String, Vec<u8>)>, MeasureError> {
                    of.iter().map(|(name, text)| Ok((name.clone(), self.hex(name, text)?))).collect()
                };
                let (before, after) = (bytes(&self.case.before)?, bytes(&self.case.after)?);
                let given: Vec<(&str, &[u8])> = before.iter().map(|(name, b)| (name.as_str(), &b[..])).collect();
                let made = self.apply(&given, self.module.block_bytes as usize, 0, target)?;
                if let Some(name) = after.iter().map(|a| &a.0).find(|name| !made.has(name)) {
                    return Err(MeasureError::input((self.at)(&format!("the kernel has no buffer {name}"))));
                }
                Ok(after.iter().all(|(name, bytes)| made.holds(name, bytes)))
            }
        }
    }

    /// Sealing gives ciphertext and tag; opening the message, and a refusal where a bit of the tag is wrong.
    fn authenticated(&self, key: &[u8], target: &mut Reference) -> Result<bool, MeasureError> {
        let (nonce, associated) = (self.needed("nonce")?, self.field("ad")?.unwrap_or_default());
        let plain = self.field("plaintext")?.unwrap_or_default();
        let tag = self.needed("tag")?;
        let mut sealed = [self.field("ciphertext")?.unwrap_or_default(), tag.clone()].concat();
        let seal = self.direction == Direction::Encrypt;
        let mut once = |input: &[u8]| {
            let given = [("key", key), ("nonce", &nonce), ("associated data", &associated), ("input", input)];
            self.apply(&given, plain.len(), tag.len(), target)
        };
        if seal {
            return Ok(once(&plain)?.holds("output", &sealed));
        }
        let made = once(&sealed)?;
        let opened = made.returned() == Some(0) && made.holds("output", &plain);
        if let Some(last) = sealed.last_mut() {
            *last ^= 1;
        }
        Ok(opened && once(&sealed)?.returned() != Some(0))
    }
}

/// Bytes of a hexadecimal string; None when it is none.
fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(text.get(i..i + 2)?, 16).ok()).collect()
}
