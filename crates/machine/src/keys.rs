//! The keys of machine, extension and rules files, and what they mean.

use crate::shape::{Key, Kind, may, need};

/// A machine file.
pub static MACHINE: &[Key] = &[
    need("machine", Kind::Table(HEAD), "what the machine is called and what it is"),
    may("sources", SOURCES, "dotted path in this file to the source of the numbers below it"),
    need(
        "registers",
        Kind::Map("register file", &Kind::Table(REGISTERS)),
        "register files, and single special registers",
    ),
    need("units", Kind::Map("unit", UNIT), "functional units: a count, or a table"),
    need("formats", FORMATS, "operands, assembly and size shared by instructions"),
    may("modes", MODES, "operands that are written in several ways: addresses, short and long immediates"),
    need("timings", TIMINGS, "units and cycles shared by instructions"),
    need("instructions", INSTRUCTIONS, "the instruction set, one line each"),
    may("compounds", COMPOUNDS, "sequences of instructions that together mean one line"),
    may("tables", TABLES, "constant tables that semantics index"),
    may("matrices", MATRICES, "constant matrices that semantics multiply by"),
    may("classes", Kind::Map("class", &Kind::Texts), "operand kinds that only certain registers of one file fit"),
    may("clusters", Kind::Table(CLUSTERS), "register files with units of their own, and the paths between them"),
    need("issue", Kind::Table(ISSUE), "how instructions issue"),
    may("core", Kind::Table(crate::core::keys::CORE), "a core that schedules at run time; without it `issue` says all"),
    need("branch", Kind::Table(BRANCH), "how branches are predicted"),
    need("memory", Kind::Table(MEMORY), "caches and alignment"),
    need("abi", Kind::Table(ABI), "calling convention and roles of registers"),
    may(
        "chains",
        Kind::Table(CHAINS),
        "instructions for values of several words, where registers are narrower than 32 bits",
    ),
    may("codegen", Kind::Table(CODEGEN), "choices of the machine's compilers"),
    need("asm", Kind::Table(ASM), "how the assembler wants things written"),
];

static CHAINS: &[Key] = &[
    need("add", Kind::Texts, "the first instruction of a sum, and the one that takes a carry in"),
    may("add_imm", Kind::Texts, "the same with an immediate; without them, its negative is taken away"),
    need("sub", Kind::Texts, "the same of a difference"),
    may("sub_imm", Kind::Texts, "the same with an immediate"),
    need("compare", Kind::Texts, "the same of a comparison; the second may overwrite its first operand"),
    may("compare_imm", Kind::Text, "the first of a comparison with an immediate"),
    may(
        "compare_equal",
        Kind::OneOf(&["all", "last"]),
        "words whose equality a chain of comparisons leaves in the flags: all (the default), or the last alone",
    ),
    need("shift_right", Kind::Texts, "right by one bit: a zero coming in, and the carry coming in"),
    need("shift_sign", Kind::Text, "right by one bit, the sign coming in"),
    need("borrow", Kind::Text, "a word of ones where the last comparison or difference borrowed, or of zeros"),
    may(
        "borrow_is",
        Kind::OneOf(&["carry", "no carry"]),
        "what a difference that borrows leaves where a sum leaves its carry (a carry)",
    ),
    may("mul", Kind::Text, "product of two words"),
    may("mul_low", Kind::Text, "its lower word alone"),
    may(
        "product",
        Kind::Texts,
        "where the lower and the upper word of a product are found; without it they are the first two operands of `mul`",
    ),
    need("swap", Kind::Text, "exchanges the halves of a word"),
    need(
        "branches",
        Kind::Texts,
        "branches on equal, not equal, less and not less (unsigned), less and not less (signed)",
    ),
];

static CODEGEN: &[Key] = &[may(
    "select",
    Kind::OneOf(&["straight", "branch"]),
    "one of two values: by instructions that need no branch (the default), or by a branch",
)];

