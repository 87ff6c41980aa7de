//! Registers of a function for a two-address machine, with live ranges split where they are long.
//!
//! One forward pass over the blocks allocates each of them by furthest next use ([`state`]), with
//! next-use distances across blocks ([`distance`]). A value may change its place at any instruction,
//! so spilling, splitting and assignment are one thing. A block with one predecessor begins where that
//! one has left its values. One with several begins where its most frequent predecessor leaves them;
//! the others end with moves to those places ([`edge`]).
//!
//! # Data structures
//!
//! [`code::Code`] is a block as instructions on values, [`layout::Layout`] says which values are in which
//! places at a point, [`hints::RegisterHints`] which registers suit a value.
//!
//! # Invariants
//!
//! Each value is in a register or a slot wherever it is live. A value spilled once stays in its slot.
//! [`check`] replays the result and shares no code with what made it.
//!
//! # Phases
//!
//! In the first pass a loop begins where the code before it has left its values. That is often wrong:
//! what counts is where they are at the end of an iteration. So each further pass begins a loop with
//! the places that the pass before had there, and knows at the end of every block which places the next
//! one wants. The cheapest pass is taken.
//!
//! # What it does not do
//!
//! The order of instructions stays. No value is computed again in place of a reload.
//!
//! # Literature
//!
//! Belady, *A study of replacement algorithms for a virtual-storage computer*, IBM Systems Journal 5(2),
//! 1966. Traub, Holloway and Smith, *Quality and speed in linear-scan register allocation*, PLDI 1998:
//! one pass with splits at every point, and moves on edges. Braun and Hack, *Register spilling and
//! live-range splitting for SSA-form programs*, CC 2009: the distances.

mod blocks;
mod check;
mod code;
mod distance;
mod edge;
mod hints;
mod layout;
mod pass;
mod question;
mod state;
#[cfg(test)]
mod tests;
mod values;

use blocks::Blocks;
use check::Checker;
use ciphermill_machine::Reg;
use ciphermill_vcode::{Allocated, CompileError, Place, Registers, Step, VBlock};
use code::RegSet;
use pass::Pass;
pub use question::Question;
use state::{LATE, NEAR};
use std::collections::HashMap;

/// Passes over a function at most: where loops begin changes from one to the next, and seldom gets better
/// after so many. One pass costs 1 % in cycles on `ia32`, two cost 0.2 %; cores that schedule at run time
/// do not mind.
const PASSES: usize = 4;

/// A register that the function has to save costs a store and a reload.
const SAVE: u64 = 2 * Allocated::TRANSFER;

impl Question<'_> {
    /// The cheapest allocation found, and what it costs. None where an instruction's operands fit no
    /// registers, an edge is critical, or the machine's moves set flags.
    pub fn allocated(&self) -> Option<(u64, Allocated)> {
        let ops = &self.machine.abi.ops;
        // A move may stand between flags and what reads them.
        let flags = [ops.mov, ops.load, ops.store].iter().any(|&i| self.facts.fixed_writes(i).next().is_some());
        if flags || self.registers.allocatable.len() > RegSet::BITS as usize {
            return None;
        }
        let blocks = Blocks::new(self)?;
        let passes = if blocks.has_loops() { PASSES } else { 1 };
        let mut last = Pass::run(self, &blocks, None)?;
        let mut best = (self.cost(&last), last.clone());
        for _ in 1..passes {
            let pass = Pass::run(self, &blocks, Some(&last))?;
            if pass.entries == last.entries {
                break;
            }
            let cost = self.cost(&pass);
            if cost < best.0 {
                best = (cost, pass.clone());
            }
            last = pass;
        }
        let (cost, mut best) = best;
        best.close_slots();
        let saved = self.saved(best.written);
        Some((cost, Allocated { blocks: best.blocks, slots: best.slots, saved }))
    }

    fn saved(&self, written: RegSet) -> Vec<Reg> {
        let Registers { allocatable, callee_saved, .. } = self.registers;
        let is = |r: &&Reg| allocatable.iter().position(|a| a == *r).is_some_and(|i| written & 1 << i != 0);
        callee_saved.iter().filter(is).copied().collect()
    }

    /// Costs of the blocks, each times its frequency, and of saving registers.
    fn cost(&self, pass: &Pass) -> u64 {
        let block = |(steps, block): (&Vec<_>, &VBlock)| {
            (Allocated::added(steps, block, self.machine.abi.ops.mov) + late(steps)) * block.frequency()
        };
        let blocks: u64 = pass.blocks.iter().zip(&self.func.blocks).map(block).sum();
        blocks + SAVE * self.saved(pass.written).len() as u64
    }

    /// Run the checker over an allocation.
    ///
    /// # Errors
    /// [`CompileError::Internal`] when it finds the allocation wrong.
    pub fn check(&self, allocated: &Allocated) -> Result<(), CompileError> {
        let Registers { allocatable, callee_saved, clobbered, .. } = self.registers;
        // Arguments and results are in registers of the calling convention, which calls clobber.
        let free = |r: Reg| allocatable.contains(&r) || clobbered.contains(&r);
        let writable = |r: Reg| free(r) && (!callee_saved.contains(&r) || allocated.saved.contains(&r));
        let (func, machine, folds, slots) = (self.func, self.machine, self.folds, allocated.slots);
        let checker = Checker { func, machine, folds, clobbered, writable: &writable, slots };
        let fail = |e: String| CompileError::Internal(format!("register allocation of `{}`: {e}", func.name));
        checker.check(&allocated.blocks).map_err(fail)
    }
}

/// What reloads cost besides that come so soon behind their spill that they wait for it. Without it cycles
/// rise by 1 % on `pentiumpro`, and by 0.2 % over all.
fn late(steps: &[Step]) -> u64 {
    let mut stored: HashMap<Place, usize> = HashMap::new();
    let mut all = 0;
    for (at, step) in steps.iter().enumerate() {
        let soon = |place: &Place| stored.get(place).is_some_and(|&then| at < then + NEAR);
        match step {
            Step::Move { from: from @ Place::Slot(_), .. } if soon(from) => all += LATE as u64,
            Step::Inst(_, places) if places.iter().any(soon) => all += LATE as u64,
            Step::Move { to: to @ Place::Slot(_), .. } => {
                stored.insert(*to, at);
            }
            _ => {}
        }
    }
    all
}
