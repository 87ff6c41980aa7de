//! The ways to run a module that are compared with the reference.

use crate::kind::KINDS;
use crate::transcript::{Call, Ending, Outcome, Transcript};
use ciphermill_codegen::CompileError;
use ciphermill_codegen::tables::Tables;
use ciphermill_interp::{Halt, Interp};
use ciphermill_ir::{Module, TrapCode, Type};
use ciphermill_sim::{SimOptions, Simulator, Stop};
use std::cell::RefCell;
use std::fmt;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

/// Operations the interpreter of the intermediate representation may execute.
const INTERP_FUEL: u64 = 40_000_000;
/// Instructions a simulated call may take.
const MAX_INSTRUCTIONS: u64 = 20_000_000;

/// A way to run a module other than the reference.
#[derive(Clone)]
pub enum Subject {
    /// Load, optimise at the level (None: not at all), interpret.
    Interp { level: Option<u8>, word_bits: u8, strict: bool },
    /// Load, optimise with all that unrolling has to offer, interpret.
    Unrolled { word_bits: u8, strict: bool },
    /// Load, optimise, generate code for a machine, simulate it.
    /// `name` has the extensions too; `every`: of so many modules one is run.
    Machine { name: String, tables: Arc<Tables>, how: How, every: u64 },
}

/// How a module is compiled for a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct How {
    pub level: u8,
    pub strict: bool,
    /// Loops are shaped for pipelining, as where a cipher is measured: conditions become
    /// selections, places in memory values, short loops straight code.
    pub shaped: bool,
    /// No loop gets a full search for its schedule.
    pub quick: bool,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let traps = if self.keeps_traps() { "" } else { ", traps not kept" };
        match self {
            Subject::Interp { level: None, .. } => write!(f, "interpreted as loaded"),
            Subject::Interp { level: Some(level), word_bits, .. } => {
                write!(f, "interpreted, level {level} for {word_bits} bits{traps}")
            }
            Subject::Unrolled { word_bits, .. } => write!(f, "interpreted, unrolled for {word_bits} bits{traps}"),
            Subject::Machine { name, how: How { level, shaped, quick, .. }, .. } => {
                let shaped = if *shaped { ", loops shaped" } else { "" };
                let quick = if *quick { ", quickly" } else { "" };
                write!(f, "{name}, level {level}{traps}{shaped}{quick}")
            }
        }
    }
}

/// Every level for words of 64 and 32 bits, with traps kept and not and with
/// loops unrolled, on the interpreter of the intermediate representation.
pub fn interpreted() -> Vec<Subject> {
    let mut subjects = vec![Subject::Interp { level: None, word_bits: 64, strict: true }];
    for level in 0..=2 {
        for word_bits in [64, 32] {
            subjects.push(Subject::Interp { level: Some(level), word_bits, strict: true });
        }
    }
    subjects.push(Subject::Interp { level: Some(2), word_bits: 32, strict: false });
    for (word_bits, strict) in [(32, false), (64, true)] {
        subjects.push(Subject::Unrolled { word_bits, strict });
    }
    subjects
}

/// The machines of the given names, with extensions behind plus signs
/// (`rv32+zba+zbb`), at every level, and at level 2 without keeping traps too; one that
/// schedules when compiling with loops shaped for it as well; one of narrow words without keeping traps alone. `ia32/4` is given one module of four.
///
/// # Errors
///
/// When a name is malformed, or a machine file or extension cannot be loaded; `root` is the folder
/// that holds `machines` and `extensions`.
pub fn simulated(root: &Path, names: &[&str]) -> Result<Vec<Subject>, String> {
    let mut subjects = Vec::new();
    for name in names {
        let (name, every) = name.split_once('/').unwrap_or((name, "1"));
        let every = every.parse().ok().filter(|&n| n > 0);
        let every: u64 =
            every.ok_or_else(|| format!("{name}: behind a slash stands of how many modules one is run"))?;
        let mut parts = name.split('+');
        let base = parts.next().unwrap_or_default();
        let with: Vec<String> = parts.map(str::to_string).collect();
        let machine = ciphermill_machine::load_from_dir(root, base, &with, &[], &[]).map_err(|e| e.to_string())?;
        let tables = Arc::new(Tables::new(Arc::new(machine)).map_err(|e| e.to_string())?);
        let ways = [(0, true, false), (1, true, false), (2, true, false), (2, false, false), (2, false, true)];
        // Words of less than 32 bits have no room for the checks that keep traps.
        let narrow = [(0, false, false), (1, false, false), (2, false, false)];
        let ways = if tables.narrow().is_some() { &narrow[..] } else { &ways[..] };
        for &(level, strict, shaped) in ways.iter().filter(|w| !w.2 || tables.machine.issue.explicit) {
            let how = How { level, strict, shaped, quick: false };
            subjects.push(Subject::Machine { name: name.to_string(), tables: tables.clone(), how, every });
        }
    }
    Ok(subjects)
}

