//! Steps that differ only in what does not matter are made the same.

use super::cover::Step;
use super::replacement::Replacement;
use super::units::Unit;
use ciphermill_ir::{Func, Value};
use std::collections::{HashMap, HashSet};

/// Steps of a block of which nothing wanted comes from one source are given that of a
/// step that otherwise does the same: the two are then one instruction. The source has
/// to be there when the block begins, so that both can have it.
pub fn agree(func: &Func, units: &[Unit], replacements: &mut HashMap<Value, Replacement>) {
    for &block in &func.layout {
        let insts = &func.blocks[block].insts;
        let here: HashSet<Value> = insts.iter().flat_map(|&i| func.insts[i].results.iter().copied()).collect();
        let roots: Vec<Value> = insts
            .iter()
            .filter_map(|&i| func.insts[i].results.first().copied())
            .filter(|r| matches!(replacements.get(r), Some(Replacement::Tables { .. })))
            .collect();
        let steps: Vec<Step> = roots.iter().flat_map(|r| steps_of(&replacements[r]).to_vec()).collect();
        for root in roots {
            let Some(Replacement::Tables { steps: own, .. }) = replacements.get_mut(&root) else { continue };
            for step in own.iter_mut() {
                let free = step.free(units);
                let fixed = |s: usize| !free.contains(&s);
                let like = |other: &&Step| {
                    let theirs = other.free(units);
                    let is_there = |s: usize| other.sources[s].is_some_and(|v| !here.contains(&func.resolve(v)));
                    other.unit == step.unit
                        && (0..step.sources.len()).all(|s| {
                            if fixed(s) {
                                theirs.contains(&s) || other.sources[s] == step.sources[s]
                            } else {
                                !theirs.contains(&s) && is_there(s)
                            }
                        })
                };
                if free.is_empty() {
                    continue;
                }
                if let Some(other) = steps.iter().find(like) {
                    for s in free {
                        step.sources[s] = other.sources[s];
                    }
                }
            }
        }
    }
}

fn steps_of(replacement: &Replacement) -> &[Step] {
    if let Replacement::Tables { steps, .. } = replacement { steps } else { &[] }
}
