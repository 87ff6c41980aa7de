//! Fresh starts far below the best schedule so far.
//!
//! Rows taken out of a schedule one after the other lead to one from which no row can be taken
//! any more, and the closer its iterations stand, the sooner. So a short schedule is first tried
//! to be made from nothing: at an II well below it, an iteration spread over half as many
//! cycles again as its longest chain of dependences takes, in as many stages as that needs.
//! There every operation has somewhere to go; before, operations change sides until units have
//! cycles enough ([`level`]). What is broken when all is cold is mended by rows put in where most
//! is broken. From where a start lands another is tried, as long as that is far from the least;
//! nearer to it rows are taken out one by one ([`super::squeeze`]).

use super::anneal::{Loop, State, Warmth, level};
use super::modulo::mix;
use super::squeeze::{Finished, finished, together};
use super::{Found, Loops, color, stages};
use ciphermill_machine::Reg;

/// Starts that are tried, the next where none lands: at an II that is so many hundredths of the
/// way from the least to the best so far, with an iteration of so many hundredths of its longest
/// chain, and at least of so many of the II. A shorter one has less room, and fewer values.
const WAYS: [(i64, (i64, i64)); 5] = [(65, LONG), (80, LONG), (65, MIDDLING), (80, MIDDLING), (80, SHORT)];
const LONG: (i64, i64) = (155, 190);
const MIDDLING: (i64, i64) = (130, 150);
const SHORT: (i64, i64) = (108, 120);
/// Starts one after the other, each below the one before, and by how many hundredths of the
/// least an II has to be longer for these, and for shorter iterations, to be worth their time.
const TIMES: usize = 3;
const FAR: i64 = 20;
/// Moves for each operation and at most: for a start, and for a row that is put in.
const START: (u64, u64) = (1_200, 1_600_000);
const ROW: (u64, u64) = (150, 200_000);
/// Rows are put in until that has taken so many times the moves of a start, one of them its own.
const MENDING: u64 = 2;
/// How warm a fresh start is, and one that holds but for little.
const WARM: Warmth = (30, 2);
const COOL: Warmth = (12, 1);
/// Parts of a start, by what its moves are divided by. It is given up where more is broken
/// behind one than so many hundredths of the operations.
const HOPELESS: [(u64, i64); 3] = [(4, 20), (4, 8), (2, 5)];
/// Starts at each II, made at the same time.
const SEEDS: [u64; 2] = [11, 12];

/// A start at one II.
struct Leap<'a> {
    all: Loop<'a>,
    allocatable: &'a [Reg],
    ii: i64,
    /// Schedules of so many cycles are there already.
    known: i64,
    /// The cycle of the branch.
    branch: i64,
    length: i64,
    seed: u64,
    /// Moves of the start.
    moves: u64,
}

impl Leap<'_> {
    /// What comes of it, and the moves that it took.
    fn run(&self) -> (Option<Finished>, u64) {
        let n = self.all.ops.ops.len() as u64;
        let stages = (self.length + self.ii - 1) / self.ii;
        let mut ops = self.all.ops.clone();
        level(&self.all, &mut ops, self.ii, self.seed);
        let all = self.all.settled(&ops);
        let Some(mut state) = State::stretched(all, self.branch, self.ii, stages, self.length) else {
            return (None, 0);
        };
        let moves = self.moves;
        let (mut from, mut taken) = (0, 0);
        for (part, broken) in HOPELESS {
            let to = from + moves / part;
            taken += state.anneal_part(from..to, moves, WARM, self.seed);
            from = to;
            if 100 * state.left() > broken * n as i64 {
                return (None, taken);
            }
        }
        let mut row = 0;
        while state.left() > 0 {
            row += 1;
            if self.ii + row as i64 >= self.known || taken > MENDING * moves {
                return (None, taken);
            }
            state = state.wider();
            taken += state.anneal((ROW.0 * n).min(ROW.1), COOL, mix(self.seed, row));
        }
        (finished(self.all, &state, self.allocatable), taken)
    }
}

impl Loops<'_> {
    /// Shorten a kernel by fresh starts; whether that was possible.
    pub(super) fn leap(&self, found: &mut Found) -> bool {
        WAYS.into_iter().any(|way| {
            let far = way.1 != LONG;
            let times = (0..TIMES).take_while(|times| self.leap_to(found, way, far || *times > 0)).count();
            times > 0
        })
    }

    /// Shorten a kernel by a fresh start in one of the [`WAYS`]; whether that was possible. Only
    /// from `far` where it could be shortened row by row otherwise.
    fn leap_to(&self, found: &mut Found, (part, length): (i64, (i64, i64)), far: bool) -> bool {
        let best = &found.kernel;
        let (known, ops) = (best.schedule.ii, &best.ops);
        let Some(room) = self.room(&found.body, ops) else { return false };
        let pool = color::pool(self.sides);
        let all = Loop { sides: self.sides, ops, near: &room.near, apart: room.plan.apart, pool: &pool };
        let least = self.least(found, &room, all);
        let ii = least + (known - least) * part / 100;
        let chain = room.plan.orders.chain(ops);
        let length = (chain * length.0 / 100).max(ii * length.1 / 100);
        if ii >= known
            || far && 100 * known < (100 + FAR) * least
            || length > stages(self.sides.machine, length / ii) * ii
        {
            return false;
        }
        // The branch stands as many cycles before the end of the first stage.
        let before = known - best.schedule.time.last().copied().unwrap_or(0);
        let allocatable = &self.registers.allocatable;
        let moves = self.search.times * (START.0 * ops.ops.len() as u64).min(START.1);
        let leaps = SEEDS.map(|seed| Leap {
            all,
            allocatable,
            ii,
            known,
            branch: ii - before,
            length,
            seed: self.search.seed(seed),
            moves,
        });
        let landed = together(&leaps, |leap| leap.run().0);
        let shortest = landed.into_iter().flatten().min_by_key(|f| f.schedule.ii);
        let Some(shorter) = shortest else { return false };
        found.replace(shorter);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::{Finished, Leap};
    use crate::anneal::tests::on_one_side;
    use crate::modulo::keeps_orders;

    /// II and stages of what comes of a start with four chains of ten additions on two units,
    /// and the moves that it took.
    fn leapt(ii: i64, registers: i64) -> (Option<(i64, i64)>, u64) {
        on_one_side((4, 10), registers, |_, allocatable, _, all| {
            let leap = Leap {
                all,
                allocatable,
                ii,
                known: 2 * ii,
                branch: ii - 6,
                length: 2 * ii - 3,
                seed: 1,
                moves: 50_000,
            };
            let (found, taken) = leap.run();
            let shape = found.map(|Finished { schedule, ops, .. }| {
                assert!(keeps_orders(&ops, schedule.ii, &schedule.time));
                (schedule.ii, schedule.stages)
            });
            (shape, taken)
        })
    }

    #[test]
    fn a_start_at_the_bound_lands() {
        // 40 additions and the branch in 21 rows of two units, with three registers.
        assert_eq!(leapt(21, 3).0, Some((21, 2)));
    }

    #[test]
    fn what_is_hopeless_is_given_up() {
        // A row too few for the units: there is no start.
        assert_eq!(leapt(20, 16), (None, 0));
        // One register for four chains: the first quarter of the moves shows it.
        assert_eq!(leapt(21, 1), (None, 12_500));
    }
}
