//! Which cluster does what.
//!
//! Work that never meets goes apart whole: with two blocks of a message in one
//! iteration, each has a side to itself, and no value crosses. Work that hangs
//! together is divided node by node: in the order of the flow of data, each
//! goes where its operands are, unless that side is much busier; then single
//! nodes and their neighbours are moved as long as the schedule gets shorter.
//! Either way it is also tried to let two operations on one value that a side has
//! one unit for, as the shifts of a rotate, go to two sides.

use super::body::{Body, From};
use super::place::{At, Sides};
use ciphermill_ir::Space;
use ciphermill_machine::InstrKind;
use ciphermill_vcode::VReg;
use std::cmp::Reverse;

/// Nodes that no block of the message goes into: their sources are values from
/// outside, inductions and one another. A round key is loaded by such nodes,
/// whichever blocks it is for.
fn common(body: &Body) -> Vec<bool> {
    let mut common: Vec<bool> = Vec::with_capacity(body.nodes.len());
    // A pointer into the message that is kept in the frame: loaded there, and
    // stored when it has advanced.
    let mut pointer = vec![false; body.nodes.len()];
    let in_frame = |i: usize| body.nodes[i].mem.is_some_and(|m| m.space == Space::Stack);
    body.memory.iter().filter(|m| m.3 == 1 && in_frame(m.0)).for_each(|m| pointer[m.1] = true);
    for (i, node) in body.nodes.iter().enumerate() {
        let from_common = node.reads.iter().all(|r| match r.1 {
            From::Outside(_) => true,
            From::Node(p, 0) if pointer[p] && node.mem.is_some() => false,
            From::Node(p, 0) => common.get(p).copied().unwrap_or(false),
            From::Node(p, _) => p == i,
        });
        common.push(from_common);
    }
    common
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
    let common = common(body);
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
                && !(common[*p] && (count[*p] > 1 || common[i]))
            {
                let (a, b) = (root(&mut parent, i), root(&mut parent, *p));
                parent[a.max(b)] = a.min(b);
            }
        }
    }
    (0..n).map(|i| root(&mut parent, i)).collect()
}

/// The body with a copy of every common node for each part that reads it, so
/// that no part waits for another's turn to use a round key. `None` where no
/// node is read by several.
pub fn separate(body: &Body) -> Option<Body> {
    let component = components(body);
    let common = common(body);
    let n = body.nodes.len();
    // Inductions and what the memory order or the code behind the loop knows
    // by name stay single.
    let mut fixed: Vec<bool> = common.iter().map(|c| !c).collect();
    let known = body.initial.keys().copied().chain(body.live_out.iter().map(|l| l.0));
    known.chain(body.memory.iter().flat_map(|m| [m.0, m.1])).for_each(|i| fixed[i] = true);
    let mut wanted: Vec<Vec<usize>> = vec![Vec::new(); n];
    for i in (0..n).rev() {
        let parts = if fixed[i] { vec![component[i]] } else { wanted[i].clone() };
        for &(_, from) in &body.nodes[i].reads {
            if let From::Node(p, 0) = from
                && !fixed[p]
            {
                for &c in &parts {
                    if !wanted[p].contains(&c) {
                        wanted[p].push(c);
                    }
                }
            }
        }
    }
    if wanted.iter().all(|w| w.len() < 2) {
        return None;
    }
    let mut out = Body { nodes: Vec::new(), ..body.clone() };
    let mut index: Vec<Vec<(usize, usize)>> = vec![Vec::new(); n];
    for i in 0..n {
        wanted[i].sort_unstable();
        let parts = if fixed[i] || wanted[i].is_empty() { vec![component[i]] } else { wanted[i].clone() };
        for &c in &parts {
            let mut node = body.nodes[i].clone();
            for (_, from) in &mut node.reads {
                if let From::Node(p, 0) = from {
                    let own = index[*p].iter().find(|x| x.0 == c).or(index[*p].first());
                    *from = From::Node(own.map_or(0, |x| x.1), 0);
                }
            }
            index[i].push((c, out.nodes.len()));
            out.nodes.push(node);
        }
    }
    let renamed = |i: usize| index[i].first().map_or(0, |x| x.1);
    for (_, from) in out.nodes.iter_mut().flat_map(|n| &mut n.reads) {
        if let From::Node(p, 1) = from {
            *p = renamed(*p);
        }
    }
    out.initial = body.initial.iter().map(|(&i, &v)| (renamed(i), v)).collect();
    out.live_out = body.live_out.iter().map(|&(i, v)| (renamed(i), v)).collect();
    out.memory = body.memory.iter().map(|&(a, b, c, d)| (renamed(a), renamed(b), c, d)).collect();
    Some(out)
}

/// Whole components on sides, the largest first to the emptier side.
pub fn apart(body: &Body, sides: &Sides<'_>) -> Vec<At> {
    let component = components(body);
    let mut size = vec![0usize; component.len()];
    component.iter().for_each(|&c| size[c] += 1);
    let mut sizes: Vec<(usize, usize)> = size.iter().copied().enumerate().filter(|s| s.1 > 0).collect();
    sizes.sort_by_key(|&(c, size)| (Reverse(size), c));
    let mut load = vec![0usize; sides.files.len()];
    let mut side_of = vec![0; component.len()];
    for &(c, size) in &sizes {
        let side = (0..load.len()).min_by_key(|&s| (load[s], s)).unwrap_or(0);
        load[side] += size;
        side_of[c] = side;
    }
    let side = |i: usize| side_of[component[i]];
    let mut at: Vec<At> = (0..body.nodes.len()).map(|i| At { unit: side(i), result: side(i) }).collect();
    follow_readers(body, &size, &component, &mut at);
    at
}

