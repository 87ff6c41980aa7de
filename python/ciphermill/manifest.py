"""Ciphers: what a folder's ``cipher.toml`` says, checked.

Everything a later step would have to doubt is checked here, and every message
names the file, the key and the mend. A cipher can also be a single C file or
a WebAssembly module of the user's; it then has one variant, no vectors, and
its sizes come from the module itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec

from . import paths, toml
from ._core import InputError
from .declared import Declared, Source
from .suggest import did_you_mean
from .toml import Place

FILE = "cipher.toml"
Kind = Literal["block", "stream", "permutation", "hash", "mac", "aead", "kernel"]
KINDS = get_args(Kind)
#: Kinds that take a key, and kinds that take an IV or a nonce.
KEYED = ("block", "stream", "mac", "aead")
WITH_IV = ("stream", "aead")

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
    #: What it says otherwise than the manifest does for all: fields of `Cipher`.
    own: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Cipher:
    """A cipher and its variants."""

    name: str
    path: Path
    variants: dict[str, Variant]
    default_variant: str
    #: One of `KINDS`; None when only the module can tell.
    kind: str | None = None
    title: str = ""
    year: int | None = None
    block_bytes: int | None = None
    #: Allowed key sizes, none where it takes no key; None: any.
    key_bits: tuple[int, ...] | None = None
    #: Allowed IV sizes, 0 for going without; empty: it takes none; None: unknown.
    iv_bits: tuple[int, ...] | None = None
    #: Of a kernel: its function and what that is given, as the core reads it.
    kernel: dict[str, Any] | None = None
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

    def of(self, variant: str | None) -> Cipher:
        """The cipher as one variant has it: its own kind, sizes and kernel where it has them."""
        return replace(self, **self.variant(variant).own)

    def check_key_bits(self, bits: int) -> None:
        if self.key_bits == ():
            if bits:
                raise InputError(f"{self.name} takes no key; leave --key-bits out")
            return
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
                {"name": v.name, "trades": v.trades, "constant_time": v.constant_time, "kind": self.of(v.name).kind}
                for v in self.variants.values()
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
        f"no cipher {cipher!r}{meant(cipher) or did_you_mean(cipher, known)}; there are {', '.join(known)}; "
        "your own is a path that ends in .c, .wasm or .toml"
    )


def meant(word: str) -> str:
    """Where a built-in cipher's title or variant has a word that was given as its name (``sha3``): which."""
    wanted = _letters(word)
    for cipher in map(find, names() if wanted else ()):
        if any(wanted == _letters(variant) for variant in cipher.variants):
            return f" (did you mean {cipher.name} --variant {word.lower()}?)"
        if wanted in {_letters(part) for part in cipher.title.split()}:
            return f" (did you mean {cipher.name!r}, {cipher.title}?)"
    return ""


def _letters(text: str) -> str:
    return "".join(c for c in text.lower() if c.isalnum())


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


class _Buffer(Declared, frozen=True, kw_only=True):
    """A parameter of a kernel: a buffer, a number, or how many blocks there are. One of the three keys says which."""

    buffer: str | None = None
    value: Annotated[int, msgspec.Meta(ge=0, le=0xFFFFFFFF, description="it is a number of 32 bits")] | None = None
    count: Literal["blocks"] | None = None
    access: Literal["read", "write", "update"] | None = None
    bytes: (
        Annotated[int, msgspec.Meta(ge=1, le=1 << 24, description="it is a number of bytes from 1 to 16777216")] | None
    ) = None
    shared: bool = False
    align: Literal[1, 2, 4, 8, 16, 32, 64] = 8
    word_bytes: Literal[1, 2, 4, 8] = 4
    below: Annotated[int, msgspec.Meta(ge=1, description="words of the buffer are below it")] | None = None


_BlockBytes = Annotated[int, msgspec.Meta(ge=1, le=65536, description="it is a number of bytes from 1 to 65536")]
_KeyBits = Annotated[
    tuple[Annotated[int, _bits(8)], ...],
    msgspec.Meta(min_length=1, description="it lists the key sizes in bits, for instance [128, 256]"),
]
_Parameters = Annotated[
    tuple[_Buffer, ...],
    msgspec.Meta(min_length=1, description="it lists what the kernel's function is given, in order"),
]


class _Variant(Declared, frozen=True):
    sources: Annotated[tuple[str, ...], msgspec.Meta(min_length=1, description="name at least one C file")]
    flags: tuple[str, ...] = ()
    trades: str = ""
    constant_time: bool | None = None
    exports: dict[str, str] = msgspec.field(default_factory=dict)
    kind: Kind | None = None
    block_bytes: _BlockBytes | None = None
    key_bits: _KeyBits | None = None
    iv_bits: tuple[Annotated[int, _bits(0)], ...] | None = None
    function: str | None = None
    parameters: _Parameters | None = None


