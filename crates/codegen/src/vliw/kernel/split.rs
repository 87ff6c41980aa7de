//! Values that change over to another register on their way.
//!
//! Colouring says which values, and when ([`super::color`]); here it is asked
//! where a copy has a unit, and the copies become operations of the schedule.

use super::body::From;
use super::color::{Changes, Split};
use super::graph::latency;
use super::modulo::{Schedule, keeps_orders};
use super::place::{Op, Ops, Sides, copy};
use super::table::Table;
use ciphermill_machine::Reg;
use std::cell::OnceCell;

/// A schedule whose values may change over; looked at when the first would have to.
pub struct Schedules<'a> {
    pub sides: &'a Sides<'a>,
    pub ops: &'a Ops,
    pub schedule: &'a Schedule,
    pub room: OnceCell<Option<Room<'a>>>,
}

impl Changes for Schedules<'_> {
    fn may(&self, value: usize, time: i64) -> bool {
        let room = self.room.get_or_init(|| Room::new(self.sides, self.ops, self.schedule));
        room.as_ref().is_some_and(|room| room.may(value, time))
    }
}

/// Rows of a schedule in which a side has a unit for a copy.
pub struct Room<'a> {
    ops: &'a Ops,
    schedule: &'a Schedule,
    /// By side and row.
    free: Vec<Vec<bool>>,
    /// Reads of each operation's result that a copy could serve: time, and the cycle
    /// after which a copy must have landed for the machine not to wait.
    reads: Vec<Vec<(i64, i64)>>,
    /// Results that stay in one register: another operation is tied to it, another
    /// iteration or the code behind the loop knows it, or certain registers are meant.
    stays: Vec<bool>,
}

impl<'a> Room<'a> {
    fn new(sides: &Sides<'_>, ops: &'a Ops, schedule: &'a Schedule) -> Option<Room<'a>> {
        let n = ops.ops.len();
        let table = filled(sides, ops, schedule)?;
        let one = |side: usize| {
            let (op, _) = copy(sides, side, side);
            (0..schedule.ii).map(|row| !op.variants.is_empty() && table.slot(row, &op).is_some()).collect()
        };
        let free = (0..sides.files.len()).map(one).collect();
        let (mut reads, mut stays) = (vec![Vec::new(); n], vec![false; n]);
        for (i, op) in ops.ops.iter().enumerate() {
            stays[i] |= op.writes.is_none() || op.tied;
            let instr = &sides.machine.instrs[usize::from(schedule.variant[i].0)];
            for &(o, from) in &op.reads {
                let From::Node(p, distance) = from else { continue };
                let tied = op.tied && op.writes.is_some_and(|w| w.0 == o);
                stays[p] |= distance > 0 || tied || instr.only.iter().any(|x| x.0 == o);
                reads[p].push((schedule.time[i], schedule.time[i] - ops.crossing(i, o)));
            }
        }
        ops.initial.keys().chain(ops.live_out.iter().map(|l| &l.0)).for_each(|&i| stays[i] = true);
        Some(Room { ops, schedule, free, reads, stays })
    }

    fn may(&self, value: usize, time: i64) -> bool {
        let side = self.ops.ops[value].at.result;
        let waits = self.reads[value].iter().any(|&(at, landed)| at > time && landed <= time);
        let row = time.rem_euclid(self.schedule.ii) as usize;
        let made = time >= self.schedule.time[value] + latency(self.ops, value);
        made && !self.stays[value] && !waits && self.free[side][row] && time < self.schedule.stages * self.schedule.ii
    }
}

/// A schedule's table.
fn filled<'a>(sides: &'a Sides<'_>, ops: &Ops, schedule: &Schedule) -> Option<Table<'a>> {
    let mut table = Table::new(sides, ops, schedule.ii, false);
    for (i, op) in ops.ops.iter().enumerate() {
        let (row, v) = (table.row(schedule.time[i]), schedule.variant[i]);
        let unit = table.free(row, op, v)?;
        table.put(row, i, op, v, unit);
    }
    Some(table)
}

/// The schedule with copies for values that change over, each in the register it
/// then has; `None` where a copy has no unit after all.
pub fn split(
    sides: &Sides<'_>,
    ops: &Ops,
    schedule: &Schedule,
    result: &mut Vec<Option<Reg>>,
    splits: &[Split],
) -> Option<(Ops, Schedule)> {
    let (mut ops, mut schedule) = (ops.clone(), schedule.clone());
    let n = ops.ops.len();
    // The branch stays the last.
    let name = |value: usize| if value < n { value } else { value - 1 };
    let (branch, time, variant) = (ops.ops.pop()?, schedule.time.pop()?, schedule.variant.pop()?);
    let register = result.pop()?;
    let mut copies: Vec<(Op, i64)> = Vec::new();
    for (k, s) in splits.iter().enumerate() {
        let (value, new) = (name(s.value), n - 1 + k);
        let side = match value.checked_sub(n - 1) {
            None => ops.ops[value].at.result,
            Some(k) => copies[k].0.at.result,
        };
        let (mut op, used) = copy(sides, side, side);
        op.reads.push((used, From::Node(value, 0)));
        let later = |at: i64| at > s.time;
        let all = ops.ops.iter_mut().zip(&schedule.time).map(|(op, &t)| (op, t));
        let all = all.chain(copies.iter_mut().map(|c| (&mut c.0, c.1)));
        for (reader, _) in all.filter(|x| later(x.1)) {
            reader.reads.iter_mut().filter(|r| r.1 == From::Node(value, 0)).for_each(|r| r.1 = From::Node(new, 0));
        }
        copies.push((op, s.time));
        result.push(Some(s.to));
    }
    let mut branch = branch;
    for (k, s) in splits.iter().enumerate().filter(|x| time > x.1.time) {
        let old = From::Node(name(s.value), 0);
        branch.reads.iter_mut().filter(|r| r.1 == old).for_each(|r| r.1 = From::Node(n - 1 + k, 0));
    }
    let mut whole = Ops { ops: ops.ops, ..ops };
    whole.ops.extend(copies.iter().map(|c| c.0.clone()));
    whole.ops.push(branch);
    result.push(register);
    let mut table = Table::new(sides, &whole, schedule.ii, false);
    for i in (0..n - 1).chain([n - 1 + copies.len()]) {
        let last = i >= n - 1;
        let (t, v) = if last { (time, variant) } else { (schedule.time[i], schedule.variant[i]) };
        let (row, op) = (table.row(t), &whole.ops[i]);
        let unit = table.free(row, op, v)?;
        table.put(row, i, op, v, unit);
    }
    for (k, &(_, t)) in copies.iter().enumerate() {
        let i = n - 1 + k;
        let (v, unit) = table.slot(t, &whole.ops[i])?;
        table.put(table.row(t), i, &whole.ops[i], v, unit);
        schedule.time.push(t);
        schedule.variant.push(v);
    }
    schedule.time.push(time);
    schedule.variant.push(variant);
    keeps_orders(&whole, schedule.ii, &schedule.time).then_some((whole, schedule))
}
