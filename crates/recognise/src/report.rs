//! What was found in a program, and what an instruction just missed.
//!
//! For people: nothing here changes code. Matrices and tables are named as a
//! reader of the cipher's specification would name them, where they can be.

use super::cover::cover;
use super::describe::{described, is_linear, several_described, table_described};
use super::facts::Facts;
use super::finding::Finding;
use super::matrices::Turned;
use super::sum::{Part, Rows, Sum, Table};
use super::units::{Unit, units};
use super::words::Maps;
use super::{fields, layers, linear, nibbles, words};
use ciphermill_ir::{Module, Type, Value};
use ciphermill_machine::Machine;
use std::collections::{BTreeMap, BTreeSet};

/// Operations that a matrix takes, at least, to be listed.
const LEAST_OPERATIONS: usize = 4;
/// A table that differs in more entries is another table.
const NEAR: usize = 32;
/// A matrix that differs in more bits is another matrix.
const NEAR_BITS: u32 = 64;

/// All findings in an optimised module.
pub fn findings(module: &Module, machine: &Machine) -> Vec<Finding> {
    let (units, _) = units(machine);
    let word = Type::of_word(machine.word_bits.into());
    let mut module = module.clone();
    if word == Type::I64 {
        ciphermill_opt::words::words(&mut module, machine.computes_narrow(), machine.word_bits);
    }
    let loadable = super::units::configurable(machine, 0).map(|(c, _)| c.name);
    let multiplier = fields::multiplier(machine, 0);
    let multiplies = |rows: &Rows| multiplier.as_ref().filter(|(m, _)| m.any(rows).is_some()).map(|(m, _)| m.name());
    let mut all = Vec::new();
    for func in module.funcs.values() {
        let facts = Facts::new(func, &module.data, word);
        let mut note = |kind, what, places, (instruction, missed)| {
            all.push(Finding { function: func.name.clone(), kind, what, places, instruction, missed });
        };
        if word == Type::I64 {
            for ((what, found), places) in sums_of_tables(&facts, &units) {
                note("table", what, places, found);
            }
            continue;
        }
        let maps = Maps::new(&facts);
        for (rows, places) in matrices(&maps) {
            let near = units.iter().filter_map(|u| Some((distance(&u.one_word()?, &rows), u))).min_by_key(|n| n.0);
            let exact = near
                .filter(|n| n.0 == 0)
                .map(|n| n.1.name.clone())
                .or_else(|| loadable.clone())
                .or_else(|| multiplies(&rows));
            let missed = match near {
                Some((bits, unit)) if bits <= NEAR_BITS => {
                    format!("differs from `{}` in {bits} bits of the matrix", unit.name)
                }
                Some(_) => "no instruction of the machine has this matrix".to_owned(),
                None => "the machine has no instruction with a matrix".to_owned(),
            };
            note("matrix", described(&rows), places, either(exact, missed));
        }
        for (map, (places, operations)) in of_several_words(&maps) {
            note("matrix", several_described(&map, operations), places, computed(&map, &units));
        }
        for (table, places) in tables(&facts) {
            let near = units.iter().filter_map(|u| Some((entries(u, &table)?, u))).min_by_key(|n| n.0.0);
            let exact = near.filter(|n| n.0.0 == 0).map(|n| n.1.name.clone());
            let missed = match near {
                Some(((n, first), unit)) if n <= NEAR => {
                    format!("differs from the table of `{}` in {n} entries, the first {first:#04x}", unit.name)
                }
                Some(_) => "no instruction of the machine has this table".to_owned(),
                None => "the machine has no instruction with a table".to_owned(),
            };
            note("table", table_described(&table), places, either(exact, missed));
        }
    }
    all
}

/// The instruction, or why there is none.
type Answer = (Option<String>, Option<String>);

fn either(instruction: Option<String>, missed: String) -> Answer {
    let missed = instruction.is_none().then_some(missed);
    (instruction, missed)
}

