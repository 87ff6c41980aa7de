"""``trace``: micro-operations on their way through an out-of-order core."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from .. import paths
from .._core import InputError
from ..options import Options, Traced
from ..progress import waiting
from .options import CipherName, Csv, Json, OneMachine, Parquet, Plot, Variant, taking
from .output import check, emit, say, unverified, writable, write_json


@taking(only=("direction", "key_bits", "blocks", "bytes", "optimise", "with_", "without", "set", "cc"))
def trace(
    cipher: CipherName,
    on: OneMachine,
    first: Annotated[
        int | None,
        typer.Option(
            "--first", metavar="N", help="The first instruction, counted from 0. Default: in the middle of the run."
        ),
    ] = None,
    count: Annotated[int, typer.Option("--count", metavar="M", help="How many instructions.")] = 32,
    kanata: Annotated[
        str | None, typer.Option("--kanata", metavar="FILE", help="Write a log there that Konata opens.")
    ] = None,
    perfetto: Annotated[
        str | None, typer.Option("--perfetto", metavar="FILE", help="Write a trace there that ui.perfetto.dev opens.")
    ] = None,
    html: Annotated[
        str | None, typer.Option("--html", metavar="FILE", help="Write the pipeline there, as a page to look at.")
    ] = None,
    plot: Plot = None,
    variant: Variant = None,
    options: Options = Options(),
    json: Json = False,
    csv: Csv = False,
    parquet: Parquet = None,
) -> None:
    """Show micro-operations on their way through an out-of-order core, cycle by cycle."""
    from .. import engine, manifest, plots, report, tracing

    check(json, csv, parquet)
    plots.check(plot)
    for option, file in (("--kanata", kanata), ("--perfetto", perfetto), ("--html", html)):
        writable(file, option)
    options = replace(options, trace=Traced(first=first, count=count))
    options.check()
    with waiting("simulating"):
        module = engine.module(manifest.find(cipher), variant, options.cc)
        measurement = engine.measure(module, on, options)
    rows = measurement.pipeline
    if kanata is not None:
        from ..tracing import kanata as konata

        try:
            paths.write_atomically(Path(kanata), konata.text(rows).encode())
        except OSError as error:
            raise InputError(f"--kanata {kanata}: {error.strerror}") from None
    if perfetto is not None:
        from ..tracing import perfetto as viewer

        write_json(viewer.document(rows, report.title(measurement)), perfetto, "--perfetto")
    if html is not None:
        from .. import webreport

        asked = {"cipher": cipher, "on": on, "variant": variant, **options.asked(), "first": first, "count": count}
        webreport.write_pipeline(Path(html), measurement, asked)
    if plot is not None:
        plots.write(plots.trace(measurement), plot)
    written = kanata is not None or perfetto is not None or html is not None or plot is not None
    if not emit(report.document([measurement]), rows, json, csv, parquet) and not written:
        from ..tracing import diagram

        say(f"{tracing.heading(measurement, report.title(measurement))}\n\n{diagram.text(rows)}")
    if not measurement.verified:
        unverified(report.title(measurement), measurement.failure)
        raise typer.Exit(1)
