//! A loop in numbers of its own.
//!
//! A module is compiled in several forms of which one is measured. Most of its loops are the same in
//! all, but for the numbers of values, blocks and lines of the source, which follow from all that
//! stands before them in the function. In numbers by first appearance equal loops are equal, so that
//! one search serves for all ([`super::memo`]); what it finds gets the loop's real numbers back.

use super::Kernel;
use super::body::{Body, From};
use ciphermill_ir::Value;
use ciphermill_vcode::{VInst, VOp, VReg};
use std::collections::BTreeMap;

/// What a loop's own numbers stand for: in place `n` of each list what number `n` does.
#[derive(Default)]
pub struct Names {
    registers: Vec<u32>,
    values: Vec<u32>,
    blocks: Vec<u32>,
    lines: Vec<u32>,
}

/// A loop in its own numbers, and what these stand for.
pub fn own(body: &Body) -> (Body, Names) {
    let mut body = body.clone();
    let mut first = First { names: Names::default(), known: Default::default() };
    // Line 0 is that of instructions that the pipeliner adds.
    first.number(Kind::Line, 0);
    in_body(&mut body, &mut |kind, n| first.number(kind, n));
    (body, first.names)
}

impl Names {
    /// Give a kernel and the loop that it was made of their real numbers.
    pub fn give(&self, kernel: &mut Kernel, body: &mut Body) {
        let mut real = |kind: Kind, n: u32| self.of(kind).get(n as usize).copied().unwrap_or(n);
        in_body(body, &mut real);
        let Kernel { ops, registers, kept, .. } = kernel;
        for op in &mut ops.ops {
            in_inst(&mut op.inst, &mut real);
            op.reads.iter_mut().for_each(|r| in_from(&mut r.1, &mut real));
        }
        let register = &mut |v: VReg| VReg(real(Kind::Register, v.0));
        ops.initial.values_mut().for_each(|v| *v = register(*v));
        ops.live_out.iter_mut().for_each(|l| l.1 = register(l.1));
        let outside = std::mem::take(&mut registers.outside).into_iter();
        registers.outside = outside.map(|((v, side), r)| ((register(v), side), r)).collect();
        kept.iter_mut().for_each(|k| k.0 = register(k.0));
    }

    fn of(&self, kind: Kind) -> &[u32] {
        match kind {
            Kind::Register => &self.registers,
            Kind::Value => &self.values,
            Kind::Block => &self.blocks,
            Kind::Line => &self.lines,
        }
    }
}

/// What a number is of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// A virtual register.
    Register,
    /// A value of the function before selection, which addresses are told apart by.
    Value,
    Block,
    /// A place in the source.
    Line,
}

/// Numbers in the order in which they are met.
struct First {
    names: Names,
    known: BTreeMap<(Kind, u32), u32>,
}

impl First {
    fn number(&mut self, kind: Kind, n: u32) -> u32 {
        let list = match kind {
            Kind::Register => &mut self.names.registers,
            Kind::Value => &mut self.names.values,
            Kind::Block => &mut self.names.blocks,
            Kind::Line => &mut self.names.lines,
        };
        *self.known.entry((kind, n)).or_insert_with(|| {
            list.push(n);
            list.len() as u32 - 1
        })
    }
}

fn in_body(body: &mut Body, number: &mut dyn FnMut(Kind, u32) -> u32) {
    for node in &mut body.nodes {
        in_inst(&mut node.inst, number);
        node.reads.iter_mut().for_each(|r| in_from(&mut r.1, number));
        if let Some(base) = node.mem.as_mut().and_then(|mem| mem.base.as_mut()) {
            *base = Value::from_u32(number(Kind::Value, base.as_u32()));
        }
    }
    body.before.iter_mut().for_each(|inst| in_inst(inst, number));
    let register = &mut |v: &mut VReg| *v = VReg(number(Kind::Register, v.0));
    body.restored.iter_mut().for_each(|r| register(&mut r.0));
    body.initial.values_mut().for_each(&mut *register);
    body.live_out.iter_mut().for_each(|l| register(&mut l.1));
    body.exit.1.iter_mut().for_each(&mut *register);
    body.bases.iter_mut().for_each(&mut *register);
    body.based.iter_mut().for_each(|b| register(&mut b.0));
    body.exit.0 = number(Kind::Block, body.exit.0);
}

fn in_inst(inst: &mut VInst, number: &mut dyn FnMut(Kind, u32) -> u32) {
    let mut register = |v: &mut VReg| *v = VReg(number(Kind::Register, v.0));
    for op in &mut inst.ops {
        match op {
            VOp::Use(v) | VOp::Def(v) => register(v),
            VOp::Tied { used, def } => [used, def].into_iter().for_each(&mut register),
            _ => {}
        }
    }
    inst.fixed_uses.iter_mut().chain(&mut inst.fixed_defs).for_each(|f| register(&mut f.0));
    for op in &mut inst.ops {
        if let VOp::Block(b) = op {
            *b = number(Kind::Block, *b);
        }
    }
    if let Some(base) = inst.mem.as_mut().and_then(|mem| mem.base.as_mut()) {
        *base = Value::from_u32(number(Kind::Value, base.as_u32()));
    }
    inst.loc = number(Kind::Line, inst.loc);
}

fn in_from(from: &mut From, number: &mut dyn FnMut(Kind, u32) -> u32) {
    if let From::Outside(v) = from {
        *v = VReg(number(Kind::Register, v.0));
    }
}
