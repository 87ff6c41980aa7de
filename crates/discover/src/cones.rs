//! Convex subgraphs as candidates: found in the blocks that run often, written
//! out, and those that are the same but for constants made one.

use crate::candidate::{Candidate, Counts, Limits};
use crate::cost::cycles;
use crate::meaning;
use crate::search::{Users, outputs, subgraphs, users};
use crate::text::{self, Written, expressible};
use ciphermill_ir::bits::Masks;
use ciphermill_ir::{Func, FuncId, Value};
use ciphermill_machine::Machine;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Blocks that take less of the run than one part in so many are left out.
const HOT: u64 = 100;
/// Values that one immediate may have, and bits that all immediates may take.
const MOST_VALUES: usize = 64;
const MOST_BITS: u32 = 8;
/// A place where a subgraph stands.
struct Place {
    func: FuncId,
    nodes: BTreeSet<Value>,
    written: Written,
    runs: u64,
}

pub fn candidates(funcs: &[(FuncId, Func)], machine: &Machine, counts: &Counts, limits: Limits) -> Vec<Candidate> {
    let of = |id: FuncId, block| counts.get(&(id, block)).copied().unwrap_or(0);
    let work = |id: FuncId, f: &Func| f.layout.iter().map(|&b| of(id, b) * f.blocks[b].insts.len() as u64).sum::<u64>();
    let total: u64 = funcs.iter().map(|(id, f)| work(*id, f)).sum();
    let mut groups: BTreeMap<String, Vec<Place>> = BTreeMap::new();
    for (id, func) in funcs {
        let users: Users = users(func);
        for &block in &func.layout {
            let runs = of(*id, block);
            if runs * func.blocks[block].insts.len() as u64 * HOT < total || runs == 0 {
                continue;
            }
            let here: Vec<Value> =
                func.blocks[block].insts.iter().filter(|&&i| expressible(func, i)).map(|&i| func.result(i)).collect();
            for nodes in subgraphs(func, block, &users, &here, limits) {
                let Some(written) = text::write(func, &outputs(&users, &nodes), &nodes, machine.computes_narrow())
                else {
                    continue;
                };
                let place = Place { func: *id, nodes, written, runs };
                groups.entry(place.written.skeleton.clone()).or_default().push(place);
            }
        }
    }
    groups.into_values().flat_map(|places| merged(funcs, places)).collect()
}

/// Candidates of places that are the same but for their constants: one with
/// immediates for those that differ, if these are few; else one for each set of
/// constants. A constant that is the same as another at every place, or what another leaves of
/// the word's bits, as in the two halves of a rotate, is no immediate of its own.
fn merged(funcs: &[(FuncId, Func)], places: Vec<Place>) -> Vec<Candidate> {
    let slots = places[0].written.constants.len();
    let values = |n: usize| places.iter().map(|p| p.written.constants[n]).collect::<BTreeSet<u64>>();
    let bits = word_bits(funcs, &places[0]);
    let mut differing: Vec<(usize, BTreeSet<u64>)> = Vec::new();
    let mut derived: Vec<Derived> = Vec::new();
    for (slot, values) in (0..slots).map(|n| (n, values(n))).filter(|(_, values)| values.len() > 1) {
        let always = |of: usize, holds: &dyn Fn(u64, u64) -> bool| {
            places.iter().all(|p| holds(p.written.constants[slot], p.written.constants[of]))
        };
        let same = differing.iter().position(|d| always(d.0, &|a, b| a == b));
        let rest = || differing.iter().position(|d| always(d.0, &|a, b| a.checked_add(b) == Some(bits.into())));
        match (same, rest()) {
            (Some(of), _) => derived.push(Derived { slot, of, rest_of: None }),
            (None, Some(of)) => derived.push(Derived { slot, of, rest_of: Some(bits) }),
            (None, None) => differing.push((slot, values)),
        }
    }
    let bits: u32 = differing.iter().map(|(_, v)| v.len().next_power_of_two().ilog2()).sum();
    if bits <= MOST_BITS && differing.iter().all(|(_, v)| v.len() <= MOST_VALUES) {
        return candidate(funcs, &places.iter().collect::<Vec<_>>(), &differing, &derived).into_iter().collect();
    }
    let mut same: BTreeMap<&[u64], Vec<&Place>> = BTreeMap::new();
    for place in &places {
        same.entry(&place.written.constants).or_default().push(place);
    }
    same.into_values().filter_map(|places| candidate(funcs, &places, &[], &[])).collect()
}

/// A constant that another, the immediate of number `of`, says: it, or what it leaves of a word.
struct Derived {
    slot: usize,
    of: usize,
    rest_of: Option<u32>,
}

fn candidate(
    funcs: &[(FuncId, Func)],
    places: &[&Place],
    differing: &[(usize, BTreeSet<u64>)],
    derived: &[Derived],
) -> Option<Candidate> {
    // An operation is done once: places that share one do not both count.
    let mut taken: HashSet<(FuncId, Value)> = HashSet::new();
    let (mut count, mut saves) = (0, 0);
    for place in places {
        let free = place.nodes.iter().all(|&v| !taken.contains(&(place.func, v)));
        if free {
            taken.extend(place.nodes.iter().map(|&v| (place.func, v)));
            let func = &funcs.iter().find(|f| f.0 == place.func)?.1;
            count += 1;
            saves += place.runs * (cycles(func, &place.nodes) - 1) as u64;
        }
    }
    let first = places.first()?;
    let name = |i: usize| if i == 0 { "imm".to_owned() } else { format!("imm{}", i + 1) };
    let own = differing.iter().enumerate().map(|(i, (slot, _))| (*slot, name(i)));
    let of_others = derived.iter().map(|d| match d.rest_of {
        None => (d.slot, name(d.of)),
        Some(bits) => (d.slot, format!("({bits} - {})", name(d.of))),
    });
    let named: HashMap<usize, String> = own.chain(of_others).collect();
    let semantics = first.written.semantics(&named);
    let inputs = (1..=first.written.inputs.len()).map(|n| format!("rs{n}"));
    Some(Candidate {
        kind: "cone",
        registers: (0..first.written.outputs).map(text::output).chain(inputs).collect(),
        outputs: first.written.outputs,
        immediates: differing
            .iter()
            .enumerate()
            .map(|(i, (_, values))| (name(i), values.iter().map(|&v| signed(funcs, first, v)).collect()))
            .collect(),
        semantics,
        meaning: meaning(funcs, first).filter(|_| differing.is_empty()),
        constants: String::new(),
        operations: first.nodes.len(),
        places: count,
        saves,
    })
}

/// What a place computes modulo a number.
fn meaning(funcs: &[(FuncId, Func)], place: &Place) -> Option<String> {
    let func = &funcs.iter().find(|f| f.0 == place.func)?.1;
    let outputs = outputs(&users(func), &place.nodes);
    meaning::meaning(func, &Masks::new(func), &place.written.inputs, &place.nodes, &outputs)
}

/// A constant of the place's words, as a signed number.
fn signed(funcs: &[(FuncId, Func)], place: &Place, constant: u64) -> i64 {
    ciphermill_ir::ops::sext(constant, word_bits(funcs, place))
}

/// The bits that a place computes in.
fn word_bits(funcs: &[(FuncId, Func)], place: &Place) -> u32 {
    let func = funcs.iter().find(|f| f.0 == place.func).map(|f| &f.1);
    func.zip(place.nodes.first()).map_or(64, |(f, &v)| f.ty(v).bits())
}
