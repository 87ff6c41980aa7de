//! What measurements of one cipher have in common, kept while the process lives.
//!
//! A sweep measures one module on hundreds of machines that differ in width or
//! ports. The optimised module, the trip counts of its loops and what the
//! reference interpreter makes of a message are then the same; each is kept under
//! a hash of everything that it is made from. Only so many are kept, the latest;
//! nothing depends on whether one is found.

use crate::profile::Profile;
use crate::sparse::Sparse;
use ciphermill_codegen::tables::Tables;
use ciphermill_interp::Misaligned;
use ciphermill_ir::Module;
use ciphermill_program::Program;
use sha2::{Digest, Sha256};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// A hash of what a value is made from.
pub type Key = [u8; 32];

/// The hash of some parts, which are told apart.
pub fn key(parts: &[&[u8]]) -> Key {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

/// The latest values of a kind.
pub struct Memo<V> {
    values: Mutex<VecDeque<(Key, Arc<V>)>>,
    most: usize,
}

impl<V> Memo<V> {
    const fn new(most: usize) -> Memo<V> {
        Memo { values: Mutex::new(VecDeque::new()), most }
    }

    /// The value of a key, made if it is not there. Two threads may make the same.
    ///
    /// # Errors
    /// What `make` gives; errors are not kept.
    pub fn get<E>(&self, key: Key, make: impl FnOnce() -> Result<V, E>) -> Result<Arc<V>, E> {
        let find = |list: &mut VecDeque<(Key, Arc<V>)>| {
            let at = list.iter().position(|(k, _)| *k == key)?;
            let found = list.remove(at)?;
            list.push_back(found.clone());
            Some(found.1)
        };
        if let Some(found) = find(&mut self.lock()) {
            return Ok(found);
        }
        let made = Arc::new(make()?);
        let mut list = self.lock();
        if find(&mut list).is_none() {
            list.push_back((key, made.clone()));
            if list.len() > self.most {
                list.pop_front();
            }
        }
        Ok(made)
    }

    fn forget(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<(Key, Arc<V>)>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A machine with what compilation wants to know of it, which takes longer to make than a small
/// cipher to compile.
pub struct Described {
    pub tables: Tables,
    /// Of the texts that it is made from.
    pub key: Key,
}

/// A program, and where in memory its context should stand: `(modulus,
/// residue)`, where that makes it faster.
pub struct Compiled {
    pub program: Program,
    pub context_at: Option<(u32, u32)>,
}

/// What the reference interpreter made of a plan.
pub struct Judged {
    pub pages: u64,
    /// Steps that it took, set-up and all.
    pub steps: u64,
    /// Results of the measured calls.
    pub results: Vec<Vec<u64>>,
    /// All of linear memory afterwards.
    pub memory: Sparse,
    /// Results and memory of the plan's passes, if it has any.
    pub passes: Option<(Vec<Vec<u64>>, Sparse)>,
}

pub static DESCRIBED: Memo<Described> = Memo::new(20);
pub static COMPILED: Memo<Compiled> = Memo::new(24);
pub static OPTIMISED: Memo<Module> = Memo::new(64);
pub static PROFILES: Memo<Profile> = Memo::new(64);
pub static MISALIGNED: Memo<Misaligned> = Memo::new(64);
pub static JUDGED: Memo<Judged> = Memo::new(48);

/// Forget it all: whoever measures the same again to see whether the same comes of it wants it
/// made again.
pub fn forget() {
    DESCRIBED.forget();
    COMPILED.forget();
    OPTIMISED.forget();
    PROFILES.forget();
    MISALIGNED.forget();
    JUDGED.forget();
}

/// Larger memories are not kept.
pub const LARGEST: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_kept_and_errors_are_not() {
        let kept: Memo<u32> = Memo::new(2);
        let get = |k: &[u8], v: u32| *kept.get::<()>(key(&[k]), || Ok(v)).unwrap();
        assert_eq!((get(b"a", 1), get(b"b", 2), get(b"a", 9)), (1, 2, 1));
        assert_eq!(get(b"c", 3), 3);
        // b was the one not asked for.
        assert_eq!((get(b"a", 9), get(b"b", 9)), (1, 9));
        assert_eq!(kept.get(key(&[b"x"]), || Err("no")), Err("no"));
        assert_eq!(get(b"x", 7), 7);
        kept.forget();
        assert_eq!(get(b"x", 8), 8);
    }

    #[test]
    fn parts_are_told_apart() {
        assert_ne!(key(&[b"ab", b"c"]), key(&[b"a", b"bc"]));
    }
}
