//! What is proved of a pipelined loop's initiation interval: as data and in words.

use ciphermill_bounds::model::Loop;
use ciphermill_bounds::{Bound, all, greatest, refusal};
use ciphermill_program::search_log::SearchLog;
use ciphermill_program::{PipelinedLoop, Program};
use serde::Serialize;
use std::sync::Arc;

/// A pipelined loop and its bounds.
#[derive(Clone, Debug, Serialize)]
pub struct LoopBounds {
    pub function: String,
    /// Number of the block in its function that the iterations run in.
    pub block: u32,
    pub ii: u32,
    /// No schedule has a smaller II.
    pub least: u32,
    pub bounds: Vec<LoopBound>,
    /// What the search for its schedule did; none where that is a kept one.
    pub search: Option<SearchLog>,
}

/// A bound with a proof that was checked.
#[derive(Clone, Debug, Serialize)]
pub struct LoopBound {
    /// The kind of proof: `resources`, `circuit`, `joint`, `relaxation` or `registers`.
    pub certificate: &'static str,
    /// No schedule has a smaller II,
    pub least: u32,
    /// `always`; where every value stays in a register and each operation runs once (`registers`); or
    /// with the operations that were scheduled, on their clusters (`division`).
    pub holds: &'static str,
    pub because: String,
}

/// All that is proved of a loop.
#[derive(Clone, Debug, Default)]
pub struct Proofs {
    /// Whatever runs where.
    pub plain: Vec<Bound>,
    /// With its operations as they are divided.
    pub divided: Vec<Bound>,
}

impl Proofs {
    /// All bounds, which takes its time; none where none were asked of the loop.
    ///
    /// # Errors
    /// When one refuses the II that the loop has: a fault of ours.
    pub fn of(l: &PipelinedLoop) -> Result<Proofs, String> {
        let ii = i64::from(l.ii);
        // All values of what was scheduled are in registers; others of the loop may be elsewhere.
        for (form, registers) in [(&l.plain, false), (&l.divided, true)] {
            if let Some((form, bound)) = form.as_ref().and_then(|form| Some((form, refusal(form, ii, registers)?))) {
                return Err(format!("a loop has an II of {ii}, which is refused: {}", bound.told(form)));
            }
        }
        let of = |form: &Option<Arc<Loop>>| form.as_ref().map_or(Vec::new(), |form| all(form, ii));
        Ok(Proofs { plain: of(&l.plain), divided: of(&l.divided) })
    }
}

/// A loop's bounds as data.
pub fn listed(program: &Program, l: &PipelinedLoop, proofs: &Proofs) -> LoopBounds {
    let one = |b: &Bound, form: &Option<Arc<Loop>>, holds| LoopBound {
        certificate: b.certificate.kind(),
        least: b.least as u32,
        holds,
        because: form.as_ref().map_or(String::new(), |form| b.told(form)),
    };
    let holds = |b: &Bound| if b.certificate.needs_registers() { "registers" } else { "always" };
    let plain = proofs.plain.iter().map(|b| one(b, &l.plain, holds(b)));
    let divided = proofs.divided.iter().map(|b| one(b, &l.divided, "division"));
    LoopBounds {
        function: program.funcs[l.func as usize].name.clone(),
        block: l.block,
        ii: l.ii,
        least: least(l, &proofs.plain),
        bounds: plain.chain(divided).collect(),
        search: l.search.as_deref().cloned(),
    }
}

/// No schedule has a smaller II, by these bounds and an exact scheduler's word. Where no bounds were
/// asked, by what the search began with: that may count copies that another form of the loop has not.
pub fn least(l: &PipelinedLoop, bounds: &[Bound]) -> u32 {
    let proved = greatest(bounds, false).map_or(0, |b| b.least as u32).max(l.lower_bound);
    if l.plain.is_some() { proved.max(1) } else { proved.max(l.res_mii).max(l.rec_mii) }
}

/// The bound that says so; none where an exact scheduler does, or none was asked.
fn proof<'a>(l: &PipelinedLoop, bounds: &'a [Bound]) -> Option<&'a Bound> {
    greatest(bounds, false).filter(|b| b.least == i64::from(least(l, bounds)))
}

/// The kind of that proof.
pub fn certificate(l: &PipelinedLoop, bounds: &[Bound]) -> &'static str {
    match proof(l, bounds) {
        Some(bound) => bound.certificate.kind(),
        None if l.asked.is_empty() => "none",
        None => "solver",
    }
}

/// In words why no II below the least is possible.
pub fn because(l: &PipelinedLoop, bounds: &[Bound]) -> Option<String> {
    Some(proof(l, bounds)?.told(l.plain.as_deref()?))
}

/// In words, to follow what was said of a loop, why no smaller II is possible or what is open.
pub fn refused(l: &PipelinedLoop, proofs: &Proofs) -> String {
    let known = least(l, &proofs.plain);
    let why = because(l, &proofs.plain);
    if l.ii <= known {
        return why.map_or(".".to_owned(), |why| format!(": an II of {} is refused, because {why}.", known - 1));
    }
    let why = why.map_or(String::new(), |why| format!(", because {why}"));
    let open = l.ii - 1;
    let mut out = format!(". No II below {known} is possible{why}. {open} is open: nothing proves it impossible");
    let above = |b: &&Bound| b.least > i64::from(known);
    let registers = greatest(&proofs.plain, true).filter(above);
    let divided = greatest(&proofs.divided, true).filter(above);
    let conditional = [
        (registers, &l.plain, "With every value in a register and no operation run twice"),
        (divided, &l.divided, "With the operations that were chosen, on these clusters"),
    ];
    for (bound, form, condition) in conditional {
        if let Some((bound, form)) = bound.zip(form.as_ref()) {
            out += &format!(". {condition}, none below {} is, because {}", bound.least, bound.told(form));
        }
    }
    out + "."
}
