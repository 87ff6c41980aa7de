//! Schedules of pipelined loops that a long search has found, written down so that the search
//! need not be made again: plain data, which crosses to whoever keeps files.
//!
//! A record says where and when each operation of a loop issues, and nothing of what the loop
//! computes. The code generator takes it for a loop of its digest if it keeps every rule, and
//! searches otherwise: a record that is wrong or out of date costs cycles, never a result.

use serde::{Deserialize, Serialize};

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// What the loop is: a digest of its operations, of what they read, and of the orders between
    /// its accesses to memory.
    #[serde(rename = "loop")]
    pub digest: String,
    /// Its initiation interval, in cycles.
    pub ii: u32,
    /// The cluster assignment that copies were made for: two letters for each operation of the loop,
    /// the cluster of its unit and that of its result, `A` for the first.
    pub divided: String,
    /// The same of all that is scheduled, copies among it, as it stands in the end.
    pub sides: String,
    /// The cycle in which each issues in iteration 0.
    pub time: Vec<i64>,
    /// Which of the instructions that fit its sides each is.
    pub variant: Vec<u16>,
    /// Of a new one, the digests that the same loop has in other forms: the shortest record among
    /// all of them is the one to keep.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forms: Vec<String>,
}
