//! What a measurement says of a machine that schedules at run time.
//!
//! Metrics are those of Hu and Martinez (ISCC 2012), by their formulas over
//! the counts of [`ciphermill_ooo::events`], and beside them today's
//! definitions: misses per access, and per thousand instructions. The paper
//! prints its wasted work as `DISPATCHED / (ANY + FUSED - 1)`, which is 1.18
//! where the text says 18 %: the 1 belongs behind the fraction, and here it is.

use crate::bottleneck::{Bottleneck, share};
use crate::measurement::{Breakdown, Metrics};
use crate::resource::{Class, Limit, Resource, Share};
use crate::slope::Slope;
use ciphermill_machine::core::Core;
use ciphermill_ooo::{Cause, Counts};
use ciphermill_sim::Stats;
use std::collections::{BTreeMap, BTreeSet};

/// Counts under the vendor's names.
pub fn events(core: &Core, counts: &Counts) -> BTreeMap<String, u64> {
    core.events.iter().map(|(name, event)| (name.clone(), counts.events.get(event.0).copied().unwrap_or(0))).collect()
}

/// The ratios; those of instructions are as on other machines.
pub fn metrics(counts: &Counts, stats: &Stats) -> Metrics {
    let get = |name: &str| counts.get(name);
    let instructions = get("instructions");
    let kilo = |n: u64| 1000.0 * share(n, instructions);
    let per_instruction = |n: u64| Some(1.0 - share(n, instructions));
    // What retired and had to be started for it: eliminated copies never are.
    let fused = (get("uops_retired_fused") + get("uops_fused_pairs")).saturating_sub(get("uops_eliminated"));
    Metrics {
        l1d_hit: per_instruction(get("l1d_lines_in")),
        l1i_hit: per_instruction(get("l1i_misses")),
        l2_hit: per_instruction(get("l2_lines_in")),
        branch_ratio: share(get("branches"), instructions),
        prediction_rate: Some(1.0 - share(get("branches_mispredicted"), get("branches"))),
        mispredict_ratio: Some(share(get("branches_mispredicted"), instructions)),
        stall_ratio: share(get("branch_recovery_stalls"), get("cycles")),
        wasted_work: if fused == 0 { 0.0 } else { share(get("uops_dispatched"), fused) - 1.0 },
        lookup_share: share(stats.roles.lookup, stats.instructions),
        lookup_slot_share: share(stats.roles.lookup, get("cycles") * counts.retire_width.max(1)),
        // Where instructions overlap, no cycle belongs to one of them.
        lookup_cycle_share: None,
        overhead_share: share(stats.roles.overhead, stats.instructions),
        load_share: share(stats.loads, stats.instructions),
        store_share: share(stats.stores, stats.instructions),
        l1d_miss_ratio: Some(share(get("l1d_misses"), get("l1d_accesses"))),
        l2_miss_ratio: Some(share(get("l2_misses"), get("l2_accesses"))),
        l1d_mpki: Some(kilo(get("l1d_misses"))),
        l2_mpki: Some(kilo(get("l2_misses"))),
        branch_mpki: Some(kilo(get("branches_mispredicted"))),
        wrong_path_share: Some(share(get("uops_wrong_path"), get("uops_dispatched"))),
    }
}

/// Cycles per instruction by cause; they sum to the CPI.
pub fn cpi_stack(counts: &Counts) -> BTreeMap<&'static str, f64> {
    let instructions = counts.get("instructions").max(1) as f64;
    Cause::ALL.iter().map(|&c| (c.name(), counts.cycles(c) / instructions)).collect()
}

/// Whole cycles by cause, which sum to all cycles: each place that something
/// could have retired in counts as a part of its cycle, and the cycles lost in
/// rounding down go to the largest remainders.
pub fn breakdown(counts: &Counts) -> Breakdown {
    let width = counts.retire_width.max(1);
    let mut whole: Vec<u64> = counts.places.iter().map(|p| p / width).collect();
    let mut order: Vec<usize> = (0..whole.len()).collect();
    order.sort_by_key(|&i| std::cmp::Reverse(counts.places[i] % width));
    let left = counts.get("cycles").saturating_sub(whole.iter().sum());
    for &i in order.iter().take(left as usize) {
        whole[i] += 1;
    }
    let of = |c: Cause| whole.get(c as usize).copied().unwrap_or(0);
    Breakdown {
        issue: of(Cause::Base),
        load_wait: of(Cause::L1) + of(Cause::Forward),
        operand_wait: of(Cause::Dependences),
        unit: of(Cause::Ports),
        branch: of(Cause::Mispredict),
        icache: of(Cause::Icache),
        dcache: of(Cause::L2) + of(Cause::Memory) + of(Cause::Translation),
        window: 0,
        bank: 0,
        cross: 0,
        frontend: of(Cause::Frontend),
        full: of(Cause::Window) + of(Cause::ReadPorts),
    }
}

/// More unions of sets of ports are not looked at.
const MAX_SETS: usize = 12;

