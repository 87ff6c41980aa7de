//! Thousands of modules on all cores.
//!
//! Each module has a number of its own, from which it can be made again: the kinds
//! of modules take turns. A module that fails is shrunk and saved where the regression
//! test finds it.

use crate::check::{Mismatch, check};
use crate::kind::Kind;
use crate::rng::Rng;
use crate::shrink::shrink;
use crate::subject::Subject;
use rayon::prelude::*;
use std::ops::AddAssign;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Time spent on making one failing module smaller.
const SHRINKING: Duration = Duration::from_secs(40);

/// What has been done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    pub modules: usize,
    pub calls: usize,
    pub traps: usize,
    /// Runs compared with the reference: modules times the ways of each.
    pub runs: usize,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.modules += other.modules;
        self.calls += other.calls;
        self.traps += other.traps;
        self.runs += other.runs;
    }
}

/// A module that showed a difference.
#[derive(Clone, Debug)]
pub struct Failure {
    pub number: u64,
    pub wasm: Vec<u8>,
    pub mismatch: Mismatch,
}

/// Check so many modules from a number on, on all cores: those of one kind alone, or
/// the kinds in turn. Numbers whose module has more than `bytes` bytes are passed over.
pub fn run(first: u64, count: u64, kind: Option<Kind>, bytes: usize, subjects: &[Subject]) -> (Tally, Vec<Failure>) {
    let one = |i: u64| {
        let number = first.wrapping_add(i);
        let mut tally = Tally::default();
        let made = kind.unwrap_or(Kind::of(number)).module(number);
        let Some(wasm) = made.filter(|w| w.len() <= bytes) else { return (tally, Vec::new()) };
        tally.modules = 1;
        let subjects: Vec<Subject> = subjects.iter().filter(|s| s.takes(number)).cloned().collect();
        match check(&wasm, &subjects) {
            Ok(checked) => {
                (tally.calls, tally.traps, tally.runs) = (checked.calls, checked.traps, checked.ways);
                (tally, Vec::new())
            }
            Err(mismatch) => (tally, vec![Failure { number, wasm, mismatch }]),
        }
    };
    let merge = |mut a: (Tally, Vec<Failure>), b: (Tally, Vec<Failure>)| {
        a.0 += b.0;
        a.1.extend(b.1);
        a
    };
    let (tally, mut failures) = (0..count).into_par_iter().map(one).reduce(Default::default, merge);
    failures.sort_by_key(|f| f.number.wrapping_sub(first));
    (tally, failures)
}

/// Make a failing module small and save it; the file's path.
///
/// # Errors
///
/// When the file cannot be written.
pub fn save(failure: &Failure, subjects: &[Subject], folder: &Path) -> std::io::Result<PathBuf> {
    // Only the subject it failed on: the others would cost time, and the small
    // module should show the same failure.
    let same: Vec<Subject> = subjects.iter().filter(|s| s.to_string() == failure.mismatch.subject).cloned().collect();
    let mut fails = |wasm: &[u8]| check(wasm, &same).is_err_and(|m| m.subject == failure.mismatch.subject);
    let small = if fails(&failure.wasm) { shrink(&failure.wasm, SHRINKING, &mut fails) } else { failure.wasm.clone() };
    std::fs::create_dir_all(folder)?;
    let slug: String =
        failure.mismatch.subject.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let path = folder.join(format!("{}-{}.wasm", slug.replace("--", "-"), failure.number));
    std::fs::write(&path, small)?;
    Ok(path)
}

/// A number from the environment.
pub fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// `CIPHERMILL_SEED`, or a number from the clock.
pub fn seed() -> u64 {
    setting("CIPHERMILL_SEED").unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Rng::new(now.as_nanos() as u64).next() >> 16
    })
}
