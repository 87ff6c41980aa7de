//! What can be asked for. Comes in as JSON from Python, so every field is
//! named as the command line names it.

use crate::shape::Kernel;
use ciphermill_codegen::{PARTS, Without};
use ciphermill_program::exact::Answer;
use ciphermill_program::kept_schedules::KeptSchedule;
use serde::{Deserialize, Serialize};

/// What the cipher does in the measured run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    Encrypt,
    Decrypt,
    /// One expansion of a key, for encryption.
    Keysetup,
    /// A stream cipher's output xored to a message.
    Keystream,
    Permute,
    /// A whole message's digest.
    Hash,
    /// A whole message's tag.
    Mac,
    /// The tag of associated data without a message.
    Authenticate,
    /// A kernel's function.
    Run,
}

impl Direction {
    /// As the command line writes it.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Encrypt => "encrypt",
            Direction::Decrypt => "decrypt",
            Direction::Keysetup => "keysetup",
            Direction::Keystream => "keystream",
            Direction::Permute => "permute",
            Direction::Hash => "hash",
            Direction::Mac => "mac",
            Direction::Authenticate => "authenticate",
            Direction::Run => "run",
        }
    }
}

/// How the blocks of a message depend on each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Blocks {
    /// Each block's input is the output of the one before (a feedback mode).
    Single,
    /// Independent blocks.
    Multi,
}

impl Blocks {
    /// As the command line writes it.
    pub fn name(self) -> &'static str {
        match self {
            Blocks::Single => "single",
            Blocks::Multi => "multi",
        }
    }
}

/// What the code generator strives for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Goal {
    /// Few cycles.
    #[default]
    Speed,
    /// Few bytes of code and of tables that the compiler itself makes.
    Size,
}

/// What the vectors said about this module, direction and key size; see
/// [`crate::vectors`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VectorReport {
    /// Test cases run.
    pub cases: u32,
    /// The first case that failed, if one did.
    pub failed: Option<String>,
}

/// A machine as text: [`ciphermill_machine`] reads no files itself.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineRequest {
    /// The machine's own file.
    pub file: TextFile,
    /// All files it may inherit from, and the rules file.
    pub library: Vec<TextFile>,
    /// All extensions that may be named.
    pub extensions: Vec<TextFile>,
    /// Names of extensions to add, in order.
    #[serde(default)]
    pub with: Vec<String>,
    /// Names of instructions or extensions to take away.
    #[serde(default)]
    pub without: Vec<String>,
    /// `PATH=VALUE` settings, in order.
    #[serde(default)]
    pub set: Vec<String>,
}

/// A file that was read by the caller.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextFile {
    /// For messages.
    pub path: String,
    pub text: String,
}

