//! Ranges of values in spill slots.

use ciphermill_vcode::{Allocated, Place, Step, VFunc};
use std::collections::BTreeSet;

/// A value in a slot, in all blocks.
#[derive(Clone, Default)]
pub struct Range {
    /// Stores and loads, times block frequency.
    pub uses: u64,
    /// Steps that it is there for, times block frequency.
    pub length: u64,
    /// From its store to its last load, or from end to end of a block. Steps and ends of blocks are numbered through the
    /// function; a span does not have its second.
    pub spans: Vec<(usize, usize)>,
}

/// All of a function's.
pub struct Ranges {
    pub all: Vec<Range>,
    /// By block and step: which one it stores or loads.
    pub of: Vec<Vec<Option<usize>>>,
}

/// The slot of a move, and is it stored?
fn access(step: &Step) -> Option<(u32, bool)> {
    match step {
        Step::Move { to: Place::Slot(s), .. } => Some((*s, true)),
        Step::Move { from: Place::Slot(s), .. } => Some((*s, false)),
        _ => None,
    }
}

impl Ranges {
    pub fn new(allocated: &Allocated, func: &VFunc) -> Ranges {
        let entering = entering(allocated, func);
        // A range where a block begins for each slot that is read then; more where slots are stored.
        let mut first = 0;
        let mut firsts = Vec::with_capacity(entering.len());
        for slots in &entering {
            firsts.push(first);
            first += slots.len();
        }
        let entered = |b: usize, slot: u32| entering[b].iter().position(|s| *s == slot).map(|n| firsts[b] + n);
        let mut same: Vec<usize> = (0..first).collect();
        let mut parts: Vec<Range> = vec![Range::default(); first];
        let mut of = Vec::with_capacity(allocated.blocks.len());
        let mut start = 0;
        for (b, steps) in allocated.blocks.iter().enumerate() {
            let frequency = func.blocks[b].frequency();
            let end = start + steps.len() + 2;
            // By slot: its range, since when, and until when.
            let mut now: Vec<Option<(usize, usize, usize)>> = vec![None; allocated.slots as usize];
            for &slot in &entering[b] {
                now[slot as usize] = entered(b, slot).map(|range| (range, start, start));
            }
            let close = |parts: &mut Vec<Range>, held: Option<(usize, usize, usize)>| {
                if let Some((range, from, to)) = held.filter(|h| h.1 < h.2) {
                    parts[range].spans.push((from, to));
                    parts[range].length += (to - from) as u64 * frequency;
                }
            };
            let mut here = vec![None; steps.len()];
            for (i, step) in steps.iter().enumerate() {
                let Some((slot, stored)) = access(step) else { continue };
                let (slot, at) = (slot as usize, start + 1 + i);
                if stored {
                    close(&mut parts, now[slot]);
                    now[slot] = Some((parts.len(), at, at + 1));
                    same.push(parts.len());
                    parts.push(Range::default());
                }
                if let Some(held) = &mut now[slot] {
                    held.2 = held.2.max(at);
                    parts[held.0].uses += frequency;
                    here[i] = Some(held.0);
                }
            }
            for succ in func.blocks[b].succs.iter().map(|s| s.0 as usize) {
                for &slot in &entering[succ] {
                    if let (Some(held), Some(next)) = (&mut now[slot as usize], entered(succ, slot)) {
                        held.2 = end;
                        let (a, b) = (root(&same, held.0), root(&same, next));
                        same[a.max(b)] = a.min(b);
                    }
                }
            }
            now.into_iter().for_each(|held| close(&mut parts, held));
            of.push(here);
            start = end;
        }
        let mut all = vec![Range::default(); parts.len()];
        for (n, part) in parts.into_iter().enumerate() {
            let whole = &mut all[root(&same, n)];
            whole.uses += part.uses;
            whole.length += part.length;
            whole.spans.extend(part.spans);
        }
        of.iter_mut().flatten().flatten().for_each(|n| *n = root(&same, *n));
        Ranges { all, of }
    }
}

fn root(same: &[usize], mut n: usize) -> usize {
    while same[n] != n {
        n = same[n];
    }
    n
}

/// By block: the slots that are read before they are stored, there or further on.
fn entering(allocated: &Allocated, func: &VFunc) -> Vec<BTreeSet<u32>> {
    let mut entering: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); func.blocks.len()];
    loop {
        let mut changed = false;
        for (b, steps) in allocated.blocks.iter().enumerate().rev() {
            let succs = func.blocks[b].succs.iter().flat_map(|s| &entering[s.0 as usize]);
            let mut live: BTreeSet<u32> = succs.copied().collect();
            for (slot, stored) in steps.iter().rev().filter_map(access) {
                if stored {
                    live.remove(&slot);
                } else {
                    live.insert(slot);
                }
            }
            if live != entering[b] {
                entering[b] = live;
                changed = true;
            }
        }
        if !changed {
            return entering;
        }
    }
}
