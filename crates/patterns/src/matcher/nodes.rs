//! A pattern beside the value it may compute, node by node.

use super::{Bind, Binds, Cx, Fold, Matcher, bind, complement, half};
use crate::pat::Pat;
use crate::pattern::{fits, solve};
use ciphermill_ir::{BinOp, Func, Inst, Op, Value, bits};
use ciphermill_machine::{Operand, OperandKind};
use smallvec::SmallVec;
use std::sync::Arc;

impl Matcher {
    #[expect(clippy::too_many_arguments, reason = "what is matched, and with what")]
    pub(super) fn node(
        &self,
        func: &Func,
        pat: &Pat,
        op: Op,
        args: &[Value],
        cx: Cx<'_>,
        fold: Fold<'_>,
        binds: &mut Binds,
    ) -> bool {
        if !cx.tried.step() {
            return false;
        }
        let both = |x: &Arc<Pat>, a: Value, y: &Arc<Pat>, b: Value, fold: Fold<'_>, binds: &mut Binds| {
            let (before, mark) = (binds.clone(), cx.tried.mark());
            if self.part(func, x, a, cx, fold, binds) && self.part(func, y, b, cx, fold, binds) {
                return true;
            }
            *binds = before;
            cx.tried.back(mark);
            false
        };
        // The other way round is the same where both are the same.
        let turned = |x: &Arc<Pat>, y: &Arc<Pat>| !(args[0] == args[1] && Arc::ptr_eq(x, y));
        match (pat, op) {
            (Pat::Bin(p, x, y), Op::Bin(o)) if *p == o => {
                // A multiplier that takes half words cuts them out for
                // nothing, whoever else needs the halves.
                let half = |v: Value| fold(v) || half(func, v).is_some();
                let fold: Fold<'_> = if o == BinOp::Mul { &half } else { fold };
                both(x, args[0], y, args[1], fold, binds)
                    || (o.commutes() && turned(x, y) && both(x, args[1], y, args[0], fold, binds))
            }
            (Pat::Cmp(p, x, y), Op::Cmp(o)) if *p == o => {
                let symmetric = matches!(o, ciphermill_ir::CmpOp::Eq | ciphermill_ir::CmpOp::Ne);
                both(x, args[0], y, args[1], fold, binds)
                    || (symmetric && turned(x, y) && both(x, args[1], y, args[0], fold, binds))
            }
            (Pat::Low(x), Op::Wrap | Op::ZExt) => self.part(func, x, args[0], cx, fold, binds),
            (Pat::Un(p, x), Op::Un(o)) if *p == o => self.part(func, x, args[0], cx, fold, binds),
            (Pat::Select(c, x, y), Op::Select) => {
                self.part(func, c, args[0], cx, fold, binds) && both(x, args[1], y, args[2], fold, binds)
            }
            (Pat::Load { bytes, signed, addr }, Op::Load(m))
                if *bytes == m.bytes && *signed == (m.signed && u32::from(m.bytes) * 8 < cx.bits) =>
            {
                self.address(func, addr, args[0], m.offset, cx, fold, binds)
            }
            (Pat::Apply(n, pats), Op::Apply(m)) => {
                *n == m && pats.iter().zip(args).all(|(p, &a)| self.leaf(func, p, a, cx, fold, binds))
            }
            _ => false,
        }
    }

    /// A part of a pattern, unless it has been found at this value.
    pub(super) fn part(
        &self,
        func: &Func,
        pat: &Arc<Pat>,
        v: Value,
        cx: Cx<'_>,
        fold: Fold<'_>,
        binds: &mut Binds,
    ) -> bool {
        let v = func.resolve(v);
        let inner = !matches!(**pat, Pat::Reg(_) | Pat::Imm(_) | Pat::Const(_));
        if inner && cx.tried.has(pat, v) {
            return true;
        }
        let found = self.leaf(func, pat, v, cx, fold, binds);
        if inner && found {
            cx.tried.add(pat, v);
        }
        found
    }

    pub(super) fn leaf(&self, func: &Func, pat: &Pat, v: Value, cx: Cx<'_>, fold: Fold<'_>, binds: &mut Binds) -> bool {
        let v = func.resolve(v);
        let constant = func.as_const(v);
        match pat {
            Pat::Reg(i) => bind(binds, *i, self.register(cx.operands, *i, v, constant)),
            Pat::Imm(i) => match constant.and_then(|c| fits(&cx.operands[*i], c, cx.bits)) {
                Some(imm) => bind(binds, *i, Bind::Imm(imm)),
                None => false,
            },
            Pat::Const(k) => {
                let constant = constant.or_else(|| complement(func, v));
                constant.is_some_and(|c| (c ^ k) & ciphermill_ir::ops::mask(cx.bits) == 0)
            }
            _ => {
                if let Some(c) = constant {
                    // A constant that has no bits beyond a mask is there already.
                    if let Pat::Bin(BinOp::And, r, m) = pat
                        && let (Pat::Reg(i), Pat::Const(m)) = (&**r, &**m)
                        && c & !m == 0
                    {
                        return bind(binds, *i, self.register(cx.operands, *i, v, constant));
                    }
                    return match solve(pat, c, cx.bits, cx.operands) {
                        Some((i, imm)) => bind(binds, i, Bind::Imm(imm)),
                        None => false,
                    };
                }
                match func.def_inst(v) {
                    Some(inst) if matches!(pat, Pat::Load { .. }) => {
                        let data = &func.insts[inst];
                        let args: SmallVec<[Value; 3]> = data.args.iter().map(|&a| func.resolve(a)).collect();
                        let end = cx.operands.len();
                        matches!(data.op, Op::Load(_))
                            && fold(v)
                            && binds.get(end).is_some_and(Option::is_none)
                            && self.node(func, pat, data.op, &args, cx, fold, binds)
                            && bind(binds, end, Bind::Load(inst))
                    }
                    Some(inst)
                        if fold(v) && !matches!(func.insts[inst].op, Op::Load(_)) && self.alike(func, inst, cx) =>
                    {
                        let data = &func.insts[inst];
                        let args: SmallVec<[Value; 3]> = data.args.iter().map(|&a| func.resolve(a)).collect();
                        self.node(func, pat, data.op, &args, cx, fold, binds)
                            || self.within_mask(func, pat, v, cx, binds)
                    }
                    _ => self.within_mask(func, pat, v, cx, binds),
                }
            }
        }
    }

    /// Does an operation inside a pattern compute in the pattern's bits?
    pub(super) fn alike(&self, func: &Func, inst: Inst, cx: Cx<'_>) -> bool {
        let data = &func.insts[inst];
        !self.narrow || self.width(func, data.op, &data.args, data.results.first().copied()) == cx.bits
    }

    /// A value that has no bits beyond a mask is the masked one already. Not so
    /// the upper half of a word where an instruction takes that from the word.
    pub(super) fn within_mask(&self, func: &Func, pat: &Pat, v: Value, cx: Cx<'_>, binds: &mut Binds) -> bool {
        let Pat::Bin(BinOp::And, x, mask) = pat else { return false };
        let (Pat::Reg(i), Pat::Const(mask)) = (&**x, &**mask) else { return false };
        let upper = func.def_inst(v).is_some_and(|i| {
            let data = &func.insts[i];
            data.op == Op::Bin(BinOp::ShrU)
                && func.as_const(data.args[1]) == Some(u64::from(cx.bits - mask.count_ones()))
        });
        if upper && self.takes_upper {
            return false;
        }
        bits::possible(func, v) & !mask == 0 && bind(binds, *i, self.register(cx.operands, *i, v, None))
    }

    pub(super) fn register(&self, operands: &[Operand], i: usize, v: Value, constant: Option<u64>) -> Bind {
        if constant == Some(0)
            && let Some(OperandKind::Reg { file, .. }) = operands.get(i).map(|o| &o.kind)
            && let Some(zero) = self.zero(*file)
        {
            return Bind::Zero(zero);
        }
        Bind::Val(v)
    }

    /// Match an address pattern with `addr + offset`; `offset` is taken as a
    /// signed number of 32 bits.
    #[expect(clippy::too_many_arguments, reason = "what is matched, and with what")]
    pub(super) fn address(
        &self,
        func: &Func,
        pat: &Pat,
        addr: Value,
        offset: u32,
        cx: Cx<'_>,
        fold: Fold<'_>,
        binds: &mut Binds,
    ) -> bool {
        let operands = cx.operands;
        let cx = Cx { bits: if self.narrow { 32 } else { self.bits }, ..cx };
        if let (Pat::Imm(i), Some(c)) = (pat, func.as_const(func.resolve(addr))) {
            let whole = (c as u32).wrapping_add(offset);
            return fits(&operands[*i], u64::from(whole), 32).is_some_and(|imm| bind(binds, *i, Bind::Imm(imm)));
        }
        if let Pat::Bin(BinOp::Add, x, y) = pat {
            for (p, q) in [(x, y), (y, x)] {
                if let Pat::Imm(i) = **q
                    && let Some(imm) = fits(&operands[i], u64::from(offset), 32)
                {
                    let (before, mark) = (binds.clone(), cx.tried.mark());
                    if bind(binds, i, Bind::Imm(imm)) && self.part(func, p, addr, cx, fold, binds) {
                        return true;
                    }
                    *binds = before;
                    cx.tried.back(mark);
                }
            }
        }
        if offset != 0 {
            return false;
        }
        let (before, mark) = (binds.clone(), cx.tried.mark());
        if self.leaf(func, pat, addr, cx, fold, binds) {
            return true;
        }
        *binds = before;
        cx.tried.back(mark);
        // base + index with nothing to add: the index is the zero register.
        if let Pat::Bin(BinOp::Add, x, y) = pat
            && let Pat::Reg(i) = **y
            && let Some(OperandKind::Reg { file, .. }) = operands.get(i).map(|o| &o.kind)
            && let Some(zero) = self.zero(*file)
        {
            return bind(binds, i, Bind::Zero(zero)) && self.leaf(func, x, addr, cx, fold, binds);
        }
        false
    }
}
