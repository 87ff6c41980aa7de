//! List scheduling of straight code, and the check of every schedule.
//!
//! # Phases
//!
//! * [`straight`]: the blocks of a function before allocation, on virtual registers. Loop-carried
//!   values are ordered so that they need no move ([`carried`]).
//! * [`clusters`]: the same where there are clusters; it says in which register file each value is to be.
//! * [`list`]: the list scheduler of machines that run one instruction after the other, before
//!   allocation (with a limit on register pressure) and after it.
//! * [`bundle`]: the list scheduler of machines that issue bundles, after allocation.
//! * [`verified`]: what is scheduled, in the terms of `ciphermill-verify`, and the calls of it.
//!
//! # Invariants
//!
//! A stage that has made a schedule asks [`verified`] right before the schedule is used.
//!
//! # What it does not do
//!
//! Loops are pipelined in `ciphermill-pipeline`; what the allocator puts where no variant takes it is moved
//! by the code generator's `vliw::clusters`.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod bundle;
pub mod carried;
pub mod clusters;
pub mod list;
pub mod straight;
pub mod verified;
