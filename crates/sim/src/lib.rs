//! The simulator: programs run and timed, on scalar, in-order, VLIW and
//! out-of-order machines.
//!
//! A program runs on a machine exactly as its machine file says, with two
//! results: the machine's memory and registers afterwards (what a program
//! *does*), and how many cycles it took and why (what it *costs*). Both come
//! from the same bundles of the same [`Program`].
//!
//! # How
//!
//! * [`flatten`] turns each instruction's semantics into a few three-address
//!   operations on a flat array of values ([`xop`], [`slots`]); [`exec`] is
//!   the loop that runs them. There is no other notion of what an instruction
//!   does.
//! * Machines with interlocks run on [`engine`]: straight runs of code
//!   ([`superblock`]) are decoded and timed ([`hazard`]) when first reached,
//!   and only counted from then on. [`cache`]s and register [`windows`] freeze
//!   the pipeline, so their cycles simply add.
//! * Machines with an exposed pipeline run on [`step`], bundle by bundle: a result is not in
//!   its register before its latency has passed, and code that reads too early
//!   gets the old value, as on the hardware.
//! * Machines that schedule at run time run on [`dynamic`], which executes the
//!   same superblocks and tells crate `ooo` what ran.
//! * [`dataflow`] runs the same program on an infinitely wide machine, for the
//!   bounds that measurements are compared with; [`circuits`] sees which instructions of a
//!   loop wait for which, through memory too, and [`cycle`] finds the longest recurrence circuit.
//!
//! # What is checked
//!
//! Each access names the memory it means, and none may leave it; stores to
//! data promised constant, misaligned accesses on machines that have none,
//! callee-saved registers not handed back, and jumps to where no instruction
//! starts all end the run with an error. Registers that a call does not define
//! hold a pattern, so that reading them shows.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod cache;
pub mod circuits;
pub mod code;
pub mod cycle;
pub mod dataflow;
mod dynamic;
mod engine;
pub mod exec;
pub mod flatten;
pub mod hazard;
pub mod memory;
mod predictor;
mod slots;
mod stats;
pub mod step;
mod sums;
mod superblock;
pub mod uses;
mod windows;
mod xop;

mod call;
mod options;
mod simulator;

pub use cache::CacheStats;
pub use dataflow::{Dataflow, Ends};
pub use options::SimOptions;
pub use simulator::{Simulator, Stop};
pub use stats::{Roles, Stalls, Stats};
