//! Instructions as late as they can be, where that keeps values out of registers that are wanted for others.
//!
//! A counter that is stepped at the top of a long loop body lives through all of it, while its old value is wanted
//! there, too: stepped at the end, it takes no register of its own. So in blocks whose MaxLive exceeds the number of
//! registers an instruction sinks to the first that depends on it, or to the end, if fewer values live for that, and
//! registers lack on the way. The last instruction sinks first, so that whole expressions do.

use crate::order::{Graph, flags, groups};
use ciphermill_machine::Machine;
use ciphermill_schedule::verified::order_live;
use ciphermill_vcode::liveness::{Set, live_out, max_live};
use ciphermill_vcode::{CompileError, Facts, Node, VFunc, VInst, VReg};
use std::collections::HashSet;
use std::ops::Range;

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
        let mut list: Vec<usize> = (0..self.segment.len()).collect();
        let mut place = list.clone();
        let mut live = self.live(&list);
        for group in list.clone().into_iter().rev() {
            let at = place[group];
            let to = self.graph.succs[group].iter().map(|&s| place[s]).min().unwrap_or(list.len());
            let lacking = |live: &[usize]| live[at + 1..to].iter().any(|&n| n > self.registers);
            if to > at + 1 && lacking(&live) && self.lightens(group, &list[to..]) {
                list.remove(at);
                list.insert(to - 1, group);
                (at..to).for_each(|n| place[list[n]] = n);
                live = self.live(&list);
            }
        }
        list
    }

    /// Do fewer values live up to the groups `beyond` if this one stands right in front of them?
    fn lightens(&self, group: usize, beyond: &[usize]) -> bool {
        let code = self.code(group);
        let made: HashSet<VReg> = code.iter().flat_map(VInst::defs).collect();
        let read: HashSet<VReg> = code.iter().flat_map(VInst::uses).filter(|v| !made.contains(v)).collect();
        let reads = |list: &[usize], v: VReg| list.iter().any(|&u| self.code(u).iter().any(|i| i.uses().any(|u| u == v)));
        let wanted = |v: VReg| self.behind.contains(v) || reads(beyond, v);
        let kept = made.iter().filter(|&&v| wanted(v)).count();
        // What is read by others on the way lives for a part of it already.
        let longer = read.iter().filter(|&&v| !wanted(v)).count();
        kept > longer
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
