//! Other divisions between the sides, step by step.
//!
//! What a loop's units allow depends on which side does what, and so do the copies between the
//! sides and the registers that a cycle needs. A division that counting alone finds good seldom
//! has a schedule that can be found from nothing. Here a schedule stands all the while: a few
//! nodes go to another side, everything else stays in its cycle, and what that breaks is annealed
//! ([`super::anneal`]); then a row is taken out, if that can be mended. So the division follows
//! the schedule, and the schedule the division. Operations change sides while they are annealed,
//! too, but only here copies between the sides come and go.

use super::anneal::{Loop, State, Warmth};
use super::body::Body;
use super::color;
use super::graph::{Orders, res_mii};
use super::modulo::mix;
use super::partition;
use super::place::{At, Sides, settle};
use super::relieve::Neighbours;
use super::squeeze::{Finished, by_breakage, finished};
use ciphermill_machine::Reg;

/// Moves for each node that it takes as long as to settle another division, and to carry a
/// schedule over to it.
const SETTLING: u64 = 1;
const CARRYING: u64 = 2;
/// Moves for each node in which what another division breaks has to be mended.
const MENDING: u64 = 20;
/// After a quarter of them, after half and after all it is given up where more is broken.
const HOPELESS: [(u64, i64); 3] = [(4, 10), (2, 5), (1, 0)];
/// Rows that are taken out, those first that break least, and moves for each.
const ROWS: (usize, u64) = (3, 5_000);
/// A division may have one copy more where units leave more than so many cycles.
const ROOM: i64 = 2;
/// How warm a schedule is of which a little has changed.
const COOL: Warmth = (12, 1);

/// A division between the sides, and a schedule.
#[derive(Clone)]
pub struct Standing {
    pub at: Vec<At>,
    pub found: Finished,
}

/// A walk from a schedule to shorter ones.
pub struct Walk<'a> {
    pub body: &'a Body,
    pub sides: &'a Sides<'a>,
    pub allocatable: &'a [Reg],
    pub apart: bool,
    /// The least II, whatever the division.
    pub least: i64,
    pub seed: u64,
    /// Moves that may be made.
    pub moves: u64,
}

impl Walk<'_> {
    /// The shortest schedule on the way.
    pub fn run(&self, mut best: Standing) -> Standing {
        let nodes = self.body.nodes.len();
        let (mut taken, mut k) = (0, 0);
        let pool = color::pool(self.sides);
        let mut price = (res_mii(self.sides, &best.found.ops), best.found.ops.ops.len());
        while taken < self.moves && best.found.schedule.ii > self.least {
            k += 1;
            taken += SETTLING * nodes as u64;
            let mut new = best.at.clone();
            for m in 0..=mix(self.seed, 3 * k) % 2 {
                let which = mix(self.seed, 3 * k + 1 + m) as usize % (4 * nodes);
                new = partition::moves(self.body, self.sides, &new, which).unwrap_or(new);
            }
            let Ok(ops) = settle(self.body, self.sides, &new) else { continue };
            let next = (res_mii(self.sides, &ops), ops.ops.len());
            if next > price && !(next.0 + ROOM < best.found.schedule.ii && next.1 <= price.1 + 1) {
                continue;
            }
            taken += CARRYING * nodes as u64;
            let limits = color::left(self.sides, &ops);
            if limits.iter().any(|l| *l < 2) {
                continue;
            }
            let near = Neighbours::of(&ops);
            let all = Loop { sides: self.sides, ops: &ops, near: &near, apart: self.apart, pool: &pool };
            let Some(mut state) = State::carried(all, &best.found.schedule, &best.found.ops) else { continue };
            let moves = MENDING * nodes as u64;
            let mut from = 0;
            let hopeless = HOPELESS.iter().any(|&(part, broken)| {
                let to = moves / part;
                taken += state.anneal_part(from..to, moves, COOL, mix(self.seed, k));
                from = to;
                state.left() > broken
            });
            if hopeless {
                continue;
            }
            let Some(mut found) = finished(all, &state, self.allocatable) else { continue };
            let least = next.0.max(Orders::of(&ops).rec_mii(&ops)).max(self.least);
            while found.schedule.ii > least && taken < self.moves {
                let Some(shorter) = self.shorter(all, &found, mix(self.seed, k), &mut taken) else { break };
                found = shorter;
            }
            price = (res_mii(self.sides, &found.ops), found.ops.ops.len());
            best = Standing { at: found.ops.at(nodes), found };
        }
        best
    }

    /// A schedule of one cycle less.
    fn shorter(&self, all: Loop<'_>, from: &Finished, seed: u64, taken: &mut u64) -> Option<Finished> {
        let all = all.settled(&from.ops);
        let rows = by_breakage(all, &from.schedule);
        rows.iter().take(ROWS.0).find_map(|&row| {
            let mut state = State::without(all, &from.schedule, row)?;
            *taken += state.anneal(ROWS.1, COOL, mix(seed, row as u64));
            finished(all, &state, self.allocatable)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Finished, Standing, Walk, finished};
    use crate::anneal::State;
    use crate::anneal::tests::on_one_side;
    use crate::modulo::keeps_orders;

    #[test]
    fn a_side_that_does_all_the_work_shares_it() {
        // 40 additions and the branch on two units: 21 rows. On four: 11.
        on_one_side((4, 10), 8, |body, allocatable, at, all| {
            let mut state = State::stretched(all, 15, 21, 2, 42).unwrap();
            state.anneal(50_000, (30, 2), 1);
            let found = finished(all, &state, allocatable).unwrap();
            let start = Standing { at: at.to_vec(), found };
            let walk = |moves| Walk { body, sides: all.sides, allocatable, apart: false, least: 11, seed: 1, moves };
            assert_eq!(walk(0).run(start.clone()).found.schedule.ii, 21);
            let Standing { at, found: Finished { schedule, ops, .. } } = walk(400_000).run(start);
            assert!((11..14).contains(&schedule.ii), "{} rows", schedule.ii);
            assert!(keeps_orders(&ops, schedule.ii, &schedule.time));
            assert!(at.iter().filter(|a| a.unit == 1).count() > 10);
            // No unit twice in a row.
            let units = |i: usize| all.sides.machine.instrs[usize::from(schedule.variant[i].0)].units.clone();
            let mut taken: Vec<_> = (0..ops.ops.len()).map(|i| (schedule.time[i] % schedule.ii, units(i))).collect();
            taken.sort();
            assert!(taken.windows(2).all(|w| w[0] != w[1] || w[0].1.is_empty()));
        });
    }
}
