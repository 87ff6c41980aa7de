//! A machine with a program in it.

use crate::code::CodeMap;
use crate::dynamic::Dynamic;
use crate::engine::Engine;
use crate::exec::State;
use crate::memory::Memory;
use crate::options::SimOptions;
use crate::slots::SlotPool;
use crate::stats::Stats;
use crate::step::Stepper;
use crate::windows::Windows;
use ciphermill_ir::TrapCode;
use ciphermill_program::Program;
use std::sync::Arc;
use thiserror::Error;

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
pub(crate) enum Core {
    Interlocked(Box<Engine>),
    Exposed(Box<Stepper>),
    Dynamic(Box<Dynamic>),
}

/// A machine with a program in it.
pub struct Simulator {
    pub(crate) program: Arc<Program>,
    pub(crate) options: SimOptions,
    pub(crate) map: CodeMap,
    pub(crate) state: State,
    pub(crate) core: Core,
    pub(crate) started: bool,
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
    /// whatever the machine's (see [`crate::memory`]).
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
        // Beside a stack of return addresses alone: of frames.
        let top = u64::from(crate::memory::stack_from(&self.program.machine));
        s.stack_bytes = top.saturating_sub(self.state.memory.lowest_stack);
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
