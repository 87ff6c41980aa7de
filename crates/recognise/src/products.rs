//! Finding products over GF(2) of two words.
//!
//! A value whose bits are sums of products of a bit of one word with a bit of another
//! ([`super::quadratic`]) is compared with what the machine's instructions make of two registers.
//! Which two words these are is not plain to see: a program masks, shifts or reverses them first.
//! So for each operation that multiplies bits, the values that its operands are made of, and of
//! nothing else, are followed upwards; a pair of them that several multiplications have in
//! common is tried as the factors.

use super::facts::Facts;
use super::form;
use super::quadratic::Word;
use super::semantics::{Fixed, register_sources};
use ciphermill_ir::ops::{self, mask};
use ciphermill_ir::{BinOp, Func, Inst, InstData, Op, Value};
use ciphermill_machine::sem::{Dest, Expr, Stmt};
use ciphermill_machine::{Instr, InstrKind, Machine};
use ciphermill_patterns::pattern::Template;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Multiplications of bits that a pair of factors has in common, at least: what an instruction replaces.
const LEAST: usize = 4;
/// Values above an operand that are tried as factors, at most: reversing a word's bits takes five steps.
const MOST_ABOVE: usize = 12;
/// Pairs of factors tried in a function, at most.
const MOST_PAIRS: usize = 400;

/// Something that a machine can make of two words.
pub trait Product {
    /// Of factors of which only the bits of the masks count.
    fn of(&self, masks: [u64; 2]) -> Option<Word>;
}

/// An instruction that multiplies.
#[derive(Clone)]
pub struct CarrylessMultiplier {
    /// The number of [`Op::Apply`].
    pub function: u16,
    pub name: String,
    instr: Instr,
    sources: [usize; 2],
    bits: u32,
}

impl Product for CarrylessMultiplier {
    fn of(&self, masks: [u64; 2]) -> Option<Word> {
        let [first, second] = [Word::first(masks[0], self.bits), Word::second(masks[1], self.bits)];
        let leaf = |e: &Expr| match e {
            Expr::Operand(i) if *i == self.sources[0] => Some(first.clone()),
            Expr::Operand(i) if *i == self.sources[1] => Some(second.clone()),
            Expr::Const(c) => Some(Word::constant(*c, self.bits)),
            _ => None,
        };
        form::assigned(&self.instr.semantics, &[], self.bits, &leaf).map(|(_, word)| word)
    }
}

/// The machine's instructions that are products of two words, with templates that are functions `from` and on.
pub fn carryless_multipliers(machine: &Machine, from: usize) -> (Vec<CarrylessMultiplier>, Vec<Template>) {
    let (mut multipliers, mut templates) = (Vec::new(), Vec::new());
    let bits = u32::from(machine.word_bits);
    // Half a product of narrow words is none of whole values.
    if machine.value_bits() < machine.word_bits {
        return (multipliers, templates);
    }
    for (id, instr) in machine.instrs.iter().enumerate() {
        let (&[a, b], [.., Stmt::Assign { dest: Dest::Operand(dest), .. }]) =
            (&register_sources(&instr.operands)[..], &instr.semantics[..])
        else {
            continue;
        };
        if !instr.selectable || instr.kind != InstrKind::Compute || multiplications(instr) < LEAST {
            continue;
        }
        let function = (from + templates.len()) as u16;
        let multiplier =
            CarrylessMultiplier { function, name: instr.name.clone(), instr: instr.clone(), sources: [a, b], bits };
        if multiplier.of([mask(bits); 2]).is_some_and(|word| word.factors().is_some()) {
            templates.push(Fixed::of(id, instr).template(machine, *dest, &[a, b], function, false));
            multipliers.push(multiplier);
        }
    }
    (multipliers, templates)
}

/// Nodes of an instruction's semantics that may multiply bits.
fn multiplications(instr: &Instr) -> usize {
    let mut count = 0;
    for stmt in &instr.semantics {
        let (Stmt::Let { value, .. } | Stmt::Assign { value, .. }) = stmt else { return 0 };
        value.walk(&mut |e| {
            let multiplies = matches!(e, Expr::Select { .. } | Expr::Bin { op: BinOp::And | BinOp::Mul, .. });
            count += usize::from(multiplies);
        });
    }
    count
}

