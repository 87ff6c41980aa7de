//! An order of a block's instructions, before registers are known and after.
//!
//! Both orders are run symbolically: which instruction's result does each read see, and which
//! writes are left at the end? The two runs must tell the same story. Accesses that conflict
//! must not change places, nor anything with an instruction that nothing moves across.

use crate::access::Access;
use crate::code::Storage;
use crate::stored::Stored;
use crate::sums::Sums;
use std::collections::BTreeMap;

/// An instruction as far as its order matters.
#[derive(Clone, Debug, Default)]
pub struct Step {
    pub reads: Vec<Storage>,
    pub writes: Vec<Storage>,
    pub access: Option<Access>,
    /// Nothing moves across.
    pub barrier: bool,
}

/// Who wrote what a step reads (none: it is from before the block), and who wrote last.
type Story = (Vec<Vec<Option<usize>>>, BTreeMap<Storage, usize>);

fn tell(steps: &[Step], order: impl Iterator<Item = usize>) -> Story {
    let mut seen = vec![Vec::new(); steps.len()];
    let mut last: BTreeMap<Storage, usize> = BTreeMap::new();
    for i in order {
        seen[i] = steps[i].reads.iter().map(|r| last.get(r).copied()).collect();
        for r in &steps[i].writes {
            last.insert(*r, i);
        }
    }
    (seen, last)
}

/// What each access follows that it conflicts with.
fn memory(steps: &[Step], order: impl Iterator<Item = usize>) -> Vec<u128> {
    let mut out = vec![0; steps.len()];
    let (mut stored, sums) = (Stored::default(), Sums::default());
    for i in order {
        let Some(a) = &steps[i].access else { continue };
        out[i] = stored.before(a, None, 0, &sums);
        if a.store {
            stored.store(a, None, 0, i as u32);
        }
    }
    out
}

/// Check that `order` is a permutation under which every instruction computes what it did in
/// the given order. Behind the last one only registers that are `live` are read.
///
/// # Errors
/// A sentence that names the first instruction that does not.
pub fn check(steps: &[Step], order: &[usize], live: &dyn Fn(Storage) -> bool) -> Result<(), String> {
    let mut place = vec![usize::MAX; steps.len()];
    for (at, &i) in order.iter().enumerate() {
        if i >= steps.len() || place[i] != usize::MAX {
            return Err(format!("instruction {i} is out of range or scheduled twice"));
        }
        place[i] = at;
    }
    if order.len() != steps.len() {
        return Err(format!("{} of {} instructions are scheduled", order.len(), steps.len()));
    }
    let (before, mut end_before) = tell(steps, 0..steps.len());
    let (after, mut end_after) = tell(steps, order.iter().copied());
    end_before.retain(|&r, _| live(r));
    end_after.retain(|&r, _| live(r));
    if let Some(i) = (0..steps.len()).find(|&i| before[i] != after[i]) {
        return Err(format!("instruction {i} reads other values: {:?} became {:?}", before[i], after[i]));
    }
    if end_before != end_after {
        return Err("a register ends with another instruction's result".into());
    }
    let (before, after) = (memory(steps, 0..steps.len()), memory(steps, order.iter().copied()));
    if let Some(i) = (0..steps.len()).find(|&i| before[i] != after[i]) {
        return Err(format!("the access of instruction {i} has changed places with another that it conflicts with"));
    }
    // What stands behind a barrier stands behind all before it: its place is its number.
    match (0..steps.len()).find(|&i| steps[i].barrier && (place[i] != i || order[..i].iter().any(|&k| k > i))) {
        Some(i) => Err(format!("something has moved across instruction {i}")),
        None => Ok(()),
    }
}
