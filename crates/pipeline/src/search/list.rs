//! The modulo scheduler.
//!
//! Operations are placed backwards in time, from the end of an iteration to
//! its beginning, into a table of II rows that all iterations share. Backwards
//! because values are then made as late as their readers allow: a round key is
//! loaded just before its use, and not when its address is first known.
//!
//! At each cycle the operations whose readers all stand are candidates, those
//! with the longest way back to the iteration's beginning first. A register is
//! occupied from the cycle a result lands to its last read. Seen backwards, a
//! value is *alive* from its last reader until its own operation stands; then
//! the rows it has occupied are known. An operation that makes more values
//! alive than it ends needs free registers for them, and some beyond: only the
//! last operation in the order of the program may use those up. That order
//! keeps few values alive, and holding its way free lets every attempt end. Other
//! attempts ask for each operation what the rest of that order would need ([`future`]),
//! and place what makes more values alive not far ahead of its turn ([`Policy::ahead`]).
//!
//! A result that takes several cycles gets its operation together with its
//! last reader, ahead of the cycles between: where loads queue for a unit, the
//! registers that the queue keeps busy are then known, not guessed. At its turn in the order of the program an
//! operation may stand without: what makes its source has a turn of its own, perhaps far ahead.
//!
//! A store of a value that waits in the frame makes room for the operations behind it. Nothing waits for the store, and
//! no order ties it to them: it stands at its turn, not ahead of it. Where operations stand already this is not asked:
//! the cycles of these are known when all that reads them stands, stores among it.
//!
//! Values that only a few registers of a side can hold are counted by themselves, too
//! ([`crate::certain::Certain`]), like those of a further side.
//!
//! Some operations may stand already, relative to each other: these are followed ([`preset`]), and the others go around
//! them.
//!
//! Inductions (`p = p + 16`), which depend on nothing but themselves, are set
//! last, where their readers leave room. A value the next iteration reads must
//! have landed by then, and no value may live longer than II cycles, since its
//! register is written again every II cycles.

mod future;
mod inductions;
mod peaks;
pub mod plan;
pub mod policies;
mod preset;

use super::state::Loop;
use crate::body::From;
use crate::graph::{kept, latency};
use crate::modulo::{Schedule, keeps_orders};
use crate::place::{Ops, Sides};
use crate::table::{Table, shuffle};
use ciphermill_machine::InstrId;
use future::Future;
use plan::Plan;
use policies::Policy;
use preset::Following;
use smallvec::SmallVec;
use std::cell::Cell;

/// Cycles without an operation after which none is expected to fit any more.
const PATIENCE: i64 = 100;

/// Rows before an operation's in which other stages' values must leave registers for those that are
/// alive with it, too.
const AHEAD: i64 = 2;

/// Steps of what is left of a program that take as long as looking at an operation.
const STEPS: usize = 32;

/// What is placed at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Together {
    /// An operation with those that make its sources, where they take several cycles.
    WithSources,
    Alone,
}

/// A value while it is being followed backwards.
#[derive(Clone, Default)]
struct Life {
    side: usize,
    /// Where it is counted: on its side, and behind all sides where only certain registers
    /// can hold it.
    kinds: SmallVec<[usize; 2]>,
    /// Last cycle it is read or held.
    last: i64,
    open: bool,
}

/// Try to schedule at an II and in so many stages, with at most so many registers on each side.
/// The last operation is the branch back: it stands in the first stage, so that its delay slots end
/// with it. Operations that are looked at are counted in `looks`.
#[expect(clippy::too_many_arguments, reason = "the problem, and how it is to be solved")]
pub fn schedule(
    all: &Loop<'_>,
    ops: &Ops,
    plan: &Plan,
    ii: i64,
    policy: Policy,
    registers: &[i64],
    stages: i64,
    looks: &Cell<u64>,
) -> Option<Schedule> {
    looks.set(looks.get() + ops.ops.len() as u64);
    let mut attempt = Attempt::new(all, ops, plan, ii, policy, registers, stages)?;
    attempt.branch()?;
    if policy.safe {
        attempt.future = Some(Future::new(&attempt));
    }
    attempt.reserve_inductions()?;
    attempt.run(looks)?;
    attempt.inductions()?;
    attempt.finish(stages)
}

