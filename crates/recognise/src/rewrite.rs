//! Choosing among the matches, and putting the new code in their place.
//!
//! From what the function cannot do without (its effects) the values that are
//! needed are followed backwards. A value that has a match is computed by it,
//! and only the operands of the match are needed then; so the largest match
//! wins, and what was computed only for its sake goes.

use super::agree::agree;
use super::cover::{Step, cover, halves};
use super::emit::{Emitted, Emitter};
use super::linear::Match;
use super::matrices::{Inverse, Turned};
use super::modular;
use super::products::{self, CarrylessMultiplier};
use super::replacement::Replacement;
use super::sum::Sum;
use super::sums::Sums;
use super::targets::Targets;
use super::values::{Values, uncut};
use super::words;
use ciphermill_ir::low_bits::use_counts;
use ciphermill_ir::{BinOp, Func, Op, Value};
use std::collections::{HashMap, HashSet};

/// All matches in a function.
pub struct Matches<'a> {
    pub targets: &'a Targets,
    pub sums: Sums,
    pub linear: HashMap<Value, Match>,
    pub words: HashMap<Value, words::Match>,
    pub products: HashMap<Value, products::Match>,
    pub multipliers: &'a [CarrylessMultiplier],
    pub modular: HashMap<Value, modular::Match>,
    pub values: Values,
}

/// Rewrite a function by the matches in it.
pub fn rewrite(func: &mut Func, matches: &Matches<'_>) {
    let (mut replacements, needed) = replacement(func, matches);
    if replacements.is_empty() {
        return;
    }
    own_last(func, &mut replacements);
    agree(func, &matches.targets.units, &mut replacements);
    for block in func.layout.clone() {
        let mut made_here = Emitted::default();
        for inst in std::mem::take(&mut func.blocks[block].insts) {
            let results = func.insts[inst].results.clone();
            let removable = func.insts[inst].op.is_pure() || results.iter().any(|r| matches.values.loads.contains(r));
            let replacement = results.first().and_then(|r| replacements.get(r));
            if let Some(replacement) = replacement {
                let loc = func.insts[inst].loc;
                let ty = func.ty(results[0]);
                let mut out =
                    Emitter { func, units: &matches.targets.units, insts: Vec::new(), loc, ty, made: &mut made_here };
                let value = match replacement {
                    Replacement::Linear(m) => out.linear(m),
                    Replacement::Product(m) => out.multiplied(m, matches.multipliers[m.product].function),
                    Replacement::Modular(m) => out.function(m.function, &m.sources, ty),
                    Replacement::Words { matrix, sources, rest } => out.product(*matrix, sources, rest),
                    Replacement::Tables { steps, turn: 0, matrix: None, rest } => out.tables(steps, rest),
                    Replacement::Tables { steps, turn, matrix: None, rest } => {
                        let word = out.tables(steps, &[]);
                        let word = out.rotated(word, *turn);
                        let terms: Vec<Value> = rest.iter().copied().chain([word]).collect();
                        out.sum(&terms).unwrap_or(word)
                    }
                    Replacement::Tables { steps, matrix: Some(function), rest, .. } => {
                        let word = out.tables(steps, &[]);
                        out.product(*function, &[word, word], rest)
                    }
                    Replacement::Halves { steps, inside, matrix, rest } => {
                        let inside = out.sum(inside);
                        let words = steps.each_ref().map(|step| {
                            let word = out.apply(step, None);
                            inside.map_or(word, |i| out.op(Op::Bin(BinOp::Xor), &[word, i]))
                        });
                        out.product(*matrix, &words, rest)
                    }
                };
                let made = out.insts;
                func.blocks[block].insts.extend(made);
                func.replace(results[0], value);
            } else if !removable || results.iter().any(|r| needed.contains(r)) {
                func.blocks[block].insts.push(inst);
            }
        }
    }
    func.resolve_all();
}

