//! What was found for a loop, kept for the next time the same loop comes.
//!
//! A module is compiled in several forms of which one is measured, and most of
//! its loops are the same in all. A loop's pipeline follows from the loop, the
//! registers, the machine and the records alone: looking it up changes how long a compilation
//! takes, never its result.

use super::body::Body;
use super::place::Sides;
use super::search::threads::locked;
use super::{Effort, Searched as Found};
use ciphermill_machine::Machine;
use ciphermill_program::kept_schedules::KeptSchedule as Recorded;
use ciphermill_vcode::Registers;
use std::collections::BTreeMap;
use std::fmt::{Debug, Write};
use std::hash::{DefaultHasher, Hasher};
use std::sync::{Arc, Mutex};

/// So many loops are remembered for certain, and at most twice as many.
const MOST: usize = 128;

type Key = (u64, u64);

/// What was found for a loop, once it has been: who asks meanwhile waits for it.
type Cell = Arc<Mutex<Option<Found>>>;

/// What was found or asked for lately, and before that.
type Generations = (BTreeMap<Key, Cell>, BTreeMap<Key, Cell>);

/// For loops of functions that are not measured, of which there are many, and for
/// those that are searched thoroughly.
static FOUND: [Mutex<Generations>; 2] = [const { Mutex::new((BTreeMap::new(), BTreeMap::new())) }; 2];

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
    pub fn of(
        &self,
        body: &Body,
        sides: &Sides<'_>,
        registers: &Registers,
        kept: usize,
        effort: Effort,
        below: i64,
    ) -> Remembered {
        let machine = sides.machine;
        let room: (u16, Vec<u16>) = (machine.issue.width, machine.units.iter().map(|u| u.count).collect());
        let all = (self.machine, room, body, &sides.files, &sides.pool, &registers.allocatable, kept, effort, below);
        Remembered { key: key(&all), found: &FOUND[usize::from(effort.thorough)] }
    }
}

/// Those of one loop, by the room of the machine.
pub struct Remembered {
    key: Key,
    found: &'static Mutex<Generations>,
}

impl Remembered {
    /// What `search` finds, from memory where the same was asked before.
    ///
    /// # Errors
    /// As `search`.
    pub(super) fn or<E>(&self, search: impl FnOnce() -> Result<Found, E>) -> Result<Found, E> {
        let cell = self.cell();
        let mut known = locked(&cell);
        if let Some(known) = &*known {
            return Ok(known.clone());
        }
        let new = search()?;
        *known = Some(new.clone());
        Ok(new)
    }

    fn cell(&self) -> Cell {
        let mut found = locked(self.found);
        let known = found.0.get(&self.key).cloned();
        let cell = known.or_else(|| found.1.remove(&self.key)).unwrap_or_default();
        if found.0.len() >= MOST {
            found.1 = std::mem::take(&mut found.0);
        }
        found.0.insert(self.key, cell.clone());
        cell
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
