//! A cipher as native code, under this computer's own counters.
//!
//! Given a shared library made from the same C that is measured elsewhere, a
//! [`Job`] says which of its functions to call on which bytes. [`observe`] calls it once
//! and hands back what it wrote, so that the caller can check the output before
//! believing any figure; then it times the calls, and counts events over more of them,
//! one group of events after the other.
//!
//! Events are those of Linux perf ([`counters`]). Where the kernel or a hypervisor
//! gives none, the answer holds the error of each event and nothing in its place.
//! Time, the time-stamp counter and an estimate of the clock ([`clock`]) are there on
//! any x86-64; on other processors what they lack is `None`.
//!
//! Statistics, names and judgement are not made here: all samples go to the caller.
//!
//! Running foreign code cannot be made safe: a cipher that writes outside its buffers
//! may bring the process down. Callers run this in a process of its own.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod clock;
mod counters;
mod job;
mod native;

pub use job::{HostError, Job, Mode, Observation, Sample};

use native::Native;
use std::time::Instant;

/// Observe a job; request and answer are JSON.
pub fn observe_json(request: &str) -> Result<String, HostError> {
    let job: Job = serde_json::from_str(request)?;
    Ok(serde_json::to_string(&observe(&job)?)?)
}

/// Observe a job.
pub fn observe(job: &Job) -> Result<Observation, HostError> {
    if job.samples == 0 {
        return Err(HostError::Input("no samples were asked for; ask for at least 1".into()));
    }
    let mut native = Native::load(job)?;
    native.prepare();
    if job.mode == Mode::Message {
        native.call(1);
    }
    let output = native.output();
    let mut clock_hz: Vec<f64> = clock::estimated_hz().into_iter().collect();
    let calls = calls_for(&mut native, job.sample_ns);
    let mut samples = Vec::with_capacity(job.samples as usize);
    let (begin, begin_tsc) = (Instant::now(), clock::tsc());
    for _ in 0..job.samples {
        let (start, start_tsc) = (Instant::now(), clock::tsc());
        native.call(calls);
        let (end_tsc, ns) = (clock::tsc(), start.elapsed().as_nanos() as u64);
        samples.push(Sample { ns, tsc: start_tsc.zip(end_tsc).map(|(a, b)| b.wrapping_sub(a)) });
    }
    let seconds = begin.elapsed().as_secs_f64();
    let tsc_hz = begin_tsc.zip(clock::tsc()).map(|(a, b)| b.wrapping_sub(a) as f64 / seconds);
    let groups = job.groups.iter().map(|events| counters::read(events, job.samples, || native.call(calls))).collect();
    clock_hz.extend(clock::estimated_hz());
    let stable = (job.mode == Mode::Message && job.ivsetup.is_none()).then(|| native.output() == output);
    Ok(Observation { output: native::hex(&output), stable, calls, samples, groups, tsc_hz, clock_hz })
}

/// How many calls take as long as a sample should; warms everything up on the way.
fn calls_for(native: &mut Native, sample_ns: u64) -> u64 {
    let mut calls = 1_u64;
    loop {
        let start = Instant::now();
        native.call(calls);
        let ns = start.elapsed().as_nanos() as u64;
        if ns >= sample_ns || calls >= 1 << 40 {
            return calls;
        }
        // Towards the goal, but never by more than 16 at once: the first call is the slowest.
        calls = (calls * sample_ns).div_ceil(ns.max(1)).clamp(calls + 1, calls * 16);
    }
}
