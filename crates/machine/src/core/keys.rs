//! The keys of `[core]` and what they mean.

use super::Event;
use crate::shape::{Key, Kind, may, need};

/// `[core]`.
pub(crate) static CORE: &[Key] = &[
    need("kind", Kind::OneOf(&["out_of_order", "in_order"]), "whether micro-operations may start out of program order"),
    need("reorder_buffer", Kind::Int(1, 4096), "micro-operations renamed and not retired, a fused pair counted once"),
    need("reservation_stations", Kind::Int(1, 4096), "micro-operations renamed and not started"),
    need("fetch", Kind::Table(FETCH), "how instructions come in"),
    need("decode", Kind::Table(DECODE), "how they become micro-operations"),
    need("rename", Kind::Table(RENAME), "how many a cycle enter the window"),
    may("result_bus", Kind::Bool, "two computations of one unit do not end in the same cycle (false)"),
    may(
        "result_patience",
        Kind::Int(0, 16),
        "a longer, younger computation takes the cycle of an older one's result until that has lost its cycle so often in a row (0: never)",
    ),
    may("queues", Kind::Map("queue", &Kind::Table(QUEUE)), "schedulers by name, each of some units (one for all)"),
    need("retire", Kind::Table(RETIRE), "how many a cycle leave it"),
    need("load", Kind::Table(LOAD), "loads"),
    need("store_address", Kind::Table(STORE_ADDRESS), "the half of a store that computes its address"),
    need("store_data", Kind::Table(STORE_DATA), "the half of a store that brings its data"),
    need("predictor", Kind::Table(PREDICTOR), "how branches are guessed"),
    may("prefetch", Kind::Table(PREFETCH), "lines fetched before they are asked for; without it none"),
    may("events", Kind::Map("event", &Kind::OneOf(Event::NAMES)), "the vendor's names of what is counted"),
];

static FETCH: &[Key] = &[
    need("bytes", Kind::Int(4, 256), "an aligned block of so many bytes is fetched a cycle"),
    may("predecode", Kind::Int(0, 64), "instructions found in it a cycle (0: all)"),
    may(
        "entry",
        Kind::Int(0, 64),
        "instructions of one entry of the op cache; two are read together (0: there is none)",
    ),
    may("entries", Kind::Int(0, 65_536), "entries of the op cache (0: it holds everything)"),
    may("entry_ways", Kind::Int(1, 64), "entries of a set of it (16)"),
    may("entry_breaks", Kind::Bool, "an instruction that runs on into the next block ends its entry (false)"),
    may("missed_bytes", Kind::Int(4, 256), "an aligned piece of so many bytes is decoded a cycle where it misses (16)"),
    may("missed_instructions", Kind::Int(0, 64), "and so many instructions (0: all)"),
    need("stages", Kind::Int(0, 64), "cycles from fetch to decode"),
    need("queue", Kind::Int(1, 1024), "instructions that wait between fetch and decode"),
    may("taken_cycles", Kind::Int(0, 64), "cycles without fetch after a taken branch guessed right (0)"),
    may(
        "redirect_cycles",
        Kind::Int(0, 64),
        "cycles without fetch when the decoder finds the target, not the buffer (0)",
    ),
    may("loop_instructions", Kind::Int(0, 1024), "loops of so many instructions are replayed from the queue (0: none)"),
    may("loop_blocks", Kind::Int(0, 64), "if they stand in so many fetch blocks (0: none)"),
    may("length_changing", Kind::Texts, "instructions whose length a prefix changes, which predecoding finds out late"),
    may("length_change_cycles", Kind::Int(0, 64), "so many cycles late (0)"),
];

static DECODE: &[Key] = &[
    need(
        "pattern",
        Kind::Ints,
        "micro-operations that each decoder can make; the first one takes what is larger, alone",
    ),
    need("stages", Kind::Int(0, 64), "cycles from decode to rename"),
    need("queue", Kind::Int(1, 1024), "micro-operations that wait between decode and rename"),
    may(
        "micro_fusion",
        Kind::Bool,
        "a load with its operation, and the halves of a store, are one until they start (false)",
    ),
    may("macro_fusion", Kind::Tables(FUSION), "neighbours that become one micro-operation"),
];

static FUSION: &[Key] = &[
    need("first", Kind::Texts, "instructions that fuse with one of `second` behind them"),
    need("second", Kind::Texts, "branches they fuse with"),
];

const PARTIAL: Kind = Kind::OneOf(&["free", "late", "stall"]);

const IDIOM: Kind = Kind::OneOf(&["plain", "independent", "eliminated"]);

