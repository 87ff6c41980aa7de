//! Translation validation of schedules: turns the code generator's types into those of
//! `ciphermill-verify`, and calls it.
//!
//! Every schedule is checked right before it is used, whoever made it: [`order`] for the order of a
//! block, [`Checker`] for the emitted code of a block or a pipelined loop.

use ciphermill_ir::Space;
use ciphermill_machine::{Machine, Reg};
use ciphermill_program::{Block, Inst, Operand};
use ciphermill_vcode::CompileError;
use ciphermill_vcode::Facts;
use ciphermill_vcode::{Laid, PInst};
use ciphermill_vcode::{MemRef, Object, VFunc, VInst, VKind, VOp, VReg};
use ciphermill_vcode::{Node, Resource};
use ciphermill_verify as verify;
use cranelift_entity::EntityRef;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use verify::{Arg, Storage};

/// Check that `order` is a permutation of nodes under which every instruction computes what it did.
///
/// # Errors
/// A sentence that names the first instruction that does not.
pub fn order(nodes: &[Node], order: &[usize]) -> Result<(), String> {
    order_live(nodes, order, &|_| true)
}

/// [`order`], where only some registers are read behind the last instruction.
///
/// # Errors
/// As [`order`]'s.
pub fn order_live(nodes: &[Node], order: &[usize], live: &dyn Fn(Resource) -> bool) -> Result<(), String> {
    let step = |n: &Node| verify::order::Step {
        reads: n.reads.clone(),
        writes: n.writes.iter().map(|w| w.0).collect(),
        access: n.mem.as_ref().map(access),
        barrier: n.barrier,
    };
    let steps: Vec<_> = nodes.iter().map(step).collect();
    verify::order::check(&steps, order, live)
}

fn access(m: &MemRef) -> verify::Access {
    verify::Access {
        space: m.space,
        store: m.store,
        base: m.base.map(|b| b.index() as u32),
        offset: m.offset,
        bytes: m.bytes,
        object: match m.object {
            Object::Anything => verify::Object::Anything,
            Object::Buffer(b) => verify::Object::Buffer(b),
            Object::Own => verify::Object::Own,
        },
        span: m.span,
        constant: m.constant,
        banks: m.banks,
    }
}

fn physical(r: Reg) -> Storage {
    Storage::from(r.0)
}

/// Virtual registers are numbered after the physical ones.
fn named(machine: &Machine, v: VReg) -> Storage {
    machine.regs.len() as Storage + v.0
}

fn inst(i: &Inst, mem: Option<&MemRef>) -> verify::Inst {
    let arg = |o: &Operand| match *o {
        Operand::Reg(r) => Arg::Reg(physical(r)),
        Operand::Imm(v) => Arg::Imm(v),
        Operand::Block(b) => Arg::Label(b),
        Operand::Func(f) => Arg::Func(f),
    };
    verify::Inst {
        instr: i.instr,
        args: i.operands.iter().map(arg).collect(),
        predicate: i.predicate.map(physical),
        space: i.space,
        access: mem.map(access),
        traps: i.trap.is_some(),
    }
}

fn virtual_inst(machine: &Machine, i: &VInst) -> verify::Inst {
    let arg = |o: &VOp| match *o {
        VOp::Use(v) | VOp::Def(v) => Arg::Reg(named(machine, v)),
        VOp::Tied { used, def } => Arg::Tied { read: named(machine, used), write: named(machine, def) },
        VOp::Phys(r) => Arg::Reg(physical(r)),
        VOp::Const(c) => Arg::Imm(c as i64),
        VOp::Imm(v) => Arg::Imm(v),
        VOp::Block(b) => Arg::Label(b),
        VOp::Func(f) => Arg::Func(f),
    };
    verify::Inst {
        instr: i.instr,
        args: i.ops.iter().map(arg).collect(),
        predicate: None,
        space: i.mem.map_or(Space::Linear, |m| m.space),
        access: i.mem.as_ref().map(access),
        traps: i.trap.is_some(),
    }
}

fn code(block: &Block) -> verify::Block {
    verify::Block { bundles: block.bundles.iter().map(|b| b.insts.iter().map(|i| inst(i, None)).collect()).collect() }
}

/// A block before scheduling: its instructions, the one that ends it, and those for its delay slots.
pub fn before(body: &[PInst], end: Option<&PInst>, slots: &[PInst]) -> verify::Straight {
    let one = |p: &PInst| inst(&p.inst, p.mem.as_ref());
    verify::Straight {
        body: body.iter().map(one).collect(),
        end: end.map(one),
        slots: slots.iter().map(one).collect(),
        scratch: Vec::new(),
        banks_apart: false,
    }
}

/// Registers that are dead between blocks, as the checker numbers them.
pub fn scratch(machine: &Machine) -> Vec<Storage> {
    machine.abi.scratch.iter().copied().map(physical).collect()
}

