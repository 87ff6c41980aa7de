//! Fewer values alive where they are too many.
//!
//! The scheduler counts registers cycle by cycle on its way back through an
//! iteration, and cannot know what the other stages will need in the same row. A
//! schedule that is complete shows it: where a row has more values than registers,
//! operations nearby are moved within what their orders and units leave them, an
//! operation that ends two values to an earlier cycle, one that makes one to a later.
//! A move that makes nothing worse is kept, since what follows it may be better;
//! Intervals, sides and stages stay as they are.

use super::body::From;
use super::graph::{kept, latency};
use super::modulo::{Schedule, mix};
use super::place::{Ops, Sides};
use super::table::{Table, shuffle};
use smallvec::SmallVec;

/// Moves that are tried for each value too many, and at most for a schedule.
const MOVES: (u64, u64) = (100, 2_000);
/// And in a row without fewer values too many.
const FRUITLESS: u64 = 300;
/// Schedules with more values too many are left as they are.
const MOST: i64 = 100;
/// Cycles of an operation's choice that are looked at in one go.
const PLACES: u64 = 4;

/// `t[second] + distance * II >= t[first] + cycles`.
#[derive(Clone, Copy)]
pub struct Order {
    pub other: usize,
    pub cycles: i64,
    pub distance: i64,
    /// The operand by which the second reads the first one's result.
    pub operand: Option<usize>,
}

/// The operations of a loop as neighbours in time.
pub struct Neighbours {
    pub before: Vec<SmallVec<[Order; 4]>>,
    pub after: Vec<SmallVec<[Order; 4]>>,
    /// Readers of each value, and how many iterations later they read it; and the
    /// values that each operation reads.
    pub readers: Vec<SmallVec<[(usize, i64); 4]>>,
    pub reads: Vec<SmallVec<[(usize, i64); 4]>>,
    /// May stand elsewhere: neither the branch nor what other iterations know.
    movable: Vec<bool>,
}

impl Neighbours {
    pub fn of(ops: &Ops) -> Neighbours {
        let n = ops.ops.len();
        let mut all = Neighbours {
            before: vec![SmallVec::new(); n],
            after: vec![SmallVec::new(); n],
            readers: vec![SmallVec::new(); n],
            reads: vec![SmallVec::new(); n],
            movable: vec![true; n],
        };
        for (i, op) in ops.ops.iter().enumerate() {
            for &(o, from) in &op.reads {
                if let From::Node(p, d) = from {
                    let distance = i64::from(d);
                    all.order(p, i, (latency(ops, p) + ops.crossing(i, o), distance), Some(o));
                    if !all.reads[i].contains(&(p, distance)) {
                        all.reads[i].push((p, distance));
                        all.readers[p].push((i, distance));
                    }
                }
            }
        }
        for &(a, b, cycles, distance) in &ops.memory {
            all.order(a, b, (i64::from(cycles), i64::from(distance)), None);
        }
        let known = ops.initial.keys().copied().chain(ops.live_out.iter().map(|l| l.0)).chain(n.checked_sub(1));
        known.for_each(|i| all.movable[i] = false);
        all
    }

    fn order(&mut self, first: usize, second: usize, (cycles, distance): (i64, i64), operand: Option<usize>) {
        if first != second {
            self.after[first].push(Order { other: second, cycles, distance, operand });
            self.before[second].push(Order { other: first, cycles, distance, operand });
        }
    }
}

/// A schedule that is being changed.
struct Relief<'a> {
    ops: &'a Ops,
    near: &'a Neighbours,
    ii: i64,
    limits: &'a [i64],
    table: Table<'a>,
    schedule: Schedule,
    /// When everything of an iteration has landed.
    end: i64,
    behind: Vec<bool>,
    /// Values alive, by side and row.
    live: Vec<Vec<i64>>,
    /// Rows in which values are alive: the first, and how many.
    arcs: Vec<(i64, i64)>,
    /// Sides and rows that had too many when that was last looked at.
    crowded: Vec<(usize, usize)>,
    /// Values beyond the limits, over all rows.
    excess: i64,
}

