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
mod circle;
pub mod color;
pub mod emit;
pub mod exact;
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
use exact::Exchange;
use modulo::{Plan, Policy, Schedule};
use place::{At, Ops, Sides};

/// Stages that an iteration may have: its prologue starts one iteration, so a
/// loop of any length can enter.
const STAGES: i64 = 2;
/// What is tried at each II.
const POLICIES: [Policy; 4] = [
    Policy { frugal: false, reserve: 0, wait: None, hope: 8 },
    Policy { frugal: true, reserve: 0, wait: None, hope: 8 },
    Policy { frugal: true, reserve: 0, wait: Some(99), hope: 1 },
    Policy { frugal: false, reserve: 1, wait: None, hope: 1 },
];
/// Schedules of one length that are tried with fewer registers each time.
const ATTEMPTS: usize = 5;
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
    /// No schedule is shorter: an exact scheduler's word, 0 without one.
    pub least: i64,
}

/// Find the loops of a function that can be pipelined and replace each by a
/// pseudo-instruction.
pub fn pipeline(
    func: &mut VFunc,
    machine: &Machine,
    facts: &Facts,
    registers: &Registers,
    mut exchange: Option<&mut Exchange>,
) -> Result<Vec<Kernel>, CompileError> {
    let free: Vec<Reg> = registers.allocatable.iter().chain(&machine.abi.scratch).copied().collect();
    let sides = Sides::new(machine, &free);
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
        let Some(mut kernel) = best(&body, &sides, registers)? else { continue };
        if let Some(exchange) = &mut exchange {
            kernel = exchange.improve(kernel, &body, &sides, registers)?;
        }
        replace(func, &c, &body, &kernel, kernels.len(), registers);
        kernels.push(kernel);
    }
}

/// A loop by the registers of its parameters, which are its own.
fn name(func: &VFunc, c: &Candidate) -> Vec<VReg> {
    func.blocks[c.header as usize].params.clone()
}

fn best(body: &Body, sides: &Sides<'_>, registers: &Registers) -> Result<Option<Kernel>, CompileError> {
    let try_at = |body: &Body, at: &[At], to: i64| -> Result<Option<Kernel>, CompileError> {
        let ops = place::settle(body, sides, at)?;
        Ok(at_any_ii(body, &ops, sides, registers, to))
    };
    let (res_mii, rec_mii) = graph::lower(sides, body)?;
    let mut found: Option<Kernel> = None;
    let limit = |found: &Option<Kernel>| found.as_ref().map_or(i64::MAX, |k| k.schedule.ii - 1);
    let apart = partition::apart(body, sides);
    let even = partition::balanced(&apart, sides);
    if even {
        found = try_at(body, &apart, i64::MAX)?;
        if let Some(separate) = partition::separate(body) {
            let apart = partition::apart(&separate, sides);
            found = try_at(&separate, &apart, limit(&found))?.or(found);
        }
    }
    if sides.files.len() > 1 && !(even && found.is_some()) {
        for mut at in [partition::spread(body, sides), apart] {
            found = try_at(body, &at, limit(&found))?.or(found);
            let mut cost = estimate(body, sides, &at)?;
            for which in 0..(TRIALS / body.nodes.len().max(1)).min(1000) {
                let Some(new) = partition::moves(body, sides, &at, which * 7919) else { break };
                let price = estimate(body, sides, &new)?;
                if price <= cost {
                    (at, cost) = (new, price);
                }
            }
            found = try_at(body, &at, limit(&found))?.or(found);
        }
    }
    Ok(found.map(|k| Kernel { res_mii, rec_mii, ..k }))
}

