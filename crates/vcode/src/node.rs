//! An instruction as schedulers see it.

use crate::memory::MemRef;

/// A register, virtual or physical, in whatever numbering the caller uses.
pub type Resource = u32;

/// One instruction as the scheduler sees it.
#[derive(Clone, Debug, Default)]
pub struct Node {
    pub reads: Vec<Resource>,
    /// Written, and cycles until a reader may issue.
    pub writes: Vec<(Resource, u32)>,
    pub mem: Option<MemRef>,
    /// Nothing moves across.
    pub barrier: bool,
    /// Cycles in which nothing else issues.
    pub issue_cycles: u32,
    /// Which timing it has, by number.
    pub timing: u16,
    /// Fewer issue cycles, where one of such a timing comes right behind.
    pub issue_before: Vec<(u16, u32)>,
    /// Of what it reads, what has to be ready so many cycles before it issues.
    pub early: Vec<(Resource, u32)>,
}

impl Node {
    /// Cycles until `next` may issue, if it comes right behind.
    pub fn cycles_before(&self, next: &Node) -> u32 {
        let joined = self.issue_before.iter().find(|(timing, _)| *timing == next.timing);
        joined.map_or(self.issue_cycles, |j| j.1).max(1)
    }

    /// How much earlier than others a register has to be ready.
    pub fn early_by(&self, r: Resource) -> u32 {
        self.early.iter().filter(|e| e.0 == r).map(|e| e.1).max().unwrap_or(0)
    }
}
