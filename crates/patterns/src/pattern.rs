//! Templates: the semantics of instructions and compounds, as patterns.
//!
//! A [`Template`] is one way of computing something: the pattern that the
//! program's expression must have, the operands that bind to its leaves, and
//! the instructions to emit. An instruction is a template of one part; a
//! compound brings its own parts. Templates that the selector can never match
//! (they only write flags) are simply not made; those with tables and matrices
//! are made by recognition.

use crate::graph::{any, mapped, nodes, operations};
use crate::pat::Pat;
use crate::spellings::{spellings, turned};
use ciphermill_ir::{BinOp, CmpOp, UnOp};
use ciphermill_machine::sem::{Dest, Expr, Stmt};
use ciphermill_machine::{CompoundPart, InstrId, InstrKind, Machine, Operand, OperandKind, PartArg};
use std::collections::HashSet;
use std::sync::Arc;

/// What a template brings about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// The pattern's value in the register operand of this index.
    Value(usize, Pat),
    Store {
        bytes: u8,
        addr: Pat,
        value: Pat,
    },
    /// A jump to the label operand when the condition is not zero.
    Branch {
        cond: Pat,
        label: usize,
    },
}

#[derive(Clone, Debug)]
pub struct Template {
    pub action: Action,
    /// Bits that its operations compute in; 0 where that is all the same. On most machines the word's.
    pub bits: u8,
    pub operands: Vec<Operand>,
    pub parts: Vec<CompoundPart>,
    pub scratch: usize,
    /// A load or store that works at any address.
    pub unaligned: bool,
    /// A load from flash, and from nowhere else.
    pub flash: bool,
    /// Cycles of issue, in sixteenths, plus a little for latency and size.
    pub cost: u32,
    /// Immediates that the template means, by operand.
    pub fixed: Vec<(usize, i64)>,
    /// The result's register is read, but what was in it does not matter.
    pub any_old: bool,
    /// An extension's instruction that does several operations: it also stands
    /// where others need some of what it computes inside.
    pub deep: bool,
}

impl Template {
    /// Registers that it gives a value to without reading them, in the order of its operands.
    pub fn results(&self) -> impl Iterator<Item = usize> {
        let gives = |o: &Operand| matches!(o.kind, OperandKind::Reg { def: true, used: false, .. });
        (0..self.operands.len()).filter(move |&i| gives(&self.operands[i]))
    }
}

/// Operations from which on an extension's instruction is deep.
const DEEP: usize = 3;

/// Operations up to which an instruction is tried in all its spellings. A longer one has
/// too many, and a program that happens to have it whole is none we know.
const SPELT: usize = 12;

/// Nodes of a value's pattern, at most. No program has a larger one the very way it is written; what
/// such an instruction computes may be recognised.
const MOST_NODES: usize = 256;

/// All templates of a machine, in the order of its file.
pub fn templates(machine: &Machine) -> Vec<Template> {
    let mut out = Vec::new();
    for (id, instr) in machine.instrs.iter().enumerate() {
        if !instr.selectable
            || !matches!(instr.kind, InstrKind::Compute | InstrKind::Load | InstrKind::Store | InstrKind::Branch)
        {
            continue;
        }
        let mut found = actions(machine, &instr.semantics);
        let args = (0..instr.operands.len()).map(PartArg::Operand).collect();
        let parts = vec![CompoundPart { instr: InstrId(id as u16), args }];
        let unaligned = instr.unaligned || machine.memory.unaligned;
        let added = instr.extension.as_ref().is_some_and(|e| machine.extensions.contains(e));
        let cost = cost(machine, &parts);
        if added && machine.computes_narrow() {
            found.extend(bitwise(&found).map(|a| (32, a)));
        }
        found.retain(|(_, action)| !matches!(action, Action::Value(_, p) if nodes(p) > MOST_NODES));
        for (bits, action) in found {
            let deep = instr.extension.is_some() && matches!(&action, Action::Value(_, p) if operations(p) >= DEEP);
            let actions = match action {
                // Who writes an extension need not know how programs are written.
                Action::Value(dest, p) if added => spelt(dest, p, if bits == 0 { machine.word_bits } else { bits }),
                action => vec![action],
            };
            out.extend(actions.into_iter().map(|action| Template {
                action,
                bits,
                operands: instr.operands.clone(),
                cost,
                parts: parts.clone(),
                scratch: 0,
                unaligned,
                flash: instr.flash,
                fixed: vec![],
                any_old: false,
                deep,
            }));
        }
    }
    for compound in &machine.compounds {
        for (bits, action) in actions(machine, &compound.semantics) {
            out.push(Template {
                action,
                bits,
                operands: compound.operands.clone(),
                cost: cost(machine, &compound.parts),
                parts: compound.parts.clone(),
                scratch: compound.scratch,
                unaligned: machine.memory.unaligned,
                flash: false,
                fixed: vec![],
                any_old: false,
                deep: false,
            });
        }
    }
    out
}