/// Sums of tables that are no part of others, in words of 64 bits: their instructions take
/// the bytes of several words at once.
fn sums_of_tables(facts: &Facts<'_>, units: &[Unit]) -> BTreeMap<(String, Answer), usize> {
    let func = facts.func;
    let found: Vec<(Value, Sum<Value>)> = facts
        .results()
        .filter_map(|v| Some((v, facts.values.added(&facts.sums.flatten(v, &mut |_| false))?.0)))
        .filter(|f| f.1.parts.len() > 1)
        .collect();
    // The values that a sum is made of, and what is the same sum with more added.
    let args = |v: &Value| func.def_inst(*v).map(|i| func.insts[i].args.clone()).unwrap_or_default();
    let inner: BTreeSet<Value> = found.iter().flat_map(|f| args(&f.0)).map(|a| func.resolve(a)).collect();
    let mut all = BTreeMap::new();
    for (_, sum) in found.into_iter().filter(|(v, _)| !inner.contains(v)) {
        let words = if sum.sources().len() == 1 { "word" } else { "words" };
        let what = format!("a sum of {} tables of bytes of {} {words}", sum.parts.len(), sum.sources().len());
        let exact = match cover(units, &sum).as_deref() {
            Some([step]) if step.mask == u64::MAX => Some(units[step.unit].name.clone()),
            _ => None,
        };
        *all.entry((what, either(exact, nearest(units, &sum)))).or_default() += 1;
    }
    all
}

/// The instruction that has most of a sum's tables, and why it is not it.
fn nearest(units: &[Unit], sum: &Sum<Value>) -> String {
    let same = |u: &Unit| {
        let own = || u.bytes.iter().flat_map(|turn| &turn.parts);
        let has = |p: &Part<Value>| own().any(|q| q.byte == p.byte && q.function == p.function);
        sum.parts.iter().filter(|p| has(p)).count()
    };
    let plain = units.iter().filter(|u| u.accumulator.is_none());
    match plain.map(|u| (same(u), u)).max_by_key(|n| n.0) {
        None => "the machine has no instruction with tables or a matrix".to_owned(),
        Some((0, _)) => "no instruction of the machine has these tables at these bytes".to_owned(),
        Some((n, unit)) if n == sum.parts.len() && n == unit.sum.parts.len() => {
            format!("`{}` has these tables, but of bytes that stand in other words", unit.name)
        }
        Some((n, unit)) => format!(
            "`{}` has {n} of these tables and {} others",
            unit.name,
            unit.sum.parts.len() - n.min(unit.sum.parts.len())
        ),
    }
}

/// The matrices of the values that are largest: not those of values inside
/// another's computation.
fn matrices(maps: &Maps<'_>) -> BTreeMap<Rows, usize> {
    let func = maps.facts.func;
    let found = linear::find_any(maps, 1, &|_| Some(vec![Turned::ANY]));
    let mut inner: BTreeSet<Value> = BTreeSet::new();
    for (&root, m) in &found {
        let mut todo = vec![root];
        while let Some(v) = todo.pop() {
            let stops = v == m.source || m.rest.contains(&v);
            if stops || (v != root && !inner.insert(v)) {
                continue;
            }
            let args = func.def_inst(v).map(|i| func.insts[i].args.clone()).unwrap_or_default();
            todo.extend(args.into_iter().map(|a| func.resolve(a)));
        }
    }
    let mut out = BTreeMap::new();
    for (root, m) in found {
        if m.saves >= LEAST_OPERATIONS && !inner.contains(&root) {
            *out.entry(m.rows).or_default() += 1;
        }
    }
    out
}

/// The matrices of a map's outputs, each with one matrix for each of its sources.
type Several = Vec<Vec<Rows>>;

/// The maps of two and more words, how often, and by how many operations: layers as
/// wholes, and what is for the most part in none of them.
fn of_several_words(maps: &Maps<'_>) -> BTreeMap<Several, (usize, usize)> {
    let mut out: BTreeMap<Several, (usize, usize)> = BTreeMap::new();
    let mut note = |map: Several, operations: usize| {
        let found = out.entry(map).or_insert((0, operations));
        *found = (found.0 + 1, found.1.min(operations));
    };
    let mut whole: BTreeSet<Value> = BTreeSet::new();
    for layer in layers::layers(maps.facts) {
        if layer.operations.len() >= LEAST_OPERATIONS * layer.map.len() {
            note(layer.map, layer.operations.len());
            whole.extend(layer.operations);
        }
    }
    for group in words::together(maps) {
        let operations = group.operations.len();
        let shared = group.operations.iter().filter(|v| whole.contains(v)).count();
        if 2 * shared <= operations && operations >= LEAST_OPERATIONS * group.map.len() {
            note(group.map, operations);
        }
    }
    out
}

