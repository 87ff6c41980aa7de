"""The machine at work: cycles, delayed results, branches in flight, stalls.

Time is counted twice. `t` is pipeline time, in which every delay is measured;
a stall stops the whole pipeline, so it is added to the cycles and not to `t`.

At the beginning of a cycle the results that are due land in the registers.
Then a branch issued six cycles before takes effect, whatever the machine is
doing: a multi-cycle NOP ends there. Otherwise the next packet is issued, or
the NOP goes on.

Two results on one register in one cycle are an error (TI: the result is
undefined), and so are two branches taken from one packet. On the C64x a unit
.M has two write ports of 32 bits: a 64-bit result and another one that land
together are an error too.

Stalls, one cycle each and one at most of each kind for a packet:

* C64x: an operand that crosses and was written at the end of the cycle before,
  other than by a load. Whether the reading instruction's predicate is true
  makes no difference: the operand is fetched before the predicate is known.
  An address register changed by a load counts as written.
* C6201, when asked for: two accesses that share a bank of data memory.

A read of a register for which a result is still in flight takes the old value.
That is legal, and often meant; it is noted with line, register and count.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from . import semantics
from .memory import AccessError, Memory, banks
from .operands import name
from .translate import CLASH

BRANCH_CYCLES = 6
#: Cycles after `mvc` to GFPGFR in which a `gmpy4` is noted as doubtful.
FIELD_SETTLES = 4
M32 = 0xFFFFFFFF


class Stopped(Exception):
    """The program did what the machine does not define."""

    def __init__(self, line: int, text: str) -> None:
        self.line, self.text = line, text
        super().__init__(f"line {line}: {text}")


@dataclass
class Result:
    """What a run did."""

    cycles: int = 0
    packets: int = 0
    #: Instructions issued, NOPs not counted, those with a false predicate counted.
    instructions: int = 0
    #: Instructions by mnemonic, NOPs included.
    mix: Counter = field(default_factory=Counter)
    #: `taken`, `annulled` (false predicates), `cross_path_stalls`, `bank_conflicts`.
    events: Counter = field(default_factory=Counter)
    #: Reads of registers with a result in flight, by line and register.
    early_reads: Counter = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    registers: dict[str, int] = field(default_factory=dict)
    memory: Memory | None = None


class Core:
    """One run of a program."""

    def __init__(self, program, memory: Memory, bank_conflicts: bool) -> None:
        self.program, self.memory, self.bank_conflicts = program, memory, bank_conflicts
        self.result = Result(memory=memory)
        self.ring: list[list[tuple]] = [[] for _ in range(8)]
        self.flying = [0] * 8
        self.taken: list[tuple[int, int]] = []
        self.annulled = [0]
        self.controls = {"gfpgfr": 0x0700_001D, "amr": 0, "csr": 0x0100}
        self.settled = -1
        self.functions: list = [None] * len(program.packets)
        self.names = {name: value for name, value in vars(semantics).items() if callable(value)} | {
            "M32": M32,
            "G": self.controls,
            "ring": self.ring,
            "flying": self.flying,
            "taken": self.taken,
            "annulled": self.annulled,
            "load": self.load,
            "store": self.store,
            "stop": self.stop,
            "unaligned": self.unaligned,
            "clash": lambda a, m, b, n: not banks(a, m).isdisjoint(banks(b, n)),
            "control": self.control,
            "early": self.early,
        }

    def function(self, index: int):
        exec(self.program.code(index), self.names)
        self.functions[index] = made = self.names.pop("packet")
        return made

    def load(self, line: int, address: int, size: int) -> int:
        try:
            return self.memory.load(address, size)
        except AccessError as error:
            raise Stopped(line, str(error)) from None

    def store(self, line: int, address: int, size: int, value: int) -> None:
        try:
            self.memory.store(address, size, value)
        except AccessError as error:
            raise Stopped(line, str(error)) from None

    def stop(self, line: int, text: str) -> None:
        raise Stopped(line, text)

    def unaligned(self, line: int, address: int, size: int) -> None:
        raise Stopped(line, f"unaligned access of {size} bytes at {address:#010x}")

    def control(self, line: int, register: str, value: int, t: int) -> None:
        if register == "amr" and value:
            raise Stopped(line, "circular addressing is not modelled")
        if register == "csr":
            raise Stopped(line, "writing csr is not modelled")
        self.controls[register] = value
        self.settled = t + FIELD_SETTLES

    def early(self, line: int, t: int) -> None:
        if t < self.settled:
            self.result.notes.append(f"line {line}: gmpy4 less than {FIELD_SETTLES} cycles after gfpgfr was written")
        if self.controls["gfpgfr"] >> 24 & 7 != 7:
            raise Stopped(line, "gmpy4 outside fields of 256 elements is not modelled")

    def run(self, entry: int, registers: list[int], until: int, limit: int) -> Result:
        """Runs from an address until a branch to `until` takes effect."""
        program, ring, flying, taken, functions = self.program, self.ring, self.flying, self.taken, self.functions
        packets, places = program.packets, program.places
        counts = [0] * len(packets)
        turns: list[int | None] = [None] * 8
        index = self.place(0, entry)
        t = stalls = idle = line = written = 0
        while True:
            slot = t & 7
            if ring[slot]:
                written = self.land(slot, registers, written)
            if turns[slot] is not None:
                target, turns[slot] = turns[slot], None
                if target == until:
                    break
                idle, index = 0, places.get(target, -1)
                if index < 0:
                    raise Stopped(line, f"branch to {target:#010x}, where no packet begins")
            if idle:
                idle -= 1
                t += 1
                written = 0
                continue
            if index >= len(packets):
                raise Stopped(line, "the program runs past its last packet")
            packet = packets[index]
            line = packet.line
            if packet.crossed & written:
                stalls += 1
                self.result.events["cross_path_stalls"] += 1
            old = flying[0] | flying[1] | flying[2] | flying[3] | flying[4] | flying[5] | flying[6] | flying[7]
            if old & packet.reads:
                self.note(packet, old, registers)
            written = (functions[index] or self.function(index))(registers, t)
            if written & CLASH:
                written ^= CLASH
                if self.bank_conflicts:
                    stalls += 1
                    self.result.events["bank_conflicts"] += 1
            if taken:
                line, target = taken[0]
                if len(taken) > 1:
                    raise Stopped(taken[1][0], "two branches of one packet are both taken")
                taken.clear()
                turns[t + BRANCH_CYCLES & 7] = target
                self.result.events["taken"] += 1
            counts[index] += 1
            idle = packet.cycles - 1
            index += 1
            t += 1
            if t > limit:
                raise Stopped(line, f"more than {limit} cycles")
        return self.finish(t, stalls, counts, registers)

    def place(self, line: int, address: int) -> int:
        index = self.program.places.get(address)
        if index is None:
            raise Stopped(line, f"no packet begins at {address:#010x}")
        return index

    def land(self, slot: int, registers: list[int], written: int) -> int:
        """Results due now; the set of registers written, loads left out."""
        taken, ports = written, [0, 0, 0]
        for number, value, mark, port, line in self.ring[slot]:
            if taken >> number & 1:
                raise Stopped(line, f"two writes of {name(number)} land in one cycle")
            taken |= 1 << number
            written |= mark
            registers[number] = value
            if port:
                ports[port] += 1
                if ports[port] > 2:
                    raise Stopped(line, f"three results of .m{port} land in one cycle; it has two write ports")
        self.ring[slot].clear()
        self.flying[slot] = 0
        return written

    def note(self, packet, old: int, registers: list[int]) -> None:
        for op in packet.ops:
            reads = {*op.reads}
            if op.predicate:
                reads.add(op.predicate[0])
                if bool(registers[op.predicate[0]]) == op.predicate[1]:
                    reads = {op.predicate[0]}
            for number in reads:
                if old >> number & 1:
                    self.result.early_reads[op.line, name(number)] += 1

    def finish(self, t: int, stalls: int, counts: list[int], registers: list[int]) -> Result:
        result, program = self.result, self.program
        result.cycles = t + stalls
        result.packets = sum(counts)
        for packet, count in zip(program.packets, counts, strict=True):
            if count:
                for op in packet.ops:
                    result.mix[op.mnemonic] += count
        result.instructions = result.mix.total() - result.mix["nop"]
        result.events["annulled"] = self.annulled[0]
        for later in range(t + 1, t + 8):
            for number, _, _, _, line in self.ring[later & 7]:
                result.notes.append(f"line {line}: the result in {name(number)} lands after the return")
            self.land(later & 7, registers, 0)
        result.registers = {name(number): value for number, value in enumerate(registers)}
        return result
