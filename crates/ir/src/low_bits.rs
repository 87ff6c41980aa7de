//! What is known of the low bits of addresses.
//!
//! A forward analysis over the lattice "the low `n` bits are `x`": constants
//! know all their bits, sums and products keep what both sides know, a shift
//! to the left adds zeros, a block parameter knows what all its arguments
//! agree on. Parameters start optimistic and are lowered until nothing
//! changes, so a pointer that a loop advances by 16 stays aligned.
//!
//! Facts about the parameters of functions come from the caller's promises
//! (an exported function's buffers) or from every call site.

use crate::{BinOp, Func, FuncId, Module, Op, Space, Terminator, UnOp, Value, ValueDef};
use std::collections::HashMap;

/// The low `bits` bits of a value are those of `value`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Low {
    bits: u32,
    value: u32,
}

impl Low {
    const NOTHING: Low = Low { bits: 0, value: 0 };

    /// Multiples of `align` (a power of two).
    pub(crate) fn multiple_of(align: u32) -> Low {
        Low::new(align.trailing_zeros(), 0)
    }

    /// As `residue` modulo a power of two.
    pub fn congruent(modulus: u32, residue: u32) -> Low {
        Low::new(modulus.trailing_zeros(), residue)
    }

    fn new(bits: u32, value: u32) -> Low {
        let bits = bits.min(32);
        Low { bits, value: if bits == 32 { value } else { value & ((1 << bits) - 1) } }
    }

    fn constant(c: u32) -> Low {
        Low::new(32, c)
    }

    fn meet(self, other: Low) -> Low {
        let agree = (self.value ^ other.value).trailing_zeros();
        Low::new(self.bits.min(other.bits).min(agree), self.value)
    }

    fn trailing_zeros(self) -> u32 {
        self.value.trailing_zeros().min(self.bits)
    }
}

/// The analysis of one function.
pub struct LowBits {
    of: HashMap<Value, Low>,
}

impl LowBits {
    /// Analyse `func`, given what is known of its parameters.
    pub fn new(func: &Func, params: &[Low]) -> LowBits {
        let mut low = LowBits { of: HashMap::new() };
        for (i, &p) in func.blocks[func.entry].params.iter().enumerate() {
            low.of.insert(p, params.get(i).copied().unwrap_or(Low::NOTHING));
        }
        loop {
            let mut changed = false;
            for &block in &func.layout {
                for &inst in &func.blocks[block].insts {
                    let data = &func.insts[inst];
                    let new = low.transfer(func, data.op, &data.args);
                    for &r in &data.results {
                        changed |= low.of.insert(r, new) != Some(new);
                    }
                }
                for target in func.blocks[block].term.targets() {
                    for (i, &arg) in target.args.iter().enumerate() {
                        let param = func.blocks[target.block].params[i];
                        if let Some(arg) = low.get(func, arg) {
                            let new = low.of.get(&param).map_or(arg, |&old| old.meet(arg));
                            changed |= low.of.insert(param, new) != Some(new);
                        }
                    }
                }
            }
            if !changed {
                return low;
            }
        }
    }

    /// None: not reached yet, so nothing contradicts any claim.
    fn get(&self, func: &Func, v: Value) -> Option<Low> {
        self.of.get(&func.resolve(v)).copied()
    }

    fn transfer(&self, func: &Func, op: Op, args: &[Value]) -> Low {
        let arg = |i: usize| self.get(func, args[i]).unwrap_or(Low::NOTHING);
        match op {
            Op::Const(c) => Low::constant(c as u32),
            Op::Bin(op) => {
                let (a, b) = (arg(0), arg(1));
                let both = a.bits.min(b.bits);
                match op {
                    BinOp::Add => Low::new(both, a.value.wrapping_add(b.value)),
                    BinOp::Sub => Low::new(both, a.value.wrapping_sub(b.value)),
                    BinOp::Xor => Low::new(both, a.value ^ b.value),
                    BinOp::And => {
                        let zeros = a.trailing_zeros().max(b.trailing_zeros());
                        Low::new(both.max(zeros), if both >= zeros { a.value & b.value } else { 0 })
                    }
                    BinOp::Or => Low::new(both, a.value | b.value),
                    BinOp::Mul => {
                        let zeros = (a.trailing_zeros() + b.trailing_zeros()).min(32);
                        if both >= zeros { Low::new(both, a.value.wrapping_mul(b.value)) } else { Low::new(zeros, 0) }
                    }
                    BinOp::Shl if b.bits >= 6 || b.bits == 5 && func.ty(args[0]).bits() == 32 => {
                        let n = b.value & (func.ty(args[0]).bits() - 1);
                        Low::new(a.bits + n, a.value.checked_shl(n).unwrap_or(0))
                    }
                    _ => Low::NOTHING,
                }
            }
            Op::Un(UnOp::SExt32) => arg(0),
            Op::Select => arg(1).meet(arg(2)),
            _ => Low::NOTHING,
        }
    }

