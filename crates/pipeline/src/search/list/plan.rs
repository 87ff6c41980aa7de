//! What all attempts at one loop share.

use super::preset::Followed;
use crate::body::From;
use crate::certain::Certain;
use crate::graph::Orders;
use crate::place::{Op, Ops, Sides};
use crate::search::preset::Stands;
use crate::table::demand;
use ciphermill_program::Role;
use smallvec::SmallVec;
use std::sync::Arc;

/// What all attempts at one loop share.
pub struct Plan {
    pub orders: Orders,
    /// Places in the order of the program among the operations of a side, as
    /// depths: the last has that of the longest chain.
    pub(super) rank: Vec<i64>,
    /// Accesses that would probably meet in a bank of memory stand in
    /// different cycles.
    pub apart: bool,
    /// For each operation those whose results of the same iteration it reads,
    /// and those that read its own; each once.
    pub(super) sources: Vec<SmallVec<[usize; 4]>>,
    pub(super) readers: Vec<SmallVec<[usize; 4]>>,
    /// For each operation those whose results of the iteration before it reads, and
    /// those that read its own in the next.
    pub(super) before: Vec<SmallVec<[usize; 2]>>,
    pub(super) behind: Vec<SmallVec<[usize; 2]>>,
    /// Operations that must stand before each.
    pub(super) waiting: Vec<usize>,
    pub(super) demand: Arc<[f64]>,
    pub(super) certain: Certain,
    /// Cycles that an iteration takes at least.
    pub(super) chain: i64,
    /// Stores of values that wait in the frame, which are not placed ahead of their turn.
    pub(super) at_turn: Vec<bool>,
    /// Operations that stand already, relative to each other.
    pub(super) followed: Option<Followed>,
}

impl Plan {
    pub fn new(sides: &Sides<'_>, ops: &Ops, apart: bool) -> Plan {
        let orders = Orders::of(ops);
        let chain = orders.chain(ops);
        let rank = ranks(ops, orders.depth.iter().copied().max().unwrap_or(0));
        let lazy = &orders.lazy;
        let waiting = orders.edges.succs.iter().map(|s| s.iter().filter(|s| !lazy[s.0]).count()).collect();
        let sources: Vec<SmallVec<[usize; 4]>> = ops.ops.iter().map(sources).collect();
        let mut readers = vec![SmallVec::new(); ops.ops.len()];
        for (i, list) in sources.iter().enumerate() {
            list.iter().for_each(|&p| readers[p].push(i));
        }
        let carried = |op: &Op| -> SmallVec<[usize; 2]> {
            let node = |r: &(usize, From)| match r.1 {
                From::Node(p, d) if d > 0 && !orders.lazy[p] => Some(p),
                _ => None,
            };
            op.reads.iter().filter_map(node).collect()
        };
        let before: Vec<SmallVec<[usize; 2]>> = ops.ops.iter().map(carried).collect();
        let mut behind = vec![SmallVec::new(); ops.ops.len()];
        for (i, list) in before.iter().enumerate() {
            list.iter().for_each(|&p| behind[p].push(i));
        }
        Plan {
            orders,
            rank,
            apart,
            sources,
            readers,
            before,
            behind,
            waiting,
            demand: demand(sides, ops),
            certain: Certain::of(sides, ops),
            chain,
            at_turn: ops.ops.iter().map(own_store).collect(),
            followed: None,
        }
    }

    /// The same with operations that stand already.
    pub fn following(self, stands: &[Option<Stands>]) -> Plan {
        let followed = Some(Followed::of(&self.orders, stands));
        // Their cycles are known when all that reads them stands, stores among it.
        let at_turn = vec![false; self.at_turn.len()];
        Plan { followed, at_turn, ..self }
    }
}

/// Is it a store of the compiler's own?
fn own_store(op: &Op) -> bool {
    op.inst.role == Role::Overhead && op.inst.mem.is_some_and(|mem| mem.store)
}

/// Operations whose results of the same iteration one reads.
fn sources(op: &Op) -> SmallVec<[usize; 4]> {
    let node = |r: &(usize, From)| if let From::Node(p, 0) = r.1 { Some(p) } else { None };
    let mut list: SmallVec<[usize; 4]> = op.reads.iter().filter_map(node).collect();
    list.sort_unstable();
    list.dedup();
    list
}

/// Each operation's place among those of its side, on a scale up to `top`.
fn ranks(ops: &Ops, top: i64) -> Vec<i64> {
    let side = |i: usize| ops.ops[i].at.unit;
    let mut count = vec![0i64; ops.ops.iter().map(|o| o.at.unit + 1).max().unwrap_or(0)];
    let place: Vec<i64> = (0..ops.ops.len())
        .map(|i| {
            count[side(i)] += 1;
            count[side(i)]
        })
        .collect();
    (0..ops.ops.len()).map(|i| place[i] * top / count[side(i)]).collect()
}
