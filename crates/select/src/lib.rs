//! From functions of the intermediate representation to machine code over virtual registers.
//!
//! # Phases
//!
//! Before selection functions are rewritten so that it can cover them: parameters that do
//! not fit into registers ([`shape`]), accesses with their checks ([`expand`], [`aligned`]), tables in
//! banks of memory ([`banks`]), shifts and masks as the machine has them ([`masks`],
//! [`halves`], [`turned`], [`addressing`], [`carries`]), branches ([`branches`]), and operations that the machine lacks
//! ([`legalise`]). Then [`select`] covers each block from its end, and [`constants`] decides
//! where constants are made.
//!
//! # Invariants
//!
//! What [`legalise`] leaves the machine has an instruction for, or the error names the operation and
//! its place in the module.
//!
//! # What it does not do
//!
//! Which functions of a program are instructions of the machine (tables, matrices, fields) is
//! found before, by `ciphermill-recognise`.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod addressing;
pub mod aligned;
pub mod banks;
pub mod behind;
pub mod branches;
pub mod carries;
pub mod chains;
pub mod constants;
pub mod expand;
pub mod flash;
pub mod halves;
pub mod legalise;
mod lookups;
pub mod masks;
mod provenance;
pub mod select;
pub mod shape;
pub mod turned;
