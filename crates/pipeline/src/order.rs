//! The order of a body's nodes, for few values alive at once.
//!
//! The modulo scheduler falls back on this order when registers are short: what
//! is last in it may always go on. A body with a copy of each round key for
//! every block has the copies where the first block wants them, long before the
//! others do; and a compiler for a machine without registers had no reason to
//! save any. Here nodes are put in order anew, from the last to the first: at
//! each step one of those whose readers all stand, first what ends more values
//! than it needs, then what goes on with the value met last.

use super::body::{Body, From};
use super::search::moves::mix;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// What an order needs: for each node those that come before it (sources and
/// accesses to memory) and, among them, the values it reads.
struct Graph {
    before: Vec<Vec<usize>>,
    sources: Vec<Vec<usize>>,
    /// Nodes that read the value of each.
    readers: Vec<Vec<usize>>,
    /// Nodes on the longest way to each.
    depth: Vec<usize>,
}

impl Graph {
    fn of(body: &Body) -> Graph {
        let own = |i: usize| -> Vec<usize> {
            let read =
                body.nodes[i].reads.iter().filter_map(|r| if let From::Node(p, 0) = r.1 { Some(p) } else { None });
            let mut read: Vec<usize> = read.collect();
            read.sort_unstable();
            read.dedup();
            read
        };
        let sources: Vec<Vec<usize>> = (0..body.nodes.len()).map(own).collect();
        let mut readers = vec![Vec::new(); sources.len()];
        for (i, list) in sources.iter().enumerate() {
            list.iter().for_each(|&p| readers[p].push(i));
        }
        let mut before = sources.clone();
        for &(a, b, _, distance) in &body.memory {
            if distance == 0 {
                before[b].push(a);
            }
        }
        let mut depth: Vec<usize> = vec![0; before.len()];
        for i in 0..before.len() {
            depth[i] = before[i].iter().map(|&p| depth[p] + 1).max().unwrap_or(0);
        }
        Graph { before, sources, readers, depth }
    }
}

/// Orders that are tried.
pub const TRIALS: u64 = 60;

/// The body in an order that keeps few values alive: the best of its own and
/// those tried. Values count in the part (`part` has a number for each node)
/// that makes them.
pub fn frugal(body: &Body, part: &[usize]) -> Body {
    let graph = Graph::of(body);
    let own: Vec<usize> = (0..body.nodes.len()).collect();
    let tried = (0..TRIALS).map(|k| backwards(body, &graph, k));
    let best = std::iter::once(own).chain(tried).min_by_key(|o| most(body, &graph, part, o));
    best.map_or_else(|| body.clone(), |order| in_order(body, &order))
}

/// Values that are alive at the end of an iteration.
fn held(body: &Body) -> Vec<bool> {
    let mut held = vec![false; body.nodes.len()];
    body.initial.keys().for_each(|&i| held[i] = true);
    body.live_out.iter().for_each(|l| held[l.0] = true);
    held
}

/// An order made from its end. Of equals the one met last goes first, or the one
/// that stood last before, or the one on the longest way; from the fourth trial
/// on with a little chance in it.
fn backwards(body: &Body, graph: &Graph, trial: u64) -> Vec<usize> {
    let n = body.nodes.len();
    let mut waiting = vec![0usize; n];
    graph.before.iter().flatten().for_each(|&p| waiting[p] += 1);
    let mut open = held(body);
    let chance = |i: usize| if trial < 3 { 0 } else { mix(trial, i as u64) as usize % (1 << (trial % 7)) };
    let deep = trial.is_multiple_of(3);
    let mut first: Vec<usize> = match trial % 3 {
        0 => vec![0; n],
        1 => (0..n).map(|i| i + chance(i)).collect(),
        _ => (0..n).map(|i| graph.depth[i] + chance(i)).collect(),
    };
    // Sources of each node that no reader has met yet.
    let mut opens: Vec<i64> = graph.sources.iter().map(|s| s.iter().filter(|&&p| !open[p]).count() as i64).collect();
    let ends = |i: usize, open: bool| i64::from(open && !body.initial.contains_key(&i));
    // The branch is the last node and stays so.
    let key = |i: usize, gain: i64, first: usize| (i + 1 != n, gain, Reverse((first, i)));
    let mut is_ready = vec![false; n];
    let mut ready = BTreeSet::new();
    for i in (0..n).filter(|&i| waiting[i] == 0) {
        is_ready[i] = true;
        ready.insert(key(i, opens[i] - ends(i, open[i]), first[i]));
    }
    let mut out = Vec::with_capacity(n);
    while let Some((_, _, Reverse((_, i)))) = ready.pop_first() {
        is_ready[i] = false;
        out.push(i);
        for &p in &graph.sources[i] {
            if !std::mem::replace(&mut open[p], true) {
                for &r in &graph.readers[p] {
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
        for &p in &graph.before[i] {
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

/// The most values of a part that an order has alive at once, and how many over
/// all its steps.
fn most(body: &Body, graph: &Graph, part: &[usize], order: &[usize]) -> (usize, usize) {
    let mut open = held(body);
    let mut alive = vec![0usize; part.iter().max().map_or(0, |m| m + 1)];
    (0..open.len()).filter(|&i| open[i]).for_each(|i| alive[part[i]] += 1);
    let (mut most, mut all) = (0, 0);
    for &i in order.iter().rev() {
        if open[i] && !body.initial.contains_key(&i) {
            open[i] = false;
            alive[part[i]] -= 1;
        }
        for &p in &graph.sources[i] {
            if !open[p] {
                open[p] = true;
                alive[part[p]] += 1;
            }
        }
        most = most.max(alive.iter().copied().max().unwrap_or(0));
        all += alive.iter().sum::<usize>();
    }
    (most, all)
}

/// The body with its nodes numbered in an order.
fn in_order(body: &Body, order: &[usize]) -> Body {
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
