//! Expressions of semantics as operations on slots.

use super::{Ctx, Flattener, Res, Val};
use crate::uses::may_stop;
use crate::xop::{self, Op, load_op, load_ram_op};
use ciphermill_ir::ops::mask;
use ciphermill_ir::{BinOp, Space};
use ciphermill_machine::Reg;
use ciphermill_machine::sem::Expr;
use ciphermill_program::Operand;

impl<'a> Flattener<'a> {
    /// A new temporary made by one xop.
    pub(super) fn make(&mut self, op: Op, a: u16, b: u16, bits: u8) -> Res<Val> {
        let d = self.pool.temp()?;
        self.emit(op, d, a, b);
        Ok(Val::Slot(d, bits))
    }

    pub(super) fn slice(&mut self, v: Val, lo: u8, width: u8) -> Res<Val> {
        match v {
            Val::Const(c) => Ok(Val::Const(c.checked_shr(u32::from(lo)).unwrap_or(0) & mask(u32::from(width)))),
            Val::Slot(..) if width == 0 || lo > 63 => Ok(Val::Const(0)),
            Val::Slot(_, bits) if lo == 0 && bits <= width => Ok(v),
            Val::Slot(s, _) => self.make(Op::Slice, s, u16::from(lo) | u16::from(width) << 8, width),
        }
    }

    pub(super) fn expr(&mut self, cx: &Ctx, e: &Expr) -> Res<Val> {
        let word = self.word();
        match e {
            Expr::Const(c) => Ok(Val::Const(*c)),
            Expr::Pc => Ok(Val::Const(cx.pc)),
            Expr::Fixed(r) => self.register(*r),
            Expr::Temp(t) => {
                cx.lets.get(*t).copied().flatten().ok_or_else(|| "a `let` is used before it is bound".into())
            }
            Expr::Operand(i) => match cx.inst.operands.get(*i) {
                Some(Operand::Reg(r)) => self.register(*r),
                other => Err(format!("operand {i} should be a register, not {other:?}")),
            },
            Expr::Imm(i) => match cx.inst.operands.get(*i) {
                Some(Operand::Imm(x)) => Ok(Val::Const(*x as u64 & mask(u32::from(word)))),
                Some(Operand::Block(b)) => {
                    let at = self.layout.blocks[self.func].get(*b as usize);
                    at.map(|&a| Val::Const(u64::from(a))).ok_or_else(|| format!("there is no block {b}"))
                }
                Some(Operand::Func(f)) => {
                    let at = self.layout.blocks.get(*f as usize).and_then(|b| b.first());
                    at.map(|&a| Val::Const(u64::from(a))).ok_or_else(|| format!("there is no function {f}"))
                }
                other => Err(format!("operand {i} should be an immediate, not {other:?}")),
            },
            Expr::Bin { op, bits, a, b } => {
                let (a, b) = (self.expr(cx, a)?, self.expr(cx, b)?);
                self.bin(*op, *bits, a, b)
            }
            Expr::Un { op, bits, a } => {
                let a = self.expr(cx, a)?;
                if let Val::Const(c) = a {
                    return Ok(Val::Const(op.eval(c, u32::from(*bits))));
                }
                let s = self.slot(a)?;
                use ciphermill_ir::UnOp;
                let fast = match (op, bits) {
                    (UnOp::SExt8, 32) => Some(Op::SExt8In32),
                    (UnOp::SExt16, 32) => Some(Op::SExt16In32),
                    (UnOp::Bswap, 32) => Some(Op::Bswap32),
                    _ => None,
                };
                match fast {
                    Some(fast) => self.make(fast, s, 0, *bits),
                    None => self.make(Op::Un, s, xop::code_of(&xop::UN_OPS, op) | u16::from(*bits) << 8, *bits),
                }
            }
            Expr::Cmp { op, bits, a, b } => {
                let (a, b) = (self.expr(cx, a)?, self.expr(cx, b)?);
                if let (Val::Const(a), Val::Const(b)) = (a, b) {
                    return Ok(Val::Const(u64::from(op.eval(a, b, u32::from(*bits)))));
                }
                let (a, b) = (self.slot(a)?, self.slot(b)?);
                match xop::fast_cmp(*op, *bits) {
                    Some(fast) => self.make(fast, a, b, 1),
                    None => {
                        let v = self.make(Op::Cmp, a, b, 1)?;
                        self.emit(Op::Data, xop::code_of(&xop::CMP_OPS, op), u16::from(*bits), 0);
                        Ok(v)
                    }
                }
            }
            Expr::Select { cond, then, els } => self.select(cx, cond, then, els),
            Expr::Slice { a, lo, width } => {
                let a = self.expr(cx, a)?;
                self.slice(a, *lo, *width)
            }
            Expr::Load { bytes, signed, addr } => self.load(cx, *bytes, *signed, addr),
            Expr::Table { table, index } => {
                let t = self.machine.tables.get(*table).filter(|t| !t.values.is_empty());
                let bits = t.ok_or("a table is missing or empty")?.bits;
                let i = self.expr(cx, index)?;
                let i = self.slot(i)?;
                self.make(Op::Table, i, *table as u16, bits)
            }
            Expr::Linear { matrix, a } => {
                let number = self.matrices.iter().position(|m| m == matrix).ok_or("a matrix is missing")?;
                let a = self.expr(cx, a)?;
                let a = self.slot(a)?;
                self.make(Op::Linear, a, number as u16, matrix.rows.len() as u8)
            }
            Expr::MatVec { matrix, a } => {
                let a = self.expr(cx, a)?;
                let a = self.slot(a)?;
                let v = self.make(Op::MatVec, a, self.pool.register(matrix.first), matrix.rows)?;
                self.emit(Op::Data, matrix.words.into(), matrix.rows.into(), matrix.bits.into());
                Ok(v)
            }
            Expr::FlagsSub { bits, a, b } | Expr::FlagsAdd { bits, a, b } => {
                let sub = matches!(e, Expr::FlagsSub { .. });
                let (a, b) = (self.expr(cx, a)?, self.expr(cx, b)?);
                let (a, b) = (self.slot(a)?, self.slot(b)?);
                let op = match (sub, *bits) {
                    (true, 64) => Op::FlagsSub64,
                    (true, _) => Op::FlagsSub32,
                    (false, 64) => Op::FlagsAdd64,
                    (false, _) => Op::FlagsAdd32,
                };
                self.make(op, a, b, 4)
            }
            Expr::FlagsLogic { bits, a } => {
                let a = self.expr(cx, a)?;
                let a = self.slot(a)?;
                self.make(if *bits == 64 { Op::FlagsLogic64 } else { Op::FlagsLogic32 }, a, 0, 4)
            }
            Expr::FlagsTest { op, flags } => {
                let f = self.expr(cx, flags)?;
                let f = self.slot(f)?;
                self.make(Op::FlagsTest, f, xop::flags_table(*op), 1)
            }
        }
    }

