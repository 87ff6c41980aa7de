//! The search for subgraphs: which operations of a block one instruction could do.
//!
//! A search starts with one operation, or with several of which none needs
//! another, and goes upwards in reverse topological order: an operation that the
//! subgraph uses is either taken in or becomes an input, and an input stays one.
//! When an operation is looked at, all its users are decided. So its taking in
//! settles whether it is an output (something outside uses it) and whether the
//! subgraph stays convex (a user that is outside must not lead back inside), and
//! a choice with too many outputs or inputs for good is not followed. (K. Atasu,
//! L. Pozzi, P. Ienne: Automatic Application-Specific Instruction-Set Extensions
//! under Microarchitectural Constraints, DAC 2003.)
//!
//! Subgraphs of several outputs are those whose outputs have an operand near above
//! them in common: others save nothing that two instructions would not.

use crate::candidate::Limits;
use ciphermill_ir::{Block, Func, Value};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Subgraphs from one start, at most.
const MOST_FOUND: usize = 400;
/// Operations of a subgraph, at most.
const MOST_NODES: usize = 64;
/// Choices from one start, at most; from a start of several operations.
const MOST_STEPS: usize = 20_000;
const MOST_JOINT_STEPS: usize = 400;
/// Starts of several operations in a block, at most.
const MOST_STARTS: usize = 3000;
/// Operations up to a common operand, at most.
const NEAR: usize = 3;

/// Subgraphs of at least two operations of a block, with their outputs.
pub fn subgraphs(func: &Func, block: Block, users: &Users, here: &[Value], limits: Limits) -> Vec<BTreeSet<Value>> {
    let graph = Graph::new(func, block, users, here);
    let mut found: BTreeSet<BTreeSet<Value>> = BTreeSet::new();
    for &root in here {
        found.extend(graph.from(BTreeSet::from([root]), limits, MOST_STEPS));
    }
    for start in graph.starts(here, limits.outputs) {
        found.extend(graph.from(start, limits, MOST_JOINT_STEPS));
    }
    found.into_iter().filter(|nodes| nodes.len() > 1).collect()
}

/// Who uses each value: results of instructions, or None for a terminator.
pub type Users = HashMap<Value, Vec<Option<Value>>>;

pub fn users(func: &Func) -> Users {
    let mut users = Users::new();
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

/// Those of `nodes` that something outside uses, in the order of definition.
pub fn outputs(users: &Users, nodes: &BTreeSet<Value>) -> Vec<Value> {
    let outside = |v: &Value| users.get(v).is_none_or(|u| u.iter().any(|u| u.is_none_or(|u| !nodes.contains(&u))));
    nodes.iter().copied().filter(outside).collect()
}

struct Graph<'a> {
    func: &'a Func,
    users: &'a Users,
    /// Operations that an instruction can do, with the number of each.
    here: HashMap<Value, usize>,
    /// For each value of the block, the operations that need it, themselves too:
    /// a set of numbers.
    below: HashMap<Value, Vec<u64>>,
}

