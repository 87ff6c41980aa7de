"""Hardware of extensions: Verilog, gates, an FPGA's cells, and the proof.

An extension is read on a machine it fits; the core makes a module of each of
its instructions, and this module asks Yosys what they cost and whether they are
right. Hand-written units (``rtl/units.toml``) that do the instructions of an
extension together, or hold its state, are measured and proved beside them.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import _core, library, paths, synthesis, tables
from ._core import InputError

#: Where extensions for 64-bit words are read that name no machine.
WIDE = "rv64"


@dataclass(frozen=True)
class Options:
    """What is made and asked; ``on`` is a machine's name or file."""

    on: str | None = None
    plain_tables: bool = False
    verilog_only: bool = False
    prove: bool = True


def report(extensions: list[str], options: Options) -> tuple[dict[str, Any], dict[str, str]]:
    """The document that ``--json`` prints, and the files by name."""
    texts, machine = on_machine(extensions, options.on)
    names = brought(texts, extensions)
    if not names:
        raise InputError(f"{', '.join(extensions)}: no instructions, so no hardware")
    if not options.verilog_only:
        synthesis.version()
    files: dict[str, str] = {}
    rows = [instruction(made, files, options) for made in hardware(texts, names, options)]
    units = [unit(u, files, options) for u in covering(extensions)]
    document = {
        "schema": 1,
        "extensions": extensions,
        "machine": machine,
        "yosys": None if options.verilog_only else synthesis.version(),
        "kept": not options.verilog_only and not synthesis.installed(),
        "instructions": rows,
        "units": units,
        "files": sorted(files),
    }
    return document, files


def record(path: Path = synthesis.FILE, again: bool = True) -> None:
    """Ask Yosys about all hardware of the project, and write what it says (`make synthesis`); unless
    `again`, only about what it has not been asked (`make synthesis-of-new`)."""

    def ask(name: str) -> None:
        try:
            report([name], Options())
        except InputError as error:
            # An extension that adds no instructions has no hardware.
            if "no hardware" not in str(error):
                raise

    def ask_all() -> None:
        # Yosys runs in a process of its own, one for each question.
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            list(pool.map(ask, library.extension_names()))

    synthesis.record(ask_all, path, again)


def right(document: dict[str, Any]) -> bool:
    """Nothing was found to be wrong."""
    rows = document["instructions"] + [proof for u in document["units"] for proof in u["proofs"].values()]
    return all(row.get("proved", True) is not False for row in rows)


def on_machine(extensions: list[str], on: str | None) -> tuple[dict[str, Any], str]:
    """The request for the core, with the machine the extensions fit."""
    files = [library.extension_path(name) for name in extensions]
    if on is None:
        head = library.headline(files[0], "extension")
        # One of them may be a machine of the user's own, whose file only `--on` can name.
        fits = [name for name in head.get("for") or [] if name in library.machine_names()]
        on = fits[0] if fits else WIDE if head.get("word_bits") == 64 else "rv32"
    return library.request(on, extensions, [], []), Path(on).stem


def brought(texts: dict[str, Any], extensions: list[str]) -> list[str]:
    """Names of the instructions that the extensions bring, in their order."""
    described = json.loads(_core.describe_machine(json.dumps(texts)))
    own = {Path(name).stem for name in extensions} | set(described["extensions"])
    return [i["name"] for i in described["instructions"] if i["extension"] in own]


def hardware(texts: dict[str, Any], names: list[str], options: Options) -> list[dict[str, Any]]:
    asked = {"machine": texts, "instructions": names, "plain_tables": options.plain_tables}
    units: list[dict[str, Any]] = json.loads(_core.hardware(json.dumps(asked)))
    return units


def instruction(made: dict[str, Any], files: dict[str, str], options: Options) -> dict[str, Any]:
    """One instruction's row; its files are added to ``files``."""
    if "refused" in made:
        return {"name": made["instruction"], "refused": made["refused"]}
    verilog = sources(made)
    files |= verilog | {f"{made['module']}_tb.v": made["test_bench"]}
    row = {
        "name": made["instruction"],
        "semantics": " ".join(made["semantics"].split()),
        "module": made["module"],
        "inputs": made["inputs"],
        "outputs": made["outputs"],
        "unsynthesised": made["unit_gates"],
        "needs": sorted(set(verilog) - {f"{made['module']}.v"}),
    }
    if not options.verilog_only:
        row |= synthesis.gates(made["module"], verilog, {})
        row["virtex2"] = synthesis.virtex2(made["module"], verilog, {})
        if options.prove:
            row |= synthesis.prove(made["module"], verilog, made["reference"])
    return row


