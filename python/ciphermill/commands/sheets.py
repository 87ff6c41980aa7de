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
    from .. import calls

    check(json, csv, parquet)
    with waiting("measuring"):
        filled = calls.sheet(machine, loops=loops, silicon=silicon)
    if not emit(filled.to_dict(), filled.rows(), json, csv, parquet):
        say(str(filled))
    raise typer.Exit(0 if filled.within else 1)
