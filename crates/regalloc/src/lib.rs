//! Register allocation, and the instruction orders that it likes.
//!
//! # Data structures
//!
//! [`best::AllocationRequest`] says what an allocation is made with. `ciphermill_vcode` has the function
//! before it and after it.
//!
//! # Phases
//!
//! 1. Instructions overwrite the source that is not wanted again ([`commute`]). Of a few instruction orders of lower
//!    register pressure ([`order`], and with late expressions [`sink`]) the one is taken that is cheapest to
//!    allocate ([`best`]), and values are made again where that costs less than to spill them ([`again`]). Words at neighbouring addresses are loaded and
//!    stored together ([`runs`]).
//! 2. On two-address machines, allocation in passes over the function, with memory operands
//!    ([`scan`], [`fold`]). On others `regalloc2` allocates ([`allocate`]).
//!
//! # Invariants
//!
//! `regalloc2`'s checker replays its own allocation, the one in [`scan`] that of two-address machines.
//!
//! # What it does not do
//!
//! Pipelined loops get their registers from the pipeliner. To the allocator such a loop is one
//! instruction that clobbers every register it does not define.
//!
//! # Literature
//!
//! In [`scan`].

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod again;
mod allocate;
pub mod best;
mod commute;
pub mod fold;
mod order;
pub mod runs;
#[cfg(test)]
mod samples;
mod scan;
mod sink;
