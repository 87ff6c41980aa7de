//! The resource bound: how many cycles the executed instructions need at the
//! least, were there no dependences, no branches and no misses.
//!
//! Two kinds of limits hold on any machine. *Issue*: `width` instructions a
//! cycle, and an instruction that holds the pipeline for several cycles holds
//! a slot in each of them; what issues beside it may hold the others. *Units*: for any set of unit classes, the instructions that can
//! run nowhere else share the units of that set; the sets that matter are
//! those that some instruction names. The bound is the largest of them, and
//! no schedule, however clever, is shorter (Hall's condition). Instructions
//! that do nothing (fill a delay slot) are not counted: a better schedule would
//! not have them.
//!
//! Beside the bound stands what it was chosen from: each class of units with
//! its work ([`Class`]), and each single unit and path with the work that this
//! program gave it ([`Share`]), where the program says which unit it is.

use ciphermill_machine::{Instr, Machine, UnitId};
use serde::Serialize;
use std::collections::BTreeSet;

/// The bound and what gives it.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    pub cycles: f64,
    pub limit: Limit,
}

/// Units that some instruction chooses from, and what can only run there.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Class {
    pub units: Vec<String>,
    /// Cycles of units.
    pub work: f64,
    /// The work divided among the units: a bound of its own.
    pub cycles: f64,
}

/// What a program gave one unit, or one path, to do.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Share {
    pub unit: String,
    /// Its cluster; 0 on an unclustered machine.
    pub cluster: u8,
    /// Cycles in which it is taken.
    pub work: f64,
}

/// Beyond so many sets their unions are too many to look at.
const MAX_SETS: usize = 12;

/// What the instructions compete for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Issue slots.
    Issue,
    /// Units of these names.
    Units(Vec<String>),
}

/// The bound for instructions executed so many times each (by number in the
/// machine; may be a difference of two runs).
pub fn bound(machine: &Machine, counts: &[f64]) -> Resource {
    let executed = || machine.instrs.iter().zip(counts).filter(|(i, _)| !i.semantics.is_empty());
    let mut best = Resource { cycles: issue(machine, executed()), limit: Limit::Issue };
    let choices = choices(machine);
    for set in unions(&choices) {
        let class = class(machine, counts, &choices, &set);
        if class.cycles > best.cycles {
            best = Resource { cycles: class.cycles, limit: Limit::Units(class.units) };
        }
    }
    best
}

/// The sets that instructions which ran choose from, the fullest first.
pub fn classes(machine: &Machine, counts: &[f64]) -> Vec<Class> {
    let choices = choices(machine);
    let sets: BTreeSet<BTreeSet<UnitId>> = choices.iter().filter(|u| !u.is_empty()).cloned().collect();
    let mut all: Vec<Class> = sets.iter().map(|set| class(machine, counts, &choices, set)).collect();
    all.retain(|c| c.work > 0.0);
    all.sort_by(|a, b| b.cycles.total_cmp(&a.cycles));
    all
}

/// Every unit and path whose work is known to be its own, in the machine's order.
pub fn shares(machine: &Machine, counts: &[f64]) -> Vec<Share> {
    let mut work = vec![0.0; machine.units.len()];
    let mut certain = vec![true; machine.units.len()];
    for (instr, &n) in machine.instrs.iter().zip(counts).filter(|&(i, &n)| n > 0.0 && !i.semantics.is_empty()) {
        match instr.units[..] {
            [unit] => work[unit] += n * f64::from(instr.unit_cycles.max(1)),
            ref several => several.iter().for_each(|&u| certain[u] = false),
        }
        instr.paths.iter().for_each(|&(path, _)| work[path] += n);
    }
    let one = |(u, &work): (usize, &f64)| {
        let unit = &machine.units[u];
        Share { unit: unit.name.clone(), cluster: unit.cluster, work }
    };
    work.iter().enumerate().filter(|&(u, w)| certain[u] && *w > 0.0).map(one).collect()
}

fn class(machine: &Machine, counts: &[f64], choices: &[BTreeSet<UnitId>], set: &BTreeSet<UnitId>) -> Class {
    let work: f64 = machine
        .instrs
        .iter()
        .zip(counts)
        .zip(choices)
        .filter(|((i, _), units)| !i.semantics.is_empty() && !units.is_empty() && units.is_subset(set))
        .map(|((i, &n), _)| n * f64::from(i.unit_cycles.max(1)))
        .sum();
    let count: u32 = set.iter().map(|&u| u32::from(machine.units[u].count)).sum();
    let units = set.iter().map(|&u| machine.units[u].name.clone()).collect();
    Class { units, work, cycles: work / f64::from(count.max(1)) }
}

