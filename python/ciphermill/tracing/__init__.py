"""The way of micro-operations through an out-of-order core, in forms to look at.

The core says in which cycle each micro-operation enters each stage
(``Measurement.pipeline``); here that becomes a diagram as text, a log that
Konata opens (:mod:`.kanata`) and one that Perfetto opens (:mod:`.perfetto`).
Nothing is computed but where things stand on the page.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Stages = Sequence[Mapping[str, Any]]

#: Instructions shown when nothing is said.
COUNT = 32

#: Keys of a micro-operation's stages, in order.
STAGES = ("fetch", "decode", "rename", "issue", "complete", "retire")


def end(row: Mapping[str, Any]) -> int:
    """The last cycle in which it is in the core: it retires, or is thrown away."""
    last: int = row["squash"] if row["squashed"] else row["retire"]
    return last


def spans(row: Mapping[str, Any]) -> Iterator[tuple[str, int, int]]:
    """Stages with their first cycle and the one behind their last; none is empty.

    ``wait`` is the time in the reservation stations: from the cycle after
    renaming to the start; ``done`` from the result to the end.
    """
    behind = end(row) + 1
    times = [("fetch", row["fetch"]), ("decode", row["decode"]), ("rename", row["rename"]), ("wait", row["rename"] + 1)]
    if row["issue"] is not None:
        times.append(("execute", row["issue"]))
    if row["complete"] is not None:
        times.append(("done", row["complete"]))
    # What takes no port is done with renaming, or with its operand.
    for i, (name, start) in enumerate(times):
        stop = min((later for _, later in times[i + 1 :]), default=behind)
        stop = min(stop, behind)
        if start < stop:
            yield name, start, stop


def heading(measurement: Mapping[str, Any], of: str) -> str:
    """What a trace shows, in a sentence or two."""
    rows = measurement["pipeline"]
    numbers = [row["instruction"] for row in rows if row["instruction"] is not None]
    wrong = sum(row["squashed"] for row in rows)
    thrown = f", {wrong} of them on wrong paths" if wrong else ""
    said = (
        f"{of}: instructions {numbers[0]} to {numbers[-1]} of {measurement['instructions']}, "
        f"{len(rows)} micro-operations{thrown}."
    )
    return textwrap.fill(said, 80)


def title(row: Mapping[str, Any]) -> str:
    """What a view writes beside a micro-operation: its instruction, and which part."""
    part = f" [{row['kind']}]" if row["kind"] in ("load", "store_address", "store_data") else ""
    return f"{row['text']}{part}"
