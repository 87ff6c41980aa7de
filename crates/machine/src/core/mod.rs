//! A core that schedules at run time: what `[core]` and the parts of
//! `[memory]` that only such a core has say, as data.
//!
//! What the numbers mean cycle by cycle is the simulator's business (crate
//! `ooo`); reading and checking them is [`read`]'s, and the keys themselves
//! are in [`keys`].

pub mod keys;
pub(crate) mod loads;
pub mod read;

use crate::cache::{Cache, Replacement};
use crate::ids::{InstrId, UnitId};

/// `[core]`.
#[derive(Clone, Debug)]
pub struct Core {
    /// Micro-operations start in program order.
    pub in_order: bool,
    /// Micro-operations under way, a fused pair counted once.
    pub reorder_buffer: u32,
    /// Micro-operations that have been renamed and not started.
    pub reservation_stations: u32,
    pub fetch: Fetch,
    pub decode: Decode,
    pub rename: Rename,
    /// Two computations of one unit do not end in the same cycle.
    pub result_bus: bool,
    /// A younger computation takes the cycle of an older one's result until that has met another one's so often in a row; 0:
    /// none does.
    pub result_patience: u8,
    /// Schedulers, each of some units; none: one for all.
    pub queues: Vec<Queue>,
    pub retire: Retire,
    pub load: Load,
    pub store: Store,
    pub predictor: Predictor,
    pub prefetch: Prefetch,
    pub l2: Option<L2>,
    /// What the second cache gives up goes there; only behind one.
    pub l3: Option<L2>,
    pub dram: Dram,
    pub dtlb: Option<Dtlb>,
    /// The vendor's names and what they count here.
    pub events: Vec<(String, Event)>,
}

/// `[core.fetch]`: cycles are those of the pipeline's front.
#[derive(Clone, Default, Debug)]
pub struct Fetch {
    /// An aligned block of so many bytes a cycle.
    pub bytes: u32,
    /// Instructions found in a block a cycle; 0: all.
    pub predecode: u32,
    /// Instructions of one entry of the op cache, from which they come then; 0: there is none.
    pub entry: u32,
    /// Entries of the op cache, and of a set of it; 0: it holds everything.
    pub entries: u32,
    pub entry_ways: u32,
    /// An instruction that runs on into the next block ends its entry, which has a whole one of its set.
    pub entry_breaks: bool,
    /// What is decoded a cycle where it misses: an aligned piece of so many bytes, and instructions (0: all).
    pub missed_bytes: u32,
    pub missed_instructions: u32,
    /// Cycles from fetch to decode.
    pub stages: u32,
    /// Instructions that wait between fetch and decode.
    pub queue: u32,
    /// Cycles without fetch after a taken branch, guessed right.
    pub taken_cycles: u32,
    /// Cycles without fetch after a taken branch whose target the branch
    /// target buffer did not know and the decoder found.
    pub redirect_cycles: u32,
    /// Loops of at most so many instructions, in at most so many blocks, are
    /// replayed from the queue; 0: none.
    pub loop_instructions: u32,
    pub loop_blocks: u32,
    /// Instructions whose length a prefix changes, and by how many cycles
    /// predecoding finds that out late.
    pub length_changing: Vec<InstrId>,
    pub length_change_cycles: u32,
}

/// `[core.decode]`.
#[derive(Clone, Debug)]
pub struct Decode {
    /// Micro-operations that each decoder can make; the first may be given
    /// any instruction.
    pub pattern: Vec<u32>,
    /// Cycles from decode to rename.
    pub stages: u32,
    /// Micro-operations that wait between decode and rename.
    pub queue: u32,
    /// A load with its operation, and a store's two halves, are one until they
    /// start.
    pub micro_fusion: bool,
    /// Pairs of neighbours that become one micro-operation.
    pub macro_fusion: Vec<MacroFusion>,
}