/// What was checked, for tests that mutate it.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "few are kept, and most are loops")]
pub enum Checked {
    Straight(verify::Straight, verify::Block),
    Loop(verify::SourceLoop, verify::Pipeline),
}

/// Records what is checked.
pub type Witness = Arc<Mutex<Vec<Checked>>>;

/// Checks schedules for one machine.
#[derive(Clone, Copy)]
pub struct Checker<'a> {
    pub rules: &'a verify::Rules,
    pub witness: Option<&'a Witness>,
}

impl Checker<'_> {
    fn write_down(&self, checked: impl FnOnce() -> Checked) {
        if let Some(Ok(mut list)) = self.witness.map(|w| w.lock()) {
            list.push(checked());
        }
    }

    /// Checks the emitted code of a block.
    ///
    /// # Errors
    /// [`CompileError::Internal`] with the rule that is broken.
    pub fn straight(&self, before: &verify::Straight, after: &Block, place: usize) -> Result<(), CompileError> {
        let after = code(after);
        self.write_down(|| Checked::Straight(before.clone(), after.clone()));
        verify::straight(self.rules, before, &after)
            .map_err(|e| CompileError::Internal(format!("schedule of block {place}: {e}")))
    }

    /// Checks the emitted code of a pipelined loop: the blocks of `out` from `from` on, and those in
    /// `aside` from `aside` on.
    ///
    /// # Errors
    /// [`CompileError::Internal`] with the rule that is broken.
    pub fn kernel(
        &self,
        replaced: Option<&Replaced>,
        out: &Laid,
        from: usize,
        aside: usize,
    ) -> Result<(), CompileError> {
        let told = |e: String| CompileError::Internal(format!("pipelined loop at block {from}: {e}"));
        let Some(Replaced { source, pipeline }) = replaced else {
            return Err(told("nothing is known of the loop that it stands for".into()));
        };
        let mut pipeline = pipeline.clone();
        pipeline.through = out.blocks.len() - from;
        let blocks = out.blocks[from..].iter().chain(out.aside[aside..].iter().map(|a| &a.1));
        pipeline.blocks = blocks.map(code).collect();
        let inside = out.labels().filter(|l| l.1 as usize >= from).map(|(l, at)| (l, at as usize - from));
        let through = pipeline.through;
        pipeline.labels = inside.map(|(l, at)| (l, Some(at).filter(|&at| at < through))).collect();
        pipeline.labels.extend(out.aside[aside..].iter().enumerate().map(|(k, a)| (a.0, Some(through + k))));
        self.write_down(|| Checked::Loop(source.clone(), pipeline.clone()));
        verify::pipelined(self.rules, source, &pipeline).map_err(|e| told(e.to_string()))
    }
}

/// A loop before it is pipelined: the block at its `header`, and the latch where that is another block.
///
/// # Errors
/// When it is no loop of one block.
pub fn source_loop(
    func: &VFunc,
    machine: &Machine,
    header: u32,
    back: Option<u32>,
) -> Result<verify::SourceLoop, CompileError> {
    let block = &func.blocks[header as usize];
    let again = back.unwrap_or(header);
    let one = |i: &VInst| virtual_inst(machine, i);
    let back = back.map(|b| &func.blocks[b as usize]);
    let from = back.unwrap_or(block);
    let handed = from.succs.iter().find(|s| s.0 == header).map(|s| &s.1);
    let (Some((branch, body)), Some(handed)) = (block.insts.split_last(), handed) else {
        return Err(CompileError::Internal("a pipelined loop does not come back".into()));
    };
    let reads = block.insts.iter().chain(back.iter().flat_map(|b| &b.insts)).flat_map(VInst::uses);
    let edges = || func.blocks.iter().enumerate().flat_map(|(b, x)| x.succs.iter().map(move |s| (b as u32, s)));
    let into = |to: u32| edges().filter(|e| e.1.0 == to && !(to == header && e.0 == again)).collect::<Vec<_>>();
    let entered: Vec<(VReg, VReg)> = match into(header)[..] {
        [(_, (_, given))] => block.params.iter().copied().zip(given.iter().copied()).collect(),
        _ => Vec::new(),
    };
    let wanted: Vec<VReg> = reads.chain(entered.iter().map(|e| e.1)).collect();
    let outside = makers(func, &[header, again], &wanted).into_iter().map(one).collect();
    Ok(verify::SourceLoop {
        outside,
        entered: entered.iter().map(|&(p, v)| (named(machine, p), named(machine, v))).collect(),
        body: body.iter().map(one).collect(),
        branch: Some(one(branch)),
        again_when_taken: block.succs[0].0 == again,
        between: back.iter().flat_map(|b| &b.insts).filter(|i| i.kind == VKind::Normal).map(one).collect(),
        params: block.params.iter().map(|&p| named(machine, p)).collect(),
        handed: handed.iter().map(|&h| named(machine, h)).collect(),
    })
}

/// What a loop finds is followed back through so many instructions, one behind the other, and no farther by
/// what decides which of its accesses may change places.
pub const DEEPEST: u32 = 32;

