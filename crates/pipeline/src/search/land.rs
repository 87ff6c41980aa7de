//! From a schedule of which a little is broken to one that holds.

use super::moves::mix;
use super::race::Entrant;
use super::state::State;
use super::threads::together;
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
    pub(super) fn land_one(&mut self, entrants: Vec<Entrant<'s>>, most: i64) -> Vec<Landed<'s>> {
        let landed = entrants.into_iter().take(LANDING).find_map(|entrant| {
            let (landed, moves) = self.land(entrant, most);
            self.spend(moves);
            landed
        });
        landed.into_iter().collect()
    }

    /// All that land.
    pub(super) fn land_all(&mut self, entrants: Vec<Entrant<'s>>, most: i64) -> Vec<Landed<'s>> {
        let landed = together(entrants.into_iter().take(LANDING).collect(), |entrant| self.land(entrant, most));
        self.spend(landed.iter().map(|l| l.1).sum::<Moves>());
        landed.into_iter().filter_map(|l| l.0).collect()
    }

    /// Put some rows in until nothing is broken and all values have registers; none where these
    /// are not enough, or the interval would not be less than `most`.
    fn land(&self, entrant: Entrant<'s>, most: i64) -> (Option<Landed<'s>>, Moves) {
        let params = self.params;
        let ii = entrant.state.schedule.ii;
        let most = if most == i64::MAX { ii + 2 + ii * params.growth / 100 } else { most };
        self.mended(entrant.form, entrant.state, most, (params.mending, self.total / params.landing_part), self.seed)
    }

    /// Moves until nothing is broken and all values have registers, so many for each operation; as often again as other
    /// values in the frame leave less that is broken; and then with a row more where most is, as long as the interval is
    /// less than `below`. None where that is not enough, or takes too many moves.
    pub(super) fn mended(
        &self,
        form: usize,
        mut state: State<'s>,
        below: i64,
        (each, budget): (u64, u64),
        seed: u64,
    ) -> (Option<Landed<'s>>, Moves) {
        let mut all = Moves::default();
        let mut coloured = 0;
        let (mut least, mut before) = (i64::MAX, i64::MAX / 4);
        for round in 0.. {
            all += state.anneal(each * state.ops().ops.len() as u64, self.params.nearly, mix(seed, round));
            if state.left() == 0 {
                match self.allot(form, &state) {
                    Ok(landed) => return (Some(landed), all),
                    Err(cluster) if coloured < COLOURED => {
                        state.tighten(cluster);
                        coloured += 1;
                        continue;
                    }
                    Err(_) => {}
                }
            } else if state.left() < least && all.work <= budget {
                let (next, moves) = self.respilled(&state);
                all += moves;
                if let Some(next) = next {
                    (state, least) = (next, state.left());
                    continue;
                }
            }
            // Rows help where units are short, not where values are too many at any time.
            let left = state.left();
            let rows: Vec<i64> = state.by_crowd().into_iter().take(left as usize / CROWD + 1).collect();
            let over = state.schedule.ii + rows.len() as i64 >= below || 2 * left > 3 * before || all.work > budget;
            let Some(wider) = Some(&state).filter(|_| !over).and_then(|s| s.resized(&[], &rows)) else { break };
            (state, before, least, coloured) = (wider, left, i64::MAX, 0);
        }
        (None, all)
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
