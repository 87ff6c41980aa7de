//! Operations that stand already, relative to each other.
//!
//! Those behind them are placed as ever. When all that read one of them have their cycle, it is known how late they can be.
//! Then they get their slots, and each stands when its cycle comes. Where one cannot, because something that reads it has
//! no cycle yet, all that are left come a cycle earlier; and so they do, a few cycles at most, for slots that are taken.
//! Where that is of no use the rest is placed like any other.
//!
//! Registers are counted for the others alone: what stands already was found with the registers there are.

use super::Attempt;
use crate::graph::Orders;
use crate::search::preset::Stands;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Cycles by which they may come earlier in all: what some slides do not mend more do not. ChaCha20 on the C6201 needs 21.
const SLIDES: i64 = 64;
/// And for slots, each time. With 64 at once they left the stage after the first conflict.
const AT_ONCE: i64 = 6;

/// What is followed.
pub struct Followed {
    stands: Vec<Option<Stands>>,
    at: BTreeMap<i64, Vec<usize>>,
    /// Operations that read one of them, none of which waits for these.
    behind: Vec<usize>,
}

impl Followed {
    pub fn of(orders: &Orders, stands: &[Option<Stands>]) -> Followed {
        let n = stands.len();
        // Inductions are placed last.
        let free = |(i, s): (usize, &Option<Stands>)| s.filter(|_| !orders.lazy[i]);
        let stands: Vec<Option<Stands>> = stands.iter().enumerate().map(free).collect();
        let mut leads = vec![false; n];
        for &i in orders.sorted.iter().rev() {
            leads[i] = stands[i].is_some() || orders.edges.succs[i].iter().any(|s| leads[s.0]);
        }
        let reads = |i: usize| orders.edges.preds[i].iter().any(|p| stands[p.0].is_some());
        let behind = (0..n).filter(|&i| !leads[i] && !orders.lazy[i] && i + 1 < n && reads(i)).collect();
        let mut at: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
        let all = stands.iter().enumerate().filter_map(|(i, s)| s.map(|s| (s.0, i)));
        all.for_each(|(time, i)| at.entry(time).or_default().push(i));
        Followed { stands, at, behind }
    }
}

/// How far it has come.
#[derive(Default)]
pub struct Following {
    /// The cycle from which cycles are counted, when it is known.
    anchor: Option<i64>,
    /// Operations whose slots are taken for them, in the rows of that anchor.
    reserved: BTreeMap<usize, usize>,
    slides: i64,
    /// The rest is placed like the others.
    over: bool,
}

impl Attempt<'_> {
    /// Those whose cycle this is stand in it. None where a value would live too long.
    pub(super) fn follow(&mut self, t: i64) -> Option<()> {
        let plan = self.plan;
        let Some(followed) = plan.followed.as_ref().filter(|_| !self.following.over) else { return Some(()) };
        if self.following.anchor.is_none() {
            if followed.behind.iter().any(|&i| self.time[i].is_none()) {
                return Some(());
            }
            let latest = |(i, s): (usize, &Option<Stands>)| s.map(|s| self.late[i].min(t) - s.0);
            let anchor = followed.stands.iter().enumerate().filter_map(latest).min()?;
            self.reserve(followed, anchor);
        }
        while let Some(anchor) = self.following.anchor
            && let Some(list) = followed.at.get(&(t - anchor))
        {
            let can = |i: &usize| self.place[*i] != usize::MAX && self.late[*i] >= t;
            let next = list.iter().copied().find(|i| self.following.reserved.contains_key(i) && can(i));
            if let Some(i) = next {
                self.following.reserved.remove(&i);
                self.place(i, t, self.variant[i])?;
                continue;
            }
            if list.iter().any(|&i| self.time[i].is_none()) {
                match self.following.slides < SLIDES {
                    true => self.reserve(followed, anchor - 1),
                    false => self.end(),
                }
            }
            break;
        }
        Some(())
    }

    /// Those that do not stand get their slots, counted from a cycle or from one that is a little earlier, where most find
    /// theirs. What finds none has it later, or never.
    fn reserve(&mut self, followed: &Followed, anchor: i64) {
        self.release();
        let left = followed.stands.iter().enumerate().filter_map(|(i, s)| s.map(|(time, v)| (i, time, v)));
        let left: Vec<_> = left.filter(|l| self.time[l.0].is_none()).collect();
        let slot = |a: &Attempt<'_>, anchor: i64, (i, time, v): (usize, i64, _)| {
            let (row, op) = (a.table.row(anchor + time), &a.ops.ops[i]);
            if a.table.count[row] >= a.table.width() {
                return None;
            }
            match op.variants.contains(&v) {
                true => a.table.free(row, op, v).map(|unit| (row, v, unit)),
                // An operand has come from another cluster than in the round.
                false => a.table.best(row, op).map(|(v, unit)| (row, v, unit)),
            }
        };
        let slots = |by: i64| left.iter().filter(|l| slot(self, anchor - by, **l).is_some()).count();
        let by = (0..AT_ONCE).max_by_key(|&by| (slots(by), Reverse(by))).unwrap_or(0);
        self.following.slides += by + 1;
        self.following.anchor = Some(anchor - by);
        for l in left {
            if let Some((row, v, unit)) = slot(self, anchor - by, l) {
                self.table.put(row, l.0, &self.ops.ops[l.0], v, unit);
                self.following.reserved.insert(l.0, row);
                self.variant[l.0] = v;
            }
        }
    }

    fn release(&mut self) {
        for (i, row) in std::mem::take(&mut self.following.reserved) {
            self.table.take(row, i, &self.ops.ops[i], self.variant[i]);
        }
    }

    /// Nothing is followed any more.
    fn end(&mut self) {
        self.release();
        self.following.over = true;
    }

    /// May an operation be placed where it finds room?
    pub(super) fn may(&self, i: usize) -> bool {
        self.following.over || self.plan.followed.as_ref().is_none_or(|followed| followed.stands[i].is_none())
    }
}
