//! Operations whose cycles are known before a search begins, relative to each other.

use crate::place::{Ops, Origin};
use ciphermill_machine::InstrId;
use std::collections::BTreeMap;

/// A cycle and an instruction.
pub type Stands = (i64, InstrId);

/// Those of nodes, and of copies of their values to other clusters, all counted from one cycle.
#[derive(Clone, Debug)]
pub struct Preset {
    pub nodes: Vec<Option<Stands>>,
    pub copies: BTreeMap<(usize, usize), Stands>,
}

impl Preset {
    /// Of so many nodes, none of which has one.
    pub fn empty(nodes: usize) -> Preset {
        Preset { nodes: vec![None; nodes], copies: BTreeMap::new() }
    }

    /// Those of operations.
    pub fn of(&self, ops: &Ops) -> Vec<Option<Stands>> {
        let of = |origin: &Origin| match *origin {
            Origin::Node(n) => self.nodes[n],
            Origin::Copy(n, 0, cluster) => self.copies.get(&(n, cluster)).copied(),
            _ => None,
        };
        ops.origins.iter().map(of).collect()
    }
}