static RENAME: &[Key] = &[
    need("width", Kind::Int(1, 64), "micro-operations a cycle, a fused pair counted once"),
    need("stages", Kind::Int(1, 64), "cycles from rename to the earliest start"),
    may(
        "written_reads",
        Kind::Int(0, 64),
        "different registers read a cycle whose values have been written (0: any number)",
    ),
    may("zero_idioms", IDIOM, "`x ^ x` and `x - x`: run as any other, wait for nothing, or take no port (plain)"),
    may("moves", IDIOM, "copies between registers: the same (plain)"),
    may(
        "partial_reads",
        PARTIAL,
        "reading more of a register than the last instruction wrote, which left the rest: no matter, late, or renaming waits (free)",
    ),
    may("partial_cycles", Kind::Int(0, 64), "so many cycles late, or so many more from the writer's retirement (0)"),
    may("stack_engine", Kind::Bool, "the stack pointer's adjustment in a push, pop, call or return is free (false)"),
    may(
        "low_move_bits",
        Kind::Int(0, 64),
        "moves of so many of the lowest bits, zeros above them, are moves, too (0: none)",
    ),
    may("binds_port", Kind::Bool, "the port is chosen at rename, by what already waits for each, not at start (false)"),
    may(
        "queue_choice",
        Kind::OneOf(&["fewest", "in_turn", "scattered", "delayed"]),
        "which of several queues: with the fewest waiting for each unit, one after the other, by lot, or with the fewest as seen some cycles before, each unit sent one a cycle (fewest)",
    ),
    may("queue_slack", Kind::Int(0, 1024), "how many more may wait in a queue chosen by lot than in another one (0)"),
    may("deals_few", Kind::Bool, "what few units can do is dealt to their queues in turn, not by lot (false)"),
    may("queue_delay", Kind::Int(1, 8), "delayed: what waits is seen after so many cycles (1)"),
    may(
        "queue_step",
        Kind::Int(1, 1024),
        "delayed: numbers of waiting are divided by this before they are compared (1)",
    ),
    may("queue_spare", Kind::Int(0, 1024), "delayed: nothing is sent while a queue is seen with fewer free places (0)"),
];

static QUEUE: &[Key] = &[
    need("units", Kind::Texts, "units that start what waits in it; units of no queue take from what is left"),
    may("entries", Kind::Int(1, 4096), "micro-operations that wait in it"),
    may("shares", Kind::Text, "in place of entries: another queue, whose places it takes (\"\": none)"),
    may("kept_cycles", Kind::Int(0, 64), "cycles for which a place is kept after the start (0)"),
];

static RETIRE: &[Key] = &[
    need("width", Kind::Int(1, 64), "micro-operations a cycle, a fused pair counted once"),
    need(
        "recovery",
        Kind::OneOf(&["retirement", "resolution"]),
        "after a wrong guess, renaming goes on when the branch has retired, or as soon as there is something to rename",
    ),
];

static LOAD: &[Key] = &[
    need("units", Kind::Texts, "units that loads start on"),
    need("latency", Kind::Int(1, 1000), "cycles from a load's start to its user's, when the first cache has the data"),
    need("buffers", Kind::Int(1, 1024), "loads renamed and not retired"),
    may("fill_buffers", Kind::Int(1, 1024), "lines on the way into the first cache at once (8)"),
    need(
        "forward_latency",
        Kind::Int(1, 1000),
        "the same, when an older store that is not in the cache yet has the data",
    ),
    need(
        "failed_forward_cycles",
        Kind::Int(0, 1000),
        "more than `latency` after a store that covers only part is in the cache",
    ),
    may("scaled_cycles", Kind::Int(0, 1000), "more for an address with a scaled index (0)"),
    may("three_term_cycles", Kind::Int(0, 1000), "more for one of base, index and displacement (0)"),
    may(
        "renaming",
        Kind::OneOf(&["none", "form", "distance"]),
        "loads that get an older store's value where registers are renamed: none, those whose address is written as the store's, those that had it from the same store, counted back, the last time (none)",
    ),
    may("renamed_cycles", Kind::Int(0, 1000), "cycles from the store's data to such a load's user (0)"),
    may("renaming_distance", Kind::Int(0, 255), "stores between the two, at most (15)"),
    may("renaming_bytes", Kind::Int(1, 64), "bytes such a load has, at least (1)"),
    may(
        "renaming_moves",
        Kind::Bool,
        "no load whose instruction computes with it, unless it stores the result (false)",
    ),
    may("split_cycles", Kind::Int(0, 1000), "more for an access across two lines (0)"),
    may(
        "alias_bytes",
        Kind::Int(4096, 1 << 30),
        "a load waits for stores whose addresses differ by a multiple of this, until they are in the cache (no store)",
    ),
    may(
        "disambiguation",
        Kind::OneOf(&["wait", "predict", "perfect"]),
        "when loads pass stores of unknown address (wait)",
    ),
    may("disambiguation_entries", Kind::Int(1, 65536), "counters of `predict` (256)"),
    may(
        "violation_cycles",
        Kind::Int(0, 1000),
        "from the discovery that a load passed a store wrongly to its new fetch (0)",
    ),
    may("misnamed", Kind::Table(MISNAMED), "short loads that are taken to read an older store to the same word"),
];

static MISNAMED: &[Key] = &[
    need("word_bytes", Kind::Int(2, 64), "bytes of a word; loads of fewer, with a computation, can be taken so"),
    may("alias_bytes", Kind::Int(4, 1 << 30), "displacements that differ by a multiple of it are taken for one (none)"),
    need("distance", Kind::Int(0, 255), "stores between the two, at most, and that one; 0: no load is"),
    need("entries", Kind::Int(1, 65536), "loads known not to be taken so again"),
    need("ways", Kind::Int(1, 64), "of a set of them"),
    need("cycles", Kind::Int(0, 1000), "from such a load's retirement to the new fetch of what is behind it"),
    may("shadow", Kind::Int(0, 4096), "instructions behind it whose loads are known by then, too (0)"),
];

