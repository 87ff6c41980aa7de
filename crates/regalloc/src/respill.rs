//! Registers a second time, within long blocks.
//!
//! The allocator of the whole function gives a value one place for long stretches. In
//! straight code of hundreds of instructions and with seven registers that costs more than it
//! has to: what is wanted next is known there for certain. So each such block is allocated
//! anew, with what control comes to from it alone ([`trace`]): [`furthest`] goes through it
//! once and gives up what is wanted last, for several tastes, and the cheapest outcome is
//! taken where it is cheaper than what was there, by [`Allocated::cost`]. The order of
//! instructions stays.
//!
//! A trace begins with the places that values have at its entry, and leaves them in the
//! places that are read behind it. Where it is a loop, these are the same, and others may do
//! better: those in which values come to rest when the exit leaves that open. Then moves in
//! front of the loop bring them there. In the blocks that a trace is left for on its way,
//! moves come first that take values from where they are then.
//!
//! [`check`] replays the function and shares no code with this.

mod check;
mod code;
mod exit;
mod furthest;
mod second;
#[cfg(test)]
mod tests;
mod trace;
mod wishes;

use ciphermill_vcode::CompileError;
use ciphermill_vcode::{Allocated, Place, Registers, Step};
use ciphermill_vcode::places;
use crate::spills::Cleaner;
pub use second::Second;
use check::Checker;
use ciphermill_machine::Reg;
use code::{Code, Places};
use furthest::{Outcome, State, Taste};
use trace::{Trace, predecessors};
use wishes::Wishes;

/// Shorter blocks stay as they are.
const LONG: usize = 14;

/// So often other places are tried for what a loop carries round.
const TURNS: usize = 3;

/// The better one first.
const TASTES: [Taste; 2] = [Taste { weighed: true }, Taste { weighed: false }];

/// A trace in new places.
struct Made {
    cost: u64,
    blocks: Vec<Vec<Step>>,
    slots: u32,
    /// Moves that other blocks begin with, and that others end with.
    first: Vec<(usize, Vec<Step>)>,
    last: Vec<(usize, Vec<Step>)>,
    /// What the trace begins with, where that is not what it was.
    entry: Option<places::Places>,
}

