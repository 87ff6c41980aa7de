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
        if let Some(mul_add) = self.carries.mul_add_both
            && let Some((factors, sum)) = self.product_and_words(inst)
        {
            return Some(Added { mul_add, sum, factors });
        }
        let sum = self.double_sum(inst)?;
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

    /// The factors and the words, where a sum is that of a product of two words and of two words.
    fn product_and_words(&self, inst: Inst) -> Option<([Value; 2], [Value; 2])> {
        let (lows, highs) = self.terms(inst)?;
        let [high] = highs[..] else { return None };
        (0..lows.len()).find_map(|n| {
            let factors = self.product((lows[n], high))?;
            let mut others = lows.clone();
            others.remove(n);
            Some((factors, <[Value; 2]>::try_from(others).ok()?))
        })
    }

    /// The lower and the upper words that a sum of two values of two words is made of, one of which may be such a sum
    /// itself; but for zeros. Words commute one by one, so it does not matter which went with which.
    fn terms(&self, inst: Inst) -> Option<(Vec<Value>, Vec<Value>)> {
        let sums = self.double_sum(inst)?;
        let [((a, x), (b, y)), ..] = sums;
        let inner = sums.iter().find_map(|&(inner, (low, high))| {
            let (lows, highs) = self.inner_terms(inner)?;
            Some(([lows, vec![low]].concat(), [highs, vec![high]].concat()))
        });
        let (mut lows, mut highs) = inner.unwrap_or_else(|| (vec![a, b], vec![x, y]));
        [&mut lows, &mut highs].into_iter().for_each(|words| words.retain(|&v| self.func.as_const(v) != Some(0)));
        Some((lows, highs))
    }

    /// The words of a value of two that is a sum, whether its carry was met as one or as a comparison.
    fn inner_terms(&self, (low, high): Double) -> Option<(Vec<Value>, Vec<Value>)> {
        if let Some(inner) = self.made(low, 1).filter(|&i| self.func.insts[i].results[..] == [low, high]) {
            self.made(high, 1)?;
            let [((a, x), (b, y)), ..] = self.double_sum(inner)?;
            return Some((vec![a, b], vec![x, y]));
        }
        let (sum, carry) = (self.made(low, 2)?, self.made(high, 1)?);
        let (Op::Bin(BinOp::Add), [a, b]) = (self.func.insts[sum].op, &self.args(sum)[..]) else { return None };
        let (Op::Cmp(CmpOp::LtU), [below, word]) = (self.func.insts[carry].op, &self.args(carry)[..]) else {
            return None;
        };
        (*below == low && [a, b].contains(&word)).then(|| (vec![*a, *b], Vec::new()))
    }
}
