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
from .options import CipherName, Csv, Json, OneMachine, Parquet, Variant, taking
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
    search: Annotated[
        bool, typer.Option("--search", help="Show how the schedule of each pipelined loop was found instead.")
    ] = False,
    json: Json = False,
    csv: Csv = False,
    parquet: Parquet = None,
) -> None:
    """Show where the cycles go: bounds, and the hottest loop cycle by cycle."""
    from .. import engine, lines, manifest, searching
    from .. import explain as explaining

    check(json, csv, parquet)
    writable(html, "--html")
    with waiting("measuring"):
        module = engine.module(manifest.find(cipher), variant, options.cc)
        measurement = engine.measure(module, on, options)
        explanation = engine.explanation(module, on, options)
        explaining.located(
            explanation, lines.of(engine.suited(module, on, options), explaining.offsets(explanation), options.cc)
        )
    if html is not None:
        from .. import webreport

        asked = {"cipher": cipher, "on": on, "variant": variant, **options.asked()}
        webreport.write_schedule(Path(html), measurement, explanation, asked)
    document = {"schema": 1, "measurement": measurement.to_dict(), **explanation}
    if not emit(document, explaining.records(explanation), json, csv, parquet):
        say(searching.text(explanation["loops"]) if search else explaining.text(measurement, explanation))
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
    options: Options = Options(),
) -> None:
    """Print the whole program as assembly for the machine's own assembler.

    It is the program that `run` measures with the same options: on machines
    without interlock, loops are written for the direction and mode measured.
    """
    from .. import engine, manifest

    writable(out, "-o")
    with waiting("compiling"):
        text = engine.assembly(engine.module(manifest.find(cipher), variant, options.cc), on, options)
    if out is None:
        sys.stdout.write(text)
        return
    try:
        paths.write_atomically(Path(out), text.encode())
    except OSError as error:
        raise InputError(f"-o {out}: {error.strerror}") from None
