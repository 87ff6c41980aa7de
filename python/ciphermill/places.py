"""What is wrong with a cipher's code, told by function and line of its source.

The core names places of a module: functions, and offsets. Only when there is something to
tell is the module compiled once more with debugging information, which changes nothing in
its code; the offsets then become source lines, and functions that the compiler has put into
others appear by their own names. A module that came as ``.wasm`` is told by offsets.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from . import _core, paths

#: Line tables. (zig takes a plain -g after -g0 for nothing.)
DEBUG = ("-g3",)

#: Calls that a message names.
SHOWN = 12


class Compiled(Protocol):
    """A module that can be compiled once more with line tables."""

    @property
    def wasm(self) -> bytes: ...

    def with_lines(self) -> bytes | None:
        """The same code with line tables; None where there is no source. Raises InputError where it does not compile."""


@contextmanager
def told(module: Compiled) -> Iterator[None]:
    """What the core says inside of places in `module` becomes an InputError with lines of its source."""
    try:
        yield
    except _core.ModuleError as error:
        message, placed = error.args
        raise _core.InputError(_message(module, json.loads(placed)) or message) from None


def _message(module: Compiled, placed: dict[str, Any]) -> str | None:
    """The message by source lines; None where there are none to be had."""
    if not placed["places"]:
        return None
    try:
        debug = module.with_lines()
    except _core.InputError:
        return None
    if debug is None:
        return None
    offsets = [place["offset"] for place in placed["places"]]
    found = json.loads(_core.source(module.wasm, debug, offsets))
    frames = [frame for frames in found for frame in frames]
    if not found[0]:
        return None
    (function, file, line), callers = frames[0], frames[1:]
    lines = [f"{_where(file, line)}: {function}: {placed['what']}"]
    if text := _text(file, line):
        lines.append(f"    {text}")
    lines += [f"  called from {function} at {_where(file, line)}" for function, file, line in callers[:SHOWN]]
    if len(callers) > SHOWN:
        lines.append(f"  and {len(callers) - SHOWN} calls more")
    return "\n".join(lines)


def _where(file: str, line: int) -> str:
    return f"{paths.shown(Path(file))}:{line}"


def _text(file: str, line: int) -> str | None:
    try:
        return Path(file).read_text(errors="replace").splitlines()[line - 1].strip()
    except (OSError, IndexError):
        return None
