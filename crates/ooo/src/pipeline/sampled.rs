//! Sampled runs: what is done between the windows, and how they are summed.

use super::marks::Marks;
use super::question::Question;
use super::state::{Access, Later, Pipeline, Windows};
use crate::code::Jump;
use crate::events::Cause;
use crate::sample::{Phase, Sample, Sampler, Sampling};

/// Instructions after which it is asked whether the memo knew them. The first so many since a reset are not asked
/// about: much is new there on any core, and one that comes back to its states has done so after them.
const ASKED: u64 = 1 << 19;

/// Of these instructions the part that may have been worked out. Working out takes some twenty times as long as
/// recalling, so beyond this it takes most of the time, and a sample is quicker.
const NEW: f64 = 0.08;

impl Pipeline {
    /// Time only windows of what runs from now on; None: everything.
    pub fn sample(&mut self, sampling: Option<Sampling>) {
        self.later = None;
        self.windows = sampling.map(|s| Box::new(Windows::new(Sampler::new(s), Marks::default())));
    }

    /// Time only windows of what runs after a while from each reset on, where the core does little that it has done
    /// before. What the memo knows is quicker than a sample, and exact.
    pub fn sample_what_is_new(&mut self, sampling: Sampling) {
        self.windows = None;
        self.later = Some(Later { sampling, at: 0, worked: 0 });
        self.begin_again();
    }

    /// Do windows begin here?
    #[cold]
    fn ask_later(&mut self) {
        let Some(later) = &mut self.later else { return };
        let first = later.at == ASKED;
        let new = later.worked as f64 > NEW * ASKED as f64;
        (later.at, later.worked) = (self.tally.instructions + ASKED, 0);
        if new && !first && self.chains.is_none() && self.log.is_none() {
            let sampler = Sampler::after(later.sampling);
            self.settle();
            self.windows = Some(Box::new(Windows::new(sampler, self.marks())));
        }
    }

    /// The same as before the first window.
    pub(super) fn begin_again(&mut self) {
        if let Some(later) = &mut self.later {
            (later.at, later.worked) = (ASKED, 0);
            self.windows = None;
        }
        if let Some(windows) = &mut self.windows {
            windows.sums = Marks::default();
            windows.sampler.windows.clear();
        }
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
        if let Some(later) = &self.later
            && self.windows.is_none()
            && self.tally.instructions >= later.at
        {
            self.ask_later();
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
        self.windows.as_ref().map(|w| {
            let places: u64 = w.whole.places.iter().sum();
            let cycles = places as f64 / f64::from(self.core.retire.width);
            w.sampler.sample(self.tally.instructions, (cycles, w.whole.tally.instructions))
        })
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
            let addr = inst.addr + u32::from(inst.bytes) - 1;
            if self.front.warm(addr, self.memory.shift()) {
                self.answer(Question::Line { addr }, now, &[]);
            }
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

    /// What was timed as a whole, and sums over windows times the other instructions over theirs.
    pub(super) fn scaled(&self, windows: &Windows) -> Marks {
        let whole = &windows.whole;
        // Before the end of the first window: as it was so far.
        let sums = if windows.sums.tally.timed > 0 { &windows.sums } else { whole };
        let (left, timed) = (self.tally.instructions - whole.tally.instructions, sums.tally.timed.max(1));
        let scale = |n: u64| (u128::from(n) * u128::from(left) / u128::from(timed)) as u64;
        let mut out = sums.clone();
        out.tally.timed().into_iter().for_each(|n| *n = scale(*n));
        out.places.iter_mut().chain(&mut out.work).chain(&mut out.starts).for_each(|n| *n = scale(*n));
        out.add(whole, 1);
        let mut counted = self.marks().tally;
        counted.timed().into_iter().zip(out.tally.timed()).for_each(|(to, n)| *to = *n);
        out.tally = counted;
        // All places of whole cycles: what rounding lost is in the base.
        let width = u64::from(self.core.retire.width);
        let places: u64 = out.places.iter().sum();
        out.tally.cycles = places.div_ceil(width);
        out.places[Cause::Base as usize] += out.tally.cycles * width - places;
        out
    }
}

impl Windows {
    fn new(sampler: Sampler, whole: Marks) -> Windows {
        Windows { sampler, before: Marks::default(), sums: Marks::default(), whole }
    }
}
