//! Choices that an attempt is made with.

/// Choices that an attempt is made with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policy {
    /// What frees registers comes first, then the longest way back; otherwise
    /// that alone.
    pub frugal: bool,
    /// Quarters of an operation's urgency that its place in the order of the
    /// program makes up; the rest is the longest way back.
    pub program: i64,
    /// Cycles that a load may be early, and its result wait for its reader,
    /// because the unit is taken. Where it would be more, or registers would
    /// be too few meanwhile, the reader waits. `None`: it does not.
    pub wait: Option<i64>,
    /// Of the operations that could stand in a cycle, so many are taken to do
    /// so when registers are counted.
    pub hope: i64,
    /// Registers on each side that the last stage leaves to those before it.
    pub keep: i64,
    /// Registers beyond those there are on each side: operations are moved afterwards
    /// where values are too many.
    pub slack: i64,
    /// Operations are placed out of the order of the program only where what is left of
    /// it still gets by with the registers there are ([`future`]).
    pub safe: bool,
    /// What makes more values alive than it ends is placed ahead of its turn in the order of the
    /// program by so many hundredths of all operations at most, where attempts are safe: stores of a
    /// keystream, which nothing waits for, would otherwise fill the registers with values of all rounds.
    /// The first schedule of SOSEMANUK on the C6201 has 590 cycles with [`ANY`], 472 with [`NEAR`]. In a
    /// trial with further forms 6, 9, 12, 19, 25 hundredths and any came to 359, 335, 350, 351, 425, 442.
    pub ahead: i64,
}

/// Operations are placed as far ahead of their turn as registers allow.
const ANY: i64 = 100;
/// And not far.
const NEAR: i64 = 12;

const FAST: Policy =
    Policy { frugal: false, program: 0, wait: Some(6), hope: 0, keep: 2, slack: 0, safe: true, ahead: ANY };
const FRUGAL: Policy = Policy { frugal: true, keep: 6, ..FAST };
const BETWEEN: Policy = Policy { frugal: true, program: 2, keep: 4, slack: 1, ..FAST };
const HOPEFUL: Policy = Policy { wait: None, hope: 8, slack: 2, safe: false, ..FAST };
const PATIENT: Policy = Policy { program: 2, wait: Some(99), hope: 1, safe: false, ..FAST };

/// What is tried at each II, one after the other.
pub const POLICIES: [Policy; 8] = [
    Policy { ahead: NEAR, ..FAST },
    Policy { ahead: NEAR, ..FRUGAL },
    FAST,
    FRUGAL,
    Policy { ahead: NEAR, ..BETWEEN },
    BETWEEN,
    HOPEFUL,
    PATIENT,
];
/// And with what races begin.
pub const STARTS: [Policy; 2] = [Policy { frugal: true, slack: 0, ..HOPEFUL }, PATIENT];
