//! Sampled runs: what is done between the windows, and how they are summed.

use super::marks::Marks;
use super::state::{Access, Pipeline, Windows};
use crate::code::Jump;
use crate::events::Cause;
use crate::sample::{Phase, Sample, Sampler, Sampling};

impl Pipeline {
    /// Time only windows of what runs from now on; None: everything.
    pub fn sample(&mut self, sampling: Option<Sampling>) {
        self.windows = sampling
            .map(|s| Box::new(Windows { sampler: Sampler::new(s), before: Marks::default(), sums: Marks::default() }));
    }

    /// So many instructions have passed in a sampled run.
    #[inline(always)]
    pub(super) fn pass(&mut self, instructions: u64) {
        if let Some(windows) = &mut self.windows
            && let Some(phase) = windows.sampler.pass(instructions)
        {
            self.settle();
            self.enter(phase);
        }
    }

    pub(super) fn enter(&mut self, phase: Phase) {
        let now = self.marks();
        match phase {
            Phase::Before => return self.refill(),
            Phase::Within => {}
            Phase::Between => {
                let Some(windows) = &mut self.windows else { return };
                let mut passed = now.clone();
                let mut before = windows.before.clone();
                let places: u64 = now.places.iter().zip(&before.places).map(|(a, b)| a - b).sum();
                let sums = windows
                    .sums
                    .tally
                    .timed()
                    .into_iter()
                    .zip(passed.tally.timed().into_iter().zip(before.tally.timed()));
                sums.for_each(|(sum, (now, before))| *sum += *now - *before);
                windows.sums.work.resize(now.work.len(), 0);
                windows.sums.starts.resize(now.starts.len(), 0);
                let add = |sums: &mut [u64], now: &[u64], before: &[u64]| {
                    sums.iter_mut().zip(now.iter().zip(before)).for_each(|(s, (a, b))| *s += a - b);
                };
                add(&mut windows.sums.places, &now.places, &before.places);
                add(&mut windows.sums.work, &now.work, &before.work);
                add(&mut windows.sums.starts, &now.starts, &before.starts);
                let timed = now.tally.timed - windows.before.tally.timed;
                let cycles = places as f64 / f64::from(self.core.retire.width);
                windows.sampler.windows.push((cycles, timed as f64));
            }
        }
        if let Some(windows) = &mut self.windows {
            windows.before = now;
        }
    }

    /// Timing starts again on an empty pipeline.
    pub(super) fn refill(&mut self) {
        self.begin();
        self.retire_place = 0;
    }

    /// Do the instructions that come get cycles?
    pub(super) fn times(&self) -> bool {
        self.windows.as_ref().is_none_or(|w| w.sampler.phase != Phase::Between)
    }

    /// How it was sampled, if it was.
    pub fn sampled(&self) -> Option<Sample> {
        self.windows.as_ref().map(|w| w.sampler.sample(self.tally.instructions))
    }

    /// A straight run of code that is not timed: what caches and predictors
    /// learn of it, and what of it is counted all the same.
    pub(super) fn warm(&mut self, first: u32, count: u32, taken: bool, next: u32, accesses: &[Access]) {
        let code = self.code.clone();
        let mut at = 0;
        let now = self.calendar.now();
        for n in first..first + count {
            let inst = &code.insts[n as usize];
            if inst.bytes == 0 {
                continue;
            }
            self.tally.instructions += 1;
            self.front.warm(inst.addr + u32::from(inst.bytes) - 1, now, &mut self.memory);
            let pc = inst.addr >> self.pc_shift;
            let (loads, stores) = (usize::from(inst.parts.loads), usize::from(inst.parts.stores));
            for (k, access) in accesses.iter().skip(at).take(loads + stores).enumerate() {
                let last = access.addr.wrapping_add(access.bytes - 1);
                self.memory.data(pc, access.addr, now, k >= loads);
                if self.memory.line(last) != self.memory.line(access.addr) {
                    self.memory.data(pc, last, now, k >= loads);
                }
            }
            self.tally.loads += loads as u64;
            self.tally.stores += stores as u64;
            at += loads + stores;
            if inst.jump != Jump::No && n + 1 == first + count {
                self.next = next;
                self.judge(n, taken);
            }
        }
    }

    /// Sums over windows, times all instructions over theirs.
    pub(super) fn scaled(&self, sums: &Marks) -> Marks {
        let (all, timed) = (self.tally.instructions, sums.tally.timed.max(1));
        let scale = |n: u64| (u128::from(n) * u128::from(all) / u128::from(timed)) as u64;
        let mut out = Marks { tally: self.marks().tally, ..sums.clone() };
        let mut from = sums.tally;
        for (to, from) in out.tally.timed().into_iter().zip(from.timed()) {
            *to = scale(*from);
        }
        out.places.iter_mut().chain(&mut out.work).chain(&mut out.starts).for_each(|n| *n = scale(*n));
        // All places of whole cycles: what rounding lost is in the base.
        let width = u64::from(self.core.retire.width);
        let places: u64 = out.places.iter().sum();
        out.tally.cycles = places.div_ceil(width);
        out.places[Cause::Base as usize] += out.tally.cycles * width - places;
        out
    }
}
