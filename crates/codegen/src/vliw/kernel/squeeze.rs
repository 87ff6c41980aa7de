//! Shorter schedules by annealing.
//!
//! Fresh starts far below the best schedule so far come first ([`super::leap`]). Where none
//! lands, and while forms of a loop are compared, an iteration is spread over a few cycles more
//! than that schedule has, which is easily annealed ([`super::anneal`]); then row after row is
//! taken out of what comes of it, as long as what breaks can be annealed, too. From the shortest
//! schedule so found walks lead to other divisions between the sides ([`super::redivide`]).
//! Nothing is said here of how a schedule is annealed.
//!
//! Several descents, and several walks, do not depend on each other and are made at the same
//! time, on as many threads as there are; what they find does not depend on that.

use super::anneal::{Loop, State, Warmth};
use super::graph::{Orders, kept, lower};
use super::modulo::{Schedule, mix};
use super::redivide::{Standing, Walk};
use super::{Found, Kernel, Loops, color, stages};
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
const ROWS: [(usize, u64); 3] = [(5, 8_000), (3, 50_000), (3, 200_000)];
/// Moves of a descent for each operation, and at most: while forms of a loop are compared, and
/// for the one that is taken. A loop of fewer operations than `FULL` takes fewer for each, as
/// there are fewer cycles for it to stand in.
const FULL: u64 = 400;
const HASTY: (u64, u64) = (1_500, 1_000_000);
const THOROUGH: (u64, u64) = (2_000, 2_000_000);
/// And of a walk from division to division.
const WALK: (u64, u64) = (16_000, 5_000_000);
/// So many times as long where minutes may pass.
pub(super) const PATIENT: u64 = 10;
/// Loops of more operations get one fresh start less, and half as long a walk.
pub(super) const LARGE: u64 = 2_000;
/// How warm schedules are that hold but for one row, and those that are fresh.
const COOL: Warmth = (12, 1);
const WARM: (i64, i64, i64) = (30, 16, 2);
/// An iteration that is by less than this part longer than its longest chain gains little.
const NEAR: i64 = 8;

/// A schedule and its registers.
pub(super) type Finished = (Schedule, color::Assignment);

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
            (self.best.schedule.clone(), self.best.registers.clone())
        } else {
            let ii = self.best.schedule.ii;
            LONGER.iter().find_map(|part| self.fresh(ii + ii / part + 1, &mut taken))?
        };
        while found.0.ii > self.least && taken < self.moves {
            let Some(next) = self.less(&found.0, &mut taken) else { break };
            found = next;
        }
        Some(found)
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
    fn less(&self, from: &Schedule, taken: &mut u64) -> Option<Finished> {
        let rows = by_breakage(self.all, from);
        for (count, moves) in ROWS {
            for &row in rows.iter().take(count) {
                let Some(mut state) = State::without(self.all, from, row) else { continue };
                *taken += state.anneal(moves.min(self.moves), COOL, mix(self.seed, moves + row as u64));
                let found = finished(self.all, &state, self.allocatable);
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
        let chain = Orders::of(ops).chain(ops);
        let near = own == 1 && ii < chain + chain / NEAR;
        let leapt = thorough && !near && self.leap(found);
        // A loop so large that a start takes all there is waits until it is chosen.
        if !near && !leapt && FRESH * n <= each.1 {
            let moves = (each.0 * n * n.min(FULL) / FULL).min(each.1);
            self.descend(found, moves, |least| match thorough {
                false => (least..=stages(self.sides.machine).min(least + 1)).map(|s| (s, false, s as u64)).collect(),
                true if n > LARGE => vec![(own, true, 7), (own, false, 8)],
                true => vec![(own, true, 7), (own, false, 8), (own, false, 9)],
            });
        }
        if thorough {
            self.walk(found);
        }
    }

    /// Shorten a kernel by descents: `ways`, of the least number of stages, says in how many
    /// stages each is, whether it begins with the kernel, and its seed.
    fn descend(&self, found: &mut Found, moves: u64, ways: impl Fn(i64) -> Vec<(i64, bool, u64)>) {
        let best = &found.kernel;
        let (ii, ops) = (best.schedule.ii, &best.ops);
        let Some(room) = self.room(&found.body, ops).filter(|room| room.first < ii) else { return };
        let all = Loop { sides: self.sides, ops, near: &room.near, apart: room.plan.apart, limits: &room.limits };
        let (allocatable, first) = (&self.registers.allocatable, room.first);
        let least = (room.plan.orders.chain(ops) / (first + first / LONGER[0]) + 1).max(1);
        let descent =
            |(stages, known, seed)| Descent { all, allocatable, least: first, best, known, stages, seed, moves };
        let descents: Vec<Descent<'_>> = ways(least).into_iter().map(descent).collect();
        let shortest = together(&descents, Descent::run).into_iter().flatten().min_by_key(|f| f.0.ii);
        if let Some((schedule, registers)) = shortest.filter(|f| f.0.ii < ii) {
            (found.kernel.schedule, found.kernel.registers) = (schedule, registers);
            found.annealed = true;
        }
    }

    /// Shorten a kernel by other divisions between the sides.
    fn walk(&self, found: &mut Found) {
        let Found { kernel, body, at, .. } = &*found;
        let Some(room) = self.room(body, &kernel.ops) else { return };
        let Ok((res_mii, rec_mii)) = lower(self.sides, body) else { return };
        let delay = self.sides.machine.instrs[usize::from(body.skip.0)].delay_slots;
        let least = res_mii.max(rec_mii).max(i64::from(delay) + 2);
        let registers = (kernel.schedule.clone(), kernel.registers.clone());
        let start = Standing { at: at.clone(), ops: kernel.ops.clone(), found: registers };
        let (sides, allocatable, apart) = (self.sides, &self.registers.allocatable[..], room.plan.apart);
        let n = kernel.ops.ops.len() as u64;
        let most = if n > LARGE { WALK.1 / 2 } else { WALK.1 };
        let times = if self.patient { PATIENT } else { 1 };
        let moves = (WALK.0 * n * n.min(FULL) / FULL).min(most) * times;
        let walks = [0, 1].map(|seed| Walk { body, sides, allocatable, apart, least, seed, moves });
        let shortest = together(&walks, |walk| walk.run(start.clone())).into_iter().min_by_key(|s| s.found.0.ii);
        if let Some(Standing { at, ops, found: (schedule, registers) }) = shortest
            && schedule.ii < kernel.schedule.ii
        {
            found.kernel = Kernel { schedule, registers, ops, ..found.kernel.clone() };
            found.at = at;
            found.annealed = true;
        }
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
    let registers = color::color(all.sides, all.ops, &schedule, allocatable).ok()?;
    Some((schedule, registers))
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
