//! Values that are the same in every iteration and that an iteration reads far apart.
//!
//! Such a value, an address to which a large constant has been added for example, is made
//! where it is wanted: that is as good as a register of its own throughout, as long as its
//! readers stand close together. Where they stand further apart than an iteration's interval
//! its one register would have to hold two iterations' values at once, so the readers would
//! keep the interval long. Such a value is made before the loop, as the values are that it
//! is made of; a word of a key, too, that is loaded once and read in many rounds. Where these
//! are many, registers are for those read furthest apart, and the others are made once more for
//! each group of readers.

use super::body::{Body, From, Node};
use ciphermill_vcode::{VKind, VOp, VReg};
use std::collections::BTreeMap;

/// So many of the values read furthest apart are made before the loop.
const MOST: usize = 4;
/// Readers within this part of the interval share a value that is made again.
const GROUP: i64 = 4;

/// The body without such values, which are made before it; `bound` is what its interval may
/// come down to, in cycles. None where there are none.
pub fn hoist(body: &Body, bound: i64) -> Option<Body> {
    let n = body.nodes.len();
    // Accesses to memory that something in the loop may write, or writes.
    let mut written: Vec<bool> = body.nodes.iter().map(|node| node.mem.is_some_and(|mem| mem.store)).collect();
    body.memory.iter().for_each(|&(a, b, ..)| (written[a], written[b]) = (true, true));
    let mut invariant = vec![false; n];
    for i in 0..n {
        let known = |r: &(usize, From)| match r.1 {
            From::Outside(_) => true,
            From::Node(p, 0) => invariant[p],
            From::Node(..) => false,
        };
        let node = &body.nodes[i];
        let plain = !written[i] && node.inst.kind == VKind::Normal && node.inst.trap.is_none();
        invariant[i] = plain && made(node).is_some() && !body.initial.contains_key(&i) && node.reads.iter().all(known);
    }
    let (mut hoisted, mut again) = (vec![false; n], vec![false; n]);
    let rest = rests(body);
    let mut apart: Vec<(i64, usize)> = spans(body, &invariant, &rest).into_iter().filter(|s| s.0 > bound).collect();
    apart.sort_unstable_by_key(|&(span, i)| (-span, i));
    apart.iter().take(MOST).for_each(|s| hoisted[s.1] = true);
    let leaves = |i: usize| body.live_out.iter().any(|l| l.0 == i);
    apart.iter().skip(MOST).filter(|s| !leaves(s.1)).for_each(|s| again[s.1] = true);
    for i in (0..n).rev() {
        if hoisted[i] {
            body.nodes[i].reads.iter().for_each(|r| {
                if let From::Node(p, _) = r.1 {
                    hoisted[p] = true
                }
            });
        }
    }
    for i in 0..n {
        let of_such = body.nodes[i].reads.iter().any(|r| matches!(r.1, From::Node(p, _) if again[p]));
        again[i] &= !hoisted[i] && !of_such;
    }
    let body = if again.contains(&true) { &grouped(body, &again, &rest, bound / GROUP, &mut hoisted) } else { body };
    hoisted.contains(&true).then(|| without(body, &hoisted))
}

/// Cycles from each node to the end of the longest chain that it begins.
fn rests(body: &Body) -> Vec<i64> {
    let mut rest = vec![0i64; body.nodes.len()];
    for i in (0..body.nodes.len()).rev() {
        for r in &body.nodes[i].reads {
            let From::Node(p, 0) = r.1 else { continue };
            let latency = body.nodes[p].writes.map_or(1, |w| i64::from(w.1));
            rest[p] = rest[p].max(rest[i] + latency);
        }
    }
    rest
}

