//! One way through: module bytes and machine texts in, a program out.

use crate::error::MeasureError;
use crate::kinds::INTERFACE;
use crate::profile::Profile;
use crate::request::{MachineRequest, Request, Unrolling};
use crate::shape::{Kernel, Name, Shape};
use crate::shared::{self, Compiled, Described};
use ciphermill_codegen::Search;
use ciphermill_codegen::tables::Tables;
use ciphermill_ir::Module;
use ciphermill_machine::load::is_path;
use ciphermill_machine::{InstrKind, Machine, NamedText};
use ciphermill_opt::Unroll;
use ciphermill_program::exact::Answer;
use ciphermill_program::kept_schedules::KeptSchedule;
use std::sync::Arc;

/// Name of the file of identities, which stands among the machines.
const RULES: &str = "rules";

/// Read and check a module.
pub fn load(wasm: &[u8]) -> Result<Module, MeasureError> {
    ciphermill_load::load(wasm).map_err(MeasureError::load)
}

/// Build a machine from its texts.
pub fn machine(request: &MachineRequest) -> Result<Machine, MeasureError> {
    let named = |files: &[crate::request::TextFile], name: &str| {
        files.iter().find(|f| stem(&f.path) == name).map(|f| NamedText::new(&f.path, &f.text))
    };
    let rules = named(&request.library, RULES)
        .ok_or_else(|| MeasureError::input("machines/rules.toml, the file of identities, is missing"))?;
    let extensions = request.with.iter().map(|name| {
        named(&request.extensions, name).ok_or_else(|| {
            let names: Vec<&str> = request.extensions.iter().map(|f| stem(&f.path)).collect();
            MeasureError::input(format!(
                "--with {name}: there is no such extension; there are {}; your own is a path that ends in .toml",
                names.join(", ")
            ))
        })
    });
    let settings = request.set.iter().map(|setting| match setting.split_once('=') {
        Some((path, value)) => Ok((path.trim().to_owned(), value.trim().to_owned())),
        None => Err(MeasureError::input(format!("--set {setting}: write PATH=VALUE, for instance issue.width=4"))),
    });
    let parents = |name: &str| match is_path(name) {
        true => request.library.iter().find(|f| f.path == name).map(|f| NamedText::new(&f.path, &f.text)),
        false => named(&request.library, name),
    };
    // Extensions of the user's own stand among the files beside the machine's.
    let own = request.library.iter().filter(|f| f.text.contains("[extension]"));
    let vocabulary =
        || request.extensions.iter().chain(own.clone()).map(|f| NamedText::new(&f.path, &f.text)).collect();
    let request = ciphermill_machine::load::Request {
        machine: NamedText::new(&request.file.path, &request.file.text),
        parents: &parents,
        vocabulary: &vocabulary,
        extensions: extensions.collect::<Result<_, _>>()?,
        without: request.without.clone(),
        settings: settings.collect::<Result<_, _>>()?,
        rules,
    };
    ciphermill_machine::load::load(&request).map_err(MeasureError::input)
}

/// A machine to compile for.
pub fn described(request: &MachineRequest) -> Result<Arc<Described>, MeasureError> {
    let files = |files: &[crate::request::TextFile]| {
        let hashes = files.iter().flat_map(|f| shared::key(&[f.path.as_bytes(), f.text.as_bytes()]));
        shared::key(&[&hashes.collect::<Vec<u8>>()])
    };
    let asked = format!("{:?}", (&request.with, &request.without, &request.set));
    let own = std::slice::from_ref(&request.file);
    let key = shared::key(&[&files(own), &files(&request.library), &files(&request.extensions), asked.as_bytes()]);
    shared::DESCRIBED.get(key, || {
        let tables = Tables::new(Arc::new(machine(request)?)).map_err(refused)?;
        Ok(Described { tables, key })
    })
}

/// The measured function, and how its loops are unrolled and jammed.
#[derive(Clone, Copy, Debug)]
pub struct UnrolledDriver<'a> {
    /// Of what it is given.
    pub shape: &'a Shape,
    pub unrolling: Unrolling,
    /// Size of the context.
    pub ctx_bytes: u32,
    pub profile: &'a Profile,
}

