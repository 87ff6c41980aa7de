"""Ciphers: what a folder's ``cipher.toml`` says, checked.

Everything a later step would have to doubt is checked here, and every message
names the file, the key and the mend. A cipher can also be a single C file or
a WebAssembly module of the user's; it then has one variant, no vectors, and
its sizes come from the module itself.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import paths
from ._core import InputError
from .suggest import did_you_mean

FILE = "cipher.toml"
KINDS = ("block", "stream")

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
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{paths.shown(path)}: {error.strerror}") from None
    return parse(path, data)


def parse(path: Path, data: bytes) -> Cipher:
    """Check a manifest's content; `path` says where its files are, and names it in messages."""
    try:
        table = tomllib.loads(data.decode(paths.TEXT))
    except UnicodeDecodeError:
        raise InputError(f"{paths.shown(path)}: not a text file; a manifest is TOML in UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{paths.shown(path)}: not TOML: {_line(str(error))}") from None
    except RecursionError:
        raise InputError(
            f"{paths.shown(path)}: lists or tables nested too deep; no key here needs more than two"
        ) from None
    except ValueError:
        # TOML knows no largest number, Python's decimal conversion does.
        raise InputError(f"{paths.shown(path)}: a number of thousands of digits; shorten it") from None
    return _Reader(path, table).cipher()


