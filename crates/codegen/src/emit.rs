//! Emits allocated code: block layout, branches, delay slots.
//!
//! Jump threading removes blocks that only jump (edges without moves). A conditional branch falls
//! through to the next block, inverted where needed. Each block is scheduled again after allocation,
//! with its spills and moves. A delay slot gets the last instruction before the branch that may move
//! past it.

mod gather;
mod operands;
mod reach;
mod runs;

use self::operands::{inverted, physical};
use self::reach::{Reached, Reaching};
use crate::context::{Emitter, aimed, control};
use ciphermill_program::{Block, Bundle, Func, Operand};
use ciphermill_schedule::list;
use ciphermill_schedule::verified;
use ciphermill_vcode::CompileError;
use ciphermill_vcode::{Allocated, Laid, Node, PInst, Step};
use ciphermill_vcode::{VFunc, VKind, VOp};
use smallvec::smallvec;
use std::collections::HashMap;

/// How a block ends.
enum End {
    Jump(u32),
    Branch {
        branch: PInst,
        inverse: Option<PInst>,
        taken: u32,
        fall: u32,
    },
    /// Return or trap, with instructions that must stand in its delay slots.
    Stop {
        inst: PInst,
        slots: Vec<PInst>,
    },
}

struct PBlock {
    body: Vec<PInst>,
    end: End,
    loop_depth: u8,
}

/// Block numbers in the emitted function.
pub struct EmittedBlocks {
    /// By old number; blocks that only jumped are gone.
    pub blocks: HashMap<u32, u32>,
    /// Pipelined loops, by number.
    pub kernels: HashMap<usize, u32>,
    /// A jump was too far, and the one that was taken instead writes the return address's register.
    pub loses_return: bool,
}

/// How many instructions from a block's start may be hoisted.
const HOIST_WINDOW: usize = 12;
/// How far back a delay slot's filler is looked for.
const SLOT_WINDOW: usize = 12;

