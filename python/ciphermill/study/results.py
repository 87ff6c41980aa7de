"""The paper's figures and ours, cell by cell.

A measured cell is a value of one measurement, a derived one a formula over
other cells, worked out for the paper and for us alike. Where we have nothing,
the cell says why. In formulas a figure that the paper itself quotes from
elsewhere stands in for ours as long as we cannot measure it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .._core import InputError
from ..measurement import Measurement
from .formulas import Formula
from .layout import RATIO, Column, Row, Study, Table, cells_of
from .measure import Answers, Missing, key

#: The names of a table, a row and a column.
Place = tuple[str, str, str]

#: What of a measurement says how ours came to be.
SETTINGS = ("cipher", "variant", "direction", "key_bits", "bytes", "machine", "with", "without", "set", "clock_mhz",
            "blocks", "jam", "unroll", "aligned", "optimise", "static")  # fmt: skip


@dataclass
class Cell:
    row: Row
    column: Column
    paper: float | None
    #: ``published``, ``quoted`` or ``derived``; None when the paper has no figure.
    paper_kind: str | None
    ours: float | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)
    verified: bool | None = None
    #: Why there is no figure of ours.
    missing: str | None = None
    #: An error of ours.
    fault: str | None = None
    #: What was asked for and what came of it, where one measurement gave the value.
    asked: Mapping[str, Any] | None = None
    measurement: Measurement | None = None
    formula: Formula | None = None

    @property
    def ratio(self) -> float | None:
        """ours/paper, where that means something."""
        if self.ours is None or not self.paper or (self.formula and not self.formula.comparable):
            return None
        return self.ours / self.paper

    def to_dict(self) -> dict[str, Any]:
        return {
            "label": f"{self.row.label}, {self.column.label}",
            "row": self.row.key,
            "column": self.column.key,
            "paper": self.paper,
            "ours": self.ours,
            "ratio": self.ratio,
            "unit": self.column.unit,
            "paper_provenance": self.paper_kind,
            "settings": self.settings,
            "provenance": self.provenance,
            "verified": self.verified,
            "missing": self.missing,
        }


@dataclass
class Result:
    """A study with its cells filled in, by (table, row, column)."""

    study: Study
    cells: dict[Place, Cell]

    def of(self, table: Table) -> list[Cell]:
        return [self.cells[table.name, row.key, column.key] for row, column in table.cells()]

    def summary(self, table: Table) -> dict[str, float]:
        """The geometric mean of ours/paper of each column that has one."""
        means = {}
        for column in (c for c in table.columns if c.summary):
            ratios = [cell.ratio or 0 for cell in self.of(table) if cell.column is column]
            if ratios and all(ratio > 0 for ratio in ratios):
                means[column.key] = math.exp(math.fsum(map(math.log, ratios)) / len(ratios))
        return means

    def faults(self) -> list[str]:
        """Errors of ours, each once."""
        return list(dict.fromkeys(cell.fault for cell in self.cells.values() if cell.fault))

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.study.name,
            "title": self.study.title,
            "paper": self.study.paper,
            "note": self.study.note,
            "tables": [
                {
                    "name": table.name,
                    "title": table.title,
                    "note": table.note.strip(),
                    "rows": [cell.to_dict() for cell in self.of(table)],
                    "geometric_mean": self.summary(table),
                }
                for table in self.study.tables
            ],
        }


def solve(study: Study, answers: Answers) -> Result:
    """Fill in every cell."""
    result = Result(study, {})
    for table in study.tables:
        for row, column in table.cells():
            _cell(result, answers, table, row, column, ())
    return result


def _cell(result: Result, answers: Answers, table: Table, row: Row, column: Column, above: tuple[Place, ...]) -> Cell:
    place = (table.name, row.key, column.key)
    if place in above:
        raise InputError(f"study {result.study.name}: the cell {'/'.join(place)} is derived from itself")
    if place not in result.cells:
        figure = result.study.figure(row, column)
        kind = None if figure is None else "quoted" if column.quoted else "published"
        cell = Cell(row, column, figure, kind)
        if column.formula is None:
            asked = result.study.asked(table, row, column)
            _measured(cell, answers[key(asked)], asked)
        else:
            formula = cell.formula = result.study.formulas[column.formula]
            _derived(cell, formula, _inputs(result, answers, table, row, column, (*above, place)))
        result.cells[place] = cell
    return result.cells[place]


def _measured(cell: Cell, answer: Measurement | Missing, asked: Mapping[str, Any]) -> None:
    """Take a cell's value from a measurement."""
    if isinstance(answer, Missing):
        cell.settings = dict(asked)
        cell.missing = answer.reason
        cell.fault = answer.reason if answer.fault else None
        if cell.paper_kind == "quoted":
            cell.provenance = {"kind": "quoted"}
        return
    cell.settings = {name: answer[name] for name in SETTINGS if name in answer} or dict(asked)
    cell.provenance = dict(answer.provenance)
    cell.verified = answer.verified
    cell.asked, cell.measurement = asked, answer
    if not answer.verified:
        cell.missing = f"not verified: {answer.failure}"
        cell.fault = f"{answer.cipher}/{answer.variant} {answer.direction} on {answer.machine}: {cell.missing}"
        return
    path = cell.row.measure or cell.column.measure or ""
    value = pick(answer, path)
    if value is None:
        cell.missing = f"the machine has no {path}"
    else:
        part = answer["block_bytes"] / answer["bytes"] if cell.column.per_block else 1
        cell.ours = value * part * cell.column.times


