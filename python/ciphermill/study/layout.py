"""The files of a study, read and checked.

What is wrong in a file is an InputError that names the file, the table and the
row or column in it. What is right but cannot be measured (a machine that is
not there yet) is no matter of the layout: it becomes a cell that says so.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from .. import paths
from .._core import InputError
from ..suggest import did_you_mean
from . import formulas

#: What a cell may say about its measurement: the options of ``ciphermill run``,
#: or a unit of ``rtl/units.toml`` that is synthesised instead.
SETTINGS: dict[str, type | tuple[type, ...]] = {
    "cipher": str, "on": str, "variant": str, "direction": str, "key_bits": int, "blocks": str, "bytes": int,
    "jam": int, "unroll": bool, "aligned": bool, "optimise": str, "static": bool,
    "with": list, "without": list, "set": list, "optimal": bool, "fresh": bool, "hardware": str,
}  # fmt: skip


@dataclass(frozen=True)
class Column:
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
    times: float = 1
    formula: str | None = None
    of: tuple[str, ...] = ()
    constants: Mapping[str, float] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    #: Whether the geometric mean of ours/paper over its rows means something.
    summary: bool = False


@dataclass(frozen=True)
class Row:
    key: str
    label: str
    #: Dotted path into the figures.
    figures: str | None = None
    #: Instead of the columns'.
    measure: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    #: Keys of the columns it has; None: all.
    columns: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Table:
    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    note: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)

    def cells(self) -> Iterator[tuple[Row, Column]]:
        """Row by row."""
        for row in self.rows:
            for column in self.columns:
                if row.columns is None or column.key in row.columns:
                    yield row, column


@dataclass(frozen=True)
class Study:
    name: str
    title: str
    paper: str
    note: str
    settings: Mapping[str, Any]
    tables: tuple[Table, ...]
    figures: Mapping[str, Any]

    def asked(self, table: Table, row: Row, column: Column) -> dict[str, Any]:
        """What a measured cell asks for: the study's settings, overruled by
        the table's, the row's and the column's."""
        return {**self.settings, **table.settings, **row.settings, **column.settings}

    def work(self) -> list[dict[str, Any]]:
        """The settings of all measured cells, each once, in order."""
        found = []
        for table in self.tables:
            for row, column in table.cells():
                if column.formula is None and (asked := self.asked(table, row, column)) not in found:
                    found.append(asked)
        return found

    def figure(self, row: Row, column: Column) -> float | None:
        """The paper's figure, if it has one."""
        if row.figures is None or column.figure is None:
            return None
        return lookup(self.figures, join(row.figures, column.figure))


def names() -> list[str]:
    return sorted(path.parent.name for path in paths.STUDIES.glob("*/study.toml"))


@cache
def load(folder: Path) -> Study:
    """Read a study's folder. Raises InputError when something in it is wrong."""
    place = paths.shown(folder / "study.toml")
    content, figures = read(folder / "study.toml"), read(folder / "figures.toml")
    take(content, place, "the file", {"study": dict, "table": list}, {"study", "table"})
    head = content["study"]
    take(head, place, "[study]", {"title": str, "paper": str, "note": str, "settings": dict}, {"title", "paper"})
    study = Study(
        name=folder.name,
        title=head["title"],
        paper=head["paper"],
        note=head.get("note", "").strip(),
        settings=settings(head, place, "[study]"),
        tables=tuple(table(t, place, i) for i, t in enumerate(content["table"])),
        figures=figures,
    )
    check(study, place, paths.shown(folder / "figures.toml"))
    return study


def table(content: Any, place: str, index: int) -> Table:
    where = f"table {content['name']!r}" if isinstance(content, dict) and "name" in content else f"table {index + 1}"
    known = {"name": str, "title": str, "note": str, "settings": dict, "columns": list, "rows": list}
    take(content, place, where, known, {"name", "title", "columns", "rows"})
    return Table(
        name=content["name"],
        title=content["title"],
        note=content.get("note", "").strip(),
        settings=settings(content, place, where),
        columns=tuple(column(c, place, f"{where}, column {i + 1}") for i, c in enumerate(content["columns"])),
        rows=tuple(row(r, place, f"{where}, row {i + 1}") for i, r in enumerate(content["rows"])),
    )


