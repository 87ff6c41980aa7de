//! A request answered: compile, run beside the reference, count, explain.

use crate::bottleneck::{self, share};
use crate::bounds;
use crate::choose::choose;
use crate::chosen::Chosen;
use crate::circuits;
use crate::compare::{Outcome, side_by_side};
use crate::core;
use crate::error::MeasureError;
use crate::fits;
use crate::hints;
use crate::leaks;
use crate::measurement::{Bounds, Breakdown, Loop, Measurement, Metrics, NotPipelined, Provenance, Searched};
use crate::messages;
use crate::native::hex;
use crate::pipeline;
use crate::pipelining::{self, ran_most};
use crate::plan::{RunPlan, Work};
use crate::probe::open;
use crate::proved;
use crate::request::{Blocks, Direction, Goal, Request, Unrolling};
use crate::resource;
use crate::sampling::Timed;
use crate::shape::Count;
use crate::sizes;
use crate::slope::Slope;
use crate::stated;
use crate::steady::Wanted;
use crate::view;
use crate::work::{chosen, message, work};
use ciphermill_ir::PAGE_BYTES;
use ciphermill_machine::Machine;
use ciphermill_program::exact::LoopProblem;
use ciphermill_program::kept_schedules::KeptSchedule;
use ciphermill_program::{PipelinedLoop, PlainLoop, Program};
use ciphermill_sim::{CacheStats, Stats};
use sha2::{Digest, Sha256};

/// Measure one cipher on one machine.
///
/// # Errors
/// [`MeasureError::Input`] for a module, machine or setting that cannot be
/// measured, [`MeasureError::Internal`] when a stage of ours failed. A result
/// that differs from the reference's is no error but a measurement that is not
/// [`Measurement::verified`].
pub fn measure(wasm: &[u8], request: &Request) -> Result<Measurement, MeasureError> {
    hints::retried(request, |request| measured(wasm, request))
}