/// The schedule with fewer rows that need more than `limits` registers, where that was
/// found, and the number of moves that were tried.
pub fn relieve(
    sides: &Sides<'_>,
    ops: &Ops,
    near: &Neighbours,
    apart: bool,
    limits: &[i64],
    schedule: Schedule,
) -> (Schedule, u64) {
    let Some(mut relief) = Relief::new(sides, ops, near, apart, limits, &schedule) else { return (schedule, 0) };
    if relief.excess > MOST {
        return (schedule, 0);
    }
    let most = (relief.excess as u64 * MOVES.0).min(MOVES.1);
    let (mut k, mut least, mut since) = (0, relief.excess, 0);
    while relief.excess > 0 && k < most && k - since < FRUITLESS {
        k += 1;
        relief.step(k);
        if relief.excess < least {
            (least, since) = (relief.excess, k);
        }
    }
    (relief.schedule, k)
}

impl<'a> Relief<'a> {
    fn new(
        sides: &'a Sides<'a>,
        ops: &'a Ops,
        near: &'a Neighbours,
        apart: bool,
        limits: &'a [i64],
        schedule: &Schedule,
    ) -> Option<Relief<'a>> {
        let ii = schedule.ii;
        let mut table = Table::new(sides, ops, ii, apart);
        for (i, op) in ops.ops.iter().enumerate() {
            let row = table.row(schedule.time[i]);
            let unit = table.free(row, op, schedule.variant[i])?;
            table.put(row, i, op, schedule.variant[i], unit);
        }
        let end = (0..ops.ops.len()).map(|i| schedule.time[i] + latency(ops, i)).max().unwrap_or(0);
        let mut behind = vec![false; ops.ops.len()];
        ops.live_out.iter().for_each(|l| behind[l.0] = true);
        let live = vec![vec![0; ii as usize]; limits.len()];
        let mut relief = Relief {
            ops,
            near,
            ii,
            limits,
            table,
            schedule: schedule.clone(),
            end,
            behind,
            live,
            arcs: vec![(0, 0); ops.ops.len()],
            crowded: Vec::new(),
            excess: 0,
        };
        for i in 0..ops.ops.len() {
            relief.count(i, 1);
        }
        Some(relief)
    }

    /// The cycles for which a value has its register, as colouring has them: the first
    /// and how many.
    fn arc(&self, i: usize) -> Option<(i64, i64)> {
        self.ops.ops[i].writes?;
        let mut start = self.schedule.time[i] + kept(self.ops, i);
        let read = |&(r, d): &(usize, i64)| self.schedule.time[r] + d * self.ii;
        let mut stop = self.near.readers[i].iter().map(read).max().unwrap_or(start).max(start);
        if self.behind[i] {
            stop = stop.max(self.end);
        }
        if self.ops.initial.contains_key(&i) {
            start = start.min(self.ii);
        }
        Some((start, (stop - start + 1).min(self.ii)))
    }

    /// A value comes (1) or goes (-1).
    fn count(&mut self, i: usize, by: i64) {
        let Some((start, cycles)) = self.arc(i) else { return };
        let side = self.ops.ops[i].at.result;
        let (rows, limit) = (&mut self.live[side], self.limits[side]);
        let start = start.rem_euclid(self.ii);
        self.arcs[i] = (start, cycles);
        let mut row = start as usize;
        for _ in 0..cycles {
            let before = rows[row] - limit;
            rows[row] += by;
            self.excess += (before + by).max(0) - before.max(0);
            row = if row + 1 == rows.len() { 0 } else { row + 1 };
        }
    }

    /// The cycles that its neighbours leave an operation.
    fn window(&self, i: usize) -> (i64, i64) {
        let (time, ii) = (&self.schedule.time, self.ii);
        let (mut low, mut high) = (0, self.schedule.stages * ii - 1);
        for e in &self.near.before[i] {
            low = low.max(time[e.other] + e.cycles - e.distance * ii);
        }
        for e in &self.near.after[i] {
            high = high.min(time[e.other] + e.distance * ii - e.cycles);
        }
        // No value may be there when its successor comes.
        for &(p, d) in self.near.reads[i].iter().filter(|r| r.0 != i) {
            high = high.min(time[p] + kept(self.ops, p) + ii - 1 - d * ii);
        }
        for &(r, d) in self.near.readers[i].iter().filter(|r| r.0 != i) {
            low = low.max(time[r] + d * ii - kept(self.ops, i) - ii + 1);
        }
        (low, high)
    }

    /// See which rows have too many values.
    fn look(&mut self) {
        let (live, limits) = (&self.live, self.limits);
        let rows = |side: usize| (0..live[side].len()).filter(move |&row| live[side][row] > limits[side]);
        self.crowded = (0..live.len()).flat_map(|side| rows(side).map(move |row| (side, row))).collect();
    }

    /// Try to move something near a row with too many values.
    fn step(&mut self, k: u64) {
        let choice = |m: u64, of: usize| mix(k, 3000 + m) as usize % of.max(1);
        let Some(&(side, row)) = self.crowded.get(choice(0, self.crowded.len())) else { return self.look() };
        if self.live[side][row] <= self.limits[side] {
            return self.look();
        }
        let concerned = self.concerned(side, row, choice(1, self.ops.ops.len()), choice(2, 2) == 0);
        let Some(i) = concerned else { return };
        if !self.near.movable[i] {
            return;
        }
        let (low, high) = self.window(i);
        let now = self.schedule.time[i];
        if high <= low || !(low..=high).contains(&now) {
            return;
        }
        for m in 0..PLACES {
            // Most moves are short ones.
            let far = if choice(20 + m, 4) == 0 { high - low } else { 6 };
            let (a, b) = (low.max(now - far), high.min(now + far));
            let to = a + choice(10 + m, (b - a + 1) as usize) as i64;
            if to != now && self.shift(i, to, choice(30 + m, 32) == 0) {
                return;
            }
        }
    }

    /// The operation of a value that is in a row, the next from `first` on; or else the last
    /// that reads it.
    fn concerned(&self, side: usize, row: usize, first: usize, own: bool) -> Option<usize> {
        let there = |&i: &usize| {
            let (start, cycles) = self.arcs[i];
            let since = row as i64 - start;
            let since = if since < 0 { since + self.ii } else { since };
            since < cycles && self.ops.ops[i].at.result == side
        };
        let value = (first..self.ops.ops.len()).chain(0..first).find(there)?;
        let last = self.near.readers[value].iter().max_by_key(|r| self.schedule.time[r.0] + r.1 * self.ii);
        Some(if own { value } else { last.map_or(value, |r| r.0) })
    }

    /// Move an operation if units allow and it makes nothing worse, or hardly where it
    /// may be `lax`.
    fn shift(&mut self, i: usize, to: i64, lax: bool) -> bool {
        let op = &self.ops.ops[i];
        let (now, old) = (self.schedule.time[i], self.schedule.variant[i]);
        let (row, new) = (self.table.row(now), self.table.row(to));
        if row == new {
            return false;
        }
        self.table.take(row, i, op, old);
        let choice = if self.table.count[new] >= self.table.width() {
            None
        } else {
            self.table.best(new, op).or_else(|| shuffle(&mut self.table, self.ops, &mut self.schedule.variant, new, i))
        };
        let before = self.excess;
        if let Some((v, unit)) = choice {
            let mut values: SmallVec<[usize; 4]> = self.near.reads[i].iter().map(|r| r.0).collect();
            values.push(i);
            values.sort_unstable();
            values.dedup();
            values.iter().for_each(|&p| self.count(p, -1));
            self.schedule.time[i] = to;
            values.iter().for_each(|&p| self.count(p, 1));
            if self.excess <= before + i64::from(lax) {
                self.table.put(new, i, op, v, unit);
                self.schedule.variant[i] = v;
                return true;
            }
            values.iter().for_each(|&p| self.count(p, -1));
            self.schedule.time[i] = now;
            values.iter().for_each(|&p| self.count(p, 1));
        }
        // Its own unit is free still: others have moved in its new row alone.
        let unit = self.table.free(row, op, old).flatten();
        self.table.put(row, i, op, old, unit);
        false
    }
}
