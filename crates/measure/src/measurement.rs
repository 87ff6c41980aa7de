//! The measurement as it leaves the core: the JSON contract, field by field.
//!
//! Names, units and meaning are promised to programs outside; add to them
//! freely, rename nothing. All ratios are fractions, all sizes bytes, all
//! times cycles of the simulated machine. A ratio is `null` where the machine
//! has nothing to count (no cache, no predictor).

use crate::circuits::LoopCircuit;
use crate::hints::Wrong;
use crate::messages::Message;
use crate::pipelining::Step;
use crate::request::Goal;
use crate::resource::{Class, Share};
use crate::sizes::OfDirection;
use crate::steady::Lengths;
use crate::view::Stages;
use ciphermill_audit::Kind;
use ciphermill_program::exact::Question;
use serde::Serialize;
use std::collections::BTreeMap;

/// What one cipher did on one machine.
#[derive(Clone, Debug, Serialize)]
pub struct Measurement {
    pub cipher: String,
    pub variant: String,
    pub direction: &'static str,
    pub key_bits: u32,
    /// Message length; for a key set-up, the key's.
    pub bytes: u32,
    /// What `cycles_per_block` counts: block, key, or keystream made at once.
    pub block_bytes: u32,
    pub machine: String,
    pub with: Vec<String>,
    pub without: Vec<String>,
    pub set: Vec<String>,
    pub clock_mhz: f64,
    pub blocks: &'static str,
    /// Independent blocks carried through the code together.
    pub jam: u32,
    /// Copies of the block loop's body in one iteration.
    pub unroll: u32,
    /// What the compiler strove for.
    pub optimise: Goal,
    /// Buffers are read and written as words although the C source reads bytes.
    pub aligned: bool,
    /// The context's address stands in the code.
    #[serde(rename = "static")]
    pub fixed: bool,
    /// Results and memory equalled the reference interpreter's, and the
    /// official vectors passed on that module.
    pub verified: bool,
    /// Bytes of the message whose output was compared: all of them, or where a
    /// message in pieces is sampled those of the first.
    pub verified_bytes: u32,
    /// Why not, when not.
    pub failure: Option<String>,
    /// What the module states of the alignment of accesses and is not so, on machines where it matters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub misaligned: Option<Wrong>,
    /// For the whole message, call and return included.
    pub cycles: u64,
    /// Steady state: the slope between two message lengths, in passes over
    /// what has been processed before.
    pub cycles_per_block: f64,
    /// Which passes that was taken from.
    pub steady: Lengths,
    /// The same of a key set-up, by its own name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cycles_per_keysetup: Option<f64>,
    /// Cycles of short messages as a whole; for what ends a message with a digest or a tag.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<Message>,
    pub cycles_per_byte: f64,
    pub mbit_per_s: f64,
    pub ns_per_byte: f64,
    /// Null where the machine file says no power.
    pub nj_per_byte: Option<f64>,
    pub instructions: u64,
    pub uops: u64,
    /// Cycles per instruction.
    pub cpi: f64,
    /// Micro-operations per cycle.
    pub ilp: f64,
    /// Counters under the vendor's names; empty where the machine names none.
    pub events: BTreeMap<String, u64>,
    pub metrics: Metrics,
    /// Set when only windows of the message were timed: how many, and half the
    /// 95 % confidence interval of everything that has to do with cycles, as
    /// a part of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling: Option<ciphermill_ooo::Sample>,
    /// Cycles per instruction by cause, which sum to `cpi`; empty where the
    /// machine does not schedule at run time.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub cpi_stack: BTreeMap<&'static str, f64>,
    /// Cycles by what they went to; they sum to `cycles`.
    pub breakdown: Breakdown,
    pub bounds: Bounds,
    /// Software-pipelined loops of the functions that ran.
    pub loops: Vec<Loop>,
    /// Their other loops, and why these are not.
    pub loops_not_pipelined: Vec<NotPipelined>,
    /// How long variants and schedules were searched for.
    pub search: Searched,
    /// The micro-operations that the request's `trace` named, in program order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<Vec<Stages>>,
    /// No branch, address or time of an instruction depends on key, IV or message in the
    /// machine code; null: not known (`leaks.unknown` says why).
    pub constant_time: Option<bool>,
    pub leaks: Leaks,
    pub bottleneck: &'static str,
    pub why: String,
    pub code_bytes: u64,
    /// Of all functions of the module: both directions, all modes and the key set-up.
    pub code_bytes_total: u64,
    /// What the cipher keeps of a key between calls.
    pub context_bytes: u32,
    /// Cycles of the key set-up before the message, with that of the IV where there is one, of the same
    /// program. Of the direction `keysetup` what `cycles_per_block` says.
    pub keysetup_cycles: f64,
    pub table_bytes: u64,
    /// Constant data of the whole cipher: both directions and key set-up.
    pub cipher_table_bytes: u64,
    pub stack_bytes: u64,
    /// The same of each direction that the module has, key set-up last.
    pub sizes: Vec<OfDirection>,
    pub provenance: Provenance,
}

