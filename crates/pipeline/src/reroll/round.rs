//! One round as a loop: what the rounds before it made, its iteration before has.

use super::period::Period;
use crate::body::{Body, From, Node};
use crate::forms;
use crate::place::Sides;
use ciphermill_vcode::{VInst, VKind, VReg};
use std::collections::{BTreeMap, BTreeSet};

/// A value from around the rounds, or from farther back, whichever it is.
const ELSEWHERE: VReg = VReg(u32::MAX - 1);
/// Initial values have numbers down from here.
const INITIAL: u32 = u32::MAX - 2;
/// At most this part of a cluster's registers is taken away: others of these values go to the frame. Ascon's hash on the
/// C6201 takes 328 cycles with it, 389 with a quarter.
const KEPT: usize = 2;

/// The loop. Nothing branches back: in the whole loop nothing does between rounds.
pub fn body(body: &Body, sides: &Sides<'_>, period: &Period) -> Body {
    let mut initial = BTreeMap::new();
    let mut of = |m: usize, from: From| {
        let From::Node(p, d) = from else { return from };
        match period.place[p] {
            Some((round, q)) if d == 0 && round == period.own[q] && q < m => From::Node(q, 0),
            Some((round, q)) if d == 0 && round + 1 == period.own[q] => {
                initial.entry(q).or_insert(VReg(INITIAL - q as u32));
                From::Node(q, 1)
            }
            _ => From::Outside(ELSEWHERE),
        }
    };
    let mut nodes: Vec<Node> = period.window.iter().map(|&i| body.nodes[i].clone()).collect();
    for (m, node) in nodes.iter_mut().enumerate() {
        node.reads.iter_mut().for_each(|r| r.1 = of(m, r.1));
    }
    let nothing = VInst::new(VKind::Normal, sides.machine.abi.ops.nop, &[], 0);
    nodes.push(Node { inst: nothing, reads: Vec::new(), writes: None, tied: false, mem: None });
    Body {
        before: Vec::new(),
        parked: 0,
        restored: Vec::new(),
        bases: Vec::new(),
        based: Vec::new(),
        nodes,
        initial,
        live_out: Vec::new(),
        skip: body.skip,
        exit: body.exit.clone(),
        loop_depth: body.loop_depth,
        memory: memory(body, period),
    }
}

/// Orders between accesses of one round, and of one and the next.
fn memory(body: &Body, period: &Period) -> Vec<(usize, usize, u32, u32)> {
    let mut out = BTreeSet::new();
    for &(a, b, cycles, distance) in body.memory.iter().filter(|m| m.3 == 0) {
        let (Some((first, a)), Some((second, b))) = (period.place[a], period.place[b]) else { continue };
        if first != period.own[a] {
            continue;
        }
        // Rounds of two strands are numbered apart.
        match (second + period.own[a]).checked_sub(first + period.own[b]) {
            Some(0) if a < b => drop(out.insert((a, b, cycles, distance))),
            Some(1) => drop(out.insert((a, b, cycles, 1))),
            _ => {}
        }
    }
    out.into_iter().collect()
}

/// The clusters without registers of values that live through all rounds: those carried round the whole loop, and those from
/// outside it that no round reads.
pub fn sides<'s>(sides: &Sides<'s>, body: &Body, round: &Body) -> Sides<'s> {
    let outside = |body: &Body| -> BTreeSet<VReg> {
        let reads = body.nodes.iter().flat_map(|n| &n.reads);
        reads.filter_map(|r| if let From::Outside(v) = r.1 { Some(v) } else { None }).collect()
    };
    let read = outside(round);
    let through = forms::held(body).len() + outside(body).difference(&read).count();
    let mut out = sides.on(sides.machine);
    let clusters = out.pool.len().max(1);
    for (k, pool) in out.pool.iter_mut().enumerate() {
        // They are taken to be spread evenly.
        let taken = (through + clusters - 1 - k) / clusters;
        pool.truncate(pool.len() - taken.min(pool.len() / KEPT));
    }
    out
}
