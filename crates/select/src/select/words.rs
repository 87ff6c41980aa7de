//! Chains of instructions for values of several words ([`Op::Chain`]), written out.
//!
//! Nothing matches patterns here: which instructions they are made of the machine's file says (`[chains]`). All parts of a
//! chain stand one behind the other, and what is put between them later, moves and spills, leaves carries alone.

use super::Selector;
use ciphermill_ir::{Block, Chain, CmpOp, Inst, Op, Value};
use ciphermill_machine::{Chains, InstrId, OperandKind, Reg};
use ciphermill_vcode::CompileError;
use ciphermill_vcode::{Inverse, VBlock, VInst, VKind, VOp, VReg};
use smallvec::SmallVec;

impl Selector<'_> {
    /// The comparison of several words that a branch hangs on.
    pub(super) fn chained(&self, block: Block, cond: Value) -> Option<(CmpOp, Inst)> {
        let inst = self.func.def_inst(cond)?;
        match self.func.insts[inst].op {
            Op::Chain(Chain::Compare(op), _) if self.home.get(&inst) == Some(&block) => Some((op, inst)),
            _ => None,
        }
    }

    /// Does an operation compute values of several words, word by word?
    pub(super) fn in_words(&self, inst: Inst) -> bool {
        let data = &self.func.insts[inst];
        matches!(data.op, Op::Chain(..)) || matches!(data.op, Op::Apply(_)) && data.results.len() > 1
    }

    /// A recognised function of whole values: the parts of its template.
    pub(super) fn emit_function(&mut self, inst: Inst, function: u16) -> Result<(), CompileError> {
        let data = &self.func.insts[inst];
        let (args, results) = (data.args.clone(), data.results.clone());
        if !results.iter().any(|v| self.needed.contains(v)) {
            return Ok(());
        }
        let matcher = self.matcher;
        let found = matcher.function(function).ok_or_else(|| self.no_instruction(inst))?;
        let mut ops: Vec<Option<VOp>> = vec![None; found.operands.len()];
        found.fixed.iter().for_each(|&(i, value)| ops[i] = Some(VOp::Imm(value)));
        let mut words = args.iter();
        for (i, operand) in found.operands.iter().enumerate() {
            if let (OperandKind::Reg { used: true, .. }, Some(&v)) = (&operand.kind, words.clone().next()) {
                words.next();
                ops[i] = Some(self.word(v));
            }
        }
        let vregs: Vec<VReg> = results.iter().map(|&v| self.vreg(v)).collect();
        for (i, &to) in found.results().zip(&vregs).skip(1) {
            ops[i] = Some(VOp::Def(to));
        }
        let mut expansion = crate::constants::Expansion { machine: self.machine, new_vreg: &mut self.vfunc.vregs };
        let made = expansion.expand(found, &ops, vregs.first().copied(), None)?;
        let (role, loc) = (self.role(inst), data.loc);
        self.out.extend(made.into_iter().map(|i| VInst { role, loc, ..i }));
        Ok(())
    }

    fn chains(&self) -> Result<&Chains, CompileError> {
        let lacking = || CompileError::Internal("a chain of words on a machine without `[chains]`".into());
        self.machine.chains.as_ref().ok_or_else(lacking)
    }

    pub(super) fn emit_chain(&mut self, inst: Inst, chain: Chain, bits: u8) -> Result<(), CompileError> {
        if let Some(steps) = self.carries.of(chain) {
            self.emit_carried(inst, steps);
            return Ok(());
        }
        let chains = self.chains()?.clone();
        let args: Vec<Value> = self.args(inst).into_iter().collect();
        let results = self.func.insts[inst].results.clone();
        if !results.iter().any(|v| self.needed.contains(v)) || matches!(chain, Chain::Compare(_)) {
            return Ok(());
        }
        let first = self.out.len();
        let (a, b) = args.split_at(args.len() / 2);
        match chain {
            Chain::Add | Chain::Sub => {
                let constants: Option<Vec<u64>> = b.iter().map(|&v| self.func.as_const(v)).collect();
                let with_immediates = constants.and_then(|words| immediates(&chains, chain == Chain::Add, words, bits));
                let (plain, other): ([InstrId; 2], Vec<VOp>) = match with_immediates {
                    Some((instrs, words)) => (instrs, words.into_iter().map(|w| VOp::Imm(w as i64)).collect()),
                    _ => {
                        let plain = if chain == Chain::Add { chains.add } else { chains.sub };
                        (plain, b.iter().map(|&v| self.word(v)).collect())
                    }
                };
                for (k, (&a, other)) in a.iter().zip(other).enumerate() {
                    let from = self.word(a);
                    let to = self.vreg(results[k]);
                    self.part(plain[k.min(1)], Some(from), Some(to), Some(other));
                }
            }
            Chain::ShrU | Chain::ShrS | Chain::RotR => {
                let mut instr = match chain {
                    Chain::ShrU => chains.shift_right[0],
                    Chain::ShrS => chains.shift_sign,
                    _ => {
                        // The lowest bit goes round by the carry.
                        let (from, to) = (self.word(args[0]), self.vfunc.new_vreg());
                        self.part(chains.shift_right[0], Some(from), Some(to), None);
                        chains.shift_right[1]
                    }
                };
                for (k, &a) in args.iter().enumerate().rev() {
                    let (from, to) = (self.word(a), self.vreg(results[k]));
                    self.part(instr, Some(from), Some(to), None);
                    instr = chains.shift_right[1];
                }
            }
            Chain::RotL => {
                let mut lowest = None;
                for (k, &a) in args.iter().enumerate() {
                    let from = self.word(a);
                    let to = if k == 0 { self.vfunc.new_vreg() } else { self.vreg(results[k]) };
                    lowest = lowest.or(Some(to));
                    self.part(chains.add[k.min(1)], Some(from), Some(to), Some(from));
                }
                let (to, zero) = (self.vreg(results[0]), self.zero_word());
                self.part(chains.add[1], lowest.map(VOp::Use), Some(to), Some(zero));
            }
            Chain::Mul => {
                let Some((mul, product)) = chains.mul else {
                    return Err(self.no_instruction(inst));
                };
                let (a, b) = (self.word(a[0]), self.word(b[0]));
                let low = chains.mul_low.filter(|_| !self.needed.contains(&results[1]));
                let made: Vec<VReg> = match (product, low) {
                    (_, Some(_)) => vec![self.vreg(results[0])],
                    (None, None) => results.iter().map(|&v| self.vreg(v)).collect(),
                    (Some(_), None) => vec![],
                };
                self.multiply(low.unwrap_or(mul), &made, [a, b]);
                let fixed = product.filter(|_| low.is_none());
                for (&result, reg) in results.iter().zip(fixed.into_iter().flatten()) {
                    if self.needed.contains(&result) {
                        let to = self.vreg(result);
                        let mov = self.mov(VOp::Def(to), VOp::Phys(reg), 0);
                        self.out.push(mov);
                    }
                }
            }
            Chain::Swap => {
                let (from, to) = (self.word(args[0]), self.vreg(results[0]));
                self.part(chains.swap, Some(from), Some(to), None);
            }
            Chain::Below => {
                if !chains.borrow_is_carry || !self.doubled(&chains, bits, a, b) {
                    self.compare(&chains, a, b);
                }
                let to = self.vreg(results[0]);
                self.part(chains.borrow, None, Some(to), None);
            }
            Chain::Compare(_) => {}
        }
        let loc = self.func.insts[inst].loc;
        self.out[first..].iter_mut().for_each(|i| i.loc = loc);
        Ok(())
    }

    /// The comparison and its branch at the end of a block.
    pub(super) fn emit_compared(
        &mut self,
        (op, inst): (CmpOp, Inst),
        negated: bool,
        (taken, fall): (u32, u32),
        vblock: &mut VBlock,
    ) -> Result<(), CompileError> {
        let chains = self.chains()?.clone();
        let args: Vec<Value> = self.args(inst).into_iter().collect();
        let (a, b) = args.split_at(args.len() / 2);
        self.compare(&chains, a, b);
        let at = match op {
            CmpOp::Eq => 0,
            CmpOp::Ne => 1,
            CmpOp::LtU => 2,
            CmpOp::LtS => 4,
            CmpOp::LeU | CmpOp::LeS => return Err(CompileError::Internal("a chain compares by `<=`".into())),
        };
        let at = at ^ usize::from(negated);
        let branch = |s: &Self, at: usize, to: u32| {
            (chains.branches[at], s.fill(chains.branches[at], Some(VOp::Block(to)), &[]))
        };
        let (instr, ops) = branch(self, at, taken);
        self.out.push(VInst::new(VKind::Branch, instr, &ops, self.func.insts[inst].loc));
        let (instr, ops) = branch(self, at ^ 1, fall);
        vblock.inverse = Some(Inverse { instr, ops });
        vblock.succs = vec![(taken, vec![]), (fall, vec![])];
        Ok(())
    }

    /// Has the instruction right before doubled the word whose sign is asked for? Then the carry is that sign.
    fn doubled(&self, chains: &Chains, bits: u8, a: &[Value], b: &[Value]) -> bool {
        let ([most], [word]) = (a, b) else { return false };
        let Some(&used) = self.vregs.get(&self.func.resolve(*word)) else { return false };
        let most = self.func.as_const(*most) == Some(ciphermill_ir::mask(u32::from(bits) - 1));
        let twice = |inst: &VInst| {
            chains.add.contains(&inst.instr)
                && inst.ops.iter().all(|o| match o {
                    VOp::Tied { used: v, .. } | VOp::Use(v) => *v == used,
                    _ => false,
                })
        };
        most && self.out.last().is_some_and(twice)
    }

    fn compare(&mut self, chains: &Chains, a: &[Value], b: &[Value]) {
        for (k, (&a, &b)) in a.iter().zip(b).enumerate() {
            let constant = self.func.as_const(b).filter(|&c| c != 0 && k == 0);
            let left = self.word(a);
            let (instr, right) = match (constant, chains.compare_imm) {
                (Some(c), Some(instr)) if matches!(left, VOp::Use(_)) => (instr, VOp::Imm(c as i64)),
                _ => (chains.compare[k.min(1)], self.word(b)),
            };
            if self.overwrites(instr) {
                let gone = self.vfunc.new_vreg();
                self.part(instr, Some(left), Some(gone), Some(right));
                continue;
            }
            self.part(instr, None, None, Some(left));
            if let Some(last) = self.out.last_mut()
                && let Some(op) = last.ops.last_mut()
            {
                *op = right;
            }
        }
    }

    /// A product of two operands, into the registers that it writes.
    fn multiply(&mut self, instr: InstrId, made: &[VReg], factors: [VOp; 2]) {
        let (mut made, mut factors) = (made.iter(), factors.into_iter());
        let ops: SmallVec<[VOp; 4]> = self.machine.instrs[usize::from(instr.0)]
            .operands
            .iter()
            .map(|o| match o.kind {
                OperandKind::Reg { def: true, .. } => made.next().map(|&v| VOp::Def(v)),
                _ => factors.next(),
            })
            .map(|op| op.unwrap_or(VOp::Imm(0)))
            .collect();
        self.out.push(VInst::new(VKind::Normal, instr, &ops, 0));
    }

    /// Does an instruction write over one of its sources?
    fn overwrites(&self, instr: InstrId) -> bool {
        let tied = |k: &OperandKind| matches!(k, OperandKind::Reg { def: true, used: true, .. });
        self.machine.instrs[usize::from(instr.0)].operands.iter().any(|o| tied(&o.kind))
    }

    /// A value as an operand: a zero is the register that reads as zero, if there is one.
    fn word(&mut self, v: Value) -> VOp {
        match self.operand(v) {
            VOp::Const(0) => self.zero_word(),
            op => op,
        }
    }

    fn zero_word(&self) -> VOp {
        let file = self.machine.abi.allocatable.first().map(|r| self.machine.regs[usize::from(r.0)].file);
        let zero: Option<Reg> = file.and_then(|file| self.matcher.zero(file));
        zero.map_or(VOp::Const(0), VOp::Phys)
    }

    /// One instruction: its register that is overwritten is `from` and becomes `to`, the first other operand is `other`.
    fn part(&mut self, instr: InstrId, from: Option<VOp>, to: Option<VReg>, other: Option<VOp>) {
        // What is overwritten has to be in a register that may be.
        let from = match from {
            Some(op @ (VOp::Const(_) | VOp::Phys(_))) => {
                let copy = self.vfunc.new_vreg();
                let mov = self.mov(VOp::Def(copy), op, 0);
                self.out.push(mov);
                Some(copy)
            }
            Some(VOp::Use(v)) => Some(v),
            _ => None,
        };
        let machine = self.machine;
        let ops: SmallVec<[VOp; 4]> = machine.instrs[usize::from(instr.0)]
            .operands
            .iter()
            .map(|o| match (&o.kind, from, to) {
                (OperandKind::Reg { def: true, used: true, .. }, Some(used), Some(def)) => VOp::Tied { used, def },
                (OperandKind::Reg { def: true, .. }, _, Some(def)) => VOp::Def(def),
                _ => other.unwrap_or(VOp::Imm(0)),
            })
            .collect();
        self.out.push(VInst::new(VKind::Normal, instr, &ops, 0));
    }
}

/// Instructions that add or take away a number, and its words, or those of its negative: whichever has the smaller ones,
/// which may be shorter to write.
fn immediates(chains: &Chains, add: bool, words: Vec<u64>, bits: u8) -> Option<([InstrId; 2], Vec<u64>)> {
    let (same, opposite) = if add { (chains.add_imm, chains.sub_imm) } else { (chains.sub_imm, chains.add_imm) };
    let other = negated(&words, bits);
    let smaller = other.iter().sum::<u64>() < words.iter().sum::<u64>();
    match (same, opposite) {
        (Some(instrs), None) => Some((instrs, words)),
        (Some(instrs), Some(_)) if !smaller => Some((instrs, words)),
        (_, Some(instrs)) => Some((instrs, other)),
        (None, None) => None,
    }
}

/// The words of the negative of a number.
fn negated(words: &[u64], bits: u8) -> Vec<u64> {
    let ones = ciphermill_ir::mask(bits.into());
    let mut carry = 1;
    words
        .iter()
        .map(|w| {
            let sum = (!w & ones) + carry;
            carry = sum >> bits;
            sum & ones
        })
        .collect()
}
