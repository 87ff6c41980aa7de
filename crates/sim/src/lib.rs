//! The simulator: programs run and timed, on scalar, in-order, VLIW and
//! out-of-order machines.
//!
//! A program runs on a machine exactly as its machine file says, with two
//! results: the machine's memory and registers afterwards (what a program
//! *does*), and how many cycles it took and why (what it *costs*). Both come
//! from the same bundles of the same [`Program`].
//!
//! # How
//!
//! * [`flatten`] turns each instruction's semantics into a few three-address
//!   operations on a flat array of values ([`xop`], [`slots`]); [`exec`] is
//!   the loop that runs them. There is no other notion of what an instruction
//!   does.
//! * Machines with interlocks run on [`engine`]: straight runs of code
//!   ([`superblock`]) are decoded and timed ([`hazard`]) when first reached,
//!   and only counted from then on. [`cache`]s and register [`windows`] freeze
//!   the pipeline, so their cycles simply add.
//! * Machines with an exposed pipeline run on [`step`], bundle by bundle: a result is not in
//!   its register before its latency has passed, and code that reads too early
//!   gets the old value, as on the hardware.
//! * Machines that schedule at run time run on [`dynamic`], which executes the
//!   same superblocks and tells crate `ooo` what ran.
//! * [`dataflow`] runs the same program on an infinitely wide machine, for the
//!   bounds that measurements are compared with; [`circuits`] sees which instructions of a
//!   loop wait for which, through memory too, and [`cycle`] what goes round longest.
//!
//! # What is checked
//!
//! Each access names the memory it means, and none may leave it; stores to
//! data promised constant, misaligned accesses on machines that have none,
//! callee-saved registers not handed back, and jumps to where no instruction
//! starts all end the run with an error. Registers that a call does not define
//! hold a pattern, so that reading them shows.

pub mod cache;
pub mod circuits;
pub mod code;
pub mod cycle;
pub mod dataflow;
pub mod dynamic;
pub mod engine;
pub mod exec;
pub mod flatten;
pub mod hazard;
pub mod memory;
pub mod slots;
pub mod stats;
pub mod step;
pub mod sums;
pub mod superblock;
pub mod uses;
pub mod windows;
pub mod xop;

mod call;

pub use cache::CacheStats;
pub use dataflow::{Dataflow, Ends};
pub use stats::{Roles, Stalls, Stats};

use ciphermill_ir::TrapCode;
use ciphermill_program::Program;
use code::CodeMap;
use dynamic::Dynamic;
use engine::Engine;
use exec::State;
use memory::Memory;
use slots::SlotPool;
use std::sync::Arc;
use step::Stepper;
use thiserror::Error;
use windows::Windows;

/// How a simulation differs from the default.
#[derive(Clone, Copy, Debug)]
pub struct SimOptions {
    /// Addresses are mathematical sums: one that leaves 32 bits is out of
    /// bounds, as in WebAssembly. False: sums wrap at 32 bits, as on hardware.
    pub strict_addresses: bool,
    /// Misaligned accesses are errors on machines that do not have them.
    pub check_alignment: bool,
    /// Model the machine's caches; false: every access hits.
    pub caches: bool,
    /// Instructions after which a call is stopped (give or take one straight
    /// run of code).
    pub max_instructions: u64,
}

impl Default for SimOptions {
    fn default() -> SimOptions {
        SimOptions { strict_addresses: true, check_alignment: true, caches: true, max_instructions: u64::MAX / 2 }
    }
}

/// Why a call did not return.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Stop {
    /// A WebAssembly trap, in function `func` (its index in the program) and
    /// at offset `loc` of the WebAssembly module (0: unknown).
    #[error("{code:?} in function {func} at offset {loc:#x}")]
    Trap { code: TrapCode, func: u32, loc: u32 },
    #[error("the stack is exhausted")]
    StackOverflow,
    #[error("the limit on executed instructions is reached")]
    OutOfFuel,
    /// The program did what its module had promised it would not.
    #[error("broken promise: {0}")]
    PromiseBroken(String),
    /// An access is less aligned than the machine can make it.
    #[error("broken promise: a misaligned access at {0}")]
    Misaligned(String),
    /// The program is wrong in a way no module can make it: an error of the
    /// compiler's, the simulator's, or the caller's.
    #[error("internal error: {0}")]
    Internal(String),
}

/// The engine that suits the machine's pipeline.
enum Core {
    Interlocked(Box<Engine>),
    Exposed(Box<Stepper>),
    Dynamic(Box<Dynamic>),
}

/// A machine with a program in it.
pub struct Simulator {
    program: Arc<Program>,
    options: SimOptions,
    map: CodeMap,
    state: State,
    core: Core,
    started: bool,
}

