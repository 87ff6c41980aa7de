//! What limits the cipher on this machine: one word and one sentence.
//!
//! Every cycle of the measured run is charged to one cause. Stalls carry their
//! cause from the simulator. Cycles in which something issued are charged to
//! the units as far as the resource bound needs them; on a machine that can
//! issue several instructions at once the rest are cycles issued half empty,
//! because the instructions that could have filled them waited for operands, or, in
//! a pipelined loop above its bounds whose registers are taken nearly all the time,
//! for registers. Of the units' cycles, those spent on spills and moves are charged to the
//! registers. The cause with the most cycles is the bottleneck.

use crate::resource::{Limit, Resource};
use ciphermill_machine::Machine;
use ciphermill_program::PipelinedLoop;
use ciphermill_sim::Stats;

/// The word, the sentence.
#[derive(Clone, Debug, PartialEq)]
pub struct Bottleneck {
    pub word: &'static str,
    pub why: String,
}

/// Hundredths of a loop's registers from which on they hold it up: values of an iteration
/// cannot be laid end to end without a gap.
const FULL: u32 = 85;

/// Instructions that hold the pipeline for longer than a cycle are told of from this share
/// of all cycles on; below it "one a cycle" is as good as true.
const HELD: f64 = 0.05;

/// Is a pipelined loop's II limited by registers?
pub fn crowded(l: &PipelinedLoop) -> bool {
    l.register_use >= FULL && l.ii > l.res_mii.max(l.rec_mii).max(l.lower_bound)
}

/// Blocks (or keys) processed by the run the counters are of, and what one is called; and
/// whether the run spent most of its time in a loop that is [`crowded`].
pub fn find(
    machine: &Machine,
    stats: &Stats,
    resource: &Resource,
    (blocks, block): (f64, &str),
    crowded: bool,
) -> Bottleneck {
    let total = stats.cycles.max(1) as f64;
    let issue = stats.issue_cycles as f64;
    let needed = resource.cycles.min(issue + stats.stalls.unit as f64);
    let half_empty = (issue - needed).max(0.0);
    let overhead = needed * share(stats.roles.overhead, stats.instructions);
    let s = &stats.stalls;
    let (for_registers, for_operands) = if crowded { (half_empty, 0.0) } else { (0.0, half_empty) };
    let waiting = s.load_wait as f64 + s.operand_wait as f64 + for_operands;
    let units = (issue + s.unit as f64 - half_empty - overhead).max(0.0);
    // The first of equals wins, so the order is part of the definition.
    let causes = [
        ("units", units),
        ("dependences", waiting + s.cross as f64),
        ("memory", (s.dcache + s.bank) as f64),
        ("branches", s.branch as f64),
        ("registers", overhead + s.window as f64 + for_registers),
        ("frontend", s.icache as f64),
    ];
    let (word, most) = causes.iter().copied().fold(("units", -1.0), |a, b| if b.1 > a.1 { b } else { a });
    let percent = |cycles: f64| 100.0 * cycles / total;
    let per_block = |n: u64| n as f64 / blocks;
    let first = match word {
        "units" => match &resource.limit {
            Limit::Issue => format!(
                "The issue width limits it: the {:.0} instructions of {block}, {} a cycle,{} take {:.0} % of the cycles",
                per_block(stats.instructions),
                if machine.issue.width == 1 { "one".to_owned() } else { format!("at most {}", machine.issue.width) },
                held(machine, stats, blocks),
                percent(most)
            ),
            Limit::Units(names) => {
                format!(
                    "Functional units limit it: {} {} busy in {:.0} % of the cycles",
                    names.join(" and "),
                    if names.len() == 1 { "is" } else { "are" },
                    percent(most)
                )
            }
        },
        "dependences" if s.load_wait > s.operand_wait => format!(
            "Dependences limit it: {:.0} % of the cycles wait for results, most of them for loads",
            percent(most)
        ),
        "dependences" => format!("Dependences limit it: {:.0} % of the cycles wait for results", percent(most)),
        "memory" if s.bank > s.dcache => {
            format!("Memory banks limit it: accesses that meet in one take {:.0} % of the cycles", percent(most))
        }
        "memory" => format!("The data cache limits it: its misses take {:.0} % of the cycles", percent(most)),
        "branches" => format!("Branches limit it: refilling the pipeline takes {:.0} % of the cycles", percent(most)),
        "registers" if crowded => {
            format!(
                "Registers limit it: too few for more iterations at once, they leave {:.0} % of the cycles half empty",
                percent(most)
            )
        }
        "registers" => {
            format!("Registers limit it: {} take {:.0} % of the cycles", noun(word, s, crowded), percent(most))
        }
        _ => format!("Instruction fetch limits it: its misses take {:.0} % of the cycles", percent(most)),
    };
    let next = causes.iter().copied().filter(|c| c.0 != word).fold(("", 0.0), |a, b| if b.1 > a.1 { b } else { a });
    let rest = if percent(next.1) >= 1.0 {
        format!("; {:.0} % go to {}", percent(next.1), noun(next.0, s, crowded))
    } else {
        String::new()
    };
    Bottleneck { word, why: format!("{first}{rest}.") }
}

