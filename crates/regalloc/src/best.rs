//! The allocation of a function that is best of several tried.

use crate::spills::Memory;
use crate::{allocate, apart, cut, order, respill, spills};
use ciphermill_machine::Machine;
use ciphermill_vcode::{Allocated, CompileError, Facts, Registers, VFunc};

/// So many of the orders that are tried, the best, are also tried with values cut.
const CUT: usize = 4;

/// So many of all, the best, are allocated with all effort before one is taken.
const FINAL: usize = 4;

/// Instructions of a function beyond which no other order is tried: each is allocated as a whole.
/// Without it 8,000 operations take 28 s on `core2` where a quarter of the values live at once,
/// with it 0.8.
const LONG: usize = 5_000;

/// How much is tried for an allocation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    Rough,
    Whole,
    /// It is the program's, and checkers are run over it.
    Checked,
}

/// What an allocation is asked for with.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    pub machine: &'a Machine,
    pub facts: &'a Facts,
    pub registers: &'a Registers,
    /// Instructions that read memory in place of a register, where what the allocator leaves is
    /// to be gone over with them.
    pub memory: Option<&'a Memory>,
}

impl Asked<'_> {
    /// The function in the order, and with the values cut, that the allocator makes
    /// most of.
    ///
    /// # Errors
    /// [`CompileError::Internal`] when a checker refuses an order or an allocation.
    pub fn best_order(&self, func: VFunc) -> Result<VFunc, CompileError> {
        if func.blocks.iter().map(|b| b.insts.len()).sum::<usize>() > LONG {
            return Ok(func);
        }
        let Asked { machine: m, facts, registers, .. } = *self;
        let most = registers.allocatable.len();
        let cost = |f: &VFunc, effort| self.allocated(f, effort).map(|a| a.cost(f, registers.mov.0));
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

    /// Registers for a function, the moves gone over that they take, and long blocks allocated
    /// anew.
    ///
    /// # Errors
    /// As [`allocate::allocate`]'s.
    pub fn allocated(&self, func: &VFunc, effort: Effort) -> Result<Allocated, CompileError> {
        let Asked { machine, facts, registers, memory } = *self;
        let mut allocated = allocate::allocate(func, machine, registers, effort == Effort::Checked)?;
        if let Some(memory) = memory {
            let clobbered = &registers.clobbered;
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
}
