//! Candidates that are found by what code computes: matrices over GF(2), and
//! lookups in constant tables.

use crate::candidate::{Candidate, Counts};
use ciphermill_ir::{Block, Func, Module, Type, Value};
use ciphermill_machine::Machine;
use ciphermill_recognise::facts::Facts;
use ciphermill_recognise::linear;
use ciphermill_recognise::matrices::Turned;
use ciphermill_recognise::sum::{Part, Rows, Table};
use ciphermill_recognise::words::Maps;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Operations that a matrix must replace to be worth an instruction.
const LEAST_OPERATIONS: usize = 4;
/// Cycles of a lookup in software: cutting out the byte, scaling, the load and
/// its delay, adding. An estimate for ranking.
pub(crate) const LOOKUP: u64 = 5;

/// Matrices that values are times other values.
pub fn matrices(module: &Module, machine: &Machine, counts: &Counts) -> Vec<Candidate> {
    if machine.word_bits != 32 {
        return Vec::new();
    }
    let mut found: BTreeMap<Rows, (usize, usize, u64)> = BTreeMap::new();
    for (id, func) in &module.funcs {
        let facts = Facts::new(func, &[], Type::I32);
        let matches = linear::find_any(&Maps::new(&facts), 1, &|_| Some(vec![Turned::ANY]));
        for (block, value) in results(func) {
            let runs = counts.get(&(id, block)).copied().unwrap_or(0);
            let Some(m) = matches.get(&value).filter(|m| m.saves >= LEAST_OPERATIONS && runs > 0) else { continue };
            let entry = found.entry(m.rows.clone()).or_default();
            entry.0 = entry.0.max(m.saves + 1);
            entry.1 += 1;
            entry.2 += runs * m.saves as u64;
        }
    }
    let candidate = |(rows, (operations, places, saves)): (Rows, _)| {
        let mut constants = String::from("[matrices.map]\ncolumns = 32\nrows = [\n");
        for row in rows.chunks(8) {
            let _ = writeln!(
                constants,
                "    {},",
                row.iter().map(|r| format!("\"{r:08x}\"")).collect::<Vec<_>>().join(", ")
            );
        }
        constants += "]\n";
        Candidate {
            kind: "matrix",
            registers: vec!["rd".to_owned(), "rs1".to_owned()],
            outputs: 1,
            immediates: Vec::new(),
            semantics: "rd = linear(map, rs1)".to_owned(),
            meaning: None,
            constants,
            operations,
            places,
            saves,
        }
    };
    found.into_iter().map(candidate).collect()
}

/// Tables looked up with a byte, added to a word: one instruction for a table and
/// its rotations by bytes, with the byte as an immediate.
pub fn tables(module: &Module, counts: &Counts) -> Vec<Candidate> {
    let mut found: BTreeMap<Table, (BTreeSet<u8>, usize, u64)> = BTreeMap::new();
    for (id, func) in &module.funcs {
        let Facts { sums, values, .. } = Facts::new(func, &module.data, Type::I32);
        let inner: BTreeSet<Value> = results(func).filter_map(|(_, v)| sums.parts(v)).flatten().collect();
        for (block, value) in results(func).filter(|(_, v)| sums.parts(*v).is_some() && !inner.contains(v)) {
            let runs = counts.get(&(id, block)).copied().unwrap_or(0);
            let terms = sums.flatten(value, &mut |_| false);
            for part in values.looked_up(&terms) {
                note(&mut found, &part, runs);
            }
        }
    }
    found.into_iter().filter(|(_, f)| f.2 > 0).map(|(table, found)| candidate(&table, found)).collect()
}

fn note(found: &mut BTreeMap<Table, (BTreeSet<u8>, usize, u64)>, part: &Part<Value>, runs: u64) {
    let turned = part.table().map(|x| (x as u32).rotate_right(8 * u32::from(part.byte)).into());
    let entry = found.entry(turned).or_default();
    entry.0.insert(part.byte);
    entry.1 += 1;
    entry.2 += runs * (LOOKUP - 1);
}

fn candidate(table: &Table, (_, places, saves): (BTreeSet<u8>, usize, u64)) -> Candidate {
    let index = "(rs2 >>u (bs << 3))[7:0]";
    let (value, constants) = match factored(table) {
        Some((box_, matrix)) => {
            let constants = listed("lookup", 8, &box_.map(u64::from)) + &spread(&matrix);
            (format!("linear(spread, lookup[{index}])"), constants)
        }
        None => (format!("lookup[{index}]"), listed("lookup", 32, table)),
    };
    Candidate {
        kind: "tables",
        registers: ["rd", "rs1", "rs2"].map(str::to_owned).to_vec(),
        outputs: 1,
        immediates: vec![("bs".to_owned(), vec![0, 1, 2, 3])],
        semantics: format!("rd = rs1 ^ rotl({value}, bs << 3)"),
        meaning: None,
        constants,
        operations: LOOKUP as usize,
        places,
        saves,
    }
}

/// A table as an extension file has it, with entries of so many bits.
pub(crate) fn listed(name: &str, bits: usize, values: &[u64]) -> String {
    let mut text = format!("[tables.{name}]\nbits = {bits}\nhex = [\n");
    for row in values.chunks(64 / (bits / 4)) {
        let digits: String = row.iter().map(|v| format!("{v:0width$x}", width = bits / 4)).collect();
        let _ = writeln!(text, "    \"{digits}\",");
    }
    text + "]\n"
}

/// The matrix of [`factored`] as an extension file has it.
pub(crate) fn spread(matrix: &[u8; 32]) -> String {
    let rows: Vec<String> = matrix.iter().map(|r| format!("\"{r:02x}\"")).collect();
    format!("\n[matrices.spread]\ncolumns = 8\nrows = [{}]\n", rows.join(", "))
}

/// A table of bytes and a matrix that make the table together, if there are
/// such: less hardware, least for the matrix of fewest ones. Row i of the matrix
/// is a mask of the bits of the byte.
pub(crate) fn factored(table: &Table) -> Option<([u8; 256], [u8; 32])> {
    let ways = (0..4).filter_map(|byte| {
        let box_: [u8; 256] = table.map(|x| (x >> (8 * byte)) as u8);
        let mut at = [None; 256];
        for (x, &y) in box_.iter().enumerate() {
            at[usize::from(y)] = Some(x);
        }
        let image = |bit: usize| at[1 << bit].map(|x| table[x]);
        let images: Vec<u64> = (0..8).map(image).collect::<Option<_>>()?;
        let matrix: [u8; 32] =
            std::array::from_fn(|i| (0..8).fold(0, |m, bit| m | (((images[bit] >> i) & 1) as u8) << bit));
        let product = |y: u8| (0..32).fold(0, |w, i| w | u64::from((matrix[i] & y).count_ones() & 1) << i);
        (0..256).all(|x| product(box_[x]) == table[x]).then_some((box_, matrix))
    });
    ways.min_by_key(|(_, matrix)| matrix.iter().map(|r| r.count_ones()).sum::<u32>())
}

/// Blocks and the values that their instructions make.
pub(crate) fn results(func: &Func) -> impl Iterator<Item = (Block, Value)> + '_ {
    let of = move |b: &Block| (*b, func.blocks[*b].insts.clone());
    func.layout.iter().map(of).flat_map(move |(b, insts)| {
        insts.into_iter().flat_map(move |i| func.insts[i].results.to_vec()).map(move |v| (b, v))
    })
}
