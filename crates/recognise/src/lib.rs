//! Finding where a program means what a machine's table or matrix instruction
//! does.
//!
//! Such instructions have no pattern that a compiler could look for: MixColumns
//! is written with shifts and masks, with multiplications, or as tables, and
//! never as the matrix it is. So the program's values are compared by what they
//! compute:
//!
//! * [`form`]: words whose bits are sums over GF(2);
//! * [`semantics`]: the walk through what an instruction says it does;
//! * [`units`]: what the machine's instructions compute, as matrices and tables;
//! * [`fields`]: multiplication of bytes by constants in a field;
//! * [`sums`]: exclusive-ors of a program and their terms;
//! * [`linear`]: values that are a matrix times another value;
//! * [`bytes`]: values that are sums of tables of single bytes;
//! * [`nibbles`]: tables of bytes that are sums of tables of nibbles;
//! * [`cover`]: instructions that together make a sum of tables;
//! * [`pairs`]: matrices of two words behind tables;
//! * [`words`]: maps of several words, computed without tables that are not linear;
//! * [`layers`]: linear layers of several words as wholes;
//! * [`configure`]: which matrix a multiplier that can be loaded should hold;
//! * [`report`]: what was found and what was just missed, for people;
//! * [`rewrite`]: which of the matches are taken;
//! * [`agree`]: instructions of which only parts are wanted made the same;
//! * [`emit`]: the new code;
//! * [`wide`]: all of this on machines of 64-bit words.
//!
//! A match becomes an [`ciphermill_ir::Op::Apply`], which one template computes.
//! On a machine without such instructions nothing is done. Where the program
//! needs an operation that is no match, nothing is lost either: what a match
//! does not replace stays as it was.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod agree;
pub mod bytes;
pub mod configure;
mod cover;
mod emit;
mod fields;
pub mod finding;
pub mod form;
mod layers;
pub mod linear;
pub mod nibbles;
mod pairs;
mod recogniser;
mod replacement;
pub mod report;
mod rewrite;
mod semantics;
pub mod sums;
pub mod units;
pub mod wide;
mod words;

pub use recogniser::Recogniser;
