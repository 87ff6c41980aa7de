//! An operation rewritten by a rule: the right side is evaluated or built.

use super::{Legaliser, MAX_DEPTH, whole};
use ciphermill_ir::{BinOp, Op, Value, bits};
use ciphermill_machine::Rule;
use ciphermill_machine::eval::{Env, eval};
use ciphermill_machine::sem::Expr;
use ciphermill_patterns::matcher::{Bind, Binds};
use ciphermill_patterns::pat::Pat;
use ciphermill_patterns::wanted;
use ciphermill_vcode::CompileError;

/// A rule's constants, for evaluating expressions of them alone.
struct Constants<'a>(&'a Binds);

impl Env for Constants<'_> {
    fn imm(&self, index: usize) -> Option<i64> {
        match self.0.get(index).copied()?? {
            Bind::Imm(v) => Some(v),
            Bind::Zero(_) => Some(0),
            Bind::Val(_) | Bind::Load(_) => None,
        }
    }
}

impl<'a> Legaliser<'a> {
    pub(super) fn rewrite(&mut self, op: Op, args: &[Value], loc: u32, depth: u32) -> Result<Value, CompileError> {
        let fail = || CompileError::NoInstruction { operation: wanted::semantics(op), loc };
        if depth > MAX_DEPTH {
            return Err(fail());
        }
        // A selection is matched as if its condition were masked.
        let mut args = args.to_vec();
        if op == Op::Select && self.booleans.contains(&args[0]) {
            let one = self.func.make_inst(Op::Const(1), &[], &[self.word()], 0);
            let one = self.func.result(one);
            let masked = self.func.make_inst(Op::Bin(BinOp::And), &[args[0], one], &[self.word()], 0);
            args[0] = self.func.result(masked);
        }
        for i in 0..self.rules().len() {
            if self.active.contains(&i) {
                continue;
            }
            let Some(p) = &self.rules()[i] else { continue };
            let Some(binds) = self.matcher.pattern(self.func, &p.from, &p.vars, self.bits, op, &args) else { continue };
            let rule: &'a Rule = p.rule;
            if let Some(when) = &rule.when
                && self.evaluate(when, &binds).is_none_or(|v| v == 0)
            {
                continue;
            }
            self.active.push(i);
            let mut lets = Vec::new();
            for e in &rule.lets {
                let v = self.build(e, &binds, &lets, loc, depth + 1)?;
                lets.push(v);
            }
            let v = self.build(&rule.to, &binds, &lets, loc, depth + 1);
            self.active.pop();
            return v;
        }
        Err(fail())
    }

    /// The value of an expression of a rule's constants; None when it has others.
    pub(super) fn evaluate(&self, e: &Expr, binds: &Binds) -> Option<u64> {
        eval(e, self.bits as u8, &Constants(binds))
    }

