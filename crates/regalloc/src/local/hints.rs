//! Register hints: which registers and slots suit a value best.

use super::code::{Code, RegSet, Role, Value, members};
use ciphermill_vcode::Place;
use std::collections::BTreeSet;

pub struct RegisterHints {
    all: RegSet,
    /// By value: registers that its nearest constrained operands may be in; all, if there is none.
    fit: Vec<RegSet>,
    /// The same, with the register that the trace's exit wants.
    like: Vec<RegSet>,
    /// By value: the slot that the exit wants it in.
    pub slot: Vec<Option<u32>>,
    /// All slots in `slot`.
    pub exit_slots: BTreeSet<u32>,
    /// By register: how many constrained operands may be in it.
    demand: Vec<usize>,
    /// By register: instructions that clobber it or need it for one operand.
    clobbered_at: Vec<Vec<usize>>,
}

/// The nearer constraint, narrowed by the further one where both can be met.
fn narrowed(near: RegSet, far: RegSet) -> RegSet {
    if near & far == 0 { near } else { near & far }
}

impl RegisterHints {
    pub fn new(code: &Code) -> RegisterHints {
        let values = code.uses.len();
        let mut w = RegisterHints {
            all: code.usable,
            fit: vec![code.usable; values],
            like: vec![code.usable; values],
            slot: vec![None; values],
            exit_slots: BTreeSet::new(),
            demand: vec![0; code.registers.len()],
            clobbered_at: vec![Vec::new(); code.registers.len()],
        };
        for &(place, v) in code.exit.iter().filter(|_| !code.open) {
            match place {
                Place::Reg(r) => {
                    let set = code.registers.iter().position(|c| *c == r).map_or(0, |i| 1 << i);
                    w.like[v] = narrowed(set, w.like[v]);
                }
                Place::Slot(slot) => {
                    w.slot[v] = Some(slot);
                    w.exit_slots.insert(slot);
                }
            }
        }
        for (at, node) in code.nodes.iter().enumerate().rev() {
            let mut clobbered_at = node.destroyed;
            for (k, o) in node.operands.iter().enumerate() {
                let list = [&mut w.fit, &mut w.like];
                match o.role {
                    Role::Use => list.into_iter().for_each(|s| s[o.value] = narrowed(o.within, s[o.value])),
                    // The result takes the register over, unless the source lives on.
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
                    members(o.within).for_each(|r| w.demand[r] += 1);
                }
                if o.within.count_ones() == 1 {
                    clobbered_at |= o.within;
                }
            }
            members(clobbered_at).for_each(|r| w.clobbered_at[r].push(at));
        }
        w.clobbered_at.iter_mut().for_each(|list| list.reverse());
        w
    }

    /// Penalty of register `r` for a value from instruction `p` on, given its next and its last use.
    pub fn penalty(&self, v: Value, r: usize, p: usize, next: usize, last: usize) -> (usize, usize) {
        let bit = 1 << r;
        let clobbered_at = &self.clobbered_at[r];
        let first = clobbered_at.get(clobbered_at.partition_point(|&at| at <= p)).copied().unwrap_or(usize::MAX);
        let misfit = 2 * usize::from(self.fit[v] & bit == 0) + usize::from(self.like[v] & bit == 0);
        let alone = self.fit[v] == bit;
        let moved = if alone { 0 } else { usize::from(first < next) + usize::from(first < last) };
        let waste = if self.fit[v] == self.all { self.demand[r] } else { 0 };
        (misfit + moved, waste)
    }

    /// Is `a` in register `r` and `b` in `q` better than `a` in `q` and `b` in `r`?
    pub fn prefers(&self, a: Value, r: usize, b: Value, q: usize) -> bool {
        let misfit =
            |v: Value, r: usize| 2 * usize::from(self.fit[v] & 1 << r == 0) + usize::from(self.like[v] & 1 << r == 0);
        misfit(a, r) + misfit(b, q) < misfit(a, q) + misfit(b, r)
    }
}
