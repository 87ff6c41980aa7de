"""Ciphers: what a folder's ``cipher.toml`` says, checked.

Everything a later step would have to doubt is checked here, and every message
names the file, the key and the mend. A cipher can also be a single C file or
a WebAssembly module of the user's; it then has one variant, no vectors, and
its sizes come from the module itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec

from . import paths, toml
from ._core import InputError
from .declared import Declared, Source
from .suggest import did_you_mean
from .toml import Place

FILE = "cipher.toml"
Kind = Literal["block", "stream"]
KINDS = get_args(Kind)

#: Bits of the largest key or IV a manifest may state.
MOST_BITS = 65536


@dataclass(frozen=True)
class Variant:
    """One way to write the cipher: other sources, or other flags."""

    name: str
    sources: tuple[Path, ...]
    flags: tuple[str, ...] = ()
    trades: str = ""
    constant_time: bool | None = None
    #: Of a WebAssembly module: its own name for what the interface calls so.
    exports: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Cipher:
    """A cipher and its variants."""

    name: str
    path: Path
    variants: dict[str, Variant]
    default_variant: str
    #: ``block`` or ``stream``; None when only the module can tell.
    kind: str | None = None
    title: str = ""
    year: int | None = None
    block_bytes: int | None = None
    #: Allowed key sizes; None: any.
    key_bits: tuple[int, ...] | None = None
    #: Allowed IV sizes, 0 for going without; empty: it takes none; None: unknown.
    iv_bits: tuple[int, ...] | None = None
    vectors: tuple[Path, ...] = ()
    #: What a reader should know before using its figures.
    note: str = ""

    def variant(self, name: str | None) -> Variant:
        """A variant by name, the default one for None."""
        if name is None:
            name = self.default_variant
        if name not in self.variants:
            raise InputError(
                f"{self.name} has no variant {name!r}{did_you_mean(name, self.variants)}; "
                f"it has {', '.join(self.variants)}"
            )
        return self.variants[name]

    def check_key_bits(self, bits: int) -> None:
        if self.key_bits is not None and bits not in self.key_bits:
            raise InputError(f"{self.name} has no {bits}-bit keys; it has {_sizes(self.key_bits)} bits")
        if bits <= 0 or bits % 8 or bits > MOST_BITS:
            raise InputError(f"a key of {bits} bits: it must be a multiple of 8 from 8 to {MOST_BITS}")

    def describe(self) -> dict[str, Any]:
        """The entry in ``ciphermill list ciphers --json``."""
        return {
            "name": self.name,
            "title": self.title,
            "year": self.year,
            "kind": self.kind,
            "block_bytes": self.block_bytes,
            "key_bits": list(self.key_bits or ()),
            "iv_bits": list(self.iv_bits or ()),
            "note": self.note,
            "default_variant": self.default_variant,
            "variants": [
                {"name": v.name, "trades": v.trades, "constant_time": v.constant_time} for v in self.variants.values()
            ],
        }


def names() -> list[str]:
    """Names of the built-in ciphers."""
    return sorted(entry.parent.name for entry in paths.CIPHERS.glob(f"*/{FILE}"))


def find(cipher: str) -> Cipher:
    """A cipher by built-in name, or by the path of a C file, a module or a manifest."""
    known = names()
    if cipher in known:
        return load(paths.CIPHERS / cipher / FILE)
    path = Path(cipher)
    if path.suffix in (".c", ".wasm") or path.name == FILE or path.suffix == ".toml":
        if not paths.is_file(path):
            wrong = "a folder, not a file" if path.is_dir() else "no such file"
            raise InputError(f"{cipher}: {wrong}; give a file that exists, or one of {', '.join(known)}")
        return load(path) if path.suffix == ".toml" else _single(path)
    if paths.is_dir(path):
        if paths.is_file(path / FILE):
            return load(path / FILE)
        raise InputError(
            f"{cipher}: a folder without {FILE}; give the C file in it, or write a manifest (ciphermill new shows one)"
        )
    raise InputError(
        f"no cipher {cipher!r}{did_you_mean(cipher, known)}; there are {', '.join(known)}; "
        "your own is a path that ends in .c, .wasm or .toml"
    )


def _single(path: Path) -> Cipher:
    variant = Variant(name="default", sources=(path,))
    return Cipher(name=path.stem, path=path, variants={"default": variant}, default_variant="default")


def load(path: Path) -> Cipher:
    """Read and check a manifest."""
    return _cipher(path, Source.read(path))


def parse(path: Path, data: bytes) -> Cipher:
    """Check a manifest's content; `path` says where its files are, and names it in messages."""
    text, table = toml.parse(data, paths.shown(path))
    return _cipher(path, Source(paths.shown(path), table, text))


