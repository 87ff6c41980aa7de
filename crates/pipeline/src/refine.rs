//! Shorter schedules near one that was found.
//!
//! With another division between the sides, another order among operations that are
//! nearly as urgent, or other choices of the scheduler, a loop may fit into fewer
//! cycles. Such changes are tried one after the other, as long as one succeeds now
//! and then. Nothing is said here of how one attempt is made.

use super::modulo::{self, Policy};
use super::place;
use super::{Found, Loops, order, partition, settling, stages, useful};
use ciphermill_vcode::CompileError;

/// Operations scheduled, at most, while the schedules found for a loop are shortened.
const REFINEMENTS: usize = 1_600_000;
/// And schedules.
const RETRIALS: usize = 1000;
/// Operations scheduled without success before one is left as it is.
const PATIENCE: usize = 400_000;
/// And schedules.
const FRUITLESS: usize = 400;
/// As `REFINEMENTS`, where there is but one cluster.
const UNDIVIDED: usize = 300_000;

impl Loops<'_> {
    /// Shorten those kernels that may yet become the shortest. Where work is divided
    /// between clusters annealing gains most ([`super::squeeze`]); where it gains nothing, or
    /// there is but one cluster, trials do, as long as one succeeds now and then.
    pub(super) fn shorten(&self, all: &mut Vec<Found>) -> Result<(), CompileError> {
        let least = |all: &[Found]| all.iter().map(|f| f.kernel.schedule.ii).min().unwrap_or(0);
        if self.sides.files.len() < 2 {
            let first = least(all);
            all.retain(|f| f.kernel.schedule.ii <= first + first / 16);
            let each = UNDIVIDED / all.len().max(1);
            return all.iter_mut().try_for_each(|found| {
                let mut left = each.min(FRUITLESS * found.body.nodes.len());
                self.refine(found, &mut left, each)
            });
        }
        all.sort_by_key(|f| f.kernel.schedule.ii);
        if self.search.goes_on() {
            self.shorten_forms(all);
            return Ok(());
        }
        if let Some(best) = all.first_mut() {
            self.squeeze(best, true);
            if best.annealed {
                return Ok(());
            }
        }
        let longest = all.iter().map(|f| f.body.nodes.len()).max().unwrap_or(0);
        let mut left = REFINEMENTS.min(RETRIALS * longest);
        for k in 0..all.len() {
            let first = least(all);
            if all[k].kernel.schedule.ii <= first + first / 32 {
                self.refine(&mut all[k], &mut left, if k == 0 { PATIENCE } else { PATIENCE / 4 })?;
            }
        }
        Ok(())
    }

    /// Shorten a kernel: other divisions near its own, and other orders among
    /// operations that are equally urgent, or nearly. `left` operations may be scheduled,
    /// `patience` of them without success.
    fn refine(&self, found: &mut Found, left: &mut usize, patience: usize) -> Result<(), CompileError> {
        let n = found.body.nodes.len();
        let patience = (patience / n.max(1)).min(FRUITLESS);
        let (mut k, mut until) = (0, patience as u64);
        while k < until && *left >= n {
            k += 1;
            *left -= n;
            let mut at = found.at.clone();
            for m in 0..k % 4 {
                let which = modulo::mix(k, m) as usize % (3 * n);
                at = partition::moves(&found.body, self.sides, &at, which).unwrap_or(at);
            }
            if self.work.get() <= 0 {
                break;
            }
            let stays = |(i, g): (usize, &Option<usize>)| g.is_none_or(|s| at[i].unit == s);
            if !found.given.iter().enumerate().all(stays) {
                continue;
            }
            // Now and then another order of the program.
            let other = (k % 4 == 0 && found.given.is_empty()).then(|| {
                let part: Vec<usize> = at.iter().map(|a| a.result).collect();
                order::other(&found.body, &part, k)
            });
            if let Some((_, order)) = &other {
                at = order.iter().map(|&old| at[old]).collect();
            }
            self.charge(settling(&found.body));
            let body = other.map_or_else(|| found.body.clone(), |o| o.0);
            let ops = place::settle(&body, self.sides, &at)?;
            let Some(room) = self.room(&body, &ops) else { continue };
            let policy = if k % 2 == 0 { Policy::any(k) } else { Policy { seed: k, ..found.policy } };
            let own = found.kernel.schedule.stages;
            let chain = room.plan.orders.chain(&ops);
            let stages = match k % 10 {
                0 if own < stages(self.sides.machine, own) && useful(own + 1, found.kernel.schedule.ii, chain) => {
                    own + 1
                }
                5 => (own - 1).max(1),
                _ => own,
            };
            let mut step = 1;
            loop {
                let ii = found.kernel.schedule.ii - step;
                if ii < room.first {
                    break;
                }
                let Some(kernel) = self.attempt(&body, &ops, &room, ii, policy, stages) else { break };
                (found.kernel, found.policy) = (kernel, policy);
                found.body.clone_from(&body);
                found.at.clone_from(&at);
                until = k + patience as u64;
                step *= 2;
            }
            if found.kernel.schedule.ii <= room.first {
                break;
            }
        }
        Ok(())
    }
}
