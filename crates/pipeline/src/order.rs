//! An order of a loop's operations that keeps few values live.
//!
//! Where registers are short it is the order of the program that decides what goes to the frame, and
//! what the scheduler falls back on. A body with a copy of each round key for every block has the
//! copies where the first block wants them, long before the others do; and a compiler for a machine
//! without registers had no reason to save any.
//!
//! Operations are put in order from the last to the first: at each step one of those whose
//! readers all stand, first what ends more lifetimes than it begins, then what goes on with the
//! value met last, or what stood last before. The best of some such orders is taken, by MaxLive
//! and then by the sum of all lifetimes (the greedy order of Sethi and Ullman, *The generation of
//! optimal code for arithmetic expressions*, J. ACM 17(4), 1970, for graphs).

use super::body::{Body, From};
use super::place::Ops;
use super::search::moves::mix;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Orders of a body that are tried.
const TRIALS: u64 = 60;
/// Steps of the way to the end, in operations, within which lifetimes decide in orders that have everything as late as
/// can be: a message schedule then stands beside the rounds that read it. Cycles without and with them on the C6201:
/// ChaCha20 590, 544; Salsa20/8 291, 253; a hash of SHA-512 4732, 4504.
const LATE: [usize; 4] = [1, 4, 16, 64];

/// The body in an order that keeps few values live: the best of its own and those tried. Values
/// count in the part (`part` has a number for each node) that makes them.
pub fn frugal(body: &Body, part: &[usize]) -> Body {
    in_order(body, &of_body(body, part).best(TRIALS))
}

/// The same among those orders in which one iteration can run by itself: what reads a value of the iteration before
/// stands before what writes its register again.
pub fn alone(body: &Body, part: &[usize]) -> Body {
    let mut graph = of_body(body, part);
    let own = graph.keep_old_values(&body.nodes.iter().map(|n| n.reads.as_slice()).collect::<Vec<_>>());
    in_order(body, &graph.best_of(own, TRIALS))
}

fn of_body(body: &Body, part: &[usize]) -> Graph {
    let reads: Vec<&[(usize, From)]> = body.nodes.iter().map(|n| n.reads.as_slice()).collect();
    let carried = |i: usize| body.initial.contains_key(&i);
    let behind = body.live_out.iter().map(|l| l.0);
    Graph::of(&reads, &body.memory, carried, behind, part.to_vec())
}

/// Values count on the cluster of their register.
fn graph(ops: &Ops) -> Graph {
    let reads: Vec<&[(usize, From)]> = ops.ops.iter().map(|op| op.reads.as_slice()).collect();
    let cluster = ops.ops.iter().map(|op| op.at.result).collect();
    let carried = |i: usize| ops.initial.contains_key(&i);
    Graph::of(&reads, &ops.memory, carried, ops.live_out.iter().map(|l| l.0), cluster)
}

/// Have the values of each cluster, in the order that the operations have, so many registers?
pub fn fits(ops: &Ops, registers: &[i64]) -> bool {
    wanted(ops, registers) <= 100
}

/// What the values of each cluster want, in the order that the operations have, in hundredths of so many registers: the
/// cluster that most are wanted of.
pub fn wanted(ops: &Ops, registers: &[i64]) -> i64 {
    let order: Vec<usize> = (0..ops.ops.len()).collect();
    let of = |(&most, &registers): (&usize, &i64)| match u64::try_from(registers) {
        Ok(registers @ 1..) => (100 * most as u64).div_ceil(registers) as i64,
        _ => 100 * most as i64 + i64::from(most > 0),
    };
    graph(ops).most(&order).iter().zip(registers).map(of).max().unwrap_or(0)
}

/// The place of each operation in the best of so many orders and the one that they have.
pub fn places(ops: &Ops, tried: u64) -> Vec<i64> {
    let best = graph(ops).best(tried);
    let mut place = vec![0; best.len()];
    best.iter().enumerate().for_each(|(k, &i)| place[i] = k as i64);
    place
}

