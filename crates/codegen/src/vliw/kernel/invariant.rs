//! Values that are the same in every iteration and that an iteration reads far apart.
//!
//! Such a value, an address to which a large constant has been added for example, is made
//! where it is wanted: that is as good as a register of its own throughout, as long as its
//! readers stand close together. Where they stand further apart than an iteration's interval
//! its one register would have to hold two iterations' values at once, so the readers would
//! keep the interval long. Such a value is made before the loop, as the values are that it
//! is made of.

use super::body::{Body, From, Node};
use crate::vcode::{VKind, VOp, VReg};
use std::collections::BTreeMap;

/// So many of the values read furthest apart are made before the loop.
const MOST: usize = 4;

/// The body without such values, which are made before it; `bound` is what its interval may
/// come down to, in cycles. None where there are none.
pub fn hoist(body: &Body, bound: i64) -> Option<Body> {
    let n = body.nodes.len();
    let mut invariant = vec![false; n];
    for i in 0..n {
        let known = |r: &(usize, From)| match r.1 {
            From::Outside(_) => true,
            From::Node(p, 0) => invariant[p],
            From::Node(..) => false,
        };
        let node = &body.nodes[i];
        let plain = node.mem.is_none() && node.inst.kind == VKind::Normal && node.inst.trap.is_none();
        invariant[i] = plain && made(node).is_some() && !body.initial.contains_key(&i) && node.reads.iter().all(known);
    }
    let mut hoisted = vec![false; n];
    let mut apart: Vec<(i64, usize)> = spans(body, &invariant).into_iter().filter(|s| s.0 > bound).collect();
    apart.sort_unstable_by_key(|&(span, i)| (-span, i));
    apart.iter().take(MOST).for_each(|s| hoisted[s.1] = true);
    for i in (0..n).rev() {
        if hoisted[i] {
            body.nodes[i].reads.iter().for_each(|r| {
                if let From::Node(p, _) = r.1 {
                    hoisted[p] = true
                }
            });
        }
    }
    hoisted.contains(&true).then(|| without(body, &hoisted))
}

/// Of each such value, the cycles between the readers that stand furthest apart when all
/// stand as late as the longest chain allows.
fn spans(body: &Body, invariant: &[bool]) -> Vec<(i64, usize)> {
    let n = body.nodes.len();
    // Cycles from a node to the end of the longest chain that it begins.
    let mut rest = vec![0i64; n];
    let mut ends: BTreeMap<usize, (i64, i64)> = BTreeMap::new();
    for i in (0..n).rev() {
        for r in &body.nodes[i].reads {
            let From::Node(p, 0) = r.1 else { continue };
            let latency = body.nodes[p].writes.map_or(1, |w| i64::from(w.1));
            rest[p] = rest[p].max(rest[i] + latency);
            if invariant[p] && !invariant[i] {
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
fn made(node: &Node) -> Option<VReg> {
    match node.inst.ops.get(node.writes?.0)? {
        VOp::Def(v) => Some(*v),
        VOp::Tied { def, .. } => Some(*def),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::hoist;
    use crate::vcode::{MemRef, VInst, VKind, VOp, VReg};
    use crate::vliw::kernel::body::{Body, From, Node};
    use ciphermill_ir::Space;
    use ciphermill_machine::InstrId;

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
}