/// The body in which some nodes are there once for each group of readers that stand no further
/// apart; `hoisted` follows its nodes.
fn grouped(body: &Body, again: &[bool], rest: &[i64], group: i64, hoisted: &mut Vec<bool>) -> Body {
    let mut out = Body { nodes: Vec::new(), ..body.clone() };
    let mut index = vec![0; body.nodes.len()];
    let mut kept = Vec::new();
    // Of each node that is made again: the last time, and what its first reader there has left.
    let mut last: BTreeMap<usize, (usize, i64)> = BTreeMap::new();
    for (i, node) in body.nodes.iter().enumerate() {
        if again[i] {
            continue;
        }
        let mut node = node.clone();
        for (_, from) in &mut node.reads {
            let From::Node(p, 0) = *from else { continue };
            if again[p] && last.get(&p).is_none_or(|l| (l.1 - rest[i]).abs() > group) {
                let mut copy = body.nodes[p].clone();
                copy.reads.iter_mut().for_each(|r| {
                    if let From::Node(q, 0) = r.1 {
                        r.1 = From::Node(index[q], 0)
                    }
                });
                last.insert(p, (out.nodes.len(), rest[i]));
                out.nodes.push(copy);
                kept.push(false);
            }
            *from = From::Node(if again[p] { last[&p].0 } else { index[p] }, 0);
        }
        index[i] = out.nodes.len();
        out.nodes.push(node);
        kept.push(hoisted[i]);
    }
    for (_, from) in out.nodes.iter_mut().flat_map(|n| &mut n.reads) {
        if let From::Node(p, 1..) = from {
            *p = index[*p];
        }
    }
    out.initial = body.initial.iter().map(|(&i, &v)| (index[i], v)).collect();
    out.live_out = body.live_out.iter().map(|&(i, v)| (index[i], v)).collect();
    out.memory = body.memory.iter().map(|&(a, b, c, d)| (index[a], index[b], c, d)).collect();
    *hoisted = kept;
    out
}

/// Of each such value, the cycles between the readers that stand furthest apart when all
/// stand as late as the longest chain allows.
fn spans(body: &Body, invariant: &[bool], rest: &[i64]) -> Vec<(i64, usize)> {
    let mut ends: BTreeMap<usize, (i64, i64)> = BTreeMap::new();
    for i in (0..body.nodes.len()).rev() {
        for r in &body.nodes[i].reads {
            let From::Node(p, 0) = r.1 else { continue };
            if invariant[p] {
                let (least, most) = ends.entry(p).or_insert((rest[i], rest[i]));
                (*least, *most) = ((*least).min(rest[i]), (*most).max(rest[i]));
            }
        }
    }
    ends.into_iter().map(|(p, (least, most))| (most - least, p)).collect()
}

fn without(body: &Body, hoisted: &[bool]) -> Body {
    let mut index = vec![0; body.nodes.len()];
    let mut out = Body { nodes: Vec::new(), ..body.clone() };
    for (i, node) in body.nodes.iter().enumerate() {
        if hoisted[i] {
            out.before.push(node.inst.clone());
        } else {
            index[i] = out.nodes.len();
            out.nodes.push(node.clone());
        }
    }
    for (_, from) in out.nodes.iter_mut().flat_map(|n| &mut n.reads) {
        if let From::Node(p, distance) = *from {
            *from = match made(&body.nodes[p]).filter(|_| hoisted[p]) {
                Some(v) => From::Outside(v),
                None => From::Node(index[p], distance),
            };
        }
    }
    out.initial = body.initial.iter().map(|(&i, &v)| (index[i], v)).collect();
    // Behind the loop it is known by the same register.
    out.live_out = body.live_out.iter().filter(|x| !hoisted[x.0]).map(|&(i, v)| (index[i], v)).collect();
    out.memory = body.memory.iter().map(|&(a, b, c, d)| (index[a], index[b], c, d)).collect();
    out
}