/// Which two instructions fuse.
#[derive(Clone, Debug)]
pub struct MacroFusion {
    pub first: Vec<InstrId>,
    pub second: Vec<InstrId>,
}

/// What becomes of an instruction that needs no computation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Idiom {
    /// Nothing is known of it.
    Plain,
    /// It runs, and waits for no operand.
    Independent,
    /// Renaming does it: it takes no port and no time.
    Eliminated,
}

/// What becomes of an instruction that reads more of a register than the last
/// one before it wrote, which left the rest as it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PartialReads {
    /// Nothing: registers are written as a whole.
    Free,
    /// The parts are put together, which takes `partial_cycles`.
    Late,
    /// It is not renamed before the writer has retired and `partial_cycles` have
    /// passed.
    Stall,
}

/// `[core.rename]`.
#[derive(Clone, Debug)]
pub struct Rename {
    pub width: u32,
    /// Cycles from rename to the earliest start.
    pub stages: u32,
    /// Different registers a cycle whose values are no longer on their way to who waits for
    /// them; 0: any number.
    pub written_reads: u32,
    /// `x ^ x` and `x - x`.
    pub zero_idioms: Idiom,
    /// Copies between registers.
    pub moves: Idiom,
    pub partial_reads: PartialReads,
    pub partial_cycles: u32,
    /// Adding a constant to the stack pointer costs nothing in an instruction
    /// that also accesses the stack.
    pub stack_engine: bool,
    /// Moves of so many of the lowest bits, with zeros above them, are moves, too; 0: none.
    pub low_move_bits: u32,
    /// A micro-operation's port is fixed when it is renamed, not when it starts.
    pub binds_port: bool,
    /// How a queue is chosen.
    pub queue_choice: QueueChoice,
    /// How many more may wait in a queue that was chosen by lot than in another one.
    pub queue_slack: u32,
    /// By lot: what only some of the units can do that others can is dealt to its queues in turn instead.
    pub deals_few: bool,
    /// Delayed: by what waited so many cycles before.
    pub queue_delay: u8,
    /// Delayed: numbers are divided by this before they are compared.
    pub queue_step: u16,
    /// Delayed: nothing is sent while a queue has fewer free places.
    pub queue_spare: u16,
}

/// `[core.queues.NAME]`: a scheduler of its own.
#[derive(Clone, Debug)]
pub struct Queue {
    pub name: String,
    /// Units that start what waits in it.
    pub units: Vec<UnitId>,
    /// Micro-operations that wait in it, and in those that share its places.
    pub entries: u32,
    /// The number of another queue, which shares none: it takes that one's places.
    pub shares: Option<u8>,
    /// Cycles for which a place is kept after the start.
    pub kept_cycles: u32,
}

/// Which of several queues a micro-operation is sent to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueChoice {
    /// The one with the fewest waiting for each of its units, of equals the next in turn.
    Fewest,
    /// The next one, in turn, that can take it.
    InTurn,
    /// By lot, the same each time; the one with the fewest where more than `queue_slack` more wait in that one.
    Scattered,
    /// The one that had the fewest waiting some cycles before, the first of equals; each unit is sent one a cycle.
    Delayed,
}

/// `[core.retire]`.
#[derive(Clone, Debug)]
pub struct Retire {
    pub width: u32,
    /// After a wrong guess renaming waits until the branch has retired;
    /// otherwise it goes on as soon as the right instructions are there.
    pub recovers: bool,
}

/// When a load may pass stores whose address is not known yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Disambiguation {
    /// Never.
    Wait,
    /// Unless it was wrong before: saturating counters by address of the load.
    Predict { entries: u32 },
    /// Whenever they turn out not to overlap.
    Perfect,
}

/// Memory renaming: a load that is taken to read what an older store writes has its value from there, and its
/// own access only confirms it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Renaming {
    No,
    /// Where the two instructions write the address alike: the same registers, scale and displacement.
    Form,
    /// Where the same store, counted back from the load, was the one the last time.
    Distance,
}

