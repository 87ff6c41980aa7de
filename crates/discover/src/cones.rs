//! Convex subgraphs with one output.
//!
//! From each operation of a hot block upwards, in reverse topological order: an
//! operation that the subgraph uses is either taken in or becomes an input, and
//! an input stays one. It can be taken in only if nothing outside uses it, so
//! every subgraph is convex and has one output. A choice that leads to too many
//! inputs is not followed. (K. Atasu, L. Pozzi, P. Ienne: Automatic
//! Application-Specific Instruction-Set Extensions under Microarchitectural
//! Constraints, DAC 2003, for one output.)

use crate::text::{self, Written, expressible};
use crate::{Candidate, Counts, Limits};
use ciphermill_ir::{BinOp, Func, FuncId, Op, Value, ValueDef};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Subgraphs of one output, at most.
const MOST_CONES: usize = 400;
/// Operations of a subgraph, at most.
const MOST_NODES: usize = 64;
/// Choices for one output, at most.
const MOST_STEPS: usize = 20_000;
/// Blocks that take less of the run than one part in so many are left out.
const HOT: u64 = 100;
/// Values that one immediate may have.
const MOST_VALUES: usize = 16;
/// Cycles of a multiplication, of which an instruction of one cycle saves all
/// but one: an estimate for ranking.
const PRODUCT: usize = 3;

/// A place where a subgraph stands.
struct Place {
    at: (FuncId, Value),
    nodes: BTreeSet<Value>,
    written: Written,
    runs: u64,
}

pub fn candidates(funcs: &[(FuncId, Func)], counts: &Counts, limits: Limits) -> Vec<Candidate> {
    let of = |id: FuncId, block| counts.get(&(id, block)).copied().unwrap_or(0);
    let work = |id: FuncId, f: &Func| f.layout.iter().map(|&b| of(id, b) * f.blocks[b].insts.len() as u64).sum::<u64>();
    let total: u64 = funcs.iter().map(|(id, f)| work(*id, f)).sum();
    let mut groups: BTreeMap<String, Vec<Place>> = BTreeMap::new();
    for (id, func) in funcs {
        let users = users(func);
        for &block in &func.layout {
            let runs = of(*id, block);
            if runs * func.blocks[block].insts.len() as u64 * HOT < total || runs == 0 {
                continue;
            }
            let here: HashSet<Value> =
                func.blocks[block].insts.iter().filter(|&&i| expressible(func, i)).map(|&i| func.result(i)).collect();
            for &inst in func.blocks[block].insts.iter().filter(|&&i| expressible(func, i)) {
                let root = func.result(inst);
                for nodes in cones(func, &users, &here, root, limits.inputs) {
                    let Some(written) = text::write(func, root, &nodes) else { continue };
                    let place = Place { at: (*id, root), nodes, written, runs };
                    groups.entry(place.written.skeleton.clone()).or_default().push(place);
                }
            }
        }
    }
    groups.into_values().flat_map(|places| merged(funcs, places)).collect()
}

/// Who uses each value: results of instructions, or None for a terminator.
fn users(func: &Func) -> HashMap<Value, Vec<Option<Value>>> {
    let mut users: HashMap<Value, Vec<Option<Value>>> = HashMap::new();
    for &block in &func.layout {
        for &inst in &func.blocks[block].insts {
            let data = &func.insts[inst];
            for &arg in &data.args {
                users.entry(func.resolve(arg)).or_default().push(data.results.first().copied());
            }
        }
        func.blocks[block].term.for_each_value(|v| users.entry(func.resolve(v)).or_default().push(None));
    }
    users
}

/// All subgraphs of at least two operations with output `root`.
fn cones(
    func: &Func,
    users: &HashMap<Value, Vec<Option<Value>>>,
    here: &HashSet<Value>,
    root: Value,
    inputs: usize,
) -> Vec<BTreeSet<Value>> {
    let mut search = Search { func, users, here, most: inputs, found: Vec::new(), steps: 0 };
    search.take(BTreeSet::from([root]), BTreeSet::new());
    search.found.retain(|nodes| nodes.len() > 1);
    search.found
}

struct Search<'a> {
    func: &'a Func,
    users: &'a HashMap<Value, Vec<Option<Value>>>,
    here: &'a HashSet<Value>,
    most: usize,
    found: Vec<BTreeSet<Value>>,
    steps: usize,
}

