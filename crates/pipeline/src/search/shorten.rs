//! Shorter schedules from one that holds: rows are taken out.

use super::moves::mix;
use super::threads::together;
use super::{Landed, Search};
use ciphermill_program::search_log::{Moves, Phase};

/// Of so many rows at most one is taken out at once.
const AT_ONCE: i64 = 16;

impl<'s> Search<'s> {
    /// Take rows out as long as what that breaks can be mended: those first that break least, one
    /// after the other, or twice as many at once each time that has gone well.
    pub(super) fn narrow(&mut self, mut best: Landed<'s>, bound: i64, tries: &[(usize, u64)]) -> Landed<'s> {
        let n = best.state.ops().ops.len() as u64;
        let (before, first) = (self.budget, best.schedule.ii);
        let (mut at_once, mut tried, mut end) = (1, 0, "bound");
        while best.schedule.ii > bound {
            if self.budget == 0 {
                end = "budget";
                break;
            }
            let rows = best.state.by_breakage();
            let most = at_once.min((best.schedule.ii - bound) as usize);
            let mut shorter = None;
            for &(count, moves) in tries.iter().take(if most > 1 { 1 } else { tries.len() }) {
                let out: Vec<Vec<i64>> = match most {
                    1 => rows.iter().take(count).map(|&row| vec![row]).collect(),
                    _ => vec![rows.iter().take(most).copied().collect()],
                };
                tried += out.len() as u64;
                let seed = mix(self.seed, moves + best.schedule.ii as u64);
                let made = together(out, |rows| {
                    let Some(mut state) = best.state.resized(&rows, &[]) else { return (None, Moves::default()) };
                    let moves = state.anneal(moves * n, self.params.nearly, mix(seed, rows[0] as u64));
                    (self.allot(best.form, &state).ok(), moves)
                });
                self.spend(made.iter().map(|m| m.1).sum::<Moves>());
                shorter = made.into_iter().find_map(|m| m.0);
                if shorter.is_some() || self.budget == 0 {
                    break;
                }
            }
            match shorter {
                Some(shorter) => {
                    best = shorter;
                    at_once = (2 * most).min((1 + best.schedule.ii / AT_ONCE) as usize);
                }
                None if most > 1 => at_once = 1,
                None => {
                    end = if self.budget == 0 { "budget" } else { "exhausted" };
                    break;
                }
            }
        }
        let (to, work) = (Some(best.schedule.ii), before - self.budget);
        self.log.phases.push(Phase { phase: "narrow", from: first, to, tried, broken: 0, work, end });
        best
    }
}
