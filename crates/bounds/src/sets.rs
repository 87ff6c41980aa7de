//! Sets of resources that some operations cannot do without.

use crate::model::{Kind, Loop, Operation};

/// So many different sets are united in every way; of more, each stands for itself.
const UNITED: usize = 14;

/// A set of resources, and how long each operation takes them at the least.
#[derive(Clone, Debug)]
pub struct Crowd {
    pub set: Vec<usize>,
    /// How many of them there are in a cycle, at least 1.
    pub capacity: u64,
    /// Cycles by operation; 0: it may do without.
    pub cycles: Vec<u64>,
}

impl Crowd {
    pub fn work(&self) -> u64 {
        self.cycles.iter().sum()
    }

    pub fn members(&self) -> usize {
        self.cycles.iter().filter(|c| **c > 0).count()
    }
}

/// All sets that may bound the loop: of each kind of resource the unions of what single operations
/// may take.
pub fn crowds(l: &Loop) -> Vec<Crowd> {
    let sets = [Kind::Issue, Kind::Unit, Kind::Path].into_iter().flat_map(|kind| {
        let mut sets: Vec<u128> = l.operations.iter().map(|o| mask(l, o, kind)).filter(|m| *m != 0).collect();
        sets.sort_unstable();
        sets.dedup();
        unions(sets)
    });
    sets.filter_map(|set| crowd(l, set)).collect()
}

/// The resources of a kind that an operation may take, a bit for each, where every way to run it
/// takes one.
fn mask(l: &Loop, o: &Operation, kind: Kind) -> u128 {
    let of = |way: &Vec<crate::model::Use>| {
        let mine = way.iter().filter(|u| l.resources.get(u.resource).is_some_and(|r| r.kind == kind));
        mine.fold(0u128, |m, u| m | 1u128.checked_shl(u.resource as u32).unwrap_or(0))
    };
    let masks: Vec<u128> = o.ways.iter().map(of).collect();
    if masks.contains(&0) { 0 } else { masks.iter().fold(0, |m, w| m | w) }
}

fn unions(sets: Vec<u128>) -> Vec<u128> {
    let mut unions = sets.clone();
    if sets.len() <= UNITED {
        for s in sets {
            let more: Vec<u128> = unions.iter().map(|u| u | s).collect();
            unions.extend(more);
            unions.sort_unstable();
            unions.dedup();
        }
    }
    unions
}

fn crowd(l: &Loop, mask: u128) -> Option<Crowd> {
    let set: Vec<usize> = (0..l.resources.len().min(128)).filter(|r| mask >> r & 1 == 1).collect();
    let capacity: u64 = set.iter().map(|&r| u64::from(l.resources[r].count)).sum();
    let of = |o: &Operation| {
        let ways =
            o.ways.iter().map(|w| w.iter().filter(|u| set.contains(&u.resource)).map(|u| u64::from(u.cycles)).sum());
        ways.min().unwrap_or(0)
    };
    let cycles = l.operations.iter().map(of).collect();
    (capacity > 0).then_some(Crowd { set, capacity, cycles })
}
