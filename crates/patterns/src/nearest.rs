//! Where a program comes nearest to what an instruction means, and what is missing there:
//! for people who wonder why an instruction that they added is not used.
//!
//! Patterns of arithmetic only: what an instruction with tables or matrices just misses
//! is the report of recognition's to say. Nothing here changes code.

use crate::graph::mapped;
use crate::pat::Pat;
use crate::pattern::{Action, templates};
use crate::wanted;
use ciphermill_ir::{Func, Module, Op, Value};
use ciphermill_machine::{Instr, InstrId, InstrKind, Machine};
use serde::Serialize;
use std::collections::BTreeSet;

/// Operations of a pattern, written out as a tree, up to which it is laid over programs.
const LONGEST: usize = 256;

/// An instruction of an extension, and why it is not used.
#[derive(Clone, Debug, Serialize)]
pub struct Unused {
    pub instruction: String,
    pub why: String,
}

/// A pattern laid over the program.
#[derive(Clone, Copy, Default)]
struct Fit {
    /// Operations that are the same, from the root on.
    alike: usize,
    /// The first that is not: what the instruction has, and what the program.
    differs: Option<(Wanted, Option<Op>)>,
}

#[derive(Clone, Copy)]
enum Wanted {
    Operation(Op),
    Immediate,
    Constant(u64),
}

impl Fit {
    fn and(self, other: Fit) -> Fit {
        Fit { alike: self.alike + other.alike, differs: self.differs.or(other.differs) }
    }

    fn better(self, other: Fit) -> Fit {
        if (other.alike, other.differs.is_none()) > (self.alike, self.differs.is_none()) { other } else { self }
    }
}

/// Of the instructions that extensions added, those not among `used`, with the reason.
pub fn unused(module: &Module, machine: &Machine, used: &BTreeSet<InstrId>) -> Vec<Unused> {
    let all = templates(machine);
    // Of the variants of an instruction, one for each unit, the first speaks for all.
    let others: BTreeSet<InstrId> = machine.variants.iter().flat_map(|v| v.iter().skip(1)).copied().collect();
    let stands = |id: InstrId| machine.variants[usize::from(id.0)].iter().any(|v| used.contains(v));
    let added = |i: &Instr| i.extension.as_ref().is_some_and(|e| machine.extensions.contains(e));
    let waiting = machine.instrs.iter().enumerate().map(|(n, i)| (InstrId(n as u16), i)).filter(|&(id, i)| {
        let chosen = i.selectable && i.kind == InstrKind::Compute && !others.contains(&id);
        added(i) && chosen && !stands(id)
    });
    waiting
        .map(|(id, instr)| {
            let patterns = all.iter().filter_map(|t| match &t.action {
                Action::Value(_, p) if t.parts.len() == 1 && t.parts[0].instr == id => Some(p),
                _ => None,
            });
            let patterns: Vec<&Pat> = patterns.collect();
            Unused { instruction: instr.name.clone(), why: reason(module, &patterns, u32::from(machine.word_bits)) }
        })
        .collect()
}

fn reason(module: &Module, patterns: &[&Pat], bits: u32) -> String {
    if patterns.is_empty() {
        return "no value of the program is what its tables, matrices or several results say".to_owned();
    }
    let patterns: Vec<&Pat> = patterns.iter().copied().filter(|p| size(p) <= LONGEST).collect();
    if patterns.is_empty() {
        return format!("it has more than {LONGEST} operations, too many to say where a program comes near");
    }
    let mut best: Option<(Fit, usize, &str)> = None;
    for func in module.funcs.values() {
        for &inst in func.layout.iter().flat_map(|&b| &func.blocks[b].insts) {
            let data = &func.insts[inst];
            for &pat in &patterns {
                let fit = node(func, pat, data.op, &data.args, bits);
                // The fewest operations missing: some forms of a line have more than others.
                let key = |f: &Fit, all: usize| (f.differs.is_none(), std::cmp::Reverse(all.saturating_sub(f.alike)));
                if fit.alike > 0 && best.as_ref().is_none_or(|b| key(&fit, size(pat)) > key(&b.0, b.1)) {
                    best = Some((fit, size(pat), &func.name));
                }
            }
        }
    }
    match best {
        None => "the program has not even its last operation".to_owned(),
        Some((Fit { differs: None, .. }, _, place)) => {
            format!("{place} has all its operations, but of other values, or what they give is needed elsewhere too")
        }
        Some((Fit { alike, differs: Some((wanted, there)) }, all, place)) => {
            let there = there.map_or("a value from elsewhere".to_owned(), named);
            let wanted = match wanted {
                Wanted::Operation(op) => named(op),
                Wanted::Immediate => "an immediate".to_owned(),
                Wanted::Constant(c) => named(Op::Const(c)),
            };
            format!(
                "the nearest, in {place}, has {alike} of its {all} operations; then where it has {wanted} stands {there}"
            )
        }
    }
}

