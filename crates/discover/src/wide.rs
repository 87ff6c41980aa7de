//! Lookups in constant tables on machines of 64-bit words.
//!
//! There an instruction with a table looks up one byte, or one nibble, of a register; what
//! it gives is added by another. Two ways to make one instruction of several lookups are
//! tried: the same table for whichever byte the program takes, as S-boxes have it, and
//! tables that are rotations of one another by the byte they belong to, as round tables
//! are.

use crate::candidate::{Candidate, Counts, Limits};
use crate::maps::{self, LOOKUP, factored, listed};
use ciphermill_ir::low_bits::use_counts;
use ciphermill_ir::ops::sext;
use ciphermill_ir::{BinOp, Func, Module, Op, Type, Value};
use ciphermill_machine::Machine;
use ciphermill_opt::words::words;
use ciphermill_recognise::facts::Facts;
use ciphermill_recognise::nibbles;
use ciphermill_recognise::sum::Table;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Entries of 256 or 16 words, and what is done with one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct LookupKind {
    entries: Vec<u64>,
    then: Then,
    /// Another register is added.
    added: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Then {
    Nothing,
    /// Rotated to the left by the byte that was looked up, in so many bits.
    Turned(u32),
}

/// The bytes or nibbles looked up, places, and the estimate of the cycles saved.
type Uses = (BTreeSet<u8>, usize, u64);

/// Candidates for lookups in constant tables.
pub fn tables(module: &Module, machine: &Machine, counts: &Counts, limits: Limits) -> Vec<Candidate> {
    let mut module = module.clone();
    words(&mut module, machine.computes_narrow(), machine.word_bits);
    let narrow = machine.computes_narrow();
    let mut found: BTreeMap<LookupKind, Uses> = BTreeMap::new();
    for (id, func) in &module.funcs {
        let Facts { values, .. } = Facts::new(func, &module.data, Type::of_word(machine.word_bits.into()));
        let sums = summed(func);
        for (block, load) in maps::results(func).filter(|(_, v)| values.loads.contains(v)) {
            let runs = counts.get(&(id, block)).copied().unwrap_or(0);
            let Some(sum) = values.of(load).filter(|s| runs > 0 && s.parts.len() == 1) else { continue };
            let table = sum.parts[0].table();
            for (kind, position) in kinds(&table, sum.parts[0].byte, narrow) {
                let uses = found.entry(kind.clone()).or_default();
                uses.0.insert(position);
                uses.1 += 1;
                uses.2 += runs * (LOOKUP - 1);
                if limits.inputs > 1 && sums.contains(&load) {
                    let uses = found.entry(LookupKind { added: true, ..kind }).or_default();
                    uses.0.insert(position);
                    uses.1 += 1;
                    uses.2 += runs * LOOKUP;
                }
            }
        }
    }
    // A rotation that is always by the same is none.
    let of_use = |(kind, uses): &(LookupKind, Uses)| kind.then == Then::Nothing || uses.0.len() > 1;
    found.into_iter().filter(of_use).map(|(kind, uses)| candidate(&kind, uses, narrow)).collect()
}

/// Values that nothing but one sum over GF(2) reads.
fn summed(func: &Func) -> HashSet<Value> {
    let uses = use_counts(func);
    let insts = func.layout.iter().flat_map(|&b| &func.blocks[b].insts).map(|&i| &func.insts[i]);
    let terms = insts.filter(|data| data.op == Op::Bin(BinOp::Xor)).flat_map(|data| &data.args);
    terms.map(|&v| func.resolve(v)).filter(|v| uses.get(v) == Some(&1)).collect()
}

/// What a table looked up with a byte may be, and the byte or nibble it is looked up with.
fn kinds(table: &Table, byte: u8, narrow: bool) -> Vec<(LookupKind, u8)> {
    if nibbles::is_of_one(table) {
        let first = nibbles::first(table);
        let entries = (0..16).map(|x| table[x << first]).collect();
        return vec![(LookupKind { entries, then: Then::Nothing, added: false }, 2 * byte + (first / 4) as u8)];
    }
    let mut all = vec![(LookupKind { entries: table.to_vec(), then: Then::Nothing, added: false }, byte)];
    let by = 8 * u32::from(byte);
    if table.iter().any(|x| x >> 8 != 0) {
        let words = table.iter().all(|&x| is_short(x, narrow)) && byte < 4;
        let (bits, back): (u32, Vec<u64>) = match words {
            true => (32, table.iter().map(|&x| u64::from((x as u32).rotate_right(by))).collect()),
            false => (64, table.iter().map(|x| x.rotate_right(by)).collect()),
        };
        all.push((LookupKind { entries: back, then: Then::Turned(bits), added: false }, byte));
    }
    all
}

/// Is a word one of 32 bits, as the machine holds them?
fn is_short(word: u64, narrow: bool) -> bool {
    if narrow { word >> 32 == 0 } else { sext(word, 32) as u64 == word }
}

fn candidate(kind: &LookupKind, (positions, places, saves): Uses, narrow: bool) -> Candidate {
    let (width, name) = if kind.entries.len() == 16 { (4u32, "nb") } else { (8, "bs") };
    let immediate = positions.iter().any(|&p| p > 0);
    let log = width.ilog2();
    let (from, sum) = if kind.added { ("rs2", "rs1 ^ ") } else { ("rs1", "") };
    let index = match immediate {
        true => format!("({from} >>u ({name} << {log}))[{}:0]", width - 1),
        false => format!("{from}[{}:0]", width - 1),
    };
    let short = kind.entries.iter().all(|&x| x >> 32 == 0).then(|| Table::try_from(&kind.entries[..]).ok()).flatten();
    let factors = short.as_ref().filter(|_| kind.then == Then::Turned(32)).and_then(factored);
    let (value, constants) = match factors {
        Some((table, matrix)) => {
            let entries = table.map(u64::from);
            (format!("linear(spread, lookup[{index}])"), listed("lookup", 8, &entries) + &maps::spread(&matrix))
        }
        None => {
            let largest = kind.entries.iter().fold(0, |all, x| all | x);
            let bits = [8, 16, 32].into_iter().find(|bits| largest >> bits == 0).unwrap_or(64);
            if bits == 64 && kind.entries.iter().all(|&x| is_short(x, false)) {
                let low: Vec<u64> = kind.entries.iter().map(|x| x & u64::from(u32::MAX)).collect();
                (format!("sext32(lookup[{index}])"), listed("lookup", 32, &low))
            } else {
                (format!("lookup[{index}]"), listed("lookup", bits, &kind.entries))
            }
        }
    };
    let semantics = match kind.then {
        Then::Nothing => format!("rd = {sum}{value}"),
        Then::Turned(64) => format!("rd = {sum}rotl({value}, {name} << {log})"),
        Then::Turned(bits) if narrow => format!("rd = {sum}rotl{bits}({value}, {name} << {log})"),
        Then::Turned(bits) => format!(
            "let word = {value}; rd = {sum}sext{bits}((word << ({name} << {log})) | (word >>u ({bits} - ({name} << {log}))))"
        ),
    };
    Candidate {
        kind: "tables",
        registers: ["rd", "rs1", "rs2"].iter().take(if kind.added { 3 } else { 2 }).map(|&r| r.to_owned()).collect(),
        outputs: 1,
        immediates: if immediate {
            vec![(name.to_owned(), positions.iter().map(|&p| i64::from(p)).collect())]
        } else {
            Vec::new()
        },
        semantics,
        meaning: None,
        constants,
        operations: LOOKUP as usize + usize::from(kind.added),
        places,
        saves,
    }
}
