"""What a study's author says of its outcome, with the figures as they are today.

The texts of ``report.toml`` are Jinja templates. What they say of a figure they
ask the cells for, so that after a change they say what is true then: a sentence
stands in an ``{% if %}`` with the condition under which it holds. Cells are named
``table/row/column``; ``*`` stands for any row or column. How a text is written:
``docs/studies.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Any

from .._core import InputError
from ..study.results import Cell, Result
from . import numbers

#: A ratio so near to 1 counts as agreement.
NEAR = 0.1


def said(text: str, result: Result, where: str) -> str:
    """A text of a study with its figures filled in.

    Raises InputError that names ``where`` when the text is no template, or asks
    for cells that the study does not have.
    """
    # Optional: without it the rest of the package still imports this file.
    import jinja2
    from jinja2.sandbox import SandboxedEnvironment

    environment = SandboxedEnvironment(undefined=jinja2.StrictUndefined)
    environment.filters |= {
        "figure": numbers.figure,
        "ratio": numbers.ratio,
        "names": names,
        "share": share,
        "times": times,
    }
    try:
        filled = environment.from_string(text).render(asking(result))
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    except (jinja2.TemplateError, TypeError, ValueError, ArithmeticError) as error:
        raise InputError(f"{where}: {error}; texts are Jinja templates, docs/studies.md") from None
    return " ".join(filled.split())


def asking(result: Result) -> dict[str, Callable[..., Any]]:
    """What a text may ask for."""

    def cells(*patterns: str) -> list[Cell]:
        """The cells of these names in the order of the tables."""
        for pattern in patterns:
            if not any(fnmatchcase("/".join(place), pattern) for place in result.cells):
                raise InputError(f"the study has no cell {pattern!r}; cells are named table/row/column")
        return [cell for place, cell in result.cells.items() if any(fnmatchcase("/".join(place), p) for p in patterns)]

    def one(name: str) -> Cell:
        found = cells(name)
        if len(found) != 1:
            raise InputError(f"{name!r} names {len(found)} cells where one is asked for")
        return found[0]

    return {
        "cells": cells,
        "ours": lambda name: one(name).ours,
        "paper": lambda name: one(name).paper,
        "ratio": lambda name: one(name).ratio,
        "setting": lambda name, setting: one(name).settings.get(setting),
        "measured": lambda name, *path: reached(one(name), path),
        "there": lambda *patterns: all(cell.ours is not None for cell in cells(*patterns)),
        "compared": lambda *patterns: [cell for cell in cells(*patterns) if cell.ratio],
        "near": lambda some, within=NEAR: [c for c in some if c.ratio and 1 / (1 + within) <= c.ratio <= 1 + within],
        "above": lambda some, than=1 + NEAR: [c for c in some if c.ratio and c.ratio > than],
        "below": lambda some, than=1 / (1 + NEAR): [c for c in some if c.ratio and c.ratio < than],
        "least": lambda some: min((c for c in some if c.ratio), key=lambda c: c.ratio),
        "most": lambda some: max((c for c in some if c.ratio), key=lambda c: c.ratio),
    }


def reached(cell: Cell, path: Sequence[str]) -> Any:
    """A value below a cell's measurement; None when there is none."""
    found: Any = cell.measurement
    for part in path:
        found = found.get(part) if hasattr(found, "get") else None
    return found


def names(some: Sequence[Cell | str], what: str = "row") -> str:
    """``first, second and third``: the labels of rows (or of columns, or of both), each once."""
    each = [
        cell if isinstance(cell, str) else
        {"row": cell.row.label, "column": cell.column.label, "both": f"{cell.row.label}, {cell.column.label}"}[what]
        for cell in some
    ]  # fmt: skip
    each = list(dict.fromkeys(each))
    between = "; " if any("," in name for name in each) else ", "
    return each[0] if len(each) == 1 else f"{between.join(each[:-1])} and {each[-1]}" if each else "none"


def share(value: float) -> str:
    return f"{100 * value:.0f} %"


def times(value: float) -> str:
    return f"{value:.2f} times"
