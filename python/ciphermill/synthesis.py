"""Gates, FPGA cells and proofs: from Yosys, or as they were when it was asked.

Where Yosys is installed it is asked. Where it is not, ``rtl/synthesis.json``
answers, which holds what a known version of Yosys said of the hardware that
comes with the project, each under a hash of everything that went into the
question: the Verilog, the gate library, the commands, and for a proof the
semantics as gates. A module that has changed since finds no answer there.
``make synthesis`` writes that file anew; nothing in it is typed in.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from . import cached, paths, yosys
from ._core import InputError

FILE = paths.RTL / "synthesis.json"


@cache
def installed() -> bool:
    try:
        yosys.version()
    except InputError:
        return False
    return True


@cache
def kept(path: Path = FILE) -> dict[str, Any]:
    """What the file says: ``yosys``, the version that was asked, and ``results``."""
    nothing: dict[str, Any] = {"yosys": None, "results": {}}
    if not path.is_file():
        return nothing
    document: dict[str, Any] = json.loads(path.read_text())
    if document.get("sha256") != checksum(document["yosys"], document["results"]):
        cached.note(
            f"{paths.shown(path)} was changed since Yosys answered, and is not used; `make synthesis` writes it anew"
        )
        return nothing
    return document


def checksum(version: str, results: Mapping[str, Any]) -> str:
    """Of what the file says: a figure in it that was changed is no answer of Yosys."""
    return hashlib.sha256(json.dumps([version, results], sort_keys=True).encode()).hexdigest()


def version() -> str:
    """Of the Yosys whose answers these are. Raises InputError when there are none."""
    if installed():
        return yosys.version()
    asked: str | None = kept()["yosys"]
    return yosys.version() if asked is None else asked


def provenance() -> str:
    """Who counted, in words."""
    if installed():
        return f"synthesised by Yosys {version()}"
    return f"as Yosys {version()} synthesised it for {paths.shown(FILE)}; it is not installed here"


def gates(top: str, verilog: Mapping[str, str], parameters: Mapping[str, int], memory: bool = False) -> dict[str, Any]:
    """As :func:`yosys.gates`."""
    asked = ["gates", *yosys.gate_runs(top, verilog, parameters, memory), {**verilog, **yosys.gate_library()}]
    return answer(asked, lambda: yosys.gates(top, verilog, parameters, memory))


def virtex2(top: str, verilog: Mapping[str, str], parameters: Mapping[str, int]) -> dict[str, Any]:
    """As :func:`yosys.virtex2`."""
    asked = ["virtex2", yosys.virtex2_run(top, verilog, parameters), dict(verilog)]
    return answer(asked, lambda: yosys.virtex2(top, verilog, parameters))


def prove(top: str, verilog: Mapping[str, str], reference: str) -> dict[str, Any]:
    """As :func:`yosys.prove`."""
    asked = ["proof", *yosys.proof_runs(top, verilog), {**verilog, "reference.blif": reference}]
    return answer(asked, lambda: yosys.prove(top, verilog, reference))


#: What was asked since this was set, and what the answers were: for `record`.
recorded: dict[str, Any] | None = None
#: Answers that are taken meanwhile without asking again.
answered: dict[str, Any] = {}


def answer(asked: list[Any], ask: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What Yosys says, or said. Raises InputError when neither is to be had."""
    if not installed():
        found: dict[str, Any] | None = kept()["results"].get(key(asked))
        if found is not None:
            return found
        # The message that says how to get it.
        yosys.version()
    if recorded is None:
        return ask()
    known = key(asked)
    recorded[known] = answered[known] if known in answered else ask()
    result: dict[str, Any] = recorded[known]
    return result


def key(asked: list[Any]) -> str:
    """What a question is kept under."""
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:32]


def record(ask: Callable[[], object], path: Path = FILE, again: bool = True) -> None:
    """Write a file of all that Yosys answers while `ask` asks. Unless `again`, what this version of
    Yosys answered before, in the file that comes with the project, is not asked again."""
    global recorded, answered
    version = yosys.version()
    recorded, answered = {}, {} if again or kept()["yosys"] != version else kept()["results"]
    ask()
    results, recorded, answered = dict(sorted(recorded.items())), None, {}
    check = checksum(version, results)
    lines = ",\n".join(f"    {json.dumps(key)}: {json.dumps(value, sort_keys=True)}" for key, value in results.items())
    text = f'{{\n  "yosys": {json.dumps(version)},\n  "sha256": "{check}",\n  "results": {{\n{lines}\n  }}\n}}\n'
    path.write_text(text)
