//! The optimiser: module in, better module out.
//!
//! A *pass* is a function over a module that leaves it well formed (crate
//! `ir`, `verify`) and meaning the same. What "the same" is depends on
//! [`Options::strict_traps`]:
//!
//! * **strict**: results, traps, and the memory and globals left behind by a
//!   trap are those of the WebAssembly module. A load that may be out of
//!   bounds stays, and nothing that can be observed moves across it.
//! * **not strict**: the program is taken to run without memory traps, as
//!   compiled C does. Loads that nobody needs may go, a load that is certain
//!   to run may run earlier, a store may overtake a load it cannot touch. No
//!   access is made that the program did not make or that could trap.
//!
//! [`PASSES`] lists the passes; [`optimise`] runs them in the order below.
//! Each can be switched off by name ([`Options::disable`]) to find a culprit,
//! but `lower64` and the removal of unreachable blocks are part of the
//! contract with the code generator and always run.
//!
//! ```text
//! level 0   unreachable blocks, lower64
//! level 1   simplify_cfg fold gvn dce (until nothing changes)
//!           lower64, and the same again; dead functions
//! level 2   level 1's passes, inline, the same again, lower64, then rounds of
//!           present simplify_cfg fold gvn globals address loads licm dce;
//!           then, with [`Options::unroll`], distances specialise; rounds of
//!           if_convert full_unroll rom and all of the above; rotate, promote, jam,
//!           and the above again; dead functions
//! ```
//!
//! The 64-bit split comes after inlining and a first clean-up: constants and
//! extensions seen through at 64 bits never become pairs. What divisions are left
//! then become calls on machines that have none ([`Options::software_division`]). In debug builds the
//! verifier runs after every pass, and a fault names the pass.

mod address;
mod alias;
mod bases;
mod dce;
mod divide;
mod edit;
mod fold;
mod globals;
mod gvn;
mod if_convert;
mod inline;
mod licm;
mod loads;
mod lower64;
mod present;
mod promote;
mod rom;
mod simplify_cfg;
mod unroll;
pub mod words;

use ciphermill_ir::Module;
use std::fmt;
pub use unroll::options::{LoopTrips, Steady, Unroll};
pub use unroll::sites::{LoopSite, loop_sites};

/// What the optimiser may do and for which kind of machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// 0: only what later stages need; 1: local and scalar; 2: everything.
    pub level: u8,
    /// Keep every trap and what is observable around it.
    pub strict_traps: bool,
    /// Width of the machine's registers, 32 or 64. With 32, no 64-bit value
    /// is left afterwards.
    pub word_bits: u8,
    /// The machine has no division: 32-bit ones become calls of the runtime.
    pub software_division: bool,
    /// How an index into a table of 2, 4 or 8-byte entries is written.
    pub index_form: IndexForm,
    /// Passes, by name, not to run. `"bswap"` switches off only the
    /// recognition of byte reversals in `fold`.
    pub disable: Vec<&'static str>,
    /// By exported function: numbers of parameters whose buffers never overlap
    /// each other or anything else, as C's `restrict` promises it (`bases.rs`
    /// says it exactly). A pointer that is not listed is "anything else".
    /// Parameters are counted as machine words, an `i64` being two of them on
    /// a machine of 32 bits. A function may be listed more than once.
    pub disjoint_params: Vec<(String, Vec<usize>)>,
    /// By exported function, parameter (counted likewise) and size: so many
    /// bytes from where the parameter points can be read and written. Lets
    /// accesses that may not happen be made all the same.
    pub buffer_bytes: Vec<(String, usize, u32)>,
    /// No buffer of those that never overlap contains address 0, nor does anything computed from
    /// its address come round to it.
    pub no_buffer_at_zero: bool,
    /// Functions up to so many instructions are inlined at every call; larger ones
    /// where they are called once.
    pub inline_up_to: u32,
    /// Unrolling, and what goes with it. By default nothing of the kind.
    pub unroll: Unroll,
}

/// What a call costs on most machines is more than so many instructions.
pub const INLINE_UP_TO: u32 = 24;

impl Default for Options {
    fn default() -> Options {
        Options {
            level: 2,
            strict_traps: false,
            word_bits: 32,
            software_division: false,
            index_form: IndexForm::ExtractThenScale,
            disable: Vec::new(),
            disjoint_params: Vec::new(),
            buffer_bytes: Vec::new(),
            no_buffer_at_zero: false,
            inline_up_to: INLINE_UP_TO,
            unroll: Unroll::default(),
        }
    }
}

impl Options {
    pub(crate) fn enabled(&self, pass: &str) -> bool {
        !self.disable.contains(&pass)
    }
}

/// The two ways to write a scaled table index cut out of a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IndexForm {
    /// `((x >>u 16) & 0xff) << 2`: for machines whose addressing scales.
    ExtractThenScale,
    /// `(x >>u 14) & 0x3fc`: one operation less where addressing does not.
    ShiftThenMask,
}

/// What stopped the optimiser.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OptError {
    /// A division is to become a call but the module lacks the runtime function
    /// that does it.
    MissingRuntime { func: String, runtime: &'static str },
    /// `word_bits` is neither 32 nor 64.
    WordBits(u8),
}

