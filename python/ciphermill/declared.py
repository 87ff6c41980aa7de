"""Files of the user's, checked against declared types.

What a file may say is a `Declared`: its keys, their types, and in a `msgspec.Meta` the bounds of a
value and a description that tells the mend. msgspec checks. It says that something is wrong; which
value that is, on which line, and what to do about it is worked out here, for every kind of file.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec

from . import paths, toml
from ._core import InputError
from .suggest import did_you_mean
from .toml import Place

T = TypeVar("T")


class Declared(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of a file, key by key. A key that has no default must be there."""


@dataclass(frozen=True)
class Source:
    """What a file says, and what to call it in a message."""

    shown: str
    table: Mapping[str, Any]
    #: None where it is no file.
    text: str | None = None

    @classmethod
    def read(cls, path: Path, mend: str = "") -> Source:
        """Raises InputError; `mend` says what to do where there is no such file."""
        text, table = toml.read(path, mend)
        return cls(paths.shown(path), table, text)

    def checked(self, kind: type[T]) -> T:
        """The file as a `Declared`. Raises InputError for what does not fit."""
        try:
            return msgspec.convert(self.table, kind)
        except (msgspec.ValidationError, ValueError) as error:
            place, problem = _fault(self.table, kind, ()) or ((), str(error))
            raise self.wrong(place, problem) from None

    def wrong(self, place: Place, problem: str) -> InputError:
        """What is wrong with the value at a place, with its line."""
        at = toml.number(self.text, place) if self.text is not None and place else None
        name = f"{toml.line(self.name(place))}: " if place else ""
        return InputError(f"{self.shown}{'' if at is None else f':{at}'}: {name}{toml.line(problem)}")

    def name(self, place: Place) -> str:
        """A place as a message has it: ``table['t'].columns[2].unit``; elements that have a name are called by it."""
        out, value = "", self.table
        for part in place:
            value = _inside(value, part)
            if isinstance(part, int):
                called = (value.get("name") or value.get("key")) if isinstance(value, Mapping) else None
                out += f"[{called!r}]" if isinstance(called, str) else f"[{part}]"
            else:
                part = part if part.replace("-", "_").isidentifier() else repr(part)
                out += f".{part}" if out else part
        return out


def _inside(value: Any, part: str | int) -> Any:
    try:
        return value[part]
    except (KeyError, IndexError, TypeError):
        return None


def _fits(value: Any, kind: Any) -> bool:
    try:
        msgspec.convert(value, kind)
    except (msgspec.ValidationError, ValueError):
        return False
    return True


def _fault(value: Any, kind: Any, place: Place) -> tuple[Place, str] | None:
    """The innermost place at which something does not fit, and what; None where all does."""
    if _fits(value, kind):
        return None
    mine = next((k for k in _alternatives(kind) if _plain(k) is _plain(type(value))), None)
    if mine is None:
        return place, f"is {shown(value)}, must be {_words(kind)}{_mend(kind)}"
    parts: Mapping[Any, Any] = {}
    bare, arguments = _bare(mine), get_args(_bare(mine))
    if isinstance(value, Mapping) and get_origin(bare) is None:
        fields = {field.encode_name: field for field in msgspec.structs.fields(bare)}
        if odd := [key for key in value if key not in fields]:
            hint = did_you_mean(str(odd[0]), fields)
            return (*place, odd[0]), f"unknown key{hint}; the keys here are {', '.join(fields)}"
        if missing := [name for name, field in fields.items() if field.required and name not in value]:
            wanted = fields[missing[0]].type
            return (*place, missing[0]), f"missing; add it ({_words(wanted)}){_mend(wanted)}"
        parts = {name: fields[name].type for name in value}
    elif isinstance(value, Mapping):
        parts = dict.fromkeys(value, arguments[-1])
    elif isinstance(value, list | tuple):
        parts = dict.fromkeys(range(len(value)), arguments[0])
    for part, of in parts.items():
        if found := _fault(value[part], of, (*place, part)):
            return found
    hint = did_you_mean(value, arguments) if isinstance(value, str) else ""
    return place, f"is {shown(value)}{hint}{_mend(mine) or _mend(kind) or f'; it is {_words(kind)}'}"


def _bare(kind: Any) -> Any:
    """A type without what is said of it."""
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def _mend(kind: Any) -> str:
    """The description in what is said of a type."""
    said = get_args(kind)[1:] if get_origin(kind) is Annotated else ()
    return next((f"; {meta.description}" for meta in said if meta.description), "")


def _alternatives(kind: Any) -> list[Any]:
    """What a value may be, one instead of the other."""
    either = get_origin(_bare(kind)) in (Union, types.UnionType)
    return [k for k in get_args(_bare(kind)) if k is not type(None)] if either else [kind]


def _plain(kind: Any) -> Any:
    """The type that a value of TOML has: where a tuple is wanted it is a list, where a struct is, a table."""
    bare = get_origin(_bare(kind)) or _bare(kind)
    if bare is Literal:
        return str
    if issubclass(bare, Mapping | msgspec.Struct):
        return dict
    return list if bare is tuple else bare


NAMES: dict[Any, str] = {
    str: "a string", int: "a whole number", float: "a number with a fraction", list: "a list", dict: "a table",
    bool: "true or false",
}  # fmt: skip


def _words(kind: Any) -> str:
    """What a value may be."""
    each = [
        " or ".join(map(str, get_args(_bare(k))))
        if get_origin(_bare(k)) is Literal
        else NAMES.get(_plain(k), "anything")
        for k in _alternatives(kind)
    ]
    return " or ".join(each).replace(f"{NAMES[int]} or {NAMES[float]}", "a number")


def shown(value: Any) -> str:
    """A value of any type and size as a message shows it."""
    if isinstance(value, list | tuple | Mapping):
        name = NAMES[_plain(type(value))]
        return name if value else name.replace("a ", "an empty ")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and value.bit_length() > 128:
        return f"a number of {value.bit_length()} bits"
    return repr(value) if isinstance(value, str) else str(value)
