//! Instructions that a program would like to have.
//!
//! Five kinds of candidates are looked for in code that runs often, each with
//! the text of the semantics that an extension file needs:
//!
//! * [`cones`]: convex subgraphs of a block with few inputs and outputs (Atasu,
//!   Pozzi and Ienne, DAC 2003), whatever their operations are; [`search`] finds
//!   them;
//! * [`maps`], matrices: values that are a matrix over GF(2) times another value,
//!   however the program computes them;
//! * [`maps`], tables: lookups in constant tables with a byte of a word, and what
//!   they are added to; [`wide`], the same where words have 64 bits;
//! * [`products`]: carry-less products of two words, of shifts and masks or of products of integers;
//! * [`modular`]: products and sums that are reduced modulo a number.
//!
//! Candidates that are the same but for constants become one, with immediates. How much a
//! candidate saves is an estimate here, of operations and of how often they ran; what it really saves is for whoever compiles the
//! program with it to measure, and what it costs, for synthesis.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod candidate;
pub mod cones;
mod cost;
mod maps;
mod meaning;
mod modular;
mod order;
mod products;
mod search;
mod text;
mod wide;

pub use candidate::{Candidate, Counts, Limits};

use ciphermill_ir::{FuncId, Module};
use ciphermill_machine::Machine;

/// Candidates in the code that ran, those that save most first.
///
/// `module` is optimised; `funcs` are its functions as selection would take
/// them, with the same numbers of blocks.
pub fn discover(
    module: &Module,
    funcs: &[(FuncId, ciphermill_ir::Func)],
    machine: &Machine,
    counts: &Counts,
    limits: Limits,
) -> Vec<Candidate> {
    let (one, several): (Vec<_>, Vec<_>) =
        cones::candidates(funcs, machine, counts, limits).into_iter().partition(|c| c.outputs == 1);
    let mut kinds = vec![one, several, maps::matrices(module, machine, counts)];
    kinds.push(products::candidates(module, machine, counts, limits));
    kinds.push(modular::candidates(module, machine, counts, limits));
    if machine.word_bits == 64 {
        kinds.push(wide::tables(module, machine, counts, limits));
    } else if limits.inputs > 1 {
        kinds.push(maps::tables(module, counts));
    }
    let mut all = Vec::new();
    for mut found in kinds {
        found.sort_by(|a, b| b.saves.cmp(&a.saves).then_with(|| a.semantics.cmp(&b.semantics)));
        found.truncate(limits.most);
        all.extend(found);
    }
    all.sort_by(|a, b| b.saves.cmp(&a.saves).then_with(|| a.semantics.cmp(&b.semantics)));
    all
}
