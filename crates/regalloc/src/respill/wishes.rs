//! Which registers and slots values had better be in.

use super::code::{Code, Role, Set, Value, members};
use ciphermill_vcode::Place;
use std::collections::BTreeSet;

pub struct Wishes {
    all: Set,
    /// By value: registers that its nearest operands may be in; all, where it does not matter.
    fit: Vec<Set>,
    /// The same, with the register that the block's exit wants.
    like: Vec<Set>,
    /// By value: the slot that the exit wants it in.
    pub slot: Vec<Option<u32>>,
    /// All these slots.
    pub kept: BTreeSet<u32>,
    /// By register: how many operands want it that not any register will do for.
    asked: Vec<usize>,
    /// By register: instructions that leave nothing else in it.
    cleared: Vec<Vec<usize>>,
}

/// What comes first, as far as what comes later can be had with it.
fn narrowed(near: Set, far: Set) -> Set {
    if near & far == 0 { near } else { near & far }
}

impl Wishes {
    pub fn new(code: &Code) -> Wishes {
        let values = code.uses.len();
        let mut w = Wishes {
            all: code.usable,
            fit: vec![code.usable; values],
            like: vec![code.usable; values],
            slot: vec![None; values],
            kept: BTreeSet::new(),
            asked: vec![0; code.registers.len()],
            cleared: vec![Vec::new(); code.registers.len()],
        };
        for &(place, v) in code.exit.iter().filter(|_| !code.open) {
            match place {
                Place::Reg(r) => {
                    let set = code.registers.iter().position(|c| *c == r).map_or(0, |i| 1 << i);
                    w.like[v] = narrowed(set, w.like[v]);
                }
                Place::Slot(slot) => {
                    w.slot[v] = Some(slot);
                    w.kept.insert(slot);
                }
            }
        }
        for (at, node) in code.nodes.iter().enumerate().rev() {
            let mut cleared = node.destroyed;
            for (k, o) in node.operands.iter().enumerate() {
                let list = [&mut w.fit, &mut w.like];
                match o.role {
                    Role::Use => list.into_iter().for_each(|s| s[o.value] = narrowed(o.within, s[o.value])),
                    // The result goes on in its register, unless the value does.
                    Role::Overwritten => {
                        let last = code.uses[o.value].last().is_some_and(|u| u.at == at);
                        let goes = if last { node.operands[k + 1].value } else { o.value };
                        list.into_iter().for_each(|s| s[o.value] = narrowed(o.within, s[goes]));
                    }
                    Role::Result | Role::Def => {
                        list.into_iter().for_each(|s| s[o.value] = narrowed(o.within, s[o.value]))
                    }
                }
                if o.within != code.usable {
                    members(o.within).for_each(|r| w.asked[r] += 1);
                }
                if o.within.count_ones() == 1 {
                    cleared |= o.within;
                }
            }
            members(cleared).for_each(|r| w.cleared[r].push(at));
        }
        w.cleared.iter_mut().for_each(|list| list.reverse());
        w
    }

    /// How much speaks against register `r` for a value from instruction `p` on, with its next and
    /// its last use.
    pub fn against(&self, v: Value, r: usize, p: usize, next: usize, last: usize) -> (usize, usize) {
        let bit = 1 << r;
        let cleared = &self.cleared[r];
        let first = cleared.get(cleared.partition_point(|&at| at <= p)).copied().unwrap_or(usize::MAX);
        let misfit = 2 * usize::from(self.fit[v] & bit == 0) + usize::from(self.like[v] & bit == 0);
        let alone = self.fit[v] == bit;
        let moved = if alone { 0 } else { usize::from(first < next) + usize::from(first < last) };
        let waste = if self.fit[v] == self.all { self.asked[r] } else { 0 };
        (misfit + moved, waste)
    }

    /// Had value `a` better be in register `r` and `b` in `q` than the other way round?
    pub fn prefers(&self, a: Value, r: usize, b: Value, q: usize) -> bool {
        let misfit =
            |v: Value, r: usize| 2 * usize::from(self.fit[v] & 1 << r == 0) + usize::from(self.like[v] & 1 << r == 0);
        misfit(a, r) + misfit(b, q) < misfit(a, q) + misfit(b, r)
    }
}