/// One measurement, fully determined.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub cipher: String,
    pub variant: String,
    pub direction: Direction,
    pub key_bits: u32,
    /// What the manifest says of a kernel; None for every other kind.
    #[serde(default)]
    pub kernel: Option<Kernel>,
    /// Length of the IV or nonce that is given; 0 for none.
    #[serde(default)]
    pub iv_bytes: u32,
    /// Bytes of a block as the cipher's manifest says; None: it has none.
    #[serde(default)]
    pub block_bytes: Option<u32>,
    pub blocks: Blocks,
    /// Steps of the reference interpreter after which a run is given up; None: some seconds.
    #[serde(default)]
    pub limit: Option<u64>,
    /// Message length; None: 4096, or the next multiple of the block.
    #[serde(default)]
    pub bytes: Option<u32>,
    pub machine: MachineRequest,
    /// Blocks carried together; None: what is best.
    #[serde(default)]
    pub jam: Option<u32>,
    /// Whether inner loops are unrolled; None: what is best.
    #[serde(default)]
    pub unroll: Option<bool>,
    /// Buffers are read and written as words where their alignment allows it, as
    /// hand-written code would; on machines that schedule at compile time they
    /// are anyway.
    #[serde(default)]
    pub aligned: bool,
    /// The context's address stands in the code; see [`crate::context`].
    #[serde(default, rename = "static")]
    pub fixed: bool,
    /// The cipher is said to take the same time for all secrets: no selection becomes a branch.
    #[serde(default)]
    pub constant_time: bool,
    /// An exact scheduler is asked about pipelined loops; what it said so far.
    #[serde(default)]
    pub exact: Option<Exact>,
    /// Schedules of loops that were found before, for any program on this machine.
    #[serde(default)]
    pub schedules: Vec<KeptSchedule>,
    /// The variants of the code that schedules kept for this very measurement were found in. Where a loop of one still
    /// takes its schedule, no other variant is tried.
    #[serde(default)]
    pub kept_in: Vec<Unrolling>,
    /// A longer search for schedules than usual, which are written down.
    #[serde(default)]
    pub search: Option<Search>,
    /// The budget of searches for variants and schedules, as a multiple of the usual one.
    #[serde(default = "once")]
    pub patience: u32,
    /// Micro-operations wanted one by one, where the core schedules at run time.
    #[serde(default)]
    pub trace: Option<Trace>,
    /// What accesses state of their alignment is believed until a run shows it to be wrong.
    #[serde(skip, default = "believed")]
    pub hints: bool,
    /// Never sample, however long the message is.
    #[serde(default)]
    pub whole: bool,
    /// None for a cipher without vectors (a user's own).
    #[serde(default)]
    pub vectors: Option<VectorReport>,
    /// Optimisation level, 0 to 2.
    #[serde(default = "full")]
    pub level: u8,
    #[serde(default)]
    pub optimise: Goal,
    /// How the module came to be (compiler, flags), for the record.
    #[serde(default)]
    pub origin: serde_json::Value,
}

/// A search for schedules of loops on clustered machines.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// Its budget, as a multiple of the usual one.
    pub times: u64,
    /// Number of the restart, from 1 on: each has other random numbers.
    #[serde(rename = "round")]
    pub restart: u64,
    /// Parts that it goes without, by their names: for measuring what each is worth.
    #[serde(default, deserialize_with = "parts")]
    pub without: Without,
}

fn parts<'d, D: serde::Deserializer<'d>>(names: D) -> Result<Without, D::Error> {
    let names = Vec::<String>::deserialize(names)?;
    names.iter().try_fold(Without::default(), |parts, name| {
        let known = || PARTS.map(|p| p.0).join(", ");
        parts.and(name).ok_or_else(|| {
            serde::de::Error::custom(format!("a search has no part {name:?}; its parts are {}", known()))
        })
    })
}

impl From<Search> for ciphermill_codegen::Search {
    fn from(search: Search) -> Self {
        let Search { times, restart, without } = search;
        Self { times, round: restart, without }
    }
}

/// Instructions whose way through the pipeline is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// Number of the first, among those that retire; None: from the middle of the run.
    #[serde(default)]
    pub first: Option<u64>,
    pub count: u32,
}

/// An unroll-and-jam variant: how the measured function's loops are transformed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unrolling {
    /// The cipher's rounds are unrolled. Otherwise they are loops, and the rest does not count.
    pub unrolled: bool,
    /// Blocks that one iteration processes together.
    pub jam: u32,
    /// Instructions are selected for throughput (few issue slots) and not for latency.
    pub throughput: bool,
    /// Only short loops are unrolled; longer ones stay, those inside unrolled ones too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub short: bool,
    /// Sums are put together so that they are there soonest.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sums: bool,
}

/// Answers hold for the loops of one unroll-and-jam variant of the program.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exact {
    /// The variant that the problems were written for; None: choose one.
    #[serde(default, rename = "form")]
    pub unrolling: Option<Unrolling>,
    #[serde(default)]
    pub answers: Vec<Answer>,
}

fn believed() -> bool {
    true
}

fn once() -> u32 {
    1
}

fn full() -> u8 {
    2
}