/// A schedule in the making.
struct Attempt<'a> {
    sides: &'a Sides<'a>,
    ops: &'a Ops,
    plan: &'a Plan,
    ii: i64,
    table: Table<'a>,
    time: Vec<Option<i64>>,
    variant: Vec<InstrId>,
    lives: Vec<Life>,
    /// Registers of values whose operations stand, by kind (as [`Life::kinds`]) and row.
    occupied: Vec<Vec<i64>>,
    /// Values whose readers stand and whose operations do not, by kind.
    alive: Vec<i64>,
    limit: Vec<i64>,
    policy: Policy,
    /// Is the value of the iteration before alive?
    carried: Vec<bool>,
    /// The latest cycle that readers and memory leave for an operation.
    late: Vec<i64>,
    /// Values that would become alive with each operation, kind by kind.
    fresh: Vec<i64>,
    /// Successors that do not stand yet.
    waiting: Vec<usize>,
    ready: Vec<usize>,
    /// Where each operation is among those ready.
    place: Vec<usize>,
    /// How many that are ready would end a value, of each kind, in the cycle
    /// given; none while that has to be counted anew.
    ends: Vec<i64>,
    counted: Option<i64>,
    /// Values that will be alive, in the order of the program.
    future: Option<Future>,
    /// First cycle of the first stage; the last is -1.
    lowest: i64,
    left: usize,
    /// Registers rotate: a value may outlive the interval, in a further register for each.
    rotates: bool,
    /// Values that are alive, where one may be so for longer than the interval.
    opened: Vec<usize>,
    /// How far a preset has come.
    following: Following,
}

