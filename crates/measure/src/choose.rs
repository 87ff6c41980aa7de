//! Which form of a cipher's code is measured.
//!
//! A machine that schedules at compile time lives on operations side by side:
//! the rounds of a block unrolled, several blocks carried through the loop
//! together. How many pays is seen by trying. Each form is compiled and run on
//! two short messages; the one with the fewest cycles a block wins, the first
//! in the list where two are equal. What the user fixes is not tried. Where code is to
//! be small, [`crate::smallest`] chooses instead; on a machine that finds its own schedule
//! [`crate::fastest`] does, from other forms.

use crate::chosen::{Chosen, Tried, least, together};
use crate::context;
use crate::error::MeasureError;
use crate::fastest::{self, Way};
use crate::hints;
use crate::interface::{Interface, Kind};
use crate::pipeline::{self, Compiled, Effort, Form, How, Lean};
use crate::plan::{self, Work};
use crate::request::{Blocks, Direction, FormOf, Goal, Request};
use crate::shared;
use crate::smallest;
use crate::steady::{Trial, Wanted};
use crate::trips::seen;
use ciphermill_ir::Module;
use ciphermill_machine::Machine;
use ciphermill_program::PipelinedLoop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Blocks that are tried together when the user does not say how many.
const JAMS: [u32; 2] = [1, 2];
/// Forms that take so many times as long as another where neither was searched for long may be
/// the better one in the end.
const CLOSE: f64 = 1.5;
/// Most blocks that can be asked for.
pub const MAX_JAM: u32 = 8;

const PLAIN: FormOf = FormOf { unrolled: false, jam: 1, throughput: false };

