"""Where a cipher's secrets decide how long it takes.

The core runs the module, or the machine code that a measurement would run, and
says at which offsets; here the sources are compiled with debugging information,
which changes nothing in the code, and the offsets become source lines (crate
``audit`` says what a verdict means).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import _core, engine, paths, places, tables
from .leaks import KINDS, counted
from .manifest import Cipher, Variant
from .options import check_limit

#: What no verdict on the module says.
MODULE_ONLY = (
    "the WebAssembly module only: what a machine's code generator makes of a select, a comparison or a division is not in it, "
    "nor which instructions take a time that depends on their operands there; ask with --on MACHINE"
)

#: Directions of which a feedback mode is one of two.
FEEDBACK = ("encrypt", "decrypt", "permute")

#: What no verdict on machine code says.
MACHINE_ONLY = (
    "other machines, options and key sizes than these; what a core does ahead of a branch that it guessed wrong; and more about "
    "the time of instructions than the machine file states"
)


def run(
    cipher: Cipher,
    variant: str | None = None,
    cc: str = "zig",
    key_bits: int | None = None,
    limit: int | None = None,
) -> dict[str, Any]:
    """The audit of one variant's module, as ``--json`` prints it, for one key size or all it has.

    Each run has at most `limit` operations.
    """
    check_limit(limit)
    chosen = cipher.variant(variant)
    cipher = cipher.of(chosen.name)
    if key_bits is not None:
        cipher.check_key_bits(key_bits)
    module = engine.module(cipher, chosen.name, cc, debug=True)
    sizes = list(cipher.key_bits or ((engine.usual_key_bits(module),))) if key_bits is None else [key_bits]
    iv_bits = list((8 * engine.iv_bytes(module),) if cipher.iv_bits is None else cipher.iv_bits)
    with places.told(module):
        answer = json.loads(_core.audit(module.wasm, sizes, iv_bits, limit, module.kernel()))
    findings = _merged(answer.pop("findings"))
    return {
        **_head(cipher, chosen, "module", answer["clean"]),
        "key_bits": sizes,
        "iv_bits": iv_bits,
        **answer,
        "findings": findings,
    }


def on_machines(
    cipher: Cipher, variant: str | None, machines: Sequence[str], options: engine.Options
) -> dict[str, Any]:
    """The audit of the machine code that `run` measures with the same options, as ``--json`` prints it."""
    chosen = cipher.variant(variant)
    audits = []
    for machine in machines:
        module = engine.suited(engine.module(cipher, chosen.name, options.cc), machine, options)
        debug = engine.module(cipher, chosen.name, options.cc, small=module.small, debug=True)
        answer = engine.audit(module, debug.wasm, machine, options)
        audits.append({**answer, "findings": _merged(answer["findings"])})
    clean = all(audit["clean"] for audit in audits)
    return {**_head(cipher, chosen, "machine", clean), "clean": clean, "audits": audits}


def _head(cipher: Cipher, variant: Variant, scope: str, clean: bool) -> dict[str, Any]:
    return {
        "cipher": cipher.name,
        "variant": variant.name,
        "scope": scope,
        "claimed": variant.constant_time,
        "contradicted": variant.constant_time is True and not clean,
        "not_looked_at": MODULE_ONLY if scope == "module" else MACHINE_ONLY,
    }


def contradiction(cipher: Cipher, variant: str | None, where: str = "") -> str:
    """What is said to a manifest whose promise is not kept."""
    chosen = cipher.variant(variant)
    return (
        f"{paths.shown(cipher.path)} says constant_time = true of variant {chosen.name}, and that is not so{where}: "
        "secrets decide its time"
    )


def findings(audit: dict[str, Any]) -> list[dict[str, Any]]:
    """The findings of an audit as rows; those of machine code say whose."""
    if audit["scope"] == "module":
        found: list[dict[str, Any]] = audit["findings"]
        return found
    where = ("machine", "direction", "blocks", "key_bits")
    return [{**{key: one[key] for key in where}, **finding} for one in audit["audits"] for finding in one["findings"]]


def _finding(finding: dict[str, Any], texts: dict[str, list[str]]) -> dict[str, Any]:
    """A finding with its path as messages show paths, and the line's text."""
    file, line, text = finding["file"], finding["line"], None
    if file is not None:
        if file not in texts:
            try:
                texts[file] = Path(file).read_text(errors="replace").splitlines()
            except OSError:
                texts[file] = []
        if 0 < line <= len(texts[file]):
            text = texts[file][line - 1].strip()
        file = paths.shown(Path(file))
    return {**finding, "file": file, "text": text}


