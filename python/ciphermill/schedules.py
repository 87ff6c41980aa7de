"""Schedules that long searches have found: the files that keep them.

On machines whose work is divided between clusters, how short a loop's schedule becomes depends
on how long is searched, and a run has only seconds. ``ciphermill tune`` searches for minutes and
writes what it finds into ``schedules/MACHINE.json`` (for a machine file of the user's,
``MY.schedules.json`` beside it), a line for each loop. Every run takes a loop's schedule from
there, if the core finds that it is for that very loop and keeps every rule; if not, and with
``--fresh``, it searches. So a file that is out of date, or wrong, costs cycles and never a result.

A file is ``{"machine": NAME, "schedules": [...]}``. Each entry has what the core reads
(``crates/program/src/recorded.rs``) and ``for``: what was measured when it was found.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from . import library, paths
from ._core import InputError

#: What only readers of the file look at.
NOTE = "for"


def file(machine: str) -> Path:
    """Where schedules for a machine are kept, whether there are any or not."""
    path = library.machine_path(machine)
    if path.parent.resolve() == paths.MACHINES.resolve():
        return paths.SCHEDULES / f"{path.stem}.json"
    return path.with_suffix(".schedules.json")


def known(machine: str) -> list[dict[str, Any]]:
    """What the core is told of the schedules for a machine; raises InputError for a file that is none."""
    path = file(machine)
    return (
        [{key: value for key, value in entry.items() if key != NOTE} for entry in read(path)] if path.is_file() else []
    )


def read(path: Path) -> list[dict[str, Any]]:
    """The entries of a file. Raises InputError, which names it."""
    try:
        stat = path.stat()
    except OSError as error:
        raise InputError(f"{paths.shown(path)}: {error.strerror}") from None
    return _parsed(path, stat.st_mtime_ns, stat.st_size)


@cache
def _parsed(path: Path, _changed: int, _size: int) -> list[dict[str, Any]]:
    mend = "write it anew with `ciphermill tune`, or remove it"
    try:
        document = json.loads(library.read(path)["text"])
        entries: list[dict[str, Any]] = document["schedules"]
        for entry in entries:
            check(entry)
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(f"{paths.shown(path)}: not a file of schedules ({error}); {mend}") from None
    return entries


def check(entry: Mapping[str, Any]) -> None:
    """Raise ValueError for what the core would not read as a schedule."""

    def whole(value: Any, most: int) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most

    for key in ("loop", "divided", "sides"):
        if not isinstance(entry[key], str) or not entry[key].isascii():
            raise ValueError(f"`{key}` is a text of letters and digits")
    if not whole(entry["ii"], 2**32 - 1):
        raise ValueError("`ii` is a number of cycles")
    for key, most in (("time", 2**62), ("variant", 2**16 - 1)):
        if not isinstance(entry[key], list) or not all(whole(value, most) for value in entry[key]):
            raise ValueError(f"`{key}` is a list of numbers from 0 on")
    if unknown := set(entry) - {"loop", "ii", "divided", "sides", "time", "variant", NOTE}:
        raise ValueError(f"`{min(unknown)}` is nothing that a schedule has")


def keep(
    machine: str, new: Iterable[Mapping[str, Any]], note: str
) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Write schedules to the machine's file where none so short is there for their loops, in any form of these.

    The result has each that was written, and those that it took the place of.
    """
    path = file(machine)
    entries = {entry["loop"]: entry for entry in (read(path) if path.is_file() else ())}
    written = []
    for schedule in new:
        own = {key: value for key, value in schedule.items() if key != "forms"}
        forms = {own["loop"], *schedule.get("forms", ())} & entries.keys()
        if all(own["ii"] < entries[form]["ii"] for form in forms):
            replaced = [entries.pop(form) for form in sorted(forms)]
            entries[own["loop"]] = {NOTE: note, **own}
            written.append((entries[own["loop"]], replaced))
    if written:
        write(path, library.machine_path(machine).stem, entries.values())
    return written


def write(path: Path, name: str, entries: Iterable[Mapping[str, Any]]) -> None:
    """A file of schedules, a line for each, in the order of what they are for."""
    ordered = sorted(entries, key=lambda entry: (entry.get(NOTE, ""), entry["loop"]))
    lines = ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in ordered)
    text = f'{{"machine": {json.dumps(name)}, "schedules": [\n{lines}\n]}}\n'
    try:
        paths.write_atomically(path, text.encode())
    except OSError as error:
        raise InputError(f"{paths.shown(path)}: {error.strerror}") from None