/// An extension file.
pub static EXTENSION: &[Key] = &[
    need("extension", Kind::Table(EXTENSION_HEAD), "what the extension is called and what it is for"),
    may("sources", SOURCES, "dotted path in this file to the source of the numbers below it"),
    may("formats", FORMATS, "operands, assembly and size shared by instructions"),
    may("timings", TIMINGS, "units and cycles shared by instructions"),
    may("instructions", INSTRUCTIONS, "the instructions, one line each"),
    may("compounds", COMPOUNDS, "sequences of instructions that together mean one line"),
    may("tables", TABLES, "constant tables that semantics index"),
    may("matrices", MATRICES, "constant matrices that semantics multiply by"),
    may(
        "registers",
        Kind::Map("register file", &Kind::Table(REGISTERS)),
        "register files that the instructions bring along, with `state = true`",
    ),
];

/// The rules file.
pub static RULES: &[Key] = &[may("rule", Kind::Tables(RULE), "identities between expressions")];

const SOURCES: Kind = Kind::Map("path", &Kind::Text);
const FORMATS: Kind = Kind::Map("format", &Kind::Table(FORMAT));
const MODES: Kind = Kind::Map("mode", &Kind::Map("form", &Kind::Table(FORM)));
const SIZES: Kind = Kind::Map("operand", &Kind::Texts);
const TIMINGS: Kind = Kind::Map("timing", &Kind::Table(TIMING));
const INSTRUCTIONS: Kind = Kind::Map("instruction", &Kind::Table(INSTRUCTION));
const COMPOUNDS: Kind = Kind::Map("compound", &Kind::Table(COMPOUND));
const TABLES: Kind = Kind::Map("table", &Kind::Table(TABLE));
const MATRICES: Kind = Kind::Map("matrix", &Kind::Table(MATRIX));
const OPERANDS: Kind = Kind::Map("operand", &Kind::Either(&[Kind::Text, Kind::Table(IMMEDIATE)]));
static UNIT: &Kind = &Kind::Either(&[Kind::Int(1, 64), Kind::Table(UNIT_TABLE)]);

static HEAD: &[Key] = &[
    need("name", Kind::Text, "the name on the command line"),
    need("title", Kind::Text, "a name for people"),
    may("description", Kind::Text, "a few sentences"),
    may("inherits", Kind::Text, "machine whose file this one changes key by key"),
    may(
        "without",
        Kind::Texts,
        "instructions, compounds or extensions of the parent to leave out, or units (`units.alu`)",
    ),
    need("word_bits", Kind::Int(32, 64), "width of a word: 32 or 64"),
    may(
        "narrow",
        Kind::OneOf(&["signed", "zero"]),
        "what a word of 64 bits has above a value of 32: its sign (the default), or zeros, where instructions compute in 32 bits",
    ),
    need("endian", Kind::OneOf(&["little", "big"]), "order of the bytes of a word in memory"),
    need("clock_mhz", Kind::Number(0.001, 1e6), "clock in MHz, for rates"),
    may(
        "power_mw",
        Kind::Number(0.001, 1e6),
        "power in mW at that clock while it computes, for energies; say in a comment whose figure",
    ),
];

static EXTENSION_HEAD: &[Key] = &[
    need("name", Kind::Text, "the name on the command line"),
    need("title", Kind::Text, "a name for people"),
    may("description", Kind::Text, "a few sentences"),
    may("for", Kind::Texts, "machines it fits (their heirs too); any when left out"),
    may("word_bits", Kind::Int(32, 64), "word size it fits; any when left out"),
];

static REGISTERS: &[Key] = &[
    may("names", Kind::Texts, "names in order; `g0..g7` stands for eight of them"),
    may("count", Kind::Int(1, 1024), "how many, named by `prefix` and a number"),
    may("prefix", Kind::Text, "what numbered registers are called (the file's name when left out)"),
    need("bits", Kind::Int(1, 64), "width in bits"),
    may(
        "views",
        Kind::Map("view", &Kind::Texts),
        "names of parts of the registers, in order, for the assembly: `{rd.b}`",
    ),
    may("zero", Kind::Text, "the register that always reads zero"),
    may("prefixed", Kind::Texts, "registers for which an instruction needs a prefix: one byte, for one or several"),
    may("prefix_bytes", Kind::Int(1, 4), "bytes of that prefix (1)"),
    may("cluster", Kind::Int(0, 15), "cluster it belongs to (0)"),
    may("state", Kind::Bool, "configuration outside the calling convention, kept between calls (false)"),
    may("reset", Kind::Int(0, i64::MAX), "what the registers of a `state` hold before a program has written them (0)"),
    may("rotating", Kind::Texts, "registers, one after the other, that `rotate` gives new names"),
];

