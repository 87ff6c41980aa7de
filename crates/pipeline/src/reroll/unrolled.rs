//! A loop with the schedule of one round in all its rounds.

use super::period::Period;
use crate::based::Frame;
use crate::body::{Body, From};
use crate::place::{At, Origin, Sides};
use crate::search::preset::Preset;
use crate::search::{Form, Landed, Search, divide};
use crate::{forms, graph, order, partition};
use ciphermill_vcode::CompileError;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Hundredths of the registers that are left which values may take where some wait in the frame: the first that they do
/// with.
const FITTING: [usize; 6] = [100, 92, 85, 70, 55, 40];
/// With so many hundredths more nodes, which move values to the frame and back, the order is of no use.
const MORE: usize = 15;
/// Units have cycles around the rounds for an interval that is by this part longer than the bound.
const SLACK: i64 = 16;

/// What was found of a round.
struct Round<'a> {
    period: &'a Period,
    ii: i64,
    /// Cycles, instructions and clusters of its nodes; and of copies of their values, of the round before as well.
    preset: Preset,
    copies_before: Preset,
    at: Vec<At>,
}

impl<'a> Round<'a> {
    fn of(period: &'a Period, found: &Landed<'_>) -> Round<'a> {
        let n = period.window.len();
        let ops = found.state.ops();
        let (mut preset, mut copies_before) = (Preset::empty(n), Preset::empty(0));
        let stood = found.schedule.time.iter().copied().zip(found.schedule.variant.iter().copied());
        for (origin, stood) in ops.origins.iter().zip(stood) {
            match *origin {
                Origin::Node(m) if m < n => preset.nodes[m] = Some(stood),
                Origin::Copy(m, 0, cluster) => drop(preset.copies.insert((m, cluster), stood)),
                Origin::Copy(m, _, cluster) => drop(copies_before.copies.insert((m, cluster), stood)),
                _ => {}
            }
        }
        Round { period, ii: found.schedule.ii, preset, copies_before, at: ops.at(n + 1) }
    }

    /// Cycles between the window and a round, at a place.
    fn shift(&self, round: usize, place: usize) -> i64 {
        (round as i64 - self.period.own[place] as i64) * self.ii
    }

    /// Cycles of the nodes of a body, where they have some.
    fn stands(&self) -> Vec<Option<i64>> {
        let of = |&(round, place): &(usize, usize)| Some(self.preset.nodes[place]?.0 + self.shift(round, place));
        self.period.place.iter().map(|place| place.as_ref().and_then(of)).collect()
    }

    /// Cycles of a node, and of copies of its value, are put down for the node that it is in another body.
    fn put(&self, node: usize, to: usize, clusters: usize, out: &mut Preset) {
        let Some((round, place)) = self.period.place[node] else { return };
        let shift = self.shift(round, place);
        out.nodes[to] = self.preset.nodes[place].map(|(time, v)| (time + shift, v));
        for cluster in 0..clusters {
            let own = self.preset.copies.get(&(place, cluster)).map(|&(time, v)| (time + shift, v));
            // The next round makes the copy, for itself.
            let next = self.copies_before.copies.get(&(place, cluster)).map(|&(time, v)| (time + shift + self.ii, v));
            out.copies.extend(own.or(next).map(|stands| ((to, cluster), stands)));
        }
    }
}

/// The form. None where too much would, or too few nodes keep the
/// cycles of their round.
///
/// # Errors
/// When some operation has no variant.
pub fn form(
    search: &Search<'_>,
    body: &Body,
    period: &Period,
    found: &Landed<'_>,
    frame: &Frame,
) -> Result<Option<Form>, CompileError> {
    let (sides, n) = (search.sides, body.nodes.len());
    let round = Round::of(period, found);
    let graph = Graph::of(body);
    let mut stands = round.stands();
    graph.keep(&mut stands, |i| period.far(i));
    if 100 * stands.iter().flatten().count() < super::COVERED * n {
        return Ok(None);
    }
    let order = graph.by_time(&graph.around(&stands));
    let ordered = order::in_order(body, &order);
    let stay: Vec<bool> = order.iter().map(|&i| stands[i].is_some()).collect();
    let near = near(body, period, &round.at);
    let near: Vec<At> = order.iter().map(|&i| near[i]).collect();
    let ii = graph::least(sides, body)?;
    let at = divide::around(&ordered, sides, search.params, (ii + ii / SLACK, search.seed), &near, &stay);
    for part in FITTING {
        let Some((parked, at, index)) = forms::fitted(&ordered, sides, &at, part, frame)? else { continue };
        if 100 * parked.nodes.len() > (100 + MORE) * n {
            break;
        }
        let mut preset = Preset::empty(parked.nodes.len());
        let pairs = order.iter().zip(&index).filter(|p| stands[*p.0].is_some());
        pairs.for_each(|(&old, &new)| round.put(old, new, sides.files.len(), &mut preset));
        return Ok(Some(Form { fits: Some(at), preset: Some(preset), ..Form::of(parked) }));
    }
    Ok(None)
}

