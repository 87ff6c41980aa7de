//! Events of Linux perf, counted in groups.
//!
//! The events of a group are counted at the same time over the same calls, so that
//! their ratios mean something. Groups are counted one after the other, each over calls
//! of its own, which leaves the processor's few counters enough room; should the
//! kernel still have to share them out (`running` is shorter than `enabled`), the value
//! is scaled by what it missed and both times are handed on, so that the caller can say
//! so. Only user mode is counted.

use serde::{Deserialize, Serialize};

/// An event, as a request names it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Event {
    /// One of the kernel's generic hardware events.
    Hardware(Hardware),
    /// A generic cache event.
    Cache { which: Cache, op: Op, miss: bool },
    /// The processor's own: event select and unit mask as its manual gives them.
    Raw(u64),
    /// One that the kernel counts itself, hardware or not.
    Software(Software),
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hardware {
    Cycles,
    Instructions,
    Branches,
    BranchMisses,
    CacheReferences,
    CacheMisses,
    RefCycles,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cache {
    L1d,
    L1i,
    Ll,
    Dtlb,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    Read,
    Write,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Software {
    PageFaults,
    MinorFaults,
}

/// One event over one sample.
#[derive(Clone, Copy, Debug, Serialize, PartialEq)]
pub struct Count {
    /// Scaled to the whole time; `None` when the counter never ran.
    pub value: Option<f64>,
    /// Nanoseconds that it was to count, and that it did.
    pub enabled: u64,
    pub running: u64,
}

impl Count {
    /// A raw value with what the kernel says of the time it stands for.
    pub fn scaled(raw: u64, enabled: u64, running: u64) -> Self {
        let value = match running {
            0 if enabled > 0 => None,
            _ if running >= enabled => Some(raw as f64),
            _ => Some(raw as f64 * enabled as f64 / running as f64),
        };
        Count { value, enabled, running }
    }
}

/// A group's counts, or why there are none.
#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Reading {
    /// For each event its samples, or the error of the one that could not be had.
    Counts(Vec<Result<Vec<Count>, Refusal>>),
    /// The kernel lets nobody count anything.
    Refused(Refusal),
}

/// What the operating system answered.
#[derive(Clone, Debug, Serialize)]
pub struct Refusal {
    /// `errno`, where there is one.
    pub code: Option<i32>,
    pub message: String,
}

impl From<std::io::Error> for Refusal {
    fn from(error: std::io::Error) -> Self {
        Refusal { code: error.raw_os_error(), message: error.to_string() }
    }
}

/// Count a group of events over `samples` calls of `work`.
#[cfg(target_os = "linux")]
pub fn read(events: &[Event], samples: u32, mut work: impl FnMut()) -> Reading {
    use perf_event::Group;

    let mut group = match Group::new() {
        Ok(group) => group,
        Err(error) => return Reading::Refused(error.into()),
    };
    // An event that this processor lacks must not take the others with it.
    let mut counters: Vec<Result<_, Refusal>> =
        events.iter().map(|event| group.add(&builder(event)).map_err(Refusal::from)).collect();
    let mut counts: Vec<Vec<Count>> = vec![Vec::new(); events.len()];
    if counters.iter().any(Result::is_ok) {
        // Resetting sets the counters to 0 but not the times, which go on from sample to sample.
        let mut before = [0; 2];
        for _ in 0..samples {
            let taken = (|| {
                group.reset()?;
                group.enable()?;
                work();
                group.disable()?;
                group.read()
            })();
            let data = match taken {
                Ok(data) => data,
                Err(error) => return Reading::Refused(error.into()),
            };
            // Both times are of the group, all of whose counters run together or not at all.
            let now = [data.time_enabled(), data.time_running()].map(|t| t.map_or(0, |t| t.as_nanos() as u64));
            let times = [now[0].saturating_sub(before[0]), now[1].saturating_sub(before[1])];
            before = now;
            for (counter, counts) in counters.iter_mut().zip(&mut counts) {
                if let Ok(counter) = counter
                    && let Some(entry) = data.get(counter)
                {
                    counts.push(Count::scaled(entry.value(), times[0], times[1]));
                }
            }
        }
    }
    Reading::Counts(counters.into_iter().zip(counts).map(|(counter, counts)| counter.map(|_| counts)).collect())
}

#[cfg(not(target_os = "linux"))]
pub fn read(_events: &[Event], _samples: u32, _work: impl FnMut()) -> Reading {
    Reading::Refused(Refusal { code: None, message: "only Linux has perf events".into() })
}

#[cfg(target_os = "linux")]
fn builder(event: &Event) -> perf_event::Builder<'static> {
    use perf_event::Builder;
    use perf_event::events::{self, CacheId, CacheOp, CacheResult};

    match event {
        Event::Hardware(event) => Builder::new(match event {
            Hardware::Cycles => events::Hardware::CPU_CYCLES,
            Hardware::Instructions => events::Hardware::INSTRUCTIONS,
            Hardware::Branches => events::Hardware::BRANCH_INSTRUCTIONS,
            Hardware::BranchMisses => events::Hardware::BRANCH_MISSES,
            Hardware::CacheReferences => events::Hardware::CACHE_REFERENCES,
            Hardware::CacheMisses => events::Hardware::CACHE_MISSES,
            Hardware::RefCycles => events::Hardware::REF_CPU_CYCLES,
        }),
        Event::Cache { which, op, miss } => Builder::new(events::Cache {
            which: match which {
                Cache::L1d => CacheId::L1D,
                Cache::L1i => CacheId::L1I,
                Cache::Ll => CacheId::LL,
                Cache::Dtlb => CacheId::DTLB,
            },
            operation: match op {
                Op::Read => CacheOp::READ,
                Op::Write => CacheOp::WRITE,
            },
            result: if *miss { CacheResult::MISS } else { CacheResult::ACCESS },
        }),
        Event::Raw(config) => Builder::new(events::Raw::new(*config)),
        Event::Software(event) => Builder::new(match event {
            Software::MinorFaults => events::Software::PAGE_FAULTS_MIN,
            Software::PageFaults => events::Software::PAGE_FAULTS,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_counters_are_scaled() {
        assert_eq!(Count::scaled(100, 10, 10).value, Some(100.0));
        assert_eq!(Count::scaled(100, 10, 4).value, Some(250.0));
        assert_eq!(Count::scaled(0, 10, 0).value, None);
        // Over work so short that no time passed, nothing was missed.
        assert_eq!(Count::scaled(7, 0, 0).value, Some(7.0));
    }

    /// The kernel's own events are there in most containers too; where they are not, the
    /// refusal says why and no number stands in for one.
    #[test]
    #[cfg(target_os = "linux")]
    fn one_missing_event_does_not_take_the_others_with_it() {
        let events = [
            Event::Software(Software::PageFaults),
            // No processor has an event of this number.
            Event::Cache { which: Cache::L1i, op: Op::Write, miss: false },
            Event::Software(Software::MinorFaults),
        ];
        let begin = std::time::Instant::now();
        match read(&events, 3, || drop(std::hint::black_box(vec![1_u8; 1 << 20]))) {
            Reading::Refused(refusal) => assert!(!refusal.message.is_empty()),
            Reading::Counts(counts) => {
                assert_eq!(counts.len(), 3);
                assert_eq!(counts[0].as_ref().unwrap().len(), 3);
                assert!(counts[1].as_ref().is_err_and(|refusal| refusal.code.is_some()));
                // A megabyte that nobody had touched takes faults in every sample.
                let faults = counts[2].as_ref().unwrap();
                assert!(faults.iter().all(|c| c.value.is_some_and(|n| n > 0.0)), "{faults:?}");
                // Each sample has times of its own, not those since the first.
                assert!(faults.iter().all(|c| c.enabled > 0 && c.running <= c.enabled), "{faults:?}");
                let total: u64 = faults.iter().map(|c| c.enabled).sum();
                assert!(u128::from(total) <= begin.elapsed().as_nanos(), "{faults:?}");
            }
        }
    }
}