def _merged(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One entry for each kind, function and line, however many instructions it has."""
    merged: dict[tuple[Any, ...], dict[str, Any]] = {}
    texts: dict[str, list[str]] = {}
    for finding in (_finding(one, texts) for one in found):
        name = finding.pop("instruction", None)
        place = finding["line"] if finding["file"] else finding["offset"]
        key = (finding["file"] or "", place, finding["kind"], finding["function"])
        if key in merged:
            merged[key]["times"] += finding["times"]
            merged[key]["instructions"] += 1
        else:
            merged[key] = {**finding, "instructions": 1}
            if name is not None:
                merged[key]["names"] = []
        if name is not None and name not in merged[key]["names"]:
            merged[key]["names"].append(name)
    return [merged[key] for key in sorted(merged)]


def text(audit: dict[str, Any]) -> str:
    """The verdict in words, with what it is about, then a line for each finding."""
    name = f"{audit['cipher']}/{audit['variant']}"
    if audit["scope"] == "machine":
        return "\n\n".join([*(_on_machine(name, one) for one in audit["audits"]), f"Not looked at: {MACHINE_ONLY}."])
    keys = "messages" if audit["key_bits"] == [0] else f"keys of {', '.join(map(str, audit['key_bits']))} bits"
    if not audit["findings"]:
        return (
            f"{name} is clean as a module: no branch, address or division depends on key or message.\n"
            f"Shown for {keys} in {audit['runs']} runs; {audit['reached']} of {audit['sites']} loads, "
            f"stores and divisions were reached.\nLooked at was {MODULE_ONLY}."
        )
    return f"{_verdict(name, audit['findings'])}\nLooked at was {MODULE_ONLY}.\n\n{_table(audit['findings'])}"


def _on_machine(name: str, audit: dict[str, Any]) -> str:
    mode = " in feedback mode" if audit["blocks"] == "single" and audit["direction"] in FEEDBACK else ""
    what = f"{name} on {audit['machine']}"
    lengths = ", ".join(map(str, sorted(set(audit["bytes"]))))
    messages = "" if audit["direction"] == "keysetup" else f" and messages of {lengths} bytes"
    keys = f"keys of {audit['key_bits']} bits" if audit["key_bits"] else "no key"
    how = (
        f"Shown for {audit['direction']}{mode} with {keys}{messages}; {audit['reached']} of {audit['sites']} "
        "loads, stores, branches and instructions of varying time in the functions that ran were reached."
    )
    if not audit["findings"]:
        return (
            f"{what} is clean: in the machine code no branch, no address and no time of an instruction depends on key or "
            f"message.\n{how}"
        )
    return f"{_verdict(what, audit['findings'])}\n{how}\n\n{_table(audit['findings'])}"


def _verdict(name: str, found: list[dict[str, Any]]) -> str:
    counts = {kind: sum(f["kind"] == kind for f in found) for kind in KINDS}
    where = "line" if len(found) == 1 else "lines"
    return f"{name} is not clean: {len(found)} {where} where key or message decide ({counted(counts)})."


def _table(found: list[dict[str, Any]]) -> str:
    named = any("names" in f for f in found)
    rows = [
        (
            KINDS[f["kind"]][0],
            *((" ".join(f["names"]),) if named else ()),
            f["function"],
            _place(f),
            _short(f["text"] or ""),
        )
        for f in found
    ]
    return tables.text(("depends", *(("instruction",) if named else ()), "function", "where", "source"), rows)


def _place(finding: dict[str, Any]) -> str:
    if finding["file"]:
        return f"{finding['file']}:{finding['line']}"
    return f"module offset {finding['offset']:#x}"


def _short(text: str, most: int = 72) -> str:
    return text if len(text) <= most else text[: most - 3].rstrip() + "..."
