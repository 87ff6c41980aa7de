//! Sums and differences of two words, written out as the two instructions that hand a carry on
//! ([`crate::carries`]), or as one that adds a product.

use super::Selector;
use crate::carries::{MulAdd, Step};
use ciphermill_ir::{BinOp, Chain, CmpOp, Inst, Op, Value};
use ciphermill_machine::OperandKind;
use ciphermill_vcode::{VInst, VKind, VOp, VReg};

/// A value of two words, the lower first.
type Double = (Value, Value);

/// A product that one instruction adds.
pub(super) struct Added {
    mul_add: MulAdd,
    /// What it is added to.
    pub sum: [Value; 2],
    pub factors: [Value; 2],
}

impl Selector<'_> {
    pub(super) fn emit_carried(&mut self, inst: Inst, steps: [Step; 2]) {
        let results = self.func.insts[inst].results.clone();
        if !results.iter().any(|v| self.needed.contains(v)) {
            return;
        }
        let loc = self.func.insts[inst].loc;
        let made: Vec<VReg> = results.iter().map(|&v| self.vreg(v)).collect();
        if let Some(Added { mul_add, sum, factors }) = self.product_added(inst) {
            let (sum, factors): (Vec<_>, Vec<_>) = (self.registers(&sum), self.registers(&factors));
            let at = |list: &[usize], i: usize| list.iter().position(|&o| o == i);
            let operand = |i: usize| match (at(&mul_add.sum, i), at(&mul_add.factors, i)) {
                (Some(n), _) => VOp::Tied { used: sum[n], def: made[n] },
                (_, n) => VOp::Use(factors[n.unwrap_or(0)]),
            };
            let ops: Vec<VOp> = (0..sum.len() + factors.len()).map(operand).collect();
            self.out.push(VInst::new(VKind::Normal, mul_add.instr, &ops, loc));
            return;
        }
        // What makes a constant may set flags: it comes before both.
        let args = self.registers(&self.args(inst));
        let (a, b) = args.split_at(args.len() / 2);
        for (n, step) in steps.iter().enumerate() {
            let operand = |(i, o): (usize, &ciphermill_machine::Operand)| {
                let used = if i == step.left { a[n] } else { b[n] };
                match o.kind {
                    OperandKind::Reg { def: true, used: true, .. } => VOp::Tied { used, def: made[n] },
                    OperandKind::Reg { def: true, .. } => VOp::Def(made[n]),
                    _ => VOp::Use(used),
                }
            };
            let spec = &self.machine.instrs[usize::from(step.instr.0)].operands;
            let ops: Vec<VOp> = spec.iter().enumerate().map(operand).collect();
            self.out.push(VInst::new(VKind::Normal, step.instr, &ops, loc));
        }
    }

    /// Values in registers of their own.
    fn registers(&mut self, values: &[Value]) -> Vec<VReg> {
        let one = |&v: &Value| match self.operand(v) {
            VOp::Use(v) => v,
            constant => {
                let copy = self.vfunc.new_vreg();
                let mov = self.mov(VOp::Def(copy), constant, 0);
                self.out.push(mov);
                copy
            }
        };
        values.iter().map(one).collect()
    }

    /// The instruction that adds a product, where nothing else wants the product.
    pub(super) fn product_added(&self, inst: Inst) -> Option<Added> {
        let sum = self.double_sum(inst)?;
        if let Some(mul_add) = self.carries.mul_add_both {
            let found = sum.iter().find_map(|&(a, b)| {
                let (factors, words) = match self.product(a) {
                    Some(factors) => (factors, self.widened_sum(b)?),
                    None => {
                        let (factors, word) = self.product_and_word(a)?;
                        (factors, [word, self.widened(b)?])
                    }
                };
                Some(Added { mul_add, sum: words, factors })
            });
            if found.is_some() {
                return found;
            }
        }
        let mul_add = self.carries.mul_add?;
        // Words that are overwritten and wanted again would have to be copied.
        let gone = |v: &Value| self.uses.get(v) == Some(&1) || self.func.as_const(*v).is_some();
        sum.iter().find_map(|&(a, b)| {
            let factors = self.product(a).filter(|_| [b.0, b.1].iter().all(gone))?;
            Some(Added { mul_add, sum: [b.0, b.1], factors })
        })
    }

    /// The operands of a sum of two values of two words: both ways round, and with either upper word for a lower one, as
    /// words commute one by one.
    fn double_sum(&self, inst: Inst) -> Option<[(Double, Double); 4]> {
        let (Op::Chain(Chain::Add, _), &[a, x, b, y]) = (self.func.insts[inst].op, &self.args(inst)[..]) else {
            return None;
        };
        Some([((a, x), (b, y)), ((b, y), (a, x)), ((a, y), (b, x)), ((b, x), (a, y))])
    }

    /// The operation that makes a value which is read so often, if it is one of this block.
    fn made(&self, v: Value, uses: u32) -> Option<Inst> {
        let def = self.func.def_inst(v).filter(|i| self.home.get(i) == Some(&self.current))?;
        (self.uses.get(&v) == Some(&uses)).then_some(def)
    }

    /// The factors of a product of two words.
    fn product(&self, (low, high): Double) -> Option<[Value; 2]> {
        let factors = |v: Value, wanted: BinOp| {
            let def = self.made(v, 1).filter(|i| self.func.insts[*i].op == Op::Bin(wanted))?;
            Some([self.args(def)[0], self.args(def)[1]])
        };
        let (p, q) = (factors(low, BinOp::Mul)?, factors(high, BinOp::MulHiU)?);
        (p == q || p == [q[1], q[0]]).then_some(p)
    }

    /// The word that a value of two words is.
    fn widened(&self, (low, high): Double) -> Option<Value> {
        (self.func.as_const(high) == Some(0)).then_some(low)
    }

    /// Factors and word, of a product that a word was added to.
    fn product_and_word(&self, (low, high): Double) -> Option<([Value; 2], Value)> {
        let (inner, other) = (self.made(low, 1)?, self.made(high, 1)?);
        let results = &self.func.insts[inner].results;
        if inner != other || results[..] != [low, high] {
            return None;
        }
        self.double_sum(inner)?.iter().find_map(|&(a, b)| Some((self.product(a)?, self.widened(b)?)))
    }

    /// The two words that a value of two words is the sum of.
    fn widened_sum(&self, (low, high): Double) -> Option<[Value; 2]> {
        let (sum, carry) = (self.made(low, 2)?, self.made(high, 1)?);
        let (Op::Bin(BinOp::Add), [a, b]) = (self.func.insts[sum].op, &self.args(sum)[..]) else { return None };
        let (Op::Cmp(CmpOp::LtU), [below, word]) = (self.func.insts[carry].op, &self.args(carry)[..]) else {
            return None;
        };
        (*below == low && [a, b].contains(&word)).then_some([*a, *b])
    }
}