    pub(super) fn register(&self, r: Reg) -> Res<Val> {
        let info = self.machine.regs.get(usize::from(r.0)).ok_or_else(|| format!("there is no register {}", r.0))?;
        let file = self.machine.files.get(info.file).ok_or("a register file is out of range")?;
        Ok(if info.zero { Val::Const(0) } else { Val::Slot(self.pool.register(r), file.bits) })
    }

    pub(super) fn bin(&mut self, op: BinOp, bits: u8, a: Val, b: Val) -> Res<Val> {
        if let (Val::Const(a), Val::Const(b)) = (a, b)
            && let Some(c) = op.eval(a, b, u32::from(bits))
        {
            return Ok(Val::Const(c));
        }
        use BinOp::*;
        match (op, a, b) {
            (Add | Or | Xor | Sub | Shl | ShrU | ShrS | RotL | RotR, x, Val::Const(0))
            | (Add | Or | Xor, Val::Const(0), x)
                if x.bits() <= bits =>
            {
                return Ok(x);
            }
            _ => {}
        }
        let narrow = match op {
            And => a.bits().min(b.bits()).min(bits),
            Or | Xor => a.bits().max(b.bits()).min(bits),
            _ => bits,
        };
        let (a, b) = (self.slot(a)?, self.slot(b)?);
        match xop::fast_bin(op, bits) {
            Some(fast) => self.make(fast, a, b, narrow),
            None => {
                let v = self.make(Op::Bin, a, b, narrow)?;
                self.emit(Op::Data, xop::code_of(&xop::BIN_OPS, &op), u16::from(bits), 0);
                Ok(v)
            }
        }
    }

    pub(super) fn select(&mut self, cx: &Ctx, cond: &Expr, then: &Expr, els: &Expr) -> Res<Val> {
        let c = self.expr(cx, cond)?;
        if let Val::Const(c) = c {
            return self.expr(cx, if c != 0 { then } else { els });
        }
        let c = self.slot(c)?;
        if !(may_stop(then) || may_stop(els)) {
            let (t, e) = (self.expr(cx, then)?, self.expr(cx, els)?);
            let bits = t.bits().max(e.bits());
            let (t, e) = (self.slot(t)?, self.slot(e)?);
            let v = self.make(Op::Select, c, t, bits)?;
            self.emit(Op::Data, 0, e, 0);
            return Ok(v);
        }
        let result = self.pool.temp()?;
        let test = self.code.len();
        self.emit(Op::SkipIfZero, 0, c, 0);
        let t = self.expr(cx, then)?;
        let slot = self.slot(t)?;
        self.emit(Op::Mov, result, slot, 0);
        let over = self.code.len();
        self.emit(Op::Skip, 0, 0, 0);
        self.code[test].b = (over - test) as u16;
        let e = self.expr(cx, els)?;
        let slot = self.slot(e)?;
        self.emit(Op::Mov, result, slot, 0);
        self.code[over].b = (self.code.len() - over - 1) as u16;
        // One last move gives `finish` a single xop to turn.
        self.make(Op::Mov, result, 0, t.bits().max(e.bits()))
    }

    pub(super) fn load(&mut self, cx: &Ctx, bytes: u8, signed: bool, addr: &Expr) -> Res<Val> {
        let word = self.word();
        let (a, b) = self.address(cx, addr)?;
        let signed = signed && bytes * 8 < word;
        if signed && word == 32 && cx.inst.space == Space::Linear {
            return self.make(if bytes == 1 { Op::LdL8S } else { Op::LdL16S }, a, b, 32);
        }
        let anywhere = self.machine.instrs[usize::from(cx.inst.instr.0)].unaligned;
        let beside = cx.inst.space == Space::Linear && self.machine.reads_flash();
        let ram = if beside { load_ram_op(bytes) } else { None };
        let op = ram
            .or_else(|| load_op(bytes, cx.inst.space, anywhere))
            .ok_or_else(|| format!("a load of {bytes} bytes"))?;
        let v = self.make(op, a, b, bytes * 8)?;
        if !signed {
            return Ok(v);
        }
        use ciphermill_ir::UnOp;
        let un = match bytes {
            1 => UnOp::SExt8,
            2 => UnOp::SExt16,
            _ => UnOp::SExt32,
        };
        let s = self.slot(v)?;
        self.make(Op::Un, s, xop::code_of(&xop::UN_OPS, &un) | u16::from(word) << 8, word)
    }
}
