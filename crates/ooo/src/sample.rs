//! Sampling: a long run of which only windows are timed.
//!
//! Between the windows caches, translation buffers and predictors see every
//! access and every branch, so that they know what they would know (functional
//! warming; Wunderlich et al., SMARTS, ISCA 2003); nothing is given any cycles.
//! Windows lie at equal distances in instructions. Before each, some instructions are timed
//! without being counted, which fills the window of the core.
//!
//! What is counted while warming is exact: instructions, branches and wrong
//! guesses, misses and lines brought in. Everything that has to do with cycles
//! is the sum over the windows times all instructions over theirs. The cycles
//! per instruction of the windows are taken as a sample of independent ones;
//! the confidence interval is the mean's, for 95 % of such samples.
//!
//! Windows may begin with the run, or after a part of it that is timed as a whole ([`Sampler::after`]); what is
//! extrapolated is then the rest.

use serde::Serialize;

/// Lengths in instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sampling {
    /// From the start of a window to that of the next.
    pub period: u64,
    /// Timed before each window and not counted.
    pub warm: u64,
    pub window: u64,
}

/// How a run was sampled.
#[derive(Clone, Copy, Default, PartialEq, Debug, Serialize)]
pub struct Sample {
    pub windows: u64,
    /// Instructions of all windows and of what was timed before the first, and of the run.
    pub timed: u64,
    pub instructions: u64,
    /// Half the width of the 95 % confidence interval of the cycles, as a
    /// part of them.
    pub interval: f64,
}

/// What a run is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Warming, untimed.
    Between,
    /// Timed, not counted.
    Before,
    /// Timed and counted.
    Within,
}

/// Says what is due, instruction by instruction.
#[derive(Clone, Debug)]
pub struct Sampler {
    plan: Sampling,
    /// Instructions so far in this period.
    at: u64,
    pub phase: Phase,
    /// Cycles and instructions of each window so far.
    pub windows: Vec<(f64, f64)>,
}

impl Sampler {
    pub fn new(plan: Sampling) -> Sampler {
        let plan = Sampling { period: plan.period.max(plan.warm + plan.window + 1), ..plan };
        Sampler { at: plan.period / 2, plan, phase: Phase::Between, windows: Vec::new() }
    }

    /// The same after what was timed as a whole: the first window comes at once.
    pub fn after(plan: Sampling) -> Sampler {
        let sampler = Sampler::new(plan);
        let at = sampler.plan.period - (sampler.plan.warm + sampler.plan.window);
        Sampler { at, ..sampler }
    }

    /// So many instructions have passed: the phase that the next are in, if it
    /// is another one.
    #[inline(always)]
    pub fn pass(&mut self, instructions: u64) -> Option<Phase> {
        self.at += instructions;
        let left = self.plan.period - (self.plan.warm + self.plan.window);
        let next = match self.phase {
            Phase::Between if self.at >= left => Phase::Before,
            Phase::Before if self.at >= left + self.plan.warm => Phase::Within,
            Phase::Within if self.at >= self.plan.period => Phase::Between,
            _ => return None,
        };
        if next == Phase::Between {
            self.at -= self.plan.period;
        }
        self.phase = next;
        Some(next)
    }

    /// The sample, of a run of so many instructions of which the first took so many cycles.
    ///
    /// With fewer than two windows nothing is known of how they differ: the interval is then all of what was not timed.
    pub fn sample(&self, instructions: u64, whole: (f64, u64)) -> Sample {
        let n = self.windows.len() as f64;
        let timed: f64 = self.windows.iter().map(|w| w.1).sum();
        let cycles: f64 = self.windows.iter().map(|w| w.0).sum();
        let ratio = if timed > 0.0 { cycles / timed } else { 0.0 };
        // Variance of a ratio of sums (Cochran, Sampling Techniques, 2.11).
        let spread: f64 = self.windows.iter().map(|w| (w.0 - ratio * w.1).powi(2)).sum();
        let mean = timed / n;
        let error = if n > 1.0 { (spread / (n - 1.0) / n).sqrt() / mean } else { ratio / 1.96 };
        let left = (instructions - whole.1) as f64;
        let all = whole.0 + ratio * left;
        Sample {
            windows: self.windows.len() as u64,
            timed: whole.1 + timed as u64,
            instructions,
            interval: if all > 0.0 { 1.96 * error * left / all } else { 0.0 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_lie_at_equal_distances() {
        let mut s = Sampler::new(Sampling { period: 100, warm: 10, window: 20 });
        let mut changes = Vec::new();
        for n in 1..=250u64 {
            if let Some(phase) = s.pass(1) {
                changes.push((n, phase));
            }
        }
        use Phase::{Before, Between, Within};
        let expected = [
            (20, Before),
            (30, Within),
            (50, Between),
            (120, Before),
            (130, Within),
            (150, Between),
            (220, Before),
            (230, Within),
            (250, Between),
        ];
        assert_eq!(changes, expected);
    }

    #[test]
    fn the_interval_is_that_of_the_mean() {
        let mut s = Sampler::new(Sampling { period: 100, warm: 10, window: 20 });
        s.windows = vec![(10.0, 20.0), (12.0, 20.0), (11.0, 20.0), (11.0, 20.0)];
        // Mean 0.55; deviations -1 1 0 0: variance 2/3, of the mean 1/6; 0.408 / 20 / 0.55.
        let sample = s.sample(1000, (0.0, 0));
        assert_eq!((sample.windows, sample.timed), (4, 80));
        assert!((sample.interval - 1.96 * (1.0f64 / 6.0).sqrt() / 20.0 / 0.55).abs() < 1e-12);
        s.windows = vec![(10.0, 20.0); 4];
        assert_eq!(s.sample(1000, (0.0, 0)).interval, 0.0);
    }

    #[test]
    fn what_was_timed_as_a_whole_is_sure() {
        let mut s = Sampler::after(Sampling { period: 100, warm: 10, window: 20 });
        assert_eq!(s.pass(1), Some(Phase::Before));
        s.windows = vec![(10.0, 20.0), (12.0, 20.0), (11.0, 20.0), (11.0, 20.0)];
        let alone = s.sample(1000, (0.0, 0));
        // Of 550 cycles half are sure.
        let half = s.sample(1000, (275.0, 500));
        assert_eq!((half.windows, half.timed), (4, 580));
        assert!((half.interval - alone.interval / 2.0).abs() < 1e-12);
        s.windows = vec![(10.0, 20.0)];
        assert_eq!(s.sample(1000, (250.0, 500)).interval, 0.5);
    }
}