/// The instructions that compute all outputs of a map, or why there are none.
fn computed(map: &Several, units: &[Unit]) -> Answer {
    let sources = map[0].len();
    let most = units.iter().map(|u| u.matrix.len()).max().unwrap_or(0);
    if most < sources {
        let has = match most {
            0 => "the machine has no instruction with a matrix".to_owned(),
            1 => "the machine's instructions with matrices take one word".to_owned(),
            _ => format!("the machine's instructions with matrices take at most {most} words"),
        };
        return (None, Some(format!("a map of {sources} words: {has}")));
    }
    let near = |output: &Vec<Rows>| {
        let orders = [output.clone(), output.iter().rev().cloned().collect()];
        let bits = |u: &Unit| {
            let differs = |o: &Vec<Rows>| u.matrix.iter().zip(o).map(|(a, b)| distance(a, b)).sum::<u32>();
            orders.iter().filter(|o| o.len() == u.matrix.len()).map(differs).min()
        };
        units.iter().filter_map(|u| Some((bits(u)?, u))).min_by_key(|n| n.0)
    };
    let nearest: Vec<(u32, &Unit)> = map.iter().filter_map(near).collect();
    if nearest.len() == map.len() && nearest.iter().all(|n| n.0 == 0) {
        let names: BTreeSet<&str> = nearest.iter().map(|n| n.1.name.as_str()).collect();
        return (Some(names.into_iter().collect::<Vec<_>>().join(", ")), None);
    }
    let missed = match nearest.iter().filter(|n| n.0 > 0).min_by_key(|n| n.0) {
        Some((bits, unit)) if *bits <= NEAR_BITS => {
            format!("differs from `{}` in {bits} bits of the matrices", unit.name)
        }
        _ => "no instruction of the machine has these matrices".to_owned(),
    };
    (None, Some(missed))
}

/// Tables that are looked up with bytes or nibbles, as for the lowest of them, and how often.
fn tables(facts: &Facts<'_>) -> BTreeMap<Table, usize> {
    let inner: BTreeSet<Value> = facts.results().filter_map(|v| facts.sums.parts(v)).flatten().collect();
    let mut out = BTreeMap::new();
    for root in facts.results().filter(|v| !inner.contains(v)) {
        let terms = facts.sums.flatten(root, &mut |_| false);
        for part in facts.values.looked_up(&terms) {
            for (shift, table) in by_nibbles(&part.table()) {
                let turn = 8 * u32::from(part.byte) + shift as u32;
                let lowest = |x: usize| turned(table[(x << shift) & 0xff], turn);
                *out.entry(std::array::from_fn(lowest)).or_default() += 1;
            }
        }
    }
    out
}

/// A word of 32 bits rotated to the right.
fn turned(word: u64, by: u32) -> u64 {
    (word as u32).rotate_right(by).into()
}

/// A table with the place of its index in the byte: where it is no more than one table for
/// each nibble, these. What is linear is called that as a whole.
fn by_nibbles(table: &Table) -> Vec<(usize, Table)> {
    match nibbles::split(table).filter(|_| !is_linear(table)) {
        Some(halves) => [0, 4].into_iter().zip(halves).filter(|h| h.1.iter().any(|&entry| entry != 0)).collect(),
        None => vec![(0, *table)],
    }
}

fn distance(a: &Rows, b: &Rows) -> u32 {
    a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum()
}

/// In how many entries a table differs from the nearest of a unit's, at any
/// rotation by bytes, and the first such entry.
fn entries(unit: &Unit, table: &Table) -> Option<(usize, usize)> {
    let own = |parts: &[Part<usize>]| parts.iter().map(Part::table).collect::<Vec<_>>();
    let bytes = if unit.matrix.is_empty() { own(&unit.sum.parts) } else { Vec::new() };
    // A nibble's table says nothing for other bytes than those below sixteen.
    let nibbles = if nibbles::is_of_lower(table) {
        own(unit.nibbles.first().map_or(&[], |turn| &turn.parts))
    } else {
        Vec::new()
    };
    let all = bytes.iter().map(|t| (0, t)).chain(nibbles.iter().flat_map(|t| [(0, t), (4, t)]));
    all.flat_map(|p| (0..u32::BITS).step_by(4).map(move |n| (p, n)))
        .map(|((shift, own), n)| {
            let differs = |x: &usize| turned(own[(*x << shift) & 0xff], n) != table[*x];
            ((0..256).filter(differs).count(), (0..256).find(differs).unwrap_or(0))
        })
        .min()
}
