//! What a caller can ask for: how far to unroll, and what it knows of trips.

/// Unrolling of loops, and the passes that serve it. The default does nothing.
///
/// Sizes are counted in instructions of the intermediate representation,
/// constants not counted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Unroll {
    /// A loop whose trip count is a known constant is unrolled completely when
    /// what comes out is at most this large. 0: never.
    pub full_budget: u32,
    /// So many iterations of an outermost counted loop of unknown length become
    /// one iteration of the loop that replaces it; what is left over runs in the
    /// original. 0 or 1: none.
    pub jam: u32,
    /// Loops of one block and a constant number of turns that are smaller become so large, where a factor of the turns
    /// makes them. 0: none.
    pub loop_size: u32,
    /// Functions up to this size are inlined at every call. 0: as without.
    pub inline_budget: u32,
    /// What is known about the trip counts of loops from a run. Loops that
    /// these name are written once more for each count, see `specialise.rs`.
    pub profile: Vec<LoopTrips>,
    /// What is known from a run about conditions. Loops in which one of these does not change
    /// are written once more for it, see `specialise.rs`.
    pub steady: Vec<Steady>,
    /// Offsets in the module of conditions that a run showed to be true at times and false at
    /// others, as what ends a loop is.
    pub varied: Vec<u32>,
    /// `licm` leaves loads where they are.
    pub keep_loads: bool,
    /// Places in memory that a loop of one block reads and writes at the same
    /// address in every iteration are kept in values while it runs. Not under
    /// strict traps.
    pub promote: bool,
    /// Branches around instructions without effect become selections when
    /// those and the selections are at most so many. 0: none.
    pub if_convert: u32,
    /// Two sides of a branch that do nearly the same become one that has at most so many
    /// instructions more than the longer side, see `meld`. Not under strict traps. 0: never.
    pub meld: u32,
    /// Exported functions to do this in; empty for all functions.
    pub only: Vec<String>,
}

impl Unroll {
    /// What the condition at an offset in the module always was, if it was always the same; offset 0 is no place.
    pub(crate) fn always(&self, loc: u32) -> Option<u32> {
        self.steady.iter().find(|s| s.loc == loc && loc != 0).map(|s| s.value)
    }

    /// Is anything asked for that changes loops? Melding changes branches alone.
    pub fn is_active(&self) -> bool {
        let Unroll {
            full_budget, jam, loop_size, inline_budget, profile, steady, keep_loads, promote, if_convert, ..
        } = self;
        *full_budget > 0
            || *jam > 1
            || *loop_size > 0
            || *inline_budget > 0
            || !profile.is_empty()
            || !steady.is_empty()
            || *keep_loads
            || *promote
            || *if_convert > 0
    }
}

/// What a branch or a switch hangs on, where that was always the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Steady {
    /// Offset in the WebAssembly module of the instruction that gives it.
    pub loc: u32,
    /// Its value; of a condition, 1 for anything but zero.
    pub value: u32,
}

/// How often a loop iterates each time it is entered.
///
/// A loop is named by where its instructions stand in the WebAssembly module,
/// which inlining and every other pass leave as it is: the `loop` construct
/// is a range of bytes, and ranges of loops nest as the loops do. The ranges
/// are those that [`crate::loop_sites`] gives for a module just loaded.
///
/// One loop may be listed several times with different counts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct LoopTrips {
    /// Offset in the module of the loop's first instruction.
    pub first: u32,
    /// Offset of its last one.
    pub last: u32,
    /// Times the header runs for each entry into the loop; 0 if that was not always the same, so that the loop is
    /// not taken for the one around it.
    pub trips: u32,
}
