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
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fmt::{Debug, Write};
use std::hash::{DefaultHasher, Hasher};
use std::sync::Mutex;

/// Loops that are remembered; with one more, all are forgotten.
const MOST: usize = 256;

type Key = (u64, u64);
type Found = Option<(Kernel, Body)>;

static FOUND: Mutex<BTreeMap<Key, Found>> = Mutex::new(BTreeMap::new());

/// The machine and the registers of a function, for looking up its loops.
pub struct Known<'a> {
    sides: &'a Sides<'a>,
    registers: &'a Registers,
    /// Hash of both, made with the first loop: a machine's description is long.
    hash: OnceCell<Option<Key>>,
}

impl<'a> Known<'a> {
    pub fn new(sides: &'a Sides<'a>, registers: &'a Registers) -> Known<'a> {
        Known { sides, registers, hash: OnceCell::new() }
    }

    /// As [`best`], from memory where the same was asked before.
    ///
    /// # Errors
    /// As [`best`].
    pub fn best(&self, body: &Body, kept: usize, thorough: bool) -> Result<Found, CompileError> {
        let all = (self.sides.machine, &self.sides.files, &self.sides.pool, &self.registers.allocatable);
        let of_function = *self.hash.get_or_init(|| hash(&all));
        let key = of_function.and_then(|f| hash(&(f, body, kept, thorough)));
        best_known(key, || best(body, self.sides, self.registers, kept, thorough))
    }
}

fn best_known(key: Option<Key>, best: impl FnOnce() -> Result<Found, CompileError>) -> Result<Found, CompileError> {
    let Some(key) = key else { return best() };
    let known = FOUND.lock().ok().and_then(|found| found.get(&key).cloned());
    if let Some(known) = known {
        return Ok(known);
    }
    let new = best()?;
    if let Ok(mut found) = FOUND.lock() {
        if found.len() >= MOST {
            found.clear();
        }
        found.insert(key, new.clone());
    }
    Ok(new)
}

/// Two hashes of what something says of itself.
fn hash(what: &impl Debug) -> Option<Key> {
    let mut text = Text(DefaultHasher::new(), DefaultHasher::new());
    text.1.write_u8(1);
    write!(text, "{what:?}").ok()?;
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
