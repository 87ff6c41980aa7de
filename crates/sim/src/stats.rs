//! What a run did, counted.
//!
//! Nothing is counted one by one while a program runs: the engine counts how
//! often each stretch of code was left by each exit, and everything here is a
//! sum over those counts, with the caches' and windows' own counters beside.
//! `issue_cycles` and the stalls sum to `cycles` exactly.

use crate::cache::CacheStats;
use serde::Serialize;

/// Stall cycles by cause.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize)]
pub struct Stalls {
    /// Waiting for a load's result.
    pub load_wait: u64,
    /// Waiting for another instruction's result.
    pub operand_wait: u64,
    /// Waiting for a busy unit, and the further cycles of instructions that
    /// take more than one cycle to issue.
    pub unit: u64,
    /// Taken (or mispredicted) branches and annulled delay slots.
    pub branch: u64,
    /// Instruction cache misses.
    pub icache: u64,
    /// Data cache misses and write-backs.
    pub dcache: u64,
    /// Register window traps.
    pub window: u64,
    /// Accesses of one cycle to one memory bank.
    pub bank: u64,
    /// Registers that crossed between clusters in the cycle after their write.
    pub cross: u64,
}

impl Stalls {
    pub fn total(&self) -> u64 {
        self.load_wait
            + self.operand_wait
            + self.unit
            + self.branch
            + self.icache
            + self.dcache
            + self.window
            + self.bank
            + self.cross
    }
}

/// Instructions executed, by whom they work for.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize)]
pub struct Roles {
    pub other: u64,
    pub lookup: u64,
    pub overhead: u64,
}

/// Counts since the last [`crate::Simulator::reset_stats`]. A stretch of code
/// that a trap cut short is not counted.
#[derive(Clone, Default, PartialEq, Debug, Serialize)]
pub struct Stats {
    pub cycles: u64,
    /// Cycles in which a bundle issued: one for each bundle.
    pub issue_cycles: u64,
    pub stalls: Stalls,
    /// Instructions that executed (annulled ones did not).
    pub instructions: u64,
    pub bundles: u64,
    pub roles: Roles,
    /// Cycles that table lookups took: a cycle in which something issues is
    /// divided evenly among what does, a wait belongs to what is waited for.
    pub lookup_cycles: f64,
    /// Conditional branches.
    pub branches_taken: u64,
    pub branches_untaken: u64,
    /// Unconditional jumps, calls and returns.
    pub jumps: u64,
    pub loads: u64,
    pub stores: u64,
    pub icache: Option<CacheStats>,
    pub dcache: Option<CacheStats>,
    pub window_overflows: u64,
    pub window_underflows: u64,
    /// Executions of each instruction, by its number in the machine.
    pub per_instr: Vec<u64>,
    /// Instructions executed in each function.
    pub per_func: Vec<u64>,
    /// On machines that schedule at run time: what their core counted.
    /// `issue_cycles` are then all cycles, and no stalls are told apart here.
    pub core: Option<ciphermill_ooo::Counts>,
    /// Deepest the stack went, in bytes.
    pub stack_bytes: u64,
}
