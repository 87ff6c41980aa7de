"""The types of a measurement's parts. Made by `tests/python/measured_types.py` from the core; not to be edited."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict


class Wrong(TypedDict):
    """Hints that were wrong."""

    #: Accesses that are not believed; None: none is.
    accesses: int | None
    #: The first of them.
    first: Place | None


class Place(TypedDict):
    """A place in the code of a module."""

    function: str
    #: Byte offset in the module.
    offset: int


class Lengths(TypedDict):
    """Which passes it was taken from."""

    #: Bytes of the two passes whose difference it is; for a key set-up 0 and the key's.
    shorter: int
    longer: int
    #: Calls on the same machine before the longer one.
    calls_before: int
    #: By how much it differs from the slope before it, as a part of it.
    change: float
    #: The two agree to within a hundredth.
    settled: bool


class Message(TypedDict):
    """A message and its cycles, from its start to its tag or digest."""

    bytes: int
    cycles: int


class Metrics(TypedDict):
    """Fractions derived from the counters."""

    l1d_hit: float | None
    l1i_hit: float | None
    l2_hit: float | None
    #: Branches, jumps, calls and returns among instructions.
    branch_ratio: float
    #: Conditional branches guessed right among all of them.
    prediction_rate: float | None
    #: Conditional branches guessed wrong among instructions.
    mispredict_ratio: float | None
    #: Cycles in which nothing issued.
    stall_ratio: float
    #: Work thrown away after a wrong guess.
    wasted_work: float
    #: Instructions that serve table lookups: that cut out, scale and add the
    #: index, and load.
    lookup_share: float
    #: Issue slots that such instructions take, of all slots of all cycles.
    lookup_slot_share: float
    #: Cycles that go to table lookups: each cycle is divided evenly among the
    #: instructions that issue in it, a wait for a table's entry counts whole.
    #: Null where instructions overlap.
    lookup_cycle_share: float | None
    #: Spills, reloads, saves and moves of the register allocator.
    overhead_share: float
    load_share: float
    store_share: float
    #: On machines with an out-of-order core, where `l1d_hit`, `l1i_hit` and
    #: `l2_hit` are one less lines brought in per instruction: misses per access.
    l1d_miss_ratio: NotRequired[float]
    l2_miss_ratio: NotRequired[float]
    #: Misses, and wrong guesses, per thousand instructions.
    l1d_mpki: NotRequired[float]
    l2_mpki: NotRequired[float]
    branch_mpki: NotRequired[float]
    #: Of the micro-operations that started, those of a wrong path.
    wrong_path_share: NotRequired[float]


class Sample(TypedDict):
    """How a run was sampled."""

    windows: int
    #: Instructions of all windows and of what was timed before the first, and of the run.
    timed: int
    instructions: int
    #: Half the width of the 95 % confidence interval of the cycles, as a
    #: part of them.
    interval: float


class Breakdown(TypedDict):
    """Cycles of the message by cause."""

    issue: int
    load_wait: int
    operand_wait: int
    unit: int
    branch: int
    icache: int
    dcache: int
    window: int
    #: Accesses of one cycle that met in a memory bank.
    bank: int
    #: Registers that crossed between clusters in the cycle after their write.
    cross: int
    #: Machines with a core that schedules at run time: instructions came late.
    frontend: NotRequired[int]
    #: There: reorder buffer, stations or buffers were full.
    full: NotRequired[int]


class Bounds(TypedDict):
    """Lower bounds in cycles per block."""

    #: The executed instructions on the machine's issue slots and units.
    resource: float
    #: From one block to the next along the longest chain of dependences.
    recurrence: float
    #: One block alone, on a machine of unlimited width: the longest chain
    #: from its words in registers to those of the result (for a key set-up,
    #: from the key to the context; for a stream, from one state to the next
    #: and to the keystream).
    critical_path: float
    #: The larger of `resource` and `recurrence`.
    lower: float
    #: Loops of one block whose longest recurrence circuit goes through memory: what each adds to
    #: `recurrence` where that is made of them, with the accesses.
    rounds: list[LoopCircuit]
    #: What the resource bound was chosen from: for each set of units that
    #: instructions choose from, their cycles per block.
    classes: list[Class]
    #: Cycles per block that each unit, and each path between clusters or to
    #: memory, is taken; empty where the hardware chooses the unit.
    units: list[Share]


class LoopCircuit(TypedDict):
    """The longest recurrence circuit of a loop, where it goes through memory."""

    function: str
    #: Number of the loop's block in its function.
    block: int
    #: What it adds to the recurrence bound.
    cycles_per_block: float
    #: Cycles of the circuit, and its passes (the sum of its distances).
    cycles: int
    passes: int
    #: Its instructions, in order.
    chain: list[str]
    #: Its dependences from a store to a load of the same byte.
    accesses: list[MemoryDependence]


class MemoryDependence(TypedDict):
    """A store and a load of one loop that were seen to touch the same byte."""

    store: str
    load: str
    #: Their offsets in the WebAssembly module; 0 where there is none.
    store_at: int
    load_at: int
    #: Passes from the one to the other.
    passes: int


class Class(TypedDict):
    """Units that some instruction chooses from, and what can only run there."""

    units: list[str]
    #: Cycles of units.
    work: float
    #: The work divided among the units: a bound of its own.
    cycles: float


class Share(TypedDict):
    """What a program gave one unit, or one path, to do."""

    unit: str
    #: Its cluster; 0 on an unclustered machine.
    cluster: int
    #: Cycles in which it is taken.
    work: float


class Loop(TypedDict):
    """A software-pipelined loop."""

    ii: int
    res_mii: int
    rec_mii: int
    stages: int
    proved_optimal: bool
    #: No schedule of a smaller II is possible: the greatest of its bounds (units, recurrence circuits,
    #: both together, the branch), or what an exact scheduler proved. The gap to `ii` is open.
    least: int
    #: The kind of proof of `least`: `resources`, `circuit`, `joint`, or `solver`, an exact scheduler's
    #: word; `none` where it is 1 or was not proved.
    certificate: str
    #: Why no smaller II is possible, in words; empty with `solver` and `none`.
    because: str
    #: It has a kept schedule, which an earlier, longer search has found.
    recorded: bool
    #: What an exact scheduler was asked, and its word.
    asked: list[Question]
    function: str
    #: Number of the block in its function that the iterations run in.
    block: int
    #: A recurrence circuit that takes `rec_mii` cycles an iteration.
    round: list[Step]


class Question(TypedDict):
    """A question to a solver, and its word."""

    #: Is there a schedule of this II,
    ii: int
    #: with this cluster assignment?
    division: Literal["any", "own"]
    word: Literal["found", "none", "unknown", "large"]


class Step(TypedDict):
    """An instruction of a recurrence circuit."""

    name: str
    #: Offset in the WebAssembly module; 0 for none.
    at: int
    #: Latency of the dependence to the next instruction, and its distance in iterations.
    cycles: int
    iterations: int
    #: It is a dependence through memory that the code generator cannot rule out.
    memory: bool


class NotPipelined(TypedDict):
    """A loop that is not software-pipelined."""

    function: str
    #: Numbers of its blocks in the function.
    blocks: list[int]
    #: `machine`, `level`, `size`, `calls`, `inner_loop`, `blocks`, `form` or `no_schedule`.
    reason: str
    why: str


class Searched(TypedDict):
    """A search of limited length: the best that it found is what is measured."""

    #: Its budget, as a multiple of the usual one.
    patience: int
    #: The budget was spent before all was tried: with more patience it may get faster.
    spent: bool


class Stages(TypedDict):
    """One micro-operation on its way through the pipeline. Cycles count from the
    start of the measured call; each is the one in which the stage is entered.
    """

    #: Its instruction, as assembly; both, where two became one.
    text: str
    #: The instruction's address in the program.
    address: int
    #: The instruction's number among those that retire, from 0; null on a wrong path.
    instruction: int | None
    #: Its number among the micro-operations of its instruction, from 0.
    micro_op: int
    #: `compute`, `load`, `store_address`, `store_data` or `nothing`.
    kind: str
    fetch: int
    decode: int
    rename: int
    #: Null when it was thrown away before.
    issue: int | None
    #: A user of its result can start; null when it was thrown away before.
    complete: int | None
    #: Null on a wrong path.
    retire: int | None
    squashed: bool
    #: The cycle in which it was thrown away.
    squash: int | None
    #: The port that it started on; null when it takes none, or never started.
    port: str | None


class Leaks(TypedDict):
    """Where secrets decide the time of the machine code, set-up included."""

    #: Instructions where they do, and by kind (as `audit --on` names them); no kinds
    #: where nothing could be followed.
    places: int
    kinds: dict[str, int]
    #: Length of the message that was followed.
    bytes: int
    #: Why nothing is known where no place was found.
    unknown: NotRequired[str]


class OfDirection(TypedDict):
    """What one direction of a cipher takes."""

    direction: str
    code_bytes: int
    table_bytes: int
    #: The calls that take most stack, the outermost first.
    stack: list[Frame]


class Frame(TypedDict):
    """The stack of a function while it is called: its frame, and the return address where a call puts it there."""

    function: str
    bytes: int


class Provenance(TypedDict):
    """Where the numbers come from, and what is needed to get them again."""

    #: `simulated`: cycles of a model, never of this computer.
    kind: str
    ciphermill: str
    #: SHA-256 of the module.
    module: str
    #: SHA-256 of the machine file, its parents, extensions, rules, settings.
    machine: str
    #: SHA-256 of everything else asked for.
    settings: str
    #: Official test cases passed by this module; null: there are none.
    vectors: int | None
    #: Bytes; every buffer starts on a multiple of it.
    buffer_align: int
    level: int
    #: Compiler, flags and sources of the module.
    origin: Any


class Fields:
    """What one cipher did on one machine."""

    __slots__ = ()

    cipher: str
    variant: str
    direction: str
    key_bits: int
    #: Message length; for a key set-up, the key's.
    bytes: int
    #: What `cycles_per_block` counts: block, key, or keystream made at once.
    block_bytes: int
    machine: str
    without: list[str]
    set: list[str]
    clock_mhz: float
    blocks: str
    #: Independent blocks carried through the code together.
    jam: int
    #: Copies of the block loop's body in one iteration.
    unroll: int
    #: What the compiler strove for.
    optimise: Literal["speed", "size"]
    #: Buffers are read and written as words although the C source reads bytes.
    aligned: bool
    #: The context's address stands in the code.
    static: bool
    #: Results and memory equalled the reference interpreter's, and the
    #: official vectors passed on that module.
    verified: bool
    #: Bytes of the message whose output was compared: all of them, or where a
    #: message in pieces is sampled those of the first.
    verified_bytes: int
    #: Why not, when not.
    failure: str | None
    #: What the module states of the alignment of accesses and is not so, on machines where it matters.
    #: Left out where there is none.
    misaligned: Wrong
    #: For the whole message, call and return included.
    cycles: int
    #: Steady state: the slope between two message lengths, in passes over
    #: what has been processed before.
    cycles_per_block: float
    #: Which passes that was taken from.
    steady: Lengths
    #: The same of a key set-up, by its own name.
    #: Left out where there is none.
    cycles_per_keysetup: float
    #: Cycles of short messages as a whole; for what ends a message with a digest or a tag.
    #: Left out where there is none.
    messages: list[Message]
    cycles_per_byte: float
    mbit_per_s: float
    ns_per_byte: float
    #: Null where the machine file says no power.
    nj_per_byte: float | None
    instructions: int
    uops: int
    #: Cycles per instruction.
    cpi: float
    #: Micro-operations per cycle.
    ilp: float
    #: Counters under the vendor's names; empty where the machine names none.
    events: dict[str, int]
    metrics: Metrics
    #: Set when only windows of the message were timed: how many, and half the
    #: 95 % confidence interval of everything that has to do with cycles, as
    #: a part of it.
    #: Left out where there is none.
    sampling: Sample
    #: Cycles per instruction by cause, which sum to `cpi`; empty where the
    #: machine does not schedule at run time.
    #: Left out where there is none.
    cpi_stack: dict[str, float]
    #: Cycles by what they went to; they sum to `cycles`.
    breakdown: Breakdown
    bounds: Bounds
    #: Software-pipelined loops of the functions that ran.
    loops: list[Loop]
    #: Their other loops, and why these are not.
    loops_not_pipelined: list[NotPipelined]
    #: How long variants and schedules were searched for.
    search: Searched
    #: The micro-operations that the request's `trace` named, in program order.
    #: Left out where there is none.
    pipeline: list[Stages]
    #: No branch, address or time of an instruction depends on key, IV or message in the
    #: machine code; null: not known (`leaks.unknown` says why).
    constant_time: bool | None
    leaks: Leaks
    bottleneck: str
    why: str
    code_bytes: int
    #: Of all functions of the module: both directions, all modes and the key set-up.
    code_bytes_total: int
    #: What the cipher keeps of a key between calls.
    context_bytes: int
    #: Cycles of the key set-up before the message, with that of the IV where there is one, of the same
    #: program. Of the direction `keysetup` what `cycles_per_block` says.
    keysetup_cycles: float
    table_bytes: int
    #: Constant data of the whole cipher: both directions and key set-up.
    cipher_table_bytes: int
    stack_bytes: int
    #: The same of each direction that the module has, key set-up last.
    sizes: list[OfDirection]
    provenance: Provenance
