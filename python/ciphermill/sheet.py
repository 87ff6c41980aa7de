"""Microbenchmark sheets: tiny loops on a machine, beside what others have measured.

A sheet is a file in ``machines/sheets``: loops in the machine's own instructions,
each with the value that is expected and where that comes from. The core runs
them; what stands here is how a loop is put together and how far its figure is
from the expected one.

A loop's figure is its cycles a turn, or a count's, divided by the instructions
that are measured in it; with ``less`` it is what it takes beyond another loop for each
branch guessed wrong. A residual is the distance to the expected value, or to the nearer end
of an expected range; it is within bounds up to one cycle or a tenth.
"""

from __future__ import annotations

import json
import random
import tomllib
from collections.abc import Mapping
from typing import Any

from . import _core, library, paths, tables

SHEETS = paths.MACHINES / "sheets"

#: A residual is within bounds up to so many cycles, or such a part of the expected value.
CYCLES, PART = 1.0, 0.1


def names() -> list[str]:
    """Machines that have a sheet."""
    return sorted(path.stem for path in SHEETS.glob("*.toml"))


def run(machine: str) -> dict[str, Any]:
    """A machine's sheet, filled in."""
    from .suggest import did_you_mean

    if machine not in names():
        raise _core.InputError(f"no microbenchmark sheet for {machine!r}{did_you_mean(machine, names())}; there are {', '.join(names())}")
    sheet = tomllib.loads((SHEETS / f"{machine}.toml").read_text())
    head, loops = sheet["sheet"], sheet["loop"]
    request = {
        "machine": library.request(head["machine"], [], [], []),
        "loops": [asked(head, loop) for loop in loops],
    }
    turns = json.loads(_core.sheet(json.dumps(request)))
    # Other loops are named without their group, and stand before.
    done: dict[str, Mapping[str, Any]] = {}
    rows = []
    for loop, turn in zip(loops, turns, strict=True):
        rows.append(row(head, loop, turn, done))
        done[loop["name"]] = turn
    return {"machine": machine, "rows": rows}


def asked(head: Mapping[str, Any], loop: Mapping[str, Any]) -> dict[str, Any]:
    """What the core is asked for a loop."""
    body = loop["body"] * loop.get("copies", 1)
    lines = ["func f 0 0", *head.get("before", ()), *loop.get("setup", ()), *head["start"], "top:", *body, *head["end"]]
    one: dict[str, Any] = {"name": loop["name"], "text": "\n".join(lines), "turns": loop.get("turns", [200, 600])}
    if "words" in loop:
        words = loop["words"]
        one["words"] = {"at": words["at"], "words": pattern(words["pattern"], words["count"])}
    if "chase" in loop:
        one["chase"] = loop["chase"]
    return one


def pattern(text: str, count: int) -> list[int]:
    """Words of 0 and 1: a pattern again and again, or a fixed random sequence."""
    if text == "random":
        dice = random.Random(1)
        return [dice.getrandbits(1) for _ in range(count)]
    return [int(text[i % len(text)]) for i in range(count)]


def row(head: Mapping[str, Any], loop: Mapping[str, Any], turn: Mapping[str, Any], done: Mapping[str, Any]) -> dict[str, Any]:
    """A loop's figure beside the expected one."""
    wrong = "branches_mispredicted"
    if "less" in loop:
        other = done[loop["less"]]
        ours = (turn["cycles"] - other["cycles"]) / (turn["events"][wrong] - other["events"][wrong])
    elif "count" in loop:
        ours = turn["events"][loop["count"]]
    else:
        ours = turn["cycles"] / (loop.get("copies", 1) * loop.get("each", len(loop["body"])))
    expected = loop["expected"]
    low, high = expected if isinstance(expected, list) else (expected, expected)
    residual = ours - low if ours < low else ours - high if ours > high else 0.0
    near = low if ours < low else high
    return {
        "group": loop["group"],
        "loop": loop["name"],
        "unit": "wrong guesses a turn" if "count" in loop else "cycles",
        "expected": expected,
        "ours": round(ours, 4),
        "residual": round(residual, 4),
        "within": abs(residual) <= max(CYCLES if "count" not in loop else 0.05, PART * near),
        "source": loop.get("source", head["source"]),
        "note": loop.get("note"),
    }


HEAD = ("what", "loop", "expected", "ours", "residual", "within")


def text(filled: Mapping[str, Any]) -> str:
    """A sheet for a terminal, with how many residuals are within bounds first."""
    rows = filled["rows"]
    right = sum(r["within"] for r in rows)
    said = f"{filled['machine']}: {right} of {len(rows)} figures are within one cycle or a tenth of the expected ones."
    return f"{said}\n\n{tables.text(HEAD, [cells(r) for r in rows], right=(2, 3, 4))}"


def markdown(filled: Mapping[str, Any]) -> str:
    """A sheet as a section of a page."""
    lines = [f"## {filled['machine']}", "", f"| {' | '.join((*HEAD, 'source'))} |", "|---|---|---:|---:|---:|---|---|"]
    for r in filled["rows"]:
        source = r["source"] + (f". {r['note']}" if r["note"] else "")
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in (*cells(r), source)) + " |")
    return "\n".join(lines)


def cells(r: Mapping[str, Any]) -> tuple[str, ...]:
    expected = r["expected"]
    shown = f"{expected[0]:g} to {expected[1]:g}" if isinstance(expected, list) else f"{expected:g}"
    return (r["group"], r["loop"], shown, f"{r['ours']:.2f}", f"{r['residual']:+.2f}", "yes" if r["within"] else "NO")


def page() -> str:
    """The page of all sheets."""
    intro = (
        "# Microbenchmarks\n\nTiny loops on the machines that schedule at run time, beside what others measured on the real "
        "ones, as `ciphermill sheet MACHINE` prints them. A figure is the cycles of an instruction (or of the pair, or the "
        "circle's step) in a loop of many; among the predictors, wrong guesses a turn. The residual is the distance to the "
        "expected value, or to the nearer end of an expected range; up to one cycle or a tenth it is within bounds. Loops, "
        "values and their sources are files in `machines/sheets`."
    )
    return "\n\n".join([intro, *(markdown(run(name)) for name in names())]) + "\n"
