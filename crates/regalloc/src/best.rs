//! Tries several instruction orders and live-range splits of a function, and takes the cheapest allocation.

use crate::cleanup::MoveCleanup;
use crate::fold::FoldTable;
use crate::local::LocalAllocator;
use crate::split_fixed::split_fixed;
use crate::split_pressure::split_at_pressure;
use crate::{allocate, order};
use ciphermill_machine::Machine;
use ciphermill_vcode::{Allocated, CompileError, Facts, Registers, VFunc};

/// How many of the cheapest orders are also tried with live ranges split.
const SPLIT: usize = 4;

/// How many of the cheapest candidates are allocated at [`AllocationLevel::Full`] before one is taken.
const FINAL: usize = 4;

/// Longest function, in instructions, for which other orders are tried, since each is allocated as
/// a whole. Without the limit 8,000 operations take 28 s on `core2` where a quarter of the values
/// live at once, with it 0.8.
const LONG: usize = 5_000;

/// How much work goes into one allocation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AllocationLevel {
    /// Enough to compare candidates by their cost.
    Estimate,
    Full,
    /// As `Full`, and the checkers replay it. The program's own allocation is made so.
    Checked,
}

/// What every allocation of one function is made with.
#[derive(Clone, Copy)]
pub struct AllocationRequest<'a> {
    pub machine: &'a Machine,
    pub facts: &'a Facts,
    pub registers: &'a Registers,
    /// Memory operands; None where the allocator's answer is not to be improved after it.
    pub folds: Option<&'a FoldTable>,
}

impl AllocationRequest<'_> {
    /// The function with the instruction order and the live-range splits whose allocation is cheapest.
    ///
    /// # Errors
    /// [`CompileError::Internal`] when a checker refuses an order or an allocation.
    pub fn best_order(&self, func: VFunc) -> Result<VFunc, CompileError> {
        if func.blocks.iter().map(|b| b.insts.len()).sum::<usize>() > LONG {
            return Ok(func);
        }
        let AllocationRequest { machine: m, facts, registers, .. } = *self;
        let most = registers.allocatable.len();
        let cost = |f: &VFunc, level| self.allocated(f, level).map(|a| a.cost(f, registers.mov.0));
        let estimated = |f: VFunc| cost(&f, AllocationLevel::Estimate).map(|c| (c, f));
        let others = order::reorderings(&func, m, facts, most)?;
        let orders = std::iter::once(func).chain(others);
        let mut tried = orders.map(estimated).collect::<Result<Vec<_>, _>>()?;
        tried.sort_by_key(|t| t.0);
        let at_pressure =
            |t: &(u64, VFunc)| [false, true].map(|incoming| split_at_pressure(&t.1, m, facts, most, incoming));
        let mut split: Vec<VFunc> = tried.iter().take(SPLIT).flat_map(at_pressure).flatten().collect();
        split.extend(tried.iter().take(SPLIT).filter_map(|t| split_fixed(&t.1, m, facts)));
        tried.extend(split.into_iter().map(estimated).collect::<Result<Vec<_>, _>>()?);
        tried.sort_by_key(|t| t.0);
        tried.truncate(FINAL);
        let full = |(_, f): (u64, VFunc)| cost(&f, AllocationLevel::Full).map(|c| (c, f));
        let last = tried.into_iter().map(full).collect::<Result<Vec<_>, _>>()?;
        let best = last.into_iter().min_by_key(|t| t.0);
        best.map(|t| t.1).ok_or_else(|| CompileError::Internal("no order of a function was tried".into()))
    }

    /// One allocation: `regalloc2`, then [`MoveCleanup`], then [`LocalAllocator`] for long blocks.
    ///
    /// # Errors
    /// As [`allocate::allocate`]'s.
    pub fn allocated(&self, func: &VFunc, level: AllocationLevel) -> Result<Allocated, CompileError> {
        let AllocationRequest { machine, facts, registers, folds } = *self;
        let mut allocated = allocate::allocate(func, machine, registers, level == AllocationLevel::Checked)?;
        if let Some(folds) = folds {
            let cleanup = MoveCleanup { func, machine, facts, folds, clobbered: &registers.clobbered };
            cleanup.run(&mut allocated);
            let local = LocalAllocator { func, machine, facts, folds, registers };
            local.run(&mut allocated, &cleanup, level >= AllocationLevel::Full);
            if level == AllocationLevel::Checked {
                local.check(&allocated)?;
            }
        }
        Ok(allocated)
    }
}
