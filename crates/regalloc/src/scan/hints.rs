//! Register hints: which registers and slots suit a value best.

use super::code::{Code, RegSet, Role, Value, members};
use ciphermill_vcode::VReg;
use std::collections::{BTreeMap, BTreeSet};

/// What is best for a value at a point.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    /// Registers that its nearest constrained operands behind that point may be in.
    pub fit: RegSet,
    /// The same, with the register that a block with several predecessors wants.
    pub like: RegSet,
    /// The slot that such a block wants it in.
    pub slot: Option<u32>,
}

/// One of the registers that rise in the operands of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunPlace {
    /// The instruction.
    pub at: usize,
    pub rank: usize,
    /// How many there are.
    pub words: usize,
}

/// By live value.
pub type Wishes = BTreeMap<VReg, Wish>;

pub struct RegisterHints {
    all: RegSet,
    fit: Vec<RegSet>,
    like: Vec<RegSet>,
    /// By value: the place that it has in a run of registers that have to rise, as it is or as what it becomes.
    pub order: Vec<Option<RunPlace>>,
    /// By value: the slot it is wanted in behind the block.
    pub slot: Vec<Option<u32>>,
    /// All slots that a value is wanted in.
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
    /// `behind` is what is best where the block ends.
    pub fn new(code: &Code, behind: &Wishes) -> RegisterHints {
        let values = code.uses.len();
        let mut w = RegisterHints {
            all: code.usable,
            fit: vec![code.usable; values],
            like: vec![code.usable; values],
            order: vec![None; values],
            slot: vec![None; values],
            exit_slots: behind.values().filter_map(|w| w.slot).collect(),
            demand: vec![0; code.registers.len()],
            clobbered_at: vec![Vec::new(); code.registers.len()],
        };
        for (v, wish) in behind {
            if let Some(v) = code.known(*v) {
                (w.fit[v], w.like[v], w.slot[v]) = (wish.fit, wish.like, wish.slot);
            }
        }
        for (at, node) in code.nodes.iter().enumerate().rev() {
            let mut clobbered_at = node.destroyed;
            for (rank, &k) in node.ascending.iter().enumerate().filter(|(_, k)| node.operands[**k].role == Role::Use) {
                w.order[node.operands[k].value] = Some(RunPlace { at, rank, words: node.ascending.len() });
            }
            for (k, o) in node.operands.iter().enumerate() {
                // A source's register is its result's, unless the source lives on.
                let last = code.uses[o.value].last().is_some_and(|u| u.at == at);
                let goes = if o.role == Role::Overwritten && last { node.operands[k + 1].value } else { o.value };
                w.order[o.value] = w.order[o.value].or(w.order[goes]);
                for sets in [&mut w.fit, &mut w.like] {
                    sets[o.value] = narrowed(o.within, sets[goes]);
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

    /// What is best for the live-in values where the block begins.
    pub fn wishes(&self, code: &Code) -> Wishes {
        let wish = |&v: &Value| (code.names[v], Wish { fit: self.fit[v], like: self.like[v], slot: self.slot[v] });
        code.live_in.iter().map(wish).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::code::{Node, Operand, Use};

    const A: VReg = VReg(0);
    const B: VReg = VReg(1);

    /// A value that is overwritten by another, which one register is wanted for.
    fn code(lives_on: bool) -> Code {
        let mut code = Code::empty(&[0, 1, 2].map(ciphermill_machine::Reg), 0b111);
        let [a, b] = [A, B].map(|v| code.value(v));
        let operand = |role, value, within| Operand { role, value, within, memory: false };
        let tied = vec![operand(Role::Overwritten, a, 0b111), operand(Role::Result, b, 0b111)];
        let fixed = vec![operand(Role::Use, b, 0b010)];
        let node = |(index, (operands, destroyed))| Node { index, operands, destroyed, ascending: Vec::new() };
        code.nodes = [(tied, 0), (fixed, 0b100)].into_iter().enumerate().map(node).collect();
        code.uses[a] = vec![Use { at: 0, memory: false }];
        code.uses[b] = vec![Use { at: 1, memory: false }];
        if lives_on {
            code.uses[a].push(Use { at: 2, memory: false });
        }
        code.live_in = vec![a];
        code
    }

    #[test]
    fn a_source_suits_the_register_that_its_result_is_wanted_in() {
        let hints = RegisterHints::new(&code(false), &Wishes::new());
        assert_eq!(hints.wishes(&code(false))[&A].fit, 0b010);
        let hints = RegisterHints::new(&code(true), &Wishes::new());
        assert_eq!(hints.wishes(&code(true))[&A].fit, 0b111);
    }

    #[test]
    fn a_clobbered_register_is_worse_for_what_lives_across() {
        let code = code(true);
        let hints = RegisterHints::new(&code, &Wishes::new());
        assert!(hints.penalty(0, 2, 0, 2, 2) > hints.penalty(0, 0, 0, 2, 2));
        assert!(hints.penalty(1, 0, 0, 1, 1) > hints.penalty(1, 1, 0, 1, 1));
    }

    #[test]
    fn a_wish_from_behind_the_block_counts_where_nothing_nearer_does() {
        let wish = Wish { fit: 0b111, like: 0b001, slot: Some(3) };
        let behind = Wishes::from([(A, wish)]);
        let code = code(true);
        let hints = RegisterHints::new(&code, &behind);
        let found = hints.wishes(&code)[&A];
        assert_eq!((found.like, found.slot), (0b001, Some(3)));
    }
}