/// `[core.load.misnamed]`: loads that are taken to read what an older store writes because both write the word of their
/// address alike, and begin elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Misnamed {
    pub word_bytes: u32,
    /// Displacements that differ by a multiple of it are taken for one; 0: only equal ones.
    pub alias_bytes: u32,
    /// The store is one of so many before the load.
    pub distance: u32,
    /// Loads that are known, in sets by the lowest bits of their addresses, and of each set so many.
    pub entries: u32,
    pub ways: u32,
    /// From the load's retirement to the new fetch of what is behind it.
    pub cycles: u32,
    /// Instructions behind it whose loads are known from then on, too.
    pub shadow: u32,
}

/// `[core.load]`.
#[derive(Clone, Debug)]
pub struct Load {
    pub units: Vec<UnitId>,
    /// From start to the start of a user, when the first cache has the data.
    pub latency: u32,
    pub buffers: u32,
    /// First-level lines under way at once.
    pub fill_buffers: u32,
    /// From the start of the store's data, or of the load, to that of a user.
    pub forward_latency: u32,
    /// Cycles after the store has reached the cache, when it covers only part.
    pub failed_forward_cycles: u32,
    /// Extra cycles of a load whose address has a scaled index.
    pub scaled_cycles: u32,
    /// Extra cycles of a load whose address has a base, an index and a displacement.
    pub three_term_cycles: u32,
    /// Which loads take the value of an older store where registers are renamed.
    pub renaming: Renaming,
    /// Cycles from the start of such a store's data to the load's user.
    pub renamed_cycles: u32,
    /// Stores between the two, at most.
    pub renaming_distance: u32,
    /// Bytes such a load has, at least.
    pub renaming_bytes: u32,
    /// Only loads of instructions that do not compute with them, or store the result there.
    pub renaming_moves: bool,
    /// Extra cycles of an access across two lines.
    pub split_cycles: u32,
    /// Addresses a multiple of this apart are taken for one another while stores are under
    /// way; 0: never.
    pub alias_bytes: u32,
    pub disambiguation: Disambiguation,
    /// Cycles until fetch starts again after a load passed a store wrongly.
    pub violation_cycles: u32,
    pub misnamed: Option<Misnamed>,
}

/// `[core.store_address]`, `[core.store_data]`.
#[derive(Clone, Debug)]
pub struct Store {
    pub address_units: Vec<UnitId>,
    pub data_units: Vec<UnitId>,
    /// Of these one is taken in the cycle in which the data starts; none: it needs no other.
    pub data_through: Vec<UnitId>,
    /// Stores that have been renamed and not reached the cache.
    pub buffers: u32,
    /// Stores that reach the cache in a cycle.
    pub commits: u32,
    /// All of them in one line.
    pub one_line: bool,
}

/// `[core.predictor]`.
#[derive(Clone, Debug)]
pub struct Predictor {
    /// The part that says which way a conditional branch goes.
    pub direction: usize,
    pub parts: Vec<Part>,
    /// Entries and ways of the branch target buffer; no entries: it knows all.
    pub btb_entries: u32,
    pub btb_ways: u32,
    /// Entries of the return stack; 0: returns are guessed like other jumps.
    pub return_stack: u32,
    /// Entries of the predictor of computed jumps, and bits of history in its
    /// index; without entries the last target is guessed.
    pub indirect_entries: u32,
    pub indirect_history: u32,
}

/// A named part of the predictor.
#[derive(Clone, Debug)]
pub struct Part {
    pub name: String,
    pub kind: PartKind,
}

