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
    /// Instructions are selected for throughput (few issue slots) and not for latency, which
    /// independent work hides. Which is better depends on the machine.
    pub throughput: bool,
    /// For a cipher that is to take the same time for all secrets: selections are never made branches, whatever
    /// the machine file says, and no function gets an instruction whose time varies with values unless it needs one.
    pub constant_time: bool,
    /// Loops are left as they stand: neither prologue nor epilogue.
    pub plain_loops: bool,
    /// Most instructions in a bundle of straight code; 0: as many as fit. Small bundles leave smaller
    /// gaps at the ends of fetch packets.
    pub at_once: usize,
    /// The exported function whose loops get a full search. Loops of others are pipelined without a
    /// search for a cluster assignment. None means every function.
    pub focus: Option<String>,
    /// The exported function whose loops get a full search, and those of all that it calls; the focus
    /// has its tables copied as well. None means every function.
    pub searched: Option<String>,
    /// Exported functions that run. Loops of what none of them reaches take the first schedule that is found.
    /// Empty: all run.
    pub called: Vec<String>,
    /// Only the longest loop of the focus gets a full search: in a jammed function the others process
    /// the rest of a message.
    pub longest: bool,
    /// The search stops at the first schedule, and does not shorten it: for comparing variants.
    pub unrefined: bool,
    /// No loop gets a full search, whatever is the focus: for comparing variants.
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
    /// Kept schedules, taken instead of a search.
    pub kept_schedules: Vec<KeptSchedule>,
    /// A longer search than usual, for schedules to keep.
    pub search: Option<Search>,
    /// Every schedule that is checked is also put here.
    pub witness: Option<Witness>,
    /// Budget of a search, as a multiple of the usual one; 0 is 1.
    pub patience: u32,
}
