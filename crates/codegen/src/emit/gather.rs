//! Loads brought together where one that stands right behind another takes fewer cycles.
//!
//! A reload stands where its value is wanted, behind the spill that makes room for it. Here it rises to the load
//! before it, and what it waits for, such as that spill, in front of both, as far as that takes fewer cycles. Before
//! the allocation this would cost registers: values would be loaded sooner than they are wanted.

use crate::context::Emitter;
use ciphermill_schedule::{list, verified};
use ciphermill_vcode::{CompileError, Node, PInst};

/// How far a load rises, in instructions.
const WINDOW: usize = 24;

/// Instructions before and behind those that move for which waits are counted, too: longer than a load is waited for.
const AROUND: usize = 8;

impl Emitter<'_> {
    /// The block's instructions with loads brought together.
    ///
    /// # Errors
    /// [`CompileError::Internal`] when the checker refuses the order.
    pub(super) fn gathered(&self, body: Vec<PInst>) -> Result<Vec<PInst>, CompileError> {
        let nodes: Vec<Node> = body.iter().map(|p| self.facts.node(self.machine, &p.inst, p.kind, p.mem)).collect();
        let order = gathered(&nodes);
        if order.is_sorted() {
            return Ok(body);
        }
        verified::order(&nodes, &order).map_err(|e| CompileError::Internal(format!("loads together: {e}")))?;
        let mut body: Vec<Option<PInst>> = body.into_iter().map(Some).collect();
        Ok(order.into_iter().filter_map(|i| body[i].take()).collect())
    }
}

/// An order of the nodes that takes fewer cycles, or the one they are in.
fn gathered(nodes: &[Node]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..nodes.len()).collect();
    let mut at = 0;
    while at + 1 < order.len() {
        at = match risen(nodes, &order, at) {
            Some((from, part)) => {
                order[at..at + part.len()].copy_from_slice(&part);
                from
            }
            None => at + 1,
        };
    }
    order
}

/// Where the load is that has risen to the one at `at`, and the order of what stands there then.
fn risen(nodes: &[Node], order: &[usize], at: usize) -> Option<(usize, Vec<usize>)> {
    let first = &nodes[order[at]];
    let joins = |i: usize| first.cycles_before(&nodes[i]) < first.issue_cycles;
    if first.issue_before.is_empty() || joins(order[at + 1]) {
        return None;
    }
    let cycles = |list: &[usize]| list::cycles(&list.iter().map(|&i| nodes[i].clone()).collect::<Vec<_>>());
    for to in at + 2..order.len().min(at + WINDOW) {
        let load = order[to];
        if nodes[load].barrier {
            return None;
        }
        if !joins(load) {
            continue;
        }
        let mut with = vec![load];
        for &i in order[at..to].iter().rev() {
            if with.iter().any(|&w| waits(&nodes[w], &nodes[i])) {
                with.push(i);
            }
        }
        if with.contains(&order[at]) {
            continue;
        }
        let there = |i: &&usize| with.contains(i) && **i != load;
        let (before, behind): (Vec<usize>, Vec<usize>) = order[at + 1..to].iter().partition(|i| there(i));
        let part = [before.clone(), vec![order[at], load], behind].concat();
        let (from, end) = (at.saturating_sub(AROUND), order.len().min(to + 1 + AROUND));
        let made = [&order[from..at], &part, &order[to + 1..end]].concat();
        if cycles(&made) < cycles(&order[from..end]) {
            return Some((at + before.len() + 1, part));
        }
    }
    None
}

/// Does `later` have to stay behind `earlier`?
fn waits(later: &Node, earlier: &Node) -> bool {
    let writes = |n: &Node, r| n.writes.iter().any(|w| w.0 == r);
    let registers = later.reads.iter().any(|&r| writes(earlier, r))
        || later.writes.iter().any(|w| writes(earlier, w.0) || earlier.reads.contains(&w.0));
    let memory = matches!((&later.mem, &earlier.mem), (Some(a), Some(b)) if a.conflicts(b));
    registers || memory || later.barrier || earlier.barrier
}

#[cfg(test)]
mod tests {
    use super::*;
    use ciphermill_ir::Space;
    use ciphermill_vcode::MemRef;

    /// A load of the slot at `offset`: two cycles, one before another load.
    fn load(to: u32, offset: i64) -> Node {
        let mem = Some(MemRef::own(Space::Linear, false, offset, 4));
        Node { writes: vec![(to, 2)], mem, issue_cycles: 2, timing: 1, issue_before: vec![(1, 1)], ..Node::default() }
    }

    fn store(from: u32, offset: i64) -> Node {
        let mem = Some(MemRef::own(Space::Linear, true, offset, 4));
        Node { reads: vec![from], mem, issue_cycles: 1, ..Node::default() }
    }

    fn add(to: u32, a: u32) -> Node {
        Node { reads: vec![to, a], writes: vec![(to, 1)], issue_cycles: 1, ..Node::default() }
    }

    #[test]
    fn a_reload_rises_with_the_spill_before_it() {
        // Register 2 goes to slot 8, and what slot 12 has comes in its place.
        let nodes = [store(1, 0), load(1, 4), add(1, 3), store(2, 8), load(2, 12), add(2, 1)];
        assert_eq!(list::cycles(&nodes), 1 + 2 + 1 + 1 + 2 + 1);
        assert_eq!(gathered(&nodes), [0, 3, 1, 4, 2, 5]);
        // With the slot that the first reload reads the spill has to stay behind it.
        let nodes = [store(1, 0), load(1, 4), add(1, 3), store(2, 4), load(2, 12), add(2, 1)];
        assert_eq!(gathered(&nodes), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn a_load_whose_register_is_still_read_stays() {
        let nodes = [load(1, 4), add(1, 2), load(2, 12)];
        assert_eq!(gathered(&nodes), [0, 1, 2]);
    }
}
