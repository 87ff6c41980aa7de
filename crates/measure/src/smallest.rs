//! Which code is the smallest.
//!
//! `--optimise size` leaves out what trades bytes for cycles: no loop is unrolled,
//! no version of it made for a certain trip count, no blocks are carried together
//! unless the user says so. What else saves bytes depends on program and machine:
//! a function that is inlined saves calls and costs copies, a value worked out
//! before a loop may save an instruction or cost a spill, a pipelined loop may fill its
//! delay slots or need a prologue, wide bundles leave gaps at the ends of fetch
//! packets. So a few ways are compiled, and the one with the fewest bytes is
//! taken; of several, the fastest on short messages, the first in the list where
//! those are equal.
//!
//! Counted are the bytes of the measured function with all it calls, and of the
//! tables that the compiler itself makes: copies in other blocks of memory or in another
//! order of bytes. The cipher's own tables are the same in every way.

use crate::chosen::Chosen;
use crate::error::MeasureError;
use crate::pipeline::Lean;
use crate::sizes;
use ciphermill_machine::Machine;

/// Sizes of functions that are inlined everywhere: as for fast code, and none.
const INLINED: [u32; 2] = [ciphermill_opt::INLINE_UP_TO, 0];
/// Instructions that issue together in straight code, where several can.
const AT_ONCE: [usize; 3] = [0, 2, 1];

/// The smallest of the programs that `make` makes; `driver` is the export that is
/// measured.
///
/// # Errors
/// Those of `make` and `cycles`.
pub fn choose(
    machine: &Machine,
    driver: &str,
    make: impl Fn(Option<Lean>) -> Result<Chosen, MeasureError>,
    cycles: impl Fn(&Chosen) -> Result<f64, MeasureError>,
) -> Result<Chosen, MeasureError> {
    let mut smallest: Vec<Chosen> = Vec::new();
    let mut least = u64::MAX;
    for lean in ways(machine) {
        let chosen = make(Some(lean))?;
        let bytes = bytes(&chosen, driver);
        if bytes < least {
            (least, smallest) = (bytes, Vec::new());
        }
        if bytes == least {
            smallest.push(chosen);
        }
    }
    let mut best: Option<(f64, Chosen)> = None;
    let several = smallest.len() > 1;
    for chosen in smallest {
        let cycles = if several { cycles(&chosen)? } else { 0.0 };
        if best.as_ref().is_none_or(|b| cycles < b.0) {
            best = Some((cycles, chosen));
        }
    }
    best.map(|b| b.1).ok_or_else(|| MeasureError::internal("no small variant of the code was tried"))
}

/// Every way that is compiled.
pub(crate) fn ways(machine: &Machine) -> Vec<Lean> {
    let explicit = machine.issue.explicit;
    let mut all = Vec::new();
    for inline_up_to in INLINED {
        for hoist in [true, false] {
            let lean = Lean { inline_up_to, hoist, pipelined: false, at_once: 0 };
            let wide = |&n: &usize| n == 0 || explicit && n < usize::from(machine.issue.width);
            all.extend(AT_ONCE.into_iter().filter(wide).map(|at_once| Lean { at_once, ..lean }));
            all.extend(explicit.then_some(Lean { pipelined: true, ..lean }));
        }
    }
    all
}

/// Code, and what the compiler itself put into memory.
fn bytes(chosen: &Chosen, driver: &str) -> u64 {
    let program = &chosen.program;
    let code = program.export(driver).map_or(0, |f| sizes::code_bytes(program, f));
    code + program.system.len() as u64
}
