//! What a module offers: its exports, and the sizes it states about itself.

use crate::error::MeasureError;
use ciphermill_machine::Machine;
use std::collections::BTreeSet;

/// One part in so many of a small memory is for the machine's stacks.
pub(crate) const STACKS: u32 = 8;

/// Block or stream cipher, by what the module exports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Block,
    Stream,
}

/// The C interface of one module (`ciphers/ciphermill.h`).
#[derive(Clone, Debug)]
pub struct Interface {
    pub kind: Kind,
    /// Size of the context.
    pub ctx_bytes: u32,
    /// Size of a block, or of what a stream cipher makes at once.
    pub block_bytes: u32,
    /// First address that the module does not use itself.
    pub heap_base: u32,
    /// Where a context stands, as a residue modulo a power of two; anywhere
    /// where nothing is said.
    pub context_at: Option<(u32, u32)>,
    /// Where the memory that buffers may take ends, on a machine that has no more.
    pub memory_end: Option<u32>,
    /// Names of all exported functions.
    pub exports: BTreeSet<String>,
}

impl Interface {
    /// The interface with its context at a certain place in memory.
    pub fn at(&self, context_at: Option<(u32, u32)>) -> Interface {
        Interface { context_at, ..self.clone() }
    }

    /// The interface on a machine: its memory, of which the stacks keep an eighth.
    pub fn on(&self, machine: &Machine) -> Interface {
        let memory_end = machine.memory.ram.map(|(from, to)| to - to.saturating_sub(from) / STACKS);
        Interface { memory_end, ..self.clone() }
    }

    /// Is there an exported function of that name?
    pub fn has(&self, name: &str) -> bool {
        self.exports.contains(name)
    }

    /// An error naming the first of `names` that is not exported.
    pub fn require(&self, names: &[&str]) -> Result<(), MeasureError> {
        match names.iter().find(|name| !self.has(name)) {
            Some(name) => Err(missing(name, &self.exports)),
            None => Ok(()),
        }
    }
}

/// The direction that an export is for, if it is for one.
fn direction(name: &str) -> Option<(&'static str, &'static str)> {
    match name {
        "cm_encrypt_blocks" | "cm_encrypt_feedback" | "cm_keysetup" => Some(("encrypt", "decrypt")),
        "cm_decrypt_blocks" | "cm_decrypt_feedback" | "cm_keysetup_decrypt" => Some(("decrypt", "encrypt")),
        _ => None,
    }
}

pub(crate) fn missing(name: &str, exports: &BTreeSet<String>) -> MeasureError {
    let has = |direction: &str| exports.contains(&format!("cm_{direction}_blocks"));
    if let Some((one, other)) = direction(name).filter(|(one, other)| !has(one) && has(other)) {
        return MeasureError::input(format!(
            "the cipher does not {one}: the module exports cm_{other}_blocks and no {name}; use --direction {other}, or \
             define cm_{one} and its key set-up"
        ));
    }
    if name == "cm_keysetup_decrypt" && has("decrypt") {
        return MeasureError::input(
            "the module exports cm_decrypt_blocks and no cm_keysetup_decrypt, which expands the key for it; define it \
             (where the key is expanded as for encryption, let it call cm_keysetup)",
        );
    }
    let found: Vec<&str> = exports.iter().map(String::as_str).collect();
    let found = if found.is_empty() { "nothing".to_owned() } else { found.join(", ") };
    MeasureError::input(format!(
        "the module does not export {name} (it exports {found}); include ciphermill.h and end the C file with \
         CM_BLOCK_CIPHER(bytes) or CM_STREAM_CIPHER(bytes)"
    ))
}
