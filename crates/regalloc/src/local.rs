//! Local register allocation: long blocks are allocated again, each by itself.
//!
//! A global allocator gives a value one place for long stretches. In a straight block all next uses
//! are known, and furthest next use (Belady, IBM Systems Journal 5, 1966) spills less. Each long
//! block is allocated again together with the blocks that only it leads to ([`trace`]). [`furthest`]
//! does it for several eviction policies. The cheapest result is taken if it is cheaper than the
//! old one by [`Allocated::cost`]. The order of instructions stays.
//!
//! A trace keeps the places of its live-in and live-out values. A loop may do better with others:
//! the values are left wherever they end up, those places become the places at the loop's entry,
//! and moves in front of the loop bring the values there. A block at a side exit begins with moves
//! from where the values are at that point.
//!
//! [`check`] replays the function and shares no code with this.

mod allocator;
mod check;
mod code;
mod exit;
mod furthest;
mod hints;
#[cfg(test)]
mod tests;
mod trace;

use crate::cleanup::MoveCleanup;
pub use allocator::LocalAllocator;
use check::Checker;
use ciphermill_machine::Reg;
use ciphermill_vcode::CompileError;
use ciphermill_vcode::places;
use ciphermill_vcode::{Allocated, Place, Registers, Step};
use code::{Assignment, Code};
use furthest::{EvictionPolicy, LocalAllocation, State};
use hints::RegisterHints;
use trace::{Trace, predecessors};

/// Blocks of up to so many instructions stay as they are.
const LONG: usize = 14;

/// How many times other places are tried for loop-carried values.
const MAX_ITERATIONS: usize = 3;

/// The one that is better on more blocks comes first.
const POLICIES: [EvictionPolicy; 2] = [EvictionPolicy { by_cost: true }, EvictionPolicy { by_cost: false }];

/// A trace with a new allocation.
struct Candidate {
    cost: u64,
    blocks: Vec<Vec<Step>>,
    slots: u32,
    /// Moves to put at the start of other blocks, and at the end of others.
    first: Vec<(usize, Vec<Step>)>,
    last: Vec<(usize, Vec<Step>)>,
    /// The trace's live-in places, if they have changed.
    entry: Option<places::PlaceSet>,
}

