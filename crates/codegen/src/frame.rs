//! Stack frames: prologue, epilogue, spills, moves.
//!
//! From the stack pointer upwards a frame holds what the convention reserves,
//! the spill slots, the saved registers and the return address. A function
//! that needs none of them has no frame. On a machine with register windows a
//! function that calls others, or needs more registers than a leaf may touch,
//! opens a window instead of saving.

use ciphermill_ir::Space;
use ciphermill_machine::sem::{Dest, Expr, Stmt};
use ciphermill_machine::{InstrId, Machine, OperandKind, Reg};
use ciphermill_patterns::matcher::Matcher;
use ciphermill_program::{Inst, Operand, Role};
use ciphermill_select::constants::{Expansion, recipe};
use ciphermill_vcode::CompileError;
use ciphermill_vcode::PInst;
use ciphermill_vcode::{Allocated, Place};
use ciphermill_vcode::{MemRef, VKind, VOp};

/// Steps of the stack pointer that are tried, in multiples of its alignment.
const STEP_SEARCH: i64 = 128;

/// Can loads and stores of frames have it as what they load or store?
fn takes(machine: &Machine, r: Reg) -> bool {
    let store = &machine.instrs[usize::from(machine.abi.ops.store.0)];
    let value = ciphermill_vcode::semantics::access_operands(&store.semantics).and_then(|a| a.0);
    store.only.iter().all(|(i, regs)| Some(*i) != value || regs.contains(&r))
}

/// The frame of one function.
pub struct Frame<'a> {
    machine: &'a Machine,
    matcher: &'a Matcher,
    pub windowed: bool,
    saves_return: bool,
    saved: Vec<Reg>,
    /// Words at the start of the frame for spills of pipelined loops.
    loop_words: u32,
    slots: u32,
    pub bytes: u32,
    /// For offsets that no displacement reaches.
    scratch: Option<Reg>,
    /// Where else what they do not reach is.
    fixed: Option<Fixed>,
}

/// Offsets from `from` on at addresses of their own, from `base` on, with instructions that hold an address.
struct Fixed {
    from: i64,
    base: u32,
    load: InstrId,
    store: InstrId,
}

