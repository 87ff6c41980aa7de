//! Which code is the fastest on a machine that finds its own schedule.
//!
//! Where hardware waits for operands by itself, no form of the code is best by
//! construction. Rounds unrolled save counters and address arithmetic, and cost fetches and
//! registers; a value worked out before a loop saves an instruction, and costs a spill where registers are
//! few; so does a function that is inlined. All forms that small code is chosen
//! from ([`crate::smallest`]) are tried, and the rounds unrolled, each on two short
//! messages. The plain form is taken unless another one is faster: so code for speed is not
//! slower than code for size, but for what short messages do not tell apart.
//!
//! A core that schedules at run time may gain from two blocks carried together, as one that is scheduled at
//! compile time does; that is tried where one block's code is short. A long block fills the
//! window by itself, and its code twice over takes long to make.
//!
//! A cipher whose block takes very long is not tried in several forms: that would
//! take many times as long as the measurement of a block. Nor is one whose code is very long:
//! forms differ in the counters and addresses of loops, which are little of it, and
//! allocating registers takes a time that grows faster than the code.

use crate::backends::Simulated;
use crate::chosen::{Chosen, Tried, least, together};
use crate::compare::{judge, stopped};
use crate::error::MeasureError;
use crate::interface::Interface;
use crate::pipeline::{Effort, Lean};
use crate::plan::{Plan, Work, backstop};
use crate::sizes;
use crate::smallest::ways;
use crate::target::{prepare, run};
use ciphermill_machine::Machine;

/// Instructions of a block, or of a key set-up, with which forms are tried.
const TRIED: u64 = 50_000;

/// Bytes of code, with all that it calls, beyond which forms are not tried. Without it 8,000
/// operations take 28 s on `core2`, with it 4.
const LONG: u64 = 8192;

/// Bytes of code of one block unrolled with which two are tried.
const SHORT: u64 = 2048;

/// A form other than the plain one.
#[derive(Clone, Copy, Debug)]
pub enum Way {
    /// With less done than for the plain one.
    Lean(Lean),
    /// The rounds unrolled, of so many blocks together.
    Unrolled(u32),
}

/// The fastest of a plain program and those that `make` makes; one with its rounds unrolled is
/// among them where `unrolled` says so, of two blocks where these are independent (`several`). `driver`
/// is the export that is measured.
///
/// # Errors
/// Those of `make` and `cycles`.
pub fn choose(
    machine: &Machine,
    plain: Chosen,
    driver: &str,
    (unrolled, several): (bool, bool),
    make: impl Fn(Way) -> Result<Chosen, MeasureError> + Sync,
    cycles: impl Fn(&Chosen) -> Result<f64, MeasureError> + Sync,
) -> Result<Chosen, MeasureError> {
    let plain: Tried = (cycles(&plain)?, plain);
    let mut others: Vec<Way> = ways(machine).into_iter().map(Way::Lean).collect();
    others.extend(unrolled.then_some(Way::Unrolled(1)));
    let attempt = |way: Way, _: Effort| {
        let chosen = make(way)?;
        Ok((cycles(&chosen)?, chosen))
    };
    let others = together(&others, Effort::Full, attempt)?;
    let short = others.iter().any(|t| t.1.form.unrolled && bytes(&t.1, driver) <= SHORT);
    let two = several && short && machine.core.is_some();
    let two = if two { Some(attempt(Way::Unrolled(2), Effort::Full)?) } else { None };
    least([plain].into_iter().chain(others).chain(two))
        .map(|t| t.1)
        .ok_or_else(|| MeasureError::internal("no form of the code was tried"))
}

/// Code of an export with all that it calls.
fn bytes(form: &Chosen, driver: &str) -> u64 {
    form.program.export(driver).map_or(u64::MAX, |f| sizes::code_bytes(&form.program, f))
}

/// Does a block of it, or a key set-up, take so long, or so much code, that forms are not tried?
/// `driver` is the export that is measured.
///
/// # Errors
/// When the plan cannot be made, or the module stops before its end: that is asked of the reference
/// interpreter first, whose word it is.
pub fn long(
    wasm: &[u8],
    chosen: &Chosen,
    driver: &str,
    interface: &Interface,
    (work, unit): (Work, u32),
) -> Result<bool, MeasureError> {
    let plan = Plan::new(&interface.at(chosen.context_at), work, unit)?;
    let judged = judge(wasm, &plan, plan.measured.len())?;
    let mut machine = Simulated::new(&chosen.program, judged.pages as u32, backstop(judged.steps))?;
    prepare(&mut machine, &plan).map_err(stopped)?;
    machine.reset();
    run(&mut machine, &plan.measured).map_err(stopped)?;
    Ok(machine.stats().instructions > TRIED || bytes(chosen, driver) > LONG)
}
