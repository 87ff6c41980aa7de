"""What instructions may not do together in one execute packet.

These are TI's resource constraints (SPRU733 and SPRU732, section 3.7 and 3.8)
as far as they can be seen without running the program. Two writes that land on
one register in one cycle, two branches that are both taken, and clashes at the
.M write port depend on the run; `core.py` finds those.

A register may be read four times in a packet; predicates do not count, and
neither does it matter whether a predicate is true.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from .decode import Op
from .operands import Fault, name
from .table import NONALIGNED

MOST_READS = 4


def check(ops: list[Op], isa: int) -> Iterator[Fault]:
    """Every rule that a packet breaks, each at the later instruction."""
    for rule in (units, crossings, memory, longs, reads, writes, branches):
        yield from rule(ops, isa)


def units(ops: list[Op], isa: int) -> Iterator[Fault]:
    used: set[str] = set()
    for op in ops:
        if op.unit and op.unit in used:
            yield Fault(op.line, f".{op.unit} is used twice in the packet")
        used.add(op.unit)


def crossings(ops: list[Op], isa: int) -> Iterator[Fault]:
    for side in (1, 2):
        users = [op for op in ops if op.side == side and op.crossed is not None]
        most = 1 if isa < 64 else 2
        if len(users) > most:
            yield Fault(users[most].line, f"cross path {side}x is used by {len(users)} units; it can be by {most}")
        if len({op.crossed for op in users}) > 1:
            both = " and ".join(name(op.crossed) for op in users)
            yield Fault(users[1].line, f"cross path {side}x carries two registers, {both}")


def memory(ops: list[Op], isa: int) -> Iterator[Fault]:
    accesses = [op for op in ops if op.memory]
    for index, op in enumerate(accesses):
        if any(op.path == earlier.path for earlier in accesses[:index]):
            yield Fault(op.line, f"data path t{op.path} is used twice: two accesses of file {'-AB'[op.path]}")
    if len(accesses) > 1:
        for op in accesses:
            if op.mnemonic in NONALIGNED:
                yield Fault(op.line, f"{op.mnemonic} uses both data paths: no other access can be in its packet")


def longs(ops: list[Op], isa: int) -> Iterator[Fault]:
    """One 40-bit result and one 40-bit source on each side.

    On the C62x the read port for long sources is also that of store data.
    """
    for side in (1, 2):
        mine = [op for op in ops if op.side == side]
        results = [op for op in mine if "L" in op.form.codes]
        sources = [op for op in mine if "l" in op.form.codes]
        if len(results) > 1:
            yield Fault(results[1].line, f"two 40-bit results on side {side}")
        if len(sources) > 1:
            yield Fault(sources[1].line, f"two 40-bit sources on side {side}")
        stores = [op for op in ops if op.is_store and op.path == side]
        if isa < 64 and sources and stores:
            yield Fault(sources[0].line, f"a 40-bit source and store data on side {side} share a read port")


def reads(ops: list[Op], isa: int) -> Iterator[Fault]:
    counts = Counter(number for op in ops for number in op.reads + op.idle_reads)
    for number, count in counts.items():
        if count > MOST_READS:
            yield Fault(ops[0].line, f"{name(number)} is read {count} times in the packet; it can be {MOST_READS}")


def writes(ops: list[Op], isa: int) -> Iterator[Fault]:
    """Two writes that are sure to land together."""
    landing: dict[tuple[int, int], list[Op]] = {}
    for op in ops:
        landings = [(number, op.form.latency) for number in op.writes]
        if op.modifies is not None:
            landings.append((op.modifies, 1))
        for where in landings:
            for other in landing.get(where, []):
                if other.predicate == op.predicate:
                    yield Fault(op.line, f"two writes of {name(where[0])} land in one cycle")
                    break
            landing.setdefault(where, []).append(op)


def branches(ops: list[Op], isa: int) -> Iterator[Fault]:
    to_labels = [op for op in ops if op.mnemonic in ("b", "bnop", "bdec", "bpos") and op.form.codes[0] == "a"]
    if len(to_labels) > 1:
        yield Fault(to_labels[1].line, "two branches to labels in one packet")
    waiting = [op for op in ops if op.cycles > 1]
    if len(waiting) > 1:
        yield Fault(waiting[1].line, "two instructions that each add NOP cycles in one packet")
