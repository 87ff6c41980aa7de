//! Addresses whose displacement an access of the machine does not reach.

use super::Legaliser;
use ciphermill_ir::{BinOp, MemAccess, Op, Value};
use ciphermill_machine::{Operand, OperandKind};
use ciphermill_patterns::pat::Pat;
use ciphermill_patterns::pattern::{Action, fits};
use ciphermill_vcode::CompileError;
use std::collections::{HashMap, HashSet};

/// A window of displacements, of so many bits; a range that lies unevenly about 0, as -255 to 4095
/// does, has a larger one from 0 on than with a sign.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Reach {
    bits: u32,
    signed: bool,
}

impl Reach {
    fn within(min: i64, max: i64) -> Option<Reach> {
        let bits = |n: i64| u64::try_from(n).ok().and_then(u64::checked_ilog2);
        let least = min.checked_neg().unwrap_or(i64::MAX);
        let signed = bits(least.min(max.checked_add(1)?)).map(|n| Reach { bits: n + 1, signed: true });
        let from_0 = bits(max.checked_add(1)?).map(|bits| Reach { bits, signed: false });
        signed.max(from_0).map(|reach| Reach { bits: reach.bits.min(32), ..reach })
    }
}

impl Legaliser<'_> {
    /// An address and displacement that some load or store of this kind takes.
    pub(super) fn displacement(
        &mut self,
        m: MemAccess,
        addr: Value,
        op: Op,
        depth: u32,
    ) -> Result<(Value, MemAccess), CompileError> {
        let constant = self.func.as_const(addr).map(|c| (c as u32).wrapping_add(m.offset));
        if constant.is_none() && self.reaches(op, m) {
            return Ok((addr, m));
        }
        let reach = self.reach(op, m);
        let total = constant.unwrap_or(m.offset);
        // Accesses of one window share their base, where they are too many for a constant
        // each to stay in a register.
        let several = self.far.get(&addr).is_some_and(|far| 4 * far.len() >= self.registers);
        let low = self.window(op, m).map(|window| total % window);
        if let (None, None, true, Some(low)) =
            (constant, reach, several, low.filter(|&offset| self.reaches(op, MemAccess { offset, ..m })))
        {
            let c = self.make(Op::Const(u64::from(total - low)), &[], 0, depth)?;
            let base = self.make(Op::Bin(BinOp::Add), &[addr, c], 0, depth)?;
            return Ok((base, MemAccess { offset: low, ..m }));
        }
        if constant.is_none() && (self.indexed(op, m) || reach.is_none()) {
            let c = self.make(Op::Const(u64::from(total)), &[], 0, depth)?;
            let sum = self.make(Op::Bin(BinOp::Add), &[addr, c], 0, depth)?;
            return Ok((sum, MemAccess { offset: 0, ..m }));
        }
        let low = match reach {
            Some(Reach { bits, signed: true }) => ciphermill_ir::ops::sext(u64::from(total), bits) as u32,
            Some(Reach { bits, signed: false }) => total & ciphermill_ir::ops::mask(bits) as u32,
            None => 0,
        };
        // Displacements in steps, or few and irregular ones.
        let low = if self.reaches(op, MemAccess { offset: low, ..m }) { low } else { 0 };
        let high = self.make(Op::Const(u64::from(total.wrapping_sub(low))), &[], 0, depth)?;
        let base = if constant.is_some() { high } else { self.make(Op::Bin(BinOp::Add), &[addr, high], 0, depth)? };
        Ok((base, MemAccess { offset: low, ..m }))
    }

    pub(super) fn accesses(&self, op: Op, m: MemAccess) -> impl Iterator<Item = (&Pat, &[Operand])> {
        let matcher = self.matcher;
        let list = if matches!(op, Op::Load(_)) { matcher.candidates(op) } else { &matcher.stores };
        list.iter().filter_map(move |&i| {
            let t = &matcher.templates[i];
            match &t.action {
                Action::Value(_, Pat::Load { bytes, addr, .. }) if *bytes == m.bytes => {
                    Some((&**addr, &t.operands[..]))
                }
                Action::Store { bytes, addr, .. } if *bytes == m.bytes => Some((addr, &t.operands[..])),
                _ => None,
            }
        })
    }

    /// Does some template take this displacement?
    pub(super) fn reaches(&self, op: Op, m: MemAccess) -> bool {
        m.offset == 0
            || self.accesses(op, m).any(|(addr, operands)| match addr {
                Pat::Bin(BinOp::Add, _, imm) => match **imm {
                    Pat::Imm(i) => fits(&operands[i], u64::from(m.offset), 32).is_some(),
                    _ => false,
                },
                _ => false,
            })
    }

    /// The widest window of displacements that templates take, negative ones among them.
    fn reach(&self, op: Op, m: MemAccess) -> Option<Reach> {
        self.accesses(op, m)
            .filter_map(|(addr, operands)| match addr {
                Pat::Bin(BinOp::Add, _, imm) => match **imm {
                    Pat::Imm(i) => match operands[i].kind {
                        OperandKind::Imm { min, max, .. } if min < 0 => Reach::within(min, max),
                        _ => None,
                    },
                    _ => None,
                },
                _ => None,
            })
            .max()
    }

    pub(super) fn far_accesses(&self) -> HashMap<Value, HashSet<u32>> {
        let mut far: HashMap<Value, HashSet<u32>> = HashMap::new();
        for &inst in self.func.layout.iter().flat_map(|&b| &self.func.blocks[b].insts) {
            let data = &self.func.insts[inst];
            if let Op::Load(m) | Op::Store(m) = data.op
                && !self.reaches(data.op, m)
            {
                far.entry(self.func.resolve(data.args[0])).or_default().insert(m.offset);
            }
        }
        far
    }

    /// Bytes from 0 on that displacements of templates reach, where none is negative.
    pub(super) fn window(&self, op: Op, m: MemAccess) -> Option<u32> {
        let window = |(addr, operands): (&Pat, &[Operand])| match addr {
            Pat::Bin(BinOp::Add, _, imm) => match **imm {
                Pat::Imm(i) => match operands[i].kind {
                    OperandKind::Imm { min: 0, max, step, values: None } => u32::try_from(max + step.max(1)).ok(),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        };
        self.accesses(op, m).filter_map(window).max()
    }

    /// Is there a form with base and index registers?
    pub(super) fn indexed(&self, op: Op, m: MemAccess) -> bool {
        self.accesses(op, m)
            .any(|(addr, _)| matches!(addr, Pat::Bin(BinOp::Add, a, b) if matches!(**a, Pat::Reg(_)) && matches!(**b, Pat::Reg(_))))
    }
}
