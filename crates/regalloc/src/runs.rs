//! Words at neighbouring addresses loaded or stored together: load and store multiple.
//!
//! A *run* is words that lie one behind the other. Loads of a run are brought up to the first of them, stores down to
//! the last, where nothing in between may touch the same bytes and registers suffice, and one instruction takes their
//! place if it takes fewer cycles. One that moves its base is given the *pointer* that the run before it has left
//! behind itself, or the base; what comes later is then reached from there, so that the base need not be kept.
//!
//! Where registers of such an instruction have to rise, the allocator gives them to loads in that order, and tries to
//! for stores. [`rises`] says whether it could.

use ciphermill_machine::{Machine, OperandKind};
use ciphermill_vcode::liveness::Set;
use ciphermill_vcode::runs::{RunInstr, Runs};
use ciphermill_vcode::{Allocated, Facts, MemRef, Place, Step, VFunc, VInst, VKind, VOp, VReg};
use smallvec::SmallVec;
use std::collections::{BTreeMap, HashMap};

#[cfg(test)]
mod tests;

/// How far apart, in instructions, words of a run may be used: further, and registers are held for too long.
const WINDOW: usize = 32;

/// What is joined.
#[derive(Clone, Copy)]
pub struct Joining {
    /// Stores as well as loads.
    pub stores: bool,
    /// Values that may live at once where a word is loaded sooner or stored later.
    pub registers: usize,
}

/// One word's load or store.
#[derive(Clone, Copy)]
struct Access {
    at: usize,
    store: bool,
    value: VReg,
    offset: i64,
    mem: MemRef,
}

/// Accesses that become one.
struct Group<'a> {
    instr: &'a RunInstr,
    /// By address.
    words: Vec<Access>,
    /// Where the one stands.
    at: usize,
    /// The register of its base, and where that points to.
    base: (VReg, i64),
    /// Of one that moves its base.
    behind: Option<VReg>,
}

/// A block in which runs are looked for.
struct Search<'a> {
    insts: &'a [VInst],
    machine: &'a Machine,
    facts: &'a Facts,
    runs: &'a Runs,
    joining: Joining,
    /// In front of each instruction: how many values are live.
    live: Vec<usize>,
    out: &'a Set,
    /// Accesses of groups, and where those stand.
    taken: HashMap<usize, usize>,
}

/// The function with runs of block `b` joined; None where there are none. `out` is what is live behind the block.
pub fn joined(
    func: &VFunc,
    b: usize,
    machine: &Machine,
    facts: &Facts,
    runs: &Runs,
    out: &Set,
    joining: Joining,
) -> Option<VFunc> {
    let insts = &func.blocks[b].insts;
    let mut made = func.clone();
    let mut search =
        Search { insts, machine, facts, runs, joining, live: live(insts, out), out, taken: HashMap::new() };
    let mut rewritten: HashMap<usize, VInst> = HashMap::new();
    let mut groups = Vec::new();
    for (base, list) in search.by_base() {
        let found = search.groups(base, &list, &mut || made.new_vreg());
        search.rebase(base, &found, &mut rewritten);
        groups.extend(found);
    }
    if groups.is_empty() {
        return None;
    }
    let placed: HashMap<usize, &Group> = groups.iter().map(|g| (g.at, g)).collect();
    let whole = |(at, inst): (usize, &VInst)| match placed.get(&at) {
        Some(group) => Some(search.instruction(group)),
        None if search.taken.contains_key(&at) => None,
        None => Some(rewritten.get(&at).unwrap_or(inst).clone()),
    };
    made.blocks[b].insts = insts.iter().enumerate().filter_map(whole).collect();
    Some(made)
}

/// Do registers rise wherever an instruction says that they have to, and is none of them one that it also changes?
pub fn rises(func: &VFunc, allocated: &Allocated, machine: &Machine) -> bool {
    let step = |(step, insts): (&Step, &Vec<VInst>)| {
        let Step::Inst(index, places) = step else { return true };
        let inst = &insts[*index];
        let ascending = &machine.instrs[usize::from(inst.instr.0)].ascending;
        let register = |k: usize| match places.get(place_of(inst, k)) {
            Some(Place::Reg(r)) => Some(r.0),
            _ => None,
        };
        let changed = |k: &usize| matches!(inst.ops[*k], VOp::Tied { .. });
        let list = ascending.iter().map(|&k| register(k)).collect::<Option<Vec<_>>>();
        list.is_some_and(|list| {
            let apart = |k: usize| register(k).is_none_or(|r| !list.contains(&r));
            list.is_sorted_by(|a, b| a < b) && (list.is_empty() || (0..inst.ops.len()).filter(changed).all(apart))
        })
    };
    let blocks = allocated.blocks.iter().zip(&func.blocks);
    blocks.flat_map(|(steps, b)| steps.iter().map(move |s| (s, &b.insts))).all(step)
}

