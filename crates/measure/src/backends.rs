//! The two things a plan is carried out on, behind one trait.

use crate::error::MeasureError;
use crate::plan::grouped;
use crate::sampling::Timed;
use crate::shape::Call;
use crate::target::{Halt, Target};
use ciphermill_audit::tracker::Tracker;
use ciphermill_ooo::log::Log;
use ciphermill_program::Program;
use ciphermill_reference::Reference;
use ciphermill_sim::circuits::ObservedLoop;
use ciphermill_sim::{Dataflow, Ends, SimOptions, Simulator, Stats, Stop};
use std::sync::Arc;

impl Target for Reference {
    fn call(&mut self, export: &str, args: &[u64]) -> Result<Vec<u64>, Halt> {
        Reference::call(self, export, args).map_err(|stop| {
            let late = stop == ciphermill_reference::Stop::OutOfFuel;
            let reason = if late { late_after(self.limit()) } else { stop.to_string() };
            let trap = match stop {
                ciphermill_reference::Stop::Trap(code) => Some(code),
                _ => None,
            };
            Halt { reason, promise: false, misaligned: false, trap, late }
        })
    }

    fn memory(&self) -> &[u8] {
        Reference::memory(self)
    }

    fn memory_mut(&mut self) -> &mut [u8] {
        Reference::memory_mut(self)
    }

    fn allow(&mut self, steps: u64) {
        self.set_fuel(steps);
    }

    fn reserve(&mut self, bytes: u64) -> Result<(), String> {
        let bytes = usize::try_from(bytes).map_err(|e| e.to_string())?;
        self.grow_memory_to(bytes)
            .map_err(|stop| format!("{stop}; use a shorter message, or link with a larger --max-memory"))
    }
}

/// What is said of a run that used up its steps.
fn late_after(limit: u64) -> String {
    format!(
        "the limit of {} steps (operators of WebAssembly, key set-up and message together) is reached. It may be slow, or \
         never end: give it more with --limit {}, or a shorter message",
        grouped(limit),
        limit.saturating_mul(10)
    )
}

/// Instantiate a module on the reference interpreter, which gives up after
/// `limit` steps: a user's module may never return.
pub fn reference(wasm: &[u8], limit: u64) -> Result<Reference, MeasureError> {
    Reference::with_fuel(wasm, limit).map_err(MeasureError::input)
}

/// A simulated machine with a program in it.
pub struct Simulated {
    sim: Simulator,
}

impl Simulated {
    /// A machine whose memory has `pages` pages, as the reference's has. A
    /// call stops after `limit` instructions ([`crate::plan::backstop`]).
    pub fn new(program: &Program, pages: u32, limit: u64) -> Result<Simulated, MeasureError> {
        let mut program = program.clone();
        program.min_pages = pages;
        let options = SimOptions { strict_addresses: false, max_instructions: limit, ..SimOptions::default() };
        let sim = Simulator::new(Arc::new(program), options).map_err(MeasureError::internal)?;
        Ok(Simulated { sim })
    }

    /// Zero all counters.
    pub fn reset(&mut self) {
        self.sim.reset_stats();
    }

    /// Dataflow costs of one call on a machine of unlimited width.
    pub fn dataflow(&mut self, call: &Call, ends: &Ends) -> Result<Dataflow, MeasureError> {
        let program = self.sim.program().clone();
        let func = program
            .export(&call.export)
            .ok_or_else(|| MeasureError::internal(format!("the program has no export {}", call.export)))?;
        self.sim.dataflow(func, &call.args, ends).map(|(_, flow)| flow).map_err(MeasureError::internal)
    }

    /// Make a call with masks beside it; inside, why it did not return.
    pub fn watched(&mut self, call: &Call, tracker: &mut Tracker<'_>) -> Result<Result<(), String>, MeasureError> {
        let func = self.sim.program().export(&call.export);
        let func = func.ok_or_else(|| MeasureError::internal(format!("the program has no export {}", call.export)))?;
        match tracker.call(&mut self.sim, func, &call.args) {
            Ok(_) => Ok(Ok(())),
            Err(Stop::OutOfFuel) => Ok(Err("too long to be followed".to_owned())),
            Err(stop @ (Stop::Trap { .. } | Stop::StackOverflow)) => Ok(Err(stop.to_string())),
            Err(stop) => Err(MeasureError::internal(stop)),
        }
    }

    /// What one call shows of loops of one block.
    pub fn circuits(&mut self, call: &Call, loops: &[(u32, u32)]) -> Result<Vec<ObservedLoop>, MeasureError> {
        let func = self.sim.program().export(&call.export);
        let func = func.ok_or_else(|| MeasureError::internal(format!("the program has no export {}", call.export)))?;
        self.sim.circuits(func, &call.args, loops).map_err(MeasureError::internal)
    }

    /// Give cycles to so much from now on, on machines with a core that schedules at run time.
    pub fn time(&mut self, timed: Timed) {
        if let Some(core) = self.sim.pipeline() {
            timed.begin(core);
        }
    }

    /// Give the core a log, or none, for the one it had.
    pub fn log(&mut self, log: Option<Log>) -> Option<Log> {
        let core = self.sim.pipeline()?;
        std::mem::replace(&mut core.log, log)
    }

    /// The cycle of the core's own count in which the next call begins.
    pub fn next_call(&mut self) -> u64 {
        self.sim.pipeline().map_or(0, |core| core.next_call())
    }

    /// Let the core follow the longest chain of dependences from now on.
    pub fn follow_chains(&mut self) {
        if let Some(core) = self.sim.pipeline() {
            core.follow_chains();
        }
    }

    /// Its cycles; 0 on machines without such a core.
    pub fn longest_chain(&mut self) -> u64 {
        self.sim.pipeline().map_or(0, |core| core.longest_chain())
    }

    /// How often each bundle of each block ran since the last reset:
    /// `[function][block][bundle]`.
    pub fn bundle_counts(&self) -> Vec<Vec<Vec<u64>>> {
        self.sim.bundle_counts()
    }

    /// Counters since the last reset.
    pub fn stats(&self) -> Stats {
        self.sim.stats()
    }
}

impl Target for Simulated {
    fn call(&mut self, export: &str, args: &[u64]) -> Result<Vec<u64>, Halt> {
        self.sim.call_export(export, args).map_err(|stop| Halt {
            reason: stop.to_string(),
            trap: None,
            misaligned: matches!(stop, Stop::Misaligned(_)),
            late: stop == Stop::OutOfFuel,
            promise: matches!(stop, Stop::PromiseBroken(_)),
        })
    }

    fn memory(&self) -> &[u8] {
        self.sim.memory()
    }

    fn memory_mut(&mut self) -> &mut [u8] {
        self.sim.memory_mut()
    }

    fn reserve(&mut self, bytes: u64) -> Result<(), String> {
        match bytes <= self.sim.memory().len() as u64 {
            true => Ok(()),
            false => Err(format!("the simulated memory has less than {bytes} bytes")),
        }
    }
}
