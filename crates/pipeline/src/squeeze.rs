//! Shorter schedules by annealing.
//!
//! Fresh starts far below the best schedule so far come first ([`super::leap`]). Where none
//! lands, and while forms of a loop are compared, an iteration is spread over a few cycles more
//! than that schedule has, which is easily annealed ([`super::anneal`]). Then row after row is
//! taken out, also of what a fresh start came to, as long as what breaks can be annealed. From
//! the shortest schedule so found walks lead to other divisions between the sides
//! ([`super::redivide`]). Nothing is said here of how a schedule is annealed.
//!
//! Several descents, and several walks, do not depend on each other and are made at the same
//! time, on as many threads as there are; what they find does not depend on that.

use super::anneal::{Loop, State, Warmth, level};
use super::graph::{kept, lower, res_mii};
use super::modulo::{Schedule, mix};
use super::place::Ops;
use super::redivide::{Standing, Walk};
use super::{Found, Kernel, Loops, Room, color, stages};
use ciphermill_machine::Reg;
use rayon::ThreadPoolBuilder;
use rayon::prelude::*;

/// Parts of the II so far by which an iteration is longer at the beginning: the second where
/// the first is not enough.
const LONGER: [i64; 2] = [12, 4];
/// Moves for each operation from a fresh start. After a quarter of them it is given up where
/// more is broken than so many hundredths of the operations.
const FRESH: u64 = 350;
const HOPELESS: i64 = 50;
/// Moves for each operation when a schedule is annealed once more because little is broken
/// still, and how often that is done.
const AGAIN: u64 = 80;
const TIMES: u64 = 8;
/// What is little; in large loops a 32nd of the operations is.
const LITTLE: i64 = 40;
/// Rows that are taken out at one II, those first that break least, and moves for each.
const ROWS: [(usize, u64); 4] = [(5, 8_000), (3, 50_000), (3, 200_000), (2, 600_000)];
/// Moves of a descent for each operation, and at most: while forms of a loop are compared, and
/// for the one that is taken. A loop of fewer operations than `FULL` takes fewer for each, as
/// there are fewer cycles for it to stand in.
const FULL: u64 = 400;
const HASTY: (u64, u64) = (1_500, 1_000_000);
const THOROUGH: (u64, u64) = (2_000, 2_000_000);
/// Of descents from what these, or fresh starts, have found.
const FURTHER: (u64, u64) = (10_000, 4_000_000);
/// Moves after which a schedule has to hold when its division has changed.
const LEVELLED: u64 = 300_000;
/// And of a walk from division to division.
const WALK: (u64, u64) = (16_000, 2_500_000);
/// Loops of more operations get half as many moves in the end.
const LARGE: u64 = 1_000;
/// How warm schedules are that hold but for one row, and those that are fresh.
const COOL: Warmth = (12, 1);
const WARM: (i64, i64, i64) = (30, 16, 2);
/// An II that is by less than this part longer than the longest way round gains little.
const NEAR: i64 = 12;

/// A schedule, its registers, and the operations with the sides that they have in it.
#[derive(Clone)]
pub(super) struct Finished {
    pub schedule: Schedule,
    pub registers: color::Assignment,
    pub ops: Ops,
}

/// A descent: how it begins, and the moves that it may take.
struct Descent<'a> {
    all: Loop<'a>,
    allocatable: &'a [Reg],
    /// The least II.
    least: i64,
    /// The best schedule so far, and whether it is what the descent begins with.
    best: &'a Kernel,
    known: bool,
    stages: i64,
    seed: u64,
    moves: u64,
}

