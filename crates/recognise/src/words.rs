//! Maps over GF(2) of several words.
//!
//! A value that exclusive-ors, shifts, masks and linear tables make of up to four others is a
//! sum of matrices times these, its *sources*, however the program wrote it. Where a value
//! begins to be such a map is a matter of choice, because an exclusive-or is a map too: a sum
//! of values bit by bit is a source, and not a map of its terms; a source that is the sum of
//! two others is put as them afterwards.

use super::facts::Facts;
use super::layers::Layer;
use super::sum::{Part, Rows, Sum};
use super::units::Unit;
use super::values::combined;
use super::walk::backwards;
use ciphermill_ir::{BinOp, Func, Op, Value};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Words that a map has as sources, at most.
const MOST_SOURCES: usize = 4;

/// All maps of a function: of each value that is one, not only those of several words.
pub struct Maps<'a> {
    pub facts: &'a Facts<'a>,
    pub of: HashMap<Value, Sum<Value>>,
}

impl<'a> Maps<'a> {
    pub fn new(facts: &'a Facts<'a>) -> Maps<'a> {
        let mut maps = Maps { facts, of: HashMap::new() };
        for inst in facts.insts() {
            let data = &facts.func.insts[inst];
            let [result] = data.results[..] else { continue };
            if facts.func.ty(result) != facts.word {
                continue;
            }
            let map = match data.op {
                Op::Load(_) => facts.values.linear(result).map(|part| part.of(&maps.operand(part.source))),
                op if op.is_pure() && !data.args.is_empty() => maps.operation(result, &data.args),
                _ => None,
            };
            if let Some(map) = map {
                maps.of.insert(result, map);
            }
        }
        let found: Vec<Value> = maps.of.keys().copied().collect();
        for v in found {
            let map = maps.dissolved(maps.of[&v].clone());
            maps.of.insert(v, map);
        }
        maps
    }

    fn operand(&self, v: Value) -> Cow<'_, Sum<Value>> {
        let v = self.facts.func.resolve(v);
        self.of.get(&v).map_or_else(|| Cow::Owned(Sum::source(v, self.facts.possible(v))), Cow::Borrowed)
    }

    fn operation(&self, result: Value, args: &[Value]) -> Option<Sum<Value>> {
        if args.iter().any(|&v| self.facts.func.ty(self.facts.func.resolve(v)) != self.facts.word) {
            return None;
        }
        let sources = |&v: &Value| match self.facts.func.as_const(v) {
            Some(_) => BTreeSet::new(),
            None => self.operand(v).sources(),
        };
        let operands: Vec<BTreeSet<Value>> = args.iter().map(sources).filter(|s| !s.is_empty()).collect();
        let all: BTreeSet<&Value> = operands.iter().flatten().collect();
        if !(1..=MOST_SOURCES).contains(&all.len()) {
            return None;
        }
        let map = combined(self.facts.func, result, &|v| Some(self.operand(v)))?;
        let bitwise = || map.sources().into_iter().all(|s| map.kept(s).is_some());
        let is_source = map.parts.is_empty() || operands.len() > 1 && bitwise();
        (!is_source).then_some(map)
    }

    /// Sources that are sums of two others are put as these, if there are no more
    /// sources for it.
    fn dissolved(&self, mut map: Sum<Value>) -> Sum<Value> {
        for _ in 0..2 * MOST_SOURCES {
            let sources = map.sources();
            let better = sources.iter().find_map(|&v| {
                let parts = self.terms(v)?;
                let all: BTreeSet<Value> = sources.iter().copied().filter(|&s| s != v).chain(parts).collect();
                (all.len() <= sources.len() && parts.iter().any(|p| sources.contains(p))).then_some((v, parts))
            });
            let Some((v, parts)) = better else { break };
            let of = |source: Value| {
                let own = map.parts.iter().filter(|p| p.source == v).cloned().map(|p| Part { source, ..p });
                Sum { parts: own.collect(), rest: 0 }
            };
            let others = Sum { parts: map.parts.iter().filter(|p| p.source != v).cloned().collect(), rest: map.rest };
            let Some(put) = others.xor(&of(parts[0])).and_then(|sum| sum.xor(&of(parts[1]))) else { break };
            map = put;
        }
        map
    }

    /// The two words whose sum a value is.
    fn terms(&self, v: Value) -> Option<[Value; 2]> {
        let data = &self.facts.func.insts[self.facts.func.def_inst(v)?];
        let [a, b] = data.args[..] else { return None };
        let terms = [self.facts.func.resolve(a), self.facts.func.resolve(b)];
        let plain =
            |&v: &Value| self.facts.func.as_const(v).is_none() && self.facts.possible(v) == self.facts.word.mask();
        (data.op == Op::Bin(BinOp::Xor) && terms.iter().all(plain)).then_some(terms)
    }

    /// Without the sources that are only added as they are: those, and the rest.
    fn separated(&self, map: &Sum<Value>) -> (Vec<Value>, Sum<Value>) {
        let plain = |&s: &Value| map.kept(s) == Some(self.facts.possible(s));
        let added: Vec<Value> = map.sources().into_iter().filter(plain).collect();
        let parts = map.parts.iter().filter(|p| !added.contains(&p.source)).cloned().collect();
        (added, Sum { parts, rest: map.rest })
    }
}

