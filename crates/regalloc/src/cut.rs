//! Values cut where registers are short.
//!
//! To the allocator a value that several instructions change in place is one
//! long value, and one that waits long for its next use is too: it goes to
//! memory whole, and every use fetches it. Here a block is gone through with as
//! many registers as there are; what has to give way (the value that is used
//! last, after Belady, IBM Systems Journal 5, 1966) is fetched anew before its
//! next use, as a value of its own: a copy of the first one, which behind the
//! allocator is a load. So each piece is short, and the original is stored once.

use ciphermill_vcode::Facts;
use ciphermill_vcode::liveness::{live_out, pressure};
use ciphermill_vcode::moves::mov;
use ciphermill_vcode::{VFunc, VInst, VKind, VOp, VReg};
use ciphermill_machine::Machine;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The function with its tight blocks cut; None where there is nothing to cut.
/// `incoming`: what a block takes over from others has to be fetched first, too.
pub fn cut(func: &VFunc, machine: &Machine, facts: &Facts, registers: usize, incoming: bool) -> Option<VFunc> {
    // A copy may stand between flags and what reads them.
    if facts.fixed_writes(machine.abi.ops.mov).next().is_some() {
        return None;
    }
    let outs = live_out(func);
    let mut out = func.clone();
    for (b, live) in outs.iter().enumerate() {
        if pressure(func, b, live) > registers {
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
    // What is in registers, under which name; and what has been there.
    let mut held: BTreeMap<VReg, VReg> = BTreeMap::new();
    let mut seen: BTreeSet<VReg> = BTreeSet::new();
    let mut made = Vec::with_capacity(insts.len());
    for (at, mut inst) in insts.into_iter().enumerate() {
        if matches!(inst.kind, VKind::Call | VKind::Kernel) {
            held.clear();
        }
        let used: BTreeSet<VReg> = inst.uses().collect();
        for &v in &used {
            if held.contains_key(&v) {
                continue;
            }
            let name = if seen.contains(&v) || incoming {
                let name = func.new_vreg();
                made.push(mov(machine, VOp::Def(name), VOp::Use(v), inst.loc));
                name
            } else {
                v
            };
            held.insert(v, name);
        }
        rename(&mut inst, &held);
        if at + 1 == end
            && let Some(inverse) = &mut func.blocks[b].inverse
        {
            inverse.ops.iter_mut().for_each(|o| renamed(o, &held));
        }
        let defined: Vec<VReg> = inst.defs().collect();
        held.retain(|&v, _| next(v, at).is_some());
        for v in defined {
            held.insert(v, v);
        }
        seen.extend(held.keys().copied());
        while held.len() > registers {
            let Some(&v) = held.keys().max_by_key(|&&v| (next(v, at), v)) else { break };
            held.remove(&v);
        }
        made.push(inst);
    }
    let block = &mut func.blocks[b];
    block.insts = made;
    for arg in block.succs.iter_mut().flat_map(|s| &mut s.1) {
        *arg = held.get(arg).copied().unwrap_or(*arg);
    }
}

fn rename(inst: &mut VInst, held: &BTreeMap<VReg, VReg>) {
    inst.ops.iter_mut().for_each(|o| renamed(o, held));
    for (v, _) in &mut inst.fixed_uses {
        *v = held.get(v).copied().unwrap_or(*v);
    }
}

fn renamed(op: &mut VOp, held: &BTreeMap<VReg, VReg>) {
    if let VOp::Use(v) | VOp::Tied { used: v, .. } = op {
        *v = held.get(v).copied().unwrap_or(*v);
    }
}
