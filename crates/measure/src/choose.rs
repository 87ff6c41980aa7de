//! Which unroll-and-jam variant is measured.
//!
//! A machine that schedules at compile time needs independent operations: the cipher's rounds
//! unrolled, sums there as soon as can be, and the loop over blocks unrolled and jammed, so that one
//! iteration processes several blocks. A function that is called for each block has no such loop, and a
//! transform has nests: there only short loops are unrolled, too, and those inside are pipelined. Each variant is
//! compiled and run on two short messages. The one with the fewest cycles a
//! block is taken, the first in the list where two are equal. What the user fixes is not tried. For
//! small code [`crate::smallest`] chooses instead, and on a machine that schedules at run time
//! [`crate::fastest`], among other variants.

use crate::chosen::{Chosen, Tried, least, together};
use crate::context;
use crate::error::MeasureError;
use crate::fastest::{self, CodeVariant};
use crate::hints;
use crate::interface::Interface;
use crate::kept;
use crate::pipeline::{self, How, Lean, SearchEffort, UnrolledDriver};
use crate::plan::Work;
use crate::request::{Blocks, Direction, Goal, Request, Unrolling};
use crate::shape::Count;
use crate::shared::{self, Compiled, Described};
use crate::smallest;
use crate::steady::{Trial, Wanted};
use crate::trips::profiled;
use ciphermill_ir::Module;
use ciphermill_program::PipelinedLoop;
use std::sync::atomic::{AtomicBool, Ordering};

/// Blocks that are tried together when the user does not say how many.
const JAMS: [u32; 2] = [1, 2];
/// After a quick search a variant that takes up to so many times as long as another may still become
/// the better one.
const CLOSE: f64 = 2.5;
/// Most blocks that can be asked for.
pub const MAX_JAM: u32 = 8;

/// A straight block that is expected to take up to so many times as long as a loop over rounds is
/// searched for as well: a full search gains a third of a large block, and little of a small loop.
const NEARLY: f64 = 1.4;

/// Sums that are there sooner have to make a block so many times as fast after a quick search, which comes to within that
/// by chance. With 1 a block of wide Rijndael takes 129 cycles on the C6201 instead of 119.
const SOONER: f64 = 1.05;

const PLAIN: Unrolling = Unrolling { unrolled: false, jam: 1, throughput: false, short: false, sums: false };
/// One block's rounds unrolled.
const STRAIGHT: Unrolling = Unrolling { unrolled: true, ..PLAIN };
/// Only short loops unrolled: of a function that is called for each block, and has no loop over blocks around; and where
/// loops around others are left.
const SHORT: Unrolling = Unrolling { short: true, ..STRAIGHT };