/// What of a product a value is: some of its bits, moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cut {
    /// By how much they are moved down, or up where it is negative.
    pub down: i32,
    /// Those that there are, where they have come to; all others are 0.
    pub mask: u64,
    /// Above its lower half is the sign of that.
    pub signed: bool,
}

impl Cut {
    fn of(product: &Word, value: &Word, bits: u32) -> Option<Cut> {
        let half = bits / 2;
        let extends =
            bits == 64 && value.bit(half - 1).is_some_and(|b| !b.is_zero()) && *value == value.extended(half, bits);
        let seen = if extends { value.within(half).within(bits) } else { value.clone() };
        let (down, mask) = seen.part_of(product)?;
        Some(Cut { down, mask, signed: extends })
    }
}

/// A value that is the product of two others.
#[derive(Clone, Debug)]
pub struct Match {
    /// The number of the product among those that were looked for.
    pub product: usize,
    pub factors: [Value; 2],
    /// The bits of each factor that count, and whether it may have others.
    pub masks: [u64; 2],
    pub cut_off: [bool; 2],
    pub cut: Cut,
}

/// All values of a function that are such products.
pub fn find(facts: &Facts<'_>, products: &[&dyn Product]) -> HashMap<Value, Match> {
    let (func, bits) = (facts.func, facts.word.bits());
    let mut found = HashMap::new();
    if products.is_empty() {
        return found;
    }
    let mut known = HashMap::new();
    let symmetric = |p: &&dyn Product| p.of([mask(bits); 2]).is_some_and(|word| word.is_symmetric());
    let orders = if products.iter().all(symmetric) { 1 } else { 2 };
    for pair in pairs(func).into_iter().flat_map(|[a, b]| [[a, b], [b, a]].into_iter().take(orders)) {
        for (value, word) in words(func, pair, bits) {
            let Some((first, second)) = word.factors().filter(|_| !found.contains_key(&value)) else { continue };
            // As they are, and with those bits alone that the value depends on.
            let whole = pair.map(|v| facts.possible(v));
            let masks = [whole, [first, second]];
            let ways = masks.into_iter().flat_map(|masks| (0..products.len()).map(move |n| (n, masks)));
            let all = ways.filter_map(|(n, masks)| {
                let product = known.entry((n, masks)).or_insert_with(|| products[n].of(masks)).as_ref()?;
                let cut = Cut::of(product, &word, bits)?;
                Some(Match { product: n, factors: pair, masks, cut_off: [0, 1].map(|n| masks[n] != whole[n]), cut })
            });
            // Those that need least around them.
            let around = |m: &Match| {
                let Cut { down, mask, signed } = m.cut;
                (down != 0) as usize
                    + (mask != ops::mask(bits)) as usize
                    + signed as usize
                    + m.cut_off.iter().filter(|&&c| c).count()
            };
            if let Some(best) = all.min_by_key(around) {
                found.insert(value, best);
            }
        }
    }
    found
}

/// Values by the number of the instruction that makes them.
type Order = HashMap<Value, usize>;

/// For each value that is made of one other and of constants, the nearest such other.
struct Above(HashMap<Value, Value>);

impl Above {
    fn new(func: &Func, order: &Order) -> Above {
        let mut above = Above(HashMap::new());
        for inst in insts(func) {
            let data = &func.insts[inst];
            let [result] = data.results[..] else { continue };
            if !moves_bits(data.op) {
                continue;
            }
            let mut args = variable(func, data);
            let common = args.next().and_then(|first| args.try_fold(first, |a, b| above.meet(order, a, b)));
            if let Some(common) = common {
                above.0.insert(result, common);
            }
        }
        above
    }

    /// The nearest value that both are made of.
    fn meet(&self, order: &Order, mut a: Value, mut b: Value) -> Option<Value> {
        let place = |v: Value| order.get(&v).copied().unwrap_or(0);
        while a != b {
            if place(a) >= place(b) && self.0.contains_key(&a) {
                a = self.0[&a];
            } else {
                b = *self.0.get(&b).filter(|_| place(b) >= place(a))?;
            }
        }
        Some(a)
    }

    fn chain(&self, v: Value) -> impl Iterator<Item = Value> + '_ {
        std::iter::successors(Some(v), |v| self.0.get(v).copied()).take(MOST_ABOVE)
    }
}

