//! Which limbs of each value somebody looks at.
//!
//! Backward: nothing is looked at until something that stays needs it, and it spreads from results to operands until
//! nothing changes. Bits carry upwards in sums and products, so those want all limbs below.

use super::width::{ADDRESS_BITS, Known};
use ciphermill_ir::{BinOp, Block, Cfg, CmpOp, Func, InstData, Op, Terminator, UnOp, Value, ValueDef, mask};
use cranelift_entity::SecondaryMap;

/// For each value a bit for each limb.
pub(super) struct Demand {
    of: SecondaryMap<Value, u8>,
}

impl Demand {
    pub fn new(func: &Func, bits: u32, known: Known<'_>) -> Demand {
        let mut found = Finder { func, bits, known, of: SecondaryMap::new(), work: Vec::new() };
        let cfg = Cfg::new(func);
        for &block in &cfg.rpo {
            found.roots(block);
        }
        while let Some(v) = found.work.pop() {
            match func.values[v].def {
                ValueDef::Inst(inst, _) => found.operands(&func.insts[inst], found.of[v]),
                ValueDef::Param(block, index) => {
                    let limbs = found.of[v];
                    for edge in cfg.preds(block) {
                        let targets = func.blocks[edge.from].term.targets();
                        found.want(targets[edge.index as usize].args[usize::from(index)], limbs);
                    }
                }
                ValueDef::Alias(to) => found.want(to, found.of[v]),
            }
        }
        Demand { of: found.of }
    }

    pub fn of(&self, v: Value) -> u8 {
        self.of[v]
    }

    /// The comparison that the branch at the end of a block asks for, if it stands in that block.
    pub fn asks(&self, func: &Func, block: Block, cond: Value) -> Option<(CmpOp, Value, Value)> {
        compared(func, block, cond)
    }
}

fn compared(func: &Func, block: Block, cond: Value) -> Option<(CmpOp, Value, Value)> {
    let inst = func.def_inst(cond)?;
    let Op::Cmp(op) = func.insts[inst].op else { return None };
    let args = &func.insts[inst].args;
    func.blocks[block].insts.contains(&inst).then(|| (op, args[0], args[1]))
}

struct Finder<'a> {
    func: &'a Func,
    bits: u32,
    known: Known<'a>,
    of: SecondaryMap<Value, u8>,
    work: Vec<Value>,
}

impl Finder<'_> {
    fn want(&mut self, v: Value, limbs: u8) {
        let v = self.func.resolve(v);
        if limbs & !self.of[v] != 0 {
            self.of[v] |= limbs;
            self.work.push(v);
        }
    }

    fn all(&self) -> u8 {
        mask(32 / self.bits) as u8
    }

    /// The limbs in which bits are.
    fn limbs(&self, bits: u64) -> u8 {
        (0..32 / self.bits).filter(|k| bits >> (k * self.bits) & mask(self.bits) != 0).map(|k| 1 << k).sum()
    }

    fn bits_of(&self, limbs: u8) -> u64 {
        (0..32 / self.bits).filter(|k| limbs >> k & 1 != 0).map(|k| mask(self.bits) << (k * self.bits)).sum()
    }

    fn roots(&mut self, block: Block) {
        let func = self.func;
        let all = self.all();
        let address = self.limbs(mask(ADDRESS_BITS));
        for &inst in &func.blocks[block].insts {
            let data = &func.insts[inst];
            match data.op {
                Op::Store(access) => {
                    self.want(data.args[0], address);
                    self.want(data.args[1], self.limbs(mask(8 * u32::from(access.bytes).min(4))));
                }
                Op::CallPtr(_) => {
                    self.want(data.args[0], address);
                    data.args[1..].iter().for_each(|&v| self.want(v, all));
                }
                Op::Call(_) | Op::GlobalSet(_) => data.args.iter().for_each(|&v| self.want(v, all)),
                _ => {}
            }
        }
        match &func.blocks[block].term {
            Terminator::Branch { cond, .. } => match compared(func, block, func.resolve(*cond)) {
                Some((_, a, b)) => [a, b].into_iter().for_each(|v| self.want(v, all)),
                None => self.want(*cond, all),
            },
            Terminator::Switch { index, .. } => self.want(*index, all),
            Terminator::Return(values) => values.iter().for_each(|&v| self.want(v, all)),
            Terminator::Jump(_) | Terminator::Trap(_) => {}
        }
    }

    /// What an operation wants of its operands when so many limbs of its result are wanted.
    fn operands(&mut self, data: &InstData, limbs: u8) {
        let all = self.all();
        let upto = mask(8 - limbs.leading_zeros()) as u8;
        let args = &data.args;
        match data.op {
            Op::Bin(op @ (BinOp::And | BinOp::Or | BinOp::Xor)) => {
                for n in [0, 1] {
                    let kept = match self.func.as_const(args[1 - n]) {
                        Some(c) if op == BinOp::And => self.limbs(c),
                        _ => all,
                    };
                    self.want(args[n], limbs & kept);
                }
            }
            Op::Bin(BinOp::Add | BinOp::Sub | BinOp::Mul) => args.iter().for_each(|&v| self.want(v, upto)),
            Op::Bin(op @ (BinOp::Shl | BinOp::ShrU | BinOp::ShrS | BinOp::RotL | BinOp::RotR)) => {
                match self.func.as_const(args[1]) {
                    Some(n) => {
                        let bits = self.bits_of(limbs);
                        let back = match op {
                            BinOp::Shl => BinOp::ShrU,
                            BinOp::ShrU | BinOp::ShrS => BinOp::Shl,
                            BinOp::RotL => BinOp::RotR,
                            _ => BinOp::RotL,
                        };
                        let mut from = self.limbs(back.eval(bits, n, 32).unwrap_or(u64::MAX));
                        if op == BinOp::ShrS {
                            from |= self.limbs(1 << 31);
                        }
                        self.want(args[0], from);
                    }
                    None => {
                        self.want(args[0], all);
                        self.want(args[1], 1);
                    }
                }
            }
            Op::Un(UnOp::SExt8 | UnOp::SExt16) => {
                let part = if data.op == Op::Un(UnOp::SExt8) { 8 } else { 16 };
                let sign = if limbs & !self.limbs(mask(part)) != 0 { self.limbs(1 << (part - 1)) } else { 0 };
                self.want(args[0], limbs & self.limbs(mask(part)) | sign);
            }
            Op::Un(UnOp::Bswap) => {
                let bits = (self.bits_of(limbs) as u32).swap_bytes();
                self.want(args[0], self.limbs(u64::from(bits)));
            }
            Op::Select => {
                self.want(args[0], all);
                self.want(args[1], limbs);
                self.want(args[2], limbs);
            }
            Op::Load(_) => self.want(args[0], self.limbs(mask(ADDRESS_BITS))),
            Op::Apply(function) if !self.known.is_whole(function) => args.iter().for_each(|&v| self.want(v, 1)),
            _ => args.iter().for_each(|&v| self.want(v, all)),
        }
    }
}