/// Instructions that an unrolled loop may come to.
const UNROLL_BUDGET: u32 = 4000;
/// The same where only short loops are. A loop around of seven turns is one, so that what it counts with is a constant
/// in the loops inside, whose accesses then are so many bytes apart: in a number-theoretic transform.
const UNROLL_SHORT_BUDGET: u32 = 400;
/// And a function that is inlined: much of one may go where it is told by a constant what to do,
/// to encrypt or to decrypt.
const INLINE_BUDGET: u32 = 12_000;
/// Instructions of a branch that become selections.
const IF_CONVERT: u32 = 24;
/// The same with rotating registers: a loop without branches can be pipelined in as many stages as its
/// critical path needs, which is worth more than the arm not taken costs.
const IF_CONVERT_ROTATING: u32 = 32;

/// Instructions that one side made of two may have more than the longer of them, where loops of one block
/// are pipelined. In HC-128 by steps, whose step has about a dozen more so, a block of sixteen steps is straight code
/// then, of which a loop is made for each of its tables.
const MELD: u32 = 24;

impl UnrolledDriver<'_> {
    /// Name of the export.
    fn driver(&self) -> &str {
        &self.shape.measured.export
    }
}

/// How long schedules are searched for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SearchEffort {
    /// No search: for comparing variants.
    Quick,
    /// A short search: for comparing variants that gain differently from a cluster assignment.
    Unrefined,
    /// For the variant that is measured.
    Full,
}

/// How a module is compiled.
#[derive(Clone, Copy, Debug)]
pub struct How<'a> {
    /// Optimisation level, 0 to 2.
    pub level: u8,
    /// Words are read and written where the buffers' alignment allows it, whatever
    /// the C source says.
    pub aligned: bool,
    /// The export that is measured: the loops of others need no search. None: every function's are searched.
    pub measured: Option<&'a str>,
    /// Exports that a run calls: what only others reach takes the first schedule that comes. Empty: all.
    pub called: &'a [Name],
    /// One function with its loops unrolled; None: no loop is.
    pub unrolled: Option<&'a UnrolledDriver<'a>>,
    /// What an exact scheduler has answered so far, if one is asked.
    pub exact: Option<&'a [Answer]>,
    /// Schedules that were found before.
    pub kept_schedules: &'a [KeptSchedule],
    /// A longer search for others, to be kept.
    pub search: Option<Search>,
    /// Budget of a search, as a multiple of the usual one.
    pub patience: u32,
    /// What is left undone for the sake of small code; None: nothing.
    pub lean: Option<Lean>,
    pub effort: SearchEffort,
    /// No selection becomes a branch.
    pub constant_time: bool,
    /// The function that a manifest describes, if it does.
    pub kernel: Option<&'a Kernel>,
}

impl How<'_> {
    /// As a request has it, with no loop unrolled.
    pub fn of(request: &Request) -> How<'_> {
        let Request { level, aligned, search, patience, schedules, constant_time, .. } = request;
        let exact = request.exact.as_ref().map(|e| e.answers.as_slice());
        How {
            level: *level,
            aligned: *aligned,
            measured: None,
            called: &[],
            unrolled: None,
            exact,
            kept_schedules: schedules,
            search: search.map(|s| s.into()),
            patience: *patience,
            lean: None,
            effort: SearchEffort::Full,
            constant_time: *constant_time,
            kernel: request.kernel.as_ref(),
        }
    }
}

/// What makes code fast and may make it large.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lean {
    /// Functions of more instructions are inlined only where they are called once.
    pub inline_up_to: u32,
    /// What does not change in a loop is worked out before it.
    pub hoist: bool,
    /// Loops are software-pipelined where the machine schedules at compile time.
    pub pipelined: bool,
    /// Most instructions of straight code that issue together; 0: as many as fit.
    pub at_once: usize,
}

