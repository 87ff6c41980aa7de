"""``sheet``: tiny loops on a machine, beside what others measured on the real one."""

from __future__ import annotations

from typing import Annotated

import typer

from ..progress import waiting
from .options import Csv, Json, Parquet
from .output import check, emit, say


def sheet(
    machine: Annotated[
        str,
        typer.Argument(
            metavar="MACHINE",
            help="A machine that has a sheet in machines/sheets, or your own: a path that ends in .toml.",
        ),
    ],
    loops: Annotated[
        str | None, typer.Option("--loops", metavar="FILE", help="Your own sheet, written as those in machines/sheets.")
    ] = None,
    silicon: Annotated[
        bool, typer.Option("--silicon", help="Run the loops on this computer's processor, too.")
    ] = False,
    json: Json = False,
    csv: Csv = False,
    parquet: Parquet = None,
) -> None:
    """Run tiny loops on a machine, beside what others measured on the real one."""
    from .. import sheet as sheets

    check(json, csv, parquet)
    native = None
    if silicon:
        from ..silicon import loops as natively

        native = natively.run
    with waiting("measuring"):
        filled = sheets.run(machine, loops, native)
    if not emit(filled, filled["rows"], json, csv, parquet):
        say(sheets.text(filled))
    raise typer.Exit(0 if all(row["within"] for row in filled["rows"]) else 1)