    /// Make the value of a rule's expression in the current block.
    pub(super) fn build(
        &mut self,
        e: &Expr,
        binds: &Binds,
        lets: &[Value],
        loc: u32,
        depth: u32,
    ) -> Result<Value, CompileError> {
        if let Some(c) = self.evaluate(e, binds) {
            return self.make(Op::Const(c), &[], loc, depth);
        }
        if self.is_zero(e, binds, lets) {
            return self.make(Op::Const(0), &[], loc, depth);
        }
        if let Expr::Bin { op: BinOp::Add | BinOp::Or | BinOp::Xor, a, b, .. } = e {
            for (part, other) in [(a, b), (b, a)] {
                if self.is_zero(part, binds, lets) {
                    return self.build(other, binds, lets, loc, depth);
                }
            }
        }
        if let Some((pat, leaves)) = whole::cover(e, self.matcher) {
            let mut values = Vec::with_capacity(leaves.len());
            for (operand, leaf) in leaves {
                values.push((operand, self.build(leaf, binds, lets, loc, depth)?));
            }
            return Ok(self.as_it_stands(pat, &values, loc));
        }
        let (op, args): (Op, Vec<&Expr>) = match e {
            Expr::Operand(i) => {
                return match binds[*i] {
                    Some(Bind::Val(v)) => Ok(v),
                    _ => Err(CompileError::NoInstruction { operation: format!("unbound variable {i} of a rule"), loc }),
                };
            }
            Expr::Temp(i) => return Ok(lets[*i]),
            Expr::Bin { op, a, b, .. } => (Op::Bin(*op), vec![a, b]),
            Expr::Un { op, a, .. } => (Op::Un(*op), vec![a]),
            Expr::Cmp { op, a, b, .. } => (Op::Cmp(*op), vec![a, b]),
            Expr::Slice { a, lo, width } => {
                let a = self.build(a, binds, lets, loc, depth)?;
                let by = self.make(Op::Const(u64::from(*lo)), &[], loc, depth)?;
                let shifted = self.make(Op::Bin(BinOp::ShrU), &[a, by], loc, depth)?;
                let mask = self.make(Op::Const(ciphermill_ir::ops::mask(u32::from(*width))), &[], loc, depth)?;
                return self.make(Op::Bin(BinOp::And), &[shifted, mask], loc, depth);
            }
            other => {
                return Err(CompileError::NoInstruction { operation: format!("{other:?} in a rule"), loc });
            }
        };
        let args = args.into_iter().map(|a| self.build(a, binds, lets, loc, depth)).collect::<Result<Vec<_>, _>>()?;
        self.make(op, &args, loc, depth)
    }

    /// Has a rule's expression no bits, as the upper half of a word that is known to be
    /// a half, and what that is multiplied with?
    pub(super) fn is_zero(&self, e: &Expr, binds: &Binds, lets: &[Value]) -> bool {
        let zero = |e: &Expr| self.is_zero(e, binds, lets);
        let value = |e: &Expr| match e {
            Expr::Operand(i) => match binds[*i] {
                Some(Bind::Val(v)) => Some(v),
                _ => None,
            },
            Expr::Temp(i) => lets.get(*i).copied(),
            _ => None,
        };
        match e {
            Expr::Bin { op: BinOp::ShrU, a, b, .. } => {
                let beyond = |v: Value, by: u64| by < u64::from(self.bits) && bits::possible(self.func, v) >> by == 0;
                value(a).zip(self.evaluate(b, binds)).is_some_and(|(v, by)| beyond(v, by)) || zero(a)
            }
            Expr::Bin { op: BinOp::Mul | BinOp::And, a, b, .. } => zero(a) || zero(b),
            Expr::Bin { op: BinOp::Add | BinOp::Or | BinOp::Xor, a, b, .. } => zero(a) && zero(b),
            Expr::Bin { op: BinOp::Shl, a, .. } => zero(a),
            _ => false,
        }
    }

    /// The nodes of an instruction's pattern, for the selector to find whole.
    pub(super) fn as_it_stands(&mut self, pat: &Pat, leaves: &[(usize, Value)], loc: u32) -> Value {
        let (op, args): (Op, Vec<&Pat>) = match pat {
            Pat::Const(c) => (Op::Const(*c), vec![]),
            Pat::Bin(op, a, b) => (Op::Bin(*op), vec![a, b]),
            Pat::Un(op, a) => (Op::Un(*op), vec![a]),
            Pat::Cmp(op, a, b) => (Op::Cmp(*op), vec![a, b]),
            Pat::Select(c, a, b) => (Op::Select, vec![c, a, b]),
            Pat::Reg(i) | Pat::Imm(i) => return leaves.iter().find(|l| l.0 == *i).expect("every leaf is covered").1,
            Pat::Load { .. } | Pat::Low(_) | Pat::Apply(..) => unreachable!("covers have neither"),
        };
        let args: Vec<Value> = args.into_iter().map(|a| self.as_it_stands(a, leaves, loc)).collect();
        let inst = self.func.make_inst(op, &args, &[self.result(op)], loc);
        self.func.blocks[self.cur].insts.push(inst);
        self.func.result(inst)
    }
}