impl Simulator {
    /// A machine with `program` loaded and memory as it starts. The program's
    /// start function runs with the first call.
    ///
    /// # Errors
    /// [`Stop::Internal`] when the program does not fit its machine.
    pub fn new(program: Arc<Program>, options: SimOptions) -> Result<Simulator, Stop> {
        let build = || -> Result<(CodeMap, State, Core), String> {
            let map = CodeMap::new(&program)?;
            let machine = &program.machine;
            let mut pool = SlotPool::new(machine)?;
            for file in program.machine.files.iter().filter(|f| f.reset != 0) {
                let first = usize::from(file.first.0);
                pool.values[first..first + usize::from(file.count)].fill(file.reset);
            }
            for &(reg, value) in &program.global_regs {
                pool.values[usize::from(reg.0)] = value;
            }
            let memory = Memory::new(&program, &map.layout, options.strict_addresses, options.check_alignment)?;
            let tables = machine.tables.iter().map(|t| t.values.clone()).collect();
            let matrices = map.matrices.iter().map(|m| m.byte_tables()).collect();
            let state = State { pool, memory, windows: Windows::new(machine), tables, matrices };
            let core = if let Some(model) = &machine.core {
                Core::Dynamic(Box::new(Dynamic::new(&program, &map, model)?))
            } else if machine.issue.interlock {
                Core::Interlocked(Box::new(Engine::new(&program, &map, options.caches)?))
            } else {
                Core::Exposed(Box::new(Stepper::new(&program, &map, options.caches)?))
            };
            Ok((map, state, core))
        };
        let (map, state, core) = build().map_err(Stop::Internal)?;
        Ok(Simulator { program, options, map, state, core, started: false })
    }

    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// The linear memory in its current size and in WebAssembly's byte order,
    /// whatever the machine's (see [`memory`]).
    pub fn memory(&self) -> &[u8] {
        &self.state.memory.linear
    }

    pub fn memory_mut(&mut self) -> &mut [u8] {
        &mut self.state.memory.linear
    }

    /// The system area (globals, table, passive segments), little-endian.
    pub fn system(&self) -> &[u8] {
        &self.state.memory.system
    }

    /// The value of a register, for globals that live in one.
    pub fn register(&self, reg: ciphermill_machine::Reg) -> Option<u64> {
        (usize::from(reg.0) < self.program.machine.regs.len()).then(|| self.state.pool.values[usize::from(reg.0)])
    }

    /// Counts since the last reset.
    pub fn stats(&self) -> Stats {
        let mut s = match &self.core {
            Core::Interlocked(engine) => engine.stats(&self.program, &self.map),
            Core::Exposed(stepper) => stepper.stats(&self.program, &self.map),
            Core::Dynamic(dynamic) => dynamic.stats(&self.program, &self.map),
        };
        let w = &self.state.windows;
        (s.window_overflows, s.window_underflows) = (w.overflows, w.underflows);
        s.stalls.window = w.trap_cycles();
        s.stalls.icache = s.icache.map_or(0, |c| c.stall_cycles);
        s.stalls.dcache = s.dcache.map_or(0, |c| c.stall_cycles);
        s.stack_bytes = u64::from(ciphermill_program::layout::STACK_TOP) - self.state.memory.lowest_stack;
        s.cycles = s.issue_cycles + s.stalls.total();
        s
    }

    /// Zero all counts. Memory, registers and cache contents stay.
    pub fn reset_stats(&mut self) {
        match &mut self.core {
            Core::Interlocked(engine) => engine.reset(),
            Core::Exposed(stepper) => stepper.reset(),
            Core::Dynamic(dynamic) => dynamic.reset(),
        }
        (self.state.windows.overflows, self.state.windows.underflows) = (0, 0);
        self.state.memory.lowest_stack = u64::from(ciphermill_program::layout::STACK_TOP);
    }

    /// The core of a machine that schedules at run time.
    pub fn pipeline(&mut self) -> Option<&mut ciphermill_ooo::Pipeline> {
        match &mut self.core {
            Core::Dynamic(dynamic) => Some(&mut dynamic.pipeline),
            _ => None,
        }
    }

    /// How often each bundle of each block was executed:
    /// `[function][block][bundle]`.
    pub fn bundle_counts(&self) -> Vec<Vec<Vec<u64>>> {
        let counts = match &self.core {
            Core::Interlocked(engine) => engine.bundle_counts(&self.map),
            Core::Exposed(stepper) => stepper.bundle_counts(),
            Core::Dynamic(dynamic) => dynamic.bundle_counts(&self.map),
        };
        let mut counts = counts.into_iter();
        let blocks = |f: &ciphermill_program::Func, counts: &mut std::vec::IntoIter<u64>| {
            f.blocks.iter().map(|b| counts.take(b.bundles.len()).collect()).collect()
        };
        self.program.funcs.iter().map(|f| blocks(f, &mut counts)).collect()
    }
}
