//! Moves on an edge to a block with several predecessors, whose live-in values have certain places.

use super::code::{Assignment, RegSet, Value, members};
use super::state::State;
use ciphermill_vcode::{Place, Step};

impl State<'_> {
    /// The parallel move to these places.
    pub fn leave(&mut self, exit: &Assignment) -> Option<()> {
        let mut slots: Vec<(u32, Value)> = Vec::new();
        let mut registers: Vec<(usize, Value)> = Vec::new();
        for &(place, v) in exit {
            match place {
                Place::Slot(slot) => slots.push((slot, v)),
                place => registers.push((self.code.number(place)?, v)),
            }
        }
        self.fill_slots(&slots, &registers)?;
        self.fill_registers(&registers)
    }

    /// A register for a value on its way between slots: one whose own value is dead or also in another
    /// place; else one is spilled.
    fn scratch(&mut self, registers: &[(usize, Value)]) -> Option<usize> {
        let found = match self.idle(registers, 0) {
            Some(r) => r,
            None => {
                let r = members(self.code.usable).next()?;
                self.store(r);
                r
            }
        };
        self.contents[found] = None;
        Some(found)
    }

    /// A register whose value is dead or also in another place.
    fn idle(&self, registers: &[(usize, Value)], not: RegSet) -> Option<usize> {
        let idle = |&r: &usize| match self.contents[r] {
            None => true,
            Some(v) => self.holders(v) & !(1 << r) != 0 || registers.iter().all(|w| w.1 != v) && self.home[v].is_some(),
        };
        members(self.code.usable & !not).find(idle)
    }

    fn fill_slots(&mut self, slots: &[(u32, Value)], registers: &[(usize, Value)]) -> Option<()> {
        let mut left: Vec<(u32, Value)> = slots.to_vec();
        while !left.is_empty() {
            let before = left.len();
            let mut later = Vec::new();
            for (slot, v) in left {
                let there = self.slots.get(slot as usize).copied().flatten();
                if there == Some(v) {
                    continue;
                }
                // The slot's old value may be live and in no other place.
                if there.is_some_and(|x| self.home[x] == Some(slot) && self.holders(x) == 0) {
                    later.push((slot, v));
                    continue;
                }
                self.fill_slot(slot, v, registers)?;
            }
            left = later;
            if left.len() == before {
                // The slots form a cycle, which a register breaks.
                let slot = left.first()?.0 as usize;
                let x = self.slots.get(slot).copied().flatten()?;
                let r = self.scratch(registers)?;
                self.load(x, r)?;
                (self.home[x], self.slots[slot]) = (None, None);
            }
        }
        Some(())
    }

    fn fill_slot(&mut self, slot: u32, v: Value, registers: &[(usize, Value)]) -> Option<()> {
        if let Some(x) = self.slots.get(slot as usize).copied().flatten().filter(|&x| self.home[x] == Some(slot)) {
            self.home[x] = None;
        }
        let r = match members(self.holders(v)).next() {
            Some(r) => r,
            None => {
                let r = self.scratch(registers)?;
                self.load(v, r)?;
                r
            }
        };
        self.steps.push(Step::Move { from: self.place(r), to: Place::Slot(slot) });
        self.settle(v, slot);
        Some(())
    }

    fn fill_registers(&mut self, registers: &[(usize, Value)]) -> Option<()> {
        loop {
            let left: Vec<(usize, Value)> =
                registers.iter().copied().filter(|&(r, v)| self.contents[r] != Some(v)).collect();
            let Some(&(first, _)) = left.first() else { return Some(()) };
            let wanted = |x: Value| left.iter().any(|w| w.1 == x);
            let open = |&(r, _): &(usize, Value)| {
                self.contents[r].is_none_or(|x| !wanted(x) || self.holders(x) & !(1 << r) != 0)
            };
            let Some(&(r, v)) = left.iter().find(|w| open(w)) else {
                // The moves form a cycle, which a scratch place breaks.
                let targets = registers.iter().fold(0, |s, w| s | 1 << w.0);
                match self.idle(registers, targets) {
                    Some(to) => self.copy(first, to),
                    None => {
                        self.store(first);
                        self.contents[first] = None;
                    }
                }
                continue;
            };
            match members(self.holders(v)).next() {
                Some(from) => self.copy(from, r),
                None => self.load(v, r)?,
            }
        }
    }
}