/// A value in all the ways that a program may have written it.
fn spelt(dest: usize, p: Pat, word: u8) -> Vec<Action> {
    let all = match operations(&p) {
        0 | 1 => vec![p],
        n if n <= SPELT => spellings(&p, word),
        _ => turned(&p, word),
    };
    all.into_iter().map(|p| Action::Value(dest, p)).collect()
}

/// Templates of the instructions that give several results: for each of these and for
/// every result, its spellings. [`crate::several`] uses them. Not those of clustered
/// machines, where both results would have to be in the unit's cluster.
pub fn several(machine: &Machine) -> Vec<Vec<Vec<Template>>> {
    let group = |(id, instr): (usize, &ciphermill_machine::Instr)| {
        if !instr.selectable || instr.kind != InstrKind::Compute || machine.variants[id].len() > 1 {
            return None;
        }
        let parts = vec![CompoundPart {
            instr: InstrId(id as u16),
            args: (0..instr.operands.len()).map(PartArg::Operand).collect(),
        }];
        let template = |action| Template {
            action,
            bits: machine.word_bits,
            operands: instr.operands.clone(),
            cost: cost(machine, &parts),
            parts: parts.clone(),
            scratch: 0,
            unaligned: false,
            flash: false,
            fixed: vec![],
            any_old: false,
            deep: true,
        };
        let overwrites = |o: &Operand| matches!(o.kind, OperandKind::Reg { def: true, used: true, .. });
        let added = instr.extension.as_ref().is_some_and(|e| machine.extensions.contains(e));
        let ways = |action| match action {
            Action::Value(dest, p) if added => spelt(dest, p, machine.word_bits).into_iter().map(template).collect(),
            action => vec![template(action)],
        };
        let group: Vec<Vec<Template>> =
            results(&instr.semantics, Width::words(machine))?.into_iter().map(ways).collect();
        (group.len() > 1 && !instr.operands.iter().any(overwrites) && complete(&group)).then_some(group)
    };
    machine.instrs.iter().enumerate().filter_map(group).collect()
}

/// The results of semantics that do nothing else than assign operands.
fn results(semantics: &[Stmt], word: Width) -> Option<Vec<Action>> {
    let mut lets: Vec<Arc<Pat>> = Vec::new();
    let mut out = Vec::new();
    for stmt in semantics {
        match stmt {
            Stmt::Let { value, .. } => lets.push(pat(value, &lets, word)?),
            Stmt::Assign { dest: Dest::Operand(d), value } => {
                out.push(Action::Value(*d, owned(value, &lets, word).filter(|p| operations(p) > 0)?));
            }
            _ => return None,
        }
    }
    Some(out)
}

pub fn cost(machine: &Machine, parts: &[CompoundPart]) -> u32 {
    parts
        .iter()
        .map(|p| {
            let i = &machine.instrs[p.instr.0 as usize];
            16 * i.issue_cycles + 2 * i.latency.saturating_sub(1) + u32::from(i.bytes) / 4
        })
        .sum()
}

/// What semantics bring about, with the bits that [`Template::bits`] says.
fn actions(machine: &Machine, semantics: &[Stmt]) -> Vec<(u8, Action)> {
    let words = Width::words(machine);
    let whole = action(semantics, words);
    if !machine.computes_narrow() {
        return whole.into_iter().map(|a| (machine.word_bits, a)).collect();
    }
    let narrow = action(semantics, Width { bits: 32, ..words });
    match (whole, narrow) {
        (Some(a), Some(b)) if a == b => vec![(0, a)],
        (a, b) => a.map(|a| (machine.word_bits, a)).into_iter().chain(b.map(|b| (32, b))).collect(),
    }
}

/// What an instruction on whole words does to values of 32 bits with zeros above them, where it
/// looks at each bit by itself and leaves these zeros. Who writes an extension need not know in
/// which width programs compute; the machine's own instructions are there for both.
fn bitwise(found: &[(u8, Action)]) -> Option<Action> {
    /// The pattern in 32 bits, and whether there are zeros above it.
    type Low = (Arc<Pat>, bool);
    let low = |p: &Pat, parts: &[Low]| {
        Some(match (p, parts) {
            (Pat::Reg(_), _) => (Arc::new(p.clone()), true),
            (Pat::Const(c), _) => (Arc::new(Pat::Const(c & ciphermill_ir::ops::mask(32))), c >> 32 == 0),
            (Pat::Bin(op @ (BinOp::And | BinOp::Or | BinOp::Xor), ..), [(a, above_a), (b, above_b)]) => {
                let above = if *op == BinOp::And { *above_a || *above_b } else { *above_a && *above_b };
                (Arc::new(Pat::Bin(*op, a.clone(), b.clone())), above)
            }
            _ => return None,
        })
    };
    match found {
        [(64, Action::Value(dest, p))] => {
            mapped(p, &low).filter(|l| l.1).map(|l| Action::Value(*dest, Arc::unwrap_or_clone(l.0)))
        }
        _ => None,
    }
}

