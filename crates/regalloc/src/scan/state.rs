//! Allocation by furthest next use (Belady, IBM Systems Journal 5, 1966), in one pass over a block.
//!
//! For each instruction, in this order:
//!
//! 1. Sources get registers, the most constrained first; one may be a memory operand.
//! 2. Live values that the instruction overwrites or clobbers are copied or spilled.
//! 3. Results get registers.
//!
//! When no register is free, a value is evicted. A value that has been spilled stays in its slot, so
//! evicting it again needs no store. The distance to the next use is weighed with the cost of the spill
//! and the reload.

use super::code::{Assignment, Code, Node, RegSet, Role, Use, Value, members};
use super::hints::RegisterHints;
use ciphermill_vcode::{Allocated, Place, Step};
use std::collections::HashMap;

const MOVE: usize = Allocated::COPY as usize;
const TRANSFER: usize = Allocated::TRANSFER as usize;
const OPERAND: usize = Allocated::OPERAND as usize;

/// A value reloaded within `NEAR` instructions of its spill is waited for (store forwarding), which
/// costs `LATE` more.
pub const NEAR: usize = 16;
pub const LATE: usize = 4;

/// A use that never comes.
const NEVER: usize = usize::MAX;

/// Uses within so many instructions count when choosing between a reload and a memory operand.
const AHEAD: usize = 12;

pub struct State<'a> {
    pub code: &'a Code,
    hints: &'a RegisterHints,
    /// By register: the value in it.
    pub contents: Vec<Option<Value>>,
    /// By value: its stack slot, if it has been spilled.
    pub home: Vec<Option<u32>>,
    /// By slot: the value in it.
    pub slots: Vec<Option<Value>>,
    /// By slot: how many steps there were when a value left it.
    left: HashMap<u32, usize>,
    /// By value: how many of its uses have been passed.
    done: Vec<usize>,
    pub steps: Vec<Step>,
}

