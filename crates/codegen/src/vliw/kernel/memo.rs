//! What was found for a loop, kept for the next time the same loop comes.
//!
//! A module is compiled in several forms of which one is measured, and most of
//! its loops are the same in all. A loop's pipeline follows from the loop, the
//! registers and the machine alone: looking it up changes how long a compilation
//! takes, never its result.

use super::body::Body;
use super::place::Sides;
use super::{Kernel, best};
use crate::CompileError;
use crate::allocate::Registers;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::hash::{DefaultHasher, Hasher};
use std::sync::Mutex;

/// Loops that are remembered; with one more, all are forgotten.
const MOST: usize = 256;

type Key = (u64, u64);
type Found = Option<(Kernel, Body)>;

static FOUND: Mutex<BTreeMap<Key, Found>> = Mutex::new(BTreeMap::new());

/// As [`best`], from memory where the same was asked before.
///
/// # Errors
/// As [`best`].
pub fn best_known(body: &Body, sides: &Sides<'_>, registers: &Registers, kept: usize, thorough: bool) -> Result<Found, CompileError> {
    let Some(key) = key(body, sides, registers, kept, thorough) else {
        return best(body, sides, registers, kept, thorough);
    };
    let known = FOUND.lock().ok().and_then(|found| found.get(&key).cloned());
    if let Some(known) = known {
        return Ok(known);
    }
    let new = best(body, sides, registers, kept, thorough)?;
    if let Ok(mut found) = FOUND.lock() {
        if found.len() >= MOST {
            found.clear();
        }
        found.insert(key, new.clone());
    }
    Ok(new)
}

/// Two hashes of all that a pipeline follows from.
fn key(body: &Body, sides: &Sides<'_>, registers: &Registers, kept: usize, thorough: bool) -> Option<Key> {
    let mut text = Text(DefaultHasher::new(), DefaultHasher::new());
    text.1.write_u8(1);
    let all = (body, sides.machine, &sides.files, &sides.pool, &registers.allocatable, kept, thorough);
    write!(text, "{all:?}").ok()?;
    Some((text.0.finish(), text.1.finish()))
}

/// Text that is hashed as it is written.
struct Text(DefaultHasher, DefaultHasher);

impl Write for Text {
    fn write_str(&mut self, s: &str) -> std::fmt::Result {
        self.0.write(s.as_bytes());
        self.1.write(s.as_bytes());
        Ok(())
    }
}
