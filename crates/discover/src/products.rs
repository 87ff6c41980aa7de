//! Carry-less products as candidates, however the program makes them.

use crate::candidate::{Candidate, Counts, Limits};
use crate::cost::cycles;
use crate::maps;
use ciphermill_ir::{Block, Func, Module, Type, Value};
use ciphermill_machine::Machine;
use ciphermill_opt::words::words;
use ciphermill_recognise::facts::Facts;
use ciphermill_recognise::products::{self, Match, Product};
use ciphermill_recognise::quadratic::{Word, carryless};
use ciphermill_recognise::walk::backwards;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Half of a product, or the bits that belong to reversed words.
struct Shape {
    name: &'static str,
    bits: u32,
    low: u32,
}

impl Product for Shape {
    fn of(&self, masks: [u64; 2]) -> Option<Word> {
        Some(carryless(masks, self.bits, self.low))
    }
}

pub fn candidates(module: &Module, machine: &Machine, counts: &Counts, limits: Limits) -> Vec<Candidate> {
    let bits = u32::from(machine.word_bits);
    if limits.inputs < 2 || bits < 32 {
        return Vec::new();
    }
    let mut module = module.clone();
    words(&mut module, machine.computes_narrow(), machine.word_bits);
    let shapes = [("clmul", 0), ("clmulh", bits), ("clmulr", bits - 1)].map(|(name, low)| Shape { name, bits, low });
    let all: Vec<&dyn Product> = shapes.iter().map(|s| s as &dyn Product).collect();
    let mut places: BTreeMap<usize, (usize, usize, u64)> = BTreeMap::new();
    for (id, func) in &module.funcs {
        let facts = Facts::new(func, &[], Type::of_word(bits));
        let found = products::find(&facts, &all);
        let blocks: HashMap<Value, Block> = maps::results(func).map(|(block, value)| (value, block)).collect();
        for (value, product, operations) in whole(func, found) {
            let runs = blocks.get(&value).and_then(|&b| counts.get(&(id, b))).copied().unwrap_or(0);
            let place = places.entry(product).or_default();
            *place = (place.0.max(operations), place.1 + 1, place.2 + runs * (operations as u64 - 1));
        }
    }
    let candidate = |(shape, (operations, places, saves)): (usize, (usize, usize, u64))| Candidate {
        kind: "product",
        registers: ["rd", "rs1", "rs2"].map(str::to_owned).to_vec(),
        outputs: 1,
        immediates: Vec::new(),
        semantics: format!("rd = {}(rs1, rs2)", shapes[shape].name),
        meaning: None,
        constants: String::new(),
        operations,
        places,
        saves,
    };
    places.into_iter().filter(|p| p.1.2 > 0).map(candidate).collect()
}

/// The products that are not parts of others: the value, which product it is, and the cycles that it takes.
fn whole(func: &Func, found: HashMap<Value, Match>) -> Vec<(Value, usize, usize)> {
    let below = |(value, m): (Value, Match)| {
        let part = |v: Value| !m.factors.contains(&v) && func.as_const(v).is_none();
        (value, m.product, backwards(func, &[value], part))
    };
    let mut all: Vec<(Value, usize, BTreeSet<Value>)> = found.into_iter().map(below).collect();
    all.sort_by_key(|(value, _, below)| (std::cmp::Reverse(below.len()), *value));
    let mut taken = BTreeSet::new();
    let mut out = Vec::new();
    for (value, product, below) in all {
        if taken.contains(&value) {
            continue;
        }
        out.push((value, product, cycles(func, &below)));
        taken.extend(below);
    }
    out
}
