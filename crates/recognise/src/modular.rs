//! Finding arithmetic modulo a number: products and sums that are reduced, as one instruction does it.
//!
//! There are many ways to write a remainder, Montgomery's and Barrett's with their signs, halves
//! and corrections, and a compiler moves the constants about. So values are compared as
//! polynomials with parts ([`super::residue`]): a value that is made of one or two others alone,
//! and an instruction of as many registers. Where only some lower bits of a value are looked at,
//! these have to be equal.

use super::facts::Facts;
use super::form;
use super::ranges::{Ranges, signed};
use super::residue::{Range, Residue};
use super::semantics::{self, Fixed, register_sources};
use super::wanted;
use ciphermill_ir::{BinOp, Inst, Op, Value};
use ciphermill_machine::sem::Expr;
use ciphermill_machine::{Instr, InstrKind, Machine};
use ciphermill_patterns::pattern::Template;
use std::collections::{BTreeSet, HashMap};

/// Values that are made of the same few others, at most. A butterfly with its reductions has some thirty.
const MOST_MADE: usize = 80;
/// Values above an operand that are tried as sources, at most: a sign takes one or two.
const MOST_ABOVE: usize = 4;
/// Sets of sources tried in a function, at most.
const MOST_SETS: usize = 20_000;

/// An instruction that computes modulo some number, with its immediates fixed.
#[derive(Clone)]
pub struct Reduction {
    /// The number of [`Op::Apply`].
    pub function: u16,
    instr: Instr,
    sources: Vec<usize>,
    immediates: Vec<(usize, i64)>,
    bits: u32,
    /// Lower bits of each source that it looks at.
    reads: Vec<u32>,
}

impl Reduction {
    /// The operand that is assigned, and what.
    fn assigned(&self, sources: &[Residue]) -> Option<(usize, Residue)> {
        let leaf = |e: &Expr| {
            Some(match e {
                Expr::Operand(i) => sources.get(self.sources.iter().position(|s| s == i)?)?.clone(),
                Expr::Imm(i) => Residue::constant(self.immediates.iter().find(|m| m.0 == *i)?.1 as u64, self.bits),
                Expr::Const(c) => Residue::constant(*c, self.bits),
                _ => return None,
            })
        };
        form::assigned(&self.instr.semantics, &[], self.bits, &leaf)
    }

    /// Lower bits that decide what a source does to the result: what is added above them shows nowhere.
    fn looks_at(&self, source: usize, all: &[Residue]) -> u32 {
        let same = |bits: &u32| {
            let above = Residue::source(all.len(), signed(self.bits), self.bits).scaled(1 << bits);
            let mut sources = all.to_vec();
            sources[source] = sources[source].plus(&above, 1);
            self.assigned(&sources).is_some_and(|value| Some(value) == self.assigned(all))
        };
        [8, 16, 32].into_iter().filter(|&bits| bits < self.bits).find(same).unwrap_or(self.bits)
    }
}

/// The machine's instructions that compute modulo a number, with templates that are functions `from` and on.
pub fn reductions(machine: &Machine, from: usize) -> (Vec<Reduction>, Vec<Template>) {
    let (mut reductions, mut templates) = (Vec::new(), Vec::new());
    let bits = u32::from(machine.word_bits);
    // Narrow words are no whole values.
    if bits < 32 || machine.value_bits() < machine.word_bits {
        return (reductions, templates);
    }
    for (id, instr) in machine.instrs.iter().enumerate() {
        let sources = register_sources(&instr.operands);
        if !instr.selectable || instr.kind != InstrKind::Compute || !(1..=2).contains(&sources.len()) {
            continue;
        }
        for immediates in semantics::immediates(&instr.operands) {
            let function = (from + templates.len()) as u16;
            let mut reduction = Reduction {
                function,
                instr: instr.clone(),
                sources: sources.clone(),
                immediates: immediates.clone(),
                bits,
                reads: Vec::new(),
            };
            let all: Vec<Residue> = (0..sources.len()).map(|n| Residue::source(n, signed(bits), bits)).collect();
            let Some((dest, _)) = reduction.assigned(&all).filter(|(_, value)| is_modular(value)) else { continue };
            reduction.reads = (0..sources.len()).map(|n| reduction.looks_at(n, &all)).collect();
            let fixed = Fixed { immediates, ..Fixed::of(id, instr) };
            templates.push(fixed.template(machine, dest, &sources, function, false));
            reductions.push(reduction);
        }
    }
    (reductions, templates)
}

/// Is there a part of something, a quotient or a sign, that is taken a number of times that is no power of two?
pub fn is_modular(value: &Residue) -> bool {
    let mut found = false;
    value.parts(&mut |_, c| found |= c.is_some_and(|c| !c.unsigned_abs().is_power_of_two()));
    found
}