struct Graph {
    /// Operations that come before each, and among them those whose values it reads.
    before: Vec<Vec<usize>>,
    sources: Vec<Vec<usize>>,
    readers: Vec<Vec<usize>>,
    /// Operations on the longest way to each.
    depth: Vec<usize>,
    /// Is the value live at the end of an iteration, and at its beginning as well?
    held: Vec<bool>,
    carried: Vec<bool>,
    /// What its value counts in.
    part: Vec<usize>,
}

impl Graph {
    fn of(
        reads: &[&[(usize, From)]],
        memory: &[(usize, usize, u32, u32)],
        carried: impl Fn(usize) -> bool,
        behind: impl Iterator<Item = usize>,
        part: Vec<usize>,
    ) -> Graph {
        let n = reads.len();
        let own = |reads: &&[(usize, From)]| -> Vec<usize> {
            let mut read: Vec<usize> =
                reads.iter().filter_map(|r| if let From::Node(p, 0) = r.1 { Some(p) } else { None }).collect();
            read.sort_unstable();
            read.dedup();
            read
        };
        let sources: Vec<Vec<usize>> = reads.iter().map(own).collect();
        let mut readers = vec![Vec::new(); n];
        for (i, list) in sources.iter().enumerate() {
            list.iter().for_each(|&p| readers[p].push(i));
        }
        let mut before = sources.clone();
        for &(a, b, _, distance) in memory {
            if distance == 0 {
                before[b].push(a);
            }
        }
        let mut depth: Vec<usize> = vec![0; n];
        for i in 0..n {
            depth[i] = before[i].iter().map(|&p| depth[p] + 1).max().unwrap_or(0);
        }
        let carried: Vec<bool> = (0..n).map(carried).collect();
        let mut held = carried.clone();
        behind.for_each(|i| held[i] = true);
        Graph { before, sources, readers, depth, held, carried, part }
    }

    /// Readers of a value of the iteration before come before what makes the next one, but for those that wait for each
    /// other, as an exchange of two values does. Gives the order that is nearest to the one that they have.
    fn keep_old_values(&mut self, reads: &[&[(usize, From)]]) -> Vec<usize> {
        let n = self.before.len();
        let plain = self.before.clone();
        for (i, list) in reads.iter().enumerate() {
            for &(_, from) in *list {
                // The branch stays the last.
                if let From::Node(p, 1) = from
                    && p != i
                    && i + 1 < n
                {
                    self.before[p].push(i);
                }
            }
        }
        let (order, stuck) = sorted(&self.before);
        if order.len() == n {
            return order;
        }
        for i in (0..n).filter(|i| stuck[*i]) {
            self.before[i].retain(|p| !stuck[*p] || plain[i].contains(p));
        }
        sorted(&self.before).0
    }

    /// The best of the order that they have and so many others.
    fn best(&self, tried: u64) -> Vec<usize> {
        self.best_of((0..self.before.len()).collect(), tried)
    }

    fn best_of(&self, own: Vec<usize>, tried: u64) -> Vec<usize> {
        let height = self.heights();
        let late = LATE.iter().map(|step| self.backwards(0, &height.iter().map(|h| h / step).collect::<Vec<_>>()));
        let level = vec![0; height.len()];
        let others = (0..tried).map(|k| self.backwards(k, &level));
        std::iter::once(own).chain(others).chain(late).min_by_key(|order| self.pressure(order)).unwrap_or_default()
    }

