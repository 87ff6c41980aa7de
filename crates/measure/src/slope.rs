//! What a core that schedules at run time counts for each block.

use ciphermill_ooo::Counts;

/// Counts per block as a slope between two runs.
pub struct Slope<'a> {
    pub from: &'a Counts,
    pub to: &'a Counts,
    pub blocks: f64,
}

impl Slope<'_> {
    pub(crate) fn of(&self, name: &str) -> f64 {
        (self.to.get(name) as f64 - self.from.get(name) as f64) / self.blocks
    }

    pub(crate) fn work(&self) -> Vec<(u32, f64)> {
        let before = |mask: u32| self.from.work.iter().find(|w| w.0 == mask).map_or(0, |w| w.1);
        self.to.work.iter().map(|&(mask, work)| (mask, (work as f64 - before(mask) as f64) / self.blocks)).collect()
    }
}
