//! What a run shows of loops and conditions, as data.

use ciphermill_opt::{LoopTrips, Steady};

/// What a run shows of loops and conditions.
#[derive(Debug, Default)]
pub struct Seen {
    pub trips: Vec<LoopTrips>,
    pub steady: Vec<Steady>,
    /// Conditions that were not.
    pub varied: Vec<u32>,
}