fn measured(wasm: &[u8], request: &Request) -> Result<Measurement, MeasureError> {
    let (module, interface, mut judge) = open(wasm, request.kernel.as_ref())?;
    let described = pipeline::described(&request.machine)?;
    let interface = interface.on(&described.tables.machine);
    let machine = &*described.tables.machine;
    let work = work(&interface, request)?;
    if request.vectors.as_ref().is_none_or(|v| v.cases == 0) {
        stated::block(&interface, &mut judge, work)?;
    }
    if request.trace.is_some() {
        view::core(machine)?;
    }
    let root = &*interface.shape(work.direction, work.blocks)?.measured.export;

    let (unit, bytes) = message(&interface, request, work)?;
    let chosen = choose(wasm, &module, &interface, &described, request, work, unit)?;
    fits::flash(machine, &chosen.program)?;
    let timed = Timed::of(machine, request, bytes);
    let cipher_tables = sizes::cipher_table_bytes(&module);
    let tables = module.export(root).map_or(0, |f| sizes::table_bytes(&module, f));
    let program = &chosen.program;
    let code = program.export(root).map_or(0, |f| sizes::code_bytes(program, f));
    let calls = |(direction, ways): (Direction, Vec<Blocks>)| {
        let own = direction == work.direction && ways.contains(&work.blocks);
        let way = if own { work.blocks } else { *ways.first()? };
        Some((direction.name(), interface.shape(direction, way).ok()?.measured.export))
    };
    let sizes = sizes::of_directions(program, &module, interface.modes().into_iter().filter_map(calls));

    let at = interface.at(chosen.context_at);
    let wanted = Wanted { wasm, program, interface: &at, work, unit, turn: unit * chosen.jam };
    let first = wanted.first(bytes);
    let both = first == bytes && timed != Timed::Windows;
    let plan = if both { wanted.plan(bytes, 1)? } else { RunPlan::new(&at, work, bytes)? };
    let Outcome { stats: whole, setup_cycles, failure, passes, idle, compared, ran } =
        side_by_side(wasm, program, &plan, timed)?;
    let whole = &whole;
    fits::stacks(machine, program, whole)?;
    // The ragged end of a message costs a whole block of keystream.
    let blocks_run = f64::from(bytes.div_ceil(unit));
    let each = (whole.instructions as f64 / blocks_run) as u64;
    let message = both.then(|| Outcome {
        stats: whole.clone(),
        setup_cycles,
        failure: None,
        passes,
        idle,
        compared,
        ran: Vec::new(),
    });
    let (steady, again) = wanted.find(first, message, each)?;
    let cycles_per_block = steady.slope(|s| s.cycles);
    let (messages, amiss) = match interface.kind.has_tag() && work.count == Count::Bytes {
        true => messages::short(wasm, program, &at, work)?,
        false => (Vec::new(), None),
    };
    let vectors_failed = request.vectors.as_ref().and_then(|v| v.failed.clone());
    let failure = failure.or(again).or(amiss).or(vectors_failed);

    let counts: Vec<f64> = (0..machine.instrs.len()).map(|i| steady.slope(|s| s.per_instr[i])).collect();
    let dynamic = machine.core.as_ref().zip(steady.counts());
    let resource = match &dynamic {
        Some((core, slope)) => core::resource(core, slope),
        None => resource::bound(machine, &counts),
    };
    let heights = bounds::heights(&wanted, &steady, resource.cycles)?;
    let circuits = circuits::recurrence_circuits(&wanted, &steady, resource.cycles.max(heights.recurrence))?;
    let recurrence = heights.recurrence.max(circuits.recurrence);
    // A difference of two passes is below what its instructions take where the shorter one had more idle cycles; each
    // pass by itself never is.
    if dynamic.is_none()
        && let Some((cycles, least)) = steady.passes().find_map(|pass| below(machine, pass))
    {
        return Err(MeasureError::internal(format!(
            "{} on {}: a pass takes {cycles} cycles, and its instructions {least:.3} at the least",
            request.cipher, machine.name
        )));
    }
    let resource_cycles = if dynamic.is_some() { resource.cycles } else { resource.cycles.min(cycles_per_block) };
    let bound = resource_cycles.max(recurrence);
    let bounds = Bounds {
        resource: resource_cycles,
        recurrence,
        circuits: circuits.through_memory,
        critical_path: heights.critical_path,
        lower: match &dynamic {
            Some((core, slope)) => within_window(bound, cycles_per_block, core, slope.blocks),
            None => bound,
        },
        classes: dynamic.as_ref().map_or_else(|| resource::classes(machine, &counts), |d| core::classes(&d.1)),
        units: dynamic.as_ref().map_or_else(|| resource::shares(machine, &counts), |d| core::shares(&d.1)),
    };
    // Counts are whole numbers below 2^53, slopes of them exact to a few ulps.
    if bounds.lower > cycles_per_block * (1.0 + 1e-12) && failure.is_none() {
        return Err(MeasureError::internal(format!(
            "{} on {}: the lower bound of {:.3} cycles a block is above the {cycles_per_block:.3} simulated (resources \
             {:.3}, chains {:.3}, circuits through memory {:.3})",
            request.cipher, machine.name, bounds.lower, resource.cycles, heights.recurrence, circuits.recurrence
        )));
    }
    let bounds = Bounds { lower: bounds.lower.min(cycles_per_block), ..bounds };
    let all: Vec<f64> = whole.per_instr.iter().map(|&n| n as f64).collect();
    let limit = match (&machine.core, &whole.core) {
        (Some(core), Some(counts)) => {
            let none = ciphermill_ooo::Counts::default();
            let all = core::resource(core, &Slope { from: &none, to: counts, blocks: 1.0 });
            core::bottleneck(counts, whole, &all)
        }
        _ => {
            let crowded = ran_most(program, whole).first().is_some_and(|l| bottleneck::crowded(l));
            let runs = match request.direction {
                Direction::Keysetup => (blocks_run, "a key set-up"),
                _ => (blocks_run, "a block"),
            };
            bottleneck::find(machine, whole, &resource::bound(machine, &all), runs, crowded)
        }
    };
    let counted = whole.core.as_ref();
    let pipeline = match &request.trace {
        Some(trace) => {
            let plan = RunPlan::new(&interface.at(chosen.context_at), work, bytes)?;
            let pages = program.min_pages.max(plan.memory_bytes.div_ceil(PAGE_BYTES) as u32);
            let exact = counted.is_none_or(|c| c.sample.is_none()).then_some(whole.cycles);
            Some(view::trace(program, &plan, pages, trace, (whole.instructions, exact))?)
        }
        None => None,
    };
    let cycles_per_byte = cycles_per_block / f64::from(unit);
    let leaks = leaks::brief(wasm, &chosen, &interface, work, (unit, bytes), &ran)?;

    Ok(Measurement {
        cipher: request.cipher.clone(),
        variant: request.variant.clone(),
        direction: work.direction.name(),
        key_bits: request.key_bits,
        bytes,
        block_bytes: unit,
        machine: machine.name.clone(),
        with: request.machine.with.clone(),
        without: request.machine.without.clone(),
        set: request.machine.set.clone(),
        clock_mhz: machine.clock_mhz,
        blocks: work.blocks.name(),
        jam: chosen.jam,
        unroll: chosen.unroll,
        optimise: request.optimise,
        aligned: request.aligned || machine.issue.explicit,
        fixed: request.fixed,
        verified: failure.is_none(),
        verified_bytes: compared,
        failure,
        misaligned: chosen.misaligned.clone(),
        cycles: whole.cycles,
        cycles_per_block,
        steady: steady.lengths,
        cycles_per_keysetup: (work.direction == Direction::Keysetup).then_some(cycles_per_block),
        messages,
        cycles_per_byte,
        mbit_per_s: if cycles_per_byte > 0.0 { 8.0 * machine.clock_mhz / cycles_per_byte } else { 0.0 },
        ns_per_byte: 1000.0 * cycles_per_byte / machine.clock_mhz,
        // mW / MHz is nJ a cycle.
        nj_per_byte: machine.power_mw.map(|mw| mw * cycles_per_byte / machine.clock_mhz),
        instructions: whole.instructions,
        uops: counted.map_or(whole.instructions, |c| c.get("uops_retired")),
        cpi: share(whole.cycles, whole.instructions),
        ilp: share(counted.map_or(whole.instructions, |c| c.get("uops_dispatched")), whole.cycles),
        events: machine.core.as_ref().zip(counted).map(|(core, c)| core::events(core, c)).unwrap_or_default(),
        metrics: counted.map_or_else(|| metrics(whole, machine.issue.width), |c| core::metrics(c, whole)),
        sampling: counted.and_then(|c| c.sample),
        cpi_stack: counted.map(core::cpi_stack).unwrap_or_default(),
        breakdown: counted.map_or_else(|| breakdown(whole), core::breakdown),
        bounds,
        loops: loops(program, whole),
        loops_not_pipelined: not_pipelined(program, whole),
        search: Searched { patience: request.patience, spent: chosen.cut },
        pipeline,
        constant_time: leaks.constant_time(),
        leaks,
        bottleneck: limit.word,
        why: limit.why,
        code_bytes: code,
        code_bytes_total: sizes::all_code_bytes(program),
        context_bytes: interface.ctx_bytes,
        keysetup_cycles: match work.direction {
            Direction::Keysetup => cycles_per_block,
            _ => setup_cycles as f64,
        },
        table_bytes: tables,
        cipher_table_bytes: cipher_tables,
        stack_bytes: whole.stack_bytes,
        sizes,
        provenance: provenance(wasm, request, machine, &work, bytes),
    })
}

