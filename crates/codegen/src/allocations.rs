//! Register allocations of the latest functions of one machine.
//!
//! A module is compiled in several variants of which one is measured, and again for the other
//! direction or another size of key. Most of its functions are the same each time, and choosing an
//! order and registers for them takes longer than all the rest. What comes of it follows from the
//! machine, the function, its registers and the options in the key: looking it up changes how long a
//! compilation takes, never its result.

use ciphermill_vcode::{Allocated, CompileError, Registers, VFunc};
use std::collections::VecDeque;
use std::fmt::{Debug, Write};
use std::hash::{DefaultHasher, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

/// So many functions are remembered, enough for the variants of a module.
const MOST: usize = 48;

/// Two hashes of a function and of what else its allocation follows from.
pub(crate) type Key = (u64, u64);

/// A function in the order that was chosen, and its registers.
pub(crate) type Ordered = (VFunc, Allocated);

/// Those of one machine.
#[derive(Default)]
pub(crate) struct Allocations(Mutex<VecDeque<(Key, Arc<Ordered>)>>);

impl Allocations {
    /// What `make` gives, from memory where the same was asked lately.
    ///
    /// # Errors
    /// Those of `make`; they are not kept.
    pub fn get(
        &self,
        func: VFunc,
        registers: &Registers,
        how: (bool, bool),
        make: impl FnOnce(VFunc) -> Result<Ordered, CompileError>,
    ) -> Result<Arc<Ordered>, CompileError> {
        let key = key(&(&func, registers, how));
        let find = |latest: &mut VecDeque<(Key, Arc<Ordered>)>| {
            let found = latest.remove(latest.iter().position(|l| l.0 == key)?)?;
            latest.push_back(found.clone());
            Some(found.1)
        };
        let latest = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = find(&mut latest()) {
            return Ok(found);
        }
        let made = Arc::new(make(func)?);
        let mut latest = latest();
        if find(&mut latest).is_none() {
            latest.push_back((key, made.clone()));
            if latest.len() > MOST {
                latest.pop_front();
            }
        }
        Ok(made)
    }
}

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