def column(content: Any, place: str, where: str) -> Column:
    known = {
        "key": str, "label": str, "unit": str, "figure": str, "quoted": bool, "measure": str, "times": (int, float),
        "formula": str, "of": list, "constants": dict, "settings": dict, "summary": bool,
    }  # fmt: skip
    take(content, place, where, known, {"key", "label", "unit"})
    where = f"{where} ({content['key']})"
    if ("measure" in content) == ("formula" in content):
        raise InputError(f"{place}: {where}: it needs either `measure` or `formula`")
    constants = content.get("constants", {})
    if name := content.get("formula"):
        if name not in formulas.ALL:
            known_names = ", ".join(formulas.ALL)
            raise InputError(
                f"{place}: {where}: no formula {name!r}{did_you_mean(name, formulas.ALL)}; there are {known_names}"
            )
        if wrong := formulas.ALL[name].complaint(content.get("of", []), constants):
            raise InputError(f"{place}: {where}: {wrong}")
    return Column(**{**content, "of": tuple(content.get("of", ())), "settings": settings(content, place, where)})


def row(content: Any, place: str, where: str) -> Row:
    known = {"key": str, "label": str, "figures": str, "measure": str, "settings": dict, "columns": list}
    take(content, place, where, known, {"key", "label"})
    where = f"{where} ({content['key']})"
    columns = tuple(content["columns"]) if "columns" in content else None
    return Row(**{**content, "columns": columns, "settings": settings(content, place, where)})


def settings(content: Mapping[str, Any], place: str, where: str) -> dict[str, Any]:
    found: dict[str, Any] = content.get("settings", {})
    take(found, place, f"{where}, settings", SETTINGS, set())
    return found


def check(study: Study, place: str, figures: str) -> None:
    """What only the whole can tell: names that must be unique, figures and cells that must exist."""
    for what, keys in [("table", [t.name for t in study.tables])] + [
        (f"{kind} of table {t.name!r}", [part.key for part in parts])
        for t in study.tables
        for kind, parts in (("row", t.rows), ("column", t.columns))
    ]:
        if twice := next((key for key in keys if keys.count(key) > 1), None):
            raise InputError(
                f"{place}: two {what.replace(' ', 's ', 1) if ' ' in what else what + 's'} are called {twice!r}; rename one"
            )
    for t in study.tables:
        there = {c.key for c in t.columns}
        for r in t.rows:
            if r.columns is not None and (odd := set(r.columns) - there):
                raise InputError(
                    f"{place}: table {t.name!r}, row {r.key!r}: no column {sorted(odd)[0]!r} in this table"
                )
        for r, c in t.cells():
            where = f"table {t.name!r}, row {r.key!r}, column {c.key!r}"
            if c.formula is None:
                asked = study.asked(t, r, c)
                missing = {"cipher", "on"} - asked.keys()
                if missing and "hardware" not in asked:
                    raise InputError(
                        f"{place}: {where}: nothing says which {'machine (on)' if 'on' in missing else 'cipher'}; add it to `settings`"
                    )
            try:
                study.figure(r, c)
            except LookupError as error:
                raise InputError(f"{place}: {where}: {figures} has no {error.args[0]}") from None
            for reference in c.of:
                if not cells_of(study, t, r, reference):
                    raise InputError(f"{place}: {where}: `of` names {reference!r}, and there is no such cell")


def cells_of(study: Study, table: Table, row: Row, reference: str) -> list[tuple[Table, Row, Column]]:
    """The cells that a reference means: ``column`` (of the same row),
    ``row/column`` or ``table/row/column``; ``{row}`` in it is the row's own
    key, and ``*`` as the row means every row."""
    parts = reference.replace("{row}", row.key).split("/")
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


def read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise InputError(f"{paths.shown(path)}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{paths.shown(path)}: not TOML: {error}") from None


def take(content: Any, place: str, where: str, known: Mapping[str, Any], required: set[str]) -> None:
    """Check a table's keys and the types of their values."""
    if not isinstance(content, Mapping):
        raise InputError(f"{place}: {where}: it must be a table")
    for key, value in content.items():
        if key not in known:
            raise InputError(
                f"{place}: {where}: no key {key!r} here{did_you_mean(key, known)}; there are {', '.join(known)}"
            )
        # A truth value is a number to Python, and to no one else.
        if not isinstance(value, known[key]) or (isinstance(value, bool) and known[key] is not bool):
            raise InputError(f"{place}: {where}: {key} = {value!r} is of the wrong type")
    if missing := sorted(required - content.keys()):
        raise InputError(f"{place}: {where}: {missing[0]!r} is missing")
