//! What the tests of the optimiser share: an interpreter of the intermediate
//! representation, a generator of random modules, and the comparison of a
//! module before and after.
#![allow(dead_code, reason = "each test takes some of it")]

pub mod interp;
pub mod random;
pub mod text;

use ciphermill_ir::{FuncId, Module, TrapCode, Type};
use interp::{Interp, Outcome};
use std::collections::BTreeMap;

/// Everything a run leaves behind, in a form that splitting 64-bit values does
/// not change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trace {
    pub outcome: Outcome,
    /// Contents of the globals, by offset of their words.
    pub globals: BTreeMap<u32, u32>,
    pub memory: Vec<u8>,
    pub system: Vec<u8>,
}

/// Steps a run of the module before may take until it counts as endless.
pub const FUEL: u64 = 40_000;
/// The same for the module after a pass, which alone may have left more to do.
const FUEL_AFTER: u64 = 8 * FUEL;

/// Run an exported function. `args` and results are in the types of `sig_of`,
/// the module before lowering; pairs are split and joined as needed.
pub fn run(module: &Module, sig_of: &Module, func: FuncId, args: &[u64]) -> Trace {
    run_for(module, sig_of, func, args, FUEL)
}

fn run_for(module: &Module, sig_of: &Module, func: FuncId, args: &[u64], fuel: u64) -> Trace {
    let sig = &sig_of.funcs[func].sig;
    let lowered = module.funcs[func].sig != *sig;
    let mut words = Vec::new();
    for (&arg, &ty) in args.iter().zip(&sig.params) {
        if lowered && ty == Type::I64 {
            words.extend([arg & 0xFFFF_FFFF, arg >> 32]);
        } else {
            words.push(arg & ty.mask());
        }
    }
    let mut interp = Interp::new(module, fuel);
    let mut outcome = interp.call(func, &words);
    if let Outcome::Values(values) = &mut outcome
        && lowered
    {
        let mut words = values.clone().into_iter();
        let mut next = || words.next().expect("as many words as the signature has");
        *values = sig.results.iter().map(|&ty| if ty == Type::I64 { next() | next() << 32 } else { next() }).collect();
    }
    let mut globals = BTreeMap::new();
    for (id, global) in &module.globals {
        let value = interp.globals[id];
        globals.insert(global.system_offset, value as u32);
        if global.ty == Type::I64 {
            globals.insert(global.system_offset + 4, (value >> 32) as u32);
        }
    }
    Trace { outcome, globals, memory: interp.memory, system: interp.system }
}

/// Compare every exported function of two modules on the given arguments.
/// Without `strict`, runs that trap before are free to do anything after.
///
/// # Panics
/// On the first difference, showing the modules.
pub fn same(before: &Module, after: &Module, strict: bool, args: &[Vec<u64>], what: &str) {
    for (name, func) in &before.exports {
        for args in args {
            let was = run(before, before, *func, args);
            match was.outcome {
                // How deep calls nest is not kept: inlining makes it less.
                Outcome::OutOfFuel | Outcome::Trap(TrapCode::StackOverflow) => continue,
                Outcome::Trap(_) if !strict => continue,
                _ => {}
            }
            let is = run_for(after, before, *func, args, FUEL_AFTER);
            if was == is {
                continue;
            }
            let differ = was.memory.iter().zip(&is.memory).position(|(a, b)| a != b);
            panic!(
                "{what}: {name}({args:x?}) was {:x?}, is {:x?}\nglobals {:x?} / {:x?}\nfirst memory difference {differ:x?}\n{before}\n=== after\n{after}",
                was.outcome, is.outcome, was.globals, is.globals
            );
        }
    }
}
