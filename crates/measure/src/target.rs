//! Something that runs a module's exports on a memory: the reference
//! interpreter or the simulated machine.

use crate::error::MeasureError;
use crate::plan::RunPlan;
use crate::shape::{Call, Name};
use ciphermill_reference::TrapCode;

/// Runs exported functions.
pub trait Target {
    /// Call an export; results in order.
    fn call(&mut self, export: &str, args: &[u64]) -> Result<Vec<u64>, Halt>;
    /// The whole linear memory.
    fn memory(&self) -> &[u8];
    /// The whole linear memory, to write buffers.
    fn memory_mut(&mut self) -> &mut [u8];

    /// From now on, so many steps and no more; nothing where steps are not counted.
    fn allow(&mut self, _steps: u64) {}

    /// See to it that memory has at least so many bytes; an error where the
    /// module's own limit forbids it.
    fn reserve(&mut self, bytes: u64) -> Result<(), String>;

    /// Put bytes into memory. The plan has made sure that they fit.
    fn write(&mut self, addr: u32, bytes: &[u8]) {
        let at = addr as usize;
        self.memory_mut()[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// `len` bytes of memory.
    fn read(&self, addr: u32, len: u32) -> &[u8] {
        &self.memory()[addr as usize..(addr + len) as usize]
    }
}

/// Why a call did not return.
#[derive(Debug)]
pub struct Halt {
    pub reason: String,
    /// The module did what it had said it would not (an access less aligned
    /// than it states, a store to constant data).
    pub promise: bool,
    /// An access was less aligned than it states.
    pub misaligned: bool,
    /// It trapped.
    pub trap: Option<TrapCode>,
    /// It was still running when its steps were used up.
    pub late: bool,
}

impl std::fmt::Display for Halt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.reason)
    }
}

/// A call that did not return.
#[derive(Debug)]
pub struct Stopped {
    pub export: Name,
    pub halt: Halt,
}

impl Stopped {
    /// The error of a module that stopped where it was compiled and scheduled by nobody.
    pub fn on_reference(&self) -> MeasureError {
        MeasureError::input(format!("{} stopped on the reference interpreter: {}", self.export, self.halt))
    }
}

/// Write a plan's inputs and make its uncounted calls.
pub fn prepare(target: &mut dyn Target, plan: &RunPlan) -> Result<(), Stopped> {
    for (addr, bytes) in &plan.writes {
        target.write(*addr, bytes);
    }
    run(target, &plan.setup).map(drop)
}

/// Make calls in order; the results of all of them.
pub fn run(target: &mut dyn Target, calls: &[Call]) -> Result<Vec<Vec<u64>>, Stopped> {
    let one = |call: &Call| {
        target.call(&call.export, &call.args).map_err(|halt| Stopped { export: call.export.clone(), halt })
    };
    calls.iter().map(one).collect()
}