impl Search<'_> {
    /// Go on from a subgraph; `fixed` are values that stay inputs.
    fn take(&mut self, nodes: BTreeSet<Value>, fixed: BTreeSet<Value>) {
        self.steps += 1;
        if self.steps > MOST_STEPS || self.found.len() >= MOST_CONES {
            return;
        }
        let args = |v: &Value| {
            let inst = self.func.def_inst(*v).map(|i| self.func.insts[i].args.clone()).unwrap_or_default();
            inst.into_iter()
                .map(|a| self.func.resolve(a))
                .filter(|a| self.func.as_const(*a).is_none())
                .collect::<Vec<_>>()
        };
        let outside: BTreeSet<Value> = nodes.iter().flat_map(args).filter(|a| !nodes.contains(a)).collect();
        let inside = |v: &Value| {
            self.here.contains(v)
                && self.users.get(v).is_some_and(|u| u.iter().all(|u| u.is_some_and(|u| nodes.contains(&u))))
        };
        let mut fixed = fixed;
        fixed.extend(outside.iter().filter(|v| !inside(v) && never(self, v)));
        if fixed.len() > self.most {
            return;
        }
        if outside.len() <= self.most && !outside.is_empty() {
            self.found.push(nodes.clone());
        }
        // The last in the order of definition: all its users are decided.
        let next = outside.iter().filter(|v| !fixed.contains(v) && inside(v)).max().copied();
        let Some(next) = next else { return };
        if nodes.len() < MOST_NODES {
            let mut more = nodes.clone();
            more.insert(next);
            self.take(more, fixed.clone());
        }
        fixed.insert(next);
        self.take(nodes, fixed);
    }
}

/// Can a value never be taken in, whatever else is?
fn never(search: &Search<'_>, v: &Value) -> bool {
    !search.here.contains(v)
        || matches!(search.func.values[*v].def, ValueDef::Param(..))
        || search.users.get(v).is_some_and(|u| u.iter().any(|u| u.is_none_or(|u| !search.here.contains(&u))))
}

/// Candidates of places that are the same but for their constants: one if all
/// are the same but for one constant, else one for each set of constants.
fn merged(funcs: &[(FuncId, Func)], places: Vec<Place>) -> Vec<Candidate> {
    let slots = places[0].written.constants.len();
    let differing: Vec<usize> = (0..slots)
        .filter(|&n| places.iter().any(|p| p.written.constants[n] != places[0].written.constants[n]))
        .collect();
    let mut values: BTreeSet<u32> = BTreeSet::new();
    if let [slot] = differing[..] {
        values = places.iter().map(|p| p.written.constants[slot]).collect();
    }
    if differing.is_empty() || (differing.len() == 1 && values.len() <= MOST_VALUES) {
        return candidate(funcs, &places.iter().collect::<Vec<_>>(), differing.first().copied(), values)
            .into_iter()
            .collect();
    }
    let mut same: BTreeMap<&[u32], Vec<&Place>> = BTreeMap::new();
    for place in &places {
        same.entry(&place.written.constants).or_default().push(place);
    }
    same.into_values().filter_map(|places| candidate(funcs, &places, None, BTreeSet::new())).collect()
}

fn candidate(
    funcs: &[(FuncId, Func)],
    places: &[&Place],
    slot: Option<usize>,
    values: BTreeSet<u32>,
) -> Option<Candidate> {
    // An operation is done once: places that share one do not both count.
    let mut taken: HashSet<(FuncId, Value)> = HashSet::new();
    let (mut count, mut saves) = (0, 0);
    for place in places {
        let free = place.nodes.iter().all(|&v| !taken.contains(&(place.at.0, v)));
        if free {
            taken.extend(place.nodes.iter().map(|&v| (place.at.0, v)));
            let func = &funcs.iter().find(|f| f.0 == place.at.0)?.1;
            count += 1;
            saves += place.runs * (cycles(func, &place.nodes) - 1) as u64;
        }
    }
    let first = places.first()?;
    let named = slot.map(|n| (n, "imm".to_owned())).into_iter().collect();
    let semantics = first.written.semantics(&named);
    let inputs = (1..=9).filter(|n| semantics.contains(&format!("rs{n}"))).map(|n| format!("rs{n}"));
    Some(Candidate {
        kind: "cone",
        registers: std::iter::once("rd".to_owned()).chain(inputs).collect(),
        immediate: slot.map(|_| ("imm".to_owned(), values.iter().map(|&v| i64::from(v as i32)).collect())),
        semantics,
        constants: String::new(),
        operations: first.nodes.len(),
        places: count,
        saves,
    })
}

fn cycles(func: &Func, nodes: &BTreeSet<Value>) -> usize {
    let of = |v: &Value| match func.def_op(*v) {
        Some(Op::Bin(BinOp::Mul)) => PRODUCT,
        _ => 1,
    };
    nodes.iter().map(of).sum()
}
