//! The value of an expression, and the effect of an instruction.
//!
//! The plainest possible interpreter of [`sem`](crate::sem): used to check
//! compounds when a machine is loaded, to compute the immediates of a
//! compound's parts, to test rules, and as the judge the fast simulator is
//! compared with. It recurses over the tree, whose depth the parser bounds.

use crate::fold::mask;
use crate::model::{Machine, OperandKind, Reg, Table};
use crate::sem::{Dest, Expr, Stmt};
use ciphermill_ir::CmpOp;
use ciphermill_ir::ops::{mask as bits_mask, sext};

/// Where an expression finds its inputs. The defaults are for expressions that
/// have no such inputs: they answer nothing, and the evaluation stops.
pub trait Env {
    fn operand(&self, _index: usize) -> Option<u64> {
        None
    }
    /// Value of an immediate; it is truncated to the word.
    fn imm(&self, _index: usize) -> Option<i64> {
        None
    }
    fn fixed(&self, _reg: Reg) -> Option<u64> {
        None
    }
    fn temp(&self, _index: usize) -> Option<u64> {
        None
    }
    fn pc(&self) -> Option<u64> {
        None
    }
    /// `bytes` bytes at `addr` in the machine's byte order, zero-extended.
    fn load(&self, _addr: u64, _bytes: u8) -> Option<u64> {
        None
    }
    fn table(&self, _index: usize) -> Option<&Table> {
        None
    }
}

/// The value in a word of `word` bits. `None` where an input is missing or a
/// division has no result (by zero, or signed overflow).
pub fn eval(e: &Expr, word: u8, env: &dyn Env) -> Option<u64> {
    let go = |e: &Expr| eval(e, word, env);
    let m = mask(word);
    let value = match e {
        Expr::Operand(i) => env.operand(*i)?,
        Expr::Imm(i) => env.imm(*i)? as u64,
        Expr::Fixed(r) => env.fixed(*r)?,
        Expr::Temp(i) => env.temp(*i)?,
        Expr::Const(c) => *c,
        Expr::Pc => env.pc()?,
        Expr::Bin { op, bits, a, b } => op.eval(go(a)?, go(b)?, u32::from(*bits))?,
        Expr::Un { op, bits, a } => op.eval(go(a)?, u32::from(*bits)),
        Expr::Cmp { op, bits, a, b } => u64::from(op.eval(go(a)?, go(b)?, u32::from(*bits))),
        // Only the chosen side is evaluated: the other may divide by zero.
        Expr::Select { cond, then, els } => go(if go(cond)? != 0 { then } else { els })?,
        Expr::Slice { a, lo, width } => (go(a)? >> lo) & mask(*width),
        Expr::Load { bytes, signed, addr } => {
            let raw = env.load(go(addr)?, *bytes)?;
            if *signed { sext(raw, u32::from(*bytes) * 8) as u64 } else { raw }
        }
        Expr::Table { table, index } => {
            let values = &env.table(*table)?.values;
            *values.get((go(index)? % values.len().max(1) as u64) as usize)?
        }
        Expr::Linear { matrix, a } => matrix.apply(go(a)?),
        Expr::MatVec { matrix, a } => {
            let a = go(a)?;
            let row = |i| matrix.row(i).try_fold(0, |row, (r, at)| Some(row | env.fixed(r)? << at));
            let bit = |i: u8| Some(u64::from((row(i)? & a).count_ones() & 1) << i);
            (0..matrix.rows).try_fold(0, |sum, i| Some(sum | bit(i)?))?
        }
        Expr::FlagsSub { bits, a, b } => flags_sub(go(a)?, go(b)?, *bits),
        Expr::FlagsAdd { bits, a, b } => flags_add(go(a)?, go(b)?, *bits),
        Expr::FlagsLogic { bits, a } => flags_logic(go(a)?, *bits),
        Expr::FlagsTest { op, flags } => u64::from(flags_test(*op, go(flags)?)),
    };
    Some(value & m)
}

