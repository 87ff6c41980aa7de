//! Kept schedules: schedules of pipelined loops that a long search has found, as plain data.
//!
//! A kept schedule says where and when each operation of a loop issues, and nothing of what the loop
//! computes. The code generator looks it up by the loop's digest and takes it if it keeps every rule;
//! otherwise it searches. So a wrong or outdated one costs cycles, never a result.

use serde::{Deserialize, Serialize};

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptSchedule {
    /// Digest of the loop: its operations, their operands, and the order of its memory accesses.
    #[serde(rename = "loop")]
    pub digest: String,
    /// Initiation interval, in cycles.
    pub ii: u32,
    /// Cluster assignment before copies were added: two letters for each operation of the loop, the
    /// cluster of its unit and that of its result, `A` for the first. Empty on a machine with one cluster.
    #[serde(default, skip_serializing_if = "String::is_empty", rename = "divided")]
    pub assignment: String,
    /// The same for all that is scheduled, copies included.
    #[serde(default, skip_serializing_if = "String::is_empty", rename = "sides")]
    pub clusters: String,
    /// Its values are in rotating registers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rotates: bool,
    /// The cycle in which each operation issues in iteration 0.
    pub time: Vec<i64>,
    /// Index of each operation's instruction among the variants that fit its clusters.
    pub variant: Vec<u16>,
    /// Of a new one: digests of equivalent bodies of the same loop. The shortest schedule among all of
    /// them is the one to keep.
    #[serde(default, skip_serializing_if = "Vec::is_empty", rename = "forms")]
    pub equivalent: Vec<String>,
}