/// Length of one iteration with the registers there are, for comparing
/// partitions; longer than any where they are too few.
fn estimate(body: &Body, sides: &Sides<'_>, at: &[At]) -> Result<i64, CompileError> {
    let ops = place::settle(body, sides, at)?;
    let resource = graph::res_mii(sides, &ops);
    let outside = color::invariants(sides, &ops);
    let limits: Vec<i64> = sides.pool.iter().zip(outside).map(|(pool, o)| pool.len() as i64 - o).collect();
    let wide = graph::chain(&ops) * 4 + ops.ops.len() as i64;
    let plan = Plan::new(&ops);
    let length = |s: Schedule| {
        let body = &s.time[..s.time.len() - 1];
        body.iter().copied().max().unwrap_or(0) - body.iter().copied().min().unwrap_or(0)
    };
    let done = POLICIES.iter().find_map(|&p| modulo::schedule(sides, &ops, &plan, wide, p, &limits, 1));
    Ok(done.map_or(2 * wide, length).max(resource))
}

/// The first II at which schedule and registers work out.
fn at_any_ii(body: &Body, ops: &Ops, sides: &Sides<'_>, registers: &Registers, to: i64) -> Option<Kernel> {
    let machine = sides.machine;
    let res_mii = graph::res_mii(sides, ops);
    let rec_mii = graph::rec_mii(ops);
    let outside = color::invariants(sides, ops);
    let limits: Vec<i64> = (0..sides.files.len()).map(|s| sides.pool[s].len() as i64 - outside[s]).collect();
    if limits.iter().any(|l| *l < 2) {
        return None;
    }
    let delay = machine.instrs[usize::from(body.skip.0)].delay_slots;
    let first = res_mii.max(rec_mii).max(i64::from(delay) + 2);
    let last = (first + graph::chain(ops) + ops.ops.len() as i64).min(to);
    let plan = Plan::new(ops);
    let at = |ii: i64| -> Option<Kernel> {
        for (stages, policy) in (1..=STAGES).flat_map(|s| POLICIES.map(|p| (s, p))) {
            // Where colouring falls short, the next attempt gets by with less.
            let mut limits = limits.clone();
            for _ in 0..ATTEMPTS {
                let Some(schedule) = modulo::schedule(sides, ops, &plan, ii, policy, &limits, stages) else { break };
                match color::color(sides, ops, &schedule, &registers.allocatable) {
                    Ok(registers) => {
                        let (skip, loop_depth) = (body.skip, body.loop_depth);
                        return Some(Kernel {
                            ops: ops.clone(),
                            schedule,
                            registers,
                            skip,
                            loop_depth,
                            res_mii,
                            rec_mii,
                            least: 0,
                        });
                    }
                    Err(short) => limits[short.side] -= short.by as i64,
                }
            }
        }
        None
    };
    search(first, last, at)
}

/// The least number between two at which an attempt succeeds, taking success
/// to be monotone: steps that double, then halves of the last step.
fn search<T>(first: i64, last: i64, mut at: impl FnMut(i64) -> Option<T>) -> Option<T> {
    let (mut failed, mut step, mut ii) = (first - 1, 1, first);
    let mut found = loop {
        if ii > last {
            return None;
        }
        if let Some(found) = at(ii) {
            break found;
        }
        failed = ii;
        ii = if ii == last { last + 1 } else { (ii + step).min(last) };
        step *= 2;
    };
    while ii - failed > 1 {
        let middle = failed + (ii - failed) / 2;
        match at(middle) {
            Some(better) => (ii, found) = (middle, better),
            None => failed = middle,
        }
    }
    Some(found)
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

#[cfg(test)]
mod tests {
    use super::search;

    #[test]
    fn the_least_is_found_in_few_attempts() {
        for wanted in 10..=300 {
            let mut attempts = 0;
            let found = search(10, 300, |ii| {
                attempts += 1;
                (ii >= wanted).then_some(ii)
            });
            assert_eq!(found, Some(wanted));
            assert!(attempts <= 20, "{attempts} for {wanted}");
        }
        assert_eq!(search(10, 300, |ii| (ii > 300).then_some(ii)), None);
        assert_eq!(search(10, 9, Some), None);
    }
}
