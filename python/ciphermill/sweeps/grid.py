"""The file of a sweep: which points there are.

    [sweep]
    store = "modes.sqlite"            # beside the file; default: its name with .sqlite

    [[grid]]
    cipher = ["rijndael", "mars"]     # one value or a list: an axis
    on = "epic"
    with = ["addr-indexed", ["addr-scaled", "ptlu"], []]
    set = { "issue.width" = [1, 2, 4], "units.mem" = 2 }
    skip = [{ cipher = "mars", with = [] }]

A grid is the cross product of its axes, in the order of the file; a file may
have several. The keys are the options of ``ciphermill run`` by the same names.
An element of ``with`` or ``without`` is a name or a list of names. A point is
left out when it agrees with all that some entry of ``skip`` says.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec

from ..declared import Declared, Source

T = TypeVar("T")
Several: TypeAlias = Annotated[list[T], msgspec.Meta(min_length=1, description="an axis has one value or more")]
#: One value, or a list of them.
Axis: TypeAlias = T | Several[T]
#: A name, or several that go together; with commas between, or as a list.
Names: TypeAlias = str | list[str]
NamesAxis: TypeAlias = str | Several[Names]
Value: TypeAlias = int | float | bool | str


class Skip(Declared, frozen=True):
    """A setting of points that are left out."""

    cipher: str | None = None
    variant: str | None = None
    on: str | None = None
    direction: str | None = None
    key_bits: int | None = None
    blocks: str | None = None
    bytes: int | None = None
    jam: int | None = None
    unroll: bool | None = None
    optimise: str | None = None
    with_: Names | None = msgspec.field(name="with", default=None)
    without: Names | None = None
    set: dict[str, Value] = msgspec.field(default_factory=dict)


class Axes(Declared, frozen=True, kw_only=True):
    """A ``[[grid]]``: what a point may say, each an axis."""

    cipher: Axis[str]
    on: Axis[str]
    variant: Axis[str] | None = None
    direction: Axis[str] | None = None
    key_bits: Axis[int] | None = None
    blocks: Axis[str] | None = None
    bytes: Axis[int] | None = None
    jam: Axis[int] | None = None
    unroll: Axis[bool] | None = None
    optimise: Axis[str] | None = None
    with_: NamesAxis | None = msgspec.field(name="with", default=None)
    without: NamesAxis | None = None
    set: Annotated[
        dict[str, Axis[Value]], msgspec.Meta(description='it goes from paths to values, { "issue.width" = [1, 2] }')
    ] = msgspec.field(default_factory=dict)
    skip: Annotated[list[Skip], msgspec.Meta(description="each element has settings to leave out")] = msgspec.field(
        default_factory=list
    )


class Head(Declared, frozen=True):
    """The table ``[sweep]``."""

    store: Annotated[str | None, msgspec.Meta(description="it is the name of a file")] = None


class File(Declared, frozen=True, kw_only=True):
    """A file of a sweep."""

    sweep: Head = Head()
    grid: Annotated[
        Axes | Annotated[list[Axes], msgspec.Meta(min_length=1)],
        msgspec.Meta(description="there is at least one [[grid]], with cipher and on"),
    ]


NAMES = ("with", "without")


@dataclass(frozen=True)
class Grid:
    """Points, as settings by name; ``set`` is a mapping from path to value."""

    points: tuple[dict[str, Any], ...]
    #: Where the results are kept, if the file says.
    store: Path | None = None

    def axes(self) -> list[str]:
        """Names of the settings that are not the same in all points."""
        seen: dict[str, set[str]] = {}
        for point in self.points:
            for name, value in flat(point).items():
                seen.setdefault(name, set()).add(str(value))
        return [name for name, values in seen.items() if len(values) > 1]


def flat(point: Mapping[str, Any]) -> dict[str, Any]:
    """A point's settings in one level: lists of names joined by ``+``, sets by their paths."""
    out: dict[str, Any] = {}
    for name, value in point.items():
        if name == "set":
            out.update(value)
        else:
            out[name] = "+".join(value) if isinstance(value, (list, tuple)) else value
    return out


def load(source: str | Path | Mapping[str, Any]) -> Grid:
    """A grid from a TOML file, or from what such a file would say.

    Raises InputError that names the place.
    """
    if isinstance(source, Mapping):
        return parse(Source("the grid", source), None)
    path = Path(source)
    return parse(Source.read(path, "; give the path of a grid, docs/sweeps.md"), path)


def parse(source: Source, path: Path | None) -> Grid:
    head = source.checked(File).sweep
    grids = source.table["grid"]
    points: dict[str, dict[str, Any]] = {}
    for grid in [grids] if isinstance(grids, Mapping) else grids:
        for point in product(grid):
            points.setdefault(repr(point), point)
    where = None if path is None else (path.parent / head.store if head.store else path.with_suffix(".sqlite"))
    return Grid(tuple(points.values()), where)


def product(grid: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The points of one grid; its axes in the order of the file."""
    axes = [(name, values(name, value)) for name, value in grid.items() if name not in ("set", "skip")]
    sets = [(path, values("set", value)) for path, value in grid.get("set", {}).items()]
    skips = [
        flat({name: split(v) if name in NAMES else v for name, v in skip.items()}) for skip in grid.get("skip", [])
    ]
    for chosen in itertools.product(*(each for _, each in axes), *(each for _, each in sets)):
        point = dict(zip([name for name, _ in axes], chosen, strict=False))
        if sets:
            point["set"] = dict(zip([path for path, _ in sets], chosen[len(axes) :], strict=True))
        settings = flat(point)
        if not any(all(settings.get(name) == value for name, value in skip.items()) for skip in skips):
            yield point


def values(name: str, value: Any) -> list[Any]:
    """The values of one axis."""
    each = value if isinstance(value, list | tuple) else [value]
    return [split(names) for names in each] if name in NAMES else list(each)


def split(names: str | list[str]) -> list[str]:
    """Names in a list, or with commas between."""
    return [n.strip() for part in ([names] if isinstance(names, str) else names) for n in part.split(",") if n.strip()]