/// An operation as it is written in semantics.
fn named(op: Op) -> String {
    match op {
        Op::Const(c) => format!("the constant {c:#x}"),
        op => wanted::semantics(op).replace("rd = ", ""),
    }
}

/// Operations of a pattern, written out as a tree.
fn size(pat: &Pat) -> usize {
    let count = |p: &Pat, parts: &[usize]| {
        let own = usize::from(!matches!(p, Pat::Reg(_) | Pat::Imm(_) | Pat::Const(_) | Pat::Apply(..)));
        Some(parts.iter().fold(own, |sum, n| sum.saturating_add(*n)))
    };
    mapped(pat, &count).unwrap_or(0)
}

fn operation(pat: &Pat) -> Option<Op> {
    Some(match pat {
        Pat::Bin(op, ..) => Op::Bin(*op),
        Pat::Un(op, _) => Op::Un(*op),
        Pat::Cmp(op, ..) => Op::Cmp(*op),
        Pat::Select(..) => Op::Select,
        _ => return None,
    })
}

fn node(func: &Func, pat: &Pat, op: Op, args: &[Value], bits: u32) -> Fit {
    let leaf = |p: &Pat, n: usize| leaf(func, p, func.resolve(args[n]), bits);
    let same = Fit { alike: 1, differs: None };
    match (pat, op) {
        (Pat::Bin(p, a, b), Op::Bin(o)) if *p == o => {
            let straight = same.and(leaf(a, 0)).and(leaf(b, 1));
            if o.commutes() { straight.better(same.and(leaf(a, 1)).and(leaf(b, 0))) } else { straight }
        }
        (Pat::Cmp(p, a, b), Op::Cmp(o)) if *p == o => same.and(leaf(a, 0)).and(leaf(b, 1)),
        (Pat::Un(p, a), Op::Un(o)) if *p == o => same.and(leaf(a, 0)),
        (Pat::Select(c, a, b), Op::Select) => same.and(leaf(c, 0)).and(leaf(a, 1)).and(leaf(b, 2)),
        _ => Fit { alike: 0, differs: operation(pat).map(|wanted| (Wanted::Operation(wanted), Some(op))) },
    }
}

fn leaf(func: &Func, pat: &Pat, v: Value, bits: u32) -> Fit {
    let constant = func.as_const(v);
    let there = func.def_inst(v).map(|i| func.insts[i].op);
    match pat {
        Pat::Reg(_) | Pat::Load { .. } | Pat::Apply(..) => Fit::default(),
        Pat::Imm(_) if constant.is_some() => Fit::default(),
        Pat::Imm(_) => Fit { alike: 0, differs: Some((Wanted::Immediate, there)) },
        Pat::Const(k) if constant.is_some_and(|c| (c ^ k) & ciphermill_ir::ops::mask(bits) == 0) => Fit::default(),
        Pat::Const(k) => Fit { alike: 0, differs: Some((Wanted::Constant(*k), there)) },
        _ => match func.def_inst(v) {
            Some(inst) => node(func, pat, func.insts[inst].op, &func.insts[inst].args, bits),
            None => Fit { alike: 0, differs: operation(pat).map(|wanted| (Wanted::Operation(wanted), None)) },
        },
    }
}
