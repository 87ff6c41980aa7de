//! A request as a real processor is to run it: the program that is simulated, as assembly,
//! with the buffers, the calls, and the memory that must come of them.
//!
//! A processor's steady state is taken from two message lengths, like that of a
//! simulation ([`crate::steady`]), and the caller says which: those of a measurement, so
//! that both are of the same passes. The reference interpreter makes the set-up and the
//! longer call; what stands in linear memory then is what a native run is compared with.
//! Nothing here runs foreign code or knows an operating system.

use crate::compare::judge;
use crate::error::MeasureError;
use crate::plan::RunPlan;
use crate::probe::open;
use crate::request::Request;
use crate::shape::{Call, Count};
use crate::work::{chosen, message, work};
use ciphermill_ir::PAGE_BYTES;
use ciphermill_program::asm;
use serde::Serialize;

/// Calls of a key set-up in the shorter and in the longer run: it has no length.
const KEYSETUPS: (usize, usize) = (1, 5);

/// What a host runs.
#[derive(Debug, Serialize)]
pub struct Native {
    /// For the machine's assembler; where it is to be linked stands at its head.
    pub assembly: String,
    /// Bytes of linear memory, in whole pages.
    pub memory_bytes: u64,
    /// Written before the set-up, by address, in hexadecimal.
    pub writes: Vec<(u32, String)>,
    /// Buffers by name, with their first address and the one behind them.
    pub buffers: Vec<(String, u32, u32)>,
    pub setup: Vec<NativeCall>,
    pub shorter: Vec<NativeCall>,
    pub longer: Vec<NativeCall>,
    /// Blocks, or key set-ups, that the longer run has more.
    pub blocks: f64,
    /// Where arguments stand that are beyond those in registers, one after the other: an offset into the system area.
    pub arg_overflow: u32,
    /// Linear memory after the set-up and one longer run: pages that hold something, by address.
    pub expected: Vec<(u64, String)>,
}

/// A call of a function by its symbol.
#[derive(Clone, Debug, Serialize)]
pub struct NativeCall {
    pub symbol: String,
    pub args: Vec<u64>,
}

/// A request for a host; `lengths` are the bytes of the shorter and of the longer message (of a
/// key set-up they say nothing).
///
/// # Errors
/// As [`crate::measure`]; and for lengths that are none of this cipher.
pub fn native(wasm: &[u8], request: &Request, lengths: (u32, u32)) -> Result<Native, MeasureError> {
    let (_, interface, _) = open(wasm, request.kernel.as_ref())?;
    let work = work(&interface, request)?;
    let (unit, _) = message(&interface, request, work)?;
    let chosen = chosen(wasm, request)?;
    let at = interface.at(chosen.context_at);
    let called = work.count == Count::Calls;
    let (shorter, longer) = match called {
        true => (unit * KEYSETUPS.0 as u32, unit * KEYSETUPS.1 as u32),
        false => lengths,
    };
    let whole = |bytes: u32| bytes > 0 && (work.count == Count::Bytes || bytes.is_multiple_of(unit));
    if !whole(shorter) || !whole(longer) || shorter >= longer {
        return Err(MeasureError::input(format!(
            "messages of {shorter} and {longer} bytes: two whole numbers of blocks of {unit} bytes, the second more"
        )));
    }
    let plan = RunPlan::new(&at, work, longer)?;
    if !called && plan.measured.len() > 1 {
        return Err(MeasureError::input(format!(
            "--bytes {longer}: too long a message for one call; a native run takes at most 64 MiB"
        )));
    }
    let few = match called {
        true => plan.measured[..KEYSETUPS.0].to_vec(),
        false => vec![plan.call(shorter)],
    };
    let judged = judge(wasm, &plan, plan.measured.len())?;
    Ok(Native {
        assembly: asm::print(&chosen.program),
        memory_bytes: judged.pages * PAGE_BYTES,
        writes: plan.writes.iter().map(|(at, bytes)| (*at, hex(bytes))).collect(),
        buffers: plan.buffers.iter().map(|(name, range)| (name.to_string(), range.start, range.end)).collect(),
        setup: calls(&plan.setup),
        shorter: calls(&few),
        longer: calls(&plan.measured),
        blocks: f64::from((longer - shorter) / unit),
        arg_overflow: chosen.program.arg_overflow,
        expected: judged.memory.held().map(|(at, bytes)| (at as u64, hex(bytes))).collect(),
    })
}

fn calls(calls: &[Call]) -> Vec<NativeCall> {
    calls.iter().map(|c| NativeCall { symbol: c.export.to_string(), args: c.args.clone() }).collect()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut out, byte| {
        // Writing to a string cannot fail.
        let _ = write!(out, "{byte:02x}");
        out
    })
}
