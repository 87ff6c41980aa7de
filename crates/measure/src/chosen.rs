//! The form of the code that was chosen, and trying several forms.

use crate::error::MeasureError;
use crate::hints::Wrong;
use crate::pipeline::Effort;
use crate::request::FormOf;
use ciphermill_program::Program;
use std::thread::Builder;

/// Bytes of stack for a thread in which a form is made: as much as a process begins with.
const STACK: usize = 8 << 20;

/// The program to be measured and its form.
pub struct Chosen {
    pub program: Program,
    /// Blocks carried through the loop over blocks together.
    pub jam: u32,
    /// Turns of the loop over rounds that stand in one turn of the loop over
    /// blocks; 1 when it is a loop of its own.
    pub unroll: u32,
    pub form: FormOf,
    /// Where the context is to stand in memory; see [`Interface::at`].
    pub context_at: Option<(u32, u32)>,
    /// What the module states of alignment and is not so.
    pub misaligned: Option<Wrong>,
    /// The search for this form, or for another that was tried, came to the end of its budget.
    pub cut: bool,
}

/// Steady-state cycles of a form, or what they are expected to become, and the form.
pub(crate) type Tried = (f64, Chosen);

/// The form with the fewest cycles, the first of those that are equal.
pub(crate) fn least(tried: impl IntoIterator<Item = Tried>) -> Option<Tried> {
    tried.into_iter().reduce(|best, next| if next.0 < best.0 { next } else { best })
}

/// Try forms at the same time. The threads are made for it: those of a pool would not be
/// there in a process that is forked from this one.
pub(crate) fn together<F: Copy + Send>(
    forms: &[F],
    effort: Effort,
    attempt: impl Fn(F, Effort) -> Result<Tried, MeasureError> + Sync,
) -> Result<Vec<Tried>, MeasureError> {
    let Some((last, before)) = forms.split_last() else { return Ok(Vec::new()) };
    let attempt = &attempt;
    std::thread::scope(|scope| {
        let start = |form: F| Builder::new().stack_size(STACK).spawn_scoped(scope, move || attempt(form, effort));
        let threads: Vec<_> = before.iter().map(|&form| (form, start(form))).collect();
        let own = attempt(*last, effort);
        let others = threads.into_iter().map(|(form, thread)| match thread.map(|t| t.join()) {
            Ok(Ok(tried)) => tried,
            Ok(Err(_)) => Err(MeasureError::internal("a form of the code could not be tried to its end")),
            // No more threads are to be had.
            Err(_) => attempt(form, effort),
        });
        others.chain([own]).collect()
    })
}
