//! At a trace's exit: moves to the places that its successors expect.

use super::code::{RegSet, Value, members};
use super::furthest::State;
use ciphermill_vcode::Place;

impl State<'_> {
    /// The parallel move at the exit; None where it needs a scratch register and none is free.
    pub fn leave(&mut self) -> Option<()> {
        let number = |p: &Place| self.code.registers.iter().position(|r| *p == Place::Reg(*r));
        let mut slots: Vec<(u32, Value)> = Vec::new();
        let mut registers: Vec<(usize, Value)> = Vec::new();
        for (place, v) in &self.code.exit {
            match place {
                Place::Slot(slot) => slots.push((*slot, *v)),
                place => registers.push((number(place)?, *v)),
            }
        }
        self.fill_slots(&slots, &registers)?;
        self.fill_registers(&registers)
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
                let x = self.slots.get(left.first()?.0 as usize).copied().flatten()?;
                let r = self.idle(registers, 0)?;
                self.load(x, r)?;
            }
        }
        Some(())
    }

    fn fill_slot(&mut self, slot: u32, v: Value, registers: &[(usize, Value)]) -> Option<()> {
        let r = match members(self.holders(v)).next() {
            Some(r) => r,
            None => {
                let r = self.idle(registers, 0)?;
                self.load(v, r)?;
                r
            }
        };
        if let Some(x) = self.slots.get(slot as usize).copied().flatten().filter(|&x| self.home[x] == Some(slot)) {
            self.home[x] = None;
        }
        self.steps.push(ciphermill_vcode::Step::Move { from: self.place(r), to: Place::Slot(slot) });
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