/// The register of a node's result.
pub fn made(node: &Node) -> Option<VReg> {
    match node.inst.ops.get(node.writes?.0)? {
        VOp::Def(v) => Some(*v),
        VOp::Tied { def, .. } => Some(*def),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::hoist;
    use crate::body::{Body, From, Node};
    use ciphermill_ir::Space;
    use ciphermill_machine::InstrId;
    use ciphermill_vcode::{MemRef, VInst, VKind, VOp, VReg};

    /// A copy of a value from outside, a sum with a constant, which is what `early` and `late`
    /// read, and a chain of six operations of two cycles that they are the ends of.
    fn body() -> Body {
        let node = |def: u32, reads: Vec<From>| Node {
            inst: VInst::new(VKind::Normal, InstrId(0), &[VOp::Def(VReg(def))], 0),
            reads: reads.into_iter().enumerate().map(|(o, from)| (o + 1, from)).collect(),
            writes: Some((0, 2)),
            tied: false,
            mem: None,
        };
        let mut nodes = vec![node(10, vec![From::Outside(VReg(1))]), node(11, vec![From::Node(0, 0)])];
        nodes.push(node(12, vec![From::Node(1, 0), From::Outside(VReg(2))]));
        nodes[2].mem = Some(MemRef::own(Space::Linear, false, 0, 4));
        for i in 3..8 {
            nodes.push(node(10 + i, vec![From::Node(i as usize - 1, 0)]));
        }
        nodes[7].reads.push((2, From::Node(1, 0)));
        let live_out = vec![(1, VReg(11)), (7, VReg(17))];
        Body { live_out, memory: vec![(2, 2, 1, 1)], ..Body::of(nodes, InstrId(0)) }
    }

    #[test]
    fn a_value_read_further_apart_than_the_interval_is_made_before() {
        // Its readers are the ends of five steps of two cycles.
        assert!(hoist(&body(), 10).is_none());
        let out = hoist(&body(), 9).unwrap();
        let defs: Vec<VReg> = out.before.iter().flat_map(VInst::defs).collect();
        assert_eq!(defs, [VReg(10), VReg(11)]);
        assert_eq!(out.nodes.len(), 6);
        assert_eq!(out.nodes[0].reads, [(1, From::Outside(VReg(11))), (2, From::Outside(VReg(2)))]);
        assert_eq!(out.nodes[5].reads, [(1, From::Node(4, 0)), (2, From::Outside(VReg(11)))]);
        assert_eq!(out.live_out, [(5, VReg(17))]);
        assert_eq!(out.memory, [(0, 0, 1, 1)]);
    }

    /// Words of a key, each of which is loaded once and read at every second step of a chain, after
    /// something has been added to it.
    fn keyed(words: usize) -> Body {
        let node = |def: usize, reads: Vec<From>| Node {
            inst: VInst::new(VKind::Normal, InstrId(0), &[VOp::Def(VReg(def as u32))], 0),
            reads: reads.into_iter().enumerate().map(|(o, from)| (o + 1, from)).collect(),
            writes: Some((0, 1)),
            tied: false,
            mem: None,
        };
        let mut nodes = Vec::new();
        for word in 0..words {
            nodes.push(node(10 + word, vec![From::Outside(VReg(1))]));
            nodes[word].mem = Some(MemRef::own(Space::Linear, false, 4 * word as i64, 4));
        }
        for step in 0..40 {
            let sum = nodes.len();
            let before = if step == 0 { From::Outside(VReg(2)) } else { From::Node(sum - 1, 0) };
            nodes.push(node(100 + sum, vec![From::Node(step % words, 0), From::Outside(VReg(3))]));
            nodes.push(node(100 + sum + 1, vec![before, From::Node(sum, 0)]));
        }
        let last = nodes.len() - 1;
        Body { live_out: vec![(last, VReg(last as u32 + 100))], ..Body::of(nodes, InstrId(0)) }
    }

    fn loads(body: &Body) -> usize {
        body.nodes.iter().filter(|n| n.mem.is_some()).count()
    }

    #[test]
    fn words_that_nothing_writes_are_loaded_before() {
        let body = keyed(4);
        let out = hoist(&body, 20).unwrap();
        assert_eq!((out.before.len(), loads(&out), out.nodes.len()), (4, 0, 80));
        assert_eq!(out.nodes[0].reads, [(1, From::Outside(VReg(10))), (2, From::Outside(VReg(3)))]);
        // Not where something in the loop may write them.
        assert!(
            hoist(&Body { memory: vec![(0, 9, 0, 0), (1, 9, 0, 0), (2, 9, 0, 0), (3, 9, 0, 0)], ..body }, 20).is_none()
        );
    }

    #[test]
    fn where_they_are_many_some_are_loaded_again() {
        // Each of eight words is read in five steps, eight steps apart: four of them once for each.
        let out = hoist(&keyed(8), 20).unwrap();
        assert_eq!((out.before.len(), loads(&out)), (4, 4 * 5));
        for (i, node) in out.nodes.iter().enumerate() {
            assert!(
                node.reads.iter().all(|r| !matches!(r.1, From::Node(p, 0) if p >= i)),
                "{i} reads what comes later"
            );
        }
        // Where the interval is as long as they are read apart, each is loaded once.
        assert!(hoist(&keyed(8), 32).is_none());
    }
}