/// The same ways, without a full search for the schedules of loops.
pub fn quickly(subjects: Vec<Subject>) -> Vec<Subject> {
    let quick = |s| match s {
        Subject::Machine { name, tables, how, every } => {
            Subject::Machine { name, tables, how: How { quick: true, ..how }, every }
        }
        other => other,
    };
    subjects.into_iter().map(quick).collect()
}

/// A run of the module as loaded that stops at an access which is not aligned
/// as the module states.
pub(crate) fn aligned_as_stated() -> Subject {
    Subject::Interp { level: None, word_bits: 64, strict: false }
}

impl Subject {
    /// Is the subject given the module of this number?
    pub fn takes(&self, number: u64) -> bool {
        match self {
            // As many numbers one after another as there are kinds have a module of each.
            Subject::Machine { every, .. } => (number / KINDS).is_multiple_of(*every),
            Subject::Interp { .. } | Subject::Unrolled { .. } => true,
        }
    }

    /// Bytes of memory whose addresses the subject has: those of two bytes where words are narrow.
    pub(crate) fn most_memory(&self) -> usize {
        match self {
            Subject::Machine { tables, .. } if tables.narrow().is_some() => 1 << 16,
            _ => usize::MAX,
        }
    }

    /// True when the subject promises every trap of the module. Otherwise it
    /// also relies on the alignments that the module states.
    pub(crate) fn keeps_traps(&self) -> bool {
        match self {
            Subject::Interp { strict, .. } | Subject::Unrolled { strict, .. } => *strict,
            Subject::Machine { how, .. } => how.strict,
        }
    }

    /// Run a script on a loaded module.
    ///
    /// # Errors
    ///
    /// When a stage of the compiler fails.
    pub fn run(&self, source: &Source, script: &[Call]) -> Result<Transcript, String> {
        match self {
            Subject::Interp { level: None, strict, .. } => on_interp(source, source.module, 64, *strict, script),
            Subject::Interp { level: Some(level), word_bits, strict } => {
                let options = ciphermill_opt::Options {
                    level: *level,
                    strict_traps: *strict,
                    word_bits: *word_bits,
                    ..Default::default()
                };
                on_interp(source, &*source.optimised(options)?, *word_bits, *strict, script)
            }
            Subject::Unrolled { word_bits, strict } => {
                let options = ciphermill_opt::Options {
                    strict_traps: *strict,
                    word_bits: *word_bits,
                    unroll: unroll(source.module),
                    ..Default::default()
                };
                on_interp(source, &*source.optimised(options)?, *word_bits, *strict, script)
            }
            Subject::Machine { tables, how, .. } => on_machine(source, tables, *how, script),
        }
    }
}

/// A loaded module, and what the optimiser has made of it: ways that differ
/// only behind the optimiser share its output.
pub struct Source<'a> {
    module: &'a Module,
    optimised: RefCell<Vec<(ciphermill_opt::Options, Rc<Module>)>>,
}

