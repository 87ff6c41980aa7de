//! Races: many starts at one interval, of which the better part goes on for longer (successive
//! halving: Jamieson and Talwalkar, AISTATS 2016). Behind each round every one goes on as it is, and with other values in the
//! frame.

use super::clusters;
use super::iterative::{self, Order};
use super::list;
use super::list::policies::{Policy, STARTS};
use super::moves::mix;
use super::state::{Loop, State};
use super::tasks::Division;
use super::threads::together;
use super::{Search, begin};
use crate::place::Ops;
use crate::{exact, order};
use ciphermill_program::search_log::Moves;
use std::cell::Cell;
use std::cmp::Reverse;

/// What a race is about.
pub(super) struct Race<'a> {
    /// The interval that is wanted, and the shortest that is of no use.
    pub ii: i64,
    pub below: i64,
    /// Races of one search go different ways by this number.
    pub round: u64,
    /// Registers in use where operations are spread out, in hundredths of those there are.
    pub fills: &'a [i64],
    /// Moves of the whole race, which its rounds share evenly.
    pub moves: u64,
    /// The part of the entrants that goes on behind each round.
    pub rounds: &'a [usize],
}

/// One start under way.
pub(super) struct Entrant<'s> {
    /// Of the divisions of the race.
    pub division: usize,
    pub form: usize,
    pub state: State<'s>,
    /// All its dependences held in the beginning.
    whole: bool,
}

/// How a schedule begins.
enum Start {
    /// Each operation near a cycle, in so many stages.
    Spread(i64, Vec<i64>),
    /// Placed without regard to registers, in so many stages at most.
    Iterative(i64, Order),
    /// Placed while registers are counted, of which there are taken to be as many more as it needs.
    Listed(Policy),
}

/// Registers beyond those there are with which a start is placed.
const MORE: [i64; 7] = [0, 1, 2, 4, 8, 16, 32];
/// Those that are left of a race.
const LEFT: usize = 4;
/// What a move costs on average, with those that it takes along.
const MOVES_COST: u64 = 2;
/// A row more is worth so many broken rules less when entrants are compared.
const ROW: i64 = 8;

impl<'s> Search<'s> {
    /// The entrants in which least is broken after a race, and how many there were. An entrant may
    /// have a longer interval than is wanted, where units leave no place for all; one of no use does not
    /// begin.
    pub(super) fn race(&mut self, divisions: &[Division<'s>], race: &Race<'_>) -> (Vec<Entrant<'s>>, u64) {
        let params = self.params;
        let seed = mix(self.seed, 1 + race.round);
        let of = |(k, division): (usize, &Division<'s>)| {
            self.starts(&division.all, race).into_iter().map(move |start| (k, start)).collect::<Vec<_>>()
        };
        let starts: Vec<(usize, Start)> = divisions.iter().enumerate().flat_map(of).collect();
        let begun = together(starts, |(k, start)| {
            let division = &divisions[k];
            let (form, state) = (division.form, self.begun(division, race, &start)?);
            Some(Entrant { division: k, form, state, whole: !matches!(start, Start::Spread(..)) })
        });
        let mut entrants: Vec<Entrant<'s>> = begun.into_iter().flatten().collect();
        let tried = entrants.len() as u64;
        let shares = shares(tried as usize, race);
        let total: u64 = shares.iter().sum();
        let mut from = 0;
        for (&moves, &part) in shares.iter().zip(race.rounds) {
            if from > 0 {
                let others = together(entrants.iter().collect(), |e: &Entrant<'s>| {
                    let (state, moves) = self.respilled(&e.state);
                    (state.map(|state| Entrant { state, ..*e }), moves)
                });
                self.spend(others.iter().map(|o| o.1).sum::<Moves>());
                entrants.extend(others.into_iter().filter_map(|o| o.0));
            }
            let moved = together(entrants, |mut entrant| {
                let heat = if entrant.whole { params.nearly } else { params.fresh };
                let moves = entrant.state.anneal_part(from..from + moves, total, heat, seed);
                (entrant, moves)
            });
            from += moves;
            self.spend(moved.iter().map(|m| m.1).sum::<Moves>());
            entrants = moved.into_iter().map(|m| m.0).collect();
            entrants.sort_by_key(|e| (ROW * e.state.schedule.ii + e.state.left(), e.state.energy()));
            entrants.truncate(entrants.len().div_ceil(part).max(2));
            if self.budget == 0 {
                break;
            }
        }
        entrants.truncate(LEFT);
        (entrants, tried)
    }

