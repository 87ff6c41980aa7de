//! Code for machines that issue several instructions a cycle by the
//! compiler's leave: VLIWs, clustered and with an exposed pipeline.
//!
//! Up to register allocation everything is as elsewhere: one instruction of
//! each meaning is chosen, whatever unit will run it. Behind it,
//!
//! * [`kernel`] pipelines loops, before allocation;
//! * [`sides`] finds, for registers in several files, the variants of an
//!   instruction that can have them as operands, with moves between clusters
//!   where there is none;
//! * [`pack`] schedules straight code into bundles, by units, paths and exposed
//!   latencies, and settles branches, calls and the no-operations between.

pub mod pack;
pub mod sides;
