//! Straight code on clusters, before registers are allocated: which register file each value is in, and an order.
//!
//! Both are decided together, cycle by cycle, as the units and paths of a cycle are taken: unified
//! assign and schedule (Özer, Banerjia and Conte, MICRO 1998). An operand that no variant reads from
//! where it is gets a copy, in an earlier cycle where one has room. The allocator then keeps each
//! value in its file, and bundles are made behind it.

mod block;
mod homes;
mod variants;

use crate::{straight, verified};
use ciphermill_machine::Machine;
use ciphermill_vcode::{CompileError, Facts, Registers, VFunc, VInst, VKind, VOp, VReg, liveness};
use homes::{Homes, MOST_FILES, mov};

/// Schedules the blocks of a function, and says in which file each of its values is to be.
///
/// # Errors
/// [`CompileError::Internal`] when the checker refuses an order.
pub fn schedule(func: &mut VFunc, machine: &Machine, facts: &Facts, registers: &Registers) -> Result<(), CompileError> {
    let files = registers.files(machine);
    if files.len() < 2 || files.len() > MOST_FILES || !machine.issue.explicit {
        return straight::schedule(func, machine, facts, registers.allocatable.len());
    }
    let (values, outs) = (func.vregs, liveness::live_out(func));
    let mut homes = Homes::new(func, machine, registers, files);
    // What runs most has the first choice.
    let mut blocks: Vec<usize> = (0..func.blocks.len()).collect();
    blocks.sort_by_key(|&b| (std::cmp::Reverse(func.blocks[b].frequency()), b));
    for b in blocks {
        let done = block::schedule(func, b, machine, facts, &mut homes, (values, &outs[b]));
        let nodes: Vec<_> = done.insts.iter().map(|i| facts.virtual_node(machine, i)).collect();
        verified::order(&nodes, &done.order)
            .map_err(|e| CompileError::Internal(format!("`{}`, block {b}: {e}", func.name)))?;
        let mut insts: Vec<Option<VInst>> = done.insts.into_iter().map(Some).collect();
        func.blocks[b].insts = done.order.into_iter().filter_map(|i| insts[i].take()).collect();
    }
    settle(func, machine, &mut homes, registers);
    func.files = homes.chosen();
    Ok(())
}

/// Copies what an edge, a call or a branch wants in another file than the one it is in.
fn settle(func: &mut VFunc, machine: &Machine, homes: &mut Homes<'_>, registers: &Registers) {
    for b in 0..func.blocks.len() {
        let mut insts = Vec::with_capacity(func.blocks[b].insts.len());
        for mut inst in std::mem::take(&mut func.blocks[b].insts) {
            for k in 0..inst.fixed_uses.len() {
                let (v, r) = inst.fixed_uses[k];
                let Some(file) = homes.number(machine.regs[usize::from(r.0)].file) else { continue };
                inst.fixed_uses[k].0 = copied(func, homes, registers, (v, file), &mut insts);
            }
            if inst.kind != VKind::Params {
                for (o, file) in variants::foreign(machine, homes, &inst) {
                    let (VOp::Use(v) | VOp::Tied { used: v, .. }) = inst.ops[o] else { continue };
                    let copy = copied(func, homes, registers, (v, file), &mut insts);
                    // What a branch asks, its inverse asks, too.
                    let inverse = func.blocks[b].inverse.as_mut().filter(|_| inst.kind == VKind::Branch);
                    for op in inverse.map(|i| &mut i.ops).into_iter().flatten().chain([&mut inst.ops[o]]) {
                        match op {
                            VOp::Use(u) | VOp::Tied { used: u, .. } if *u == v => *u = copy,
                            _ => {}
                        }
                    }
                }
            }
            insts.push(inst);
        }
        let last = insts.pop();
        for s in 0..func.blocks[b].succs.len() {
            let to = func.blocks[b].succs[s].0 as usize;
            for k in 0..func.blocks[b].succs[s].1.len() {
                let (param, arg) = (func.blocks[to].params[k], func.blocks[b].succs[s].1[k]);
                let file = homes.of(param);
                func.blocks[b].succs[s].1[k] = copied(func, homes, registers, (arg, file), &mut insts);
            }
        }
        insts.extend(last);
        func.blocks[b].insts = insts;
    }
}

/// The value, or a copy of it that is made in the other file.
fn copied(
    func: &mut VFunc,
    homes: &mut Homes<'_>,
    registers: &Registers,
    (v, file): (VReg, u8),
    insts: &mut Vec<VInst>,
) -> VReg {
    if homes.of(v) == file {
        return v;
    }
    let copy = homes.copy(func, file);
    insts.push(mov(registers, v, copy));
    copy
}
