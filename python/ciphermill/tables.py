"""Tables: on a terminal, in a pipe, and as data.

What a command has to tell as rows goes through here. On a terminal rich draws
it, no wider than the window: where all of it would not fit, columns that say
the same in every row move into one line above, then the columns that matter
least go. In a pipe it is plain text in aligned columns, whole. As data it is
CSV or Parquet with one flat column for each value.

Nothing here knows what the rows mean.
"""

from __future__ import annotations

import csv as writer
import io
import json
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import paths
from ._core import InputError

if TYPE_CHECKING:
    from pandas import DataFrame as PandasFrame
    from polars import DataFrame as PolarsFrame

Rows = Sequence[Sequence[str]]


def text(head: Sequence[str], rows: Rows, right: Iterable[int] = (), drop: Sequence[int] = ()) -> str:
    """A table as text for standard output, as it is now: drawn for a terminal, plain otherwise.

    ``right`` are the columns set to the right; ``drop`` the ones that may be
    left out of a narrow terminal, the first of them first.
    """
    if not sys.stdout.isatty():
        return columns(head, rows, tuple(right))
    # Rich is imported where it draws: the text of a pipe needs none of it.
    from rich.console import Console

    console = Console(highlight=False)
    colour = console.color_system is not None and not console.no_color
    return drawn(head, rows, right, drop, console.width, colour)


def room(plain: int) -> int:
    """The columns there are: those of the terminal, or ``plain`` where there is none."""
    if not sys.stdout.isatty():
        return plain
    return max(40, shutil.get_terminal_size((plain, 24)).columns)


def folded(text: str, width: int) -> str:
    """Text with its long lines broken between words; a fact's value (``  name   value``) stays in its column."""
    lines = []
    for line in text.split("\n"):
        # What carries escapes was drawn to fit.
        if len(line) <= width or "\x1b" in line:
            lines.append(line)
            continue
        fact = re.match(r" *\S+(?: \S+){0,3}  +", line)
        column = len(fact[0]) if fact and len(fact[0]) < width // 2 else len(line) - len(line.lstrip())
        after = " " * column
        lines += textwrap.wrap(
            line,
            width,
            subsequent_indent=after,
            replace_whitespace=False,
            break_long_words=False,
            break_on_hyphens=False,
        )
    return "\n".join(lines)


def drawn(head: Sequence[str], rows: Rows, right: Iterable[int], drop: Sequence[int], width: int, colour: bool) -> str:
    """A table no wider than ``width``, drawn by rich."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    kept, above = fitted(head, rows, drop, width)
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for i in kept:
        # Figures are never cut; names and sentences fold.
        figure = i in set(right)
        grid.add_column(Text(head[i]), justify="right" if figure else "left", no_wrap=figure, overflow="fold")
    for row in rows:
        grid.add_row(*(Text(row[i], style="bold red" if row[i] in ALARMS else "") for i in kept))
    console = Console(
        width=width,
        highlight=False,
        force_terminal=colour,
        no_color=not colour,
        color_system="standard" if colour else None,
    )
    with console.capture() as capture:
        if above:
            console.print(Text(above))
        console.print(grid)
    return "\n".join(line.rstrip() for line in capture.get().splitlines()).strip("\n")


#: Cells that must not be overlooked.
ALARMS = ("NO", "WORSE", "WRONG")


def fitted(head: Sequence[str], rows: Rows, drop: Sequence[int], width: int) -> tuple[list[int], str]:
    """The columns that fit, and a line with what was the same in all rows of others."""
    kept = list(range(len(head)))
    widths = [max(len(row[i]) for row in (head, *rows)) for i in kept]

    def fits() -> bool:
        return sum(widths[i] + 2 for i in kept) - 2 <= width

    constant = []
    for i in list(kept):
        if not fits() and len(rows) > 1 and len({row[i] for row in rows}) == 1 and len(kept) > 2:
            kept.remove(i)
            if rows[0][i]:
                constant.append(f"{head[i]}: {rows[0][i]}" if head[i] else rows[0][i])
    left_out = []
    for i in drop:
        if not fits() and i in kept:
            kept.remove(i)
            left_out.append(head[i])
    lines = []
    if constant:
        lines.append(f"In every row {', '.join(constant)}.")
    if left_out:
        lines.append(f"A wider window also shows: {', '.join(left_out)}.")
    return kept, "\n".join(lines)


def columns(head: Sequence[str], rows: Rows, right: Sequence[int] = ()) -> str:
    """Rows in aligned columns below a headline; those in ``right`` to the right."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]

    def line(row: Sequence[str]) -> str:
        cells = [
            cell.rjust(w) if i in right else cell.ljust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        return "  ".join(cells).rstrip()

    return "\n".join([line(head), "  ".join("-" * w for w in widths), *(line(row) for row in rows)])


def flat(record: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A nested record as one row: ``{"bounds": {"lower": 3}}`` becomes ``{"bounds.lower": 3}``.

    A list of plain values becomes one text with commas; a list of records,
    which is a table of its own, becomes JSON.
    """
    row: dict[str, Any] = {}
    for key, value in record.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            row |= flat(value, f"{name}.")
        elif isinstance(value, (list, tuple)):
            plain = all(not isinstance(item, (Mapping, list, tuple)) for item in value)
            row[name] = ",".join(map(str, value)) if plain else json.dumps(value)
        else:
            row[name] = value
    return row


def flattened(records: Iterable[Mapping[str, Any]]) -> tuple[list[str], list[dict[str, Any]]]:
    """Names of all columns in the order they appear, and the rows."""
    rows = [flat(record) for record in records]
    return list(dict.fromkeys(name for row in rows for name in row)), rows


def csv(records: Iterable[Mapping[str, Any]]) -> str:
    """Records as CSV (RFC 4180 with line feeds); a value that is not there is an empty field."""
    names, rows = flattened(records)
    out = io.StringIO()
    table = writer.DictWriter(out, names, lineterminator="\n")
    table.writeheader()
    table.writerows({name: _plain(value) for name, value in row.items()} for row in rows)
    return out.getvalue()


def _plain(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


def polars(records: Iterable[Mapping[str, Any]]) -> PolarsFrame:
    """Records as a polars DataFrame, one flat column for each value."""
    frames = needed("polars")
    names, rows = flattened(records)
    table: PolarsFrame = frames.DataFrame({name: [row.get(name) for row in rows] for name in names}, strict=False)
    return table


def pandas(records: Iterable[Mapping[str, Any]]) -> PandasFrame:
    """Records as a pandas DataFrame, one flat column for each value."""
    frames = needed("pandas")
    names, rows = flattened(records)
    table: PandasFrame = frames.DataFrame(rows, columns=names)
    return table


def parquet(records: Iterable[Mapping[str, Any]], path: str | Path) -> None:
    """Write records as a Parquet file."""
    file = Path(path)
    paths.check_writable(file, "--parquet")
    whole = io.BytesIO()
    polars(records).write_parquet(whole)
    try:
        paths.write_atomically(file, whole.getvalue())
    except OSError as error:
        raise InputError(f"--parquet {path}: {error.strerror or error}") from None


def needed(package: str, extra: str = "tables") -> Any:
    """An optional package, or an error that says how to get it: alone, or with the extra that has it."""
    try:
        return import_module(package)
    except ImportError:
        raise InputError(
            f"this needs the Python package {package}, which is not installed; "
            f"pip install 'ciphermill[{extra}]' (or {package} alone)"
        ) from None
