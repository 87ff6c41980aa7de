//! The way through: a module, function by function, to a program.

use crate::buffers::calls;
use crate::context::Emitter;
use crate::frame::Frame;
use crate::front::Front;
use crate::options::Options;
use crate::placed::Placed;
use crate::tables::Tables;
use crate::{parked, plain, registers};
use ciphermill_ir::low_bits::Low;
use ciphermill_ir::{FuncId, GlobalId, Module, SYSTEM_BASE};
use ciphermill_machine::{Machine, Reg};
use ciphermill_pipeline::exact::Exchange;
use ciphermill_pipeline::{PATIENT, Records, Search};
use ciphermill_program::layout::Layout;
use ciphermill_program::{PipelinedLoop, PlainLoop, Program, Segment};
use ciphermill_regalloc::best::AllocationRequest;
use ciphermill_schedule::verified;
use ciphermill_select::banks;
use ciphermill_select::constants;
use ciphermill_select::select::{MemoryFacts, select};
use ciphermill_vcode::CompileError;
use cranelift_entity::EntityRef;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Generate a program for `machine` from an optimised module.
///
/// # Errors
/// When the machine and the rules lack an operation, or a checker finds a
/// fault; never a wrong program.
pub fn compile(module: &Module, machine: Arc<Machine>, options: &Options) -> Result<Program, CompileError> {
    compile_with(module, &Tables::new(machine)?, options)
}