impl Second<'_> {
    /// `cleaner` is that of the same function. `thorough`: all is tried; for a first comparison of
    /// functions, little is.
    pub fn run(&self, allocated: &mut Allocated, cleaner: &Cleaner, thorough: bool) {
        let ops = &self.machine.abi.ops;
        // A move may stand between flags and what reads them.
        let flags = [ops.mov, ops.load, ops.store].iter().any(|&i| self.facts.fixed_writes(i).next().is_some());
        let long: Vec<usize> = (0..allocated.blocks.len())
            .filter(|&b| self.func.blocks[b].insts.len() > LONG && self.cost(b, &allocated.blocks[b]) > 0)
            .collect();
        if flags || long.is_empty() {
            return;
        }
        let (mut ins, _) = cleaner.live(allocated);
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
            if let Some(made) = self.best(&trace, code, &preds, thorough).filter(|m| m.cost < before) {
                self.take(&trace, made, allocated, &mut ins);
            }
        }
        cleaner.drop_dead(allocated);
    }

    /// Run the checker over an allocation.
    ///
    /// # Errors
    /// [`CompileError::Internal`] when it finds the allocation wrong.
    pub fn check(&self, allocated: &Allocated) -> Result<(), CompileError> {
        let Registers { allocatable, callee_saved, clobbered, .. } = self.registers;
        // Arguments and results go where the convention says, which every caller takes for destroyed.
        let free = |r: Reg| allocatable.contains(&r) || clobbered.contains(&r);
        let writable = |r: Reg| free(r) && (!callee_saved.contains(&r) || allocated.saved.contains(&r));
        let (func, machine, memory, slots) = (self.func, self.machine, self.memory, allocated.slots);
        let checker = Checker { func, machine, memory, clobbered, writable: &writable, slots };
        let fail = |e: String| CompileError::Internal(format!("second allocation of `{}`: {e}", func.name));
        checker.check(&allocated.blocks).map_err(fail)
    }

    /// What steps cost that are run as often as block `b`.
    fn cost(&self, b: usize, steps: &[Step]) -> u64 {
        Allocated::added(steps, &self.func.blocks[b], self.machine.abi.ops.mov) * self.func.blocks[b].turns()
    }

    fn best(&self, trace: &Trace, mut code: Code, preds: &[Vec<usize>], thorough: bool) -> Option<Made> {
        let tastes = if thorough { &TASTES[..] } else { &TASTES[..1] };
        let kinds = if thorough { &[false, true][..] } else { &[false][..] };
        let (entry, exit) = (code.entry.clone(), code.exit.clone());
        let wishes = Wishes::new(&code);
        let mut all: Vec<Made> = Vec::new();
        for &taste in tastes {
            let outcome = State::new(&code, &wishes, taste).run();
            all.extend(outcome.and_then(|o| self.made(trace, &code, o, preds, None)));
        }
        let moved = preds[trace.blocks[0]].iter().all(|&p| self.func.blocks[p].succs.len() == 1);
        for &taste in tastes.iter().filter(|_| trace.turns && moved) {
            for &slots in kinds {
                let mut from = entry.clone();
                for _ in 0..TURNS {
                    code.aim(from.clone(), None);
                    let wishes = Wishes::new(&code);
                    let Some(places) = State::new(&code, &wishes, taste).resting(slots) else { break };
                    let to = |old: Place| exit.iter().position(|e| e.0 == old).map(|n| places[n]);
                    let Some(begin) = entry.iter().map(|&(p, v)| to(p).map(|p| (p, v))).collect::<Option<Places>>() else { break };
                    let finish = exit.iter().zip(&places).map(|(e, &p)| (p, e.1)).collect();
                    code.aim(begin.clone(), Some(finish));
                    let wishes = Wishes::new(&code);
                    let outcome = State::new(&code, &wishes, taste).run();
                    all.extend(outcome.and_then(|o| self.made(trace, &code, o, preds, Some(&entry))));
                    if begin == from {
                        break;
                    }
                    from = begin;
                }
                code.aim(entry.clone(), Some(exit.clone()));
            }
        }
        all.into_iter().min_by_key(|m| m.cost)
    }

    /// With the moves in other blocks that an outcome takes; `entry` is what the trace began with
    /// before, where that is something else now.
    fn made(&self, trace: &Trace, code: &Code, outcome: Outcome, preds: &[Vec<usize>], entry: Option<&Places>) -> Option<Made> {
        let (mut slots, mut first, mut last) = (outcome.slots, Vec::new(), Vec::new());
        let mut moves = |from: &Places, to: &Places| {
            let code = code.moves(from.clone(), to.clone());
            let wishes = Wishes::new(&code);
            let mut made = State::new(&code, &wishes, TASTES[0]).run()?;
            slots = slots.max(made.slots);
            made.blocks.pop()
        };
        let wanted = code.nodes.iter().filter_map(|n| n.sides.as_ref()).flatten();
        for ((b, from), (_, to)) in outcome.sides.iter().zip(wanted) {
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
        alone.then_some(Made { cost, blocks: outcome.blocks, slots, first, last, entry })
    }

    fn take(&self, trace: &Trace, made: Made, allocated: &mut Allocated, ins: &mut [places::Places]) {
        for (&b, steps) in trace.blocks.iter().zip(made.blocks) {
            allocated.blocks[b] = steps;
        }
        for (b, moves) in made.first {
            allocated.blocks[b].splice(0..0, moves);
        }
        for (b, moves) in made.last {
            let at = allocated.blocks[b].len().saturating_sub(1);
            allocated.blocks[b].splice(at..at, moves);
        }
        if let Some(entry) = made.entry {
            ins[trace.blocks[0]] = entry;
        }
        allocated.slots = allocated.slots.max(made.slots);
    }
}
