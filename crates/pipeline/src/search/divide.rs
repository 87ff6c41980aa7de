//! A division of a loop's nodes between the clusters.
//!
//! Every node gets a cluster such that, at an interval that is wanted, the units of each cluster and
//! the paths between them have cycles enough, few values cross, none of them on a recurrence circuit
//! where that can be, and few values from outside are wanted on several clusters. All this is one
//! price, kept while single nodes change clusters, by threshold (graph partitioning for clustered
//! machines: Aleta, Codina, Sanchez, Gonzalez, *Graph-partitioning based instruction scheduling for
//! clustered processors*, MICRO 2001).

use super::moves::{Dice, temperature_at};
use super::params::Params;
use crate::body::{Body, From};
use crate::graph::{capacity, unions};
use crate::partition;
use crate::place::{At, Sides};
use ciphermill_machine::{InstrId, OperandKind};
use ciphermill_vcode::{VOp, VReg};
use std::collections::{BTreeMap, BTreeSet};

/// What an instruction needs of its cluster and of the paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Need {
    /// The class of its units, and the paths that it cannot do without, a bit each.
    class: usize,
    paths: u64,
    /// Operands that need a copy, a bit each.
    copies: u8,
}

/// What a division costs, kept as nodes change clusters.
pub struct Divider<'a> {
    body: &'a Body,
    sides: &'a Sides<'a>,
    params: &'a Params,
    ii: i64,
    pub at: Vec<usize>,
    /// Where a node can only be.
    fixed: Vec<Option<usize>>,
    /// Readers of each node, each once.
    readers: Vec<Vec<usize>>,
    /// Nodes on a common recurrence circuit have one number.
    circuit: Vec<usize>,
    /// Unions of the units that classes have, with the cycles of each; and of each class the
    /// unions that it is in.
    unions: Vec<(u64, i64)>,
    classes: Vec<u64>,
    member: Vec<Vec<usize>>,
    needs: BTreeMap<(InstrId, usize, u32), Need>,
    own: Vec<Need>,
    /// The copy of a value to a cluster: how many read it.
    copied: Vec<Vec<u16>>,
    copy: Vec<Need>,
    on: Vec<i64>,
    path: [i64; 64],
    /// Readers on each cluster of each value from outside.
    outside: Vec<Vec<u16>>,
    number: BTreeMap<VReg, usize>,
    price: i64,
    /// What a register costs that a value from outside takes.
    register: i64,
}