/// Condition bits of `a - b`: N 8, Z 4, V 2, C (borrow) 1.
pub fn flags_sub(a: u64, b: u64, word: u8) -> u64 {
    let m = mask(word);
    let (a, b) = (a & m, b & m);
    let r = a.wrapping_sub(b) & m;
    flags_logic(r, word) | sign((a ^ b) & (a ^ r), word) << 1 | u64::from(a < b)
}

/// Condition bits of `a + b`: C is the carry out.
pub fn flags_add(a: u64, b: u64, word: u8) -> u64 {
    let m = mask(word);
    let (a, b) = (a & m, b & m);
    let r = a.wrapping_add(b) & m;
    flags_logic(r, word) | sign(!(a ^ b) & (a ^ r), word) << 1 | u64::from(r < a)
}

/// Condition bits of a logical result.
pub fn flags_logic(a: u64, word: u8) -> u64 {
    sign(a, word) << 3 | u64::from(a & mask(word) == 0) << 2
}

fn sign(a: u64, word: u8) -> u64 {
    (a >> (word - 1)) & 1
}

/// What condition bits of `a - b` say about `a op b`.
pub fn flags_test(op: CmpOp, flags: u64) -> bool {
    let [n, z, v, c] = [3, 2, 1, 0].map(|bit| (flags >> bit) & 1 != 0);
    match op {
        CmpOp::Eq => z,
        CmpOp::Ne => !z,
        CmpOp::LtU => c,
        CmpOp::LeU => c || z,
        CmpOp::LtS => n != v,
        CmpOp::LeS => z || n != v,
    }
}

/// The value of an operand of an instruction being executed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Value {
    /// The register this operand is.
    Reg(Reg),
    /// An immediate or a code address.
    Imm(i64),
}

/// Memory as the executor sees it.
pub trait Memory {
    fn load(&self, addr: u64, bytes: u8) -> Option<u64>;
    fn store(&mut self, addr: u64, bytes: u8, value: u64) -> Option<()>;
}

/// What an instruction did besides writing registers and memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    Next,
    Goto(u64),
    Trap,
}

struct Running<'a, M> {
    machine: &'a Machine,
    operands: &'a [Value],
    regs: &'a [u64],
    temps: Vec<u64>,
    pc: u64,
    memory: &'a M,
}

impl<M: Memory> Env for Running<'_, M> {
    fn operand(&self, index: usize) -> Option<u64> {
        match self.operands.get(index)? {
            Value::Reg(r) => self.fixed(*r),
            Value::Imm(_) => None,
        }
    }
    fn imm(&self, index: usize) -> Option<i64> {
        match self.operands.get(index)? {
            Value::Imm(i) => Some(*i),
            Value::Reg(_) => None,
        }
    }
    fn fixed(&self, reg: Reg) -> Option<u64> {
        let info = self.machine.regs.get(usize::from(reg.0))?;
        if info.zero { Some(0) } else { self.regs.get(usize::from(reg.0)).copied() }
    }
    fn temp(&self, index: usize) -> Option<u64> {
        self.temps.get(index).copied()
    }
    fn pc(&self) -> Option<u64> {
        Some(self.pc)
    }
    fn load(&self, addr: u64, bytes: u8) -> Option<u64> {
        self.memory.load(addr, bytes)
    }
    fn table(&self, index: usize) -> Option<&Table> {
        self.machine.tables.get(index)
    }
}