/// Where a sum of tables is a loop-carried value, the table of the old value is added last: the old
/// value's register is free for it then.
fn own_last(func: &Func, replacements: &mut HashMap<Value, Replacement>) {
    for &block in &func.layout {
        for target in func.blocks[block].term.targets() {
            for (&param, &arg) in func.blocks[target.block].params.iter().zip(&target.args) {
                if let Some(Replacement::Tables { steps, .. }) = replacements.get_mut(&func.resolve(arg)) {
                    steps.sort_by_key(|s| s.sources.contains(&Some(param)));
                }
            }
        }
    }
}

/// What a function cannot do without: the operands of its effects, which lookups
/// are not, and of its terminators.
pub fn roots(func: &Func, lookups: &HashSet<Value>) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::new();
    for &block in &func.layout {
        for &inst in &func.blocks[block].insts {
            let data = &func.insts[inst];
            let lookup = data.results.iter().any(|r| lookups.contains(r));
            if !data.op.is_pure() && !lookup {
                out.extend(&data.args);
            }
        }
        func.blocks[block].term.for_each_value(|v| out.push(v));
    }
    out
}

/// The replacements of the values that have one, and all values that are needed.
fn replacement(func: &Func, matches: &Matches<'_>) -> (HashMap<Value, Replacement>, HashSet<Value>) {
    let uses = use_counts(func);
    let mut todo = roots(func, &matches.values.loads);
    let (mut replacements, mut needed) = (HashMap::new(), HashSet::new());
    while let Some(v) = todo.pop() {
        let v = func.resolve(v);
        let Some(inst) = func.def_inst(v).filter(|_| needed.insert(v)) else { continue };
        match choose(func, matches, &uses, v) {
            Some(replacement) => {
                match &replacement {
                    Replacement::Linear(m) => {
                        todo.extend(m.rest.iter().chain([&m.source]).chain(m.more.iter().map(|p| &p.1)))
                    }
                    Replacement::Product(m) => todo.extend(m.factors),
                    Replacement::Modular(m) => todo.extend(&m.sources),
                    Replacement::Words { sources, rest, .. } => todo.extend(sources.iter().chain(rest)),
                    Replacement::Tables { steps, rest, .. } => {
                        todo.extend(steps.iter().flat_map(|s| &s.sources).flatten().chain(rest));
                    }
                    Replacement::Halves { steps, inside, rest, .. } => {
                        todo.extend(steps.iter().flat_map(|s| &s.sources).flatten().chain(inside).chain(rest));
                    }
                }
                replacements.insert(v, replacement);
            }
            None => todo.extend(&func.insts[inst].args),
        }
    }
    (replacements, needed)
}

