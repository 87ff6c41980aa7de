//! The optimiser: module in, better module out.
//!
//! A *pass* is a function over a module that leaves it well formed (crate
//! `ir`, `verify`) and meaning the same. What "the same" is depends on
//! [`Options::strict_traps`]:
//!
//! * **strict**: results, traps, and the memory and globals left behind by a
//!   trap are those of the WebAssembly module. A load that may be out of
//!   bounds stays, and nothing that can be observed moves across it.
//! * **not strict**: the program is taken to run without memory traps, as
//!   compiled C does. Loads that nobody needs may go, a load that is certain
//!   to run may run earlier, a store may overtake a load it cannot touch. No
//!   access is made that the program did not make or that could trap.
//!
//! [`PASSES`] lists the passes; [`optimise`] runs them in the order below.
//! Each can be switched off by name ([`Options::disable`]) to find a culprit,
//! but `lower64` and the removal of unreachable blocks are part of the
//! contract with the code generator and always run.
//!
//! ```text
//! level 0   unreachable blocks, lower64
//! level 1   simplify_cfg fold gvn dce (until nothing changes)
//!           lower64, and the same again; dead functions
//! level 2   level 1's passes, recursion, inline, the same again, lower64, then rounds of
//!           present simplify_cfg fold gvn globals address loads licm dce;
//!           then, with [`Options::unroll`], distances specialise; rounds of
//!           if_convert meld spans full_unroll rom and all of the above; rotate, factor, promote, jam,
//!           and the above again; dead functions
//! on request ([`shorten_sums`]), of what level 2 made: sums gvn dce
//! ```
//!
//! The 64-bit split comes after inlining and a first clean-up: constants and
//! extensions seen through at 64 bits never become pairs. What divisions are left
//! then are products where the divisor is a constant (`quotients`, from level 1 on), and otherwise
//! calls on machines that have none ([`Options::software_division`]). The
//! verifier runs after every pass that changes something, but in wheels, and a fault names the pass.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod address;
mod alias;
mod bases;
mod dce;
mod divide;
mod edit;
mod error;
mod fold;
mod globals;
mod gvn;
mod if_convert;
mod inline;
mod licm;
pub mod limbs;
mod loads;
mod lower64;
mod meld;
mod options;
mod present;
mod promote;
mod quotients;
mod reachable;
mod recursion;
mod rom;
mod run;
mod simplify_cfg;
mod speculate;
mod sums;
mod unroll;
pub mod words;

pub use error::OptError;
pub use options::{INLINE_UP_TO, IndexForm, Options};
pub use run::{PASSES, Pass, optimise, run_lower64, run_pass, shorten_sums};
pub use unroll::options::{LoopTrips, Steady, Unroll};
pub use unroll::sites::{LoopSite, loop_sites};
