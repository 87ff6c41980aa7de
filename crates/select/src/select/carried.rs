//! Sums and differences of two words, written out as the two instructions that hand a carry on
//! ([`crate::carries`]), or as one that adds a product.

use super::Selector;
use crate::carries::Step;
use ciphermill_ir::{BinOp, Chain, Inst, Op, Value};
use ciphermill_machine::OperandKind;
use ciphermill_vcode::{VInst, VKind, VOp, VReg};

impl Selector<'_> {
    pub(super) fn emit_carried(&mut self, inst: Inst, steps: [Step; 2]) {
        let results = self.func.insts[inst].results.clone();
        if !results.iter().any(|v| self.needed.contains(v)) {
            return;
        }
        let loc = self.func.insts[inst].loc;
        let made: Vec<VReg> = results.iter().map(|&v| self.vreg(v)).collect();
        if let (Some((sum, factors)), Some(mul_add)) = (self.product_added(inst), self.carries.mul_add) {
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

    /// The words that a product is added to and its factors, where one instruction adds it and nothing else wants it.
    pub(super) fn product_added(&self, inst: Inst) -> Option<(Vec<Value>, Vec<Value>)> {
        self.carries.mul_add?;
        let Op::Chain(Chain::Add, _) = self.func.insts[inst].op else { return None };
        let args = self.args(inst);
        let [a, x, b, y] = args[..] else { return None };
        let made = |v: Value, wanted: BinOp| {
            let def = self.func.def_inst(v).filter(|i| self.func.insts[*i].op == Op::Bin(wanted))?;
            let factors = self.args(def);
            (self.uses.get(&v) == Some(&1) && self.home.get(&def) == self.home.get(&inst)).then_some(factors)
        };
        let product = |low: Value, high: Value| {
            let (p, q) = (made(low, BinOp::Mul)?, made(high, BinOp::MulHiU)?);
            (p == q || p.iter().eq(q.iter().rev())).then_some(p)
        };
        // Words that are overwritten and wanted again would have to be copied.
        let gone = |v: &Value| self.uses.get(v) == Some(&1) && self.func.as_const(*v).is_none();
        let with = |low, high, sum: [Value; 2]| {
            let factors = product(low, high).filter(|_| sum.iter().all(gone))?;
            Some((sum.to_vec(), factors.to_vec()))
        };
        with(b, y, [a, x]).or_else(|| with(a, x, [b, y]))
    }
}
