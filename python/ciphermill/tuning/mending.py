"""What a report on kept schedules leads to: some go, and what others were for is searched anew."""

from __future__ import annotations

from collections.abc import Iterable

from .. import library, schedules
from .cells import Cell
from .standing import Standing

#: Why an entry is taken out and nothing is searched for: something as good is there.
USELESS = ("found", "shorter", "unknown")
#: Why something is searched for in its place.
LOST = ("cipher", "machine", "loop", "rule")


def lost(found: Iterable[Standing]) -> list[tuple[Cell, list[str]]]:
    """Take out what is of no use; tell the cells that are to be searched anew, and which loops' entries go then."""
    found = list(found)
    for path, machine in dict.fromkeys((each.file, each.machine) for each in found):
        useless = [
            (e.entry.get(schedules.NOTE), e.entry["loop"]) for e in found if e.file == path and e.state in USELESS
        ]

        def change(entries: Iterable[schedules.Entry]) -> Iterable[schedules.Entry]:
            return [e for e in entries if (e.get(schedules.NOTE), e["loop"]) not in useless]  # noqa: B023

        if useless:
            schedules.update(path, library.machine_path(machine).stem, change)
    cells: dict[str, tuple[Cell, list[str]]] = {}
    for each in found:
        if each.cell is not None and each.state in LOST:
            cells.setdefault(each.cell.name, (each.cell, []))[1].append(each.entry["loop"])
    return list(cells.values())
