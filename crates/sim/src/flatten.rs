//! Semantics trees to xops.
//!
//! All instructions of a bundle read before any of them writes, and so do the
//! statements of one instruction. The flattener keeps that in three phases:
//! first every value is computed, loads included; then stores are done, in
//! slot order; then register windows turn and the results that could not go
//! to their registers at once are moved there. A result goes to its register
//! at once when nothing that is computed later in the bundle, and no store,
//! reads that register: on scalar code, nearly always.
//!
//! Constants fold while the tree is walked (an immediate, a zero register and
//! the program counter are constants), so `or %g0, 5, %o0` is one move.
//!
//! A `Select` whose arms may stop the program (a load, a division) runs only
//! the arm it takes; other selects compute both.

mod expressions;

use crate::slots::SlotPool;
use crate::uses::{dest_of, instr_of, latency, read_later};
use crate::xop::{Op, Slot, Xop, store_op};
use ciphermill_ir::{BinOp, CmpOp};
use ciphermill_machine::gf2::BitMatrix;
use ciphermill_machine::sem::{Expr, Stmt};
use ciphermill_machine::{Instr, Machine, Reg};
use ciphermill_program::layout::Layout;
use ciphermill_program::{Bundle, Inst, Operand};
use std::sync::Arc;

/// A value while a tree is walked.
#[derive(Clone, Copy, Debug)]
enum Val {
    Const(u64),
    /// A slot, and how many low bits may be other than zero.
    Slot(Slot, u8),
}

impl Val {
    fn bits(self) -> u8 {
        match self {
            Val::Const(c) => (64 - c.leading_zeros()) as u8,
            Val::Slot(_, bits) => bits,
        }
    }
}

/// When a bundle's jump happens.
#[derive(Clone, Copy, Debug)]
pub enum Condition {
    Always,
    /// The slot is not zero.
    Slot(Slot),
    /// A 32-bit comparison of two slots that nothing overwrites.
    Compare(CmpOp, Slot, Slot),
}

/// Where a jump goes.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    Address(u64),
    Slot(Slot),
}

/// A bundle's jump.
#[derive(Clone, Copy, Debug)]
pub struct Jump {
    pub condition: Condition,
    pub target: Target,
    /// Index of the instruction in its bundle.
    pub slot: usize,
}

/// A register write left to the caller.
#[derive(Clone, Copy, Debug)]
pub struct Write {
    pub reg: Slot,
    pub value: Slot,
    pub latency: u32,
    /// Index of the instruction in its bundle.
    pub slot: usize,
}

/// What flattening a bundle found, beside the xops.
#[derive(Default, Debug)]
pub struct Flow {
    pub jump: Option<Jump>,
    /// The bundle always traps: nothing comes after it.
    pub traps: bool,
    /// With [`Flattener::deferred`]: all register writes.
    pub writes: Vec<Write>,
}

/// The place of an xop: bundle number and instruction within it.
pub type Place = (u32, u16);

/// Flattens bundles into a growing list of xops.
pub struct Flattener<'a> {
    pub machine: &'a Machine,
    pub layout: &'a Layout,
    /// The machine's matrices over GF(2), by number.
    pub matrices: &'a [Arc<BitMatrix>],
    pub pool: &'a mut SlotPool,
    pub code: &'a mut Vec<Xop>,
    pub places: &'a mut Vec<Place>,
    /// Leave register writes to the caller, as [`Flow::writes`].
    pub deferred: bool,
    pub place: Place,
    /// Function that holds the bundle, for block labels.
    pub func: usize,
}

/// One instruction being flattened.
struct Ctx<'i> {
    inst: &'i Inst,
    pc: u64,
    lets: Vec<Option<Val>>,
}

struct PendingStore {
    op: Op,
    value: Slot,
    a: Slot,
    b: Slot,
    slot: u16,
    predicate: Option<Slot>,
}

type Res<T> = Result<T, String>;

impl<'a> Flattener<'a> {
    fn word(&self) -> u8 {
        self.machine.word_bits
    }

    fn emit(&mut self, op: Op, d: u16, a: u16, b: u16) {
        self.code.push(Xop { op, d, a, b });
        self.places.push(self.place);
    }

    fn slot(&mut self, v: Val) -> Res<Slot> {
        match v {
            Val::Const(c) => self.pool.constant(c),
            Val::Slot(s, _) => Ok(s),
        }
    }

