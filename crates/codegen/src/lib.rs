//! The code generator: from the intermediate representation to a program for
//! one machine.
//!
//! ```text
//! recognise -> expand -> shape -> legalise -> select -> constants -> schedule -> allocate -> finish
//! `-------------- on SSA --------------'    `-- virtual registers --'   `-- physical registers --'
//! ```
//!
//! Nothing here knows a machine by name. What an instruction computes comes
//! from its semantics ([`pattern`], [`matcher`]); what a machine lacks comes
//! from the rules file ([`legalise`]); what a frame looks like comes from the
//! calling convention in the machine file ([`frame`]).
//!
//! Three checkers stand beside the optimisers and share no code with them:
//! `ciphermill-verify` ([`verified`]) for every schedule of a block or a loop, `regalloc2`'s own for the
//! allocation, and [`respill`]'s for the second one of long blocks.

pub mod addressing;
pub mod align;
pub mod aligned;
pub mod allocate;
pub mod apart;
pub mod banks;
pub mod branches;
mod carried;
pub mod constants;
pub mod cut;
pub mod encodings;
pub mod expand;
pub mod facts;
pub mod finish;
pub mod frame;
pub mod front;
mod graph;
mod halves;
pub mod legalise;
pub mod liveness;
pub mod lookups;
pub mod masks;
mod narrow;
pub mod matcher;
pub mod nearest;
pub mod order;
pub mod pattern;
mod places;
pub mod plain;
pub mod provenance;
pub mod recognise;
pub mod respill;
pub mod schedule;
pub mod select;
pub mod several;
pub mod shape;
mod spellings;
pub mod spills;
pub mod tables;
mod turned;
pub mod vcode;
pub mod verified;
pub mod vliw;
mod wanted;
pub mod widen;

use allocate::{Allocated, Registers};
use ciphermill_ir::{FuncId, GlobalId, Module, Type};
use ciphermill_machine::{Machine, Reg};
use ciphermill_program::exact::Answer;
use ciphermill_program::recorded::Recorded;
use ciphermill_program::{PipelinedLoop, PlainLoop, Program, Segment};
use cranelift_entity::EntityRef;
use facts::Facts;
use finish::Finish;
use frame::Frame;
use std::collections::HashMap;
use std::sync::Arc;
use tables::Tables;
use thiserror::Error;
use vcode::VFunc;
use vliw::kernel::exact::Exchange;
pub use vliw::kernel::Search;
use vliw::kernel::{PATIENT, Records};

/// So many of the orders that are tried, the best, are also tried with values cut.
const CUT: usize = 4;

/// So many of all, the best, are allocated with all effort before one is taken.
const FINAL: usize = 4;

/// How to generate code.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// 0: no scheduling; 1 and up: both schedules and filled delay slots.
    pub level: u8,
    /// Every WebAssembly trap happens as specified: accesses are checked.
    pub strict_traps: bool,
    /// `(exported function, parameter index, bytes)`: parameters that are
    /// always multiples of a power of two. The caller promises it; see
    /// [`expand::AddressFacts`] for what it is used for.
    pub aligned_params: Vec<(String, usize, u32)>,
    /// What `aligned_params` promises holds for words too: an access that does
    /// not say so itself is made as one where the promise shows it to be aligned.
    pub word_buffers: bool,
    /// Much independent work hides latency: code with fewer slots is better even
    /// if it takes longer. Which of the two is better depends on the machine.
    pub throughput: bool,
    /// Selections are never made branches, whatever the machine file says: a cipher that is
    /// to take the same time for all secrets is compiled so.
    pub straight_selects: bool,
    /// Loops are left as they stand: neither prologue nor epilogue.
    pub plain_loops: bool,
    /// Most instructions of straight code that issue together; 0: as many as fit. Fewer
    /// leave fewer bundles that do not fit into what is left of a fetch packet.
    pub at_once: usize,
    /// The exported function that all effort goes into: loops of others are
    /// pipelined without a search for the best division between clusters.
    /// Without one every function is meant.
    pub focus: Option<String>,
    /// Of the loops of the focus only the longest is searched with all effort: where
    /// blocks are carried together, the others do what is left of a message.
    pub longest: bool,
    /// Pipelines are searched for with all effort, but what is found is not shortened:
    /// for comparing forms of a program, too.
    pub unrefined: bool,
    /// No loop is searched with all effort, whatever is the focus: for comparing
    /// forms of a program before the best is compiled.
    pub quick: bool,
    /// `(exported function, parameter index, modulus, residue)`: where buffers
    /// stand in memory, modulo a power of two. Speed depends on it where memory has
    /// several blocks, and the result on a machine whose loads put base and index
    /// side by side ([`aligned`]).
    pub placed_params: Vec<(String, usize, u32, u32)>,
    /// `(exported function, number)`: so many of its first parameters point to
    /// buffers that never overlap. The caller promises it; see [`provenance`]. It
    /// counts for functions that the module does not call itself.
    pub buffers: Vec<(String, usize)>,
    /// Pipelined loops are also written out as problems for an exact scheduler;
    /// here are its answers so far, in the order of those problems.
    pub exact: Option<Vec<Answer>>,
    /// Schedules of some loops that were found before: taken instead of a search.
    pub records: Vec<Recorded>,
    /// A longer search for schedules than usual, which are written down.
    pub search: Option<Search>,
    /// Every schedule that is checked is also put here.
    pub witness: Option<verified::Witness>,
    /// Pipelines are searched for with so many times the usual budget; 0 is 1.
    pub patience: u32,
}

