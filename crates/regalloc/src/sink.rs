//! Instructions as late as they can be, where that keeps values out of registers that are wanted for others.
//!
//! A counter that is stepped at the top of a long loop body lives through all of it, while its old value is wanted
//! there, too: stepped at the end, it takes no register of its own. So in blocks whose MaxLive exceeds the number of
//! registers an instruction sinks to the first that depends on it, or to the end, with those that compute something
//! for it alone, if fewer values live for that, and registers lack on the way. The last instruction sinks first.

use crate::order::{Graph, flags, groups};
use ciphermill_machine::Machine;
use ciphermill_schedule::verified::order_live;
use ciphermill_vcode::liveness::{Set, live_out, max_live};
use ciphermill_vcode::{CompileError, Facts, Node, VFunc, VInst, VReg};
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

#[cfg(test)]
mod tests;

/// The function with instructions sunk; None where none is.
///
/// # Errors
/// [`CompileError::Internal`] when the checker refuses an order.
pub fn sunk(func: &VFunc, machine: &Machine, facts: &Facts, registers: usize) -> Result<Option<VFunc>, CompileError> {
    let outs = live_out(func);
    let mut made = func.clone();
    let mut changed = false;
    for (b, out) in outs.iter().enumerate().filter(|(b, out)| max_live(func, *b, out) > registers) {
        let insts = &func.blocks[b].insts;
        let nodes: Vec<Node> = insts.iter().map(|i| facts.virtual_node(machine, i)).collect();
        let flags = flags(insts, machine, facts);
        let Some(groups) = groups(&nodes, &flags) else { continue };
        let fixed = |u: &Range<usize>| nodes[u.clone()].iter().any(|n| n.barrier);
        let mut order = Vec::with_capacity(nodes.len());
        for segment in groups.chunk_by(|a, b| !fixed(a) && !fixed(b)) {
            let last = segment.last().map_or(0, |u| u.end);
            let graph = Graph::new(&nodes, segment, &flags);
            let mut behind = out.clone();
            insts[last..].iter().rev().for_each(|i| before(&mut behind, std::slice::from_ref(i)));
            let sinking = Sinking { insts, segment, graph: &graph, behind: &behind, registers };
            order.extend(sinking.order().into_iter().flat_map(|u| segment[u].clone()));
        }
        if order.is_sorted() {
            continue;
        }
        order_live(&nodes, &order, &|r| !flags.contains(&r))
            .map_err(|e| CompileError::Internal(format!("`{}`, block {b}: {e}", func.name)))?;
        made.blocks[b].insts = order.into_iter().map(|i| insts[i].clone()).collect();
        changed = true;
    }
    Ok(changed.then_some(made))
}

/// What is live in front of some code, given what is behind it.
fn before(live: &mut Set, code: &[VInst]) {
    for inst in code.iter().rev() {
        inst.defs().for_each(|d| {
            live.remove(d);
        });
        inst.uses().for_each(|u| {
            live.insert(u);
        });
    }
}

/// Groups that sink together, at most.
const LARGEST: usize = 16;

/// Who makes and who reads each value, of the groups.
struct Values {
    makers: HashMap<VReg, usize>,
    users: HashMap<VReg, Vec<usize>>,
    nobody: Vec<usize>,
}

impl Values {
    fn new(sinking: &Sinking) -> Values {
        let mut values = Values { makers: HashMap::new(), users: HashMap::new(), nobody: Vec::new() };
        for group in 0..sinking.segment.len() {
            for inst in sinking.code(group) {
                inst.uses().for_each(|v| values.users.entry(v).or_default().push(group));
                values.makers.extend(inst.defs().map(|v| (v, group)));
            }
        }
        values
    }

    fn users(&self, v: VReg) -> &Vec<usize> {
        self.users.get(&v).unwrap_or(&self.nobody)
    }
}

