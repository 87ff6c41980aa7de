//! How code is to be generated.

use ciphermill_pipeline::Search;
use ciphermill_program::exact::Answer;
use ciphermill_program::kept_schedules::KeptSchedule;
use ciphermill_schedule::verified::Witness;

/// How to generate code.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// 0: no scheduling; 1 and up: both schedules and filled delay slots.
    pub level: u8,
    /// Every WebAssembly trap happens as specified: accesses are checked.
    pub strict_traps: bool,
    /// `(exported function, parameter index, bytes)`: parameters that are
    /// always multiples of a power of two. The caller promises it; see
    /// [`ciphermill_select::expand::AddressFacts`] for what it is used for.
    pub aligned_params: Vec<(String, usize, u32)>,
    /// What `aligned_params` promises holds for words too: an access that does
    /// not say so itself is made as one where the promise shows it to be aligned.
    pub word_buffers: bool,
    /// Much independent work hides latency: code with fewer slots is better even
    /// if it takes longer. Which of the two is better depends on the machine.
    pub throughput: bool,
    /// Selections are never made branches, whatever the machine file says: a cipher that is
    /// to take the same time for all secrets is compiled so.
    pub straight_selects: bool,
    /// Loops are left as they stand: neither prologue nor epilogue.
    pub plain_loops: bool,
    /// Most instructions of straight code that issue together; 0: as many as fit. Fewer
    /// leave fewer bundles that do not fit into what is left of a fetch packet.
    pub at_once: usize,
    /// The exported function that all effort goes into: loops of others are
    /// pipelined without a search for the best division between clusters.
    /// Without one every function is meant.
    pub focus: Option<String>,
    /// Of the loops of the focus only the longest is searched with all effort: where
    /// blocks are carried together, the others do what is left of a message.
    pub longest: bool,
    /// Pipelines are searched for with all effort, but what is found is not shortened:
    /// for comparing forms of a program, too.
    pub unrefined: bool,
    /// No loop is searched with all effort, whatever is the focus: for comparing
    /// forms of a program before the best is compiled.
    pub quick: bool,
    /// `(exported function, parameter index, modulus, residue)`: where buffers
    /// stand in memory, modulo a power of two. Speed depends on it where memory has
    /// several blocks, and the result on a machine whose loads put base and index
    /// side by side ([`aligned`]).
    pub placed_params: Vec<(String, usize, u32, u32)>,
    /// `(exported function, number)`: so many of its first parameters point to
    /// buffers that never overlap. The caller promises it; see [`provenance`]. It
    /// counts for functions that the module does not call itself.
    pub buffers: Vec<(String, usize)>,
    /// Pipelined loops are also written out as problems for an exact scheduler;
    /// here are its answers so far, in the order of those problems.
    pub exact: Option<Vec<Answer>>,
    /// Schedules of some loops that were found before: taken instead of a search.
    pub kept_schedules: Vec<KeptSchedule>,
    /// A longer search for schedules than usual, which are written down.
    pub search: Option<Search>,
    /// Every schedule that is checked is also put here.
    pub witness: Option<Witness>,
    /// Pipelines are searched for with so many times the usual budget; 0 is 1.
    pub patience: u32,
}