/// Execute statements on `regs` (one value for each of the machine's
/// registers). All registers and memory are read before any is written.
/// Register windows do not turn: only the simulator has them.
///
/// `None` where a value is missing, a division has no result, or memory
/// refuses.
pub fn execute<M: Memory>(
    machine: &Machine,
    stmts: &[Stmt],
    operands: &[Value],
    regs: &mut [u64],
    pc: u64,
    memory: &mut M,
) -> Option<Outcome> {
    let word = machine.word_bits;
    let mut outcome = Outcome::Next;
    let mut writes: Vec<(Reg, u64)> = Vec::new();
    let mut stores: Vec<(u64, u8, u64)> = Vec::new();
    let mut run = Running { machine, operands, regs, temps: Vec::new(), pc, memory };
    for stmt in stmts {
        match stmt {
            Stmt::Let { value, .. } => {
                let value = eval(value, word, &run)?;
                run.temps.push(value);
            }
            Stmt::Assign { dest, value } => {
                let reg = match dest {
                    Dest::Fixed(r) => *r,
                    Dest::Operand(i) => match operands.get(*i)? {
                        Value::Reg(r) => *r,
                        Value::Imm(_) => return None,
                    },
                };
                writes.push((reg, eval(value, word, &run)?));
            }
            Stmt::Store { bytes, addr, value } => {
                let value = eval(value, word, &run)? & bits_mask(u32::from(*bytes) * 8);
                stores.push((eval(addr, word, &run)?, *bytes, value));
            }
            Stmt::Goto { cond, target } => {
                let taken = match cond {
                    Some(cond) => eval(cond, word, &run)? != 0,
                    None => true,
                };
                if taken && outcome == Outcome::Next {
                    outcome = Outcome::Goto(eval(target, word, &run)?);
                }
            }
            Stmt::Trap => outcome = Outcome::Trap,
            Stmt::Rotate | Stmt::WindowSave | Stmt::WindowRestore => {}
        }
    }
    for (reg, value) in writes {
        let info = machine.regs.get(usize::from(reg.0))?;
        if !info.zero {
            *regs.get_mut(usize::from(reg.0))? = value & mask(machine.files.get(info.file)?.bits);
        }
    }
    for (addr, bytes, value) in stores {
        memory.store(addr, bytes, value)?;
    }
    Some(outcome)
}

impl OperandKind {
    /// The immediate that stands for the word `value`: the number in the
    /// operand's range that equals it modulo two to the `word`, if there is
    /// one. So 0xffffffff becomes -1 for a signed immediate of 32 bits.
    pub fn imm_for(&self, value: u64, word: u8) -> Option<i64> {
        let OperandKind::Imm { min, max, step, values } = self else { return None };
        let value = value & mask(word);
        let candidates = [sext(value, u32::from(word)), value as i64];
        candidates.into_iter().find(|&v| match values {
            Some(values) => values.contains(&v),
            None => v >= *min && v <= *max && (v as i128 - *min as i128) % (*step).max(1) as i128 == 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn condition_bits_tell_every_comparison() {
        let edge = [0u64, 1, 2, 0x7fff_fffe, 0x7fff_ffff, 0x8000_0000, 0x8000_0001, 0xffff_fffe, 0xffff_ffff];
        for a in edge {
            for b in edge {
                let flags = flags_sub(a, b, 32);
                for op in [CmpOp::Eq, CmpOp::Ne, CmpOp::LtU, CmpOp::LtS, CmpOp::LeU, CmpOp::LeS] {
                    assert_eq!(flags_test(op, flags), op.eval(a, b, 32), "{a:x} {op:?} {b:x}");
                }
                let sum = a + b;
                assert_eq!(flags_add(a, b, 32) & 1, sum >> 32, "carry of {a:x} + {b:x}");
                let signed = i64::from(a as u32 as i32) + i64::from(b as u32 as i32);
                let overflow = signed != i64::from(signed as i32);
                assert_eq!(flags_add(a, b, 32) & 2 != 0, overflow, "overflow of {a:x} + {b:x}");
            }
        }
    }

    #[test]
    fn immediates_are_found_modulo_the_word() {
        let simm = OperandKind::Imm { min: -4096, max: 4095, step: 1, values: None };
        assert_eq!(simm.imm_for(0xffff_ffff, 32), Some(-1));
        assert_eq!(simm.imm_for(0xffff_ffff, 64), None);
        assert_eq!(simm.imm_for(4096, 32), None);
        let high = OperandKind::Imm { min: 0, max: 0xffff_fc00, step: 1024, values: None };
        assert_eq!(high.imm_for(0xffff_fc00, 32), Some(0xffff_fc00));
        assert_eq!(high.imm_for(0xffff_fc01, 32), None);
        let few = OperandKind::Imm { min: 1, max: 8, step: 1, values: Some(vec![1, 2, 4, 8]) };
        assert_eq!((few.imm_for(4, 32), few.imm_for(3, 32)), (Some(4), None));
    }
}