impl Descent<'_> {
    /// The shortest schedule that is found.
    fn run(&self) -> Option<Finished> {
        let mut taken = 0;
        let mut found = if self.known {
            let Kernel { schedule, registers, ops, .. } = self.best.clone();
            let best = Finished { schedule, registers, ops };
            self.levelled(&best, &mut taken).unwrap_or(best)
        } else {
            let ii = self.best.schedule.ii;
            LONGER.iter().find_map(|part| self.fresh(ii + ii / part + 1, &mut taken))?
        };
        while found.schedule.ii > self.least && taken < self.moves {
            let Some(next) = self.less(&found, &mut taken) else { break };
            found = next;
        }
        Some(found)
    }

    /// A schedule of as many cycles whose division leaves units free for shorter ones, where
    /// its own does not.
    fn levelled(&self, from: &Finished, taken: &mut u64) -> Option<Finished> {
        let wanted = (self.least + from.schedule.ii) / 2;
        if !self.all.sided() || res_mii(self.all.sides, &from.ops) <= wanted {
            return None;
        }
        let mut ops = from.ops.clone();
        level(&self.all, &mut ops, wanted, self.seed);
        let all = self.all.settled(&ops);
        let mut state = State::carried(all, &from.schedule, &from.ops)?;
        *taken += state.anneal(LEVELLED.min(self.moves), COOL, self.seed);
        finished(all, &state, self.allocatable)
    }

    /// A schedule of so many cycles from a fresh start.
    fn fresh(&self, ii: i64, taken: &mut u64) -> Option<Finished> {
        let n = self.all.ops.ops.len() as u64;
        // The branch stands as many cycles before the end of the first stage.
        let best = &self.best.schedule;
        let branch = best.time.last().copied().unwrap_or(0) + ii - best.ii;
        let mut state = State::stretched(self.all, branch, ii, self.stages, self.stages * ii)?;
        *taken += state.anneal(FRESH * n / 4, (WARM.0, WARM.1), self.seed);
        if state.left() > HOPELESS * n as i64 / 100 {
            return None;
        }
        *taken += state.anneal(FRESH * n * 3 / 4, (WARM.1, WARM.2), mix(self.seed, 0));
        for k in 1..=TIMES {
            if (1..=LITTLE.max(n as i64 / 32)).contains(&state.left()) {
                *taken += state.anneal(AGAIN * n, COOL, mix(self.seed, k));
            }
        }
        finished(self.all, &state, self.allocatable)
    }

    /// A schedule of one cycle less.
    fn less(&self, from: &Finished, taken: &mut u64) -> Option<Finished> {
        let all = self.all.settled(&from.ops);
        let rows = by_breakage(all, &from.schedule);
        for (count, moves) in ROWS {
            for &row in rows.iter().take(count) {
                let Some(mut state) = State::without(all, &from.schedule, row) else { continue };
                *taken += state.anneal(moves.min(self.moves), COOL, mix(self.seed, moves + row as u64));
                let found = finished(all, &state, self.allocatable);
                if found.is_some() || *taken >= self.moves {
                    return found;
                }
            }
        }
        None
    }
}

impl Loops<'_> {
    /// Shorten a kernel.
    pub(super) fn squeeze(&self, found: &mut Found, thorough: bool) {
        let Kernel { ops, schedule, .. } = &found.kernel;
        let (ii, own, n) = (schedule.ii, schedule.stages, ops.ops.len() as u64);
        let each = if thorough { THOROUGH } else { HASTY };
        // Where values or accesses to memory go round that long, little is to be gained.
        let near = lower(self.sides, &found.body).is_ok_and(|(_, rec_mii)| ii <= rec_mii + rec_mii / NEAR);
        let leapt = thorough && !near && self.leap(found);
        // A loop so large that a start takes all there is waits until it is chosen.
        if !near && !leapt && FRESH * n <= each.1 {
            let moves = (each.0 * n * n.min(FULL) / FULL).min(each.1);
            self.descend(found, moves, |least| match thorough {
                false => {
                    (least..=stages(self.sides.machine, least).min(least + 1)).map(|s| (s, false, s as u64)).collect()
                }
                true => vec![(own, true, 7), (own, false, 8)],
            });
        }
        if thorough {
            if !near {
                let most = if n > LARGE { FURTHER.1 / 2 } else { FURTHER.1 };
                let moves = (FURTHER.0 * n).min(most) * self.search.times;
                self.descend(found, moves, |_| vec![(own, true, 7), (own, true, 8)]);
            }
            self.walk(found);
        }
    }

    /// No schedule is shorter; where operations may change sides, whatever the division.
    pub(super) fn least(&self, found: &Found, room: &Room, all: Loop<'_>) -> i64 {
        match lower(self.sides, &found.body) {
            Ok((res_mii, rec_mii)) if all.sided() => room.first.min(res_mii.max(rec_mii).max(room.shortest)),
            _ => room.first,
        }
    }

    /// Shorten a kernel by descents: `ways`, of the least number of stages, says in how many
    /// stages each is, whether it begins with the kernel, and its seed.
    fn descend(&self, found: &mut Found, moves: u64, ways: impl Fn(i64) -> Vec<(i64, bool, u64)>) {
        let best = &found.kernel;
        let (ii, ops) = (best.schedule.ii, &best.ops);
        let Some(room) = self.room(&found.body, ops) else { return };
        let pool = color::pool(self.sides);
        let all = Loop { sides: self.sides, ops, near: &room.near, apart: room.plan.apart, pool: &pool };
        let (allocatable, first) = (&self.registers.allocatable, self.least(found, &room, all));
        if first >= ii {
            return;
        }
        let least = (room.plan.orders.chain(ops) / (first + first / LONGER[0]) + 1).max(1);
        let descent = |(stages, known, seed)| {
            let seed = self.search.seed(seed);
            Descent { all, allocatable, least: first, best, known, stages, seed, moves }
        };
        let descents: Vec<Descent<'_>> = ways(least).into_iter().map(descent).collect();
        let shortest = together(&descents, Descent::run).into_iter().flatten().min_by_key(|f| f.schedule.ii);
        if let Some(shorter) = shortest.filter(|f| f.schedule.ii < ii) {
            found.replace(shorter);
        }
    }

    /// Shorten a kernel by other divisions between the sides.
    fn walk(&self, found: &mut Found) {
        let Found { kernel, body, at, .. } = &*found;
        let Some(room) = self.room(body, &kernel.ops) else { return };
        let Ok((res_mii, rec_mii)) = lower(self.sides, body) else { return };
        let least = res_mii.max(rec_mii).max(room.shortest);
        let Kernel { schedule, registers, ops, .. } = kernel.clone();
        let start = Standing { at: at.clone(), found: Finished { schedule, registers, ops } };
        let (sides, allocatable, apart) = (self.sides, &self.registers.allocatable[..], room.plan.apart);
        let n = kernel.ops.ops.len() as u64;
        let most = if n > LARGE { WALK.1 / 2 } else { WALK.1 };
        let moves = (WALK.0 * n * n.min(FULL) / FULL).min(most) * self.search.times;
        let walks =
            [0, 1].map(|seed| Walk { body, sides, allocatable, apart, least, seed: self.search.seed(seed), moves });
        let shortest = together(&walks, |walk| walk.run(start.clone())).into_iter().min_by_key(|s| s.found.schedule.ii);
        if let Some(shorter) = shortest.filter(|s| s.found.schedule.ii < kernel.schedule.ii) {
            found.replace(shorter.found);
        }
    }
}

