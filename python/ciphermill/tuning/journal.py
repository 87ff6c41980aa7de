"""What has been done to a cell, so that it is not done again.

A file for each cell below the cache folder (``build/cache/tuning`` in a checkout), written after each
step and as a whole. It stands there and not beside the schedules because it says nothing of them that
a reader needs: it only spares work, it holds for one build of the core on one computer, and what comes
with the package need not be a folder that can be written. Whoever removes it has cells searched again,
from what is kept on.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from .. import cached, paths, schedules

#: The folder's name below that of the cache.
KIND = "tuning"


class Round(msgspec.Struct, frozen=True, array_like=True):
    """A search that was made: how long it was, its number, and the seconds that it took."""

    times: int
    number: int
    seconds: float


class Record(msgspec.Struct, frozen=True):
    """How far a cell has come."""

    #: What it was done with: see `cells.Cell.key`.
    key: str
    #: For readers of the file.
    title: str
    #: Cycles a block with a run's own search, with what is kept, and the lower bound of the latter.
    before: float
    now: float
    lower: float
    #: Seconds of a measurement with a run's own search.
    seconds: float
    #: Why there is nothing to search: "" where there is.
    closed: str = ""
    rounds: tuple[Round, ...] = ()
    #: Loops and intervals of what is kept.
    kept: tuple[tuple[str, int], ...] = ()

    @property
    def ratio(self) -> float:
        return self.now / self.lower if self.lower else 1.0

    def did(self, times: int, number: int) -> bool:
        return any((done.times, done.number) == (times, number) for done in self.rounds)


def place(name: str) -> Path:
    return cached.place(KIND, f"{name}.json")


def read(name: str) -> Record | None:
    """The record of a cell, whatever it was done with."""
    content = cached.read(place(name))
    try:
        return None if content is None else msgspec.json.decode(content, type=Record)
    except msgspec.DecodeError:
        # Of another version.
        return None


def write(name: str, record: Record) -> None:
    cached.write(place(name), msgspec.json.encode(record))


def there(record: Record, entries: Sequence[schedules.Entry]) -> bool:
    """Is all that a record says is kept still in the file, or something shorter for the same loops?"""
    present = {entry["loop"]: entry["ii"] for entry in entries}
    return all(present.get(loop, ii + 1) <= ii for loop, ii in record.kept)


@contextmanager
def claimed(name: str) -> Iterator[bool]:
    """Whether a cell is ours while this lasts: False where another process is at work on it.

    The lock is the system's and ends with the process, however that ends.
    """
    path = paths.cache() / KIND / f"{name}.lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        held = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        # Without a cache nothing is remembered, and nobody else can be asked.
        cached.unwritable(error)
        yield True
        return
    try:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(held)
