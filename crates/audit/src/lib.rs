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
use taint::Word;

/// Sets of secrets tried.
const SECRETS: u64 = 4;

/// Operations before a run is given up, if nobody says otherwise: some seconds.
const LIMIT: u64 = 200_000_000;

/// Largest context or block that a module may claim.
const MAX_STATED: u64 = 1 << 24;

/// Why there is no report.
#[derive(thiserror::Error, Debug)]
pub enum AuditError {
    #[error("{0}")]
    Load(#[from] ciphermill_load::LoadError),
    #[error("{0}")]
    Optimise(ciphermill_opt::OptError),
    #[error(
        "the module does not export {0}, so there is nothing to audit; include ciphermill.h and end the C file with \
         CM_BLOCK_CIPHER(bytes) or CM_STREAM_CIPHER(bytes)"
    )]
    Missing(&'static str),
    #[error("{export} takes {found} parameters where ciphermill.h gives it {expected}; declare it as the header does")]
    Signature { export: &'static str, found: usize, expected: usize },
    #[error("{0}() returned {1}; it must return a size of 1 to {MAX_STATED} bytes")]
    Size(&'static str, u64),
    #[error("{export}: function {function:?} stopped with a trap ({code}); run the cipher to see where")]
    Trap { export: &'static str, function: String, code: String },
    #[error(
        "{export}: function {function:?} was still running at the limit of {limit} operations; it may be slow, or never \
         end: give it more with --limit {}, or audit one key size with --key-bits", limit.saturating_mul(10)
    )]
    Endless { export: &'static str, function: String, limit: u64 },
}

/// Audit a module with the C interface of a cipher.
///
/// `key_bits` and `iv_bits` are the lengths to run, in bits; an IV of 0 bits
/// skips `cm_ivsetup`. Each run may take `limit` operations.
///
/// # Errors
/// When the bytes are no module, lack an export, or a run does not end.
pub fn audit(wasm: &[u8], key_bits: &[u32], iv_bits: &[u32], limit: Option<u64>) -> Result<Report, AuditError> {
    let mut module = ciphermill_load::load(wasm)?;
    let options =
        ciphermill_opt::Options { level: 0, strict_traps: true, word_bits: 64, ..ciphermill_opt::Options::default() };
    ciphermill_opt::optimise(&mut module, &options).map_err(AuditError::Optimise)?;
    let mut auditor = Auditor::new(&module, limit.unwrap_or(LIMIT))?;
    for &bits in key_bits {
        for seed in 0..SECRETS {
            auditor.cipher(bits / 8, iv_bits, seed)?;
        }
    }
    Ok(auditor.report(&Lines::read(wasm)))
}

/// One call of an export: its arguments, and how the interface names it.
type Call = (&'static str, Vec<u32>);

struct Auditor<'a> {
    module: &'a Module,
    heap_base: u32,
    ctx_bytes: u32,
    block_bytes: u32,
    noted: BTreeMap<(Site, Kind), u64>,
    reached: BTreeSet<(FuncId, ciphermill_ir::Inst)>,
    entered: BTreeSet<FuncId>,
    runs: u32,
    /// Operations of a run.
    limit: u64,
}

impl<'a> Auditor<'a> {
    fn new(module: &'a Module, limit: u64) -> Result<Auditor<'a>, AuditError> {
        let heap_base = match module.exported_globals.iter().find(|(name, _)| name == "__heap_base") {
            Some(&(_, id)) => module.globals[id].init as u32,
            None => module.memory.min_pages.saturating_mul(ciphermill_ir::PAGE_BYTES as u32),
        };
        let mut auditor = Auditor {
            module,
            heap_base: heap_base.next_multiple_of(64),
            ctx_bytes: 0,
            block_bytes: 0,
            noted: BTreeMap::new(),
            reached: BTreeSet::new(),
            entered: BTreeSet::new(),
            runs: 0,
            limit,
        };
        auditor.ctx_bytes = auditor.size("cm_ctx_bytes")?;
        auditor.block_bytes = auditor.size("cm_block_bytes")?;
        Ok(auditor)
    }

    fn size(&self, export: &'static str) -> Result<u32, AuditError> {
        let mut machine = Machine::new(self.module, self.heap_base, self.limit);
        match self.call(&mut machine, export, &[])?[..] {
            [word] if (1..=MAX_STATED).contains(&word.bits) => Ok(word.bits as u32),
            [word] => Err(AuditError::Size(export, word.bits)),
            _ => Err(AuditError::Size(export, 0)),
        }
    }

    fn has(&self, export: &str) -> bool {
        self.module.export(export).is_some()
    }

    fn call(&self, machine: &mut Machine<'_>, export: &'static str, args: &[u32]) -> Result<Vec<Word>, AuditError> {
        let id = self.module.export(export).ok_or(AuditError::Missing(export))?;
        let found = self.module.funcs[id].sig.params.len();
        if found != args.len() {
            return Err(AuditError::Signature { export, found, expected: args.len() });
        }
        let args: Vec<Word> = args.iter().map(|&a| Word::public(a.into())).collect();
        machine.call(id, &args).map_err(|halt| match halt {
            Halt::Trap(code, function) => AuditError::Trap { export, function, code: format!("{code:?}") },
            Halt::Endless(function) => AuditError::Endless { export, function, limit: self.limit },
        })
    }

    /// Everything the cipher does with one key length and one set of secrets.
    fn cipher(&mut self, key_bytes: u32, iv_bits: &[u32], seed: u64) -> Result<(), AuditError> {
        let block = self.block_bytes;
        let ctx = self.heap_base;
        let key = (ctx + self.ctx_bytes).next_multiple_of(64);
        let iv = (key + key_bytes).next_multiple_of(64);
        let longest_iv = iv_bits.iter().max().map_or(0, |bits| bits / 8);
        let input = (iv + longest_iv).next_multiple_of(64);
        let longest = 3 * block + 5;
        let output = (input + longest).next_multiple_of(64);
        let places = [(key, key_bytes), (iv, longest_iv), (input, longest)];
        let end = output + longest;

        let keysetup = ("cm_keysetup", vec![ctx, key, key_bytes]);
        if !self.has("cm_keystream") {
            let mut any = false;
            for (setup, blocks, feedback) in [
                ("cm_keysetup", "cm_encrypt_blocks", "cm_encrypt_feedback"),
                ("cm_keysetup_decrypt", "cm_decrypt_blocks", "cm_decrypt_feedback"),
            ] {
                let mut calls = vec![(setup, vec![ctx, key, key_bytes])];
                calls.extend([1, 2, 3].map(|n| (blocks, vec![ctx, input, output, n])));
                calls.push((feedback, vec![ctx, input, output, 2]));
                calls.retain(|(export, _)| self.has(export));
                any |= calls.len() > 1;
                self.run(&places, end, &calls, seed)?;
            }
            return if any { Ok(()) } else { Err(AuditError::Missing("cm_encrypt_blocks")) };
        }
        let ivs = if self.has("cm_ivsetup") && !iv_bits.is_empty() { iv_bits } else { &[0] };
        for &bits in ivs {
            let mut calls: Vec<Call> = vec![keysetup.clone()];
            if bits != 0 {
                calls.push(("cm_ivsetup", vec![ctx, iv, bits / 8]));
            }
            // Ends and beginnings inside, at and across the edges of blocks.
            for bytes in [block, 1, block - 1, 2 * block, block + 1, longest, 0] {
                calls.push(("cm_keystream", vec![ctx, input, output, bytes]));
            }
            self.run(&places, end, &calls, seed)?;
        }
        Ok(())
    }

    /// Calls on a fresh instance, with secrets at `places`.
    fn run(&mut self, places: &[(u32, u32)], end: u32, calls: &[Call], seed: u64) -> Result<(), AuditError> {
        let mut machine = Machine::new(self.module, end, self.limit);
        if let Some(start) = self.module.start {
            machine.call(start, &[]).map_err(|halt| match halt {
                Halt::Trap(code, function) => {
                    AuditError::Trap { export: "the start function", function, code: format!("{code:?}") }
                }
                Halt::Endless(function) => {
                    AuditError::Endless { export: "the start function", function, limit: self.limit }
                }
            })?;
        }
        for &(at, bytes) in places {
            machine.place(at, &random(seed ^ u64::from(at) << 8, bytes as usize), true);
        }
        for (export, args) in calls {
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

/// Bytes that are the same in every audit (SplitMix64).
fn random(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed;
    let mut out = Vec::with_capacity(len + 8);
    while out.len() < len {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        out.extend_from_slice(&(z ^ (z >> 31)).to_le_bytes());
    }
    out.truncate(len);
    out
}