/// What a part does. Numbers in bits are widths of saturating counters.
#[derive(Clone, Debug)]
pub enum PartKind {
    /// Always the same guess.
    Taken(bool),
    /// Backward taken, forward not.
    Backward,
    /// Counters by address.
    Bimodal { entries: u32, bits: u32 },
    /// Counters by history, and by as many address bits as are left.
    Global { entries: u32, bits: u32, history: u32 },
    /// Counters by history exclusive-or address.
    Gshare { entries: u32, bits: u32, history: u32 },
    /// Counters by the branch's own history, of which there are as many as
    /// entries, each with counters of its own.
    Local { entries: u32, bits: u32, history: u32 },
    /// Loops that iterate the same number of times, up to `trips`; `sure` equal
    /// iterations in a row are needed. Others are left to `otherwise`.
    Loop { entries: u32, trips: u32, sure: u32, otherwise: usize },
    /// Counters by address choose between two parts.
    Chooser { entries: u32, bits: u32, parts: [usize; 2] },
}

/// `[core.prefetch]`.
#[derive(Clone, Debug, Default)]
pub struct Prefetch {
    /// A miss in the first cache fetches the next line too.
    pub next_line: bool,
    /// Lines of instructions behind the one fetched that are on their way then.
    pub code_lines: u32,
    /// Loads whose stride is followed, by address; 0: none.
    pub stride_entries: u32,
    /// A miss in the second cache fetches the other half of a pair of lines.
    pub adjacent_line: bool,
    /// Streams of misses that are run ahead of, and how many lines; 0: none.
    pub streams: u32,
    pub stream_lines: u32,
    /// Nothing is fetched across a border of pages of so many bytes, and a
    /// stream ends there; 0: there are none.
    pub page_bytes: u32,
}

/// `[memory.l2]` and `[memory.l3]`.
#[derive(Clone, Debug)]
pub struct L2 {
    pub cache: Cache,
    /// From a load's start to that of its user.
    pub latency: u32,
    /// Cycles between lines on the way to the cache before it.
    pub interval: u32,
}

/// `[memory.dram]`.
#[derive(Clone, Debug)]
pub struct Dram {
    /// From a load's start to that of its user.
    pub latency: u32,
    /// Cycles between lines, written ones too.
    pub interval: u32,
}

/// `[memory.dtlb]`.
#[derive(Clone, Debug)]
pub struct Dtlb {
    pub page_bytes: u32,
    pub entries: u32,
    pub ways: u32,
    /// A second one behind it, and what an access that finds its page there
    /// takes in addition.
    pub l2_entries: u32,
    pub l2_ways: u32,
    pub l2_cycles: u32,
    /// What an access that finds its page nowhere takes in addition.
    pub walk_cycles: u32,
}

/// Everything that is counted; the names in `[core.events]` are those of
/// [`Event::NAMES`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Event(pub usize);

impl Event {
    /// Names, in the order of the numbers.
    pub const NAMES: &'static [&'static str] = &[
        "cycles",
        "instructions",
        "branches",
        "branches_mispredicted",
        "conditional_branches",
        "conditional_mispredicted",
        "l1d_lines_in",
        "l1d_accesses",
        "l1d_misses",
        "l1d_writebacks",
        "l1i_misses",
        "l2_lines_in",
        "l2_accesses",
        "l2_misses",
        "l2_writebacks",
        "dtlb_misses",
        "branch_recovery_stalls",
        "uops_renamed",
        "uops_dispatched",
        "uops_retired",
        "uops_eliminated",
        "uops_retired_fused",
        "uops_fused_pairs",
        "uops_wrong_path",
        "loads_retired",
        "stores_retired",
        "loads_forwarded",
        "forwards_failed",
        "loads_aliased",
        "memory_order_violations",
        "loads_misnamed",
        "btb_misses",
        "macro_fused",
        "prefetches",
    ];

    /// The event of a name.
    pub fn named(name: &str) -> Option<Event> {
        Self::NAMES.iter().position(|&n| n == name).map(Event)
    }
}

impl L2 {
    /// How a line is chosen to give way.
    pub fn replacement(&self) -> Replacement {
        self.cache.replacement
    }
}
