"""The loops of a microbenchmark sheet on the processor this runs on.

They are printed as the simulator has them, by the printer that prints programs, all in one
program, and each is called in a process of its own: once with its fewer and once with its more
turns, as it is simulated. The two are programs at two places that differ in these numbers alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import _core
from ..progress import Progress
from . import build, job, processors, samples
from .processors import Isa
from .settings import USUAL, Settings

#: Where the program with more turns lies: apart, and with the same place in a page of 4 KiB.
MORE = build.CODE + 0x80_0000


@dataclass(frozen=True)
class Turn:
    """What a turn came to."""

    cycles: float | None
    #: Wrong guesses, where the kernel counts them.
    wrong: float | None
    #: Why it is not to be believed, or why there is nothing.
    unstable: str | None


def run(
    machine: str,
    request: Mapping[str, Any],
    settings: Settings = USUAL,
    progress: Progress = lambda items, total: items,
) -> list[Turn]:
    """The turns of a request's loops, whose functions have names of their own. Raises InputError where
    this host does not run the machine's programs."""
    host = processors.host_for(machine)
    settings.check()
    printed: dict[str, Any] = json.loads(_core.printed_sheet(json.dumps(request)))
    # In the simulation each loop begins a program; where in a line of the cache it lies can matter.
    few, many = (text.replace("\t.balign 16\n", "\t.balign 64\n") for text in printed["assembly"])
    symbols = [loop["symbol"] for loop in printed["loops"]]
    few, gone = accepted(host.isa, few, symbols)
    images = build.program(host.isa, few), build.program(host.isa, without(many, list(gone)), MORE)

    def one(loop: Mapping[str, Any]) -> Turn:
        if loop["symbol"] in gone:
            return Turn(None, None, gone[loop["symbol"]])
        calls: list[list[tuple[int, str, tuple[int, ...]]]] = [[], [(0, loop["symbol"], ())], [(1, loop["symbol"], ())]]
        asked = job.Job(images, loop["memory_bytes"], loop["writes"], calls, None, settings.each, settings.pinned())
        try:
            answers = [job.run(host, asked) for _ in range(settings.rounds)]
        except job.Crash as error:
            return Turn(None, None, f"it {error}")
        figure = samples.joined([samples.figure(a.samples, loop["turns"] * a.calls, a.hz) for a in answers])
        wrong = [n / a.calls / loop["turns"] for a in answers for n in a.counts.get("branch_misses", ())]
        return Turn(figure.median, samples.middle(wrong) if wrong else None, figure.unstable or None)

    return list(progress((one(loop) for loop in printed["loops"]), len(printed["loops"])))


def accepted(isa: Isa, text: str, symbols: Sequence[str]) -> tuple[str, dict[str, str]]:
    """A program without the functions that the assembler does not take, and these with what it says."""
    gone: dict[str, str] = {}
    while True:
        try:
            build.program(isa, text)
            return text, gone
        except build.Refused as error:
            lines = text.splitlines()
            found = {name for number in error.lines if (name := function(lines, number)) in symbols and name}
            if not found:
                raise
            gone |= dict.fromkeys(found, f"the assembler does not take {lines[error.lines[0] - 1].strip()!r}")
            text = without(text, list(found))


def function(lines: Sequence[str], number: int) -> str | None:
    """The function that a line, counted from 1, belongs to."""
    names = (line.split()[1].rstrip(",") for line in reversed(lines[:number]) if line.startswith("\t.type "))
    return next(names, None)


def without(text: str, names: Sequence[str]) -> str:
    """A printed program without the instructions of some functions."""
    for name in names:
        head, _, rest = text.partition(f"\n{name}:\n")
        ends = [at for at in (rest.find("\n\t.balign"), rest.find("\n\t.section")) if at >= 0]
        text = f"{head}\n{name}:\n" + rest[min(ends, default=len(rest)) :]
    return text
