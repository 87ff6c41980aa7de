//! What became of each loop of a program: how it was software-pipelined, or why not.

use crate::exact;
use ciphermill_machine::InstrId;

/// How a loop was software-pipelined, all in cycles.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PipelinedLoop {
    /// An index into [`crate::Program::funcs`].
    pub func: u32,
    /// Initiation interval: an iteration begins every so many cycles.
    pub ii: u32,
    /// The least that units and that values carried round allow. A loop whose
    /// `ii` is the larger of the two cannot be scheduled better.
    pub res_mii: u32,
    pub rec_mii: u32,
    /// Iterations under way at once.
    pub stages: u32,
    /// There is no schedule below this II, because of what ways round and units
    /// need together or by an exact scheduler's proof; 0 when neither was asked.
    pub least: u32,
    /// Hundredths of the registers that have values, the mean of all cycles, in the register
    /// file where they are most; 0 where nobody counted.
    pub held: u32,
    /// Its schedule was not searched for but taken from a record ([`crate::recorded`]).
    pub recorded: bool,
    /// What an exact scheduler was asked about it.
    pub asked: Vec<exact::Question>,
    /// The block that its iterations run in, an index into the function's.
    pub block: u32,
    /// A way round that takes `rec_mii` cycles an iteration; empty where none was found.
    pub round: Vec<RoundStep>,
}

/// An instruction of a way round a loop, and what the next one waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RoundStep {
    pub instr: InstrId,
    /// Offset in the WebAssembly module; 0 for none.
    pub loc: u32,
    /// Cycles until the next instruction of the way may start, and iterations later that it is meant.
    pub cycles: u32,
    pub distance: u32,
    /// The two are accesses to memory of which the code generator cannot tell that they never
    /// touch the same byte; otherwise the next reads what this one makes.
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
