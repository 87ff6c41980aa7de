//! The first schedule of a loop.
//!
//! Registers are counted while operations are placed ([`super::list`]), at intervals that are halved. What
//! that places nothing of is spread out at longer and longer intervals, as in a race.

use super::list;
use super::list::plan::Plan;
use super::list::policies::POLICIES;
use super::race::Race;
use super::state::{Loop, State};
use super::tasks::Division;
use super::threads::together;
use super::{Landed, Search, begin, clusters};
use crate::recorded::Finished;
use ciphermill_program::search_log::{Moves, Phase};
use std::cell::Cell;
use std::collections::{BTreeSet, VecDeque};

/// Operations that are looked at in as long as two moves take.
const LOOKS: u64 = 2;
/// An interval of which so many parts are more than what failed is short enough: rows are taken out
/// of it sooner than it is placed anew.
const CLOSE: i64 = 64;
/// The part of an interval by which the next is longer that is tried.
const STEEP: i64 = 6;
/// After so many intervals that were too short the longest is asked.
const STEPS: u64 = 3;
/// A schedule placed so may have a few values too many, for which it is moved so much for each
/// operation.
const SETTLED: u64 = 20;

impl<'s> Search<'s> {
    /// First schedules of some divisions, among them the shortest; of these the first ones stay, and those of them
    /// that have one.
    pub(super) fn first(&mut self, divisions: &mut Vec<Division<'s>>, bound: i64) -> Vec<Landed<'s>> {
        let listed = self.listed(divisions, bound);
        if listed.is_empty() { self.ascended(divisions, bound) } else { listed }
    }

    /// A schedule that is known of a form.
    pub(super) fn known(&mut self, form: usize, known: Finished) -> Option<Landed<'s>> {
        let all = self.with_clusters(known.ops);
        let state = State::carried_with(&all, &known.schedule, &all.task.ops)?;
        let landed = self.allot(form, &state).ok()?;
        let to = Some(landed.schedule.ii);
        let (from, end) = (landed.schedule.ii, "landed");
        self.log.phases.push(Phase { phase: "kept", from, to, tried: 1, broken: 0, work: 0, end });
        Some(landed)
    }