/// The cycles for which instructions hold the pipeline after the one in which they issue: how many
/// in a block, and which instruction has most of them. Empty where they hardly matter.
fn held(machine: &Machine, stats: &Stats, blocks: f64) -> String {
    let executed = machine.instrs.iter().zip(&stats.per_instr).filter(|(i, _)| !i.semantics.is_empty());
    let each = executed.map(|(i, &n)| (i, n * u64::from(i.least_issue_cycles() - 1)));
    let (mut sum, mut most) = (0, None);
    for (instr, cycles) in each {
        sum += cycles;
        most = most.filter(|&(_, before)| before >= cycles).or(Some((instr, cycles)));
    }
    match most {
        // Of several slots, others may be held in the same cycles.
        Some((instr, _)) if machine.issue.width == 1 && sum as f64 >= HELD * stats.cycles as f64 => {
            format!(
                " and {:.0} cycles more in which some hold the pipeline, {} above all,",
                sum as f64 / blocks,
                instr.name
            )
        }
        _ => String::new(),
    }
}

fn noun(word: &str, s: &ciphermill_sim::Stalls, crowded: bool) -> &'static str {
    match word {
        "units" => "issuing instructions",
        "dependences" if s.load_wait > s.operand_wait => "waiting for loads",
        "dependences" => "waiting for operands",
        "memory" if s.bank > s.dcache => "bank conflicts",
        "memory" => "data cache misses",
        "branches" => "branches",
        "registers" if crowded => "registers, too few for more iterations at once",
        "registers" if s.window > 0 => "spills, moves and window traps",
        "registers" => "spills and moves",
        _ => "instruction cache misses",
    }
}

