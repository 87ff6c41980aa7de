//! The schedule checker.
//!
//! It does not look at the dependence graph the scheduler built. It runs both
//! orders symbolically: which instruction's result does each read see, which
//! writes are left at the end, which earlier accesses does each access follow?
//! The two runs must tell the same story.

use crate::schedule::{Node, Resource};
use std::collections::BTreeMap;

/// Who wrote what a node reads: `None` for a value from before the block.
type Story = (Vec<Vec<Option<usize>>>, BTreeMap<Resource, usize>);

fn tell(nodes: &[Node], order: impl Iterator<Item = usize>) -> Story {
    let mut seen = vec![Vec::new(); nodes.len()];
    let mut last: BTreeMap<Resource, usize> = BTreeMap::new();
    for i in order {
        seen[i] = nodes[i].reads.iter().map(|r| last.get(r).copied()).collect();
        for (r, _) in &nodes[i].writes {
            last.insert(*r, i);
        }
    }
    (seen, last)
}

/// Check that `order` is a permutation under which every instruction computes
/// what it did in the given order.
///
/// # Errors
/// A sentence that names the first instruction that does not.
pub fn check(nodes: &[Node], order: &[usize]) -> Result<(), String> {
    check_live(nodes, order, &|_| true)
}

/// [`check`], where only some registers are read behind the last instruction.
///
/// # Errors
/// As [`check`]'s.
pub fn check_live(nodes: &[Node], order: &[usize], live: &dyn Fn(Resource) -> bool) -> Result<(), String> {
    let mut place = vec![usize::MAX; nodes.len()];
    for (at, &i) in order.iter().enumerate() {
        if i >= nodes.len() || place[i] != usize::MAX {
            return Err(format!("instruction {i} is out of range or scheduled twice"));
        }
        place[i] = at;
    }
    if order.len() != nodes.len() {
        return Err(format!("{} of {} instructions are scheduled", order.len(), nodes.len()));
    }
    let (before, mut end_before) = tell(nodes, 0..nodes.len());
    let (after, mut end_after) = tell(nodes, order.iter().copied());
    end_before.retain(|&r, _| live(r));
    end_after.retain(|&r, _| live(r));
    if let Some(i) = (0..nodes.len()).find(|&i| before[i] != after[i]) {
        return Err(format!("instruction {i} reads other values: {:?} became {:?}", before[i], after[i]));
    }
    if end_before != end_after {
        return Err("a register ends with another instruction's result".into());
    }
    let changed = |i: usize, j: usize| Err(format!("instructions {i} and {j} have changed places"));
    // Behind a barrier, and before it, stands what stood there: all before it, by the last of them,
    // and all behind the one before it.
    let (mut latest, mut barrier) = (0, None);
    for j in 0..nodes.len() {
        if let Some(i) = barrier
            && place[i] > place[j]
        {
            return changed(i, j);
        }
        if nodes[j].barrier {
            if place[latest] > place[j] {
                return changed(latest, j);
            }
            barrier = Some(j);
        }
        if place[j] > place[latest] {
            latest = j;
        }
    }
    let accesses: Vec<usize> = (0..nodes.len()).filter(|&i| nodes[i].mem.is_some()).collect();
    for (k, &i) in accesses.iter().enumerate() {
        for &j in &accesses[k + 1..] {
            let apart = matches!((&nodes[i].mem, &nodes[j].mem), (Some(a), Some(b)) if a.conflicts(b));
            if apart && place[i] > place[j] {
                return changed(i, j);
            }
        }
    }
    Ok(())
}
