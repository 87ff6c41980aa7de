//! Tries a few instruction orders of a function, and takes the one whose allocation is cheapest. On a machine that issues
//! in order the waits of the order itself count, too.

use crate::commute::Commuting;
use crate::fold::FoldTable;
use crate::scan::Question;
use crate::{again, allocate, order, runs, sink};
use ciphermill_machine::{InstrId, Machine};
use ciphermill_schedule::list;
use ciphermill_vcode::liveness::live_out;
use ciphermill_vcode::runs::Runs;
use ciphermill_vcode::{Allocated, CompileError, Facts, Place, Registers, Step, VBlock, VFunc, VInst, VKind};
use std::collections::{BTreeMap, BTreeSet};

/// Longest function, in instructions, for which other orders are tried: list scheduling looks at every
/// ready instruction at each step, so its time grows with the square of a block's length.
const LONG: usize = 5_000;

/// Allocations that are tried of a function with words loaded and stored together: blocks that run most come first.
const RUN_TRIALS: usize = 32;

/// Orders in which runs are tried: the cheapest scatters words, the next may have them together.
const RUN_ORDERS: usize = 3;

/// By how many values more than there are registers runs may be joined in the other trial: what they save may be worth
/// a spill.
const MORE: usize = 4;

/// What every allocation of one function is made with.
#[derive(Clone, Copy)]
pub struct AllocationRequest<'a> {
    pub machine: &'a Machine,
    pub facts: &'a Facts,
    pub registers: &'a Registers,
    /// Memory operands, on a two-address machine whose code is to be optimised.
    pub folds: Option<&'a FoldTable>,
    /// Instructions that load or store several words.
    pub runs: &'a Runs,
}

/// A function in the order in which it is to be allocated.
pub struct Ordered {
    pub func: VFunc,
    /// The same without instructions for several words, if it has any, for an allocation with other registers than the
    /// request's: they may not [rise](runs::rises) there.
    pub plain: Option<VFunc>,
}

/// What an order of a function comes to.
struct Cost {
    /// Of what its allocation adds. An order that adds more than the first is not taken: the waits of the others are
    /// mended by scheduling behind the allocation.
    added: u64,
    /// What decides between the others: the same, or cycles where instructions issue in order.
    of_order: u64,
}

impl<'a> AllocationRequest<'a> {
    /// The function with the instruction order whose allocation is cheapest.
    ///
    /// # Errors
    /// [`CompileError::Internal`] when a checker refuses an order or an allocation.
    pub fn best_order(&self, func: VFunc) -> Result<Ordered, CompileError> {
        let mut best: Option<(u64, Ordered)> = None;
        for (cost, plain) in self.orders(func)? {
            let (cost, ordered) = match self.with_runs(&plain, cost)? {
                Some((less, func)) => (less, Ordered { func, plain: Some(plain) }),
                None => (cost.unwrap_or(0), Ordered { func: plain, plain: None }),
            };
            if best.as_ref().is_none_or(|b| cost < b.0) {
                best = Some((cost, ordered));
            }
        }
        best.map(|b| b.1).ok_or_else(|| CompileError::Internal("no order of a function was tried".into()))
    }

    /// Does the machine load or store several words by one instruction, and is that worth a trial?
    fn joins(&self) -> bool {
        !self.runs.several().is_empty() && self.folds.is_some() && self.in_order()
    }

    /// The cheapest orders with what they cost, the cheapest first: several where runs decide between them.
    fn orders(&self, func: VFunc) -> Result<Vec<(Option<u64>, VFunc)>, CompileError> {
        let commuting = Commuting::new(self.machine, self.folds);
        let func = commuting.exchanged(func);
        if func.blocks.iter().map(|b| b.insts.len()).sum::<usize>() > LONG {
            return Ok(vec![(None, func)]);
        }
        let most = self.registers.allocatable.len();
        let others = order::reorderings(&func, self.machine, self.facts, most)?;
        if others.is_empty() {
            return Ok(vec![(None, func)]);
        }
        let mut orders: Vec<VFunc> = std::iter::once(func).chain(others).collect();
        // What `regalloc2` makes of such an order its cost does not foretell.
        if self.in_order() && self.folds.is_some() {
            let late = orders.iter().map(|f| sink::sunk(f, self.machine, self.facts, most));
            let late = late.collect::<Result<Vec<_>, _>>()?;
            orders.extend(late.into_iter().flatten());
        }
        let mut tried = Vec::with_capacity(orders.len());
        for order in orders {
            let order = commuting.exchanged(order);
            let cost = self.cost(&order)?;
            tried.push((cost, order));
        }
        let first = tried.first().map_or(0, |t| t.0.added);
        tried.retain(|t| t.0.added <= first);
        tried.sort_by_key(|t| t.0.of_order);
        tried.truncate(if self.joins() { RUN_ORDERS } else { 1 });
        let remade = |(cost, order): (Cost, VFunc)| {
            let Some(again) = again::remade(&order, self.machine, self.facts, most) else {
                return Ok((Some(cost.of_order), order));
            };
            let func = commuting.exchanged(again.func);
            let other = self.cost(&func)?;
            // In cycles in order what was made again is counted already.
            let more = if self.in_order() { 0 } else { again.added };
            let better = other.of_order + more < cost.of_order;
            Ok(if better { (Some(other.of_order), func) } else { (Some(cost.of_order), order) })
        };
        tried.into_iter().map(remade).collect()
    }

