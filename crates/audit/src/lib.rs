//! Does the time a cipher takes depend on its secrets?
//!
//! Three things make time depend on data, on nearly every processor: a
//! conditional branch, the address of a load or store (through a cache), and a
//! division. [`audit`] runs a cipher's module and reports every place where
//! key, IV, message or anything computed from them decides one of the three.
//!
//! # How
//!
//! The module is loaded as for a measurement, left unoptimised, and run by an
//! interpreter ([`machine`]) that carries, beside every word, a mask of the
//! bits that depend on secrets ([`taint`]). The bytes of key, IV and message
//! are secret; their lengths, all pointers, and the module's own constants are
//! public. The context begins public and becomes secret byte by byte as the
//! key set-up writes to it, so that a round count kept there stays public.
//! Line tables ([`lines`]) turn module offsets into source lines. This is the
//! method of ctgrind (A. Langley, 2010) and TIMECOP, on WebAssembly instead of
//! the host's code.
//!
//! # Machine code
//!
//! What a code generator makes of the module is another matter: it may turn a
//! selection into a branch, and a machine may take its time over a division.
//! [`tracker`] follows secrets through a program of machine code while the
//! simulator executes it, by the semantics of the machine file ([`semantics`]);
//! [`code`] says what was found. What counts there: conditional branches,
//! addresses, targets of jumps through registers, loads and stores that a secret
//! predicate decides about, and operands of which the machine file says that an
//! instruction's time varies with them. Crate `measure` makes the runs, because
//! it knows which program is measured and by which calls.
//!
//! # What a clean verdict means
//!
//! It is a proof for the lengths that were run, not a sample. If no branch of
//! a run depends on a secret, the program takes the same path for every other
//! secret of the same lengths; and if no address does either, it reads the
//! same places. The masks then are right for all of these runs at once, because
//! every rule of [`taint`] keeps a clear bit equal for all values of the set
//! ones. So what was seen once is what always happens. Lengths are all of the
//! manifest's key and IV sizes, and messages that begin, end and continue
//! inside and at the edges of blocks.
//!
//! # What it does not say
//!
//! - **Findings are a lower bound.** After a branch on a secret the run follows
//!   the side that its concrete values choose; the other side is seen only if
//!   another run takes it, and what is assigned on one side only is not called
//!   secret for that. Four different sets of secrets are tried.
//!   [`Report::reached`] says how much of the code was seen.
//! - **Masks are an upper bound.** `x ^ x` of a secret is called secret, and
//!   so is every bit of a sum above the lowest secret one. A finding can be
//!   false in principle.
//! - **It is about the module, or about one machine's code.** A `select` is not
//!   a branch in WebAssembly; a code generator may make one of it. In the module
//!   every division counts, and multiplication and shifts by a secret amount are
//!   taken to have a constant time; in machine code what the machine file says.
//! - **Nothing is said of speculation**: what a core does ahead of a branch that
//!   it guessed wrong, and takes back.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod code;
pub mod frames;
pub mod lines;
mod machine;
mod masks;
mod report;
pub mod semantics;
pub mod taint;
pub mod tracker;

pub use report::{Finding, Kind, Report};

use ciphermill_ir::{FuncId, Module, Op};
use lines::Lines;
use machine::{Halt, Machine, Site};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use taint::Word;

/// Operations before a run is given up, if nobody says otherwise: some seconds.
const LIMIT: u64 = 200_000_000;

/// Why there is no report.
#[derive(thiserror::Error, Debug)]
pub enum AuditError {
    #[error("{0}")]
    Load(#[from] ciphermill_load::LoadError),
    #[error("{0}")]
    Optimise(ciphermill_opt::OptError),
    #[error("the module does not export {0}, so there is nothing to audit")]
    Missing(String),
    #[error("{export} takes {found} parameters, and is called with {expected}; declare it as ciphermill.h does")]
    Signature { export: String, found: usize, expected: usize },
    #[error("{export}: function {function:?} stopped with a trap ({code}); run the cipher to see where")]
    Trap { export: String, function: String, code: String },
    #[error(
        "{export}: function {function:?} was still running at the limit of {limit} operations; it may be slow, or never \
         end: give it more with --limit {}, or audit one key size with --key-bits", limit.saturating_mul(10)
    )]
    Endless { export: String, function: String, limit: u64 },
}

