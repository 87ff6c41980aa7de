//! A cache: its sizes and its policies.

#[derive(Clone, Debug)]
pub struct Cache {
    pub bytes: u32,
    pub ways: u32,
    pub line_bytes: u32,
    pub replacement: Replacement,
    pub write: WritePolicy,
    /// Cycles the pipeline stands still for one line fill.
    pub miss_cycles: u32,
    /// Cycles for writing a dirty line back.
    pub writeback_cycles: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Replacement {
    Lru,
    /// Pseudo-random by a fixed generator, so that runs repeat.
    Random,
    Fifo,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WritePolicy {
    /// Every store goes to memory; a store miss allocates no line.
    Through,
    Back,
}