impl<'a> Source<'a> {
    pub fn new(module: &'a Module) -> Source<'a> {
        Source { module, optimised: RefCell::default() }
    }

    /// The optimiser's output, verified.
    fn optimised(&self, options: ciphermill_opt::Options) -> Result<Rc<Module>, String> {
        if let Some((_, module)) = self.optimised.borrow().iter().find(|(o, _)| *o == options) {
            return Ok(module.clone());
        }
        let mut module = self.module.clone();
        ciphermill_opt::optimise(&mut module, &options).map_err(|e| e.to_string())?;
        ciphermill_ir::verify::verify(&module).map_err(|e| format!("does not verify: {e}"))?;
        let module = Rc::new(module);
        self.optimised.borrow_mut().push((options, module.clone()));
        Ok(module)
    }
}

/// Everything at once. No run says how often loops iterate; a guess does as well
/// for a version that may never run.
fn unroll(module: &Module) -> ciphermill_opt::Unroll {
    let guess = |site: ciphermill_opt::LoopSite| {
        [2, 3, 8].map(|trips| ciphermill_opt::LoopTrips { first: site.first, last: site.last, trips })
    };
    ciphermill_opt::Unroll {
        full_budget: 2000,
        jam: 2,
        loop_size: 50,
        inline_budget: 200,
        profile: ciphermill_opt::loop_sites(module).into_iter().flat_map(guess).collect(),
        steady: steady(module),
        varied: offsets(module).filter(|&loc| varies(loc)).collect(),
        keep_loads: true,
        promote: true,
        if_convert: 12,
        meld: 24,
        only: Vec::new(),
    }
}

/// What a loop is shaped by before it is pipelined, as far as no run has to tell.
fn shaping() -> ciphermill_opt::Unroll {
    ciphermill_opt::Unroll {
        full_budget: 100,
        loop_size: 50,
        inline_budget: 200,
        keep_loads: true,
        promote: true,
        if_convert: 12,
        meld: 24,
        ..Default::default()
    }
}

/// Where the instructions of a module stand.
fn offsets(module: &Module) -> impl Iterator<Item = u32> + '_ {
    module.funcs.values().flat_map(|f| f.layout.iter().flat_map(|&b| &f.blocks[b].insts).map(|&i| f.insts[i].loc))
}

/// Is a condition taken to be true at times and false at others?
fn varies(loc: u32) -> bool {
    loc % 4 == 1
}

/// The other conditions, taken to be true or false as it falls out.
fn steady(module: &Module) -> Vec<ciphermill_opt::Steady> {
    let always = offsets(module).filter(|&loc| !varies(loc));
    always.map(|loc| ciphermill_opt::Steady { loc, value: loc % 3 }).collect()
}

/// Run what has become of the source on the interpreter.
fn on_interp(
    source: &Source,
    module: &Module,
    word_bits: u8,
    strict: bool,
    script: &[Call],
) -> Result<Transcript, String> {
    let original = source.module;
    let mut interp = Interp::new(module, INTERP_FUEL);
    interp.check_alignment = !strict;
    let end = |halt| match halt {
        Halt::Trap(TrapCode::StackOverflow) | Halt::Fuel => Ending::Exhausted,
        Halt::Trap(code) => Ending::Trap(code),
        Halt::Broken(what) => Ending::Broken(what),
    };
    let instantiation = interp.start().err().map(end);
    let mut outcomes = Vec::new();
    if instantiation.is_none() {
        for call in script {
            let id = module.export(&call.export).ok_or_else(|| lost(call))?;
            let outcome = interp.call(id, &split(&call.sig.params, &call.args, word_bits));
            outcomes.push(outcome.map(|r| join(&call.sig.results, &r, word_bits)).map_err(end));
        }
    }
    // The lowering to 32 bits splits a global within its slot of 8 bytes.
    let globals = original.exported_globals.iter();
    let globals = globals.map(|(name, id)| (name.clone(), interp.global(*id) & source.module.globals[*id].ty.mask()));
    Ok(Transcript { instantiation, outcomes, globals: globals.collect(), memory: interp.memory })
}

/// What the optimiser is told for a machine.
pub fn optimiser(tables: &Tables, level: u8, strict_traps: bool) -> ciphermill_opt::Options {
    let index_form = if tables.scales_index() {
        ciphermill_opt::IndexForm::ExtractThenScale
    } else {
        ciphermill_opt::IndexForm::ShiftThenMask
    };
    ciphermill_opt::Options {
        level,
        strict_traps,
        word_bits: tables.machine.word_bits,
        software_division: !tables.divides(),
        index_form,
        ..Default::default()
    }
}