/// The pairs that several multiplications of bits have in common, those of most first.
fn pairs(func: &Func) -> Vec<[Value; 2]> {
    let order: Order =
        insts(func).enumerate().flat_map(|(n, i)| func.insts[i].results.iter().map(move |&r| (r, n + 1))).collect();
    let above = Above::new(func, &order);
    let mut counts: BTreeMap<[Value; 2], usize> = BTreeMap::new();
    for inst in insts(func) {
        for (a, b) in multiplied(func, &func.insts[inst]) {
            let others: BTreeSet<Value> = above.chain(b).collect();
            let firsts: BTreeSet<Value> = above.chain(a).filter(|v| !others.contains(v)).collect();
            let seconds = others.into_iter().filter(|v| !above.chain(a).any(|a| a == *v));
            for second in seconds {
                for &first in &firsts {
                    *counts.entry([first.min(second), first.max(second)]).or_default() += 1;
                }
            }
        }
    }
    let mut all: Vec<([Value; 2], usize)> = counts.into_iter().filter(|c| c.1 >= LEAST).collect();
    all.sort_by_key(|c| std::cmp::Reverse(c.1));
    all.into_iter().take(MOST_PAIRS).map(|c| c.0).collect()
}

/// The values whose bits an operation may multiply.
fn multiplied(func: &Func, data: &InstData) -> Vec<(Value, Value)> {
    let args: Vec<Value> = variable(func, data).collect();
    match (data.op, &args[..]) {
        (Op::Bin(BinOp::And | BinOp::Mul | BinOp::MulHiU), &[a, b]) => vec![(a, b)],
        (Op::Select, [..]) => {
            let condition = func.resolve(data.args[0]);
            // A term that is added or not: what it is added to is in both arms.
            let terms = |v: Value| {
                let inner = func.def_inst(v).map(|i| &func.insts[i]).filter(|d| d.op == Op::Bin(BinOp::Xor));
                std::iter::once(v).chain(inner.into_iter().flat_map(|d| variable(func, d)))
            };
            let arms: BTreeSet<Value> = args.iter().filter(|&&v| v != condition).flat_map(|&v| terms(v)).collect();
            arms.into_iter().map(|arm| (condition, arm)).collect()
        }
        _ => Vec::new(),
    }
}

/// What the function makes of two words and of constants alone, those and their bits unknown left out.
fn words(func: &Func, factors: [Value; 2], bits: u32) -> Vec<(Value, Word)> {
    let mut words: HashMap<Value, Word> = HashMap::new();
    let width = |v: Value| func.ty(func.resolve(v)).bits();
    let [first, second] = factors;
    words.insert(first, Word::first(mask(width(first)), width(first)));
    words.insert(second, Word::second(mask(width(second)), width(second)));
    let mut out = Vec::new();
    for inst in insts(func) {
        let data = &func.insts[inst];
        let [result] = data.results[..] else { continue };
        if !moves_bits(data.op) || factors.contains(&result) || !variable(func, data).any(|v| words.contains_key(&v)) {
            continue;
        }
        let operand = |&v: &Value| match func.as_const(func.resolve(v)) {
            Some(c) => Some(Word::constant(c, width(v))),
            None => words.get(&func.resolve(v)).cloned(),
        };
        let Some(args) = data.args.iter().map(operand).collect::<Option<Vec<Word>>>() else { continue };
        let to = func.ty(result).bits();
        let word: Option<Word> = form::operation(func, data, &args.iter().collect::<Vec<_>>());
        if let Some(word) = word {
            if to == bits {
                out.push((result, word.clone()));
            }
            words.insert(result, word);
        }
    }
    out
}

fn moves_bits(op: Op) -> bool {
    matches!(op, Op::Bin(_) | Op::Un(_) | Op::Cmp(_) | Op::Select | Op::Wrap | Op::ZExt | Op::SExt)
}

fn insts(func: &Func) -> impl Iterator<Item = Inst> + '_ {
    func.layout.iter().flat_map(|&b| &func.blocks[b].insts).copied()
}

/// The operands that are no constants.
fn variable<'a>(func: &'a Func, data: &'a InstData) -> impl Iterator<Item = Value> + 'a {
    data.args.iter().map(|&v| func.resolve(v)).filter(|&v| func.as_const(v).is_none())
}