impl<'a> Attempt<'a> {
    fn new(
        all: &'a Loop<'_>,
        ops: &'a Ops,
        plan: &'a Plan,
        ii: i64,
        policy: Policy,
        registers: &[i64],
        stages: i64,
    ) -> Option<Attempt<'a>> {
        let sides = all.sides;
        let n = ops.ops.len();
        let lazy = &plan.orders.lazy;
        let back = n.checked_sub(1)?;
        let mut lives = vec![Life::default(); n];
        let files = sides.files.len();
        for (i, op) in ops.ops.iter().enumerate() {
            lives[i].side = op.at.result;
            lives[i].kinds.push(op.at.result);
            lives[i].kinds.extend(plan.certain.holds(i).then_some(files + op.at.result));
        }
        let count = files + plan.certain.limits.len();
        let mut fresh = vec![0; n * count];
        for (i, list) in plan.sources.iter().enumerate() {
            list.iter().flat_map(|&p| &lives[p].kinds).for_each(|k| fresh[i * count + k] += 1);
        }
        let waiting = plan.waiting.clone();
        let mut a = Attempt {
            sides,
            ops,
            plan,
            ii,
            table: Table::wanted(sides, plan.demand.clone(), ii, plan.apart),
            time: vec![None; n],
            variant: vec![InstrId(0); n],
            lives,
            occupied: vec![vec![0; ii as usize]; count],
            alive: vec![0; count],
            limit: registers.iter().chain(&plan.certain.limits).copied().collect(),
            policy,
            carried: vec![false; n],
            late: vec![-1; n],
            fresh,
            ready: Vec::new(),
            place: vec![usize::MAX; n],
            ends: vec![0; count],
            counted: None,
            waiting,
            future: None,
            lowest: -(stages * ii),
            left: lazy.iter().filter(|l| !**l).count() - 1,
            rotates: all.task.rotates,
            opened: Vec::new(),
            following: Following::default(),
        };
        for i in (0..n).filter(|&i| !lazy[i] && i != back) {
            if a.waiting[i] == 0 {
                a.is_ready(i);
            }
        }
        // Inductions hold a register throughout.
        for i in (0..n).filter(|i| lazy[*i] && !plan.orders.parting.contains(i)) {
            a.lives[i].kinds.iter().for_each(|&kind| a.limit[kind] -= 1);
        }
        let hold = (0..n).map(|i| latency(ops, i)).max().unwrap_or(1);
        ops.live_out.iter().filter(|l| !lazy[l.0]).for_each(|&(i, _)| a.open(i, hold - 1));
        // A value for the next iteration must live on to its readers there,
        // which are not placed yet: from the end of this one on it is held.
        ops.initial.keys().filter(|&&i| !lazy[i]).for_each(|&i| a.open(i, -1));
        Some(a)
    }

    /// A value is needed until a cycle.
    fn open(&mut self, i: usize, t: i64) {
        let life = &mut self.lives[i];
        if !life.open {
            life.open = true;
            life.last = t;
            self.opened.push(i);
            let count = self.alive.len();
            for &kind in &life.kinds {
                self.alive[kind] += 1;
                self.plan.readers[i].iter().for_each(|r| self.fresh[r * count + kind] -= 1);
            }
            self.counted = None;
        }
        life.last = life.last.max(t);
    }

    fn is_ready(&mut self, i: usize) {
        self.place[i] = self.ready.len();
        self.ready.push(i);
        self.counted = None;
    }

    fn stands(&mut self, i: usize) {
        let k = std::mem::replace(&mut self.place[i], usize::MAX);
        if k != usize::MAX {
            self.ready.swap_remove(k);
            if let Some(&moved) = self.ready.get(k) {
                self.place[moved] = k;
            }
        }
        self.counted = None;
    }

    /// The branch stands where its delay slots end with the first stage.
    fn branch(&mut self) -> Option<()> {
        let back = self.ops.ops.len() - 1;
        let branch = &self.ops.ops[back];
        let delay = branch.variants.first().map_or(0, |v| self.sides.machine.instrs[usize::from(v.0)].delay_slots);
        let t = self.lowest + self.ii - 1 - i64::from(delay);
        let (v, unit) = self.table.slot(t, branch)?;
        self.table.put(self.table.row(t), back, branch, v, unit);
        (self.time[back], self.variant[back]) = (Some(t), v);
        for r in &branch.reads {
            match r.1 {
                From::Node(p, 0) => self.open(p, t),
                From::Node(..) => return None,
                From::Outside(_) => {}
            }
        }
        self.before(back, t);
        Some(())
    }

    /// The orders that an operation, now standing, puts on those before it.
    fn before(&mut self, i: usize, t: i64) {
        for &(p, w) in &self.plan.orders.edges.preds[i] {
            self.late[p] = self.late[p].min(t - w);
            self.waiting[p] -= 1;
            if self.waiting[p] == 0 && !self.plan.orders.lazy[p] {
                self.is_ready(p);
            }
        }
    }

    fn run(&mut self, looks: &Cell<u64>) -> Option<()> {
        let policy = self.policy;
        let own = |i: usize| self.plan.orders.depth[i] * (4 - policy.program) + self.plan.rank[i] * policy.program;
        let urgency: Vec<i64> = (0..self.time.len()).map(own).collect();
        let mut candidates: Vec<(i64, i64, usize)> = Vec::new();
        let mut t = -1i64;
        let (mut left, mut since) = (self.left, t);
        let ahead = urgency.len() * policy.ahead as usize / 100;
        while self.left > 0 {
            let turn = self.future.as_ref().map_or(0, |future| future.top);
            if self.left != left {
                (left, since) = (self.left, t);
            }
            if t < self.lowest || since - t > PATIENCE {
                return None;
            }
            self.follow(t)?;
            candidates.clear();
            for &i in self.ready.iter().filter(|&&i| self.late[i] >= t && self.may(i)) {
                let near = i + if self.plan.at_turn[i] { 1 } else { ahead } >= turn;
                let gain = || (0..self.alive.len()).map(|s| self.gain(i, s)).sum::<i64>().signum();
                let gain = if policy.frugal || !near { gain() } else { 0 };
                if near || gain <= 0 {
                    candidates.push((if policy.frugal { gain } else { 0 }, -urgency[i], i));
                }
            }
            let looked = self.future.as_ref().map_or(0, |f| f.steps.take() / STEPS);
            looks.set(looks.get() + (candidates.len() + looked) as u64);
            candidates.sort_unstable();
            // What ended a value may have left room for one that was refused before it.
            for _ in 0..if policy.safe { 3 } else { 1 } {
                let left = self.left;
                for &(_, _, i) in &candidates {
                    if self.table.count[self.table.row(t)] >= self.sides.machine.issue.width {
                        break;
                    }
                    if self.time[i].is_none()
                        && let Some(together) = self.room(i, t)
                    {
                        self.try_at(i, t, together)?;
                    }
                }
                if left == self.left {
                    break;
                }
            }
            t -= 1;
            if self.rotates {
                self.outlived(t);
            }
            // What still waits must be early enough for all that comes before.
            if self.ready.iter().any(|&i| self.lowest + self.plan.orders.depth[i] > t) {
                return None;
            }
        }
        Some(())
    }

    /// Values that have been alive for a whole interval at a cycle have a register throughout, and
    /// the next one from there on.
    fn outlived(&mut self, t: i64) {
        let (time, lives, occupied) = (&self.time, &mut self.lives, &mut self.occupied);
        self.opened.retain(|&i| time[i].is_none());
        for &i in &self.opened {
            let life = &mut lives[i];
            if life.last - t >= self.ii {
                life.last -= self.ii;
                life.kinds.iter().for_each(|&kind| occupied[kind].iter_mut().for_each(|row| *row += 1));
            }
        }
    }

    fn occupied(&self, kind: usize, t: i64) -> i64 {
        self.occupied[kind][t.rem_euclid(self.ii) as usize]
    }

    /// How many values of a kind more are alive when an operation stands.
    fn gain(&self, i: usize, kind: usize) -> i64 {
        self.fresh[i * self.alive.len() + kind] - i64::from(self.lives[i].open && self.lives[i].kinds.contains(&kind))
    }

    /// Are there registers for an operation at cycle `t`; and if so, together with those that make its sources?
    fn room(&mut self, i: usize, t: i64) -> Option<Together> {
        let policy = self.policy;
        if let Some(future) = &self.future {
            // In its last rows the next iteration begins: the nearer to the end, the more of
            // its values are there.
            let chain = self.plan.chain + self.plan.chain / 8;
            let shared = (chain - self.ii).clamp(0, self.ii);
            let overlapped = self.lowest < -self.ii && t >= -shared;
            let keep = if overlapped { policy.keep * (shared + t + 1) / shared } else { 0 };
            let fits = |together: &Together| !future.short(self, i, t, keep, *together);
            // At its turn it may stand alone: what makes its sources has its own turn.
            let alone = (future.top == i + 1).then_some(Together::Alone);
            return std::iter::once(Together::WithSources).chain(alone).find(fits);
        }
        let keep = if self.lowest < -self.ii && t >= -self.ii { policy.keep } else { 0 };
        let short = (0..self.alive.len()).any(|kind| {
            let gain = self.gain(i, kind);
            if gain <= 0 {
                return false;
            }
            let occupied = (0..=AHEAD).map(|c| self.occupied(kind, t - c)).max().unwrap_or(0);
            let keep = if kind < self.sides.files.len() { keep } else { 0 };
            let excess = occupied + self.alive[kind] + gain - (self.limit[kind] - keep);
            if excess <= 0 || excess > policy.hope {
                return excess > 0;
            }
            let own = self.place[i] != usize::MAX && self.ends(i, t) && self.lives[i].kinds.contains(&kind);
            excess > self.ending(kind, t) - i64::from(own)
        });
        (!short).then_some(Together::WithSources)
    }

    /// Would an operation, if it stood in a cycle, end a value?
    fn ends(&self, i: usize, t: i64) -> bool {
        self.late[i] >= t && self.lives[i].open
    }

    /// How many that are ready would end a value of a kind in a cycle.
    fn ending(&mut self, kind: usize, t: i64) -> i64 {
        if self.counted != Some(t) {
            self.counted = Some(t);
            self.ends.fill(0);
            for k in 0..self.ready.len() {
                if self.ends(self.ready[k], t) {
                    self.lives[self.ready[k]].kinds.iter().for_each(|&kind| self.ends[kind] += 1);
                }
            }
        }
        self.ends[kind]
    }

    /// Place an operation at a cycle if units are free, perhaps with those that make
    /// its sources. `None` when the attempt has failed.
    fn try_at(&mut self, i: usize, t: i64, together: Together) -> Option<bool> {
        let (ops, ii) = (self.ops, self.ii);
        let op = &ops.ops[i];
        let row = self.table.row(t);
        if self.table.count[row] >= self.sides.machine.issue.width {
            return Some(false);
        }
        // A result the next iteration reads: its readers there must not be too
        // early.
        let too_early = op.reads.iter().any(|r| match r.1 {
            From::Node(p, 1) if p != i && !self.plan.orders.lazy[p] => {
                self.time[p].is_some_and(|tp| t < tp + latency(ops, p) + ops.crossing(i, r.0) - ii)
            }
            _ => false,
        });
        if too_early {
            return None;
        }
        let choice = self.table.best(row, op).or_else(|| shuffle(&mut self.table, ops, &mut self.variant, row, i));
        let Some((v, unit)) = choice else { return Some(false) };
        self.table.put(row, i, op, v, unit);
        let sources = match together {
            Together::Alone => Some(Vec::new()),
            Together::WithSources => self.sources(i, t),
        };
        let Some(sources) = sources else {
            self.table.take(row, i, op, v);
            return Some(false);
        };
        self.place(i, t, v)?;
        for (p, s, v) in sources {
            self.place(p, s, v)?;
        }
        Some(true)
    }

    /// The operations that take several cycles and that nothing but operation `i` waits
    /// for.
    fn with(&self, i: usize) -> impl Iterator<Item = usize> {
        let preds = &self.plan.orders.edges.preds[i];
        let free = |p: usize| self.time[p].is_none() && !self.plan.orders.lazy[p] && self.may(p);
        let slow = move |p: usize| free(p) && latency(self.ops, p) >= 2;
        let first = |k: usize, p: usize| preds[..k].iter().all(|e| e.0 != p);
        let only = move |p: usize| self.waiting[p] == preds.iter().filter(|e| e.0 == p).count();
        preds.iter().enumerate().filter(move |(k, e)| slow(e.0) && first(*k, e.0) && only(e.0)).map(|(_, e)| e.0)
    }

    /// Cycles for the operations that make the sources of operation `i`, if it
    /// stands at `t` and they can then be placed; the table has them already.
    /// `None` where units or registers are too few: a load that has to be made
    /// early keeps its register busy until it is read.
    fn sources(&mut self, i: usize, t: i64) -> Option<Vec<(usize, i64, InstrId)>> {
        let ops = self.ops;
        let mut done: Vec<(usize, i64, InstrId)> = Vec::new();
        let mut crowd: Vec<(SmallVec<[usize; 2]>, i64, i64)> = Vec::new();
        for p in self.with(i).collect::<SmallVec<[usize; 4]>>() {
            let mine = self.plan.orders.edges.preds[i].iter().filter(|e| e.0 == p);
            let late = mine.map(|e| t - e.1).fold(self.late[p], i64::min);
            let kinds = self.lives[p].kinds.clone();
            let first = self.lowest.max(late - self.ii + 1).max(late - self.policy.wait.unwrap_or(self.ii));
            let slot = (first..=late).rev().find_map(|s| Some((s, self.table.slot(s, &ops.ops[p])?)));
            // While it waits, what is alive now is taken to be alive still.
            let lax = self.policy.wait.is_none();
            let room = |kind: usize, s: i64| {
                let alive = self.alive[kind] + self.gain(i, kind) - 1;
                let more =
                    |c: i64| crowd.iter().filter(|x| x.0.contains(&kind) && (x.1..x.2).contains(&c)).count() as i64;
                (s + kept(ops, p)..t).all(|c| self.occupied(kind, c) + more(c) + alive < self.limit[kind])
            };
            let fits = slot.filter(|&(s, _)| lax || kinds.iter().all(|&kind| room(kind, s)));
            let Some((s, (v, unit))) = fits else {
                if lax {
                    continue;
                }
                for (p, s, v) in done {
                    self.table.take(self.table.row(s), p, &ops.ops[p], v);
                }
                return None;
            };
            crowd.push((kinds, s + kept(ops, p), t));
            self.table.put(self.table.row(s), p, &ops.ops[p], v, unit);
            done.push((p, s, v));
        }
        Some(done)
    }

    /// An operation stands: what follows for registers and for those before
    /// it.
    fn place(&mut self, i: usize, t: i64, v: InstrId) -> Option<()> {
        let (ops, ii) = (self.ops, self.ii);
        let op = &ops.ops[i];
        if let Some(mut future) = self.future.take() {
            future.place(self, i);
            self.future = Some(future);
        }
        (self.time[i], self.variant[i]) = (Some(t), v);
        self.left -= 1;
        self.stands(i);
        // Its own value, seen backwards, ends where it lands.
        let life = &self.lives[i];
        if life.open {
            let landing = t + kept(ops, i);
            if !self.rotates && life.last - landing >= ii && !ops.initial.contains_key(&i) {
                return None;
            }
            for &kind in &life.kinds {
                self.alive[kind] -= 1;
                let (mut row, occupied) = (landing.rem_euclid(ii) as usize, &mut self.occupied[kind]);
                for _ in landing..=life.last {
                    occupied[row] += 1;
                    row = if row + 1 == occupied.len() { 0 } else { row + 1 };
                }
            }
        }
        for r in &op.reads {
            match r.1 {
                From::Node(p, 0) => self.open(p, t),
                From::Node(p, _) if !self.plan.orders.lazy[p] && !self.carried[p] => {
                    self.lives[p].kinds.iter().for_each(|&kind| self.alive[kind] += 1);
                    self.carried[p] = true;
                }
                _ => {}
            }
        }
        self.before(i, t);
        Some(())
    }

    /// The schedule, when every order holds and no value lives too long for registers that stand still.
    fn finish(self, stages: i64) -> Option<Schedule> {
        let (ops, ii) = (self.ops, self.ii);
        let time: Vec<i64> = self.time.iter().map(|t| t.unwrap_or(-1) - self.lowest).collect();
        keeps_orders(ops, ii, &time, self.rotates).then_some(Schedule { ii, time, variant: self.variant, stages })
    }
}
