//! The shape the register allocator and the calling convention ask for.
//!
//! * [`pass_in_memory`]: arguments and results beyond those that travel in
//!   registers go through the overflow area of the system area. The caller
//!   stores arguments immediately before the call and the callee loads them
//!   first thing, so one area serves every call, recursion included.
//! * [`split_critical_edges`]: an edge from a block with several successors to
//!   one with several predecessors, or with parameters, gets a block of its
//!   own, where moves can stand.

use ciphermill_ir::{
    Cfg, Func, MemAccess, Op, SYSTEM_BASE, Signature, Space, Target, Terminator, TrapCode, Type, Value,
};

/// How many words travel in registers, and where the others go.
#[derive(Clone, Copy)]
pub struct Convention {
    pub arg_regs: usize,
    pub result_regs: usize,
    /// The type of a value in memory, and the bytes of its slot.
    pub word: Type,
    pub slot_bytes: u32,
    /// Are some values narrower than that?
    pub narrow: bool,
    /// Offset of the overflow area in the system area.
    pub overflow: u32,
}

impl Convention {
    /// The type of a value that comes from memory.
    fn of(&self, func: &Func, v: Value) -> Type {
        if self.narrow { func.ty(v) } else { self.word }
    }

    fn slot(&self, index: usize) -> MemAccess {
        let bytes = self.slot_bytes;
        MemAccess {
            bytes: bytes as u8,
            signed: false,
            align: bytes as u8,
            offset: bytes * index as u32,
            space: Space::System,
        }
    }
}

/// Leave at most the convention's register arguments and results in the
/// function's signature, its calls and its returns.
pub fn pass_in_memory(func: &mut Func, convention: Convention) {
    let base_addr = Op::Const(u64::from(SYSTEM_BASE + convention.overflow));
    let blocks = func.layout.clone();
    for &block in &blocks {
        let insts = std::mem::take(&mut func.blocks[block].insts);
        for inst in insts {
            let skip = match func.insts[inst].op {
                Op::Call(_) => 0,
                Op::CallPtr(_) => 1,
                _ => {
                    func.blocks[block].insts.push(inst);
                    continue;
                }
            };
            let loc = func.insts[inst].loc;
            let keep = (convention.arg_regs + skip).min(func.insts[inst].args.len());
            let extra: Vec<Value> = func.insts[inst].args.drain(keep..).collect();
            if !extra.is_empty() {
                let base = func.append1(block, base_addr, &[], convention.word, loc);
                for (i, v) in extra.into_iter().enumerate() {
                    func.append(block, Op::Store(convention.slot(i)), &[base, v], &[], loc);
                }
            }
            func.blocks[block].insts.push(inst);
            let keep = convention.result_regs.min(func.insts[inst].results.len());
            let extra: Vec<Value> = func.insts[inst].results.drain(keep..).collect();
            if !extra.is_empty() {
                let base = func.append1(block, base_addr, &[], convention.word, loc);
                for (i, old) in extra.into_iter().enumerate() {
                    let ty = convention.of(func, old);
                    let new = func.append1(block, Op::Load(convention.slot(i)), &[base], ty, loc);
                    func.replace(old, new);
                }
            }
        }
        let mut term = std::mem::replace(&mut func.blocks[block].term, Terminator::Trap(TrapCode::Unreachable));
        if let Terminator::Return(values) = &mut term
            && values.len() > convention.result_regs
        {
            let base = func.append1(block, base_addr, &[], convention.word, 0);
            for (i, v) in values.drain(convention.result_regs..).enumerate() {
                func.append(block, Op::Store(convention.slot(i)), &[base, v], &[], 0);
            }
        }
        func.blocks[block].term = term;
    }
    let entry = func.entry;
    if func.blocks[entry].params.len() > convention.arg_regs {
        let extra = func.blocks[entry].params.split_off(convention.arg_regs);
        let body = std::mem::take(&mut func.blocks[entry].insts);
        let base = func.append1(entry, base_addr, &[], convention.word, 0);
        for (i, old) in extra.into_iter().enumerate() {
            let ty = convention.of(func, old);
            let new = func.append1(entry, Op::Load(convention.slot(i)), &[base], ty, 0);
            func.replace(old, new);
        }
        func.blocks[entry].insts.extend(body);
    }
    func.sig = Signature {
        params: func.sig.params.iter().copied().take(convention.arg_regs).collect(),
        results: func.sig.results.iter().copied().take(convention.result_regs).collect(),
    };
    func.resolve_all();
}

/// Give every critical edge a block of its own, right behind its source.
pub fn split_critical_edges(func: &mut Func) {
    let cfg = Cfg::new(func);
    let mut layout = Vec::with_capacity(func.layout.len());
    for block in func.layout.clone() {
        layout.push(block);
        let mut term = std::mem::replace(&mut func.blocks[block].term, Terminator::Trap(TrapCode::Unreachable));
        if term.targets().len() > 1 {
            for target in term.targets_mut() {
                if cfg.preds(target.block).len() > 1 || !target.args.is_empty() {
                    let edge = func.add_block();
                    let moved = std::mem::replace(target, Target::new(edge, vec![]));
                    func.blocks[edge].term = Terminator::Jump(moved);
                    layout.push(edge);
                }
            }
        }
        func.blocks[block].term = term;
    }
    func.layout = layout;
}
