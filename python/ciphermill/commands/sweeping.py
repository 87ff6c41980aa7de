"""``sweep``: many points, measured once and kept."""

from __future__ import annotations

from typing import Annotated

import typer

from .._core import InputError
from ..progress import with_progress
from .options import Csv, Json, Limit, Parquet, Plot
from .output import OUR_FAULT, check, complain, emit, say


def sweep(
    grid: Annotated[str, typer.Argument(metavar="GRID", help="A grid of points, as docs/sweeps.md describes it.")],
    store: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Keep the results there. Default: beside the grid, ending in .sqlite."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(metavar="N", help="How many points at once. Default: the cores.")
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Measure on the Dask cluster of this scheduler; local starts one here."),
    ] = None,
    monotone: Annotated[
        str | None,
        typer.Option(
            metavar="PATH,...", help="Check that more of these settings is never slower, as issue.width,units.mem."
        ),
    ] = None,
    limit: Limit = None,
    plot: Plot = None,
    json: Json = False,
    csv: Csv = False,
    parquet: Parquet = None,
) -> None:
    """Measure every point of a grid; what has been measured is kept, and not measured again."""
    from .. import plots, report, sweeps
    from ..sweeps.text import text

    check(json, csv, parquet)
    plots.check(plot)
    if workers is not None and workers < 1:
        raise InputError(f"--workers {workers}: at least 1")
    done = sweeps.run(grid, store=store, workers=workers, cluster=cluster, limit=limit, progress=with_progress)
    if plot is not None:
        plots.write(done.plot().spec, plot)
    verdict = None if monotone is None else done.monotone(name.strip() for name in monotone.split(",") if name.strip())
    if not emit(report.document(done.measurements), done.rows(), json, csv, parquet):
        told = text(done)
        say(told if verdict is None else f"{told}\n\n{verdict}")
    elif verdict is not None:
        complain(str(verdict))
    for n, failure in done.failures.items():
        complain(f"{sweeps.title(done.grid.points[n])}: {failure.splitlines()[0]}")
    if done.faults or (verdict is not None and (verdict.below or verdict.beyond)):
        complain(OUR_FAULT)
        raise typer.Exit(1)
    raise typer.Exit(2 if done.failures else 0)
