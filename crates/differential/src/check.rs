//! One module, run every way there is, with every difference reported.
//!
//! The reference runs a *script*: each exported function a few times, with
//! arguments drawn from a seed that is a hash of the module's bytes, so that a
//! module saved as a file is checked in the same way again. Results and traps
//! of each call, and memory and exported globals at the end, form a
//! [`Transcript`]. Every [`Subject`] must produce the same one.
//!
//! A run that exhausts stack or fuel says nothing, since machines have stacks
//! of other sizes; the script ends before that call. A subject that does not
//! keep traps gets the script up to the first trap.

use crate::rng::Rng;
use crate::subject::{Source, Subject, aligned_as_stated};
use crate::transcript::{Call, Ending, Outcome, Transcript};
use ciphermill_ir::{Module, PAGE_BYTES, TrapCode};
use ciphermill_reference::{Reference, ReferenceError};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Fuel for the reference, for a whole script.
const REFERENCE_FUEL: u64 = 2_000_000;
/// Calls of each exported function that takes arguments.
const CALLS_EACH: usize = 3;

/// A difference, or a stage that failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch {
    /// The way of running the module that it appeared on.
    pub subject: String,
    pub what: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.subject, self.what)
    }
}

/// What checking a module that shows no difference came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Checked {
    /// Calls compared.
    pub calls: usize,
    /// Of them, those that trapped.
    pub traps: usize,
    /// Ways in which they were run beside the reference.
    pub ways: usize,
}

/// Run a module on the reference and every subject.
///
/// # Errors
///
/// The first difference.
pub fn check(wasm: &[u8], subjects: &[Subject]) -> Result<Checked, Mismatch> {
    let fail = |subject: &dyn fmt::Display, what: String| Mismatch { subject: subject.to_string(), what };
    let module = ciphermill_load::load(wasm).map_err(|e| fail(&"load", e.to_string()))?;
    ciphermill_ir::verify::verify(&module).map_err(|e| fail(&"load", format!("does not verify: {e}")))?;

    let script = script(wasm, &module);
    scripted(wasm, &module, script, subjects).map(|c| c.0)
}

/// Calls of exported functions, by name and arguments, on the reference and every subject: the
/// results of each.
///
/// # Errors
///
/// The first difference; or that a call traps or does not come to an end, or the module does not
/// export its function.
pub fn calls(wasm: &[u8], subjects: &[Subject], calls: &[(&str, Vec<u64>)]) -> Result<Vec<Vec<u64>>, Mismatch> {
    let fail = |what: String| Mismatch { subject: "reference".into(), what };
    let module = ciphermill_load::load(wasm).map_err(|e| fail(e.to_string()))?;
    let call = |(export, args): &(&str, Vec<u64>)| {
        let id = module.export(export).ok_or_else(|| fail(format!("the module exports no function `{export}`")))?;
        Ok(Call { export: (*export).to_owned(), sig: module.funcs[id].sig.clone(), args: args.clone() })
    };
    let script = calls.iter().map(call).collect::<Result<Vec<_>, _>>()?;
    let (_, expected) = scripted(wasm, &module, script, subjects)?;
    // The script ends before a call that does not come to an end.
    if let Some((export, args)) = calls.get(expected.outcomes.len()) {
        return Err(fail(format!("\"{export}\"({}) does not come to an end", list(args))));
    }
    let trap = |o: Outcome| o.map_err(|e| fail(format!("a call ends with {e:?}")));
    expected.outcomes.into_iter().map(trap).collect()
}

/// The script on the reference and every subject, and the reference's transcript.
fn scripted(
    wasm: &[u8],
    module: &Module,
    mut script: Vec<Call>,
    subjects: &[Subject],
) -> Result<(Checked, Transcript), Mismatch> {
    let fail = |subject: &dyn fmt::Display, what: String| Mismatch { subject: subject.to_string(), what };
    let on_reference = |script: &mut Vec<Call>| on_reference(wasm, module, script).map_err(|e| fail(&"reference", e));
    let Some(expected) = on_reference(&mut script)? else { return Ok(Default::default()) };
    let first_trap = expected.outcomes.iter().position(Result::is_err);
    let quiet = match first_trap {
        None => Some((script.clone(), expected.clone())),
        Some(trap) => {
            let mut quiet = script[..trap].to_vec();
            on_reference(&mut quiet)?.map(|expected| (quiet, expected))
        }
    };
    let source = Source::new(module);
    // Only a module that keeps its word about alignment may be held to it.
    let quiet = quiet.filter(|(script, _)| {
        let broken = |ending: &Ending| matches!(ending, Ending::Broken(_));
        aligned_as_stated().run(&source, script).is_ok_and(|t| {
            !t.instantiation.as_ref().is_some_and(broken) && !t.outcomes.iter().any(|o| o.as_ref().is_err_and(broken))
        })
    });
    let mut ways = 0;
    for subject in subjects {
        let (script, expected) = match (&quiet, subject.keeps_traps()) {
            (_, true) => (&script, &expected),
            (Some((script, expected)), false) if expected.instantiation.is_none() => (script, expected),
            _ => continue,
        };
        // Where the memory cannot be seen it may have grown.
        let pages = if expected.memory.is_empty() { module.memory.max_pages } else { module.memory.min_pages };
        let most = expected.memory.len().max(pages as usize * PAGE_BYTES as usize);
        if most > subject.most_memory() {
            continue;
        }
        ways += 1;
        let run = || subject.run(&source, script);
        let found = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| Err(panic_text(&*panic)));
        let found = found.map_err(|e| fail(subject, e))?;
        if let Some(what) = difference(script, expected, &found) {
            return Err(fail(subject, what));
        }
    }
    let traps = expected.outcomes.iter().filter(|o| o.is_err()).count();
    Ok((Checked { calls: expected.outcomes.len(), traps, ways }, expected))
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or(panic.downcast_ref::<String>().map(String::as_str));
    format!("panicked: {}", text.unwrap_or("no message"))
}

