//! What the search for a pipelined loop's schedule did: its phases, and its moves by kind.

use serde::Serialize;
use std::iter::Sum;
use std::ops::AddAssign;

/// Moves of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    pub tried: u64,
    pub taken: u64,
}

impl Tally {
    /// One move more; whether it was taken.
    pub fn count(&mut self, taken: bool) -> bool {
        self.tried += 1;
        self.taken += u64::from(taken);
        taken
    }
}

/// Moves, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Moves {
    /// What all work cost, in moves of one operation.
    pub work: u64,
    /// An operation to another cycle.
    pub shifts: Tally,
    /// In exchange for another one, which stands there.
    pub exchanges: Tally,
    /// With all operations whose dependences it breaks.
    pub pushes: Tally,
    /// To another cluster.
    pub crossings: Tally,
    /// A value to the frame for a while, or back into a register.
    pub spills: Tally,
}

impl Moves {
    /// Work that is no move.
    pub fn work(work: u64) -> Moves {
        Moves { work, ..Moves::default() }
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.tried += other.tried;
        self.taken += other.taken;
    }
}

impl AddAssign for Moves {
    fn add_assign(&mut self, other: Moves) {
        self.work += other.work;
        self.shifts += other.shifts;
        self.exchanges += other.exchanges;
        self.pushes += other.pushes;
        self.crossings += other.crossings;
        self.spills += other.spills;
    }
}

impl Sum for Moves {
    fn sum<I: Iterator<Item = Moves>>(all: I) -> Moves {
        all.fold(Moves::default(), |mut sum, one| {
            sum += one;
            sum
        })
    }
}

/// One phase of a search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Phase {
    /// `reroll`, whose intervals are those of a round, `kept`, `list`, `ascend`, `race`, `compare` or `narrow`.
    pub phase: &'static str,
    /// The II that it was after, or that it began with.
    pub from: i64,
    /// The II of the schedule that it ended with; none where it came to none.
    pub to: Option<i64>,
    /// What it tried: divisions, starts or rows.
    pub tried: u64,
    /// What was still broken in the best that it came to, where that is no schedule: cycles by which
    /// dependences failed, and values beyond the registers, row by row.
    pub broken: i64,
    /// What it cost, in moves of one operation.
    pub work: u64,
    /// Why it ended: the `bound` was reached, a schedule `landed`, all was tried (`exhausted`), something
    /// stayed `broken`, or the `budget` was spent.
    pub end: &'static str,
}

/// All of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SearchLog {
    /// Forms of the loop, and these divided between clusters.
    pub forms: usize,
    pub divisions: usize,
    /// Moves that it had, and that were left in the end.
    pub budget: u64,
    pub left: u64,
    pub moves: Moves,
    pub phases: Vec<Phase>,
}
