//! Finding values that are a machine's matrix times another value.
//!
//! For each value taken as the source, all values that depend on nothing but
//! the source and constants are worked out as sums of its bytes, going forward along
//! uses. A sum that is one of the machine's matrices is a match, however the
//! program wrote it. So is a sum in which some of the terms, added up, are. A
//! lookup in a table that is linear is as good as an operation. A word that the program
//! puts together of bytes may be the source too, though a compiler has taken bytes of it
//! from where they came ([`words::packed`]).

use super::facts::Facts;
use super::matrices::Turned;
use super::sum::{Part, Rows, Sum};
use super::values::combined;
use super::walk::backwards;
use super::words::{self, Maps};
use ciphermill_ir::{Func, Inst, Value};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Values that one source is followed to, at most.
const MOST_VALUES: usize = 512;

/// A value that is a matrix times `source`, plus the values `rest`.
#[derive(Clone, Debug)]
pub struct Match {
    pub turned: Turned,
    pub source: Value,
    pub rest: Vec<Value>,
    /// Other products, of this value or of others, that are added too.
    pub more: Vec<(Turned, Value)>,
    /// Operations that the match makes superfluous, if nothing else needs them.
    pub saves: usize,
    /// Row i: the bits of the source that bit i is the sum of.
    pub rows: Rows,
}

/// Products that add up to a matrix times a word, where there are such.
pub type Accept<'a> = &'a dyn Fn(&Rows) -> Option<Vec<Turned>>;

/// The best match of each value that has one among the machine's matrices, with
/// what else of the sum is such a product.
pub fn find(maps: &Maps<'_>, rotate_cost: usize, accept: Accept<'_>) -> HashMap<Value, Match> {
    let all = candidates(maps, rotate_cost, accept);
    let together = |mut list: Vec<Candidate>| {
        list.sort_by_key(|c| std::cmp::Reverse(c.found.saves));
        let mut list = list.into_iter();
        let mut best = list.next()?.found;
        for other in list.filter(|c| c.found.rest.len() + c.terms.len() > 1) {
            if other.found.source != best.source && other.terms.iter().all(|t| best.rest.contains(t)) {
                best.rest.retain(|t| !other.terms.contains(t));
                best.more.push((other.found.turned, other.found.source));
                best.more.extend(other.found.more);
                best.saves += other.found.saves;
            }
        }
        Some(best)
    };
    all.into_iter().filter_map(|(root, list)| Some((root, together(list)?))).collect()
}

/// The best match of each value that is a matrix which `accept` takes times another value.
pub fn find_any(maps: &Maps<'_>, rotate_cost: usize, accept: Accept<'_>) -> HashMap<Value, Match> {
    let all = candidates(maps, rotate_cost, accept);
    // The first of equals.
    let best = |list: Vec<Candidate>| list.into_iter().rev().max_by_key(|c| c.found.saves).map(|c| c.found);
    all.into_iter().filter_map(|(root, list)| Some((root, best(list)?))).collect()
}

/// A match, and which terms of the sum it stands for.
struct Candidate {
    found: Match,
    terms: Vec<Value>,
}