    fn listed(&mut self, divisions: &mut Vec<Division<'s>>, bound: i64) -> Vec<Landed<'s>> {
        let most = if self.thorough { self.params.divisions } else { self.params.quick_divisions };
        if !self.params.lists {
            divisions.truncate(most);
            return Vec::new();
        }
        let before = self.budget;
        let mut waiting: VecDeque<Division<'s>> = std::mem::take(divisions).into();
        let mut best: Option<Landed<'s>> = None;
        let mut all: Vec<Landed<'s>> = Vec::new();
        let mut tried = 0;
        let poor =
            |best: &Option<Landed<'s>>| best.as_ref().is_none_or(|b| 100 * b.schedule.ii > self.params.poor * bound);
        let (mut forms, mut barred): (BTreeSet<usize>, BTreeSet<usize>) = Default::default();
        let half = self.budget / 2;
        while best.is_none() || self.budget > half && (divisions.len() < most || poor(&best)) {
            // Two at a time, however many threads there are; behind the first ones other forms alone. A form with a
            // division that has no schedule at any interval wants too many registers: the others come first.
            let enough = divisions.len() >= most && best.is_some();
            let other = |d: &Division<'s>| !enough || !forms.contains(&d.form);
            let mut next = taken(&mut waiting, |d| other(d) && !barred.contains(&d.form));
            if next.is_empty() && best.is_none() {
                next = taken(&mut waiting, other);
            }
            forms.extend(next.iter().map(|d| d.form));
            if next.is_empty() {
                break;
            }
            tried += next.len() as u64;
            let found = together(next, |division| {
                let (landed, moves) = self.halved(&division, bound);
                (division, landed, moves)
            });
            for (division, landed, moves) in found {
                self.spend(moves);
                if landed.is_none() {
                    barred.insert(division.form);
                }
                all.extend(landed.clone());
                let shorter = landed.filter(|l| best.as_ref().is_none_or(|b| l.schedule.ii < b.schedule.ii));
                if divisions.len() < most || shorter.is_some() {
                    divisions.push(division);
                }
                best = shorter.or(best);
            }
        }
        let to = best.as_ref().map(|l| l.schedule.ii);
        let end = if to == Some(bound) { "bound" } else { "exhausted" };
        let work = before - self.budget;
        self.log.phases.push(Phase { phase: "list", from: bound, to, tried, broken: 0, work, end });
        all
    }

    /// The shortest schedule of a division that is found at longer and longer intervals, and then by
    /// halving: success is taken to be monotone.
    fn halved(&self, division: &Division<'s>, bound: i64) -> (Option<Landed<'s>>, Moves) {
        let ops = &division.all.task.ops;
        let plan = division.plan(self.sides);
        let first = clusters::least(&division.all, ops).max(plan.orders.rec_mii(ops)).max(bound);
        // Where one iteration after the other has no schedule, nothing has.
        let last = first + plan.orders.chain(ops) + ops.ops.len() as i64;
        let (mut failed, mut works, mut found) = (first - 1, last + 1, None);
        let mut moves = Moves::default();
        let (mut next, mut steps) = (first, 0);
        let most = self.total / self.params.list_part;
        while works - failed > 1 + failed / CLOSE && (found.is_none() || moves.work < most) {
            steps += 1;
            match self.placed(division, &plan, next, &mut moves) {
                Some(landed) => (works, found) = (next, Some(landed)),
                // Of most forms that have no schedule all the steps up would find none.
                None if steps == STEPS && self.placed(division, &plan, last, &mut moves).is_none() => break,
                None => failed = next,
            }
            next = match found {
                Some(_) => failed + (works - failed) / 2,
                None => (next + 1 + next / STEEP).min(last),
            };
        }
        (found, moves)
    }

    /// A schedule at an interval by the first policy that leads to one, in as few stages as can be or
    /// one more.
    fn placed(&self, division: &Division<'s>, plan: &Plan, ii: i64, moves: &mut Moves) -> Option<Landed<'s>> {
        let Division { form, all, .. } = division;
        let ops = &all.task.ops;
        let left = self.left(ops);
        let least = ((plan.orders.chain(ops) + ii - 1) / ii).max(1);
        let most = (least + 1).min(self.stages(least));
        let looks = Cell::new(0);
        let ways = (least..=most).flat_map(|stages| POLICIES.map(|policy| (stages, policy)));
        let found = ways.into_iter().find_map(|(stages, policy)| {
            let limits: Vec<i64> = left.iter().map(|l| l + policy.slack).collect();
            let schedule = list::schedule(all, ops, plan, ii, policy, &limits, stages, &looks)?;
            let mut state = State::carried_with(all, &schedule, ops)?;
            *moves += state.anneal(SETTLED * ops.ops.len() as u64, self.params.nearly, self.seed);
            self.allot(*form, &state).ok()
        });
        *moves += Moves::work(looks.get() / LOOKS);
        found
    }

    /// A schedule from races at longer and longer intervals: the more is broken, the longer the next.
    fn ascended(&mut self, divisions: &[Division<'s>], bound: i64) -> Vec<Landed<'s>> {
        let params = self.params;
        let n = divisions.iter().map(|d| d.all.task.ops.ops.len()).min().unwrap_or(1) as i64;
        let chain = |all: &Loop<'s>| begin::ways(all).into_iter().max().unwrap_or(0);
        let last = bound + n + divisions.iter().map(|d| chain(&d.all)).max().unwrap_or(0);
        let mut ii = bound;
        for round in 0..params.ascents {
            let before = self.budget;
            let race = Race {
                below: i64::MAX,
                ii,
                round: ASCENTS + round,
                fills: params.first_fills,
                moves: self.total / params.first_part,
                rounds: params.first,
            };
            let (first, tried) = self.race(divisions, &race);
            let broken = first.iter().map(|e| e.state.left() + 8 * (e.state.schedule.ii - ii)).min();
            let landed = self.land_one(first, i64::MAX);
            let to = landed.first().map(|l| l.schedule.ii);
            let (work, end) = (before - self.budget, if !landed.is_empty() { "landed" } else { "broken" });
            let name = "ascend";
            self.log.phases.push(Phase { phase: name, from: ii, to, tried, broken: broken.unwrap_or(0), work, end });
            if !landed.is_empty() {
                return landed;
            }
            ii += broken.map_or(ii, |broken| broken * ii / (2 * n)).clamp(1 + ii / params.steepest, ii);
            if ii > last || self.budget == 0 {
                break;
            }
        }
        Vec::new()
    }
}

/// Takes the first two divisions out of a queue that are wanted.
fn taken<'s>(waiting: &mut VecDeque<Division<'s>>, wanted: impl Fn(&Division<'s>) -> bool) -> Vec<Division<'s>> {
    let mut out = Vec::new();
    while out.len() < 2
        && let Some(k) = waiting.iter().position(&wanted)
    {
        out.extend(waiting.remove(k));
    }
    out
}

/// Their seeds are no race's.
const ASCENTS: u64 = 1_000;
