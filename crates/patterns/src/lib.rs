//! What a machine's instructions mean, as patterns that programs are matched with.
//!
//! # Data structures
//!
//! * [`pattern::Template`]: an instruction with what it does ([`pattern::Action`]) as a graph of
//!   [`pat::Pat`]; operations that mean the same are spelt in each way ([`spellings`]).
//! * [`matcher::Matcher`]: the templates of a machine and the rules that stand in for missing
//!   instructions, found by the operation at their root.
//! * [`several`]: instructions with more than one result.
//!
//! # Phases
//!
//! Templates are made of a machine's semantics once; matching asks, for one operation of a
//! program, which templates cover it and with which values for their operands ([`matcher::Binds`]).
//! [`nearest`] says of an instruction that no program operation fits which one came nearest.
//!
//! # What it does not do
//!
//! It does not choose between matches: selection does.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod graph;
pub mod matcher;
pub mod nearest;
pub mod pat;
pub mod pattern;
pub mod several;
mod spellings;
pub mod wanted;
