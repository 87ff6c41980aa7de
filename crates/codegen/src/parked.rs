//! Spilled values in registers that few instructions take.
//!
//! A machine may have registers that its instructions reach with moves only, such as the upper ones of Thumb. A move there
//! and back costs less than a store and a load, so what is used most of the spill slots, weighted by block frequency,
//! stands there instead of on the stack.
//!
//! A slot holds one value after the other. Here each of them is a *range* of its own, from the stores that put it there
//! to the loads that read it, and ranges that do not overlap share a register or a slot, whatever slots they had.

mod ranges;

use self::ranges::{Range, Ranges};
use ciphermill_machine::{Machine, Reg};
use ciphermill_vcode::{Allocated, Place, Step, VFunc};
use std::collections::BTreeMap;

/// A register that the function has to hand back as it was is taken only for slots that are used at least so much: to save
/// and restore it takes a store, a load and as many moves.
const WORTH_SAVING: u64 = 8;

/// Put what is used most of the slots into registers.
pub fn park(allocated: &mut Allocated, func: &VFunc, machine: &Machine) {
    let abi = &machine.abi;
    // An instruction's own memory operand stays one.
    let operand = |s: &Step| matches!(s, Step::Inst(_, places) if places.iter().any(|p| matches!(p, Place::Slot(_))));
    if abi.spill.is_empty() || allocated.blocks.iter().flatten().any(operand) {
        return;
    }
    let ranges = Ranges::new(allocated, func);
    let mut left: Vec<usize> = (0..ranges.all.len()).filter(|&r| !ranges.all[r].spans.is_empty()).collect();
    let mut places: Vec<Option<Place>> = vec![None; ranges.all.len()];
    let saved = |r: &Reg| abi.callee_saved.contains(r);
    for reg in abi.spill.iter().copied().filter(|r| saved(r) || !func.has_calls) {
        let chosen = most_used(&ranges.all, &left);
        let uses: u64 = chosen.iter().map(|&r| ranges.all[r].uses).sum();
        if chosen.is_empty() || saved(&reg) && uses < WORTH_SAVING {
            break;
        }
        if saved(&reg) {
            allocated.saved.push(reg);
        }
        chosen.iter().for_each(|&r| places[r] = Some(Place::Reg(reg)));
        left.retain(|r| !chosen.contains(r));
    }
    let mut slots: Vec<Taken> = Vec::new();
    for r in left {
        let free = slots.iter().position(|s| s.free(&ranges.all[r]));
        let slot = free.unwrap_or_else(|| {
            slots.push(Taken::default());
            slots.len() - 1
        });
        slots[slot].take(&ranges.all[r]);
        places[r] = Some(Place::Slot(slot as u32));
    }
    allocated.slots = slots.len() as u32;
    for (steps, of) in allocated.blocks.iter_mut().zip(&ranges.of) {
        for (step, range) in steps.iter_mut().zip(of) {
            if let (Step::Move { from, to }, Some(place)) = (step, range.and_then(|r| places[r])) {
                [from, to].into_iter().filter(|p| matches!(p, Place::Slot(_))).for_each(|p| *p = place);
            }
        }
    }
}

/// Ranges of those `left` that can share a register, and are used much: those used most come first, or those used most
/// for their length.
fn most_used(all: &[Range], left: &[usize]) -> Vec<usize> {
    let chosen = |mut list: Vec<usize>, before: &dyn Fn(&Range, &Range) -> std::cmp::Ordering| {
        list.sort_by(|&a, &b| before(&all[a], &all[b]));
        let mut taken = Taken::default();
        list.retain(|&r| taken.free(&all[r]) && taken.take(&all[r]));
        list
    };
    let by_uses = chosen(left.to_vec(), &|a, b| b.uses.cmp(&a.uses));
    let dense = chosen(left.to_vec(), &|a, b| (b.uses * a.length).cmp(&(a.uses * b.length)));
    let uses = |list: &[usize]| list.iter().map(|&r| all[r].uses).sum::<u64>();
    if uses(&dense) > uses(&by_uses) { dense } else { by_uses }
}

/// Where a register or a slot is taken: from one step to another.
#[derive(Default)]
struct Taken(BTreeMap<usize, usize>);

impl Taken {
    fn free(&self, range: &Range) -> bool {
        range.spans.iter().all(|&(from, to)| self.0.range(..to).next_back().is_none_or(|(_, &end)| end <= from))
    }

    fn take(&mut self, range: &Range) -> bool {
        self.0.extend(range.spans.iter().copied());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ciphermill_vcode::VBlock;

    fn machine() -> Machine {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        ciphermill_machine::load_from_dir(&root, "cortex-m0plus", &[], &[], &[]).expect("the machine file is good")
    }

    fn function(succs: &[&[u32]]) -> VFunc {
        let block = |s: &&[u32]| VBlock { succs: s.iter().map(|&to| (to, vec![])).collect(), ..VBlock::default() };
        VFunc {
            name: "f".into(),
            blocks: succs.iter().map(block).collect(),
            idom: vec![None; succs.len()],
            vregs: 0,
            has_calls: false,
            params: 0,
            results: 0,
            files: vec![],
        }
    }

    fn spill(slot: u32) -> Step {
        Step::Move { from: Place::Reg(Reg(0)), to: Place::Slot(slot) }
    }

    fn reload(slot: u32) -> Step {
        Step::Move { from: Place::Slot(slot), to: Place::Reg(Reg(0)) }
    }

    fn parked(succs: &[&[u32]], blocks: Vec<Vec<Step>>, slots: u32) -> (Allocated, Vec<Place>) {
        let mut allocated = Allocated { blocks, slots, saved: Vec::new() };
        park(&mut allocated, &function(succs), &machine());
        let place = |s: &Step| match s {
            Step::Move { from: Place::Reg(Reg(0)), to } => *to,
            Step::Move { from, .. } => *from,
            Step::Inst(..) => Place::Slot(u32::MAX),
        };
        let places = allocated.blocks.iter().flatten().map(place).collect();
        (allocated, places)
    }

    #[test]
    fn values_that_follow_each_other_share_a_register_whatever_slots_they_had() {
        let steps = vec![spill(0), reload(0), spill(1), reload(1), spill(0), reload(0)];
        let (allocated, places) = parked(&[&[]], vec![steps], 2);
        let first = machine().abi.spill[0];
        assert_eq!(places, [Place::Reg(first); 6]);
        assert_eq!((allocated.slots, allocated.saved.len()), (0, 0));
    }

    #[test]
    fn a_slot_is_two_ranges_where_it_is_written_again() {
        // Two values live at once; the first register is worth it for one of them, the next is not.
        let steps = vec![spill(0), spill(1), reload(1), reload(0), spill(0), reload(0), reload(0)];
        let (allocated, places) = parked(&[&[]], vec![steps], 2);
        let register = Place::Reg(machine().abi.spill[0]);
        let slot = Place::Slot(0);
        assert_eq!(places, [register, slot, slot, register, register, register, register]);
        assert_eq!(allocated.slots, 1);
    }

    #[test]
    fn a_value_stays_in_its_place_from_block_to_block() {
        // Stored on two ways and read where they meet; another lives beside it on one of them.
        let blocks = vec![vec![], vec![spill(3)], vec![spill(5), spill(3), reload(5)], vec![reload(3)]];
        let (_, places) = parked(&[&[1, 2], &[3], &[3], &[]], blocks, 6);
        assert_eq!(places[0], places[2]);
        assert_eq!(places[0], places[4]);
        assert_eq!(places[1], places[3]);
        assert_ne!(places[0], places[1]);
    }
}
