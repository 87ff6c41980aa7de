//! The intermediate representation every stage of the compiler speaks.
//!
//! A [`Module`] is what a WebAssembly module means once its validation, its
//! operand stack and its structured control flow have been read away: a set of
//! functions in static single assignment form over control-flow graphs with
//! block parameters, one linear memory, and a *system area* (globals, the
//! function table, passive segments) that lives at a high address of its own
//! and is ordinary data to the machine.
//!
//! What lives here: the data types ([`func`], [`module`], [`ops`], [`ids`]), analyses
//! of control flow and of values that more than one stage needs ([`cfg`],
//! [`bits`]), the [`verify`]-ier that runs between passes, and a printer
//! ([`print`]).
//! What does not: anything that reads WebAssembly (crate `load`), anything
//! that changes a function for the better (crate `opt`), anything that knows a
//! machine.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod bits;
pub mod cfg;
mod func;
mod ids;
pub mod low_bits;
pub mod module;
pub mod ops;
mod print;
pub mod verify;

pub use cfg::{Cfg, Dominators, Loops};
pub use func::{Block, BlockData, Func, Inst, InstData, Target, Terminator, Value, ValueData, ValueDef};
pub use ids::{FuncId, GlobalId, SigId};
pub use module::{DataSegment, FuncRef, GlobalData, MemoryDecl, Module, PAGE_BYTES, SYSTEM_BASE, SystemImage};
pub use ops::{BinOp, Chain, CmpOp, MemAccess, Op, Signature, Space, TrapCode, Type, UnOp, mask, sext};