/// Choose and compile.
///
/// # Errors
/// As [`crate::measure`]; and [`MeasureError::Internal`] when a form gives
/// another output than the reference.
pub fn choose(
    wasm: &[u8],
    module: &Module,
    interface: &Interface,
    machine: &Arc<Machine>,
    request: &Request,
    work: Work,
    unit: u32,
) -> Result<Chosen, MeasureError> {
    check(request, interface)?;
    if request.fixed && machine.issue.explicit {
        return Err(MeasureError::input(format!(
            "--static: on {} the code generator chooses where the context stands; leave --static out",
            machine.name
        )));
    }
    let mended = hints::mended(wasm, module, interface, machine, request, (work, unit))?;
    let module = mended.as_ref().map_or(module, |m| &m.module);
    let with_context = request.fixed.then(|| context::fixed(module, interface));
    let module = with_context.as_ref().unwrap_or(module);
    let origin = if request.fixed { shared::key(&[wasm, b"static"]) } else { shared::key(&[wasm]) };
    let origin = mended.as_ref().map_or(origin, |m| shared::key(&[&origin, m.key.as_bytes()]));
    let misaligned = mended.as_ref().map(|m| &m.wrong);
    let how = How::of(request);
    let plainly = |lean: Option<Lean>, effort: Effort| -> Result<Chosen, MeasureError> {
        let how = How { lean, effort, ..how };
        let Compiled { program, context_at } = pipeline::compile(module, &origin, machine.clone(), &how)?;
        Ok(Chosen { cut: program.searches_cut > 0, program, jam: 1, unroll: 1, form: PLAIN, context_at, misaligned: misaligned.cloned() })
    };
    let plain = |unroll: bool| !unroll && request.jam.unwrap_or(1) == 1;
    let small = request.optimise == Goal::Size;
    let statically = machine.issue.explicit && request.level > 1 && work.direction != Direction::Keysetup;
    let driver = plan::driver(work.direction, work.blocks);
    let cycles = |chosen: &Chosen| trial(wasm, chosen, interface, request, work, unit);
    let plainest = plain(request.unroll.unwrap_or(false));
    if small && plainest {
        return smallest::choose(machine, driver, |lean| plainly(lean, Effort::Full), cycles);
    }
    let tries = !machine.issue.explicit && request.level > 1 && request.exact.is_none();
    let first = if !statically && plainest { Some(plainly(None, Effort::Full)?) } else { None };
    let first = match first {
        Some(first) if !tries || fastest::long(wasm, &first, driver, interface, (work, unit))? => return Ok(first),
        first => first,
    };
    let turns = shared::key(&[&origin, format!("{work:?} {unit}").as_bytes()]);
    let seen = shared::SEEN.get(turns, || seen(module, interface, work, unit))?;
    let rounds = seen.trips.iter().map(|p| p.trips).max().unwrap_or(1).max(1);
    let ctx_bytes = interface.ctx_bytes;
    let unrolled = |(jam, throughput): (u32, bool), lean: Option<Lean>, effort: Effort| -> Result<Chosen, MeasureError> {
        let form = Form { driver, jam, ctx_bytes, throughput, seen: &seen };
        let how = How { form: Some(&form), lean, effort, ..how };
        let Compiled { program, context_at } = pipeline::compile(module, &origin, machine.clone(), &how)?;
        let form = FormOf { unrolled: true, jam, throughput };
        Ok(Chosen { cut: program.searches_cut > 0, program, jam, unroll: rounds, form, context_at, misaligned: misaligned.cloned() })
    };
    if let Some(first) = first {
        let make = |way: Way| match way {
            Way::Lean(lean) => plainly(Some(lean), Effort::Full),
            Way::Unrolled(jam) => unrolled((jam, false), None, Effort::Full),
        };
        let rounds = request.unroll.is_none() && work.direction != Direction::Keysetup;
        let several = work.blocks == Blocks::Multi && interface.kind == Kind::Block && request.jam.is_none();
        return fastest::choose(machine, first, driver, (rounds, several), make, cycles);
    }
    if small {
        let lean = |lean| unrolled((request.jam.unwrap_or(1), false), lean, Effort::Full);
        return smallest::choose(machine, driver, lean, cycles);
    }
    let make = |form: Option<(u32, bool)>, effort: Effort| {
        form.map_or_else(|| plainly(None, effort), |form| unrolled(form, None, effort))
    };
    if let Some(of) = request.exact.as_ref().and_then(|e| e.form) {
        return make(of.unrolled.then_some((of.jam, of.throughput)), Effort::Full);
    }
    // Where work is to be divided between clusters, a search for how takes longer
    // than everything else: forms of one block at a time are compared without one.
    // Several blocks gain too much by it for that, and straight blocks too much more than loops
    // over rounds: these are compared by what a search finds at once, and by how far that is
    // from the bound. Only the last form is made with all effort.
    let divided = machine.files.iter().any(|f| f.cluster != machine.files[0].cluster);
    let cut = AtomicBool::new(false);
    let attempt = |form: Option<(u32, bool)>, effort: Effort| -> Result<Tried, MeasureError> {
        let chosen = make(form, effort)?;
        cut.fetch_or(chosen.cut, Ordering::Relaxed);
        let cycles = cycles(&chosen)?;
        Ok((if effort == Effort::Unrefined { expected(cycles, &chosen, driver) } else { cycles }, chosen))
    };
    let first = if divided { Effort::Quick } else { Effort::Full };
    let mut forms = Vec::new();
    if request.unroll != Some(true) && request.jam.unwrap_or(1) == 1 {
        forms.push(None);
    }
    let mut others = Vec::new();
    let mut throughput = false;
    if request.unroll != Some(false) || request.jam.unwrap_or(1) > 1 {
        let several = work.blocks == Blocks::Multi && interface.kind == Kind::Block;
        let mut jams: Vec<u32> = match request.jam {
            Some(jam) => vec![jam],
            None => JAMS.into_iter().filter(|&j| j == 1 || several).collect(),
        };
        others = jams.split_off(1);
        forms.push(Some((jams[0], false)));
        throughput = several;
        forms.extend(several.then_some(Some((jams[0], true))));
    }
    let (plain, straight): (Vec<Tried>, Vec<Tried>) =
        together(&forms, first, attempt)?.into_iter().partition(|t| !t.1.form.unrolled);
    let straight = least(straight);
    // What pays for the first number of blocks is kept for the others.
    throughput &= straight.as_ref().is_some_and(|b| b.1.form.throughput);
    let others = others.into_iter().map(|jam| Some((jam, throughput)));
    let mut best: Vec<Tried> = plain.into_iter().chain(straight).collect();
    if divided {
        // A loop over rounds and a straight block come to within a factor of each other by chance.
        let shortest = best.iter().map(|b| b.0).fold(f64::INFINITY, f64::min);
        best.retain(|b| b.0 <= CLOSE * shortest);
        let form_of = |tried: Tried| Some(tried.1.form).filter(|of| of.unrolled).map(|of| (of.jam, of.throughput));
        let mut forms: Vec<_> = best.into_iter().map(form_of).chain(others).collect();
        if forms.len() > 1 {
            forms = least(together(&forms, Effort::Unrefined, attempt)?).map(form_of).into_iter().collect();
        }
        best = forms.into_iter().map(|form| attempt(form, Effort::Full)).collect::<Result<_, _>>()?;
    } else {
        let forms: Vec<_> = others.collect();
        best.extend(together(&forms, Effort::Full, attempt)?);
    }
    let best = least(best).map(|b| Chosen { cut: cut.load(Ordering::Relaxed), ..b.1 });
    best.ok_or_else(|| MeasureError::internal("no form of the code was tried"))
}