/// Optimise a module for a machine and generate its code; `origin` is the hash of the
/// module's bytes.
pub fn compile(
    module: &Module,
    origin: &shared::Key,
    described: &Described,
    how: &How<'_>,
) -> Result<Arc<Compiled>, MeasureError> {
    let (unrolled, tables) = (how.unrolled, &described.tables);
    let options = optimising(tables, how);
    let mut made = shared::key(&[origin, format!("{options:?}").as_bytes()]);
    let mut module = shared::OPTIMISED.get(made, || {
        let mut module = module.clone();
        ciphermill_opt::optimise(&mut module, &options).map_err(MeasureError::internal)?;
        Ok(module)
    })?;
    if unrolled.is_some_and(|unrolled| unrolled.unrolling.sums) {
        let mut shorter = (*module).clone();
        // Where no sum is there sooner it is the same program.
        if ciphermill_opt::shorten_sums(&mut shorter, &options) {
            made = shared::key(&[&made, b"sums"]);
            module = Arc::new(shorter);
        }
    }
    let context_at = unrolled.and_then(|unrolled| context_at(&module, tables, unrolled.driver()));
    let mut options = generation(&tables.machine, how);
    options.placed_params =
        unrolled.iter().zip(context_at).map(|(unrolled, at)| (unrolled.driver().to_owned(), 0, at.0, at.1)).collect();
    // A machine that schedules at run time has one program for both directions and all sizes of keys.
    let compiled = shared::key(&[&made, &described.key, format!("{options:?}").as_bytes()]);
    shared::COMPILED.get(compiled, || {
        let program = ciphermill_codegen::compile_with(&module, tables, &options).map_err(refused)?;
        Ok(Compiled { program, context_at })
    })
}

/// Optimise a module for a machine: the first half of [`compile`].
pub fn optimise(module: &mut Module, tables: &Tables, how: &How<'_>) -> Result<(), MeasureError> {
    ciphermill_opt::optimise(module, &optimising(tables, how)).map_err(MeasureError::internal)
}

/// How a module is optimised for a machine.
fn optimising(tables: &Tables, how: &How<'_>) -> ciphermill_opt::Options {
    let machine = &*tables.machine;
    let unrolled = how.unrolled;
    let plain = ciphermill_opt::Options::default();
    let meld = if machine.issue.explicit { MELD } else { 0 };
    let branches = Unroll { meld, ..Unroll::default() };
    let unroll = unrolled.map_or(branches, |unrolled| Unroll {
        full_budget: if unrolled.unrolling.short { UNROLL_SHORT_BUDGET } else { UNROLL_BUDGET },
        jam: unrolled.unrolling.jam,
        loop_size: if machine.issue.explicit { loop_size(machine) } else { 0 },
        inline_budget: INLINE_BUDGET,
        profile: unrolled.profile.trips.clone(),
        steady: unrolled.profile.steady.clone(),
        varied: unrolled.profile.varied.clone(),
        keep_loads: true,
        promote: true,
        if_convert: if machine.abi.rotation.is_some() { IF_CONVERT_ROTATING } else { IF_CONVERT },
        meld,
        only: vec![unrolled.driver().to_owned()],
    });
    // The buffers never overlap, and stand behind the module's own memory.
    let apart = |unrolled: &UnrolledDriver<'_>| (unrolled.driver().to_owned(), unrolled.shape.measured.pointers());
    let context = |unrolled: &UnrolledDriver<'_>| (unrolled.driver().to_owned(), 0, unrolled.ctx_bytes);
    let with_context = unrolled.filter(|unrolled| takes_context(unrolled.driver()));
    ciphermill_opt::Options {
        level: how.level,
        strict_traps: false,
        disable: if how.lean.is_some_and(|l| !l.hoist) { vec!["licm"] } else { Vec::new() },
        inline_up_to: how.lean.map_or(plain.inline_up_to, |l| l.inline_up_to),
        word_bits: machine.word_bits,
        software_division: !tables.divides(),
        index_form: if tables.scales_index() {
            ciphermill_opt::IndexForm::ExtractThenScale
        } else {
            ciphermill_opt::IndexForm::ShiftThenMask
        },
        disjoint_params: unrolled.map(apart).into_iter().collect(),
        buffer_bytes: with_context.map(context).into_iter().collect(),
        no_buffer_at_zero: unrolled.is_some(),
        unroll,
    }
}

/// Instructions that a loop should have: what a machine issues from one turn to the next, no branch of which comes sooner
/// than its delay and two cycles. A copying loop of ML-KEM on the C64x takes 14 cycles a word without it.
fn loop_size(machine: &Machine) -> u32 {
    let delays = machine.instrs.iter().filter(|i| i.kind == InstrKind::Branch).map(|i| u32::from(i.delay_slots));
    (delays.max().unwrap_or(0) + 2) * u32::from(machine.issue.width)
}

