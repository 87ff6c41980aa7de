//! The judge: `wasmi`, an independent interpreter of WebAssembly.
//!
//! Every run of a simulated machine is compared with a run here on the original
//! bytes of the module. This crate shares no code with the compiler or the
//! simulators, not even their trap codes, so that an error of ours cannot hide
//! in both. It reads the module a second time, from its bytes, for the same
//! reason.
//!
//! Values are passed as raw bits: an `i32` in the low half of a `u64`.
//!
//! A module's memory can be seen when the module exports it under any name. A
//! memory grows to at most [`MAX_MEMORY_BYTES`], as on our machines.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod large;
mod stop;

pub use stop::{MAX_MEMORY_BYTES, ReferenceError, Stop, TrapCode};

use stop::stop;
use wasmi::{
    Config, Engine, Extern, Func, Global, Instance, Linker, Memory, Module, Store, StoreLimits, StoreLimitsBuilder,
    Val, ValType,
};

/// Calls nested deeper than this stop with [`TrapCode::StackOverflow`].
const MAX_CALL_DEPTH: usize = 8192;
/// Bytes of values on the stack beyond which it overflows.
const MAX_STACK_BYTES: usize = 16 << 20;

/// An instance of a module.
pub struct Reference {
    wasm: Vec<u8>,
    store: Store<StoreLimits>,
    instance: Instance,
    memory: Option<Memory>,
    /// As it was set last.
    fuel: u64,
}

impl Reference {
    /// Instantiate a module and run its start function.
    ///
    /// # Errors
    ///
    /// When the module is invalid or imports something, or traps on the way.
    pub fn new(wasm: &[u8]) -> Result<Reference, ReferenceError> {
        Reference::instantiate(wasm, None)
    }

    /// As [`Reference::new`], but instantiation and all later calls together get that
    /// much fuel (about one unit an operator) and stop when it is used up.
    ///
    /// # Errors
    ///
    /// As [`Reference::new`].
    pub fn with_fuel(wasm: &[u8], fuel: u64) -> Result<Reference, ReferenceError> {
        Reference::instantiate(wasm, Some(fuel))
    }

    fn instantiate(wasm: &[u8], fuel: Option<u64>) -> Result<Reference, ReferenceError> {
        let invalid = |e: wasmi::Error| ReferenceError::Invalid(e.to_string());
        let mut config = Config::default();
        config.consume_fuel(fuel.is_some());
        config.set_max_recursion_depth(MAX_CALL_DEPTH);
        config.set_max_stack_height(MAX_STACK_BYTES);
        let engine = Engine::new(&config);
        let module = Module::new(&engine, wasm).map_err(invalid)?;
        if let Some(import) = module.imports().next() {
            let message = format!("it imports \"{}\".\"{}\"", import.module(), import.name());
            return Err(ReferenceError::Invalid(message));
        }
        let limits = StoreLimitsBuilder::new().memory_size(MAX_MEMORY_BYTES).build();
        let mut store = Store::new(&engine, limits);
        store.limiter(|limits| limits);
        if let Some(fuel) = fuel {
            store.set_fuel(fuel).map_err(invalid)?;
        }
        let mut linker = Linker::new(&engine);
        // What is run is the same module with its memory made beforehand, where that is large.
        let module = match large::imported(wasm) {
            None => module,
            Some(imported) => {
                let memory = imported.memory(&mut store).map_err(ReferenceError::Stopped)?;
                linker.define("", large::NAME, memory).map_err(|e| ReferenceError::Invalid(e.to_string()))?;
                Module::new(&engine, &imported.wasm).map_err(invalid)?
            }
        };
        let instance = linker.instantiate_and_start(&mut store, &module).map_err(|e| match stop(&e) {
            Stop::Other(message) => ReferenceError::Invalid(message),
            stop => ReferenceError::Stopped(stop),
        })?;
        let memory = instance.exports(&store).find_map(|export| export.into_memory());
        Ok(Reference { wasm: wasm.to_vec(), store, instance, memory, fuel: fuel.unwrap_or(u64::MAX) })
    }

    /// The bytes of the module.
    pub fn wasm(&self) -> &[u8] {
        &self.wasm
    }

