//! Shorter schedules from one that holds: rows are taken out, and nodes change clusters.

use super::moves::mix;
use super::state::State;
use super::threads::together;
use super::{Form, Landed, Search};
use crate::{graph, partition};
use ciphermill_program::search_log::{Moves, Phase};
use ciphermill_vcode::CompileError;

/// Rows that are tried behind a change of the division, and moves for each.
const BEHIND: (usize, u64) = (3, 5_000);
/// A change of the division is given up where more than so much is broken after a part of its
/// moves.
const BROKEN: [(u64, i64); 3] = [(4, 10), (2, 5), (1, 0)];
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

    /// Nodes change clusters, with the copies that this needs, one change after the other; each
    /// stays if what it breaks can be mended, and rows are taken out behind it.
    ///
    /// # Errors
    /// When some operation has no variant.
    pub(super) fn redivide(
        &mut self,
        forms: &[Form],
        mut best: Landed<'s>,
        bound: i64,
    ) -> Result<Landed<'s>, CompileError> {
        let params = self.params;
        let (before, first) = (self.budget, best.schedule.ii);
        let (mut k, mut tried) = (0, 0);
        let price = |state: &State<'s>| (graph::res_mii(self.sides, state.ops()), state.ops().ops.len());
        let sides = self.sides;
        let mut now = price(&best.state);
        while best.schedule.ii > bound && self.budget > 0 {
            let body = &forms[best.form].body;
            let nodes = body.nodes.len();
            k += 1;
            self.spend(Moves::work(nodes as u64));
            let mut at = best.state.ops().at(nodes);
            for change in 0..=mix(self.seed, 3 * k) % 2 {
                let which = mix(self.seed, 3 * k + 1 + change) as usize % (4 * nodes);
                at = partition::moves(body, sides, &at, which).unwrap_or(at);
            }
            let Some(all) = self.divided(body, &at)? else { continue };
            let next = (graph::res_mii(sides, &all.task.ops), all.task.ops.ops.len());
            // More operations only where units leave room for them.
            if next > now && !(next.0 + 2 < best.schedule.ii && next.1 <= now.1 + 1) {
                continue;
            }
            tried += 1;
            self.spend(Moves::work(2 * nodes as u64));
            let Some(mut state) = State::carried(&all, &best.schedule, best.state.ops()) else { continue };
            let moves = params.division * nodes as u64;
            let mut from = 0;
            for (part, broken) in BROKEN {
                let to = moves / part;
                let taken = state.anneal_part(from..to, moves, params.nearly, mix(self.seed, k));
                self.spend(taken);
                from = to;
                if state.left() > broken {
                    break;
                }
            }
            let Ok(landed) = self.allot(best.form, &state) else { continue };
            best = landed;
            while best.schedule.ii > bound && self.budget > 0 {
                let rows = best.state.by_breakage();
                let shorter = rows.iter().take(BEHIND.0).find_map(|&row| {
                    let mut state = best.state.resized(&[row], &[])?;
                    let moves = state.anneal(BEHIND.1, params.nearly, mix(self.seed, k + row as u64));
                    self.spend(moves);
                    self.allot(best.form, &state).ok()
                });
                let Some(shorter) = shorter else { break };
                best = shorter;
            }
            now = (graph::res_mii(sides, best.state.ops()), best.state.ops().ops.len());
        }
        let end = if best.schedule.ii > bound { "budget" } else { "bound" };
        let (to, work) = (Some(best.schedule.ii), before - self.budget);
        self.log.phases.push(Phase { phase: "divide", from: first, to, tried, broken: 0, work, end });
        Ok(best)
    }
}