/// Single nodes of no weight of their own (a shared load, an induction) go
/// where the most of their readers are.
fn follow_readers(body: &Body, size: &[usize], component: &[usize], at: &mut [At]) {
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); at.len()];
    for (r, node) in body.nodes.iter().enumerate() {
        for (_, from) in &node.reads {
            if let From::Node(p, _) = *from
                && p != r
                && readers[p].last() != Some(&r)
            {
                readers[p].push(r);
            }
        }
    }
    for i in (0..at.len()).rev().filter(|&i| size[component[i]] == 1 && !readers[i].is_empty()) {
        let mut votes = [0usize; 16];
        readers[i].iter().for_each(|&r| votes[at[r].unit.min(15)] += 1);
        let side = (0..16).max_by_key(|&s| (votes[s], Reverse(s))).unwrap_or(0);
        at[i] = At { unit: side, result: side };
    }
}

/// Each node where its operands are, and the sides evenly busy. Nodes whose
/// side is given keep it.
pub fn spread(body: &Body, sides: &Sides<'_>, given: &[Option<usize>]) -> Vec<At> {
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
        let least = (0..score.len()).min_by_key(|&s| (score[s], s)).unwrap_or(0);
        let side = given.get(i).copied().flatten().unwrap_or(least);
        at[i] = At { unit: side, result: side };
        load[side] += 1;
        let least = load.iter().copied().min().unwrap_or(0);
        load.iter_mut().for_each(|l| *l -= least);
    }
    at
}

/// Sides for the accesses to memory, so that few values from outside are
/// needed on both: each table with all its lookups, and the nodes that make
/// their indices, on one side, tables in one block of memory together; the
/// other addresses, each with its accesses, where most registers are left.
/// Nothing is said of the rest. `None` where there are no two tables.
pub fn by_table(body: &Body, sides: &Sides<'_>) -> Option<Vec<Option<usize>>> {
    let count = sides.files.len();
    let machine = sides.machine;
    let indexed = |i: usize| {
        let reads = &body.nodes[i].reads;
        let load = machine.instrs[usize::from(body.nodes[i].inst.instr.0)].kind == InstrKind::Load;
        let base = reads.iter().find_map(|r| if let From::Outside(v) = r.1 { Some(v) } else { None });
        let index = reads.iter().find_map(|r| if let From::Node(p, 0) = r.1 { Some(p) } else { None });
        if load { Some((base?, index?)) } else { None }
    };
    // Tables in the order of their blocks and of their first lookups.
    let mut tables: Vec<(VReg, u64, usize)> = Vec::new();
    for i in 0..body.nodes.len() {
        let Some((base, _)) = indexed(i) else { continue };
        match tables.iter_mut().find(|t| t.0 == base) {
            Some(t) => t.2 += 1,
            None => tables.push((base, body.nodes[i].mem.map_or(0, |m| m.banks), 1)),
        }
    }
    if tables.len() < 2 || count < 2 {
        return None;
    }
    tables.sort_by_key(|t| t.1);
    let all: usize = tables.iter().map(|t| t.2).sum();
    let mut before = 0;
    let mut lookups = vec![0; count];
    let mut side_of: Vec<(VReg, usize)> = Vec::new();
    for &(base, _, n) in &tables {
        let side = ((2 * before + n) * count / (2 * all)).min(count - 1);
        before += n;
        lookups[side] += n;
        side_of.push((base, side));
    }
    let mut given: Vec<Option<usize>> = vec![None; body.nodes.len()];
    let mut taken: Vec<usize> = (0..count).map(|s| side_of.iter().filter(|t| t.1 == s).count()).collect();
    for i in 0..body.nodes.len() {
        if let Some((base, index)) = indexed(i) {
            given[i] = side_of.iter().find(|t| t.0 == base).map(|t| t.1);
            given[index] = given[i];
        }
    }
    // Addresses that are neither tables nor made in the loop.
    let mut others: Vec<(From, Vec<usize>)> = Vec::new();
    for (i, node) in body.nodes.iter().enumerate().filter(|(_, n)| n.mem.is_some()) {
        let outer = |f: &From| matches!(f, From::Outside(_)) || matches!(f, From::Node(_, 1));
        let mut from = node.reads.iter().map(|r| r.1).find(outer);
        // An address that is another plus a constant goes with that one.
        if from.is_none() {
            let sources = node.reads.iter().filter_map(|r| if let From::Node(p, 0) = r.1 { Some(p) } else { None });
            from = sources.flat_map(|p| &body.nodes[p].reads).map(|r| r.1).find(outer);
        }
        if let (Some(from), None) = (from, given[i]) {
            match others.iter_mut().find(|o| o.0 == from) {
                Some(o) => o.1.push(i),
                None => others.push((from, vec![i])),
            }
        }
    }
    others.sort_by_key(|o| Reverse(o.1.len()));
    for (from, nodes) in others {
        let left = |s: usize| sides.pool[s].len().saturating_sub(taken[s]);
        let side = (0..count).max_by_key(|&s| (left(s), Reverse(lookups[s]), Reverse(s))).unwrap_or(0);
        taken[side] += 1;
        lookups[side] += nodes.len();
        if let From::Node(p, _) = from {
            given[p] = Some(side);
        }
        nodes.iter().for_each(|&i| given[i] = Some(side));
        for (i, node) in body.nodes.iter().enumerate() {
            if node.tied && given[i].is_none() && node.reads.iter().any(|r| r.1 == from) {
                given[i] = Some(side);
            }
        }
    }
    Some(given)
}
