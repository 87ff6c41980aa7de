//! Where a module trapped, and by which calls it got there.
//!
//! The reference interpreter says that and why a module trapped, not where. So the same
//! calls are made once more on the interpreter of the intermediate representation, in the
//! form in which it was loaded: nothing is inlined or moved there, and every operation
//! knows its offset in the module. It tells the place of an error and nothing else; if it
//! should come to another end than the reference, the message does without.

use crate::error::{MeasureError, Place, Placed};
use crate::pipeline;
use crate::shape::Call;
use crate::target::Stopped;
use ciphermill_interp::{Halt, Interp};
use ciphermill_ir::Module;
use ciphermill_reference::TrapCode;
use std::thread::Builder;

/// What was run: bytes in memory, then calls, on so many bytes of memory.
pub struct Run<'a> {
    pub writes: &'a [(u32, Vec<u8>)],
    pub calls: [&'a [Call]; 3],
    pub bytes: u64,
}

/// Operations after which the place is not looked for any more: some seconds.
const LONGEST: u64 = 500_000_000;
/// Calls in calls, as many as the reference interpreter takes, and stack for them.
const DEPTH: u32 = 8192;
const STACK: usize = 512 << 20;

/// The error of a module that stopped on the reference interpreter, with the places of a trap.
pub fn found(wasm: &[u8], stop: &Stopped, run: &Run<'_>) -> MeasureError {
    let places = stop.halt.trap.map(|trap| places(wasm, trap, run)).unwrap_or_default();
    match (stop.halt.trap, places.is_empty()) {
        (Some(trap), false) => {
            let what = format!("{trap}, when {} ran on the reference interpreter", stop.export);
            MeasureError::Module(Placed { what, places })
        }
        _ => stop.on_reference(),
    }
}

/// The place of a trap, and the calls that led there, the innermost first.
fn places(wasm: &[u8], trap: TrapCode, run: &Run<'_>) -> Vec<Place> {
    let Ok(module) = pipeline::load(wasm) else { return Vec::new() };
    let again = || again(&module, trap, run);
    std::thread::scope(|scope| {
        let thread = Builder::new().stack_size(STACK).spawn_scoped(scope, again);
        thread.ok().and_then(|t| t.join().ok()).unwrap_or_default()
    })
}

fn again(module: &Module, trap: TrapCode, run: &Run<'_>) -> Vec<Place> {
    let mut interp = Interp::new(module, LONGEST);
    interp.max_depth = DEPTH;
    let mut ended = interp.start();
    interp.reserve(run.bytes);
    for (addr, bytes) in run.writes {
        if let Some(to) = interp.memory.get_mut(*addr as usize..).and_then(|m| m.get_mut(..bytes.len())) {
            to.copy_from_slice(bytes);
        }
    }
    for call in run.calls.into_iter().flatten() {
        if ended.is_err() {
            break;
        }
        let Some(func) = module.export(&call.export) else { return Vec::new() };
        ended = interp.call(func, &call.args).map(drop);
    }
    // The two name their traps alike, and share nothing else.
    let same = matches!(ended, Err(Halt::Trap(code)) if format!("{code:?}") == format!("{trap:?}"));
    if !same {
        return Vec::new();
    }
    // What the loader put in has no place in the module.
    let stood = interp.stood.iter().filter(|(_, offset)| *offset != 0);
    stood.map(|&(func, offset)| Place { function: module.funcs[func].name.clone(), offset }).collect()
}
