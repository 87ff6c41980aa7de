//! Which variant is the fastest on a machine with interlocks.
//!
//! There no variant is best by construction. Unrolling the cipher's rounds saves counters and address
//! arithmetic, and costs fetches and register pressure. Hoisting and inlining save instructions, and
//! may cost spills. All variants that small code is chosen from ([`crate::smallest`]) are tried, and
//! the rounds unrolled, each on two short messages. The plain variant is taken unless another one is
//! faster, and fits into the memory for code. So code for speed is not slower than code for size, as far as short messages
//! show it.
//!
//! A core that schedules at run time may gain from two blocks jammed together, too. That is tried
//! where the code of a block is short: a long block fills the reorder buffer by itself, and takes long
//! to compile twice over.
//!
//! Of a function that is called for each block short loops are unrolled alone, and all of them only where a call is short.
//!
//! Only the plain variant is made of a cipher whose block takes very long: trying several would take
//! many times as long as the measurement. The same goes for very long code, in which the counters and
//! addresses of loops are a small part, and register allocation takes more than linear time.

use crate::backends::Simulated;
use crate::chosen::{Chosen, Tried, least, together};
use crate::compare::{judge, stopped};
use crate::error::MeasureError;
use crate::fits;
use crate::interface::Interface;
use crate::pipeline::{Lean, SearchEffort};
use crate::plan::{RunPlan, Work, backstop};
use crate::sizes;
use crate::smallest::ways;
use crate::target::{prepare, run};
use ciphermill_machine::Machine;

/// Instructions of a block, or of a key set-up, with which variants are tried.
const TRIED: u64 = 50_000;

/// Bytes of code, with all that it calls, beyond which variants are not tried. Without it 8,000
/// operations take 28 s on `core2`, with it 4.
const LONG: u64 = 8192;

/// Instructions of a call with which all its loops are unrolled, where short ones alone can be instead. A transform of
/// 30,000 became 85 KB of straight code, which took 20 s on `cortex-m4`.
const WHOLE: u64 = 10_000;

/// Bytes of code of one block unrolled with which two are tried.
const PAIRED: u64 = 2048;

/// A variant other than the plain one.
#[derive(Clone, Copy, Debug)]
pub enum CodeVariant {
    /// With less done than for the plain one.
    Lean(Lean),
    /// The rounds unrolled, of so many blocks together.
    Unrolled(u32),
    /// Short loops unrolled.
    Short,
}

/// Which variants there are beside the lean ones.
#[derive(Clone, Copy)]
pub struct Others {
    /// Rounds unrolled.
    pub rounds: bool,
    /// Of two blocks together, which are independent.
    pub several: bool,
    /// Short loops unrolled.
    pub short: bool,
    /// Instructions of a block.
    pub instructions: u64,
}

/// The fastest of a plain program and those that `make` makes. `driver` is the export that is measured.
///
/// # Errors
/// Those of `make` and `cycles`.
pub fn choose(
    machine: &Machine,
    plain: Chosen,
    driver: &str,
    there: Others,
    make: impl Fn(CodeVariant) -> Result<Chosen, MeasureError> + Sync,
    cycles: impl Fn(&Chosen) -> Result<f64, MeasureError> + Sync,
) -> Result<Chosen, MeasureError> {
    let plain: Tried = (cycles(&plain)?, plain);
    // With interlocks nothing is packed or pipelined: only these make other code than the plain variant.
    let leaner = |lean: &Lean| !lean.hoist || lean.inline_up_to != ciphermill_opt::INLINE_UP_TO;
    let mut others: Vec<CodeVariant> = ways(machine).into_iter().filter(leaner).map(CodeVariant::Lean).collect();
    let whole = there.rounds && (!there.short || there.instructions <= WHOLE);
    others.extend(whole.then_some(CodeVariant::Unrolled(1)));
    others.extend((there.rounds && there.short).then_some(CodeVariant::Short));
    let attempt = |way: CodeVariant, _: SearchEffort| {
        let chosen = make(way)?;
        Ok((cycles(&chosen)?, chosen))
    };
    let others = together(&others, SearchEffort::Full, attempt)?;
    let compact = others.iter().any(|t| t.1.unrolling.unrolled && bytes(&t.1, driver) <= PAIRED);
    let two = there.several && compact && machine.core.is_some();
    let two = if two { Some(attempt(CodeVariant::Unrolled(2), SearchEffort::Full)?) } else { None };
    let mut tried: Vec<Tried> = [plain].into_iter().chain(others).chain(two).collect();
    let fits = |t: &Tried| fits::flash(machine, &t.1.program).is_ok();
    if tried.iter().any(fits) {
        tried.retain(fits);
    }
    least(tried).map(|t| t.1).ok_or_else(|| MeasureError::internal("no variant of the code was tried"))
}

/// Code of an export with all that it calls.
fn bytes(chosen: &Chosen, driver: &str) -> u64 {
    chosen.program.export(driver).map_or(u64::MAX, |f| sizes::code_bytes(&chosen.program, f))
}

/// Instructions of a block of it, or of a key set-up; none where these are so many, or so much code, that variants are
/// not tried. `driver` is the export that is measured.
///
/// # Errors
/// When the plan cannot be made, or the module stops before its end: that is asked of the reference
/// interpreter first, whose word it is.
pub fn instructions(
    wasm: &[u8],
    chosen: &Chosen,
    driver: &str,
    interface: &Interface,
    (work, unit): (Work, u32),
) -> Result<Option<u64>, MeasureError> {
    let plan = RunPlan::new(&interface.at(chosen.context_at), work, unit)?;
    let judged = judge(wasm, &plan, plan.measured.len())?;
    let mut machine = Simulated::new(&chosen.program, judged.pages as u32, backstop(judged.steps))?;
    prepare(&mut machine, &plan).map_err(stopped)?;
    machine.reset();
    run(&mut machine, &plan.measured).map_err(stopped)?;
    let instructions = machine.stats().instructions;
    Ok((instructions <= TRIED && bytes(chosen, driver) <= LONG).then_some(instructions))
}