impl<'a> Graph<'a> {
    fn new(func: &'a Func, block: Block, users: &'a Users, here: &[Value]) -> Graph<'a> {
        let here: HashMap<Value, usize> = here.iter().enumerate().map(|(n, &v)| (v, n)).collect();
        let words = here.len().div_ceil(64);
        let mut below: HashMap<Value, Vec<u64>> = HashMap::new();
        for &inst in func.blocks[block].insts.iter().rev() {
            for &v in &func.insts[inst].results {
                let mut set = vec![0u64; words];
                if let Some(n) = here.get(&v) {
                    set[n / 64] |= 1 << (n % 64);
                }
                for user in users.get(&v).into_iter().flatten().flatten() {
                    if let Some(other) = below.get(user) {
                        set.iter_mut().zip(other).for_each(|(a, b)| *a |= b);
                    }
                }
                below.insert(v, set);
            }
        }
        Graph { func, users, here, below }
    }

    /// Does `v`, or what needs it, belong to `nodes`?
    fn leads_to(&self, v: Value, nodes: &BTreeSet<Value>) -> bool {
        self.below
            .get(&v)
            .is_some_and(|set| nodes.iter().any(|n| self.here.get(n).is_some_and(|n| set[n / 64] & 1 << (n % 64) != 0)))
    }

    fn args(&self, v: Value) -> impl Iterator<Item = Value> + '_ {
        let args = self.func.def_inst(v).map(|i| self.func.insts[i].args.as_slice()).unwrap_or_default();
        args.iter().map(|&a| self.func.resolve(a)).filter(|&a| self.func.as_const(a).is_none())
    }

    /// Sets of two operations or more, up to `most`, of which none needs another
    /// and each shares an operand near above it with one before.
    fn starts(&self, here: &[Value], most: usize) -> Vec<BTreeSet<Value>> {
        let mut near: HashMap<Value, Vec<Value>> = HashMap::new();
        for &v in here {
            let mut level = BTreeSet::from([v]);
            let mut all = BTreeSet::new();
            for _ in 0..NEAR {
                level = level.iter().flat_map(|&v| self.args(v)).collect();
                all.extend(level.iter().copied());
            }
            all.into_iter().for_each(|a| near.entry(a).or_default().push(v));
        }
        let mut pairs: BTreeSet<(Value, Value)> = BTreeSet::new();
        for list in near.values() {
            for (i, &a) in list.iter().enumerate() {
                pairs.extend(list[i + 1..].iter().map(|&b| (a, b)).filter(|&(a, b)| self.independent(a, b)));
            }
        }
        let mut all: Vec<BTreeSet<Value>> = Vec::new();
        let mut last: Vec<BTreeSet<Value>> = Vec::new();
        if most > 1 {
            last = pairs.iter().map(|&(a, b)| BTreeSet::from([a, b])).take(MOST_STARTS).collect();
        }
        for size in 2..=most {
            all.extend(last.iter().cloned());
            if size == most || all.len() >= MOST_STARTS {
                break;
            }
            let wider = last.iter().flat_map(|set| {
                let next = pairs.iter().filter(|p| set.contains(&p.0) && set.iter().all(|&v| v < p.1));
                let next = next.filter(|p| set.iter().all(|&v| self.independent(v, p.1)));
                next.map(|p| set.iter().copied().chain([p.1]).collect())
            });
            let wider: BTreeSet<BTreeSet<Value>> = wider.take(MOST_STARTS).collect();
            last = wider.into_iter().collect();
        }
        all.truncate(MOST_STARTS);
        all
    }

    /// Does neither of two operations need the other?
    fn independent(&self, a: Value, b: Value) -> bool {
        a != b && !self.leads_to(a, &BTreeSet::from([b])) && !self.leads_to(b, &BTreeSet::from([a]))
    }

    fn from(&self, start: BTreeSet<Value>, limits: Limits, most: usize) -> Vec<BTreeSet<Value>> {
        let mut search = Search { graph: self, limits, most, found: Vec::new(), steps: 0 };
        search.take(start, HashSet::new());
        search.found
    }
}

struct Search<'a> {
    graph: &'a Graph<'a>,
    limits: Limits,
    most: usize,
    found: Vec<BTreeSet<Value>>,
    steps: usize,
}

impl Search<'_> {
    /// Go on from a subgraph; `fixed` are values that stay inputs.
    fn take(&mut self, nodes: BTreeSet<Value>, mut fixed: HashSet<Value>) {
        self.steps += 1;
        if self.steps > self.most || self.found.len() >= MOST_FOUND {
            return;
        }
        let graph = self.graph;
        let outside: BTreeSet<Value> =
            nodes.iter().flat_map(|&v| graph.args(v)).filter(|a| !nodes.contains(a)).collect();
        fixed.extend(outside.iter().filter(|v| !graph.here.contains_key(v)));
        if fixed.len() > self.limits.inputs {
            return;
        }
        if outside.len() <= self.limits.inputs && !outside.is_empty() {
            self.found.push(nodes.clone());
        }
        // The last in the order of definition: all its users are decided.
        let Some(next) = outside.iter().filter(|v| !fixed.contains(v)).max().copied() else { return };
        if nodes.len() < MOST_NODES {
            let mut more = nodes.clone();
            more.insert(next);
            let convex = graph
                .users
                .get(&next)
                .is_none_or(|users| users.iter().flatten().all(|&u| nodes.contains(&u) || !graph.leads_to(u, &nodes)));
            if convex && outputs(graph.users, &more).len() <= self.limits.outputs {
                self.take(more, fixed.clone());
            }
        }
        fixed.insert(next);
        self.take(nodes, fixed);
    }
}