/// The resource bound: retired micro-operations on ports, and on the widths
/// of decoding, renaming and retiring.
pub fn resource(core: &Core, slope: &Slope<'_>) -> Resource {
    let slots = slope.of("uops_retired_fused");
    let decoded = slope.of("instructions") - slope.of("macro_fused");
    let widths = [
        slots / f64::from(core.rename.width.min(core.retire.width)),
        decoded / core.decode.pattern.len().max(1) as f64,
    ];
    let mut best = Resource { cycles: widths[0].max(widths[1]), limit: Limit::Issue };
    let work = slope.work();
    let masks: BTreeSet<u32> = work.iter().map(|w| w.0).collect();
    let mut sets = masks.clone();
    if masks.len() <= MAX_SETS {
        for &m in &masks {
            let more: Vec<u32> = sets.iter().map(|s| s | m).collect();
            sets.extend(more);
        }
    }
    for set in sets {
        let inside: f64 = work.iter().filter(|w| w.0 & !set == 0).map(|w| w.1).sum();
        let cycles = inside / f64::from(set.count_ones());
        if cycles > best.cycles {
            best = Resource { cycles, limit: Limit::Units(names(slope.to, set)) };
        }
    }
    best
}

fn names(counts: &Counts, set: u32) -> Vec<String> {
    counts.starts.iter().enumerate().filter(|(i, _)| set >> i & 1 == 1).map(|(_, s)| s.0.clone()).collect()
}

/// The sets of ports that micro-operations choose from, the fullest first.
pub fn classes(slope: &Slope<'_>) -> Vec<Class> {
    let one = |&(mask, work): &(u32, f64)| Class {
        units: names(slope.to, mask),
        work,
        cycles: work / f64::from(mask.count_ones()),
    };
    let mut all: Vec<Class> = slope.work().iter().filter(|w| w.1 > 0.0).map(one).collect();
    all.sort_by(|a, b| b.cycles.total_cmp(&a.cycles));
    all
}

/// What started on each port, wrong paths included, per block.
pub fn shares(slope: &Slope<'_>) -> Vec<Share> {
    let ports = slope.from.starts.iter().zip(&slope.to.starts);
    let one = |(a, b): (&(String, u64), &(String, u64))| Share {
        unit: b.0.clone(),
        cluster: 0,
        work: (b.1 as f64 - a.1 as f64) / slope.blocks,
    };
    ports.map(one).filter(|s| s.work > 0.0).collect()
}

/// What limits it. The units have the cycles of the resource bound; what is
/// left is divided as the cycles in which nothing retired are. The part of the
/// units' cycles that spills and moves take is the registers'.
pub fn bottleneck(counts: &Counts, stats: &Stats, resource: &Resource) -> Bottleneck {
    let total = counts.get("cycles").max(1) as f64;
    let needed = resource.cycles.min(total);
    let of = |causes: &[Cause]| causes.iter().map(|&c| counts.cycles(c)).sum::<f64>();
    let waits = [
        ("dependences", of(&[Cause::Dependences, Cause::L1, Cause::Forward, Cause::Window])),
        ("memory", of(&[Cause::L2, Cause::Memory, Cause::Translation])),
        ("branches", of(&[Cause::Mispredict])),
        ("frontend", of(&[Cause::Frontend, Cause::Icache])),
        ("units", of(&[Cause::Ports, Cause::ReadPorts])),
    ];
    let all: f64 = waits.iter().map(|w| w.1).sum();
    let part = |w: f64| if all > 0.0 { (total - needed) * w / all } else { 0.0 };
    let overhead = needed * share(stats.roles.overhead, stats.instructions);
    let mut causes: Vec<(&str, f64)> = waits.iter().map(|&(word, w)| (word, part(w))).collect();
    causes[4].1 += needed - overhead;
    causes.push(("registers", overhead));
    // The first of equals wins, so the order is part of the definition.
    let (word, most) = causes.iter().copied().fold(("units", -1.0), |a, b| if b.1 > a.1 { b } else { a });
    let next = causes.iter().copied().filter(|c| c.0 != word).fold(("", 0.0), |a, b| if b.1 > a.1 { b } else { a });
    let percent = |cycles: f64| 100.0 * cycles / total;
    let first = match word {
        "dependences" if of(&[Cause::L1, Cause::Forward]) > of(&[Cause::Dependences]) => {
            "Dependences limit it: waiting for results, most of them of loads, takes".to_owned()
        }
        "dependences" => "Dependences limit it: waiting for results takes".to_owned(),
        "memory" => "Memory limits it: misses of the first cache take".to_owned(),
        "branches" => "Branches limit it: recovering from wrong guesses takes".to_owned(),
        "frontend" => "The front end limits it: fetching and decoding take".to_owned(),
        "registers" => "Registers limit it: spills and moves take".to_owned(),
        _ => match &resource.limit {
            Limit::Issue => "The width of the pipeline limits it: decoding, renaming and retiring take".to_owned(),
            Limit::Units(units) => format!("Ports limit it: the work of {} takes", units.join(", ")),
        },
    };
    let rest = match next.0 {
        other if percent(next.1) >= 1.0 => format!("; {:.0} % go to {other}", percent(next.1)),
        _ => String::new(),
    };
    Bottleneck { word, why: format!("{first} {:.0} % of the cycles{rest}.", percent(most)) }
}
