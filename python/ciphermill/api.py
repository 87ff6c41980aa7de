"""The calls of ``import ciphermill``: what the command line does, from Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from . import _core, engine, library, manifest, paths, places, study, sweeps
from ._core import InputError
from .measurement import Listing, Measurement, Measurements
from .options import LARGEST, Traced, check_limit
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
        with_=_names(with_),
        without=_names(without),
        set=[f"{k}={_toml(v)}" for k, v in set.items()] if isinstance(set, Mapping) else _names(set),
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
        direction=direction, key_bits=key_bits, blocks=blocks, bytes=bytes, optimise=optimise, with_=_names(with_), without=_names(without),
        set=[f"{k}={_toml(v)}" for k, v in set.items()] if isinstance(set, Mapping) else _names(set),
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


def _names(value: str | Iterable[str]) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class CipherModule:
    """One variant of a cipher, to encrypt, decrypt or make keystream with.

    It runs in a WebAssembly interpreter: native speed is not the point, being
    the code that is measured is.
    """

    def __init__(self, module: engine.Module, limit: int | None = None) -> None:
        self._module = module
        self._limit = limit
        self.name = module.cipher.name
        self.variant = module.variant.name

    def encrypt(self, key: bytes, data: bytes) -> bytes:
        """Encrypt whole blocks, each on its own (ECB)."""
        return self._blocks(key, data, decrypt=False)

    def decrypt(self, key: bytes, data: bytes) -> bytes:
        """Decrypt whole blocks, each on its own (ECB)."""
        return self._blocks(key, data, decrypt=True)

    def keystream(self, key: bytes, iv: bytes | None, length: int) -> bytes:
        """The first ``length`` bytes of the stream for a key and an IV."""
        cipher = self._module.cipher
        if cipher.kind == "block":
            raise InputError(f"{self.name} is a block cipher; use encrypt or decrypt")
        self._check_key(key)
        iv = b"" if iv is None else bytes(iv)
        sizes = None if cipher.iv_bits is None else cipher.iv_bits or (0,)
        if sizes is not None and len(iv) * 8 not in sizes:
            wanted = " or ".join(f"{size // 8} bytes" if size else "None (no IV)" for size in sizes)
            raise InputError(f"{self.name}: an IV of {len(iv)} bytes; it must be {wanted}")
        if length < 0:
            raise InputError(f"a keystream of {length} bytes; the length must not be negative")
        if length > LARGEST:
            raise InputError(f"a keystream of {length} bytes; a module's memory does not hold that much")
        with places.told(self._module):
            return _core.keystream(self._module.wasm, bytes(key), iv, length, self._limit)

    def _blocks(self, key: bytes, data: bytes, *, decrypt: bool) -> bytes:
        cipher = self._module.cipher
        if cipher.kind == "stream":
            raise InputError(f"{self.name} is a stream cipher; use keystream")
        self._check_key(key)
        if cipher.block_bytes and len(data) % cipher.block_bytes:
            raise InputError(
                f"{self.name}: {len(data)} bytes of data; it must be whole blocks of {cipher.block_bytes} bytes"
            )
        with places.told(self._module):
            return _core.crypt(self._module.wasm, bytes(key), bytes(data), decrypt, self._limit)

    def _check_key(self, key: bytes) -> None:
        sizes = self._module.cipher.key_bits
        if not key or (sizes is not None and len(key) * 8 not in sizes):
            wanted = " or ".join(str(size // 8) for size in sizes) if sizes else "at least 1"
            raise InputError(f"{self.name}: a key of {len(key)} bytes; it must be {wanted} bytes")

    def __repr__(self) -> str:
        return f"<cipher {self.name}/{self.variant}>"