def sources(made: dict[str, Any]) -> dict[str, str]:
    """The Verilog files of an instruction, its own first."""
    verilog = {f"{made['module']}.v": made["verilog"]}
    for part in made["parts"]:
        verilog |= {f"{part['module']}.v": part["verilog"]} if part["verilog"] else hand_written(part["module"])
    return verilog


def hand_written(module: str) -> dict[str, str]:
    """The file in ``rtl/`` that holds a module."""
    for path in sorted(paths.RTL.glob("*.v")):
        text = path.read_text()
        if re.search(rf"^module {re.escape(module)}\b", text, re.MULTILINE):
            return {path.name: text}
    raise InputError(f"no file in rtl/ has a module `{module}`; leave `verilog` out of the table, or write the module")


def units() -> list[dict[str, Any]]:
    """All hand-written units, as ``rtl/units.toml`` has them."""
    found: list[dict[str, Any]] = tomllib.loads((paths.RTL / "units.toml").read_text())["unit"]
    return found


def entry(name: str) -> dict[str, Any]:
    """A hand-written unit by name. Raises InputError when there is none."""
    for unit in units():
        if unit["name"] == name:
            return unit
    raise InputError(f"rtl/units.toml has no unit {name}")


def covering(extensions: list[str]) -> Iterator[dict[str, Any]]:
    """Units that do something of one of the extensions."""
    asked = {Path(name).stem for name in extensions}
    for entry in units():
        if asked & set(entry["with"]):
            yield entry


def unit(entry: dict[str, Any], files: dict[str, str], options: Options) -> dict[str, Any]:
    """A unit's row: what it costs, and that it does what its instructions say."""
    verilog = {name: (paths.RTL / name).read_text() for name in entry["files"]}
    files |= verilog
    row: dict[str, Any] = {"name": entry["name"], "title": entry["title"], "module": entry["module"]}
    row |= {"parameters": entry.get("parameters", {}), "published": entry.get("published", []), "proofs": {}}
    if options.verilog_only:
        return row
    memory = entry.get("memory", False)
    row |= synthesis.gates(entry["module"], verilog, row["parameters"], memory)
    if not memory:
        row["virtex2"] = synthesis.virtex2(entry["module"], verilog, row["parameters"])
    if options.prove and (connections := entry.get("instructions")):
        texts, _ = on_machine(entry["with"], entry.get("on"))
        for made in hardware(texts, list(connections), options):
            wrapped = verilog | {"wrapper.v": wrapper(entry, made, connections[made["instruction"]])}
            row["proofs"][made["instruction"]] = synthesis.prove("wrapper", wrapped, made["reference"])
    return row


def wrapper(entry: dict[str, Any], made: dict[str, Any], connections: str) -> str:
    """The unit as it does one instruction, with that instruction's ports."""

    def port(kind: str, p: dict[str, Any]) -> str:
        bits = "" if p["bits"] == 1 else f"[{p['bits'] - 1}:0] "
        return f"{kind} wire {bits}{p['name']}"

    ports = [port("input", p) for p in made["inputs"]] + [port("output", p) for p in made["outputs"]]
    chosen = ", ".join(f".{name}({value})" for name, value in entry.get("parameters", {}).items())
    unit = f"{entry['module']} #({chosen})" if chosen else entry["module"]
    return f"module wrapper ({', '.join(ports)});\n    {unit} unit ({connections});\nendmodule\n"


def write(files: dict[str, str], folder: Path) -> None:
    """Write the Verilog files into a folder."""
    try:
        folder.mkdir(exist_ok=True)
        for name, text in files.items():
            paths.write_atomically(folder / name, text.encode())
    except OSError as error:
        raise InputError(f"-o {paths.shown(folder)}: {error.strerror}") from None


#: Columns of figures, and those that a narrow terminal can do without.
TABLE = ((1, 2, 3, 4, 5, 6), (3, 4, 6, 5))