/// Choose and compile.
///
/// # Errors
/// As [`crate::measure`]; and [`MeasureError::Internal`] when a variant gives
/// another output than the reference.
pub fn choose(
    wasm: &[u8],
    module: &Module,
    interface: &Interface,
    described: &Described,
    request: &Request,
    work: Work,
    unit: u32,
) -> Result<Chosen, MeasureError> {
    let machine = &*described.tables.machine;
    check(request, work)?;
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
    let shape = interface.shape(work.direction, work.blocks)?;
    let driver = &*shape.measured.export;
    let called = shape.exports();
    let how = How { measured: Some(driver), called: &called, ..How::of(request) };
    let plainly = |lean: Option<Lean>, effort: SearchEffort| -> Result<Chosen, MeasureError> {
        let how = How { lean, effort, ..how };
        let Compiled { program, context_at } = &*pipeline::compile(module, &origin, described, &how)?;
        Ok(Chosen {
            cut: program.searches_cut > 0,
            program: program.clone(),
            jam: 1,
            unroll: 1,
            unrolling: PLAIN,
            context_at: *context_at,
            misaligned: misaligned.cloned(),
        })
    };
    let plain = |unroll: bool| !unroll && request.jam.unwrap_or(1) == 1;
    let small = request.optimise == Goal::Size;
    let statically = machine.issue.explicit && request.level > 1 && work.direction != Direction::Keysetup;
    let cycles = |chosen: &Chosen| trial(wasm, chosen, interface, request, work, unit);
    let plainest = plain(request.unroll.unwrap_or(false));
    if small && plainest {
        return smallest::choose(machine, driver, |lean| plainly(lean, SearchEffort::Full), cycles);
    }
    let tries = !machine.issue.explicit && request.level > 1 && request.exact.is_none();
    let first = if !statically && plainest {
        let first = plainly(None, SearchEffort::Full)?;
        let tried = if tries { fastest::instructions(wasm, &first, driver, interface, (work, unit))? } else { None };
        let Some(instructions) = tried else { return Ok(first) };
        Some((first, instructions))
    } else {
        None
    };
    let turns = shared::key(&[&origin, format!("{work:?} {unit}").as_bytes()]);
    let profile = shared::PROFILES.get(turns, || profiled(module, interface, work, unit))?;
    let rounds = profile.trips.iter().map(|p| p.trips).max().unwrap_or(1).max(1);
    let ctx_bytes = interface.ctx_bytes;
    let unrolled = |unrolling: Unrolling, lean: Option<Lean>, effort: SearchEffort| -> Result<Chosen, MeasureError> {
        let unrolled = UnrolledDriver { shape: &shape, unrolling, ctx_bytes, profile: &profile };
        let how = How { unrolled: Some(&unrolled), lean, effort, ..how };
        let Compiled { program, context_at } = &*pipeline::compile(module, &origin, described, &how)?;
        Ok(Chosen {
            cut: program.searches_cut > 0,
            program: program.clone(),
            jam: unrolling.jam,
            unroll: rounds,
            unrolling,
            context_at: *context_at,
            misaligned: misaligned.cloned(),
        })
    };
    let short = work.count == Count::Calls;
    if let Some((first, instructions)) = first {
        let make = |way: CodeVariant| match way {
            CodeVariant::Lean(lean) => plainly(Some(lean), SearchEffort::Full),
            CodeVariant::Unrolled(jam) => unrolled(Unrolling { jam, ..STRAIGHT }, None, SearchEffort::Full),
            CodeVariant::Short => unrolled(SHORT, None, SearchEffort::Full),
        };
        let rounds = request.unroll.is_none() && work.direction != Direction::Keysetup;
        let several = work.blocks == Blocks::Multi && work.count == Count::Blocks && request.jam.is_none();
        return fastest::choose(
            machine,
            first,
            driver,
            fastest::Others { rounds, several, short, instructions },
            make,
            cycles,
        );
    }
    if small {
        let straight = Unrolling { jam: request.jam.unwrap_or(1), ..STRAIGHT };
        let lean = |lean| unrolled(straight, lean, SearchEffort::Full);
        return smallest::choose(machine, driver, lean, cycles);
    }
    let make = |variant: Unrolling, effort: SearchEffort| {
        if variant.unrolled { unrolled(variant, None, effort) } else { plainly(None, effort) }
    };
    if let Some(of) = request.exact.as_ref().and_then(|e| e.unrolling) {
        return make(of, SearchEffort::Full);
    }
    // Searching for the schedules of loops takes longer than everything else, so variants of one block
    // are compared without a search. Variants of several blocks gain more by it, and unrolled code
    // more than loops: these are compared after a short search, by its result and its distance from
    // the lower bound. Only the last variant gets a full search.
    let searched = machine.issue.explicit;
    let cut = AtomicBool::new(false);
    let attempt = |variant: Unrolling, effort: SearchEffort| -> Result<Tried, MeasureError> {
        let chosen = make(variant, effort)?;
        cut.fetch_or(chosen.cut, Ordering::Relaxed);
        let cycles = cycles(&chosen)?;
        Ok((if effort == SearchEffort::Unrefined { expected(cycles, &chosen, driver) } else { cycles }, chosen))
    };
    let unrolling_of = |tried: &Tried| tried.1.unrolling;
    let none = || MeasureError::internal("no variant of the code was tried");
    let first = if searched { SearchEffort::Quick } else { SearchEffort::Full };
    let mut variants = Vec::new();
    if request.unroll != Some(true) && request.jam.unwrap_or(1) == 1 {
        variants.push(PLAIN);
    }
    let mut others = Vec::new();
    let (mut throughput, mut sums) = (false, false);
    let straight_too = request.unroll != Some(false) || request.jam.unwrap_or(1) > 1;
    if straight_too {
        let several = work.blocks == Blocks::Multi;
        let mut jams: Vec<u32> = match request.jam {
            Some(jam) => vec![jam],
            None => JAMS.into_iter().filter(|&j| j == 1 || several).collect(),
        };
        others = jams.split_off(1);
        let straight = Unrolling { jam: jams[0], ..STRAIGHT };
        variants.push(straight);
        throughput = several;
        variants.extend(several.then_some(Unrolling { throughput, ..straight }));
        sums = searched;
        variants.extend(sums.then_some(Unrolling { sums, ..straight }));
        variants.extend((short && straight == STRAIGHT).then_some(SHORT));
    }
    let nests = [SHORT, Unrolling { throughput: true, ..SHORT }];
    if searched && !request.kept_in.is_empty() && request.search.is_none() {
        let more = others.iter().flat_map(|&jam| {
            let forms = [(false, false), (true, false), (false, true)];
            forms.map(|(throughput, sums)| Unrolling { jam, throughput, sums, ..STRAIGHT })
        });
        let all: Vec<_> =
            variants.iter().copied().chain(more).chain(nests.into_iter().filter(|_| straight_too)).collect();
        let kept_in: Vec<_> = request.kept_in.iter().copied().filter(|of| all.contains(of)).collect();
        if let Some(found) = kept::choose(&kept_in, driver, make, cycles)? {
            return Ok(found);
        }
    }
    let mut tried = together(&variants, first, attempt)?;
    // Where a nest is left, only its short loops may be better unrolled, and these selected for throughput.
    let nest = tried.iter().any(|t| match t.1.unrolling {
        STRAIGHT => nested(&t.1, driver),
        SHORT => !t.1.program.loops.is_empty(),
        _ => false,
    });
    if searched && nest {
        let others: Vec<_> = nests.into_iter().filter(|v| !variants.contains(v)).collect();
        tried.extend(together(&others, first, attempt)?);
    }
    let (plain, straight): (Vec<Tried>, Vec<Tried>) = tried.into_iter().partition(|t| !t.1.unrolling.unrolled);
    let margin = |t: &Tried| if t.1.unrolling.sums { SOONER * t.0 } else { t.0 };
    let straight = straight.into_iter().min_by(|a, b| margin(a).total_cmp(&margin(b)));
    // Selection for throughput is decided with the first number of blocks, for the others as well; and how sums are made.
    throughput &= straight.as_ref().is_some_and(|b| b.1.unrolling.throughput);
    sums &= straight.as_ref().is_some_and(|b| b.1.unrolling.sums);
    let others = others.into_iter().map(|jam| Unrolling { jam, throughput, sums, ..STRAIGHT });
    let mut best: Vec<Tried> = plain.into_iter().chain(straight).collect();
    if searched {
        // A loop over rounds and a straight block come to within a factor of each other by chance.
        let shortest = best.iter().map(|b| b.0).fold(f64::INFINITY, f64::min);
        best.retain(|b| b.0 <= CLOSE * shortest);
        let mut variants: Vec<_> = best.iter().map(unrolling_of).chain(others).collect();
        if variants.len() > 1 {
            let (plain, straight): (Vec<Tried>, Vec<Tried>) = together(&variants, SearchEffort::Unrefined, attempt)?
                .into_iter()
                .partition(|t| !t.1.unrolling.unrolled);
            // What a search will gain of a loop over rounds and of a straight block does not compare well: where
            // the loop seems better by little, straight blocks are searched for besides.
            let shortest = |of: &[Tried]| of.iter().map(|t| t.0).fold(f64::INFINITY, f64::min);
            let (by_loop, by_block) = (shortest(&plain), shortest(&straight));
            let chosen: Vec<Tried> = if by_loop <= by_block {
                plain.into_iter().chain(straight.into_iter().filter(|s| s.0 <= NEARLY * by_loop)).collect()
            } else {
                least(straight).into_iter().collect()
            };
            variants = chosen.iter().map(unrolling_of).collect();
        }
        best = variants.into_iter().map(|variant| attempt(variant, SearchEffort::Full)).collect::<Result<_, _>>()?;
    } else {
        let variants: Vec<_> = others.collect();
        best.extend(together(&variants, SearchEffort::Full, attempt)?);
    }
    let best = least(best).map(|b| Chosen { cut: cut.load(Ordering::Relaxed), ..b.1 });
    best.ok_or_else(none)
}