static UNIT_TABLE: &[Key] = &[
    need("count", Kind::Int(1, 64), "how many there are; each starts one instruction a cycle"),
    may("cluster", Kind::Int(0, 15), "cluster they belong to (0)"),
    may("shared", Kind::Int(1, 64), "a path that so many instructions may use at once for one register (1)"),
];

static IMMEDIATE: &[Key] = &[
    may("min", Kind::Int(i64::MIN, i64::MAX), "least value"),
    may("max", Kind::Int(i64::MIN, i64::MAX), "greatest value"),
    may("step", Kind::Int(1, 1 << 32), "distance between values, counted from the least (1)"),
    may("values", Kind::Ints, "the values, when they are few and irregular"),
];

static FORMAT: &[Key] = &[
    may("operands", OPERANDS, "name to kind: a register file, `simmN`, `uimmN`, `label`, or a table of limits"),
    may("asm", Kind::Text, "assembly: `{name}` is the mnemonic, `{x}` operand x"),
    may("bytes", Kind::Int(1, 16), "encoded size in bytes"),
    may("short_bytes", Kind::Int(1, 16), "size of a jump to within 128 bytes of its end"),
    may(
        "far_asm",
        Kind::Text,
        "how a jump to a target that is not near is written, where the assembler does not see to it",
    ),
    may("short_from", Kind::Int(-65536, 0), "least distance of a near target from the end of the short jump (-128)"),
    may("short_to", Kind::Int(0, 65536), "greatest (127)"),
    may("reach_from", Kind::Int(-(1 << 32), 0), "least distance of a target from the end of the jump (none)"),
    may("reach_to", Kind::Int(0, 1 << 32), "greatest (none)"),
    may("literal", Kind::Text, "an immediate that stands as a word among the code behind the instruction"),
    may("literal_reach", Kind::Int(4, 1 << 20), "how far from the instruction's end that word can begin"),
    may("longer", SIZES, "operands with the registers or values that make the encoding a byte longer"),
    may("shorter", SIZES, "the same for a byte shorter"),
    may("prefixed", SIZES, "the same for the prefix that `registers.FILE.prefixed` is about"),
    may("prefix", Kind::Bool, "false: the encoding needs no prefix for any register (true)"),
    may("delay_slots", Kind::Int(0, 15), "branches: instructions after it that execute before the target (0)"),
    may("annul", Kind::Bool, "branches: the delay slot is skipped when not taken (false)"),
];

static FORM: &[Key] = &[
    may("operands", OPERANDS, "what the form consists of, in order"),
    need("value", Kind::Text, "what it stands for in the semantics"),
    need("asm", Kind::Text, "how it is written"),
    need("bytes", Kind::Int(0, 16), "bytes it adds to the instruction"),
    may("longer", SIZES, "operands with the registers or values that make the encoding a byte longer"),
    may("shorter", SIZES, "the same for a byte shorter"),
    may("prefixed", SIZES, "the same for the prefix that `registers.FILE.prefixed` is about"),
];