/// The units each instruction could have run on. On a clustered machine these
/// are those of all its variants: which one the program has was a choice.
fn choices(machine: &Machine) -> Vec<BTreeSet<UnitId>> {
    let mut out: Vec<BTreeSet<UnitId>> = machine.instrs.iter().map(|i| i.units.iter().copied().collect()).collect();
    for variants in machine.variants.iter().filter(|v| v.len() > 1) {
        let all: BTreeSet<UnitId> =
            variants.iter().flat_map(|v| machine.instrs[usize::from(v.0)].units.clone()).collect();
        for v in variants {
            out[usize::from(v.0)] = all.clone();
        }
    }
    out
}

/// All unions of the unit sets that instructions choose from; where there are
/// very many sets, the sets alone (still a bound, perhaps a lower one).
fn unions(choices: &[BTreeSet<UnitId>]) -> BTreeSet<BTreeSet<UnitId>> {
    let named: BTreeSet<BTreeSet<UnitId>> = choices.iter().filter(|u| !u.is_empty()).cloned().collect();
    let mut all = named.clone();
    if named.len() <= MAX_SETS {
        for set in &named {
            let grown: Vec<BTreeSet<UnitId>> = all.iter().map(|other| other | set).collect();
            all.extend(grown);
        }
    }
    all
}

fn issue<'a>(machine: &Machine, executed: impl Iterator<Item = (&'a Instr, &'a f64)>) -> f64 {
    let slots: f64 = executed.map(|(instr, &n)| n * f64::from(instr.least_issue_cycles())).sum();
    slots / f64::from(machine.issue.width.max(1))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::path::Path;

    /// The machine of `machines/rv32.toml`: one instruction a cycle; units
    /// alu, mul, div and lsu, one of each.
    pub(crate) fn rv32() -> Machine {
        with(&[])
    }

    fn with(settings: &[(&str, &str)]) -> Machine {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let settings: Vec<_> = settings.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect();
        ciphermill_machine::load_from_dir(&root, "rv32", &[], &[], &settings).unwrap()
    }

    fn counts(machine: &Machine, executed: &[(&str, f64)]) -> Vec<f64> {
        let count = |name: &str| executed.iter().find(|(n, _)| *n == name).map_or(0.0, |e| e.1);
        machine.instrs.iter().map(|i| count(&i.name)).collect()
    }

    #[test]
    fn one_slot_a_cycle() {
        let m = rv32();
        let found = bound(&m, &counts(&m, &[("add", 100.0), ("lw", 50.0), ("nop", 1000.0)]));
        assert_eq!(found, Resource { cycles: 150.0, limit: Limit::Issue });
    }

    #[test]
    fn the_scarcest_unit_on_a_wide_machine() {
        // Width 4: 150 instructions need 37.5 cycles; 100 additions on 2 ALUs
        // need 50; 60 loads on one port need 60.
        let m = with(&[("issue.width", "4"), ("units.alu", "2")]);
        let found = bound(&m, &counts(&m, &[("add", 100.0), ("lw", 50.0)]));
        assert_eq!(found.cycles, 50.0);
        let found = bound(&m, &counts(&m, &[("add", 100.0), ("lw", 60.0)]));
        assert_eq!(found, Resource { cycles: 60.0, limit: Limit::Units(vec!["lsu".into()]) });
    }

    #[test]
    fn instructions_that_few_units_can_do() {
        // Six products and sums on two units need three cycles, whatever the
        // other units could do: no single set says so, their union does.
        let mut m = with(&[("issue.width", "8"), ("units.alu", "1")]);
        let unit = |m: &Machine, name: &str| m.units.iter().position(|u| u.name == name).unwrap();
        let (alu, mul) = (unit(&m, "alu"), unit(&m, "mul"));
        for i in m.instrs.iter_mut().filter(|i| i.name == "add") {
            i.units = vec![alu, mul];
        }
        let counted = counts(&m, &[("add", 4.0), ("mul", 2.0), ("lw", 1.0)]);
        assert_eq!(bound(&m, &counted).cycles, 3.0);
        let of = |c: &Class| (c.units.join(" "), c.work, c.cycles);
        let found: Vec<_> = classes(&m, &counted).iter().map(of).collect();
        let expected = [("alu mul", 6.0, 3.0), ("mul", 2.0, 2.0), ("lsu", 1.0, 1.0)];
        assert_eq!(found, expected.map(|(u, w, c)| (u.to_owned(), w, c)));
        // Which of the two did the sums is not known; the load's unit is.
        assert_eq!(shares(&m, &counted), [Share { unit: "lsu".into(), cluster: 0, work: 1.0 }]);
    }

    #[test]
    fn instructions_that_hold_the_pipeline_together() {
        // Four loads of five cycles on two ports go in pairs: two times five cycles.
        let m = with(&[("issue.width", "2"), ("units.lsu", "2"), ("timings.load.issue_cycles", "5")]);
        assert_eq!(bound(&m, &counts(&m, &[("lw", 4.0)])).cycles, 10.0);
    }

    #[test]
    fn an_instruction_that_holds_the_pipeline() {
        // A division takes 34 cycles in which nothing else issues.
        let m = rv32();
        assert_eq!(bound(&m, &counts(&m, &[("div", 2.0), ("add", 10.0)])).cycles, 78.0);
    }
}
