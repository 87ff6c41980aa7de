"""The files of a study, read and checked.

What is wrong in a file is an InputError that names the file, the table and the
row or column in it. What is right but cannot be measured (a machine that is
not there yet) is no matter of the layout: it becomes a cell that says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from .. import paths
from ..declared import Declared, Source
from ..suggest import did_you_mean
from ..toml import Place
from .formulas import Formula, Number

#: The formulas of general use.
FORMULAS = paths.STUDIES / "formulas.toml"


class Settings(Declared, frozen=True, kw_only=True, omit_defaults=True):
    """What a cell may say about its measurement: the options of ``ciphermill run``, or a unit of
    ``rtl/units.toml`` that is synthesised instead."""

    cipher: str | None = None
    on: str | None = None
    variant: str | None = None
    direction: str | None = None
    key_bits: int | None = None
    blocks: str | None = None
    bytes: int | None = None
    jam: int | None = None
    unroll: bool | None = None
    aligned: bool | None = None
    optimise: str | None = None
    static: bool | None = None
    with_: list[str] | None = msgspec.field(name="with", default=None)
    without: list[str] | None = None
    set: list[str] | None = None
    optimal: bool | None = None
    fresh: bool | None = None
    hardware: str | None = None

    def given(self) -> dict[str, Any]:
        """Those that are said, by the names that the file has."""
        given: dict[str, Any] = msgspec.to_builtins(self)
        return given


class Column(Declared, frozen=True, kw_only=True):
    """One figure for every row: measured, or worked out from other cells."""

    key: str
    label: str
    unit: str
    #: Below the row's figures; "" is the row's figure itself. None: the paper has none.
    figure: str | None = None
    #: The paper has its figure from somewhere else.
    quoted: bool = False
    #: Dotted path into the measurement.
    measure: str | None = None
    #: Factor from the measurement's unit to this column's.
    times: Number = 1
    #: The measurement counts a whole message, and the column a block of it.
    per_block: bool = False
    formula: str | None = None
    of: tuple[str, ...] = ()
    constants: dict[str, Number] = msgspec.field(default_factory=dict)
    settings: Settings = Settings()
    #: Whether the geometric mean of ours/paper over its rows means something.
    summary: bool = False


class Row(Declared, frozen=True, kw_only=True):
    key: str
    label: str
    #: Dotted path into the figures.
    figures: str | None = None
    #: Instead of the columns'.
    measure: str | None = None
    settings: Settings = Settings()
    #: Keys of the columns it has; None: all.
    columns: tuple[str, ...] | None = None


class Table(Declared, frozen=True, kw_only=True):
    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...] = ()
    #: Instead of rows: where entries stand in the figures, each of which is one; and what they must have.
    rows_from: str | None = None
    where: dict[str, bool | int | float | str] = msgspec.field(default_factory=dict)
    #: A folder of the study: the table stands there once for each file in it, `{each}` being the file's name.
    for_each: str | None = None
    note: str = ""
    settings: Settings = Settings()

    def cells(self) -> Iterator[tuple[Row, Column]]:
        """Row by row."""
        for row in self.rows:
            for column in self.columns:
                if row.columns is None or column.key in row.columns:
                    yield row, column


class Head(Declared, frozen=True, kw_only=True):
    title: str
    paper: str
    note: str = ""
    settings: Settings = Settings()


class File(Declared, frozen=True, kw_only=True):
    """A ``study.toml``."""

    study: Head
    formulas: dict[str, Formula] = msgspec.field(default_factory=dict)
    table: tuple[Table, ...]


class Shared(Declared, frozen=True):
    """What stands in `FORMULAS`."""

    formulas: dict[str, Formula]


@dataclass(frozen=True)
class Study:
    name: str
    title: str
    paper: str
    note: str
    settings: Settings
    tables: tuple[Table, ...]
    figures: Mapping[str, Any]
    #: Its own and those of general use.
    formulas: Mapping[str, Formula]

    def asked(self, table: Table, row: Row, column: Column) -> dict[str, Any]:
        """What a measured cell asks for: the study's settings, overruled by
        the table's, the row's and the column's."""
        return {k: v for part in (self, table, row, column) for k, v in part.settings.given().items()}

    def work(self) -> list[dict[str, Any]]:
        """The settings of all measured cells, each once, in order."""
        found = []
        for table in self.tables:
            for row, column in table.cells():
                if column.formula is None and (asked := self.asked(table, row, column)) not in found:
                    found.append(asked)
        return found

    def place(self, path: str) -> str:
        """Where a figure stands, for people: the file, and the path in it."""
        folder, _, rest = path.partition(".")
        stem, _, inside = rest.partition(".")
        own = paths.STUDIES / self.name / folder / f"{stem}.toml"
        file, inside = (own, inside) if own.is_file() else (paths.STUDIES / self.name / "figures.toml", path)
        return f"{paths.shown(file)}: {inside}"

    def figure(self, row: Row, column: Column) -> float | None:
        """The paper's figure, if it has one."""
        if row.figures is None or column.figure is None:
            return None
        return lookup(self.figures, join(row.figures, column.figure))