    /// The function with runs joined in each block where that makes it cheaper, and what it costs then; None where there
    /// is none. `cost` is what it costs without them.
    fn with_runs(&self, plain: &VFunc, cost: Option<u64>) -> Result<Option<(u64, VFunc)>, CompileError> {
        let short = plain.blocks.iter().map(|b| b.insts.len()).sum::<usize>() <= LONG;
        if !self.joins() || !short {
            return Ok(None);
        }
        let most = self.registers.allocatable.len();
        let mut blocks: Vec<usize> = (0..plain.blocks.len()).collect();
        blocks.sort_by_key(|&b| (std::cmp::Reverse(plain.blocks[b].frequency()), b));
        let mut best: Option<(u64, VFunc)> = None;
        let mut tried = 0;
        for b in blocks {
            let outs = live_out(best.as_ref().map_or(plain, |b| &b.1));
            let mut better = None;
            for (stores, registers) in [(true, most), (true, most + MORE), (false, most), (false, most + MORE)] {
                let from = best.as_ref().map_or(plain, |b| &b.1);
                let joining = runs::Joining { stores, registers };
                let Some(func) = runs::joined(from, b, self.machine, self.facts, self.runs, &outs[b], joining) else {
                    continue;
                };
                if best.is_none() {
                    let cost = cost.map_or_else(|| self.cost(plain).map(|c| c.of_order), Ok)?;
                    best = Some((cost, plain.clone()));
                }
                tried += 1;
                let Some((_, allocated)) = self.question(&func).and_then(|q| q.allocated()) else { continue };
                let cost = self.cycles(&func, &allocated);
                let least = better.as_ref().or(best.as_ref()).map_or(u64::MAX, |b: &(u64, VFunc)| b.0);
                if cost < least && runs::rises(&func, &allocated, self.machine) {
                    better = Some((cost, func));
                }
            }
            best = better.or(best);
            if tried >= RUN_TRIALS {
                break;
            }
        }
        let has_run = |f: &VFunc| f.blocks.iter().zip(&plain.blocks).any(|(a, b)| a.insts.len() != b.insts.len());
        Ok(best.filter(|b| has_run(&b.1)))
    }

    fn in_order(&self) -> bool {
        self.machine.core.as_ref().is_none_or(|c| c.in_order)
    }

    /// What an order costs.
    fn cost(&self, func: &VFunc) -> Result<Cost, CompileError> {
        let (added, allocated) = match self.question(func).and_then(|q| q.allocated()) {
            Some((added, allocated)) => (added, allocated),
            None => {
                let allocated = allocate::allocate(func, self.machine, self.registers, false)?;
                (allocated.cost(func, self.registers.mov.0), allocated)
            }
        };
        Ok(Cost { added, of_order: if self.in_order() { self.cycles(func, &allocated) } else { added } })
    }

    /// Cycles of the blocks in the order they are in, with those of spills, reloads and copies, times block frequency.
    fn cycles(&self, func: &VFunc, allocated: &Allocated) -> u64 {
        let ops = &self.machine.abi.ops;
        let issue = |instr: InstrId| u64::from(self.machine.instrs[usize::from(instr.0)].issue_cycles);
        let (copy, spill, reload) = (issue(ops.mov), issue(ops.store), issue(ops.load));
        let parked = self.parked(func, allocated);
        let added = |step: &Step| match step {
            Step::Move { from: Place::Slot(s), .. } | Step::Move { to: Place::Slot(s), .. } if parked.contains(s) => {
                copy
            }
            Step::Move { from: Place::Reg(_), to: Place::Reg(_) } => copy,
            Step::Move { from: Place::Reg(_), .. } => spill,
            Step::Move { .. } => reload,
            // A memory operand is a load of its own, if not one that needs a register.
            Step::Inst(_, places) => reload * places.iter().filter(|p| matches!(p, Place::Slot(_))).count() as u64,
        };
        // A block of an edge is jumped over, unless moves stand there.
        let jump = &self.machine.instrs[usize::from(ops.jump.0)];
        let jumps = |block: &VBlock, steps: &[Step]| match block.insts[..] {
            [VInst { kind: VKind::Jump, .. }] if steps.len() > 1 => u64::from(jump.issue_cycles + jump.taken_cycles),
            _ => 0,
        };
        let block = |(block, steps): (&VBlock, &Vec<Step>)| {
            let nodes: Vec<_> = block.insts.iter().map(|i| self.facts.virtual_node(self.machine, i)).collect();
            (list::cycles(&nodes) + steps.iter().map(added).sum::<u64>() + jumps(block, steps)) * block.frequency()
        };
        func.blocks.iter().zip(&allocated.blocks).map(block).sum()
    }

    /// The slots that are used most, as many as there are registers for spilled values: these cost moves.
    fn parked(&self, func: &VFunc, allocated: &Allocated) -> BTreeSet<u32> {
        let abi = &self.machine.abi;
        let registers = abi.spill.iter().filter(|r| !func.has_calls || abi.callee_saved.contains(r)).count();
        let mut uses: BTreeMap<u32, u64> = BTreeMap::new();
        for (steps, block) in allocated.blocks.iter().zip(&func.blocks).filter(|_| registers > 0) {
            for step in steps {
                if let Step::Move { from: Place::Slot(s), .. } | Step::Move { to: Place::Slot(s), .. } = step {
                    *uses.entry(*s).or_default() += block.frequency();
                }
            }
        }
        let mut ranked: Vec<(u32, u64)> = uses.into_iter().collect();
        ranked.sort_by_key(|&(slot, n)| (std::cmp::Reverse(n), slot));
        ranked.into_iter().take(registers).map(|r| r.0).collect()
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
        let AllocationRequest { machine, facts, registers, folds, .. } = *self;
        folds.map(|folds| Question { func, machine, facts, folds, registers })
    }
}
