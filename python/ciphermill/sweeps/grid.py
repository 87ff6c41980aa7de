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
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import paths
from .._core import InputError
from ..suggest import did_you_mean

#: What a point may say, and the type of one value; sets are a table of axes.
AXES: dict[str, type | tuple[type, ...]] = {
    "cipher": str, "variant": str, "on": str, "direction": str, "key_bits": int, "blocks": str, "bytes": int,
    "jam": int, "unroll": bool, "optimise": str, "with": (str, list), "without": (str, list),
}  # fmt: skip
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
        return parse(source, "the grid", None)
    path = Path(source)
    try:
        data = tomllib.loads(path.read_text(encoding=paths.TEXT))
    except OSError as error:
        raise InputError(f"{paths.shown(path)}: {error.strerror}; give the path of a grid, docs/sweeps.md") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{paths.shown(path)}: not TOML: {error}") from None
    return parse(data, paths.shown(path), path)


def parse(data: Mapping[str, Any], place: str, path: Path | None) -> Grid:
    known(data, ("sweep", "grid"), place)
    head = data.get("sweep", {})
    if not isinstance(head, Mapping):
        raise InputError(f"{place}: sweep: it is a table, [sweep]")
    known(head, ("store",), f"{place}: [sweep]")
    store = head.get("store")
    if store is not None and not isinstance(store, str):
        raise InputError(f"{place}: sweep.store: it is the name of a file, here is {store!r}")
    grids = data.get("grid", [])
    grids = [grids] if isinstance(grids, Mapping) else grids
    if not isinstance(grids, list) or not grids or not all(isinstance(grid, Mapping) for grid in grids):
        raise InputError(f"{place}: there is no [[grid]]; add one with at least cipher and on")
    points: list[dict[str, Any]] = []
    seen = set()
    for number, grid in enumerate(grids, 1):
        for point in product(grid, f"{place}: grid {number}"):
            if (same := repr(point)) not in seen:
                seen.add(same)
                points.append(point)
    where = None if path is None else (path.parent / store if store else path.with_suffix(".sqlite"))
    return Grid(tuple(points), where)


def product(grid: Mapping[str, Any], place: str) -> Iterator[dict[str, Any]]:
    """The points of one grid."""
    known(grid, (*AXES, "set", "skip"), place)
    for needed in ("cipher", "on"):
        if needed not in grid:
            raise InputError(f"{place}: {needed} is missing; name one or several")
    axes: list[tuple[str, list[Any]]] = []
    for name, value in grid.items():
        if name in AXES:
            axes.append((name, axis(name, value, f"{place}: {name}")))
    sets = grid.get("set", {})
    if not isinstance(sets, Mapping):
        raise InputError(f'{place}: set: it is a table from paths to values, {{ "issue.width" = [1, 2] }}')
    for path, value in sets.items():
        values = value if isinstance(value, list) else [value]
        if not values or not all(isinstance(v, (int, float, bool, str)) for v in values):
            raise InputError(f"{place}: set: {path}: it is a value or a list of values, here is {value!r}")
        axes.append((f"set\0{path}", values))
    skips = grid.get("skip", [])
    if not isinstance(skips, list) or not all(isinstance(skip, Mapping) for skip in skips):
        raise InputError(f"{place}: skip: it is a list of tables of settings to leave out")
    skips = [skip_of(skip, f"{place}: skip") for skip in skips]
    for chosen in itertools.product(*(values for _, values in axes)):
        point: dict[str, Any] = {}
        for (name, _), value in zip(axes, chosen, strict=True):
            if name.startswith("set\0"):
                point.setdefault("set", {})[name[4:]] = value
            else:
                point[name] = value
        settings = flat(point)
        if not any(all(settings.get(name) == value for name, value in skip.items()) for skip in skips):
            yield point


def axis(name: str, value: Any, place: str) -> list[Any]:
    """The values of one axis."""
    if name in NAMES:
        # A list is an axis; its elements are names, or lists of names.
        values = value if isinstance(value, list) else [value]
        out = [[v] if isinstance(v, str) else v for v in values]
        if not out or not all(isinstance(v, list) and all(isinstance(n, str) for n in v) for v in out):
            raise InputError(f"{place}: each element is a name or a list of names, here is {value!r}")
        return [[n.strip() for v in names for n in v.split(",") if n.strip()] for names in out]
    values = value if isinstance(value, list) else [value]
    wanted = AXES[name]
    right = [isinstance(v, wanted) and (wanted is not int or not isinstance(v, bool)) for v in values]
    if not values or not all(right):
        kind = "a whole number" if wanted is int else "true or false" if wanted is bool else "a string"
        raise InputError(f"{place}: it is {kind} or a list of such, here is {value!r}")
    return values


def skip_of(skip: Mapping[str, Any], place: str) -> dict[str, Any]:
    known(skip, (*AXES, "set"), place)
    sets = skip.get("set", {})
    point = {name: [value] if name in NAMES and isinstance(value, str) else value for name, value in skip.items()}
    if not isinstance(sets, Mapping):
        raise InputError(f"{place}: set: it is a table from paths to values")
    return flat(point)


def known(table: Mapping[str, Any], keys: tuple[str, ...], place: str) -> None:
    for name in table:
        if name not in keys:
            raise InputError(f"{place}: unknown key {name!r}{did_you_mean(name, keys)}; known here: {', '.join(keys)}")
