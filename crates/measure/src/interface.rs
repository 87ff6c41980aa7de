//! What a module offers: its exports, and the sizes it states about itself.

use crate::error::MeasureError;
use crate::kinds::{self, Kind};
use crate::request::{Blocks, Direction};
use crate::shape::{Kernel, Shape};
use ciphermill_machine::Machine;
use std::collections::BTreeSet;
use std::sync::Arc;

/// One part in so many of a small memory is for the machine's stacks.
pub(crate) const STACKS: u32 = 8;

/// The C interface of one module (`ciphers/ciphermill.h`).
#[derive(Clone, Debug)]
pub struct Interface {
    pub kind: Kind,
    /// Size of the context.
    pub ctx_bytes: u32,
    /// Size of a block: of a cipher, of what a stream cipher makes or a hash function absorbs at once.
    pub block_bytes: u32,
    /// Size of a digest or of a tag; 0 for a kind without.
    pub tag_bytes: u32,
    /// Size of an authenticated cipher's nonce; 0 for other kinds.
    pub nonce_bytes: u32,
    /// What the manifest says of a kernel.
    pub kernel: Option<Arc<Kernel>>,
    /// First address that the module does not use itself.
    pub heap_base: u32,
    /// Where a context stands, as a residue modulo a power of two; anywhere
    /// where nothing is said.
    pub context_at: Option<(u32, u32)>,
    /// Where RAM begins: below it are registers, or nothing.
    pub memory_start: u32,
    /// Where the module's constants end: tables in flash stand above all of RAM.
    pub constants_end: u32,
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
        let memory_start = machine.memory.ram.map_or(0, |(from, _)| from);
        Interface { memory_start, memory_end, ..self.clone() }
    }

    /// The interface where messages of any length find room, as on the reference interpreter: buffers begin behind
    /// constants, which stand above all of RAM where they are in flash.
    pub fn anywhere(&self) -> Interface {
        Interface { heap_base: self.heap_base.max(self.constants_end), ..self.clone() }
    }

    /// Is there an exported function of that name?
    pub fn has(&self, name: &str) -> bool {
        self.exports.contains(name)
    }

    /// An error naming the first of `names` that is not exported.
    pub fn require<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Result<(), MeasureError> {
        match names.into_iter().find(|name| !self.has(name)) {
            Some(name) => Err(missing(name, &self.exports)),
            None => Ok(()),
        }
    }

    /// What a direction calls.
    ///
    /// # Errors
    /// Where its kind has no such direction; [`crate::work::work`] has said so in better words before.
    pub fn shape(&self, direction: Direction, blocks: Blocks) -> Result<Shape, MeasureError> {
        kinds::shape((self.kind, self.kernel.as_deref()), &self.exports, direction, blocks)
            .ok_or_else(|| MeasureError::internal(format!("{} has no {}", self.kind.words(), direction.name())))
    }

    /// The direction that is meant where none is said.
    pub fn usual(&self) -> Direction {
        let usual = self.modes().first().map(|mode| mode.0).filter(|&d| d != Direction::Keysetup);
        usual.unwrap_or(self.kind.directions()[0])
    }

    /// The directions whose function is there, with the ways in which blocks may depend on
    /// each other, the usual one first in both; key set-up last.
    pub fn modes(&self) -> Vec<(Direction, Vec<Blocks>)> {
        let usual = self.kind.directions().iter().chain([&Direction::Keysetup]);
        let mode = |&direction: &Direction| {
            let kernel = self.kernel.as_deref();
            let allowed = self.kind.blocks(direction, kernel).0;
            let there = |&&blocks: &&Blocks| {
                kinds::shape((self.kind, kernel), &self.exports, direction, blocks)
                    .is_some_and(|s| self.has(&s.measured.export))
            };
            let found: Vec<Blocks> = allowed.iter().filter(there).copied().collect();
            (!found.is_empty()).then_some((direction, found))
        };
        usual.filter_map(mode).collect()
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
         the macro of its kind, such as CM_BLOCK_CIPHER(bytes) or CM_STREAM_CIPHER(bytes)"
    ))
}
