//! The order in which code is handed to a core that finds its own.
//!
//! Such a core does not mind in which order independent work stands, but the
//! allocator does: four quarter rounds told in turns need all their words at
//! once, told one after the other they need those of one. WebAssembly brings
//! whatever order its compiler's stack machine liked. So where more values live
//! than there are registers, orders are tried that go on with what is in
//! registers; which of them the allocator makes most of is seen when it has run.
//!
//! Flags are written by nearly every instruction and read by few: from an
//! instruction that sets flags to the last one that reads them code stays as it
//! is, as one *unit*; everywhere else flags are nobody's.

use ciphermill_vcode::CompileError;
use ciphermill_schedule::verified::order_live;
use ciphermill_vcode::Facts;
use ciphermill_vcode::liveness::{Set, live_out, pressure};
use ciphermill_vcode::{Node, Resource};
use ciphermill_vcode::{VFunc, VInst, VOp, VReg};
use ciphermill_machine::Machine;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

/// Preferences between units that can come next.
#[derive(Clone, Copy)]
struct Taste {
    /// What a value costs that has to be fetched.
    fetch: i64,
    /// What one is worth that dies.
    dying: i64,
    /// What a value costs that nothing here uses.
    unused: i64,
    /// Among equals, 0: the one whose values were used last; else any, as these
    /// dice fall.
    dice: u64,
    /// What overwrites a value waits for all who read it.
    waits: bool,
}

const fn taste(fetch: i64, dying: i64, unused: i64, dice: u64) -> Taste {
    Taste { fetch, dying, unused, dice, waits: false }
}

const fn waiting(fetch: i64, dying: i64, unused: i64, dice: u64) -> Taste {
    Taste { waits: true, ..taste(fetch, dying, unused, dice) }
}

/// No one of them is best for all code.
const TASTES: [Taste; 22] = [
    taste(2, 1, 0, 0),
    taste(4, 1, 0, 0),
    taste(2, 1, 2, 0),
    taste(1, 1, 0, 0),
    taste(1, 2, 0, 0),
    taste(3, 2, 0, 0),
    taste(2, 1, 0, 1),
    taste(2, 1, 0, 2),
    taste(2, 1, 0, 3),
    taste(2, 1, 0, 4),
    taste(4, 1, 0, 1),
    taste(4, 1, 0, 2),
    taste(1, 1, 0, 1),
    taste(1, 1, 0, 2),
    waiting(2, 1, 0, 0),
    waiting(4, 1, 0, 0),
    waiting(2, 1, 2, 0),
    waiting(1, 1, 0, 0),
    waiting(1, 2, 0, 0),
    waiting(3, 2, 0, 0),
    waiting(2, 1, 0, 1),
    waiting(2, 1, 0, 2),
];

