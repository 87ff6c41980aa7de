//! Calls from outside: what a caller on the machine would set up and check.
//!
//! Arguments go to the machine's argument registers and, beyond those, to the
//! words of the overflow area; results come back the same way. Every register
//! that a call does not define holds a pattern. After the return the
//! registers a callee must preserve are compared with what they expected.

use crate::engine::{Halt, RETURN_TO};
use crate::memory::{Fault, stack_from};
use crate::simulator::{Core, Simulator, Stop};
use crate::step::{NoWatch, Stepper, Watch};
use crate::windows::POISON;
use ciphermill_ir::TrapCode;
use ciphermill_ir::ops::mask;
use ciphermill_machine::{Machine, Reg};
use ciphermill_program::layout::STACK_TOP;

/// Where the outermost function's caller has left it.
fn frames_from(machine: &Machine) -> u32 {
    let abi = &machine.abi;
    stack_from(machine) - abi.frame_reserve.next_multiple_of(abi.stack_align.max(1))
}

impl Simulator {
    /// Run the start function, if there is one and it has not run yet.
    pub fn start(&mut self) -> Result<(), Stop> {
        if !std::mem::replace(&mut self.started, true)
            && let Some(f) = self.program.start
        {
            self.enter(f, &[])?;
        }
        Ok(())
    }

    /// Call an exported function by name.
    pub fn call_export(&mut self, name: &str, args: &[u64]) -> Result<Vec<u64>, Stop> {
        let f = self.program.export(name).ok_or_else(|| Stop::Internal(format!("there is no export `{name}`")))?;
        self.call(f, args)
    }

    /// Call a function with its arguments as machine words: on machines of 64-bit
    /// words, 32-bit values with their signs extended.
    pub fn call(&mut self, func: u32, args: &[u64]) -> Result<Vec<u64>, Stop> {
        self.start()?;
        self.enter(func, args)
    }

    fn enter(&mut self, func: u32, args: &[u64]) -> Result<Vec<u64>, Stop> {
        let entry = self.prepare(func, args)?;
        let fuel = self.options.max_instructions;
        let (program, map, state) = (&self.program, &self.map, &mut self.state);
        let run = match &mut self.core {
            Core::Interlocked(engine) => engine.call(program, map, state, entry, fuel),
            Core::Exposed(stepper) => stepper.call(program, map, state, entry, fuel, &mut NoWatch),
            Core::Dynamic(dynamic) => dynamic.call(program, map, state, entry, fuel),
        };
        let results = self.leave(func, args, run.map(|_| ()));
        if let Core::Exposed(stepper) = &mut self.core {
            stepper.drain(&mut self.state, &mut NoWatch);
        }
        results
    }

    /// Call a function bundle by bundle, with `watch` beside it. Values are those of
    /// [`Simulator::call`]; no time passes, and the counts of [`Simulator::stats`] stay.
    ///
    /// # Errors
    /// As [`Simulator::call`].
    pub fn watched(&mut self, func: u32, args: &[u64], watch: &mut impl Watch) -> Result<Vec<u64>, Stop> {
        self.start()?;
        let entry = self.prepare(func, args)?;
        let mut stepper = Stepper::new(&self.program, &self.map, false).map_err(Stop::Internal)?;
        let windows = (self.state.windows.overflows, self.state.windows.underflows);
        let fuel = self.options.max_instructions;
        let run = stepper.call(&self.program, &self.map, &mut self.state, entry, fuel, watch);
        (self.state.windows.overflows, self.state.windows.underflows) = windows;
        let results = self.leave(func, args, run.map(|_| ()))?;
        stepper.drain(&mut self.state, watch);
        Ok(results)
    }

    /// Set registers and overflow words up; the bundle to start at.
    pub(crate) fn prepare(&mut self, func: u32, args: &[u64]) -> Result<u32, Stop> {
        let internal = |s: String| Stop::Internal(s);
        let f =
            self.program.funcs.get(func as usize).ok_or_else(|| internal(format!("there is no function {func}")))?;
        let args = &self.program.machine.in_words(args);
        if args.len() != f.params {
            return Err(internal(format!("{} takes {} words, not {}", f.name, f.params, args.len())));
        }
        let machine = &self.program.machine;
        let abi = &machine.abi;
        for (r, info) in machine.regs.iter().enumerate() {
            let pinned = self.program.global_regs.iter().any(|(g, _)| usize::from(g.0) == r);
            if !info.zero && !pinned && !machine.files[info.file].state {
                self.state.pool.values[r] = POISON & mask(u32::from(machine.files[info.file].bits));
            }
        }
        let word = mask(u32::from(machine.word_bits));
        let word_bytes = usize::from(machine.value_bits() / 8);
        for (i, &arg) in args.iter().enumerate() {
            match abi.args.get(i) {
                Some(r) => self.state.pool.values[usize::from(r.0)] = arg & word,
                None => {
                    let at = self.program.arg_overflow as usize + (i - abi.args.len()) * word_bytes;
                    if !self.state.memory.set_system_word(at, word_bytes, arg & word) {
                        return Err(internal(format!("argument {i} of {} has no place in the overflow area", f.name)));
                    }
                }
            }
        }
        let align = abi.stack_align.max(1);
        let top = STACK_TOP - abi.frame_reserve.next_multiple_of(align);
        self.state.pool.values[usize::from(abi.stack_pointer.0)] = u64::from(top);
        match abi.return_address {
            Some(r) => self.state.pool.values[usize::from(r.0)] = RETURN_TO,
            None => {
                let pointer = abi.return_stack.unwrap_or(abi.stack_pointer);
                self.state.pool.values[usize::from(abi.stack_pointer.0)] = u64::from(frames_from(machine));
                let sp = top - abi.return_bytes;
                self.state.memory.set_stack_word(sp, usize::from(machine.word_bits / 8), RETURN_TO);
                self.state.pool.values[usize::from(pointer.0)] = u64::from(sp);
            }
        }
        self.state.windows.restart();
        self.map.lookup(u64::from(self.map.layout.func(func))).map_err(internal)
    }

