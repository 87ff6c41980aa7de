"""One cell: its measurements, a round of its search, and what of that is kept."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from .. import _core, engine, kept, library, places, schedules
from .._core import InputError, InternalError
from ..measurement import Measurement
from . import journal
from .cells import Cell
from .journal import Record, Round

#: Why a cell is closed: no loop of it has a schedule that is written down, or each is proved the shortest.
NOTHING, PROVED = "nothing", "proved"
#: The search that a run makes, whose schedules are wanted as well.
AS_A_RUN = {"times": 1, "round": 0}

#: An entry that is new, and those that it took the place of.
Written = tuple[dict[str, Any], list[dict[str, Any]]]


@dataclass(frozen=True)
class Step:
    """What a step led to: how far the cell has come, and the loops that are new in the file."""

    record: Record
    #: ``ii``, and ``instead``: the interval of what was kept of that loop so far, or null.
    kept: list[dict[str, Any]] = field(default_factory=list)
    #: It had been done before: nothing was measured or searched.
    known: bool = False
    #: Kept schedules that the journal knows of are gone from the file.
    gone: int = 0


@dataclass(frozen=True)
class Found:
    """What a search found: whether any loop has a schedule that can be written down, and a better program if there is one."""

    any: bool
    #: The program with `merged`, no slower than before; None where it would be slower, or nothing is new.
    better: Measurement | None = None
    merged: list[dict[str, Any]] = field(default_factory=list)
    written: list[Written] = field(default_factory=list)


def begin(cell: Cell, module: engine.Module, dropped: Collection[str] = ()) -> Step:
    """What a cell's search begins with; from the journal where that knows it.

    A cell that a run's own search proves the shortest is done with it: its schedules are kept at once.

    Raises InputError for a program that cannot be measured, or is not verified.
    """
    key, entries = cell.key(module), own(cell, dropped)
    known = journal.read(cell.name)
    same = known is not None and known.key == key
    gone = 0
    if known is not None and same and not dropped:
        if journal.there(known, entries):
            return Step(known, known=True)
        gone = len(known.kept)
    started = time.perf_counter()
    before = kept.measurement(module, cell.machine, replace(cell.options, fresh=True))
    seconds = time.perf_counter() - started
    now = measured(cell, module, entries) if entries else before
    if not before.verified:
        raise InputError(f"{cell.title}: not verified: {before.failure}; `ciphermill run` says whose fault that is")
    if known is not None:
        # A measurement that was found in the cache took no time.
        seconds = max(seconds, known.seconds)
    record = Record(
        key, cell.title, before.cycles_per_block, now.cycles_per_block, now.bounds["lower"], seconds,
        PROVED if proved(now) else "", kept=named(entries),
    )  # fmt: skip
    new: list[Written] = []
    if record.closed and not entries:
        # Nothing shorter is to be found, but what is kept spares runs the search.
        found = searched(cell, module, record, entries, AS_A_RUN)
        if found.better is not None:
            new = found.written
            record = with_program(record, found.better)
    if record.closed and (new or dropped):
        keep(cell, [entry for entry, _ in new], cell.origin(module), dropped)
        record = msgspec.structs.replace(record, kept=named(own(cell, ())))
    journal.write(cell.name, record)
    return Step(record, told(new), gone=gone)


def go_on(cell: Cell, module: engine.Module, record: Record, effort: tuple[int, int], dropped: Collection[str]) -> Step:
    """A round of so many times a run's search, with the numbers of that round; keep what makes the program faster.

    Where nothing is kept so far and nothing faster is found, what a run's own search finds is kept: it spares runs
    the search. Nothing is written before it has been measured and verified. Entries of the cell whose loops are
    `dropped` go when it is.
    """
    times, number = effort
    started = time.perf_counter()
    entries = own(cell, dropped)
    after, new = record, []
    closed = NOTHING
    for search in ({"times": times, "round": number}, AS_A_RUN):
        found = searched(cell, module, record, entries, search)
        if not found.any:
            break
        closed = record.closed
        if found.better is not None:
            after, new = with_program(record, found.better), found.written
            closed = PROVED if proved(found.better) else closed
            dropped = {*dropped, *(entry["loop"] for entry in entries if entry not in found.merged)}
        if new or entries:
            break
    if new or dropped:
        keep(cell, [entry for entry, _ in new], cell.origin(module), dropped)
    done = Round(times, number, time.perf_counter() - started)
    left = own(cell, ())
    record = msgspec.structs.replace(
        after, closed=closed, rounds=(*record.rounds, done), kept=named(left)
    )  # fmt: skip
    journal.write(cell.name, record)
    return Step(record, told(new))


def searched(
    cell: Cell, module: engine.Module, record: Record, entries: Sequence[dict[str, Any]], search: dict[str, int]
) -> Found:
    """A search that goes on from some entries, and what of its schedules is worth keeping; nothing is written."""
    new = records(cell, module, entries, search)
    merged, written = schedules.merged(entries, new, cell.note, cell.origin(module))
    if not written:
        return Found(bool(new))
    # Only what loops take stays: of a form that the code does not have nothing does.
    merged = taken(merged, records(cell, module, merged, AS_A_RUN))
    written = [(entry, replaced) for entry, replaced in written if entry in merged]
    after = measured(cell, module, merged) if written else None
    if after is None or not gains(record, after):
        return Found(True)
    if not after.verified:
        raise InternalError(f"{cell.title}: not verified with new schedules: {after.failure}")
    return Found(True, after, merged, written)


def with_program(record: Record, m: Measurement) -> Record:
    """The record with a better program's cycles and their bound: one in another form has other instructions."""
    return msgspec.structs.replace(record, now=m.cycles_per_block, lower=m.bounds["lower"])


