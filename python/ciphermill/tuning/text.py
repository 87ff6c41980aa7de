"""What is planned, done and left, for people, and as JSON."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from .. import paths, report, schedules
from .cells import Cell
from .course import BEGUN, DONE, ELSEWHERE, FAILED, WAITING, Course, Seat
from .search import NOTHING, PROVED, Step
from .standing import AS_GOOD, REASONS, Standing

#: States of cells, in the order in which they are counted, and in words.
STATES = {
    DONE: "searched",
    BEGUN: "begun",
    WAITING: "not begun",
    PROVED: "proved the shortest",
    NOTHING: "without a loop whose schedule is kept",
    ELSEWHERE: "in another process's hands",
    FAILED: "failed",
}


def plan(course: Course, without: Sequence[str]) -> str:
    """What is going to be done, and how long that takes."""
    seats = course.seats
    lines = [f"{cells(seat.cell for seat in seats)}: {states(seats)}."]
    if gone := [seat for seat in seats if seat.gone]:
        lines.append(f"Kept schedules of {many(len(gone), 'cell')} are gone from their file; these are searched anew.")
    if without:
        lines.append(f"Nothing is kept for {listed(without)}: only machines that schedule at compile time gain by it.")
    left = sum(seat.open for seat in seats)
    if left:
        cores = many(course.jobs, "core")
        usual = "" if any(seat.hint or seat.record for seat in seats) else ", none of which was timed yet"
        if course.clock.minutes is None:
            lines.append(f"{many(left, 'cell')} to go, about {duration(course.estimate())} on {cores}{usual}.")
        else:
            time = course.clock.left()
            share = duration(time * course.jobs / left)
            lines.append(f"{many(left, 'cell')} to go in {duration(time)} on {cores}: about {share} for each{usual}.")
        lines.append("It can be stopped at any time: what was found by then is kept, and the same command goes on.")
    return "\n".join(lines)


def line(seat: Seat, step: Step | None) -> str | None:
    """What a step came to; None where there is nothing to say."""
    if step is None:
        return f"{seat.cell.title}: another process is at work on it" if seat.state == ELSEWHERE else None
    if step.known:
        return None
    record = step.record
    told = f"{seat.cell.title}: {report.number(record.now)} cycles {unit(seat.cell)}"
    if record.now != record.before:
        told += f", {report.number(record.before)} after the search of a run"
    told += f"; the lower bound is {report.number(record.lower)}."
    if seat.state == PROVED:
        return f"{told} Every loop is proved the shortest."
    if seat.state == NOTHING:
        return f"{told} No loop has a schedule that is kept."
    if not record.rounds:
        return None
    done = record.rounds[-1]
    lines = [
        f"{told} Round {done.number}, {done.times} times as long as a run's search, took {duration(done.seconds)}."
    ]
    for loop in step.kept:
        instead = "" if loop["instead"] is None else f" instead of one of {loop['instead']}"
        lines.append(f"  a loop of {loop['ii']} cycles{instead}: kept in {paths.shown(seat.cell.file)}")
    return "\n".join(lines)


def summary(course: Course) -> str:
    """How things stand at the end."""
    seats = course.seats
    known = [seat.record for seat in seats if seat.record is not None and seat.record.lower]
    told = f"{cells(seat.cell for seat in seats)}: {states(seats)}."
    if known:
        before, now = (mean([getattr(r, name) / r.lower for r in known]) for name in ("before", "now"))
        told += (
            f" Cycles over their lower bound, geometric mean: {now:.3f}, and {before:.3f} after the search of a run;"
            f" the worst is {max(r.ratio for r in known):.2f}."
        )
    kept = sum(len(seat.kept) for seat in seats)
    ends = [f"{many(kept, 'schedule')} written down."] if kept else []
    if not kept and any(seat.made for seat in seats):
        ends.append("Nothing shorter was found than what is there.")
    if left := sum(seat.open for seat in seats):
        ends.append(f"{many(left, 'cell')} left: the same command goes on.")
    return "\n".join([told, " ".join(ends)] if ends else [told])


def document(course: Course) -> dict[str, Any]:
    """What ``--json`` prints: nothing that depends on how long things took."""
    return {"cells": [of(seat) for seat in course.seats]}


def of(seat: Seat) -> dict[str, Any]:
    cell, record = seat.cell, seat.record
    found: dict[str, Any] = {
        "cipher": cell.cipher.name, "variant": cell.variant, "direction": cell.options.direction,
        "key_bits": cell.options.key_bits, "blocks": cell.options.blocks, "machine": cell.machine,
        "file": paths.shown(cell.file), "state": seat.state,
        "before": record and record.before, "after": record and record.now, "lower": record and record.lower,
        "rounds": [] if record is None else [{"times": r.times, "round": r.number} for r in record.rounds],
        "kept": seat.kept,
    }  # fmt: skip
    return found | ({} if seat.error is None else {"message": str(seat.error)})


def standing(each: Standing) -> str | None:
    """A line for a schedule that no loop takes."""
    if each.taken:
        return None
    reason = REASONS[each.state] + (f": {each.message}" if each.message else "")
    return f"{each.entry.get(schedules.NOTE, '')}, on {each.machine}, II {each.entry['ii']}: {reason}"


def standings(found: Sequence[Standing]) -> str:
    """How many there are of each kind."""
    stale = sum(not each.taken for each in found)
    as_good = sum(each.state == AS_GOOD for each in found)
    told = f"{many(len(found), 'kept schedule')}: {len(found) - stale} taken"
    told += f" ({as_good} of them as good as a run's own search)" if as_good else ""
    return told + (f", {stale} that no loop takes any more; --mend searches anew." if stale else ".")


def states(seats: Iterable[Seat]) -> str:
    counts = Counter(seat.state for seat in seats)
    return ", ".join(f"{counts[state]} {words}" for state, words in STATES.items() if counts[state])


def cells(of: Iterable[Cell]) -> str:
    """How many there are of everything."""
    found = list(of)
    machines = list(dict.fromkeys(cell.machine for cell in found))
    variants = {(cell.cipher.path, cell.variant) for cell in found}
    return f"{many(len(found), 'cell')} of {many(len(variants), 'variant')} on {listed(machines)}"


def unit(cell: Cell) -> str:
    return report.unit({"direction": cell.options.direction})


def many(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def duration(seconds: float) -> str:
    """A time that nobody needs to the second."""
    if seconds < 100:
        return many(max(1, round(seconds)), "second")
    minutes = round(seconds / 60)
    return many(minutes, "minute") if minutes < 100 else many(round(seconds / 3600), "hour")


def mean(ratios: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))
