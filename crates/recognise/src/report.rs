//! What was found in a program, and what an instruction just missed.
//!
//! For people: nothing here changes code. Matrices and tables are named as a
//! reader of the cipher's specification would name them, where they can be.

use super::bytes::{ByteSums, added};
use super::finding::Finding;
use super::form::WORD;
use super::nibbles::ByteTable;
use super::sums::Sums;
use super::units::{Meaning, Turned, Unit, units};
use super::{fields, layers, linear, nibbles, words};
use ciphermill_ir::bits::Masks;
use ciphermill_ir::{Func, Module, Value};
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
    if usize::from(machine.word_bits) != WORD {
        return super::wide::report::findings(module, machine);
    }
    let (units, templates) = units(machine);
    let name = |unit: &Unit| {
        let part = templates.get(usize::from(unit.function)).and_then(|t| t.parts.first());
        part.map_or(String::new(), |p| machine.instrs[usize::from(p.instr.0)].name.clone())
    };
    let loadable = super::units::configurable(machine, 0)
        .and_then(|(_, t)| t.parts.first().map(|p| machine.instrs[usize::from(p.instr.0)].name.clone()));
    let multiplier = fields::multiplier(machine, 0);
    let multiplies = |rows: &[u32; WORD]| {
        let (m, template) = multiplier.as_ref()?;
        m.any(rows)?;
        template.parts.first().map(|p| machine.instrs[usize::from(p.instr.0)].name.clone())
    };
    let mut all = Vec::new();
    for func in module.funcs.values() {
        let masks = Masks::new(func);
        let sums = Sums::new(func, &masks);
        let bytes = ByteSums::new(func, &masks, &sums, &module.data);
        for (rows, places) in matrices(func, &masks, &sums, &bytes) {
            let near = units.iter().filter_map(|u| Some((distance(&u.one_word()?, &rows), u))).min_by_key(|n| n.0);
            let exact =
                near.filter(|n| n.0 == 0).map(|n| name(n.1)).or_else(|| loadable.clone()).or_else(|| multiplies(&rows));
            let missed = match near {
                Some((bits, unit)) if bits <= NEAR_BITS => {
                    format!("differs from `{}` in {bits} bits of the matrix", name(unit))
                }
                Some(_) => "no instruction of the machine has this matrix".to_owned(),
                None => "the machine has no instruction with a matrix".to_owned(),
            };
            let missed = exact.is_none().then_some(missed);
            let (function, what) = (func.name.clone(), described(&rows));
            all.push(Finding { function, kind: "matrix", what, places, instruction: exact, missed });
        }
        for (map, (places, operations)) in of_several_words(func, &masks, &bytes) {
            let (instruction, missed) = computed(&map, &units, &name);
            let (function, what) = (func.name.clone(), several_described(&map, operations));
            all.push(Finding { function, kind: "matrix", what, places, instruction, missed });
        }
        for (table, places) in tables(func, &sums, &bytes) {
            let near = units.iter().filter_map(|u| Some((entries(u, &table)?, u))).min_by_key(|n| n.0.0);
            let exact = near.filter(|n| n.0.0 == 0).map(|n| name(n.1));
            let missed = match near {
                Some(((n, first), unit)) if n <= NEAR => {
                    format!("differs from the table of `{}` in {n} entries, the first {first:#04x}", name(unit))
                }
                Some(_) => "no instruction of the machine has this table".to_owned(),
                None => "the machine has no instruction with a table".to_owned(),
            };
            let missed = exact.is_none().then_some(missed);
            let (function, what) = (func.name.clone(), table_described(&table));
            all.push(Finding { function, kind: "table", what, places, instruction: exact, missed });
        }
    }
    all
}

