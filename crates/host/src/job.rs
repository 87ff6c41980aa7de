//! What is asked, what is answered, and why there may be no answer.

use crate::counters::{Event, Reading};
use serde::{Deserialize, Serialize};

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
    /// Cycles a second, estimated before and after; see [`crate::clock::estimated_hz`].
    pub clock_hz: Vec<f64>,
}
