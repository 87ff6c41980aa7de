//! Values that an iteration reads further apart than its interval.
//!
//! A register is written anew every II cycles, so a value whose readers wait for each other for
//! longer than that would keep the interval long, though no circuit of dependences asks for it: a
//! block counter, which the first round reads and what is added behind the last one. A reader so
//! late reads a copy, made before the register gets its next value, or a copy of that copy. So does
//! who reads both an iteration's value and the one before, as what asks for the carry of a sum that
//! goes on from iteration to iteration does: they have one register. Where
//! registers do not rotate this is what modulo variable expansion does (Lam, PLDI 1988), with moves
//! in place of a kernel that is unrolled.

use super::body::{Body, From, Node};
use super::invariant::made;
use super::place::mov;
use ciphermill_machine::Machine;
use std::collections::BTreeMap;

/// A copy is read within so many hundredths of the interval.
const SPAN: i64 = 75;
/// So many copies of one value are made at most, one after the other.
const MOST: i64 = 8;

/// The body with copies of such values, where its interval may come down to `bound` cycles; none
/// where no value is read so far apart.
pub fn split(body: &Body, machine: &Machine, bound: i64) -> Option<Body> {
    let span = (bound * SPAN / 100).max(1);
    let mut readers: BTreeMap<(usize, u32), Vec<usize>> = BTreeMap::new();
    for (i, node) in body.nodes.iter().enumerate() {
        for r in &node.reads {
            if let From::Node(p, d) = r.1 {
                let list = readers.entry((p, d)).or_default();
                if list.last() != Some(&i) {
                    list.push(i);
                }
            }
        }
    }
    // For each reader of a value that comes late: how many copies lie between.
    let mut late: BTreeMap<(usize, usize, u32), i64> = BTreeMap::new();
    let before = orders(body);
    for (&(p, d), list) in readers.iter().filter(|r| made(&body.nodes[r.0.0]).is_some()) {
        let way = ways(body, &before, list);
        // Who waits for this iteration's value comes too late for that of the one before.
        let behind = if d > 0 { ways(body, &before, &[p]) } else { Vec::new() };
        for &r in list.iter().filter(|&&r| r != p && !body.nodes[r].tied) {
            let least = i64::from(behind.get(r).is_some_and(Option::is_some));
            let copies = (way[r].unwrap_or(0) / span).clamp(least, MOST);
            if copies > 0 {
                late.insert((r, p, d), copies);
            }
        }
    }
    if late.is_empty() {
        return None;
    }
    let mut out = Body { nodes: Vec::new(), ..body.clone() };
    let mut index = vec![0; body.nodes.len()];
    // The copies so far of each value, each of the one before.
    let mut copies: BTreeMap<(usize, u32), Vec<usize>> = BTreeMap::new();
    // Reads of the iteration before, whose nodes have no number yet: node, place, node of the body.
    let mut later = Vec::new();
    for (i, node) in body.nodes.iter().enumerate() {
        for r in &node.reads {
            let From::Node(p, d) = r.1 else { continue };
            let wanted = late.get(&(i, p, d)).copied().unwrap_or(0);
            let chain = copies.entry((p, d)).or_default();
            while (chain.len() as i64) < wanted {
                let at = out.nodes.len();
                let read = match (chain.last(), d) {
                    (Some(&copy), _) => From::Node(copy, 0),
                    (None, 0) => From::Node(index[p], 0),
                    (None, _) => {
                        later.push((at, 0, p));
                        From::Node(p, d)
                    }
                };
                chain.push(at);
                out.nodes.push(copy(machine, read));
            }
        }
        let at = out.nodes.len();
        let mut node = node.clone();
        for (k, (_, from)) in node.reads.iter_mut().enumerate() {
            let From::Node(p, d) = *from else { continue };
            let copy = late.get(&(i, p, d)).and_then(|&wanted| copies[&(p, d)].get(wanted as usize - 1));
            match copy {
                Some(&copy) => *from = From::Node(copy, 0),
                None if d == 0 => *from = From::Node(index[p], 0),
                None => later.push((at, k, p)),
            }
        }
        index[i] = at;
        out.nodes.push(node);
    }
    for (n, k, p) in later {
        if let From::Node(q, _) = &mut out.nodes[n].reads[k].1 {
            *q = index[p];
        }
    }
    out.initial = body.initial.iter().map(|(&i, &v)| (index[i], v)).collect();
    out.live_out = body.live_out.iter().map(|&(i, v)| (index[i], v)).collect();
    out.memory = body.memory.iter().map(|&(a, b, c, d)| (index[a], index[b], c, d)).collect();
    Some(out)
}

