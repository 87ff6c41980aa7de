//! A program for one machine: bundles of instructions with physical registers.
//!
//! The code generator makes it, the simulator runs it, [`asm`] prints it. It
//! is the last thing the compiler and the first thing the simulator knows, and
//! neither knows the other.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod asm;
pub mod code;
pub mod exact;
pub mod kept_schedules;
pub mod layout;
pub mod lines;
pub mod loops;
pub mod program;
pub mod search_log;

pub use code::{Block, Bundle, Func, Inst, Operand, Role};
pub use loops::{CircuitStep, PipelinedLoop, PlainLoop};
pub use program::{Program, Segment};
