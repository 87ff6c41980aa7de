//! The search for a schedule of a loop.
//!
//! ```text
//! forms x divisions --first--> a schedule
//!        |                         |
//!        +---x starts --race-------+--> entrants --land--> a shorter one --narrow--> a shorter one
//!                  ^                                                                      |
//!                  +------------- the next race, at a shorter interval -------------------+
//! ```
//!
//! All works on one state ([`state`]): a complete modulo schedule whose broken rules are counted, and
//! which single moves change ([`moves`], [`clusters`]). What is scheduled is a *form* of the loop
//! whose nodes are *divided* between the clusters ([`tasks`], [`divide`]). The *first* schedule comes
//! of placing operation after operation while registers are counted ([`first`], [`list`]). A *race*
//! begins at a shorter interval in every way there is ([`race`], [`begin`], [`iterative`],
//! [`crate::order`]), moves each for a while, and goes on with the better part. What comes first *lands*
//! ([`land`]): rows go in where something is still broken. *Narrowing* takes rows out of a schedule
//! as long as what that breaks can be mended ([`shorten`]). Where moves do not mend a schedule, other values go to the
//! frame, or come back ([`respill`]). The next
//! race's interval lies between the best schedule so far and the longest interval that came to
//! nothing.
//!
//! One budget, in moves, ends a search. Its log says what each phase came to ([`SearchLog`]), and its
//! numbers are all in [`params`].

pub mod begin;
mod clusters;
pub mod divide;
mod first;
mod iterative;
mod land;
mod list;
pub mod moves;
pub mod params;
pub mod preset;
mod race;
mod respill;
mod shorten;
pub mod state;
mod tasks;
#[cfg(test)]
pub(crate) mod tests;
pub mod threads;

use super::body::Body;
use super::modulo::Schedule;
use super::place::{At, Sides};
use super::recorded::Finished;
use super::{color, graph};
use ciphermill_machine::Reg;
use ciphermill_program::search_log::{Moves, Phase, SearchLog};
use ciphermill_vcode::{CompileError, VReg};
use params::Params;
use preset::Preset;
use race::{Entrant, Race};
use state::State;
use tasks::Division;

/// A loop as it may be scheduled: with some of its values in the frame, or what several parts of
/// it read made for each.
#[derive(Clone)]
pub struct Form {
    pub body: Body,
    /// Values that are in the frame while the loop runs, and the offsets of their words.
    pub kept: Vec<(VReg, i64)>,
    /// A division between the clusters with which its values fit into the registers.
    pub fits: Option<Vec<At>>,
    /// Only for where the others lead to no good first schedule.
    pub spare: bool,
    /// Where nodes of its rounds stand.
    pub preset: Option<Preset>,
}

impl Form {
    /// A loop as it is.
    pub fn of(body: Body) -> Form {
        Form { body, kept: Vec::new(), fits: None, spare: false, preset: None }
    }
}

/// A schedule that holds, with registers for its values.
#[derive(Clone)]
pub struct Landed<'s> {
    pub form: usize,
    pub state: State<'s>,
    pub schedule: Schedule,
    pub registers: color::Assignment,
    /// Where registers rotate: places in the ring.
    pub names: Option<Vec<Option<i64>>>,
}

/// How values of a loop get rotating registers.
#[derive(Clone, Debug)]
pub struct Rotation {
    /// Registers that rotate.
    pub ring: i64,
    /// Stages that an iteration may have.
    pub stages: i64,
}

/// A search for a schedule of one loop.
pub struct Search<'s> {
    pub sides: &'s Sides<'s>,
    pub allocatable: &'s [Reg],
    pub rotation: Option<Rotation>,
    pub params: &'s Params,
    pub seed: u64,
    /// Otherwise what comes first is shortened a little, and that is all.
    pub thorough: bool,
    /// Words of the frame that are taken; none where values may not go there while a schedule is under way.
    pub words: Option<usize>,
    /// Moves that it has, and that are left.
    pub total: u64,
    pub budget: u64,
    pub log: SearchLog,
}

