//! What is counted while the core runs.

use crate::events::Cause;

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
    pub(super) misnamed: u64,
    pub(super) btb: u64,
    pub(super) macro_fused: u64,
    /// Instructions that were given cycles.
    pub(super) timed: u64,
}

impl Tally {
    /// The counts that exist only where micro-operations are given cycles.
    pub(super) fn timed(&mut self) -> [&mut u64; 15] {
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
            &mut self.misnamed,
            &mut self.macro_fused,
            &mut self.timed,
        ]
    }
}

impl Tally {
    /// All of them.
    fn all(&mut self) -> [&mut u64; 23] {
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
            misnamed,
            btb,
            macro_fused,
            timed,
        } = self;
        [
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
            misnamed,
            btb,
            macro_fused,
            timed,
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
