//! Which variants of the code have kept schedules.
//!
//! A variant in which a schedule was kept for this very measurement, and whose longest loop still takes a kept one, was the
//! best when that was found: no other is tried. What was kept for another measurement does not tell: a loop of one block
//! at a time may be the tail of a variant that nobody would choose for several.

use crate::chosen::{Chosen, Tried, least, together};
use crate::error::MeasureError;
use crate::pipeline::SearchEffort;
use ciphermill_program::{PipelinedLoop, PlainLoop};

/// The fastest of the variants in which schedules were kept whose longest loop still takes one; None where there is none.
/// `driver` is the export that is measured.
///
/// # Errors
/// Those of `make` and `cycles`.
pub(crate) fn choose<V: Copy + Send>(
    kept_in: &[V],
    driver: &str,
    make: impl Fn(V, SearchEffort) -> Result<Chosen, MeasureError> + Sync,
    cycles: impl Fn(&Chosen) -> Result<f64, MeasureError>,
) -> Result<Option<Chosen>, MeasureError> {
    let compiled = |variant, effort| Ok((0.0, make(variant, effort)?));
    let mut found = together(kept_in, SearchEffort::Full, compiled)?;
    found.retain(|t| main_kept(&t.1, driver));
    if let [_] = found[..] {
        return Ok(found.pop().map(|t| t.1));
    }
    let tried: Result<Vec<Tried>, _> = found.into_iter().map(|t| Ok((cycles(&t.1)?, t.1))).collect();
    Ok(least(tried?).map(|t| t.1))
}

/// The longest loop that the driver runs.
pub(crate) fn longest<'c>(chosen: &'c Chosen, driver: &str) -> Option<&'c PipelinedLoop> {
    let program = &chosen.program;
    let reached = program.export(driver).map(|driver| program.reached(driver)).unwrap_or_default();
    program.loops.iter().filter(|l| reached.contains(&l.func)).max_by_key(|l| l.ii)
}

/// Does the main loop that the driver runs take a kept schedule? It does not where an innermost loop that is not
/// pipelined has more instructions: then a short loop, which copies some words, would stand for the cipher's.
fn main_kept(chosen: &Chosen, driver: &str) -> bool {
    let program = &chosen.program;
    let Some(kept) = longest(chosen, driver).filter(|l| l.kept_schedule) else { return false };
    let size = |func: u32, block: u32| -> usize {
        let block = program.funcs.get(func as usize).and_then(|f| f.blocks.get(block as usize));
        block.map_or(0, |b| b.bundles.iter().map(|bundle| bundle.insts.len()).sum())
    };
    let reached = program.export(driver).map(|driver| program.reached(driver)).unwrap_or_default();
    let innermost = program.plain_loops.iter().filter(|l| INNERMOST.contains(&l.reason));
    let longer = |l: &PlainLoop| l.blocks.iter().map(|&b| size(l.func, b)).sum::<usize>() > size(kept.func, kept.block);
    !innermost.filter(|l| reached.contains(&l.func)).any(longer)
}

/// Why a loop without a loop or a call in it is not pipelined (`codegen/src/plain.rs`).
const INNERMOST: [&str; 3] = ["blocks", "size", "no_schedule"];
