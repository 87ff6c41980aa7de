//! Counting.

use super::marks::{Marks, Tally};
use super::memo::Run;
use super::state::Pipeline;
use super::sums::Sum;
use crate::events::{Cause, Counts};
use ciphermill_machine::core::Event;

impl Pipeline {
    /// Count a run that is to be worked out; the instructions in it are counted one by one where `counted` says so.
    ///
    /// # Errors
    /// When it does not make so many accesses.
    pub(super) fn count_run(&mut self, run: Run, accesses: usize, counted: bool) -> Result<(), String> {
        let known = &mut self.sums[run.first as usize];
        if known.count != run.count {
            *known = Sum::of(&self.code, run);
        }
        if known.accesses != accesses {
            let addr = self.code.insts[run.first as usize].addr;
            return Err(format!(
                "{accesses} accesses to memory in the run of code at {addr:#x}, where the semantics say {}",
                known.accesses
            ));
        }
        known.add_to(&mut self.tally, &mut self.places, &mut self.work);
        self.tally.instructions += if counted { 0 } else { known.instructions };
        Ok(())
    }

    /// Counts that belong to cycles, as they stand.
    pub(super) fn marks(&self) -> Marks {
        let mut marks = self.marks_here();
        self.memo.add_to(&mut marks);
        marks
    }

    /// The same without what the memo counts.
    pub(super) fn marks_here(&self) -> Marks {
        Marks { tally: self.tally, places: self.places, work: self.work.clone(), starts: self.calendar.starts.to_vec() }
    }

    /// Counts as if everything had been worked out.
    pub(super) fn set_marks(&mut self, marks: Marks) {
        (self.tally, self.places, self.work) = (marks.tally, marks.places, marks.work);
        self.calendar.starts.copy_from_slice(&marks.starts);
    }

    /// Zero all counts. What caches and predictors know stays.
    pub fn reset(&mut self) {
        self.memo.reset();
        self.tally = Tally::default();
        self.places = [0; Cause::ALL.len()];
        self.work.fill(0);
        self.calendar.starts = [0; 32];
        self.begin_again();
        self.base = self.memory.counts;
        self.base_walks = self.memory.walks();
    }

    /// Everything counted since the last reset.
    pub fn counts(&self) -> Counts {
        let marks = match &self.windows {
            Some(windows) => self.scaled(windows),
            None => self.marks(),
        };
        let (t, m, b) = (&marks.tally, &self.memory.counts, &self.base);
        let of = |name: &str| match name {
            "cycles" => t.cycles,
            "instructions" => t.instructions,
            "branches" => t.branches,
            "branches_mispredicted" => t.mispredicted,
            "conditional_branches" => t.conditional,
            "conditional_mispredicted" => t.conditional_wrong,
            "l1d_lines_in" => m.l1d_lines - b.l1d_lines,
            "l1d_accesses" => m.l1d_accesses - b.l1d_accesses,
            "l1d_misses" => m.l1d_misses - b.l1d_misses,
            "l1d_writebacks" => m.l1d_writebacks - b.l1d_writebacks,
            "l1i_misses" => m.l1i_misses - b.l1i_misses,
            "l2_lines_in" => m.l2_lines - b.l2_lines,
            "l2_accesses" => m.l2_accesses - b.l2_accesses,
            "l2_misses" => m.l2_misses - b.l2_misses,
            "l2_writebacks" => m.l2_writebacks - b.l2_writebacks,
            "dtlb_misses" => self.memory.walks() - self.base_walks,
            "branch_recovery_stalls" => t.recovery,
            "uops_renamed" => t.renamed,
            "uops_dispatched" => t.dispatched,
            "uops_retired" => t.retired,
            "uops_eliminated" => t.eliminated,
            "uops_retired_fused" => t.slots,
            "uops_fused_pairs" => t.retired - t.slots + t.macro_fused,
            "uops_wrong_path" => t.wrong_path,
            "loads_retired" => t.loads,
            "stores_retired" => t.stores,
            "loads_forwarded" => t.forwarded,
            "forwards_failed" => t.failed,
            "loads_aliased" => t.aliased,
            "memory_order_violations" => t.violations,
            "loads_misnamed" => t.misnamed,
            "btb_misses" => t.btb,
            "macro_fused" => t.macro_fused,
            "prefetches" => m.prefetches - b.prefetches,
            _ => 0,
        };
        Counts {
            events: Event::NAMES.iter().map(|n| of(n)).collect(),
            places: marks.places.to_vec(),
            retire_width: u64::from(self.core.retire.width),
            sample: self.sampled(),
            work: self
                .code
                .ports
                .classes
                .iter()
                .copied()
                .zip(marks.work.iter().copied())
                .filter(|w| w.0 != 0)
                .collect(),
            starts: self.code.ports.names.iter().cloned().zip(marks.starts.iter().copied()).collect(),
        }
    }
}