/// `part / whole`, 0 for nothing of nothing.
pub fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::tests::rv32;
    use ciphermill_sim::Stalls;

    fn stats(issue_cycles: u64, stalls: Stalls) -> Stats {
        Stats {
            cycles: issue_cycles + stalls.total(),
            issue_cycles,
            stalls,
            instructions: issue_cycles,
            ..Stats::default()
        }
    }

    fn word(stats: &Stats) -> Bottleneck {
        let resource = Resource { cycles: stats.issue_cycles as f64, limit: Limit::Issue };
        find(&rv32(), stats, &resource, (10.0, "a block"), false)
    }

    #[test]
    fn the_cause_with_most_cycles_wins() {
        let units = word(&stats(900, Stalls { load_wait: 100, ..Stalls::default() }));
        assert_eq!(units.word, "units");
        assert_eq!(
            units.why,
            "The issue width limits it: the 90 instructions of a block, one a cycle, take 90 % of the cycles; \
             10 % go to waiting for loads."
        );
        let waits = word(&stats(400, Stalls { load_wait: 500, branch: 100, ..Stalls::default() }));
        assert_eq!(waits.word, "dependences");
        assert!(waits.why.contains("50 % of the cycles wait for results, most of them for loads; 40 % go to issuing"));
        assert_eq!(word(&stats(10, Stalls { dcache: 50, ..Stalls::default() })).word, "memory");
        assert_eq!(word(&stats(10, Stalls { icache: 50, ..Stalls::default() })).word, "frontend");
        assert_eq!(word(&stats(10, Stalls { branch: 50, ..Stalls::default() })).word, "branches");
    }

    #[test]
    fn instructions_that_hold_the_pipeline_are_told_of() {
        // Ten blocks, each of 40 additions and of a division for 34 cycles; then of few divisions.
        let machine = rv32();
        let run = |divisions: u64| {
            let held = 33 * divisions;
            let mut s = stats(400 + divisions, Stalls { unit: held, ..Stalls::default() });
            s.per_instr = machine
                .instrs
                .iter()
                .map(|i| match i.name.as_str() {
                    "add" => 400,
                    "remu" => divisions,
                    _ => 0,
                })
                .collect();
            let resource = Resource { cycles: (400 + 34 * divisions) as f64, limit: Limit::Issue };
            find(&machine, &s, &resource, (10.0, "a block"), false).why
        };
        assert_eq!(
            run(10),
            "The issue width limits it: the 41 instructions of a block, one a cycle, and 33 cycles more in which \
             some hold the pipeline, remu above all, take 100 % of the cycles."
        );
        assert!(
            run(0).starts_with("The issue width limits it: the 40 instructions of a block, one a cycle, take 100 %")
        );
    }

    #[test]
    fn spills_are_the_registers_fault() {
        let mut spilling = stats(1000, Stalls::default());
        spilling.roles.overhead = 600;
        let found = word(&spilling);
        assert_eq!(found.word, "registers");
        assert!(found.why.starts_with("Registers limit it: spills and moves take 60 % of the cycles"));
    }

    #[test]
    fn slots_left_empty_are_charged_to_dependences() {
        let wide = stats(1000, Stalls::default());
        let resource = Resource { cycles: 300.0, limit: Limit::Units(vec!["lsu".into()]) };
        let found = find(&rv32(), &wide, &resource, (10.0, "a block"), false);
        assert_eq!(found.word, "dependences");
        let resource = Resource { cycles: 900.0, limit: Limit::Units(vec!["lsu".into()]) };
        let found = find(&rv32(), &wide, &resource, (10.0, "a block"), false);
        assert!(found.why.starts_with("Functional units limit it: lsu is busy in 90 % of the cycles"), "{}", found.why);
    }

    #[test]
    fn slots_left_empty_are_charged_to_registers_that_are_full() {
        let wide = stats(1000, Stalls::default());
        let resource = Resource { cycles: 300.0, limit: Limit::Units(vec!["lsu".into()]) };
        let found = find(&rv32(), &wide, &resource, (10.0, "a block"), true);
        assert_eq!(found.word, "registers");
        assert!(found.why.ends_with("they leave 70 % of the cycles half empty; 30 % go to issuing instructions."));
        let full = PipelinedLoop {
            path: 0,
            func: 0,
            ii: 120,
            res_mii: 100,
            rec_mii: 1,
            stages: 2,
            lower_bound: 0,
            bounds: vec![],
            plain: None,
            divided: None,
            register_use: 90,
            kept_schedule: false,
            search: None,
            asked: vec![],
            block: 0,
            circuit: vec![],
        };
        assert!(crowded(&full));
        // Registers to spare; a schedule that cannot be shorter.
        assert!(!crowded(&PipelinedLoop { register_use: 60, ..full.clone() }));
        assert!(!crowded(&PipelinedLoop { lower_bound: 120, ..full }));
    }
}
