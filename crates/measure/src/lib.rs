//! Measurements: a cipher on a machine, compiled, run, checked and explained.
//!
//! This crate knows every stage and is known by none: it carries a module and
//! a machine through them and makes the one thing that leaves the system, a
//! [`Measurement`]. How, in order:
//!
//! 1. [`pipeline`]: the module is loaded, the machine built from its texts, the
//!    module optimised and compiled for it, in the unroll-and-jam variant that [`choose`] finds best
//!    with the trip counts of [`trips`].
//! 2. [`probe`] asks the module for its sizes ([`interface`]). [`kinds`] says what a direction calls, as a
//!    [`shape`]: functions over described buffers. [`plan`] lays out buffers and
//!    says what to call, with the bytes of [`inputs`].
//! 3. [`compare`] carries the plan out twice, on the simulated machine and on
//!    the reference interpreter ([`target`], [`backends`]), and compares every
//!    byte of memory. A cycle count without that comparison does not exist.
//! 4. The message gives the totals; [`steady`] takes it again, in parts, for the
//!    steady state, which call overhead and cold caches do not touch.
//! 5. [`bounds`] and [`resource`] say how few cycles it could have been,
//!    [`bottleneck`] why it was not, [`sizes`] what it takes in memory.
//!
//! A module that traps is run once more, to see where: [`crash`].
//!
//! [`vectors`] runs official test vectors on the reference, which the caller
//! does once for a module and hands the verdict to each measurement. [`json`]
//! has the same calls with JSON text for requests and answers. [`speed`] times
//! the simulator itself, [`native`](mod@native) hands a request to a real processor,
//! [`sheet`] runs loops that show one figure of a machine each, [`explain`] shows the hottest blocks cycle by cycle.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod apply;
mod backends;
mod bottleneck;
mod bounds;
mod choose;
mod chosen;
mod circuits;
mod class;
mod compare;
mod constant;
mod context;
mod core;
mod crash;
mod crypt;
mod discover;
mod error;
mod explain;
mod fastest;
mod fits;
mod hints;
mod inputs;
mod interface;
pub mod json;
mod kept;
mod kernel;
mod kinds;
mod leaks;
mod margins;
mod measure;
mod measurement;
mod messages;
mod native;
mod object;
mod pipeline;
mod pipelining;
mod plan;
mod probe;
mod profile;
mod proved;
mod request;
mod resource;
mod room;
mod sampling;
mod shape;
mod shared;
mod sheet;
mod sizes;
mod slope;
mod smallest;
mod sparse;
mod speed;
mod stated;
mod steady;
mod target;
mod trips;
mod vectors;
mod view;
mod work;

pub use constant::audit_module;
pub use crypt::{ApplyRequest, crypt, keystream, process};
pub use error::{MeasureError, Place, Placed};
pub use explain::{Explanation, explain};
pub use leaks::{Audit, audit};
pub use measure::measure;
pub use measurement::{Bounds, Breakdown, Leaks, Loop, Measurement, Metrics, Provenance};
pub use messages::Message;
pub use native::{Native, NativeCall, native};
pub use object::{Object, object};
pub use pipeline::BUFFER_ALIGN;
pub use request::{Blocks, Direction, Goal, MachineRequest, Request, TextFile, Trace, VectorReport};
pub use shape::Kernel;
pub use shared::forget;
pub use sheet::{PrintedLoop, PrintedSheet, SheetRequest, Turn, printed, sheet};
pub use speed::{Speed, speed};
pub use view::Stages;
