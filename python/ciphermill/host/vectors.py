"""Official vectors, run on native code.

The same files and the same rule as for the reference interpreter: vectors of the key
size, of all variants or this one; chains of millions of blocks are left out. The
library is called through ctypes, in the process that is about to measure it.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Iterable, Mapping
from typing import Any

#: Bytes around an output that must stay as they are.
GUARD = 64


class Native:
    """A cipher's functions on bytes."""

    def __init__(self, library: str) -> None:
        self.library = ctypes.CDLL(library)

    def blocks(self, setup: str, driver: str, key: bytes, data: bytes, count: int) -> bytes:
        return self._run(self._context(setup, key), driver, data, count)

    def stream(self, key: bytes, iv: bytes, data: bytes) -> bytes:
        context = self._context("cm_keysetup", key)
        self.library.cm_ivsetup(context, ctypes.c_char_p(iv), ctypes.c_uint32(len(iv)))
        return self._run(context, "cm_keystream", data, len(data))

    def _context(self, setup: str, key: bytes) -> ctypes.c_void_p:
        size = self.library.cm_ctx_bytes()
        self._memory = ctypes.create_string_buffer(size + 64)
        address = ctypes.addressof(self._memory)
        context = ctypes.c_void_p(address + -address % 64)
        getattr(self.library, setup)(context, ctypes.c_char_p(key), ctypes.c_uint32(len(key)))
        return context

    def _run(self, context: ctypes.c_void_p, driver: str, data: bytes, count: int) -> bytes:
        guard = b"\xa5" * GUARD
        out = ctypes.create_string_buffer(guard + bytes(len(data)) + guard, len(data) + 2 * GUARD)
        at = ctypes.c_void_p(ctypes.addressof(out) + GUARD)
        getattr(self.library, driver)(context, ctypes.c_char_p(data), at, ctypes.c_uint32(count))
        if out.raw[:GUARD] != guard or out.raw[GUARD + len(data) :] != guard:
            raise Wrong(f"{driver} wrote outside its output")
        return out.raw[GUARD : GUARD + len(data)]


class Wrong(Exception):
    """The native code does not do what it should; the message says where."""


def check(native: Native, files: Iterable[Mapping[str, str]], variant: str, direction: str, key_bits: int) -> int:
    """Run the vectors of a key size and direction; how many there were. Raises Wrong."""
    cases = 0
    for file in files:
        made = json.loads(file["text"])
        if variant not in made.get("variants", [variant]):
            continue
        for case in made["vectors"]:
            key = bytes.fromhex(case["key"])
            if len(key) * 8 != key_bits or made["kind"] not in ("block", "stream"):
                continue
            right = _block(native, case, key, direction) if made["kind"] == "block" else _stream(native, case, key)
            if not right:
                raise Wrong(f"{file['path']}: vector {case['id']}: the native output differs")
            cases += 1
    return cases


def _block(native: Native, case: Mapping[str, Any], key: bytes, direction: str) -> bool:
    plain, coded = bytes.fromhex(case["plaintext"]), bytes.fromhex(case["ciphertext"])
    if direction == "decrypt":
        return native.blocks("cm_keysetup_decrypt", "cm_decrypt_blocks", key, coded, 1) == plain
    return native.blocks("cm_keysetup", "cm_encrypt_blocks", key, plain, 1) == coded


def _stream(native: Native, case: Mapping[str, Any], key: bytes) -> bool:
    plain = case.get("plaintext")
    message = bytes(case.get("length", 0)) if plain is None else bytes.fromhex(plain)
    stream = native.stream(key, bytes.fromhex(case.get("iv", "")), message)
    chunks = [(chunk["offset"], bytes.fromhex(chunk["hex"])) for chunk in case.get("chunks", [])]
    return all(stream[at : at + len(part)] == part for at, part in chunks)
