//! FoldTable operands: which instruction reads in memory what another one reads in a register.
//!
//! Known elsewhere as folding a load into its user (`foldMemoryOperand` in LLVM). The table is made
//! from the semantics in the machine file: two instructions belong together when their semantics
//! are the same but for one operand, which one of them loads from a base and a displacement.

use ciphermill_machine::print::{Names, statements};
use ciphermill_machine::sem::{Expr, Stmt};
use ciphermill_machine::{Instr, InstrId, InstrKind, Machine, OperandKind};
use std::collections::{BTreeSet, HashMap};

/// By instruction and register operand: the instruction that loads this operand from a base register
/// and a displacement.
pub struct FoldTable {
    folded: HashMap<(InstrId, usize), Folded>,
}

/// An instruction with a memory operand, and where each of its operands comes from.
#[derive(Clone, Debug)]
pub struct Folded {
    pub instr: InstrId,
    pub operands: Vec<FoldedOperand>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FoldedOperand {
    /// The operand of this index of the instruction with registers only.
    Same(usize),
    Base,
    Displacement,
}

/// Bytes of a narrow value, on machines with wider words that also compute in 32 bits.
const NARROW: u8 = 4;

/// Stands for the operand when semantics are compared.
const HERE: Expr = Expr::Temp(9999);

/// Largest semantics, in nodes, that are compared with their `let`s inlined.
const MOST_WRITTEN: usize = 4096;

impl FoldTable {
    /// Compares the semantics of all instructions.
    pub fn new(machine: &Machine) -> FoldTable {
        let mut loads: HashMap<String, usize> = HashMap::new();
        for (i, instr) in machine.instrs.iter().enumerate() {
            if let Some(text) = loaded(machine, instr) {
                loads.entry(text).or_insert(i);
            }
        }
        let mut folded = HashMap::new();
        let list = if loads.is_empty() { &[] } else { &machine.instrs[..] };
        for (i, instr) in list.iter().enumerate().filter(|(_, i)| i.kind == InstrKind::Compute) {
            for (k, operand) in instr.operands.iter().enumerate() {
                if !matches!(operand.kind, OperandKind::Reg { def: false, used: true, .. }) {
                    continue;
                }
                let here = |e: &Expr| (*e == Expr::Operand(k)).then_some(HERE);
                let text = semantics_text(machine, instr, &here);
                let whole =
                    |b: &usize| loaded_bits(&machine.instrs[*b]) == Some(machine.value_bits()) || reads_low(instr, k);
                let found = loads.get(&text).filter(|b| whole(b));
                let found = found.and_then(|&b| Some((b, folded_operands(instr, k, &machine.instrs[b])?)));
                if let Some((b, operands)) = found {
                    folded.insert((InstrId(i as u16), k), Folded { instr: InstrId(b as u16), operands });
                }
            }
        }
        FoldTable { folded }
    }

