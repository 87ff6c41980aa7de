//! Register allocation, and everything that makes it better.
//!
//! # Phases
//!
//! [`best`] drives: a function is put in several orders that need fewer registers ([`order`]), with
//! live ranges split before they are long ([`cut`], [`apart`]); each is allocated by `regalloc2`
//! ([`allocate`]), the moves that two-address instructions leave are gone over ([`spills`]), and long
//! blocks are allocated a second time by Belady's rule ([`respill`]). The cheapest is taken.
//!
//! # Invariants
//!
//! `regalloc2`'s checker replays the allocation that is used, and [`respill`]'s own one what has
//! become of it.
//!
//! # What it does not do
//!
//! Loops that are pipelined have their registers from the pipeliner; to the allocator
//! such a loop is one instruction that destroys all it does not define.
//!
//! # Literature
//!
//! Belady, *A study of replacement algorithms for a virtual-storage computer*, IBM Systems
//! Journal 1966; Braun and Hack, *Register spilling and live-range splitting for SSA-form
//! programs*, CC 2009.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod allocate;
pub mod apart;
pub mod best;
pub mod cut;
pub mod order;
pub mod respill;
pub mod spills;
