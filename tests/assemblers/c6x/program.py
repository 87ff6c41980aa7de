"""A program as it was printed, judged and ready to run.

    program = load(text, "c64x")
    memory = program.memory()
    memory.add(0x0100_0000, 64)
    result = program.call("cm_encrypt", 0x0100_0000, memory=memory)

Arguments and results follow TI's EABI: arguments in A4 B4 A6 B6 A8 B8 A10 B10
A12 B12, the result in A4, the return address in B3, the stack pointer in B15
and aligned to 8, A10 to A15 and B10 to B15 kept by the callee.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType

from . import rules
from .core import Core, Result, Stopped
from .decode import DISTANCES, Op, decode
from .layout import FETCH, lay_out
from .memory import Memory
from .operands import Fault, Illegal, register
from .syntax import read
from .table import MACHINES
from .translate import translate

ARGUMENTS = ("a4", "b4", "a6", "b6", "a8", "b8", "a10", "b10", "a12", "b12")
KEPT = tuple(f"{file}{number}" for file in "ab" for number in range(10, 16))
#: The address to which `call` lets the program return.
RETURN = 0xFFFF_FFE0
STACK = 0xD000_0000
STACK_BYTES = 0x1_0000


@dataclass
class Packet:
    """An execute packet, its instructions decoded."""

    address: int
    line: int
    ops: list[Op]
    cycles: int = 1
    #: Sets of registers, one bit each: read at all, and those that may stall
    #: because they are read over a cross path (C64x).
    reads: int = 0
    crossed: int = 0
    compiled: CodeType | None = field(default=None, repr=False)


@dataclass
class Program:
    machine: str
    packets: list[Packet]
    #: Packets by address.
    places: dict[int, int]
    symbols: dict[str, int]
    data: dict[str, tuple[int, bytearray]]
    #: Bytes of code as GNU as would lay it out, and the NOPs it adds for that.
    code_bytes: int
    padding_nops: int

    def code(self, index: int) -> CodeType:
        packet = self.packets[index]
        if packet.compiled is None:
            packet.compiled = translate(packet.ops, self.machine == "c6201")
        return packet.compiled

    def memory(self) -> Memory:
        """Memory with a fresh copy of the program's data."""
        made = Memory()
        for base, content in self.data.values():
            if content:
                made.add(base, bytes(content))
        return made

    def run(
        self,
        entry: str | int,
        registers: dict[str, int] | None = None,
        *,
        until: int = RETURN,
        memory: Memory | None = None,
        bank_conflicts: bool = False,
        limit: int = 1_000_000_000,
    ) -> Result:
        """Runs from a symbol or address until a branch to `until` takes effect.

        Registers not given hold junk, different in each. B3 is `until` unless
        it is given.
        """
        if isinstance(entry, str) and entry not in self.symbols:
            raise KeyError(f"{entry} is no symbol of the program")
        values = [0xBAD0_0000 + 0x101 * number for number in range(64)]
        values[register("b3")] = until
        for key, value in (registers or {}).items():
            values[register(key.lower())] = value & 0xFFFF_FFFF
        core = Core(self, self.memory() if memory is None else memory, bank_conflicts)
        return core.run(entry if isinstance(entry, int) else self.symbols[entry], values, until, limit)

    def call(self, function: str, *arguments: int, memory: Memory | None = None, **options) -> Result:
        """Calls a function as compiled C would, with a stack of its own.

        The result of the function is register a4 of the result. Stopped is
        raised too when a register that a callee must keep has changed.
        """
        if len(arguments) > len(ARGUMENTS):
            raise ValueError(f"{len(arguments)} arguments; those on the stack are not supported")
        memory = self.memory() if memory is None else memory
        if not any(base <= STACK < end for base, end, _ in memory.pieces):
            memory.add(STACK, STACK_BYTES)
        registers = {kept: 0x5A5A_0000 + index for index, kept in enumerate(KEPT)}
        registers["b15"] = STACK + STACK_BYTES - 16
        registers |= zip(ARGUMENTS, arguments, strict=False)
        result = self.run(function, registers, memory=memory, **options)
        for kept in KEPT:
            if result.registers[kept] != registers[kept] & 0xFFFF_FFFF:
                raise Stopped(0, f"{function} returned with {kept} changed, which a callee must keep")
        return result


def load(text: str, machine: str, places: dict[str, int] | None = None) -> Program:
    """Reads and judges a program; Illegal says all that is wrong with it.

    `places` gives addresses of sections; see `layout.PLACES` for the others.
    """
    if machine not in MACHINES:
        raise ValueError(f"machine {machine}: only {' and '.join(MACHINES)} are known")
    source = read(text)
    layout = lay_out(source, machine, places or {})
    faults = source.faults
    packets: list[Packet] = []
    for laid in layout.packets:
        ops = []
        for item in laid.items:
            try:
                ops.append(decode(item, machine, layout.symbols))
            except ValueError as error:
                faults.append(Fault(item.line, str(error)))
        faults += rules.check(ops, MACHINES[machine])
        packets.append(packet(laid.address, laid.line, ops, machine))
    places_of = {packet.address: index for index, packet in enumerate(packets)}
    faults += labels(packets, places_of)
    if faults:
        raise Illegal(faults)
    size, padding = layout.code_bytes, layout.padding_nops
    return Program(machine, packets, places_of, layout.symbols, layout.data, size, padding)


def packet(address: int, line: int, ops: list[Op], machine: str) -> Packet:
    made = Packet(address, line, ops)
    for op in ops:
        made.cycles = max(made.cycles, op.cycles)
        for number in op.reads + ([op.predicate[0]] if op.predicate else []):
            made.reads |= 1 << number
        if op.crossed is not None and machine == "c64x":
            made.crossed |= 1 << op.crossed
    return made


def labels(packets: list[Packet], places: dict[int, int]) -> Iterator[Fault]:
    """Branches to what is no packet, or too far."""
    for packet in packets:
        for op in packet.ops:
            if op.mnemonic not in DISTANCES or op.form.codes[0] != "a":
                continue
            target, reach = op.values[0], 1 << DISTANCES[op.mnemonic] - 1
            if target not in places:
                yield Fault(op.line, f"{op.mnemonic} to {target:#x}, where no packet begins")
            elif not -reach <= (target - packet.address // FETCH * FETCH) // 4 < reach:
                yield Fault(op.line, f"{op.mnemonic} to a label further away than {reach} words")