impl<'a> Frame<'a> {
    pub fn new(
        machine: &'a Machine,
        matcher: &'a Matcher,
        windowed: bool,
        saves_return: bool,
        loop_words: u32,
        a: &Allocated,
    ) -> Frame<'a> {
        let abi = &machine.abi;
        let word = u32::from(machine.value_bits() / 8);
        let saves_return = saves_return && abi.return_address.is_some_and(|r| !a.saved.contains(&r));
        let save_return = saves_return && !windowed;
        let mut kept = a.saved.clone();
        let mut through = kept.iter().chain(abi.return_address.iter().filter(|_| save_return));
        let reaches = |r: &Reg| takes(machine, *r);
        if through.any(|r| !reaches(r)) && !kept.iter().any(reaches) {
            kept.extend(abi.callee_saved.iter().copied().find(reaches));
        }
        let own = word * (loop_words + a.slots + kept.len() as u32 + u32::from(save_return));
        let bytes = if own == 0 && !windowed { 0 } else { (abi.frame_reserve + own).next_multiple_of(abi.stack_align) };
        let (saved, slots, scratch) = (kept, a.slots, abi.scratch.first().copied());
        Frame { machine, matcher, windowed, saves_return, saved, loop_words, slots, bytes, scratch, fixed: None }
    }

    /// The largest aligned step of the stack pointer on the way to `by`, without a scratch register.
    fn step(&self, by: i64) -> Option<i64> {
        let align = i64::from(self.machine.abi.stack_align) * by.signum();
        let steps = (1..=STEP_SEARCH).map(|n| n * align).take_while(|s| s.abs() < by.abs());
        steps.filter(|s| self.scratch.is_none() && self.fits(self.machine.abi.ops.add_imm, *s)).last()
    }

    /// Has it offsets that no displacement reaches, and no register to make them in?
    pub fn outgrows(&self) -> bool {
        let ops = &self.machine.abi.ops;
        let last = i64::from(self.bytes) - i64::from(self.word());
        let reaches =
            |near: InstrId, far: Option<InstrId>| self.fits(near, last) || far.is_some_and(|far| self.fits(far, last));
        let reached = reaches(ops.load, ops.load_far) && reaches(ops.store, ops.store_far);
        let adjusts = |by| self.fits(ops.add_imm, by) || self.step(by).is_some();
        let adjusted = [-1, 1].iter().all(|by| adjusts(by * i64::from(self.bytes)));
        self.bytes != 0 && self.scratch.is_none() && !(reached && adjusted)
    }

    /// The same with a scratch register.
    pub fn with_scratch(self, scratch: Reg) -> Frame<'a> {
        Frame { scratch: Some(scratch), ..self }
    }

    /// The same, with what displacements do not reach at fixed addresses from `base` on, for a function that is not
    /// entered again before it returns; and the bytes there.
    pub fn with_fixed(self, base: u32) -> (Frame<'a>, u32) {
        let ops = &self.machine.abi.ops;
        let near = |offset: &u32| [ops.load, ops.store].iter().all(|i| self.fits(*i, i64::from(*offset)));
        let from = (0..self.bytes).take_while(near).count() as u32;
        let (word, all) = (self.word() as u8, &self.machine.instrs);
        let holds = |at: &usize| all[*at].operands.iter().any(|o| o.kind.imm_for(base.into(), 32).is_some());
        let loads = |at: &usize| {
            matches!(&all[*at].semantics[..], [Stmt::Assign { dest: Dest::Operand(_), value: Expr::Load { bytes, addr, .. } }]
                if *bytes == word && matches!(**addr, Expr::Imm(_)))
                && holds(at)
        };
        let stores = |at: &usize| {
            matches!(&all[*at].semantics[..], [Stmt::Store { bytes, addr: Expr::Imm(_), .. }] if *bytes == word)
                && holds(at)
        };
        let found = ((0..all.len()).find(loads), (0..all.len()).find(stores));
        let (true, (Some(load), Some(store))) = (from < self.bytes, found) else { return (self, 0) };
        let more = self.bytes - from;
        let (load, store) = (InstrId(load as u16), InstrId(store as u16));
        let fixed = Some(Fixed { from: from.into(), base, load, store });
        (Frame { bytes: from, fixed, ..self }, more)
    }

    fn word(&self) -> u32 {
        u32::from(self.machine.value_bits() / 8)
    }

    /// Of a spill slot, from the stack pointer.
    pub fn slot_offset(&self, slot: u32) -> i64 {
        i64::from(self.machine.abi.frame_reserve + (self.loop_words + slot) * self.word())
    }

    /// Registers saved by this frame: those that loads and stores take, and those that get there only
    /// through one of the others.
    fn kept(&self) -> (Vec<Reg>, Vec<Reg>) {
        let ra = self.machine.abi.return_address.filter(|_| self.saves_return && !self.windowed);
        self.saved.iter().copied().chain(ra).partition(|r| takes(self.machine, *r))
    }

    /// Those saved by one instruction at the top of the frame, lowest first, with it and the one that restores them.
    fn pushed(&self) -> Option<(Vec<Reg>, InstrId, InstrId)> {
        let abi = &self.machine.abi;
        let takes = |id: InstrId, list: &[Reg]| {
            let only = &self.machine.instrs[usize::from(id.0)].only;
            only.iter().all(|(at, regs)| list.get(*at).is_some_and(|r| regs.contains(r)))
        };
        let mut list = self.kept().0;
        list.sort_unstable_by_key(|r| r.0);
        let at = list.len().checked_sub(1)?;
        let (push, pop) = (*abi.ops.push.get(at)?, *abi.ops.pop.get(at)?);
        (self.fixed.is_none() && takes(push, &list) && takes(pop, &list)).then_some((list, push, pop))
    }

    /// Registers saved one by one, with the offsets of their places.
    fn saves(&self) -> Vec<(Reg, i64)> {
        let (near, far) = self.kept();
        let near = if self.pushed().is_some() { Vec::new() } else { near };
        near.into_iter().chain(far).zip((self.slots..).map(|s| self.slot_offset(s))).collect()
    }

    /// An instruction of a run of registers, which are at the top of the frame.
    fn run(&self, instr: InstrId, list: &[Reg], store: bool) -> PInst {
        let bytes = self.word() * list.len() as u32;
        let mut made = self.inst(instr, &[], 0);
        made.inst.operands = list.iter().map(|&r| Operand::Reg(r)).collect();
        made.mem = Some(MemRef::own(Space::Stack, store, i64::from(self.bytes - bytes), bytes as u8));
        made
    }

    /// The register to load or store in the place of `r`.
    fn through(&self, r: Reg) -> Result<Reg, CompileError> {
        let other = || self.saved.iter().copied().find(|r| takes(self.machine, *r));
        let found = if takes(self.machine, r) { Some(r) } else { other() };
        found.ok_or_else(|| CompileError::Internal("a register that cannot be stored is saved by itself".into()))
    }

    pub fn prologue(&self) -> Result<Vec<PInst>, CompileError> {
        let mut out = Vec::new();
        let sp = self.machine.abi.stack_pointer;
        if let (true, Some(w)) = (self.windowed, &self.machine.abi.windows) {
            // A frame too large for the immediate is opened small and grown.
            let whole = -i64::from(self.bytes);
            let first = if self.fits(w.save, whole) { whole } else { -i64::from(self.machine.abi.frame_reserve) };
            out.push(self.inst(w.save, &[sp, sp], first));
            if first != whole {
                self.adjust(whole - first, &mut out)?;
            }
        } else if self.bytes != 0 {
            let mut left = self.bytes;
            if let Some((list, push, _)) = self.pushed() {
                out.push(self.run(push, &list, true));
                left -= self.word() * list.len() as u32;
            }
            if left != 0 {
                self.adjust(-i64::from(left), &mut out)?;
            }
            for (r, offset) in self.saves() {
                let through = self.through(r)?;
                if through != r {
                    out.push(self.inst(self.machine.abi.ops.mov, &[through, r], 0));
                }
                self.access(self.machine.abi.ops.store, through, offset, &mut out)?;
            }
        }
        Ok(out)
    }

    pub fn epilogue(&self) -> Result<Vec<PInst>, CompileError> {
        let mut out = Vec::new();
        if !self.windowed && self.bytes != 0 {
            for (r, offset) in self.saves().into_iter().rev() {
                let through = self.through(r)?;
                self.access(self.machine.abi.ops.load, through, offset, &mut out)?;
                if through != r {
                    out.push(self.inst(self.machine.abi.ops.mov, &[r, through], 0));
                }
            }
            let pushed = self.pushed();
            let words = pushed.as_ref().map_or(0, |p| p.0.len() as u32);
            let left = self.bytes - self.word() * words;
            if left != 0 {
                self.adjust(i64::from(left), &mut out)?;
            }
            out.extend(pushed.map(|(list, _, pop)| self.run(pop, &list, false)));
        }
        Ok(out)
    }

    /// A move the allocator asked for.
    pub fn transfer(&self, from: Place, to: Place, out: &mut Vec<PInst>) -> Result<(), CompileError> {
        let ops = &self.machine.abi.ops;
        match (from, to) {
            (Place::Reg(a), Place::Reg(b)) => out.push(self.inst(ops.mov, &[b, a], 0)),
            (Place::Reg(r), Place::Slot(s)) => self.access(ops.store, r, self.slot_offset(s), out)?,
            (Place::Slot(s), Place::Reg(r)) => self.access(ops.load, r, self.slot_offset(s), out)?,
            (Place::Slot(_), Place::Slot(_)) => {
                return Err(CompileError::Internal("the allocator moved a stack slot to a stack slot".into()));
            }
        }
        Ok(())
    }

    fn fits(&self, instr: InstrId, imm: i64) -> bool {
        self.machine.instrs[instr.0 as usize].operands.iter().any(|o| match o.kind {
            OperandKind::Imm { .. } => o.kind.imm_for(imm as u64, self.machine.word_bits) == Some(imm),
            _ => false,
        })
    }

    /// `sp += by`.
    fn adjust(&self, by: i64, out: &mut Vec<PInst>) -> Result<(), CompileError> {
        let abi = &self.machine.abi;
        let sp = abi.stack_pointer;
        if self.fits(abi.ops.add_imm, by) {
            out.push(self.inst(abi.ops.add_imm, &[sp, sp], by));
        } else if let Some(part) = self.step(by) {
            for _ in 0..by / part {
                out.push(self.inst(abi.ops.add_imm, &[sp, sp], part));
            }
            self.adjust(by % part, out)?;
        } else {
            let scratch = self.scratch()?;
            self.constant(by as u64, scratch, out)?;
            out.push(self.inst(abi.ops.add, &[sp, sp, scratch], 0));
        }
        Ok(())
    }

    /// Load or store `reg` at `sp + offset`.
    fn access(&self, instr: InstrId, reg: Reg, offset: i64, out: &mut Vec<PInst>) -> Result<(), CompileError> {
        let abi = &self.machine.abi;
        if let Some(fixed) = self.fixed.as_ref().filter(|f| offset >= f.from) {
            let store = instr == abi.ops.store;
            let instr = if store { fixed.store } else { fixed.load };
            let at = fixed.base + (offset - fixed.from) as u32;
            let mut made = self.inst(instr, &[reg], i64::from(at as i32));
            made.inst.space = Space::System;
            made.mem = Some(MemRef::own(Space::System, store, at.into(), self.machine.value_bits() / 8));
            out.push(made);
            return Ok(());
        }
        let mut base = abi.stack_pointer;
        let mut displacement = offset;
        let store = instr == abi.ops.store;
        let far = if store { abi.ops.store_far } else { abi.ops.load_far };
        let instr = match far {
            Some(far) if !self.fits(instr, offset) => far,
            _ => instr,
        };
        if !self.fits(instr, offset) {
            let scratch = self.scratch()?;
            self.constant(offset as u64, scratch, out)?;
            out.push(self.inst(abi.ops.add, &[scratch, base, scratch], 0));
            (base, displacement) = (scratch, 0);
        }
        let desc = &self.machine.instrs[instr.0 as usize];
        let (value, address) = ciphermill_vcode::semantics::access_operands(&desc.semantics)
            .ok_or_else(|| CompileError::Internal(format!("`{}` is not a plain load or store", desc.name)))?;
        let operands = desc
            .operands
            .iter()
            .enumerate()
            .map(|(i, o)| match o.kind {
                OperandKind::Reg { .. } if value == Some(i) => Operand::Reg(reg),
                OperandKind::Reg { .. } if address == i => Operand::Reg(base),
                OperandKind::Reg { .. } => Operand::Reg(reg),
                _ => Operand::Imm(displacement),
            })
            .collect();
        let inst =
            Inst { instr, operands, space: Space::Stack, trap: None, role: Role::Overhead, predicate: None, loc: 0 };
        let mem = MemRef::own(Space::Stack, store, offset, self.machine.value_bits() / 8);
        out.push(PInst { inst, mem: Some(mem), kind: VKind::Normal });
        Ok(())
    }

    fn scratch(&self) -> Result<Reg, CompileError> {
        self.scratch.ok_or_else(|| {
            CompileError::Unsupported(format!(
                "a frame of {} bytes, which displacements do not reach, needs a register in `abi.scratch`",
                self.bytes
            ))
        })
    }

    fn constant(&self, c: u64, into: Reg, out: &mut Vec<PInst>) -> Result<(), CompileError> {
        let c = c & ciphermill_ir::ops::mask(u32::from(self.machine.word_bits));
        let (t, ops) = recipe(self.machine, self.matcher, c)
            .ok_or_else(|| CompileError::Internal(format!("no way to make the constant {c:#x}")))?;
        let mut vregs = 0;
        for v in (Expansion { machine: self.machine, new_vreg: &mut vregs }).expand(t, &ops, None, None)? {
            let operands = v
                .ops
                .iter()
                .map(|o| match o {
                    VOp::Imm(i) => Operand::Imm(*i),
                    VOp::Phys(r) => Operand::Reg(*r),
                    _ => Operand::Reg(into),
                })
                .collect();
            let inst = Inst {
                instr: v.instr,
                operands,
                space: Space::Stack,
                trap: None,
                role: Role::Overhead,
                predicate: None,
                loc: 0,
            };
            out.push(PInst { inst, mem: None, kind: VKind::Normal });
        }
        Ok(())
    }

    /// An instruction whose register operands are `regs` in their order
    /// (definition first, as machine files write them) and whose immediates
    /// are all `imm`.
    pub fn inst(&self, instr: InstrId, regs: &[Reg], imm: i64) -> PInst {
        let spec = &self.machine.instrs[instr.0 as usize].operands;
        let (defs, uses): (Vec<usize>, Vec<usize>) = (0..spec.len())
            .filter(|&i| matches!(spec[i].kind, OperandKind::Reg { .. }))
            .partition(|&i| matches!(spec[i].kind, OperandKind::Reg { def: true, .. }));
        let order: Vec<usize> = defs.into_iter().chain(uses).collect();
        let operands = (0..spec.len())
            .map(|i| match order.iter().position(|&o| o == i) {
                Some(n) => Operand::Reg(regs.get(n).copied().unwrap_or(self.machine.abi.stack_pointer)),
                None => Operand::Imm(imm),
            })
            .collect();
        let inst =
            Inst { instr, operands, space: Space::Stack, trap: None, role: Role::Overhead, predicate: None, loc: 0 };
        PInst { inst, mem: None, kind: VKind::Normal }
    }
}
