//! The allocator: through the trace once, and what is wanted last gives way.
//!
//! For each instruction, in this order: sources are brought into registers that will do,
//! those first that few registers will do for, unless one is read in memory; what the
//! instruction overwrites or destroys and is wanted afterwards is copied or stored; results
//! get registers. A value that is stored stays so: giving its register up again costs
//! nothing. What a value costs that gives its register up (a store, unless it is stored, and
//! a load, or an operand in memory) is weighed by how far its next use is, or, by another
//! [`Taste`], only how far it is (Belady, IBM Systems Journal 5, 1966).

use super::code::{Code, Node, Places, Role, Set, Use, Value, members};
use super::wishes::Wishes;
use ciphermill_vcode::{Place, Step};

/// Costs as [`ciphermill_vcode::Allocated::cost`] counts them.
const MOVE: usize = 2;
const TRANSFER: usize = 3;
const OPERAND: usize = 1;

/// What is stored and read again within so many instructions is waited for, which counts so
/// much more.
const NEAR: usize = 16;
const LATE: usize = 4;

/// A use that never comes.
const NEVER: usize = usize::MAX;

/// No one of them is best for all code.
#[derive(Clone, Copy)]
pub struct Taste {
    /// What giving up costs is weighed, not only how long it frees a register.
    pub weighed: bool,
}

/// Uses so many instructions ahead are counted for whether a value is loaded or read in memory.
const AHEAD: usize = 12;

pub struct State<'a> {
    pub code: &'a Code,
    wishes: &'a Wishes,
    taste: Taste,
    /// By register.
    pub held: Vec<Option<Value>>,
    /// By value: the slot that has it, too.
    pub home: Vec<Option<u32>>,
    /// By slot.
    pub slots: Vec<Option<Value>>,
    /// By value: how many of its uses are behind.
    done: Vec<usize>,
    pub steps: Vec<Step>,
    /// Where each block of the trace ends in these.
    ends: Vec<usize>,
    sides: Vec<(usize, Places)>,
}

/// What came of a trace.
pub struct Outcome {
    /// For each block.
    pub blocks: Vec<Vec<Step>>,
    pub slots: u32,
    /// For the blocks beside the trace, where the values are that they begin with.
    pub sides: Vec<(usize, Places)>,
}