    /// Flatten one bundle whose first instruction stands at `address`.
    pub fn bundle(&mut self, bundle: &Bundle, address: u32, delayed: bool) -> Res<Flow> {
        self.pool.reset_temps();
        let mut flow = Flow::default();
        let mut stores: Vec<PendingStore> = Vec::new();
        let mut moves: Vec<(Slot, Slot, Option<Slot>)> = Vec::new();
        let mut rotates = false;
        let mut windows: Vec<Op> = Vec::new();
        let turns = bundle.insts.iter().any(|i| {
            self.instr(i).is_ok_and(|d| d.semantics.iter().any(|s| matches!(s, Stmt::WindowSave | Stmt::WindowRestore)))
        });
        let mut pc = u64::from(address);
        for (n, inst) in bundle.insts.iter().enumerate() {
            self.place.1 = n as u16;
            let instr = self.instr(inst)?;
            if self.deferred {
                self.emit(Op::Mark, 0, n as u16, 0);
            }
            let predicate = match inst.predicate {
                Some(p) => Some(self.predicate(bundle, p)?),
                None => None,
            };
            // The old values, for a guarded instruction that writes nothing.
            let mut kept: Vec<Slot> = Vec::new();
            if self.deferred && predicate.is_some() {
                for stmt in &instr.semantics {
                    if let Stmt::Assign { dest, .. } = stmt {
                        let (t, reg) = (self.pool.temp()?, dest_of(inst, dest)?);
                        self.emit(Op::Mov, t, self.pool.register(reg), 0);
                        kept.push(t);
                    }
                }
                kept.reverse();
            }
            let skip = self.code.len();
            if let Some(g) = predicate {
                self.emit(Op::SkipIfZero, 0, g, 0);
            }
            let mut cx = Ctx { inst, pc, lets: vec![None; instr.temps] };
            pc += u64::from(inst.bytes(self.machine));
            let alone = bundle.insts.len() == 1 && !delayed;
            for (k, stmt) in instr.semantics.iter().enumerate() {
                match stmt {
                    Stmt::Let { temp, value } => {
                        let v = self.expr(&cx, value)?;
                        *cx.lets.get_mut(*temp).ok_or("a `let` is out of range")? = Some(v);
                    }
                    Stmt::Assign { dest, value } => {
                        let reg = dest_of(inst, dest)?;
                        let start = self.code.len();
                        let mut v = self.expr(&cx, value)?;
                        let info = self.machine.regs.get(usize::from(reg.0)).ok_or("a register is out of range")?;
                        let (zero, bits) = (info.zero, self.machine.files[info.file].bits);
                        let old = kept.pop();
                        if zero {
                            continue;
                        }
                        if v.bits() > bits {
                            v = self.slice(v, 0, bits)?;
                        }
                        let d = self.pool.register(reg);
                        if self.deferred {
                            let mut value = self.fresh(v)?;
                            if let Some(old) = old {
                                self.emit(Op::Mov, old, value, 0);
                                value = old;
                            }
                            flow.writes.push(Write { reg: d, value, latency: latency(instr, dest), slot: n });
                        } else if !turns && !read_later(self.machine, bundle, n, k, reg) {
                            self.finish(start, v, d, value)?;
                        } else {
                            let value = self.fresh(v)?;
                            moves.push((d, value, predicate));
                        }
                    }
                    Stmt::Store { bytes, addr, value } => {
                        let (a, b) = self.address(&cx, addr)?;
                        let v = self.expr(&cx, value)?;
                        let value = self.slot(v)?;
                        let op = store_op(*bytes, inst.space, instr.unaligned)
                            .ok_or_else(|| format!("a store of {bytes} bytes"))?;
                        stores.push(PendingStore { op, value, a, b, slot: n as u16, predicate });
                    }
                    Stmt::Goto { cond, target } => {
                        if flow.jump.is_some() {
                            return Err("two jumps in one bundle".into());
                        }
                        let assigns = instr.semantics.iter().any(|s| matches!(s, Stmt::Assign { .. }));
                        let condition = match cond {
                            None => Some(Condition::Always),
                            Some(c) => self.condition(&cx, c, alone && !assigns && !self.deferred)?,
                        };
                        let target = match self.expr(&cx, target)? {
                            Val::Const(c) => Target::Address(c),
                            v => {
                                let (from, to) = (self.slot(v)?, self.pool.target());
                                self.emit(Op::Mov, to, from, 0);
                                Target::Slot(to)
                            }
                        };
                        if let Some(condition) = condition {
                            flow.jump = Some(Jump { condition, target, slot: n });
                        }
                    }
                    Stmt::Trap => {
                        flow.traps = true;
                        self.emit(Op::Trap, 0, 0, 0);
                    }
                    Stmt::Rotate => rotates = true,
                    Stmt::WindowSave => windows.push(Op::WindowSave),
                    Stmt::WindowRestore => windows.push(Op::WindowRestore),
                }
            }
            if predicate.is_some() {
                if instr
                    .semantics
                    .iter()
                    .any(|s| !matches!(s, Stmt::Let { .. } | Stmt::Assign { .. } | Stmt::Store { .. }))
                {
                    return Err(format!("`{}` cannot be guarded by a predicate", instr.name));
                }
                self.code[skip].b = (self.code.len() - skip - 1) as u16;
            }
        }
        for s in stores {
            self.place.1 = s.slot;
            if self.deferred {
                self.emit(Op::Mark, 0, s.slot, 0);
            }
            if let Some(g) = s.predicate {
                self.emit(Op::SkipIfZero, 0, g, 1);
            }
            self.emit(s.op, s.value, s.a, s.b);
        }
        for w in windows {
            self.emit(w, 0, 0, 0);
        }
        for (d, value, predicate) in moves {
            if let Some(g) = predicate {
                self.emit(Op::SkipIfZero, 0, g, 1);
            }
            self.emit(Op::Mov, d, value, 0);
        }
        if rotates && !self.deferred {
            for range in crate::hazard::rotating(self.machine) {
                self.emit(Op::Rotate, 0, range.start as u16, range.len() as u16);
            }
        }
        self.place.1 = 0;
        Ok(flow)
    }

