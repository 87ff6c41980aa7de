"""Instructions that a cipher would like to have: found, measured, and priced.

The core finds candidates in the code that runs often (``crates/discover``).
Here each becomes an extension file, the cipher is measured with it, so that
what it saves is a fact of the real schedule, and its hardware is counted: by
Yosys where that is installed, else in unit gates of the graph that the proofs
start from, before anything is simplified.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from . import _core, engine, hardware, library, paths, report, scratch, synthesis, tables, yosys
from ._core import InputError
from .progress import Progress

#: The name of what is found, as extension and as instruction.
NAME = "found"
#: Most registers that instructions are looked for with, read and written.
MOST_INPUTS = 4
MOST_OUTPUTS = 3


@dataclass(frozen=True)
class Limits:
    """What an instruction may be: registers it reads and writes, and gates."""

    inputs: int = 2
    outputs: int = 1
    gates: float | None = None
    #: Candidates of each kind that are measured.
    tries: int = 6

    def check(self) -> None:
        if not 1 <= self.inputs <= MOST_INPUTS:
            raise InputError(f"--inputs {self.inputs}: an instruction reads 1 to {MOST_INPUTS} registers here")
        if not 1 <= self.outputs <= MOST_OUTPUTS:
            raise InputError(f"--outputs {self.outputs}: an instruction writes 1 to {MOST_OUTPUTS} registers here")
        if self.gates is not None and self.gates <= 0:
            raise InputError(f"--gates {self.gates:g}: it is the most gates an instruction may cost, above 0")
        if self.tries < 1:
            raise InputError(f"--tries {self.tries}: at least one candidate of each kind is measured")


def discover(
    module: engine.Module,
    on: str,
    options: engine.Options,
    limits: Limits,
    progress: Progress = lambda items, total: items,
) -> dict[str, Any]:
    """The document that ``--json`` prints. Raises InputError, or InternalError
    when we are at fault."""
    options.check()
    limits.check()
    known = encoding(on)
    if limits.outputs > 1 and "crossing" in known:
        raise InputError(
            f"--outputs {limits.outputs}: on {Path(on).stem}, a machine of clusters, the compiler uses instructions "
            "with one result only; leave --outputs at 1"
        )
    request = engine.request(module, on, options, judged=False)
    found = json.loads(_core.discover(module.wasm, request, limits.inputs, limits.outputs, limits.tries))
    before = engine.measure(module, on, options)
    if not before.verified:
        raise _core.InternalError(f"{module.cipher.name} on {on}: not verified: {before.failure}")
    found |= known
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        results = pool.map(lambda c: tried(module, on, options, c, found, before.cycles_per_block), found["candidates"])
        tries = list(progress(results, len(found["candidates"])))
    rows = [row for row in tries if row["saved"] > 0]
    others = [{key: row.get(key) for key in OTHERS} for row in tries if row["saved"] <= 0]
    for row in rows:
        row["saved_per_gate"] = row["saved"] / max(row["gates"], 1)
        row["within_gates"] = limits.gates is None or row["gates"] <= limits.gates
    rows.sort(key=lambda row: (-row["saved_per_gate"], row["semantics"]))
    return {
        "schema": 1,
        "cipher": module.cipher.name,
        "variant": module.variant.name,
        "machine": Path(on).stem,
        "direction": before.direction,
        "inputs": limits.inputs,
        "outputs": limits.outputs,
        "gates": limits.gates,
        "gates_by": gates_by(),
        "cycles_per_block": before.cycles_per_block,
        "candidates": rows,
        "others": others,
        "best": best(rows),
    }


#: What is kept of candidates that save nothing.
OTHERS = ("kind", "semantics", "meaning", "operations", "places", "estimate", "cycles_per_block", "refused")


def encoding(on: str) -> dict[str, str]:
    """How a machine writes an instruction on registers: the timing of its addition,
    on a clustered machine the kind of operands, and the name of the one that may come
    from another cluster."""
    files = [tomllib.loads(library.read(library.machine_path(on))["text"])]
    while parent := files[-1]["machine"].get("inherits"):
        files.append(tomllib.loads(library.read(library.machine_path(parent))["text"]))

    def stated(*keys: str) -> Any:
        for file in files:
            for key in keys:
                file = file.get(key, {}) if isinstance(file, dict) else {}
            if file:
                return file
        return None

    add = stated("abi", "ops", "add") or ""
    # An instruction with an operand of several modes is called by both names.
    names = [add[: len(add) - n] for n in range(len(add)) if n == 0 or add[len(add) - n] == "_"]
    timing = next((t for name in names if (t := stated("instructions", name, "timing"))), "alu")
    if not (kind := stated("clusters", "operand")):
        return {"timing": timing}
    lists = list((stated("clusters", "cross") or {}).values())
    crossing = [name for name in (lists[0] if lists else []) if all(name in other for other in lists)]
    return {"timing": timing, "registers": kind, "crossing": crossing[0] if crossing else None}


def best(rows: Sequence[Mapping[str, Any]]) -> int | None:
    """Which one is written: of those within the gates allowed, the one that
    saves most cycles, and of equals the one of fewest gates."""
    allowed = [i for i, row in enumerate(rows) if row["within_gates"]]
    return min(allowed, key=lambda i: (-rows[i]["saved"], rows[i]["gates"]), default=None)


def tried(
    module: engine.Module,
    on: str,
    options: engine.Options,
    candidate: dict[str, Any],
    found: dict[str, Any],
    before: float,
) -> dict[str, Any]:
    """A candidate with what it saves and costs; ``refused`` says why it saves nothing."""
    row = {key: candidate[key] for key in ("kind", "semantics", "meaning", "operations", "places", "outputs")}
    row["estimate"] = candidate["saves"] / found["blocks"]
    row["extension"] = text = extension(module, on, candidate, found)
    with scratch.folder() as folder:
        path = Path(folder, f"{NAME}.toml")
        path.write_text(text)
        try:
            after = engine.measure(module, on, replace(options, with_=[*options.with_, str(path)]))
            if not after.verified:
                raise _core.InternalError(f"{candidate['semantics']}: not verified: {after.failure}")
            row |= {"cycles_per_block": after.cycles_per_block, "saved": before - after.cycles_per_block}
            row |= {"gates": gates(path, on) if row["saved"] > 0 else None}
        except InputError as error:
            row |= {"cycles_per_block": None, "saved": 0, "gates": None, "refused": str(error).splitlines()[0]}
    return row


def extension(module: engine.Module, on: str, candidate: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """The candidate as an extension file."""
    semantics, names = candidate["semantics"], list(candidate["registers"])
    if crossing := found.get("crossing"):
        # The last source is the one that may come over the path between clusters.
        semantics, names[-1] = re.sub(rf"\b{names[-1]}\b", crossing, semantics), crossing
    operands = [f'{name} = "{found["registers"]}"' for name in names]
    for name, values in candidate["immediates"]:
        operands.append(f"{name} = {{ values = [{', '.join(map(str, values))}] }}")
        names.append(name)
    meaning = f"\n# {candidate['meaning']}." if candidate["meaning"] else ""
    text = f"""\