/// The matrices of the values that are largest: not those of values inside
/// another's computation.
fn matrices(func: &Func, masks: &Masks, sums: &Sums, bytes: &ByteSums) -> BTreeMap<[u32; WORD], usize> {
    let found = linear::find_any_with(func, masks, sums, bytes, 1, &|_| {
        Some(vec![Turned { function: Some(0), ..Turned::default() }])
    });
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
type Several = Vec<Vec<[u32; WORD]>>;

/// The maps of two and more words, how often, and by how many operations: layers as
/// wholes, and what is for the most part in none of them.
fn of_several_words(func: &Func, masks: &Masks, bytes: &ByteSums) -> BTreeMap<Several, (usize, usize)> {
    let mut out: BTreeMap<Several, (usize, usize)> = BTreeMap::new();
    let mut note = |map: Several, operations: usize| {
        let found = out.entry(map).or_insert((0, operations));
        *found = (found.0 + 1, found.1.min(operations));
    };
    let mut whole: BTreeSet<Value> = BTreeSet::new();
    for layer in layers::layers(func, masks) {
        if layer.operations.len() >= LEAST_OPERATIONS * layer.map.len() {
            note(layer.map, layer.operations.len());
            whole.extend(layer.operations);
        }
    }
    for group in words::together(func, masks, &words::Maps::new(func, masks, bytes)) {
        let operations = group.operations.len();
        let shared = group.operations.iter().filter(|v| whole.contains(v)).count();
        if 2 * shared <= operations && operations >= LEAST_OPERATIONS * group.outputs.len() {
            let map = group.outputs.iter().map(|o| (0..o.sources.len()).map(|n| o.matrix(n)).collect()).collect();
            note(map, operations);
        }
    }
    out
}

/// The instructions that compute all outputs of a map, or why there are none.
fn computed(map: &Several, units: &[Unit], name: &dyn Fn(&Unit) -> String) -> (Option<String>, Option<String>) {
    let words = |unit: &Unit| if let Meaning::Matrix(of) = &unit.meaning { of.len() } else { 0 };
    let sources = map[0].len();
    let most = units.iter().map(words).max().unwrap_or(0);
    if most < sources {
        let has = match most {
            0 => "the machine has no instruction with a matrix".to_owned(),
            1 => "the machine's instructions with matrices take one word".to_owned(),
            _ => format!("the machine's instructions with matrices take at most {most} words"),
        };
        return (None, Some(format!("a map of {sources} words: {has}")));
    }
    let near = |output: &Vec<[u32; WORD]>| {
        let orders = [output.clone(), output.iter().rev().copied().collect()];
        let bits = |u: &Unit| {
            let Meaning::Matrix(of) = &u.meaning else { return None };
            let differs = |o: &Vec<[u32; WORD]>| of.iter().zip(o).map(|(a, b)| distance(a, b)).sum::<u32>();
            orders.iter().filter(|o| o.len() == of.len()).map(differs).min()
        };
        units.iter().filter_map(|u| Some((bits(u)?, u))).min_by_key(|n| n.0)
    };
    let nearest: Vec<(u32, &Unit)> = map.iter().filter_map(near).collect();
    if nearest.len() == map.len() && nearest.iter().all(|n| n.0 == 0) {
        let names: BTreeSet<String> = nearest.iter().map(|n| name(n.1)).collect();
        return (Some(names.into_iter().collect::<Vec<_>>().join(", ")), None);
    }
    let missed = match nearest.iter().filter(|n| n.0 > 0).min_by_key(|n| n.0) {
        Some((bits, unit)) if *bits <= NEAR_BITS => {
            format!("differs from `{}` in {bits} bits of the matrices", name(unit))
        }
        _ => "no instruction of the machine has these matrices".to_owned(),
    };
    (None, Some(missed))
}

/// Tables that are looked up with bytes or nibbles, as for the lowest of them, and how often.
fn tables(func: &Func, sums: &Sums, bytes: &ByteSums) -> BTreeMap<ByteTable, usize> {
    let values =
        || func.layout.iter().flat_map(|&b| &func.blocks[b].insts).flat_map(|&i| &func.insts[i].results).copied();
    let inner: BTreeSet<Value> = values().filter_map(|v| sums.parts(v)).flatten().collect();
    let mut out = BTreeMap::new();
    for root in values().filter(|v| !inner.contains(v)) {
        let terms = sums.flatten(root, &mut |_| false);
        for lookup in added(terms.iter().flat_map(|t| bytes.of(*t).unwrap_or_default())) {
            for (shift, table) in by_nibbles(&lookup.table) {
                let lowest =
                    |x: usize| table[(x << shift) & 0xff].rotate_right(8 * u32::from(lookup.byte) + shift as u32);
                *out.entry(std::array::from_fn(lowest)).or_default() += 1;
            }
        }
    }
    out
}

/// A table with the place of its index in the byte: where it is no more than one table for
/// each nibble, these. What is linear is called that as a whole.
fn by_nibbles(table: &ByteTable) -> Vec<(usize, ByteTable)> {
    match nibbles::split(table).filter(|_| !is_linear(table)) {
        Some(halves) => [0, 4].into_iter().zip(halves).filter(|h| h.1.iter().any(|&entry| entry != 0)).collect(),
        None => vec![(0, *table)],
    }
}

fn distance(a: &[u32; WORD], b: &[u32; WORD]) -> u32 {
    a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum()
}

/// In how many entries a table differs from the nearest of a unit's, at any
/// rotation by bytes, and the first such entry.
fn entries(unit: &Unit, table: &ByteTable) -> Option<(usize, usize)> {
    let Meaning::Tables { parts, .. } = &unit.meaning else { return None };
    let bytes = parts.iter().map(|p| (0, p));
    // A nibble's table says nothing for other bytes than those below sixteen.
    let nibbles = unit.nibbles.iter().flat_map(|p| [(0, p), (4, p)]).filter(|_| nibbles::is_of_lower(table));
    let turned = bytes.chain(nibbles).flat_map(|p| (0..u32::BITS).step_by(4).map(move |n| (p, n)));
    turned
        .map(|((shift, p), n)| {
            let differs = |x: &usize| p.table[(*x << shift) & 0xff].rotate_right(n) != table[*x];
            ((0..256).filter(differs).count(), (0..256).find(differs).unwrap_or(0))
        })
        .min()
}

/// A map of several words in words.
fn several_described(map: &Several, operations: usize) -> String {
    let (outputs, sources) = (map.len(), map[0].len());
    let ones: u32 = map.iter().flatten().flatten().map(|row| row.count_ones()).sum();
    format!(
        "a map over GF(2) of {sources} words to {outputs}, {} by {} bits with {ones} ones, in {operations} operations",
        WORD * outputs,
        WORD * sources
    )
}

/// A matrix in words: constants of a field, where it is made of such.
pub fn described(rows: &[u32; WORD]) -> String {
    let block = |i: usize, j: usize| -> [u8; 8] { std::array::from_fn(|r| (rows[8 * i + r] >> (8 * j)) as u8) };
    let blocks: Vec<[u8; 8]> = (0..16).map(|n| block(n / 4, n % 4)).collect();
    let fits = |p: &u32| blocks.iter().all(|b| multiplier(b, *p).is_some());
    // Among the polynomials that fit, an ordinary matrix of bits fits none.
    let field = (0x101..0x200).step_by(2).filter(|&p| irreducible(p)).find(fits);
    match field {
        Some(p) => {
            let constant = |n: usize| multiplier(&blocks[n], p).map_or(String::new(), |k| format!("{k:x}"));
            let row = |i: usize| (0..4).map(|j| constant(4 * i + j)).collect::<Vec<_>>().join(" ");
            format!("the 4 by 4 matrix ({}) over GF(2^8) modulo {p:#x}", (0..4).map(row).collect::<Vec<_>>().join("; "))
        }
        None => format!("a matrix over GF(2) with {} ones", rows.iter().map(|r| r.count_ones()).sum::<u32>()),
    }
}

/// The constant that a matrix of 8 by 8 bits multiplies by in a field.
fn multiplier(block: &[u8; 8], polynomial: u32) -> Option<u8> {
    let column = |j: usize| (0..8).fold(0u8, |c, i| c | (block[i] >> j & 1) << i);
    let k = column(0);
    let mut expected = u32::from(k);
    for j in 0..8 {
        if u32::from(column(j)) != expected {
            return None;
        }
        expected <<= 1;
        if expected & 0x100 != 0 {
            expected ^= polynomial;
        }
    }
    Some(k)
}

fn irreducible(p: u32) -> bool {
    let remainder = |mut a: u32, b: u32| {
        while a != 0 && a.ilog2() >= b.ilog2() {
            a ^= b << (a.ilog2() - b.ilog2());
        }
        a
    };
    (2..32).all(|d| remainder(p, d) != 0)
}

fn table_described(table: &ByteTable) -> String {
    let mask = table.iter().fold(0, |m, t| m | t);
    let first: Vec<String> = table[..4].iter().map(|t| format!("{t:x}")).collect();
    let kind = if is_linear(table) { "linear over GF(2)" } else { "not linear" };
    let entries = if nibbles::is_of_lower(table) { "16 entries of " } else { "" };
    format!("a table of {entries}{} bits, {kind}: {} ...", 32 - mask.leading_zeros(), first.join(" "))
}

fn is_linear(table: &ByteTable) -> bool {
    let sum = |x: usize| (0..8).filter(|b| x >> b & 1 == 1).fold(0, |s, b| s ^ table[1 << b]);
    table[0] == 0 && (0..256).all(|x| sum(x) == table[x])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_of_a_field_are_named() {
        let mut rows = [0u32; WORD];
        let mix = [[2u32, 3, 1, 1], [1, 2, 3, 1], [1, 1, 2, 3], [3, 1, 1, 2]];
        for (i, line) in mix.iter().enumerate() {
            for (j, &k) in line.iter().enumerate() {
                for bit in 0..8 {
                    let product = (0..bit).fold(k, |v, _| if v & 0x80 != 0 { v << 1 ^ 0x11b } else { v << 1 });
                    (0..8).for_each(|r| rows[8 * i + r] |= (product >> r & 1) << (8 * j + bit));
                }
            }
        }
        assert_eq!(
            described(&rows),
            "the 4 by 4 matrix (2 3 1 1; 1 2 3 1; 1 1 2 3; 3 1 1 2) over GF(2^8) modulo 0x11b"
        );
        rows[3] ^= 1 << 20;
        assert!(described(&rows).starts_with("a matrix over GF(2) with"));
    }

    #[test]
    fn polynomials_of_degree_8() {
        assert_eq!((0x100..0x200).filter(|&p| irreducible(p)).count(), 30);
    }
}