static TIMING: &[Key] = &[
    may("units", Kind::Texts, "units it may run on, any one of them (none: only an issue slot)"),
    need("latency", Kind::Int(1, 10_000), "cycles from issue until an instruction that reads the result can issue"),
    may("issue_cycles", Kind::Int(1, 10_000), "cycles during which nothing else issues, its own included (1)"),
    may(
        "issue_before",
        Kind::Map("timing", &Kind::Int(1, 10_000)),
        "fewer issue cycles where an instruction of that timing comes right behind",
    ),
    may(
        "early",
        Kind::Map("operand", &Kind::Int(0, 100)),
        "register operands that have to be ready so many cycles before it issues",
    ),
    may("unit_cycles", Kind::Int(1, 10_000), "cycles its unit takes no other instruction (1)"),
    may(
        "dest_latency",
        Kind::Map("register, register file or operand", &Kind::Int(1, 10_000)),
        "latency of single results that differ",
    ),
    may("uops", Kind::Int(1, 64), "on machines with `[core]`: micro-operations of the computing part (1)"),
    may(
        "uop_units",
        Kind::Texts,
        "on machines with `[core]`: units that another micro-operation each takes for a cycle",
    ),
    may("taken_cycles", Kind::Int(0, 10_000), "extra cycles of a taken branch (0)"),
    may("untaken_cycles", Kind::Int(0, 10_000), "extra cycles of an untaken branch (0)"),
    may("far_taken_cycles", Kind::Int(0, 10_000), "more of them where the target is not near (0)"),
    may("far_untaken_cycles", Kind::Int(0, 10_000), "the same of an untaken branch (0)"),
    may(
        "varies_with",
        Kind::Texts,
        "operands and registers whose values decide how long the hardware takes; the cycles stated are one case (none)",
    ),
];

static INSTRUCTION: &[Key] = &[
    need("semantics", Kind::Text, "what it does"),
    need("timing", Kind::Text, "name of a timing"),
    may(
        "timing_at",
        Kind::Map("operand and form", &Kind::Text),
        "name of another timing for some forms: `x@form` is one form of a mode",
    ),
    may("format", Kind::Text, "name of a format"),
    may("operands", OPERANDS, "operands other than, or besides, the format's"),
    may("mnemonic", Kind::Text, "what the assembler calls it (its name)"),
    may("asm", Kind::Text, "assembly instead of the format's"),
    may("bytes", Kind::Int(1, 16), "encoded size instead of the format's"),
    may("short_bytes", Kind::Int(1, 16), "instead of the format's"),
    may("short_from", Kind::Int(-65536, 0), "instead of the format's"),
    may("short_to", Kind::Int(0, 65536), "instead of the format's"),
    may("reach_from", Kind::Int(-(1 << 32), 0), "instead of the format's"),
    may("reach_to", Kind::Int(0, 1 << 32), "instead of the format's"),
    may("literal", Kind::Text, "instead of the format's"),
    may("literal_reach", Kind::Int(4, 1 << 20), "instead of the format's"),
    may("longer", SIZES, "besides the format's; `x@form` holds for one form of a mode"),
    may("shorter", SIZES, "besides the format's; `x@form` holds for one form of a mode"),
    may("prefixed", SIZES, "besides the format's; `x@form` holds for one form of a mode"),
    may("prefix", Kind::Bool, "instead of the format's"),
    may("delay_slots", Kind::Int(0, 15), "instead of the format's"),
    may("annul", Kind::Bool, "instead of the format's"),
    may("unaligned", Kind::Bool, "a load or store that works at any address, and takes all data paths (false)"),
    may("flash", Kind::Bool, "a load from the memory that code is in, where constant tables may be (false)"),
    may("ascending", Kind::Texts, "operands whose registers have to rise, in this order (none)"),
    may(
        "selectable",
        Kind::Bool,
        "may be chosen for program code; when left out: unless it reads a special register, calls, traps or turns a window",
    ),
    may("extension", Kind::Text, "named part of the instruction set it belongs to, for `--without`"),
    may("description", Kind::Text, "a remark"),
];

static COMPOUND: &[Key] = &[
    may("format", Kind::Text, "format whose operands it has"),
    may("operands", OPERANDS, "operands other than, or besides, the format's"),
    need("semantics", Kind::Text, "what the whole does"),
    need("parts", Kind::Texts, "instructions with arguments: operands, `$0` scratch, `%reg`, constants"),
    may("description", Kind::Text, "a remark"),
];