/// Bits in which a pattern computes.
#[derive(Clone, Copy)]
struct Width {
    bits: u8,
    /// Of addresses.
    addresses: u8,
    word: u8,
    /// Only the low bits of the expression count.
    low: bool,
}

impl Width {
    fn words(machine: &Machine) -> Width {
        let word = machine.word_bits;
        Width { bits: word, addresses: if machine.computes_narrow() { 32 } else { word }, word, low: false }
    }

    fn of_addresses(self) -> Width {
        Width { bits: self.addresses, low: false, ..self }
    }

    /// May an operation of so many bits be taken for one of these? Where only the low bits
    /// count, one of more may if no higher bit gets into them.
    fn takes(self, bits: u8, upwards: bool) -> bool {
        bits == self.bits || self.low && upwards && bits > self.bits
    }
}

fn action(semantics: &[Stmt], word: Width) -> Option<Action> {
    let mut lets: Vec<Arc<Pat>> = Vec::new();
    let mut found = None;
    for stmt in semantics {
        let new = match stmt {
            Stmt::Let { value, .. } => {
                lets.push(pat(value, &lets, word)?);
                continue;
            }
            Stmt::Assign { dest: Dest::Operand(d), value } => Action::Value(*d, owned(unguarded(value), &lets, word)?),
            Stmt::Store { bytes, addr, value } => Action::Store {
                bytes: *bytes,
                addr: owned(addr, &lets, word.of_addresses())?,
                value: owned(value, &lets, word)?,
            },
            Stmt::Goto { cond: Some(cond), target: Expr::Imm(label) } => {
                Action::Branch { cond: owned(cond, &lets, word)?, label: *label }
            }
            // A register written beside the result (`y`, the flags) is no
            // hindrance: the scheduler knows of it.
            Stmt::Assign { dest: Dest::Fixed(_), .. } => continue,
            _ => return None,
        };
        if found.replace(new).is_some() {
            return None;
        }
    }
    found
}

/// A division without what the machine does for the divisors 0 and -1.
///
/// A selected division never has a divisor of 0 and never overflows, because
/// the expansion has put WebAssembly's checks before it; and by -1 the arms
/// that machines have say nothing else than the division does.
fn unguarded(e: &Expr) -> &Expr {
    let mut inner = e;
    while let Expr::Select { cond, els, .. } = inner {
        match &**cond {
            Expr::Cmp { op: CmpOp::Eq, a, b, .. } if matches!((&**a, &**b), (Expr::Operand(_), Expr::Const(_))) => {
                inner = els;
            }
            _ => return e,
        }
    }
    if matches!(inner, Expr::Bin { op, .. } if op.may_trap()) { inner } else { e }
}

/// The pattern of an expression; None when the selector cannot match it.
fn pat(e: &Expr, lets: &[Arc<Pat>], width: Width) -> Option<Arc<Pat>> {
    let word = width.bits;
    let within = |e: &Expr, low: bool| pat(e, lets, Width { low: low && width.low, ..width });
    let sub = |e: &Expr| within(e, false);
    Some(Arc::new(match e {
        Expr::Operand(i) => Pat::Reg(*i),
        Expr::Imm(i) => Pat::Imm(*i),
        Expr::Temp(i) => return lets.get(*i).cloned(),
        Expr::Const(c) => Pat::Const(*c),
        Expr::Bin {
            op: op @ (BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::And | BinOp::Or | BinOp::Xor),
            bits,
            a,
            b,
        } if width.takes(*bits, true) => Pat::Bin(*op, within(a, true)?, within(b, true)?),
        // The amount of such a shift is less than 32: it counts modulo 64.
        Expr::Bin { op: BinOp::Shl, bits, a, b }
            if width.takes(*bits, matches!(**b, Expr::Const(0..32) | Expr::Imm(_))) =>
        {
            Pat::Bin(BinOp::Shl, within(a, true)?, sub(b)?)
        }
        Expr::Bin { op, bits, a, b } if *bits == word => Pat::Bin(*op, sub(a)?, sub(b)?),
        Expr::Un { op: op @ (UnOp::SExt8 | UnOp::SExt16), bits, a } if width.takes(*bits, true) => {
            Pat::Un(*op, sub(a)?)
        }
        Expr::Un { op, bits, a } if *bits == word => Pat::Un(*op, sub(a)?),
        Expr::Slice { a, lo: 0, width: 32 } if width.word == 64 && width.addresses == 32 => {
            if word == 32 {
                return pat(a, lets, Width { low: true, ..width });
            } else {
                Pat::Low(sub(a)?)
            }
        }
        Expr::Cmp { op, bits, a, b } if *bits == word => Pat::Cmp(*op, sub(a)?, sub(b)?),
        Expr::Select { cond, then, els } => Pat::Select(sub(cond)?, sub(then)?, sub(els)?),
        // Bits that 32 have not.
        Expr::Slice { lo, width, .. } if lo + width > word => return None,
        Expr::Slice { a, lo, width } => {
            let shifted = match lo {
                0 => sub(a)?,
                _ => Arc::new(Pat::Bin(BinOp::ShrU, sub(a)?, Arc::new(Pat::Const(u64::from(*lo))))),
            };
            if lo + width >= word {
                return Some(shifted);
            } else {
                let mask = ciphermill_ir::ops::mask(u32::from(*width));
                Pat::Bin(BinOp::And, shifted, Arc::new(Pat::Const(mask)))
            }
        }
        // Its sign would stand above the 32 bits.
        Expr::Load { signed: true, .. } if word < width.word && !width.low => return None,
        Expr::Load { bytes, signed, addr } => Pat::Load {
            bytes: *bytes,
            signed: *signed && *bytes < word / 8,
            addr: pat(addr, lets, width.of_addresses())?,
        },
        _ => return None,
    }))
}

