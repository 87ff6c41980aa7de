//! Straight code as bundles.
//!
//! [`ciphermill_schedule::bundle`] schedules a block. On an exposed pipeline all results have landed
//! when a block ends. A branch is issued early enough for its delay slots to end in that cycle. A
//! machine with interlocks (`issue.interlock`) gets the bundles without the empty cycles between
//! them, and results may land in the next block.
//!
//! A call ends a block, as the return address is that of the next one. On an exposed pipeline the two
//! instructions of `[abi.link]` load it. Elsewhere the call does, and has a bundle of its own.

use crate::context::{Emitter, aimed, control};
use crate::vliw::clusters::assign_clusters;
use ciphermill_machine::InstrKind;
use ciphermill_pipeline as kernel;
use ciphermill_program::{Block, Bundle, Operand};
use ciphermill_schedule::bundle::{Row, Schedulable, bundles, edges, in_order, list};
use ciphermill_schedule::verified;
use ciphermill_vcode::CompileError;
use ciphermill_vcode::Node;
use ciphermill_vcode::VKind;
use ciphermill_vcode::{Laid, PInst};

/// Emits a block, split at its calls.
pub fn emit(
    emitter: &Emitter<'_>,
    body: Vec<PInst>,
    end: Option<PInst>,
    loop_depth: u8,
    out: &mut Laid,
) -> Result<(), CompileError> {
    let mut segment = Vec::new();
    for p in body {
        if p.kind == VKind::Kernel {
            let number =
                p.inst.operands.iter().find_map(|o| if let Operand::Imm(n) = o { Some(*n as usize) } else { None });
            let Some((number, kernel)) = number.and_then(|n| Some((n, emitter.kernels.get(n)?))) else {
                return Err(CompileError::Internal("a pipelined loop is lost".into()));
            };
            straight(emitter, std::mem::take(&mut segment), None, loop_depth, out)?;
            let (from, aside) = (out.blocks.len(), out.aside.len());
            let at = kernel::emit::emit(emitter.machine, kernel, out)?;
            out.kernels.insert(number, at);
            emitter.checker.kernel(kernel.replaced.as_deref(), out, from, aside)?;
            continue;
        }
        if p.kind != VKind::Call {
            segment.push(p);
            continue;
        }
        if emitter.machine.issue.interlock {
            straight(emitter, std::mem::take(&mut segment), None, loop_depth, out)?;
            out.blocks.push(Block {
                bundles: vec![Bundle { insts: [p.inst].into_iter().collect() }],
                loop_depth,
                ..Block::default()
            });
            continue;
        }
        let back = out.fresh();
        let jump = call(emitter, p, back, &mut segment)?;
        straight(emitter, std::mem::take(&mut segment), Some(jump), loop_depth, out)?;
        out.label(back);
    }
    straight(emitter, segment, end, loop_depth, out)
}

/// The two instructions that load the return address, and the jump.
fn call(emitter: &Emitter<'_>, p: PInst, back: u32, segment: &mut Vec<PInst>) -> Result<PInst, CompileError> {
    let machine = emitter.machine;
    let Some(link) = &machine.abi.link else {
        return Err(CompileError::Unsupported(format!(
            "calls on {} need [abi.link] in its machine file",
            machine.name
        )));
    };
    for instr in [link.low, link.high] {
        segment.push(aimed(emitter.frame.inst(instr, &[], 0), back));
    }
    let direct = machine.instrs[usize::from(p.inst.instr.0)].kind == InstrKind::Call;
    let mut jump = p;
    jump.inst.instr = if direct { machine.abi.ops.jump } else { link.jump_indirect };
    Ok(control(jump))
}

/// Schedule straight code and the jump that ends it.
fn straight(
    emitter: &Emitter<'_>,
    body: Vec<PInst>,
    end: Option<PInst>,
    loop_depth: u8,
    out: &mut Laid,
) -> Result<(), CompileError> {
    let machine = emitter.machine;
    let mut before = verified::before(&body, end.as_ref(), &[]);
    let given = body.len() + usize::from(end.is_some());
    let mut insts: Vec<Schedulable> = Vec::new();
    for p in body {
        assign_clusters(emitter, p, &mut insts)?;
    }
    let has_end = end.is_some();
    if let Some(end) = end {
        assign_clusters(emitter, end, &mut insts)?;
    }
    let nodes: Vec<Node> =
        insts.iter().map(|s| emitter.facts.node(machine, &s.inst.inst, s.inst.kind, s.inst.mem)).collect();
    let succs = edges(&nodes);
    let last = has_end.then(|| insts.len() - 1);
    let (mut rows, issue) = if emitter.schedule {
        list(machine, emitter.at_once, &insts, &nodes, &succs, last)
    } else {
        in_order(machine, &insts, &succs, last)
    };

    // All results have landed when the block ends.
    let landed = |i: usize| {
        let latency = nodes[i].writes.iter().map(|w| w.1).max().unwrap_or(1).max(1);
        issue[i] + latency
    };
    let exposed = (0..insts.len()).filter(|&i| !machine.issue.interlock && Some(i) != last);
    let quiet = exposed.map(landed).max().unwrap_or(0) as usize;
    match last {
        None => rows.resize_with(quiet.max(rows.len()), Row::default),
        Some(l) => {
            let jump = &insts[l];
            let behind = 1 + usize::from(machine.instrs[usize::from(jump.variants[0].0)].delay_slots);
            let mut ready = 0usize;
            for (i, list) in succs.iter().enumerate() {
                for &(_, cycles) in list.iter().filter(|e| e.0 == l) {
                    ready = ready.max(issue[i] as usize + cycles as usize);
                }
            }
            let mut at = ready.max(quiet.max(rows.len()).saturating_sub(behind));
            // Stores before a trap happen, a store in the trap's own bundle does not.
            if jump.inst.kind == VKind::Trap {
                at = at.max(rows.len());
            }
            loop {
                if rows.len() < at + behind {
                    rows.resize_with(at + behind, Row::default);
                }
                if rows[at].place(machine, jump) {
                    break;
                }
                at += 1;
            }
        }
    }
    let block = Block { bundles: bundles(machine, rows)?, loop_depth, ..Block::default() };
    before.banks_apart = emitter.schedule;
    if insts.len() > given {
        // Moves between clusters go through scratch registers.
        before.scratch = verified::scratch(machine);
    }
    emitter.checker.straight(&before, &block, out.blocks.len())?;
    out.blocks.push(block);
    Ok(())
}
