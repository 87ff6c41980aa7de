//! Shorter schedules from one that holds: rows are taken out.

use super::moves::mix;
use super::threads::together;
use super::{Landed, Search};
use ciphermill_program::search_log::{Moves, Phase};

/// Of so many rows at most one is taken out at once.
const AT_ONCE: i64 = 16;

impl<'s> Search<'s> {
    /// The one of some schedules that comes farthest when rows are taken out: all for a while, the better half for twice as
    /// long, and so on.
    pub(super) fn farthest(&mut self, mut all: Vec<Landed<'s>>, bound: i64) -> Option<Landed<'s>> {
        all.sort_by_key(|l| l.schedule.ii);
        all.truncate(self.params.compared);
        let (before, from, tried) = (self.budget, all.first()?.schedule.ii, all.len() as u64);
        let mut part = self.params.compared_part;
        while all.len() > 1 && self.params.narrows && self.budget > 0 && !self.enough(&all[0], bound) {
            let most = (self.total / part).min(self.budget / all.len() as u64);
            let narrowed = together(all, |landed| self.narrowed(landed, bound, self.params.rows_first, most));
            self.spend(narrowed.iter().map(|n| n.moves).sum::<Moves>());
            all = narrowed.into_iter().map(|n| n.landed).collect();
            all.sort_by_key(|l| l.schedule.ii);
            all.truncate(all.len().div_ceil(2));
            part = (part / 2).max(1);
        }
        let best = all.into_iter().next()?;
        let (to, work) = (best.schedule.ii, before - self.budget);
        if work > 0 {
            let end = if to <= bound { "bound" } else { "exhausted" };
            self.log.phases.push(Phase { phase: "compare", from, to: Some(to), tried, broken: 0, work, end });
        }
        Some(best)
    }

    /// Take rows out as long as what that breaks can be mended: those first that break least, one
    /// after the other, twice as many at once where that has gone well twice, and half as many where it has not.
    pub(super) fn narrow(&mut self, best: Landed<'s>, bound: i64, tries: &[(usize, u64)]) -> Landed<'s> {
        let from = best.schedule.ii;
        let Narrowed { landed, moves, tried, end } = self.narrowed(best, bound, tries, self.budget);
        self.spend(moves);
        let to = Some(landed.schedule.ii);
        self.log.phases.push(Phase { phase: "narrow", from, to, tried, broken: 0, work: moves.work, end });
        landed
    }

    /// The same with so much of the budget.
    fn narrowed(&self, mut best: Landed<'s>, bound: i64, tries: &[(usize, u64)], budget: u64) -> Narrowed<'s> {
        let mut spent = Moves::default();
        let (mut at_once, mut well, mut tried, mut end) = (1, 0, 0, "bound");
        while best.schedule.ii > bound {
            if spent.work >= budget {
                end = "budget";
                break;
            }
            let rows = best.state.by_breakage();
            let most = at_once.min((best.schedule.ii - bound) as usize);
            let mut shorter = None;
            'all: for &(count, moves) in tries.iter().take(if most > 1 { 1 } else { tries.len() }) {
                let out: Vec<Vec<i64>> = match most {
                    1 => rows.iter().take(count).map(|&row| vec![row]).collect(),
                    _ => vec![rows.iter().take(most).copied().collect()],
                };
                let seed = mix(self.seed, moves + best.schedule.ii as u64);
                // Two at a time, however many threads there are.
                for out in out.chunks(2) {
                    tried += out.len() as u64;
                    let made = together(out.to_vec(), |rows| {
                        let Some(state) = best.state.resized(&rows, &[]) else { return (None, Moves::default()) };
                        let (below, left) = (best.schedule.ii, budget - spent.work);
                        self.mended(best.form, state, below, (moves, left), mix(seed, rows[0] as u64))
                    });
                    spent += made.iter().map(|m| m.1).sum::<Moves>();
                    shorter = made.into_iter().find_map(|m| m.0);
                    if shorter.is_some() || spent.work >= budget {
                        break 'all;
                    }
                }
            }
            match shorter {
                Some(shorter) => {
                    best = shorter;
                    well += 1;
                    if well > 1 {
                        at_once = (2 * most).min((1 + best.schedule.ii / AT_ONCE) as usize);
                    }
                }
                None if most > 1 => (at_once, well) = (most / 2, 0),
                None => {
                    end = if spent.work >= budget { "budget" } else { "exhausted" };
                    break;
                }
            }
        }
        Narrowed { landed: best, moves: spent, tried, end }
    }
}

/// What taking rows out came to.
struct Narrowed<'s> {
    landed: Landed<'s>,
    moves: Moves,
    tried: u64,
    end: &'static str,
}