/// A slope of cycles between two messages can be below the same slope of a
/// bound by what the window hides at their ends: the cycles in which it drains.
/// Within that, the smaller of the two is the bound.
fn within_window(bound: f64, cycles: f64, core: &ciphermill_machine::core::Core, blocks: f64) -> f64 {
    let window = f64::from(core.reorder_buffer + core.load.latency + core.store.buffers);
    if bound > cycles && bound - cycles <= window / blocks.max(1.0) { cycles } else { bound }
}

/// Cycles of a pass, and those that its instructions take at the least, where it has fewer.
fn below(machine: &Machine, pass: &Stats) -> Option<(u64, f64)> {
    let counts: Vec<f64> = pass.per_instr.iter().map(|&n| n as f64).collect();
    let least = resource::bound(machine, &counts).cycles;
    (least > pass.cycles as f64).then_some((pass.cycles, least))
}

fn metrics(s: &Stats, width: u16) -> Metrics {
    let hit = |c: CacheStats| 1.0 - share(c.read_misses + c.write_misses, c.reads + c.writes);
    let branches = s.branches_taken + s.branches_untaken + s.jumps;
    Metrics {
        l1d_hit: s.dcache.map(hit),
        l1i_hit: s.icache.map(hit),
        l2_hit: None,
        branch_ratio: share(branches, s.instructions),
        prediction_rate: None,
        mispredict_ratio: None,
        stall_ratio: share(s.stalls.total(), s.cycles),
        wasted_work: 0.0,
        lookup_share: share(s.roles.lookup, s.instructions),
        lookup_slot_share: share(s.roles.lookup, s.cycles * u64::from(width.max(1))),
        lookup_cycle_share: Some(if s.cycles > 0 { s.lookup_cycles / s.cycles as f64 } else { 0.0 }),
        overhead_share: share(s.roles.overhead, s.instructions),
        load_share: share(s.loads, s.instructions),
        store_share: share(s.stores, s.instructions),
        ..Metrics::default()
    }
}

