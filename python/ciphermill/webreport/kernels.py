"""Schedules for the page: the hottest stretches of a program, packed.

The core says what stands in which cycle and why (``ciphermill explain``). Here
it becomes lists without names, compressed, since a loop of a VLIW has hundreds
of instructions; the page's script makes the table out of them when its reader
opens it. What can be said in a sentence or a short table is written out.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Mapping
from typing import Any

from .. import engine, kept, manifest
from .._core import InputError
from ..study.measure import options
from . import drawing, evidence

#: Classes of operations in the order of the legend, as the core names them.
CLASSES = ("load", "store", "multiply", "special", "arithmetic", "shift", "logic", "move", "branch")
#: Beyond this a share of a unit's cycles is drawn as full.
FULL = 0.9


def explain(asked: Mapping[str, Any]) -> dict[str, Any]:
    """The core's explanation for a cell's settings, and as ``measured`` the measurement of the same program;
    ``missing`` with the reason when there is none."""
    try:
        module = engine.module(manifest.find(asked["cipher"]), asked.get("variant"))
        found = kept.explanation(module, asked["on"], options(asked))
        return {**found, "measured": kept.measurement(module, asked["on"], options(asked)).to_dict()}
    except InputError as error:
        return {"missing": str(error).splitlines()[0], "stretches": []}


def view(asked: Mapping[str, Any], explanation: Mapping[str, Any], key: str) -> dict[str, Any]:
    """One program's stretches as the template wants them."""
    words = shlex.split(evidence.command(asked))
    missing, measured = explanation.get("missing"), explanation.get("measured")
    if not missing and not explanation["stretches"]:
        missing = (
            "The machine schedules at run time, so no cycle belongs to one instruction, and there is no schedule to show; "
            "ciphermill trace shows the way of single instructions."
            if explanation.get("passages")
            else "No stretch of the program takes a twentieth of the cycles."
        )
    return {
        "key": key,
        "title": evidence.program(named(asked, measured)),
        "command": shlex.join([words[0], "explain", *words[2:]]),
        "missing": missing,
        "wrong": unverified(measured),
        "stretches": [stretch(s, f"{key}-{i}") for i, s in enumerate(explanation["stretches"])],
    }


def named(asked: Mapping[str, Any], measured: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Settings for a heading: a program and a machine that were given as files by the names they have."""
    if not measured:
        return asked
    return {
        **asked,
        "cipher": measured["cipher"],
        "variant": measured["variant"],
        "on": measured["machine"],
        "direction": measured["direction"],
    }


def unverified(measured: Mapping[str, Any] | None) -> str | None:
    """Why what is shown is of a program that is not known to be right; None where it is."""
    if not measured or measured["verified"]:
        return None
    return f"Not verified: {measured.get('failure') or 'see ciphermill run --json'}"


def stretch(s: Mapping[str, Any], key: str) -> dict[str, Any]:
    """A stretch: in words, the units' share, and the packed schedule."""
    units = [{**u, "share": u["cycles"] / max(s["cycles"] * u["count"], 1)} for u in s["units"]]
    blocks = ", ".join(map(str, s["blocks"]))
    return {
        "key": key,
        "title": f"{'Loop' if s['looped'] else 'Code'} in {s['function'] or 'a function without a name'}, "
        f"{'block' if len(s['blocks']) == 1 else 'blocks'} {blocks}",
        "why": f"{s['why']} {s.get('pipelining', '')}".strip(),
        "cycles": s["cycles"],
        "count": len(s["instructions"]),
        "units": units,
        "registers": s["registers"],
        "recurrence": s["recurrence"],
        "chain": s["chain"],
        "meetings": s.get("meetings", []),
        "packed": drawing.pack(json.dumps(packed(s), separators=(",", ":"))),
    }


def packed(s: Mapping[str, Any]) -> dict[str, Any]:
    """The schedule: for each instruction cycle, column, text, class, role,
    what it waits for, and the values it needs as [from, register, latency,
    slack, passes]."""
    # Of several units of a kind as many columns as are ever taken at once.
    starts = Counter((line["unit"], line["cycle"]) for line in s["instructions"] if line["unit"] is not None)
    most = {u["unit"]: max((n for (unit, _), n in starts.items() if unit == u["unit"]), default=1) for u in s["units"]}
    columns = [u["unit"] for u in s["units"] if not u["path"] for _ in range(most[u["unit"]])]
    if not starts:
        # The hardware chooses: what issues together stands side by side.
        columns = []
    places: dict[int, int] = {}
    taken: Counter[tuple[str, int]] = Counter()
    lines = []
    used = {need["from"] for line in s["instructions"] for need in line.get("needs", ())}
    for i, line in enumerate(s["instructions"]):
        cycle = line["cycle"]
        if columns and line["unit"] in columns:
            column = columns.index(line["unit"]) + taken[line["unit"], cycle]
            taken[line["unit"], cycle] += 1
        elif columns and line.get("class") == "move" and not line.get("needs") and i not in used:
            # It does nothing (a nop), so it stands in no column.
            column = -1
        else:
            column = places[cycle] = places.get(cycle, len(columns) - 1) + 1
        needs = [[n["from"], n["register"], n["latency"], n["slack"], n["passes"]] for n in line.get("needs", ())]
        lines.append([
            cycle, column, line["text"].replace("\t", " "), CLASSES.index(line["class"]) if line.get("class") in CLASSES else -1,
            line["role"], line["waits"], line["producer"], line["register"], line["slack"], line["stalled"], line["paths"], needs,
        ])  # fmt: skip
    widest = max((line[1] for line in lines), default=0) + 1
    extra = [f"slot {i + 1}" for i in range(widest - len(columns))] if not columns else [""] * (widest - len(columns))
    return {"cycles": s["cycles"], "looped": s["looped"], "columns": [*columns, *extra], "lines": lines}
