//! Counting.

use super::Pipeline;
use crate::events::{Cause, Counts};
use ciphermill_machine::core::Event;

/// What is counted one by one; the rest is sums.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Tally {
    pub(super) cycles: u64,
    pub(super) instructions: u64,
    pub(super) branches: u64,
    pub(super) mispredicted: u64,
    pub(super) conditional: u64,
    pub(super) conditional_wrong: u64,
    pub(super) recovery: u64,
    pub(super) renamed: u64,
    pub(super) dispatched: u64,
    pub(super) retired: u64,
    /// Retired ones that took no port.
    pub(super) eliminated: u64,
    pub(super) slots: u64,
    pub(super) wrong_path: u64,
    pub(super) loads: u64,
    pub(super) stores: u64,
    pub(super) forwarded: u64,
    pub(super) failed: u64,
    pub(super) aliased: u64,
    pub(super) violations: u64,
    pub(super) btb: u64,
    pub(super) macro_fused: u64,
    /// Instructions that were given cycles.
    pub(super) timed: u64,
}

impl Tally {
    /// The counts that exist only where micro-operations are given cycles.
    pub(super) fn timed(&mut self) -> [&mut u64; 14] {
        [
            &mut self.cycles,
            &mut self.recovery,
            &mut self.renamed,
            &mut self.dispatched,
            &mut self.retired,
            &mut self.eliminated,
            &mut self.slots,
            &mut self.wrong_path,
            &mut self.forwarded,
            &mut self.failed,
            &mut self.aliased,
            &mut self.violations,
            &mut self.macro_fused,
            &mut self.timed,
        ]
    }
}

impl Tally {
    /// All of them.
    fn all(&mut self) -> [&mut u64; 22] {
        let Tally {
            cycles,
            instructions,
            branches,
            mispredicted,
            conditional,
            conditional_wrong,
            recovery,
            renamed,
            dispatched,
            retired,
            eliminated,
            slots,
            wrong_path,
            loads,
            stores,
            forwarded,
            failed,
            aliased,
            violations,
            btb,
            macro_fused,
            timed,
        } = self;
        [
            cycles, instructions, branches, mispredicted, conditional, conditional_wrong, recovery, renamed, dispatched,
            retired, eliminated, slots, wrong_path, loads, stores, forwarded, failed, aliased, violations, btb, macro_fused, timed,
        ]
    }

    /// Without what is counted where the predictors are asked.
    pub(super) fn without_answers(self) -> Tally {
        Tally { branches: 0, mispredicted: 0, conditional: 0, conditional_wrong: 0, btb: 0, ..self }
    }
}

/// Counts that belong to cycles.
#[derive(Clone, Default)]
pub(super) struct Marks {
    pub(super) tally: Tally,
    pub(super) places: [u64; Cause::ALL.len()],
    pub(super) work: Vec<u64>,
    pub(super) starts: Vec<u64>,
}

impl Marks {
    fn combine(&mut self, other: &Marks, f: impl Fn(&mut u64, u64)) {
        let mut tally = other.tally;
        self.tally.all().into_iter().zip(tally.all()).for_each(|(a, b)| f(a, *b));
        self.places.iter_mut().zip(&other.places).for_each(|(a, b)| f(a, *b));
        self.work.iter_mut().zip(&other.work).for_each(|(a, b)| f(a, *b));
        self.starts.iter_mut().zip(&other.starts).for_each(|(a, b)| f(a, *b));
    }

    /// Add others so many times.
    pub(super) fn add(&mut self, other: &Marks, times: u64) {
        self.combine(other, |a, b| *a += b * times);
    }

    /// Take earlier ones away.
    pub(super) fn subtract(&mut self, other: &Marks) {
        self.combine(other, |a, b| *a -= b);
    }
}

impl Pipeline {
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
        if let Some(windows) = &mut self.windows {
            windows.sums = Marks::default();
            windows.sampler.windows.clear();
        }
        self.base = self.memory.counts;
        self.base_walks = self.memory.walks();
    }

    /// Everything counted since the last reset.
    pub fn counts(&self) -> Counts {
        let marks = match &self.windows {
            Some(windows) => self.scaled(&windows.sums),
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
