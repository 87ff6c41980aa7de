//! What became of each loop of a program: how it was software-pipelined, or why not.

use crate::exact;
use crate::search_log::SearchLog;
use ciphermill_bounds::{Bound, model::Loop};
use ciphermill_machine::InstrId;
use std::sync::Arc;

/// How a loop was software-pipelined, all in cycles.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PipelinedLoop {
    /// An index into [`crate::Program::funcs`].
    pub func: u32,
    /// Initiation interval: an iteration begins every so many cycles.
    pub ii: u32,
    /// ResMII and RecMII: lower bounds on the II by units and by recurrence circuits. A loop whose
    /// `ii` is the larger of the two cannot be scheduled better.
    pub res_mii: u32,
    pub rec_mii: u32,
    /// Iterations under way at once.
    pub stages: u32,
    /// The longest chain of dependences of one iteration: an II below it takes more than one stage.
    pub path: u32,
    /// No schedule has a smaller II, by one of `bounds` or an exact scheduler's proof; 0 when neither
    /// was asked.
    pub lower_bound: u32,
    /// The bounds that take little time, each with its certificate.
    pub bounds: Vec<Bound>,
    /// What they are bounds of; none where they were not asked.
    pub plain: Option<Arc<Loop>>,
    /// The loop with the operations that were scheduled, on their clusters.
    pub divided: Option<Arc<Loop>>,
    /// Registers in use in the fullest register file, in percent, mean over the cycles of the kernel;
    /// 0 where not counted.
    pub register_use: u32,
    /// It has a kept schedule ([`crate::kept_schedules`]).
    pub kept_schedule: bool,
    /// What the search for its schedule did; none where that is a kept one.
    pub search: Option<Arc<SearchLog>>,
    /// What an exact scheduler was asked about it.
    pub asked: Vec<exact::Question>,
    /// The block that its iterations run in, an index into the function's.
    pub block: u32,
    /// A recurrence circuit that takes `rec_mii` cycles an iteration; empty where none was found.
    pub circuit: Vec<CircuitStep>,
}

/// An instruction of a recurrence circuit, with its dependence to the next one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CircuitStep {
    pub instr: InstrId,
    /// Offset in the WebAssembly module; 0 for none.
    pub loc: u32,
    /// Latency of the dependence in cycles, and its distance in iterations.
    pub cycles: u32,
    pub distance: u32,
    /// It is a dependence through memory that the code generator cannot rule out; otherwise the next
    /// instruction reads this one's result.
    pub memory: bool,
}

/// A loop that was not software-pipelined.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlainLoop {
    /// An index into [`crate::Program::funcs`].
    pub func: u32,
    /// Its blocks, indices into the function's.
    pub blocks: Vec<u32>,
    /// Why not, as a word for programs: `machine`, `level`, `size`, `calls`, `inner_loop`, `blocks`,
    /// `form` or `no_schedule`.
    pub reason: &'static str,
    /// And in words, to follow "because".
    pub why: String,
}