/// A number for unit `u` that is the same every time (Steele, Lea and Flood,
/// Fast splittable pseudorandom number generators, OOPSLA 2014: its mixing).
fn thrown(dice: u64, u: usize) -> u64 {
    let mut x = (dice << 32 | u as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// The function in other orders; none where `registers` are enough for it.
///
/// # Errors
/// [`CompileError::Internal`] when the checker refuses an order.
pub fn others(func: &VFunc, machine: &Machine, facts: &Facts, registers: usize) -> Result<Vec<VFunc>, CompileError> {
    let outs = live_out(func);
    let tight: Vec<usize> = (0..outs.len()).filter(|&b| pressure(func, b, &outs[b]) > registers).collect();
    let made = TASTES.iter().filter(|_| !tight.is_empty()).map(|&taste| {
        let mut other = func.clone();
        reorder(&mut other, &outs, &tight, machine, facts, registers, taste)?;
        Ok(other)
    });
    made.collect()
}

fn reorder(
    func: &mut VFunc,
    outs: &[Set],
    tight: &[usize],
    machine: &Machine,
    facts: &Facts,
    registers: usize,
    taste: Taste,
) -> Result<(), CompileError> {
    for &b in tight {
        let out = &outs[b];
        let insts = &func.blocks[b].insts;
        let nodes: Vec<Node> = insts.iter().map(|i| facts.virtual_node(machine, i)).collect();
        let sp = machine.abi.stack_pointer;
        let flags: BTreeSet<Resource> = insts
            .iter()
            .flat_map(|i| facts.fixed_writes(i.instr))
            .filter(|&r| r != sp)
            .map(|r| u32::from(r.0))
            .collect();
        let Some(units) = units(&nodes, &flags) else { continue };
        let order = reordered(insts, &nodes, &units, &flags, out, registers, taste);
        order_live(&nodes, &order, &|r| !flags.contains(&r))
            .map_err(|e| CompileError::Internal(format!("`{}`, block {b}: {e}", func.name)))?;
        let block = &mut func.blocks[b];
        let mut insts: Vec<Option<VInst>> = std::mem::take(&mut block.insts).into_iter().map(Some).collect();
        block.insts = order.into_iter().filter_map(|i| insts[i].take()).collect();
    }
    Ok(())
}

/// Ranges that stay together. None where flags come from elsewhere.
fn units(nodes: &[Node], flags: &BTreeSet<Resource>) -> Option<Vec<Range<usize>>> {
    let mut together = vec![false; nodes.len()];
    let mut writer: HashMap<Resource, usize> = HashMap::new();
    for (i, n) in nodes.iter().enumerate() {
        for r in n.reads.iter().filter(|r| flags.contains(r)) {
            together[*writer.get(r)?..i].fill(true);
        }
        for (r, _) in n.writes.iter().filter(|(r, _)| flags.contains(r)) {
            writer.insert(*r, i);
        }
    }
    let (mut out, mut start) = (Vec::new(), 0);
    for (i, glued) in together.into_iter().enumerate() {
        if !glued {
            out.push(start..i + 1);
            start = i + 1;
        }
    }
    Some(out)
}

fn reordered(
    insts: &[VInst],
    nodes: &[Node],
    units: &[Range<usize>],
    flags: &BTreeSet<Resource>,
    out: &Set,
    registers: usize,
    taste: Taste,
) -> Vec<usize> {
    let mut order = Vec::with_capacity(nodes.len());
    let fixed = |u: &Range<usize>| nodes[u.clone()].iter().any(|n| n.barrier);
    let mut at = 0;
    while at < units.len() {
        let end = units[at..].iter().position(fixed).map_or(units.len(), |n| at + n);
        let segment = &units[at..end];
        if let Some(last) = segment.last() {
            let after: HashSet<VReg> = insts[last.end..].iter().flat_map(VInst::uses).collect();
            let later = |v: VReg| out.contains(v) || after.contains(&v);
            let mut graph = Graph::new(nodes, segment, flags);
            if taste.waits {
                graph.wait(insts, segment);
            }
            let chosen = graph.follow(insts, segment, &later, registers, taste);
            order.extend(chosen.into_iter().flat_map(|u| segment[u].clone()));
        }
        if let Some(u) = units.get(end) {
            order.extend(u.clone());
        }
        at = end + 1;
    }
    order
}

/// What a unit makes, and what it uses of others' with the number of times.
struct About {
    made: i64,
    uses: Vec<(VReg, usize)>,
    /// What it makes.
    ends: Vec<VReg>,
}

impl About {
    fn new(code: &[VInst]) -> About {
        let made: HashSet<VReg> = code.iter().flat_map(VInst::defs).collect();
        let mut uses: Vec<(VReg, usize)> = Vec::new();
        for v in code.iter().flat_map(VInst::uses).filter(|v| !made.contains(v)) {
            match uses.iter_mut().find(|u| u.0 == v) {
                Some(u) => u.1 += 1,
                None => uses.push((v, 1)),
            }
        }
        About { made: made.len() as i64, uses, ends: made.into_iter().collect() }
    }
}

/// Which units wait for which.
struct Graph {
    succs: Vec<Vec<usize>>,
    preds: Vec<usize>,
}

impl Graph {
    fn new(nodes: &[Node], segment: &[Range<usize>], flags: &BTreeSet<Resource>) -> Graph {
        let mut g = Graph { succs: vec![Vec::new(); segment.len()], preds: vec![0; segment.len()] };
        let mut writer: HashMap<Resource, usize> = HashMap::new();
        let mut readers: HashMap<Resource, Vec<usize>> = HashMap::new();
        let mut memory: Vec<(usize, &Node)> = Vec::new();
        for (u, range) in segment.iter().enumerate() {
            let mut before = BTreeSet::new();
            for n in &nodes[range.clone()] {
                for r in n.reads.iter().filter(|r| !flags.contains(r)) {
                    before.extend(writer.get(r));
                    readers.entry(*r).or_default().push(u);
                }
                for (r, _) in n.writes.iter().filter(|(r, _)| !flags.contains(r)) {
                    before.extend(writer.insert(*r, u));
                    before.extend(readers.remove(r).unwrap_or_default());
                }
                if let Some(m) = &n.mem {
                    let conflicts = |o: &&(usize, &Node)| o.1.mem.is_some_and(|o| o.conflicts(m));
                    before.extend(memory.iter().filter(conflicts).map(|o| o.0));
                    memory.push((u, n));
                }
            }
            before.remove(&u);
            g.preds[u] = before.len();
            before.into_iter().for_each(|p| g.succs[p].push(u));
        }
        g
    }

    /// What overwrites a value comes behind all who read it, where they do not wait for it: the
    /// value would have to be copied for them.
    fn wait(&mut self, insts: &[VInst], segment: &[Range<usize>]) {
        let mut readers: HashMap<VReg, BTreeSet<usize>> = HashMap::new();
        for (u, range) in segment.iter().enumerate() {
            insts[range.clone()].iter().flat_map(VInst::uses).for_each(|v| {
                readers.entry(v).or_default().insert(u);
            });
        }
        for (u, range) in segment.iter().enumerate() {
            let tied = |op: &VOp| if let VOp::Tied { used, .. } = op { Some(*used) } else { None };
            for v in insts[range.clone()].iter().flat_map(|i| &i.ops).filter_map(tied) {
                for &reader in readers.get(&v).into_iter().flatten().filter(|r| **r != u) {
                    if !self.succs[reader].contains(&u) && !self.leads(u, reader) {
                        self.succs[reader].push(u);
                        self.preds[u] += 1;
                    }
                }
            }
        }
    }

    /// Does one unit wait for another, perhaps by way of others?
    fn leads(&self, from: usize, to: usize) -> bool {
        let (mut seen, mut todo) = (vec![false; self.succs.len()], vec![from]);
        while let Some(u) = todo.pop() {
            if u == to {
                return true;
            }
            if !std::mem::replace(&mut seen[u], true) {
                todo.extend(&self.succs[u]);
            }
        }
        false
    }

    /// Go on, at each step, with the unit that has least to fetch and lets most
    /// values die; among equals with the one whose values were used last.
    fn follow(
        &self,
        insts: &[VInst],
        segment: &[Range<usize>],
        later: &dyn Fn(VReg) -> bool,
        registers: usize,
        taste: Taste,
    ) -> Vec<usize> {
        let mut left: HashMap<VReg, usize> = HashMap::new();
        segment.iter().flat_map(|u| &insts[u.clone()]).flat_map(VInst::uses).for_each(|v| *left.entry(v).or_default() += 1);
        let about: Vec<About> = segment.iter().map(|u| About::new(&insts[u.clone()])).collect();
        let mut preds = self.preds.clone();
        let mut ready: BTreeSet<usize> = (0..segment.len()).filter(|&u| preds[u] == 0).collect();
        // What is in registers, and when it was used last.
        let mut held: HashMap<VReg, usize> = HashMap::new();
        let mut out = Vec::with_capacity(segment.len());
        while let Some(&oldest) = ready.first() {
            let score = |u: usize| {
                let About { made, uses, ends } = &about[u];
                let missing = uses.iter().filter(|(v, _)| !held.contains_key(v)).count() as i64;
                let gone = uses.iter().filter(|(v, here)| left.get(v) == Some(here) && !later(*v)).count() as i64;
                let recent = uses.iter().filter_map(|(v, _)| held.get(v)).max().copied().unwrap_or(0);
                let idle = if *made > 0 && ends.iter().all(|v| left.get(v).is_none_or(|&n| n == 0)) { taste.unused } else { 0 };
                let worth = taste.fetch * missing + taste.dying * (made - gone) + idle;
                let any = if taste.dice == 0 { 0 } else { thrown(taste.dice, u) };
                (worth, any, std::cmp::Reverse(recent), u)
            };
            let u = ready.iter().copied().min_by_key(|&u| score(u)).unwrap_or(oldest);
            ready.remove(&u);
            out.push(u);
            for inst in &insts[segment[u].clone()] {
                for v in inst.uses() {
                    held.insert(v, out.len());
                    if let Some(n) = left.get_mut(&v) {
                        *n = n.saturating_sub(1);
                    }
                }
                inst.defs().for_each(|v| {
                    held.insert(v, out.len());
                });
            }
            held.retain(|v, _| left.get(v).is_some_and(|&n| n > 0) || later(*v));
            while held.len() > registers {
                let Some(&v) = held.iter().min_by_key(|(v, at)| (**at, **v)).map(|(v, _)| v) else { break };
                held.remove(&v);
            }
            for &s in &self.succs[u] {
                preds[s] -= 1;
                if preds[s] == 0 {
                    ready.insert(s);
                }
            }
        }
        out
    }
}
