//! Software pipelining: loops whose iterations overlap.
//!
//! ```text
//! body -> partition -> place -> modulo -> color -> emit
//! ```
//!
//! A loop of one block ([`body`]) is divided between the clusters
//! ([`partition`], [`place`]), scheduled at the least initiation interval that
//! units, dependences and registers allow ([`graph`], [`modulo`] with its
//! [`table`], [`color`]), and written
//! out as prologue, kernel and epilogue ([`emit`]). All that happens before
//! register allocation: the whole loop then becomes one pseudo-instruction
//! that takes its values in certain registers, gives back others, and destroys
//! the rest; `regalloc2` arranges everything around it.
//!
//! Nothing is promised here that is not checked elsewhere: the schedule's
//! dependences and lifetimes are verified once more when it is complete, and
//! the simulator, whose pipeline is as exposed as the machine's, compares the
//! output with the reference interpreter's.

pub mod body;
pub mod color;
pub mod emit;
pub mod graph;
pub mod modulo;
pub mod partition;
pub mod place;
pub mod table;

use crate::CompileError;
use crate::allocate::Registers;
use crate::facts::Facts;
use crate::vcode::{VFunc, VInst, VKind, VOp, VReg};
use body::{Body, Candidate};
use ciphermill_machine::{InstrId, Machine, Reg};
use modulo::{Policy, Schedule};
use place::{At, Ops, Sides};

/// Stages that an iteration may have: its prologue starts one iteration, so a
/// loop of any length can enter.
const STAGES: i64 = 2;
/// Operations scheduled while partitions of a body that hangs together are
/// tried: a large body gets fewer trials.
const TRIALS: usize = 100_000;

/// A pipelined loop.
#[derive(Clone, Debug)]
pub struct Kernel {
    pub ops: Ops,
    pub schedule: Schedule,
    pub registers: color::Assignment,
    /// What branches past the kernel when the last operation, the branch back,
    /// would not be taken.
    pub skip: InstrId,
    pub loop_depth: u8,
    /// Lower bounds of the II that hold for any division between the sides.
    pub res_mii: i64,
    pub rec_mii: i64,
}

/// Find the loops of a function that can be pipelined and replace each by a
/// pseudo-instruction.
pub fn pipeline(
    func: &mut VFunc,
    machine: &Machine,
    facts: &Facts,
    registers: &Registers,
) -> Result<Vec<Kernel>, CompileError> {
    let mut kernels = Vec::new();
    // Replacing a loop may take a block away: look again after each.
    let mut tried = std::collections::BTreeSet::new();
    loop {
        let next = body::candidates(func).into_iter().find(|c| !tried.contains(&name(func, c)));
        let Some(c) = next else { return Ok(kernels) };
        tried.insert(name(func, &c));
        let body = match body::read(func, machine, facts, &c) {
            Ok(body) => body,
            Err(_) => continue,
        };
        let Some(kernel) = best(&body, machine, registers)? else { continue };
        replace(func, &c, &body, &kernel, kernels.len(), registers);
        kernels.push(kernel);
    }
}

/// A loop by the registers of its parameters, which are its own.
fn name(func: &VFunc, c: &Candidate) -> Vec<VReg> {
    func.blocks[c.header as usize].params.clone()
}

fn best(body: &Body, machine: &Machine, registers: &Registers) -> Result<Option<Kernel>, CompileError> {
    let mut free: Vec<Reg> = registers.allocatable.clone();
    free.extend(machine.abi.scratch.iter().copied());
    let sides = Sides::new(machine, &free);
    let try_at = |at: &[At], from: i64, to: i64| -> Result<Option<Kernel>, CompileError> {
        let ops = place::settle(body, &sides, at)?;
        Ok(at_any_ii(body, &ops, &sides, registers, from, to))
    };
    let (res_mii, rec_mii) = graph::lower(&sides, body)?;
    let apart = partition::apart(body, &sides);
    let even = partition::balanced(&apart, &sides);
    let mut found = if even { try_at(&apart, 0, i64::MAX)? } else { None };
    if sides.files.len() > 1 {
        // Unless every unit is busy all the time, dividing otherwise may help.
        let spread = partition::spread(body, &sides);
        for start in [spread, apart] {
            let good = |k: &Option<Kernel>| k.as_ref().is_some_and(|k| k.schedule.ii <= res_mii.max(rec_mii));
            if good(&found) {
                break;
            }
            let mut at = start;
            let mut limit = found.as_ref().map_or(i64::MAX, |k| k.schedule.ii - 1);
            if let Some(k) = try_at(&at, 0, limit)? {
                limit = k.schedule.ii - 1;
                found = Some(k);
            }
            let mut cost = estimate(body, &sides, &at)?;
            for which in 0..(TRIALS / body.nodes.len().max(1)).min(1000) {
                let Some(new) = partition::moves(body, &sides, &at, which * 7919) else { break };
                let price = estimate(body, &sides, &new)?;
                if price <= cost {
                    (at, cost) = (new, price);
                }
            }
            if let Some(k) = try_at(&at, 0, limit)? {
                found = Some(k);
            }
        }
    }
    Ok(found.map(|k| Kernel { res_mii, rec_mii, ..k }))
}

