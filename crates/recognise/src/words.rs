//! Maps over GF(2) of several words.
//!
//! A value that exclusive-ors, shifts, masks and linear tables make of up to four
//! others is a sum of matrices times these, its *sources*, however the program wrote
//! it. Where a value begins to be such a map is a matter of choice, because an
//! exclusive-or is a map too: a sum of values bit by bit is a source, and not a map of
//! its terms; a source that is the sum of two others is put as them afterwards.

use super::bytes::ByteSums;
use super::form::{Form, WORD};
use super::units::{Meaning, Unit};
use ciphermill_ir::bits::Masks;
use ciphermill_ir::{BinOp, Func, Op, Type, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Columns of a form are the bits of so many words.
pub const MOST_SOURCES: usize = 128 / WORD;

/// A value as a map of its sources: those of source n are columns n * 32 and up.
#[derive(Clone, Debug)]
pub struct Map {
    pub sources: Vec<Value>,
    pub form: Form,
}

impl Map {
    fn source(v: Value, possible: u32) -> Map {
        Map { sources: vec![v], form: Form::source(0, possible) }
    }

    /// The matrix that a source is multiplied by.
    pub fn matrix(&self, source: usize) -> [u32; WORD] {
        self.form.rows.map(|row| (row >> (WORD * source)) as u32)
    }

    /// The same with other sources, among which are those that it has columns of.
    fn over(&self, sources: &[Value]) -> Option<Map> {
        let mut out = Map { sources: sources.to_vec(), form: Form::constant(self.form.constant) };
        for (n, source) in self.sources.iter().enumerate() {
            let matrix = self.matrix(n);
            if matrix != [0; WORD] {
                out.add(sources.iter().position(|s| s == source)?, &matrix);
            }
        }
        Some(out)
    }

    fn add(&mut self, source: usize, matrix: &[u32; WORD]) {
        for (row, bits) in self.form.rows.iter_mut().zip(matrix) {
            *row ^= u128::from(*bits) << (WORD * source);
        }
    }

    fn used(&self) -> Vec<Value> {
        let used = |n: &usize| self.matrix(*n) != [0; WORD];
        (0..self.sources.len()).filter(used).map(|n| self.sources[n]).collect()
    }

    /// Is each bit a sum of bits of that number?
    fn is_bitwise(&self) -> bool {
        (0..self.sources.len()).all(|n| self.matrix(n).iter().enumerate().all(|(i, row)| row & !(1 << i) == 0))
    }

    /// Without the sources that are only added as they are: those, and the rest.
    pub fn separated(&self, masks: &impl Fn(Value) -> u32) -> (Vec<Value>, Map) {
        let plain = |n: &usize| {
            let possible = masks(self.sources[*n]);
            self.matrix(*n) == std::array::from_fn(|i| possible & 1 << i)
        };
        let added: Vec<Value> = (0..self.sources.len()).filter(plain).map(|n| self.sources[n]).collect();
        let mut rest = self.clone();
        for (n, _) in self.sources.iter().enumerate().filter(|(_, s)| added.contains(s)) {
            rest.add(n, &self.matrix(n));
        }
        let used = rest.used();
        let rest = rest.over(&used).unwrap_or(rest);
        (added, rest)
    }
}

/// All maps of a function: of each value that is one, not only those of several words.
pub struct Maps {
    pub of: HashMap<Value, Map>,
}

impl Maps {
    pub fn new(func: &Func, masks: &Masks, bytes: &ByteSums) -> Maps {
        let mut maps = Maps { of: HashMap::new() };
        for &inst in func.layout.iter().flat_map(|&b| &func.blocks[b].insts) {
            let data = &func.insts[inst];
            let [result] = data.results[..] else { continue };
            if func.ty(result) != Type::I32 {
                continue;
            }
            let map = if matches!(data.op, Op::Load(_)) {
                bytes.linear(result).map(|l| {
                    let of = maps.operand(func, masks, l.source);
                    Map { form: l.form(&of.form), ..of }
                })
            } else {
                maps.operation(func, masks, data.op, &data.args)
            };
            if let Some(map) = map {
                maps.of.insert(result, map);
            }
        }
        let found: Vec<Value> = maps.of.keys().copied().collect();
        for v in found {
            let map = dissolved(func, masks, maps.of[&v].clone());
            maps.of.insert(v, map);
        }
        maps
    }

    fn operand(&self, func: &Func, masks: &Masks, v: Value) -> Map {
        let v = func.resolve(v);
        if let Some(c) = func.as_const(v) {
            return Map { sources: Vec::new(), form: Form::constant(c as u32) };
        }
        self.of.get(&v).cloned().unwrap_or_else(|| Map::source(v, masks.possible(func, v) as u32))
    }

    fn operation(&self, func: &Func, masks: &Masks, op: Op, args: &[Value]) -> Option<Map> {
        if !op.is_pure() || args.is_empty() || args.iter().any(|&a| func.ty(func.resolve(a)) != Type::I32) {
            return None;
        }
        let operands: Vec<Map> = args.iter().map(|&a| self.operand(func, masks, a)).collect();
        let sources: BTreeSet<Value> = operands.iter().flat_map(|m| m.sources.iter().copied()).collect();
        let sources: Vec<Value> = sources.into_iter().collect();
        if sources.is_empty() || sources.len() > MOST_SOURCES {
            return None;
        }
        let forms: Vec<Form> = operands.iter().map(|m| Some(m.over(&sources)?.form)).collect::<Option<_>>()?;
        let form = Form::of(op, &forms.iter().collect::<Vec<_>>())?;
        let map = Map { sources, form };
        let used = map.used();
        let several = operands.iter().filter(|m| !m.sources.is_empty()).count() > 1;
        if used.is_empty() || several && map.is_bitwise() {
            return None;
        }
        map.over(&used)
    }
}

/// Sources that are sums of two others are put as these, if there are no more
/// sources for it.
fn dissolved(func: &Func, masks: &Masks, mut map: Map) -> Map {
    for _ in 0..2 * MOST_SOURCES {
        let sum = |v: Value| {
            let data = &func.insts[func.def_inst(v)?];
            let [a, b] = data.args[..] else { return None };
            let (a, b) = (func.resolve(a), func.resolve(b));
            let plain = |v: Value| func.as_const(v).is_none() && masks.possible(func, v) as u32 == u32::MAX;
            (data.op == Op::Bin(BinOp::Xor) && plain(a) && plain(b)).then_some([a, b])
        };
        let better = map.sources.iter().enumerate().find_map(|(n, &v)| {
            let parts = sum(v)?;
            let others = map.sources.iter().copied().filter(|&s| s != v);
            let all: BTreeSet<Value> = others.chain(parts).collect();
            (all.len() <= map.sources.len() && parts.iter().any(|p| map.sources.contains(p))).then_some((n, parts, all))
        });
        let Some((n, parts, all)) = better else { break };
        let matrix = map.matrix(n);
        map.add(n, &matrix);
        let sources: Vec<Value> = all.into_iter().collect();
        let Some(mut over) = map.over(&sources) else { break };
        for part in parts {
            if let Some(at) = sources.iter().position(|&s| s == part) {
                over.add(at, &matrix);
            }
        }
        let used = over.used();
        map = over.over(&used).unwrap_or(over);
    }
    map
}

/// A value that is a matrix times a word into which the program has put bytes, and
/// from which it has taken some of them before it was whole.
pub struct Packed {
    pub value: Value,
    pub word: Value,
    pub rows: [u32; WORD],
    /// What is added to it.
    pub rest: Vec<Value>,
    /// Operations between the bytes, the word and the value.
    pub operations: usize,
}

/// All such values whose word is made on the way to them.
pub fn packed(func: &Func, masks: &Masks, bytes: &ByteSums) -> Vec<Packed> {
    let maps = Maps::new(func, masks, bytes);
    let possible = |v: Value| masks.possible(func, v) as u32;
    let mut out = Vec::new();
    let mut values: Vec<Value> = maps.of.keys().copied().collect();
    values.sort();
    for value in values {
        let (rest, map) = maps.of[&value].separated(&possible);
        let narrow = |v: &Value| possible(*v) & !0xff == 0;
        if map.sources.len() != WORD / 8 || map.form.constant != 0 || !map.sources.iter().all(narrow) {
            continue;
        }
        let above = cone(func, &map.sources, &[value]);
        let place = |word: &&Value| Some((**word, places(maps.of.get(word)?, &map.sources)?));
        let Some((word, at)) = above.iter().filter(|w| **w != value).find_map(|w| place(&w)) else { continue };
        let row = |i: usize| {
            let block = |n: usize| ((map.form.rows[i] >> (WORD * n)) as u32 & 0xff) << (8 * at[n]);
            (0..map.sources.len()).fold(0, |row, n| row | block(n))
        };
        let ends: Vec<Value> = map.sources.iter().copied().chain([word]).collect();
        let operations = cone(func, &ends, &[value]).len();
        out.push(Packed { value, word, rows: std::array::from_fn(row), rest, operations });
    }
    out
}

/// The place of each source's byte in a word that has nothing else in it.
fn places(map: &Map, sources: &[Value]) -> Option<Vec<usize>> {
    let map = map.over(sources).filter(|m| m.form.constant == 0)?;
    let place = |n: usize| {
        let matrix = map.matrix(n);
        (0..WORD / 8).find(|at| (0..WORD).all(|i| matrix[i] == if i / 8 == *at { 1 << (i % 8) } else { 0 }))
    };
    let at: Vec<usize> = (0..sources.len()).map(place).collect::<Option<_>>()?;
    (at.iter().collect::<BTreeSet<_>>().len() == sources.len()).then_some(at)
}

/// A value that an instruction makes of two words.
pub struct Match {
    pub function: u16,
    pub sources: [Value; 2],
    /// What is added to it.
    pub rest: Vec<Value>,
}

/// The values that one of the units' matrices of two words computes.
pub fn matches(func: &Func, masks: &Masks, bytes: &ByteSums, units: &[Unit]) -> HashMap<Value, Match> {
    let pairs: Vec<&Unit> = units.iter().filter(|u| pair_of(u).is_some()).collect();
    if pairs.is_empty() {
        return HashMap::new();
    }
    let possible = |v: Value| masks.possible(func, v) as u32;
    let maps = Maps::new(func, masks, bytes);
    let found = |(v, map): (&Value, &Map)| {
        let (rest, map) = map.separated(&possible);
        let turned = map.over(&map.sources.iter().rev().copied().collect::<Vec<_>>())?;
        let (unit, map) = pairs
            .iter()
            .find_map(|u| [&map, &turned].into_iter().find(|m| distance(u, m) == Some(0)).map(|m| (u, m)))?;
        let sources = map.sources[..].try_into().ok()?;
        (map.form.constant == 0).then_some((*v, Match { function: unit.function, sources, rest }))
    };
    maps.of.iter().filter_map(found).collect()
}

fn pair_of(unit: &Unit) -> Option<&[[u32; WORD]; 2]> {
    let Meaning::Matrix(of) = &unit.meaning else { return None };
    of[..].try_into().ok()
}

/// In how many bits a map of two words differs from a unit's.
pub fn distance(unit: &Unit, map: &Map) -> Option<u32> {
    let of = pair_of(unit).filter(|_| map.sources.len() == 2)?;
    let bits = |n: usize| of[n].iter().zip(map.matrix(n)).map(|(a, b)| (a ^ b).count_ones()).sum::<u32>();
    Some(bits(0) + bits(1))
}

/// Outputs that have the same sources, together one map.
pub struct Together {
    pub sources: Vec<Value>,
    /// The map of each output; the sources of all stand in one order.
    pub outputs: Vec<Map>,
    /// The operations that compute them.
    pub operations: BTreeSet<Value>,
}

/// The maps of two and more words that are not inside other maps.
pub fn together(func: &Func, masks: &Masks, maps: &Maps) -> Vec<Together> {
    let inner = inside(func, maps);
    let possible = |v: Value| masks.possible(func, v) as u32;
    let mut groups: BTreeMap<Vec<Value>, Vec<(Value, Map)>> = BTreeMap::new();
    let mut found: Vec<Value> = maps.of.keys().copied().filter(|v| !inner.contains(v)).collect();
    found.sort();
    for v in found {
        let (_, mut map) = maps.of[&v].separated(&possible);
        map.form.constant = 0;
        if map.sources.len() > 1 {
            groups.entry(map.sources.clone()).or_default().push((v, map));
        }
    }
    // Outputs of fewer of the sources belong to those of all.
    let sets: Vec<Vec<Value>> = groups.keys().cloned().collect();
    for few in &sets {
        let more = sets.iter().filter(|m| m.len() > few.len() && few.iter().all(|s| m.contains(s)));
        let Some(more) = more.max_by_key(|m| m.len()) else { continue };
        for (v, map) in groups.remove(few).unwrap_or_default() {
            if let (Some(map), Some(all)) = (map.over(more), groups.get_mut(more)) {
                all.push((v, map));
            }
        }
    }
    let group = |(sources, outputs): (Vec<Value>, Vec<(Value, Map)>)| {
        let roots: Vec<Value> = outputs.iter().map(|o| o.0).collect();
        let operations = cone(func, &sources, &roots);
        Together { outputs: outputs.into_iter().map(|o| o.1).collect(), sources, operations }
    };
    groups.into_iter().map(group).collect()
}

/// Values that maps with at least the same sources, and nothing else, use.
fn inside(func: &Func, maps: &Maps) -> HashSet<Value> {
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
    let covers = |v: Value, by: &Option<Value>| {
        by.is_some_and(|by| maps.of[&v].sources.iter().all(|s| maps.of[&by].sources.contains(s)))
    };
    let all = |v: &Value| used_by.get(v).is_some_and(|users| users.iter().all(|u| covers(*v, u)));
    maps.of.keys().copied().filter(all).collect()
}

/// The values between `ends` and what is computed from them, `roots` included.
fn cone(func: &Func, ends: &[Value], roots: &[Value]) -> BTreeSet<Value> {
    let (mut seen, mut todo) = (BTreeSet::new(), roots.to_vec());
    while let Some(v) = todo.pop() {
        let v = func.resolve(v);
        if ends.contains(&v) || func.as_const(v).is_some() || !seen.insert(v) {
            continue;
        }
        if let Some(inst) = func.def_inst(v) {
            todo.extend(&func.insts[inst].args);
        }
    }
    seen
}
