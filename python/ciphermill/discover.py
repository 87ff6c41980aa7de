"""Instructions that a cipher would like to have: found, measured, and priced.

The core finds candidates in the code that runs often (``crates/discover``).
Here each becomes an extension file, the cipher is measured with it, so that
what it saves is a fact of the real schedule, and its hardware is counted: by
Yosys where that is installed, else as the two-input gates of the graph that the
proofs start from, before anything is simplified.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from . import _core, engine, paths, rtl, tables, yosys
from ._core import InputError

#: The name of what is found, as extension and as instruction.
NAME = "found"
#: Most registers that an instruction's semantics are looked for with.
MOST_INPUTS = 4


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
        if self.outputs != 1:
            raise InputError(
                f"--outputs {self.outputs}: the compiler puts one result of an instruction into a register; leave --outputs at 1"
            )
        if self.gates is not None and self.gates <= 0:
            raise InputError(f"--gates {self.gates:g}: it is the most gates an instruction may cost, above 0")
        if self.tries < 1:
            raise InputError(f"--tries {self.tries}: at least one candidate of each kind is measured")


def discover(
    module: engine.Module,
    on: str,
    options: engine.Options,
    limits: Limits,
    progress: Callable[[Iterable, int], Iterable] = lambda items, total: items,
) -> dict[str, Any]:
    """The document that ``--json`` prints. Raises InputError, or InternalError
    when we are at fault."""
    options.check()
    limits.check()
    request = engine.request(module, on, options, judged=False)
    found = json.loads(_core.discover(module.wasm, request, limits.inputs, limits.tries))
    before = engine.measure(module, on, options)
    if not before.verified:
        raise _core.InternalError(f"{module.cipher.name} on {on}: not verified: {before.failure}")
    rows = []
    for candidate in progress(found["candidates"], len(found["candidates"])):
        rows.append(tried(module, on, options, candidate, found, before.cycles_per_block))
    rows = [row for row in rows if row["saved"] > 0]
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
        "best": best(rows),
    }


def best(rows: Sequence[Mapping[str, Any]]) -> int | None:
    """Which one is written: of those within the gates allowed, the one that
    saves most cycles, and of equals the one of fewest gates."""
    allowed = [i for i, row in enumerate(rows) if row["within_gates"]]
    return min(allowed, key=lambda i: (-rows[i]["saved"], rows[i]["gates"]), default=None)


def tried(
    module: engine.Module, on: str, options: engine.Options, candidate: dict[str, Any], found: dict[str, Any], before: float
) -> dict[str, Any]:
    """A candidate with what it saves and costs; ``refused`` says why it saves nothing."""
    row = {key: candidate[key] for key in ("kind", "semantics", "operations", "places")}
    row["estimate"] = candidate["saves"] / found["blocks"]
    row["extension"] = text = extension(module, on, candidate, found)
    with tempfile.TemporaryDirectory(prefix="ciphermill-") as folder:
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
    operands = [f'{name} = "{found["registers"]}"' for name in candidate["registers"]]
    names = list(candidate["registers"])
    if candidate["immediate"]:
        name, values = candidate["immediate"]
        operands.append(f"{name} = {{ values = [{', '.join(map(str, values))}] }}")
        names.append(name)
    text = f"""\
# Found by `ciphermill discover {module.cipher.name} --variant {module.variant.name} --on {Path(on).stem}`:
# {candidate["operations"]} operations, in {candidate["places"]} places of the code.

[extension]
name = "{NAME}"
title = "Found in {module.cipher.name}/{module.variant.name}"
for = ["{Path(on).stem}"]

[instructions.{NAME}]
operands = {{ {", ".join(operands)} }}
asm = "{{name}} {", ".join(f"{{{name}}}" for name in names)}"
bytes = {found["instruction_bytes"]}
timing = "alu"
semantics = "{candidate["semantics"]}"
source = "an assumption: one cycle in the ALU"
"""
    if candidate["constants"]:
        blocks = candidate["constants"].rstrip().split("\n\n")
        source = f'source = "read off the code of {module.cipher.name}"'
        text += "".join(f"\n{block}\n{source}\n" for block in blocks)
    return text


def installed() -> bool:
    try:
        yosys.version()
    except InputError:
        return False
    return True


def gates_by() -> str:
    """How gates are counted here and now."""
    if installed():
        return f"synthesis by Yosys {yosys.version()}, a 2-input NAND is 1"
    return "two-input gates of the unsimplified graph (Yosys is not installed: pip install 'ciphermill[rtl]')"


def gates(path: Path, on: str) -> float:
    """Gates of the extension's only instruction."""
    if installed():
        document, _ = rtl.report([str(path)], rtl.Options(on=on, prove=False))
        return document["instructions"][0]["gates"]
    texts, _ = rtl.on_machine([str(path)], on)
    made = rtl.hardware(texts, [NAME], rtl.Options(on=on))[0]
    if "refused" in made:
        raise InputError(made["refused"])
    return sum(len(line.split()) == 4 for line in made["reference"].splitlines() if line.startswith(".names"))


def write(document: Mapping[str, Any], path: Path) -> None:
    """Write the best candidate's extension file."""
    if document["best"] is None:
        raise InputError("nothing was found that saves cycles within the gates allowed; nothing was written")
    try:
        path.write_text(document["candidates"][document["best"]]["extension"])
    except OSError as error:
        raise InputError(f"-o {paths.shown(path)}: {error.strerror}") from None


def text(document: Mapping[str, Any]) -> str:
    """The document as a table."""
    from . import report

    name = f"{document['cipher']}/{document['variant']} {document['direction']} on {document['machine']}"
    head = f"{name}: {report.number(document['cycles_per_block'])} cycles a block."
    if not document["candidates"]:
        return f"{head} Nothing with {document['inputs']} inputs was found that saves cycles."
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
        rows.append((str(i + 1), row["kind"], *map(str, counts), f"{row['gates']:.0f}", f"{row['saved_per_gate']:.3g}", mark))
    columns = ("", "found", "operations", "places", "cycles", "saved", "gates", "saved/gate", "")
    table = tables.text(columns, rows, (0, 2, 3, 4, 5, 6, 7), (0, 2))
    meanings = "\n".join(f"{i + 1}: {row['semantics']}" for i, row in enumerate(document["candidates"]))
    lines = [head, table, meanings, f"gates: {document['gates_by']}"]
    if document["best"] is not None:
        lines.append("* saves most within the gates allowed; -o FILE writes it as an extension")
    return "\n\n".join(lines)