/// A value that is a matrix times a word into which the program has put bytes, and
/// from which it has taken some of them before it was whole.
pub struct Packed {
    pub value: Value,
    pub word: Value,
    pub rows: Rows,
    /// What is added to it.
    pub rest: Vec<Value>,
    /// Operations between the bytes, the word and the value.
    pub operations: usize,
}

/// All such values whose word is made on the way to them.
pub fn packed(maps: &Maps<'_>) -> Vec<Packed> {
    let (func, word) = (maps.facts.func, maps.facts.word);
    let mut out = Vec::new();
    let found: BTreeSet<Value> = maps.of.keys().copied().collect();
    for value in found {
        let (rest, map) = maps.separated(&maps.of[&value]);
        let sources: Vec<Value> = map.sources().into_iter().collect();
        let narrow = |v: &Value| maps.facts.possible(*v) & !0xff == 0;
        if sources.len() != word.bits() as usize / 8 || !map.is_linear() || !sources.iter().all(narrow) {
            continue;
        }
        let above = cone(func, &sources, &[value]);
        let place = |w: &&Value| Some((**w, places(maps.of.get(*w)?, &sources)?));
        let Some((whole, at)) = above.iter().filter(|w| **w != value).find_map(|w| place(&w)) else { continue };
        let mut of_word = Sum::constant(0);
        for part in map.parts {
            of_word.parts.push(Part { byte: at[&part.source], source: whole, ..part });
        }
        let ends: Vec<Value> = sources.into_iter().chain([whole]).collect();
        let operations = cone(func, &ends, &[value]).len();
        out.push(Packed { value, word: whole, rows: of_word.rows(whole, word.bits()), rest, operations });
    }
    out
}

/// The place of each source's byte in a word that has nothing else in it.
fn places(map: &Sum<Value>, sources: &[Value]) -> Option<BTreeMap<Value, u8>> {
    let byte = Sum::source(0, 0xff);
    let place = |part: &Part<Value>| {
        let moved = |at: &u8| byte.parts[0].function.through(|x| x << (8 * at)) == part.function;
        (part.byte == 0 && sources.contains(&part.source)).then_some((part.source, (0..8).find(moved)?))
    };
    let at: BTreeMap<Value, u8> = map.parts.iter().map(place).collect::<Option<_>>()?;
    let each: BTreeSet<&u8> = at.values().collect();
    (map.is_linear() && at.len() == sources.len() && each.len() == sources.len()).then_some(at)
}

/// A value that an instruction makes of two words.
pub struct Match {
    pub function: u16,
    pub sources: [Value; 2],
    /// What is added to it.
    pub rest: Vec<Value>,
}