/// A value that is what an instruction gives.
#[derive(Clone, Debug)]
pub struct Match {
    pub function: u16,
    pub sources: Vec<Value>,
    /// Lower bits that are equal.
    bits: u32,
    /// Lower bits of each source that count.
    reads: Vec<u32>,
}

/// All values of a function that an instruction gives, in the bits that are looked at; where `whole`, in all.
pub fn find(facts: &Facts<'_>, reductions: &[Reduction], whole: bool) -> HashMap<Value, Match> {
    let mut found: HashMap<Value, (usize, Match)> = HashMap::new();
    if reductions.is_empty() {
        return HashMap::new();
    }
    let made = Made::new(facts);
    let func = facts.func;
    let mut known: HashMap<(usize, Vec<Residue>), Option<Residue>> = HashMap::new();
    let fit = |set: &Vec<Value>| {
        set.iter().all(|&v| func.ty(v) == facts.word) && reductions.iter().any(|r| r.sources.len() == set.len())
    };
    let mut last: (Vec<Value>, Vec<(Value, Residue)>) = Default::default();
    for sources in made.sets().into_iter().filter(fit) {
        let source = |(n, &v): (usize, &Value)| match func.as_const(v) {
            Some(c) => Residue::constant(c, facts.word.bits()),
            None => Residue::source(n, made.range(v), facts.word.bits()),
        };
        let given: Vec<Residue> = sources.iter().enumerate().map(source).collect();
        // One value with several constants comes several times in a row.
        let variable: Vec<Value> = sources.iter().copied().filter(|&v| func.as_const(v).is_none()).collect();
        if last.0 != variable {
            let values = made.of(&variable);
            let values = values.into_iter().filter(|(v, form)| is_modular(form) || is_modular(&made.seen(*v, form)));
            let values = values.collect();
            last = (variable, values);
        }
        let values = &last.1;
        let age = sources.iter().map(|v| made.order.get(v).copied().unwrap_or(0)).sum::<usize>();
        for order in orders(sources.len()).into_iter().filter(|_| !values.is_empty()) {
            for (n, reduction) in reductions.iter().enumerate().filter(|r| r.1.sources.len() == sources.len()) {
                let own: Vec<Residue> = order.iter().map(|&n| given[n].clone()).collect();
                let make = || reduction.assigned(&own).map(|(_, value)| value);
                let Some(value) = known.entry((n, own.clone())).or_insert_with(make) else { continue };
                for (v, form) in values {
                    let all = facts.word.bits();
                    let bits = if whole { all } else { made.wanted(*v) };
                    let equal = if bits < all { form.reduced(bits) == value.reduced(bits) } else { form == value };
                    if equal && bits > 0 && found.get(v).is_none_or(|old| age < old.0) {
                        let bits = if form == value { all } else { bits };
                        let sources = order.iter().map(|&n| sources[n]).collect();
                        let m = Match { function: reduction.function, sources, bits, reads: reduction.reads.clone() };
                        found.insert(*v, (age, m));
                    }
                }
            }
        }
    }
    // A value that is right in some bits only is none for an instruction that looks at more.
    let mut read: HashMap<Value, u32> = HashMap::new();
    for (_, m) in found.values() {
        for (&source, &bits) in m.sources.iter().zip(&m.reads) {
            let most = read.entry(source).or_default();
            *most = bits.max(*most);
        }
    }
    found.retain(|v, (_, m)| read.get(v).is_none_or(|&bits| bits <= m.bits));
    found.into_iter().map(|(v, (_, m))| (v, m)).collect()
}

fn orders(sources: usize) -> Vec<Vec<usize>> {
    if sources == 2 { vec![vec![0, 1], vec![1, 0]] } else { vec![(0..sources).collect()] }
}

/// What of a function is made of a few of its values.
pub struct Made<'a> {
    facts: &'a Facts<'a>,
    /// The number of the instruction that makes a value.
    pub order: HashMap<Value, usize>,
    ranges: Ranges<'a>,
    insts: Vec<Inst>,
    users: HashMap<Value, Vec<usize>>,
    wanted: HashMap<Value, u32>,
    /// The nearest value that another is made of alone.
    above: HashMap<Value, Value>,
}

