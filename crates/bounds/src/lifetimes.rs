//! The least that values live, all together (Dinechin, PACT 1994).
//!
//! A value has its register from when it lands to its last read, and in the II cycles of the kernel
//! there are II times as many cells as registers. How short all lives can be together is a linear program
//! over the cycles of the operations, whose dual is a flow ([`crate::flow`]). Units are left out, so it
//! is a lower bound; so is how arcs lie on the circle.
//!
//! It says nothing of loops whose values may wait in the frame, be made twice, or have registers of
//! their own kind: see [`crate::certificate::Certificate::needs_registers`].

use crate::certificate::Lifetimes;
use crate::flow::{Arc, dearest};
use crate::model::Loop;

/// Arcs looked at for one II.
const WORK: u64 = 60_000_000;

/// The least sum of lives in a file at an II, as flow; none where a circuit is longer than the II, or the
/// question is too large.
pub fn least(l: &Loop, file: usize, ii: i64) -> Option<Lifetimes> {
    let values: Vec<_> = l.values.iter().filter(|v| v.file == file).collect();
    let n = l.operations.len();
    let mut arcs: Vec<Arc> =
        l.edges.iter().map(|e| Arc { from: e.from, to: e.to, length: e.latency - e.distance * ii }).collect();
    // A value's end stands behind its landing and behind each read.
    let mut ends: Vec<(usize, Option<usize>)> = Vec::new();
    for (v, value) in values.iter().enumerate() {
        arcs.push(Arc { from: value.operation, to: n + v, length: value.lands });
        ends.push((v, None));
        for (r, &(reader, distance)) in value.readers.iter().enumerate() {
            arcs.push(Arc { from: reader, to: n + v, length: distance * ii });
            ends.push((v, Some(r)));
        }
    }
    let sources: Vec<usize> = values.iter().map(|v| v.operation).collect();
    let sinks: Vec<usize> = (n..n + values.len()).collect();
    let flow = dearest(n + values.len(), &arcs, &sources, &sinks, &mut WORK.clone())?;
    let (through, last) = flow.split_at(l.edges.len());
    let mut chosen = vec![None; values.len()];
    ends.iter().zip(last).filter(|(_, f)| **f > 0).for_each(|(&(v, end), _)| chosen[v] = end);
    let flow = through.iter().enumerate().filter(|f| *f.1 > 0).map(|(e, &f)| (e, f)).collect();
    Some(Lifetimes { ii, file, ends: chosen, flow })
}
