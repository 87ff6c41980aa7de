//! Inductions in a schedule: `p = p + 16` and the like, which depend on nothing
//! but themselves. They get a place at the iteration's end before everything
//! else, and leave it at the end for one that suits all their readers.

use super::Attempt;
use crate::body::From;
use crate::graph::{kept, latency};
use crate::table::shuffle;

impl Attempt<'_> {
    /// Room for the inductions at the iteration's end, where the last stores
    /// would take it from them.
    pub(super) fn reserve_inductions(&mut self) -> Option<()> {
        for i in (0..self.ops.ops.len()).filter(|&i| self.plan.orders.lazy[i]) {
            let op = &self.ops.ops[i];
            let free = (-self.ii..0).rev().find_map(|t| Some((t, self.table.slot(t, op)?)));
            let (t, (v, unit)) = free?;
            self.table.put(self.table.row(t), i, op, v, unit);
            (self.time[i], self.variant[i]) = (Some(t), v);
        }
        Some(())
    }

    /// Inductions, between their last and their first readers.
    pub(super) fn inductions(&mut self) -> Option<()> {
        let (ops, ii) = (self.ops, self.ii);
        self.parting()?;
        for i in (0..ops.ops.len()).filter(|&i| self.plan.orders.lazy[i]) {
            if self.plan.orders.parting.contains(&i) {
                continue;
            }
            let others = ops.ops.iter().enumerate().filter(|(r, _)| *r != i);
            let reads = others.flat_map(|(r, o)| o.reads.iter().map(move |x| (r, x)));
            let readers: Vec<(i64, i64)> = reads
                .filter(|(_, x)| x.1 == From::Node(i, 1))
                .filter_map(|(r, x)| Some((self.time[r]?, ops.crossing(r, x.0))))
                .collect();
            let lat = latency(ops, i);
            let low = readers.iter().map(|r| r.0 - kept(ops, i) + 1).max().unwrap_or(self.lowest).max(self.lowest);
            let high = readers.iter().map(|r| r.0 + ii - lat - r.1).min().unwrap_or(-1).min(-1);
            // One in rotating registers may be made before the last reader has what it was.
            let low = if self.rotates { low.min(high - ii + 1).max(self.lowest) } else { low };
            if self.time[i].is_some_and(|t| (low..=high).contains(&t)) {
                continue;
            }
            if let Some(t) = self.time[i] {
                self.table.take(self.table.row(t), i, &ops.ops[i], self.variant[i]);
            }
            let placed = (low..=high.min(low + ii - 1)).find_map(|t| {
                let row = self.table.row(t);
                if self.table.count[row] >= self.sides.machine.issue.width {
                    return None;
                }
                let free = self.table.best(row, &ops.ops[i]);
                let (v, unit) = free.or_else(|| shuffle(&mut self.table, ops, &mut self.variant, row, i))?;
                Some((t, row, v, unit))
            });
            let (t, row, v, unit) = placed?;
            self.table.put(row, i, &ops.ops[i], v, unit);
            (self.time[i], self.variant[i]) = (Some(t), v);
        }
        Some(())
    }

    /// What only reads inductions goes among their other readers.
    fn parting(&mut self) -> Option<()> {
        let (ops, ii, plan) = (self.ops, self.ii, self.plan);
        for &i in &plan.orders.parting {
            let (mut low, mut high) = (self.lowest, -1);
            let sources = ops.ops[i]
                .reads
                .iter()
                .filter_map(|r| if let From::Node(p, _) = r.1 { Some((p, ops.crossing(i, r.0))) } else { None });
            for (p, crossing) in sources {
                let reads = ops.ops.iter().enumerate().flat_map(|(r, o)| o.reads.iter().map(move |x| (r, x)));
                let others = reads.filter(|(r, x)| x.1 == From::Node(p, 1) && *r != p && !plan.orders.lazy[*r]);
                // All readers of the induction stand within an interval, where its register stands still.
                let span = ii - latency(ops, p) - crossing;
                for t in others.filter_map(|(r, _)| self.time[r]).filter(|_| !self.rotates) {
                    low = low.max(t - span);
                    high = high.min(t + span);
                }
            }
            if self.time[i].is_some_and(|t| (low..=high).contains(&t)) {
                continue;
            }
            if let Some(t) = self.time[i] {
                self.table.take(self.table.row(t), i, &ops.ops[i], self.variant[i]);
            }
            let first = low.max(high - ii + 1);
            let (t, (v, unit)) = (first..=high).rev().find_map(|t| Some((t, self.table.slot(t, &ops.ops[i])?)))?;
            self.table.put(self.table.row(t), i, &ops.ops[i], v, unit);
            (self.time[i], self.variant[i]) = (Some(t), v);
        }
        Some(())
    }
}