static TABLE: &[Key] = &[
    need("bits", Kind::Int(1, 64), "width of an entry"),
    may("values", Kind::Ints, "the entries"),
    may("hex", Kind::Texts, "the entries as hexadecimal digits, as many for each as its bits need"),
    may("inverse_of", Kind::Text, "the table, a permutation, that this one inverts"),
    may("formula", Kind::Text, "an expression over `i`, the index, and with a polynomial over its `inverse`"),
    may("polynomial", Kind::Int(2, i64::MAX), "the field of the formula's `inverse` (0 for 0)"),
    may("entries", Kind::Int(1, 65536), "how many the formula makes (two to the `bits`)"),
    may("verilog", Kind::Text, "hand-written module in rtl/ that computes it"),
];

static MATRIX: &[Key] = &[
    need(
        "rows",
        Kind::Texts,
        "rows: field constants in hexadecimal, or without a polynomial the input bits of a sum as a mask",
    ),
    may("polynomial", Kind::Int(2, i64::MAX), "the field's: the rows hold its elements"),
    may("columns", Kind::Int(1, 64), "input bits of a matrix without polynomial (as many as rows)"),
];

static CLUSTERS: &[Key] = &[
    need("operand", Kind::Text, "kind of operand that stands for a register of the instruction's own cluster"),
    need(
        "files",
        Kind::Texts,
        "register file of clusters 1, 2, ...; their units are called `l1`, `l2` where timings say `l`",
    ),
    may(
        "cross",
        Kind::Map("unit", &Kind::Texts),
        "operands that an instruction on that unit may read from another cluster, one at a time",
    ),
    may("cross_paths", Kind::Texts, "the path by which a value reaches cluster 1, 2, ..."),
    may("data", Kind::Text, "operand of loads and stores whose register may be in any cluster"),
    may("data_paths", Kind::Texts, "the path of memory data to and from the registers of cluster 1, 2, ..."),
];

static ISSUE: &[Key] = &[
    need("width", Kind::Int(1, 64), "instructions a cycle"),
    need("interlock", Kind::Bool, "the machine waits for operands (false: the pipeline is exposed)"),
    may(
        "packet_bytes",
        Kind::Int(0, 256),
        "bundles do not cross multiples of this many bytes; the assembler pads (0: they may)",
    ),
    may(
        "cross_stall",
        Kind::Int(0, 16),
        "cycles lost when a register written in the cycle before crosses between clusters (0)",
    ),
    may("register_reads", Kind::Int(0, 64), "times that one register can be read in a cycle (0: any number)"),
    may(
        "explicit",
        Kind::Bool,
        "the compiler says which instructions issue together (true where width is above 1 or nothing interlocks)",
    ),
];

static BRANCH: &[Key] = &[
    need(
        "predictor",
        Kind::OneOf(&["none", "backward_taken", "dynamic"]),
        "`none`: taken and untaken cycles always count; otherwise only when the guess was wrong: by the branch's direction, or by what it did before",
    ),
    may("btb_entries", Kind::Int(1, 4096), "dynamic: jumps whose targets are known, least recently used out (16)"),
    may("bht_entries", Kind::Int(1, 1 << 16), "dynamic: counters of directions, a power of two (64)"),
    may("bht_bits", Kind::Int(1, 4), "dynamic: bits of a counter (2)"),
    may("return_stack", Kind::Int(0, 64), "dynamic: return addresses that are remembered (0)"),
    may("fetch_bytes", Kind::Int(1, 64), "code is fetched in aligned pieces of so many bytes (4)"),
    may(
        "split_target_cycles",
        Kind::Int(0, 100),
        "cycles more of a jump to an instruction that lies in two of these pieces (0)",
    ),
];