    /// An order made from its end. Of equals the one met last goes first, or the one that stood
    /// last before, or the one on the longest way; from the fourth on with a little chance in it.
    fn backwards(&self, trial: u64, level: &[usize]) -> Vec<usize> {
        let n = self.before.len();
        let mut waiting = vec![0usize; n];
        self.before.iter().flatten().for_each(|&p| waiting[p] += 1);
        let mut open = self.held.clone();
        let chance = |i: usize| if trial < 3 { 0 } else { mix(trial, i as u64) as usize % (1 << (trial % 7)) };
        let deep = trial.is_multiple_of(3);
        let mut first: Vec<usize> = match trial % 3 {
            0 => vec![0; n],
            1 => (0..n).map(|i| i + chance(i)).collect(),
            _ => (0..n).map(|i| self.depth[i] + chance(i)).collect(),
        };
        // Sources of each that no reader has met yet.
        let mut opens: Vec<i64> = self.sources.iter().map(|s| s.iter().filter(|&&p| !open[p]).count() as i64).collect();
        let ends = |i: usize, open: bool| i64::from(open && !self.carried[i]);
        // The branch is the last and stays so.
        let key = |i: usize, gain: i64, first: usize| (i + 1 != n, level[i], gain, Reverse((first, i)));
        let mut is_ready = vec![false; n];
        let mut ready = BTreeSet::new();
        for i in (0..n).filter(|&i| waiting[i] == 0) {
            is_ready[i] = true;
            ready.insert(key(i, opens[i] - ends(i, open[i]), first[i]));
        }
        let mut out = Vec::with_capacity(n);
        while let Some((_, _, _, Reverse((_, i)))) = ready.pop_first() {
            is_ready[i] = false;
            out.push(i);
            for &p in &self.sources[i] {
                if !std::mem::replace(&mut open[p], true) {
                    for &r in &self.readers[p] {
                        if is_ready[r] {
                            let gain = opens[r] - ends(r, open[r]);
                            ready.remove(&key(r, gain, first[r]));
                            ready.insert(key(r, gain - 1, first[r]));
                        }
                        opens[r] -= 1;
                    }
                }
                if deep {
                    first[p] = out.len() + chance(p);
                }
            }
            for &p in &self.before[i] {
                waiting[p] -= 1;
                if waiting[p] == 0 {
                    is_ready[p] = true;
                    ready.insert(key(p, opens[p] - ends(p, open[p]), first[p]));
                }
            }
        }
        out.reverse();
        out
    }

    /// Operations on the longest way from each to the end; what nothing waits for stands behind its sources where these
    /// are read by others.
    fn heights(&self) -> Vec<usize> {
        let n = self.before.len();
        let mut waits = vec![0usize; n];
        self.before.iter().flatten().for_each(|&p| waits[p] += 1);
        let last = |i: usize| waits[i] == 0 && i + 1 < n;
        let others = |p: usize| self.readers[p].iter().any(|&r| !last(r));
        let beside = |i: usize| last(i) && !self.sources[i].is_empty() && self.sources[i].iter().all(|&p| others(p));
        let mut height = vec![0usize; n];
        // In the order of the program each stands behind what it waits for, but for readers of a value of the iteration
        // before, which are passed over.
        for i in (0..n).rev().filter(|&i| !beside(i)) {
            for &p in &self.before[i] {
                height[p] = height[p].max(height[i] + 1);
            }
        }
        for i in (0..n).filter(|&i| beside(i)) {
            height[i] = self.sources[i].iter().map(|&p| height[p]).min().unwrap_or(0).saturating_sub(1);
        }
        height
    }

    /// MaxLive of a part, and the values live over all steps.
    fn pressure(&self, order: &[usize]) -> (usize, usize) {
        let (most, all) = self.live(order);
        (most.into_iter().max().unwrap_or(0), all)
    }

    /// MaxLive of each part.
    fn most(&self, order: &[usize]) -> Vec<usize> {
        self.live(order).0
    }

    /// MaxLive of each part, and the values live over all steps.
    fn live(&self, order: &[usize]) -> (Vec<usize>, usize) {
        let mut open = self.held.clone();
        let mut live = vec![0usize; self.part.iter().max().map_or(0, |m| m + 1)];
        (0..open.len()).filter(|&i| open[i]).for_each(|i| live[self.part[i]] += 1);
        let (mut most, mut all) = (live.clone(), 0);
        for &i in order.iter().rev() {
            if open[i] && !self.carried[i] {
                open[i] = false;
                live[self.part[i]] -= 1;
            }
            for &p in &self.sources[i] {
                if !open[p] {
                    open[p] = true;
                    live[self.part[p]] += 1;
                }
            }
            most.iter_mut().zip(&live).for_each(|(most, live)| *most = (*most).max(*live));
            all += live.iter().sum::<usize>();
        }
        (most, all)
    }
}

