"""``explain`` and ``asm``: the program that was made of a cipher, to look at."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from .. import paths
from .._core import InputError
from ..options import Options
from ..progress import waiting
from .options import CipherName, Csv, Json, OneMachine, Parquet, Plot, Variant, taking
from .output import check, emit, say, unverified, writable


@taking(but=("repeat", "optimal", "exact"))
def explain(
    cipher: CipherName,
    on: OneMachine,
    variant: Variant = None,
    options: Options = Options(),
    html: Annotated[
        str | None, typer.Option("--html", metavar="FILE", help="Write the schedule there too, as a page to look at.")
    ] = None,
    plot: Plot = None,
    search: Annotated[
        bool, typer.Option("--search", help="Show how the schedule of each pipelined loop was found instead.")
    ] = False,
    json: Json = False,
    csv: Csv = False,
    parquet: Parquet = None,
) -> None:
    """Show where the cycles go: bounds, and the hottest loop cycle by cycle."""
    from .. import calls, plots, searching

    check(json, csv, parquet)
    plots.check(plot)
    writable(html, "--html")
    with waiting("measuring"):
        explained = calls.explain(cipher, on, variant=variant, **calls.keywords(options))
    measurement = explained.measurement
    if html is not None:
        from .. import webreport

        asked = {"cipher": cipher, "on": on, "variant": variant, **options.asked()}
        webreport.write_schedule(Path(html), measurement, explained.document, asked)
    if plot is not None:
        plots.write(plots.explain(measurement, explained.document), plot)
    if not emit(explained.to_dict(), explained.rows(), json, csv, parquet):
        say(searching.text(explained.document["loops"]) if search else str(explained))
    if not measurement.verified:
        unverified(f"{measurement.cipher} on {on}", measurement.failure)
        raise typer.Exit(1)


@taking(but=("bytes", "limit", "repeat", "optimal", "exact"))
def asm(
    cipher: CipherName,
    on: OneMachine,
    out: Annotated[
        str | None, typer.Option("-o", metavar="FILE", help="Write there instead of to standard output.")
    ] = None,
    variant: Variant = None,
    relocatable: Annotated[
        bool,
        typer.Option(
            "--relocatable", help="Sections and symbols for a linker, functions as C calls them, no fixed addresses."
        ),
    ] = False,
    object: Annotated[
        str | None, typer.Option("--object", metavar="FILE.o", help="Write that assembled there, as an object file.")
    ] = None,
    header: Annotated[
        str | None, typer.Option("--header", metavar="FILE.h", help="Write its functions' C declarations there.")
    ] = None,
    prefix: Annotated[
        str | None,
        typer.Option(
            "--prefix", metavar="NAME", help="What its functions' names begin with. Default: the cipher's name and _."
        ),
    ] = None,
    options: Options = Options(),
) -> None:
    """Print the whole program as assembly for the machine's own assembler.

    It is the program that `run` measures with the same options: on machines
    without interlock, loops are written for the direction and mode measured.
    With --relocatable, --object or --header it is one to link with C.
    """
    from .. import calls

    for option, file in (("-o", out), ("--object", object), ("--header", header)):
        writable(file, option)
    linked = object is not None or header is not None
    with waiting("compiling"):
        made = calls.asm(
            cipher, on, variant=variant, relocatable=relocatable or linked, prefix=prefix, **calls.keywords(options)
        )
        files = [
            ("-o", out, made.text.encode),
            ("--object", object, made.object),
            ("--header", header, lambda: made.header().encode()),
        ]
        # All that can be refused is, before any of them is written.
        contents = [(option, file, content()) for option, file, content in files if file is not None]
    for option, file, content in contents:
        try:
            paths.write_atomically(Path(file), content)
        except OSError as error:
            raise InputError(f"{option} {file}: {error.strerror}") from None
    if out is None and (relocatable or not linked):
        sys.stdout.write(made.text)
