//! From a schedule of which a little is broken to one that holds.

use super::moves::mix;
use super::race::Entrant;
use super::state::State;
use super::{Landed, Search};
use crate::{color, rotating};
use ciphermill_program::search_log::Moves;

/// Entrants of a race that may land.
const LANDING: usize = 2;
/// So often registers are looked for once more, with one fewer than there are.
const COLOURED: usize = 4;
/// One row goes in, where most is broken, for so many broken rules.
const CROWD: usize = 4;

impl<'s> Search<'s> {
    /// The first of some entrants that lands below an interval.
    pub(super) fn land_one(&mut self, entrants: Vec<Entrant<'s>>, most: i64) -> Option<Landed<'s>> {
        entrants.into_iter().take(LANDING).find_map(|entrant| {
            let (landed, moves) = self.land(entrant, most);
            self.spend(moves);
            landed
        })
    }

    /// Put some rows in until nothing is broken and all values have registers; none where these
    /// are not enough, or the interval would not be less than `most`.
    fn land(&self, entrant: Entrant<'s>, most: i64) -> (Option<Landed<'s>>, Moves) {
        let params = self.params;
        let Entrant { form, mut state, .. } = entrant;
        let n = state.ops().ops.len() as u64;
        let farthest = state.schedule.ii + 2 + state.schedule.ii * params.growth / 100;
        let most = if most == i64::MAX { farthest } else { most };
        let (mut all, mut k, mut least) = (Moves::default(), 0, i64::MAX / 4);
        let mut mend = |state: &mut State<'s>, all: &mut Moves| {
            k += 1;
            *all += state.anneal(params.mending.0 * n, params.nearly, mix(self.seed, k));
        };
        loop {
            if state.schedule.ii >= most || all.work > self.total / params.landing_part {
                return (None, all);
            }
            for _ in 0..params.mending.1 {
                // Moves alone do not mend so much.
                if state.left() == 0 || state.left() > n as i64 / 8 {
                    break;
                }
                mend(&mut state, &mut all);
            }
            for _ in 0..COLOURED {
                if state.left() > 0 {
                    break;
                }
                match self.allot(form, &state) {
                    Ok(landed) => return (Some(landed), all),
                    Err(cluster) => state.tighten(cluster),
                }
                mend(&mut state, &mut all);
            }
            // Rows help where units are short, not where values are too many at any time.
            if 2 * state.left() > 3 * least {
                return (None, all);
            }
            least = least.min(state.left());
            let rows: Vec<i64> = state.by_crowd().into_iter().take(state.left() as usize / CROWD + 1).collect();
            let Some(wider) = state.resized(&[], &rows) else { return (None, all) };
            state = wider;
        }
    }

    /// Registers for the values of a schedule that holds, or the cluster that has too few.
    pub(super) fn allot(&self, form: usize, state: &State<'s>) -> Result<Landed<'s>, usize> {
        let schedule = state.finish().ok_or(0usize)?;
        let (registers, names) = match &self.rotation {
            Some(rotation) => {
                let names = rotating::names(state.ops(), &schedule, rotation.ring).ok_or(0usize)?;
                (color::Assignment::default(), Some(names))
            }
            None => {
                let colored = color::color(self.sides, state.ops(), &schedule, self.allocatable);
                (colored.map_err(|short| short.side)?, None)
            }
        };
        Ok(Landed { form, state: state.clone(), schedule, registers, names })
    }
}