/// What is said of the pipelined loops that ran.
fn loops(program: &Program, stats: &Stats) -> Vec<Loop> {
    let one = |l: &PipelinedLoop| Loop {
        certificate: proved::certificate(l, &l.bounds),
        because: proved::because(l, &l.bounds).unwrap_or_default(),
        ii: l.ii,
        res_mii: l.res_mii,
        rec_mii: l.rec_mii,
        stages: l.stages,
        proved_optimal: l.ii <= proved::least(l, &l.bounds),
        lower_bound: proved::least(l, &l.bounds),
        kept_schedule: l.kept_schedule,
        asked: l.asked.clone(),
        function: program.funcs[l.func as usize].name.clone(),
        block: l.block,
        circuit: pipelining::steps(&program.machine, &l.circuit),
    };
    ran_most(program, stats).into_iter().map(one).collect()
}

/// And of the others in functions that ran.
fn not_pipelined(program: &Program, stats: &Stats) -> Vec<NotPipelined> {
    let ran = |l: &&PlainLoop| stats.per_func.get(l.func as usize).is_some_and(|&n| n > 0);
    let one = |l: &PlainLoop| NotPipelined {
        function: program.funcs[l.func as usize].name.clone(),
        blocks: l.blocks.clone(),
        reason: l.reason,
        why: l.why.clone(),
    };
    program.plain_loops.iter().filter(ran).map(one).collect()
}

fn breakdown(s: &Stats) -> Breakdown {
    Breakdown {
        issue: s.issue_cycles,
        load_wait: s.stalls.load_wait,
        operand_wait: s.stalls.operand_wait,
        unit: s.stalls.unit,
        branch: s.stalls.branch,
        icache: s.stalls.icache,
        dcache: s.stalls.dcache,
        window: s.stalls.window,
        bank: s.stalls.bank,
        cross: s.stalls.cross,
        frontend: 0,
        full: 0,
    }
}

fn provenance(wasm: &[u8], request: &Request, machine: &Machine, work: &Work, bytes: u32) -> Provenance {
    let form = (request.jam, request.unroll, request.aligned);
    let exact = if request.exact.is_some() { " exact" } else { "" };
    let small = if request.optimise == Goal::Size { " size" } else { "" };
    let fixed = if request.fixed { " static" } else { "" };
    // How long it could have taken changes nothing in what it took.
    let work = Work { limit: None, ..*work };
    let patience = if request.patience > 1 { format!(" patience={}", request.patience) } else { String::new() };
    let settings =
        format!("{work:?} bytes={bytes} level={} form={form:?}{exact}{small}{fixed}{patience}", request.level);
    Provenance {
        kind: "simulated",
        ciphermill: env!("CARGO_PKG_VERSION"),
        module: hex(&Sha256::digest(wasm)),
        machine: machine.hash.clone(),
        settings: hex(&Sha256::digest(settings.as_bytes())),
        vectors: request.vectors.as_ref().map(|v| v.cases),
        buffer_align: pipeline::BUFFER_ALIGN,
        level: request.level,
        origin: request.origin.clone(),
    }
}

/// The program a request would measure.
///
/// # Errors
/// As [`measure`].
pub fn program(wasm: &[u8], request: &Request) -> Result<Program, MeasureError> {
    Ok(chosen(wasm, request)?.program)
}

/// The pipelined loops of a request as problems for an exact scheduler, and the
/// unroll-and-jam variant that they are in.
///
/// # Errors
/// As [`measure`]; and for a request that asks no exact scheduler.
pub fn problems(wasm: &[u8], request: &Request) -> Result<(Unrolling, Vec<LoopProblem>), MeasureError> {
    if request.exact.is_none() {
        return Err(MeasureError::internal("a request for problems says nothing of an exact scheduler"));
    }
    let (_, interface, _) = open(wasm, request.kernel.as_ref())?;
    let work = work(&interface, request)?;
    let Chosen { mut program, unrolling, .. } = chosen(wasm, request)?;
    let mut problems = std::mem::take(&mut program.problems);
    if let Some(measured) = program.export(&interface.shape(work.direction, work.blocks)?.measured.export) {
        let reached = program.reached(measured);
        problems.iter_mut().for_each(|p| p.runs = reached.contains(&p.func));
    }
    Ok((unrolling, problems))
}

/// The schedules of a request's loops, from a search as long as it asks for, to be kept, and the unroll-and-jam
/// variant that they are in.
///
/// # Errors
/// As [`measure`].
pub fn records(wasm: &[u8], request: &Request) -> Result<(Unrolling, Vec<KeptSchedule>), MeasureError> {
    let Chosen { program, unrolling, .. } = chosen(wasm, request)?;
    Ok((unrolling, program.kept_schedules))
}