impl<'a> Made<'a> {
    pub fn new(facts: &'a Facts<'a>) -> Made<'a> {
        let func = facts.func;
        let insts: Vec<Inst> = facts.insts().collect();
        let mut made = Made {
            facts,
            order: HashMap::new(),
            ranges: Ranges::new(func, &facts.masks),
            insts,
            users: HashMap::new(),
            wanted: wanted::low_bits(func),
            above: HashMap::new(),
        };
        for (n, &inst) in made.insts.iter().enumerate() {
            let data = &func.insts[inst];
            made.order.extend(data.results.iter().map(|&r| (r, n + 1)));
            let operands: BTreeSet<Value> = made.variable(inst).collect();
            for &v in &operands {
                made.users.entry(v).or_default().push(n);
            }
            let alone: Vec<Value> = operands.into_iter().collect();
            if let (&[v], &[result]) = (&alone[..], &data.results[..])
                && has_form(data.op)
            {
                made.above.insert(result, v);
            }
        }
        made
    }

    fn variable(&self, inst: Inst) -> impl Iterator<Item = Value> + '_ {
        let func = self.facts.func;
        func.insts[inst].args.iter().map(|&v| func.resolve(v)).filter(|&v| func.as_const(v).is_none())
    }

    /// Lower bits of a value that are looked at.
    pub fn wanted(&self, v: Value) -> u32 {
        self.wanted.get(&v).copied().unwrap_or(0)
    }

    /// What of a form is looked at, as a number with a sign.
    pub fn seen(&self, v: Value, form: &Residue) -> Residue {
        form.seen(self.wanted(v))
    }

    /// Values that others may be made of: one that is, and both operands of a sum or product, of which one
    /// may be a constant, and what these are made of.
    pub fn sets(&self) -> Vec<Vec<Value>> {
        let func = self.facts.func;
        let mut sets: BTreeSet<Vec<Value>> = BTreeSet::new();
        for &v in self.above.values() {
            sets.insert(vec![v]);
        }
        let above = |v: Value| std::iter::successors(Some(v), |v| self.above.get(v).copied()).take(MOST_ABOVE);
        for &inst in &self.insts {
            let Op::Bin(op) = func.insts[inst].op else { continue };
            let arithmetic = matches!(op, BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::MulHiU | BinOp::MulHiS);
            let args = func.insts[inst].args.iter().map(|&v| func.resolve(v));
            match (args.clone().partition::<Vec<_>, _>(|&v| func.as_const(v).is_none()), op) {
                ((both, _), _) if arithmetic && both.len() == 2 => {
                    let pairs = above(both[0]).flat_map(|a| above(both[1]).map(move |b| vec![a.min(b), a.max(b)]));
                    sets.extend(pairs.filter(|pair| pair[0] != pair[1]));
                }
                // A root of unity of a loop that is none any more.
                ((one, constant), BinOp::Mul) if one.len() == 1 => {
                    sets.extend(above(one[0]).map(|v| vec![v, constant[0]]));
                }
                _ => {}
            }
        }
        sets.into_iter().take(MOST_SETS).collect()
    }

    /// What a value may be as a number with a sign.
    pub fn range(&self, v: Value) -> Range {
        self.ranges.of(v)
    }

    /// The values that are made of these and of constants alone, words of the machine, in their form.
    pub fn of(&self, sources: &[Value]) -> Vec<(Value, Residue)> {
        let func = self.facts.func;
        let mut forms: HashMap<Value, Residue> = HashMap::new();
        let mut todo: BTreeSet<usize> = BTreeSet::new();
        let users = |v: Value| self.users.get(&v).into_iter().flatten().copied();
        for (n, &v) in sources.iter().enumerate() {
            forms.insert(v, Residue::source(n, self.range(v), func.ty(v).bits()));
            todo.extend(users(v));
        }
        let mut out = Vec::new();
        while let Some(n) = todo.pop_first() {
            let data = &func.insts[self.insts[n]];
            let [result] = data.results[..] else { continue };
            if !has_form(data.op) || sources.contains(&result) || out.len() >= MOST_MADE {
                continue;
            }
            let operand = |&v: &Value| {
                let v = func.resolve(v);
                match func.as_const(v) {
                    Some(c) => Some(Residue::constant(c, func.ty(v).bits())),
                    None => forms.get(&v).cloned(),
                }
            };
            let Some(args) = data.args.iter().map(operand).collect::<Option<Vec<Residue>>>() else { continue };
            let Some(form) = form::operation(func, data, &args.iter().collect::<Vec<_>>()) else { continue };
            if func.ty(result) == self.facts.word {
                out.push((result, form.clone()));
            }
            forms.insert(result, form);
            todo.extend(users(result));
        }
        out
    }
}

fn has_form(op: Op) -> bool {
    matches!(op, Op::Bin(_) | Op::Un(_) | Op::Cmp(_) | Op::Select | Op::Wrap | Op::ZExt | Op::SExt)
}
