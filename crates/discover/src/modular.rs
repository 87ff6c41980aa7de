//! Arithmetic modulo a number as candidates: products and sums that are reduced, however the
//! program writes it.

use crate::candidate::{Candidate, Counts, Limits};
use crate::cost::cycles;
use crate::maps;
use ciphermill_ir::{Block, Module, Type, Value};
use ciphermill_machine::Machine;
use ciphermill_opt::words::words;
use ciphermill_recognise::congruence::Congruence;
use ciphermill_recognise::facts::Facts;
use ciphermill_recognise::modular::{Made, is_modular};
use ciphermill_recognise::walk::backwards;
use ciphermill_recognise::written::Writer;
use std::collections::{BTreeMap, HashMap};

/// An instruction by its semantics: how many registers it reads, what it is modulo a number, operations,
/// places and the cycles saved.
struct Use {
    inputs: usize,
    meaning: String,
    operations: usize,
    places: usize,
    saves: u64,
}

pub fn candidates(module: &Module, machine: &Machine, counts: &Counts, limits: Limits) -> Vec<Candidate> {
    let bits = u32::from(machine.word_bits);
    if bits < 32 {
        return Vec::new();
    }
    let mut module = module.clone();
    words(&mut module, machine.computes_narrow(), machine.word_bits);
    let mut found: BTreeMap<String, Use> = BTreeMap::new();
    for (id, func) in &module.funcs {
        let facts = Facts::new(func, &[], Type::of_word(bits));
        let made = Made::new(&facts);
        let blocks: HashMap<Value, Block> = maps::results(func).map(|(block, value)| (value, block)).collect();
        let runs = |v: &Value| blocks.get(v).and_then(|&b| counts.get(&(id, b))).copied().unwrap_or(0);
        // Of a source and of its sign extension the value may be the same: the longer way to it, then the
        // shorter text.
        let mut places: BTreeMap<(Value, String), (usize, String, usize)> = BTreeMap::new();
        let sets = made.sets().into_iter().filter(|set| set.iter().all(|&v| func.as_const(v).is_none()));
        for set in sets.filter(|set| set.len() <= limits.inputs) {
            for (v, semantics, meaning) in written(&made, &set, bits).into_iter().filter(|w| runs(&w.0) > 0) {
                let part = |v: Value| !set.contains(&v) && func.as_const(v).is_none();
                let operations = cycles(func, &backwards(func, &[v], part));
                let rank = |operations: usize, text: &str| (std::cmp::Reverse(operations), text.len());
                let new = (set.len(), semantics, operations);
                let old = places.entry((v, meaning)).or_insert_with(|| new.clone());
                if rank(new.2, &new.1) < rank(old.2, &old.1) {
                    *old = new;
                }
            }
        }
        for ((v, meaning), (inputs, semantics, operations)) in places {
            let new = Use { inputs, meaning, operations: 0, places: 0, saves: 0 };
            let all = found.entry(semantics).or_insert(new);
            all.operations = all.operations.max(operations);
            all.places += 1;
            all.saves += runs(&v) * (operations as u64 - 1);
        }
    }
    let candidate = |(semantics, found): (String, Use)| Candidate {
        kind: "modular",
        registers: std::iter::once("rd".to_owned()).chain((1..=found.inputs).map(|n| format!("rs{n}"))).collect(),
        outputs: 1,
        immediates: Vec::new(),
        semantics,
        meaning: Some(found.meaning),
        constants: String::new(),
        operations: found.operations,
        places: found.places,
        saves: found.saves,
    };
    found.into_iter().map(candidate).collect()
}

/// What is made of some values and is arithmetic modulo a number: its semantics and what it is. Of the orders
/// of two values that which reads first.
fn written(made: &Made<'_>, set: &[Value], bits: u32) -> Vec<(Value, String, String)> {
    let mut all: BTreeMap<Value, (String, String)> = BTreeMap::new();
    let turned: Vec<Value> = set.iter().rev().copied().collect();
    let orders = if set.len() > 1 { vec![set.to_vec(), turned] } else { vec![set.to_vec()] };
    for sources in orders {
        for (v, form) in made.of(&sources) {
            let seen = made.seen(v, &form);
            if !is_modular(&seen) {
                continue;
            }
            let name = |n: usize| format!("rs{}", n + 1);
            let Some(meaning) = Congruence::of(&seen).filter(|c| c.sources() == sources.len()) else { continue };
            let Some(semantics) = Writer::new(bits).semantics(&seen) else { continue };
            let new = (semantics, format!("rd = {}", meaning.text(&name)));
            let old = all.entry(v).or_insert_with(|| new.clone());
            if (new.0.len(), &new) < (old.0.len(), &*old) {
                *old = new;
            }
        }
    }
    all.into_iter().map(|(v, (semantics, meaning))| (v, semantics, meaning)).collect()
}