def pick(measurement: Mapping[str, Any], path: str) -> float | None:
    """A number by its dotted path. Raises InputError when there is none of that name."""
    found: Any = measurement
    for part in path.split("."):
        if isinstance(found, Mapping) and part in found:
            found = found[part]
        elif isinstance(found, list) and part.isdecimal():
            found = found[int(part)] if int(part) < len(found) else None
        else:
            raise InputError(f'`measure = "{path}"`: a measurement has no such value; see ciphermill run --json')
    if found is not None and (isinstance(found, bool) or not isinstance(found, (int, float))):
        raise InputError(f'`measure = "{path}"`: that is no number')
    return found


def _inputs(
    result: Result, answers: Answers, table: Table, row: Row, column: Column, above: tuple[Place, ...]
) -> list[Cell | list[Cell]]:
    """The cells a formula works on: one, or a list for a whole column."""
    found: list[Cell | list[Cell]] = []
    for reference in column.of:
        cells = [_cell(result, answers, t, r, c, above) for t, r, c in cells_of(result.study, table, row, reference)]
        if reference.endswith(RATIO):
            cells = [_ratio(cell) for cell in cells]
        found.append(cells if "*" in reference else cells[0])
    return found


def _ratio(cell: Cell) -> Cell:
    """A cell whose value is another's ratio; the paper has none."""
    missing = (
        cell.missing if cell.ours is None else None if cell.ratio is not None else "there is no figure to compare with"
    )
    return replace(cell, paper=None, paper_kind=None, ours=cell.ratio, missing=missing)


def _derived(cell: Cell, formula: Formula, inputs: list[Cell | list[Cell]]) -> None:
    """Apply a column's formula to the paper's figures, where it prints none
    itself, and to ours."""
    column = cell.column
    flat = [c for group in inputs for c in (group if isinstance(group, list) else [group])]

    def apply(value: Callable[[Cell], float | None]) -> float | None:
        of = {id(c): v for c in flat if (v := value(c)) is not None}
        if any(id(c) not in of for c in flat):
            return None
        values = [[of[id(c)] for c in group] if isinstance(group, list) else of[id(group)] for group in inputs]
        try:
            return formula.value(values, column.constants)
        except (ArithmeticError, ValueError, TypeError):
            return None

    if cell.paper is None:
        cell.paper = apply(lambda c: c.paper)
        cell.paper_kind = None if cell.paper is None else "derived"
    stand_ins = [c for c in flat if c.ours is None and c.column.quoted]
    cell.ours = apply(lambda c: c.paper if c in stand_ins else c.ours)
    lacking = [c for c in flat if c.ours is None and c not in stand_ins]
    if cell.ours is None:
        cell.missing = lacking[0].missing if lacking else "the formula has no value here"
    settings = [c.settings for c in flat if c.ours is not None]
    if settings and all(s == settings[0] for s in settings):
        cell.settings = settings[0]
    cell.provenance = {
        "kind": "derived",
        "formula": column.formula,
        "of": list(column.of),
        "constants": dict(column.constants),
    }
    if stand_ins:
        cell.provenance["quoted"] = sorted({c.column.label for c in stand_ins})
