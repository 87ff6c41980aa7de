//! Which cluster does what.
//!
//! Work that never meets goes apart whole: with two blocks of a message in one
//! iteration, each has a side to itself, and no value crosses. Work that hangs
//! together is divided node by node: in the order of the flow of data, each
//! goes where its operands are, unless that side is much busier; then single
//! nodes and their neighbours are moved as long as the schedule gets shorter.

use super::body::{Body, From};
use super::place::{At, Sides};
use ciphermill_machine::InstrKind;

/// Values that many read and that cost no other value: loads of a round key
/// that two blocks share. They do not tie their readers together.
fn shared(body: &Body, n: usize, readers: &[usize]) -> bool {
    let node = &body.nodes[n];
    readers[n] > 1 && node.reads.iter().all(|r| matches!(r.1, From::Outside(_) | From::Node(_, 1)))
}

fn readers(body: &Body) -> Vec<usize> {
    let mut readers = vec![0; body.nodes.len()];
    for (_, from) in body.nodes.iter().flat_map(|n| &n.reads) {
        if let From::Node(p, 0) = from {
            readers[*p] += 1;
        }
    }
    readers
}

/// The parts of the body that exchange no values: a number for each node.
fn components(body: &Body) -> Vec<usize> {
    let n = body.nodes.len();
    let count = readers(body);
    let mut parent: Vec<usize> = (0..n).collect();
    fn root(parent: &mut [usize], mut i: usize) -> usize {
        while parent[i] != i {
            parent[i] = parent[parent[i]];
            i = parent[i];
        }
        i
    }
    for (i, node) in body.nodes.iter().enumerate() {
        for (_, from) in &node.reads {
            if let From::Node(p, 0) = from
                && !shared(body, *p, &count)
            {
                let (a, b) = (root(&mut parent, i), root(&mut parent, *p));
                parent[a.max(b)] = a.min(b);
            }
        }
    }
    (0..n).map(|i| root(&mut parent, i)).collect()
}

/// Whole components on sides, the largest first to the emptier side.
pub fn apart(body: &Body, sides: &Sides<'_>) -> Vec<At> {
    let component = components(body);
    let mut sizes: Vec<(usize, usize)> = Vec::new();
    for &c in &component {
        match sizes.iter_mut().find(|s| s.0 == c) {
            Some(s) => s.1 += 1,
            None => sizes.push((c, 1)),
        }
    }
    sizes.sort_by_key(|&(c, size)| (std::cmp::Reverse(size), c));
    let mut load = vec![0usize; sides.files.len()];
    let mut side_of = Vec::new();
    for &(c, size) in &sizes {
        let side = (0..load.len()).min_by_key(|&s| (load[s], s)).unwrap_or(0);
        load[side] += size;
        side_of.push((c, side));
    }
    let side = |i: usize| side_of.iter().find(|s| s.0 == component[i]).map_or(0, |s| s.1);
    let mut at: Vec<At> = (0..body.nodes.len()).map(|i| At { unit: side(i), result: side(i) }).collect();
    follow_readers(body, &mut at);
    at
}

/// Does every side have a fair part of the nodes?
pub fn balanced(at: &[At], sides: &Sides<'_>) -> bool {
    let count = sides.files.len();
    (0..count).all(|s| at.iter().filter(|a| a.unit == s).count() * count * 4 >= at.len() * 3)
}

/// Single nodes of no weight of their own (a shared load, an induction) go
/// where the most of their readers are.
fn follow_readers(body: &Body, at: &mut [At]) {
    let component = components(body);
    let alone = |i: usize| component.iter().filter(|c| **c == component[i]).count() == 1;
    for i in (0..body.nodes.len()).rev().filter(|&i| alone(i)) {
        let mut votes = [0usize; 16];
        for (r, node) in body.nodes.iter().enumerate() {
            if r != i && node.reads.iter().any(|x| matches!(x.1, From::Node(p, _) if p == i)) {
                votes[at[r].unit.min(15)] += 1;
            }
        }
        if votes.iter().any(|v| *v > 0) {
            let side = (0..16).max_by_key(|&s| (votes[s], std::cmp::Reverse(s))).unwrap_or(0);
            at[i] = At { unit: side, result: side };
        }
    }
}

/// Each node where its operands are, and the sides evenly busy.
pub fn spread(body: &Body, sides: &Sides<'_>) -> Vec<At> {
    let n = body.nodes.len();
    let mut at = vec![At { unit: 0, result: 0 }; n];
    let mut load = vec![0i64; sides.files.len()];
    // Distance from the iteration's end, so that both halves of a chain's
    // width are told apart early.
    for i in 0..n {
        let mut score: Vec<i64> = load.iter().map(|l| l * 2).collect();
        for (_, from) in &body.nodes[i].reads {
            if let From::Node(p, 0) = from {
                for (s, x) in score.iter_mut().enumerate() {
                    *x += if at[*p].result == s { 0 } else { 9 };
                }
            }
        }
        let side = (0..score.len()).min_by_key(|&s| (score[s], s)).unwrap_or(0);
        at[i] = At { unit: side, result: side };
        load[side] += 1;
        let least = load.iter().copied().min().unwrap_or(0);
        load.iter_mut().for_each(|l| *l -= least);
    }
    at
}

/// Changes to try on a partition, one after the other: a node on another side,
/// with the sole readers of its result; a load's result on another side.
pub fn moves(body: &Body, sides: &Sides<'_>, at: &[At], which: usize) -> Option<Vec<At>> {
    let n = body.nodes.len();
    let count = sides.files.len();
    if count < 2 || n == 0 {
        return None;
    }
    let i = which % n;
    let kind = which / n % 3;
    let mut new = at.to_vec();
    let load = sides.machine.instrs[usize::from(body.nodes[i].inst.instr.0)].kind == InstrKind::Load;
    match kind {
        0 if load => new[i].result = (new[i].result + 1) % count,
        0 | 1 => {
            let to = (new[i].unit + 1) % count;
            new[i] = At { unit: to, result: to };
            if kind == 1 {
                for (_, from) in &body.nodes[i].reads {
                    if let From::Node(p, 0) = from {
                        new[*p] = At { unit: to, result: to };
                    }
                }
            }
        }
        _ => {
            let to = (new[i].unit + 1) % count;
            new[i] = At { unit: to, result: to };
            for (r, node) in body.nodes.iter().enumerate() {
                if node.reads.iter().any(|x| x.1 == From::Node(i, 0)) {
                    new[r] = At { unit: to, result: to };
                }
            }
        }
    }
    Some(new)
}