def records(document: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for each instruction and each unit."""
    rows = [{"kind": "instruction", **row} for row in document["instructions"]]
    return rows + [{"kind": "unit", **row} for row in document["units"]]


def sentence(document: dict[str, Any]) -> str:
    """What it costs and whether it is right, in words."""
    made = [row for row in document["instructions"] if "refused" not in row]
    if not made:
        return f"{', '.join(document['extensions'])}, on {document['machine']}: nothing to make hardware of; each instruction says why."
    several = "" if len(made) == 1 else "s"
    what = f"{', '.join(document['extensions'])}, {len(made)} instruction{several} on {document['machine']}"
    if document["yosys"] is None:
        return f"{what}: Verilog only, nothing synthesised and nothing proved."
    if faulty := list(wrong(document)):
        return f"{what}: {len(faulty)} WRONG, the hardware is not what the semantics say."
    most = max(made, key=lambda row: row["gates"], default=None)
    largest = (
        f"; the largest, {most['name']}, takes {most['gates']:.0f} gates at a depth of {most['depth']}" if most else ""
    )
    undecided = [row["name"] for row in made if row.get("proved", True) is None]
    if not all("proved" in row for row in made):
        proved = "not proved"
    elif undecided:
        proved = f"proved equal to their semantics but for {', '.join(undecided)}, undecided"
    else:
        proved = "all proved equal to their semantics"
    return f"{what}: {proved}{largest}."


def text(document: dict[str, Any]) -> str:
    """The document as tables."""
    parts = [sentence(document)]
    head = ("", "gates", "depth", "CMOS", "unit gates", "flip-flops", "LUTs", "proof")
    refused = [row for row in document["instructions"] if "refused" in row]
    made = [row for row in document["instructions"] if "refused" not in row]
    if document["yosys"] is None:
        rows = [
            (row["name"], str(row.get("unsynthesised", "")), row["module"], ", ".join(row["needs"])) for row in made
        ]
        parts.append(tables.text(("instruction", "unit gates", "module", "needs"), rows, (1,)))
        parts.append("unit gates: AND, OR 1, XOR 2, of the semantics as gates, before any synthesis")
    elif made:
        parts.append(tables.text(("instruction", *head[1:]), [figures(row, row["name"]) for row in made], *TABLE))
    if document["units"] and document["yosys"] is not None:
        parts.append(tables.text(("unit", *head[1:]), [figures(u, u["name"]) for u in document["units"]], *TABLE))
        parts.append("\n".join(f"{u['name']}: {u['title']}" for u in document["units"]))
        if published := [line for u in document["units"] for line in comparison(u)]:
            parts.append("\n".join(published))
    parts += [f"{row['name']}: no module: {row['refused']}" for row in refused]
    parts += [f"{row['name']}: WRONG for {row['counterexample']}" for row in wrong(document)]
    parts += [f"{row['name']}: undecided: {row['undecided']}" for row in made if "undecided" in row]
    if document["yosys"] is not None:
        parts.append(
            "gates: 2-input NAND = 1 (rtl/gates.lib), flip-flops included; CMOS: transistors / 4 as Yosys counts them;\n"
            "unit gates: AND, OR 1, XOR 2, stored bit 4; LUTs: of a Virtex-II; proof: equal to the semantics for all inputs"
        )
        if document.get("kept"):
            parts.append(f"all this {synthesis.provenance()}: pip install 'ciphermill[rtl]'")
    return "\n\n".join(parts)


def figures(row: dict[str, Any], name: str) -> tuple[str, ...]:
    proofs = [row] if "proved" in row else list(row.get("proofs", {}).values())
    answers = {p["proved"] for p in proofs}
    proof = "" if not proofs else "WRONG" if False in answers else "undecided" if None in answers else "proved"
    luts = str(row["virtex2"]["luts"]) if "virtex2" in row else ""
    stored = f"{row['flip_flops']}" + (f" + {row['memory_bits']} bits" if row["memory_bits"] else "")
    return (
        name,
        f"{row['gates']:.0f}",
        str(row["depth"]),
        f"{row['cmos']:.0f}",
        str(row["unit_gates"]),
        stored,
        luts,
        proof,
    )


def comparison(u: dict[str, Any]) -> Iterator[str]:
    """Lines of a unit's published figures, with ours beside them."""
    for there in u["published"]:
        if "unit_gates" in there:
            ours, theirs, what = u["unit_gates"], there["unit_gates"], "unit gates"
        else:
            ours, theirs, what = u["cmos"], there["nand2"], "gates"
        yield f"{u['name']}: {ours:.0f} {what}, published {theirs} ({ours / theirs:.2f} of it; {there['source']})"


def wrong(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for row in document["instructions"]:
        if row.get("proved", True) is False:
            yield row
    for u in document["units"]:
        yield from ({"name": f"{u['name']}, {name}"} | p for name, p in u["proofs"].items() if p["proved"] is False)
