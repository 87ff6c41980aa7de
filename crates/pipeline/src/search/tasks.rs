//! What is scheduled: forms of a loop, divided between the clusters.

use super::clusters::{self, LEAST};
use super::list::plan::Plan;
use super::preset::{Preset, Stands};
use super::state::{Loop, State, Task};
use super::threads::together;
use super::{Form, Search, begin, divide};
use crate::graph::{self, Neighbours};
use crate::place::{self, At, Free, Ops, Sides};
use crate::{apart, color, order, stages};
use ciphermill_program::search_log::Moves;
use ciphermill_vcode::CompileError;
use std::sync::Arc;

/// A form whose nodes are divided between the clusters.
#[derive(Clone)]
pub struct Division<'s> {
    /// Its form, by its number.
    pub form: usize,
    pub all: Loop<'s>,
    /// Where operations of its rounds stand.
    pub stands: Option<Arc<[Option<Stands>]>>,
}

/// A division that may be tried.
struct Candidate<'s> {
    /// What its interval may come down to.
    reach: i64,
    /// The less, the farther it will.
    key: i64,
    at: Vec<At>,
    division: Division<'s>,
}

impl<'s> Candidate<'s> {
    /// With operations that stand as the form says.
    fn with(mut self, preset: Option<&Preset>) -> Candidate<'s> {
        self.division.stands = preset.map(|preset| preset.of(&self.division.all.task.ops).into());
        self
    }
}

impl Division<'_> {
    /// What all attempts to place its operations share.
    pub(super) fn plan(&self, sides: &Sides<'_>) -> Plan {
        let plan = Plan::new(sides, &self.all.task.ops, self.all.task.apart);
        match &self.stands {
            Some(stands) => plan.following(stands),
            None => plan,
        }
    }
}

impl<'s> Search<'s> {
    /// The forms, divided between the clusters: of each first the division that may come down
    /// farthest.
    ///
    /// # Errors
    /// When some operation has no variant.
    pub(super) fn divisions(&mut self, forms: &[Form], bound: i64) -> Result<Vec<Division<'s>>, CompileError> {
        let divide = self.params.divide;
        let several = self.sides.files.len() > 1;
        let mut all: Vec<Candidate<'s>> = Vec::new();
        for (form, of) in forms.iter().enumerate() {
            let one_cluster = || vec![vec![At { unit: 0, result: 0 }; of.body.nodes.len()]];
            let plain = match &of.preset {
                Some(_) => Vec::new(),
                None if several => divide::plain(&of.body, self.sides),
                None => one_cluster(),
            };
            for at in plain.into_iter().chain(of.fits.clone()) {
                let candidate = self.candidate(form, of, at, bound)?;
                all.extend(candidate.map(|c| c.with(of.preset.as_ref())));
            }
        }
        let near = bound + bound * divide.near / 100;
        if several && self.params.divides && (self.thorough || all.iter().all(|c| c.reach > near)) {
            let best = all.iter().map(|c| c.key).min().unwrap_or(0);
            let of = |form: usize| all.iter().filter(move |c| c.division.form == form);
            let worth = |form: &usize| of(*form).any(|c| 100 * c.key <= divide.worth * best);
            let free = |form: &usize| forms[*form].preset.is_none();
            let wanted: Vec<usize> = (0..forms.len()).filter(free).filter(worth).collect();
            let made = together(wanted, |form| {
                let plain: Vec<Vec<At>> = of(form).map(|c| c.at.clone()).collect();
                let ii = bound.max(graph::of_form(self.sides, &forms[form].body));
                let ii = ii + ii * divide.slack / 100;
                (form, divide::improved(&forms[form].body, self.sides, self.params, (ii, self.seed), &plain))
            });
            for (form, (divisions, changes)) in made {
                self.spend(Moves::work(changes / CHANGES_A_MOVE));
                for at in divisions {
                    all.extend(self.candidate(form, &forms[form], at, bound)?);
                }
            }
        }
        all.sort_by_key(|c| (c.division.form, c.key));
        let mut of_form = vec![0; forms.len()];
        let mut ranked: Vec<(i64, Candidate<'s>)> = Vec::new();
        for candidate in all {
            let before = &mut of_form[candidate.division.form];
            ranked.push((candidate.key + *before * candidate.key * divide.later / 100, candidate));
            *before += 1;
        }
        ranked
            .sort_by_key(|(key, c)| (forms[c.division.form].spare, c.division.stands.is_none(), *key, c.division.form));
        self.log.divisions = ranked.len();
        Ok(ranked.into_iter().map(|(_, c)| c.division).collect())
    }