# Found by `ciphermill discover {module.cipher.name} --variant {module.variant.name} --on {Path(on).stem}`:
# {candidate["operations"]} operations, in {candidate["places"]} places of the code.{meaning}

[extension]
name = "{NAME}"
title = "Found in {module.cipher.name}/{module.variant.name}"
for = ["{Path(on).stem}"]

[instructions.{NAME}]
operands = {{ {", ".join(operands)} }}
asm = "{{name}} {", ".join(f"{{{name}}}" for name in names)}"
bytes = {found["instruction_bytes"]}
timing = "{found["timing"]}"
semantics = "{semantics}"
source = "an assumption: as an addition, whose timing it has"
"""
    if candidate["constants"]:
        blocks = candidate["constants"].rstrip().split("\n\n")
        source = f'source = "read off the code of {module.cipher.name}"'
        text += "".join(f"\n{block}\n{source}\n" for block in blocks)
    return text


def gates_by() -> str:
    """How gates are counted here and now."""
    if synthesis.installed():
        return f"synthesis by Yosys {yosys.version()}, a 2-input NAND is 1"
    return (
        "unit gates (AND, OR 1, XOR 2) of the graph before synthesis; with Yosys installed "
        "(pip install 'ciphermill[rtl]') they are synthesised"
    )


def gates(path: Path, on: str) -> float:
    """Gates of the extension's only instruction."""
    texts, _ = hardware.on_machine([str(path)], on)
    made = hardware.hardware(texts, [NAME], hardware.Options(on=on))[0]
    if "refused" in made:
        raise InputError(made["refused"])
    if not synthesis.installed():
        return float(made["unit_gates"])
    return yosys.area(made["module"], hardware.sources(made))


