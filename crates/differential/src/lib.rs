//! Differential testing: random modules on everything we have, against `wasmi`.
//!
//! A compiler's errors hide in combinations nobody thinks of, so programs are
//! made at random and run every way there is: the reference interpreter, the
//! intermediate representation after each level of optimisation, and simulated
//! machines. Results, traps, globals and final memory must be equal.
//!
//! * [`cipherlike`], [`smith`] and [`nests`] make the modules, a third from each;
//! * [`subject`] lists the ways to run one, [`ciphermill_interp`] being the interpreter
//!   that tells front end from back end, and [`check`](mod@check) compares
//!   them;
//! * [`shrink`](mod@shrink) makes a failing module small;
//! * [`campaign`] does it thousands of times on all cores, and saves what
//!   fails into `regressions/`, which a test runs for ever after.

pub mod campaign;
pub mod check;
mod cipherlike;
pub mod folders;
pub mod kind;
mod nests;
mod rng;
mod shrink;
pub mod smith;
pub mod subject;
mod transcript;
