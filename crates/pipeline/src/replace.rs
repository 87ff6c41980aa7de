//! What stands in a function for a pipelined loop.
//!
//! The loop's block becomes one pseudo-instruction, which takes values in the registers that the
//! kernel's schedule was coloured with and gives back others, and a jump to where the loop led.
//! Values that are in the frame meanwhile are stored before it and loaded behind it.

use super::body::{Body, Candidate};
use super::{Kernel, framed};
use ciphermill_machine::{InstrId, Machine, Reg};
use ciphermill_vcode::Registers;
use ciphermill_vcode::{VFunc, VInst, VKind, VOp, VReg};

/// The loop's block becomes one instruction and a jump.
pub fn replace(
    func: &mut VFunc,
    c: &Candidate,
    body: &Body,
    kernel: &Kernel,
    index: usize,
    registers: &Registers,
    machine: &Machine,
) {
    let mut inst = VInst::new(VKind::Kernel, registers.nop, &[VOp::Imm(index as i64)], 0);
    let mut before = body.before.clone();
    // The same value in several registers: a copy for each but the first.
    let mut seen = std::collections::BTreeSet::new();
    let mut copies: Vec<(VReg, VReg)> = Vec::new();
    // The names of what is new to the function begin with those.
    let mut vregs = body.based.iter().fold(func.vregs, |n, b| n.max(b.0.0 + 1));
    let mut given: Vec<(VReg, Reg)> = Vec::new();
    for (&(v, _), &r) in &kernel.registers.outside {
        given.push((v, r));
    }
    for (&n, &v) in &kernel.ops.initial {
        if let Some(r) = kernel.registers.result[n] {
            given.push((v, r));
        }
    }
    for (v, r) in given {
        if seen.insert(v) {
            inst.fixed_uses.push((v, r));
        } else {
            let copy = VReg(vregs);
            vregs += 1;
            copies.push((copy, v));
            inst.fixed_uses.push((copy, r));
        }
    }
    let mut exit = body.exit.clone();
    // What the last iteration began with is a value of its own behind the
    // loop: its name stands for what the first began with.
    let mut behind = |v: VReg| {
        if !func.blocks[c.header as usize].params.contains(&v) {
            return v;
        }
        let out = VReg(vregs);
        vregs += 1;
        rename(func, c, &mut exit, v, out);
        out
    };
    for &(n, v) in &kernel.ops.live_out {
        if let Some(r) = kernel.registers.result[n] {
            inst.fixed_defs.push((behind(v), r));
        }
    }
    let restored: Vec<(VReg, i64)> = body.restored.iter().map(|&(v, offset)| (behind(v), offset)).collect();
    func.vregs = vregs;
    let mut word = |instr: InstrId, offset: i64, v: VReg| {
        let address = || {
            func.vregs += 1;
            VReg(func.vregs - 1)
        };
        framed::instructions(machine, instr, offset, v, address).into_iter().flatten()
    };
    for &(v, offset) in &kernel.kept {
        before.extend(word(machine.abi.ops.store, offset, v));
    }
    let again: Vec<VInst> =
        restored.iter().flat_map(|&(v, offset)| word(machine.abi.ops.load, offset, v).collect::<Vec<_>>()).collect();
    for &(base, offset) in &body.based {
        let fresh = || {
            func.vregs += 1;
            VReg(func.vregs - 1)
        };
        before.extend(framed::address(machine, base, offset, fresh).into_iter().flatten());
    }
    let header = &mut func.blocks[c.header as usize];
    for (copy, v) in copies {
        let mut mov = VInst::new(VKind::Normal, registers.mov.0, &[], 0);
        mov.ops = registers.mov.1.iter().map(|def| if *def { VOp::Def(copy) } else { VOp::Use(v) }).collect();
        before.push(mov);
    }
    let mut jump = VInst::new(VKind::Jump, registers.jump, &[], 0);
    jump.ops = [VOp::Block(exit.0)].into_iter().collect();
    before.push(inst);
    before.extend(again);
    before.push(jump);
    header.insts = before;
    header.inverse = None;
    header.succs = vec![exit];
    header.loop_depth = header.loop_depth.saturating_sub(1);
    if let Some(e) = c.back {
        remove(func, e);
    }
}

/// A value gets another name behind a loop.
fn rename(func: &mut VFunc, c: &Candidate, exit: &mut (u32, Vec<VReg>), old: VReg, new: VReg) {
    let change = |v: &mut VReg| {
        if *v == old {
            *v = new;
        }
    };
    exit.1.iter_mut().for_each(change);
    for (b, block) in func.blocks.iter_mut().enumerate() {
        if b as u32 == c.header || Some(b as u32) == c.back {
            continue;
        }
        block.succs.iter_mut().flat_map(|s| &mut s.1).for_each(change);
        let inverse = block.inverse.iter_mut().flat_map(|i| &mut i.ops);
        for op in block.insts.iter_mut().flat_map(|i| &mut i.ops).chain(inverse) {
            match op {
                VOp::Use(v) => change(v),
                VOp::Tied { used, .. } => change(used),
                _ => {}
            }
        }
        let fixed = block.insts.iter_mut().flat_map(|i| &mut i.fixed_uses);
        fixed.for_each(|u| change(&mut u.0));
    }
}

/// Take a block away that nothing leads to any more.
fn remove(func: &mut VFunc, gone: u32) {
    func.blocks.remove(gone as usize);
    func.idom.remove(gone as usize);
    let fix = |b: &mut u32| *b -= u32::from(*b > gone);
    for idom in func.idom.iter_mut().flatten() {
        fix(idom);
    }
    for block in &mut func.blocks {
        block.succs.iter_mut().for_each(|s| fix(&mut s.0));
        block.preheader.iter_mut().for_each(fix);
        let inverse = block.inverse.iter_mut().flat_map(|i| &mut i.ops);
        for op in block.insts.iter_mut().flat_map(|i| &mut i.ops).chain(inverse) {
            if let VOp::Block(b) = op {
                fix(b);
            }
        }
    }
}
