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
}