#: In a table that stands there for each file: the file's name.
EACH = "{each}"
#: Behind a reference to cells: not ours, but ours/paper.
RATIO = ":ratio"


def names() -> list[str]:
    return sorted(path.parent.name for path in paths.STUDIES.glob("*/study.toml"))


@cache
def load(folder: Path) -> Study:
    """Read a study's folder. Raises InputError when something in it is wrong."""
    source, figures = Source.read(folder / "study.toml"), Source.read(folder / "figures.toml")
    said = source.checked(File)
    figures_of = {**figures.table, **folders(folder)}
    tables = [one for i, t in enumerate(said.table) for one in expanded(source, i, t, figures_of, folder)]
    for name, formula in said.formulas.items():
        if wrong := formula.fault():
            raise source.wrong(("formulas", name, wrong[0]), wrong[1])
    study = Study(
        name=folder.name,
        title=said.study.title,
        paper=said.study.paper,
        note=said.study.note.strip(),
        settings=said.study.settings,
        tables=tuple(table for _, table in tables),
        figures=figures_of,
        formulas={**Source.read(FORMULAS).checked(Shared).formulas, **said.formulas},
    )
    _unique(source, ("table",), "name", [t.name for t in study.tables])
    for i, t in tables:
        _unique(source, ("table", i, "columns"), "key", [c.key for c in t.columns])
        if t.rows_from is None:
            _unique(source, ("table", i, "rows"), "key", [r.key for r in t.rows])
        for n, c in enumerate(t.columns):
            _check_formula(study, source, ("table", i, "columns", n), c)
        keys = [c.key for c in t.columns]
        for n, r in enumerate(t.rows):
            for m, key in enumerate(r.columns or ()):
                if key not in keys:
                    place = ("table", i, "rows", n, "columns", m)
                    raise source.wrong(place, f"is {key!r}{did_you_mean(key, keys)}; the table has {', '.join(keys)}")
            for c in (c for c in t.columns if r.columns is None or c.key in r.columns):
                _check_cell(study, source, figures.shown, ("table", i), t, r, c)
    return study