/// Index of an operand among the places of [`Step::Inst`]; of a tied pair the source's.
pub fn place_of(inst: &VInst, operand: usize) -> usize {
    let places = |op: &VOp| match op {
        VOp::Use(_) | VOp::Def(_) => 1,
        VOp::Tied { .. } => 2,
        _ => 0,
    };
    inst.ops.iter().take(operand).map(places).sum()
}

fn live(insts: &[VInst], out: &Set) -> Vec<usize> {
    let mut live = vec![0; insts.len()];
    let mut now = out.clone();
    for (at, inst) in insts.iter().enumerate().rev() {
        inst.defs().for_each(|d| {
            now.remove(d);
        });
        inst.uses().for_each(|u| {
            now.insert(u);
        });
        live[at] = now.len();
    }
    live
}

impl<'a> Search<'a> {
    /// Loads and stores of one word each, by the register of their base, in program order.
    fn by_base(&self) -> BTreeMap<VReg, Vec<Access>> {
        let mut all: BTreeMap<VReg, Vec<Access>> = BTreeMap::new();
        for (at, inst) in self.insts.iter().enumerate() {
            if let Some((base, access)) = self.access(at, inst) {
                all.entry(base).or_default().push(access);
            }
        }
        all.retain(|_, list| list.len() > 1);
        all
    }

    fn access(&self, at: usize, inst: &VInst) -> Option<(VReg, Access)> {
        let single = self.runs.single(inst.instr)?;
        let plain = inst.kind == VKind::Normal && inst.trap.is_none();
        let mem =
            inst.mem.filter(|m| plain && m.aligned && inst.fixed_uses.is_empty() && inst.fixed_defs.is_empty())?;
        let offset = match single.displacement.map(|d| inst.ops[d]) {
            Some(VOp::Imm(d)) => d,
            Some(_) => return None,
            None => 0,
        };
        match (inst.ops[single.base], inst.ops[single.values[0]]) {
            // A base that is stored itself stays where it is.
            (VOp::Use(base), VOp::Use(value) | VOp::Def(value)) if base != value => {
                Some((base, Access { at, store: single.store, value, offset, mem }))
            }
            _ => None,
        }
    }