def write(document: Mapping[str, Any], path: Path) -> None:
    """Write the best candidate's extension file."""
    if document["best"] is None:
        raise InputError("nothing was found that saves cycles within the gates allowed; nothing was written")
    try:
        paths.write_atomically(path, document["candidates"][document["best"]]["extension"].encode())
    except OSError as error:
        raise InputError(f"-o {paths.shown(path)}: {error.strerror}") from None


def text(document: Mapping[str, Any]) -> str:
    """The document as a table."""
    name = f"{document['cipher']}/{document['variant']} {document['direction']} on {document['machine']}"
    head = f"{name}: {report.number(document['cycles_per_block'])} cycles a block."
    if not document["candidates"]:
        return "\n\n".join([f"{head} Nothing was found that saves cycles {ports(document)}.", *nothing(document)])
    if document["best"] is None:
        head += f" Nothing of at most {document['gates']:g} gates was found that saves cycles."
    else:
        chosen = document["candidates"][document["best"]]
        head += (
            f" The best instruction found saves {report.number(chosen['saved'])} of them "
            f"({100 * chosen['saved'] / document['cycles_per_block']:.0f} %) for {chosen['gates']:.0f} gates."
        )
    rows = []
    for i, row in enumerate(document["candidates"]):
        mark = "*" if i == document["best"] else "" if row["within_gates"] else "too large"
        counts = (row["operations"], row["places"], report.number(row["cycles_per_block"]), report.number(row["saved"]))
        rows.append(
            (str(i + 1), row["kind"], *map(str, counts), f"{row['gates']:.0f}", f"{row['saved_per_gate']:.3g}", mark)
        )
    columns = ("", "found", "operations", "places", "cycles", "saved", "gates", "saved/gate", "")
    table = tables.text(columns, rows, (0, 2, 3, 4, 5, 6, 7), (0, 2))
    meanings = "\n".join(f"{i + 1}: {row['semantics']}{known(row)}" for i, row in enumerate(document["candidates"]))
    lines = [head, table, meanings, f"gates: {document['gates_by']}", *nothing(document)]
    if document["best"] is not None:
        lines.append("* saves most within the gates allowed; -o FILE writes it as an extension")
    return "\n\n".join(lines)


def known(row: Mapping[str, Any]) -> str:
    """What the semantics are modulo a number, on a line of its own."""
    return f"\n   {row['meaning']}" if row["meaning"] else ""


def ports(document: Mapping[str, Any]) -> str:
    several = "" if document["outputs"] == 1 else "s"
    return f"with {document['inputs']} inputs and {document['outputs']} output{several}"


def nothing(document: Mapping[str, Any]) -> list[str]:
    """What was tried and saves nothing, and why."""
    rows = document["others"]
    if not rows:
        return []
    refused: dict[str, int] = {}
    for row in rows:
        if row["refused"]:
            refused[row["refused"]] = refused.get(row["refused"], 0) + 1
    slower = len(rows) - sum(refused.values())
    lines = [f"tried, and no faster: {slower}"] if slower else []
    return ["\n".join(lines + [f"refused: {count}: {why}" for why, count in refused.items()])]
