"""Measurements as a table: one row a point, one column a number.

polars is optional: ``pip install 'ciphermill[sweep]'``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..tables import needed
from .grid import flat

#: Groups of numbers in a measurement; their columns are ``group.name``.
GROUPS = ("metrics", "breakdown", "bounds")


def polars() -> Any:
    return needed("polars", "sweep")


def row(
    point: Mapping[str, Any], measurement: Mapping[str, Any] | None, failure: str | None, settings: Iterable[str] = ()
) -> dict[str, Any]:
    """One point in one level: its settings (``settings`` that other points have are null), then what was measured."""
    out: dict[str, Any] = {**dict.fromkeys(settings), **flat(point)}
    for name in ("with", "without"):
        out[name] = out.get(name) or ""
    out["failure"] = failure
    for name, value in (measurement or {}).items():
        if name in GROUPS:
            out.update({f"{name}.{n}": v for n, v in value.items() if not isinstance(v, (list, dict))})
        elif name == "machine" or (not isinstance(value, (list, dict)) and name not in out):
            out[name] = value
    loops = (measurement or {}).get("loops") or []
    out["ii"] = loops[0]["ii"] if loops else None
    return out


def frame(rows: Sequence[Mapping[str, Any]]) -> Any:
    """A polars DataFrame of rows; a column that some row lacks is null there."""
    names: dict[str, None] = {}
    for one in rows:
        names.update(dict.fromkeys(one))
    columns = {name: [one.get(name) for one in rows] for name in names}
    return polars().DataFrame(columns, strict=False, infer_schema_length=None)
