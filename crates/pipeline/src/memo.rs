//! What was found for a loop, kept for the next time the same loop comes.
//!
//! A module is compiled in several forms of which one is measured, and most of
//! its loops are the same in all. A loop's pipeline follows from the loop, the
//! registers, the machine and the records alone: looking it up changes how long a compilation
//! takes, never its result.

use super::body::Body;
use super::narrower::Room;
use super::place::Sides;
use super::{Effort, Found as Start, Searched as Found};
use ciphermill_machine::Machine;
use ciphermill_program::kept_schedules::KeptSchedule as Recorded;
use ciphermill_vcode::Registers;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::{Debug, Write};
use std::hash::{DefaultHasher, Hasher};
use std::sync::Mutex;

/// So many loops are remembered for certain, and at most twice as many.
const MOST: usize = 128;

type Key = (u64, u64);

/// What was found or asked for lately, and before that.
type Generations = (BTreeMap<Key, Found>, BTreeMap<Key, Found>);

/// For loops of functions that are not measured, of which there are many, and for
/// those that are searched thoroughly.
static FOUND: [Mutex<Generations>; 2] = [const { Mutex::new((BTreeMap::new(), BTreeMap::new())) }; 2];

/// Kernels that a search ends with before they are shortened, and what is left of its work.
pub(super) type Starts = (Vec<Start>, i64);

/// Those of the latest loops: forms are compared by them, and the best is made again.
static STARTS: Mutex<VecDeque<(Key, Starts)>> = Mutex::new(VecDeque::new());
/// So many are remembered.
const LATEST: usize = 4;

/// Pipelines found on one machine, and on what it would be with more or less room.
#[derive(Debug)]
pub struct Memo {
    /// All of the machine that schedulers look at, but for its room, and the records there are.
    machine: Key,
}

impl Memo {
    pub fn new(machine: &Machine, records: &[Recorded]) -> Memo {
        let issue = ciphermill_machine::Issue { width: 0, ..machine.issue.clone() };
        let units: Vec<_> = machine.units.iter().map(|u| (&u.name, u.cluster, u.shared)).collect();
        let Machine { word_bits, files, regs, instrs, variants, memory, abi, .. } = machine;
        Memo { machine: key(&(word_bits, files, regs, instrs, variants, memory, abi, issue, units, records)) }
    }

    /// The pipelines of one loop.
    pub fn of(&self, body: &Body, sides: &Sides<'_>, registers: &Registers, kept: usize, effort: Effort) -> Remembered {
        let all = key(&(self.machine, body, &sides.files, &sides.pool, &registers.allocatable, kept, effort.search));
        Remembered { all, key: key(&(all, effort)), found: &FOUND[usize::from(effort.thorough)] }
    }
}

/// Those of one loop, by the room of the machine.
pub struct Remembered {
    /// Of the loop and the search, however much effort is made for the rest.
    all: Key,
    key: Key,
    found: &'static Mutex<Generations>,
}

impl Remembered {
    /// What `search` finds, from memory where the same was asked before.
    ///
    /// # Errors
    /// As `search`.
    pub(super) fn or<E>(&self, room: &Room, search: impl FnOnce() -> Result<Found, E>) -> Result<Found, E> {
        let key = key(&(self.key, room));
        if let Some(known) = self.known(key) {
            return Ok(known);
        }
        let new = search()?;
        self.keep(key, new.clone());
        Ok(new)
    }

    /// What `search` begins with, from memory where the same was asked lately.
    ///
    /// # Errors
    /// As `search`.
    pub(super) fn starts<E>(&self, room: &Room, search: impl FnOnce() -> Result<Starts, E>) -> Result<Starts, E> {
        let key = key(&(self.all, room));
        if let Ok(latest) = STARTS.lock()
            && let Some((_, starts)) = latest.iter().find(|s| s.0 == key)
        {
            return Ok(starts.clone());
        }
        let new = search()?;
        if let Ok(mut latest) = STARTS.lock() {
            latest.truncate(LATEST - 1);
            latest.push_front((key, new.clone()));
        }
        Ok(new)
    }

    fn known(&self, key: Key) -> Option<Found> {
        let old = {
            let mut found = self.found.lock().ok()?;
            if let Some(known) = found.0.get(&key) {
                return Some(known.clone());
            }
            found.1.remove(&key)?
        };
        self.keep(key, old.clone());
        Some(old)
    }

    fn keep(&self, key: Key, value: Found) {
        let Ok(mut found) = self.found.lock() else { return };
        if found.0.len() >= MOST {
            found.1 = std::mem::take(&mut found.0);
        }
        found.0.insert(key, value);
    }
}

/// Two hashes of all that a pipeline follows from.
fn key(all: &dyn Debug) -> Key {
    let mut text = Text(DefaultHasher::new(), DefaultHasher::new());
    text.1.write_u8(1);
    // Hashers take any text.
    let _ = write!(text, "{all:?}");
    (text.0.finish(), text.1.finish())
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
