//! Writing the code of a match: applications of the machine's functions, and the
//! rotates, masks and sums around them.
//!
//! Which values are written anew is for [`super::rewrite`] to say.

use super::cover::Step;
use super::linear::Match;
use super::products::{self, Cut};
use super::units::{Low, Unit};
use ciphermill_ir::{BinOp, Func, Inst, Op, Type, UnOp, Value};
use std::collections::HashMap;

/// What there is already in a block.
#[derive(Default)]
pub struct Emitted {
    /// By function, operands and type.
    applied: HashMap<(u16, Vec<Value>, Type), Value>,
    /// A unit's results and their lower halves, rotated.
    turned: HashMap<(Value, Option<Low>, u32), Value>,
}

/// Where the new instructions of a value go.
pub struct Emitter<'a> {
    pub func: &'a mut Func,
    pub units: &'a [Unit],
    pub insts: Vec<Inst>,
    pub loc: u32,
    /// Of the value.
    pub ty: Type,
    pub made: &'a mut Emitted,
}

impl Emitter<'_> {
    pub fn op(&mut self, op: Op, args: &[Value]) -> Value {
        let ty = args.first().map_or(self.ty, |&v| self.func.ty(self.func.resolve(v)));
        self.typed(op, args, ty)
    }

    fn typed(&mut self, op: Op, args: &[Value], ty: Type) -> Value {
        let inst = self.func.make_inst(op, args, &[ty], self.loc);
        self.insts.push(inst);
        self.func.result(inst)
    }

    pub fn function(&mut self, function: u16, args: &[Value], ty: Type) -> Value {
        let args: Vec<Value> = args.iter().map(|&a| self.func.resolve(a)).collect();
        let made = (function, args, ty);
        if let Some(&value) = self.made.applied.get(&made) {
            return value;
        }
        let value = self.typed(Op::Apply(function), &made.1, ty);
        self.made.applied.insert(made, value);
        value
    }

    fn with_constant(&mut self, op: BinOp, v: Value, constant: u64) -> Value {
        let ty = self.func.ty(self.func.resolve(v));
        let constant = self.typed(Op::Const(constant & ty.mask()), &[], ty);
        self.op(Op::Bin(op), &[v, constant])
    }

    pub fn rotated(&mut self, v: Value, by: u32) -> Value {
        if by == 0 { v } else { self.with_constant(BinOp::RotL, v, by.into()) }
    }

    /// A step's result, rotated: shifted where that is the same, which is a single
    /// instruction on machines without rotates too.
    fn turned(&mut self, v: Value, step: &Step) -> Value {
        let unit = &self.units[step.unit];
        let (turn, possible) = (step.turn, unit.sum.possible() as u32);
        let gone = |bits: u32| unit.accumulator.is_none() && turn <= bits;
        match unit.low {
            Some(low) => self.lower(v, turn, low),
            None if turn == 0 => v,
            None if gone(possible.leading_zeros()) => self.with_constant(BinOp::Shl, v, turn.into()),
            None if unit.accumulator.is_none() && 32 - turn <= possible.trailing_zeros() => {
                self.with_constant(BinOp::ShrU, v, (32 - turn).into())
            }
            None => self.rotated(v, turn),
        }
    }

    /// The lower half of a word, rotated, as the machine holds words of 32 bits.
    fn lower(&mut self, word: Value, turn: u32, low: Low) -> Value {
        if !low.signed {
            let half = self.typed(Op::Wrap, &[word], Type::I32);
            let half = self.rotated(half, turn);
            return if self.ty == Type::I64 { self.typed(Op::ZExt, &[half], Type::I64) } else { half };
        }
        if turn == 0 {
            return self.op(Op::Un(UnOp::SExt32), &[word]);
        }
        let up = self.with_constant(BinOp::Shl, word, turn.into());
        let cut = self.with_constant(BinOp::And, word, u64::from(u32::MAX));
        let down = self.with_constant(BinOp::ShrU, cut, (32 - turn).into());
        let up = self.op(Op::Un(UnOp::SExt32), &[up]);
        self.op(Op::Bin(BinOp::Or), &[up, down])
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
        self.function(function, &words[..sources.min(words.len())], self.ty)
    }

    pub fn linear(&mut self, m: &Match) -> Value {
        let mut terms = m.rest.clone();
        for &(turned, source) in m.more.iter().chain([&(m.turned, m.source)]) {
            let source = self.rotated(source, turned.before);
            let product = match (turned.function, turned.by) {
                (None, _) => source,
                (Some(function), None) => self.matrix(function, &[source, source]),
                (Some(function), Some(constants)) => {
                    let constants = self.typed(Op::Const(constants.into()), &[], self.ty);
                    self.function(function, &[source, constants], self.ty)
                }
            };
            terms.push(self.rotated(product, turned.behind));
        }
        self.sum(&terms).unwrap_or(m.source)
    }

    /// A product of two words, of whose bits only some may count.
    pub fn multiplied(&mut self, m: &products::Match, function: u16) -> Value {
        let cut = |out: &mut Self, n: usize| match m.cut_off[n] {
            false => m.factors[n],
            true => out.with_constant(BinOp::And, m.factors[n], m.masks[n]),
        };
        let factors = [cut(self, 0), cut(self, 1)];
        let product = self.function(function, &factors, self.ty);
        let Cut { down, mask, signed } = m.cut;
        let moved = match down {
            0 => product,
            n if n > 0 => self.with_constant(BinOp::ShrU, product, n.unsigned_abs().into()),
            n => self.with_constant(BinOp::Shl, product, n.unsigned_abs().into()),
        };
        match signed {
            true => self.op(Op::Un(UnOp::SExt32), &[moved]),
            false if mask == self.ty.mask() => moved,
            false => self.with_constant(BinOp::And, moved, mask),
        }
    }

    /// Tables that keep only part of the accumulator are gathered in words of
    /// their own; those that add to all of it then add to the sum of the rest.
    pub fn tables(&mut self, steps: &[Step], rest: &[Value]) -> Value {
        let mut terms = rest.to_vec();
        let (mut adding, mut words) = (Vec::new(), Vec::<(u64, Vec<&Step>)>::new());
        let all = self.ty.mask();
        for step in steps {
            let unit = &self.units[step.unit];
            let Some(accumulator) = unit.accumulator else {
                terms.push(self.apply(step, None));
                continue;
            };
            let fresh = !accumulator.keep & all;
            match words.iter_mut().find(|(written, _)| written & accumulator.keep == *written) {
                _ if unit.adds() => adding.push(step),
                Some((written, list)) => {
                    *written |= fresh;
                    list.push(step);
                }
                None => words.push((fresh, vec![step])),
            }
        }
        for (written, list) in words {
            let any_old = written == all && self.units[list[0].unit].regardless.is_some();
            let mut word = if any_old { None } else { Some(self.typed(Op::Const(0), &[], self.ty)) };
            for step in list {
                word = Some(self.apply(step, word));
            }
            terms.extend(word);
        }
        let mut sum = match self.sum(&terms) {
            Some(sum) => sum,
            None => self.typed(Op::Const(0), &[], self.ty),
        };
        // The instruction adds all of a word, where the sum would have read half of it.
        if !adding.is_empty() && self.ty == Type::I32 && self.func.ty(self.func.resolve(sum)) == Type::I64 {
            sum = self.typed(Op::Wrap, &[sum], Type::I32);
        }
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
        let ty = if unit.low.is_some() { Type::I64 } else { self.ty };
        let down = |out: &mut Self, v: Value| match step.down {
            0 => v,
            n if n > 0 => out.with_constant(BinOp::ShrU, v, n.unsigned_abs().into()),
            n => out.with_constant(BinOp::Shl, v, n.unsigned_abs().into()),
        };
        let sources: Vec<Option<Value>> = step.sources.iter().map(|s| s.map(|v| down(self, v))).collect();
        let args: Vec<Value> = sources.iter().filter_map(|s| s.or(accumulator)).collect();
        let value = self.function(function, &args, ty);
        let turned = (value, self.units[step.unit].low, step.turn);
        let value = match self.made.turned.get(&turned) {
            Some(&there) => there,
            None => self.turned(value, step),
        };
        self.made.turned.insert(turned, value);
        if step.mask == u64::MAX { value } else { self.with_constant(BinOp::And, value, step.mask) }
    }
}