/// Length of one iteration when registers are plenty, for comparing
/// partitions.
fn estimate(body: &Body, sides: &Sides<'_>, at: &[At]) -> Result<i64, CompileError> {
    let ops = place::settle(body, sides, at)?;
    let plenty = vec![i64::MAX / 2; sides.files.len()];
    let wide = graph::chain(&ops) * 4 + ops.ops.len() as i64;
    let done = modulo::schedule(sides, &ops, wide, Policy::Depth, &plenty, 1);
    let resource = graph::res_mii(sides, &ops);
    let length = |s: Schedule| {
        let body = &s.time[..s.time.len() - 1];
        body.iter().copied().max().unwrap_or(0) - body.iter().copied().min().unwrap_or(0)
    };
    Ok(done.map_or(i64::MAX / 2, length).max(resource))
}

/// The first II at which schedule and registers work out.
fn at_any_ii(
    body: &Body,
    ops: &Ops,
    sides: &Sides<'_>,
    registers: &Registers,
    from: i64,
    to: i64,
) -> Option<Kernel> {
    let machine = sides.machine;
    let res_mii = graph::res_mii(sides, ops);
    let rec_mii = graph::rec_mii(ops);
    let outside = color::invariants(sides, ops);
    let limits: Vec<i64> = (0..sides.files.len()).map(|s| sides.pool[s].len() as i64 - outside[s]).collect();
    if limits.iter().any(|l| *l < 2) {
        return None;
    }
    let delay = machine.instrs[usize::from(body.skip.0)].delay_slots;
    let first = res_mii.max(rec_mii).max(i64::from(delay) + 2).max(from);
    let last = (first + graph::chain(ops) + ops.ops.len() as i64).min(to);
    let mut ii = first;
    while ii <= last {
        for (slack, stages) in (0..3).flat_map(|slack| (1..=STAGES).map(move |stages| (slack, stages))) {
            for policy in [Policy::Depth, Policy::Frugal] {
                let limits: Vec<i64> = limits.iter().map(|l| l - slack).collect();
                let Some(schedule) = modulo::schedule(sides, ops, ii, policy, &limits, stages) else {
                    continue;
                };
                let Some(assigned) = color::color(sides, ops, &schedule, &registers.allocatable) else {
                    continue;
                };
                return Some(Kernel {
                    ops: ops.clone(),
                    schedule,
                    registers: assigned,
                    skip: body.skip,
                    loop_depth: body.loop_depth,
                    res_mii,
                    rec_mii,
                });
            }
        }
        ii += 1 + (ii - first) / 16;
    }
    None
}

/// The loop's block becomes one instruction and a jump.
fn replace(func: &mut VFunc, c: &Candidate, body: &Body, kernel: &Kernel, index: usize, registers: &Registers) {
    let mut inst = VInst::new(VKind::Kernel, registers.nop, &[VOp::Imm(index as i64)], 0);
    let mut before = Vec::new();
    // The same value in several registers: a copy for each but the first.
    let mut seen = std::collections::BTreeSet::new();
    let mut copies: Vec<(VReg, VReg)> = Vec::new();
    let mut vregs = func.vregs;
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
    for &(n, v) in &kernel.ops.live_out {
        if let Some(r) = kernel.registers.result[n] {
            inst.fixed_defs.push((v, r));
        }
    }
    func.vregs = vregs;
    let header = &mut func.blocks[c.header as usize];
    for (copy, v) in copies {
        let mut mov = VInst::new(VKind::Normal, registers.mov.0, &[], 0);
        mov.ops = registers.mov.1.iter().map(|def| if *def { VOp::Def(copy) } else { VOp::Use(v) }).collect();
        before.push(mov);
    }
    let mut jump = VInst::new(VKind::Jump, registers.jump, &[], 0);
    jump.ops = [VOp::Block(body.exit.0)].into_iter().collect();
    before.push(inst);
    before.push(jump);
    header.insts = before;
    header.inverse = None;
    header.succs = vec![body.exit.clone()];
    header.loop_depth = header.loop_depth.saturating_sub(1);
    if let Some(e) = c.back {
        remove(func, e);
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
