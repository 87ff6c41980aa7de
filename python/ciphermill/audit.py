"""Where a cipher's secrets decide branches and memory addresses.

The core runs the module and says at which offsets; here the sources are
compiled with debugging information, which changes nothing in the code, and
the offsets become source lines (crate ``audit`` says what a verdict means).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from . import _core, engine, paths, places, tables
from .manifest import Cipher

#: How a finding's kind reads in the table.
KINDS = {
    "branch": "branch",
    "address": "address",
    "indirect-call": "indirect call",
    "division": "division",
}


def run(
    cipher: Cipher, variant: str | None = None, cc: str = "zig", key_bits: int | None = None,
    limit: int | None = None,
) -> dict[str, Any]:
    """The audit of one variant, as ``--json`` prints it, for one key size or all it has, each run of at most `limit` operations."""
    engine.check_limit(limit)
    if key_bits is not None:
        cipher.check_key_bits(key_bits)
    chosen = cipher.variant(variant)
    module = engine.module(cipher, chosen.name, cc, debug=True)
    sizes = list(cipher.key_bits or (128,)) if key_bits is None else [key_bits]
    iv_bits = list((64,) if cipher.iv_bits is None else cipher.iv_bits)
    with places.told(module):
        answer = json.loads(_core.audit(module.wasm, sizes, iv_bits, limit))
    texts: dict[str, list[str]] = {}
    findings = [_finding(finding, texts) for finding in answer.pop("findings")]
    return {
        "cipher": cipher.name,
        "variant": chosen.name,
        "key_bits": sizes,
        "iv_bits": iv_bits,
        **answer,
        "findings": _merged(findings),
    }


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


def _merged(findings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One entry for each kind, function and line, however many instructions it has."""
    merged: dict[tuple, dict[str, Any]] = {}
    for finding in findings:
        place = finding["line"] if finding["file"] else finding["offset"]
        key = (finding["file"] or "", place, finding["kind"], finding["function"])
        if key in merged:
            merged[key]["times"] += finding["times"]
            merged[key]["instructions"] += 1
        else:
            merged[key] = {**finding, "instructions": 1}
    return [merged[key] for key in sorted(merged)]


def text(audit: dict[str, Any]) -> str:
    """The verdict in words, then a line for each finding."""
    name = f"{audit['cipher']}/{audit['variant']}"
    keys = ", ".join(map(str, audit["key_bits"]))
    findings = audit["findings"]
    if not findings:
        return (
            f"{name} is clean: no branch or address depends on key or message.\n"
            f"Shown for keys of {keys} bits in {audit['runs']} runs; {audit['reached']} of {audit['sites']} loads, "
            "stores and divisions were reached."
        )
    counts = {kind: sum(f["kind"] == kind for f in findings) for kind in KINDS}
    plural = {"branch": "branches", "address": "addresses", "indirect-call": "indirect calls", "division": "divisions"}
    parts = [f"{n} {KINDS[kind] if n == 1 else plural[kind]}" for kind, n in counts.items() if n]
    rows = [
        (KINDS[f["kind"]], f["function"], _place(f), _short(f["text"] or "")) for f in findings
    ]
    where = "line" if len(findings) == 1 else "lines"
    head = f"{name} is not clean: {len(findings)} {where} where key or message decide ({', '.join(parts)})."
    return f"{head}\n\n{tables.text(('depends', 'function', 'where', 'source'), rows)}"


def _place(finding: dict[str, Any]) -> str:
    if finding["file"]:
        return f"{finding['file']}:{finding['line']}"
    return f"module offset {finding['offset']:#x}"


def _short(text: str, most: int = 72) -> str:
    return text if len(text) <= most else text[: most - 3].rstrip() + "..."