    pub fn folded(&self, instr: InstrId, operand: usize) -> Option<&Folded> {
        self.folded.get(&(instr, operand))
    }
}

/// Base and displacement of the one word an instruction loads.
fn based(machine: &Machine, instr: &Instr) -> Option<(usize, usize)> {
    let mut found = BTreeSet::new();
    ciphermill_machine::for_each_expr(&instr.semantics, &mut |e| {
        if let Expr::Load { bytes, addr, .. } = e {
            let place = match &**addr {
                Expr::Bin { op: ciphermill_ir::BinOp::Add, a, b, .. } => match (&**a, &**b) {
                    (Expr::Operand(a), Expr::Imm(b))
                        if bytes * 8 == machine.value_bits() || *bytes == NARROW && machine.computes_narrow() =>
                    {
                        Some((*a, *b))
                    }
                    _ => None,
                },
                _ => None,
            };
            found.insert(place);
        }
    });
    let place = found.pop_first().flatten().filter(|_| found.is_empty())?;
    // Every displacement of a frame: on machines of narrow words half of what they can address.
    let whole = if machine.chains.is_some() { i16::MAX.into() } else { u32::MAX.into() };
    let wide = matches!(instr.operands[place.1].kind, OperandKind::Imm { min, max, .. } if max - min >= whole);
    let stack = machine.abi.stack_pointer;
    let file = machine.regs[usize::from(stack.0)].file;
    let holds = matches!(instr.operands[place.0].kind, OperandKind::Reg { file: f, .. } if f == file)
        && instr.only.iter().all(|(at, regs)| *at != place.0 || regs.contains(&stack));
    (wide && holds && instr.kind == InstrKind::Load).then_some(place)
}

fn loaded_bits(instr: &Instr) -> Option<u8> {
    let mut bits = None;
    ciphermill_machine::for_each_expr(&instr.semantics, &mut |e| {
        if let Expr::Load { bytes, .. } = e {
            bits = Some(bytes * 8);
        }
    });
    bits
}

/// Does the instruction read at most 32 bits of its operand `k`? Then the low half of a slot will do.
fn reads_low(instr: &Instr, k: usize) -> bool {
    fn low(e: &Expr, k: usize, cut: bool) -> bool {
        let cut = match e {
            Expr::Operand(i) => return *i != k || cut,
            Expr::Bin { bits, .. }
            | Expr::Un { bits, .. }
            | Expr::Cmp { bits, .. }
            | Expr::FlagsSub { bits, .. }
            | Expr::FlagsAdd { bits, .. }
            | Expr::FlagsLogic { bits, .. } => *bits <= 8 * NARROW,
            Expr::Slice { lo, width, .. } => lo + width <= 8 * NARROW,
            _ => false,
        };
        let mut all = true;
        e.children(|child| all &= low(child, k, cut));
        all
    }
    instr.semantics.iter().all(|s| match s {
        Stmt::Let { value, .. } | Stmt::Assign { value, .. } => low(value, k, false),
        Stmt::Store { addr, value, .. } => low(addr, k, false) && low(value, k, false),
        _ => true,
    })
}

/// The semantics of a load instruction as text, with [`HERE`] for the loaded value.
fn loaded(machine: &Machine, instr: &Instr) -> Option<String> {
    based(machine, instr)?;
    Some(semantics_text(machine, instr, &|e| matches!(e, Expr::Load { .. }).then_some(HERE)))
}

/// Semantics as text, `let`s inlined, and each expression that `open` matches replaced by its answer.
pub fn semantics_text(machine: &Machine, instr: &Instr, open: &dyn Fn(&Expr) -> Option<Expr>) -> String {
    let mut lets: HashMap<usize, Expr> = HashMap::new();
    let mut out = Vec::new();
    // Inlined `let`s may grow without bound. Beyond the limit they stay, and two instructions are
    // the same only if they are written the same.
    let keep = whole(&instr.semantics) > MOST_WRITTEN;
    for s in &instr.semantics {
        let put = |e: &Expr| {
            replaced(e, &|e| match e {
                Expr::Temp(t) => lets.get(t).cloned(),
                e => open(e),
            })
        };
        let made = match s {
            Stmt::Let { temp, value } if keep => Stmt::Let { temp: *temp, value: put(value) },
            Stmt::Let { temp, value } => {
                let value = put(value);
                lets.insert(*temp, value);
                continue;
            }
            Stmt::Assign { dest, value } => Stmt::Assign { dest: dest.clone(), value: put(value) },
            Stmt::Store { bytes, addr, value } => Stmt::Store { bytes: *bytes, addr: put(addr), value: put(value) },
            other => other.clone(),
        };
        out.push(made);
    }
    let names =
        Names { word: machine.word_bits, operands: &instr.operands, regs: &machine.regs, tables: &machine.tables };
    statements(&out, names)
}

/// Nodes of semantics with their `let`s inlined.
fn whole(stmts: &[Stmt]) -> usize {
    let mut lets: HashMap<usize, usize> = HashMap::new();
    let mut all = 0usize;
    for s in stmts {
        let mut size = 0usize;
        ciphermill_machine::for_each_expr(std::slice::from_ref(s), &mut |e| {
            let n = if let Expr::Temp(t) = e { lets.get(t).copied().unwrap_or(1) } else { 1 };
            size = size.saturating_add(n);
        });
        if let Stmt::Let { temp, .. } = s {
            lets.insert(*temp, size);
        } else {
            all = all.saturating_add(size);
        }
    }
    all
}

/// The expression with every subexpression that `with` matches replaced, outermost first.
fn replaced(e: &Expr, with: &dyn Fn(&Expr) -> Option<Expr>) -> Expr {
    if let Some(new) = with(e) {
        return new;
    }
    let sub = |e: &Expr| Box::new(replaced(e, with));
    match e {
        Expr::Bin { op, bits, a, b } => Expr::Bin { op: *op, bits: *bits, a: sub(a), b: sub(b) },
        Expr::Un { op, bits, a } => Expr::Un { op: *op, bits: *bits, a: sub(a) },
        Expr::Cmp { op, bits, a, b } => Expr::Cmp { op: *op, bits: *bits, a: sub(a), b: sub(b) },
        Expr::Select { cond, then, els } => Expr::Select { cond: sub(cond), then: sub(then), els: sub(els) },
        Expr::Slice { a, lo, width } => Expr::Slice { a: sub(a), lo: *lo, width: *width },
        Expr::Load { bytes, signed, addr } => Expr::Load { bytes: *bytes, signed: *signed, addr: sub(addr) },
        Expr::FlagsSub { bits, a, b } => Expr::FlagsSub { bits: *bits, a: sub(a), b: sub(b) },
        Expr::FlagsAdd { bits, a, b } => Expr::FlagsAdd { bits: *bits, a: sub(a), b: sub(b) },
        Expr::FlagsLogic { bits, a } => Expr::FlagsLogic { bits: *bits, a: sub(a) },
        Expr::FlagsTest { op, flags } => Expr::FlagsTest { op: *op, flags: sub(flags) },
        other => other.clone(),
    }
}

/// Where the operands of `other` come from, which loads operand `k` of `instr`.
fn folded_operands(instr: &Instr, k: usize, other: &Instr) -> Option<Vec<FoldedOperand>> {
    let (mut base, mut displacement) = (None, None);
    ciphermill_machine::for_each_expr(&other.semantics, &mut |e| {
        if let Expr::Load { addr, .. } = e
            && let Expr::Bin { a, b, .. } = &**addr
            && let (Expr::Operand(a), Expr::Imm(b)) = (&**a, &**b)
        {
            (base, displacement) = (Some(*a), Some(*b));
        }
    });
    let part = |(i, o): (usize, &ciphermill_machine::Operand)| match i {
        _ if Some(i) == base => Some(FoldedOperand::Base),
        _ if Some(i) == displacement => Some(FoldedOperand::Displacement),
        _ => {
            let same = instr.operands.iter().position(|p| p.name == o.name).filter(|&p| p != k)?;
            let only = |i: &Instr, at: usize| i.only.iter().find(|p| p.0 == at).map(|p| p.1.clone());
            (only(instr, same) == only(other, i)).then_some(FoldedOperand::Same(same))
        }
    };
    let free = instr.only.iter().all(|o| o.0 != k);
    other.operands.iter().enumerate().map(part).collect::<Option<Vec<_>>>().filter(|_| free)
}

/// Does the machine have instructions with tied operands?
pub fn two_address(machine: &Machine) -> bool {
    let ties = |i: &Instr| {
        i.selectable && i.operands.iter().any(|o| matches!(o.kind, OperandKind::Reg { def: true, used: true, .. }))
    };
    machine.issue.interlock && !machine.issue.explicit && machine.instrs.iter().any(ties)
}