    /// Check what the callee owes and collect the results.
    pub(crate) fn leave(&mut self, func: u32, args: &[u64], run: Result<(), Halt>) -> Result<Vec<u64>, Stop> {
        run.map_err(|h| self.stop(h))?;
        let machine = &self.program.machine;
        let abi = &machine.abi;
        let f = &self.program.funcs[func as usize];
        let value = |r: Reg| self.state.pool.values[usize::from(r.0)];
        let args = &machine.in_words(args);
        let top = frames_from(machine);
        if value(abi.stack_pointer) != u64::from(top) {
            let sp = value(abi.stack_pointer);
            return Err(Stop::Internal(format!("{} returned with the stack pointer at {sp:#x}, not {top:#x}", f.name)));
        }
        for &r in abi.callee_saved.iter().chain(&abi.call_preserved) {
            let pinned = self.program.global_regs.iter().any(|&(g, _)| g == r);
            let info = &machine.regs[usize::from(r.0)];
            let special = r == abi.stack_pointer || Some(r) == abi.return_address || info.zero || pinned;
            // A register may both bring an argument and be the caller's.
            let expected = abi.args.iter().position(|&a| a == r).and_then(|i| args.get(i)).copied().unwrap_or(POISON);
            if !special && value(r) != expected & mask(u32::from(machine.files[info.file].bits)) {
                return Err(Stop::Internal(format!("{} did not preserve register {}", f.name, info.name)));
            }
        }
        let word_bytes = usize::from(machine.value_bits() / 8);
        let mut results = Vec::with_capacity(f.results);
        for i in 0..f.results {
            results.push(match abi.results.get(i) {
                Some(&r) => value(r),
                None => {
                    let at = self.program.arg_overflow as usize + (i - abi.results.len()) * word_bytes;
                    let word = self.state.memory.system_word(at, word_bytes);
                    word.ok_or_else(|| Stop::Internal(format!("result {i} of {} has no place", f.name)))?
                }
            });
        }
        Ok(machine.from_words(&results))
    }

    /// A halt in the terms of the program.
    pub(crate) fn stop(&self, halt: Halt) -> Stop {
        let (fault, (n, slot)) = match halt {
            Halt::Fuel => return Stop::OutOfFuel,
            Halt::Internal(s) => return Stop::Internal(s),
            Halt::Fault(fault, place) => (fault, place),
        };
        let at = self.map.bundles[n as usize];
        let inst = self.map.bundle(&self.program, n).insts.get(usize::from(slot));
        let loc = inst.map_or(0, |i| i.loc);
        let trap = |code| Stop::Trap { code, func: at.func, loc };
        let whence = || self.map.describe(&self.program, n);
        match fault {
            Fault::OutOfBounds => trap(TrapCode::MemoryOutOfBounds),
            Fault::Divide(false) => trap(TrapCode::IntegerDivisionByZero),
            Fault::Divide(true) => trap(TrapCode::IntegerOverflow),
            Fault::Trap => match inst.and_then(|i| i.trap) {
                Some(TrapCode::StackOverflow) => Stop::StackOverflow,
                code => trap(code.unwrap_or(TrapCode::Unreachable)),
            },
            Fault::StackLimit => Stop::StackOverflow,
            Fault::ReadOnly(a) => Stop::PromiseBroken(format!("a store to constant data at {a:#x} ({})", whence())),
            Fault::OtherMemory(a) => Stop::PromiseBroken(format!(
                "a load at {a:#x} that finds a table in flash where it expects RAM, or the other way round ({}); keep tables in \
                 RAM: --set 'memory.tables=\"ram\"'",
                whence()
            )),
            Fault::Misaligned(a) => Stop::Misaligned(format!("{a:#x} ({})", whence())),
            Fault::BadSystem(a) => Stop::Internal(format!("{a:#x} is not in the system area ({})", whence())),
            Fault::BadStack(a) => Stop::Internal(format!("{a:#x} is not in the stack ({})", whence())),
            Fault::BadPages(p) => Stop::Internal(format!("a memory of {p} pages ({})", whence())),
            Fault::NoWindow => Stop::Internal(format!("a window is closed that was not opened ({})", whence())),
        }
    }
}