impl<'a> State<'a> {
    /// Before the first instruction, with live-in values in their places.
    pub fn new(code: &'a Code, hints: &'a RegisterHints, entry: &Assignment) -> State<'a> {
        let values = code.uses.len();
        let mut s = State {
            code,
            hints,
            contents: vec![None; code.registers.len()],
            home: vec![None; values],
            slots: Vec::new(),
            left: HashMap::new(),
            done: vec![0; values],
            steps: Vec::with_capacity(2 * code.nodes.len()),
        };
        for &(place, v) in entry {
            match (place, code.number(place)) {
                (Place::Slot(slot), _) => s.settle(v, slot),
                (_, Some(r)) => s.contents[r] = Some(v),
                _ => {}
            }
        }
        s
    }

    /// Allocates the block's instructions; None where one finds no register.
    pub fn run(&mut self) -> Option<()> {
        let code = self.code;
        code.nodes.iter().enumerate().try_for_each(|(p, node)| self.node(p, node))
    }

    fn next_use(&self, v: Value) -> Option<Use> {
        self.code.uses[v].get(self.done[v]).copied()
    }

    /// The first use of a value from instruction `from` on.
    fn use_from(&self, v: Value, from: usize) -> Option<Use> {
        let uses = &self.code.uses[v][self.done[v]..];
        uses.iter().take(2).find(|u| u.at >= from).copied()
    }

    fn wanted_from(&self, v: Value, from: usize) -> bool {
        self.use_from(v, from).is_some()
    }

    /// Registers that have a value.
    pub fn holders(&self, v: Value) -> RegSet {
        self.contents.iter().enumerate().filter(|(_, h)| **h == Some(v)).fold(0, |s, (r, _)| s | 1 << r)
    }

    /// Records that a value is in a slot from here on.
    pub fn settle(&mut self, v: Value, slot: u32) {
        let at = slot as usize;
        if self.slots.len() <= at {
            self.slots.resize(at + 1, None);
        }
        self.slots[at] = Some(v);
        self.home[v] = Some(slot);
    }

    pub fn place(&self, r: usize) -> Place {
        Place::Reg(self.code.registers[r])
    }

    pub fn copy(&mut self, from: usize, to: usize) {
        let step = Step::Move { from: self.place(from), to: self.place(to) };
        self.steps.push(step);
        self.contents[to] = self.contents[from];
    }

    /// Reloads a value.
    pub fn load(&mut self, v: Value, to: usize) -> Option<()> {
        let step = Step::Move { from: Place::Slot(self.home[v]?), to: self.place(to) };
        self.steps.push(step);
        self.contents[to] = Some(v);
        Some(())
    }

    /// Spills the value in a register, unless it has been.
    pub fn store(&mut self, r: usize) {
        let Some(v) = self.contents[r].filter(|&v| self.home[v].is_none()) else { return };
        let taken = |slot: u32| self.slots.get(slot as usize).is_some_and(Option::is_some);
        let free = |slot: &u32| !taken(*slot) && !self.hints.exit_slots.contains(slot);
        let wanted = self.hints.slot[v].filter(|&slot| !taken(slot));
        let own = self.code.own_slot[v].filter(free);
        let now = self.steps.len();
        let rested = |slot: &u32| self.left.get(slot).is_none_or(|then| now - then >= self.code.slot_rest);
        let slot = wanted.or(own).or_else(|| (self.code.web_slots..).filter(free).find(rested));
        let Some(slot) = slot else { return };
        let step = Step::Move { from: self.place(r), to: Place::Slot(slot) };
        self.steps.push(step);
        self.settle(v, slot);
    }

    /// Cost of evicting a value before instruction `p`: spill, and reload at its next use.
    fn spill_cost(&self, v: Value, p: usize, next: Use) -> usize {
        let there = self.home[v].is_some() || self.code.made_outside[v];
        let store = if there { 0 } else { TRANSFER };
        let fetch = if next.memory { OPERAND } else { TRANSFER };
        let soon = next.at < p + NEAR && next.at < self.code.nodes.len();
        store + fetch + if soon { LATE } else { 0 }
    }

    /// What keeping a value in its register at instruction `p` is worth for its uses from `from` on.
    fn worth(&self, v: Value, p: usize, from: usize) -> usize {
        let Some(next) = self.use_from(v, from) else { return 0 };
        let (spill_cost, away) = (self.spill_cost(v, p, next), next.at - p + 1);
        1 + (spill_cost << 20) / away
    }

    /// The register whose value is worth least.
    fn cheapest_to_evict(&self, among: RegSet, p: usize, from: usize) -> Option<usize> {
        members(among).min_by_key(|&r| (self.contents[r].map_or(0, |v| self.worth(v, p, from)), r))
    }

    /// The best register for value `v` that is free: its value has no use from instruction `from` on,
    /// or is also in a register outside `lost`.
    fn best_free(&self, among: RegSet, lost: RegSet, v: Value, p: usize, from: usize) -> Option<usize> {
        let spare = |&r: &usize| match self.contents[r] {
            Some(w) => !self.wanted_from(w, from) || self.holders(w) & !lost & !(1 << r) != 0,
            None => true,
        };
        let last = self.code.uses[v].last().map_or(p, |u| u.at);
        let next = self.use_from(v, p + 1).map_or(p, |u| u.at);
        let rank = |&r: &usize| {
            let (misfit, waste) = self.hints.penalty(v, r, p, next, last);
            (misfit + self.disorder(v, r), waste, self.contents[r].is_some(), r)
        };
        members(among).filter(spare).min_by_key(rank)
    }

    /// How many registers would not rise, or could not, if a value of a run were in register `r`.
    fn disorder(&self, v: Value, r: usize) -> usize {
        let Some(own) = self.hints.order[v] else { return 0 };
        let number = |r: usize| self.code.registers[r].0;
        let place = |q: usize| self.contents[q].and_then(|w| self.hints.order[w]).filter(|o| o.at == own.at);
        let others = (0..self.contents.len()).filter(|&q| q != r).filter_map(|q| Some((q, place(q)?.rank)));
        let wrong = others.filter(|&(q, rank)| rank != own.rank && (rank < own.rank) != (number(q) < number(r)));
        let below = members(self.code.usable).filter(|&q| number(q) < number(r)).count();
        let above = members(self.code.usable).filter(|&q| number(q) > number(r)).count();
        wrong.count() + usize::from(below < own.rank) + usize::from(above + own.rank + 1 < own.words)
    }

    /// A register of `within` but not of `pinned` for value `v` before instruction `p`; evicts if it
    /// has to.
    fn take_register(&mut self, within: RegSet, pinned: RegSet, v: Value, p: usize) -> Option<usize> {
        let among = within & !pinned;
        if let Some(r) = self.best_free(among, 0, v, p, p) {
            return Some(r);
        }
        let r = self.cheapest_to_evict(among, p, p)?;
        let w = self.contents[r]?;
        let next = self.next_use(w)?;
        let others = self.code.usable & !pinned & !within;
        let (urgent, spill_cost) = (next.at == p, self.spill_cost(w, p, next));
        if let Some(to) = self.best_free(others, 0, w, p, p) {
            if urgent || spill_cost > MOVE {
                self.copy(r, to);
                return Some(r);
            }
        } else if let Some(to) = self.cheapest_to_evict(others, p, p) {
            let x = self.contents[to]?;
            let gone = self.next_use(x)?;
            let better = self.worth(x, p, p) < self.worth(w, p, p) && self.spill_cost(x, p, gone) + MOVE < spill_cost;
            if gone.at != p && (urgent || better) {
                self.store(to);
                self.copy(r, to);
                return Some(r);
            }
        }
        self.store(r);
        Some(r)
    }

    /// Brings a value into a register of `within` but not of `other`.
    fn bring(&mut self, v: Value, within: RegSet, other: RegSet, pinned: RegSet, p: usize) -> Option<usize> {
        let holders = self.holders(v);
        if let Some(r) = members(holders & within & !other).next() {
            return Some(r);
        }
        let to =
            self.take_register(within, pinned | holders, v, p).or_else(|| self.take_register(within, pinned, v, p))?;
        match members(self.holders(v) & !(1 << to)).next() {
            Some(from) => self.copy(from, to),
            None => self.load(v, to)?,
        }
        Some(to)
    }

    /// The operand that instruction `p` had better read in memory.
    fn in_memory(&self, p: usize, node: &Node) -> Option<usize> {
        let readable = |k: &usize| {
            let o = &node.operands[*k];
            o.memory && self.home[o.value].is_some() && self.holders(o.value) == 0
        };
        let k = (0..node.operands.len()).filter(readable).max_by_key(|&k| {
            let next = self.use_from(node.operands[k].value, p + 1);
            next.map_or(NEVER, |u| u.at)
        })?;
        let v = node.operands[k].value;
        let uses = &self.code.uses[v][self.done[v]..];
        let near = uses.iter().skip(1).take_while(|u| u.at <= p + AHEAD);
        let saved: usize = near.map(|u| if u.memory { OPERAND } else { TRANSFER }).sum();
        let spare = || self.best_free(node.operands[k].within, 0, v, p, p).is_some();
        (saved + OPERAND <= TRANSFER || !spare()).then_some(k)
    }

    /// Copies or spills the value of register `r`, which instruction `p` destroys. Gives the register
    /// it was copied to.
    fn preserve(&mut self, r: usize, lost: RegSet, pinned: RegSet, p: usize) -> Option<usize> {
        let v = self.contents[r]?;
        let next = self.use_from(v, p + 1)?;
        if self.holders(v) & !lost != 0 {
            return None;
        }
        let among = self.code.usable & !lost & !pinned;
        let spill_cost = self.spill_cost(v, p, next);
        if let Some(to) = self.best_free(among, lost, v, p, p) {
            if spill_cost > MOVE {
                self.copy(r, to);
                return Some(to);
            }
        } else if let Some(to) = self.cheapest_to_evict(among, p, p) {
            let x = self.contents[to]?;
            let gone = self.next_use(x)?;
            if self.worth(x, p, p) < self.worth(v, p, p + 1)
                && self.spill_cost(x, p, gone) + MOVE < spill_cost
                && gone.at != p
            {
                self.store(to);
                self.copy(r, to);
                return Some(to);
            }
        }
        self.store(r);
        None
    }

    fn node(&mut self, p: usize, node: &Node) -> Option<()> {
        let operands = &node.operands;
        let mut places: Vec<Option<usize>> = vec![None; operands.len()];
        let memory = self.in_memory(p, node);
        let reads = |k: &usize| matches!(operands[*k].role, Role::Use | Role::Overwritten) && memory != Some(*k);
        let mut sources: Vec<usize> = (0..operands.len()).filter(reads).collect();
        sources.sort_by_key(|&k| {
            (operands[k].within.count_ones(), operands[k].role == Role::Use, self.holders(operands[k].value) == 0, k)
        });
        let (mut pinned, mut overwritten) = (0, 0);
        for &k in &sources {
            let o = &operands[k];
            // A value tied to two results needs two registers.
            let other = if o.role == Role::Overwritten { overwritten } else { 0 };
            let r = self.bring(o.value, o.within, other, pinned, p)?;
            places[k] = Some(r);
            pinned |= 1 << r;
            if o.role == Role::Overwritten {
                overwritten |= 1 << r;
            }
        }
        let mut lost = node.destroyed | overwritten;
        let certain = |k: &usize| operands[*k].role == Role::Def && operands[*k].within.count_ones() == 1;
        lost |= (0..operands.len()).filter(certain).fold(0, |s, k| s | operands[k].within);
        for &k in sources.iter().filter(|&&k| operands[k].role == Role::Overwritten) {
            let r = places[k]?;
            if let Some(to) = self.preserve(r, lost, pinned, p) {
                // Either of the two registers may be the one that is overwritten.
                let result = operands[k + 1].value;
                let better = self.hints.prefers(result, to, operands[k].value, r);
                let alone = sources.iter().filter(|&&j| places[j] == Some(r)).count() == 1;
                if better && alone && operands[k].within & 1 << to != 0 {
                    places[k] = Some(to);
                    (lost, pinned) = (lost & !(1 << r) | 1 << to, pinned | 1 << to);
                }
            }
        }
        for r in members(node.destroyed) {
            self.preserve(r, lost, pinned, p);
        }
        self.results(p, node, &mut places, lost, pinned)?;
        let place = |(k, r): (usize, &Option<usize>)| match r {
            Some(r) => Some(self.place(*r)),
            None => self.home[operands[k].value].map(Place::Slot),
        };
        let all = places.iter().enumerate().map(place).collect::<Option<Vec<_>>>()?;
        self.steps.push(Step::Inst(node.index, all));
        for r in members(node.destroyed) {
            self.contents[r] = None;
        }
        for (o, r) in operands.iter().zip(&places) {
            if let (Role::Result | Role::Def, Some(r)) = (o.role, r) {
                self.contents[*r] = Some(o.value);
            }
        }
        self.release(p, node);
        Some(())
    }

    /// Registers for the results of instruction `p`.
    fn results(
        &mut self,
        p: usize,
        node: &Node,
        places: &mut [Option<usize>],
        mut lost: RegSet,
        pinned: RegSet,
    ) -> Option<()> {
        let operands = &node.operands;
        let mut taken = node.destroyed;
        let mut made: Vec<usize> = Vec::new();
        for k in 0..operands.len() {
            match operands[k].role {
                Role::Result => {
                    places[k] = places[k - 1];
                    taken |= 1 << places[k]?;
                }
                Role::Def => made.push(k),
                _ => {}
            }
        }
        made.sort_by_key(|&k| (operands[k].within.count_ones(), k));
        for k in made {
            let o = &operands[k];
            let among = o.within & !taken;
            let r = match self.best_free(among, lost, o.value, p, p + 1) {
                Some(r) => r,
                None => self.cheapest_to_evict(among, p, p + 1)?,
            };
            taken |= 1 << r;
            lost |= 1 << r;
            self.preserve(r, lost, pinned, p);
            places[k] = Some(r);
        }
        // Which of them has which register is free.
        let rising: Vec<usize> = node.ascending.iter().copied().filter(|&k| operands[k].role == Role::Def).collect();
        let mut registers: Vec<usize> = rising.iter().filter_map(|&k| places[k]).collect();
        registers.sort_by_key(|&r| self.code.registers[r].0);
        if rising.iter().zip(&registers).all(|(&k, &r)| operands[k].within & 1 << r != 0) {
            rising.into_iter().zip(registers).for_each(|(k, r)| places[k] = Some(r));
        }
        Some(())
    }

    /// Frees the places of operands that have no use after instruction `p`.
    fn release(&mut self, p: usize, node: &Node) {
        for o in &node.operands {
            self.pass(p, o.value);
        }
    }

    fn pass(&mut self, p: usize, v: Value) {
        while self.next_use(v).is_some_and(|u| u.at <= p) {
            self.done[v] += 1;
        }
        if self.next_use(v).is_none() {
            self.contents.iter_mut().filter(|h| **h == Some(v)).for_each(|h| *h = None);
            if let Some(slot) = self.home[v].take() {
                self.slots[slot as usize] = None;
                self.left.insert(slot, self.steps.len());
            }
        }
    }
}