impl<'a> State<'a> {
    pub fn new(code: &'a Code, wishes: &'a Wishes, taste: Taste) -> State<'a> {
        let mut s = State {
            code,
            wishes,
            taste,
            held: vec![None; code.registers.len()],
            home: vec![None; code.uses.len()],
            slots: vec![None; code.slots as usize],
            done: vec![0; code.uses.len()],
            steps: Vec::with_capacity(2 * code.nodes.len()),
            ends: Vec::new(),
            sides: Vec::new(),
        };
        for &(place, v) in code.entry.iter().filter(|(_, v)| !code.uses[*v].is_empty()) {
            match place {
                Place::Reg(r) => {
                    s.held.iter_mut().zip(&code.registers).filter(|(_, c)| **c == r).for_each(|(h, _)| *h = Some(v))
                }
                Place::Slot(slot) => s.settle(v, slot),
            }
        }
        s
    }

    /// The whole trace; None where some instruction finds no registers.
    pub fn run(mut self) -> Option<Outcome> {
        self.go()?;
        self.leave()?;
        self.steps.extend(self.code.end.map(|index| Step::Inst(index, Vec::new())));
        self.ends.push(self.steps.len());
        let mut steps = self.steps.into_iter();
        let mut from = 0;
        let block = |&end: &usize| steps.by_ref().take(end - std::mem::replace(&mut from, end)).collect();
        let blocks = self.ends.iter().map(block).collect();
        Some(Outcome { blocks, slots: self.slots.len() as u32, sides: self.sides })
    }

    /// Where the values end up that the exit wants somewhere; in their slots rather than in
    /// registers, on request, where they are in both.
    pub fn resting(mut self, slots: bool) -> Option<Vec<Place>> {
        self.go()?;
        let mut taken: Vec<Place> = Vec::new();
        for &(_, v) in &self.code.exit {
            let registers = members(self.holders(v)).map(|r| self.place(r));
            let slot =
                self.slots.iter().enumerate().filter(|(_, s)| **s == Some(v)).map(|(s, _)| Place::Slot(s as u32));
            let mut all: Vec<Place> = registers.chain(slot).filter(|p| !taken.contains(p)).collect();
            if slots {
                all.reverse();
            }
            taken.push(*all.first()?);
        }
        Some(taken)
    }

    fn go(&mut self) -> Option<()> {
        let code = self.code;
        for (p, node) in code.nodes.iter().enumerate() {
            match &node.sides {
                Some(sides) => self.end(p, node, sides)?,
                None => self.node(p, node)?,
            }
        }
        Some(())
    }

    /// The end of a block within the trace.
    fn end(&mut self, p: usize, node: &Node, sides: &[(usize, Places)]) -> Option<()> {
        for (b, wanted) in sides {
            let mut places = Places::new();
            for &(_, v) in wanted {
                let place = match members(self.holders(v)).next() {
                    Some(r) => self.place(r),
                    None => Place::Slot(self.home[v]?),
                };
                if !places.contains(&(place, v)) {
                    places.push((place, v));
                }
            }
            self.sides.push((*b, places));
        }
        self.steps.push(Step::Inst(node.index, Vec::new()));
        self.ends.push(self.steps.len());
        for &(_, v) in sides.iter().flat_map(|s| &s.1) {
            self.pass(p, v);
        }
        Some(())
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

    /// Registers that hold a value.
    pub fn holders(&self, v: Value) -> Set {
        self.held.iter().enumerate().filter(|(_, h)| **h == Some(v)).fold(0, |s, (r, _)| s | 1 << r)
    }

    /// A value is in a slot from here on.
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
        self.held[to] = self.held[from];
    }

    /// Take a value from its slot.
    pub fn load(&mut self, v: Value, to: usize) -> Option<()> {
        let step = Step::Move { from: Place::Slot(self.home[v]?), to: self.place(to) };
        self.steps.push(step);
        self.held[to] = Some(v);
        Some(())
    }

    /// The value in a register is in a slot, too, from here on.
    pub fn store(&mut self, r: usize) {
        let Some(v) = self.held[r].filter(|&v| self.home[v].is_none()) else { return };
        let taken = |slot: u32| self.slots.get(slot as usize).is_some_and(Option::is_some);
        let own = self.wishes.slot[v].filter(|&slot| !taken(slot));
        let slot = own.or_else(|| (0..).find(|slot| !taken(*slot) && !self.wishes.kept.contains(slot)));
        let Some(slot) = slot else { return };
        let step = Step::Move { from: self.place(r), to: Place::Slot(slot) };
        self.steps.push(step);
        self.settle(v, slot);
    }

    /// What it costs if a value loses its register in front of instruction `p`, before its use.
    fn loss(&self, v: Value, p: usize, next: Use) -> usize {
        let store = if self.home[v].is_some() || self.wishes.slot[v].is_some() { 0 } else { TRANSFER };
        let fetch = match next.memory {
            true if next.at == self.code.nodes.len() => 0,
            true => OPERAND,
            false => TRANSFER,
        };
        let soon = next.at < p + NEAR && next.at < self.code.nodes.len();
        store + fetch + if soon { LATE } else { 0 }
    }

    /// How much a value is to be kept in its register at instruction `p`, for what it is
    /// wanted for from instruction `from` on.
    fn worth(&self, v: Value, p: usize, from: usize) -> usize {
        let Some(next) = self.use_from(v, from) else { return 0 };
        let (loss, away) = (self.loss(v, p, next), next.at - p + 1);
        if self.taste.weighed { 1 + (loss << 20) / away } else { ((1 << 40) / away) + loss }
    }

    /// The register whose value is worth least.
    fn least(&self, among: Set, p: usize, from: usize) -> Option<usize> {
        members(among).min_by_key(|&r| (self.held[r].map_or(0, |v| self.worth(v, p, from)), r))
    }

    /// The best for value `v` of registers in which nothing is that is wanted from instruction
    /// `from` on and not in a register outside `lost`, too.
    fn free(&self, among: Set, lost: Set, v: Value, p: usize, from: usize) -> Option<usize> {
        let spare = |&r: &usize| match self.held[r] {
            Some(w) => !self.wanted_from(w, from) || self.holders(w) & !lost & !(1 << r) != 0,
            None => true,
        };
        let last = self.code.uses[v].last().map_or(p, |u| u.at);
        let next = self.use_from(v, p + 1).map_or(p, |u| u.at);
        let rank = |&r: &usize| (self.wishes.against(v, r, p, next, last), self.held[r].is_some(), r);
        members(among).filter(spare).min_by_key(rank)
    }

    /// A register of `within`, and not of `pinned`, for value `v` in front of instruction `p`.
    fn room(&mut self, within: Set, pinned: Set, v: Value, p: usize) -> Option<usize> {
        let among = within & !pinned;
        if let Some(r) = self.free(among, 0, v, p, p) {
            return Some(r);
        }
        let r = self.least(among, p, p)?;
        let w = self.held[r]?;
        let next = self.next_use(w)?;
        let others = self.code.usable & !pinned & !within;
        let (urgent, loss) = (next.at == p, self.loss(w, p, next));
        if let Some(to) = self.free(others, 0, w, p, p) {
            if urgent || loss > MOVE {
                self.copy(r, to);
                return Some(r);
            }
        } else if let Some(to) = self.least(others, p, p) {
            let x = self.held[to]?;
            let gone = self.next_use(x)?;
            let better = self.worth(x, p, p) < self.worth(w, p, p) && self.loss(x, p, gone) + MOVE < loss;
            if gone.at != p && (urgent || better) {
                self.store(to);
                self.copy(r, to);
                return Some(r);
            }
        }
        self.store(r);
        Some(r)
    }

    /// Have a value in a register of `within` that is not of `other`'s.
    fn bring(&mut self, v: Value, within: Set, other: Set, pinned: Set, p: usize) -> Option<usize> {
        let holders = self.holders(v);
        if let Some(r) = members(holders & within & !other).next() {
            return Some(r);
        }
        let to = self.room(within, pinned | holders, v, p).or_else(|| self.room(within, pinned, v, p))?;
        match members(self.holders(v) & !(1 << to)).next() {
            Some(from) => self.copy(from, to),
            None => self.load(v, to)?,
        }
        Some(to)
    }

    /// The operand that instruction `p` reads in memory.
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
        let spare = || self.free(node.operands[k].within, 0, v, p, p).is_some();
        (saved + OPERAND <= TRANSFER || !spare()).then_some(k)
    }

    /// The value of register `r`, which instruction `p` takes from it, is elsewhere afterwards.
    /// Gives the register it was copied to.
    fn preserve(&mut self, r: usize, lost: Set, pinned: Set, p: usize) -> Option<usize> {
        let v = self.held[r]?;
        let next = self.use_from(v, p + 1)?;
        if self.holders(v) & !lost != 0 {
            return None;
        }
        let among = self.code.usable & !lost & !pinned;
        let loss = self.loss(v, p, next);
        if let Some(to) = self.free(among, lost, v, p, p) {
            if loss > MOVE {
                self.copy(r, to);
                return Some(to);
            }
        } else if let Some(to) = self.least(among, p, p) {
            let x = self.held[to]?;
            let gone = self.next_use(x)?;
            if self.worth(x, p, p) < self.worth(v, p, p + 1) && self.loss(x, p, gone) + MOVE < loss && gone.at != p {
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
            // Two results are in two registers, though of one value.
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
                // Either may be the one that is overwritten.
                let result = operands[k + 1].value;
                let better = self.wishes.prefers(result, to, operands[k].value, r);
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
            self.held[r] = None;
        }
        for (o, r) in operands.iter().zip(&places) {
            if let (Role::Result | Role::Def, Some(r)) = (o.role, r) {
                self.held[*r] = Some(o.value);
            }
        }
        self.release(p, node);
        Some(())
    }

    /// Registers for what instruction `p` makes.
    fn results(
        &mut self,
        p: usize,
        node: &Node,
        places: &mut [Option<usize>],
        mut lost: Set,
        pinned: Set,
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
            let r = match self.free(among, lost, o.value, p, p + 1) {
                Some(r) => r,
                None => self.least(among, p, p + 1)?,
            };
            taken |= 1 << r;
            lost |= 1 << r;
            self.preserve(r, lost, pinned, p);
            places[k] = Some(r);
        }
        Some(())
    }

    /// What has no use behind instruction `p` is nowhere any longer.
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
            self.held.iter_mut().filter(|h| **h == Some(v)).for_each(|h| *h = None);
            if let Some(slot) = self.home[v].take() {
                self.slots[slot as usize] = None;
            }
        }
    }
}
