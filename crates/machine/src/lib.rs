//! Machine files: what they say, as data the other stages read.
//!
//! A machine is one TOML file (`machines/*.toml`), an extension another
//! (`extensions/*.toml`). This crate reads them ([`tree`]), checks their keys
//! ([`shape`], [`keys`]) and that every number has a source ([`sources`]),
//! resolves inheritance, extensions and `--set` ([`load`](mod@load)), parses
//! the semantics of their instructions ([`parse`]) into [`sem`] trees, checks
//! everything a later stage would otherwise have to doubt ([`build`],
//! [`compounds`], [`rules`]), and yields a [`Machine`] ([`model`]).
//!
//! What does not live here: choosing instructions, scheduling, timing. The
//! model says that a load's result is ready two cycles after issue; what that
//! costs is the simulator's business.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod abi;
mod build;
mod builder;
mod cache;
mod chains;
mod clusters;
pub mod compounds;
pub mod core;
mod distances;
mod error;
pub mod eval;
mod expr;
mod fold;
mod functions;
pub mod gf2;
mod ids;
mod imm;
mod json;
pub mod keys;
mod kind;
mod lex;
mod linear;
pub mod load;
mod memory;
mod merged;
mod model;
mod modes;
mod operands;
pub mod parse;
mod parser;
pub mod print;
pub mod prove;
mod pushes;
mod random;
mod rules;
pub mod sem;
pub mod shape;
mod sources;
mod system;
mod tables;
mod tree;
mod unused;
pub mod victim;

pub use error::{FileError, NamedText};
pub use json::schema;
pub use kind::for_each_expr;
pub use lex::SemError;
pub use load::{Request, load, load_from_dir, names_in};
pub use model::*;