class _Reader:
    """Takes keys out of a manifest one by one; what is left at the end is unknown."""

    def __init__(self, path: Path, table: dict[str, Any]) -> None:
        self.path = path
        self.table = table

    def fail(self, key: str, problem: str) -> InputError:
        return InputError(f"{paths.shown(self.path)}: {_line(key)}: {_line(problem)}")

    def take(self, table: dict[str, Any], key: str, kind: type, prefix: str = "", **default: Any) -> Any:
        if key not in table:
            if "default" in default:
                return default["default"]
            raise self.fail(prefix + key, f"missing; add it ({_a(kind)})")
        value = table.pop(key)
        # A TOML boolean is a Python int too, and no number here is a boolean.
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self.fail(prefix + key, f"is {_a(type(value))}, must be {_a(kind)}")
        return value

    def finish(self, table: dict[str, Any], known: tuple[str, ...], prefix: str = "") -> None:
        for key in table:
            raise self.fail(
                prefix + key, f"unknown key{did_you_mean(key, known)}; the keys here are {', '.join(known)}"
            )

    def sizes(self, key: str, least: int) -> tuple[int, ...]:
        values = self.take(self.table, key, list, default=[])
        for value in values:
            if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= MOST_BITS or value % 8:
                raise self.fail(
                    key, f"has {_value(value)}; every size is in bits, a multiple of 8 from {least} to {MOST_BITS}"
                )
        return tuple(sorted(set(values)))

    def name(self, key: str, name: str) -> str:
        """A name that a message can show and a command line can give."""
        if not name or not name.isprintable() or name != name.strip():
            raise self.fail(key, f"is {name!r}; a name has letters, digits and signs, and no space around it")
        return name

    def cipher(self) -> Cipher:
        table = self.table
        if "name" not in table and ("machine" in table or "extension" in table):
            raise InputError(
                f"{paths.shown(self.path)}: a machine or extension file, no cipher's manifest; give it to --on or --with"
            )
        name = self.name("name", self.take(table, "name", str))
        kind = self.take(table, "kind", str)
        if kind not in KINDS:
            raise self.fail("kind", f"is {kind!r}{did_you_mean(kind, KINDS)}; it is block or stream")
        block_bytes = self.take(table, "block_bytes", int)
        if not 1 <= block_bytes <= 65536:
            raise self.fail("block_bytes", f"is {_value(block_bytes)}; it is a number of bytes from 1 to 65536")
        key_bits = self.sizes("key_bits", 8)
        if not key_bits:
            raise self.fail("key_bits", "missing; add the list of key sizes in bits, for instance [128, 256]")
        iv_bits = self.sizes("iv_bits", 0)
        title = self.take(table, "title", str, default="")
        year = self.take(table, "year", int, default=None)
        if year is not None and not 1 <= year <= 9999:
            raise self.fail("year", f"is {_value(year)}; it is a year such as 1998")
        note = self.take(table, "note", str, default="")
        default_variant = self.take(table, "default_variant", str, default=None)
        variants = self.variants(self.take(table, "variants", dict))
        if default_variant is None:
            default_variant = next(iter(variants))
        if default_variant not in variants:
            raise self.fail("default_variant", f"is {default_variant!r}; the variants are {', '.join(variants)}")
        vectors = tuple(self.vector(i, entry) for i, entry in enumerate(self.take(table, "vectors", list, default=[])))
        self.finish(
            table,
            (
                "name",
                "title",
                "year",
                "kind",
                "block_bytes",
                "key_bits",
                "iv_bits",
                "default_variant",
                "variants",
                "vectors",
                "note",
            ),
        )
        return Cipher(
            name=name,
            path=self.path,
            variants=variants,
            default_variant=default_variant,
            kind=kind,
            title=title,
            year=year,
            block_bytes=block_bytes,
            key_bits=key_bits,
            iv_bits=iv_bits,
            vectors=vectors,
            note=note,
        )

    def variants(self, tables: dict[str, Any]) -> dict[str, Variant]:
        if not tables:
            raise self.fail("variants", "is empty; add a table such as [variants.plain] with sources")
        result = {}
        for name, table in tables.items():
            prefix = f"variants.{name}."
            self.name("variants", name)
            if not isinstance(table, dict):
                raise self.fail(f"variants.{name}", "must be a table with sources")
            sources = self.strings(table, "sources", prefix)
            if not sources:
                raise self.fail(prefix + "sources", "is empty; name at least one C file")
            files = tuple(self.file(source, f"{prefix}sources") for source in sources)
            wasm = [file for file in files if file.suffix == ".wasm"]
            if wasm and len(files) > 1:
                raise self.fail(prefix + "sources", "a WebAssembly module stands alone; leave the other files out")
            exports = self.take(table, "exports", dict, prefix, default={})
            if exports and not wasm:
                raise self.fail(
                    prefix + "exports", "is for WebAssembly modules; C exports by the names of ciphermill.h"
                )
            for new, old in exports.items():
                if not isinstance(old, str):
                    raise self.fail(f"{prefix}exports.{new}", "must be a string, the name in the module")
            result[name] = Variant(
                name=name,
                sources=files,
                flags=tuple(self.strings(table, "flags", prefix, default=[])),
                trades=self.take(table, "trades", str, prefix, default=""),
                constant_time=self.take(table, "constant_time", bool, prefix, default=None),
                exports=exports,
            )
            self.finish(table, ("sources", "flags", "trades", "constant_time", "exports"), prefix)
        return result

    def strings(self, table: dict[str, Any], key: str, prefix: str, **default: Any) -> list[str]:
        values: list[str] = self.take(table, key, list, prefix, **default)
        for value in values:
            if not isinstance(value, str):
                raise self.fail(prefix + key, f"has {_value(value)}; every entry is a string")
            if "\0" in value:
                raise self.fail(prefix + key, f"has {value!r}; no path and no flag holds a NUL character")
        return values

    def file(self, name: str, key: str) -> Path:
        path = self.path.parent / name
        try:
            found = path.is_file()
        except OSError as error:
            raise self.fail(key, f"{name}: {error.strerror}") from None
        if not found:
            raise self.fail(key, f"{name or repr(name)}: no such file beside the manifest")
        return path

    def vector(self, index: int, entry: Any) -> Path:
        prefix = f"vectors[{index}]."
        if not isinstance(entry, dict):
            raise self.fail(f"vectors[{index}]", "must be a table with file and source")
        path = self.file(self.take(entry, "file", str, prefix), prefix + "file")
        self.take(entry, "source", str, prefix)
        self.finish(entry, ("file", "source"), prefix)
        return path


_TYPES = {
    str: "a string",
    int: "a whole number",
    float: "a number with a fraction",
    list: "a list",
    dict: "a table",
    bool: "true or false",
}


def _a(kind: type) -> str:
    return _TYPES.get(kind, f"a {kind.__name__}")


def _value(value: Any) -> str:
    """A value of any type and size as a message shows it."""
    if isinstance(value, (list, dict)):
        return _a(type(value))
    if isinstance(value, int) and value.bit_length() > 128:
        return f"a number of {value.bit_length()} bits"
    return repr(value)


def _line(text: str, most: int = 400) -> str:
    """What a manifest holds may stand in a message, which is one line a terminal can show."""
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return text if len(text) <= most else f"{text[: most // 2]} ... {text[-most // 2 :]}"


def _sizes(values: tuple[int, ...]) -> str:
    texts = [str(value) for value in values]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} or {texts[-1]}"