    /// A form with a division, and what its interval may come down to: what units and circuits allow,
    /// or registers for its values, whichever is more. None where values from outside leave too few.
    fn candidate(
        &self,
        form: usize,
        of: &Form,
        at: Vec<At>,
        bound: i64,
    ) -> Result<Option<Candidate<'s>>, CompileError> {
        let Some(all) = self.divided(of, &at)? else { return Ok(None) };
        let ops = &all.task.ops;
        let rec_mii = graph::Orders::of(ops).rec_mii(ops);
        let least = clusters::least(&all, ops).max(rec_mii).max(bound);
        let way = begin::ways(&all);
        let last = way.iter().copied().max().unwrap_or(0);
        let late: Vec<i64> = way.iter().map(|w| last - w).collect();
        let held =
            begin::lifetimes(&all, &late, least) * self.params.divide.longer / (100 * self.registers(&all).max(1));
        let reach = least.max(held);
        // Of two that may come down as far, the one with more room on the other side does.
        let key = reach + least.min(held) / 8;
        // Where more values live in the order of its operations than there are registers, some have to wait for others.
        let wanted = if self.rotation.is_none() { order::wanted(ops, &self.left(ops)).max(100) } else { 100 };
        let key = key * wanted / 100;
        Ok(Some(Candidate { reach, key, at, division: Division { form, all, stands: None } }))
    }

    /// A loop with its clusters; none where values from outside leave too few registers.
    pub(super) fn divided(&self, form: &Form, at: &[At]) -> Result<Option<Loop<'s>>, CompileError> {
        let mut ops = place::settle(&form.body, self.sides, at)?;
        let machine = self.sides.machine;
        let word = i64::from(machine.word_bits / 8);
        let own = form.kept.len() + form.body.parked;
        let first = |words: usize| i64::from(machine.abi.frame_reserve) + word * (words + own) as i64;
        ops.frame = self.words.map(|words| Free { first: first(words), banks: !form.body.based.is_empty() });
        let few = |ops: &Ops| color::left(self.sides, ops).iter().any(|left| *left < LEAST);
        if self.rotation.is_none() && few(&ops) {
            return Ok(None);
        }
        Ok(Some(self.with_clusters(ops)))
    }

    /// A loop whose operations have clusters.
    pub(super) fn with_clusters(&self, ops: Ops) -> Loop<'s> {
        let pool = match &self.rotation {
            Some(rotation) => vec![rotation.ring],
            None => color::pool(self.sides),
        };
        let near = Neighbours::of(&ops);
        let apart = apart(&ops, graph::res_mii(self.sides, &ops));
        let task = Task { ops, near, apart, pool, rotates: self.rotation.is_some() };
        Loop { sides: self.sides, task: Arc::new(task), params: self.params }
    }

    /// The division that a schedule has come to.
    pub(super) fn own(form: usize, state: &State<'s>) -> Division<'s> {
        let ops = state.ops();
        let task = Task { ops: ops.clone(), near: Neighbours::of(ops), ..(*state.all.task).clone() };
        Division { form, stands: None, all: Loop { task: Arc::new(task), ..state.all.clone() } }
    }

    /// Registers for the values of a loop.
    pub(super) fn registers(&self, all: &Loop<'s>) -> i64 {
        self.left(&all.task.ops).iter().sum()
    }

    /// Those of each cluster.
    pub(super) fn left(&self, ops: &Ops) -> Vec<i64> {
        match &self.rotation {
            Some(rotation) => vec![rotation.ring],
            None => color::left(self.sides, ops),
        }
    }

    /// Stages that an iteration may have that needs so many at the least.
    pub(super) fn stages(&self, least: i64) -> i64 {
        self.rotation.as_ref().map_or_else(|| stages(least), |rotation| rotation.stages)
    }
}

/// Changes of a division that take as long as a move.
const CHANGES_A_MOVE: u64 = 8;