fn choose(func: &Func, matches: &Matches<'_>, uses: &HashMap<Value, u32>, v: Value) -> Option<Replacement> {
    if let Some(m) = matches.products.get(&v) {
        return Some(Replacement::Product(m.clone()));
    }
    if let Some(m) = matches.modular.get(&v) {
        return Some(Replacement::Modular(m.clone()));
    }
    let (units, values) = (&matches.targets.units, &matches.values);
    // All tables of a sum together: a compiler mixes the terms of a matrix with
    // those of a key.
    let alone = |t: Value| t == v || uses.get(&t) == Some(&1);
    let count = |t: Value| values.of(t).map_or(0, |sum| sum.parts.len());
    let terms = matches.sums.flatten(v, &mut |_| false);
    let (wanted, rest) = values.added(&terms)?;
    let tables = || terms.iter().copied().filter(|&t| count(t) > 0);
    // What others need too is better computed once.
    let replaced: usize = tables().map(|t| if alone(t) { count(t) } else { 1 }).sum();
    let pays = |steps: &Vec<Step>| !steps.is_empty() && steps.len() <= replaced;
    let before = |inverse: &Inverse| wanted.through(|x| inverse.apply(x));
    for inverse in matches.targets.inverses.iter().filter(|i| i.splits() && replaced > 1) {
        if let Some(steps) = halves(units, &inverse.masks, &before(inverse)) {
            return Some(Replacement::Halves { steps, inside: Vec::new(), matrix: inverse.function, rest });
        }
    }
    for pair in matches.targets.pairs.iter().filter(|_| replaced > 2) {
        if let Some(steps) = pair.steps(units, &wanted) {
            return Some(Replacement::Halves { steps, inside: Vec::new(), matrix: pair.function, rest });
        }
    }
    if let Some(m) = matches.words.get(&v) {
        return Some(Replacement::Words { matrix: m.function, sources: m.sources, rest: m.rest.clone() });
    }
    if let Some(m) = matches.linear.get(&v) {
        return Some(within(func, matches, m).unwrap_or_else(|| Replacement::Linear(m.clone())));
    }
    if tables().any(|t| cut_from_word(func, matches, uses, t)) {
        return None;
    }
    if let Some(steps) = cover(units, &wanted).filter(pays) {
        return Some(Replacement::Tables { steps, turn: 0, matrix: None, rest });
    }
    let short = func.ty(v).bits() == 32;
    for turn in [8, 16, 24].into_iter().filter(|_| short) {
        let turned = wanted.through(|x| (x as u32).rotate_right(turn).into());
        if let Some(steps) = cover(units, &turned).filter(|steps| steps.len() > 1 && pays(steps)) {
            return Some(Replacement::Tables { steps, turn, matrix: None, rest });
        }
    }
    for inverse in &matches.targets.inverses {
        if let Some(steps) = cover(units, &before(inverse)).filter(|steps| steps.len() > 1 && pays(steps)) {
            return Some(Replacement::Tables { steps, turn: 0, matrix: Some(inverse.function), rest });
        }
    }
    // Else those terms that are tables of the machine by themselves.
    let single = |t: Value| {
        let mut sums = values.either(t).filter(|sum| sum.parts.len() == 1 || alone(t));
        sums.find_map(|sum| cover(units, sum).filter(|steps| !steps.is_empty()))
    };
    let terms = matches.sums.flatten(v, &mut |t| single(t).is_some());
    let (tables, rest): (Vec<Value>, Vec<Value>) = terms.into_iter().partition(|&t| single(t).is_some());
    let (wanted, _) = values.added(&tables)?;
    let each = || tables.iter().flat_map(|&t| single(t)).flatten().collect();
    let steps = Some(cover(units, &wanted).unwrap_or_else(each)).filter(|steps| !steps.is_empty())?;
    Some(Replacement::Tables { steps, turn: 0, matrix: None, rest })
}

/// Is it part of a word that one instruction makes, and that others need too? It
/// is then better cut from that word.
fn cut_from_word(func: &Func, matches: &Matches<'_>, uses: &HashMap<Value, u32>, term: Value) -> bool {
    let (mut v, mut cut) = (func.resolve(term), false);
    while let Some(below) = uncut(func, v) {
        (v, cut) = (below, true);
    }
    let others = |sum: &&Sum<Value>| cut && sum.parts.len() > 1 && uses.get(&v) > Some(&1);
    let Some(sum) = matches.values.of(v).filter(others) else { return false };
    cover(&matches.targets.units, sum).is_some_and(|steps| matches!(&steps[..], [step] if step.is_whole()))
}

/// A matrix that takes halves of two words, times a sum in which there are
/// tables: the rest of the sum is added to each of the words.
fn within(func: &Func, matches: &Matches<'_>, m: &Match) -> Option<Replacement> {
    let Turned { function: Some(matrix), before: 0, behind: 0, by: None } = m.turned else { return None };
    if !m.more.is_empty() {
        return None;
    }
    let inverse = matches.targets.inverses.iter().find(|i| i.function == matrix && i.splits())?;
    let terms = matches.sums.flatten(func.resolve(m.source), &mut |_| false);
    let (wanted, inside) = matches.values.added(&terms)?;
    let steps = halves(&matches.targets.units, &inverse.masks, &wanted)?;
    Some(Replacement::Halves { steps, inside, matrix, rest: m.rest.clone() })
}
