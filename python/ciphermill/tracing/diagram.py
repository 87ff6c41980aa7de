"""The pipeline as text: a line for each micro-operation, a column for each cycle."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

from . import Stages, end, spans

WIDTH = 80
#: Columns for the instruction.
LABEL = 25
#: Columns for its port.
PORT = 5

#: A stage's first cycle, and the others.
MARKS = {"fetch": "F.", "decode": "D.", "rename": "N.", "wait": "..", "execute": "X=", "done": "C."}

LEGEND = "F fetched, D decoded, N renamed, X starts, = runs, C result there, R retires; > wrong path, * thrown away."


def text(rows: Stages, width: int = WIDTH) -> str:
    """The diagram, in pieces where the cycles do not fit beside each other."""
    room = width - LABEL - PORT - 2
    parts = []
    piece: list[Mapping[str, Any]] = []
    for row in rows:
        if piece and _span([*piece, row]) > room:
            parts.append(_piece(piece, room))
            piece = []
        piece.append(row)
    if piece:
        parts.append(_piece(piece, room))
    return "\n\n".join([*parts, textwrap.fill(LEGEND, width)])


def _span(rows: Stages) -> int:
    first: int = min(row["fetch"] for row in rows)
    return max(map(end, rows)) + 1 - first


def _piece(rows: Stages, room: int) -> str:
    first = min(row["fetch"] for row in rows)
    # A micro-operation that is longer in the core than there are columns.
    step = -(-_span(rows) // room)
    unit = "" if step == 1 else f", {step} a column"
    lines = [f"{'':{LABEL + PORT + 2}}cycle {first}{unit}"]
    for row in rows:
        cells = [" "] * room
        for name, start, stop in spans(row):
            for cycle in range(start, stop):
                cells[(cycle - first) // step] = MARKS[name][cycle > start]
        # What is entered in a cycle stands over what goes on in it.
        for name, start, _ in spans(row):
            if MARKS[name][0] != ".":
                cells[(start - first) // step] = MARKS[name][0]
        cells[(end(row) - first) // step] = "*" if row["squashed"] else "R"
        label = ("> " if row["squashed"] else "") + row["text"]
        if len(label) > LABEL:
            label = label[: LABEL - 1] + "~"
        lines.append(f"{label:{LABEL}} {row['port'] or '':{PORT}} {''.join(cells)}".rstrip())
    return "\n".join(lines)