impl Emitter<'_> {
    /// Emits the function.
    pub fn func(&self, func: &VFunc, allocated: &Allocated) -> Result<(Func, EmittedBlocks), CompileError> {
        let mut blocks = Vec::with_capacity(func.blocks.len());
        for (b, steps) in allocated.blocks.iter().enumerate() {
            blocks.push(self.block(func, b, steps)?);
        }
        self.hoist(&mut blocks);
        for block in &mut blocks {
            let body = std::mem::take(&mut block.body);
            block.body = self.reorder(body, &block.end)?;
            let branch = if let End::Branch { branch, .. } = &block.end { Some(branch) } else { None };
            if let (Some(branch), true) = (branch, self.schedule) {
                self.encodings.spared(&mut block.body, &branch.inst);
            }
            if self.schedule && !self.machine.issue.explicit {
                let body = self.gathered(std::mem::take(&mut block.body))?;
                block.body = self.joined(body, branch);
            }
        }
        let (blocks, places) = self.lay_out(blocks).map_err(|e| match e {
            CompileError::Internal(what) => CompileError::Internal(format!("`{}`, {what}", func.name)),
            other => other,
        })?;
        let done = Func {
            name: func.name.clone(),
            blocks,
            frame_bytes: self.frame.bytes,
            params: func.params,
            results: func.results,
        };
        Ok((done, places))
    }

    fn block(&self, func: &VFunc, b: usize, steps: &[Step]) -> Result<PBlock, CompileError> {
        let vblock = &func.blocks[b];
        let mut body = Vec::new();
        let mut end = None;
        for step in steps {
            let (index, places) = match step {
                Step::Move { from, to } => {
                    self.frame.transfer(*from, *to, &mut body)?;
                    continue;
                }
                Step::Inst(index, places) => (*index, places),
            };
            let vinst = &vblock.insts[index];
            match vinst.kind {
                VKind::Params => body.extend(self.frame.prologue()?),
                VKind::Normal | VKind::Call => body.push(self.placed(vinst, places)?),
                VKind::Kernel => {
                    let mut p = self.frame.inst(self.machine.abi.ops.nop, &[], 0);
                    p.kind = VKind::Kernel;
                    p.inst.operands = vinst
                        .ops
                        .iter()
                        .filter_map(|o| if let VOp::Imm(n) = o { Some(Operand::Imm(*n)) } else { None })
                        .collect();
                    body.push(p);
                }
                VKind::Jump => end = Some(End::Jump(vblock.succs[0].0)),
                VKind::Trap => end = Some(End::Stop { inst: physical(vinst, places)?, slots: vec![] }),
                VKind::Branch => {
                    let branch = physical(vinst, places)?;
                    let inverse = match &vblock.inverse {
                        Some(i) => Some(inverted(&branch, vinst, i.instr, &i.ops, places)?),
                        None => None,
                    };
                    end = Some(End::Branch { branch, inverse, taken: vblock.succs[0].0, fall: vblock.succs[1].0 });
                }
                VKind::Return => {
                    body.extend(self.frame.epilogue()?);
                    end = Some(match (&self.machine.abi.windows, self.frame.windowed) {
                        (Some(w), true) => {
                            let zero = self
                                .machine
                                .regs
                                .iter()
                                .position(|r| r.zero)
                                .map(|i| ciphermill_machine::Reg(i as u16));
                            let regs: Vec<_> = zero.into_iter().cycle().take(3).collect();
                            End::Stop {
                                inst: control(self.frame.inst(w.ret, &[], 0)),
                                slots: vec![self.frame.inst(w.restore, &regs, 0)],
                            }
                        }
                        _ => End::Stop { inst: physical(vinst, places)?, slots: vec![] },
                    });
                }
            }
        }
        let end = end.ok_or_else(|| CompileError::Internal(format!("block {b} of `{}` has no end", func.name)))?;
        Ok(PBlock { body, end, loop_depth: vblock.loop_depth })
    }

    /// Hoists instructions that both successors of a branch begin with, such as moves of loop-carried
    /// values that are also live out of the loop. The back edge often needs no block after it.
    fn hoist(&self, blocks: &mut [PBlock]) {
        if !self.schedule {
            return;
        }
        let mut preds = vec![0u32; blocks.len()];
        for block in blocks.iter() {
            match &block.end {
                End::Jump(t) => preds[*t as usize] += 1,
                End::Branch { taken, fall, .. } => {
                    preds[*taken as usize] += 1;
                    preds[*fall as usize] += 1;
                }
                End::Stop { .. } => {}
            }
        }
        for b in 0..blocks.len() {
            let End::Branch { branch, taken, fall, .. } = &blocks[b].end else { continue };
            let (x, y) = (*taken as usize, *fall as usize);
            if x == y || x == b || y == b || preds[x] != 1 || preds[y] != 1 {
                continue;
            }
            let read = self.facts.node(self.machine, &branch.inst, branch.kind, None).reads;
            loop {
                let early = |x: usize, y: usize| self.first_of_both(&blocks[x].body, &blocks[y].body, &read);
                let (x, y, there) = match (early(x, y), early(y, x)) {
                    (Some(there), _) => (x, y, there),
                    (None, Some(there)) => (y, x, there),
                    (None, None) => break,
                };
                let moved = blocks[x].body.remove(0);
                blocks[y].body.remove(there);
                blocks[b].body.push(moved);
            }
        }
    }

    /// Index in `body` of the first instruction of `first`, if both may be hoisted above a branch that
    /// reads `read`.
    fn first_of_both(&self, first: &[PInst], body: &[PInst], read: &[u32]) -> Option<usize> {
        let p = first.first()?;
        let node = self.facts.node(self.machine, &p.inst, p.kind, p.mem);
        if node.barrier || node.writes.iter().any(|w| read.contains(&w.0)) {
            return None;
        }
        for (i, q) in body.iter().take(HOIST_WINDOW).enumerate() {
            if p.inst.instr == q.inst.instr && p.inst.operands == q.inst.operands && p.mem == q.mem {
                return Some(i);
            }
            if !independent(&node, &self.facts.node(self.machine, &q.inst, q.kind, q.mem)) {
                return None;
            }
        }
        None
    }

    /// Schedules straight code. The branch is a node, too, so that what it reads is ready.
    fn reorder(&self, body: Vec<PInst>, end: &End) -> Result<Vec<PInst>, CompileError> {
        if !self.schedule {
            return Ok(body);
        }
        let mut nodes: Vec<_> = body.iter().map(|p| self.facts.node(self.machine, &p.inst, p.kind, p.mem)).collect();
        if let End::Branch { branch, .. } = end {
            let mut n = self.facts.node(self.machine, &branch.inst, branch.kind, None);
            n.barrier = true;
            nodes.push(n);
        }
        let order = list::order(&nodes, None);
        verified::order(&nodes, &order).map_err(|e| CompileError::Internal(format!("schedule: {e}")))?;
        let mut slots: Vec<Option<PInst>> = body.into_iter().map(Some).collect();
        Ok(order.into_iter().filter_map(|i| slots.get_mut(i).and_then(Option::take)).collect())
    }

    fn lay_out(&self, mut blocks: Vec<PBlock>) -> Result<(Vec<Block>, EmittedBlocks), CompileError> {
        let forward: Vec<u32> = (0..blocks.len() as u32).map(|b| pass_over(&blocks, b)).collect();
        for block in &mut blocks {
            match &mut block.end {
                End::Jump(t) => *t = forward[*t as usize],
                End::Branch { taken, fall, .. } => {
                    *taken = forward[*taken as usize];
                    *fall = forward[*fall as usize];
                }
                End::Stop { .. } => {}
            }
        }
        let mut reached = vec![false; blocks.len()];
        let mut work = vec![0u32];
        while let Some(b) = work.pop() {
            if std::mem::replace(&mut reached[b as usize], true) {
                continue;
            }
            match &blocks[b as usize].end {
                End::Jump(t) => work.push(*t),
                End::Branch { taken, fall, .. } => work.extend([*taken, *fall]),
                End::Stop { .. } => {}
            }
        }
        let mut order: Vec<u32> = (0..blocks.len() as u32).filter(|&b| reached[b as usize]).collect();
        if self.schedule && self.machine.core.is_some() {
            rotate(&mut order, &blocks);
        }

        let mut out = Laid::new(blocks.len() as u32);
        let mut inverses = HashMap::new();
        let mut taken_slots: Vec<Option<PBlock>> = blocks.into_iter().map(Some).collect();
        for (at, &b) in order.iter().enumerate() {
            let next = order.get(at + 1).copied();
            let Some(block) = taken_slots[b as usize].take() else { continue };
            out.label(b);
            let depth = block.loop_depth;
            if let End::Branch { branch, inverse: Some(inverse), taken, .. } = &block.end {
                let other = if Some(*taken) == next { branch } else { inverse };
                inverses.insert(out.blocks.len() as u32, aimed(other.clone(), 0).inst);
            }
            let mut push = |body, end, slots| self.emit(body, end, slots, depth, &mut out);
            match block.end {
                End::Jump(t) if Some(t) == next => push(block.body, None, vec![])?,
                End::Jump(t) => push(block.body, Some(self.jump(t)), vec![])?,
                End::Stop { inst, slots } => push(block.body, Some(inst), slots)?,
                End::Branch { taken, fall, .. } if taken == fall => {
                    push(block.body, (Some(taken) != next).then(|| self.jump(taken)), vec![])?;
                }
                End::Branch { branch, inverse, taken, fall } => {
                    let (branch, to, other) = match inverse {
                        Some(inverse) if Some(taken) == next => (inverse, fall, taken),
                        _ => (branch, taken, fall),
                    };
                    push(block.body, Some(aimed(branch, to)), vec![])?;
                    if Some(other) != next {
                        push(vec![], Some(self.jump(other)), vec![])?;
                    }
                }
            }
        }
        for (label, block) in std::mem::take(&mut out.aside) {
            out.label(label);
            out.blocks.push(block);
        }
        let Laid { blocks: mut out, place, kernels, .. } = out;
        for operand in
            out.iter_mut().flat_map(|b| &mut b.bundles).flat_map(|b| &mut b.insts).flat_map(|i| &mut i.operands)
        {
            if let Operand::Block(b) = operand {
                *b = place[b];
            }
        }
        let mut emitted = EmittedBlocks { blocks: place, kernels, loses_return: false };
        if reach::limited(self.machine) {
            let settled = Reaching::new(self.machine, self.jump(0).inst, out, inverses).settle()?;
            let Reached { blocks, place, far } = settled;
            out = blocks;
            emitted.blocks.values_mut().for_each(|b| *b = place[b]);
            let far = self.machine.abi.ops.far_jump.filter(|_| far).map(|f| &self.machine.instrs[usize::from(f.0)]);
            emitted.loses_return = far.is_some_and(|f| f.semantics.len() > 1);
        }
        Ok((out, emitted))
    }

    /// Emits straight code, the instruction that ends it (None falls through) and the instructions
    /// for its delay slots.
    fn emit(
        &self,
        body: Vec<PInst>,
        end: Option<PInst>,
        slots: Vec<PInst>,
        loop_depth: u8,
        out: &mut Laid,
    ) -> Result<(), CompileError> {
        if self.machine.issue.explicit {
            return crate::vliw::pack::emit(self, body, end, loop_depth, out);
        }
        let before = verified::before(&body, end.as_ref(), &slots);
        let insts = match end {
            None => self.calls(body),
            Some(end) => self.ended(body, end, slots),
        };
        let mut block = Block { bundles: bundles(insts), loop_depth, ..Block::default() };
        self.checker.straight(&before, &block, out.blocks.len())?;
        block.bundles.iter_mut().flat_map(|b| &mut b.insts).for_each(|i| self.encodings.shorten(i));
        self.encodings.paired(&mut block);
        out.blocks.push(block);
        Ok(())
    }

    fn jump(&self, to: u32) -> PInst {
        aimed(control(self.frame.inst(self.machine.abi.ops.jump, &[], 0)), to)
    }

    fn slots_of(&self, p: &PInst) -> usize {
        usize::from(self.machine.instrs[p.inst.instr.0 as usize].delay_slots)
    }

    /// The body, with every call's delay slots filled.
    fn calls(&self, body: Vec<PInst>) -> Vec<PInst> {
        let mut out = Vec::with_capacity(body.len());
        // A slot is filled with an instruction after the last call.
        let mut from = 0;
        for p in body {
            if self.slots_of(&p) == 0 {
                out.push(p);
                continue;
            }
            let slots = self.fill(&mut out, from, &p);
            out.push(p);
            out.extend(slots);
            from = out.len();
        }
        out
    }

    /// The body, the instruction that ends it, and its delay slots.
    fn ended(&self, body: Vec<PInst>, end: PInst, slots: Vec<PInst>) -> Vec<PInst> {
        let calls = body.iter().filter(|p| p.kind == VKind::Call).count();
        let mut out = self.calls(body);
        let from = if calls == 0 {
            0
        } else {
            out.iter().rposition(|p| p.kind == VKind::Call).map_or(0, |i| i + 1 + self.slots_of(&out[i]))
        };
        let slots = if slots.is_empty() { self.fill(&mut out, from, &end) } else { slots };
        out.push(end);
        out.extend(slots);
        out
    }

    /// Takes an instruction of `out[from..]` that may stand behind `end`, or a no-operation.
    fn fill(&self, out: &mut Vec<PInst>, from: usize, end: &PInst) -> Vec<PInst> {
        let mut slots = Vec::new();
        for _ in 0..self.slots_of(end) {
            let found = if self.schedule && slots.is_empty() { self.movable(out, from, end) } else { None };
            slots.push(match found {
                Some(i) => out.remove(i),
                None => self.frame.inst(self.machine.abi.ops.nop, &[], 0),
            });
        }
        slots
    }

    fn movable(&self, out: &[PInst], from: usize, end: &PInst) -> Option<usize> {
        let node = |p: &PInst| self.facts.node(self.machine, &p.inst, p.kind, p.mem);
        let mut passed = vec![node(end)];
        let low = from.max(out.len().saturating_sub(SLOT_WINDOW));
        for i in (low..out.len()).rev() {
            let n = node(&out[i]);
            if n.barrier {
                return None;
            }
            if passed.iter().all(|p| independent_registers(&n, p)) {
                return Some(i);
            }
            passed.push(n);
        }
        None
    }
}

