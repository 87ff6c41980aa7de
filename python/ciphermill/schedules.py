"""Schedules that long searches have found: the files that keep them.

On machines that schedule at compile time, how short a loop's schedule becomes depends
on how long is searched, and a run has only seconds. ``ciphermill tune`` searches for minutes and
keeps what it finds, a line for each loop: of a built-in cipher in ``schedules/MACHINE.json`` (for
a machine file of the user's, in ``MY.schedules.json`` beside it), of a cipher of the user's in
``CIPHER.MACHINE.schedules.json`` beside that. Every run takes a loop's schedule from there, if the
core finds that it is for that very loop and keeps every rule; if not, and with ``--fresh``, it
searches. So a file that is out of date, or wrong, costs cycles and never a result.

A file is ``{"machine": NAME, "schedules": [...]}``. Each entry has what the core reads
(``crates/program/src/kept_schedules.rs``), ``for``, which says what was measured when it was found, and
``of``, digests of the module and the machine that it was found with. ``form`` is the variant of the code that it was
found in: a run compiles that one alone, as long as its loop takes the schedule. An entry belongs to what
its ``for`` says: a search replaces no other's, so that in which order searches are made, and how many at
once, makes no difference to a file.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from . import library, paths
from ._core import InputError
from .manifest import FILE, Cipher
from .options import Options

#: What an entry says beside its schedule: what it is for, digests of what it was found with, and the variant of the code
#: that it was found in.
NOTE, ORIGIN, FORM = BESIDE = "for", "of", "form"

#: How a choice about loops is named where it was made.
UNROLLED = {True: "unrolled", False: "not unrolled"}

#: What a variant of the code is told by (``Unrolling`` in ``crates/measure/src/request.rs``).
FORMS = {"unrolled": bool, "jam": int, "throughput": bool, "short": bool, "sums": bool}
#: What a form may leave out.
LEFT_OUT = {"short": bool, "sums": bool}

Entry = Mapping[str, Any]


def file(machine: str, cipher: Cipher) -> Path:
    """Where schedules for a cipher on a machine are kept, whether there are any or not."""
    path = library.machine_path(machine)
    if not built_in(cipher):
        return cipher.path.with_name(f"{cipher.path.stem}.{path.stem}.schedules.json")
    return common(path)


def common(machine: Path) -> Path:
    """Where those of built-in ciphers are kept, for the machine of a file."""
    if machine.parent.resolve() == paths.MACHINES.resolve():
        return paths.SCHEDULES / f"{machine.stem}.json"
    return machine.with_suffix(".schedules.json")


def built_in(cipher: Cipher) -> bool:
    path = cipher.path.resolve()
    return path.name == FILE and path.parent.parent == paths.CIPHERS.resolve()


def known(machine: str, cipher: Cipher) -> list[dict[str, Any]]:
    """The entries for a cipher on a machine; raises InputError for a file that is none.

    A cipher of the user's may have loops of a built-in one, whose schedules then serve for it as well. A built-in
    one is told of its own: a file may have thousands.
    """
    files = dict.fromkeys([file(machine, cipher), common(library.machine_path(machine))])
    entries = (entry for path in files for entry in present(path))
    if built_in(cipher):
        entries = (entry for entry in entries if entry.get(NOTE, "").startswith(f"{cipher.name}/"))
    return list(entries)


def forms(entries: Iterable[Entry], whose: str) -> list[dict[str, Any]]:
    """The variants of the code that schedules were found in, each once, for what a note says."""
    found = [entry[FORM] for entry in of(entries, whose) if entry.get(FORM)]
    return [form for i, form in enumerate(found) if form not in found[:i]]


def plain(entries: Iterable[Entry]) -> list[dict[str, Any]]:
    """Entries as the core reads them."""
    return [{key: value for key, value in entry.items() if key not in BESIDE} for entry in entries]


def present(path: Path) -> list[dict[str, Any]]:
    """The entries of a file; none where there is no file."""
    return read(path) if path.is_file() else []


def read(path: Path) -> list[dict[str, Any]]:
    """The entries of a file. Raises InputError, which names it."""
    try:
        stat = path.stat()
    except OSError as error:
        raise InputError(f"{paths.shown(path)}: {error.strerror}") from None
    return _parsed(path, stat.st_mtime_ns, stat.st_ino, stat.st_size)


@cache
def _parsed(path: Path, _changed: int, _which: int, _size: int) -> list[dict[str, Any]]:
    mend = "write it anew with `ciphermill tune`, or remove it"
    try:
        document = json.loads(library.read(path)["text"])
        entries: list[dict[str, Any]] = document["schedules"]
        for entry in entries:
            check(entry)
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(f"{paths.shown(path)}: not a file of schedules ({error}); {mend}") from None
    return entries


def check(entry: Entry) -> None:
    """Raise ValueError for what the core would not read as a schedule, and for a note that is none."""

    def whole(value: Any, most: int) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most

    for key in ("loop", "divided", "sides"):
        text = entry["loop"] if key == "loop" else entry.get(key, "")
        if not isinstance(text, str) or not text.isascii():
            raise ValueError(f"`{key}` is a text of letters and digits")
    if not isinstance(entry.get("rotates", False), bool):
        raise ValueError("`rotates` is true or false")
    if not whole(entry["ii"], 2**32 - 1):
        raise ValueError("`ii` is a number of cycles")
    for key, most in (("time", 2**62), ("variant", 2**16 - 1)):
        if not isinstance(entry[key], list) or not all(whole(value, most) for value in entry[key]):
            raise ValueError(f"`{key}` is a list of numbers from 0 on")
    if not isinstance(entry.get(NOTE, ""), str):
        raise ValueError(f"`{NOTE}` is a text")
    origin = entry.get(ORIGIN, {})
    if not isinstance(origin, dict) or not all(isinstance(value, str) for value in origin.values()):
        raise ValueError(f"`{ORIGIN}` is a table of digests")
    form = entry.get(FORM, {})
    kinds = {key: type(value) for key, value in form.items()} if isinstance(form, dict) else {"": None}
    if kinds and ({**LEFT_OUT, **kinds} != FORMS or not whole(form["jam"], 2**32 - 1)):
        raise ValueError(f"`{FORM}` is a variant of the code: {', '.join(FORMS)}")
    if unknown := set(entry) - {"loop", "ii", "divided", "sides", "rotates", "time", "variant", *BESIDE}:
        raise ValueError(f"`{min(unknown)}` is nothing that a schedule has")


def note(cipher: Cipher, variant: str, options: Options) -> str:
    """What is measured, for readers of a file and for who asks whose an entry is.

    Of the ``options`` the direction, the key's size and the mode of blocks are given.
    """
    parts = [f"{cipher.name}/{variant} {options.direction}", f"{options.key_bits} bits", str(options.blocks)]
    parts += [f"jam {options.jam}"] if options.jam is not None else []
    parts += [UNROLLED[options.unroll]] if options.unroll is not None else []
    parts += ["aligned"] if options.aligned else []
    parts += [f"with {name}" for name in options.with_]
    parts += [f"without {name}" for name in options.without]
    parts += [f"set {change}" for change in options.set]
    return ", ".join(parts)


def of(entries: Iterable[Entry], whose: str) -> list[dict[str, Any]]:
    """The entries that belong to what a note says."""
    return [dict(entry) for entry in entries if entry.get(NOTE) == whose]


def merged(
    entries: Iterable[Entry], new: Iterable[Entry], whose: str, origin: Mapping[str, str]
) -> tuple[list[dict[str, Any]], list[tuple[dict[str, Any], list[dict[str, Any]]]]]:
    """A file's entries with new schedules where none so short is there for their loops, in any form of these.

    Entries of others than ``whose`` stay. The second result has each that is new, and those that it took the place of.
    """
    others = [dict(entry) for entry in entries if entry.get(NOTE) != whose]
    own = {entry["loop"]: entry for entry in of(entries, whose)}
    written = []
    for schedule in new:
        plainly = {key: value for key, value in schedule.items() if key != "forms"}
        forms = {plainly["loop"], *schedule.get("forms", ())} & own.keys()
        if all(plainly["ii"] < own[form]["ii"] for form in forms):
            replaced = [own.pop(form) for form in sorted(forms)]
            own[plainly["loop"]] = {NOTE: whose, ORIGIN: dict(origin), **plainly}
            written.append((own[plainly["loop"]], replaced))
    return others + list(own.values()), written


def update(path: Path, name: str, change: Callable[[Sequence[Entry]], Iterable[Entry]]) -> None:
    """Change the entries of a file, with no other process between reading and writing it."""
    with locked(path.parent):
        before = present(path)
        after = ordered(change(before))
        if after != before:
            write(path, name, after)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """While nobody else has the folder locked: waits until it is so. The lock leaves no file and ends with the process."""
    try:
        held = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise InputError(f"{paths.shown(folder)}: {error.strerror}") from None
    try:
        try:
            fcntl.flock(held, fcntl.LOCK_EX)
        except OSError as error:
            raise InputError(f"{paths.shown(folder)}: cannot be locked ({error.strerror})") from None
        yield
    finally:
        os.close(held)


def ordered(entries: Iterable[Entry]) -> list[dict[str, Any]]:
    """Entries in the order of what they are for."""
    return [dict(entry) for entry in sorted(entries, key=lambda entry: (entry.get(NOTE, ""), entry["loop"]))]


def write(path: Path, name: str, entries: Iterable[Entry]) -> None:
    """A file of schedules, a line for each; none where there are none."""
    lines = ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in ordered(entries))
    text = f'{{"machine": {json.dumps(name)}, "schedules": [\n{lines}\n]}}\n'
    try:
        if lines:
            paths.write_atomically(path, text.encode())
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{paths.shown(path)}: {error.strerror}") from None