/// What makes these values and what they are made of, each behind what it reads: instructions outside
/// of some blocks that touch no memory and trap under no condition.
fn makers<'a>(func: &'a VFunc, inside: &[u32], wanted: &[VReg]) -> Vec<&'a VInst> {
    let plain = |i: &&VInst| i.kind == VKind::Normal && i.mem.is_none() && i.trap.is_none();
    let blocks = func.blocks.iter().enumerate().filter(|(b, _)| !inside.contains(&(*b as u32)));
    let insts = blocks.flat_map(|(_, block)| &block.insts).filter(plain);
    let made: BTreeMap<VReg, &VInst> = insts.flat_map(|i| i.defs().map(move |d| (d, i))).collect();
    let mut near: BTreeSet<VReg> = BTreeSet::new();
    let mut level: Vec<VReg> = wanted.to_vec();
    for _ in 0..DEEPEST {
        level.retain(|v| made.contains_key(v) && near.insert(*v));
        level = level.iter().flat_map(|v| made[v].uses()).collect();
    }
    let (mut seen, mut out) = (BTreeSet::new(), Vec::new());
    // A value is met twice: for what it reads, and when that has been made.
    let mut open: Vec<(VReg, bool)> = wanted.iter().rev().map(|&v| (v, false)).collect();
    while let Some((v, ready)) = open.pop() {
        let Some(&inst) = made.get(&v).filter(|_| near.contains(&v)) else { continue };
        if ready {
            out.push(inst);
        } else if seen.insert(v) {
            open.push((v, true));
            open.extend(inst.uses().map(|u| (u, false)));
        }
    }
    out
}

/// Everything that blocks outside of a loop read, arguments of edges included, in program order.
pub fn outside(func: &VFunc, header: u32, back: Option<u32>) -> Vec<VReg> {
    let mut out = Vec::new();
    for (b, block) in func.blocks.iter().enumerate() {
        if Some(b as u32) == back {
            continue;
        }
        if b as u32 == header {
            let out_of = block.succs.iter().filter(|s| s.0 != header && Some(s.0) != back);
            out.extend(out_of.flat_map(|s| s.1.iter().copied()));
            continue;
        }
        out.extend(block.insts.iter().flat_map(VInst::uses));
        let inverse = block.inverse.iter().flat_map(|i| &i.ops);
        out.extend(inverse.filter_map(|o| if let VOp::Use(v) = o { Some(*v) } else { None }));
        out.extend(block.succs.iter().flat_map(|s| s.1.iter().copied()));
    }
    out
}

/// A loop that has been replaced, for the check when its code is written out.
#[derive(Clone, Debug)]
pub struct Replaced {
    pub source: verify::SourceLoop,
    /// What replaces it, without the code.
    pub pipeline: verify::Pipeline,
}

/// What replaces a loop in a function. `were` and `are` are what other blocks read before and after;
/// `free` are the registers that it may use, and `words` are its words of the frame.
pub fn replaced(
    func: &VFunc,
    machine: &Machine,
    facts: &Facts,
    header: u32,
    (were, are): (&[VReg], &[VReg]),
    free: &[Reg],
    words: std::ops::Range<usize>,
) -> Result<verify::Pipeline, CompileError> {
    let insts = &func.blocks[header as usize].insts;
    let Some(at) = insts.iter().position(|i| i.kind == VKind::Kernel).filter(|_| were.len() == are.len()) else {
        return Err(CompileError::Internal("a pipelined loop was not replaced".into()));
    };
    let normal =
        |list: &[VInst]| list.iter().filter(|i| i.kind == VKind::Normal).map(|i| virtual_inst(machine, i)).collect();
    let pairs = |list: &[(VReg, Reg)]| list.iter().map(|&(v, r)| (named(machine, v), physical(r))).collect();
    let wanted: BTreeSet<(VReg, VReg)> = were.iter().copied().zip(are.iter().copied()).collect();
    let mut destroyed: Vec<Storage> = free.iter().copied().map(physical).collect();
    if let Some(rotation) = &machine.abi.rotation {
        destroyed.extend(rotation.predicates.iter().copied().map(physical));
        for i in [rotation.enter, rotation.back, rotation.back_zero] {
            destroyed.extend(facts.fixed_writes(i).map(physical));
        }
    }
    let word = |n: usize| i64::from(machine.abi.frame_reserve) + i64::from(machine.word_bits / 8) * n as i64;
    Ok(verify::Pipeline {
        before: normal(&insts[..at]),
        given: pairs(&insts[at].fixed_uses),
        taken: pairs(&insts[at].fixed_defs),
        behind: normal(&insts[at + 1..]),
        wanted: wanted.into_iter().map(|(a, b)| (named(machine, a), named(machine, b))).collect(),
        destroyed,
        stack_pointer: physical(machine.abi.stack_pointer),
        words: words.map(word).collect(),
        ..verify::Pipeline::default()
    })
}
