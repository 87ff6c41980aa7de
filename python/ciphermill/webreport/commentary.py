"""What a study's folder says about its own outcome: ``report.toml``.

What agrees with the paper, what does not and why, which further figures and
which loops are worth a look. The file may be left out; the tables stand
without it (``docs/studies.md``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import paths
from .._core import InputError
from ..study.layout import SETTINGS, Study, read, take
from ..study.results import Result
from . import words


@dataclass(frozen=True)
class Pareto:
    """Two costs of the rows of a table against each other: its columns, or
    ``table/column`` for the rows of the same keys in another table."""

    title: str
    table: str
    x: str
    y: str

    def place(self, axis: str) -> tuple[str, str]:
        """The table and the column that an axis names."""
        table, _, column = axis.rpartition("/")
        return table or self.table, column


#: What an author can say, in this order.
TEXTS = ("agrees", "differs", "why")


@dataclass(frozen=True)
class Bars:
    """The paper's bars beside ours: columns of a table stacked, its rows side by side."""

    title: str
    table: str
    parts: tuple[str, ...]


@dataclass(frozen=True)
class Curves:
    """Columns as points of a line: a strip for each row, a line for each of
    several tables, ``(table, label)``, that have the same rows and columns."""

    title: str
    lines: tuple[tuple[str, str], ...]
    columns: tuple[str, ...]
    x: str


@dataclass(frozen=True)
class Commentary:
    #: Templates (`ciphermill.webreport.words`).
    agrees: str = ""
    differs: str = ""
    why: str = ""
    pareto: tuple[Pareto, ...] = ()
    bars: tuple[Bars, ...] = ()
    curves: tuple[Curves, ...] = ()
    #: Settings of the measurements whose hottest loops are shown.
    kernels: tuple[Mapping[str, Any], ...] = ()
    #: Settings of those whose way through an out-of-order core is shown, with ``first`` and ``count``.
    pipelines: tuple[Mapping[str, Any], ...] = ()


def load(study: Study) -> Commentary:
    """Read a study's commentary. Raises InputError when something in it is wrong."""
    file: Path = paths.STUDIES / study.name / "report.toml"
    if not file.is_file():
        return Commentary()
    place, content = paths.shown(file), read(file)
    allowed = {
        "agrees": str,
        "differs": str,
        "why": str,
        "pareto": list,
        "bars": list,
        "curves": list,
        "kernel": list,
        "pipeline": list,
    }
    take(content, place, "the file", allowed, set())
    fronts = []
    for i, entry in enumerate(content.get("pareto", [])):
        where = f"pareto {i + 1}"
        take(entry, place, where, {"title": str, "table": str, "x": str, "y": str}, {"title", "table", "x", "y"})
        front = Pareto(**entry)
        for axis in (front.x, front.y):
            name, column = front.place(axis)
            _known(study, place, where, name, column)
        if front.table not in [t.name for t in study.tables]:
            raise InputError(f"{place}: {where}: the study has no table {front.table!r}")
        fronts.append(front)
    bars = []
    for i, entry in enumerate(content.get("bars", [])):
        where = f"bars {i + 1}"
        take(entry, place, where, {"title": str, "table": str, "parts": list}, {"title", "table", "parts"})
        for part in entry["parts"]:
            _known(study, place, where, entry["table"], part)
        bars.append(Bars(entry["title"], entry["table"], tuple(entry["parts"])))
    curves = []
    for i, entry in enumerate(content.get("curves", [])):
        where = f"curves {i + 1}"
        names = {"title": str, "lines": list, "columns": list, "x": str}
        take(entry, place, where, names, set(names))
        if not all(isinstance(line, list) and len(line) == 2 for line in entry["lines"]):
            raise InputError(f"{place}: {where}: lines: a list of pairs, a table and what its line is called")
        for table, _ in entry["lines"]:
            for column in entry["columns"]:
                _known(study, place, where, table, column)
        curves.append(
            Curves(
                entry["title"], tuple((t, label) for t, label in entry["lines"]), tuple(entry["columns"]), entry["x"]
            )
        )
    kernels = content.get("kernel", [])
    for i, entry in enumerate(kernels):
        take(entry, place, f"kernel {i + 1}", SETTINGS, {"cipher", "on"})
    traces = content.get("pipeline", [])
    for i, entry in enumerate(traces):
        take(entry, place, f"pipeline {i + 1}", {**SETTINGS, "first": int, "count": int}, {"cipher", "on"})
    return Commentary(
        **{name: content.get(name, "") for name in TEXTS}, pareto=tuple(fronts), bars=tuple(bars), curves=tuple(curves),
        kernels=tuple(kernels), pipelines=tuple(traces),
    )  # fmt: skip


def spoken(comment: Commentary, result: Result) -> dict[str, str]:
    """The texts with today's figures. Raises InputError when one is wrong."""
    place = paths.shown(paths.STUDIES / result.study.name / "report.toml")
    return {name: words.said(getattr(comment, name), result, f"{place}: {name}") for name in TEXTS}


def _known(study: Study, place: str, where: str, name: str, column: str) -> None:
    """InputError when the study has no such column."""
    table = next((t for t in study.tables if t.name == name), None)
    if table is None:
        raise InputError(
            f"{place}: {where}: the study has no table {name!r}; it has {', '.join(t.name for t in study.tables)}"
        )
    if column not in (keys := [c.key for c in table.columns]):
        raise InputError(f"{place}: {where}: table {name!r} has no column {column!r}; it has {', '.join(keys)}")
