//! Writing the code of a match: applications of the machine's functions, and the
//! rotates, masks and sums around them.
//!
//! Which values are written anew is for [`super::rewrite`] to say.

use super::cover::Step;
use super::linear::Match;
use super::units::{Meaning, Unit};
use ciphermill_ir::{BinOp, Func, Inst, Op, Type, Value};
use std::collections::HashMap;

/// Where the new instructions of a value go.
pub struct Emitter<'a> {
    pub func: &'a mut Func,
    pub units: &'a [Unit],
    pub insts: Vec<Inst>,
    pub loc: u32,
    /// What has been applied in this block already, and to what.
    pub made: &'a mut HashMap<(u16, Vec<Value>), Value>,
}

impl Emitter<'_> {
    pub fn op(&mut self, op: Op, args: &[Value]) -> Value {
        let inst = self.func.make_inst(op, args, &[Type::I32], self.loc);
        self.insts.push(inst);
        self.func.result(inst)
    }

    fn function(&mut self, function: u16, args: &[Value]) -> Value {
        let args: Vec<Value> = args.iter().map(|&a| self.func.resolve(a)).collect();
        if let Some(&value) = self.made.get(&(function, args.clone())) {
            return value;
        }
        let value = self.op(Op::Apply(function), &args);
        self.made.insert((function, args), value);
        value
    }

    fn with_constant(&mut self, op: BinOp, v: Value, constant: u32) -> Value {
        let constant = self.op(Op::Const(constant.into()), &[]);
        self.op(Op::Bin(op), &[v, constant])
    }

    pub fn rotated(&mut self, v: Value, by: u32) -> Value {
        if by == 0 { v } else { self.with_constant(BinOp::RotL, v, by) }
    }

    /// A step's result, rotated: shifted where that is the same, which is a single
    /// instruction on machines without rotates too.
    fn turned(&mut self, v: Value, step: &Step) -> Value {
        let possible = step.possible(self.units);
        match step.turn {
            0 => v,
            by if by <= possible.leading_zeros() => self.with_constant(BinOp::Shl, v, by),
            by if u32::BITS - by <= possible.trailing_zeros() => self.with_constant(BinOp::ShrU, v, u32::BITS - by),
            by => self.rotated(v, by),
        }
    }

    pub fn sum(&mut self, terms: &[Value]) -> Option<Value> {
        let (&first, others) = terms.split_first()?;
        Some(others.iter().fold(first, |sum, &t| self.op(Op::Bin(BinOp::Xor), &[sum, t])))
    }

    /// A matrix times words, of which it takes as many as it has sources, and
    /// the sum of `rest`.
    pub fn product(&mut self, function: u16, words: &[Value], rest: &[Value]) -> Value {
        let product = self.matrix(function, words);
        let terms: Vec<Value> = rest.iter().copied().chain([product]).collect();
        self.sum(&terms).unwrap_or(product)
    }

    fn matrix(&mut self, function: u16, words: &[Value]) -> Value {
        let sources = self.units.iter().find(|u| u.function == function).map_or(1, |u| u.sources);
        self.function(function, &words[..sources.min(words.len())])
    }

    pub fn linear(&mut self, m: &Match) -> Value {
        let mut terms = m.rest.clone();
        for &(turned, source) in m.more.iter().chain([&(m.turned, m.source)]) {
            let source = self.rotated(source, turned.before);
            let product = match (turned.function, turned.by) {
                (None, _) => source,
                (Some(function), None) => self.matrix(function, &[source, source]),
                (Some(function), Some(constants)) => {
                    let constants = self.op(Op::Const(constants.into()), &[]);
                    self.function(function, &[source, constants])
                }
            };
            terms.push(self.rotated(product, turned.behind));
        }
        self.sum(&terms).unwrap_or(m.source)
    }

    /// Tables that keep only part of the accumulator are gathered in words of
    /// their own; those that add to all of it then add to the sum of the rest.
    pub fn tables(&mut self, steps: &[Step], rest: &[Value]) -> Value {
        let mut terms = rest.to_vec();
        let (mut adding, mut words) = (Vec::new(), Vec::<(u32, Vec<&Step>)>::new());
        for step in steps {
            match &self.units[step.unit].meaning {
                Meaning::Tables { accumulator: Some(_), keep: u32::MAX, .. } => adding.push(step),
                Meaning::Tables { accumulator: Some(_), keep, .. } => {
                    match words.iter_mut().find(|(written, _)| written & !keep == 0) {
                        Some((written, list)) => {
                            *written |= !keep;
                            list.push(step);
                        }
                        None => words.push((!keep, vec![step])),
                    }
                }
                _ => terms.push(self.apply(step, None)),
            }
        }
        for (written, list) in words {
            let all = written == u32::MAX && self.units[list[0].unit].regardless.is_some();
            let mut word = if all { None } else { Some(self.op(Op::Const(0), &[])) };
            for step in list {
                word = Some(self.apply(step, word));
            }
            terms.extend(word);
        }
        let mut sum = match self.sum(&terms) {
            Some(sum) => sum,
            None => self.op(Op::Const(0), &[]),
        };
        for step in adding {
            sum = self.apply(step, Some(sum));
        }
        sum
    }

    /// A step with a value for its accumulator; without one, what it holds does
    /// not matter.
    pub fn apply(&mut self, step: &Step, accumulator: Option<Value>) -> Value {
        let unit = &self.units[step.unit];
        let function = match accumulator {
            None => unit.regardless.unwrap_or(unit.function),
            Some(_) => unit.function,
        };
        let down = |out: &mut Self, v: Value| match step.down {
            0 => v,
            n if n > 0 => out.with_constant(BinOp::ShrU, v, n.unsigned_abs()),
            n => out.with_constant(BinOp::Shl, v, n.unsigned_abs()),
        };
        let sources: Vec<Option<Value>> = step.sources.iter().map(|s| s.map(|v| down(self, v))).collect();
        let args: Vec<Value> = sources.iter().filter_map(|s| s.or(accumulator)).collect();
        let value = self.function(function, &args);
        let value = self.turned(value, step);
        if step.mask == u32::MAX { value } else { self.with_constant(BinOp::And, value, step.mask) }
    }
}
