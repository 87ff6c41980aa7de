//! Tests of the code generator as files: WebAssembly text with a header that says for which
//! machines it is compiled and what is to be seen in the code.
//!
//! # Data structures
//!
//! A file (`tests/codegen/*.wat`) is one module that exports a function `f`. Its header is the
//! lines at its head that begin with `;;` ([`header`]):
//!
//! ```text
//! ;; A rotate is one instruction where there is one.
//! ;; on rv32 +zbb: rori 1, sll 0
//! ;; on leon2 level 1: listing
//! ;; aligned 0 1
//! ;; f(0xffff, 7) = 0x7fff80
//! ```
//!
//! * The first line says what is to be seen, as a sentence.
//! * `on` names a machine, extensions behind plus signs, and the level of optimisation where it is not
//!   2. Behind the colon stands what is asked of the code: an instruction and how often it occurs
//!   in all functions; `stages 3` (the loop with most stages has so many at least); `ii 24..25` (every
//!   pipelined loop); `copies 1` (loads from copies of constants in the system area); `listing` (the
//!   code of `f` stands below the module, for reading).
//! * `aligned` counts parameters of `f` that are multiples of 16.
//! * A call says what `f` returns, or only that it is made; others are made up. `edges` calls every
//!   exported function with all arguments at which operations change what they do.
//!
//! # Invariants
//!
//! Each file is run, too: on the reference interpreter and as the code for each of its machines, at
//! every level, with traps kept and not ([`ciphermill_differential`]). So a file cannot show good code that is
//! wrong.
//!
//! # Phases
//!
//! Header, code for each `on`, what is asked of it, listings, calls, and the differential check
//! ([`check()`]).
//!
//! # What it does not do
//!
//! Nothing is measured in cycles: that is for the tests of `sim` and for measurements.
//!
//! # Literature
//!
//! Cranelift's file tests, where the same is done with its intermediate representation.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod check;
mod code;
mod header;

pub use check::{bless, check};
