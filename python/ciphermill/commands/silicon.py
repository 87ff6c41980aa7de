"""``silicon``: the very program that is simulated, on this computer."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import completion
from ..options import Options
from ..progress import with_progress
from .options import Csv, Json, Parquet, Plot, taking
from .output import OUR_FAULT, check, complain, emit, say, writable


@taking(but=("repeat", "exact"))
def silicon(
    ciphers: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CIPHER[/VARIANT] ...]",
            help="Built-in names, a .c, a .wasm, a manifest; all (the default): every variant, direction and mode.",
            autocompletion=completion.ciphers,
        ),
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(
            "--on",
            metavar="MACHINE",
            help="For which machine the code is made and simulated, by name or your own .toml. Default: the nearest to this processor.",
            autocompletion=completion.machines,
        ),
    ] = None,
    options: Options = Options(),
    samples: Annotated[int, typer.Option(metavar="N", help="Samples of each program.")] = 300,
    rounds: Annotated[
        int, typer.Option(metavar="N", help="Processes in which a program is measured, one after the other.")
    ] = 3,
    cpu: Annotated[int | None, typer.Option(metavar="N", help="The processor to run on. Default: the last.")] = None,
    emulator: Annotated[
        str | None,
        typer.Option(
            metavar="PROGRAM",
            help="Run under a user-mode emulator and only compare memory: qemu-riscv64, for instance.",
        ),
    ] = None,
    into: Annotated[
        str | None,
        typer.Option("--into", metavar="FILE", help="Write the native figures there, as a host's file of a study."),
    ] = None,
    plot: Plot = None,
    json: Json = False,
    csv: Csv = False,
    parquet: Parquet = None,
) -> None:
    """Run the simulated program itself on this computer, and compare cycles."""
    from .. import plots
    from .. import silicon as natively
    from ..silicon import plot as drawing
    from ..silicon import record, text

    check(json, csv, parquet)
    writable(into, "--into")
    plots.check(plot)
    settings = natively.Settings(samples=samples, rounds=rounds, cpu=cpu, emulator=emulator)
    machine = natively.nearest() if on is None else on
    document = natively.run(ciphers or ["all"], machine, options, settings, with_progress)
    if into is not None:
        record.write(document, into)
    if plot is not None:
        drawing.write(document, plot)
    if not emit(document, document["rows"], json, csv, parquet):
        say(text.text(document))
    status = 0
    for row in (row for row in document["rows"] if not row["verified"]):
        complain(f"{row['program']}: {row['failure']}" + (f"\n{OUR_FAULT}" if row["fault"] else ""))
        status = 1 if row["fault"] or status == 1 else 2
    raise typer.Exit(status)
