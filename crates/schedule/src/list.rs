//! List scheduling of straight code for an in-order machine.
//!
//! The same scheduler runs before register allocation, on virtual registers, and after it, on
//! physical ones. It sees only [`Node`]s: reads, writes with latencies, and memory accesses.
//!
//! The order of the source program has low register pressure, so it changes only where that saves
//! cycles: at each step the first instruction in program order that can issue now is taken, from a
//! limited window. Before allocation an instruction that would raise the number of live values above
//! the number of registers waits. The caller may add soft edges ([`order_with`]).

use ciphermill_vcode::{Node, Resource};
use std::collections::HashMap;

/// A limit on register pressure, for the scheduler before allocation.
pub struct PressureLimit<'a> {
    /// Values that may live at once.
    pub registers: usize,
    /// Virtual registers are numbered from here on, physical ones below.
    pub values: Resource,
    /// Is it live out of the block?
    pub live_out: &'a dyn Fn(Resource) -> bool,
    /// Number of values live out of the block or through it.
    pub live_through: usize,
}

/// How far beyond the oldest waiting instruction the scheduler looks.
const WINDOW: usize = 64;

/// How far an instruction sinks to one that may follow it sooner.
const SINK_WINDOW: usize = 12;

/// What has to wait for what.
pub(crate) struct Edges {
    /// `(successor, cycles)`.
    pub succs: Vec<Vec<(usize, u32)>>,
    pub preds: Vec<usize>,
}

/// Dependences: true (with the latency), anti and output (order only), memory.
pub(crate) fn edges(nodes: &[Node]) -> Edges {
    let mut e = Edges { succs: vec![Vec::new(); nodes.len()], preds: vec![0; nodes.len()] };
    let mut writer: HashMap<Resource, (usize, u32)> = HashMap::new();
    let mut readers: HashMap<Resource, Vec<usize>> = HashMap::new();
    let mut memory: Vec<usize> = Vec::new();
    let mut last_barrier: Option<usize> = None;
    for (i, n) in nodes.iter().enumerate() {
        let mut add = |from: usize, cycles: u32| {
            if from != i {
                e.succs[from].push((i, cycles));
                e.preds[i] += 1;
            }
        };
        for r in &n.reads {
            if let Some(&(w, cycles)) = writer.get(r) {
                add(w, cycles + n.early_by(*r));
            }
        }
        for (r, _) in &n.writes {
            if let Some(&(w, _)) = writer.get(r) {
                add(w, 1);
            }
            for &reader in readers.get(r).map_or(&[][..], |v| v) {
                add(reader, 0);
            }
        }
        if let Some(m) = &n.mem {
            for &other in &memory {
                if nodes[other].mem.is_some_and(|o| o.conflicts(m)) {
                    add(other, 1);
                }
            }
        }
        if n.barrier {
            // Nodes before the last barrier are ordered by that one.
            (last_barrier.unwrap_or(0)..i).for_each(|from| add(from, 0));
        } else if let Some(f) = last_barrier {
            add(f, 0);
        }
        for r in &n.reads {
            readers.entry(*r).or_default().push(i);
        }
        for &(r, cycles) in &n.writes {
            writer.insert(r, (i, cycles));
            readers.remove(&r);
        }
        if n.barrier {
            last_barrier = Some(i);
            memory.clear();
        } else if n.mem.is_some() {
            memory.push(i);
        }
    }
    e
}

impl Edges {
    /// Does a chain of edges lead from one node to another?
    fn leads(&self, from: usize, to: usize) -> bool {
        let (mut seen, mut todo) = (vec![false; self.succs.len()], vec![from]);
        while let Some(n) = todo.pop() {
            if n == to {
                return true;
            }
            if !std::mem::replace(&mut seen[n], true) {
                todo.extend(self.succs[n].iter().map(|s| s.0));
            }
        }
        false
    }
}

/// Cycles that the nodes take in the order they stand in.
pub fn cycles(nodes: &[Node]) -> u64 {
    let mut ready: HashMap<Resource, u64> = HashMap::new();
    let mut cycle = 0u64;
    for (i, n) in nodes.iter().enumerate() {
        let waits = n.reads.iter().filter_map(|r| Some(ready.get(r)? + u64::from(n.early_by(*r)))).max();
        cycle = cycle.max(waits.unwrap_or(0));
        for (r, latency) in &n.writes {
            ready.insert(*r, cycle + u64::from(*latency));
        }
        cycle += u64::from(nodes.get(i + 1).map_or(n.issue_cycles.max(1), |next| n.cycles_before(next)));
    }
    cycle
}

/// An order of the nodes that respects every dependence and avoids stalls.
pub fn order(nodes: &[Node], limit: Option<&PressureLimit<'_>>) -> Vec<usize> {
    order_with(nodes, limit, &[]).0
}

