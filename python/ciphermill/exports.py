"""Giving a module's exports the names of the C interface.

A manifest may say that what ``ciphermill.h`` calls ``cm_keysetup`` is exported
as ``my_key_setup``. The module then gets one more entry in its export section,
with the new name for the same function or global; nothing else in it changes,
so offsets in messages differ from the file's by the length of these entries
only. Numbers in a module are LEB128: seven bits a byte, least first.
"""

from __future__ import annotations

from ._core import InputError

#: Number of the export section, and of the sections that may stand before it.
EXPORT = 7


def renamed(wasm: bytes, names: dict[str, str], where: str) -> bytes:
    """The module with an export ``new`` beside each ``old`` of ``names``."""
    if not names:
        return wasm
    try:
        start, at, end = _section(wasm)
        count, at = _number(wasm, at)
        first, found = at, {}
        for _ in range(count):
            length, at = _number(wasm, at)
            name, at = wasm[at : at + length].decode(), at + length
            entry = at
            _, at = _number(wasm, at + 1)
            found[name] = wasm[entry:at]
    except (IndexError, UnicodeDecodeError):
        raise InputError(f"{where}: not a WebAssembly module, or a damaged one") from None
    more = b""
    for new, old in names.items():
        if old not in found:
            raise InputError(
                f"{where}: exports.{new}: the module exports no {old!r}; it exports {', '.join(found) or 'nothing'}"
            )
        if new in found and new != old:
            raise InputError(f"{where}: exports.{new}: the module exports that name already; leave the entry out")
        if new != old:
            more += _leb(len(new.encode())) + new.encode() + found[old]
            count += 1
    body = _leb(count) + wasm[first:end] + more
    return wasm[:start] + bytes([EXPORT]) + _leb(len(body)) + body + wasm[end:]


def _section(wasm: bytes) -> tuple[int, int, int]:
    """Where the export section starts, its content starts, and it ends."""
    at = 8
    while at < len(wasm):
        start = at
        size, content = _number(wasm, at + 1)
        if wasm[start] == EXPORT:
            return start, content, content + size
        at = content + size
    raise IndexError


def _number(wasm: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = wasm[at]
        value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128:
            return value, at


def _leb(value: int) -> bytes:
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])
