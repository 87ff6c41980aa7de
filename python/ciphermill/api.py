"""The calls of ``import ciphermill``: what the command line does, from Python."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from . import _core, engine, library, manifest, paths, places, study, sweeps
from ._core import InputError
from .asked import names, settings
from .measurement import Listing, Measurement, Measurements
from .options import LARGEST, Traced, check_limit
from .suggest import did_you_mean
from .sweeps import Sweep


def ciphers() -> Listing:
    """The built-in ciphers, as ``ciphermill list ciphers --json`` prints them."""
    return Listing(manifest.find(name).describe() for name in manifest.names())


def machines() -> Listing:
    """The machines that come with the package."""
    return Listing(library.headline(paths.MACHINES / f"{name}.toml", "machine") for name in library.machine_names())


def extensions() -> Listing:
    """The instruction-set extensions that can be added to a machine."""
    return Listing(library.headline(paths.EXTENSIONS / f"{n}.toml", "extension") for n in library.extension_names())


def studies() -> Listing:
    """The papers whose tables can be had with ours beside."""
    return Listing(study.describe(name) for name in study.names())


def cipher(name: str | Path, variant: str | None = None, *, cc: str = "zig", limit: int | None = None) -> CipherModule:
    """A cipher that can be used on bytes: its compiled module, interpreted, each call for at most ``limit`` steps."""
    check_limit(limit)
    return CipherModule(engine.module(manifest.find(str(name)), variant, cc), limit)


def run(
    cipher: str | Path,
    on: str | Path | Sequence[str | Path] | None = None,
    *,
    variant: str | None = None,
    direction: str | None = None,
    key_bits: int | None = None,
    blocks: str | None = None,
    bytes: int | None = None,
    limit: int | None = None,
    jam: int | None = None,
    unroll: bool | None = None,
    aligned: bool = False,
    optimise: str = "speed",
    static: bool = False,
    with_: str | Iterable[str] = (),
    without: str | Iterable[str] = (),
    set: Mapping[str, object] | Iterable[str] = (),
    repeat: bool = False,
    optimal: bool = False,
    exact: bool = False,
    fresh: bool = False,
    patience: int = 1,
    cc: str = "zig",
) -> Measurement | Measurements:
    """Measure a cipher on a machine, as ``ciphermill run`` does.

    With one machine named the result is a Measurement; with a sequence of
    them, or none (all there are), Measurements, which is a list. ``set`` is a mapping such as
    ``{"machine.clock_mhz": 50}`` or strings ``"machine.clock_mhz=50"``. ``optimise`` is ``"speed"`` or ``"size"``.
    A run is given up after ``limit`` steps of the reference interpreter, by default some seconds' worth (docs/measurement.md).
    """
    options = engine.Options(
        direction=direction,
        key_bits=key_bits,
        blocks=blocks,
        bytes=bytes,
        limit=limit,
        jam=jam,
        unroll=unroll,
        aligned=aligned,
        optimise=optimise,
        static=static,
        with_=names(with_),
        without=names(without),
        set=settings(set),
        repeat=repeat,
        optimal=optimal,
        exact=exact,
        fresh=fresh,
        patience=patience,
        cc=cc,
    )
    options.check()
    module = engine.module(manifest.find(str(cipher)), variant, cc)
    if isinstance(on, (str, Path)):
        return engine.measure(module, str(on), options)
    chosen = library.machine_names() if on is None else [str(machine) for machine in on]
    return Measurements(engine.measure(module, machine, options) for machine in chosen)


def trace(
    cipher: str | Path,
    on: str | Path,
    *,
    first: int | None = None,
    count: int = 32,
    variant: str | None = None,
    direction: str | None = None,
    key_bits: int | None = None,
    blocks: str | None = None,
    bytes: int | None = None,
    optimise: str = "speed",
    with_: str | Iterable[str] = (),
    without: str | Iterable[str] = (),
    set: Mapping[str, object] | Iterable[str] = (),
    cc: str = "zig",
) -> Measurement:
    """Measure, and see micro-operations on their way through an out-of-order core.

    The result's ``pipeline`` is a list of micro-operations in program order, each a dict with the cycles
    in which it entered each stage (docs/measurement.md): those of ``count`` instructions from number
    ``first`` of those that retire (from the middle of the run without), and of wrong paths between them.
    Raises InputError for a machine without such a core.
    """
    options = engine.Options(
        direction=direction, key_bits=key_bits, blocks=blocks, bytes=bytes, optimise=optimise, with_=names(with_), without=names(without),
        set=settings(set),
        trace=Traced(first=first, count=count), cc=cc,
    )  # fmt: skip
    return engine.measure(engine.module(manifest.find(str(cipher)), variant, cc), str(on), options)


def sweep(
    grid: str | Path | Mapping[str, object],
    *,
    store: str | Path | None = None,
    workers: int | None = None,
    cluster: str | None = None,
    limit: int | None = None,
) -> Sweep:
    """Measure every point of a grid, as ``ciphermill sweep`` does.

    ``grid`` is a file, or what one would say: ``{"grid": [{"cipher": [...],
    "on": "epic", "set": {"issue.width": [1, 2]}}]}``. The result has
    ``measurements``, ``to_polars()`` and ``to_parquet(path)``. ``limit`` is that of each point's run.
    """
    return sweeps.run(grid, store=store, workers=workers, cluster=cluster, limit=limit)


#: A kind in words, and what it is called by.
WORDS = {
    "block": "a block cipher", "stream": "a stream cipher", "permutation": "a permutation", "hash": "a hash function",
    "mac": "a message authentication code", "aead": "an authenticated cipher", "kernel": "a kernel",
}  # fmt: skip
CALLS = {
    "block": "encrypt or decrypt", "stream": "keystream", "permutation": "permute", "hash": "hash", "mac": "mac",
    "aead": "encrypt or decrypt", "kernel": "run",
}  # fmt: skip


class CipherModule:
    """One variant of a primitive, to encrypt, decrypt, hash and so on with.

    It runs in a WebAssembly interpreter: native speed is not the point, being
    the code that is measured is.
    """

    def __init__(self, module: engine.Module, limit: int | None = None) -> None:
        self._module = module
        self._limit = limit
        self.name = module.cipher.name
        self.variant = module.variant.name

    def encrypt(self, key: bytes, *message: bytes) -> bytes:
        """Encrypt: ``encrypt(key, data)`` of a block cipher, whole blocks, each on its own (ECB); ``encrypt(key,
        nonce, associated_data, data)`` of an authenticated cipher, whose result has the tag behind the ciphertext."""
        if self._module.kind == "aead":
            return self._sealed("encrypt", key, message)[1]
        return self._blocks(key, message, decrypt=False)

    def decrypt(self, key: bytes, *message: bytes) -> bytes:
        """The inverse of `encrypt`, with as many arguments. Raises InputError where an authenticated cipher's tag is wrong."""
        if self._module.kind != "aead":
            return self._blocks(key, message, decrypt=True)
        refused, data = self._sealed("decrypt", key, message)
        if refused:
            raise InputError(
                f"{self.name}: the tag is wrong: another key, nonce or associated data, or a changed ciphertext"
            )
        return data

    def keystream(self, key: bytes, iv: bytes | None, length: int) -> bytes:
        """The first ``length`` bytes of the stream for a key and an IV."""
        self._only("stream", "keystream")
        self._check_key(key)
        iv = b"" if iv is None else bytes(iv)
        self._check_iv(iv, "an IV", "None (no IV)")
        if length < 0:
            raise InputError(f"a keystream of {length} bytes; the length must not be negative")
        if length > LARGEST:
            raise InputError(f"a keystream of {length} bytes; a module's memory does not hold that much")
        with places.told(self._module):
            return _core.keystream(self._module.wasm, bytes(key), iv, length, self._limit)

    def hash(self, data: bytes, length: int | None = None) -> bytes:
        """The digest of a message; of an extendable-output function, ``length`` bytes of it."""
        self._only("hash", "hash")
        if length is not None and not 0 < length <= LARGEST:
            raise InputError(
                f"{self.name}: a digest of {length} bytes; it has at least one, and no more than memory holds"
            )
        return self._process("hash", {"input": data}, len(data), length)[1]["output"]

    def mac(self, key: bytes, data: bytes) -> bytes:
        """The tag of a message."""
        self._only("mac", "mac")
        self._check_key(key)
        return self._process("mac", {"key": key, "input": data}, len(data))[1]["output"]

    def permute(self, state: bytes) -> bytes:
        """The permuted state, or several one behind the other."""
        self._only("permutation", "permute")
        size = self._module.interface["block_bytes"]
        if len(state) % size:
            raise InputError(f"{self.name}: {len(state)} bytes; it must be whole states of {size} bytes")
        return self._process("permute", {"input": state}, len(state))[1]["output"]

    def run(self, **buffers: bytes) -> dict[str, bytes]:
        """A kernel's buffers after a call, by their names in the manifest; those that are not given hold zeros."""
        self._only("kernel", "run")
        kernel = self._module.cipher.kernel or {"parameters": []}
        given = {p["buffer"]: p for p in kernel["parameters"] if "buffer" in p}
        if odd := [name for name in buffers if name not in given]:
            raise InputError(
                f"{self.name}: no buffer {odd[0]!r}{did_you_mean(odd[0], given)}; there are {', '.join(given)}"
            )
        return self._process("run", buffers, self._module.interface["block_bytes"])[1]

    def _blocks(self, key: bytes, message: Sequence[bytes], *, decrypt: bool) -> bytes:
        cipher = self._module.cipher
        self._only("block", "encrypt or decrypt")
        if len(message) != 1:
            raise InputError(f"{self.name} is a block cipher: give a key and data, and no more")
        (data,) = message
        self._check_key(key)
        if cipher.block_bytes and len(data) % cipher.block_bytes:
            raise InputError(
                f"{self.name}: {len(data)} bytes of data; it must be whole blocks of {cipher.block_bytes} bytes"
            )
        with places.told(self._module):
            return _core.crypt(self._module.wasm, bytes(key), bytes(data), decrypt, self._limit)

    def _sealed(self, direction: str, key: bytes, message: Sequence[bytes]) -> tuple[int | None, bytes]:
        if len(message) != 3:
            raise InputError(f"{self.name} is an authenticated cipher: give a key, a nonce, associated data, and data")
        nonce, associated, data = message
        self._check_key(key)
        self._check_iv(nonce, "a nonce", "none")
        tag = self._module.interface["tag_bytes"]
        if direction == "decrypt" and len(data) < tag:
            raise InputError(f"{self.name}: {len(data)} bytes of ciphertext; the tag alone has {tag}")
        length = len(data) - (tag if direction == "decrypt" else 0)
        given = {"key": key, "nonce": nonce, "associated data": associated, "input": data}
        returned, buffers = self._process(direction, given, length)
        return returned, buffers["output"]

    def _process(
        self, direction: str, given: Mapping[str, bytes], length: int, tag: int | None = None
    ) -> tuple[int | None, dict[str, bytes]]:
        """A direction on the bytes of buffers: what it returned, and its buffers afterwards."""
        module = self._module
        request = {
            "direction": direction,
            "length": length,
            "tag": tag,
            "limit": self._limit,
            "kernel": module.cipher.kernel,
        }
        with places.told(module):
            returned, buffers = _core.process(
                module.wasm, json.dumps(request), [(name, bytes(data)) for name, data in given.items()]
            )
        return returned, dict(buffers)

    def _only(self, kind: str, call: str) -> None:
        """Raises InputError where this is no such kind; says what to call instead."""
        if (mine := self._module.kind) != kind:
            raise InputError(f"{self.name} is {WORDS[mine]}; use {CALLS[mine]}, not {call}")

    def _check_key(self, key: bytes) -> None:
        sizes = self._module.cipher.key_bits
        if not key or (sizes is not None and len(key) * 8 not in sizes):
            wanted = " or ".join(str(size // 8) for size in sizes) if sizes else "at least 1"
            raise InputError(f"{self.name}: a key of {len(key)} bytes; it must be {wanted} bytes")

    def _check_iv(self, iv: bytes, what: str, without: str) -> None:
        sizes = self._module.cipher.iv_bits
        sizes = None if sizes is None else sizes or (0,)
        if sizes is not None and len(iv) * 8 not in sizes:
            wanted = " or ".join(f"{size // 8} bytes" if size else without for size in sizes)
            raise InputError(f"{self.name}: {what} of {len(iv)} bytes; it must be {wanted}")

    def __repr__(self) -> str:
        return f"<cipher {self.name}/{self.variant}>"