    /// A start at an interval, or at one that is a little longer.
    fn begun(&self, division: &Division<'s>, race: &Race<'_>, start: &Start) -> Option<State<'s>> {
        // Without a little room hardly any start finds places for all.
        let all = &division.all;
        let least = clusters::least(all, &all.task.ops);
        let first = race.ii.max((least + least / self.params.room).min(race.below - 1)).max(least);
        let wider = std::iter::successors(Some(first), |ii| Some(ii + 1 + ii / 50));
        let wider = wider.take(self.params.wider).take_while(|ii| *ii < race.below);
        wider.into_iter().find_map(|ii| self.start(division, ii, start))
    }

    /// A start at an interval.
    fn start(&self, division: &Division<'s>, ii: i64, start: &Start) -> Option<State<'s>> {
        let all = &division.all;
        let ops = &all.task.ops;
        let branch = ii - self.before_end(ops);
        match start {
            Start::Spread(stages, wish) => State::spread(all, ops, branch, (ii, *stages), wish),
            Start::Iterative(most, order) => {
                let orders = iterative::dependences(all, ops);
                let depth = orders.depths(ii, &Cell::new(i64::MAX))?;
                let chain = depth.iter().max().copied().unwrap_or(0) + 1;
                let least = (chain + ii - 1) / ii;
                let most = least.max(*most);
                let mut schedule = (least..=most).find_map(|stages| {
                    iterative::schedule(all, ops, (&orders, &depth), (ii, stages), branch, *order)
                })?;
                // With room behind its end.
                schedule.stages = (schedule.stages + 1).min(most);
                State::carried_with(all, &schedule, ops)
            }
            Start::Listed(policy) => {
                let plan = division.plan(self.sides);
                let left = self.left(ops);
                let least = ((plan.orders.chain(ops) + ii - 1) / ii).max(1);
                let most = (least + 1).min(self.stages(least));
                let mut ways = MORE.iter().flat_map(|more| (least..=most).map(move |stages| (stages, more)));
                ways.find_map(|(stages, more)| {
                    let limits: Vec<i64> = left.iter().map(|l| l + more).collect();
                    let looks = Cell::new(0);
                    let schedule = list::schedule(all, ops, &plan, ii, *policy, &limits, stages, &looks)?;
                    State::carried_with(all, &schedule, ops)
                })
            }
        }
    }

    /// Cycles before the end of the first stage at which the branch issues.
    pub(super) fn before_end(&self, ops: &Ops) -> i64 {
        let branch = ops.ops.last().map(|op| op.inst.instr);
        match self.rotation {
            Some(_) => 1,
            None => branch.map_or(1, |b| exact::before_end(self.sides.machine, b)),
        }
    }

    /// Ways to begin at an interval. The longer an iteration is, the more room each operation has, and
    /// the more registers values take: it is made so long that these are as full as the race says.
    fn starts(&self, all: &Loop<'s>, race: &Race<'_>) -> Vec<Start> {
        let (params, ii) = (self.params, race.ii);
        let ops = &all.task.ops;
        let n = ops.ops.len() as i64;
        let way = begin::ways(all);
        let chain = way.iter().max().copied().unwrap_or(0).max(1);
        let most = self.stages((chain + ii - 1) / ii);
        let mut out: Vec<Start> = Vec::new();
        if params.iterates {
            out.extend([Order::Depth, Order::Both, Order::Program].map(|order| Start::Iterative(most, order)));
        }
        if params.lists {
            out.extend(STARTS.map(Start::Listed));
        }
        let place = order::places(ops, if self.thorough { params.orders } else { params.quick_orders });
        let registers = self.registers(all);
        let by_depth = |last: i64| -> Vec<i64> { way.iter().map(|w| last - w * last / chain).collect() };
        let by_place = |last: i64| -> Vec<i64> { place.iter().map(|p| p * last / n).collect() };
        let spreads: [&dyn Fn(i64) -> Vec<i64>; 2] = [&by_depth, &by_place];
        for spread in spreads.into_iter().filter(|_| params.spreads) {
            let held = begin::lifetimes(all, &spread(chain), ii).max(1);
            let mut lengths: Vec<i64> =
                race.fills.iter().map(|fill| chain * fill * registers * ii / (100 * held)).collect();
            // Units need nearly the whole interval, however many values there are.
            let least = (chain + 2).max(ii * 95 / 100);
            lengths.iter_mut().for_each(|l| *l = (*l).clamp(least, (most * ii).max(least)));
            lengths.sort_unstable_by_key(|l| Reverse(*l));
            lengths.dedup();
            for length in lengths {
                // With a stage more than needed, so that there is room behind its end.
                let stages = ((length + ii - 1) / ii + 1).clamp(1, most);
                out.push(Start::Spread(stages, spread((length - 2).min(stages * ii - 2).max(1))));
            }
        }
        out
    }
}

/// Moves of an entrant in each round, where so many begin: each round takes as many in all.
fn shares(mut entrants: usize, race: &Race<'_>) -> Vec<u64> {
    let each = race.moves / (race.rounds.len() as u64 * MOVES_COST);
    let share = |&part: &usize| {
        let share = each / entrants.max(1) as u64;
        entrants = 2 * entrants.div_ceil(part).max(2);
        share
    };
    race.rounds.iter().map(share).collect()
}