impl LocalAllocator<'_> {
    /// `cleanup` is of the same function. Without `thorough` only one policy is tried, which is
    /// enough to compare candidate functions.
    pub fn run(&self, allocated: &mut Allocated, cleanup: &MoveCleanup, thorough: bool) {
        let ops = &self.machine.abi.ops;
        // A move may stand between flags and what reads them.
        let flags = [ops.mov, ops.load, ops.store].iter().any(|&i| self.facts.fixed_writes(i).next().is_some());
        let long: Vec<usize> = (0..allocated.blocks.len())
            .filter(|&b| self.func.blocks[b].insts.len() > LONG && self.cost(b, &allocated.blocks[b]) > 0)
            .collect();
        if flags || long.is_empty() {
            return;
        }
        let (mut ins, _) = cleanup.live(allocated);
        let preds = predecessors(self.func);
        let mut taken = vec![false; allocated.blocks.len()];
        for first in long {
            if taken[first] {
                continue;
            }
            let trace = Trace::new(self.func, first, &preds, &taken);
            trace.blocks.iter().for_each(|&b| taken[b] = true);
            let Some(code) = Code::new(self, &trace, allocated, &ins) else { continue };
            let before: u64 = trace.blocks.iter().map(|&b| self.cost(b, &allocated.blocks[b])).sum();
            if let Some(candidate) = self.best(&trace, code, &preds, thorough).filter(|m| m.cost < before) {
                self.take(&trace, candidate, allocated, &mut ins);
            }
        }
        cleanup.drop_dead(allocated);
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
        let fail = |e: String| CompileError::Internal(format!("local register allocation of `{}`: {e}", func.name));
        checker.check(&allocated.blocks).map_err(fail)
    }

    /// Cost of steps that run as often as block `b`.
    fn cost(&self, b: usize, steps: &[Step]) -> u64 {
        Allocated::added(steps, &self.func.blocks[b], self.machine.abi.ops.mov) * self.func.blocks[b].frequency()
    }

    fn best(&self, trace: &Trace, mut code: Code, preds: &[Vec<usize>], thorough: bool) -> Option<Candidate> {
        let policies = if thorough { &POLICIES[..] } else { &POLICIES[..1] };
        let kinds = if thorough { &[false, true][..] } else { &[false][..] };
        let (entry, exit) = (code.entry.clone(), code.exit.clone());
        let hints = RegisterHints::new(&code);
        let mut all: Vec<Candidate> = Vec::new();
        for &policy in policies {
            let outcome = State::new(&code, &hints, policy).run();
            all.extend(outcome.and_then(|o| self.candidate(trace, &code, o, preds, None)));
        }
        let moved = preds[trace.blocks[0]].iter().all(|&p| self.func.blocks[p].succs.len() == 1);
        for &policy in policies.iter().filter(|_| trace.is_loop && moved) {
            for &slots in kinds {
                let mut from = entry.clone();
                for _ in 0..MAX_ITERATIONS {
                    code.retarget(from.clone(), None);
                    let hints = RegisterHints::new(&code);
                    let Some(places) = State::new(&code, &hints, policy).final_places(slots) else { break };
                    let to = |old: Place| exit.iter().position(|e| e.0 == old).map(|n| places[n]);
                    let Some(begin) = entry.iter().map(|&(p, v)| to(p).map(|p| (p, v))).collect::<Option<Assignment>>()
                    else {
                        break;
                    };
                    let finish = exit.iter().zip(&places).map(|(e, &p)| (p, e.1)).collect();
                    code.retarget(begin.clone(), Some(finish));
                    let hints = RegisterHints::new(&code);
                    let outcome = State::new(&code, &hints, policy).run();
                    all.extend(outcome.and_then(|o| self.candidate(trace, &code, o, preds, Some(&entry))));
                    if begin == from {
                        break;
                    }
                    from = begin;
                }
                code.retarget(entry.clone(), Some(exit.clone()));
            }
        }
        all.into_iter().min_by_key(|m| m.cost)
    }

    /// Adds the moves that other blocks need. `entry` is the trace's old entry, if that has changed.
    fn candidate(
        &self,
        trace: &Trace,
        code: &Code,
        outcome: LocalAllocation,
        preds: &[Vec<usize>],
        entry: Option<&Assignment>,
    ) -> Option<Candidate> {
        let (mut slots, mut first, mut last) = (outcome.slots, Vec::new(), Vec::new());
        let mut moves = |from: &Assignment, to: &Assignment| {
            let code = code.moves(from.clone(), to.clone());
            let hints = RegisterHints::new(&code);
            let mut made = State::new(&code, &hints, POLICIES[0]).run()?;
            slots = slots.max(made.slots);
            made.blocks.pop()
        };
        let wanted = code.nodes.iter().filter_map(|n| n.side_exits.as_ref()).flatten();
        for ((b, from), (_, to)) in outcome.side_exits.iter().zip(wanted) {
            first.push((*b, moves(from, to)?));
        }
        if let Some(old) = entry {
            let steps = moves(old, &code.entry)?;
            let others = preds[trace.blocks[0]].iter().filter(|p| trace.blocks.last() != Some(p));
            last.extend(others.map(|&p| (p, steps.clone())));
        }
        let alone = first.iter().all(|(b, steps)| steps.is_empty() || preds[*b].len() == 1);
        let within = trace.blocks.iter().zip(&outcome.blocks).map(|(&b, steps)| self.cost(b, steps));
        let cost = within.sum::<u64>() + first.iter().chain(&last).map(|(b, steps)| self.cost(*b, steps)).sum::<u64>();
        let entry = entry.map(|_| code.entry.iter().map(|e| e.0).collect());
        alone.then_some(Candidate { cost, blocks: outcome.blocks, slots, first, last, entry })
    }

    fn take(&self, trace: &Trace, candidate: Candidate, allocated: &mut Allocated, ins: &mut [places::PlaceSet]) {
        for (&b, steps) in trace.blocks.iter().zip(candidate.blocks) {
            allocated.blocks[b] = steps;
        }
        for (b, moves) in candidate.first {
            allocated.blocks[b].splice(0..0, moves);
        }
        for (b, moves) in candidate.last {
            let at = allocated.blocks[b].len().saturating_sub(1);
            allocated.blocks[b].splice(at..at, moves);
        }
        if let Some(entry) = candidate.entry {
            ins[trace.blocks[0]] = entry;
        }
        allocated.slots = allocated.slots.max(candidate.slots);
    }
}