/// Cycles a block that a variant is expected to take after a full search, given those after a short
/// one: shorter by half the distance of the longest loop that the driver runs to its lower bound,
/// divided by the number of blocks. A loop of one stage comes no nearer than to the longest chain of
/// its iteration.
fn expected(cycles: f64, chosen: &Chosen, driver: &str) -> f64 {
    let left = |l: &PipelinedLoop| {
        let path = if l.stages > 1 { 0 } else { l.path };
        f64::from(l.ii.saturating_sub(l.res_mii.max(l.rec_mii).max(path)))
    };
    kept::longest(chosen, driver).map_or(cycles, |l| cycles * (1.0 - left(l) / f64::from(2 * chosen.jam * l.ii)))
}

/// Is a loop of those that the driver runs around another one?
fn nested(chosen: &Chosen, driver: &str) -> bool {
    let program = &chosen.program;
    let reached = program.export(driver).map(|driver| program.reached(driver)).unwrap_or_default();
    program.plain_loops.iter().any(|l| l.reason == "inner_loop" && reached.contains(&l.func))
}

fn check(request: &Request, work: Work) -> Result<(), MeasureError> {
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
    if jam > 1 && (work.blocks == Blocks::Single || work.count == Count::Calls) {
        return Err(MeasureError::input(format!(
            "--jam {jam}: only blocks that do not wait for each other can be carried together; leave --jam out"
        )));
    }
    Ok(())
}

/// Steady-state cycles of a variant on short messages.
fn trial(
    wasm: &[u8],
    chosen: &Chosen,
    interface: &Interface,
    request: &Request,
    work: Work,
    unit: u32,
) -> Result<f64, MeasureError> {
    let interface = &interface.at(chosen.context_at);
    let wanted = Wanted { wasm, program: &chosen.program, interface, work, unit, turn: unit * chosen.jam };
    wanted.trial().map_err(|e| match e {
        Trial::Differs(failure) => MeasureError::internal(format!(
            "{} with {} blocks jammed and {} iterations unrolled: {failure}",
            request.cipher, chosen.jam, chosen.unroll
        )),
        Trial::Failed(e) => e,
    })
}
