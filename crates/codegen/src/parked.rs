//! Spilled values in registers that few instructions take.
//!
//! A machine may have registers that its instructions reach with moves only, such as the upper ones of Thumb. A move there
//! and back costs less than a store and a load, so the spill slots that are used most, weighted by block frequency, stand
//! there instead of on the stack.

use ciphermill_machine::{Machine, Reg};
use ciphermill_vcode::{Allocated, Place, Step, VFunc};
use std::collections::BTreeMap;

/// A register that the function has to hand back as it was is taken only for a slot that is used at least so much: to save
/// and restore it takes a store, a load and as many moves.
const WORTH_SAVING: u64 = 8;

/// Put the most used slots into registers.
pub fn park(allocated: &mut Allocated, func: &VFunc, machine: &Machine) {
    let abi = &machine.abi;
    if abi.spill.is_empty() {
        return;
    }
    let mut uses: BTreeMap<u32, u64> = BTreeMap::new();
    for (steps, block) in allocated.blocks.iter().zip(&func.blocks) {
        for step in steps {
            match step {
                Step::Move { from, to } => {
                    for place in [from, to] {
                        if let Place::Slot(s) = place {
                            *uses.entry(*s).or_default() += block.frequency();
                        }
                    }
                }
                // An instruction's own memory operand stays one.
                Step::Inst(_, places) if places.iter().any(|p| matches!(p, Place::Slot(_))) => return,
                Step::Inst(..) => {}
            }
        }
    }
    let mut ranked: Vec<(u32, u64)> = uses.into_iter().collect();
    ranked.sort_by_key(|&(slot, n)| (std::cmp::Reverse(n), slot));
    let saved = |r: &Reg| abi.callee_saved.contains(r);
    let mut free = abi.spill.iter().copied().filter(|r| saved(r) || !func.has_calls);
    let mut parked: BTreeMap<u32, Reg> = BTreeMap::new();
    for &(slot, n) in &ranked {
        let Some(reg) = free.next() else { break };
        if saved(&reg) {
            if n < WORTH_SAVING {
                break;
            }
            allocated.saved.push(reg);
        }
        parked.insert(slot, reg);
    }
    // The others move down, so that the frame has no holes.
    let mut left: Vec<u32> = ranked.iter().map(|r| r.0).filter(|s| !parked.contains_key(s)).collect();
    left.sort_unstable();
    allocated.slots = left.len() as u32;
    let place = |p: &mut Place| {
        if let Place::Slot(s) = *p {
            *p = match parked.get(&s) {
                Some(&r) => Place::Reg(r),
                None => Place::Slot(left.partition_point(|&l| l < s) as u32),
            };
        }
    };
    for step in allocated.blocks.iter_mut().flatten() {
        if let Step::Move { from, to } = step {
            place(from);
            place(to);
        }
    }
}
