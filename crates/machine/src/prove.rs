//! Compounds tried out: do the parts do what the whole says?
//!
//! Both are executed on the same random registers, immediates and memory, and
//! everything the semantics assign, store or jump to is compared. On every
//! other trial a result shares its register with a source, as an allocator may
//! choose. This is testing, not proof; but a mistake in a sequence of three
//! instructions rarely survives a handful of random words, and the tests of
//! the machines that come with the project use thousands.

use crate::eval::{Memory, Outcome, Value, execute};
use crate::imm::{part_imm, sample_imm};
use crate::model::*;
use crate::random::Random;
use crate::sem::{Dest, Expr, Stmt};
use std::collections::BTreeMap;

/// Memory full of noise, with what was stored laid over it.
#[derive(Default, PartialEq)]
struct Noise {
    big: bool,
    stored: BTreeMap<u64, u8>,
}

impl Noise {
    fn place(&self, addr: u64, i: u8, bytes: u8) -> u64 {
        addr.wrapping_add(u64::from(if self.big { bytes - 1 - i } else { i }))
    }
}

impl Memory for Noise {
    fn load(&self, addr: u64, bytes: u8) -> Option<u64> {
        let byte = |i| {
            let at = self.place(addr, i, bytes);
            let noise = || Random::new(at).bits() as u8;
            u64::from(self.stored.get(&at).copied().unwrap_or_else(noise)) << (8 * i)
        };
        Some((0..bytes).map(byte).fold(0, |a, b| a | b))
    }
    fn store(&mut self, addr: u64, bytes: u8, value: u64) -> Option<()> {
        for i in 0..bytes {
            self.stored.insert(self.place(addr, i, bytes), (value >> (8 * i)) as u8);
        }
        Some(())
    }
}

/// Values for which a compound's parts do something other than its semantics.
pub fn counterexample(machine: &Machine, compound: &Compound, trials: usize) -> Option<String> {
    let mut random = Random::new(0x636f6d70);
    (0..trials).find_map(|trial| one_trial(machine, compound, &mut random, trial % 2 == 1))
}

fn one_trial(machine: &Machine, c: &Compound, random: &mut Random, shared: bool) -> Option<String> {
    let word = machine.word_bits;
    let mut taken: Vec<Reg> = Vec::new();
    crate::kind::for_each_expr(&c.semantics, &mut |e| {
        if let Expr::Fixed(r) = e {
            taken.push(*r)
        }
    });
    for part in &c.parts {
        taken.extend(part.args.iter().filter_map(|a| if let PartArg::Reg(r) = a { Some(*r) } else { None }));
        let stmts = &machine.instrs[usize::from(part.instr.0)].semantics;
        taken.extend(stmts.iter().filter_map(|s| match s {
            Stmt::Assign { dest: Dest::Fixed(r), .. } => Some(*r),
            _ => None,
        }));
    }
    let mut fresh = |file: FileId| {
        let f = &machine.files[file];
        let reg = (f.first.0..f.first.0 + f.count)
            .map(Reg)
            .find(|r| !machine.regs[usize::from(r.0)].zero && !taken.contains(r))?;
        taken.push(reg);
        Some(reg)
    };
    let mut operands = Vec::new();
    for o in &c.operands {
        operands.push(match &o.kind {
            OperandKind::Reg { file, .. } => Value::Reg(fresh(*file)?),
            OperandKind::Label => Value::Imm(0x4000),
            imm => Value::Imm(sample_imm(imm, random)),
        });
    }
    let mut scratch: BTreeMap<usize, Reg> = BTreeMap::new();
    for part in &c.parts {
        for (arg, o) in part.args.iter().zip(&machine.instrs[usize::from(part.instr.0)].operands) {
            if let (PartArg::Scratch(n), OperandKind::Reg { file, .. }) = (arg, &o.kind)
                && !scratch.contains_key(n)
            {
                scratch.insert(*n, fresh(*file)?);
            }
        }
    }
    if shared {
        // A result in the register of a source of the same file.
        let find = |def: bool| {
            c.operands
                .iter()
                .position(|o| matches!(o.kind, OperandKind::Reg { def: d, used, .. } if d == def && used != def))
        };
        if let (Some(to), Some(from)) = (find(true), find(false))
            && let (OperandKind::Reg { file: a, .. }, OperandKind::Reg { file: b, .. }) =
                (&c.operands[to].kind, &c.operands[from].kind)
            && a == b
        {
            operands[to] = operands[from];
        }
    }
    let start: Vec<u64> =
        machine.regs.iter().map(|r| random.word() & crate::fold::mask(machine.files[r.file].bits)).collect();
    let noise = || Noise { big: machine.endian == Endian::Big, stored: BTreeMap::new() };

    let (mut regs, mut memory) = (start.clone(), noise());
    let outcome = execute(machine, &c.semantics, &operands, &mut regs, 0x1000, &mut memory)?;
    let (mut part_regs, mut part_memory, mut part_outcome) = (start.clone(), noise(), Some(Outcome::Next));
    let imm = |i: usize| if let Value::Imm(v) = operands.get(i)? { Some(*v) } else { None };
    for part in &c.parts {
        let instr = &machine.instrs[usize::from(part.instr.0)];
        let mut args = Vec::new();
        for (arg, o) in part.args.iter().zip(&instr.operands) {
            args.push(match arg {
                PartArg::Operand(i) if matches!(o.kind, OperandKind::Imm { .. }) => {
                    Value::Imm(part_imm(&Expr::Imm(*i), imm, &o.kind, word)?)
                }
                PartArg::Operand(i) => operands[*i],
                PartArg::Scratch(n) => Value::Reg(*scratch.get(n)?),
                PartArg::Reg(r) => Value::Reg(*r),
                PartArg::Imm(e) => Value::Imm(part_imm(e, imm, &o.kind, word)?),
            });
        }
        part_outcome = execute(machine, &instr.semantics, &args, &mut part_regs, 0x1000, &mut part_memory);
    }

    let values = || {
        let show = |(o, v): (&Operand, &Value)| match v {
            Value::Reg(r) => format!("{} = {:#x}", o.name, start[usize::from(r.0)]),
            Value::Imm(i) => format!("{} = {i:#x}", o.name),
        };
        c.operands.iter().zip(&operands).map(show).collect::<Vec<_>>().join(", ")
    };
    for stmt in &c.semantics {
        let Stmt::Assign { dest, .. } = stmt else { continue };
        let (name, reg) = match dest {
            Dest::Fixed(r) => (machine.regs[usize::from(r.0)].name.as_str(), *r),
            Dest::Operand(i) => match operands[*i] {
                Value::Reg(r) => (c.operands[*i].name.as_str(), r),
                Value::Imm(_) => continue,
            },
        };
        let (said, done) = (regs[usize::from(reg.0)], part_regs[usize::from(reg.0)]);
        if said != done {
            return Some(format!("with {} it says {name} = {said:#x}, its parts give {done:#x}", values()));
        }
    }
    if memory != part_memory {
        return Some(format!("with {} its parts store something else", values()));
    }
    if part_outcome != Some(outcome) {
        return Some(format!("with {} it says {outcome:?}, its parts give {part_outcome:?}", values()));
    }
    None
}