class _Vectors(Declared, frozen=True):
    file: str
    source: str


class _Manifest(Declared, frozen=True, kw_only=True):
    """The keys of a ``cipher.toml``."""

    name: str
    title: str = ""
    year: Annotated[int, msgspec.Meta(ge=1, le=9999, description="it is a year such as 1998")] | None = None
    kind: Kind
    block_bytes: _BlockBytes
    key_bits: _KeyBits | None = None
    iv_bits: tuple[Annotated[int, _bits(0)], ...] = ()
    function: str | None = None
    parameters: _Parameters | None = None
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
    variants = {name: _variant(path, source, said, name) for name in said.variants}
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
        title=said.title,
        year=said.year,
        **variants[default].own,
        vectors=tuple(_file(path, source, v.file, ("vectors", i, "file")) for i, v in enumerate(said.vectors)),
        note=said.note,
    )


def _variant(path: Path, source: Source, all_: _Manifest, name: str) -> Variant:
    place, said = ("variants", name), all_.variants[name]
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
    return Variant(
        name, files, said.flags, said.trades, said.constant_time, said.exports, _own(source, all_, said, place)
    )


def _own(source: Source, all_: _Manifest, said: _Variant, place: Place) -> dict[str, Any]:
    """Kind, sizes and kernel of a variant: what it says itself, or else the manifest for all of them."""
    kind = said.kind or all_.kind
    block_bytes = said.block_bytes or all_.block_bytes

    def sizes(key: str, kinds: tuple[str, ...], needed: bool) -> tuple[int, ...]:
        mine, everyones = getattr(said, key), getattr(all_, key)
        if mine and kind not in kinds:
            raise source.wrong((*place, key), f"a {kind} takes none; leave it out")
        if everyones and kind not in kinds and said.kind is None:
            raise source.wrong((key,), f"a {kind} takes none; leave it out")
        if kind not in kinds:
            return ()
        if needed and not (mine or everyones):
            raise source.wrong(
                (key,), "missing; add it (a list); it lists the key sizes in bits, for instance [128, 256]"
            )
        return tuple(sorted(set(everyones or () if mine is None else mine)))

    key_bits = sizes("key_bits", KEYED, True)
    iv_bits = sizes("iv_bits", WITH_IV, False)
    kernel = None
    for key in ("function", "parameters"):
        mine = getattr(said, key) is not None
        if kind != "kernel" and (mine or (said.kind is None and getattr(all_, key) is not None)):
            raise source.wrong((*place, key) if mine else (key,), f"is for kernels, and this is of kind {kind!r}")
    if kind == "kernel":
        function = said.function or all_.function
        if function is None:
            raise source.wrong((*place, "function"), "missing; name the function that is measured")
        if not function.isidentifier() or not function.isascii():
            at = (*place, "function") if said.function else ("function",)
            raise source.wrong(at, f"is {function!r}; it is the name of a function in C")
        parameters = said.parameters or all_.parameters
        if parameters is None:
            raise source.wrong((*place, "parameters"), "missing; list what the function is given, in order")
        at = (*place, "parameters") if said.parameters else ("parameters",)
        given = [_parameter(source, (*at, i), parameter) for i, parameter in enumerate(parameters)]
        names = [g["buffer"] for g in given if "buffer" in g]
        if len(set(names)) < len(names):
            raise source.wrong(at, f"two buffers have one name; they are {', '.join(names)}")
        kernel = {"function": function, "block_bytes": block_bytes, "parameters": given}
    return {"kind": kind, "block_bytes": block_bytes, "key_bits": key_bits, "iv_bits": iv_bits, "kernel": kernel}


def _parameter(source: Source, place: Place, said: _Buffer) -> dict[str, Any]:
    """A parameter as the core reads it."""
    which = [key for key in ("buffer", "value", "count") if getattr(said, key) is not None]
    if len(which) != 1:
        raise source.wrong(place, "says what it is by one of buffer, value and count")
    if which[0] != "buffer":
        return {which[0]: getattr(said, which[0])}
    for key, mend in (("access", '"read", "write" or "update"'), ("bytes", "the buffer's size")):
        if getattr(said, key) is None:
            raise source.wrong((*place, key), f"missing; it is {mend}")
    if said.bytes is not None and said.bytes % said.word_bytes and said.below is not None:
        raise source.wrong((*place, "bytes"), f"is {said.bytes}, no whole number of words of {said.word_bytes} bytes")
    keys = ("buffer", "access", "bytes", "shared", "align", "word_bytes", "below")
    return {key: getattr(said, key) for key in keys}


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