/// Fractions derived from the counters.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Metrics {
    pub l1d_hit: Option<f64>,
    pub l1i_hit: Option<f64>,
    pub l2_hit: Option<f64>,
    /// Branches, jumps, calls and returns among instructions.
    pub branch_ratio: f64,
    /// Conditional branches guessed right among all of them.
    pub prediction_rate: Option<f64>,
    /// Conditional branches guessed wrong among instructions.
    pub mispredict_ratio: Option<f64>,
    /// Cycles in which nothing issued.
    pub stall_ratio: f64,
    /// Work thrown away after a wrong guess.
    pub wasted_work: f64,
    /// Instructions that serve table lookups: that cut out, scale and add the
    /// index, and load.
    pub lookup_share: f64,
    /// Issue slots that such instructions take, of all slots of all cycles.
    pub lookup_slot_share: f64,
    /// Cycles that go to table lookups: each cycle is divided evenly among the
    /// instructions that issue in it, a wait for a table's entry counts whole.
    /// Null where instructions overlap.
    pub lookup_cycle_share: Option<f64>,
    /// Spills, reloads, saves and moves of the register allocator.
    pub overhead_share: f64,
    pub load_share: f64,
    pub store_share: f64,
    /// On machines with an out-of-order core, where `l1d_hit`, `l1i_hit` and
    /// `l2_hit` are one less lines brought in per instruction: misses per access.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub l1d_miss_ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub l2_miss_ratio: Option<f64>,
    /// Misses, and wrong guesses, per thousand instructions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub l1d_mpki: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub l2_mpki: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch_mpki: Option<f64>,
    /// Of the micro-operations that started, those of a wrong path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wrong_path_share: Option<f64>,
}

/// Cycles of the message by cause.
#[derive(Clone, Debug, Serialize)]
pub struct Breakdown {
    pub issue: u64,
    pub load_wait: u64,
    pub operand_wait: u64,
    pub unit: u64,
    pub branch: u64,
    pub icache: u64,
    pub dcache: u64,
    pub window: u64,
    /// Accesses of one cycle that met in a memory bank.
    pub bank: u64,
    /// Registers that crossed between clusters in the cycle after their write.
    pub cross: u64,
    /// Machines with a core that schedules at run time: instructions came late.
    #[serde(skip_serializing_if = "none")]
    pub frontend: u64,
    /// There: reorder buffer, stations or buffers were full.
    #[serde(skip_serializing_if = "none")]
    pub full: u64,
}

fn none(n: &u64) -> bool {
    *n == 0
}