impl Found {
    /// A schedule of the same body that is shorter.
    pub(super) fn replace(&mut self, shorter: Finished) {
        let Finished { schedule, registers, ops } = shorter;
        self.at = ops.at(self.body.nodes.len());
        self.kernel = Kernel { schedule, registers, ops, ..self.kernel.clone() };
        self.annealed = true;
    }
}

/// What each of some searches finds, all made at the same time.
pub(super) fn together<T: Sync, R: Send>(all: &[T], run: impl Fn(&T) -> R + Sync) -> Vec<R> {
    // A pool of this loop's own: one for all would not be there in a process that is forked
    // from this one.
    match ThreadPoolBuilder::new().build() {
        Ok(pool) => pool.install(|| all.par_iter().map(&run).collect()),
        Err(_) => all.iter().map(run).collect(),
    }
}

/// The schedule that a state has become, if nothing is broken, and its registers.
pub(super) fn finished(all: Loop<'_>, state: &State<'_>, allocatable: &[Reg]) -> Option<Finished> {
    let schedule = state.finish()?;
    let mut schedule = schedule.clone();
    // The last stages may have been left empty.
    schedule.stages = schedule.time.iter().max().map_or(1, |t| t / schedule.ii + 1);
    let registers = color::color(all.sides, state.ops(), &schedule, allocatable).ok()?;
    Some(Finished { schedule, registers, ops: state.ops().clone() })
}

/// The rows of a schedule before the branch's, those first whose loss breaks least.
pub(super) fn by_breakage(all: Loop<'_>, schedule: &Schedule) -> Vec<i64> {
    let (time, ii) = (&schedule.time, schedule.ii);
    let mut broken = vec![0i64; ii as usize];
    for (i, &own) in time.iter().enumerate() {
        // The row's own operations have to find a place.
        broken[(own % ii) as usize] += 1;
        for e in &all.near.after[i] {
            let to = time[e.other] + e.distance * ii;
            if to - own == e.cycles {
                (own..to.min(own + ii)).for_each(|t| broken[t.rem_euclid(ii) as usize] += 2);
            }
        }
        // A value that lives as long as II cycles allow does so wherever a row is lost.
        for &(reader, distance) in all.near.readers[i].iter().filter(|r| r.0 != i) {
            if time[reader] + distance * ii - own - kept(all.ops, i) + 1 >= ii {
                broken.iter_mut().for_each(|b| *b += 1);
            }
        }
    }
    let branch = time.last().copied().unwrap_or(0).clamp(0, ii);
    let mut rows: Vec<i64> = (0..branch).collect();
    rows.sort_by_key(|&r| (broken[r as usize], r));
    rows
}
