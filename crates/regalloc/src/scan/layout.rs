//! Which values are in which places at a point between instructions.

use super::blocks::Blocks;
use super::code::{Assignment, Code, RegSet};
use super::state::State;
use ciphermill_machine::Reg;
use ciphermill_vcode::{Place, VReg};
use std::collections::BTreeSet;

#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Layout {
    /// By register, in the order of [`Code::registers`].
    pub registers: Vec<Option<VReg>>,
    /// By stack slot.
    pub slots: Vec<Option<VReg>>,
}

impl Layout {
    /// Where an allocated block leaves its values.
    pub fn behind(state: &State) -> Layout {
        let name = |v: &Option<usize>| v.map(|v| state.code.names[v]);
        // Of two slots with one value only its home counts.
        let home = |(s, v): (usize, &Option<usize>)| name(&v.filter(|&v| state.home[v] == Some(s as u32)));
        Layout {
            registers: state.contents.iter().map(name).collect(),
            slots: state.slots.iter().enumerate().map(home).collect(),
        }
    }

    fn places<'a>(&'a self, registers: &'a [Reg]) -> impl Iterator<Item = (Place, VReg)> + 'a {
        let held = self.registers.iter().zip(registers).filter_map(|(v, r)| v.map(|v| (Place::Reg(*r), v)));
        held.chain(self.slots.iter().enumerate().filter_map(|(s, v)| v.map(|v| (Place::Slot(s as u32), v))))
    }

    /// The places of the values that a block knows, by its numbers.
    pub fn of(&self, code: &Code) -> Assignment {
        let live = |(p, v): (Place, VReg)| code.known(v).filter(|&v| code.is_live_in[v]).map(|v| (p, v));
        self.places(&code.registers).filter_map(live).collect()
    }

    /// The slot that a value is in, and its registers.
    pub fn find(&self, v: VReg) -> (Option<u32>, RegSet) {
        let slot = self.slots.iter().position(|s| *s == Some(v)).map(|s| s as u32);
        let held = self.registers.iter().enumerate().filter(|(_, r)| **r == Some(v));
        (slot, held.fold(0, |s, (r, _)| s | 1 << r))
    }

    /// The layout at the start of block `to` if its predecessor `from` has this one at its end: the
    /// live-in values in one register and one slot at most, each in one place at least.
    pub fn entered(&self, blocks: &Blocks, from: usize, to: usize) -> Layout {
        let sources = blocks.sources(from, to);
        let mut there = Layout { registers: vec![None; self.registers.len()], slots: vec![None; self.slots.len()] };
        let mut placed: BTreeSet<VReg> = BTreeSet::new();
        for (r, held) in self.registers.iter().enumerate() {
            let next = sources.iter().find(|(v, a)| Some(*a) == *held && !placed.contains(v));
            if let Some((v, _)) = next {
                there.registers[r] = Some(*v);
                placed.insert(*v);
            }
        }
        let mut stored: BTreeSet<VReg> = BTreeSet::new();
        for (s, held) in self.slots.iter().enumerate() {
            let here = || sources.iter().filter(|(v, a)| Some(*a) == *held && !stored.contains(v));
            let next = here().find(|(v, _)| !placed.contains(v)).or_else(|| here().next());
            if let Some((v, _)) = next {
                there.slots[s] = Some(*v);
                stored.insert(*v);
            }
        }
        // One source for two parameters: the second needs a place of its own.
        for (v, _) in sources.iter().filter(|(v, _)| !placed.contains(v) && !stored.contains(v)) {
            let usable = there.registers.iter().position(Option::is_none);
            match usable {
                Some(r) => there.registers[r] = Some(*v),
                None => {
                    let free = |s: &usize| there.slots.get(*s).is_none_or(Option::is_none);
                    let own = blocks.names.slot(*v).map(|s| s as usize).filter(free);
                    let first = blocks.names.slots as usize;
                    let slot = own.or_else(|| (first..).find(free)).unwrap_or(first);
                    there.slots.resize(there.slots.len().max(slot + 1), None);
                    there.slots[slot] = Some(*v);
                }
            }
        }
        there
    }

    /// Forgets slots of values in registers, but for those that `other` has, too.
    pub fn keep_slots(&mut self, other: &Layout) {
        for (s, v) in self.slots.iter_mut().enumerate() {
            let needed = v.is_some_and(|v| !self.registers.contains(&Some(v)));
            if !needed && other.slots.get(s).copied().flatten() != *v {
                *v = None;
            }
        }
    }

    /// What the predecessor's values have to be moved to.
    pub fn wanted(&self, blocks: &Blocks, from: usize, to: usize, registers: &[Reg]) -> Vec<(Place, VReg)> {
        let sources = blocks.sources(from, to);
        let source = |v: VReg| sources.iter().find(|s| s.0 == v).map(|s| s.1);
        self.places(registers).filter_map(|(p, v)| source(v).map(|a| (p, a))).collect()
    }
}