/// How code is generated: the second half.
pub fn generation(machine: &Machine, how: &How<'_>) -> ciphermill_codegen::Options {
    let How { unrolled, lean, .. } = *how;
    // Where code is to be small, no function is worth the effort, nor copies of its
    // tables.
    let focus = match lean {
        Some(_) => Some(String::new()),
        None => unrolled.map(|unrolled| unrolled.driver().to_owned()),
    };
    // On a machine that schedules at compile time, a compiler is told of the
    // alignment of buffers (by `_nassert` and the like); elsewhere code is made
    // as from the C source alone, unless the request says otherwise.
    ciphermill_codegen::Options {
        level: how.level,
        strict_traps: false,
        aligned_params: aligned_params(how.kernel),
        word_buffers: how.aligned || machine.issue.explicit,
        throughput: unrolled.is_some_and(|unrolled| unrolled.unrolling.throughput),
        constant_time: how.constant_time,
        plain_loops: lean.is_some_and(|lean| !lean.pipelined),
        at_once: lean.map_or(0, |lean| lean.at_once),
        focus,
        searched: how.measured.filter(|_| machine.issue.explicit).map(str::to_owned),
        called: how.called.iter().filter(|_| machine.issue.explicit).map(|name| name.to_string()).collect(),
        quick: how.effort == SearchEffort::Quick,
        longest: unrolled.is_some_and(|unrolled| unrolled.unrolling.jam > 1),
        unrefined: how.effort == SearchEffort::Unrefined,
        buffers: buffers(how.kernel),
        exact: how.exact.map(<[Answer]>::to_vec),
        kept_schedules: how.kept_schedules.to_vec(),
        search: how.search,
        witness: None,
        patience: how.patience,
        placed_params: Vec::new(),
    }
}

/// What the code generator could not do, laid at the right door.
pub fn refused(e: ciphermill_codegen::CompileError) -> MeasureError {
    match e {
        ciphermill_codegen::CompileError::Internal(_) => MeasureError::internal(e),
        _ => MeasureError::input(e),
    }
}

/// Where the context should stand: for its tables to begin at multiples of their
/// size where loads put base and index side by side; for the border between two
/// blocks of memory to divide its tables, or in one block where it has none, the modulus then
/// the size of all blocks.
fn context_at(module: &Module, tables: &Tables, driver: &str) -> Option<(u32, u32)> {
    let machine = &*tables.machine;
    if !takes_context(driver) {
        return None;
    }
    if ciphermill_select::aligned::joins(&tables.matcher.templates) {
        return ciphermill_select::aligned::context(&module.funcs[module.export(driver)?])
            .filter(|at| at.1.is_multiple_of(BUFFER_ALIGN));
    }
    let banks = machine.memory.banks.as_ref().filter(|b| b.blocks > 1 && !machine.issue.interlock)?;
    let size = banks.blocks.checked_mul(banks.block_bytes).filter(|s| s.is_power_of_two())?;
    let func = &module.funcs[module.export(driver)?];
    let at = match ciphermill_select::banks::border(func) {
        Some(border) => banks.block_bytes.wrapping_sub(border) & (size - 1),
        None => ciphermill_select::banks::beside(module, func, banks)? * banks.block_bytes,
    };
    at.is_multiple_of(BUFFER_ALIGN).then_some((size, at))
}

/// Alignment in bytes of every buffer handed to a cipher; the plan keeps it
/// (its buffers stand on boundaries of 64) and the simulator checks it.
pub const BUFFER_ALIGN: u32 = 8;

/// Is this a function of the C interface whose first parameter is the context?
pub fn takes_context(export: &str) -> bool {
    INTERFACE.iter().any(|f| f.export == export && f.context)
}

fn aligned_params(kernel: Option<&Kernel>) -> Vec<(String, usize, u32)> {
    let declared = INTERFACE.iter().flat_map(|f| (0..f.pointers).map(|i| (f.export.to_owned(), i, BUFFER_ALIGN)));
    let own =
        kernel.into_iter().flat_map(|k| k.alignments().into_iter().map(|(i, align)| (k.function.clone(), i, align)));
    declared.chain(own).collect()
}

/// The buffers of a plan never overlap: how many pointers each function takes first.
fn buffers(kernel: Option<&Kernel>) -> Vec<(String, usize)> {
    let declared = INTERFACE.iter().filter(|f| f.pointers > 0).map(|f| (f.export.to_owned(), f.pointers));
    let first = |k: &Kernel| k.alignments().iter().enumerate().take_while(|(n, (i, _))| n == i).count();
    declared.chain(kernel.map(|k| (k.function.clone(), first(k)))).collect()
}

/// File name without folder and ending.
fn stem(path: &str) -> &str {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    name.strip_suffix(".toml").unwrap_or(name)
}