    /// A slot with the predicate's value, which nothing in the bundle changes.
    fn predicate(&mut self, bundle: &Bundle, p: Reg) -> Res<Slot> {
        let slot = self.pool.register(p);
        let writes = |i: &Inst| {
            let assigned = |s: &Stmt| matches!(s, Stmt::Assign { dest, .. } if dest_of(i, dest).is_ok_and(|r| r == p));
            self.instr(i).is_ok_and(|d| d.semantics.iter().any(assigned))
        };
        if !bundle.insts.iter().any(writes) {
            return Ok(slot);
        }
        let t = self.pool.temp()?;
        self.emit(Op::Mov, t, slot, 0);
        Ok(t)
    }

    fn instr(&self, inst: &Inst) -> Res<&'a Instr> {
        instr_of(self.machine, inst)
    }

    /// A jump's condition; `None` when it never holds. With `fuse`, nothing
    /// overwrites its operands before the jump, so they are left where they are.
    fn condition(&mut self, cx: &Ctx, e: &Expr, fuse: bool) -> Res<Option<Condition>> {
        let start = self.code.len();
        if let (true, Expr::Cmp { op, bits: 32, a, b }) = (fuse, e) {
            let (a, b) = (self.expr(cx, a)?, self.expr(cx, b)?);
            if let (Val::Const(a), Val::Const(b)) = (a, b) {
                return Ok(op.eval(a, b, 32).then_some(Condition::Always));
            }
            return Ok(Some(Condition::Compare(*op, self.slot(a)?, self.slot(b)?)));
        }
        match self.expr(cx, e)? {
            Val::Const(0) => Ok(None),
            Val::Const(_) => Ok(Some(Condition::Always)),
            Val::Slot(s, _) if fuse => Ok(Some(Condition::Slot(s))),
            v => {
                let to = self.pool.condition();
                self.finish(start, v, to, e)?;
                Ok(Some(Condition::Slot(to)))
            }
        }
    }

    /// Put a value into `d`: by turning the xop that made it, if it has no
    /// other user, or by a move.
    fn finish(&mut self, start: usize, v: Val, d: Slot, e: &Expr) -> Res<()> {
        let from = self.slot(v)?;
        let made = match self.code.last() {
            Some(x) if x.op == Op::Data => self.code.len() - 2,
            Some(_) => self.code.len() - 1,
            None => usize::MAX,
        };
        let shared = matches!(e, Expr::Temp(_)) || self.pool.is_register(from) || matches!(v, Val::Const(_));
        if !shared && made != usize::MAX && made >= start && self.code[made].d == from {
            self.code[made].d = d;
        } else {
            self.emit(Op::Mov, d, from, 0);
        }
        Ok(())
    }

    /// A slot that holds the value and that no register write changes.
    fn fresh(&mut self, v: Val) -> Res<Slot> {
        let s = self.slot(v)?;
        if !self.pool.is_register(s) {
            return Ok(s);
        }
        let t = self.pool.temp()?;
        self.emit(Op::Mov, t, s, 0);
        Ok(t)
    }

    /// An address as two slots to add in 64 bits: a displacement that is
    /// added to a register keeps its sign, so that the sum is the
    /// mathematical one.
    fn address(&mut self, cx: &Ctx, e: &Expr) -> Res<(Slot, Slot)> {
        let word = self.word();
        if let Expr::Bin { op: BinOp::Add, bits, a, b } = e
            && *bits == word
        {
            let part = |f: &mut Self, e: &Expr| match e {
                Expr::Imm(i) => match cx.inst.operands.get(*i) {
                    Some(Operand::Imm(x)) => Ok(Val::Const(*x as u64)),
                    _ => f.expr(cx, e),
                },
                _ => f.expr(cx, e),
            };
            let (a, b) = (part(self, a)?, part(self, b)?);
            if let (Val::Const(a), Val::Const(b)) = (a, b) {
                return Ok((self.pool.constant(a.wrapping_add(b))?, self.pool.constant(0)?));
            }
            return Ok((self.slot(a)?, self.slot(b)?));
        }
        let v = self.expr(cx, e)?;
        Ok((self.slot(v)?, self.pool.constant(0)?))
    }
}