    fn known(&self, func: &Func, v: Value) -> Low {
        if let Some(c) = func.as_const(v) {
            return Low::constant(c as u32);
        }
        self.get(func, v).unwrap_or(Low::NOTHING)
    }

    /// How many low bits of a value are known, and what they are.
    pub fn known_bits(&self, func: &Func, v: Value) -> (u32, u32) {
        let low = self.known(func, v);
        (low.bits, low.value)
    }

    /// Largest power of two, at most 8, that certainly divides `addr + offset`.
    pub fn alignment(&self, func: &Func, addr: Value, offset: u32) -> u32 {
        let low = self.known(func, addr);
        let sum = Low::new(low.bits, low.value.wrapping_add(offset));
        1 << sum.trailing_zeros().min(3)
    }

    /// The low two bits of a value, if known.
    pub fn low_two(&self, func: &Func, v: Value) -> Option<u32> {
        let low = self.known(func, v);
        (low.bits >= 2).then_some(low.value & 3)
    }
}

/// Facts about the parameters of every function: `promised` for exported
/// functions, the meet over all call sites for functions that are only called
/// directly, nothing for the others.
pub fn param_facts(module: &Module, promised: &HashMap<(FuncId, usize), u32>) -> HashMap<FuncId, Vec<Low>> {
    let mut facts: HashMap<FuncId, Vec<Option<Low>>> = HashMap::new();
    let mut exported: Vec<FuncId> = module.exports.iter().map(|e| e.1).collect();
    exported.extend(module.system.func_refs.iter().map(|r| r.func));
    exported.extend(module.start);
    for (id, func) in &module.funcs {
        let outside = exported.contains(&id);
        let from = |i| promised.get(&(id, i)).map_or(Low::NOTHING, |&a| Low::multiple_of(a));
        facts.insert(id, (0..func.sig.params.len()).map(|i| outside.then(|| from(i))).collect());
    }
    loop {
        let mut changed = false;
        for (id, func) in &module.funcs {
            let Some(params) = facts[&id].iter().copied().collect::<Option<Vec<Low>>>() else { continue };
            let low = LowBits::new(func, &params);
            for &inst in func.layout.iter().flat_map(|&b| &func.blocks[b].insts) {
                let Op::Call(callee) = func.insts[inst].op else { continue };
                for (i, &arg) in func.insts[inst].args.iter().enumerate() {
                    let arg = low.known(func, arg);
                    let slot = &mut facts.get_mut(&callee).expect("every function has facts")[i];
                    let new = slot.map_or(arg, |old| old.meet(arg));
                    changed |= *slot != Some(new);
                    *slot = Some(new);
                }
            }
        }
        if !changed {
            break;
        }
    }
    facts.into_iter().map(|(id, p)| (id, p.into_iter().map(|l| l.unwrap_or(Low::NOTHING)).collect())).collect()
}

/// True when a value's every bit above the low 16 is certainly zero: an index
/// taken from a byte or a halfword. Follows the few forms an extraction has.
pub fn is_narrow(func: &Func, v: Value) -> bool {
    let v = func.resolve(v);
    let ValueDef::Inst(inst, _) = func.values[v].def else { return false };
    let data = &func.insts[inst];
    let constant = |i: usize| func.as_const(data.args[i]);
    match data.op {
        Op::Load(m) => m.bytes <= 2 && !m.signed && m.space != Space::Stack,
        Op::Bin(BinOp::And) => constant(1).is_some_and(|c| c <= 0xffff) || is_narrow(func, data.args[0]),
        Op::Bin(BinOp::ShrU) => {
            let bits = u64::from(func.ty(v).bits());
            let left = |c: u64| below(func, data.args[0], bits) >> (c & (bits - 1)) <= 0xffff;
            constant(1).is_some_and(left) || is_narrow(func, data.args[0])
        }
        _ => false,
    }
}

/// The bits that a value may have: those of its type, or of a mask that it went through,
/// as a word of 32 bits does before it is shifted in a register of 64.
fn below(func: &Func, v: Value, bits: u64) -> u64 {
    let masked = func.def_inst(func.resolve(v)).map(|i| &func.insts[i]).filter(|d| matches!(d.op, Op::Bin(BinOp::And)));
    masked.and_then(|d| func.as_const(d.args[1])).unwrap_or(crate::ops::mask(bits as u32))
}

/// Values used by a terminator or instruction, counted for every value.
pub fn use_counts(func: &Func) -> HashMap<Value, u32> {
    let mut uses = HashMap::new();
    for &block in &func.layout {
        for &inst in &func.blocks[block].insts {
            for &a in &func.insts[inst].args {
                *uses.entry(func.resolve(a)).or_insert(0) += 1;
            }
        }
        let term: &Terminator = &func.blocks[block].term;
        term.for_each_value(|v| *uses.entry(func.resolve(v)).or_insert(0) += 1);
    }
    uses
}