/// The body in its own order with what has no register in the frame; none where all have one, or never.
///
/// # Errors
/// When some operation has no variant.
pub fn parked(body: &Body, sides: &Sides<'_>, frame: &Frame) -> Result<Option<Body>, CompileError> {
    let at = partition::spread(body, sides, &partition::by_table(body, sides).unwrap_or_default());
    for part in FITTING {
        if let Some((parked, ..)) = forms::fitted(body, sides, &at, part, frame)? {
            return Ok(Some(parked).filter(|parked| parked.nodes.len() > body.nodes.len()));
        }
    }
    Ok(None)
}

/// A cluster for each node: that of its place in a round; or else that of one that reads it, or that it reads.
fn near(body: &Body, period: &Period, round: &[At]) -> Vec<At> {
    let whole = |cluster: usize| At { unit: cluster, result: cluster };
    let mut at: Vec<Option<At>> = period.place.iter().map(|p| p.map(|(_, place)| round[place])).collect();
    let sources =
        |i: usize| body.nodes[i].reads.iter().filter_map(|r| if let From::Node(p, 0) = r.1 { Some(p) } else { None });
    for i in (0..at.len()).rev() {
        if let Some(own) = at[i] {
            sources(i).for_each(|p| at[p] = at[p].or(Some(whole(own.unit))));
        }
    }
    for i in 0..at.len() {
        let source = sources(i).find_map(|p| at[p]).map_or(0, |at| at.result);
        at[i].get_or_insert(whole(source));
    }
    at.into_iter().flatten().collect()
}

/// The orders within one iteration: `(node, cycles)`.
struct Graph {
    before: Vec<Vec<(usize, i64)>>,
    after: Vec<Vec<(usize, i64)>>,
}

impl Graph {
    fn of(body: &Body) -> Graph {
        let n = body.nodes.len();
        let mut graph = Graph { before: vec![Vec::new(); n], after: vec![Vec::new(); n] };
        for (i, node) in body.nodes.iter().enumerate() {
            for r in &node.reads {
                if let From::Node(p, 0) = r.1 {
                    graph.add(p, i, body.nodes[p].writes.map_or(1, |w| i64::from(w.1)));
                }
            }
        }
        body.memory.iter().filter(|m| m.3 == 0).for_each(|&(a, b, cycles, _)| graph.add(a, b, i64::from(cycles)));
        graph
    }

    fn add(&mut self, first: usize, second: usize, cycles: i64) {
        self.after[first].push((second, cycles));
        self.before[second].push((first, cycles));
    }

    /// Nodes give their cycles up until all orders between those that have one hold: of two the one farther from the window.
    fn keep(&self, stands: &mut [Option<i64>], far: impl Fn(usize) -> usize) {
        for (second, before) in self.before.iter().enumerate() {
            for &(first, cycles) in before {
                if let (Some(a), Some(b)) = (stands[first], stands[second])
                    && b < a + cycles
                {
                    stands[if far(first) > far(second) { first } else { second }] = None;
                }
            }
        }
    }

    /// Cycles for all nodes: what those that have one wait for has it as late as can be, the others as soon.
    fn around(&self, stands: &[Option<i64>]) -> Vec<i64> {
        let mut time = stands.to_vec();
        for i in (0..time.len()).rev().filter(|&i| stands[i].is_none()) {
            time[i] = self.after[i].iter().filter_map(|&(r, cycles)| Some(time[r]? - cycles)).min();
        }
        for i in 0..time.len() {
            let soon = self.before[i].iter().filter_map(|&(p, cycles)| Some(time[p]? + cycles)).max();
            time[i] = time[i].or(soon);
        }
        let last = time.iter().flatten().max().copied().unwrap_or(0);
        time.into_iter().map(|t| t.unwrap_or(last)).collect()
    }

    /// The nodes in the order of their cycles, but each behind what it waits for; the branch is the last.
    fn by_time(&self, time: &[i64]) -> Vec<usize> {
        let n = time.len();
        let mut waits: Vec<usize> = self.before.iter().map(Vec::len).collect();
        let key = |i: usize| Reverse((i + 1 == n, time[i], i));
        let mut ready: BinaryHeap<_> = (0..n).filter(|&i| waits[i] == 0).map(key).collect();
        let mut out = Vec::with_capacity(n);
        while let Some(Reverse((_, _, i))) = ready.pop() {
            out.push(i);
            for &(b, _) in &self.after[i] {
                waits[b] -= 1;
                if waits[b] == 0 {
                    ready.push(key(b));
                }
            }
        }
        out
    }
}