impl fmt::Display for OptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptError::MissingRuntime { func, runtime } => write!(
                f,
                "function {func:?} divides, but the module has no {runtime:?} for values of so many bits; link the \
                 runtime into it"
            ),
            OptError::WordBits(bits) => {
                write!(f, "the optimiser works for words of 32 or 64 bits, not {bits}")
            }
        }
    }
}

impl std::error::Error for OptError {}

/// A pass by name: changes the module, tells whether it did.
#[derive(Clone, Copy)]
pub struct Pass {
    pub name: &'static str,
    run: fn(&mut Module, &Options) -> bool,
}

/// Every pass that can be run alone, in the order of the essays above.
pub const PASSES: &[Pass] = &[
    Pass { name: "simplify_cfg", run: simplify_cfg::run },
    Pass { name: "fold", run: fold::run },
    Pass { name: "gvn", run: gvn::run },
    Pass { name: "dce", run: dce::run },
    Pass { name: "inline", run: inline::run },
    Pass { name: "present", run: present::run },
    Pass { name: "globals", run: globals::run },
    Pass { name: "address", run: address::run },
    Pass { name: "loads", run: loads::run },
    Pass { name: "licm", run: licm::run },
    Pass { name: "rom", run: rom::run },
    Pass { name: "if_convert", run: if_convert::run },
    Pass { name: "distances", run: unroll::distances::run },
    Pass { name: "specialise", run: unroll::specialise::run },
    Pass { name: "full_unroll", run: unroll::full::run },
    Pass { name: "rotate", run: unroll::rotate::run },
    Pass { name: "promote", run: promote::run },
    Pass { name: "jam", run: unroll::jam::run },
    Pass { name: "dead_functions", run: dce::dead_functions },
];

/// Rounds of a clean-up before it is cut short.
const MAX_ROUNDS: usize = 6;

const SCALAR: &[&str] = &["simplify_cfg", "fold", "gvn", "dce"];
const MEMORY: &[&str] = &["present", "simplify_cfg", "fold", "gvn", "globals", "address", "loads", "licm", "dce"];

/// Optimise a module in place.
///
/// # Errors
/// [`OptError`]; the module is then not fit for further use.
pub fn optimise(module: &mut Module, options: &Options) -> Result<(), OptError> {
    if !matches!(options.word_bits, 32 | 64) {
        return Err(OptError::WordBits(options.word_bits));
    }
    check(module, "the loader");
    for func in module.funcs.values_mut() {
        edit::remove_unreachable(func);
    }
    if options.level >= 1 {
        rounds(module, options, SCALAR);
    }
    if options.level >= 2 && run_pass(module, options, "inline") {
        rounds(module, options, SCALAR);
    }
    if options.word_bits == 32 {
        lower64::run(module)?;
        check(module, "lower64");
    }
    if options.software_division {
        divide::run(module)?;
        check(module, "divide");
    }
    match options.level {
        0 => {}
        1 => rounds(module, options, SCALAR),
        _ => {
            rounds(module, options, MEMORY);
            if options.unroll.is_active() {
                unrolled(module, options);
            }
        }
    }
    if options.level >= 1 {
        // `licm` leaves empty blocks in front of loops.
        run_pass(module, options, "simplify_cfg");
        run_pass(module, options, "dead_functions");
    }
    Ok(())
}

/// Levels of loops that unrolling takes one after the other.
const MAX_NESTING: usize = 8;

/// Everything that [`Options::unroll`] asks for.
fn unrolled(module: &mut Module, options: &Options) {
    // `licm` leaves blocks in front of loops that hide what a loop starts from.
    run_pass(module, options, "simplify_cfg");
    let clean_up = |module: &mut Module| {
        rounds(module, options, MEMORY);
        run_pass(module, options, "simplify_cfg");
    };
    run_pass(module, options, "distances");
    if run_pass(module, options, "specialise") {
        clean_up(module);
    }
    for _ in 0..MAX_NESTING {
        let mut changed = false;
        for name in ["if_convert", "full_unroll", "rom"] {
            changed |= run_pass(module, options, name);
        }
        if !changed {
            break;
        }
        clean_up(module);
    }
    for name in ["rotate", "promote", "jam"] {
        if run_pass(module, options, name) {
            clean_up(module);
        }
    }
}

/// Run one pass of [`PASSES`] unless it is disabled; true when it changed
/// something. An unknown name does nothing.
pub fn run_pass(module: &mut Module, options: &Options, name: &str) -> bool {
    let Some(pass) = PASSES.iter().find(|p| p.name == name) else { return false };
    if !options.enabled(name) {
        return false;
    }
    let changed = (pass.run)(module, options);
    check(module, name);
    changed
}

/// Split 64-bit values whatever the options say.
///
/// # Errors
/// [`OptError::MissingRuntime`].
pub fn run_lower64(module: &mut Module) -> Result<(), OptError> {
    lower64::run(module)?;
    check(module, "lower64");
    Ok(())
}

fn rounds(module: &mut Module, options: &Options, passes: &[&str]) {
    for _ in 0..MAX_ROUNDS {
        let mut changed = false;
        for name in passes {
            changed |= run_pass(module, options, name);
        }
        if !changed {
            break;
        }
    }
}

/// In debug builds, stop at a module that is not well formed.
fn check(module: &Module, after: &str) {
    if cfg!(debug_assertions)
        && let Err(error) = ciphermill_ir::verify::verify(module)
    {
        panic!("after {after}: {error}\n{module}");
    }
}
