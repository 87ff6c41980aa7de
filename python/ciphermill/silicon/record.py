"""A host's figures as a file, so that a model can be worked on where there is no such host.

``studies/silicon-*/hosts/NAME.toml``: which processor, how and when, and for each program its
cycles with what it takes to measure it again. A study reads them as its figures
(`docs/silicon.md`).
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

from .. import _core, engine, paths
from .._core import InputError
from ..declared import Declared, Source

Positive = Annotated[float, msgspec.Meta(gt=0, description="it is a number above 0")]


class Head(Declared, frozen=True, kw_only=True):
    """Where figures come from."""

    title: str
    processor: str
    #: The machine whose programs were run: how they were chosen and scheduled.
    machine: str
    date: str
    method: str
    compiler: str
    vendor: str | None = None
    family: int | None = None
    model: int | None = None
    stepping: int | None = None
    virtual: bool | None = None
    clock_ghz: Positive | None = None
    note: str = ""


class Settings(Declared, frozen=True, kw_only=True):
    """What is asked of a simulation of the same program."""

    cipher: str
    variant: str
    direction: str
    blocks: str


class Entry(Declared, frozen=True, kw_only=True):
    """A program's figures, cycles and instructions of a block."""

    settings: Settings
    cycles: Positive
    instructions: Positive
    held_out: bool
    minimum: Positive | None = None
    #: The second least of the processes' medians is above the least by this part of it.
    spread: Annotated[float, msgspec.Meta(ge=0, description="it is a number from 0 on")] | None = None
    unstable: str | None = None


class File(Declared, frozen=True, kw_only=True):
    host: Head
    programs: dict[str, Entry]


def read(path: Path) -> File:
    """A host's file. Raises InputError, with the line, where it is none."""
    return Source.read(path).checked(File)


def write(document: Mapping[str, Any], path: str, title: str | None = None, note: str = "") -> None:
    """Write what ``silicon`` measured; programs without a figure are left out."""
    try:
        paths.write_atomically(Path(path), text(document, title, note).encode())
    except OSError as error:
        raise InputError(f"--into {path}: {error.strerror}") from None


def text(document: Mapping[str, Any], title: str | None = None, note: str = "") -> str:
    """The file of a document of `ciphermill silicon`."""
    here, method = document["processor"], document["method"]
    rows = [row for row in document["rows"] if row.get("silicon_cycles")]
    clocks = sorted(row["clock_ghz"] for row in rows if row["clock_ghz"])
    by = "the processor's counter" if any(row["by"] == "counter" for row in rows) else "a chain of dependent additions"
    head: dict[str, Any] = {
        "title": title or here["known_as"] or here["model"],
        "processor": here["model"], "vendor": here["vendor"], "family": here["family"], "model": here["model_number"],
        "stepping": here["stepping"], "virtual": here["virtual"],
        "clock_ghz": round(clocks[len(clocks) // 2], 3) if clocks else None,
        "machine": Path(document["machine"]).stem,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "method": f"slope between two message lengths, warm, pinned; cycles by {by}; least of {method['rounds']} processes' "
        f"medians of up to {-(-method['samples'] // method['rounds'])} quiet samples",
        "compiler": f"ciphermill {_core.version()} ({engine.identity().split()[-1][:12]})",
        "note": note,
    }  # fmt: skip
    lines = ["# Core cycles a block on this processor, as `ciphermill silicon --into` wrote them.", "", "[host]"]
    lines += [f"{key} = {literal(value)}" for key, value in head.items() if value not in (None, "")]
    for row in rows:
        rounds = sorted(each for each in row["rounds"] if each is not None)
        spread = rounds[1] / rounds[0] - 1 if len(rounds) > 1 else None
        entry = {
            "settings": {k: row[k] for k in ("cipher", "variant", "direction", "blocks")},
            "cycles": round(row["silicon_cycles"], 2),
            "minimum": None if row["minimum"] is None else round(row["minimum"], 2),
            "instructions": row["instructions"],
            "spread": None if spread is None else round(spread, 4),
            "held_out": row["held_out"],
            "unstable": row["unstable"],
        }
        lines += ["", f"[programs.{row['program']}]"]
        lines += [f"{key} = {literal(value)}" for key, value in entry.items() if value is not None]
    return "\n".join(lines) + "\n"


def literal(value: Any) -> str:
    """A value as TOML has it: JSON's strings, numbers and truths are TOML's."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {literal(one)}" for key, one in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)
