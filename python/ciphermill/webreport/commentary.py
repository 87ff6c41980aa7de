"""What a study's folder says about its own outcome: ``report.toml``.

What agrees with the paper, what does not and why, which further figures and
which loops are worth a look. The file may be left out; the tables stand
without it (``docs/studies.md``).
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from .. import paths
from ..declared import Declared, Source
from ..study.layout import Settings, Study
from ..study.results import Result
from ..suggest import did_you_mean
from ..toml import Place
from . import words


class Pareto(Declared, frozen=True):
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


class Bars(Declared, frozen=True):
    """The paper's bars beside ours: columns of a table stacked, its rows side by side."""

    title: str
    table: str
    parts: tuple[str, ...]


class Curves(Declared, frozen=True):
    """Columns as points of a line: a strip for each row, a line for each of
    several tables, ``(table, label)``, that have the same rows and columns."""

    title: str
    lines: tuple[
        Annotated[
            tuple[str, ...],
            msgspec.Meta(min_length=2, max_length=2, description="it is a pair, a table and what its line is called"),
        ],
        ...,
    ]
    columns: tuple[str, ...]
    x: str


class Kernel(Settings, frozen=True, kw_only=True):
    """Settings of a measurement whose hottest loops are shown."""

    cipher: str
    on: str


class Pipeline(Kernel, frozen=True, kw_only=True):
    """Settings of one whose way through an out-of-order core is shown."""

    first: int | None = None
    count: int | None = None


class Commentary(Declared, frozen=True):
    """A ``report.toml``."""

    #: Templates (`ciphermill.webreport.words`).
    agrees: str = ""
    differs: str = ""
    why: str = ""
    pareto: tuple[Pareto, ...] = ()
    bars: tuple[Bars, ...] = ()
    curves: tuple[Curves, ...] = ()
    kernel: tuple[Kernel, ...] = ()
    pipeline: tuple[Pipeline, ...] = ()

    def columns(self) -> list[tuple[Place, str, str]]:
        """The columns that it names: where, the table, the column."""
        found: list[tuple[Place, str, str]] = []
        for i, front in enumerate(self.pareto):
            found += [(("pareto", i, axis), *front.place(getattr(front, axis))) for axis in ("x", "y")]
        for i, bars in enumerate(self.bars):
            found += [(("bars", i, "parts", n), bars.table, part) for n, part in enumerate(bars.parts)]
        for i, curves in enumerate(self.curves):
            tables = [table for table, _ in curves.lines]
            found += [(("curves", i, "columns", n), t, c) for t in tables for n, c in enumerate(curves.columns)]
        return found


def load(study: Study) -> Commentary:
    """Read a study's commentary. Raises InputError when something in it is wrong."""
    file = paths.STUDIES / study.name / "report.toml"
    if not file.is_file():
        return Commentary()
    source = Source.read(file)
    comment = source.checked(Commentary)
    tables = {table.name: [column.key for column in table.columns] for table in study.tables}
    named = [(("pareto", i, "table"), front.table) for i, front in enumerate(comment.pareto)]
    for place, name in [*named, *((place, table) for place, table, _ in comment.columns())]:
        if name not in tables:
            hint = did_you_mean(name, tables)
            raise source.wrong(place, f"the study has no table {name!r}{hint}; it has {', '.join(tables)}")
    for place, name, column in comment.columns():
        if column not in tables[name]:
            hint = did_you_mean(column, tables[name])
            raise source.wrong(
                place, f"table {name!r} has no column {column!r}{hint}; it has {', '.join(tables[name])}"
            )
    return comment


def spoken(comment: Commentary, result: Result) -> dict[str, str]:
    """The texts with today's figures. Raises InputError when one is wrong."""
    place = paths.shown(paths.STUDIES / result.study.name / "report.toml")
    return {name: words.said(getattr(comment, name), result, f"{place}: {name}") for name in TEXTS}
