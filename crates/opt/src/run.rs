//! The passes by name, and the order in which they run.

use crate::error::OptError;
use crate::options::Options;
use crate::{
    address, dce, divide, edit, fold, globals, gvn, if_convert, inline, licm, loads, lower64, meld, present, promote,
    quotients, recursion, rom, simplify_cfg, sums, unroll,
};
use ciphermill_ir::Module;

/// A pass by name: changes the module, tells whether it did.
#[derive(Clone, Copy)]
pub struct Pass {
    pub name: &'static str,
    run: fn(&mut Module, &Options) -> bool,
}

/// Every pass that can be run alone, in the order of the essay in `lib.rs`.
pub const PASSES: &[Pass] = &[
    Pass { name: "simplify_cfg", run: simplify_cfg::run },
    Pass { name: "fold", run: fold::run },
    Pass { name: "gvn", run: gvn::run },
    Pass { name: "dce", run: dce::run },
    Pass { name: "recursion", run: recursion::run },
    Pass { name: "inline", run: inline::run },
    Pass { name: "present", run: present::run },
    Pass { name: "globals", run: globals::run },
    Pass { name: "address", run: address::run },
    Pass { name: "loads", run: loads::run },
    Pass { name: "licm", run: licm::run },
    Pass { name: "rom", run: rom::run },
    Pass { name: "if_convert", run: if_convert::run },
    Pass { name: "meld", run: meld::run },
    Pass { name: "distances", run: unroll::distances::run },
    Pass { name: "spans", run: unroll::spans::run },
    Pass { name: "iterations", run: unroll::iterations::run },
    Pass { name: "specialise", run: unroll::specialise::run },
    Pass { name: "full_unroll", run: unroll::full::run },
    Pass { name: "split", run: unroll::split::run },
    Pass { name: "trace", run: unroll::trace::run },
    Pass { name: "one_exit", run: unroll::one_exit::run },
    Pass { name: "one_question", run: unroll::one_exit::made },
    Pass { name: "rotate", run: unroll::rotate::run },
    Pass { name: "factor", run: unroll::factor::run },
    Pass { name: "promote", run: promote::run },
    Pass { name: "jam", run: unroll::jam::run },
    Pass { name: "sums", run: sums::run },
    Pass { name: "quotients", run: quotients::run },
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
    if options.level >= 2 {
        let mut changed = run_pass(module, options, "recursion");
        changed |= run_pass(module, options, "inline");
        if changed {
            rounds(module, options, SCALAR);
        }
    }
    if options.word_bits == 32 {
        lower64::run(module)?;
        check(module, "lower64");
    }
    if options.level >= 1 {
        run_pass(module, options, "quotients");
    }
    match options.level {
        0 => {}
        1 => rounds(module, options, SCALAR),
        _ => {
            rounds(module, options, MEMORY);
            if options.unroll.is_active() {
                unrolled(module, options);
            } else {
                melded(module, options);
            }
        }
    }
    if options.software_division {
        // Not before: a call could do anything, and of a divisor that unrolling has made a constant it hides that.
        divide::run(module)?;
        check(module, "divide");
    }
    if options.level >= 1 {
        // `licm` leaves empty blocks in front of loops.
        run_pass(module, options, "simplify_cfg");
        run_pass(module, options, "dead_functions");
    }
    for func in module.funcs.values_mut() {
        edit::remove_unreachable(func);
        edit::in_order(func);
    }
    check(module, "the last pass");
    Ok(())
}

/// Levels of loops that unrolling takes one after the other.
const MAX_NESTING: usize = 8;

/// Conditions one after the other that iterations of a loop are told apart by.
const MAX_CONDITIONS: usize = 4;

/// Loops as they are, but their branches melded.
fn melded(module: &mut Module, options: &Options) {
    for _ in 0..MAX_NESTING {
        if !run_pass(module, options, "meld") {
            break;
        }
        rounds(module, options, MEMORY);
        run_pass(module, options, "simplify_cfg");
    }
}

/// Everything that [`Options::unroll`] asks for.
fn unrolled(module: &mut Module, options: &Options) {
    // `licm` leaves blocks in front of loops that hide what a loop starts from.
    run_pass(module, options, "simplify_cfg");
    let clean_up = |module: &mut Module| {
        rounds(module, options, MEMORY);
        run_pass(module, options, "simplify_cfg");
    };
    run_pass(module, options, "distances");
    for _ in 0..MAX_CONDITIONS {
        if !run_pass(module, options, "iterations") {
            break;
        }
        clean_up(module);
    }
    if run_pass(module, options, "specialise") {
        clean_up(module);
    }
    for _ in 0..MAX_NESTING {
        let mut changed = false;
        for name in ["if_convert", "meld", "spans", "full_unroll", "rom"] {
            changed |= run_pass(module, options, name);
        }
        if !changed {
            break;
        }
        clean_up(module);
    }
    let mut divided = false;
    for name in ["split", "trace"] {
        if run_pass(module, options, name) {
            divided = true;
            clean_up(module);
        }
    }
    for name in [if divided { "one_exit" } else { "one_question" }, "rotate", "factor", "promote", "jam"] {
        if run_pass(module, options, name) {
            clean_up(module);
        }
    }
}

/// Put the sums of an optimised module together so that they are there soonest; false where all are already.
pub fn shorten_sums(module: &mut Module, options: &Options) -> bool {
    let changed = run_pass(module, options, "sums");
    if changed {
        // What was within a sum is needed no more.
        rounds(module, options, &["gvn", "dce"]);
    }
    changed
}

/// Run one pass of [`PASSES`] unless it is disabled; true when it changed
/// something. An unknown name does nothing.
pub fn run_pass(module: &mut Module, options: &Options, name: &str) -> bool {
    let Some(pass) = PASSES.iter().find(|p| p.name == name) else { return false };
    if !options.enabled(name) {
        return false;
    }
    let changed = (pass.run)(module, options);
    if changed {
        check(module, name);
    }
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

/// Stop at a module that is not well formed; wheels do not look.
fn check(module: &Module, after: &str) {
    if cfg!(debug_assertions)
        && let Err(error) = ciphermill_ir::verify::verify(module)
    {
        panic!("after {after}: {error}\n{module}");
    }
}