/// The same with soft edges `(earlier, later)`. One that would close a cycle with dependences or with
/// the soft edges before it is left out. Also gives the cycles that the order takes.
pub fn order_with(
    nodes: &[Node],
    limit: Option<&PressureLimit<'_>>,
    soft_edges: &[(usize, usize)],
) -> (Vec<usize>, u64) {
    let mut e = edges(nodes);
    for &(earlier, later) in soft_edges {
        if earlier != later && !e.leads(later, earlier) {
            e.succs[earlier].push((later, 0));
            e.preds[later] += 1;
        }
    }
    let mut preds = e.preds.clone();
    let mut earliest = vec![0u64; nodes.len()];
    let mut done = vec![false; nodes.len()];
    let mut oldest = 0;
    let mut cycle = 0u64;
    let joins = nodes.iter().any(|n| !n.issue_before.is_empty());
    // The last one and when it issued, where some may follow sooner than others.
    let mut last: Option<(usize, u64)> = None;
    let mut out = Vec::with_capacity(nodes.len());
    let mut live = limit.map(|p| Live::new(nodes, p));
    while out.len() < nodes.len() {
        while done[oldest] {
            oldest += 1;
        }
        let end = (oldest + WINDOW).min(nodes.len());
        let ready = |i: &usize| !done[*i] && preds[*i] == 0 && earliest[*i] <= cycle;
        let fits = |i: usize| i == oldest || live.as_ref().is_none_or(|l| l.fits(&nodes[i]));
        // An instruction that may follow the last one sooner than others does.
        let sooner = |i: &usize| {
            let (l, at) = last.filter(|_| !done[*i] && preds[*i] == 0)?;
            Some(earliest[*i].max(at + u64::from(nodes[l].cycles_before(&nodes[*i])))).filter(|at| *at < cycle)
        };
        let joined = (oldest..end).filter(|_| joins).find(|&i| sooner(&i).is_some() && fits(i));
        let joined = joined.and_then(|i| Some((i, sooner(&i)?)));
        let pick = joined.map(|j| j.0).or_else(|| (oldest..end).filter(ready).find(|&i| fits(i)));
        cycle = joined.map_or(cycle, |j| j.1);
        let i = match pick {
            Some(i) => i,
            None => {
                // Nothing can issue now: take the one that can soonest.
                let next = (oldest..end)
                    .filter(|&i| !done[i] && preds[i] == 0 && fits(i))
                    .min_by_key(|&i| (earliest[i], i))
                    .unwrap_or(oldest);
                cycle = cycle.max(earliest[next]);
                next
            }
        };
        done[i] = true;
        out.push(i);
        for &(s, cycles) in &e.succs[i] {
            preds[s] -= 1;
            earliest[s] = earliest[s].max(cycle + u64::from(cycles));
        }
        if let Some(l) = &mut live {
            l.issue(&nodes[i]);
        }
        last = Some((i, cycle)).filter(|_| joins);
        cycle += u64::from(nodes[i].issue_cycles.max(1));
    }
    if joins && soft_edges.is_empty() {
        bring_together(nodes, &e, &mut out);
    }
    (out, cycle)
}

/// Instructions of which one may follow another sooner sink to the next such one, past what does not
/// depend on them. A load that does has its value later and its address longer: registers are not
/// needed any more than before.
fn bring_together(nodes: &[Node], e: &Edges, order: &mut [usize]) {
    for at in (0..order.len().saturating_sub(1)).rev() {
        let first = order[at];
        if nodes[first].issue_before.is_empty() {
            continue;
        }
        let ahead = order[at + 1..].iter().take(SINK_WINDOW);
        let free = ahead.take_while(|&&n| e.succs[first].iter().all(|s| s.0 != n) && !nodes[n].barrier);
        let joined = |n: &usize| nodes[first].cycles_before(&nodes[*n]) < nodes[first].issue_cycles;
        if let Some(distance) = free.copied().collect::<Vec<_>>().iter().position(joined) {
            order[at..=at + distance].rotate_left(1);
        }
    }
}

/// Live values while scheduling.
struct Live<'a> {
    uses_left: HashMap<Resource, u32>,
    count: usize,
    limit: &'a PressureLimit<'a>,
}

impl<'a> Live<'a> {
    fn new(nodes: &[Node], limit: &'a PressureLimit<'a>) -> Live<'a> {
        let mut uses_left = HashMap::new();
        let mut defined: HashMap<Resource, ()> = HashMap::new();
        let mut incoming = 0;
        for n in nodes {
            for r in n.reads.iter().filter(|r| **r >= limit.values) {
                let uses: &mut u32 = uses_left.entry(*r).or_default();
                if *uses == 0 && !defined.contains_key(r) && !(limit.live_out)(*r) {
                    incoming += 1;
                }
                *uses += 1;
            }
            n.writes.iter().filter(|w| w.0 >= limit.values).for_each(|(r, _)| {
                defined.insert(*r, ());
            });
        }
        let defined_out = defined.keys().filter(|r| (limit.live_out)(**r)).count();
        let count = (limit.live_through + incoming).saturating_sub(defined_out);
        Live { uses_left, count, limit }
    }

    fn dying(&self, n: &Node) -> usize {
        n.reads.iter().filter(|r| self.uses_left.get(r) == Some(&1) && !(self.limit.live_out)(**r)).count()
    }

    fn fits(&self, n: &Node) -> bool {
        let born = n.writes.iter().filter(|w| w.0 >= self.limit.values).count();
        born <= self.dying(n) || self.count + born <= self.limit.registers + self.dying(n)
    }

    fn issue(&mut self, n: &Node) {
        let dying = self.dying(n);
        for r in &n.reads {
            if let Some(u) = self.uses_left.get_mut(r) {
                *u = u.saturating_sub(1);
            }
        }
        let born = n
            .writes
            .iter()
            .filter(|(r, _)| self.uses_left.get(r).is_some_and(|&u| u > 0) || (self.limit.live_out)(*r))
            .count();
        self.count = (self.count + born).saturating_sub(dying);
    }
}
