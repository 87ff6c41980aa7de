//! Removes spills, reloads and copies that allocation did not need.
//!
//! Tied operands put several values into one live range. When the allocator splits it, it stores
//! every one of these values to the range's slot, even those that are never reloaded. After
//! allocation, for each block:
//!
//! * a reload of a value that is still in a register becomes a copy, or goes;
//! * copies are propagated: a use reads the register that has had the value longest;
//! * a reload with one use becomes a memory operand where the machine has one ([`FoldTable`]);
//! * a dead move goes.
//!
//! Facts at the end of a block also hold at the start of a successor with no other predecessor.
//! Only machines with two-address instructions are treated.

use crate::fold::FoldTable;
use ciphermill_machine::{Machine, Reg};
use ciphermill_vcode::Facts;
use ciphermill_vcode::places::PlaceSet;
use ciphermill_vcode::{Allocated, Place, Step};
use ciphermill_vcode::{VFunc, VInst, VKind, VOp};
use smallvec::{SmallVec, smallvec};
use std::collections::HashMap;

/// What an instruction does with one of its places.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Access {
    /// Operand of this index, which only reads.
    Use(usize),
    /// A read whose register must not change.
    Bound,
    Def,
}

fn accesses(inst: &VInst) -> SmallVec<[Access; 6]> {
    let mut out = SmallVec::new();
    for (i, op) in inst.ops.iter().enumerate() {
        match op {
            VOp::Use(_) => out.push(Access::Use(i)),
            VOp::Def(_) => out.push(Access::Def),
            VOp::Tied { .. } => out.extend([Access::Bound, Access::Def]),
            _ => {}
        }
    }
    out.extend(inst.fixed_uses.iter().map(|_| Access::Bound));
    out.extend(inst.fixed_defs.iter().map(|_| Access::Def));
    out
}

type Touched = SmallVec<[Place; 4]>;

/// Value numbers by place, each with the time since when the place has it.
#[derive(Clone, Default)]
struct Contents {
    values: HashMap<Place, (u32, u32)>,
    count: u32,
}

impl Contents {
    fn put(&mut self, place: Place, value: u32) {
        self.count += 1;
        self.values.insert(place, (value, self.count));
    }

    /// A value that no other place has.
    fn fresh(&mut self, place: Place) -> u32 {
        let value = self.count + 1;
        self.put(place, value);
        value
    }

    fn value(&mut self, place: Place) -> u32 {
        match self.values.get(&place) {
            Some(h) => h.0,
            None => self.fresh(place),
        }
    }

    /// The register that has had the value longest.
    fn first(&self, value: u32) -> Option<Place> {
        let holders = self.values.iter().filter(|(p, h)| h.0 == value && matches!(p, Place::Reg(_)));
        holders.min_by_key(|(p, h)| (h.1, **p)).map(|(p, _)| *p)
    }
}

/// The pass over one function.
pub struct MoveCleanup<'a> {
    pub func: &'a VFunc,
    pub machine: &'a Machine,
    pub facts: &'a Facts,
    pub folds: &'a FoldTable,
    /// Registers that a call destroys.
    pub clobbered: &'a [Reg],
}

