"""From offsets in a module to lines of its source.

The variant is compiled once more with debugging information, which changes nothing in the
code; that this is so is looked at, and where it is not, there are no lines.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from . import _core, engine, paths


def of(module: engine.Module, offsets: Iterable[int], cc: str = "zig") -> dict[int, dict[str, Any]]:
    """``file``, ``line`` and ``text`` of those offsets for which they are known. An offset is one of the module's own."""
    wanted = sorted({*offsets} - {0})
    if not wanted:
        return {}
    debug = engine.module(module.cipher, module.variant.name, cc, small=module.small, debug=True)
    texts: dict[str, list[str]] = {}
    found = {}
    for offset, frames in zip(wanted, json.loads(_core.source(module.wasm, debug.wasm, wanted)), strict=True):
        if not frames:
            continue
        _, file, line = frames[0]
        if file not in texts:
            try:
                texts[file] = Path(file).read_text(errors="replace").splitlines()
            except OSError:
                texts[file] = []
        text = texts[file][line - 1].strip() if 0 < line <= len(texts[file]) else None
        found[offset] = {"file": paths.shown(Path(file)), "line": line, "text": text}
    return found
