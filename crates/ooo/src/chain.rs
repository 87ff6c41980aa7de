//! The longest chain of dependent micro-operations: a bound.
//!
//! Every retired micro-operation is given the earliest cycle at which it could
//! start if only its operands counted. Registers have the latencies of the
//! machine, memory the smaller of the two ways from a store's data to its
//! load's user. The core removes none of these waits, so by induction no
//! micro-operation starts earlier there: the longest chain is never above the
//! cycles.

use crate::uop::{Kind, Lists, Uop};
use std::collections::HashMap;

/// Chains of a run.
#[derive(Default)]
pub struct Chains {
    ready: Vec<u64>,
    /// When the data of the last store to a byte starts.
    bytes: HashMap<u32, u64>,
    load_latency: u64,
    forward_latency: u64,
    /// Where loads are renamed: from a store's data to such a load's user.
    renamed: Option<u64>,
    store: Option<(u32, u32)>,
    /// Cycles of the longest one.
    pub longest: u64,
}

impl Chains {
    pub fn new(registers: usize, load_latency: u32, forward_latency: u32, renamed: Option<u32>) -> Chains {
        Chains {
            ready: vec![0; registers],
            load_latency: u64::from(load_latency),
            forward_latency: u64::from(forward_latency),
            renamed: renamed.map(u64::from),
            ..Chains::default()
        }
    }

    /// One retired micro-operation; loads and store addresses with what they
    /// access.
    pub fn add(&mut self, lists: &Lists, uop: &Uop, access: Option<(u32, u32)>, stores_data: bool) {
        let start = lists.sources(uop).iter().map(|&r| self.ready[usize::from(r)]).max().unwrap_or(0);
        let mut latency = None;
        let mut end = start;
        match (uop.kind, access) {
            (Kind::Load, Some((addr, bytes))) => {
                let stored = (0..bytes).filter_map(|b| self.bytes.get(&addr.wrapping_add(b))).max().copied();
                end = match (stored, self.renamed) {
                    (Some(data), Some(cycles)) => data + cycles.min(self.forward_latency),
                    (Some(data), None) => start.max(data) + self.load_latency.min(self.forward_latency),
                    (None, _) => start + u64::from(uop.latency),
                };
                latency = Some(end);
            }
            (Kind::StoreAddress, Some(access)) => self.store = Some(access),
            _ => {}
        }
        if stores_data && let Some((addr, bytes)) = self.store.take() {
            (0..bytes).for_each(|b| {
                self.bytes.insert(addr.wrapping_add(b), start);
            });
        }
        for r in lists.results(uop) {
            let at = latency.unwrap_or(start + u64::from(r.latency));
            self.ready[usize::from(r.reg)] = at;
            end = end.max(at);
        }
        self.longest = self.longest.max(end);
    }
}
