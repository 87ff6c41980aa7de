"""What stands behind a number: enough to get it again, and to judge it.

A measurement becomes a record with the command, the machine's file and hash,
the module's hash, bounds, events and metrics; a derived figure names its
formula and its cells; a paper's figure names the paper and where in
``figures.toml`` it stands. The page shows a record when its number is chosen.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .. import hardware, library, paths, report
from .._core import InputError
from ..measurement import Measurement

#: What options are when nobody gives them.
USUAL = (("optimise", "speed"), ("cc", "zig"))
#: Of a measurement, in the order shown; the rest is settings or shown elsewhere.
RESULTS = ("cycles", "cycles_per_block", "cycles_per_byte", "mbit_per_s", "clock_mhz", "instructions", "uops", "cpi", "ilp",
           "bytes", "jam", "unroll", "code_bytes", "table_bytes", "stack_bytes")  # fmt: skip


def command(asked: Mapping[str, Any]) -> str:
    """The command line that measures what a cell asks for."""
    if "hardware" in asked:
        return shlex.join(["ciphermill", "rtl", ",".join(hardware.entry(asked["hardware"])["with"])])
    words = ["ciphermill", "run", str(asked["cipher"]), "--on", machine_word(str(asked["on"]))]
    for name, value in asked.items():
        option = f"--{name.replace('_', '-')}"
        if name in ("cipher", "on") or value is None or (name, value) in USUAL:
            continue
        if isinstance(value, bool):
            # Only unrolling has three states; other switches are off unless they are on.
            words += [option] if value else ["--no-unroll"] if name == "unroll" else []
        elif isinstance(value, list | tuple):
            words += [word for item in value for word in (option, str(item))]
        else:
            words += [option, str(value)]
    return shlex.join(words)


def machine_word(name: str) -> str:
    """A machine as a command names it: a study's own by its file, from wherever the command is run."""
    own = paths.DATA / name
    return paths.shown(own) if name.endswith(".toml") and not Path(name).is_file() and own.is_file() else name


def program(asked: Mapping[str, Any]) -> str:
    """The program that settings name, as a heading: no two of a page read the same."""
    name = f"{asked['cipher']}/{asked['variant']}" if asked.get("variant") else asked["cipher"]
    words = " ".join(filter(None, [name, asked.get("direction"), "on", asked["on"]]))
    mode = " in feedback mode" if asked.get("blocks") == "single" else ""
    more = (
        f", {said} {', '.join(asked[key])}"
        for key, said in (("with", "with"), ("without", "without"), ("set", "where"))
        if asked.get(key)
    )
    return f"{words}{mode}{''.join(more)}"


def is_kept(m: Measurement) -> bool:
    """Is a schedule in it that an earlier, longer search found?"""
    return any(loop.get("recorded") for loop in m.get("loops") or ())


def of(asked: Mapping[str, Any], m: Measurement) -> dict[str, Any]:
    """The record of one measurement."""
    if "hardware" in asked:
        return of_hardware(asked, m)
    provenance = m.provenance
    origin = provenance.get("origin") or {}
    return {
        "title": f"{m.cipher}/{m.variant}, {m.direction}, {m.key_bits}-bit key, on {m.machine}",
        "command": command(asked),
        "why": m.why,
        "schedule": schedule(m),
        "bottleneck": m.bottleneck,
        "verified": m.verified,
        "timing": report.constant_time(m),
        "failure": m.get("failure"),
        "compared": None if m.get("verified_bytes", m.bytes) == m.bytes else m["verified_bytes"],
        "vectors": provenance.get("vectors"),
        "kind": provenance.get("kind"),
        "version": provenance.get("ciphermill"),
        "machine": {"file": machine_file(m.machine), "hash": provenance.get("machine")},
        "module": {"hash": provenance.get("module"), **origin},
        "settings": {
            "hash": provenance.get("settings"),
            "blocks": m.blocks,
            "with": list(m["with"]),
            "without": list(m["without"]),
            "set": list(m["set"]),
        },
        "unit": report.unit(m),
        "results": results(m),
        # No critical path: no result depends on the block.
        "bounds": {k: v for k, v in m.bounds.items() if isinstance(v, int | float) and (v or k != "critical_path")},
        "events": dict(m.get("events") or {}),
        "metrics": {k: v for k, v in m.metrics.items() if isinstance(v, int | float) and v},
        "breakdown": {k: v for k, v in (m.get("breakdown") or {}).items() if v},
        "loops": list(m.get("loops") or ()),
    }


def results(m: Measurement) -> dict[str, Any]:
    """The figures, under names that say of what they are."""
    found = {name: m[name] for name in RESULTS if m.get(name) is not None}
    if m.direction != "keysetup":
        return found
    of_messages = ("cycles_per_byte", "mbit_per_s", "bytes")
    return {
        "cycles_per_key_setup" if k == "cycles_per_block" else k: v for k, v in found.items() if k not in of_messages
    }


def of_hardware(asked: Mapping[str, Any], m: Measurement) -> dict[str, Any]:
    """The record of one synthesis."""
    return {
        "title": m["title"],
        "command": command(asked),
        "why": "",
        "schedule": None,
        "bottleneck": None,
        "verified": None,
        "timing": None,
        "failure": None,
        "compared": None,
        "vectors": None,
        "kind": m.provenance["kind"],
        "version": f"Yosys {m['provenance']['yosys']}"
        + (", kept in rtl/synthesis.json" if m["provenance"].get("kept") else ""),
        "machine": {},
        "module": {},
        "settings": {"unit": asked["hardware"]},
        "results": {name: m[name] for name in ("gates", "cmos", "unit_gates", "depth", "flip_flops") if name in m},
        "unit": "",
        "bounds": {},
        "events": {},
        "metrics": {},
        "breakdown": {},
        "loops": [],
    }


def machine_file(name: str) -> str:
    """The file of a machine as a reader of the project finds it."""
    try:
        return paths.shown(library.machine_path(name))
    except InputError:
        return name


def schedule(m: Measurement) -> str | None:
    """That schedules are kept ones; None where they are not."""
    if not is_kept(m):
        return None
    return f"{report.kept(m).strip().removeprefix('with ')}, from an earlier, longer search; with --fresh a run searches itself"


class Book:
    """All records of a page; each measurement stands in it once."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self._places: dict[str, int] = {}

    def add(self, asked: Mapping[str, Any], measurement: Measurement) -> int:
        """The number of a measurement's record."""
        line = command(asked)
        if line not in self._places:
            self._places[line] = len(self.records)
            self.records.append(of(asked, measurement))
        return self._places[line]
