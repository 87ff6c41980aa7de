"""Of each kept schedule whether a loop takes it, and if none does, why.

The core is asked for the schedules of a program's loops twice: with all that is kept, as a run has it, and with
nothing. What is taken comes back as it stands in the file. From the digests of the loops that come back it is seen
whether the loop is there at all; whether the cipher's code or the machine has changed, from those that stand
beside the schedule.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import library, manifest, paths, schedules
from .._core import InputError, InternalError
from ..manifest import Cipher
from ..options import BLOCKS, DIRECTIONS, Options
from . import search
from .cells import Cell

#: What can be said of a kept schedule, and in words. `AS_GOOD`: it is taken, and gains time and no cycles.
TAKEN, AS_GOOD = "taken", "as good"
REASONS = {
    TAKEN: "taken",
    AS_GOOD: "taken, and as good as a run's own search, which it spares",
    "found": "a run's own search is as good or better by now",
    "shorter": "one that is as short or shorter is kept of the same loop",
    "cipher": "the cipher's code is another: its source, a flag or the compiler has changed",
    "machine": "the machine is another: its description has changed",
    "loop": "the loop is another: the code generator makes other code, or prefers another form of it",
    "rule": "the loop is the same, and the schedule breaks a rule on it",
    "unknown": "nothing is known of what it is for",
    "failed": "what it is for cannot be measured",
}

#: An entry's note: cipher and variant, direction, key, mode, and what else was asked for.
NOTE = re.compile(rf"(.+) ({'|'.join(DIRECTIONS)}), (\d+) bits, ({'|'.join(BLOCKS)})((?:, .+)?)")


@dataclass(frozen=True)
class Standing:
    """What is said of one kept schedule."""

    file: Path
    machine: str
    entry: Mapping[str, Any]
    #: None where its note says nothing that there is.
    cell: Cell | None
    #: A key of `REASONS`.
    state: str
    #: What the core said where that is why.
    message: str = ""

    @property
    def taken(self) -> bool:
        return self.state in (TAKEN, AS_GOOD)

    def to_dict(self) -> dict[str, Any]:
        told = {
            "file": paths.shown(self.file),
            "machine": self.machine,
            "for": self.entry.get(schedules.NOTE, ""),
            "loop": self.entry["loop"],
            "ii": self.entry["ii"],
            "taken": self.taken,
            "state": self.state,
            "reason": REASONS[self.state],
        }
        return told | ({"message": self.message} if self.message else {})


def cell(note: str, machine: str, ciphers: Mapping[str, tuple[Cipher, str]], cc: str) -> Cell | None:
    """The cell of an entry's note; None where it names no cipher of those that are given."""
    said = NOTE.fullmatch(note)
    if said is None or said[1] not in ciphers:
        return None
    others = said[5].split(", ")[1:]

    def all_of(word: str) -> tuple[str, ...]:
        return tuple(other.removeprefix(f"{word} ") for other in others if other.startswith(f"{word} "))

    unroll = next((asked for asked, word in schedules.UNROLLED.items() if word in others), None)
    options = Options(
        direction=said[2], key_bits=int(said[3]), blocks=said[4], jam=next(map(int, all_of("jam")), None),
        unroll=unroll, aligned="aligned" in others, with_=all_of("with"), without=all_of("without"),
        set=all_of("set"), cc=cc,
    )  # fmt: skip
    return Cell(*ciphers[said[1]], machine, options)


def of(
    ciphers: Sequence[Cipher], variant: str | None, machines: Sequence[str], cc: str, jobs: int | None = None
) -> Iterator[Standing]:
    """What is kept of some ciphers on some machines, cell by cell. Raises InputError for a file that is none."""
    groups: dict[tuple[Path, str, str], list[schedules.Entry]] = {}
    by_file: dict[tuple[Path, str], dict[str, tuple[Cipher, str]]] = {}
    for machine in machines:
        for cipher in ciphers:
            names = by_file.setdefault((schedules.file(machine, cipher), machine), {})
            chosen = cipher.variants if variant is None else (variant,)
            names.update({f"{cipher.name}/{name}": (cipher, name) for name in chosen})
    everything = {cipher.name for cipher in ciphers if schedules.built_in(cipher)} >= set(manifest.names())
    for (path, machine), names in by_file.items():
        # A file that is asked about as a whole may have entries of what is there no more.
        whole = variant is None and (everything or path != schedules.common(library.machine_path(machine)))
        for entry in schedules.present(path):
            note = entry.get(schedules.NOTE, "")
            said = NOTE.fullmatch(note)
            if whole or (said is not None and said[1] in names):
                groups.setdefault((path, machine, note), []).append(entry)

    def told(group: tuple[tuple[Path, str, str], list[schedules.Entry]]) -> list[Standing]:
        (path, machine, note), entries = group
        return of_cell(path, machine, entries, cell(note, machine, by_file[path, machine], cc))

    with ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        for found in pool.map(told, groups.items()):
            yield from found


def of_cell(path: Path, machine: str, entries: Iterable[schedules.Entry], whose: Cell | None) -> list[Standing]:
    """What is said of the entries of one cell."""
    if whose is None:
        return [Standing(path, machine, entry, None, "unknown") for entry in entries]
    try:
        module = whose.module()
        known = schedules.known(machine, whose.cipher)
        now = search.records(whose, module, known, search.AS_A_RUN)
        fresh = search.records(whose, module, (), search.AS_A_RUN)
        origin = whose.origin(module)
    except (InputError, InternalError) as error:
        return [Standing(path, machine, entry, whose, "failed", str(error)) for entry in entries]
    return [Standing(path, machine, entry, whose, state(entry, now, fresh, origin)) for entry in entries]


def state(
    entry: schedules.Entry, now: Sequence[schedules.Entry], fresh: Sequence[schedules.Entry], origin: Mapping[str, str]
) -> str:
    """Whether a loop takes an entry, from the schedules of a program with what is kept and without."""
    own = min((found["ii"] for found in fresh if same(entry, found)), default=None)
    if search.taken([entry], now):
        return AS_GOOD if own is not None and own <= entry["ii"] else TAKEN
    if own is not None and own <= entry["ii"]:
        return "found"
    beside = [found for found in now if same(entry, found)]
    if any(found["ii"] <= entry["ii"] for found in beside):
        return "shorter"
    if beside or own is not None:
        return "rule"
    was = entry.get(schedules.ORIGIN, {})
    for key, reason in (("module", "cipher"), ("machine", "machine")):
        if key in was and was[key] != origin[key]:
            return reason
    return "loop"


def same(entry: schedules.Entry, found: schedules.Entry) -> bool:
    """Are they of one loop, in any form?"""
    return entry["loop"] in (found["loop"], *found.get("forms", ()))