impl<'a> Divider<'a> {
    pub fn new(
        body: &'a Body,
        sides: &'a Sides<'a>,
        params: &'a Params,
        ii: i64,
        register: i64,
        at: &[At],
    ) -> Divider<'a> {
        let n = body.nodes.len();
        let count = sides.files.len();
        let mut readers = vec![Vec::new(); n];
        let mut number = BTreeMap::new();
        for (i, node) in body.nodes.iter().enumerate() {
            for &(_, from) in &node.reads {
                match from {
                    From::Node(p, _) if readers[p].last() != Some(&i) => readers[p].push(i),
                    From::Outside(v) => {
                        let next = number.len();
                        number.entry(v).or_insert(next);
                    }
                    From::Node(..) => {}
                }
            }
        }
        let fixed: Vec<Option<usize>> = body.nodes.iter().map(|node| sides.certain(&node.inst)).collect();
        let at: Vec<usize> = (0..n).map(|i| fixed[i].unwrap_or(at[i].unit)).collect();
        let mut divider = Divider {
            body,
            sides,
            params,
            ii,
            at,
            fixed,
            readers,
            circuit: strong(body),
            unions: Vec::new(),
            classes: Vec::new(),
            member: Vec::new(),
            needs: BTreeMap::new(),
            own: vec![Need::default(); n],
            copied: vec![vec![0; count]; n],
            copy: Vec::new(),
            on: Vec::new(),
            path: [0; 64],
            outside: vec![vec![0; count]; number.len()],
            number,
            price: 0,
            register,
        };
        divider.know();
        divider.count_all();
        divider
    }

    /// All classes that there can be, before anything is counted.
    fn know(&mut self) {
        let count = self.sides.files.len();

        let mut seen = BTreeSet::new();
        for i in 0..self.body.nodes.len() {
            let operands = self.body.nodes[i].reads.iter().filter(|r| matches!(r.1, From::Node(..))).map(|r| r.0);
            let operands: Vec<usize> = operands.collect();
            let key: (InstrId, Vec<usize>) = (self.body.nodes[i].inst.instr, operands.clone());
            if !seen.insert(key) {
                continue;
            }
            for cluster in 0..count {
                // Each operand on each cluster, the last combination being all on the last.
                for k in 0..count.pow(operands.len() as u32).min(64) {
                    let mut rest = k;
                    let mut sides = 0;
                    for &o in &operands {
                        sides |= (1 + (rest % count) as u32) << (4 * o.min(7));
                        rest /= count;
                    }
                    self.need(i, cluster, sides);
                }
            }
        }
        let mov = self.sides.machine.abi.ops.mov;
        for to in 0..count {
            let variants =
                self.sides.machine.variants[usize::from(mov.0)].iter().filter(|v| self.sides.of_variant(**v) == to);
            let across: Vec<InstrId> =
                variants.copied().filter(|v| !self.sides.machine.instrs[usize::from(v.0)].paths.is_empty()).collect();
            let need = self.need_of(&across);
            self.copy.push(need);
        }
        let sets = unions(self.classes.clone());
        self.unions = sets.iter().map(|&set| (set, capacity(self.sides, set) as i64 * self.ii)).collect();
        self.member = self.classes.iter().map(|c| (0..sets.len()).filter(|&u| c & !sets[u] == 0).collect()).collect();
        self.on = vec![0; sets.len()];
    }

    fn need_of(&mut self, variants: &[InstrId]) -> Need {
        let units = variants.iter().fold(0, |m, v| m | self.sides.units[usize::from(v.0)]);
        let class = self.classes.iter().position(|c| *c == units).unwrap_or_else(|| {
            self.classes.push(units);
            self.classes.len() - 1
        });
        let bits = |v: &InstrId| {
            let paths = self.sides.machine.instrs[usize::from(v.0)].paths.iter();
            paths.fold(0u64, |m, p| m | crate::place::bit(p.0))
        };
        let paths = variants.iter().map(bits).fold(u64::MAX, |m, b| m & b);
        Need { class, paths: if variants.is_empty() { 0 } else { paths }, copies: 0 }
    }

    /// What a node needs on a cluster, its operands' clusters being `sides` (one more than the
    /// number, four bits an operand).
    fn need(&mut self, i: usize, cluster: usize, sides: u32) -> Need {
        let inst = &self.body.nodes[i].inst;
        let key = (inst.instr, cluster, sides);
        if let Some(&need) = self.needs.get(&key) {
            return need;
        }
        let side_of = |o: usize| (sides >> (4 * o.min(7)) & 15).checked_sub(1).map(|s| s as usize);
        let machine = self.sides.machine;
        let def = self.body.nodes[i].writes.map(|w| w.0);
        let wrong = |v: InstrId| -> Option<u8> {
            let instr = &machine.instrs[usize::from(v.0)];
            let mut wrong = 0u8;
            for (o, op) in inst.ops.iter().enumerate() {
                let OperandKind::Reg { file, .. } = instr.operands[o].kind else { continue };
                if !matches!(op, VOp::Use(_) | VOp::Def(_) | VOp::Tied { .. }) {
                    continue;
                }
                let to = self.sides.of_file(file)?;
                if def == Some(o) && to != cluster {
                    return None;
                }
                if side_of(o).is_some_and(|s| s != to) {
                    wrong |= 1 << o.min(7);
                }
                // A value from outside is where the unit is.
                if side_of(o).is_none() && def != Some(o) && to != cluster {
                    return None;
                }
            }
            Some(wrong)
        };
        let all = machine.variants[usize::from(inst.instr.0)].iter().copied();
        let here: Vec<(InstrId, u8)> =
            all.filter(|v| self.sides.of_variant(*v) == cluster).filter_map(|v| Some((v, wrong(v)?))).collect();
        let least = here.iter().map(|h| h.1.count_ones()).min().unwrap_or(0);
        let best: Vec<(InstrId, u8)> = here.into_iter().filter(|h| h.1.count_ones() == least).collect();
        let copies = best.first().map_or(0, |b| b.1);
        let variants: Vec<InstrId> = best.iter().filter(|b| b.1 == copies).map(|b| b.0).collect();
        let need = Need { copies, ..self.need_of(&variants) };
        self.needs.insert(key, need);
        need
    }

    fn sides(&self, i: usize) -> u32 {
        self.body.nodes[i].reads.iter().fold(0, |m, &(o, from)| match from {
            From::Node(p, _) => m | (1 + self.at[p] as u32) << (4 * o.min(7)),
            From::Outside(_) => m,
        })
    }

    fn count_all(&mut self) {
        for i in 0..self.at.len() {
            self.outside_of(i, true);
            self.come(i);
        }
    }

    fn load(&mut self, need: Need, by: i64) {
        let Params { divide, .. } = self.params;
        for &u in &self.member[need.class] {
            let over = |n: i64| (n - self.unions[u].1).max(0);
            self.price += divide.units * (over(self.on[u] + by) - over(self.on[u]));
            self.on[u] += by;
        }
        let mut paths = need.paths;
        while paths != 0 {
            let p = paths.trailing_zeros() as usize;
            let most = i64::from(self.sides.machine.units[p].count) * self.ii;
            let over = |n: i64| (n - most).max(0);
            self.price += divide.units * (over(self.path[p] + by) - over(self.path[p])) + divide.crossing * by;
            self.path[p] += by;
            paths &= paths - 1;
        }
    }

    /// What a node needs is counted, or no longer.
    fn come(&mut self, i: usize) {
        let cluster = self.at[i];
        let need = self.need(i, cluster, self.sides(i));
        self.own[i] = need;
        self.change(i, need, 1);
    }

    fn go(&mut self, i: usize) {
        self.change(i, self.own[i], -1);
    }

    fn change(&mut self, i: usize, need: Need, by: i64) {
        self.load(need, by);
        let cluster = self.at[i];
        let body = self.body;
        for &(o, from) in &body.nodes[i].reads {
            let From::Node(p, _) = from else { continue };
            if need.copies >> o.min(7) & 1 == 1 {
                // Its copy goes to the cluster where it is read.
                let to = if self.at[p] == cluster { (cluster + 1) % self.sides.files.len() } else { cluster };
                let before = self.copied[p][to];
                self.copied[p][to] = (i64::from(before) + by) as u16;
                if before == 0 && by > 0 || before == 1 && by < 0 {
                    self.load(self.copy[to], by);
                    self.price += by * self.params.divide.copy;
                }
            }
            if self.at[p] != cluster && self.circuit[p] == self.circuit[i] && p != i {
                self.price += by * self.params.divide.circuit;
            }
        }
    }

    fn outside_of(&mut self, i: usize, comes: bool) {
        let body = self.body;
        for &(_, from) in &body.nodes[i].reads {
            let From::Outside(v) = from else { continue };
            let all = &mut self.outside[self.number[&v]];
            let cluster = self.at[i];
            if comes {
                all[cluster] += 1;
                self.price += if all[cluster] == 1 { self.register } else { 0 };
            } else {
                all[cluster] -= 1;
                self.price -= if all[cluster] == 0 { self.register } else { 0 };
            }
        }
    }

    /// Some nodes go to a cluster; what they were on.
    fn send(&mut self, nodes: &[usize], to: &[usize]) {
        let mut concerned: Vec<usize> = nodes.to_vec();
        nodes.iter().for_each(|&i| concerned.extend(&self.readers[i]));
        concerned.sort_unstable();
        concerned.dedup();
        for &i in &concerned {
            self.go(i);
            self.outside_of(i, false);
        }
        nodes.iter().zip(to).for_each(|(&i, &to)| self.at[i] = to);
        for &i in &concerned {
            self.outside_of(i, true);
            self.come(i);
        }
    }

    /// Change clusters of single nodes, or of a node and what it alone reads or what reads it,
    /// for so many sweeps.
    pub fn improve(&mut self, seed: u64) -> u64 {
        let n = self.at.len();
        let count = self.sides.files.len();
        let steps = self.params.divide.sweeps * n as u64;
        let mut dice = Dice(seed);
        let mut best = (self.price, self.at.clone());
        for k in 0..steps {
            let i = dice.below(n);
            let mut group = vec![i];
            match dice.below(4) {
                0 => group.extend(self.readers[i].iter().copied().filter(|&r| r != i && self.at[r] == self.at[i])),
                1 => group.extend(self.body.nodes[i].reads.iter().filter_map(|r| match r.1 {
                    From::Node(p, 0) if p != i && self.at[p] == self.at[i] => Some(p),
                    _ => None,
                })),
                _ => {}
            }
            group.sort_unstable();
            group.dedup();
            if group.iter().any(|&g| self.fixed[g].is_some()) {
                continue;
            }
            let were: Vec<usize> = group.iter().map(|&g| self.at[g]).collect();
            let to = (self.at[i] + 1 + dice.below(count - 1)) % count;
            let now = temperature_at(self.params.divide.temperature, k, steps);
            let chance = dice.roll();
            let drawn = i64::from(chance.trailing_zeros()) * 256 + (chance >> 56) as i64;
            let before = self.price;
            self.send(&group, &vec![to; group.len()]);
            if self.price > before + drawn * now / (256 * 256) {
                self.send(&group, &were);
            } else if self.price < best.0 {
                best = (self.price, self.at.clone());
            }
        }
        let all: Vec<usize> = (0..n).collect();
        self.send(&all, &best.1);
        steps
    }

    pub fn division(&self) -> Vec<At> {
        self.at.iter().map(|&c| At { unit: c, result: c }).collect()
    }
}

