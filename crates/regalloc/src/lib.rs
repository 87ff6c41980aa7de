//! Register allocation, with what is tried before it and improved after it.
//!
//! # Phases
//!
//! [`best`] drives the crate:
//!
//! 1. Candidates: the function in several instruction orders of lower register pressure ([`order`]),
//!    and with live ranges split ([`split_pressure`], [`split_fixed`]).
//! 2. `regalloc2` allocates each of them ([`allocate`]).
//! 3. On two-address machines spills, reloads and copies that are not needed go ([`cleanup`]); a
//!    reload may become a memory operand ([`fold`]).
//! 4. Long blocks are allocated again, each by itself, by furthest next use ([`local`]).
//!
//! The cheapest allocation is taken.
//!
//! # Invariants
//!
//! `regalloc2`'s checker replays its own allocation. The checker in [`local`] replays the final one.
//!
//! # What it does not do
//!
//! Pipelined loops get their registers from the pipeliner. To the allocator such a loop is one
//! instruction that clobbers every register it does not define.
//!
//! # Literature
//!
//! Belady, *A study of replacement algorithms for a virtual-storage computer*, IBM Systems
//! Journal 1966; Braun and Hack, *Register spilling and live-range splitting for SSA-form
//! programs*, CC 2009.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod allocate;
pub mod best;
mod cleanup;
pub mod fold;
mod local;
mod order;
mod split_fixed;
mod split_pressure;
