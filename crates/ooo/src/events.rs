//! What is counted, and where cycles went.
//!
//! The numbers of [`Counts`] stand in the order of [`Event::NAMES`]:
//!
//! | name | counts |
//! |---|---|
//! | `cycles`, `instructions` | of the program; instructions are those retired |
//! | `branches`, `branches_mispredicted` | retired jumps of every kind; those after which fetch went wrong |
//! | `conditional_branches`, `conditional_mispredicted` | of them, the conditional ones |
//! | `l1d_lines_in` | lines brought into the first data cache, prefetched ones too |
//! | `l1d_accesses`, `l1d_misses` | loads that went to the cache and stores; those whose line was not there or coming |
//! | `l1d_writebacks`, `l2_writebacks` | written lines that gave way |
//! | `l1i_misses` | fetches whose line was not there or coming |
//! | `l2_lines_in` | lines brought into the second cache, prefetched ones too |
//! | `l2_accesses`, `l2_misses` | what the first caches missed or prefetched; those of them that had to come from memory |
//! | `dtlb_misses` | page walks |
//! | `branch_recovery_stalls` | where renaming waits for that: cycles from the discovery of a wrong guess until the branch and all that is older have retired |
//! | `uops_renamed`, `uops_dispatched` | micro-operations with those of wrong paths; a fused pair counts once when it is renamed and twice when it starts |
//! | `uops_retired` | retired micro-operations, the halves of a fused pair each |
//! | `uops_eliminated` | those of them that took no port: eliminated copies, empty instructions |
//! | `uops_retired_fused` | retired micro-operations, a fused pair once |
//! | `uops_fused_pairs` | retired pairs, micro- and macro-fused |
//! | `uops_wrong_path` | micro-operations that started on a wrong path |
//! | `loads_retired`, `stores_retired` | loads and stores of the program |
//! | `loads_forwarded`, `forwards_failed` | loads that got their bytes from a store on its way to the cache; that had to wait for it |
//! | `loads_aliased` | loads that waited for a store to another address, because only the lower parts of addresses were compared |
//! | `memory_order_violations` | loads that passed a store they should have waited for |
//! | `loads_misnamed` | loads that were taken to read a store to other bytes of their word |
//! | `btb_misses` | taken branches whose target the decoder had to find |
//! | `macro_fused` | retired pairs of instructions that were one micro-operation |
//! | `prefetches` | lines fetched before they were asked for |

use crate::sample::Sample;
use ciphermill_machine::core::Event;
use serde::Serialize;

/// What kept the oldest micro-operation from retiring earlier.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Nothing: it retired, in a place of its own.
    Base,
    /// It came late: fetch, decode, queues.
    Frontend,
    /// Its line was not in the instruction cache.
    Icache,
    /// It came late because the branch before it had been guessed wrong.
    Mispredict,
    /// It waited for the result of a computation.
    Dependences,
    /// It was ready, and its port was taken.
    Ports,
    /// It was, or waited for, a load that the first cache answered.
    L1,
    /// ... the second one.
    L2,
    /// ... memory.
    Memory,
    /// ... whose address had to be translated first.
    Translation,
    /// ... that got its bytes, late or with a penalty, from a store.
    Forward,
    /// The window was full: reorder buffer, reservation stations, load or store buffers.
    Window,
    /// Register read ports.
    ReadPorts,
}

impl Cause {
    /// All, in the order of their numbers.
    pub const ALL: [Cause; 13] = [
        Cause::Base,
        Cause::Frontend,
        Cause::Icache,
        Cause::Mispredict,
        Cause::Dependences,
        Cause::Ports,
        Cause::L1,
        Cause::L2,
        Cause::Memory,
        Cause::Translation,
        Cause::Forward,
        Cause::Window,
        Cause::ReadPorts,
    ];

    /// As reports write it.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Base => "base",
            Cause::Frontend => "frontend",
            Cause::Icache => "icache",
            Cause::Mispredict => "mispredict",
            Cause::Dependences => "dependences",
            Cause::Ports => "ports",
            Cause::L1 => "l1",
            Cause::L2 => "l2",
            Cause::Memory => "memory",
            Cause::Translation => "translation",
            Cause::Forward => "forward",
            Cause::Window => "window",
            Cause::ReadPorts => "read_ports",
        }
    }
}

/// Everything counted since the last reset.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Counts {
    /// By [`Event`].
    pub events: Vec<u64>,
    /// Places for retiring (`retire.width` a cycle) by what they went to, in
    /// the order of [`Cause::ALL`]; they sum to `cycles * retire_width`.
    pub places: Vec<u64>,
    pub retire_width: u64,
    /// Retired micro-operations' cycles of ports, by set of ports.
    pub work: Vec<(u32, u64)>,
    /// Set when only windows of the run were timed.
    pub sample: Option<Sample>,
    /// Micro-operations that started on each port, wrong paths included.
    pub starts: Vec<(String, u64)>,
}

impl Counts {
    /// The count of an event.
    pub fn get(&self, name: &str) -> u64 {
        Event::named(name).and_then(|e| self.events.get(e.0)).copied().unwrap_or(0)
    }

    /// Cycles that went to a cause.
    pub fn cycles(&self, cause: Cause) -> f64 {
        self.places.get(cause as usize).map_or(0.0, |&p| p as f64 / self.retire_width.max(1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_described() {
        let text = include_str!("events.rs");
        for name in Event::NAMES {
            assert!(text.contains(&format!("`{name}`")), "{name}");
        }
        for (i, cause) in Cause::ALL.iter().enumerate() {
            assert_eq!(*cause as usize, i);
        }
    }
}