/// The operations, each behind those before it, by their numbers as far as can be; and those that wait for each other.
fn sorted(before: &[Vec<usize>]) -> (Vec<usize>, Vec<bool>) {
    let mut behind = vec![Vec::new(); before.len()];
    let mut waiting: Vec<usize> = before.iter().map(Vec::len).collect();
    for (i, list) in before.iter().enumerate() {
        list.iter().for_each(|&p| behind[p].push(i));
    }
    let mut ready: BTreeSet<usize> = (0..before.len()).filter(|&i| waiting[i] == 0).collect();
    let (mut order, mut stuck) = (Vec::with_capacity(before.len()), vec![true; before.len()]);
    while let Some(i) = ready.pop_first() {
        order.push(i);
        stuck[i] = false;
        for &next in &behind[i] {
            waiting[next] -= 1;
            if waiting[next] == 0 {
                ready.insert(next);
            }
        }
    }
    (order, stuck)
}

/// The body with its nodes numbered in an order.
pub fn in_order(body: &Body, order: &[usize]) -> Body {
    let mut index = vec![0; order.len()];
    order.iter().enumerate().for_each(|(new, &old)| index[old] = new);
    let mut nodes: Vec<_> = order.iter().map(|&old| body.nodes[old].clone()).collect();
    for (_, from) in nodes.iter_mut().flat_map(|n| &mut n.reads) {
        if let From::Node(p, _) = from {
            *p = index[*p];
        }
    }
    Body {
        nodes,
        initial: body.initial.iter().map(|(&i, &v)| (index[i], v)).collect(),
        live_out: body.live_out.iter().map(|&(i, v)| (index[i], v)).collect(),
        memory: body.memory.iter().map(|&(a, b, c, d)| (index[a], index[b], c, d)).collect(),
        ..body.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::alone;
    use crate::body::{Body, From, Node};
    use ciphermill_machine::InstrId;
    use ciphermill_vcode::{VInst, VKind, VReg};

    fn node(number: u16, reads: &[From]) -> Node {
        let inst = VInst::new(VKind::Normal, InstrId(number), &[], 0);
        let reads = reads.iter().copied().enumerate().collect();
        Node { inst, reads, writes: Some((2, 1)), tied: false, mem: None }
    }

    /// The nodes, by their instructions, in the order in which they can run by themselves.
    fn ordered(nodes: Vec<Node>, carried: &[usize]) -> Vec<u16> {
        let part = vec![0; nodes.len()];
        let initial = carried.iter().map(|&n| (n, VReg(n as u32))).collect();
        let body = Body { initial, ..Body::of(nodes, InstrId(9)) };
        alone(&body, &part).nodes.iter().map(|n| n.inst.instr.0).collect()
    }

    #[test]
    fn what_reads_an_old_value_stands_before_what_makes_the_new_one() {
        let new = node(0, &[From::Outside(VReg(8))]);
        let reader = node(1, &[From::Node(0, 1)]);
        assert_eq!(ordered(vec![new.clone(), reader.clone(), node(2, &[From::Node(1, 0)])], &[0]), [1, 0, 2]);
        // Where the new value is read, too, nothing else can be.
        assert_eq!(ordered(vec![new, node(1, &[From::Node(0, 0)])], &[0]), [0, 1]);
    }

    #[test]
    fn the_branch_stays_the_last() {
        let nodes = vec![node(0, &[From::Outside(VReg(8))]), node(1, &[From::Node(0, 1)])];
        assert_eq!(ordered(nodes, &[0]), [0, 1]);
    }

    #[test]
    fn two_values_that_change_places_wait_for_each_other() {
        let nodes = vec![node(0, &[From::Node(1, 1)]), node(1, &[From::Node(0, 1)]), node(2, &[])];
        let mut order = ordered(nodes, &[0, 1]);
        order.sort_unstable();
        assert_eq!(order, [0, 1, 2]);
    }
}