def _bits(least: int) -> Any:
    return msgspec.Meta(
        ge=least,
        le=MOST_BITS,
        multiple_of=8,
        description=f"a size in bits is a multiple of 8 from {least} to {MOST_BITS}",
    )


class _Variant(Declared, frozen=True):
    sources: Annotated[tuple[str, ...], msgspec.Meta(min_length=1, description="name at least one C file")]
    flags: tuple[str, ...] = ()
    trades: str = ""
    constant_time: bool | None = None
    exports: dict[str, str] = msgspec.field(default_factory=dict)


class _Vectors(Declared, frozen=True):
    file: str
    source: str


class _Manifest(Declared, frozen=True, kw_only=True):
    """The keys of a ``cipher.toml``."""

    name: str
    title: str = ""
    year: Annotated[int, msgspec.Meta(ge=1, le=9999, description="it is a year such as 1998")] | None = None
    kind: Kind
    block_bytes: Annotated[int, msgspec.Meta(ge=1, le=65536, description="it is a number of bytes from 1 to 65536")]
    key_bits: Annotated[
        tuple[Annotated[int, _bits(8)], ...],
        msgspec.Meta(min_length=1, description="it lists the key sizes in bits, for instance [128, 256]"),
    ]
    iv_bits: tuple[Annotated[int, _bits(0)], ...] = ()
    default_variant: str | None = None
    variants: Annotated[
        dict[str, Annotated[_Variant, msgspec.Meta(description="a variant is a table such as [variants.plain]")]],
        msgspec.Meta(min_length=1, description="add a table such as [variants.plain] with sources"),
    ]
    vectors: tuple[_Vectors, ...] = ()
    note: str = ""


def _cipher(path: Path, source: Source) -> Cipher:
    """What only the whole manifest and the files beside it can tell."""
    if "name" not in source.table and ("machine" in source.table or "extension" in source.table):
        raise InputError(
            f"{source.shown}: a machine or extension file, no cipher's manifest; give it to --on or --with"
        )
    said = source.checked(_Manifest)
    for place, name in [(("name",), said.name), *((("variants", name), name) for name in said.variants)]:
        if not name or not name.isprintable() or name != name.strip():
            raise source.wrong(place, f"is {name!r}; a name has letters, digits and signs, and no space around it")
    variants = {name: _variant(path, source, name, variant) for name, variant in said.variants.items()}
    default = said.default_variant or next(iter(variants))
    if default not in variants:
        raise source.wrong(
            ("default_variant",),
            f"is {default!r}{did_you_mean(default, variants)}; the variants are {', '.join(variants)}",
        )
    return Cipher(
        name=said.name,
        path=path,
        variants=variants,
        default_variant=default,
        kind=said.kind,
        title=said.title,
        year=said.year,
        block_bytes=said.block_bytes,
        key_bits=tuple(sorted(set(said.key_bits))),
        iv_bits=tuple(sorted(set(said.iv_bits))),
        vectors=tuple(_file(path, source, v.file, ("vectors", i, "file")) for i, v in enumerate(said.vectors)),
        note=said.note,
    )


def _variant(path: Path, source: Source, name: str, said: _Variant) -> Variant:
    place = ("variants", name)
    for key, values in (("sources", said.sources), ("flags", said.flags)):
        for i, value in enumerate(values):
            if "\0" in value:
                raise source.wrong((*place, key, i), f"is {value!r}; no path and no flag holds a NUL character")
    files = tuple(_file(path, source, file, (*place, "sources", i)) for i, file in enumerate(said.sources))
    wasm = any(file.suffix == ".wasm" for file in files)
    if wasm and len(files) > 1:
        raise source.wrong((*place, "sources"), "a WebAssembly module stands alone; leave the other files out")
    if said.exports and not wasm:
        raise source.wrong((*place, "exports"), "is for WebAssembly modules; C exports by the names of ciphermill.h")
    return Variant(name, files, said.flags, said.trades, said.constant_time, said.exports)


def _file(path: Path, source: Source, name: str, place: Place) -> Path:
    file = path.parent / name
    try:
        found = file.is_file()
    except OSError as error:
        raise source.wrong(place, f"{name}: {error.strerror}") from None
    if not found:
        raise source.wrong(place, f"{name or repr(name)}: no such file beside the manifest")
    return file


def _sizes(values: tuple[int, ...]) -> str:
    texts = [str(value) for value in values]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} or {texts[-1]}"