def told(new: Iterable[Written]) -> list[dict[str, Any]]:
    """What is new in the file, as a step tells it."""
    return [{"ii": entry["ii"], "instead": least(replaced)} for entry, replaced in new]


def gains(record: Record, after: Measurement) -> bool:
    """Are new schedules worth keeping: is the program no slower than a run's own, and than with what is kept?"""
    has = any(loop["recorded"] for loop in after.loops)
    return has and record.before >= after.cycles_per_block <= record.now


def own(cell: Cell, dropped: Collection[str]) -> list[dict[str, Any]]:
    """What is kept of a cell."""
    return [e for e in schedules.of(schedules.present(cell.file), cell.note) if e["loop"] not in dropped]


def keep(cell: Cell, found: Iterable[schedules.Entry], origin: dict[str, str], dropped: Collection[str]) -> None:
    """Put what was found into the file as it is by now, and take out what is dropped."""

    def change(entries: Sequence[schedules.Entry]) -> Iterable[schedules.Entry]:
        left = [e for e in entries if e.get(schedules.NOTE) != cell.note or e["loop"] not in dropped]
        return schedules.merged(left, found, cell.note, origin)[0]

    schedules.update(cell.file, library.machine_path(cell.machine).stem, change)


def measured(cell: Cell, module: engine.Module, entries: Sequence[schedules.Entry]) -> Measurement:
    """The program with certain schedules, whatever the files hold."""
    asked = engine.request(module, cell.machine, cell.options, kept=entries)
    with places.told(module):
        return Measurement(json.loads(_core.measure(module.wasm, asked)))


def records(
    cell: Cell, module: engine.Module, entries: Sequence[schedules.Entry], search: dict[str, int]
) -> list[dict[str, Any]]:
    """The schedules of the program's longest loops after a search."""
    asked = engine.request(module, cell.machine, cell.options, judged=False, search=search, kept=entries)
    with places.told(module):
        found: dict[str, Any] = json.loads(_core.records(module.wasm, asked))
    return [{**schedule, schedules.FORM: found["form"]} for schedule in found["schedules"]]


def taken(entries: Sequence[schedules.Entry], found: Iterable[schedules.Entry]) -> list[dict[str, Any]]:
    """The entries that loops of a program have, by the schedules that the core says these have."""
    have = [
        {key: value for key, value in schedule.items() if key not in ("forms", schedules.FORM)} for schedule in found
    ]
    return [dict(entry) for entry in entries if schedules.plain([entry])[0] in have]


def proved(m: Measurement) -> bool:
    """Is every pipelined loop proved the shortest, so that no search finds more?"""
    return bool(m.loops) and all(loop["ii"] <= loop["least"] for loop in m.loops)


def named(entries: Iterable[schedules.Entry]) -> tuple[tuple[str, int], ...]:
    return tuple((entry["loop"], entry["ii"]) for entry in entries)


def least(entries: Iterable[schedules.Entry]) -> int | None:
    return min((entry["ii"] for entry in entries), default=None)