/// The values that one of the units' matrices of two words computes.
pub fn matches(maps: &Maps<'_>, units: &[Unit]) -> HashMap<Value, Match> {
    let pairs: Vec<&Unit> = units.iter().filter(|u| u.matrix.len() == 2 && u.low.is_none()).collect();
    let found = |(&v, map): (&Value, &Sum<Value>)| {
        let (rest, map) = maps.separated(map);
        let &[a, b] = &map.sources().into_iter().collect::<Vec<_>>()[..] else { return None };
        let rows = |v: Value| map.rows(v, maps.facts.word.bits());
        let is = |unit: &Unit, [a, b]: [Value; 2]| unit.matrix[0] == rows(a) && unit.matrix[1] == rows(b);
        let orders = [[a, b], [b, a]];
        let found = pairs.iter().find_map(|u| Some((u.function, orders.into_iter().find(|&o| is(u, o))?)));
        let (function, sources) = found.filter(|_| map.is_linear())?;
        Some((v, Match { function, sources, rest }))
    };
    maps.of.iter().filter_map(found).collect()
}

/// The maps of two and more words that are not inside other maps, those of the same words
/// together.
pub fn together(maps: &Maps<'_>) -> Vec<Layer> {
    let inner = inside(maps);
    let mut groups: BTreeMap<BTreeSet<Value>, Vec<(Value, Sum<Value>)>> = BTreeMap::new();
    let found: BTreeSet<Value> = maps.of.keys().copied().filter(|v| !inner.contains(v)).collect();
    for v in found {
        let (_, map) = maps.separated(&maps.of[&v]);
        if map.sources().len() > 1 {
            groups.entry(map.sources()).or_default().push((v, map));
        }
    }
    // Outputs of fewer of the sources belong to those of all.
    let sets: Vec<BTreeSet<Value>> = groups.keys().cloned().collect();
    for few in &sets {
        let more = sets.iter().filter(|m| m.len() > few.len() && few.is_subset(m));
        let Some(more) = more.max_by_key(|m| m.len()) else { continue };
        let outputs = groups.remove(few).unwrap_or_default();
        groups.entry(more.clone()).or_default().extend(outputs);
    }
    let group = |(sources, outputs): (BTreeSet<Value>, Vec<(Value, Sum<Value>)>)| {
        let roots: Vec<Value> = outputs.iter().map(|o| o.0).collect();
        let rows = |map: &Sum<Value>| sources.iter().map(|&s| map.rows(s, maps.facts.word.bits())).collect();
        let map = outputs.iter().map(|(_, map)| rows(map)).collect();
        let sources: Vec<Value> = sources.iter().copied().collect();
        Layer { map, operations: cone(maps.facts.func, &sources, &roots) }
    };
    groups.into_iter().map(group).collect()
}

/// Values that maps with at least the same sources, and nothing else, use.
fn inside(maps: &Maps<'_>) -> HashSet<Value> {
    let func = maps.facts.func;
    let mut used_by: HashMap<Value, Vec<Option<Value>>> = HashMap::new();
    for &block in &func.layout {
        for &inst in &func.blocks[block].insts {
            let data = &func.insts[inst];
            let result = data.results.first().copied().filter(|r| maps.of.contains_key(r));
            for &arg in &data.args {
                used_by.entry(func.resolve(arg)).or_default().push(result);
            }
        }
        func.blocks[block].term.for_each_value(|v| used_by.entry(func.resolve(v)).or_default().push(None));
    }
    let covers =
        |v: Value, by: &Option<Value>| by.is_some_and(|by| maps.of[&v].sources().is_subset(&maps.of[&by].sources()));
    let all = |v: &Value| used_by.get(v).is_some_and(|users| users.iter().all(|u| covers(*v, u)));
    maps.of.keys().copied().filter(all).collect()
}

/// The values between `ends` and what is computed from them, `roots` included.
fn cone(func: &Func, ends: &[Value], roots: &[Value]) -> BTreeSet<Value> {
    backwards(func, roots, |v| !ends.contains(&v) && func.as_const(v).is_none())
}
