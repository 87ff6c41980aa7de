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

pub mod clock;
pub mod counters;
mod native;

use counters::{Event, Reading};
use native::Native;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// Why nothing was observed.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    #[error("the request is not what this version expects: {0}")]
    Request(#[from] serde_json::Error),
    #[error("{0}")]
    Library(String),
    #[error("{0}")]
    Input(String),
}

/// What is called how.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// `driver(ctx, in, out, count)`, again and again on the same message: blocks, feedback and streams.
    Message,
    /// `setup(ctx, key, length)`, again and again.
    Keysetup,
}

/// One thing to observe. Bytes are in hexadecimal.
#[derive(Debug, Deserialize)]
pub struct Job {
    /// Path of the shared library.
    pub library: String,
    pub mode: Mode,
    /// The key set-up's name.
    pub setup: String,
    /// The IV set-up's name, for stream ciphers.
    pub ivsetup: Option<String>,
    /// The name of what processes the message.
    pub driver: String,
    pub key: String,
    pub iv: String,
    pub message: String,
    /// The driver's last argument: blocks, times or bytes.
    pub count: u32,
    /// Timed samples, and samples for each group of events.
    pub samples: u32,
    /// How long a sample is at least, in nanoseconds.
    pub sample_ns: u64,
    /// Events that are counted together, group after group.
    pub groups: Vec<Vec<Event>>,
}

/// One timed sample.
#[derive(Debug, Serialize)]
pub struct Sample {
    pub ns: u64,
    /// Ticks of the time-stamp counter, where there is one.
    pub tsc: Option<u64>,
}

/// What was seen.
#[derive(Debug, Serialize)]
pub struct Observation {
    /// What the first call wrote, in hexadecimal; empty for a key set-up.
    pub output: String,
    /// Whether the last call wrote the same; `None` where it need not (a stream goes on).
    pub stable: Option<bool>,
    /// Calls in each sample.
    pub calls: u64,
    pub samples: Vec<Sample>,
    /// For each group its readings, or why there are none.
    pub groups: Vec<Reading>,
    /// Ticks of the time-stamp counter in a second.
    pub tsc_hz: Option<f64>,
    /// Cycles a second, estimated before and after; see [`clock::estimated_hz`].
    pub clock_hz: Vec<f64>,
}

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