    /// Fuel for what follows, when made by [`Reference::with_fuel`].
    pub fn set_fuel(&mut self, fuel: u64) {
        // Setting fuel fails only where metering is off.
        if self.store.set_fuel(fuel).is_ok() {
            self.fuel = fuel;
        }
    }

    /// The fuel that there was when it was set last; `u64::MAX` without any.
    pub fn limit(&self) -> u64 {
        self.fuel
    }

    /// What of it is used; 0 without any.
    pub fn steps(&self) -> u64 {
        self.store.get_fuel().map_or(0, |left| self.fuel - left)
    }

    fn func(&self, name: &str) -> Result<Func, Stop> {
        self.instance
            .get_func(&self.store, name)
            .ok_or_else(|| Stop::BadCall(format!("the module exports no function \"{name}\"")))
    }

    /// Call an exported function with the raw bits of its arguments.
    ///
    /// # Errors
    ///
    /// When it traps, runs out of fuel, is not there, or takes other arguments.
    pub fn call(&mut self, name: &str, args: &[u64]) -> Result<Vec<u64>, Stop> {
        let func = self.func(name)?;
        let ty = func.ty(&self.store);
        if ty.params().len() != args.len() {
            let (want, have) = (ty.params().len(), args.len());
            return Err(Stop::BadCall(format!("\"{name}\" takes {want} arguments, not {have}")));
        }
        let args = ty.params().iter().zip(args).map(|(&ty, &bits)| value(ty, bits)).collect::<Result<Vec<_>, _>>()?;
        let mut results: Vec<Val> = ty.results().iter().map(|&ty| Val::default(ty)).collect();
        func.call(&mut self.store, &args, &mut results).map_err(|e| stop(&e))?;
        results.iter().map(bits).collect()
    }

    /// Does the module export its memory?
    pub fn has_memory(&self) -> bool {
        self.memory.is_some()
    }

    /// Names of the exported functions, in alphabetical order.
    pub fn functions(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .instance
            .exports(&self.store)
            .filter(|export| matches!(export.ty(&self.store), wasmi::ExternType::Func(_)))
            .map(|export| export.name().to_string())
            .collect();
        names.sort();
        names
    }

    /// The linear memory, empty when the module exports none.
    pub fn memory(&self) -> &[u8] {
        self.memory.map_or(&[], |memory| memory.data(&self.store))
    }

    /// The linear memory, empty when the module exports none.
    pub fn memory_mut(&mut self) -> &mut [u8] {
        match self.memory {
            Some(memory) => memory.data_mut(&mut self.store),
            None => &mut [],
        }
    }

    /// Grow the memory until it has at least so many bytes.
    ///
    /// # Errors
    ///
    /// When there is no exported memory or its limit does not allow it.
    pub fn grow_memory_to(&mut self, bytes: usize) -> Result<(), Stop> {
        let have = self.memory().len();
        if bytes <= have {
            return Ok(());
        }
        let memory = self.memory.ok_or_else(|| Stop::BadCall("the module exports no memory".into()))?;
        let pages = (bytes - have).div_ceil(65536) as u64;
        memory
            .grow(&mut self.store, pages)
            .map(drop)
            .map_err(|e| Stop::BadCall(format!("the memory cannot grow to {bytes} bytes: {e}")))
    }

    /// Raw bits of an exported global of an integer type.
    pub fn global(&self, name: &str) -> Option<u64> {
        let global: Global = self.instance.get_export(&self.store, name).and_then(Extern::into_global)?;
        bits(&global.get(&self.store)).ok()
    }
}

fn value(ty: ValType, bits: u64) -> Result<Val, Stop> {
    match ty {
        ValType::I32 => Ok(Val::I32(bits as u32 as i32)),
        ValType::I64 => Ok(Val::I64(bits as i64)),
        other => Err(Stop::BadCall(format!("a parameter of type {other:?} cannot be given"))),
    }
}

fn bits(value: &Val) -> Result<u64, Stop> {
    match value {
        Val::I32(v) => Ok(u64::from(*v as u32)),
        Val::I64(v) => Ok(*v as u64),
        other => Err(Stop::BadCall(format!("a result of type {:?} cannot be taken", other.ty()))),
    }
}
