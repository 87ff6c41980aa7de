"""What ``run`` says of schedules that were kept of a program and that it does not have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .. import paths, schedules
from ..manifest import Cipher
from ..measurement import Measurement
from ..options import USUAL, Options
from . import journal
from .cells import OTHER, Cell

#: Measurements from which on one sentence is said of all.
MANY = 5

Run = tuple[Cipher, str, Measurement]


def told(runs: Sequence[Run], options: Options) -> list[str]:
    """A sentence for each measurement whose kept schedules are not taken, or gone; of many one for all. A run
    is a cipher, a machine as it was named, and the measurement."""
    if any(getattr(options, name) != USUAL[name] for name in OTHER):
        return []
    found = [said for run in runs if (said := of(*run, options)) is not None]
    if len(found) < MANY:
        return found
    return [
        f"{len(found)} programs have kept schedules that no loop takes any more; `ciphermill tune --check` says why"
    ]


def of(cipher: Cipher, machine: str, m: Measurement, options: Options) -> str | None:
    """The same for one. Where a loop takes a schedule is known by its interval."""
    asked = replace(options, direction=m.direction, key_bits=m.key_bits, blocks=m.blocks)
    cell = Cell(cipher, m.variant, machine, asked)
    entries = schedules.of(schedules.present(cell.file), cell.note)
    have = {loop["ii"] for loop in m.loops if loop["recorded"]}
    where = paths.shown(cell.file)
    name = cipher.name if schedules.built_in(cipher) else paths.shown(cipher.path)
    command = f"`ciphermill tune {name} --on {machine}"
    if lost := [entry["ii"] for entry in entries if entry["ii"] not in have]:
        which = ", ".join(map(str, sorted(lost)))
        return (
            f"{cell.title}: no loop takes the schedule of II {which} in {where} any more; {command} --check` says why"
        )
    if not entries and cell.file.parent != paths.SCHEDULES:
        known = journal.read(cell.name)
        if known is not None and known.kept:
            return f"{cell.title}: the schedules that were kept in {where} are gone; {command}` searches anew"
    return None