impl<'s> Search<'s> {
    /// The shortest schedule that is found of some forms of a loop, whose interval is at least
    /// `bound`; of the last form one may be known.
    ///
    /// # Errors
    /// When some operation has no variant.
    pub fn run(
        &mut self,
        forms: &[Form],
        known: Option<Finished>,
        bound: i64,
    ) -> Result<Option<Landed<'s>>, CompileError> {
        (self.log.forms, self.log.budget) = (forms.len(), self.total);
        let found = self.search(forms, known, bound);
        self.log.left = self.budget;
        found
    }

    fn search(
        &mut self,
        forms: &[Form],
        known: Option<Finished>,
        bound: i64,
    ) -> Result<Option<Landed<'s>>, CompileError> {
        let mut divisions = self.divisions(forms, bound)?;
        let bound = bound.max(self.behind_branch(&divisions));
        let known = known.and_then(|known| self.known(forms.len() - 1, known));
        let first = self.first(&mut divisions, bound);
        let mut first: Vec<Landed<'s>> = first.into_iter().chain(known).collect();
        let Some(mut best) = first.iter().min_by_key(|l| l.schedule.ii).cloned() else { return Ok(None) };
        let params = self.params;
        if !self.thorough {
            if params.races {
                best = self.races(&mut divisions, best, Vec::new(), bound, 0);
            }
            return Ok(Some(self.narrow(best, bound, params.rows_first)));
        }
        // What races have left a narrowing goes on with, and the next races with what that has left.
        for cycle in 0.. {
            let before = (best.schedule.ii, self.budget);
            if params.races {
                let all = std::mem::take(&mut first);
                best = self.races(&mut divisions, best, all, bound, cycle * params.races_at_most);
            } else if let Some(farthest) = self.farthest(std::mem::take(&mut first), bound) {
                best = farthest;
            }
            if params.narrows {
                let rows = if self.enough(&best, bound) { params.rows_first } else { params.rows };
                best = self.narrow(best, bound, rows);
            }
            if self.enough(&best, bound) {
                return Ok(Some(best));
            }
            let idle = self.budget == before.1 || cycle > 0 && best.schedule.ii == before.0;
            if best.schedule.ii <= bound || idle || self.budget < self.total / params.last_part {
                break;
            }
        }
        Ok(Some(best))
    }

    /// Is hardly anything left to gain?
    fn enough(&self, best: &Landed<'s>, bound: i64) -> bool {
        self.params.enough(best.schedule.ii, bound)
    }

    /// The branch issues so many cycles before the end of the first stage, behind what it waits for.
    fn behind_branch(&self, divisions: &[Division<'s>]) -> i64 {
        let behind = |d: &Division<'s>| {
            let ops = &d.all.task.ops;
            graph::Orders::of(ops).depth.last().map_or(0, |depth| depth + self.before_end(ops))
        };
        if self.rotation.is_some() { 0 } else { divisions.iter().map(behind).min().unwrap_or(0) }
    }

    /// Race after race, each at an interval between that of the best schedule and the last one that
    /// came to nothing, for half of what is left of the budget: all divisions in the first of all, and in
    /// the others those that came farthest in it and what the best schedule has made of its own. All schedules that there
    /// were before are compared where the first race comes to none.
    fn races(
        &mut self,
        divisions: &mut Vec<Division<'s>>,
        mut best: Landed<'s>,
        mut all: Vec<Landed<'s>>,
        bound: i64,
        first: u64,
    ) -> Landed<'s> {
        let params = self.params;
        let half = self.budget / 2;
        let mut failed = bound;
        let mut hopeless = 0;
        let (most, part, rounds) = match self.thorough {
            true => (params.races_at_most, params.race_part, params.race),
            false => (1, params.quick_race_part, params.quick_race),
        };
        for round in first..first + most {
            let ii = best.schedule.ii;
            let done = self.enough(&best, bound) && round > first;
            if self.budget <= half || ii <= bound || hopeless == params.hopeless || done {
                break;
            }
            let target = (failed + (ii - failed) * params.target / 100).min(ii - 1);
            let left = self.budget;
            if round > 0 {
                divisions.truncate(params.finalists);
                divisions.push(Search::own(best.form, &best.state));
            }
            let race = Race { ii: target, below: ii, round, fills: params.fills, moves: self.total / part, rounds };
            let (entrants, tried) = self.race(divisions, &race);
            if round == 0 {
                farthest_first(divisions, &entrants);
            }
            let broken = entrants.first().map_or(0, |e| e.state.left());
            let landed = if self.thorough { self.land_all(entrants, ii) } else { self.land_one(entrants, ii) };
            let to = landed.iter().map(|l| l.schedule.ii).min();
            let end = if landed.is_empty() { "broken" } else { "landed" };
            let work = left - self.budget;
            self.log.phases.push(Phase { phase: "race", from: target, to, tried, broken, work, end });
            let before = std::mem::take(&mut all);
            if landed.is_empty() {
                best = self.farthest(before, bound).unwrap_or(best);
            }
            match self.farthest(landed, bound) {
                Some(landed) if self.thorough => best = self.narrow(landed, bound, params.rows_first),
                Some(landed) => best = landed,
                None => {
                    failed = target;
                    let operations = best.state.ops().ops.len() as i64;
                    hopeless += u64::from(broken * params.far > operations);
                    // The next race is then one below what rows come to that are taken out.
                    if self.thorough && params.narrows && hopeless == 1 {
                        best = self.narrow(best, bound, params.rows_first);
                    }
                }
            }
        }
        self.farthest(all, bound).unwrap_or(best)
    }

    pub(super) fn spend(&mut self, moves: Moves) {
        self.budget = self.budget.saturating_sub(moves.work);
        self.log.moves += moves;
    }
}

/// Divisions in the order in which they came in, and then the others.
fn farthest_first(divisions: &mut Vec<Division<'_>>, entrants: &[Entrant<'_>]) {
    let mut seen = vec![false; divisions.len()];
    let places = entrants.iter().map(|e| e.division).chain(0..divisions.len());
    *divisions = places.filter(|&k| !std::mem::replace(&mut seen[k], true)).map(|k| divisions[k].clone()).collect();
}