/// [`compile`] with tables made before.
///
/// # Errors
/// As [`compile`]'s.
pub fn compile_with(module: &Module, tables: &Tables, options: &Options) -> Result<Program, CompileError> {
    let mut exchange = options.exact.clone().map(|answers| Exchange { answers, problems: Vec::new() });
    let mut records =
        Records { known: &options.kept_schedules, new: options.search.filter(|s| !s.lacks()).map(|_| Vec::new()) };
    let Tables { machine, facts, encodings, folds, runs, .. } = tables;
    let m = &**machine;
    let front = Front::new(module, tables, options)?;
    let (module, pinned) = (&front.module, &front.pinned);
    let readonly: Vec<std::ops::Range<u32>> =
        module.data.iter().filter(|d| d.readonly).map(|d| d.addr..d.addr + d.bytes.len() as u32).collect();
    let searched = options.searched.as_ref().and_then(|name| module.export(name)).map(|id| reached(module, id));
    let called: BTreeSet<FuncId> =
        options.called.iter().filter_map(|name| module.export(name)).flat_map(|id| reached(module, id)).collect();
    let memo = std::cell::OnceCell::new();
    let mut funcs = Vec::with_capacity(module.funcs.len());
    let mut own = module.system.bytes.clone();
    let (mut loops, mut searches_cut) = (Vec::new(), 0);
    let mut plain_loops = Vec::new();
    let all_plain = plain::of_program(m.issue.explicit, options.level, options.plain_loops);
    for id in module.funcs.keys() {
        let (func, matcher) = front.func(id)?;
        let memory = MemoryFacts {
            buffers: front.buffers.get(&id).copied().unwrap_or(0),
            readonly: &readonly,
            banks: banks::described(m)
                .map(|banks| banks::Analysis::new(&func, banks, &placed(module, options, id, &front.promised[&id]))),
        };
        let mut vfunc = select(&func, m, matcher, pinned, &memory)?;
        ciphermill_patterns::several::join(&mut vfunc, matcher);
        let windowed = registers::wants_window(&vfunc, m, pinned);
        let registers = registers::registers(m, windowed, pinned);
        if vfunc.has_calls && !windowed && !m.issue.explicit && options.level > 0 {
            ciphermill_schedule::carried::free_parameters(&mut vfunc, &registers);
        }
        constants::place(&mut vfunc, m, matcher, registers.allocatable.len())?;
        if !windowed {
            registers::without_window(&mut vfunc, m);
        }
        let (kernels, refused) = if m.issue.explicit && options.level > 0 && !options.plain_loops {
            let thorough = !options.quick
                && options.focus.as_ref().is_none_or(|name| module.export(name) == Some(id))
                && searched.as_ref().is_none_or(|reached| reached.contains(&id));
            let (longest, unrefined) = (options.longest, options.unrefined);
            let times = if options.exact.is_some() { PATIENT } else { 1 };
            let search = options.search.unwrap_or(Search { times, ..Search::default() });
            let patience = options.patience.max(1);
            let idle = !called.is_empty() && !called.contains(&id);
            let least = ciphermill_pipeline::Effort::least();
            let effort = match idle {
                true => least,
                false => ciphermill_pipeline::Effort {
                    thorough,
                    longest,
                    unrefined,
                    search,
                    patience,
                    first: false,
                    ..least
                },
            };
            let found = ciphermill_pipeline::pipeline(
                &mut vfunc,
                m,
                facts,
                &registers,
                effort,
                &memo,
                &mut records,
                exchange.as_mut(),
            )?;
            searches_cut += found.cut;
            (found.kernels, found.refused)
        } else {
            Default::default()
        };
        let used = folds.as_ref().filter(|_| options.level > 0);
        let request = AllocationRequest { machine: m, facts, registers: &registers, folds: used, runs };
        let Placed { func: mut vfunc, plain, mut allocated } =
            tables.placed.placed(vfunc, &request, options.level > 0)?;
        parked::park(&mut allocated, &vfunc, m);
        let loop_words: usize = kernels.iter().map(|k| k.words).sum();
        let returns_by = |r: &Reg| kernels.iter().any(|k| k.uses(*r));
        let saves_return = vfunc.has_calls || m.abi.return_address.as_ref().is_some_and(returns_by);
        let framed = |a: &_, saves| Frame::new(m, matcher, windowed, saves, loop_words as u32, a);
        let mut frame = framed(&allocated, saves_return);
        if let (true, Some(spare)) = (frame.outgrows(), registers::spare(m)) {
            let mut fewer = registers::registers(m, windowed, pinned);
            fewer.allocatable.retain(|r| *r != spare);
            vfunc = plain.unwrap_or(vfunc);
            allocated = AllocationRequest { registers: &fewer, ..request }.allocated(&vfunc)?;
            parked::park(&mut allocated, &vfunc, m);
            frame = framed(&allocated, saves_return).with_scratch(spare);
        }
        if m.value_bits() < m.word_bits && !recursive(module, id) {
            let (fixed, more) = frame.with_fixed(SYSTEM_BASE + own.len() as u32);
            frame = fixed;
            own.resize(own.len() + more as usize, 0);
        }
        let folds = folds.as_ref();
        let (schedule, at_once) = (options.level > 0, options.at_once);
        let checker = verified::Checker { rules: &tables.rules, witness: options.witness.as_ref() };
        let emitter = |frame: &Frame| {
            let kernels = &kernels;
            Emitter { folds, encodings, runs, machine: m, facts, checker, frame, kernels, schedule, at_once }
                .func(&vfunc, &allocated)
        };
        let (mut done, mut emitted) = emitter(&frame)?;
        if emitted.loses_return && !saves_return {
            // Saving it makes the code longer, not shorter: the far jump stays.
            frame = framed(&allocated, true);
            (done, emitted) = emitter(&frame)?;
        }
        let place = |b: &u32| emitted.blocks.get(b).copied();
        plain_loops.extend(plain::reasons(&vfunc, &refused, all_plain.as_ref()).into_iter().map(|(l, reason)| {
            PlainLoop {
                func: funcs.len() as u32,
                blocks: l.blocks.iter().filter_map(place).collect(),
                reason: reason.word,
                why: reason.why,
            }
        }));
        loops.extend(kernels.iter().enumerate().map(|(number, k)| PipelinedLoop {
            func: funcs.len() as u32,
            ii: k.schedule.ii as u32,
            res_mii: k.res_mii as u32,
            rec_mii: k.rec_mii as u32,
            path: k.path as u32,
            stages: k.schedule.stages as u32,
            lower_bound: k.least as u32,
            bounds: k.bounds.clone(),
            plain: k.plain.clone(),
            divided: k.divided.clone(),
            register_use: k.held,
            kept_schedule: k.recorded,
            search: k.log.clone(),
            asked: k.asked.clone(),
            block: emitted.kernels.get(&number).copied().unwrap_or(u32::MAX),
            circuit: k.round.clone(),
        }));
        if let Some(exchange) = &mut exchange {
            let asked = kernels.iter().filter(|k| k.rotating.is_none()).count();
            let mine = exchange.problems.iter_mut().rev().take(asked);
            mine.for_each(|p| p.func = funcs.len() as u32);
        }
        let sig = &module.funcs[id].sig;
        (done.params, done.results) = (sig.params.len(), sig.results.len());
        funcs.push(done);
    }

    let data = module.data.iter().map(|d| Segment { addr: d.addr, bytes: d.bytes.clone() }).collect();
    // The globals in registers have 32 bits, their sign extended in wider ones.
    let word = ciphermill_ir::ops::mask(u32::from(m.word_bits));
    let initial = |g: GlobalId| ciphermill_ir::ops::sext(module.globals[g].init, 32) as u64 & word;
    let global_regs = front.in_registers.iter().map(|&(g, r)| (r, initial(g))).collect();
    let program = Program {
        machine: machine.clone(),
        funcs,
        exports: module.exports.iter().map(|(n, f)| (n.clone(), f.index() as u32)).collect(),
        start: module.start.map(|f| f.index() as u32),
        min_pages: module.memory.min_pages,
        max_pages: module.memory.max_pages,
        data,
        readonly,
        flash: front.flash.clone(),
        system: own,
        system_func_refs: module.system.func_refs.clone(),
        system_own_address: module.system.own_address,
        arg_overflow: front.overflow,
        global_regs,
        loops,
        plain_loops,
        searches_cut,
        problems: exchange.map_or(Vec::new(), |e| e.problems),
        kept_schedules: records.new.unwrap_or_default(),
    };
    match Layout::unreached(&program) {
        Some(what) => Err(CompileError::Internal(what)),
        None => Ok(program),
    }
}

/// May a function be entered again before it returns?
fn recursive(module: &Module, id: FuncId) -> bool {
    calls(&module.funcs[id]).any(|callee| reached(module, callee).contains(&id))
}

/// A function and all that it may call, those called by pointer with it.
fn reached(module: &Module, from: FuncId) -> BTreeSet<FuncId> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<FuncId> = module.system.func_refs.iter().map(|r| r.func).chain([from]).collect();
    while let Some(id) = next.pop() {
        if reached.insert(id) {
            next.extend(calls(&module.funcs[id]));
        }
    }
    reached
}

/// What is known of a function's parameters, with their places in memory.
fn placed(module: &Module, options: &Options, id: FuncId, promised: &[Low]) -> Vec<Low> {
    let mut low = promised.to_vec();
    for (name, index, modulus, residue) in &options.placed_params {
        if module.export(name) == Some(id) && modulus.is_power_of_two() {
            low.iter_mut().skip(*index).take(1).for_each(|l| *l = Low::congruent(*modulus, *residue));
        }
    }
    low
}