impl MoveCleanup<'_> {
    pub fn run(&self, allocated: &mut Allocated) {
        let only = self.only_predecessors();
        let mut ends: Vec<Option<Contents>> = vec![None; allocated.blocks.len()];
        for (b, steps) in allocated.blocks.iter_mut().enumerate() {
            self.as_moves(b, steps);
            let known = only[b].and_then(|p| ends[p].clone()).unwrap_or_default();
            ends[b] = Some(self.forward(b, steps, known));
        }
        self.drop_dead(allocated);
        let (_, outs) = self.live(allocated);
        for (b, steps) in allocated.blocks.iter_mut().enumerate() {
            self.take_in(b, steps, &outs[b]);
        }
        self.drop_dead(allocated);
    }

    /// Move instructions of the program become steps like the allocator's.
    fn as_moves(&self, b: usize, steps: &mut Vec<Step>) {
        for step in steps.iter_mut() {
            let Step::Inst(index, places) = step else { continue };
            let inst = self.inst(b, *index);
            if inst.instr != self.machine.abi.ops.mov || inst.kind != VKind::Normal {
                continue;
            }
            let (from, to) = match (&inst.ops[..], &places[..]) {
                ([VOp::Def(_), VOp::Use(_)], &[to, from]) | ([VOp::Use(_), VOp::Def(_)], &[from, to]) => (from, to),
                _ => continue,
            };
            *step = Step::Move { from, to };
        }
        steps.retain(|s| !matches!(s, Step::Move { from, to } if from == to));
    }

    /// For each block its predecessor, if it has only one.
    fn only_predecessors(&self) -> Vec<Option<usize>> {
        let mut preds = vec![Vec::new(); self.func.blocks.len()];
        for (b, block) in self.func.blocks.iter().enumerate() {
            block.succs.iter().for_each(|s| preds[s.0 as usize].push(b));
        }
        // Control comes to the first block from outside, too.
        let only = |(b, list): (usize, Vec<usize>)| if let (&[p], true) = (&list[..], b > 0) { Some(p) } else { None };
        preds.into_iter().enumerate().map(only).collect()
    }

    fn inst(&self, b: usize, index: usize) -> &VInst {
        &self.func.blocks[b].insts[index]
    }

    /// Registers that an instruction clobbers: written, and no operand.
    fn destroyed(&self, inst: &VInst) -> SmallVec<[Reg; 4]> {
        match inst.kind {
            VKind::Call => self.clobbered.iter().copied().collect(),
            _ => self.facts.fixed_writes(inst.instr).collect(),
        }
    }

    /// Removes redundant reloads and propagates copies. Takes the contents of places at the block's
    /// start and gives those at its end.
    fn forward(&self, b: usize, steps: &mut Vec<Step>, mut contents: Contents) -> Contents {
        let old = std::mem::take(steps);
        for mut step in old {
            match &mut step {
                Step::Move { from, to } => {
                    let value = contents.value(*from);
                    if contents.values.get(to).is_some_and(|h| h.0 == value) {
                        continue;
                    }
                    if let Some(first) = contents.first(value) {
                        *from = first;
                    }
                    contents.put(*to, value);
                }
                Step::Inst(index, places) => {
                    let inst = self.inst(b, *index);
                    let list = accesses(inst);
                    let only = &self.machine.instrs[usize::from(inst.instr.0)].only;
                    for (place, access) in places.iter_mut().zip(&list) {
                        if let (Access::Use(k), Place::Reg(_)) = (access, &place)
                            && only.iter().all(|o| o.0 != *k)
                            && inst.kind == VKind::Normal
                            && let Some(first) = contents.values.get(place).and_then(|h| contents.first(h.0))
                        {
                            *place = first;
                        }
                    }
                    for r in self.destroyed(inst) {
                        contents.fresh(Place::Reg(r));
                    }
                    for (place, access) in places.iter().zip(&list) {
                        if *access == Access::Def {
                            contents.fresh(*place);
                        }
                    }
                }
            }
            steps.push(step);
        }
        contents
    }

    /// Reads and writes of a step, in that order.
    fn effects(&self, b: usize, step: &Step) -> (Touched, Touched) {
        match step {
            Step::Move { from, to } => (smallvec![*from], smallvec![*to]),
            Step::Inst(index, places) => {
                let inst = self.inst(b, *index);
                let (mut reads, mut writes) = (Touched::new(), Touched::new());
                for (place, access) in places.iter().zip(accesses(inst)) {
                    if access == Access::Def { writes.push(*place) } else { reads.push(*place) }
                }
                writes.extend(self.destroyed(inst).into_iter().map(Place::Reg));
                (reads, writes)
            }
        }
    }

    fn before(&self, b: usize, step: &Step, live: &mut PlaceSet) {
        match step {
            Step::Move { from, to } => {
                live.remove(*to);
                live.insert(*from);
            }
            Step::Inst(index, places) => {
                let inst = self.inst(b, *index);
                let list = accesses(inst);
                let all = || places.iter().copied().zip(&list);
                self.destroyed(inst).into_iter().for_each(|r| live.remove(Place::Reg(r)));
                all().filter(|(_, a)| **a == Access::Def).for_each(|(p, _)| live.remove(p));
                all().filter(|(_, a)| **a != Access::Def).for_each(|(p, _)| live.insert(p));
            }
        }
    }

    /// Live-in and live-out places of each block.
    pub fn live(&self, allocated: &Allocated) -> (Vec<PlaceSet>, Vec<PlaceSet>) {
        let n = allocated.blocks.len();
        let (mut ins, mut outs, mut written) = (vec![PlaceSet::default(); n], vec![PlaceSet::default(); n], Vec::new());
        for (b, steps) in allocated.blocks.iter().enumerate() {
            steps.iter().rev().for_each(|step| self.before(b, step, &mut ins[b]));
            written.push(self.written(b, steps));
        }
        let mut changed = true;
        while changed {
            changed = false;
            for b in (0..n).rev() {
                for (s, _) in &self.func.blocks[b].succs {
                    outs[b].join(&ins[*s as usize], None);
                }
                changed |= ins[b].join(&outs[b], Some(&written[b]));
            }
        }
        (ins, outs)
    }

    pub fn written(&self, b: usize, steps: &[Step]) -> PlaceSet {
        let mut written = PlaceSet::default();
        for step in steps {
            match step {
                Step::Move { to, .. } => written.insert(*to),
                Step::Inst(index, places) => {
                    let inst = self.inst(b, *index);
                    self.destroyed(inst).into_iter().for_each(|r| written.insert(Place::Reg(r)));
                    let made = places.iter().zip(accesses(inst)).filter(|(_, a)| *a == Access::Def);
                    made.for_each(|(p, _)| written.insert(*p));
                }
            }
        }
        written
    }

    pub fn drop_dead(&self, allocated: &mut Allocated) {
        let (_, outs) = self.live(allocated);
        for (b, out) in outs.into_iter().enumerate() {
            let mut live = out;
            let mut left = Vec::new();
            for step in std::mem::take(&mut allocated.blocks[b]).into_iter().rev() {
                if matches!(&step, Step::Move { to, .. } if !live.contains(*to)) {
                    continue;
                }
                self.before(b, &step, &mut live);
                left.push(step);
            }
            left.reverse();
            allocated.blocks[b] = left;
        }
    }

    /// Reloads with one use become memory operands.
    fn take_in(&self, b: usize, steps: &mut Vec<Step>, out: &PlaceSet) {
        let mut i = 0;
        while i < steps.len() {
            if let Step::Move { from: from @ Place::Slot(_), to: to @ Place::Reg(_) } = steps[i]
                && let Some((j, at)) = self.only_use(b, &steps[i + 1..], from, to, out)
            {
                match &mut steps[i + 1 + j] {
                    Step::Inst(_, places) => places[at] = from,
                    Step::Move { from: reg, .. } => *reg = from,
                }
                steps.remove(i);
                continue;
            }
            i += 1;
        }
    }

    /// The only read of `reg` before it is written again, if it can read `slot`: step and place in it.
    fn only_use(&self, b: usize, steps: &[Step], slot: Place, reg: Place, out: &PlaceSet) -> Option<(usize, usize)> {
        let mut found = None;
        for (j, step) in steps.iter().enumerate() {
            let (reads, writes) = self.effects(b, step);
            let count = reads.iter().filter(|&&r| r == reg).count();
            if count > 1 || (count == 1 && found.is_some()) {
                return None;
            }
            if count == 1 {
                let (index, places) = match step {
                    Step::Inst(index, places) => (index, places),
                    Step::Move { to: Place::Reg(_), .. } => {
                        found = Some((j, 0));
                        if writes.contains(&reg) {
                            return found;
                        }
                        continue;
                    }
                    Step::Move { .. } => return None,
                };
                let inst = self.inst(b, *index);
                let in_memory = places.iter().any(|p| matches!(p, Place::Slot(_)));
                let (at, operand) = places.iter().zip(accesses(inst)).enumerate().find_map(|(n, (p, a))| match a {
                    Access::Use(k) if *p == reg => Some((n, k)),
                    _ => None,
                })?;
                self.folds.folded(inst.instr, operand).filter(|_| !in_memory && inst.mem.is_none())?;
                found = Some((j, at));
            }
            if writes.contains(&reg) {
                return found;
            }
            if writes.contains(&slot) && found.is_none() {
                return None;
            }
        }
        found.filter(|_| !out.contains(reg))
    }
}
