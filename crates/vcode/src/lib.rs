//! Machine code on its way through the code generator: the data types that its stages share.
//!
//! # Data structures
//!
//! * [`VFunc`], [`VBlock`], [`VInst`], [`VOp`]: code over virtual registers ([`VReg`]), each
//!   defined once, with block parameters. What selection makes and allocation takes.
//! * [`MemRef`]: what an access touches, with the facts for alias analysis.
//! * [`Node`]: an instruction as schedulers see it, before allocation and after it.
//! * [`Registers`], [`Place`], [`Step`], [`Allocated`]: what allocation is given and what comes of it.
//! * [`PInst`], [`Laid`]: code with physical registers, laid out block by block.
//! * [`Facts`]: which registers an instruction's semantics name themselves.
//! * [`liveness`]: live-out virtual registers of each block, and MaxLive.
//!
//! # Invariants
//!
//! The last instruction of a block is a branch, a jump, a return or a trap; a branch goes to the
//! block's first successor when taken, and to the second otherwise. A block's parameters are as many as
//! the values that each edge into it has for them.
//!
//! # What it does not do
//!
//! No stage stands here: whatever decides something about code is in the crate of its stage.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod allocation;
pub mod banks;
mod code;
mod error;
mod facts;
pub mod liveness;
mod memory;
pub mod moves;
mod node;
mod physical;
pub mod places;
pub mod runs;
pub mod semantics;

pub use allocation::{Allocated, Place, Registers, Step};
pub use code::{Inverse, VBlock, VFunc, VInst, VKind, VOp, VReg};
pub use error::CompileError;
pub use facts::{Facts, Fixed};
pub use memory::{MemRef, Object};
pub use node::{Node, Resource};
pub use physical::{Laid, PInst};
