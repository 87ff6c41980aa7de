//! Bits of counters, from the values that they have in a run of their loops: a counter to 16 is one limb.

use crate::unroll::graph::Graph;
use crate::unroll::trips;
use ciphermill_ir::{Func, Value};
use std::collections::HashMap;

/// Turns of a loop that are run to see its counters, at most: those of the longest loop over a table of bytes.
const MOST_TURNS: u32 = 256;

/// Of a function's loops with constant trip counts: the bits that their counters may have.
pub(super) fn bits(func: &mut Func) -> HashMap<Value, u64> {
    let graph = Graph::new(func);
    let mut all = HashMap::new();
    for id in graph.loops.loops.keys() {
        all.extend(trips::bits(func, &graph, id, MOST_TURNS));
    }
    all
}
