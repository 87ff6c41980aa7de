//! Tries a few instruction orders of a function, and takes the one whose allocation is cheapest.

use crate::fold::FoldTable;
use crate::scan::Question;
use crate::{allocate, order};
use ciphermill_machine::Machine;
use ciphermill_vcode::{Allocated, CompileError, Facts, Registers, VFunc};

/// Longest function, in instructions, for which other orders are tried: list scheduling looks at every
/// ready instruction at each step, so its time grows with the square of a block's length.
const LONG: usize = 5_000;

/// What every allocation of one function is made with.
#[derive(Clone, Copy)]
pub struct AllocationRequest<'a> {
    pub machine: &'a Machine,
    pub facts: &'a Facts,
    pub registers: &'a Registers,
    /// Memory operands, on a two-address machine whose code is to be optimised.
    pub folds: Option<&'a FoldTable>,
}

impl<'a> AllocationRequest<'a> {
    /// The function with the instruction order whose allocation is cheapest.
    ///
    /// # Errors
    /// [`CompileError::Internal`] when a checker refuses an order or an allocation.
    pub fn best_order(&self, func: VFunc) -> Result<VFunc, CompileError> {
        if func.blocks.iter().map(|b| b.insts.len()).sum::<usize>() > LONG {
            return Ok(func);
        }
        let most = self.registers.allocatable.len();
        let others = order::reorderings(&func, self.machine, self.facts, most)?;
        if others.is_empty() {
            return Ok(func);
        }
        let with_cost = |f: VFunc| self.cost(&f).map(|c| (c, f));
        let tried = std::iter::once(func).chain(others).map(with_cost).collect::<Result<Vec<_>, _>>()?;
        let best = tried.into_iter().min_by_key(|t| t.0);
        best.map(|b| b.1).ok_or_else(|| CompileError::Internal("no order of a function was tried".into()))
    }

    /// What a function's allocation costs.
    fn cost(&self, func: &VFunc) -> Result<u64, CompileError> {
        if let Some((cost, _)) = self.question(func).and_then(|q| q.allocated()) {
            return Ok(cost);
        }
        Ok(allocate::allocate(func, self.machine, self.registers, false)?.cost(func, self.registers.mov.0))
    }

    /// The allocation of a function, checked.
    ///
    /// # Errors
    /// As [`allocate::allocate`]'s, or when the checker refuses the allocation.
    pub fn allocated(&self, func: &VFunc) -> Result<Allocated, CompileError> {
        if let Some(question) = self.question(func)
            && let Some((_, allocated)) = question.allocated()
        {
            question.check(&allocated)?;
            return Ok(allocated);
        }
        allocate::allocate(func, self.machine, self.registers, true)
    }

    fn question<'f>(&'f self, func: &'f VFunc) -> Option<Question<'f>> {
        let AllocationRequest { machine, facts, registers, folds } = *self;
        folds.map(|folds| Question { func, machine, facts, folds, registers })
    }
}
