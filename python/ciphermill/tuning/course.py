"""Which cell comes next, for how long, and on how many cores.

A cell goes through rounds, and no cell has its second before all have had their first: whenever the command
is stopped, no cell has had all of the time. Of the cells that wait for a round the one whose cycles are
farthest from their lower bound comes first. That is known after a measurement, which takes a
small part of a search's time: it is made of a few cells ahead, not of all before the first search.

Work is counted in steps of the search, so what a round finds does not depend on the time that it takes. Where
minutes are given, these only say which rounds are begun: one that would not come to its end is not.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from .. import engine, paths, schedules
from .._core import InputError, InternalError
from . import journal, search
from .cells import Cell
from .journal import Record
from .search import Step

#: Cells that are measured and wait for their first round, at the most: of so many the worst comes first.
AHEAD = 8
#: Seconds that a measurement with a run's own search is taken to need where none was timed yet: the mean of
#: the built-in ciphers on the DSPs, on one core of 2024.
USUAL = 10.0
#: A first round where minutes are given; each one after it is twice as long, up to what was asked for.
SHORTEST = 2
#: Most rounds that a cell is given, and most times that one may be longer than a run's search: hours.
MOST = 1_000

#: What can become of a cell. Those of `search` besides: nothing, proved.
WAITING, BEGUN, DONE, FAILED, ELSEWHERE = "waiting", "begun", "done", "failed", "elsewhere"

Effort = tuple[int, int]


def efforts(times: int, rounds: int | None, first: int, minutes: float | None) -> list[Effort]:
    """The rounds of each cell: how long each is, and its number, by which it goes other ways than others.

    With ``minutes`` to divide, they begin short and there is no end of them, unless ``rounds`` says so.
    """
    if minutes is None:
        return [(times, first + k) for k in range(rounds or 1)]
    return [(min(times, SHORTEST << min(k, MOST.bit_length())), first + k) for k in range(rounds or MOST)]


class Clock:
    """The time that a command has, from when this is made."""

    def __init__(self, minutes: float | None) -> None:
        self.minutes = minutes
        self.until = float("inf") if minutes is None else time.monotonic() + 60 * minutes

    def left(self) -> float:
        return self.until - time.monotonic()


@dataclass
class Seat:
    """A cell, and how far it has come."""

    cell: Cell
    module: engine.Module
    #: Loops whose entries are to go.
    dropped: Collection[str]
    record: Record | None = None
    state: str = WAITING
    #: Index of its next round.
    position: int = 0
    #: Seconds of a measurement, from an earlier time.
    hint: float | None = None
    #: New in the file, by loops.
    kept: list[dict[str, Any]] = field(default_factory=list)
    #: Rounds that this command made of it.
    made: int = 0
    #: Kept schedules that were gone when it was begun.
    gone: int = 0
    error: InputError | InternalError | None = None
    #: Another process was at work on it.
    busy: bool = False
    #: One of our threads is.
    taken: bool = False

    @property
    def open(self) -> bool:
        return self.state in (WAITING, BEGUN)


class Course:
    """Cells on their way, with everything that threads share behind one lock."""

    def __init__(
        self,
        cells: Sequence[tuple[Cell, Collection[str]]],
        rounds: Sequence[Effort],
        clock: Clock,
        jobs: int | None,
    ) -> None:
        """Cells, each with the loops whose entries are to go."""
        self.rounds = rounds
        self.jobs = min(jobs or os.cpu_count() or 1, max(1, len(cells)))
        self.clock = clock
        self.halted = False
        self.lock = threading.Lock()
        for cell, _ in cells:
            check_place(cell)
        self.seats = [self.seat(cell, dropped) for cell, dropped in cells]

    def seat(self, cell: Cell, dropped: Collection[str]) -> Seat:
        """A cell as the journal has it."""
        seat = Seat(cell, cell.module(), dropped)
        known = journal.read(cell.name)
        if known is not None:
            seat.hint = known.seconds
            if known.key == cell.key(seat.module) and not dropped:
                entries = search.own(cell, ())
                if journal.there(known, entries):
                    self.come(seat, known)
                else:
                    seat.gone = len(known.kept)
        return seat

    def come(self, seat: Seat, record: Record) -> None:
        """Note how far a cell has come."""
        seat.record = record
        while seat.position < len(self.rounds) and record.did(*self.rounds[seat.position]):
            seat.position += 1
        if seat.position == len(self.rounds):
            seat.state = DONE
        elif record.rounds:
            seat.state = BEGUN
        seat.state = record.closed or seat.state

    def expected(self, seat: Seat) -> float:
        """Seconds that its next step will take: a measurement, which is short where nothing is known of it, or a round."""
        if seat.record is None:
            return seat.hint or 0
        return self.rounds[seat.position][0] * pace(seat.record)

    def measurement(self, seat: Seat) -> float:
        if seat.hint is not None:
            return seat.hint
        timed = [other.record.seconds for other in self.seats if other.record is not None]
        return sum(timed) / len(timed) if timed else USUAL

    def estimate(self) -> float:
        """Seconds that all that is open will take."""
        total = 0.0
        for seat in self.seats:
            if seat.open:
                once = self.measurement(seat) if seat.record is None else pace(seat.record)
                total += once * (seat.record is None) + once * sum(times for times, _ in self.rounds[seat.position :])
        return total / self.jobs

    def next(self) -> Seat | None:
        """The cell whose turn it is, now taken; None where nothing is left that can be done in time."""
        with self.lock:
            left = self.clock.left()
            free = [seat for seat in self.seats if seat.open and not seat.taken and self.expected(seat) <= left]
            if self.halted or not free:
                return None
            seat = self.choice(free, left)
            seat.taken = True
            return seat

    def choice(self, free: Sequence[Seat], left: float) -> Seat:
        # What another process had taken is asked for once more when there is nothing else.
        free = [seat for seat in free if not seat.busy] or free
        lowest = min(seat.position for seat in free)
        pool = [seat for seat in free if seat.position == lowest and seat.record is not None]
        fresh = [seat for seat in free if seat.record is None]
        if fresh and len(pool) < AHEAD:
            return fresh[0]
        # Its share of the time: a round that would take more waits until the others have had theirs.
        share = left * self.jobs / len(pool)

        def turn(seat: Seat) -> tuple[bool, float]:
            return self.expected(seat) > share, -(seat.record.ratio if seat.record else 0)

        return min(pool, key=turn)

    def step(self, seat: Seat) -> Step | None:
        """Do what is next for a cell; None where that failed, or another process is at it."""
        with journal.claimed(seat.cell.name) as ours:
            if not ours:
                seat.state = ELSEWHERE if seat.busy else seat.state
                seat.busy = True
                return None
            seat.busy = False
            try:
                known = journal.read(seat.cell.name)
                if seat.record is None:
                    done = search.begin(seat.cell, seat.module, seat.dropped)
                    seat.gone = seat.gone or done.gone
                elif known and known.key == seat.record.key and len(known.rounds) > len(seat.record.rounds):
                    # By another process meanwhile.
                    done = Step(known, known=True)
                else:
                    effort = self.rounds[seat.position]
                    done = search.go_on(seat.cell, seat.module, seat.record, effort, seat.dropped)
                    seat.dropped, seat.made = (), seat.made + 1
            except (InputError, InternalError) as error:
                seat.state, seat.error = FAILED, error
                return None
        seat.kept += done.kept
        self.come(seat, done.record)
        return done

    def run(self, told: Callable[[Seat, Step | None], None]) -> None:
        """Go on until everything is done or the time is over; `told` hears of each step."""

        def work() -> None:
            try:
                while (seat := self.next()) is not None:
                    done = self.step(seat)
                    with self.lock:
                        seat.taken = False
                        told(seat, done)
            except BaseException:
                # Nobody reads any more, for instance: the other threads end with what they are at.
                self.halted = True
                raise

        with ThreadPoolExecutor(self.jobs) as pool:
            for worker in [pool.submit(work) for _ in range(self.jobs)]:
                worker.result()


def pace(record: Record) -> float:
    """Seconds of a search as long as a run's."""
    if not record.rounds:
        return record.seconds
    last = record.rounds[-1]
    return last.seconds / last.times


def check_place(cell: Cell) -> None:
    """Refuse a cell whose schedules cannot be written down, before the work is done and not after it."""
    folder = cell.file.parent
    if not os.access(folder, os.W_OK):
        raise InputError(
            f"{paths.shown(cell.file)}: what is found is kept there, and the folder cannot be written to;"
            " copy the cipher or the machine file into a folder of yours and name it by its path"
        )
    schedules.present(cell.file)