def folders(folder: Path) -> dict[str, dict[str, Any]]:
    """Figures that stand in folders of a study, by the folder's and the file's name; a machine's file holds none."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.glob("*/*.toml")):
        if path.parent.name != "machines":
            found.setdefault(path.parent.name, {})[path.stem] = Source.read(path).table
    return found


def expanded(source: Source, i: int, table: Table, figures: Mapping[str, Any], folder: Path) -> list[tuple[int, Table]]:
    """A table as often as it stands there, with its rows, and its number in the file."""
    place = ("table", i)
    if bool(table.rows) == (table.rows_from is not None):
        raise source.wrong(place, "needs either `rows` or `rows_from`")
    if table.for_each is None:
        return [(i, _filled(source, place, table, figures, ""))]
    files = figures.get(table.for_each)
    if not isinstance(files, Mapping) or not (folder / table.for_each).is_dir():
        raise source.wrong(
            (*place, "for_each"), f"is {table.for_each!r}: the study has no such folder with .toml files in it"
        )
    found = []
    for each in files:
        columns = tuple(
            msgspec.structs.replace(c, of=tuple(of.replace(EACH, each) for of in c.of)) for c in table.columns
        )
        rows = tuple(
            msgspec.structs.replace(r, figures=None if r.figures is None else r.figures.replace(EACH, each))
            for r in table.rows
        )
        title = table.title.replace(EACH, each)
        one = msgspec.structs.replace(table, name=f"{table.name}-{each}", title=title, columns=columns, rows=rows)
        found.append((i, _filled(source, place, one, figures, f"{table.for_each}.{each}")))
    return found


def _filled(source: Source, place: Place, table: Table, figures: Mapping[str, Any], below: str) -> Table:
    """A table with the rows that its figures are."""
    if table.rows_from is None:
        return table
    path = join(below, table.rows_from) if below else table.rows_from
    entries: Any = figures
    for part in path.split("."):
        entries = entries.get(part) if isinstance(entries, Mapping) else None
    if not isinstance(entries, Mapping):
        raise source.wrong((*place, "rows_from"), f"is {table.rows_from!r}: the figures have no table {path!r}")
    rows = []
    for name, entry in entries.items():
        if isinstance(entry, Mapping) and all(entry.get(key) == wanted for key, wanted in table.where.items()):
            try:
                settings = msgspec.convert(entry.get("settings", {}), Settings)
            except msgspec.ValidationError as error:
                raise source.wrong((*place, "rows_from"), f"of {path}.{name}: settings: {error}") from None
            rows.append(Row(key=name, label=name, figures=f"{path}.{name}", settings=settings))
    if not rows:
        raise source.wrong((*place, "where"), f"leaves no entry of {path!r}")
    return msgspec.structs.replace(table, rows=tuple(rows))


def _unique(source: Source, place: Place, key: str, names: Sequence[str]) -> None:
    if twice := next((n for n, name in enumerate(names) if name in names[:n]), None):
        raise source.wrong((*place, twice, key), f"is {names[twice]!r}, and so is another's; rename one")


def _check_formula(study: Study, source: Source, place: Place, column: Column) -> None:
    if (column.measure is None) == (column.formula is None):
        raise source.wrong(place, "needs either `measure` or `formula`")
    if (name := column.formula) is None:
        return
    if name not in study.formulas:
        hint = did_you_mean(name, study.formulas)
        raise source.wrong(
            (*place, "formula"),
            f"is {name!r}{hint}; there are {', '.join(study.formulas)}; a new one goes into a table [formulas]",
        )
    if wrong := study.formulas[name].complaint(column.of, column.constants):
        raise source.wrong((*place, wrong[0]), wrong[1])


def _check_cell(
    study: Study, source: Source, figures: str, place: Place, table: Table, row: Row, column: Column
) -> None:
    """What only the whole can tell: figures, settings and cells that must exist."""
    in_row = (*place, "rows_from") if table.rows_from is not None else (*place, "rows", table.rows.index(row))
    asked = study.asked(table, row, column)
    missing = {"cipher", "on"} - asked.keys()
    if column.formula is None and missing and "hardware" not in asked:
        what = "machine (on)" if "on" in missing else "cipher"
        raise source.wrong(in_row, f"nothing says which {what} column {column.key!r} has; add it to `settings`")
    try:
        study.figure(row, column)
    except LookupError as error:
        wanted = f"{figures} has no {error.args[0]}, which column {column.key!r} has"
        raise source.wrong(in_row if table.rows_from is not None else (*in_row, "figures"), wanted) from None
    for n, reference in enumerate(column.of):
        if not cells_of(study, table, row, reference):
            at = (*place, "columns", table.columns.index(column), "of", n)
            raise source.wrong(at, f"is {reference!r}, and there is no such cell for row {row.key!r}")


def cells_of(study: Study, table: Table, row: Row, reference: str) -> list[tuple[Table, Row, Column]]:
    """The cells that a reference means: ``column`` (of the same row),
    ``row/column`` or ``table/row/column``; ``{row}`` in it is the row's own
    key, and ``*`` as the row means every row. With `RATIO` behind it their ratios are meant."""
    parts = reference.removesuffix(RATIO).replace("{row}", row.key).split("/")
    where = table if len(parts) < 3 else next((t for t in study.tables if t.name == parts[0]), None)
    if where is None or len(parts) > 3:
        return []
    wanted = row.key if len(parts) == 1 else parts[-2]
    return [(where, r, c) for r, c in where.cells() if c.key == parts[-1] and wanted in ("*", r.key)]


def lookup(figures: Mapping[str, Any], path: str) -> float:
    """A figure by its dotted path. Raises LookupError with what is missing."""
    found: Any = figures
    for part in path.split("."):
        if not isinstance(found, Mapping) or part not in found:
            raise LookupError(f"figure {path!r}")
        found = found[part]
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        raise LookupError(f"number at {path!r}")
    return found


def join(path: str, more: str) -> str:
    return f"{path}.{more}" if more else path
