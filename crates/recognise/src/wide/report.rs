//! What was found in a program for a machine of 64-bit words, for people.

use super::super::finding::Finding;
use super::super::sums::Sums;
use super::sum::Sum;
use super::units::{Unit, units};
use super::values::Values;
use super::{LEAST_TABLES, bound, tables_of};
use ciphermill_ir::bits::Masks;
use ciphermill_ir::{Module, Value};
use ciphermill_machine::Machine;
use std::collections::{BTreeMap, BTreeSet};

/// The sums of tables in an optimised module that are no part of others.
pub fn findings(module: &Module, machine: &Machine) -> Vec<Finding> {
    let (mut units, _) = units(machine);
    units.retain(|u| u.added.is_none());
    let mut module = module.clone();
    ciphermill_opt::words::words(&mut module, machine.computes_narrow(), machine.word_bits);
    let mut all: BTreeMap<(String, String, Option<String>, Option<String>), usize> = BTreeMap::new();
    for func in module.funcs.values() {
        let masks = Masks::new(func);
        let (sums, values) = (Sums::new(func, &masks), Values::new(func, &masks, &module.data));
        let made = func.layout.iter().flat_map(|&b| &func.blocks[b].insts).flat_map(|&i| &func.insts[i].results);
        let found: Vec<(Value, Sum<Value>)> = made
            .filter_map(|&v| Some((v, tables_of(&sums, &values, v)?.0)))
            .filter(|f| f.1.parts.len() >= LEAST_TABLES)
            .collect();
        // The values that a sum is made of, and what is the same sum with more added.
        let inner: BTreeSet<Value> = found
            .iter()
            .flat_map(|(v, _)| func.def_inst(*v))
            .flat_map(|i| func.insts[i].args.iter().map(|&a| func.resolve(a)))
            .collect();
        for (_, sum) in found.into_iter().filter(|(v, _)| !inner.contains(v)) {
            let exact = units.iter().find(|u| bound(u, &sum).is_some()).map(|u| u.name.clone());
            let missed = exact.is_none().then(|| nearest(&units, &sum));
            *all.entry((func.name.clone(), described(&sum), exact, missed)).or_default() += 1;
        }
    }
    let finding = |((function, what, instruction, missed), places)| Finding {
        function,
        kind: "table",
        what,
        places,
        instruction,
        missed,
    };
    all.into_iter().map(finding).collect()
}

fn described(sum: &Sum<Value>) -> String {
    let sources: BTreeSet<Value> = sum.parts.iter().map(|p| p.source).collect();
    let words = if sources.len() == 1 { "word" } else { "words" };
    format!("a sum of {} tables of bytes of {} {words}", sum.parts.len(), sources.len())
}

/// The instruction that has most of a sum's tables, and why it is not it.
fn nearest(units: &[Unit], sum: &Sum<Value>) -> String {
    let same = |u: &Unit| {
        let has = |p: &super::sum::Part<Value>| u.sum.parts.iter().any(|q| q.byte == p.byte && q.table == p.table);
        sum.parts.iter().filter(|p| has(p)).count()
    };
    match units.iter().map(|u| (same(u), u)).max_by_key(|n| n.0) {
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