/// Groups of instructions between two that nothing moves across.
struct Sinking<'a> {
    insts: &'a [VInst],
    segment: &'a [Range<usize>],
    graph: &'a Graph,
    /// What is live behind them.
    behind: &'a Set,
    registers: usize,
}

impl Sinking<'_> {
    fn code(&self, group: usize) -> &[VInst] {
        &self.insts[self.segment[group].clone()]
    }

    /// An order of the groups.
    fn order(&self) -> Vec<usize> {
        let values = Values::new(self);
        let mut list: Vec<usize> = (0..self.segment.len()).collect();
        let mut place = list.clone();
        let mut live = self.live(&list);
        for root in (0..self.segment.len()).rev() {
            let Some((tree, to)) = self.tree(root, &values, &place, &live) else { continue };
            let moved: Vec<usize> = list.iter().copied().filter(|g| tree.contains(g)).collect();
            let at = list[..to].iter().filter(|g| !tree.contains(g)).count();
            list.retain(|g| !tree.contains(g));
            list.splice(at..at, moved);
            list.iter().enumerate().for_each(|(n, &g)| place[g] = n);
            live = self.live(&list);
        }
        list
    }

    /// A group with those that make something for it alone, as far as that is best, and where they had better stand.
    fn tree(&self, root: usize, values: &Values, place: &[usize], live: &[usize]) -> Option<(Vec<usize>, usize)> {
        let mut tree = vec![root];
        let mut best: Option<(usize, Vec<usize>, usize)> = None;
        loop {
            let outside = tree.iter().flat_map(|&g| &self.graph.succs[g]).filter(|s| !tree.contains(s));
            let to = outside.map(|&s| place[s]).min().unwrap_or(place.len());
            let from = place[root] + 1;
            if to <= from || live[from..to].iter().all(|&n| n <= self.registers) {
                break;
            }
            let made = |v: &VReg| values.makers.get(v).is_some_and(|g| tree.contains(g));
            let all = || tree.iter().flat_map(|&g| self.code(g));
            let read: BTreeSet<VReg> = all().flat_map(VInst::uses).filter(|v| !made(v)).collect();
            // Right behind the last that reads what it reads, none of that lives longer.
            let others = |v: VReg| values.users(v).iter().filter(|g| !tree.contains(g)).map(|&g| place[g]);
            let last = read.iter().flat_map(|&v| others(v)).filter(|&n| n < to).max().map_or(to, |n| n + 1);
            for to in [to, last] {
                let wanted = |v: &VReg| self.behind.contains(*v) || others(*v).any(|n| n >= to);
                let kept: BTreeSet<VReg> = all().flat_map(VInst::defs).filter(wanted).collect();
                let longer = read.iter().filter(|v| !wanted(v) && others(**v).all(|n| n + 1 < to)).count();
                let gain = kept.len().saturating_sub(longer);
                if to > from && gain > best.as_ref().map_or(0, |b| b.0) {
                    best = Some((gain, tree.clone(), to));
                }
            }
            let within = |list: &Vec<usize>| list.iter().all(|g| tree.contains(g));
            let alone = |g: &usize| {
                let mut defs = self.code(*g).iter().flat_map(VInst::defs);
                defs.all(|d| !self.behind.contains(d) && within(values.users(d)))
            };
            let makers = read.iter().filter_map(|v| values.makers.get(v)).copied();
            match makers.filter(alone).max_by_key(|&g| place[g]) {
                Some(maker) if tree.len() < LARGEST => tree.push(maker),
                _ => break,
            }
        }
        best.map(|(_, tree, to)| (tree, to))
    }

    /// How many values are live in front of each group.
    fn live(&self, list: &[usize]) -> Vec<usize> {
        let mut now = self.behind.clone();
        let mut live = vec![0; list.len()];
        for (n, &group) in list.iter().enumerate().rev() {
            before(&mut now, self.code(group));
            live[n] = now.len();
        }
        live
    }
}