/// Globals are not shown, since a machine may keep them in registers; what a
/// function reads of them is.
fn on_machine(source: &Source, tables: &Tables, how: How, script: &[Call]) -> Result<Transcript, String> {
    let (machine, word_bits) = (&*tables.machine, tables.machine.word_bits);
    let How { level, strict, shaped, quick } = how;
    let mut options = optimiser(tables, level, strict);
    if shaped {
        options.unroll = shaping();
    }
    let module = source.optimised(options)?;
    let options = ciphermill_codegen::Options { level, strict_traps: strict, quick, ..Default::default() };
    let program = match ciphermill_codegen::compile_with(&module, tables, &options) {
        // What such machines cannot have says nothing of what they have.
        Err(CompileError::Unsupported(_)) if tables.narrow().is_some() => return Ok(Transcript::exhausted()),
        made => made.map_err(|e| format!("does not compile: {e}"))?,
    };
    let options = SimOptions {
        strict_addresses: strict,
        caches: level == 2,
        max_instructions: MAX_INSTRUCTIONS,
        ..SimOptions::default()
    };
    let mut simulator = Simulator::new(Arc::new(program), options).map_err(|e| format!("does not start: {e}"))?;
    let end = |stop: Stop| match stop {
        Stop::Trap { code: TrapCode::StackOverflow, .. } | Stop::StackOverflow | Stop::OutOfFuel => Ending::Exhausted,
        Stop::Trap { code, .. } => Ending::Trap(code),
        Stop::PromiseBroken(_) | Stop::Misaligned(_) | Stop::Internal(_) => Ending::Broken(stop.to_string()),
    };
    let instantiation = simulator.start().err().map(end);
    let mut outcomes: Vec<Outcome> = Vec::new();
    if instantiation.is_none() {
        for call in script {
            let func = simulator.program().export(&call.export).ok_or_else(|| lost(call))?;
            let args = if machine.computes_narrow() { call.args.clone() } else { signed(&call.sig.params, &call.args) };
            let outcome = simulator.call(func, &split(&call.sig.params, &args, word_bits));
            outcomes.push(outcome.map(|r| join(&call.sig.results, &r, word_bits)).map_err(end));
        }
    }
    Ok(Transcript { instantiation, outcomes, globals: Vec::new(), memory: simulator.memory().to_vec() })
}

fn lost(call: &Call) -> String {
    format!("the export \"{}\" is gone", call.export)
}

/// Arguments as compiled code expects them on most machines: with the signs of 32-bit values
/// extended, which those of 32-bit words never see.
fn signed(types: &[Type], values: &[u64]) -> Vec<u64> {
    types.iter().zip(values).map(|(ty, &v)| ciphermill_ir::ops::sext(v, ty.bits()) as u64).collect()
}

/// Arguments or results as a machine of that word width takes them: 64-bit
/// values on 32-bit machines are two words, the low one first.
pub fn split(types: &[Type], values: &[u64], word_bits: u8) -> Vec<u64> {
    let mut words = Vec::new();
    for (ty, &value) in types.iter().zip(values) {
        if *ty == Type::I64 && word_bits == 32 {
            words.extend([value & 0xFFFF_FFFF, value >> 32]);
        } else {
            words.push(value);
        }
    }
    words
}

/// The inverse of [`split`].
pub fn join(types: &[Type], words: &[u64], word_bits: u8) -> Vec<u64> {
    let mut words = words.iter().copied();
    let mut next = || words.next().unwrap_or(0);
    let value = |ty: &Type| match (ty, word_bits) {
        (Type::I64, 32) => {
            let low = next() & 0xFFFF_FFFF;
            low | next() << 32
        }
        _ => next() & ty.mask(),
    };
    types.iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joining_undoes_splitting() {
        let (types, values) = ([Type::I64, Type::I32, Type::I64], [0x1234_5678_9ABC_DEF0, 7, u64::MAX]);
        assert_eq!(split(&types, &values, 32), [0x9ABC_DEF0, 0x1234_5678, 7, 0xFFFF_FFFF, 0xFFFF_FFFF]);
        for bits in [32, 64] {
            assert_eq!(join(&types, &split(&types, &values, bits), bits), values);
        }
    }
}
