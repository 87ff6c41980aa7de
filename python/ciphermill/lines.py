"""From offsets in a module to lines of its source.

The variant is compiled once more with debugging information, which changes nothing in the
code; that this is so is looked at, and where it is not, there are no lines.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from . import _core, engine, paths

#: Line tables. (zig takes a plain -g after -g0 for nothing.)
DEBUG = ("-g3",)


def of(module: engine.Module, offsets: Iterable[int], cc: str = "zig") -> dict[int, dict[str, Any]]:
    """``file``, ``line`` and ``text`` of those offsets for which they are known. An offset is one of the module's own."""
    wanted = sorted({*offsets} - {0})
    if not wanted:
        return {}
    wasm = module.wasm
    if module.variant.sources[0].suffix != ".wasm":
        chosen = replace(module.variant, flags=(*module.variant.flags, *DEBUG))
        cipher = replace(module.cipher, variants={**module.cipher.variants, chosen.name: chosen})
        with_lines = engine.module(cipher, chosen.name, cc).wasm
        # The same code at the same places, up to the last that is asked for.
        if with_lines[: wanted[-1] + 1] != wasm[: wanted[-1] + 1]:
            return {}
        wasm = with_lines
    texts: dict[str, list[str]] = {}
    found = {}
    for offset, place in zip(wanted, _core.source_lines(wasm, wanted), strict=True):
        if place is None:
            continue
        file, line = place
        if file not in texts:
            try:
                texts[file] = Path(file).read_text(errors="replace").splitlines()
            except OSError:
                texts[file] = []
        text = texts[file][line - 1].strip() if 0 < line <= len(texts[file]) else None
        found[offset] = {"file": paths.shown(Path(file)), "line": line, "text": text}
    return found