/// Cycles a block that are expected of a form with all effort, which was made hastily: shorter by
/// half the way to the bound of the driver's longest loop, and by less where several blocks make
/// that longer.
fn expected(cycles: f64, form: &Chosen, driver: &str) -> f64 {
    let left = |l: &PipelinedLoop| f64::from(l.ii.saturating_sub(l.res_mii.max(l.rec_mii)));
    let driver = form.program.export(driver);
    let longest = form.program.loops.iter().filter(|l| Some(l.func) == driver).max_by_key(|l| l.ii);
    longest.map_or(cycles, |l| cycles * (1.0 - left(l) / f64::from(2 * form.jam * l.ii)))
}

fn check(request: &Request, interface: &Interface) -> Result<(), MeasureError> {
    if request.optimise == Goal::Size && request.exact.is_some() {
        return Err(MeasureError::input(
            "--optimal: an exact schedule is for speed, and --optimise size asks for few bytes; leave one of them out",
        ));
    }
    let Some(jam) = request.jam else { return Ok(()) };
    if jam == 0 || jam > MAX_JAM {
        return Err(MeasureError::input(format!(
            "--jam {jam}: it is the number of blocks carried together, 1 to {MAX_JAM}"
        )));
    }
    if jam > 1 && request.unroll == Some(false) {
        return Err(MeasureError::input(format!(
            "--jam {jam}: blocks are carried together with their rounds unrolled; leave --no-unroll out"
        )));
    }
    let one = interface.kind == Kind::Stream || request.direction == Direction::Keysetup;
    if jam > 1 && (one || request.blocks == Blocks::Single) {
        return Err(MeasureError::input(format!(
            "--jam {jam}: only independent blocks of a block cipher can be carried together; leave --jam out"
        )));
    }
    Ok(())
}

/// Steady-state cycles of a form on short messages.
fn trial(
    wasm: &[u8],
    form: &Chosen,
    interface: &Interface,
    request: &Request,
    work: Work,
    unit: u32,
) -> Result<f64, MeasureError> {
    let interface = &interface.at(form.context_at);
    let wanted = Wanted { wasm, program: &form.program, interface, work, unit, turn: unit * form.jam };
    wanted.trial().map_err(|e| match e {
        Trial::Differs(failure) => MeasureError::internal(format!(
            "{} with {} blocks carried together and {} turns unrolled: {failure}",
            request.cipher, form.jam, form.unroll
        )),
        Trial::Failed(e) => e,
    })
}
