"""Pipelines for the page: micro-operations on their way through an out-of-order core, packed.

The core says in which cycle each enters each stage (``ciphermill trace``). Here
that becomes lists without names, compressed, and what can be seen of the reasons:
which port was taken while something waited, whose result was there when it
started, behind whom it waited to retire. The page's script draws it.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from .. import engine, kept, manifest, tracing
from .._core import InputError
from ..options import Traced
from ..study.measure import options
from . import drawing, evidence, kernels

#: Stages in the order of the legend: name, letter, and what the time in it is.
STAGES = (
    ("fetch", "F", "fetched"), ("decode", "D", "decoded"), ("rename", "N", "renamed"), ("wait", "·", "waits for operands or a port"),
    ("execute", "X", "executes"), ("done", "C", "has its result, waits to retire"), ("retire", "R", "retires"),
    ("squash", "*", "thrown away"),
)  # fmt: skip
#: Instructions shown where a study says no number.
COUNT = 40


def trace(asked: Mapping[str, Any]) -> dict[str, Any]:
    """The measurement with its ``pipeline`` for a study's settings; ``missing`` with the reason when there is none."""
    settings = {name: value for name, value in asked.items() if name not in ("first", "count")}
    wanted = Traced(first=asked.get("first"), count=asked.get("count", COUNT))
    try:
        module = engine.module(manifest.find(asked["cipher"]), asked.get("variant"))
        return kept.measurement(module, asked["on"], replace(options(settings), trace=wanted)).to_dict()
    except InputError as error:
        return {"missing": str(error).splitlines()[0], "pipeline": []}


def view(asked: Mapping[str, Any], found: Mapping[str, Any], key: str) -> dict[str, Any]:
    """One trace as the template wants it."""
    rows = found.get("pipeline") or []
    settings = {name: value for name, value in asked.items() if name not in ("first", "count")}
    words = shlex.split(evidence.command(settings))
    more = ["--count", str(asked.get("count", COUNT))] + (
        ["--first", str(asked["first"])] if asked.get("first") is not None else []
    )
    numbers = [row["instruction"] for row in rows if row["instruction"] is not None]
    wrong = sum(row["squashed"] for row in rows)
    said = ""
    if rows:
        cycles = max(map(tracing.end, rows)) + 1 - min(row["fetch"] for row in rows)
        said = (
            f"Instructions {numbers[0]} to {numbers[-1]} of {found['instructions']}, {len(rows)} micro-operations in {cycles} cycles"
            + (f"; {wrong} of them on wrong paths, thrown away." if wrong else ".")
        )
    return {
        "key": key,
        "title": evidence.program(kernels.named(asked, None if found.get("missing") else found)),
        "wrong": None if found.get("missing") else kernels.unverified(found),
        "command": shlex.join([words[0], "trace", *words[2:], *more]),
        "missing": found.get("missing"),
        "said": said,
        "packed": drawing.pack(json.dumps(packed(rows), separators=(",", ":"))) if rows else "",
    }


def packed(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The first cycle, how many there are, and for each micro-operation text, part, instruction,
    port, whether it was thrown away, its stages as [stage, first cycle, cycles], and what it waited for."""
    first = min((row["fetch"] for row in rows), default=0)
    names = [stage[0] for stage in STAGES]
    lines = []
    for i, row in enumerate(rows):
        spans = [[names.index(name), start - first, stop - start] for name, start, stop in tracing.spans(row)]
        end = tracing.end(row)
        # The last cycle is the one that retires it, or throws it away; it stands in place of what goes on in it.
        spans = [
            [stage, start, min(cycles, end - first - start)] for stage, start, cycles in spans if start < end - first
        ]
        spans.append([names.index("squash" if row["squashed"] else "retire"), end - first, 1])
        part = row["kind"] if row["kind"] in ("load", "store_address", "store_data") else ""
        lines.append([
            row["text"].replace("\t", " "), part.replace("_", " "), row["instruction"], row["port"], row["squashed"], spans,
            waits(rows, i),
        ])  # fmt: skip
    last = max((tracing.end(row) for row in rows), default=first)
    return {"first": first, "cycles": last + 1 - first, "lines": lines}


def waits(rows: Sequence[Mapping[str, Any]], i: int) -> list[str]:
    """What a micro-operation waited for, in words, as far as the others beside it show it."""
    row, said = rows[i], []
    if row["issue"] is not None and row["rename"] is not None:
        waited = row["issue"] - row["rename"] - 1
        if waited > 0:
            said.append(f"{_cycles(waited)} between renaming and starting: {_before_start(rows, row)}")
    if row["complete"] is not None and row["retire"] is not None and row["retire"] > row["complete"] + 1:
        # What retires in order waits for the last before it that had not got its result.
        older = [
            o for o in rows[:i] if not o["squashed"] and o["complete"] is not None and o["complete"] > row["complete"]
        ]
        late = max(older, key=lambda o: o["complete"], default=None)
        behind = f"behind {_name(late)}, whose result came in cycle {late['complete']}" if late else "behind older ones"
        said.append(f"{_cycles(row['retire'] - row['complete'])} from its result to retiring, {behind}")
    if row["squashed"]:
        said.append(f"on a wrong path, left in cycle {row['squash']}")
    return said


def _before_start(rows: Sequence[Mapping[str, Any]], row: Mapping[str, Any]) -> str:
    # Only what names a register with it can have made an operand; flags are not told apart from nothing.
    made = [
        o for o in rows
        if o is not row and o["complete"] == row["issue"] and o["issue"] is not None and _operands(o) & _operands(row)
    ]  # fmt: skip
    taken = {o["issue"]: o for o in rows if o is not row and o["port"] is not None and o["port"] == row["port"]}
    if row["port"] is not None and (blocker := taken.get(row["issue"] - 1)) is not None and not made:
        return f"in the cycle before, port {row['port']} was taken by {_name(blocker)}"
    if made:
        names = ", ".join(map(_name, made[:3]))
        return f"it starts in the cycle in which the result of {names} is there"
    return "for what is not in this picture: an older result, or the front of the queue"


def _operands(row: Mapping[str, Any]) -> set[str]:
    """Names in the operands of an instruction: registers, as assembly writes them."""
    return set(re.findall(r"%?[a-zA-Z]\w*", row["text"].partition(" ")[2].replace("\t", " ")))


def _name(row: Mapping[str, Any]) -> str:
    number = "" if row["instruction"] is None else f" ({row['instruction']})"
    return f"{row['text'].replace(chr(9), ' ')}{number}"


def _cycles(n: int) -> str:
    return f"{n} cycle{'' if n == 1 else 's'}"