/// Calls on a fresh instance.
#[derive(Clone, Debug)]
pub struct Run {
    /// Bytes of memory that have to exist.
    pub memory: u32,
    /// Bytes that stand at addresses before the first call; all are secret.
    pub secrets: Vec<(u32, Vec<u8>)>,
    /// Exports with their arguments, which are public.
    pub calls: Vec<(Arc<str>, Vec<u64>)>,
}

/// Audit a module by some runs, each of which may take `limit` operations.
///
/// # Errors
/// When the bytes are no module, lack an export, or a run does not end.
pub fn audit(wasm: &[u8], runs: &[Run], limit: Option<u64>) -> Result<Report, AuditError> {
    let mut module = ciphermill_load::load(wasm)?;
    let options =
        ciphermill_opt::Options { level: 0, strict_traps: true, word_bits: 64, ..ciphermill_opt::Options::default() };
    ciphermill_opt::optimise(&mut module, &options).map_err(AuditError::Optimise)?;
    let mut auditor = Auditor {
        module: &module,
        noted: BTreeMap::new(),
        reached: BTreeSet::new(),
        entered: BTreeSet::new(),
        runs: 0,
        limit: limit.unwrap_or(LIMIT),
    };
    for run in runs {
        auditor.run(run)?;
    }
    Ok(auditor.report(&Lines::read(wasm)))
}

struct Auditor<'a> {
    module: &'a Module,
    noted: BTreeMap<(Site, Kind), u64>,
    reached: BTreeSet<(FuncId, ciphermill_ir::Inst)>,
    entered: BTreeSet<FuncId>,
    runs: u32,
    /// Operations of a run.
    limit: u64,
}

impl Auditor<'_> {
    fn call(&self, machine: &mut Machine<'_>, export: &str, args: &[u64]) -> Result<(), AuditError> {
        let id = self.module.export(export).ok_or_else(|| AuditError::Missing(export.to_owned()))?;
        let found = self.module.funcs[id].sig.params.len();
        if found != args.len() {
            return Err(AuditError::Signature { export: export.to_owned(), found, expected: args.len() });
        }
        let args: Vec<Word> = args.iter().map(|&a| Word::public(a)).collect();
        machine.call(id, &args).map(drop).map_err(|halt| self.stopped(export, halt))
    }

    fn stopped(&self, export: &str, halt: Halt) -> AuditError {
        let export = export.to_owned();
        match halt {
            Halt::Trap(code, function) => AuditError::Trap { export, function, code: format!("{code:?}") },
            Halt::Endless(function) => AuditError::Endless { export, function, limit: self.limit },
        }
    }

    fn run(&mut self, run: &Run) -> Result<(), AuditError> {
        let mut machine = Machine::new(self.module, run.memory, self.limit);
        if let Some(start) = self.module.start {
            machine.call(start, &[]).map_err(|halt| self.stopped("the start function", halt))?;
        }
        for (at, bytes) in &run.secrets {
            machine.place(*at, bytes, true);
        }
        for (export, args) in &run.calls {
            self.call(&mut machine, export, args)?;
        }
        for (&site, times) in &machine.noted {
            *self.noted.entry(site).or_insert(0) += times;
        }
        self.reached.extend(machine.reached);
        self.entered.extend(machine.entered);
        self.runs += 1;
        Ok(())
    }

    fn report(&self, lines: &Lines) -> Report {
        let findings: Vec<Finding> = self
            .noted
            .iter()
            .map(|(&(site, kind), &times)| {
                let (file, line) = lines.find(site.loc).map(|(file, line)| (file.to_owned(), line)).unzip();
                Finding {
                    kind,
                    function: self.module.funcs[site.func].name.clone(),
                    offset: site.loc,
                    file,
                    line,
                    times,
                    instruction: None,
                }
            })
            .collect();
        let mut sites = 0;
        for &id in &self.entered {
            let func = &self.module.funcs[id];
            for inst in func.layout.iter().flat_map(|&block| &func.blocks[block].insts) {
                let counts = match func.insts[*inst].op {
                    Op::Load(_) | Op::Store(_) => true,
                    Op::Bin(op) => op.may_trap(),
                    _ => false,
                };
                sites += u32::from(counts);
            }
        }
        Report { clean: findings.is_empty(), findings, runs: self.runs, sites, reached: self.reached.len() as u32 }
    }
}
