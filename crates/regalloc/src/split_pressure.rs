//! Live-range splitting at points of high register pressure.
//!
//! The allocator spills a long live range as a whole, and then every use reloads it. This pass
//! simulates the registers through each block whose MaxLive is too high. When no register is left,
//! the value with the furthest next use is evicted (Belady, IBM Systems Journal 5, 1966), as in Braun
//! and Hack, *Register spilling and live-range splitting for SSA-form programs*, CC 2009. Its next
//! use reads a fresh copy. The allocator spills the original once and turns the copy into a reload.

use ciphermill_machine::Machine;
use ciphermill_vcode::Facts;
use ciphermill_vcode::liveness::{live_out, max_live};
use ciphermill_vcode::moves::mov;
use ciphermill_vcode::{VFunc, VInst, VKind, VOp, VReg};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The function with live ranges split in blocks whose MaxLive exceeds `registers`; None if nothing
/// is split. With `incoming`, live-in values start evicted: their first use reads a copy, too.
pub fn split_at_pressure(
    func: &VFunc,
    machine: &Machine,
    facts: &Facts,
    registers: usize,
    incoming: bool,
) -> Option<VFunc> {
    // A copy may stand between flags and what reads them.
    if facts.fixed_writes(machine.abi.ops.mov).next().is_some() {
        return None;
    }
    let outs = live_out(func);
    let mut out = func.clone();
    for (b, live) in outs.iter().enumerate() {
        if max_live(func, b, live) > registers {
            block(&mut out, b, machine, registers, incoming, &|v| live.contains(v));
        }
    }
    (out.vregs > func.vregs).then_some(out)
}

fn block(func: &mut VFunc, b: usize, machine: &Machine, registers: usize, incoming: bool, live: &dyn Fn(VReg) -> bool) {
    let insts = std::mem::take(&mut func.blocks[b].insts);
    let mut uses: HashMap<VReg, Vec<usize>> = HashMap::new();
    for (at, inst) in insts.iter().enumerate() {
        inst.uses().for_each(|v| uses.entry(v).or_default().push(at));
    }
    let end = insts.len();
    let next = |v: VReg, at: usize| {
        let behind = uses.get(&v).and_then(|list| list.get(list.partition_point(|&u| u <= at))).copied();
        behind.or(live(v).then_some(end))
    };
    // Values in registers, with the copy that has them now; and values that have been in one.
    let mut resident: BTreeMap<VReg, VReg> = BTreeMap::new();
    let mut seen: BTreeSet<VReg> = BTreeSet::new();
    let mut made = Vec::with_capacity(insts.len());
    for (at, mut inst) in insts.into_iter().enumerate() {
        if matches!(inst.kind, VKind::Call | VKind::Kernel) {
            resident.clear();
        }
        let used: BTreeSet<VReg> = inst.uses().collect();
        for &v in &used {
            if resident.contains_key(&v) {
                continue;
            }
            let name = if seen.contains(&v) || incoming {
                let name = func.new_vreg();
                made.push(mov(machine, VOp::Def(name), VOp::Use(v), inst.loc));
                name
            } else {
                v
            };
            resident.insert(v, name);
        }
        rename(&mut inst, &resident);
        if at + 1 == end
            && let Some(inverse) = &mut func.blocks[b].inverse
        {
            inverse.ops.iter_mut().for_each(|o| renamed(o, &resident));
        }
        let defined: Vec<VReg> = inst.defs().collect();
        resident.retain(|&v, _| next(v, at).is_some());
        for v in defined {
            resident.insert(v, v);
        }
        seen.extend(resident.keys().copied());
        while resident.len() > registers {
            let Some(&v) = resident.keys().max_by_key(|&&v| (next(v, at), v)) else { break };
            resident.remove(&v);
        }
        made.push(inst);
    }
    let block = &mut func.blocks[b];
    block.insts = made;
    for arg in block.succs.iter_mut().flat_map(|s| &mut s.1) {
        *arg = resident.get(arg).copied().unwrap_or(*arg);
    }
}

fn rename(inst: &mut VInst, resident: &BTreeMap<VReg, VReg>) {
    inst.ops.iter_mut().for_each(|o| renamed(o, resident));
    for (v, _) in &mut inst.fixed_uses {
        *v = resident.get(v).copied().unwrap_or(*v);
    }
}

fn renamed(op: &mut VOp, resident: &BTreeMap<VReg, VReg>) {
    if let VOp::Use(v) | VOp::Tied { used: v, .. } = op {
        *v = resident.get(v).copied().unwrap_or(*v);
    }
}