    /// Groups of accesses at one base that become runs.
    fn groups(&mut self, base: VReg, list: &[Access], new_vreg: &mut dyn FnMut() -> VReg) -> Vec<Group<'a>> {
        let mut groups: Vec<Group> = Vec::new();
        let (runs, stores) = (self.runs, self.joining.stores);
        for first in list.iter().filter(|a| stores || !a.store) {
            let pointer = groups.iter().rev().find_map(|g| Some((g.behind?, self.end(g))));
            let after = groups.last().map_or(0, |g| g.at + 1);
            let bases = [pointer, Some((base, 0))];
            let found = runs.several().iter().filter(|r| r.store == first.store).find_map(|instr| {
                bases.iter().flatten().find_map(|&from| self.group(instr, list, *first, from, after))
            });
            let Some(mut group) = found else { continue };
            group.behind = group.instr.moves.then(&mut *new_vreg);
            self.take(&group);
            groups.push(group);
        }
        groups
    }

    fn end(&self, group: &Group) -> i64 {
        group.words[0].offset + group.words.len() as i64 * self.runs.word()
    }

    /// The group of this instruction that `first` is one of, if it takes fewer cycles.
    fn group(
        &self,
        instr: &'a RunInstr,
        list: &[Access],
        first: Access,
        from: (VReg, i64),
        after: usize,
    ) -> Option<Group<'a>> {
        let (words, word) = (instr.values.len() as i64, self.runs.word());
        let starts = (0..words).map(|n| first.offset - n * word).rev();
        let reached = |start: &i64| match instr.displacement {
            Some(d) => self.takes(instr, d, start - from.1),
            None => *start == from.1,
        };
        starts.filter(reached).find_map(|start| {
            let one = |n: i64| {
                let at = |a: &&Access| a.store == first.store && a.offset == start + n * word;
                let free = |a: &&Access| !self.taken.contains_key(&a.at) && a.at.abs_diff(first.at) <= WINDOW;
                list.iter().filter(at).find(free).copied()
            };
            let words = (0..words).map(one).collect::<Option<Vec<_>>>()?;
            let places = words.iter().map(|w| w.at);
            let at = if first.store { places.max() } else { places.min() }?;
            let group = Group { instr, words, at, base: from, behind: None };
            (at >= after && self.gain(&group, from.1 == 0) > 0 && self.legal(&group) && self.fits(&group))
                .then_some(group)
        })
    }

    /// Can the immediate `operand` be this?
    fn takes(&self, instr: &RunInstr, operand: usize, value: i64) -> bool {
        let kind = &self.machine.instrs[usize::from(instr.instr.0)].operands[operand].kind;
        kind.imm_for(value as u64, self.machine.word_bits) == Some(value)
    }

    /// Cycles that a group saves. A base that is moved and wanted again is copied before.
    fn gain(&self, group: &Group, own: bool) -> i64 {
        let spec = |at: usize| &self.machine.instrs[usize::from(self.insts[at].instr.0)];
        let first = spec(group.words[0].at);
        let others = group.words.len() as u32 - 1;
        let singles = first.issue_cycles + others * first.least_issue_cycles();
        let copied = group.instr.moves && own && self.wanted_behind(group);
        let mov = &self.machine.instrs[usize::from(self.machine.abi.ops.mov.0)];
        let run = self.machine.instrs[usize::from(group.instr.instr.0)].issue_cycles;
        i64::from(singles) - i64::from(run) - i64::from(copied) * i64::from(mov.issue_cycles)
    }

    /// Is the base read behind the group by something that cannot be reached from where it is moved to?
    fn wanted_behind(&self, group: &Group) -> bool {
        let base = group.base.0;
        let behind = self.end(group);
        let within = |at: usize| group.words.iter().any(|w| w.at == at);
        let later = self.insts.iter().enumerate().filter(|(at, _)| *at > group.at && !within(*at));
        self.out.contains(base)
            || later
                .filter(|(_, i)| i.uses().any(|u| u == base))
                .any(|(at, i)| self.rebased(at, i, base, (base, behind)).is_none())
    }

    /// Can the words be brought together?
    fn legal(&self, group: &Group) -> bool {
        group.words.iter().all(|w| {
            let (from, to) = (w.at.min(group.at), w.at.max(group.at));
            let between = to.min(from + 1)..to;
            let apart = |at: usize| self.insts[at].mem.is_none_or(|m| !m.conflicts(&w.mem));
            let passes = |at: usize| self.insts[at].kind == VKind::Normal && apart(at);
            let turned = |(&at, &to): (&usize, &usize)| (at < w.at) != (to < group.at);
            // What has moved as well may have come from the other side.
            between.into_iter().all(|at| group.words.iter().any(|o| o.at == at) || passes(at))
                && self.taken.iter().filter(|&t| turned(t)).all(|(&at, _)| apart(at))
        })
    }

    /// Are there registers for what lives longer?
    fn fits(&self, group: &Group) -> bool {
        let mut live = self.live.clone();
        self.lengthen(group, &mut live);
        let (from, to) = self.range(group);
        live[from + 1..=to]
            .iter()
            .zip(&self.live[from + 1..=to])
            .all(|(&now, &then)| now == then || now <= self.joining.registers)
    }

    fn range(&self, group: &Group) -> (usize, usize) {
        let places = || group.words.iter().map(|w| w.at);
        (places().min().unwrap_or(group.at), places().max().unwrap_or(group.at))
    }

    /// Counts what lives longer in a group.
    fn lengthen(&self, group: &Group, live: &mut [usize]) {
        for w in &group.words {
            let longer = if w.store {
                let last = self.insts.iter().rposition(|i| i.uses().any(|u| u == w.value)).unwrap_or(w.at);
                let last = if self.out.contains(w.value) { self.insts.len() } else { last };
                last.max(w.at) + 1..group.at + 1
            } else {
                group.at + 1..w.at + 1
            };
            longer.for_each(|at| live[at] += 1);
        }
    }

    fn take(&mut self, group: &Group) {
        let mut live = std::mem::take(&mut self.live);
        self.lengthen(group, &mut live);
        self.live = live;
        self.taken.extend(group.words.iter().map(|w| (w.at, group.at)));
    }

    /// The instruction of a group.
    fn instruction(&self, group: &Group) -> VInst {
        let spec = &self.machine.instrs[usize::from(group.instr.instr.0)];
        let mut inst = self.insts[group.words[0].at].clone();
        inst.instr = group.instr.instr;
        let operand = |i: usize| {
            let value = group.instr.values.iter().position(|&v| v == i).map(|n| group.words[n].value);
            match (value, group.behind) {
                (Some(value), _) if group.instr.store => VOp::Use(value),
                (Some(value), _) => VOp::Def(value),
                (None, Some(def)) if group.instr.base == i => VOp::Tied { used: group.base.0, def },
                (None, _) if group.instr.base == i => VOp::Use(group.base.0),
                _ => VOp::Imm(group.words[0].offset - group.base.1),
            }
        };
        inst.ops = (0..spec.operands.len()).map(operand).collect::<SmallVec<_>>();
        inst.mem = group.words.iter().skip(1).fold(inst.mem, |m, w| m.map(|m| m.joined(&w.mem)));
        inst
    }

    /// Reaches what reads `base` behind the groups from the pointers that they leave, if that spares the base.
    fn rebase(&self, base: VReg, groups: &[Group], rewritten: &mut HashMap<usize, VInst>) {
        let Some(first) = groups.iter().find(|g| g.behind.is_some()) else { return };
        if self.out.contains(base) {
            return;
        }
        let later = (first.at + 1..self.insts.len()).filter(|at| !self.taken.contains_key(at));
        let mut made = Vec::new();
        for at in later.filter(|&at| self.insts[at].uses().any(|u| u == base)) {
            let inst = rewritten.get(&at).unwrap_or(&self.insts[at]);
            let pointers = groups.iter().rev().filter(|g| g.at < at).filter_map(|g| Some((g.behind?, self.end(g))));
            let Some(other) = pointers.into_iter().find_map(|p| self.rebased(at, inst, base, p)) else { return };
            made.push((at, other));
        }
        rewritten.extend(made);
    }

    /// Are flags that an instruction sets read by another?
    fn flags_read(&self, at: usize) -> bool {
        let mut set: Vec<_> = self.facts.fixed_writes(self.insts[at].instr).map(|r| u32::from(r.0)).collect();
        for inst in &self.insts[at + 1..] {
            let node = self.facts.virtual_node(self.machine, inst);
            if set.iter().any(|r| node.reads.contains(r)) {
                return true;
            }
            set.retain(|r| node.writes.iter().all(|w| w.0 != *r));
        }
        false
    }

    /// An instruction that reads `base`, reading a pointer instead.
    fn rebased(&self, at: usize, inst: &VInst, base: VReg, (pointer, to): (VReg, i64)) -> Option<VInst> {
        let mut out = inst.clone();
        if let (Some((_, access)), Some(single)) = (self.access(at, inst), self.runs.single(inst.instr)) {
            let displacement = single.displacement?;
            let fits = self.takes(single, displacement, access.offset - to);
            (out.ops[single.base], out.ops[displacement]) = (VOp::Use(pointer), VOp::Imm(access.offset - to));
            return fits.then_some(out);
        }
        let add = self.runs.add_imm(inst.instr).filter(|_| !self.flags_read(at))?;
        let VOp::Imm(by) = inst.ops[add.imm] else { return None };
        let made = match (inst.ops[add.dest], inst.ops[add.source]) {
            (VOp::Tied { used, def }, _) if add.dest == add.source && used == base => def,
            (VOp::Def(def), VOp::Use(used)) if used == base => def,
            _ => return None,
        };
        if by == to {
            // The sum is the pointer: a move, which is no instruction.
            let mov = self.machine.abi.ops.mov;
            let operand = |o: &ciphermill_machine::Operand| match o.kind {
                OperandKind::Reg { def: true, .. } => VOp::Def(made),
                _ => VOp::Use(pointer),
            };
            out.instr = mov;
            out.ops = self.machine.instrs[usize::from(mov.0)].operands.iter().map(operand).collect();
            return Some(out);
        }
        let kind = &self.machine.instrs[usize::from(inst.instr.0)].operands[add.imm].kind;
        let fits = kind.imm_for((by - to) as u64, self.machine.word_bits) == Some(by - to);
        out.ops[add.imm] = VOp::Imm(by - to);
        match &mut out.ops[add.source] {
            VOp::Tied { used, .. } | VOp::Use(used) => *used = pointer,
            _ => return None,
        }
        fits.then_some(out)
    }
}
