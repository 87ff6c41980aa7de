"""The ciphers as native code, called from Python.

Each variant of each manifest under ciphers/ is compiled by the system's C compiler into a
shared library in a cache directory and loaded with ctypes. `Native` wraps the C interface of
ciphers/ciphermill.h; buffers are placed at a chosen misalignment inside a larger one, and the
bytes around every output are checked afterwards, so that a stray write is seen even without a
sanitizer.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import pathlib
import subprocess
import tempfile
import tomllib
from dataclasses import dataclass
from functools import cache

ROOT = pathlib.Path(__file__).resolve().parents[2]
CIPHERS = ROOT / "ciphers"
GUARD = 64
GUARD_BYTE = 0xA5
WARNINGS = ["-std=c11", "-Wall", "-Wextra", "-Werror"]


@dataclass(frozen=True)
class Variant:
    """One variant of one cipher, as its manifest describes it."""

    cipher: str
    name: str

    def __str__(self) -> str:
        return f"{self.cipher}-{self.name}"

    @property
    def folder(self) -> pathlib.Path:
        return CIPHERS / self.cipher

    @property
    def manifest(self) -> dict:
        """The manifest, with what the variant says otherwise."""
        return {"key_bits": [], "iv_bits": []} | manifest(self.cipher) | self.options

    @property
    def options(self) -> dict:
        return {"flags": []} | manifest(self.cipher)["variants"][self.name]

    @property
    def judged(self) -> str:
        """What a judge knows it as: the cipher, or where its variants are several ciphers, one of them."""
        return str(self) if self.cipher in ("speck", "simon") else self.cipher


@cache
def manifest(cipher: str) -> dict:
    return tomllib.loads((CIPHERS / cipher / "cipher.toml").read_text())


def ciphers() -> list[str]:
    return sorted(path.parent.name for path in CIPHERS.glob("*/cipher.toml"))


def variants(*kinds: str) -> list[Variant]:
    """All variants of some kinds; of block and stream ciphers where none is said."""
    every = (Variant(c, v) for c in ciphers() for v in sorted(manifest(c)["variants"]))
    return [v for v in every if v.manifest["kind"] in (kinds or ("block", "stream"))]


def vector_sets(variant: Variant) -> list[dict]:
    """The vector files that apply to this variant; a file may name the variants it is for."""
    sets = []
    for entry in variant.manifest["vectors"]:
        data = json.loads((variant.folder / entry["file"]).read_text())
        data["file"] = entry["file"]
        if variant.name in data.get("variants", [variant.name]):
            sets.append(data)
    return sets


def build(variant: Variant, extra: tuple[str, ...] = ("-O2",)) -> pathlib.Path:
    """Compiles the variant into a shared library and returns its path."""
    sources = [variant.folder / s for s in variant.options["sources"]]
    command = ["cc", *WARNINGS, *extra, "-shared", "-fPIC", *variant.options["flags"]]
    digest = hashlib.sha256(" ".join(command).encode())
    for path in sorted([*CIPHERS.glob("*.h"), *CIPHERS.glob("*/*.h"), *variant.folder.glob("*.c")]):
        digest.update(path.read_bytes())
    cache_dir = pathlib.Path(os.environ.get("CIPHERMILL_TEST_CACHE", tempfile.gettempdir() + "/ciphermill-native"))
    cache_dir.mkdir(parents=True, exist_ok=True)
    library = cache_dir / f"{variant}-{digest.hexdigest()[:16]}.so"
    if not library.exists():
        partial = library.with_suffix(f".{os.getpid()}")
        subprocess.run([*command, "-o", partial, *sources], check=True)
        partial.rename(library)
    return library


class Native:
    """A variant's C functions; a new context for every key."""

    def __init__(self, variant: Variant, extra: tuple[str, ...] = ("-O2",)):
        self.variant = variant
        self.lib = ctypes.CDLL(str(build(variant, extra)))
        self.ctx_bytes = self.lib.cm_ctx_bytes()
        self.block_bytes = self.lib.cm_block_bytes()

    def _put(self, data: bytes, at: int) -> tuple[ctypes.Array, int]:
        """A copy of `data` at an address `at` bytes past an aligned one. It ends where its
        buffer ends, so that a sanitizer sees every byte read too far."""
        buffer = (ctypes.c_char * (at + len(data)))()
        address = ctypes.addressof(buffer) + at
        ctypes.memmove(address, data, len(data))
        return buffer, address

    def context(self, setup: str, key: bytes, at: int = 0):
        """A context in which the function `setup` has set up the key."""
        raw = (ctypes.c_char * self.ctx_bytes)()
        # New buffers come zeroed, a caller's need not: fill it with what no cipher expects.
        ctypes.memset(raw, 0xCC, self.ctx_bytes)
        keep, key_at = self._put(key, at)
        ctx = ctypes.c_void_p(ctypes.addressof(raw))
        getattr(self.lib, setup)(ctx, ctypes.c_void_p(key_at), len(key))
        ctx.keep = (raw, keep)
        return ctx

    def _run(self, function: str, ctx, data: bytes, size: int, count: int, at: int, in_place: bool):
        keep_in, in_at = self._put(data, at)
        guarded = ctypes.create_string_buffer(size + 2 * GUARD + 32)
        ctypes.memset(guarded, GUARD_BYTE, len(guarded))
        base = ctypes.addressof(guarded)
        out_at = base + (-base % 16) + GUARD + (at * 7 + 3) % 16
        if in_place:
            ctypes.memmove(out_at, data, len(data))
            in_at = out_at
        getattr(self.lib, function)(ctx, ctypes.c_void_p(in_at), ctypes.c_void_p(out_at), count)
        start = out_at - base
        assert set(guarded.raw[:start]) | set(guarded.raw[start + size :]) <= {GUARD_BYTE}, (
            f"{self.variant}: {function} wrote outside its output"
        )
        del keep_in
        return guarded.raw[start : start + size]

    # Block ciphers

    def ecb(self, direction: str, key: bytes, data: bytes, at: int = 0, in_place: bool = False):
        setup = "cm_keysetup" if direction == "encrypt" else "cm_keysetup_decrypt"
        ctx = self.context(setup, key, at)
        assert len(data) % self.block_bytes == 0
        count = len(data) // self.block_bytes
        return self._run(f"cm_{direction}_blocks", ctx, data, len(data), count, at, in_place)

    def feedback(self, direction: str, key: bytes, block: bytes, times: int) -> bytes:
        setup = "cm_keysetup" if direction == "encrypt" else "cm_keysetup_decrypt"
        ctx = self.context(setup, key)
        return self._run(f"cm_{direction}_feedback", ctx, block, len(block), times, 0, False)

    # Stream ciphers

    def stream(self, key: bytes, iv: bytes, at: int = 0):
        ctx = self.context("cm_keysetup", key, at)
        self.set_iv(ctx, iv, at)
        return ctx

    def set_iv(self, ctx, iv: bytes, at: int = 0) -> None:
        keep, iv_at = self._put(iv, at)
        self.lib.cm_ivsetup(ctx, ctypes.c_void_p(iv_at), len(iv))
        del keep

    def xor(self, ctx, data: bytes, at: int = 0, in_place: bool = False) -> bytes:
        return self._run("cm_keystream", ctx, data, len(data), len(data), at, in_place)

    def keystream(self, key: bytes, iv: bytes, length: int) -> bytes:
        return self.xor(self.stream(key, iv), bytes(length))