static STORE_ADDRESS: &[Key] = &[need("units", Kind::Texts, "units that they start on")];

static STORE_DATA: &[Key] = &[
    need("units", Kind::Texts, "units that they start on; none: the address's brings the data too"),
    need("buffers", Kind::Int(1, 1024), "stores renamed and not in the cache"),
    may("through", Kind::Texts, "units of which the data takes one, too, in the cycle in which it starts (none)"),
    may("commits", Kind::Int(1, 16), "stores that reach the cache in a cycle (1)"),
    may("one_line", Kind::Bool, "only stores to one line do so together (false)"),
];

static PREDICTOR: &[Key] = &[
    need("direction", Kind::Text, "the part that guesses conditional branches"),
    need("parts", Kind::Map("predictor part", &Kind::Table(PART)), "the parts by name"),
    may("btb_entries", Kind::Int(0, 1 << 20), "branches whose target is known at fetch (0: all)"),
    may("btb_ways", Kind::Int(1, 64), "ways of that buffer (4)"),
    may("return_stack", Kind::Int(0, 1024), "return addresses kept (0)"),
    may("indirect_entries", Kind::Int(0, 1 << 20), "targets of computed jumps kept (0: the last of each)"),
    may("indirect_history", Kind::Int(0, 32), "bits of history in their index (0)"),
];

static PART: &[Key] = &[
    need(
        "kind",
        Kind::OneOf(&[
            "taken",
            "not_taken",
            "backward_taken",
            "bimodal",
            "global",
            "gshare",
            "local",
            "loop",
            "chooser",
        ]),
        "what it looks at",
    ),
    may("entries", Kind::Int(1, 1 << 20), "entries, a power of two (1024)"),
    may("bits", Kind::Int(1, 8), "width of its counters (2)"),
    may("history", Kind::Int(0, 32), "outcomes in its history (8)"),
    may("trips", Kind::Int(1, 1 << 20), "most turns of a loop that it counts (64)"),
    may("sure", Kind::Int(1, 16), "equal loops in a row before it guesses (2)"),
    may("otherwise", Kind::Text, "the part asked where this one knows nothing"),
    may("parts", Kind::Texts, "the two that it chooses from"),
];

static PREFETCH: &[Key] = &[
    may("code_lines", Kind::Int(0, 64), "so many lines behind that of an instruction are fetched with it (0)"),
    may("next_line", Kind::Bool, "a miss in the first cache fetches the next line too (false)"),
    may("stride_entries", Kind::Int(0, 65536), "loads whose stride is followed (0)"),
    may("adjacent_line", Kind::Bool, "a miss in the second cache fetches the other line of an aligned pair (false)"),
    may("streams", Kind::Int(0, 1024), "streams of second-level accesses run ahead of (0)"),
    may("stream_lines", Kind::Int(0, 64), "by so many lines (2)"),
    may(
        "page_bytes",
        Kind::Int(0, 1 << 24),
        "nothing is fetched across a border of pages of so many bytes (0: anywhere)",
    ),
];

/// `[memory.l2]` and `[memory.l3]`.
pub static L2: &[Key] = &[
    need("enabled", Kind::Bool, "false: what the caches before it miss comes from memory"),
    need("bytes", Kind::Int(16, 1 << 30), "capacity in bytes"),
    need("ways", Kind::Int(1, 64), "lines an address may be in"),
    need("line_bytes", Kind::Int(4, 4096), "bytes of a line, a power of two, the other caches' too"),
    need("replacement", Kind::OneOf(&["lru", "random", "fifo"]), "which line gives way"),
    need("latency", Kind::Int(1, 100_000), "cycles from a load's start to its user's"),
    may("interval", Kind::Int(1, 1000), "cycles between lines on the way to the caches before it (1)"),
];

/// `[memory.dram]`.
pub(crate) static DRAM: &[Key] = &[
    need("latency", Kind::Int(1, 100_000), "cycles from a load's start to its user's"),
    may("interval", Kind::Int(1, 10_000), "cycles between lines, written ones too (1)"),
];

/// `[memory.dtlb]`.
pub static DTLB: &[Key] = &[
    need("page_bytes", Kind::Int(256, 1 << 30), "bytes of a page, a power of two"),
    need("entries", Kind::Int(1, 65536), "pages known at once"),
    need("ways", Kind::Int(1, 65536), "entries a page may be in"),
    may("l2_entries", Kind::Int(0, 65536), "pages known to a second buffer behind it (0: there is none)"),
    may("l2_ways", Kind::Int(1, 65536), "its ways (4)"),
    may("l2_cycles", Kind::Int(0, 1000), "more for an access whose page only the second one knows (0)"),
    need("walk_cycles", Kind::Int(0, 10_000), "more for an access whose page neither knows"),
];
