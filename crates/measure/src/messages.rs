//! Short messages: what one costs as a whole.
//!
//! A hash function, a code or an authenticated cipher starts and ends with every message, which the
//! steady state leaves out. So each of some lengths is processed twice on the machine, and the second
//! time counts: code, tables and buffers are in the caches, and branches have gone this way before, as
//! in a program that does little else.

use crate::compare::side_by_side;
use crate::error::MeasureError;
use crate::interface::Interface;
use crate::plan::{RunPlan, Work};
use crate::sampling::Timed;
use ciphermill_program::Program;
use serde::Serialize;

/// Lengths in bytes: a block or so, a short packet, the Internet's least maximum, a full Ethernet frame.
const LENGTHS: [u32; 4] = [16, 64, 576, 1536];

/// A message and its cycles, from its start to its tag or digest.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Message {
    pub bytes: u32,
    pub cycles: u64,
}

/// The cycles of each length that the machine has memory for; and a failure, if there was one.
///
/// # Errors
/// As [`side_by_side`].
pub fn short(
    wasm: &[u8],
    program: &Program,
    interface: &Interface,
    work: Work,
) -> Result<(Vec<Message>, Option<String>), MeasureError> {
    let mut plan = RunPlan::new(interface, work, LENGTHS[LENGTHS.len() - 1])?;
    let lengths = LENGTHS.into_iter().filter(|&bytes| bytes <= plan.first_bytes);
    plan.passes = lengths.clone().flat_map(|bytes| [plan.call(bytes), plan.call(bytes)]).collect();
    let made = side_by_side(wasm, program, &plan, Timed::Everything)?;
    let message = |(bytes, pass): (u32, &ciphermill_sim::Stats)| Message { bytes, cycles: pass.cycles };
    Ok((lengths.zip(made.passes.iter().skip(1).step_by(2)).map(message).collect(), made.failure))
}