/// Divisions of a body that follow from its parts and its tables alone.
pub fn plain(body: &Body, sides: &Sides<'_>) -> Vec<Vec<At>> {
    let tables = partition::by_table(body, sides).unwrap_or_default();
    let mut all = vec![partition::apart(body, sides), partition::spread(body, sides, &[])];
    all.push(partition::spread(body, sides, &tables));
    distinct(all)
}

/// Those that changes of single nodes make of these, for an interval; and steps that they took.
pub fn improved(
    body: &Body,
    sides: &Sides<'_>,
    params: &Params,
    (ii, seed): (i64, u64),
    starts: &[Vec<At>],
) -> (Vec<Vec<At>>, u64) {
    let (mut steps, mut all) = (0, Vec::new());
    for (k, start) in starts.iter().enumerate() {
        for register in params.divide.outside {
            let mut divider = Divider::new(body, sides, params, ii, register, start);
            steps += divider.improve(seed + k as u64);
            all.push(divider.division());
        }
    }
    (distinct(all), steps)
}

/// A division in which some nodes stay where they are.
pub fn around(
    body: &Body,
    sides: &Sides<'_>,
    params: &Params,
    (ii, seed): (i64, u64),
    at: &[At],
    stay: &[bool],
) -> Vec<At> {
    let [register, ..] = params.divide.outside;
    let mut divider = Divider::new(body, sides, params, ii, register, at);
    let own = stay.iter().enumerate().filter(|s| *s.1).map(|(i, _)| i);
    own.for_each(|i| divider.fixed[i] = Some(divider.at[i]));
    divider.improve(seed);
    let division = divider.division();
    (0..at.len()).map(|i| if stay[i] { at[i] } else { division[i] }).collect()
}

