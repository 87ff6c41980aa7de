//! A core that schedules at run time: out of order, or in order and dynamic.
//!
//! The functional simulator runs a program; this crate is told what ran, in
//! program order, with the addresses of loads and stores and the ways branches
//! went, and says how many cycles that takes on the core that a machine file
//! describes. It executes nothing itself and knows no machine by name.
//!
//! # How
//!
//! Instructions are taken apart once ([`decompose`], [`uop`], [`code`]). Then
//! every micro-operation is given its cycles as it comes by ([`pipeline`]):
//!
//! 1. *fetched and decoded* by the rules of [`front`],
//! 2. *renamed*, in order, `rename.width` a cycle (a fused pair is one), one
//!    cycle or more after whatever had its place in the reorder buffer and the
//!    load or store buffer has retired (a store: reached the cache), with a
//!    reservation station for each of a pair: one is free in the cycle after its
//!    tenant has started,
//! 3. *started* `rename.stages` after that at the earliest, when its operands
//!    are there and a port is free ([`ports`]): the oldest first, but for
//!    what is [`overtaken`],
//! 4. *ended* its latency later, which is when a user can start; a load's latency
//!    is that of a store that forwards ([`mem::stores`]) or of the memory system ([`mem`]),
//! 5. *retired*, in order, `retire.width` a cycle.
//!
//! Since every other rule only looks at older micro-operations, one pass in program
//! order gives the cycles that stepping through all of them cycle by cycle
//! would give; what is not exact is named where it stands (ports taken for
//! several cycles, state of caches in program order).
//!
//! After a wrong guess of [`predict`] fetch runs on along the guessed path until
//! the branch has ended; those micro-operations take places and ports like
//! others and are thrown away, on some cores only when the branch retires.
//!
//! What the core has done before from the same state it need not work out again
//! ([`pipeline`], its memo); the cycles are the same. Long runs can be sampled ([`sample`]). [`events`] defines what is counted and to what every cycle is charged;
//! [`chain`] bounds the cycles from below by dependences, [`parts`] is about registers written in part.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod chain;
mod code;
pub mod decompose;
pub mod events;
mod front;
mod lanes;
mod late;
mod live;
pub mod log;
mod lots;
mod mem;
mod misnamed;
mod opcache;
mod overtaken;
mod parts;
mod pipeline;
mod ports;
mod predict;
mod queues;
mod sample;
mod uop;
mod words;

pub use code::{Code, NONE, Place};
pub use events::{Cause, Counts};
pub use pipeline::{Access, Pipeline};
pub use sample::{Sample, Sampling};
