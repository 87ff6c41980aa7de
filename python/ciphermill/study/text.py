"""Studies as text for people: tables that fit 80 columns, or the terminal there is.

A table wider than that is cut into several below each other, each with the
rows' names. On a terminal they are drawn by rich, otherwise plain.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..tables import columns, room
from .layout import Column, Row, Table
from .results import Cell, Result

if TYPE_CHECKING:
    from rich.table import Table as Grid

#: A paragraph, or a table: its heads and its rows.
Piece = str | tuple[list[str], list[list[str]]]

WIDTH = 80


def show(results: list[Result]) -> None:
    """Print studies to standard output."""
    if not sys.stdout.isatty():
        print("\n\n".join(text(result) for result in results))
        return
    # Rich is imported where it draws: the text of a pipe needs none of it.
    from rich.console import Console

    console = Console(width=room(WIDTH), highlight=False)
    if console.no_color:
        # Nor bold: NO_COLOR leaves no escapes in any other command's tables either.
        console = Console(width=room(WIDTH), highlight=False, color_system=None)
    for result in results:
        for piece in pieces(result):
            console.print(drawn(*piece) if isinstance(piece, tuple) else piece, markup=False)
            console.print()


def text(result: Result) -> str:
    """A study, plain."""
    return "\n\n".join(plain(*p) if isinstance(p, tuple) else p for p in pieces(result))


def pieces(result: Result) -> list[Piece]:
    """Paragraphs (str) and tables (heads, rows) in the order of printing."""
    study = result.study
    out: list[Piece] = [wrapped(sentence(result)), f"{study.title}\n{wrapped(study.paper)}"]
    if study.note:
        out.append(wrapped(study.note))
    for table in study.tables:
        head = f"{table.title}\n{'=' * len(table.title)}"
        out.append(f"{head}\n{wrapped(table.note)}" if table.note.strip() else head)
        out += grids(result, table)
        out += remarks(result, table)
    return out


def sentence(result: Result) -> str:
    """How far ours and the paper's figures are apart, in words."""
    cells = [cell for cell in result.cells.values() if cell.paper is not None]
    ratios = sorted(((cell.ratio, cell) for cell in cells if cell.ratio), key=lambda pair: pair[0])
    open_ = sum(cell.ours is None for cell in cells)
    rest = f"; {open_} figures of the paper have none of ours beside them, each says why" if open_ else ""
    if not ratios:
        return f"{result.study.name}: no figure of ours can be compared with the paper's{rest}."
    near = sum(1 / 1.1 <= ratio <= 1.1 for ratio, _ in ratios)
    (least, low), (most, high) = ratios[0], ratios[-1]
    return (
        f"{result.study.name}: {near} of {len(ratios)} figures of ours are within 10 % of the paper's; ours over the paper's is "
        f"between {least:.2f} ({low.row.label}, {low.column.label}) and {most:.2f} ({high.row.label}, {high.column.label}){rest}."
    )


def grids(result: Result, table: Table) -> list[tuple[list[str], list[list[str]]]]:
    """A table as one or more grids: for each column paper, ours and their
    ratio in one cell."""
    cells = {(cell.row.key, cell.column.key): cell for cell in result.of(table)}
    means = result.summary(table)
    label = max(len(row.label) for row in table.rows)
    label = max(label, len("geometric mean") if means else 0)
    groups = [group(column, table.rows, cells, means) for column in table.columns]
    out, start = [], 0
    while start < len(groups):
        end, width = start, label
        while end < len(groups) and (end == start or width + 2 + len(groups[end][0]) <= room(WIDTH)):
            width += 2 + len(groups[end][0])
            end += 1
        chosen = groups[start:end]
        # Two lines of heads: what the column is, and what stands in its cells.
        heads = ["", *(f"{column.label}, {column.unit}" for column in table.columns[start:end])]
        names = [[""] + [lines[0] for lines in chosen]]
        last = ["geometric mean"] if means else []
        rows = [
            [name, *(lines[i + 1] for lines in chosen)]
            for i, name in enumerate([*(r.label for r in table.rows), *last])
        ]
        rows = [row for row in rows if any(cell.strip() for cell in row[1:])]
        out.append((heads, names + rows))
        start = end
    return out


def group(
    column: Column, rows: tuple[Row, ...], cells: Mapping[tuple[str, str], Cell], means: dict[str, float]
) -> list[str]:
    """The head and the cells of a column, all of one width."""
    triples = [("paper", "ours", "o/p")]
    for row in rows:
        cell = cells.get((row.key, column.key))
        triples.append(("", "", "") if cell is None else (
            number(cell.paper, "-"), number(cell.ours, "?"), "" if cell.ratio is None else f"{cell.ratio:.2f}"
        ))  # fmt: skip
    if means:
        triples.append(("", "", f"{means[column.key]:.2f}" if column.key in means else ""))
    widths = [max(len(triple[i]) for triple in triples) for i in range(3)]
    least = len(f"{column.label}, {column.unit}")
    lines = ["  ".join(part.rjust(w) for part, w in zip(triple, widths, strict=True)) for triple in triples]
    return [line.ljust(least) for line in lines]


def remarks(result: Result, table: Table) -> list[str]:
    """What is missing and why, and how many blocks were carried together."""
    out = []
    reasons: dict[str, list[str]] = {}
    for cell in result.of(table):
        if cell.ours is None and cell.missing:
            labels = reasons.setdefault(cell.missing, [])
            if cell.column.label not in labels:
                labels.append(cell.column.label)
    out += [wrapped(f"? {', '.join(labels)}: {reason}") for reason, labels in reasons.items()]
    jammed: dict[str, None] = {}
    for cell in result.of(table):
        if (jam := cell.settings.get("jam", 1)) != 1 and cell.column.formula is None:
            jammed.setdefault(f"{cell.row.label} {jam}", None)
    if jammed:
        out.append(wrapped(f"Blocks carried through the code together: {', '.join(jammed)}."))
    return ["\n".join(out)] if out else []


def number(value: float | None, none: str) -> str:
    """Four digits that count, and no more decimals than are there."""
    if value is None:
        return none
    if value == round(value) or abs(value) >= 1000:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def wrapped(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), room(WIDTH))


def plain(heads: list[str], rows: list[list[str]]) -> str:
    lines = columns(heads, rows).splitlines()
    # The rule below both lines of heads.
    lines[1], lines[2] = lines[2], lines[1]
    return "\n".join(lines)


def drawn(heads: list[str], rows: list[list[str]]) -> Grid:
    """The same for a terminal."""
    from rich import box
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for head, names in zip(heads, rows[0], strict=True):
        grid.add_column(Text(f"{head}\n{names}"), no_wrap=True)
    for row in rows[1:]:
        grid.add_row(*map(Text, row))
    return grid