static MEMORY: &[Key] = &[
    need("unaligned", Kind::Bool, "loads and stores work at any address"),
    may(
        "ram_from",
        Kind::Int(0, 1 << 31),
        "first address of memory, where a program cannot have as much as it wants (0)",
    ),
    may("ram_to", Kind::Int(1, 1 << 31), "the address behind its last byte (as much as a program wants)"),
    may("flash_from", Kind::Int(0, 1 << 31), "first address of the memory for code and constants (0)"),
    may("flash_bytes", Kind::Int(1, 1 << 31), "size of the memory for code and constants (as much as a program wants)"),
    may(
        "tables",
        Kind::OneOf(&["ram", "flash"]),
        "where constant tables are, if instructions read them from flash (in RAM, and in flash where they do not fit)",
    ),
    may("banks", Kind::Table(BANKS), "single-ported banks; two accesses to one in the same cycle cost a cycle"),
    may("icache", Kind::Table(CACHE), "instruction cache; without it every fetch hits"),
    may("dcache", Kind::Table(CACHE), "data cache; without it every access hits"),
    may("l2", Kind::Table(crate::core::keys::L2), "on machines with `[core]`: the cache behind both"),
    may(
        "l3",
        Kind::Table(crate::core::keys::L2),
        "behind `l2`: what that one gives up, which goes back there when it is asked for",
    ),
    may("dram", Kind::Table(crate::core::keys::DRAM), "on machines with `[core]`: memory behind all caches"),
    may(
        "dtlb",
        Kind::Table(crate::core::keys::DTLB),
        "on machines with `[core]`: buffer of page translations; without it all are known",
    ),
];

static BANKS: &[Key] = &[
    need("enabled", Kind::Bool, "false: accesses never conflict"),
    need("blocks", Kind::Int(1, 64), "independent blocks of memory"),
    need("block_bytes", Kind::Int(16, 1 << 24), "size of a block in bytes"),
    need("banks", Kind::Int(1, 64), "interleaved banks of a block"),
    need("bank_bytes", Kind::Int(1, 64), "width of a bank in bytes"),
];

static CACHE: &[Key] = &[
    need("enabled", Kind::Bool, "false: every access hits"),
    need("bytes", Kind::Int(16, 1 << 30), "capacity in bytes, a power of two times the ways"),
    need("ways", Kind::Int(1, 64), "lines an address may be in"),
    need("line_bytes", Kind::Int(4, 4096), "bytes of a line, a power of two"),
    need("replacement", Kind::OneOf(&["lru", "random", "fifo"]), "which line gives way"),
    need("write", Kind::OneOf(&["through", "back"]), "when stores reach memory"),
    need("miss_cycles", Kind::Int(0, 100_000), "cycles the pipeline stands still for a line fill"),
    may("writeback_cycles", Kind::Int(0, 100_000), "cycles to write a dirty line back (0)"),
];

static ABI: &[Key] = &[
    need("args", Kind::Texts, "where a caller puts arguments"),
    need("results", Kind::Texts, "where a caller finds results"),
    may("callee_args", Kind::Texts, "where the callee finds arguments (`args`)"),
    may("callee_results", Kind::Texts, "where the callee puts results (`results`)"),
    need("allocatable", Kind::Texts, "registers the allocator may use, best first"),
    may("callee_saved", Kind::Texts, "of those, what a function hands back as it found it"),
    may("call_preserved", Kind::Texts, "preserved by a call without anyone saving it (windows)"),
    need("stack_pointer", Kind::Text, "the stack pointer"),
    may("return_address", Kind::Text, "where a call leaves the return address (on the stack)"),
    may(
        "return_stack",
        Kind::Text,
        "pointer of a stack that holds return addresses alone, which calls and returns move",
    ),
    may("return_bytes", Kind::Int(4, 64), "bytes that a call puts on the stack (a word)"),
    may("code_unit", Kind::Int(1, 16), "bytes that an address in a pointer to code counts as one (1)"),
    need("scratch", Kind::Texts, "never allocated: for moves between spill slots and large offsets"),
    may("registers", Kind::Int(1, 4096), "use no more of `allocatable` and, beyond its first, `scratch` together"),
    may("spill", Kind::Texts, "hold spilled values before the stack does"),
    may("globals", Kind::Texts, "hold the first mutable globals for the whole program"),
    need("stack_align", Kind::Int(1, 4096), "the stack pointer is a multiple of this many bytes"),
    may("frame_reserve", Kind::Int(0, 4096), "bytes at the stack pointer that the convention reserves (0)"),
    need("ops", Kind::Table(OPS), "instructions the frame code is written with"),
    may("link", Kind::Table(LINK), "how a call leaves its return address, where no instruction does"),
    may("windows", Kind::Table(WINDOWS), "register windows"),
    may("rotation", Kind::Table(ROTATION), "loops that are software-pipelined with rotating registers"),
];

