//! The code generator: from the intermediate representation to a program for
//! one machine.
//!
//! ```text
//! recognise -> expand -> shape -> legalise -> select -> constants -> schedule -> allocate -> emit
//! `-------------- on SSA --------------'    `-- virtual registers --'   `-- physical registers --'
//! ```
//!
//! Nothing here knows a machine by name. What an instruction computes comes
//! from its semantics (`ciphermill-patterns`); what a machine lacks comes
//! from the rules file (`ciphermill-select`); what a frame looks like comes from the
//! calling convention in the machine file (`frame`). Each stage is a crate of its own, which knows
//! the data types of `ciphermill-vcode` and no later stage; here they are called one after the
//! other ([`compile`](compile())), and then the function is emitted: frame, layout, delay slots,
//! bundles.
//!
//! Three checkers stand beside the optimisers and share no code with them:
//! `ciphermill-verify` (called from `ciphermill-schedule`) for every schedule of a block or a loop, `regalloc2`'s own for the
//! allocation, and `ciphermill-regalloc`'s for the final one.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod buffers;
pub mod compile;
mod context;
mod emit;
mod encodings;
mod frame;
pub mod front;
mod options;
mod parked;
mod placed;
mod plain;
mod registers;
pub mod tables;
mod vliw;

pub use ciphermill_pipeline::{PARTS, Search, Without};
pub use ciphermill_vcode::CompileError;
pub use compile::{compile, compile_with};
pub use options::Options;