/// Each division once.
fn distinct(mut all: Vec<Vec<At>>) -> Vec<Vec<At>> {
    let mut seen = BTreeSet::new();
    all.retain(|at| seen.insert(at.iter().map(|a| (a.unit, a.result)).collect::<Vec<_>>()));
    all
}

/// The strongly connected component of each node, by its least node (Kosaraju's two passes).
fn strong(body: &Body) -> Vec<usize> {
    let n = body.nodes.len();
    let (mut succs, mut preds) = (vec![Vec::new(); n], vec![Vec::new(); n]);
    for (i, node) in body.nodes.iter().enumerate() {
        for r in &node.reads {
            if let From::Node(p, _) = r.1 {
                succs[p].push(i);
                preds[i].push(p);
            }
        }
    }
    let mut order = Vec::with_capacity(n);
    let mut seen = vec![false; n];
    for start in 0..n {
        let mut stack = vec![(start, 0)];
        if std::mem::replace(&mut seen[start], true) {
            continue;
        }
        while let Some((i, k)) = stack.pop() {
            if let Some(&next) = succs[i].get(k) {
                stack.push((i, k + 1));
                if !std::mem::replace(&mut seen[next], true) {
                    stack.push((next, 0));
                }
            } else {
                order.push(i);
            }
        }
    }
    let mut group = vec![usize::MAX; n];
    for &start in order.iter().rev() {
        let mut stack = vec![start];
        while let Some(i) = stack.pop() {
            if group[i] == usize::MAX {
                group[i] = start;
                stack.extend(preds[i].iter().filter(|&&p| group[p] == usize::MAX));
            }
        }
    }
    group
}
