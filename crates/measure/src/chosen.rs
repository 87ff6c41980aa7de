//! The variant of the code that was chosen, and trying several variants.

use crate::error::MeasureError;
use crate::hints::Wrong;
use crate::pipeline::SearchEffort;
use crate::request::Unrolling;
use ciphermill_program::Program;
use std::thread::Builder;

/// Bytes of stack for a thread that compiles a variant: as much as a process begins with.
const STACK: usize = 8 << 20;

/// The program to be measured, and which variant it is.
pub struct Chosen {
    pub program: Program,
    /// Blocks that one iteration processes together.
    pub jam: u32,
    /// Iterations of the loop over the cipher's rounds that are unrolled into the loop over blocks;
    /// 1 where it is a loop of its own.
    pub unroll: u32,
    pub unrolling: Unrolling,
    /// Where the context is to stand in memory; see [`Interface::at`].
    pub context_at: Option<(u32, u32)>,
    /// What the module states of alignment and is not so.
    pub misaligned: Option<Wrong>,
    /// The search for this variant, or for another that was tried, came to the end of its budget.
    pub cut: bool,
}

/// Steady-state cycles of a variant, or what they are expected to become, and the variant.
pub(crate) type Tried = (f64, Chosen);

/// The variant with the fewest cycles, the first of those that are equal.
pub(crate) fn least(tried: impl IntoIterator<Item = Tried>) -> Option<Tried> {
    tried.into_iter().reduce(|best, next| if next.0 < best.0 { next } else { best })
}

/// Try variants at the same time. The threads are made for it: those of a pool would not be
/// there in a process that is forked from this one.
pub(crate) fn together<F: Copy + Send>(
    variants: &[F],
    effort: SearchEffort,
    attempt: impl Fn(F, SearchEffort) -> Result<Tried, MeasureError> + Sync,
) -> Result<Vec<Tried>, MeasureError> {
    let Some((last, before)) = variants.split_last() else { return Ok(Vec::new()) };
    let attempt = &attempt;
    std::thread::scope(|scope| {
        let start = |variant: F| Builder::new().stack_size(STACK).spawn_scoped(scope, move || attempt(variant, effort));
        let threads: Vec<_> = before.iter().map(|&variant| (variant, start(variant))).collect();
        let own = attempt(*last, effort);
        let others = threads.into_iter().map(|(variant, thread)| match thread.map(|t| t.join()) {
            Ok(Ok(tried)) => tried,
            Ok(Err(_)) => Err(MeasureError::internal("a variant of the code could not be tried to its end")),
            // No more threads are to be had.
            Err(_) => attempt(variant, effort),
        });
        others.chain([own]).collect()
    })
}
