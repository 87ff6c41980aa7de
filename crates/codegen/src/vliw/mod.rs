//! Code for VLIWs: explicit bundles, clusters, exposed pipelines.
//!
//! Instruction selection takes one instruction for each meaning, whatever unit will run it. Then
//!
//! * [`kernel`] pipelines loops, before allocation;
//! * [`clusters`] assigns clusters after allocation: it finds the variants of an instruction that
//!   fit its registers, and adds moves between clusters where none does;
//! * [`pack`] schedules straight code into bundles, by units, cross paths and latencies, and emits
//!   branches, calls and no-operations.

pub mod clusters;
pub mod pack;