#[derive(Debug, Error)]
pub enum CompileError {
    #[error(
        "the machine has no instruction, and machines/rules.toml no rule, for {operation} (module offset {loc:#x}); \
         add an instruction that means just that, or a compound of several (docs/machine-files.md)"
    )]
    NoInstruction { operation: String, loc: u32 },
    #[error("{0}")]
    Unsupported(String),
    /// A fault of the code generator, found by one of its checks.
    #[error("internal error of the code generator: {0}")]
    Internal(String),
}

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
    let mut records = Records { known: &options.records, new: options.search.map(|_| Vec::new()) };
    let Tables { machine, facts, encodings, memory_forms, .. } = tables;
    let m = &**machine;
    let front = front::Front::new(module, tables, options);
    let (module, pinned) = (&front.module, &front.pinned);
    let readonly: Vec<std::ops::Range<u32>> =
        module.data.iter().filter(|d| d.readonly).map(|d| d.addr..d.addr + d.bytes.len() as u32).collect();
    let called = called(module);
    let memo = std::cell::OnceCell::new();
    let mut funcs = Vec::with_capacity(module.funcs.len());
    let (mut loops, mut searches_cut) = (Vec::new(), 0);
    let mut plain_loops = Vec::new();
    let all_plain = plain::of_program(m.issue.explicit, options.level, options.plain_loops);
    for id in module.funcs.keys() {
        let func = front.func(id)?;
        let memory = select::Memory {
            buffers: if called.contains(&id) { 0 } else { promised_buffers(module, id, options) },
            readonly: &readonly,
            banks: banks::described(m).map(|banks| banks::Analysis::new(&func, banks, &placed(module, options, id, &front.promised[&id]))),
        };
        let mut vfunc = select::select(&func, m, front.matcher, pinned, &memory)?;
        several::join(&mut vfunc, front.matcher);
        let windowed = wants_window(&vfunc, m, pinned);
        let registers = registers(m, windowed, pinned);
        if vfunc.has_calls && !windowed && !m.issue.explicit && options.level > 0 {
            carried::free_parameters(&mut vfunc, &registers);
        }
        constants::place(&mut vfunc, m, front.matcher, registers.allocatable.len())?;
        if !windowed {
            without_window(&mut vfunc, m);
        }
        let (kernels, refused) = if m.issue.explicit && options.level > 0 && !options.plain_loops {
            let thorough = !options.quick && options.focus.as_ref().is_none_or(|name| module.export(name) == Some(id));
            let (longest, unrefined) = (options.longest, options.unrefined);
            let times = if options.exact.is_some() { PATIENT } else { 1 };
            let search = options.search.unwrap_or(Search { times, round: 0 });
            let patience = options.patience.max(1);
            let effort = vliw::kernel::Effort { thorough, longest, unrefined, search, patience };
            let found = vliw::kernel::pipeline(&mut vfunc, m, facts, &registers, effort, &memo, &mut records, exchange.as_mut())?;
            searches_cut += found.cut;
            (found.kernels, found.refused)
        } else {
            Default::default()
        };
        // A core that orders for itself is given code that keeps few values alive.
        if options.level > 0 && m.core.as_ref().is_none_or(|c| c.in_order) {
            schedule_virtual(&mut vfunc, m, facts, registers.allocatable.len())?;
        }
        if options.level > 0 && m.core.as_ref().is_some_and(|c| !c.in_order) {
            vfunc = best_order(vfunc, tables, &registers, options.level)?;
        }
        let allocated = allocated(&vfunc, tables, &registers, options.level, Effort::Checked)?;
        let kept: usize = kernels.iter().map(|k| k.words).sum();
        let returns_by = |r: &Reg| kernels.iter().any(|k| k.uses(*r));
        let saves_return = vfunc.has_calls || m.abi.return_address.as_ref().is_some_and(returns_by);
        let frame = Frame::new(m, front.matcher, windowed, saves_return, kept as u32, &allocated);
        let memory = memory_forms.as_ref();
        let (schedule, at_once) = (options.level > 0, options.at_once);
        let checker = verified::Checker { rules: &tables.rules, witness: options.witness.as_ref() };
        let finish = Finish { memory, encodings, machine: m, facts, checker, frame: &frame, kernels: &kernels, schedule, at_once };
        let (mut done, places) = finish.func(&vfunc, &allocated)?;
        let place = |b: &u32| places.blocks.get(b).copied();
        plain_loops.extend(plain::reasons(&vfunc, &refused, all_plain.as_ref()).into_iter().map(|(l, reason)| PlainLoop {
            func: funcs.len() as u32,
            blocks: l.blocks.iter().filter_map(place).collect(),
            reason: reason.word,
            why: reason.why,
        }));
        loops.extend(kernels.iter().enumerate().map(|(number, k)| PipelinedLoop {
            func: funcs.len() as u32,
            ii: k.schedule.ii as u32,
            res_mii: k.res_mii as u32,
            rec_mii: k.rec_mii as u32,
            stages: k.schedule.stages as u32,
            least: k.least as u32,
            held: k.held,
            recorded: k.recorded,
            asked: k.asked.clone(),
            block: places.kernels.get(&number).copied().unwrap_or(u32::MAX),
            round: k.round.clone(),
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
    Ok(Program {
        machine: machine.clone(),
        funcs,
        exports: module.exports.iter().map(|(n, f)| (n.clone(), f.index() as u32)).collect(),
        start: module.start.map(|f| f.index() as u32),
        min_pages: module.memory.min_pages,
        max_pages: module.memory.max_pages,
        data,
        readonly,
        system: module.system.bytes.clone(),
        system_func_refs: module.system.func_refs.clone(),
        arg_overflow: front.overflow,
        global_regs,
        loops,
        plain_loops,
        searches_cut,
        problems: exchange.map_or(Vec::new(), |e| e.problems),
        records: records.new.unwrap_or_default(),
    })
}

/// Instructions of a function beyond which no other order is tried: each is allocated as a whole.
/// Without it 8,000 operations take 28 s on `core2` where a quarter of the values live at once,
/// with it 0.8.
const LONG: usize = 5_000;

/// The function in the order, and with the values cut, that the allocator makes
/// most of.
fn best_order(func: VFunc, tables: &Tables, registers: &Registers, level: u8) -> Result<VFunc, CompileError> {
    if func.blocks.iter().map(|b| b.insts.len()).sum::<usize>() > LONG {
        return Ok(func);
    }
    let (m, facts, most) = (&*tables.machine, &tables.facts, registers.allocatable.len());
    let cost = |f: &VFunc, effort| allocated(f, tables, registers, level, effort).map(|a| a.cost(f, registers.mov.0));
    let weighed = |f: VFunc| cost(&f, Effort::Rough).map(|c| (c, f));
    let others = order::others(&func, m, facts, most)?;
    let ways = std::iter::once(func).chain(others);
    let mut tried = ways.map(weighed).collect::<Result<Vec<_>, _>>()?;
    tried.sort_by_key(|t| t.0);
    let cuts = |t: &(u64, VFunc)| [false, true].map(|incoming| cut::cut(&t.1, m, facts, most, incoming));
    let mut pieces: Vec<VFunc> = tried.iter().take(CUT).flat_map(cuts).flatten().collect();
    pieces.extend(tried.iter().take(CUT).filter_map(|t| apart::apart(&t.1, m, facts)));
    tried.extend(pieces.into_iter().map(weighed).collect::<Result<Vec<_>, _>>()?);
    tried.sort_by_key(|t| t.0);
    tried.truncate(FINAL);
    let last = tried.into_iter().map(|(_, f)| cost(&f, Effort::Whole).map(|c| (c, f))).collect::<Result<Vec<_>, _>>()?;
    let best = last.into_iter().min_by_key(|t| t.0);
    best.map(|t| t.1).ok_or_else(|| CompileError::Internal("no order of a function was tried".into()))
}

/// How much is tried for an allocation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Effort {
    Rough,
    Whole,
    /// It is the program's, and checkers are run over it.
    Checked,
}

/// Registers for a function, the moves gone over that they take, and long blocks allocated
/// anew.
fn allocated(func: &VFunc, tables: &Tables, registers: &Registers, level: u8, effort: Effort) -> Result<Allocated, CompileError> {
    let machine = &*tables.machine;
    let mut allocated = allocate::allocate(func, machine, registers, effort == Effort::Checked)?;
    if let (Some(memory), true) = (&tables.memory_forms, level > 0) {
        let clobbered = &registers.clobbered;
        let facts = &tables.facts;
        let cleaner = spills::Cleaner { func, machine, facts, memory, clobbered };
        cleaner.run(&mut allocated);
        let second = respill::Second { func, machine, facts, memory, registers };
        second.run(&mut allocated, &cleaner, effort >= Effort::Whole);
        if effort == Effort::Checked {
            second.check(&allocated)?;
        }
    }
    Ok(allocated)
}

/// What a machine file may say and the code generator does not know yet: a line
/// for each.
fn supported(m: &Machine) -> Result<(), CompileError> {
    let lacking = [
        (
            m.word_bits == 64 && m.endian == ciphermill_machine::Endian::Big,
            "word_bits: words of 64 bits are little-endian only; set endian to \"little\", or word_bits to 32",
        ),
        (
            m.word_bits == 64 && (m.issue.explicit || m.abi.windows.is_some()),
            "word_bits: words of 64 bits are not for bundles or register windows; set word_bits to 32, or issue.width to 1",
        ),
        (
            m.computes_narrow() && !m.memory.unaligned,
            "narrow: where instructions compute in 32 bits, accesses have to work at any address; set memory.unaligned to true, or narrow to \"signed\"",
        ),
        (
            !m.issue.interlock && m.abi.windows.is_some(),
            "issue.interlock = false: register windows need a pipeline that waits for operands; set it to true",
        ),
        (
            !m.issue.interlock && m.abi.link.is_none(),
            "issue.interlock = false: calls on an exposed pipeline need [abi.link]; add it, or set interlock to true",
        ),
        (
            m.issue.explicit && m.abi.windows.is_some(),
            "issue.width: bundles of several instructions are not made for machines with register windows; set it to 1",
        ),
        (
            m.issue.explicit && m.core.is_some(),
            "issue.width: a core that schedules at run time makes its own bundles; set it to 1, and the widths in [core]",
        ),
    ];
    match lacking.iter().find(|l| l.0) {
        Some((_, what)) => Err(CompileError::Unsupported(format!("machine {}: {what}", m.name))),
        None => Ok(()),
    }
}

/// How many of a function's first parameters are promised buffers of their own.
fn promised_buffers(module: &Module, id: FuncId, options: &Options) -> usize {
    let names = module.exports.iter().filter(|(_, f)| *f == id).map(|(name, _)| name);
    names.filter_map(|name| options.buffers.iter().find(|b| b.0 == *name)).map(|b| b.1).min().unwrap_or(0)
}

/// Functions that the module calls itself, or could by pointer: their callers
/// may give one buffer twice.
fn called(module: &Module) -> std::collections::BTreeSet<FuncId> {
    let insts = module.funcs.values().flat_map(|f| f.layout.iter().flat_map(|&b| &f.blocks[b].insts).map(|&i| f.insts[i].op));
    let direct = insts.filter_map(|op| if let ciphermill_ir::Op::Call(f) = op { Some(f) } else { None });
    direct.chain(module.system.func_refs.iter().map(|r| r.func)).collect()
}

/// Does some load or addition of the machine scale an index register? Where none
/// does, an index is better cut out of a word already scaled.
pub fn scales_index(machine: &Machine) -> bool {
    scales(&pattern::templates(machine))
}

fn scales(templates: &[pattern::Template]) -> bool {
    // A shift anywhere else than in a sum scales nothing.
    fn shifts(p: &pattern::Pat) -> bool {
        let sum = |p: &pattern::Pat| matches!(p, pattern::Pat::Bin(ciphermill_ir::BinOp::Add, ..));
        let shift = |p: &pattern::Pat| matches!(p, pattern::Pat::Bin(ciphermill_ir::BinOp::Shl, ..));
        graph::any_within(p, sum, shift)
    }
    templates.iter().any(|t| match &t.action {
        pattern::Action::Value(_, pattern::Pat::Load { addr, .. }) => shifts(addr),
        pattern::Action::Value(_, p @ pattern::Pat::Bin(ciphermill_ir::BinOp::Add, ..)) => shifts(p),
        _ => false,
    })
}

/// Does the machine divide 32-bit numbers, signed and unsigned?
pub fn divides(machine: &Machine) -> bool {
    divide(&pattern::templates(machine))
}

fn divide(templates: &[pattern::Template]) -> bool {
    use ciphermill_ir::BinOp::{DivS, DivU};
    let has = |op| templates.iter().any(|t| matches!(&t.action, pattern::Action::Value(_, pattern::Pat::Bin(o, ..)) if *o == op));
    has(DivU) && has(DivS)
}

/// Globals that a register holds: the C stack pointer first, then the others
/// that change, in their order.
fn pin_globals(module: &Module, machine: &Machine) -> Vec<(GlobalId, Reg)> {
    let mut list: Vec<GlobalId> =
        module.globals.iter().filter(|(_, g)| g.mutable && g.ty == Type::I32).map(|(id, _)| id).collect();
    list.sort_by_key(|&g| (module.globals[g].name.as_deref() != Some("__stack_pointer"), g));
    list.into_iter().zip(machine.abi.globals.iter().copied()).collect()
}

/// Room in the system area for arguments and results beyond the registers.
fn reserve_overflow(module: &mut Module, word_bits: u8) -> u32 {
    let words = |n: usize| n as u32;
    let most = module
        .funcs
        .values()
        .map(|f| words(f.sig.params.len().max(f.sig.results.len())))
        .chain(module.sigs.values().map(|s| 2 * words(s.params.len().max(s.results.len()))))
        .max()
        .unwrap_or(0);
    let at = module.system.bytes.len().next_multiple_of(8);
    module.system.bytes.resize(at + usize::from(word_bits / 8) * most as usize, 0);
    at as u32
}

/// Copies of the read-only segments in big-endian byte order.
fn copy_bytes(module: &mut Module) -> Vec<(u32, u32, u32)> {
    let mut out = Vec::new();
    for segment in module.data.iter().filter(|d| d.readonly) {
        let at = module.system.bytes.len().next_multiple_of(8);
        let len = segment.bytes.len().next_multiple_of(4);
        module.system.bytes.resize(at + len, 0);
        for (i, &b) in segment.bytes.iter().enumerate() {
            module.system.bytes[at + (i ^ 3)] = b;
        }
        out.push((segment.addr, segment.bytes.len() as u32, at as u32));
    }
    out
}

fn promises(module: &Module, options: &Options) -> HashMap<(FuncId, usize), u32> {
    let find = |(name, index, align): &(String, usize, u32)| Some(((module.export(name)?, *index), *align));
    options.aligned_params.iter().filter(|p| p.2.is_power_of_two()).filter_map(find).collect()
}

/// What is known of a function's parameters, with their places in memory.
fn placed(module: &Module, options: &Options, id: FuncId, promised: &[align::Low]) -> Vec<align::Low> {
    let mut low = promised.to_vec();
    for (name, index, modulus, residue) in &options.placed_params {
        if module.export(name) == Some(id) && modulus.is_power_of_two() {
            low.iter_mut().skip(*index).take(1).for_each(|l| *l = align::Low::congruent(*modulus, *residue));
        }
    }
    low
}

/// Does the function need a register window of its own?
fn wants_window(func: &VFunc, machine: &Machine, pinned: &[(GlobalId, Reg)]) -> bool {
    if machine.abi.windows.is_none() {
        return false;
    }
    let outs = liveness::live_out(func);
    let pressure = func.blocks.iter().enumerate().map(|(b, _)| liveness::pressure(func, b, &outs[b])).max().unwrap_or(0);
    let constants = func.blocks.iter().flat_map(|b| &b.insts).flat_map(|i| &i.ops);
    let constants: std::collections::BTreeSet<u64> =
        constants.filter_map(|o| if let vcode::VOp::Const(c) = o { Some(*c) } else { None }).collect();
    func.has_calls || pressure + constants.len().min(8) > registers(machine, false, pinned).allocatable.len()
}

fn registers(machine: &Machine, windowed: bool, pinned: &[(GlobalId, Reg)]) -> Registers {
    let abi = &machine.abi;
    let taken = |r: &Reg| pinned.iter().any(|p| p.1 == *r) || abi.scratch.contains(r);
    let leaf_only = abi.windows.is_some() && !windowed;
    let allocatable: Vec<Reg> = abi
        .allocatable
        .iter()
        .copied()
        .filter(|r| !taken(r) && !(leaf_only && abi.call_preserved.contains(r)))
        .collect();
    let keeps = |r: &Reg| abi.callee_saved.contains(r) || abi.call_preserved.contains(r);
    Registers {
        // Arguments may wait in registers that are not given away otherwise.
        clobbered: allocatable.iter().chain(&abi.args).chain(&abi.results).copied().filter(|r| !keeps(r)).collect(),
        callee_saved: abi.callee_saved.clone(),
        mov: (
            abi.ops.mov,
            machine.instrs[usize::from(abi.ops.mov.0)]
                .operands
                .iter()
                .map(|o| matches!(o.kind, ciphermill_machine::OperandKind::Reg { def: true, .. }))
                .collect(),
        ),
        jump: abi.ops.jump,
        nop: abi.ops.nop,
        allocatable,
    }
}

/// A leaf that opens no window finds its arguments where the caller put them.
fn without_window(func: &mut VFunc, machine: &Machine) {
    let abi = &machine.abi;
    for inst in func.blocks.iter_mut().flat_map(|b| &mut b.insts) {
        match inst.kind {
            vcode::VKind::Params => inst.fixed_defs.iter_mut().zip(&abi.args).for_each(|(d, &r)| d.1 = r),
            vcode::VKind::Return => inst.fixed_uses.iter_mut().zip(&abi.results).for_each(|(u, &r)| u.1 = r),
            _ => {}
        }
    }
}

fn schedule_virtual(func: &mut VFunc, machine: &Machine, facts: &Facts, registers: usize) -> Result<(), CompileError> {
    let outs = liveness::live_out(func);
    let base = machine.regs.len() as u32;
    for (b, out) in outs.iter().enumerate() {
        let block = &func.blocks[b];
        let last = block.insts.len() - 1;
        let nodes: Vec<_> = block.insts.iter().map(|i| facts.virtual_node(machine, i)).collect();
        debug_assert!(nodes[last].barrier);
        let live_out = |r: u32| r >= base && out.contains(vcode::VReg(r - base));
        let limit = schedule::Pressure { registers: registers.saturating_sub(1), values: base, live_out: &live_out, live_through: out.len() };
        let order = carried::order(func, b, &nodes, &limit, out);
        verified::order(&nodes, &order).map_err(|e| CompileError::Internal(format!("`{}`, block {b}: {e}", func.name)))?;
        let mut insts: Vec<_> = std::mem::take(&mut func.blocks[b].insts).into_iter().map(Some).collect();
        func.blocks[b].insts = order.into_iter().filter_map(|i| insts[i].take()).collect();
    }
    Ok(())
}
