//! What limits the cipher on this machine: one word and one sentence.
//!
//! Every cycle of the measured run is charged to one cause. Stalls carry their
//! cause from the simulator. Cycles in which something issued are charged to
//! the units as far as the resource bound needs them; on a machine that can
//! issue several instructions at once the rest are cycles issued half empty,
//! because the instructions that could have filled them waited for operands.
//! Of the units' cycles, those spent on spills and moves are charged to the
//! registers. The cause with the most cycles is the bottleneck.

use crate::resource::{Limit, Resource};
use ciphermill_machine::Machine;
use ciphermill_sim::Stats;

/// The word, the sentence.
#[derive(Clone, Debug, PartialEq)]
pub struct Bottleneck {
    pub word: &'static str,
    pub why: String,
}

/// Blocks (or keys) processed by the run the counters are of.
pub fn find(machine: &Machine, stats: &Stats, resource: &Resource, blocks: f64) -> Bottleneck {
    let total = stats.cycles.max(1) as f64;
    let issue = stats.issue_cycles as f64;
    let needed = resource.cycles.min(issue + stats.stalls.unit as f64);
    let half_empty = (issue - needed).max(0.0);
    let overhead = needed * share(stats.roles.overhead, stats.instructions);
    let s = &stats.stalls;
    let waiting = s.load_wait as f64 + s.operand_wait as f64 + half_empty;
    let units = (issue + s.unit as f64 - half_empty - overhead).max(0.0);
    // The first of equals wins, so the order is part of the definition.
    let causes = [
        ("units", units),
        ("dependences", waiting),
        ("memory", s.dcache as f64),
        ("branches", s.branch as f64),
        ("registers", overhead + s.window as f64),
        ("frontend", s.icache as f64),
    ];
    let (word, most) = causes.iter().copied().fold(("units", -1.0), |a, b| if b.1 > a.1 { b } else { a });
    let percent = |cycles: f64| 100.0 * cycles / total;
    let per_block = |n: u64| n as f64 / blocks;
    let first = match word {
        "units" => match &resource.limit {
            Limit::Issue => format!(
                "The issue width limits it: the {:.0} instructions of a block, {} a cycle, take {:.0} % of the cycles",
                per_block(stats.instructions),
                if machine.issue.width == 1 { "one".to_owned() } else { format!("at most {}", machine.issue.width) },
                percent(most)
            ),
            Limit::Units(names) => {
                format!("Functional units limit it: {} are busy in {:.0} % of the cycles", names.join(" and "), percent(most))
            }
        },
        "dependences" if s.load_wait > s.operand_wait => format!(
            "Dependences limit it: {:.0} % of the cycles wait for results, most of them for loads",
            percent(most)
        ),
        "dependences" => format!("Dependences limit it: {:.0} % of the cycles wait for results", percent(most)),
        "memory" => format!("The data cache limits it: its misses take {:.0} % of the cycles", percent(most)),
        "branches" => format!("Branches limit it: refilling the pipeline takes {:.0} % of the cycles", percent(most)),
        "registers" => format!("Registers limit it: spills, moves and window traps take {:.0} % of the cycles", percent(most)),
        _ => format!("Instruction fetch limits it: its misses take {:.0} % of the cycles", percent(most)),
    };
    let next = causes.iter().copied().filter(|c| c.0 != word).fold(("", 0.0), |a, b| if b.1 > a.1 { b } else { a });
    let rest = if percent(next.1) >= 1.0 { format!("; {:.0} % go to {}", percent(next.1), noun(next.0, s)) } else { String::new() };
    Bottleneck { word, why: format!("{first}{rest}.") }
}

fn noun(word: &str, s: &ciphermill_sim::Stalls) -> &'static str {
    match word {
        "units" => "issuing instructions",
        "dependences" if s.load_wait > s.operand_wait => "waiting for loads",
        "dependences" => "waiting for operands",
        "memory" => "data cache misses",
        "branches" => "branches",
        "registers" => "spills, moves and window traps",
        _ => "instruction cache misses",
    }
}

/// `part / whole`, 0 for nothing of nothing.
pub fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