/// May the two instructions be swapped?
fn independent(a: &Node, b: &Node) -> bool {
    !b.barrier && independent_registers(a, b)
}

/// The same, barriers left aside.
fn independent_registers(a: &Node, b: &Node) -> bool {
    let writes = |n: &Node, r: &u32| n.writes.iter().any(|w| w.0 == *r);
    !a.writes.iter().any(|(r, _)| b.reads.contains(r) || writes(b, r))
        && !a.reads.iter().any(|r| writes(b, r))
        && !matches!((&a.mem, &b.mem), (Some(a), Some(b)) if a.conflicts(b))
}

/// The target of a jump to `b` after jump threading.
fn pass_over(blocks: &[PBlock], mut b: u32) -> u32 {
    for _ in 0..blocks.len() {
        match &blocks[b as usize] {
            PBlock { body, end: End::Jump(t), .. } if body.is_empty() => b = *t,
            _ => break,
        }
    }
    b
}

/// Loop rotation: a block on a loop's back edge is placed in front of the loop. An iteration then
/// ends in one taken branch instead of an untaken branch and a jump. On entry one jump skips the block.
fn rotate(order: &mut [u32], blocks: &[PBlock]) {
    let mut preds = vec![0u32; blocks.len()];
    for &b in order.iter() {
        match &blocks[b as usize].end {
            End::Jump(t) => preds[*t as usize] += 1,
            End::Branch { taken, fall, .. } => [taken, fall].into_iter().for_each(|t| preds[*t as usize] += 1),
            End::Stop { .. } => {}
        }
    }
    for at in 1..order.len() {
        let (above, back) = (order[at - 1], order[at]);
        let End::Jump(head) = blocks[back as usize].end else { continue };
        let closes = matches!(blocks[above as usize].end, End::Branch { taken, fall, .. }
            if taken != fall && (taken == back || fall == back));
        if !closes || preds[back as usize] != 1 {
            continue;
        }
        // The first block stays the first: a call begins there.
        if let Some(top) = order[..at].iter().position(|&b| b == head).filter(|&top| top > 0) {
            order[top..=at].rotate_right(1);
        }
    }
}

fn bundles(body: Vec<PInst>) -> Vec<Bundle> {
    body.into_iter().map(|p| Bundle { insts: smallvec![p.inst] }).collect()
}