static OPS: &[Key] = &[
    need("mov", Kind::Text, "rd = rs"),
    need("add_imm", Kind::Text, "rd = rs + imm"),
    may("add", Kind::Text, "rd = rs1 + rs2"),
    need("load", Kind::Text, "word load with base and displacement"),
    need("store", Kind::Text, "word store with base and displacement"),
    need("jump", Kind::Text, "unconditional jump to a label"),
    may("far_jump", Kind::Text, "the same where `jump` does not reach; it may write the return address's register"),
    need("call", Kind::Text, "call of a label"),
    may("call_indirect", Kind::Text, "call of a register"),
    may(
        "push",
        Kind::Texts,
        "stores one register below the stack pointer and moves it there, two, three ... registers",
    ),
    may("pop", Kind::Texts, "the reverse"),
    may("load_far", Kind::Text, "load, where its displacement does not reach"),
    may("store_far", Kind::Text, "store, where its displacement does not reach"),
    need("ret", Kind::Text, "return"),
    need("trap", Kind::Text, "stop with an error"),
    need("nop", Kind::Text, "nothing"),
];

static LINK: &[Key] = &[
    need("low", Kind::Text, "first instruction that puts a label's address into the return register"),
    need("high", Kind::Text, "second one"),
    need("jump_indirect", Kind::Text, "jump to a register"),
];

static WINDOWS: &[Key] = &[
    need("count", Kind::Int(2, 32), "how many windows the hardware has"),
    need("ins", Kind::Texts, "registers shared with the caller's outs"),
    need("locals", Kind::Texts, "registers of this window alone"),
    need("outs", Kind::Texts, "registers shared with the callee's ins"),
    need("save", Kind::Text, "opens a window, adds an immediate to the stack pointer"),
    need("save_reg", Kind::Text, "opens a window, adds a register to the stack pointer"),
    need("restore", Kind::Text, "closes the window"),
    need("return_address", Kind::Text, "return address as a function with a window of its own sees it"),
    need("ret", Kind::Text, "return from a function that opened a window"),
    need("overflow_cycles", Kind::Int(0, 10_000), "cycles of an overflow trap, handler included"),
    need("underflow_cycles", Kind::Int(0, 10_000), "cycles of an underflow trap, handler included"),
];

static ROTATION: &[Key] = &[
    need(
        "enter",
        Kind::Text,
        "before a loop: the first stage predicate 1, the others 0, and its immediate the number of stages",
    ),
    need("back", Kind::Text, "back to a label while a register is not zero, and until the stages are empty; rotates"),
    need("back_zero", Kind::Text, "the same while the register is zero"),
    need("predicates", Kind::Text, "the register file whose rotating registers are the stage predicates"),
];

static ASM: &[Key] = &[
    may("reg_prefix", Kind::Text, "before every register name"),
    may("guard", Kind::Text, "before an instruction that a predicate `{p}` guards"),
    need("comment", Kind::Text, "starts a comment"),
    may("prologue", Kind::Texts, "lines at the head of a file"),
    may(
        "function_type",
        Kind::Text,
        "what `.type` says of functions: of all of them when stated, of exported ones otherwise (`@function`)",
    ),
    may("code_pointer", Kind::Text, "the two bytes of a pointer to the function `{f}`, where it has so many"),
];

static RULE: &[Key] = &[
    need("name", Kind::Text, "for messages"),
    need("from", Kind::Text, "what is replaced; names are variables, `#n` constant ones"),
    may("let", Kind::Texts, "`t = expression`, shared within `to`"),
    may("throughput", Kind::Bool, "more latency for fewer slots: only where independent work hides it (false)"),
    need("to", Kind::Text, "what replaces it"),
    may("when", Kind::Text, "condition on the constants"),
    may("bits", Kind::Int(32, 64), "only for words of this width"),
    may("description", Kind::Text, "a remark"),
];
