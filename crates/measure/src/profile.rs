//! The profile of a run, as data.

use ciphermill_opt::{LoopTrips, Steady};

/// Trip counts of loops, and conditions that were always the same or not.
#[derive(Debug, Default)]
pub struct Profile {
    /// Of all loops, those that vary too; empty where all vary.
    pub trips: Vec<LoopTrips>,
    pub steady: Vec<Steady>,
    /// Conditions that were not.
    pub varied: Vec<u32>,
}