/// The same as a root.
fn owned(e: &Expr, lets: &[Arc<Pat>], width: Width) -> Option<Pat> {
    pat(e, lets, width).map(Arc::unwrap_or_clone)
}

/// Does the constant `c` of `bits` bits fit the immediate operand? Tried as a
/// signed and as an unsigned number.
pub fn fits(operand: &Operand, c: u64, bits: u32) -> Option<i64> {
    let OperandKind::Imm { min, max, step, values } = &operand.kind else { return None };
    let ok = |v: &i64| match values {
        Some(list) => list.contains(v),
        None => *v >= *min && *v <= *max && (v.wrapping_sub(*min) as u64).is_multiple_of(*step.max(&1) as u64),
    };
    [ciphermill_ir::ops::sext(c, bits), c as i64].into_iter().find(ok)
}

/// The immediate that makes a pattern of constants and one immediate equal
/// `c`: how `lui` or `sethi` loads a constant, how `andn` takes a mask.
pub fn solve(pat: &Pat, c: u64, bits: u32, operands: &[Operand]) -> Option<(usize, i64)> {
    let m = ciphermill_ir::ops::mask(bits);
    match pat {
        Pat::Imm(i) => Some((*i, fits(&operands[*i], c & m, bits)?)),
        Pat::Bin(op, a, b) => match (&**a, &**b, op) {
            (x, Pat::Const(k), BinOp::Shl) => {
                let n = (*k as u32) % bits;
                // An immediate that loses bits in the shift would also do, but
                // the machine files' ranges make the first one unique.
                (c & m & ((1 << n) - 1) == 0).then(|| solve(x, (c & m) >> n, bits, operands))?
            }
            (x, Pat::Const(k), BinOp::Xor) | (Pat::Const(k), x, BinOp::Xor) => solve(x, (c ^ k) & m, bits, operands),
            (x, Pat::Const(k), BinOp::Add) | (Pat::Const(k), x, BinOp::Add) => {
                solve(x, c.wrapping_sub(*k) & m, bits, operands)
            }
            (Pat::Const(k), x, BinOp::Sub) => solve(x, k.wrapping_sub(c) & m, bits, operands),
            _ => None,
        },
        _ => None,
    }
}

/// The pattern of a single expression (a rule's left side).
pub fn expression(e: &Expr, word: u8) -> Option<Pat> {
    owned(e, &[], Width { bits: word, addresses: word, word, low: false })
}

/// Is every operand of an instruction's templates but the results bound by one of
/// their patterns? All spellings of a result have the same operands.
fn complete(group: &[Vec<Template>]) -> bool {
    let firsts: Vec<&Template> = group.iter().flat_map(|spellings| spellings.first()).collect();
    let mut bound = HashSet::new();
    for t in &firsts {
        let Action::Value(dest, pat) = &t.action else { return false };
        bound.insert(*dest);
        leaves(pat, &mut bound);
    }
    firsts.iter().all(|t| (0..t.operands.len()).all(|i| bound.contains(&i)))
}

fn leaves(pat: &Pat, out: &mut HashSet<usize>) {
    any(pat, |p| {
        if let Pat::Reg(i) | Pat::Imm(i) = p {
            out.insert(*i);
        }
        false
    });
}