fn candidates(maps: &Maps<'_>, rotate_cost: usize, accept: Accept<'_>) -> BTreeMap<Value, Vec<Candidate>> {
    let facts = maps.facts;
    let (func, sums, word) = (facts.func, &facts.sums, facts.word);
    let mut all: BTreeMap<Value, Vec<Candidate>> = BTreeMap::new();
    let mut users: HashMap<Value, Vec<Inst>> = HashMap::new();
    for inst in facts.insts() {
        for &arg in &func.insts[inst].args {
            users.entry(func.resolve(arg)).or_default().push(inst);
        }
    }
    let tables = facts.values.linear_loads();
    let mut sources: Vec<Value> = users.keys().copied().collect();
    sources.sort();
    for source in sources {
        if func.ty(source) != word || func.as_const(source).is_some() {
            continue;
        }
        let cone = Cone::new(facts, &users, &tables, source);
        let mut note = |root: Value, sum: &Sum<Value>, from: &[Value], rest: Vec<Value>| {
            if func.ty(root) != word || !sum.is_linear() {
                return;
            }
            let rows = sum.rows(source, word.bits());
            let Some((turned, more, cost)) = accept(&rows).and_then(|p| products(p, source, rotate_cost)) else {
                return;
            };
            let saves = (cone.size(func, from) + from.len()).saturating_sub(1 + cost);
            if saves > 0 {
                let found = Match { turned, source, rest, more, saves, rows };
                all.entry(root).or_default().push(Candidate { found, terms: from.to_vec() });
            }
        };
        for (&value, sum) in &cone.of {
            note(value, sum, &[value], Vec::new());
        }
        let roots: HashSet<Value> = cone.of.keys().flat_map(|v| sums.of_term(*v)).copied().collect();
        for root in roots.into_iter().filter(|r| !cone.of.contains_key(r)) {
            let (terms, rest): (Vec<Value>, Vec<Value>) =
                sums.terms(root).iter().partition(|t| cone.of.contains_key(t));
            if terms.len() > 1 {
                let sum = terms.iter().try_fold(Sum::constant(0), |sum, t| sum.xor(&cone.of[t]));
                sum.into_iter().for_each(|sum| note(root, &sum, &terms, rest.clone()));
            }
        }
    }
    for packed in words::packed(maps) {
        let products = accept(&packed.rows).and_then(|p| products(p, packed.word, rotate_cost));
        let Some((turned, more, cost)) = products else { continue };
        let saves = packed.operations.saturating_sub(cost);
        if saves > 0 {
            let (source, rest, rows) = (packed.word, packed.rest, packed.rows);
            let found = Match { turned, source, rest, more, saves, rows };
            all.entry(packed.value).or_default().push(Candidate { found, terms: vec![packed.value] });
        }
    }
    all
}

/// The first of some products of a word, the others with the word, and the operations that all take.
type Products = (Turned, Vec<(Turned, Value)>, usize);

fn products(all: Vec<Turned>, source: Value, rotate_cost: usize) -> Option<Products> {
    let cost = all.iter().map(|t| t.cost(rotate_cost)).sum::<usize>() + all.len().saturating_sub(1);
    let (&first, others) = all.split_first()?;
    Some((first, others.iter().map(|&t| (t, source)).collect(), cost))
}

/// The values that depend on one source only, as matrices times it and a constant.
struct Cone {
    source: Value,
    of: BTreeMap<Value, Sum<Value>>,
}

impl Cone {
    fn new(
        facts: &Facts<'_>,
        users: &HashMap<Value, Vec<Inst>>,
        tables: &HashMap<Value, Vec<(Value, &Part<Value>)>>,
        source: Value,
    ) -> Cone {
        let func = facts.func;
        let mut of = BTreeMap::from([(source, Sum::source(source, facts.possible(source)))]);
        let mut todo = vec![source];
        while let Some(v) = todo.pop() {
            for &(load, part) in tables.get(&v).into_iter().flatten() {
                if !of.contains_key(&load) && of.len() < MOST_VALUES {
                    of.insert(load, part.of(&of[&v]));
                    todo.push(load);
                }
            }
            for &inst in users.get(&v).into_iter().flatten() {
                let data = &func.insts[inst];
                let [result] = data.results[..] else { continue };
                if !data.op.is_pure() || func.ty(result).bits() > facts.word.bits() || of.contains_key(&result) {
                    continue;
                }
                let Some(sum) = combined(func, result, &|v| of.get(&v).map(Cow::Borrowed)) else { continue };
                if sum.as_constant().is_some() || of.len() >= MOST_VALUES {
                    continue;
                }
                of.insert(result, sum);
                todo.push(result);
            }
        }
        Cone { source, of }
    }

    /// Operations between the source and the values `from`, these included.
    fn size(&self, func: &Func, from: &[Value]) -> usize {
        backwards(func, from, |v| v != self.source && self.of.contains_key(&v)).len()
    }
}