/// The calls to make, by the module's exports and a hash of its bytes.
fn script(wasm: &[u8], module: &Module) -> Vec<Call> {
    let rng = Rng::new(hash(wasm));
    let mut script = Vec::new();
    for (name, id) in &module.exports {
        let sig = &module.funcs[*id].sig;
        let calls = if sig.params.is_empty() { 1 } else { CALLS_EACH };
        for _ in 0..calls {
            let args = sig.params.iter().map(|ty| rng.operand() & ty.mask()).collect();
            script.push(Call { export: name.clone(), sig: sig.clone(), args });
        }
    }
    script
}

/// FNV-1a.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01B3))
}

/// The reference's transcript; the script loses the calls that exhaust it.
/// None when instantiation does.
fn on_reference(wasm: &[u8], module: &Module, script: &mut Vec<Call>) -> Result<Option<Transcript>, String> {
    let mut reference = match Reference::with_fuel(wasm, REFERENCE_FUEL) {
        Ok(reference) => reference,
        Err(ReferenceError::Stopped(stop)) => {
            script.clear();
            let ending = ending(stop)?;
            let stopped = ending != Ending::Exhausted;
            let transcript = Transcript { instantiation: Some(ending), ..Transcript::default() };
            return Ok(stopped.then_some(transcript));
        }
        Err(other) => return Err(other.to_string()),
    };
    let mut outcomes = Vec::new();
    for call in &*script {
        let outcome = match reference.call(&call.export, &call.args) {
            Ok(results) => Ok(results),
            Err(stop) => Err(ending(stop)?),
        };
        if outcome == Err(Ending::Exhausted) {
            // The call has changed memory: start over without it and the rest.
            script.truncate(outcomes.len());
            return on_reference(wasm, module, script);
        }
        outcomes.push(outcome);
    }
    let globals = module.exported_globals.iter();
    let globals = globals.map(|(name, _)| (name.clone(), reference.global(name).unwrap_or(0))).collect();
    Ok(Some(Transcript { instantiation: None, outcomes, memory: reference.memory().to_vec(), globals }))
}

fn ending(stop: ciphermill_reference::Stop) -> Result<Ending, String> {
    use ciphermill_reference::{Stop, TrapCode as T};
    Ok(match stop {
        Stop::OutOfFuel | Stop::Trap(T::StackOverflow) => Ending::Exhausted,
        Stop::Trap(T::Unreachable) => Ending::Trap(TrapCode::Unreachable),
        Stop::Trap(T::MemoryOutOfBounds) => Ending::Trap(TrapCode::MemoryOutOfBounds),
        Stop::Trap(T::TableOutOfBounds) => Ending::Trap(TrapCode::TableOutOfBounds),
        Stop::Trap(T::IndirectCallToNull) => Ending::Trap(TrapCode::IndirectCallToNull),
        Stop::Trap(T::BadSignature) => Ending::Trap(TrapCode::BadSignature),
        Stop::Trap(T::IntegerOverflow) => Ending::Trap(TrapCode::IntegerOverflow),
        Stop::Trap(T::IntegerDivisionByZero) => Ending::Trap(TrapCode::IntegerDivisionByZero),
        Stop::BadCall(message) | Stop::Other(message) => return Err(message),
    })
}

/// The first thing in which two transcripts differ. What comes after a call
/// that exhausted the subject says nothing.
fn difference(script: &[Call], expected: &Transcript, found: &Transcript) -> Option<String> {
    if found.instantiation == Some(Ending::Exhausted) {
        return None;
    }
    if expected.instantiation != found.instantiation {
        return Some(format!("instantiation: expected {:?}, found {:?}", expected.instantiation, found.instantiation));
    }
    if expected.instantiation.is_some() {
        return None;
    }
    for ((call, want), have) in script.iter().zip(&expected.outcomes).zip(&found.outcomes) {
        if *have == Err(Ending::Exhausted) {
            return None;
        }
        if want != have {
            let args = list(&call.args);
            return Some(format!("\"{}\"({args}): expected {}, found {}", call.export, show(want), show(have)));
        }
    }
    if !found.globals.is_empty() && expected.globals != found.globals {
        let pair = expected.globals.iter().zip(&found.globals).find(|(a, b)| a != b);
        return Some(format!("a global at the end: expected and found {pair:x?}"));
    }
    if expected.memory.is_empty() {
        return None;
    }
    if expected.memory.len() != found.memory.len() {
        return Some(format!("memory of {} bytes, found {}", expected.memory.len(), found.memory.len()));
    }
    let byte = expected.memory.iter().zip(&found.memory).position(|(a, b)| a != b)?;
    let (want, have) = (expected.memory[byte], found.memory[byte]);
    Some(format!("memory at the end, address {byte:#x}: expected {want:#04x}, found {have:#04x}"))
}

fn list(values: &[u64]) -> String {
    values.iter().map(|v| format!("{v:#x}")).collect::<Vec<_>>().join(", ")
}

fn show(outcome: &Outcome) -> String {
    match outcome {
        Ok(results) => format!("({})", list(results)),
        Err(Ending::Trap(code)) => format!("trap {code:?}"),
        Err(Ending::Exhausted) => "exhaustion".into(),
        Err(Ending::Broken(what)) => what.clone(),
    }
}
