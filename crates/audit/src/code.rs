//! What is said of a machine program's secrets: findings with their places in
//! the module, and how much of the code was seen.

use crate::lines::Lines;
use crate::report::{Finding, Kind};
use crate::tracker::{Spot, Tracker};
use ciphermill_ir::Module;
use ciphermill_machine::InstrKind;
use ciphermill_machine::sem::Stmt;
use ciphermill_program::Program;
use std::collections::BTreeMap;

/// Where secrets decided in the runs so far, and what was reached.
#[derive(Default)]
pub struct Followed {
    noted: BTreeMap<(Spot, u32, Kind), u64>,
    /// By number of the bundle.
    ran: Vec<bool>,
    pub runs: u32,
}

impl Followed {
    /// Add a run.
    pub fn add(&mut self, run: &Tracker<'_>) {
        for (&site, times) in &run.noted {
            *self.noted.entry(site).or_insert(0) += times;
        }
        self.ran.resize(run.ran.len(), false);
        self.ran.iter_mut().zip(&run.ran).for_each(|(all, now)| *all |= now);
        self.runs += 1;
    }

    /// Did no secret decide anything?
    pub fn clean(&self) -> bool {
        self.noted.is_empty()
    }

    /// Did this bundle of the program run?
    pub fn ran(&self, bundle: usize) -> bool {
        self.ran.get(bundle).copied().unwrap_or(false)
    }

    /// Instructions at which secrets decided, by how.
    pub fn counts(&self) -> BTreeMap<Kind, u32> {
        let kinds = [Kind::Branch, Kind::Address, Kind::IndirectJump, Kind::PerhapsAccess, Kind::Timing];
        let mut counts = BTreeMap::from(kinds.map(|kind| (kind, 0)));
        for (_, _, kind) in self.noted.keys() {
            *counts.entry(*kind).or_insert(0) += 1;
        }
        counts
    }

    /// The findings. `module` is the one that the program was made from, as it was
    /// loaded; `lines` has its lines.
    pub fn findings(&self, program: &Program, module: &Module, lines: &Lines) -> Vec<Finding> {
        let functions = functions(module);
        let at = bundles(program);
        let finding = |(&((n, slot), loc, kind), &times): (&(Spot, u32, Kind), &u64)| {
            let (func, inst) = at[n as usize];
            let inst = &inst[usize::from(slot)];
            let (file, line) = lines.find(loc).map(|(file, line)| (file.to_owned(), line)).unzip();
            let named = functions.iter().find(|f| (f.0..=f.1).contains(&loc)).map(|f| f.2.to_owned());
            Finding {
                kind,
                function: named.unwrap_or_else(|| program.funcs[func].name.clone()),
                offset: loc,
                file,
                line,
                times,
                instruction: Some(program.machine.instrs[usize::from(inst.instr.0)].name.clone()),
            }
        };
        self.noted.iter().map(finding).collect()
    }

    /// Loads, stores, conditional branches and instructions of varying time in the
    /// functions that ran, and how many of them were reached.
    pub fn reached(&self, program: &Program) -> (u32, u32) {
        let at = bundles(program);
        let mut entered = vec![false; program.funcs.len()];
        at.iter().enumerate().filter(|(n, _)| self.ran(*n)).for_each(|(_, b)| entered[b.0] = true);
        let counts = |inst: &ciphermill_program::Inst| {
            let instr = &program.machine.instrs[usize::from(inst.instr.0)];
            let branches = instr.semantics.iter().any(|s| matches!(s, Stmt::Goto { cond: Some(_), .. }));
            branches || !instr.varies_with.is_empty() || matches!(instr.kind, InstrKind::Load | InstrKind::Store)
        };
        let (mut sites, mut reached) = (0, 0);
        for (n, (_, insts)) in at.iter().enumerate().filter(|(_, b)| entered[b.0]) {
            let here = insts.iter().filter(|i| counts(i)).count() as u32;
            sites += here;
            reached += if self.ran(n) { here } else { 0 };
        }
        (sites, reached)
    }
}

/// Bundles by number, as the simulator counts them, with their functions.
fn bundles(program: &Program) -> Vec<(usize, &[ciphermill_program::Inst])> {
    let mut all = Vec::new();
    for (f, func) in program.funcs.iter().enumerate() {
        all.extend(func.blocks.iter().flat_map(|b| &b.bundles).map(|b| (f, &b.insts[..])));
    }
    all
}

/// The functions of a module with the first and last offset of their instructions.
fn functions(module: &Module) -> Vec<(u32, u32, &str)> {
    let of = |func: &'_ ciphermill_ir::Func| {
        let places = func.insts.values().map(|i| i.loc).filter(|&l| l != 0);
        places.fold(None, |range: Option<(u32, u32)>, l| Some(range.map_or((l, l), |(a, b)| (a.min(l), b.max(l)))))
    };
    module.funcs.values().filter_map(|f| of(f).map(|(a, b)| (a, b, f.name.as_str()))).collect()
}