/// Lower bounds in cycles per block.
#[derive(Clone, Debug, Serialize)]
pub struct Bounds {
    /// The executed instructions on the machine's issue slots and units.
    pub resource: f64,
    /// From one block to the next along the longest chain of dependences.
    pub recurrence: f64,
    /// One block alone, on a machine of unlimited width: the longest chain
    /// from its words in registers to those of the result (for a key set-up,
    /// from the key to the context; for a stream, from one state to the next
    /// and to the keystream).
    pub critical_path: f64,
    /// The larger of `resource` and `recurrence`.
    pub lower: f64,
    /// Loops of one block whose longest recurrence circuit goes through memory: what each adds to
    /// `recurrence` where that is made of them, with the accesses.
    #[serde(rename = "rounds")]
    pub circuits: Vec<LoopCircuit>,
    /// What the resource bound was chosen from: for each set of units that
    /// instructions choose from, their cycles per block.
    pub classes: Vec<Class>,
    /// Cycles per block that each unit, and each path between clusters or to
    /// memory, is taken; empty where the hardware chooses the unit.
    pub units: Vec<Share>,
}

/// Where secrets decide the time of the machine code, set-up included.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Leaks {
    /// Instructions where they do, and by kind (as `audit --on` names them); no kinds
    /// where nothing could be followed.
    pub places: u32,
    pub kinds: BTreeMap<Kind, u32>,
    /// Length of the message that was followed.
    pub bytes: u32,
    /// Why nothing is known where no place was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
}

impl Leaks {
    /// The verdict.
    pub fn constant_time(&self) -> Option<bool> {
        match (self.places, &self.unknown) {
            (0, Some(_)) => None,
            (places, _) => Some(places == 0),
        }
    }
}

/// A software-pipelined loop.
#[derive(Clone, Debug, Serialize)]
pub struct Loop {
    pub ii: u32,
    pub res_mii: u32,
    pub rec_mii: u32,
    pub stages: u32,
    pub proved_optimal: bool,
    /// No schedule of a smaller II is possible: the greatest of its bounds (units, recurrence circuits,
    /// both together, the branch), or what an exact scheduler proved. The gap to `ii` is open.
    #[serde(rename = "least")]
    pub lower_bound: u32,
    /// The kind of proof of `least`: `resources`, `circuit`, `joint`, or `solver`, an exact scheduler's
    /// word; `none` where it is 1 or was not proved.
    pub certificate: &'static str,
    /// Why no smaller II is possible, in words; empty with `solver` and `none`.
    pub because: String,
    /// It has a kept schedule, which an earlier, longer search has found.
    #[serde(rename = "recorded")]
    pub kept_schedule: bool,
    /// What an exact scheduler was asked, and its word.
    pub asked: Vec<Question>,
    pub function: String,
    /// Number of the block in its function that the iterations run in.
    pub block: u32,
    /// A recurrence circuit that takes `rec_mii` cycles an iteration.
    #[serde(rename = "round")]
    pub circuit: Vec<Step>,
}

/// A loop that is not software-pipelined.
#[derive(Clone, Debug, Serialize)]
pub struct NotPipelined {
    pub function: String,
    /// Numbers of its blocks in the function.
    pub blocks: Vec<u32>,
    /// `machine`, `level`, `size`, `calls`, `inner_loop`, `blocks`, `form` or `no_schedule`.
    pub reason: &'static str,
    pub why: String,
}

/// A search of limited length: the best that it found is what is measured.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Searched {
    /// Its budget, as a multiple of the usual one.
    pub patience: u32,
    /// The budget was spent before all was tried: with more patience it may get faster.
    pub spent: bool,
}

/// Where the numbers come from, and what is needed to get them again.
#[derive(Clone, Debug, Serialize)]
pub struct Provenance {
    /// `simulated`: cycles of a model, never of this computer.
    pub kind: &'static str,
    pub ciphermill: &'static str,
    /// SHA-256 of the module.
    pub module: String,
    /// SHA-256 of the machine file, its parents, extensions, rules, settings.
    pub machine: String,
    /// SHA-256 of everything else asked for.
    pub settings: String,
    /// Official test cases passed by this module; null: there are none.
    pub vectors: Option<u32>,
    /// Bytes; every buffer starts on a multiple of it.
    pub buffer_align: u32,
    pub level: u8,
    /// Compiler, flags and sources of the module.
    pub origin: serde_json::Value,
}