/// Of each node those that it waits for in its iteration, and for how long.
fn orders(body: &Body) -> Vec<Vec<(usize, i64)>> {
    let mut before = vec![Vec::new(); body.nodes.len()];
    for (i, node) in body.nodes.iter().enumerate() {
        for r in &node.reads {
            if let From::Node(p, 0) = r.1 {
                before[i].push((p, body.nodes[p].writes.map_or(1, |w| i64::from(w.1))));
            }
        }
    }
    for &(a, b, cycles, distance) in &body.memory {
        if distance == 0 && a < b {
            before[b].push((a, i64::from(cycles)));
        }
    }
    before
}

/// The longest way from any of some nodes to each.
fn ways(body: &Body, before: &[Vec<(usize, i64)>], from: &[usize]) -> Vec<Option<i64>> {
    let mut way: Vec<Option<i64>> = vec![None; body.nodes.len()];
    from.iter().for_each(|&i| way[i] = Some(0));
    for i in from.iter().copied().min().unwrap_or(0)..body.nodes.len() {
        let longest = before[i].iter().filter_map(|&(p, cycles)| Some(way[p]? + cycles)).max();
        way[i] = way[i].max(longest);
    }
    way
}

/// A node that copies a value.
fn copy(machine: &Machine, from: From) -> Node {
    let (inst, def, used) = mov(machine);
    let latency = machine.instrs[usize::from(inst.instr.0)].latency;
    Node { inst, reads: vec![(used, from)], writes: Some((def, latency)), tied: false, mem: None }
}

#[cfg(test)]
mod tests {
    use super::split;
    use crate::body::From;
    use crate::search::tests::{addition, machine, with_branch};

    /// `carry = (x + 4) < x`, where `x` goes on from iteration to iteration: both are in one register.
    #[test]
    fn who_reads_a_value_and_the_one_before_reads_a_copy() {
        let m = machine();
        let mut carry = addition(&m, From::Node(0, 0));
        carry.reads.push((0, From::Node(0, 1)));
        let mut body = with_branch(&m, vec![addition(&m, From::Node(0, 1)), carry]);
        body.initial.insert(0, ciphermill_vcode::VReg(7));
        let out = split(&body, &m, 100).unwrap();
        assert_eq!(out.nodes.len(), 4);
        assert_eq!(out.nodes[1].inst.instr, m.abi.ops.mov);
        assert_eq!(out.nodes[1].reads.iter().map(|r| r.1).collect::<Vec<_>>(), [From::Node(0, 1)]);
        assert_eq!(out.nodes[2].reads.iter().map(|r| r.1).collect::<Vec<_>>(), [From::Node(0, 0), From::Node(1, 0)]);
        // The sum itself overwrites what it reads.
        assert_eq!(out.nodes[0].reads.iter().map(|r| r.1).collect::<Vec<_>>(), [From::Node(0, 1)]);
    }

    /// A counter that begins a chain of ten additions, and that is added to again at its end.
    #[test]
    fn who_reads_late_reads_a_copy() {
        let m = machine();
        let mut nodes = vec![addition(&m, From::Node(11, 1))];
        (0..9).for_each(|k| nodes.push(addition(&m, From::Node(k, 0))));
        let mut last = addition(&m, From::Node(9, 0));
        last.reads.push((0, From::Node(11, 1)));
        nodes.push(last);
        nodes.push(addition(&m, From::Node(11, 1)));
        let mut body = with_branch(&m, nodes);
        body.initial.insert(11, ciphermill_vcode::VReg(7));
        // An interval as long as the chain holds the counter all the while.
        assert!(split(&body, &m, 16).is_none());
        let out = split(&body, &m, 8).unwrap();
        assert_eq!(out.nodes.len(), body.nodes.len() + 1);
        let copy = out.nodes.iter().position(|n| n.inst.instr == m.abi.ops.mov).unwrap();
        // Of the counter as the iteration before left it, and read where the chain ends.
        assert_eq!(out.nodes[copy].reads.iter().map(|r| r.1).collect::<Vec<_>>(), [From::Node(12, 1)]);
        assert_eq!(out.nodes[11].reads[1].1, From::Node(copy, 0));
        assert_eq!(out.nodes[0].reads[0].1, From::Node(12, 1));
        assert_eq!(out.initial.keys().copied().collect::<Vec<_>>(), [12]);
        // Twice as far apart as an interval lasts: a copy of a copy.
        let out = split(&body, &m, 6).unwrap();
        assert_eq!(out.nodes.len(), body.nodes.len() + 2);
    }
}
