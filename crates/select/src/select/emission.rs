//! The instructions of a chosen cover: operands, calls, branches and their inverses.

use super::Selector;
use crate::provenance::{self, Root};
use ciphermill_ir::{BinOp, Block, FuncId, GlobalId, Inst, MemAccess, Op, Space, Terminator, Value};
use ciphermill_machine::{InstrId, OperandKind, Reg};
use ciphermill_patterns::matcher::{Bind, Binds};
use ciphermill_patterns::pattern::Template;
use ciphermill_program::Role;
use ciphermill_vcode::CompileError;
use ciphermill_vcode::{Inverse, MemRef, Object, VBlock, VInst, VKind, VOp, VReg};
use cranelift_entity::EntityRef;
use smallvec::SmallVec;
use std::collections::HashMap;

impl Selector<'_> {
    pub(super) fn emit_inst(
        &mut self,
        inst: Inst,
        stores: &mut HashMap<Inst, (usize, Binds, u32)>,
    ) -> Result<(), CompileError> {
        let func = self.func;
        let data = &func.insts[inst];
        let loc = data.loc;
        match data.op {
            Op::Const(_) => {}
            Op::Store(m) => {
                let (i, binds, _) = stores.remove(&inst).ok_or_else(|| self.no_instruction(inst))?;
                let mem = self.mem_ref(m, data.args[0], true);
                self.emit_template(i, &binds, None, Some(mem), self.role(inst), loc)?;
            }
            Op::GlobalGet(g) => {
                if self.needed.contains(&func.result(inst)) {
                    let reg = self.pinned_reg(g, inst)?;
                    let def = self.vreg(func.result(inst));
                    let mov = self.mov(VOp::Def(def), VOp::Phys(reg), loc);
                    self.out.push(mov);
                }
            }
            Op::GlobalSet(g) => {
                let reg = self.pinned_reg(g, inst)?;
                let value = self.operand(data.args[0]);
                let mov = self.mov(VOp::Phys(reg), value, loc);
                self.out.push(mov);
            }
            Op::Chain(chain, bits) => self.emit_chain(inst, chain, bits)?,
            Op::Apply(function) if self.in_words(inst) => self.emit_function(inst, function)?,
            Op::Call(callee) => self.emit_call(inst, Some(callee)),
            Op::CallPtr(_) => self.emit_call(inst, None),
            op => {
                let v = func.result(inst);
                if !self.needed.contains(&v) {
                    return Ok(());
                }
                let (i, binds, _) = self.best[&v].clone();
                let def = self.vreg(v);
                let mem = match op {
                    Op::Load(m) => Some(self.mem_ref(m, data.args[0], false)),
                    _ => None,
                };
                self.emit_template(i, &binds, Some(def), mem, self.role(inst), loc)?;
            }
        }
        Ok(())
    }

    pub(super) fn role(&self, inst: Inst) -> Role {
        if self.lookups.contains(inst) { Role::Lookup } else { Role::Other }
    }

    pub(super) fn pinned_reg(&self, g: GlobalId, inst: Inst) -> Result<Reg, CompileError> {
        let found = self.pinned.iter().find(|p| p.0 == g);
        found.map(|p| p.1).ok_or_else(|| self.no_instruction(inst))
    }

    pub(super) fn mem_ref(&self, m: MemAccess, addr: Value, store: bool) -> MemRef {
        let addr = self.func.resolve(addr);
        let offset = i64::from(m.offset as i32);
        let (base, offset) = match self.func.as_const(addr) {
            Some(c) => (None, i64::from((c as u32).wrapping_add(m.offset))),
            None => (Some(addr), offset),
        };
        let object = match self.roots[addr] {
            Root::Pointer(i) if m.space == Space::Linear => Object::Buffer(i),
            Root::Int => Object::Own,
            _ => Object::Anything,
        };
        let linear = m.space == Space::Linear;
        let span = linear.then(|| provenance::extent(self.func, &self.masks, addr, m.offset, m.bytes)).flatten();
        let within = |&(first, last): &(u32, u32)| self.readonly.iter().any(|r| r.start <= first && last < r.end);
        let constant = !store && span.as_ref().is_some_and(within);
        let banks = self.banks.map_or(0, |banks| banks.touched(self.func, m, addr));
        let aligned = m.align >= m.bytes;
        MemRef { space: m.space, store, base, offset, bytes: m.bytes, aligned, object, span, constant, banks }
    }

    pub(super) fn operand(&mut self, v: Value) -> VOp {
        let v = self.func.resolve(v);
        match self.func.as_const(v) {
            Some(c) => VOp::Const(c),
            None => VOp::Use(self.vreg(v)),
        }
    }

    /// The value in a virtual register, made on the spot if it is a constant.
    pub(super) fn in_register(&mut self, v: Value) -> VReg {
        match self.operand(v) {
            VOp::Use(r) => r,
            op => {
                let def = self.vfunc.new_vreg();
                let mov = self.mov(VOp::Def(def), op, 0);
                self.out.push(mov);
                def
            }
        }
    }

    pub(super) fn mov(&self, to: VOp, from: VOp, loc: u32) -> VInst {
        ciphermill_vcode::moves::mov(self.machine, to, from, loc)
    }

    pub(super) fn emit_call(&mut self, inst: Inst, callee: Option<FuncId>) {
        self.vfunc.has_calls = true;
        let func = self.func;
        let abi = &self.machine.abi;
        let data = &func.insts[inst];
        let args = &data.args[usize::from(callee.is_none())..];
        let fixed_uses = args.iter().zip(&abi.args).map(|(&a, &r)| (self.in_register(a), r)).collect();
        let mut call = match callee {
            Some(id) => {
                let op = VOp::Func(id.index() as u32);
                VInst::new(VKind::Call, abi.ops.call, &self.fill(abi.ops.call, Some(op), &[]), data.loc)
            }
            None => {
                let words = self.pointer_words(data.args[0]);
                let target: Vec<VOp> = words.into_iter().map(|w| VOp::Use(self.in_register(w))).collect();
                let op = abi.ops.call_indirect;
                VInst::new(VKind::Call, op, &self.fill(op, None, &target), data.loc)
            }
        };
        call.mem = self.return_slot(true);
        call.fixed_uses = fixed_uses;
        call.fixed_defs = data.results.iter().zip(&abi.results).map(|(&v, &r)| (self.vreg(v), r)).collect();
        self.out.push(call);
    }

    /// The values that a pointer to code consists of, lowest first: itself, or words put together by shifts and `or`, where
    /// machines have narrower ones.
    pub(super) fn pointer_words(&self, v: Value) -> SmallVec<[Value; 4]> {
        let func = self.func;
        let part = |v: Value, op: BinOp| {
            let inst = func.def_inst(v).filter(|&i| func.insts[i].op == Op::Bin(op))?;
            Some(&func.insts[inst].args)
        };
        let v = func.resolve(v);
        if self.machine.value_bits() < self.machine.word_bits
            && let Some(or) = part(v, BinOp::Or)
            && let Some(above) = part(or[1], BinOp::Shl)
        {
            let mut words = self.pointer_words(or[0]);
            words.push(func.resolve(above[0]));
            return words;
        }
        SmallVec::from_slice(&[v])
    }

    /// Where a call puts the return address and a return finds it, if that is
    /// on the stack.
    pub(super) fn return_slot(&self, store: bool) -> Option<MemRef> {
        let bytes = self.machine.word_bits / 8;
        let slot = MemRef::own(Space::Stack, store, 0, bytes);
        self.machine.abi.return_address.is_none().then_some(slot)
    }

    /// Operands of a fixed-form instruction: its label, its registers in
    /// order, zero for immediates.
    pub(super) fn fill(&self, instr: InstrId, label: Option<VOp>, regs: &[VOp]) -> SmallVec<[VOp; 4]> {
        let mut regs = regs.iter().copied();
        let spec = &self.machine.instrs[instr.0 as usize].operands;
        spec.iter()
            .map(|o| match &o.kind {
                OperandKind::Label => label.unwrap_or(VOp::Imm(0)),
                OperandKind::Reg { .. } => regs.next().unwrap_or(VOp::Imm(0)),
                OperandKind::Imm { min, .. } => VOp::Imm((*min).max(0)),
            })
            .collect()
    }

    /// Write out a template's parts; the last definition of its result is
    /// `result`.
    pub(super) fn emit_template(
        &mut self,
        i: usize,
        binds: &Binds,
        result: Option<VReg>,
        mem: Option<MemRef>,
        role: Role,
        loc: u32,
    ) -> Result<(), CompileError> {
        let matcher = self.matcher;
        let t = matcher.template(i);
        let insts = self.expand(t, binds, result, None)?;
        let folded = self.folded(binds);
        let mem = mem.or(folded.map(|f| f.0));
        let role = if folded.is_some_and(|f| f.1 == Role::Lookup) { Role::Lookup } else { role };
        for mut inst in insts {
            let kind = self.machine.instrs[inst.instr.0 as usize].kind;
            if matches!(kind, ciphermill_machine::InstrKind::Load | ciphermill_machine::InstrKind::Store) {
                inst.mem = mem;
            }
            inst.role = role;
            inst.loc = loc;
            self.out.push(inst);
        }
        Ok(())
    }

    /// What a load taken in by the pattern reads, and whom it works for.
    pub(super) fn folded(&self, binds: &Binds) -> Option<(MemRef, Role)> {
        let inst = binds.iter().find_map(|b| if let Some(Bind::Load(i)) = b { Some(*i) } else { None })?;
        let data = &self.func.insts[inst];
        let Op::Load(m) = data.op else { return None };
        Some((self.mem_ref(m, data.args[0], false), self.role(inst)))
    }

    pub(super) fn expand(
        &mut self,
        t: &Template,
        binds: &Binds,
        result: Option<VReg>,
        label: Option<u32>,
    ) -> Result<Vec<VInst>, CompileError> {
        let mut f = crate::constants::Expansion { machine: self.machine, new_vreg: &mut self.vfunc.vregs };
        let mut vregs = HashMap::new();
        for b in binds.iter().flatten() {
            if let Bind::Val(v) = b
                && self.func.as_const(*v).is_none()
            {
                vregs.insert(*v, ());
            }
        }
        let operand = |b: Bind, vregs: &HashMap<Value, VReg>| match b {
            Bind::Imm(i) => VOp::Imm(i),
            Bind::Zero(r) => VOp::Phys(r),
            Bind::Val(v) => match self.func.as_const(v) {
                Some(c) => VOp::Const(c),
                None => VOp::Use(vregs[&v]),
            },
            // No operand: expansion never looks at it.
            Bind::Load(_) => VOp::Imm(0),
        };
        let mut known = HashMap::new();
        let mut values: Vec<Value> = vregs.into_keys().collect();
        values.sort();
        for v in values {
            let r = *self.vregs.entry(v).or_insert_with(|| {
                *f.new_vreg += 1;
                VReg(*f.new_vreg - 1)
            });
            known.insert(v, r);
        }
        let ops: Vec<Option<VOp>> = binds.iter().map(|b| b.map(|b| operand(b, &known))).collect();
        f.expand(t, &ops, result, label)
    }

    pub(super) fn emit_term(
        &mut self,
        block: Block,
        at: u32,
        branch: Option<(usize, Binds, bool)>,
        vblock: &mut VBlock,
    ) -> Result<(), CompileError> {
        let func = self.func;
        let abi = &self.machine.abi;
        let term = &func.blocks[block].term;
        match term {
            Terminator::Jump(target) => {
                let args = target.args.iter().map(|&a| self.in_register(a)).collect();
                let to = self.index[&target.block];
                vblock.succs.push((to, args));
                let ops = self.fill(abi.ops.jump, Some(VOp::Block(to)), &[]);
                self.out.push(VInst::new(VKind::Jump, abi.ops.jump, &ops, 0));
            }
            Terminator::Branch { cond, then, els } => {
                let (then, els) = (self.index[&then.block], self.index[&els.block]);
                if let Some(chained) = self.chained(block, func.resolve(*cond)) {
                    let negated = then == at + 1;
                    let ways = if negated { (els, then) } else { (then, els) };
                    return self.emit_compared(chained, negated, ways, vblock);
                }
                let (i, binds, negated) = branch.ok_or(CompileError::NoInstruction {
                    operation: "a conditional branch, `if (a == b) goto target`".into(),
                    loc: 0,
                })?;
                let (taken, fall) = if negated { (els, then) } else { (then, els) };
                let matcher = self.matcher;
                let insts = self.expand(&matcher.templates[i], &binds, None, Some(taken))?;
                vblock.inverse = self.inverse(*cond, block, !negated, &insts, fall);
                vblock.succs = vec![(taken, vec![]), (fall, vec![])];
                let last = insts.len() - 1;
                let folded = self.folded(&binds);
                for (n, mut inst) in insts.into_iter().enumerate() {
                    if n == last {
                        inst.kind = VKind::Branch;
                    } else if self.machine.instrs[inst.instr.0 as usize].kind == ciphermill_machine::InstrKind::Load {
                        inst.mem = folded.map(|f| f.0);
                    }
                    self.out.push(inst);
                }
            }
            Terminator::Return(values) => {
                let uses = values.iter().zip(&abi.callee_results).map(|(&v, &r)| (self.in_register(v), r)).collect();
                let mut inst = VInst::new(VKind::Return, abi.ops.ret, &self.fill(abi.ops.ret, None, &[]), 0);
                inst.fixed_uses = uses;
                inst.mem = self.return_slot(false);
                self.out.push(inst);
            }
            Terminator::Trap(code) => {
                let mut inst = VInst::new(VKind::Trap, abi.ops.trap, &self.fill(abi.ops.trap, None, &[]), 0);
                inst.trap = Some(*code);
                self.out.push(inst);
            }
            Terminator::Switch { .. } => {
                return Err(CompileError::Internal(format!("block {at} still ends in a switch")));
            }
        }
        Ok(())
    }

    /// The same branch the other way round: the parts before the branch must
    /// be the same, so that only the last instruction changes.
    pub(super) fn inverse(
        &mut self,
        cond: Value,
        block: Block,
        negate: bool,
        insts: &[VInst],
        label: u32,
    ) -> Option<Inverse> {
        let (i, binds) = self.condition(cond, block, negate)?;
        let matcher = self.matcher;
        let before = self.vfunc.vregs;
        let other = self.expand(&matcher.templates[i], &binds, None, Some(label)).ok()?;
        let (last, head) = other.split_last()?;
        let (_, our_head) = insts.split_last()?;
        let same = head.len() == our_head.len()
            && head.iter().zip(our_head).all(|(a, b)| a.instr == b.instr && a.ops == b.ops)
            && self.vfunc.vregs == before;
        same.then(|| Inverse { instr: last.instr, ops: last.ops.clone() })
    }
}
